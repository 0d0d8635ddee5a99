package schema_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/schema"
)

func Example() {
	e := route.Endpoint{Pattern: "GET /api/v1/sessions/{session}/head", Scope: access.ScopeRead, Doc: &route.Doc{
		Summary: "The head of a session",
		Errors:  []problem.ErrorCode{problem.NoSession},
	}}
	fmt.Println(schema.Errors(&e))
	fmt.Println(len(schema.Document([]route.Endpoint{e})["paths"].(map[string]any)))
	// Output:
	// [unauthenticated forbidden origin-refused no-session deleted invalid too-many internal damaged]
	// 1
}
