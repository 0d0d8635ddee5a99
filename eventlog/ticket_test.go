package eventlog_test

import (
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// A ticket of an open round first waits for the round to close and then for the disk:
// nothing is durable before that.
func TestTicketIsAwaitedBesideItsRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session(t, open(t, vfs.NewMem(), eventlog.Config{}), "a")
		waited := make(chan error, 1)
		early := false
		err := s.Write(t.Context(), func(r *eventlog.Round) {
			ticket, err := r.Stage(eventlog.Batch{Drafts: beats("a", 1)})
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				_, err := ticket.Wait(t.Context())
				waited <- err
			}()
			synctest.Wait()
			early = len(waited) > 0
		})
		require.NoError(t, err)
		if err := <-waited; err != nil || early || s.Head().Seq != 1 {
			t.Errorf("head %v, %v; told before the round had ended: %v", s.Head(), err, early)
		}
	})
}
