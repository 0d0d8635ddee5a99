//go:build unix

package testprogram_test

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/replay/testprogram"
)

// A shell command judges two states: it finds smoke in one of them.
func ExampleProgram() {
	p := &testprogram.Program{Args: []string{"sh", "-c", "if grep -q smoke; then exit 1; fi"}}
	for _, state := range []string{`{"stage":"empty"}`, `{"stage":"smoke"}`} {
		o, err := p.Run(context.Background(), []byte(state))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(o.Result)
	}
	// Output:
	// good
	// bad
}
