package generate_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// failing answers with an error, as often as there are errors, and then with "good".
func failing(errs ...error) *enginetest.Scripted {
	return &enginetest.Scripted{Act: func(s *enginetest.Scripted, _ context.Context, say func(string) bool) error {
		if s.Asked <= len(errs) {
			say("half")
			return errs[s.Asked-1]
		}
		say("good")
		return nil
	}}
}

// cast is a theatre with a world and the agent "A" in it.
type cast struct {
	*enginetest.Theatre
	world *agentslive.Agents
	agent *agentslive.Agent
}

func withAgent(t *testing.T, authority session.TimeAuthority, config string, act func(*cast)) {
	t.Helper()
	enginetest.Play(t, authority, func(th *enginetest.Theatre) {
		c := &cast{Theatre: th, world: th.Ses.Agents()}
		if err := c.world.Configure(th.Context(), enginetest.Value(th.T, config)); err != nil {
			th.Fatal(err)
		}
		c.agent = enginetest.Register(th.T, c.world, "A", nil)
		if err := c.world.Settle(th.Context()); err != nil {
			th.Fatal(err)
		}
		act(c)
	})
}

// result is what a call of Generate returned.
type result struct {
	generate.Result
	err error
}

// generate begins a call and runs it until all is at rest.
func (c *cast) generate(ctx context.Context, gen generate.Generator, r generate.Request) <-chan result {
	c.Helper()
	done := make(chan result, 1)
	go func() {
		out, err := generate.Run(ctx, c.agent, gen, r)
		done <- result{out, err}
	}()
	synctest.Wait()
	return done
}

// now returns what a call returned, which must have ended by itself.
func (c *cast) now(done <-chan result) result {
	c.Helper()
	synctest.Wait()
	select {
	case r := <-done:
		return r
	default:
		c.Fatal("the generation goes on")
		return result{}
	}
}

func (c *cast) goesOn(done <-chan result) {
	c.Helper()
	select {
	case r := <-done:
		c.Fatalf("the generation has ended: %+v", r)
	default:
	}
}

// happens has an entity appear, which the agent sees.
func (c *cast) happens(id string) {
	c.Helper()
	if _, err := c.world.Broadcast(c.Context(), enginetest.Draft("EntityCreated", "world", `{"entity_id":"`+id+`","entity_data":{}}`)); err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
}

// records folds the log anew, without any generator, and returns the attempts in
// it and the reasons of cancellations. No token may be left.
func (c *cast) records() (attempts []generate.Attempt, ends []string) {
	c.Helper()
	if err := c.world.Settle(c.Context()); err != nil {
		c.Fatal(err)
	}
	fold, err := enginetest.ReplayedAt(c.Context(), c.Eng, "a", c.Ses.Head().Seq)
	if err != nil {
		c.Fatal(err)
	}
	log, err := c.Eng.Log().Session("a")
	if err != nil {
		c.Fatal(err)
	}
	for e, err := range log.Entries(c.Context(), 1) {
		if err != nil {
			c.Fatal(err)
		}
		if a, err := generate.AttemptOf(&e); err == nil {
			attempts = append(attempts, a)
		}
		if r, err := session.WorldRecordOf(&e); err == nil && r.Word == agents.WordCancel {
			reason, _ := r.Value.Get("reason")
			text, _ := reason.Text()
			ends = append(ends, strings.Clone(text))
		}
	}
	if tokens := session.WorldOf(fold).Tokens("A"); len(tokens) > 0 {
		c.Errorf("tokens linger: %+v", tokens)
	}
	return attempts, ends
}

// wantRecorded says that the log has the attempts that a call returned.
func (c *cast) wantRecorded(got []generate.Attempt, ends ...string) {
	c.Helper()
	attempts, cancelled := c.records()
	if diff := cmp.Diff(got, attempts, ofAgents); diff != "" {
		c.Errorf("attempts returned (-) and recorded (+):\n%s", diff)
	}
	if diff := cmp.Diff(ends, cancelled); diff != "" {
		c.Errorf("tokens ended (-want +got):\n%s", diff)
	}
}

// ofAgents compares attempts of which some are as their agent gets them, with numbers
// of its own, and others as the log has them.
var ofAgents = cmpopts.IgnoreFields(generate.Attempt{}, "ViewSeq")

func finishes(list []generate.Attempt) (all []generate.Finish) {
	for _, a := range list {
		all = append(all, a.Finish)
	}
	return all
}

func reasons(list []agents.Cancellation) (all []string) {
	for _, c := range list {
		all = append(all, c.Reason)
	}
	return all
}

