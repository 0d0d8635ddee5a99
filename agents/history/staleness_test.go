package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// A threshold of as many deliveries as are kept of an agent means any number: then no
// delivery makes a context stale, in the world and in the answer alike.
func TestStalenessThatNothingReaches(t *testing.T) {
	for _, threshold := range []int{agents.MaxSent - 1, agents.MaxSent} {
		ctx := t.Context()
		eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
		require.NoError(t, err)
		ses, err := eng.Begin(ctx, "village", session.TimeManual)
		require.NoError(t, err)
		require.NoError(t, found(ctx, t, ses))
		world := ses.Agents()
		g, err := world.Register(ctx, "bob", enginetest.Value(t, fmt.Sprintf(`{"policy":"everything","interrupt":"always","staleness_threshold":%d}`, threshold)))
		require.NoError(t, err)
		_, err = g.Begin(ctx, agents.TokenRequest{ReqID: "r", Current: true, Deadline: time.Hour})
		require.NoError(t, err)
		step := agents.EffectDraft{Kind: "Move", SourceID: "eve", Payload: enginetest.Value(t, `{"to":[2,1]}`)}
		drafts := make([]agents.Submission, agents.MaxSent+50)
		for i := range drafts {
			drafts[i].Draft = &step
		}
		_, err = world.Quantum(ctx, drafts...)
		require.NoError(t, err)
		require.NoError(t, world.Settle(ctx))
		h, err := eng.AgentHistory("village")
		require.NoError(t, err)
		report, err := h.Request(ctx, "bob", "r")
		require.NoError(t, err)
		require.Len(t, report.Generations, 1)
		decisive := 0
		for _, d := range report.Generations[0].Later {
			if d.Decisive {
				decisive++
			}
		}
		stale := threshold < agents.MaxSent
		require.Equal(t, stale, report.Generations[0].End == query.EndStale, "threshold %d", threshold)
		require.Equal(t, stale, decisive == 1, "threshold %d: %d decisive", threshold, decisive)
		require.GreaterOrEqual(t, report.Generations[0].Count, agents.MaxSent)
		g.Close()
		require.NoError(t, eng.Close())
	}
}
