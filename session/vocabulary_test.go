package session_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
)

// A state that says which members it can have has no others: at the beginning,
// with a world, and after a signal, which brings the origin of its time.
func TestVocabulary(t *testing.T) {
	eng, ses := enginetest.Begin(t, t.TempDir(), sajou.Config{})
	defer eng.Close()
	seen := map[string][]string{}
	look := func(fold *projection.Fold) {
		for _, p := range session.Projections(session.ProjectionConfig{}) {
			closed, ok := p.New().(where.Closed)
			if !ok {
				continue
			}
			view, _ := fold.View()[p.Name].(map[string]any)
			for name := range view {
				if !slices.Contains(closed.Vocabulary(), name) {
					t.Errorf("%s has a member %q", p.Name, name)
				}
				seen[p.Name] = append(seen[p.Name], name)
			}
		}
	}
	state := func() *projection.Fold {
		fold, err := ses.State(t.Context())
		require.NoError(t, err)
		return fold
	}
	look(state())
	require.NoError(t, ses.Agents().Begin(t.Context(), enginetest.Value(t, `{"entities": {"lamp": {}}}`)))
	if _, err := ses.Signal(t.Context(), enginetest.TaskSignal(1, 1000)); err != nil {
		t.Fatal(err)
	}
	look(state())
	_, head, err := eng.Fork(t.Context(), ses.Name(), "fork", fork.Config{})
	require.NoError(t, err)
	forked, err := enginetest.ReplayedAt(t.Context(), eng, "fork", head.Seq)
	require.NoError(t, err)
	look(forked)
	for _, p := range session.Projections(session.ProjectionConfig{}) {
		closed, ok := p.New().(where.Closed)
		if named := p.Name == "session" || p.Name == "stage" || p.Name == "world"; named != ok {
			t.Errorf("%s is closed: %v", p.Name, ok)
		}
		if !ok {
			continue
		}
		for _, name := range closed.Vocabulary() {
			if !slices.Contains(seen[p.Name], name) {
				t.Errorf("%s never has its member %q", p.Name, name)
			}
		}
	}
}
