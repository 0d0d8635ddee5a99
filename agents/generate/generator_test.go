package generate_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// A generator that fails is asked again after 100, 200 and 400 ms, with the same
// prompt and token, and its failures are recorded.
func TestRetries(t *testing.T) {
	no := errors.New("no")
	withAgent(t, session.TimeWall, `{"deadline_ms":0}`, func(c *cast) {
		gen := failing(no, agents.ErrGenerationTimeout, fmt.Errorf("again: %w", agents.ErrGenerationFailed))
		done := c.generate(c.Context(), gen, enginetest.Request("answer"))
		for i, delay := range []time.Duration{100, 200, 400} {
			c.Pass(delay*time.Millisecond - 1)
			if c.goesOn(done); gen.Asked != i+1 {
				t.Fatalf("asked %d times, want %d", gen.Asked, i+1)
			}
			c.Pass(1)
		}
		got := c.now(done)
		if got.err != nil || got.Text != "good" || got.Total != 700*time.Millisecond || got.FirstToken != 0 {
			t.Errorf("generated %+v", got)
		}
		want := []string{"LLM_SERVICE_ERROR: no", "LLM_TIMEOUT: LLM_TIMEOUT", "LLM_SERVICE_ERROR: again: LLM_SERVICE_ERROR", ""}
		for i, a := range got.Attempts {
			if a.Number != i+1 || a.Reason != want[i] || (a.Text == "half") != (i < 3) {
				t.Errorf("attempt %+v, want reason %q", a, want[i])
			}
		}
		c.wantRecorded(got.Attempts, agentslive.ReasonCompleted)

		// An effect that arrives during the delay starts the next attempt at once.
		done = c.generate(c.Context(), failing(no), enginetest.Request("news"))
		c.happens("door")
		if got := c.now(done); got.err != nil || got.Text != "good" || len(got.Interruptions) != 1 {
			t.Errorf("generated %+v", got)
		}
	})
	refusal := func(r agents.Recovery, after time.Duration) error {
		return fmt.Errorf("wrapped: %w", &agents.Rejection{Code: agents.ErrGenerationFailed, Recovery: r, RetryAfter: after})
	}
	for name, test := range map[string]struct {
		errs []error
		wait time.Duration // before the second attempt; 0: there is none
		code agents.Code
	}{
		"thrice":           {[]error{no, no, no, no}, 700 * time.Millisecond, agents.ErrGenerationFailed},
		"abort":            {[]error{refusal(agents.Abort, 0)}, 0, agents.ErrGenerationFailed},
		"forbidden":        {[]error{agents.ErrForbidden}, 0, agents.ErrForbidden},
		"retry after":      {[]error{refusal(agents.RetryWithDelay, 3*time.Second)}, 3 * time.Second, ""},
		"retry much later": {[]error{refusal(agents.RetryWithDelay, 6*time.Second)}, 0, agents.ErrGenerationFailed},
		"unknown code":     {[]error{agents.Code("ODD")}, 100 * time.Millisecond, ""},
	} {
		withAgent(t, session.TimeWall, `{"deadline_ms":0}`, func(c *cast) {
			done := c.generate(c.Context(), failing(test.errs...), enginetest.Request("answer"))
			if test.wait > 0 {
				c.goesOn(done)
			}
			for range test.wait / (100 * time.Millisecond) {
				c.Pass(100 * time.Millisecond)
			}
			got := c.now(done)
			if test.code == "" {
				if got.err != nil || got.Text != "good" {
					t.Errorf("%s: %+v", name, got)
				}
				return
			}
			var fault *generate.GeneratorError
			if !errors.As(got.err, &fault) || fault.Code != test.code || !errors.Is(got.err, test.code) || !errors.Is(got.err, test.errs[0]) ||
				fault.Generator != "scripted" || fault.ReqID != "answer" || len(got.Attempts) != len(test.errs) {
				t.Errorf("%s: %+v", name, got)
			}
			c.wantRecorded(got.Attempts, agentslive.ReasonFailed)
		})
	}
}

