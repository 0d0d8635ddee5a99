package sajou_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// scripted is a generator that does what a test says, each time it is asked.
type scripted struct {
	asked   int
	prompts []sajou.Prompt
	act     func(s *scripted, ctx context.Context, say func(string) bool) error
}

func (s *scripted) Name() string { return "scripted" }

func (s *scripted) Generate(ctx context.Context, p sajou.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s.asked++
		s.prompts = append(s.prompts, p)
		if err := s.act(s, ctx, func(token string) bool { return yield(token, nil) }); err != nil {
			yield("", err)
		}
	}
}

// saying answers with tokens.
func saying(tokens ...string) *scripted {
	return &scripted{act: func(_ *scripted, _ context.Context, say func(string) bool) error {
		for _, token := range tokens {
			if !say(token) {
				break
			}
		}
		return nil
	}}
}

// failing answers with an error, as often as there are errors, and then with "good".
func failing(errs ...error) *scripted {
	return &scripted{act: func(s *scripted, _ context.Context, say func(string) bool) error {
		if s.asked <= len(errs) {
			say("half")
			return errs[s.asked-1]
		}
		say("good")
		return nil
	}}
}

// stalling says some words and then nothing, and heeds its context or not.
func stalling(heed bool, release <-chan struct{}, tokens ...string) *scripted {
	return &scripted{act: func(_ *scripted, ctx context.Context, say func(string) bool) error {
		for _, token := range tokens {
			if !say(token) {
				return nil
			}
		}
		if heed {
			<-ctx.Done()
			return ctx.Err()
		}
		<-release
		return nil
	}}
}

// cast is a theatre with a world and the agent "A" in it.
type cast struct {
	*theatre
	world *sajou.Agents
	agent *sajou.Agent
}

func withAgent(t *testing.T, authority sajou.TimeAuthority, config string, act func(*cast)) {
	t.Helper()
	play(t, authority, func(th *theatre) {
		c := &cast{theatre: th, world: th.ses.Agents()}
		if err := c.world.Configure(th.Context(), value(th.T, config)); err != nil {
			th.Fatal(err)
		}
		c.agent = register(th.T, c.world, "A", nil)
		if err := c.world.Settle(th.Context()); err != nil {
			th.Fatal(err)
		}
		act(c)
	})
}

// request asks with the ids of the view for a prompt.
func request(reqID string) sajou.GenerateRequest {
	return sajou.GenerateRequest{ReqID: reqID, Prompt: func(v agents.View) sajou.Prompt {
		var ids []string
		for id := range v.VisibleEntities.Members() {
			ids = append(ids, strings.Clone(id))
		}
		return sajou.Prompt{Messages: []sajou.Message{{Role: "user", Content: strings.Join(ids, " ")}}}
	}}
}

// result is what a call of Generate returned.
type result struct {
	sajou.Generated
	err error
}

