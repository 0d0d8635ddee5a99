package generate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// An agent that only conflicts interrupt goes on, and its intent is not stale.
func TestOnlyConflictsInterrupt(t *testing.T) {
	withAgent(t, session.TimeWall, `{"interrupt":"only_conflict"}`, func(c *cast) {
		c.Pass(time.Second)
		r := enginetest.Request("answer")
		r.Reads = []string{"/entities/chest"}
		r.Intent = speak
		r.Token = func(attempt int, token string) {
			switch token {
			case "I ":
				c.happens("door")
			case "see" + fmt.Sprint(1):
				c.happens("chest")
			}
		}
		gen := &enginetest.Scripted{Act: func(s *enginetest.Scripted, _ context.Context, say func(string) bool) error {
			_ = say("I ") && say(fmt.Sprint("see", s.Asked)) && say("!")
			return nil
		}}
		got, err := generate.Run(c.Context(), c.agent, gen, r)
		if err != nil || got.Text != "I see2!" || !got.Outcome.OK() {
			t.Errorf("generated %+v, %v", got, err)
		}
		if diff := cmp.Diff([]string{"stale_due_to_conflict_seq_gap_2_threshold_0"}, reasons(got.Interruptions)); diff != "" {
			t.Errorf("interrupted (-want +got):\n%s", diff)
		}
		c.wantRecorded(got.Attempts)
	})
}

// speak makes an intent of an answer.
func speak(text string) (agents.Intent, bool) {
	payload, err := signal.ParseValue(fmt.Appendf(nil, `{"text":%q}`, text))
	if err != nil {
		panic(err)
	}
	return agents.Intent{Kind: world.KindSpeak, Payload: payload, Unprioritized: true}, true
}

// An answer becomes an intent that goes by what the answer went by. The request
// has one effect however often it is asked, and a refusal is the caller's to know.
func TestAnswerBecomesAnIntent(t *testing.T) {
	withAgent(t, session.TimeWall, `{"token_budget":0}`, func(c *cast) {
		c.happens("door")
		r := enginetest.Request("answer")
		r.Intent = func(text string) (agents.Intent, bool) {
			in, ok := speak(text)
			in.AgentID, in.ReqID, in.ContextSeq = "B", "other", 99 // which is not the caller's to say
			return in, ok
		}
		got, err := generate.Run(c.Context(), c.agent, enginetest.Saying("hello"), r)
		if err != nil || got.Outcome.Status != agents.Accepted || got.Outcome.Effect.ReqID != "answer" || got.Outcome.Effect.SourceID != "A" {
			t.Fatalf("generated %+v, %v", got, err)
		}
		again, err := generate.Run(c.Context(), c.agent, enginetest.Saying("something else"), r)
		if err != nil || again.Outcome.Status != agents.Duplicate || again.Outcome.GlobalSeq != got.Outcome.GlobalSeq || len(again.Attempts) != 0 {
			t.Errorf("asked again: %+v, %v", again, err)
		}
		// It speaks too soon, and waits for as long as that is refused.
		r.ReqID = "soon"
		done := c.generate(c.Context(), enginetest.Saying("and"), r)
		c.goesOn(done)
		c.Pass(500*time.Millisecond - 1)
		c.goesOn(done)
		c.Pass(1)
		soon := c.now(done)
		if soon.err != nil || !soon.Outcome.OK() {
			t.Errorf("too soon: %+v", soon)
		}
		c.Pass(time.Second)
		r.ReqID, r.Intent = "blank", speak
		blank, err := generate.Run(c.Context(), c.agent, enginetest.Saying(" "), r)
		if !errors.Is(err, agents.ErrInvalid) || blank.Finish != generate.FinishStop || blank.Outcome.Rejection == nil {
			t.Errorf("nothing said: %+v, %v", blank, err)
		}
		r.ReqID, r.Intent = "silent", func(string) (agents.Intent, bool) { return agents.Intent{}, false }
		silent, err := generate.Run(c.Context(), c.agent, enginetest.Saying("hm"), r)
		if err != nil || silent.Outcome.Rejection != nil || silent.Outcome.OK() {
			t.Errorf("silent: %+v, %v", silent, err)
		}
		c.wantRecorded(slices.Concat(got.Attempts, soon.Attempts, blank.Attempts, silent.Attempts), agentslive.ReasonCompleted)
	})
}

// An intent that is out of date although nothing interrupted its generation, since
// the last interruption was so short a while ago, is generated anew.
func TestStaleIntentIsGeneratedAnew(t *testing.T) {
	withAgent(t, session.TimeWall, `{"debounce_ms":1000}`, func(c *cast) {
		r := enginetest.Request("answer")
		r.Intent = speak
		r.Token = func(attempt int, _ string) {
			if attempt < 3 {
				c.happens(fmt.Sprint("door", attempt))
			}
		}
		got, err := generate.Run(c.Context(), c.agent, enginetest.Saying("I see"), r)
		if err != nil || !got.Outcome.OK() {
			t.Fatalf("generated %+v, %v", got, err)
		}
		// The first is interrupted, the second's intent refused.
		want := []generate.Finish{generate.FinishInterrupted, generate.FinishStop, generate.FinishStop}
		if diff := cmp.Diff(want, finishes(got.Attempts)); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		stale := "stale_due_to_seq_gap_1_threshold_0"
		if diff := cmp.Diff([]string{stale, stale}, reasons(got.Interruptions)); diff != "" {
			t.Errorf("interrupted (-want +got):\n%s", diff)
		}
		c.wantRecorded(got.Attempts, stale)
	})
}

// In a session of ticks the intent waits for its tick, and is judged there.
func TestGenerateForTheNextTick(t *testing.T) {
	withAgent(t, session.TimeSim, `{}`, func(c *cast) {
		require.NoError(t, c.world.Configure(c.Context(), enginetest.Value(c.T, `{"authority":"sim"}`)))
		r := enginetest.Request("answer")
		r.Intent = speak
		done := c.generate(c.Context(), enginetest.Saying("hello"), r)
		c.goesOn(done)
		if n, err := c.world.Tick(c.Context(), agentslive.Tick{SimTime: 1, SourceID: "game"}); n != 1 || err != nil {
			t.Fatalf("decided %d, %v", n, err)
		}
		if got := c.now(done); got.err != nil || got.Outcome.Status != agents.Accepted {
			t.Errorf("generated %+v", got)
		}
		r.ReqID = "dropped"
		done = c.generate(c.Context(), enginetest.Saying("hello"), r)
		if found, err := c.agent.Cancel(c.Context(), "dropped"); !found || err != nil {
			t.Errorf("cancelled %v, %v", found, err)
		}
		if got := c.now(done); !errors.Is(got.err, agents.ErrCancelled) {
			t.Errorf("generated %+v", got)
		}
	})
}
