package history_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
)

// TestAttackLeak is the law of leak: whatever happens to a world with secrets in all
// of its corners, what leak proves never to have been sent is in nothing that the
// agent received, by any route.
func TestAttackLeak(t *testing.T) {
	for range attack.Rounds(1, 60) {
		rapid.Check(t, func(r *rapid.T) { attackLeak(t, r) })
	}
}

func byArrival(a, b query.Leak) int { return cmp.Compare(a.Delivery.At, b.Delivery.At) }

func attackLeak(t *testing.T, r *rapid.T) {
	ctx := t.Context()
	secrets := 0
	secret := func() string {
		secrets++
		return fmt.Sprintf("zq%03dqz", secrets)
	}
	// What the program itself says about requests, built from all of the world.
	guard := agents.Validator{Name: "guard", Check: func(w world.ReadOnly, in agents.Intent) []agents.Problem {
		if text, _ := in.Payload.Get("refuse"); text == nil {
			return nil
		}
		vault, _ := w.Entity("vault")
		return []agents.Problem{
			{Path: "/payload/" + strings.Repeat("x", rapid.IntRange(0, 300).Draw(r, "pad")), Reason: enginetest.Shown(vault)},
			{Path: "/payload", Reason: strings.Repeat("é", rapid.IntRange(0, 6000).Draw(r, "long")) + secret()},
		}
	}}
	recorded := rapid.Bool().Draw(r, "prompts are recorded")
	v := enginetest.RecordVault(t, sajou.Config{FS: vfs.NewMem(), RecordPrompts: recorded, World: agents.Options{Validators: []agents.Validator{guard}}})
	policies := []string{
		`{"policy":"self"}`, `{"field_visibility":{"code":false}}`, `{"policy":"fog","of":{"policy":"distance","limit":5},"latency_model":200}`,
		`{"policy":"everything","latency_model":3600000,"staleness_threshold":100000}`, `{"field_visibility":{"last_message":false}}`,
		`{"policy":"distance","limit":8,"interrupt":"only_conflict"}`,
	}
	v.Register("scout", rapid.SampledFrom(policies).Draw(r, "policy"))
	scout, err := v.World.Agent(ctx, "scout")
	v.Must(err)
	var got enginetest.Received
	listen := func() {
		for {
			o, ok, err := scout.Poll(ctx)
			v.Must(err)
			if !ok {
				return
			}
			got.Add(enginetest.Shown(o.Value()))
		}
	}
	now := time.Duration(0)
	reqs := 0
	intent := func(kind, payload string) agents.Intent {
		if reqs == 0 || rapid.IntRange(0, 5).Draw(r, "again") > 0 {
			reqs++
		}
		return agents.Intent{Kind: kind, AgentID: "scout", ReqID: fmt.Sprint("r", reqs), Payload: enginetest.Value(t, payload), ContextSeq: uint64(rapid.SampledFrom([]int{0, 1, 999}).Draw(r, "context"))}
	}
	for range rapid.IntRange(5, 25).Draw(r, "steps") {
		switch rapid.IntRange(0, 12).Draw(r, "step") {
		case 0:
			v.Happens("EntityUpdated", "gm", fmt.Sprintf(`{"entity_id":"vault","fields":{"code":%q}}`, secret()))
		case 1:
			// Below the escapes of JSON in a text, as a number, as a name.
			inner, _ := json.Marshal(map[string]string{"deep": "\"" + secret() + "\" é"})
			text, _ := json.Marshal(string(inner))
			v.Happens("EntityUpdated", "gm", fmt.Sprintf(`{"entity_id":"clerk","fields":{"note":%s,%q:1}}`, text, secret()))
		case 2:
			v.Happens("EntityCreated", "gm", fmt.Sprintf(`{"entity_id":%q,"entity_data":{"x":1},"position":[%d,0]}`, secret(), rapid.IntRange(0, 110).Draw(r, "x")))
		case 3:
			channel := rapid.SampledFrom([]string{`"channel":"public"`, `"channel":"private","target_id":"scout"`, `"channel":"private","target_id":"clerk"`, `"channel":"team"`}).Draw(r, "channel")
			v.Happens("Speak", "clerk", fmt.Sprintf(`{"text":%q,"aside":%q,%s}`, secret(), secret(), channel))
		case 4:
			v.Happens("RelationshipAdded", "gm", fmt.Sprintf(`{"from":"scout","to":"vault","type":%q}`, secret()))
		case 5:
			v.Happens("Move", "scout", fmt.Sprintf(`{"to":[%d,0]}`, rapid.IntRange(0, 110).Draw(r, "x")))
		case 6:
			got.Outcome(v.World.Submit(ctx, intent("Speak", fmt.Sprintf(`{"text":"hm","memo":%q}`, secret()))))
		case 7:
			got.Outcome(v.World.Submit(ctx, intent("Speak", `{"text":"hm","refuse":true}`)))
		case 8:
			// A quantum, in which things become impossible.
			in := intent("Interact", `{"target_id":"vault","type":"use"}`)
			outcomes, err := v.World.Quantum(ctx,
				agents.Submission{Draft: &agents.EffectDraft{Kind: "EntityRemoved", SourceID: "a", Payload: enginetest.Value(t, `{"entity_id":"vault"}`)}, Priority: 30},
				agents.Submission{Draft: &agents.EffectDraft{Kind: "EntityCreated", SourceID: "a", Payload: enginetest.Value(t, fmt.Sprintf(`{"entity_id":"vault","entity_data":{"code":%q}}`, secret()))}, Priority: 1},
				agents.Submission{Intent: &in, Priority: 10})
			v.Must(err)
			got.Outcome(outcomes[2], outcomes[2].Err())
		case 9:
			g, err := scout.Begin(ctx, agents.TokenRequest{ReqID: fmt.Sprint("g", secret()), Current: true})
			if err != nil {
				got.Outcome(agents.Outcome{}, err)
				break
			}
			got.Add(enginetest.Shown(g.Token().Value()))
			if rapid.Bool().Draw(r, "ended") {
				v.Must(g.End(ctx, "given up: "+secret()))
				v.Must(v.World.Settle(ctx))
				if cause := context.Cause(g.Context()); cause != nil {
					got.Add(cause.Error())
				}
			}
		case 10:
			v.Given("scout", fmt.Sprint("p", secret()), func(view view.View) string {
				extra := ""
				if rapid.Bool().Draw(r, "the program adds") {
					extra = secret()
				}
				text := enginetest.Shown(view.Value()) + extra
				got.Add(text)
				return text
			})
		case 11:
			v.Register("scout", rapid.SampledFrom(policies).Draw(r, "policy"))
		default:
			now += time.Duration(rapid.IntRange(1, 400).Draw(r, "ms")) * ms
			v.Wait(now)
		}
		listen()
	}
	v.Wait(now + 2*time.Hour)
	listen()
	v.Must(v.World.Settle(ctx))
	ses, err := v.Eng.Session(ctx, "vault")
	v.Must(err)
	v.HearAll(ses, &got)

	for i := range secrets {
		text := fmt.Sprintf("zq%03dqz", i+1)
		var arrived []query.Leak
		proof, err := v.Replay().Leak(ctx, "scout", query.LeakQuery{Text: text}, func(l query.Leak) error {
			arrived = append(arrived, l)
			return nil
		})
		v.Must(err)
		// The scout never leaves, so all that was sent arrives.
		first, found, _, err := v.Replay().FirstSent(ctx, "scout", query.LeakQuery{Text: text}, nil)
		v.Must(err)
		if found != (len(arrived) > 0) || found && first.Delivery.At != slices.MinFunc(arrived, byArrival).Delivery.At {
			r.Fatalf("%s was first sent: %v %+v, of %+v", text, found, first, arrived)
		}
		switch has := strings.Contains(got.String(), text); {
		case proof.Err() == nil && has:
			r.Fatalf("proven never to have been sent, and received: %s in\n%s", text, got.String())
		case proof.Err() != nil && !errors.Is(proof.Err(), history.ErrLeak) && recorded:
			r.Fatalf("all prompts are recorded, and not covered: %v", proof.Unsearched)
		}
	}
	v.Must(v.Eng.Close())
}
