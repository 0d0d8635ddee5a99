package claudecode_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/claudecode"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

// BenchmarkRead reads a transcript of some MB: turns of the story of turns with ids of their own.
// Files that are read and outputs of commands make its lines as long as those of real
// transcripts, 1.6 KB on average.
func BenchmarkRead(b *testing.B) {
	story, err := os.ReadFile("testdata/turns.txtar")
	require.NoError(b, err)
	code := strings.Repeat(`func (s *Server) Close() error {\n\treturn s.listener.Close() // \"the last\"\n}\n`, 80)
	main := strings.NewReplacer("main.go:7", code, `"filenames":["main.go"]`, `"content":"`+code+`"`, "Exit code 1", code[:4100]).
		Replace(string(txtar.Parse(story).Files[0].Data))
	var text bytes.Buffer
	for i := range 150 {
		text.WriteString(strings.NewReplacer(`"uuid":"`, fmt.Sprintf(`"uuid":"%d-`, i), `"id":"`, fmt.Sprintf(`"id":"%d-`, i), `"tool_use_id":"`, fmt.Sprintf(`"tool_use_id":"%d-`, i)).Replace(main))
	}
	recordingtest.Benchmark(b, claudecode.Format(), text.Bytes())
}
