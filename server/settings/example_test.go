package settings_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/server/settings"
)

func Example() {
	s, _, err := settings.Resolve(settings.Given{File: "serve.yaml", Text: []byte("listen: 127.0.0.1:8080\n")})
	fmt.Println(s.Listen, err)
	_, _, err = settings.Resolve(settings.Given{File: "serve.yaml", Text: []byte("listn: 127.0.0.1:8080\n")})
	fmt.Println(err)
	// Output:
	// [127.0.0.1:8080] <nil>
	// serve.yaml:1:1: error: there is no setting "listn"; did you mean listen? (/listn)
}
