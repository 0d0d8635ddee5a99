package access_test

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/server/access"
)

func Example() {
	caller := &access.Caller{Name: "token:tap", Grants: []access.Grant{{Scope: access.ScopeRecord, Sessions: []string{"build-*"}}}}
	ctx := access.With(context.Background(), caller)
	fmt.Println(access.Check(ctx, access.ScopeRecord, "build-7"))
	fmt.Println(access.Check(ctx, access.ScopeRecord, "payroll"))
	fmt.Println(access.Check(ctx, access.ScopeRead, "build-7"))
	// Output:
	// <nil>
	// hidden from the caller: token:tap has no grant for session "payroll"
	// not allowed: token:tap has no grant with the scope "read" for session "build-7"
}
