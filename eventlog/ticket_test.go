package eventlog_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// A ticket of an open round first waits for the round to close and then for the disk:
// nothing is durable before that. So it is with a context that cannot end.
func TestTicketIsAwaitedBesideItsRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session(t, open(t, vfs.NewMem(), eventlog.Config{}), "a")
		for i, ctx := range []context.Context{t.Context(), context.Background()} {
			waited := make(chan error, 1)
			early := false
			err := s.Write(t.Context(), func(r *eventlog.Round) {
				ticket, err := r.Stage(eventlog.Batch{Drafts: beats("a", 1)})
				if err != nil {
					t.Error(err)
					return
				}
				go func() {
					_, err := ticket.Wait(ctx)
					waited <- err
				}()
				synctest.Wait()
				early = len(waited) > 0
			})
			require.NoError(t, err)
			if err := <-waited; err != nil || early || s.Head().Seq != eventlog.Seq(i+1) {
				t.Errorf("head %v, %v; told before the round had ended: %v", s.Head(), err, early)
			}
		}
	})
}

// A staged batch becomes durable, and readers see it, although its caller has left and no
// goroutine waits for the ticket.
func TestStagedByACallerThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session(t, open(t, vfs.NewMem(), eventlog.Config{}), "a")
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.StageIn(ctx, func(r *eventlog.Round) (*eventlog.Ticket, error) {
			r.Then(synctest.Wait) // the caller leaves before it is woken
			cancel()
			return r.Stage(eventlog.Batch{Drafts: beats("a", 1)})
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, s.WaitDurable(t.Context(), 1))
		require.Equal(t, eventlog.Seq(1), s.Head().Seq)
	})
}
