package mcp_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/mcp"
)

var update = flag.Bool("update", false, "write the answers into the stories")

// TestStories plays each file of testdata as a client: a line that begins with # tells the
// story, one that begins with > calls a tool with arguments in JSON, and the indented lines
// below it are the answer.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			engine := openEngine(t)
			recordConversation(t, engine)
			recordDemo(t, engine)
			s := connected(t, mcp.Config{Lend: lend(engine), AllowRecord: true, MaxBytes: 4000, Now: fixedNow})
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := played(t, s, string(text))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			require.Empty(t, cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")), "go test ./server/mcp -update writes the answers")
		})
	}
}

// played returns a story with the answers of a server.
func played(t *testing.T, s *sdk.ClientSession, story string) string {
	var b strings.Builder
	for line := range strings.Lines(story) {
		if strings.HasPrefix(line, "  ") || strings.TrimSpace(line) == "" {
			continue // an answer
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		tool, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
		if !ok {
			continue
		}
		name, arguments, _ := strings.Cut(tool, " ")
		for answer := range strings.Lines(shown(called(t, s, name, arguments))) {
			b.WriteString("  " + answer)
		}
	}
	return b.String()
}
