package agents_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentview "github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// A generation without an answer is recorded with its names alone.
func TestGeneratedNothing(t *testing.T) {
	r := meadow(t, `{}`)
	records, err := r.core.Generated("a", "r", nil)
	require.NoError(t, err)
	require.Equal(t, `{"agent_id":"a","req_id":"r"}`, canonical(records[0].Value))
}

// Another policy leaves an agent the settings of its registration, and brings none.
func TestWithPolicyKeepsSettings(t *testing.T) {
	r := meadow(t, `{}`)
	records, err := r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"policy":"self","interrupt":"only_conflict","latency_model":20}`)})
	require.NoError(t, err)
	got := agents.WithPolicy(records[0].Value, parse(t, `{"policy":"everything","latency_model":90,"debounce_ms":5}`))
	policy, _ := got.Get("policy")
	require.Equal(t, canonical(parse(t, `{"policy":"everything","interrupt":"only_conflict","latency_model":20}`)), canonical(policy))
}

// A recorded refusal names a registered agent and a request id that is within its bounds.
func TestRefusalsOfNobody(t *testing.T) {
	for over, want := range []bool{true, false} {
		for _, v := range []map[string]any{
			{"agent_id": []string{"a", "nobody"}[over], "req_id": "r", "code": "FORBIDDEN"},
			{"agent_id": "a", "req_id": strings.Repeat("r", agents.MaxReqID+over), "code": "FORBIDDEN"},
			{"agent_id": "a", "req_id": "rr"[over:], "code": []string{"FORBIDDEN", "nonsense"}[over]},
		} {
			r := meadow(t, `{}`)
			out := r.core.Apply(time.Second, signal.Record{Word: agents.WordOutcome, Value: value(t, v)})
			require.Equal(t, want, out.Err == nil, "%v: %v", v, out.Err)
		}
	}
}

// An index has decimal digits and no leading zero.
func TestElementIndex(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "9": 9, "10": 10, "19": 19, "90": 90, "123456789": 123456789, "999999999": 999999999} {
		i, ok := jsondoc.ElementIndex(text)
		require.True(t, ok, text)
		require.Equal(t, want, i)
	}
	for _, text := range []string{"", "00", "01", "-", "-1", "+1", "1:", "1/", "x", "1000000000", "9 "} {
		_, ok := jsondoc.ElementIndex(text)
		require.False(t, ok, text)
	}
}

// Whatever changes in the world, a view by a policy that depends on teams, on kinds, or on
// something unknown is that of a new observer.
func TestMixedPoliciesFollowTheWorld(t *testing.T) {
	var policies []string
	for _, of := range []string{"all", "others", "allies", "rivals"} {
		policies = append(policies, fmt.Sprintf(`{"policy":"fields","fields":{"hp":false},"of":%q}`, of))
	}
	policies = append(policies, `{"policy":"custom","name":"even","version":1}`, `{"policy":"distance","limit":6}`, `{"policy":"team"}`, `{"policy":"relationships","types":["friend"],"depth":2}`)
	effects := []world.Effect{}
	add := func(kind, payload string) {
		effects = append(effects, world.Effect{UUID: fmt.Sprint("u", len(effects)), Kind: kind, SourceID: "outside", Payload: parse(t, payload), GlobalSeq: uint64(len(effects) + 1), SchemaVersion: world.SchemaVersion})
	}
	for _, id := range []string{"a", "b", "e"} {
		add("EntityCreated", `{"entity_id":"`+id+`","entity_data":{"hp":1,"type":"agent","team":"red"},"position":[`+fmt.Sprint(len(effects)*4)+`,0]}`)
	}
	for _, id := range []string{"b", "a", "e", "a"} {
		add("EntityUpdated", `{"entity_id":"`+id+`","fields":{"team":"blue"}}`)
		add("EntityUpdated", `{"entity_id":"`+id+`","fields":{"hp":2}}`)
		add("EntityUpdated", `{"entity_id":"`+id+`","remove":["team"]}`)
		add("RelationshipAdded", `{"from":"a","to":"`+id+`","type":"friend"}`)
	}
	add("EntityRemoved", `{"entity_id":"b"}`)
	add("EntityCreated", `{"entity_id":"f","entity_data":{"team":"blue"}}`)
	for i, one := range policies {
		for _, other := range policies[i:] {
			for _, join := range []string{"all", "any"} {
				lens := compile(t, fmt.Sprintf(`{"policy":%q,"of":[%s,%s]}`, join, one, other))
				w, err := world.NewWorld(handlers...)
				require.NoError(t, err)
				audience := agentview.NewAudience()
				o := agentview.NewObserver("a", lens, 0)
				audience.Add(w.ReadOnly, "a", lens)
				o.Begin(w.ReadOnly, 0)
				for _, e := range effects {
					c, err := w.Apply(e)
					require.NoError(t, err)
					if len(audience.Follow(w.ReadOnly, e, c)) > 0 {
						o.Update(w.ReadOnly, e, c)
					}
					fresh := agentview.NewObserver("a", lens, 0)
					fresh.Begin(w.ReadOnly, e.GlobalSeq)
					require.Equal(t, fresh.View().VisibleEntities.String(), o.View().VisibleEntities.String(), "%s of %s and %s after %v", join, one, other, e)
				}
			}
		}
	}
}
