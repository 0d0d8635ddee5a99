package mcp_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/mcp"
)

// The table of the tools in docs/mcp.md is that of the code.
func TestDocumentedTools(t *testing.T) {
	const page, begin, end = "../../docs/mcp.md", "<!-- tools: written by go test ./server/mcp -update -->\n", "<!-- end of tools -->"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	var table strings.Builder
	table.WriteString("| Tool | What it returns |\n| --- | --- |\n")
	for _, tool := range mcp.ToolInfos() {
		mark := ""
		if tool.Records {
			mark = " *"
		}
		summary, _, _ := strings.Cut(tool.Text, ". ")
		fmt.Fprintf(&table, "| `%s`%s | %s |\n", tool.Name, mark, strings.TrimSuffix(summary, "."))
	}
	want := head + begin + table.String() + end + tail
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "go test ./server/mcp -update writes the table")
}