// After five failures for one agent the generator is not asked, until half a
// minute has passed; then one call shows whether it works again. Another agent's calls, and
// another generator, are not concerned, and interruptions are no failures.
func TestBreaker(t *testing.T) {
	withAgent(t, session.TimeWall, `{"deadline_ms":0}`, func(c *cast) {
		for i := range 8 {
			ctx, cancel := context.WithCancel(c.Context())
			done := c.generate(ctx, enginetest.Stalling(true, nil), enginetest.Request(fmt.Sprint("given up", i)))
			cancel()
			if got := c.now(done); !errors.Is(got.err, context.Canceled) {
				t.Fatalf("given up: %+v", got)
			}
		}
		down := errors.New("down")
		bad := &enginetest.Scripted{Act: func(*enginetest.Scripted, context.Context, func(string) bool) error { return down }}
		ask := func(reqID string) result {
			done := c.generate(c.Context(), bad, enginetest.Request(reqID))
			for range 7 {
				c.Pass(100 * time.Millisecond)
			}
			return c.now(done)
		}
		if got := ask("first"); !errors.Is(got.err, down) || bad.Asked != 4 {
			t.Fatalf("asked %d times: %+v", bad.Asked, got)
		}
		got := ask("second")
		var fault *generate.GeneratorError
		if !errors.As(got.err, &fault) || fault.Code != agents.ErrBreakerOpen || fault.Recovery != agents.RetryWithDelay || bad.Asked != 5 ||
			fault.RetryAfter != 30*time.Second-100*time.Millisecond {
			t.Fatalf("asked %d times: %+v", bad.Asked, got)
		}
		head := c.Ses.Head()
		if got := ask("third"); !errors.Is(got.err, agents.ErrBreakerOpen) || bad.Asked != 5 || c.Ses.Head() != head {
			t.Errorf("asked %d times: %+v", bad.Asked, got)
		}
		other := enginetest.Request("another generator")
		other.Generator = "other"
		if _, err := generate.Run(c.Context(), c.agent, enginetest.Saying("x"), other); err != nil {
			t.Error(err)
		}
		a := c.agent
		c.agent = enginetest.Register(c.T, c.world, "B", nil)
		if _, err := generate.Run(c.Context(), c.agent, enginetest.Saying("x"), enginetest.Request("another agent")); err != nil {
			t.Error(err)
		}
		c.agent = a

		c.Pass(30 * time.Second)
		if got := ask("half open"); !errors.Is(got.err, agents.ErrBreakerOpen) || bad.Asked != 6 || len(got.Attempts) != 1 {
			t.Errorf("asked %d times: %+v", bad.Asked, got)
		}
		c.Pass(31 * time.Second)
		// Calls that are given up leave their place to others.
		for i := range 5 {
			ctx, cancel := context.WithCancel(c.Context())
			done := c.generate(ctx, enginetest.Stalling(true, nil), enginetest.Request(fmt.Sprint("probe", i)))
			cancel()
			if got := c.now(done); !errors.Is(got.err, context.Canceled) {
				t.Fatalf("given up: %+v", got)
			}
		}
		for i := range 6 {
			if _, err := generate.Run(c.Context(), c.agent, enginetest.Saying("well"), enginetest.Request(fmt.Sprint("well", i))); err != nil {
				t.Errorf("after it works again: %v", err)
			}
		}
		c.records()
	})
	withAgent(t, session.TimeWall, `{}`, func(c *cast) {
		r := enginetest.Request("slow")
		r.Breaker.Failures = 1
		done := c.generate(c.Context(), enginetest.Stalling(true, nil), r)
		c.Pass(5 * time.Second)
		if got := c.now(done); !errors.Is(got.err, agents.ErrTimeout) {
			t.Fatalf("slow: %+v", got)
		}
		r.ReqID = "next"
		if _, err := generate.Run(c.Context(), c.agent, enginetest.Saying("x"), r); !errors.Is(err, agents.ErrBreakerOpen) {
			t.Errorf("a missed deadline is no failure: %v", err)
		}
	})
}

// faulty is an error whose text cannot be had.
type faulty struct{}

// noSequence is a generator that returns none, and has a name that panics.
type noSequence struct{}

