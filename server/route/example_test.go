package route_test

import (
	"fmt"
	"net/http"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/route"
)

func Example() {
	e := route.Endpoint{
		Pattern: "GET /api/v1/sessions/{session}/head",
		Scope:   access.ScopeRead,
		Handler: func(w http.ResponseWriter, r *http.Request) error {
			_, err := fmt.Fprintln(w, route.Session(r))
			return err
		},
	}
	fmt.Println(e.Pattern, "needs", e.Scope)
	// Output: GET /api/v1/sessions/{session}/head needs read
}