// An answer is told token by token, on the caller's goroutine, and recorded. A
// replay has it without asking anybody.
func TestGenerate(t *testing.T) {
	withAgent(t, session.TimeWall, `{}`, func(c *cast) {
		c.happens("door")
		gen := &enginetest.Scripted{Act: func(_ *enginetest.Scripted, _ context.Context, say func(string) bool) error {
			c.Ahead(30 * time.Millisecond)
			_ = say("Hel") && say("lo")
			return nil
		}}
		var told []string
		r := enginetest.Request("answer-1")
		r.Token = func(attempt int, token string) {
			told = append(told, fmt.Sprint(attempt, token))
			c.Ahead(6 * time.Millisecond)
		}
		got, err := generate.Run(c.Context(), c.agent, gen, r)
		require.NoError(t, err)
		known, err := c.world.Known(c.Context(), "A")
		require.NoError(t, err)
		sum := sha256.Sum256([]byte(`[{"content":"A door","role":"user"}]`))
		want := generate.Result{
			Text: "Hello", Finish: generate.FinishStop, FirstToken: 30 * time.Millisecond, Total: 42 * time.Millisecond,
			Attempts: []generate.Attempt{{
				AgentID: "A", ReqID: "answer-1", Number: 1, Generator: "scripted",
				Text: "Hello", Finish: generate.FinishStop, Tokens: 2,
				ViewSeq: known.ViewSeq, ViewDigest: known.ContextDigest, PromptDigest: hex.EncodeToString(sum[:]),
			}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("generated (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"1Hel", "1lo"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		wantPrompt := []generate.Prompt{{Messages: []generate.ChatMessage{{Role: "user", Content: "A door"}}, MaxTokens: 1000}}
		if diff := cmp.Diff(wantPrompt, gen.Prompts); diff != "" {
			t.Errorf("prompt (-want +got):\n%s", diff)
		}
		c.wantRecorded(got.Attempts, agentslive.ReasonCompleted)
		if gen.Asked != 1 {
			t.Errorf("asked %d times", gen.Asked)
		}
		if _, err := generate.Run(c.Context(), c.agent, gen, generate.Request{ReqID: "x"}); err == nil {
			t.Error("no prompt, and no error")
		}
		if _, err := generate.Run(c.Context(), c.agent, gen, enginetest.Request("")); !errors.Is(err, agents.ErrInvalidIntent) {
			t.Errorf("no req_id: %v", err)
		}
	})
}

// An interruption ends the wait for a generator that stalls, at once, whether it
// heeds its context or not: no timer has to run for it. The next attempt goes by
// the new view.
func TestStalledGeneratorIsHalted(t *testing.T) {
	for _, heed := range []bool{true, false} {
		withAgent(t, session.TimeWall, `{}`, func(c *cast) {
			release := make(chan struct{})
			gen := enginetest.Stalling(heed, release, "I ", "see")
			done := c.generate(c.Context(), gen, enginetest.Request("answer"))
			c.goesOn(done)
			gen.Act = enginetest.Saying("a door").Act
			c.happens("door")
			got := c.now(done)
			if got.err != nil || got.Text != "a door" {
				t.Errorf("heeds %v: generated %+v", heed, got)
			}
			if diff := cmp.Diff([]string{"stale_due_to_seq_gap_1_threshold_0"}, reasons(got.Interruptions)); diff != "" {
				t.Errorf("heeds %v: interrupted (-want +got):\n%s", heed, diff)
			}
			if a := got.Attempts[0]; a.Text != "I see" || a.Finish != generate.FinishInterrupted || a.Reason != reasons(got.Interruptions)[0] {
				t.Errorf("heeds %v: the first attempt was %+v", heed, a)
			}
			if first, second := gen.Prompts[0].Messages[0].Content, gen.Prompts[1].Messages[0].Content; first != "A" || second != "A door" {
				t.Errorf("heeds %v: prompted with %q, then with %q", heed, first, second)
			}
			if !c.Read().Equal(enginetest.StoryBegin) {
				t.Errorf("time has passed")
			}
			c.wantRecorded(got.Attempts, agentslive.ReasonCompleted) // that a token is stale follows from the deliveries
			close(release)
		})
	}
}

// What is said at a boundary behind an interruption is not taken.
func TestInterruptedAtABoundary(t *testing.T) {
	withAgent(t, session.TimeWall, `{}`, func(c *cast) {
		r := enginetest.Request("answer")
		r.Regenerations = -1
		r.Token = func(_ int, token string) {
			if token == "two" {
				c.happens("door")
			}
		}
		got, err := generate.Run(c.Context(), c.agent, enginetest.Saying("one", "two", "three"), r)
		var interrupted *agentslive.InterruptedError
		if !errors.As(err, &interrupted) || got.Text != "onetwo" || got.Finish != generate.FinishInterrupted {
			t.Errorf("generated %+v, %v", got, err)
		}
		c.wantRecorded(got.Attempts)
	})
}

// However often it is interrupted, it is begun anew only so often.
func TestRegenerations(t *testing.T) {
	for asked, want := range map[int]int{0: 4, 1: 2, -1: 1, 5: 6} {
		withAgent(t, session.TimeWall, `{"debounce_ms":0}`, func(c *cast) {
			r := enginetest.Request("answer")
			r.Regenerations = asked
			r.Token = func(attempt int, _ string) { c.happens(fmt.Sprint("door", attempt)) }
			got, err := generate.Run(c.Context(), c.agent, enginetest.Saying("I see"), r)
			if !errors.Is(err, agents.ErrCancelled) || len(got.Attempts) != want || len(got.Interruptions) != want {
				t.Errorf("%d regenerations: %+v, %v; want %d attempts", asked, got, err, want)
			}
			c.wantRecorded(got.Attempts)
		})
	}
}

// The deadline ends the wait for a stalled generator when its time comes, and a
// stream at the first boundary behind it even if nobody has looked. It is final.
func TestGenerationDeadline(t *testing.T) {
	withAgent(t, session.TimeWall, `{"deadline_ms":2000}`, func(c *cast) {
		release := make(chan struct{})
		done := c.generate(c.Context(), enginetest.Stalling(false, release, "I "), enginetest.Request("stalled"))
		c.Pass(2*time.Second - 1)
		c.goesOn(done)
		c.Pass(1)
		stalled := c.now(done)

		late, lateErr := generate.Run(c.Context(), c.agent, &enginetest.Scripted{Act: func(_ *enginetest.Scripted, _ context.Context, say func(string) bool) error {
			say("in time")
			c.Ahead(2 * time.Second)
			say("too late")
			return nil
		}}, enginetest.Request("late"))
		for _, got := range []result{stalled, {late, lateErr}} {
			if !errors.Is(got.err, agents.ErrTimeout) || got.Finish != generate.FinishDeadline || len(got.Attempts) != 1 || strings.Contains(got.Text, "late") {
				t.Errorf("generated %+v", got)
			}
		}
		again, err := generate.Run(c.Context(), c.agent, enginetest.Saying("x"), enginetest.Request("late"))
		if !errors.Is(err, agents.ErrTimeout) || again.Outcome.Status != agents.Duplicate || len(again.Attempts) != 0 {
			t.Errorf("asked again: %+v, %v", again, err)
		}
		c.wantRecorded(slices.Concat(stalled.Attempts, late.Attempts))
		close(release)
	})
	withAgent(t, session.TimeManual, `{}`, func(c *cast) {
		done := c.generate(c.Context(), enginetest.Stalling(true, nil), enginetest.Request("stalled"))
		if at, ok := c.world.Next(); !ok || at != 5*time.Second {
			t.Errorf("next is %v %v", at, ok)
		}
		require.NoError(t, c.world.Advance(c.Context(), 5*time.Second))
		if got := c.now(done); !errors.Is(got.err, agents.ErrTimeout) {
			t.Errorf("generated %+v", got)
		}
	})
}

// The user's word is final, whether a token is there, or the generator is to be asked
// again after a while, or a new generation is about to begin.
func TestUserCancels(t *testing.T) {
	cancel := func(c *cast) {
		if found, err := c.agent.Cancel(c.Context(), "answer"); !found || err != nil {
			c.Errorf("cancelled %v, %v", found, err)
		}
	}
	for name, run := range map[string]func(*cast) result{
		"streaming": func(c *cast) result {
			done := c.generate(c.Context(), enginetest.Stalling(true, nil, "I "), enginetest.Request("answer"))
			cancel(c)
			return c.now(done)
		},
		"waiting": func(c *cast) result {
			done := c.generate(c.Context(), failing(errors.New("no")), enginetest.Request("answer"))
			c.goesOn(done)
			cancel(c)
			return c.now(done)
		},
		"between": func(c *cast) result {
			r := enginetest.Request("answer")
			r.Intent = func(text string) (agents.Intent, bool) {
				c.happens("door") // interrupts: there is no token from here on
				cancel(c)
				return speak(text)
			}
			out, err := generate.Run(c.Context(), c.agent, enginetest.Saying("I see"), r)
			return result{out, err}
		},
	} {
		withAgent(t, session.TimeWall, `{}`, func(c *cast) {
			got := run(c)
			var interrupted *agentslive.InterruptedError
			if !errors.As(got.err, &interrupted) || interrupted.Reason != agents.ReasonUser || len(got.Attempts) != 1 {
				t.Errorf("%s: generated %+v", name, got)
			}
			again, err := generate.Run(c.Context(), c.agent, enginetest.Saying("x"), enginetest.Request("answer"))
			if !errors.Is(err, agents.ErrCancelled) || len(again.Attempts) != 0 {
				t.Errorf("%s: asked again: %+v, %v", name, again, err)
			}
			c.wantRecorded(got.Attempts, agents.ReasonUser)
		})
	}
}

// An agent that leaves, another token of the same req_id, a context that ends, an
// engine that closes: each halts a stalled generator, and none is begun anew.
func TestFinalEnds(t *testing.T) {
	withAgent(t, session.TimeWall, `{}`, func(c *cast) {
		ctx, cancel := context.WithCancel(c.Context())
		given := c.generate(ctx, enginetest.Stalling(true, nil, "a"), enginetest.Request("given up"))
		cancel()
		got := c.now(given)
		if !errors.Is(got.err, context.Canceled) || got.Attempts[0].Reason != agentslive.ReasonGivenUp {
			t.Errorf("given up: %+v", got)
		}
		c.wantRecorded(got.Attempts, agentslive.ReasonGivenUp)
		again, err := generate.Run(c.Context(), c.agent, enginetest.Saying("b"), enginetest.Request("given up"))
		if err != nil || again.Text != "b" {
			t.Errorf("asked again: %+v, %v", again, err)
		}

		replaced := c.generate(c.Context(), enginetest.Stalling(true, nil, "c"), enginetest.Request("replaced"))
		if _, err := generate.Run(c.Context(), c.agent, enginetest.Saying("d"), enginetest.Request("replaced")); err != nil {
			t.Error(err)
		}
		if got := c.now(replaced); got.Interruptions[0].Reason != agents.ReasonReplaced || len(got.Attempts) != 1 {
			t.Errorf("replaced: %+v", got)
		}

		answered := c.generate(c.Context(), enginetest.Stalling(true, nil, "e"), enginetest.Request("answered"))
		in, _ := speak("by hand")
		in.ReqID, in.ContextSeq = "answered", 1
		if _, err := c.agent.Submit(c.Context(), in); err != nil {
			t.Fatal(err)
		}
		if got := c.now(answered); got.err != nil || got.Outcome.Status != agents.Duplicate || !got.Outcome.OK() || len(got.Attempts) != 1 {
			t.Errorf("answered by somebody else: %+v", got)
		}

		left := c.generate(c.Context(), enginetest.Stalling(true, nil, "f"), enginetest.Request("left"))
		closed := c.generate(c.Context(), enginetest.Stalling(true, nil), enginetest.Request("left too"))
		require.NoError(t, c.agent.Leave(c.Context()))
		for _, got := range []result{c.now(left), c.now(closed)} {
			if got.Interruptions[0].Reason != agents.ReasonLeft || got.Finish != generate.FinishInterrupted {
				t.Errorf("left: %+v", got)
			}
		}
		if _, err := generate.Run(c.Context(), c.agent, enginetest.Saying("g"), enginetest.Request("gone")); !errors.Is(err, agents.ErrUnknownAgent) {
			t.Errorf("after it left: %v", err)
		}
		c.records()

		b := enginetest.Register(c.T, c.world, "B", nil)
		c.agent = b
		streaming := c.generate(c.Context(), enginetest.Stalling(true, nil), enginetest.Request("streaming"))
		waiting := c.generate(c.Context(), failing(errors.New("no")), enginetest.Request("waiting"))
		c.Close()
		for _, got := range []result{c.now(streaming), c.now(waiting)} {
			if !errors.Is(got.err, eventlog.ErrClosed) {
				t.Errorf("closed: %+v", got)
			}
		}
	})
}

func (*faulty) Error() string { panic("no text") }

func (noSequence) Name() string { panic("no name") }

func (noSequence) Generate(context.Context, generate.Prompt) iter.Seq2[string, error] { return nil }

func (deaf) Generate(context.Context, generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for range 3 {
			yield("x", nil)
		}
	}
}
