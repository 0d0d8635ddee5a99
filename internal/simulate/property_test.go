package simulate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/internal/simulate"
)

func intent(agent, reqID string) agents.Intent {
	return agents.Intent{AgentID: agent, ReqID: reqID, Kind: agents.KindCustom, Unprioritized: true}
}

// genScenario draws a scenario of a few agents that talk, generate, react and
// move about.
func genScenario(t *rapid.T) string {
	ids := []string{"A", "B", "C"}
	id := rapid.SampledFrom(ids)
	ms := rapid.SampledFrom([]int{0, 10, 50, 100, 150, 333, 1000})
	word := rapid.SampledFrom([]string{"yes", "no", "{{/visible_entities/A/last_message}}", "why {{/visible_entities/B/position}}"})
	submit := func() string {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return fmt.Sprintf(`"submit":{"kind":"Move","payload":{"to":[%d,%d]}}`, rapid.IntRange(0, 9).Draw(t, "x"), rapid.IntRange(0, 9).Draw(t, "y"))
		case 1:
			return fmt.Sprintf(`"submit":{"kind":"Speak","payload":{"text":%q,"channel":"private","target_id":%q}}`, word.Draw(t, "word"), id.Draw(t, "to"))
		case 2:
			return fmt.Sprintf(`"submit":{"kind":"Speak","payload":{"text":%q},"req_id":"same"}`, word.Draw(t, "word"))
		default:
			return fmt.Sprintf(`"submit":{"kind":"Speak","payload":{"text":%q}}`, word.Draw(t, "word"))
		}
	}
	action := func() string {
		switch rapid.IntRange(0, 5).Draw(t, "action") {
		case 0, 1:
			return fmt.Sprintf(`"generate":{"words":"one two three %s","ms_per_token":%d,"deadline_ms":%d,"interrupted":{"regenerate":%d,"after":%d}}`,
				word.Draw(t, "word"), ms.Draw(t, "per"), 1+ms.Draw(t, "deadline"), rapid.IntRange(0, 3).Draw(t, "again"), ms.Draw(t, "after"))
		case 2:
			return rapid.SampledFrom([]string{`"cancel":"r1"`, `"cancel":"same"`, `"leave":true`}).Draw(t, "end")
		default:
			return submit()
		}
	}
	var list []string
	for _, name := range ids {
		policy := rapid.SampledFrom([]string{
			`{"policy":"everything"}`, `{"policy":"conversation"}`, `{"policy":"conversation","interrupt":"only_conflict"}`,
			`{"policy":"fog","of":{"policy":"distance","limit":5}}`,
			`{"policy":"everything","latency_model":{"model":"jitter","ms":20,"spread_ms":100,"seed":7}}`,
			`{"policy":"everything","max_queue_depth":1,"backpressure_policy":"shed_oldest"}`,
			`{"policy":"everything","max_queue_depth":1,"backpressure_policy":"drop_newest"}`,
			`{"policy":"everything","max_queue_depth":2,"debounce_ms":300}`,
		}).Draw(t, "policy")
		var script, on []string
		for range rapid.IntRange(0, 4).Draw(t, "script") {
			script = append(script, fmt.Sprintf(`{"at":%d,%s}`, ms.Draw(t, "at"), action()))
		}
		for range rapid.IntRange(0, 2).Draw(t, "on") {
			on = append(on, fmt.Sprintf(`{"path":"/visible_entities/%s/%s","changed":true,"times":%d,"after":%d,"do":{%s}}`,
				id.Draw(t, "of"), rapid.SampledFrom([]string{"last_message", "position", "private_message"}).Draw(t, "field"),
				rapid.IntRange(1, 3).Draw(t, "times"), ms.Draw(t, "after"), action()))
		}
		every := ""
		if rapid.Bool().Draw(t, "slow") {
			every = `"reads_every":70,`
		}
		list = append(list, fmt.Sprintf(`{"id":%q,%s"policy":%s,"script":[%s],"on":[%s]}`, name, every, policy, strings.Join(script, ","), strings.Join(on, ",")))
	}
	ticks := ""
	config := `"cooldowns":{"Speak":40,"Move":0}`
	if rapid.Bool().Draw(t, "ticks") {
		ticks, config = `"ticks":{"every":60},"until":1500,`, config+`,"authority":"sim"`
	}
	return fmt.Sprintf(`{"sajou":"simulation","version":1,"name":"drawn","config":{%s},%s"limits":{"reactions":60},
		"world":{"entities":{"A":{"type":"agent"},"B":{"type":"agent"},"C":{"type":"agent"}},
		"relationships":{"A":["B","C"],"B":["A"],"C":["A","B"]},"spatial_index":{"A":[0,0,0],"B":[3,3,0],"C":[9,9,0]}},
		"agents":[%s]}`, config, ticks, strings.Join(list, ","))
}

// Whatever happens in it, a scenario is twice the same session with the same
// account; and what an agent is told always leads to the view that the engine says it
// does, which the play itself looks at.
func TestAnyTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := genScenario(rt)
		s, diagnostics := simulate.Parse("drawn", []byte(text))
		if s == nil {
			rt.Fatalf("%v\n%s", diagnostics, text)
		}
		var accounts [2]bytes.Buffer
		var heads [2]string
		for i := range accounts {
			enc := json.NewEncoder(&accounts[i])
			take, err := s.Play(t.Context(), "", func(e *simulate.Event) error { return enc.Encode(e) })
			switch {
			case errors.Is(err, simulate.ErrLimit):
				heads[i] = err.Error()
				continue
			case err != nil:
				rt.Fatalf("%v\n%s\n%s", err, text, accounts[i].String())
			}
			heads[i] = take.Head.String()
			require.NoError(rt, take.Close())
		}
		if heads[0] != heads[1] || accounts[0].String() != accounts[1].String() {
			rt.Fatalf("%s and %s:\n%s\n%s\n%s", heads[0], heads[1], text, accounts[0].String(), accounts[1].String())
		}
	})
}

// No text makes the parser panic, and an accepted scenario can be played.
func FuzzParse(f *testing.F) {
	for _, text := range examples(f) {
		f.Add([]byte(text))
	}
	f.Add([]byte(scenario(`"agents":[` + echo("A", "B", "{{/visible_entities/B}}", 0) + `]`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 8<<10 {
			return // so that a play stays short
		}
		s, diagnostics := simulate.Parse("fuzz", text)
		if (s == nil) != (len(diagnostics) > 0) {
			t.Fatalf("%v and %v", s, diagnostics)
		}
		if s == nil {
			return
		}
		simulate.Hurry(s)
		take, err := s.Play(t.Context(), "", func(e *simulate.Event) error {
			if e.String() == "" || e.Who() == "" {
				t.Errorf("%v tells nothing", e.What)
			}
			_, err := json.Marshal(e)
			return err
		})
		if err != nil {
			if !errors.Is(err, simulate.ErrLimit) {
				t.Fatal(err)
			}
			return
		}
		if err := take.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
