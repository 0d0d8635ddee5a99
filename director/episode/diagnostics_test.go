package episode_test

import (
	"testing"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

// TestDiagnostics parses the episodes in testdata/diagnostics and compares the
// diagnostics.
func TestDiagnostics(t *testing.T) {
	golden.Tell(t, "testdata/diagnostics/*.txtar", func(t *testing.T, files map[string]string) string {
		e, diagnostics := episode.Parse("episode.json", []byte(files["episode.json"]))
		if refused := diagnostics.Err(episode.ErrEpisode) != nil; refused != (e == nil) {
			t.Errorf("refused = %v with episode %v", refused, e)
		}
		if len(diagnostics) == 0 {
			return "nothing\n"
		}
		return diagnostics.String() + "\n"
	})
}
