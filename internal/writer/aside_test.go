package writer

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
)

// meanwhile calls a function whenever a batch was folded.
type meanwhile struct{ call func() }

func (meanwhile) FoldLoaded(string, eventlog.Seq, time.Duration) {}
func (m *meanwhile) Folded(string, int, int, time.Duration)      { m.call() }
func (meanwhile) FoldFailed(string, error)                       {}

// A goroutine that folds goes on with what comes meanwhile if that is much, waits for the
// idle session if it is little, and else ends.
func TestFoldAside(t *testing.T) {
	log, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	s, err := log.Session("a")
	require.NoError(t, err)
	var waits []time.Duration
	var rings []func()
	g := NewGroup(Config{Log: log, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }, AfterFunc: func(d time.Duration, f func()) {
		waits, rings = append(waits, d), append(rings, f)
	}})
	folded := &meanwhile{func() {}}
	g.cfg.Metrics = folded
	w, err := g.Open(t.Context(), s, session.TimeManual, session.NewReplay(&s.SessionReader, session.Projections(session.ProjectionConfig{}), nil), nil)
	require.NoError(t, err)
	require.NoError(t, w.Decide(t.Context(), func(*Turn) error { return nil })) // the fold is made
	stage := func() *eventlog.Ticket {
		ticket, err := w.appender.AppendIn(t.Context(), func(r *eventlog.Round) (*eventlog.Ticket, error) {
			var d session.Drafts
			if s.Head().Seq == 0 {
				d.Opened(0, session.TimeManual)
			}
			d.Tick(0)
			return r.Stage(eventlog.Batch{Drafts: d.List()})
		})
		require.NoError(t, err)
		return ticket
	}
	for _, tt := range []struct {
		name  string
		comes int // batches while the first is folded
		eager bool
		waits int
	}{
		{"nothing comes", 0, false, 0},
		{"a little comes", 1, false, 1},
		{"a little comes, and is folded at once", 1, true, 0},
	} {
		b := &w.backlog
		waits, rings, b.eager, b.watched, b.followed = nil, nil, tt.eager, false, true
		b.add(stage(), 0)
		n := 0
		folded.call = func() {
			if n++; n <= tt.comes {
				b.add(stage(), 0)
			}
		}
		w.foldAside()
		assert.Len(t, waits, tt.waits, tt.name)
		assert.False(t, b.followed, tt.name)
		assert.Equal(t, tt.waits > 0, b.watched, tt.name)
		assert.Equal(t, tt.waits, b.size(), tt.name)
		for _, d := range waits {
			assert.Equal(t, idleAfter, d)
		}
		// The timer runs: the batch came before it, so that the session is idle.
		for len(rings) > 0 {
			ring := rings[0]
			rings = rings[1:]
			ring()
			g.WaitFolded()
		}
		assert.Zero(t, b.size(), tt.name)
		assert.Equal(t, s.Head().Seq, w.fold.Head().Seq, tt.name)
	}

	// Behind the end of the group nothing waits and nothing is folded aside.
	folded.call = func() {}
	w.backlog.eager, w.backlog.watched, w.backlog.busy = false, true, true
	w.backlog.add(stage(), 0)
	g.Stop()
	g.Wait()
	waits = nil
	w.idle()
	assert.Empty(t, waits)
	w.idle()
	g.WaitFolded()
	assert.Equal(t, 1, w.backlog.size())
	require.NoError(t, log.Close())
}