// deaf ignores the end of its context.
type deaf struct{}

// A generator that panics or misbehaves fails its own generation; the program goes on.
func TestPanickingGenerator(t *testing.T) {
	boom := errors.New("boom")
	act := func(f func()) generate.Generator {
		return &enginetest.Scripted{Act: func(_ *enginetest.Scripted, _ context.Context, say func(string) bool) error {
			say("I ")
			f()
			return nil
		}}
	}
	for name, gen := range map[string]generate.Generator{
		"error":       act(func() { panic(boom) }),
		"nil":         act(func() { panic(nil) }),
		"runtime":     act(func() { _ = enginetest.SinkCalls[len(enginetest.SinkCalls)] }),
		"goexit":      act(runtime.Goexit),
		"none":        nil,
		"no sequence": noSequence{},
		"no text": &enginetest.Scripted{Act: func(*enginetest.Scripted, context.Context, func(string) bool) error {
			return (*faulty)(nil)
		}},
	} {
		withAgent(t, session.TimeWall, `{"deadline_ms":0}`, func(c *cast) {
			done := c.generate(c.Context(), gen, enginetest.Request("answer"))
			for range 7 {
				c.Pass(100 * time.Millisecond)
			}
			got := c.now(done)
			var fault *generate.GeneratorError
			if !errors.As(got.err, &fault) || !errors.Is(got.err, generate.ErrGeneratorPanic) || fault.Code != agents.ErrGenerationFailed ||
				fault.Panic == nil || len(fault.Stack) == 0 || len(got.Attempts) != 4 || errors.Is(got.err, boom) != (name == "error") {
				t.Errorf("%s: %+v", name, got)
			}
			c.wantRecorded(got.Attempts, agentslive.ReasonFailed)
		})
	}
	withAgent(t, session.TimeWall, `{"token_budget":1}`, func(c *cast) {
		if got, err := generate.Run(c.Context(), c.agent, deaf{}, enginetest.Request("deaf")); err != nil || got.Text != "x" || got.Attempts[0].Generator != "generate_test.deaf" {
			t.Errorf("deaf: %+v, %v", got, err)
		}
	})
	// The caller's own panics are the caller's, and leave no token behind.
	withAgent(t, session.TimeWall, `{}`, func(c *cast) {
		ask := func(r generate.Request) (v any) {
			defer func() { v = recover() }()
			_, _ = generate.Run(c.Context(), c.agent, enginetest.Saying("x"), r)
			return nil
		}
		prompt, token, intent := enginetest.Request("prompt"), enginetest.Request("token"), enginetest.Request("intent")
		prompt.Prompt = func(view.View) generate.Prompt { panic("prompt") }
		token.Token = func(int, string) { panic("token") }
		intent.Intent = func(string) (agents.Intent, bool) { panic("intent") }
		for _, r := range []generate.Request{prompt, token, intent} {
			if v := ask(r); v != r.ReqID {
				t.Errorf("%s: panicked with %v", r.ReqID, v)
			}
		}
		if attempts, ends := c.records(); len(attempts) != 1 || len(ends) != 3 {
			t.Errorf("recorded %v, ended %v", attempts, ends)
		}
	})
}

// Generators that never return are left alone, so many for one agent, and make
// room when they return after all.
func TestStuckGenerators(t *testing.T) {
	withAgent(t, session.TimeWall, `{"deadline_ms":0}`, func(c *cast) {
		release := make(chan struct{})
		for i := range 16 {
			reqID := fmt.Sprint("stuck", i)
			done := c.generate(c.Context(), enginetest.Stalling(false, release), enginetest.Request(reqID))
			if _, err := c.agent.Cancel(c.Context(), reqID); err != nil {
				t.Fatal(err)
			}
			if got := c.now(done); !errors.Is(got.err, agents.ErrCancelled) {
				t.Fatalf("generation %d: %+v", i, got)
			}
		}
		head := c.Ses.Head()
		_, err := generate.Run(c.Context(), c.agent, enginetest.Saying("x"), enginetest.Request("more"))
		var fault *generate.GeneratorError
		if !errors.As(err, &fault) || !errors.Is(err, generate.ErrGeneratorStuck) || fault.Code != agents.ErrQueueFull || c.Ses.Head() != head {
			t.Errorf("one more: %v", err)
		}
		a := c.agent
		c.agent = enginetest.Register(c.T, c.world, "B", nil)
		if _, err := generate.Run(c.Context(), c.agent, enginetest.Saying("x"), enginetest.Request("more")); err != nil {
			t.Errorf("another agent: %v", err)
		}
		c.agent = a
		close(release)
		synctest.Wait()
		for i := range 20 {
			if _, err := generate.Run(c.Context(), c.agent, enginetest.Saying("x"), enginetest.Request(fmt.Sprint("more", i))); err != nil {
				t.Errorf("after they returned: %v", err)
			}
		}
	})
}

