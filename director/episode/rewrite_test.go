package episode_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestRewrite shows the texts of migrated episodes: what did not change stays as its
// author wrote it. Each text has the migrated value.
func TestRewrite(t *testing.T) {
	golden.Tell(t, "testdata/rewrite/*.txtar", func(t *testing.T, files map[string]string) string {
		text := []byte(files["episode.json"])
		before, err := signal.ParseValue(text)
		require.NoError(t, err)
		after, _, err := episode.Migrate(before)
		require.NoError(t, err)
		out := episode.Rewrite(text, before, after)
		parsed, err := signal.ParseValue(out)
		require.NoError(t, err)
		require.Equal(t, after, parsed)
		return string(out)
	})
}
