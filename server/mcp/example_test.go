package mcp_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/server/mcp"
)

func Example() {
	for _, tool := range mcp.ToolInfos() {
		if tool.Records {
			fmt.Println(tool.Name, "-", tool.Title)
		}
	}
	// Output:
	// emit_signal - Emit a signal
	// define - Bring declarations into force
	// fork - Fork a session
}