// generationMetrics keeps what metrics are told of generations.
type generationMetrics struct {
	lines []string
}

func (h *generationMetrics) Cancelled(world, agent string, why agentslive.CancelKind) {
	h.lines = append(h.lines, fmt.Sprintln(world, agent, "cancelled", why))
}

func (h *generationMetrics) Halted(world, agent string, after time.Duration) {
	h.lines = append(h.lines, fmt.Sprintln(world, agent, "halted", after))
}

func (h *generationMetrics) StreamEnded(_ context.Context, s agentslive.EndedStream) {
	h.lines = append(h.lines, fmt.Sprintln(s.World, s.Agent, s.ReqID, s.Generator, s.End, s.Took, s.Tokens))
}

func (h *generationMetrics) BreakerChanged(world, agent string, to flow.BreakerState) {
	h.lines = append(h.lines, fmt.Sprintln(world, agent, to))
}

// Metrics hear of each stream how it ended, of an interruption how long it took
// to halt, and of the breaker.
func TestGenerationMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, told := &enginetest.StoppedClock{Now: enginetest.StoryBegin}, &generationMetrics{}
		eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: clock.Read, AfterFunc: clock.AfterFunc, Metrics: sajou.Metrics{Agents: agentslive.AgentMetrics{Generations: told}}})
		require.NoError(t, err)
		defer func() { _ = eng.Close() }()
		ses, err := eng.Begin(t.Context(), "a", session.TimeManual)
		require.NoError(t, err)
		c := &cast{Theatre: &enginetest.Theatre{T: t, StoppedClock: clock, Eng: eng, Ses: ses}, world: ses.Agents()}
		c.agent = enginetest.Register(t, c.world, "A", nil)
		r := enginetest.Request("answer")
		r.Token = func(_ int, token string) {
			if clock.Ahead(3 * time.Millisecond); token == "two" {
				c.happens("door")
				clock.Ahead(4 * time.Millisecond)
			}
		}
		r.Regenerations = -1
		if _, err := generate.Run(t.Context(), c.agent, enginetest.Saying("one", "two", "three"), r); err == nil {
			t.Error("interrupted, and no error")
		}
		r = enginetest.Request("cut")
		r.Budget = 1
		if _, err := generate.Run(t.Context(), c.agent, enginetest.Saying("a", "b"), r); err != nil {
			t.Error(err)
		}
		r = enginetest.Request("down")
		r.Breaker.Failures = 1
		if _, err := generate.Run(t.Context(), c.agent, failing(agents.ErrForbidden), r); err == nil {
			t.Error("no error")
		}
		clock.Ahead(time.Minute)
		r.ReqID = "up"
		if _, err := generate.Run(t.Context(), c.agent, enginetest.Saying("x"), r); err != nil {
			t.Error(err)
		}
		want := strings.Join([]string{
			"a A cancelled stale", "a A halted 4ms", "a A answer scripted cancelled 10ms 2",
			"a A cut scripted cut 0s 1",
			"a A down scripted failed 0s 1", "a A OPEN",
			"a A HALF_OPEN", "a A up scripted done 0s 1", "a A CLOSED", "",
		}, "\n")
		synctest.Wait()
		if diff := cmp.Diff(want, strings.Join(told.lines, "")); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}