// generate begins a call and runs it until all is at rest.
func (c *cast) generate(ctx context.Context, gen sajou.Generator, r sajou.GenerateRequest) <-chan result {
	c.Helper()
	done := make(chan result, 1)
	go func() {
		out, err := c.agent.Generate(ctx, gen, r)
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
	if _, err := c.world.Broadcast(c.Context(), draft("EntityCreated", "world", `{"entity_id":"`+id+`","entity_data":{}}`)); err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
}

// records folds the log anew, without any generator, and returns the attempts in
// it and the reasons of cancellations. No token may be left.
func (c *cast) records() (attempts []sajou.Attempt, ends []string) {
	c.Helper()
	if err := c.world.Settle(c.Context()); err != nil {
		c.Fatal(err)
	}
	fold, err := c.eng.Replay("a").At(c.Context(), c.ses.Head().Seq)
	if err != nil {
		c.Fatal(err)
	}
	log, err := c.eng.Log().Session("a")
	if err != nil {
		c.Fatal(err)
	}
	for e, err := range log.Entries(c.Context(), 1) {
		if err != nil {
			c.Fatal(err)
		}
		if a, err := sajou.AttemptOf(&e); err == nil {
			attempts = append(attempts, a)
		}
		if r, err := sajou.WorldRecordOf(&e); err == nil && r.Word == agents.WordCancel {
			reason, _ := r.Value.Get("reason")
			text, _ := reason.Text()
			ends = append(ends, strings.Clone(text))
		}
	}
	if tokens := sajou.WorldOf(fold).Tokens("A"); len(tokens) > 0 {
		c.Errorf("tokens linger: %+v", tokens)
	}
	return attempts, ends
}

// wantRecorded says that the log has the attempts that a call returned.
func (c *cast) wantRecorded(got []sajou.Attempt, ends ...string) {
	c.Helper()
	attempts, cancelled := c.records()
	if diff := cmp.Diff(got, attempts); diff != "" {
		c.Errorf("attempts returned (-) and recorded (+):\n%s", diff)
	}
	if diff := cmp.Diff(ends, cancelled); diff != "" {
		c.Errorf("tokens ended (-want +got):\n%s", diff)
	}
}

func finishes(list []sajou.Attempt) (all []sajou.Finish) {
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
	withAgent(t, sajou.TimeWall, `{}`, func(c *cast) {
		c.happens("door")
		gen := &scripted{act: func(_ *scripted, _ context.Context, say func(string) bool) error {
			c.ahead(30 * time.Millisecond)
			_ = say("Hel") && say("lo")
			return nil
		}}
		var told []string
		r := request("answer-1")
		r.Token = func(attempt int, token string) {
			told = append(told, fmt.Sprint(attempt, token))
			c.ahead(6 * time.Millisecond)
		}
		got, err := c.agent.Generate(c.Context(), gen, r)
		if err != nil {
			t.Fatal(err)
		}
		want := sajou.Generated{
			Text: "Hello", Finish: sajou.FinishStop, FirstToken: 30 * time.Millisecond, Total: 42 * time.Millisecond,
			Attempts: []sajou.Attempt{{
				AgentID: "A", ReqID: "answer-1", Number: 1, Generator: "scripted",
				Text: "Hello", Finish: sajou.FinishStop, Tokens: 2,
			}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("generated (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"1Hel", "1lo"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		wantPrompt := []sajou.Prompt{{Messages: []sajou.Message{{Role: "user", Content: "A door"}}, MaxTokens: 1000}}
		if diff := cmp.Diff(wantPrompt, gen.prompts); diff != "" {
			t.Errorf("prompt (-want +got):\n%s", diff)
		}
		c.wantRecorded(got.Attempts, sajou.ReasonCompleted)
		if gen.asked != 1 {
			t.Errorf("asked %d times", gen.asked)
		}
		if _, err := c.agent.Generate(c.Context(), gen, sajou.GenerateRequest{ReqID: "x"}); err == nil {
			t.Error("no prompt, and no error")
		}
		if _, err := c.agent.Generate(c.Context(), gen, request("")); !errors.Is(err, agents.InvalidIntent) {
			t.Errorf("no req_id: %v", err)
		}
	})
}

// An interruption ends the wait for a generator that stalls, at once, whether it
// heeds its context or not: no timer has to run for it. The next attempt goes by
// the new view.
func TestStalledGeneratorIsHalted(t *testing.T) {
	for _, heed := range []bool{true, false} {
		withAgent(t, sajou.TimeWall, `{}`, func(c *cast) {
			release := make(chan struct{})
			gen := stalling(heed, release, "I ", "see")
			done := c.generate(c.Context(), gen, request("answer"))
			c.goesOn(done)
			gen.act = saying("a door").act
			c.happens("door")
			got := c.now(done)
			if got.err != nil || got.Text != "a door" {
				t.Errorf("heeds %v: generated %+v", heed, got)
			}
			if diff := cmp.Diff([]string{"stale_due_to_seq_gap_1_threshold_0"}, reasons(got.Interruptions)); diff != "" {
				t.Errorf("heeds %v: interrupted (-want +got):\n%s", heed, diff)
			}
			if a := got.Attempts[0]; a.Text != "I see" || a.Finish != sajou.FinishInterrupted || a.Reason != reasons(got.Interruptions)[0] {
				t.Errorf("heeds %v: the first attempt was %+v", heed, a)
			}
			if first, second := gen.prompts[0].Messages[0].Content, gen.prompts[1].Messages[0].Content; first != "A" || second != "A door" {
				t.Errorf("heeds %v: prompted with %q, then with %q", heed, first, second)
			}
			if !c.read().Equal(storyBegin) {
				t.Errorf("time has passed")
			}
			c.wantRecorded(got.Attempts, sajou.ReasonCompleted) // that a token was in vain follows from the news
			close(release)
		})
	}
}

// What is said at a boundary behind an interruption is not taken.
func TestInterruptedAtABoundary(t *testing.T) {
	withAgent(t, sajou.TimeWall, `{}`, func(c *cast) {
		r := request("answer")
		r.Regenerations = -1
		r.Token = func(_ int, token string) {
			if token == "two" {
				c.happens("door")
			}
		}
		got, err := c.agent.Generate(c.Context(), saying("one", "two", "three"), r)
		var interrupted *sajou.Interrupted
		if !errors.As(err, &interrupted) || got.Text != "onetwo" || got.Finish != sajou.FinishInterrupted {
			t.Errorf("generated %+v, %v", got, err)
		}
		c.wantRecorded(got.Attempts)
	})
}

// However often it is interrupted, it is begun anew only so often.
func TestRegenerations(t *testing.T) {
	for asked, want := range map[int]int{0: 4, 1: 2, -1: 1, 5: 6} {
		withAgent(t, sajou.TimeWall, `{"debounce_ms":0}`, func(c *cast) {
			r := request("answer")
			r.Regenerations = asked
			r.Token = func(attempt int, _ string) { c.happens(fmt.Sprint("door", attempt)) }
			got, err := c.agent.Generate(c.Context(), saying("I see"), r)
			if !errors.Is(err, agents.Cancelled) || len(got.Attempts) != want || len(got.Interruptions) != want {
				t.Errorf("%d regenerations: %+v, %v; want %d attempts", asked, got, err, want)
			}
			c.wantRecorded(got.Attempts)
		})
	}
}

// The deadline ends the wait for a stalled generator when its time comes, and a
// stream at the first boundary behind it even if nobody has looked. It is final.
func TestGenerationDeadline(t *testing.T) {
	withAgent(t, sajou.TimeWall, `{"deadline_ms":2000}`, func(c *cast) {
		release := make(chan struct{})
		done := c.generate(c.Context(), stalling(false, release, "I "), request("stalled"))
		c.pass(2*time.Second - 1)
		c.goesOn(done)
		c.pass(1)
		stalled := c.now(done)

		late, lateErr := c.agent.Generate(c.Context(), &scripted{act: func(_ *scripted, _ context.Context, say func(string) bool) error {
			say("in time")
			c.ahead(2 * time.Second)
			say("too late")
			return nil
		}}, request("late"))
		for _, got := range []result{stalled, {late, lateErr}} {
			if !errors.Is(got.err, agents.Timeout) || got.Finish != sajou.FinishDeadline || len(got.Attempts) != 1 || strings.Contains(got.Text, "late") {
				t.Errorf("generated %+v", got)
			}
		}
		again, err := c.agent.Generate(c.Context(), saying("x"), request("late"))
		if !errors.Is(err, agents.Timeout) || again.Outcome.Status != agents.Duplicate || len(again.Attempts) != 0 {
			t.Errorf("asked again: %+v, %v", again, err)
		}
		c.wantRecorded(slices.Concat(stalled.Attempts, late.Attempts))
		close(release)
	})
	withAgent(t, sajou.TimeManual, `{}`, func(c *cast) {
		done := c.generate(c.Context(), stalling(true, nil), request("stalled"))
		if at, ok := c.world.Next(); !ok || at != 5*time.Second {
			t.Errorf("next is %v %v", at, ok)
		}
		if err := c.world.Advance(c.Context(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := c.now(done); !errors.Is(got.err, agents.Timeout) {
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
			done := c.generate(c.Context(), stalling(true, nil, "I "), request("answer"))
			cancel(c)
			return c.now(done)
		},
		"waiting": func(c *cast) result {
			done := c.generate(c.Context(), failing(errors.New("no")), request("answer"))
			c.goesOn(done)
			cancel(c)
			return c.now(done)
		},
		"between": func(c *cast) result {
			r := request("answer")
			r.Intent = func(text string) (agents.Intent, bool) {
				c.happens("door") // interrupts: there is no token from here on
				cancel(c)
				return speak(text)
			}
			out, err := c.agent.Generate(c.Context(), saying("I see"), r)
			return result{out, err}
		},
	} {
		withAgent(t, sajou.TimeWall, `{}`, func(c *cast) {
			got := run(c)
			var interrupted *sajou.Interrupted
			if !errors.As(got.err, &interrupted) || interrupted.Reason != agents.ReasonUser || len(got.Attempts) != 1 {
				t.Errorf("%s: generated %+v", name, got)
			}
			again, err := c.agent.Generate(c.Context(), saying("x"), request("answer"))
			if !errors.Is(err, agents.Cancelled) || len(again.Attempts) != 0 {
				t.Errorf("%s: asked again: %+v, %v", name, again, err)
			}
			c.wantRecorded(got.Attempts, agents.ReasonUser)
		})
	}
}

// An agent that leaves, another token of the same req_id, a context that ends, an
// engine that closes: each halts a stalled generator, and none is begun anew.
func TestFinalEnds(t *testing.T) {
	withAgent(t, sajou.TimeWall, `{}`, func(c *cast) {
		ctx, cancel := context.WithCancel(c.Context())
		given := c.generate(ctx, stalling(true, nil, "a"), request("given up"))
		cancel()
		got := c.now(given)
		if !errors.Is(got.err, context.Canceled) || got.Attempts[0].Reason != sajou.ReasonGivenUp {
			t.Errorf("given up: %+v", got)
		}
		c.wantRecorded(got.Attempts, sajou.ReasonGivenUp)
		again, err := c.agent.Generate(c.Context(), saying("b"), request("given up"))
		if err != nil || again.Text != "b" {
			t.Errorf("asked again: %+v, %v", again, err)
		}

		replaced := c.generate(c.Context(), stalling(true, nil, "c"), request("replaced"))
		if _, err := c.agent.Generate(c.Context(), saying("d"), request("replaced")); err != nil {
			t.Error(err)
		}
		if got := c.now(replaced); got.Interruptions[0].Reason != agents.ReasonReplaced || len(got.Attempts) != 1 {
			t.Errorf("replaced: %+v", got)
		}

		answered := c.generate(c.Context(), stalling(true, nil, "e"), request("answered"))
		in, _ := speak("by hand")
		in.ReqID, in.ContextSeq = "answered", 1
		if _, err := c.agent.Submit(c.Context(), in); err != nil {
			t.Fatal(err)
		}
		if got := c.now(answered); got.err != nil || got.Outcome.Status != agents.Duplicate || !got.Outcome.OK() || len(got.Attempts) != 1 {
			t.Errorf("answered by somebody else: %+v", got)
		}

		left := c.generate(c.Context(), stalling(true, nil, "f"), request("left"))
		closed := c.generate(c.Context(), stalling(true, nil), request("left too"))
		if err := c.agent.Leave(c.Context()); err != nil {
			t.Fatal(err)
		}
		for _, got := range []result{c.now(left), c.now(closed)} {
			if got.Interruptions[0].Reason != agents.ReasonLeft || got.Finish != sajou.FinishInterrupted {
				t.Errorf("left: %+v", got)
			}
		}
		if _, err := c.agent.Generate(c.Context(), saying("g"), request("gone")); !errors.Is(err, agents.UnknownAgent) {
			t.Errorf("after it left: %v", err)
		}
		c.records()

		b := register(c.T, c.world, "B", nil)
		c.agent = b
		streaming := c.generate(c.Context(), stalling(true, nil), request("streaming"))
		waiting := c.generate(c.Context(), failing(errors.New("no")), request("waiting"))
		c.close()
		for _, got := range []result{c.now(streaming), c.now(waiting)} {
			if !errors.Is(got.err, eventlog.ErrClosed) {
				t.Errorf("closed: %+v", got)
			}
		}
	})
}

func (*faulty) Error() string { panic("no text") }

func (noSequence) Name() string { panic("no name") }

func (noSequence) Generate(context.Context, sajou.Prompt) iter.Seq2[string, error] { return nil }

func (deaf) Generate(context.Context, sajou.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for range 3 {
			yield("x", nil)
		}
	}
}
