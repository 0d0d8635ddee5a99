package live_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// stilled calls act in a bubble with an agent, on a clock that stands still.
func stilled(t *testing.T, act func(t *testing.T, clock *enginetest.StoppedClock, g *agentslive.Agent)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
		eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: clock.Read, AfterFunc: clock.AfterFunc})
		require.NoError(t, err)
		ses, err := eng.Begin(t.Context(), "world", session.TimeManual)
		require.NoError(t, err)
		g, err := ses.Agents().Register(t.Context(), "ann", nil)
		require.NoError(t, err)
		synctest.Wait()
		act(t, clock, g)
		require.NoError(t, eng.Close())
	})
}

// What is recorded because a context has ended gets a second more. The timer of that second
// runs from the end of the context on, and is stopped when the record is kept.
func TestOutlast(t *testing.T) {
	stilled(t, func(t *testing.T, clock *enginetest.StoppedClock, g *agentslive.Agent) {
		d := g.Driver()
		before, _ := clock.Running()
		running := func() int {
			synctest.Wait()
			now, _ := clock.Running()
			return now - before
		}
		type key struct{}

		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, 7))
		still, over := d.Outlast(ctx)
		assert.Equal(t, 7, still.Value(key{}))
		assert.Zero(t, running())
		cancel()
		assert.Equal(t, 1, running())
		clock.Pass(time.Second - 1)
		require.NoError(t, still.Err(), "a second is not over")
		over()
		assert.Zero(t, running(), "the timer is stopped")
		require.ErrorIs(t, still.Err(), context.Canceled)

		ctx, cancel = context.WithCancel(t.Context())
		still, over = d.Outlast(ctx)
		cancel()
		synctest.Wait()
		clock.Pass(time.Second)
		require.ErrorIs(t, still.Err(), context.Canceled, "a second is over")
		over()
		assert.Zero(t, running())

		ctx, cancel = context.WithCancel(t.Context())
		still, over = d.Outlast(ctx)
		over()
		require.ErrorIs(t, still.Err(), context.Canceled)
		cancel()
		assert.Zero(t, running(), "the record was kept before")

		still, over = d.Outlast(context.Background())
		require.NoError(t, still.Err())
		over()
		require.ErrorIs(t, still.Err(), context.Canceled)
	})
}

// A request that is worked on twice can be cancelled until the last of the two is done, and
// others are not concerned.
func TestPendingRequests(t *testing.T) {
	stilled(t, func(t *testing.T, _ *enginetest.StoppedClock, g *agentslive.Agent) {
		d := g.Driver()
		first, second, other := d.Pend("r"), d.Pend("r"), d.Pend("other")
		cancelled := func(reqID string) bool {
			t.Helper()
			found, err := g.Cancel(t.Context(), reqID)
			require.NoError(t, err)
			return found
		}
		assert.False(t, cancelled("none"))
		first.Done()
		assert.True(t, cancelled("r"))
		assert.False(t, first.Dropped(), "it was done before")
		assert.True(t, second.Dropped())
		assert.False(t, other.Dropped())
		assert.True(t, cancelled("r"), "until it is done")
		first.Done()
		assert.True(t, cancelled("r"))
		second.Done()
		assert.False(t, cancelled("r"))
		assert.True(t, cancelled("other"))
		assert.True(t, other.Dropped())
		other.Done()
		assert.False(t, cancelled("other"))
	})
}
