package live_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// manualWorld opens the store of a file system, and begins its world if it is new.
func manualWorld(t *testing.T, fs vfs.FS) (*sajou.Engine, *agentslive.Agents) {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: fs})
	require.NoError(t, err)
	ses, err := eng.Begin(t.Context(), "world", session.TimeManual)
	require.NoError(t, err)
	return eng, ses.Agents()
}

// The answers of one quantum stand in the log together. After a restart each request gets
// its own, whichever other agents and requests have the same names.
func TestAnswersOfOneQuantum(t *testing.T) {
	ctx, fs := t.Context(), vfs.NewMem()
	open := func() (*sajou.Engine, *agentslive.Agents) { return manualWorld(t, fs) }
	eng, world := open()
	require.NoError(t, world.Configure(ctx, enginetest.Value(t, `{`+unlimited+`}`)))
	var asked []agents.Submission
	for _, id := range []string{"a", "b", "c"} {
		enginetest.Register(t, world, id, nil)
		for _, reqID := range []string{"1", "2", "a"} {
			in := agents.Intent{AgentID: id, ReqID: reqID, Kind: "Speak", Payload: enginetest.Value(t, `{"text":"hello"}`), ContextSeq: 99}
			if (len(asked)+len(id+reqID))%2 == 0 {
				in.Kind, in.Payload = "Interact", enginetest.Value(t, fmt.Sprintf(`{"target_id":"nothing %d"}`, len(asked)))
			}
			asked = append(asked, agents.Submission{Intent: &in})
		}
	}
	first, err := world.Quantum(ctx, asked...)
	require.NoError(t, err)
	accepted := 0
	for range 2 { // the second time all comes from the log
		for i, s := range asked {
			again, err := world.Submit(ctx, *s.Intent)
			require.Equal(t, agents.Duplicate, again.Status, "%s/%s: %v", s.Intent.AgentID, s.Intent.ReqID, err)
			require.Equal(t, first[i].OK(), err == nil)
			require.Equal(t, first[i].GlobalSeq, again.GlobalSeq)
			if first[i].OK() {
				accepted++
			} else {
				require.Equal(t, first[i].Rejection.Code, again.Rejection.Code)
				require.Equal(t, first[i].Rejection.Problems, again.Rejection.Problems)
			}
		}
		require.NoError(t, eng.Close())
		eng, world = open()
	}
	require.NoError(t, eng.Close())
	require.Positive(t, accepted)
	require.Less(t, accepted, 2*len(asked))
}

// A request of an agent that left, and registered again after a restart, gets its first
// outcome.
func TestAnswersOfAnAgentThatLeft(t *testing.T) {
	ctx, fs := t.Context(), vfs.NewMem()
	in := agents.Intent{AgentID: "a", ReqID: "1", Kind: "Speak", Payload: enginetest.Value(t, `{"text":"hello"}`), ContextSeq: 99}
	eng, world := manualWorld(t, fs)
	g := enginetest.Register(t, world, "a", nil)
	first, err := world.Submit(ctx, in)
	require.NoError(t, err)
	require.NoError(t, g.Leave(ctx))
	require.NoError(t, eng.Close())
	for range 2 {
		eng, world = manualWorld(t, fs)
		enginetest.Register(t, world, "a", nil)
		again, err := world.Submit(ctx, in)
		require.NoError(t, err)
		require.Equal(t, agents.Duplicate, again.Status)
		require.Equal(t, first.GlobalSeq, again.GlobalSeq)
		require.NoError(t, eng.Close())
	}
}

// A repeat returns only when the first answer is durable, also if the first caller does not
// wait, and whether the repeat comes alone or in a batch or quantum.
func TestRepeatWaitsForTheDisk(t *testing.T) {
	for name, repeat := range map[string]func(context.Context, *agentslive.Agents, agents.Intent) ([]agents.Outcome, error){
		"alone": func(ctx context.Context, w *agentslive.Agents, in agents.Intent) ([]agents.Outcome, error) {
			o, err := w.Submit(ctx, in)
			return []agents.Outcome{o}, err
		},
		"batch": func(ctx context.Context, w *agentslive.Agents, in agents.Intent) ([]agents.Outcome, error) {
			return w.SubmitBatch(ctx, []agents.Intent{in})
		},
		"quantum": func(ctx context.Context, w *agentslive.Agents, in agents.Intent) ([]agents.Outcome, error) {
			return w.Quantum(ctx, agents.Submission{Intent: &in})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, d := &enginetest.StoppedClock{Now: enginetest.StoryBegin}, enginetest.NewDisk()
				eng, err := sajou.Open("store", sajou.Config{FS: d, Now: th.Read, AfterFunc: th.AfterFunc})
				require.NoError(t, err)
				ses, err := eng.Begin(t.Context(), "world", session.TimeManual)
				require.NoError(t, err)
				world := ses.Agents()
				enginetest.Register(t, world, "a", nil)
				require.NoError(t, world.Settle(t.Context()))
				in := agents.Intent{AgentID: "a", ReqID: "1", Kind: "Speak", Payload: enginetest.Value(t, `{"text":"hello"}`), ContextSeq: 99}
				release := d.Hold()
				first := make(chan agents.Outcome, 1)
				go func() {
					o, err := world.Submit(t.Context(), in)
					assert.NoError(t, err)
					first <- o
				}()
				synctest.Wait()
				var again []agents.Outcome
				returned := false
				go func() {
					again, err = repeat(t.Context(), world, in)
					returned = true
				}()
				synctest.Wait()
				assert.False(t, returned, "%+v, %v", again, err)
				release()
				synctest.Wait()
				require.True(t, returned)
				require.NoError(t, err)
				require.Equal(t, agents.Duplicate, again[0].Status)
				require.Equal(t, (<-first).GlobalSeq, again[0].GlobalSeq)
				require.NoError(t, eng.Close())
				synctest.Wait()
			})
		})
	}
}
