package live_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
)

// What an agent knows is the view that has been delivered to it by now, while the world
// has the deltas in flight too: before the first call in flight and after it, for calls
// at once, and after the agent has left and come back.
func TestKnown(t *testing.T) {
	inTime(t, func(t *testing.T, th *enginetest.StoppedClock, ses *sajou.Session) {
		ctx, world := t.Context(), ses.Agents()
		register := func() *agentslive.Agent {
			return enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything","latency_model":{"ms":70}}`))
		}
		_, err := world.Broadcast(ctx, enginetest.Draft("EntityCreated", "world", `{"entity_id":"lamp","entity_data":{"n":0}}`))
		require.NoError(t, err)
		a := register()
		th.Pass(time.Second)
		set := func(n int) {
			_, err := world.Broadcast(ctx, enginetest.Draft("EntityUpdated", "world", fmt.Sprintf(`{"entity_id":"lamp","fields":{"n":%d}}`, n)))
			require.NoError(t, err)
		}
		// want holds what is known and what the world shows.
		want := func(known, shown int) {
			t.Helper()
			v, err := world.Known(ctx, "a")
			require.NoError(t, err)
			lamp, _ := v.VisibleEntities.Get("lamp")
			assert.Equal(t, fmt.Sprintf(`{"n":%d}`, known), lamp.String(), "known")
			assert.Equal(t, v.Digest(), v.ContextDigest)
			full, err := world.View(ctx, "a")
			require.NoError(t, err)
			lamp, _ = full.VisibleEntities.Get("lamp")
			assert.Equal(t, fmt.Sprintf(`{"n":%d}`, shown), lamp.String(), "shown")
			assert.Equal(t, known == shown, v.ViewSeq == full.ViewSeq)
		}
		want(0, 0)
		set(1)
		ended, end := context.WithCancel(ctx)
		end()
		_, err = world.Known(ended, "a")
		require.ErrorIs(t, err, context.Canceled, "nothing is read for a caller that has gone")
		want(0, 1)
		th.Pass(30 * time.Millisecond)
		set(2) // the agent is followed
		th.Pass(40*time.Millisecond - 1)
		want(0, 2)
		th.Pass(1)
		want(1, 2)
		th.Pass(30*time.Millisecond - 1)
		want(1, 2)
		th.Pass(1)
		want(2, 2)

		_, err = world.Known(ctx, "nobody")
		require.ErrorIs(t, err, agents.ErrUnknownAgent)

		set(3)
		require.NoError(t, a.Leave(ctx)) // and what is in flight never arrives
		_, err = world.Known(ctx, "a")
		require.ErrorIs(t, err, agents.ErrUnknownAgent)
		register()
		th.Pass(time.Second)
		want(3, 3)
		set(4)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				v, err := world.Known(ctx, "a")
				lamp, _ := v.VisibleEntities.Get("lamp")
				assert.NoError(t, err)
				assert.Equal(t, `{"n":3}`, lamp.String())
			})
		}
		all.Wait()
		set(5)
		th.Pass(70 * time.Millisecond)
		want(5, 5)
	})
}
