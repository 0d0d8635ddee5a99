package toolplace_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/stage/toolplace"
)

func ExampleOf() {
	for _, tool := range []string{"Bash", "exec_command", "mcp__github__search_code", "update_plan"} {
		fmt.Println(tool, "is in", toolplace.Of(tool))
	}
	// Output:
	// Bash is in terminal
	// exec_command is in terminal
	// mcp__github__search_code is in search
	// update_plan is in other
}
