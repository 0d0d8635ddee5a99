package enginetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// BeginWorld begins a session in memory, for agents.
func BeginWorld(t *testing.T, authority session.TimeAuthority) *sajou.Session {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, eng.Close())
	})
	ses, err := eng.Begin(t.Context(), "world", authority)
	require.NoError(t, err)
	return ses
}

// Register registers an agent.
func Register(t *testing.T, w *agentslive.Agents, id string, policy signal.Value) *agentslive.Agent {
	t.Helper()
	if _, err := w.Broadcast(t.Context(), Draft("EntityCreated", "world", `{"entity_id":"`+id+`","entity_data":{"type":"agent"}}`)); err != nil {
		t.Fatal(err)
	}
	g, err := w.Register(t.Context(), id, policy)
	require.NoError(t, err)
	return g
}

// Draft returns the draft of an effect.
func Draft(kind, source, payload string) agents.EffectDraft {
	v, err := signal.ParseValue([]byte(payload))
	if err != nil {
		panic(err)
	}
	return agents.EffectDraft{Kind: kind, SourceID: source, Payload: v}
}

// Interact is a request to use something.
func Interact(target string) agents.Intent {
	in := Draft("Interact", "", `{"target_id":"`+target+`","type":"use"}`)
	return agents.Intent{Kind: in.Kind, Payload: in.Payload, ReqID: "use-" + target}
}

// ViewReader applies the deltas of one agent, in order.
type ViewReader struct {
	Agent *agentslive.Agent
	View  signal.Value
}

// Read applies the observations up to now to the view.
func (r *ViewReader) Read(ctx context.Context, t testing.TB, now time.Duration) {
	for at, ok := r.Agent.NextAt(); ok && at <= now; at, ok = r.Agent.NextAt() {
		o, err := r.Agent.NextObservation(ctx)
		require.NoError(t, err)
		if r.View, err = jsondoc.ApplyPatch(r.View, o.Patches); err != nil {
			t.Fatalf("%s: %v", o.AgentID, err)
		}
		entities, _ := r.View.Get("visible_entities")
		relations, _ := r.View.Get("visible_relationships")
		v := view.View{AgentID: o.AgentID, VisibleEntities: entities, VisibleRelationships: relations}
		if got := v.Digest(); got != o.ContextDigest() {
			t.Fatalf("%s: the view has the digest %s, the delta says %s", o.AgentID, got, o.ContextDigest())
		}
	}
}

// Once reports a request that the log answers twice.
func Once(ctx context.Context, ses *sajou.Session) error {
	seen := map[[2]string]eventlog.Seq{}
	for e, err := range ses.Entries(ctx, 1) {
		if err != nil {
			return err
		}
		r, err := session.WorldRecordOf(&e)
		if err != nil {
			continue
		}
		agent, reqID, _, ok := agents.FinalOutcomeOf(r)
		if !ok {
			continue
		}
		if first, ok := seen[[2]string{agent, reqID}]; ok {
			return fmt.Errorf("request %s of %s is answered by entries %d and %d", reqID, agent, first, e.Seq)
		}
		seen[[2]string{agent, reqID}] = e.Seq
	}
	return nil
}
