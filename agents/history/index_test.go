package history_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/session"
)

// changes returns all changes of some paths in the views of all agents.
func changes(ctx context.Context, t require.TestingT, eng *sajou.Engine) (list []string) {
	h, err := eng.AgentHistory("village")
	require.NoError(t, err)
	for _, agent := range villagerNames {
		for _, text := range []string{
			"/visible_entities/box", "/visible_entities/ann", "/visible_entities/ann/position", "/visible_entities/bob/label",
			"/visible_relationships/ann", "/visible_entities/nobody", "/visible_entities", "/view_seq",
		} {
			path, err := jsondoc.ParsePointer(text)
			require.NoError(t, err)
			for change, err := range h.ValueChanges(ctx, agent, path, nil) {
				list = append(list, fmt.Sprintf("%s %s: %d at %v %s, before %s, coming %v, %v", agent, text, change.Entry, change.Delivery.At, change.Value, change.Before, change.Coming, err))
			}
			first, found, err := h.FirstKnown(ctx, agent, path, nil)
			list = append(list, fmt.Sprintf("%s %s: first %d %s, %v %v", agent, text, first.Entry, first.Value, found, err))
		}
	}
	return list
}

// TestShownIndex: what agents knew is the same with an index, also if the session has grown
// since, and where the index jumps from entry to entry.
func TestShownIndex(t *testing.T) {
	defer history.Jumps(2)()
	dir := t.TempDir()
	ctx := t.Context()
	for n := range 12 { // each opens a store five times
		store := filepath.Join(dir, fmt.Sprint(n))
		live := func(deeds []villageDeed) {
			eng, err := sajou.Open(store, sajou.Config{SnapshotEvery: 4})
			require.NoError(t, err)
			defer func() { _ = eng.Close() }()
			ses, err := eng.Begin(ctx, "village", session.TimeManual)
			require.NoError(t, err)
			require.NoError(t, found(ctx, t, ses))
			for _, d := range deeds {
				require.NoError(t, d.perform(ctx, t, ses, done{}))
			}
			require.NoError(t, ses.Agents().Settle(ctx))
		}
		ask := func(from int) []string {
			eng, err := sajou.Open(store, sajou.Config{ReadOnly: true, IndexFrom: from})
			require.NoError(t, err)
			defer func() { _ = eng.Close() }()
			answers := changes(ctx, t, eng)
			files, _, err := eng.IndexUsage("village")
			require.NoError(t, err)
			require.Equal(t, from > 0, files > 0)
			return answers
		}
		deeds := rapid.SliceOfN(drawVillageDeed, 8, 20).Example(n)
		half := len(deeds) * (n % 4) / 4
		live(deeds[:half])
		plain := ask(-1)
		require.NotEmpty(t, plain)
		require.Equal(t, plain, ask(1))
		live(deeds[half:])
		grown := ask(1)
		eng, err := sajou.Open(store, sajou.Config{})
		require.NoError(t, err)
		require.NoError(t, eng.DropIndexes("village"))
		require.NoError(t, eng.Close())
		require.Equal(t, ask(-1), grown)
	}
}
