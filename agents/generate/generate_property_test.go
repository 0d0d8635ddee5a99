package generate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// Whatever a generator does, and whatever happens meanwhile: the call ends, what it
// returns is what the log has, no token lingers, and the request has one effect at
// most.
func TestGenerateProperties(t *testing.T) {
	steps := []string{"say", "say", "say", "news", "cancel", "late", "own", "fail", "panic", "stall"}
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(steps), 0, 6), 1, 8).Draw(rt, "script")
		budget := rapid.Int64Range(0, 4).Draw(rt, "budget")
		intent := rapid.Bool().Draw(rt, "intent")
		debounce := rapid.SampledFrom([]int{0, 100, 60_000}).Draw(rt, "debounce")
		withAgent(t, session.TimeWall, fmt.Sprintf(`{"debounce_ms":%d,"deadline_ms":4000}`, debounce), func(c *cast) {
			news := 0
			gen := &enginetest.Scripted{Act: func(s *enginetest.Scripted, ctx context.Context, say func(string) bool) error {
				for _, step := range script[(s.Asked-1)%len(script)] {
					switch step {
					case "fail":
						return agents.ErrGenerationTimeout
					case "panic":
						panic("boom")
					case "stall":
						<-ctx.Done()
						return ctx.Err()
					}
					if !say(step) {
						return nil
					}
				}
				return nil
			}}
			r := enginetest.Request("answer")
			r.Budget = budget
			r.Token = func(_ int, token string) {
				switch token {
				case "news":
					news++
					_, err := c.world.Broadcast(c.Context(), enginetest.Draft("EntityCreated", "world", fmt.Sprintf(`{"entity_id":"e%d","entity_data":{}}`, news)))
					if err != nil {
						c.Error(err)
					}
				case "cancel":
					if found, err := c.agent.Cancel(c.Context(), "answer"); !found || err != nil {
						c.Errorf("cancelled %v, %v", found, err)
					}
				case "late":
					c.Ahead(2 * time.Second)
				case "own":
					in, _ := speak("by hand")
					in.ReqID = "answer"
					_, _ = c.agent.Submit(c.Context(), in) // mostly stale
				}
			}
			if intent {
				r.Intent = speak
			}
			done := c.generate(c.Context(), gen, r)
			var got result
			for ended := false; !ended; {
				select {
				case got = <-done:
					ended = true
				default:
					c.Pass(time.Second)
				}
			}
			attempts, _ := c.records()
			if diff := cmp.Diff(got.Attempts, attempts, ofAgents); diff != "" {
				rt.Errorf("attempts returned (-) and recorded (+):\n%s", diff)
			}
			if len(attempts) > 1+2*agents.MaxRetries {
				rt.Errorf("%d attempts", len(attempts))
			}
			if n := len(attempts); n > 0 && (attempts[n-1].Text != got.Text || attempts[n-1].Finish != got.Finish) {
				rt.Errorf("the last attempt is %+v of %+v", attempts[n-1], got)
			}
			if got.err == nil && !got.Finish.Complete() && !got.Outcome.OK() {
				rt.Errorf("no error, and nothing that stands: %+v", got)
			}
			for _, a := range attempts {
				if budget > 0 && a.Tokens > budget {
					rt.Errorf("%d tokens with a budget of %d", a.Tokens, budget)
				}
			}
			effects := 0
			log, err := c.Eng.Log().Session("a")
			if err != nil {
				c.Fatal(err)
			}
			for e, err := range log.Entries(c.Context(), 1) {
				if err != nil {
					c.Fatal(err)
				}
				r, err := session.WorldRecordOf(&e)
				if id, _ := r.Value.Get("req_id"); err == nil && r.Word == agents.WordEffect && id != nil {
					effects++
				}
			}
			if effects > 1 || (effects == 1) != got.Outcome.OK() {
				rt.Errorf("%d effects of %+v", effects, got)
			}
		})
	})
}
