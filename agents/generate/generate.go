// Package generate runs a language model, or a substitute, on behalf of an agent: it
// makes a prompt of the view that was delivered to the agent, passes on the tokens,
// stops when the world interrupts the generation, records each attempt, and submits
// the intent that is made of the answer.
//
// The world itself knows a generation only by its token, which package agents/live
// holds. This package decides nothing about the world: it submits, by [live.Agent] and
// [live.Driver].
//
// # Goroutines
//
// [Run] works on its caller's goroutine. The generator runs on one of its own and
// passes one token at a time, so that a generator that ignores its context delays
// nothing. Such a stream is abandoned, and counted until it ends.
//
// docs/glossary.md has the nouns of all packages.
package generate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Request says what an agent generates. Prompt must be set.
type Request struct {
	// ReqID names the request: all attempts at it, and the intent made of the answer.
	ReqID string
	// Prompt makes the prompt from the view that was delivered to the agent by the
	// time at which its generation begins; deltas in flight are not in it. The engine
	// does not know what it adds to the view; see [live.Config.RecordPrompts].
	Prompt func(view.View) Prompt
	// Token, unless nil, is called with each token and the number of the attempt. A
	// new attempt makes the tokens of earlier ones void.
	Token func(attempt int, token string)
	// Intent, unless nil, makes an intent of the answer, or returns false if there is
	// none. Run sets its agent_id, req_id and context_seq.
	Intent func(text string) (agents.Intent, bool)

	// Reads and Classes define conflicts, see [agents.Token].
	Reads, Classes []string
	// Deadline is that of the answer, from the time of its newest view on; 0 means
	// the agent's setting.
	Deadline time.Duration
	// Budget bounds the tokens of an answer; 0 means the agent's setting.
	// The prompt's MaxTokens bounds it too.
	Budget int64
	// Regenerations bounds how often a stale generation begins again. 0 means
	// [agents.MaxRetries], less than zero not at all, and more than 100 means 100.
	Regenerations int
	// Generator is the generator's name, in the log and for its breaker.
	// Empty means the result of its method Name, or else its type.
	Generator string
	// Breaker configures the circuit breaker of the agent and the generator.
	Breaker flow.BreakerConfig
}

// Result is the outcome of [Run].
type Result struct {
	Text   string // of the last attempt
	Finish Finish // of the last attempt; "" if there was none
	// Attempts are all attempts, as they are in the log, but for ViewSeq, which
	// is the agent's own number, see [live.Observation].
	Attempts []Attempt
	// Interruptions are those that ended attempts, and the refusals of their
	// intents as stale.
	Interruptions []agents.Cancellation
	// Outcome is the intent's; zero if none was submitted. It is a
	// [agents.Duplicate] without any attempt if the request had been answered before.
	Outcome agents.Outcome
	// FirstToken is the time from the call to the first token, 0 if none
	// came. Total is the time of the whole call.
	FirstToken, Total time.Duration
}

// Run calls a generator on behalf of an agent, and returns when there is a final
// answer, or when there will be none.
//
// A generation is based on the view that was delivered to the agent by then, which
// agents/history reports for that moment; a delta that is delivered later may make
// it stale. Interruption, deadline and token budget are checked at each token; an
// interruption also ends a generation between tokens, even if the generator stalls
// and ignores its context, for which Run does not wait. The budget ends the answer,
// and the text so far is the answer.
//
//   - Stale: the generation begins again with the newest view, up to r.Regenerations
//     times and without delay, since the agent's debounce keeps interruptions apart. All
//     attempts have one req_id, and each generation has a token of its own. So
//     [live.Agent.Cancel] reaches the one that runs, and the request has at most one
//     effect, also if it is submitted again after a crash.
//   - The generator fails: it is called again with the same prompt if its error
//     allows (see [Generator]), after the delay of [agents.Recovery.Delay], at most three
//     times. If the error demands more than 5 s, it is not called again.
//   - The generator failed too often for this agent: it is not called until the
//     breaker allows it. Errors, panics and missed deadlines are failures;
//     interruptions are not.
//   - Cancelled by the user, left, replaced by another token of the same req_id,
//     past the deadline: Run returns.
//
// Each attempt is recorded when it ends ([Attempt]). The intent made of the answer
// is submitted with the context of the answer, so the world checks once more
// whether that is stale. An intent that is refused only because of its time
// ([agents.RetryWithDelay]) is submitted again, at most three times.
//
// The error is an [*live.InterruptedError], a [*GeneratorError], an
// [*agents.Rejection] of the token or of the intent, or one of ctx or of the log.
// The result up to then is returned too.
//
// The functions of r run on the caller's goroutine, so a slow one delays an
// interruption, and the caller gets their panics. The generator runs on a goroutine
// of its own, which passes one token at a time. A generator that ignores its
// context is abandoned; if 16 abandoned calls of an agent have not ended, further
// ones are refused with [ErrGeneratorStuck].
func Run(ctx context.Context, agent *live.Agent, gen Generator, r Request) (Result, error) {
	if r.Prompt == nil {
		return Result{}, errors.New("sajou: Request.Prompt is not set")
	}
	d := &driver{agent: agent, seam: agent.Driver(), cfg: agent.Driver().Config(), generator: gen, r: r}
	d.begun = d.now()
	if d.r.Generator == "" {
		d.r.Generator = generatorName(gen)
	}
	d.r.Generator, _ = clip(d.r.Generator, maxLabel)
	d.regenerations = r.Regenerations
	if d.regenerations == 0 {
		d.regenerations = agents.MaxRetries
	}
	d.regenerations = min(max(d.regenerations, 0), 100)

	d.pending = d.seam.Pend(r.ReqID)
	defer d.pending.Done()
	err := d.run(ctx)
	d.out.Total = d.elapsed()
	return d.out, err
}

// driver is one call of [Run]. Only the caller's goroutine uses it.
type driver struct {
	agent         *live.Agent
	seam          live.Driver // of agent
	cfg           *live.Config
	pending       *live.PendingGeneration
	generator     Generator
	r             Request
	begun         time.Time
	regenerations int  // that are still allowed
	retries       int  // calls of the generator after a failure
	admitted      bool // admitted by the breaker, and not reported yet
	spoken        bool // the first token has arrived
	out           Result
	sent          Attempt // the common fields of the attempts of the present token
	sentSize      int     // of its prompt in a record
}

func (d *driver) elapsed() time.Duration { return d.now().Sub(d.begun) }

func (d *driver) now() time.Time { return d.cfg.Now() }

func (d *driver) run(ctx context.Context) error {
	for ; ; d.regenerations-- {
		stale, err := d.generation(ctx)
		if !stale || d.regenerations == 0 {
			return err
		}
	}
}

// generation runs one token, based on one view. stale reports that it is out of
// date and may begin again; err is set then too.
func (d *driver) generation(ctx context.Context) (stale bool, err error) {
	if err := d.admit(); err != nil {
		return false, err
	}
	defer d.report(live.CallAbandoned) // unless it was reported: the generator was not called
	gen, view, err := d.begin(ctx)
	if err != nil || gen == nil {
		return false, err
	}
	// However generation returns, it leaves no token. The end of the token ended
	// the context, so a live context means a live token.
	reason := live.ReasonGivenUp
	defer func() {
		if gen.Context().Err() == nil || ctx.Err() != nil {
			still, over := d.seam.Outlast(ctx)
			defer over()
			_ = gen.End(still, reason)
		}
	}()
	if d.pending.Dropped() { // Agent.Cancel was called while there was no token
		if err := gen.End(ctx, agents.ReasonUser); err != nil {
			return false, err
		}
		d.seam.Settle(ctx, gen)
		return d.interrupted(ctx, gen)
	}

	prompt := soundPrompt(d.r.Prompt(view))
	if err := d.note(prompt); err != nil {
		return false, err
	}
	limit := gen.Token().Budget
	if m := prompt.MaxTokens; m > 0 && (limit <= 0 || m < limit) {
		limit = m
	}
	prompt.MaxTokens = max(limit, 0)
	for {
		a, fault := d.stream(ctx, gen, prompt)
		held, err := d.keep(ctx, gen, &a)
		switch {
		case err != nil:
			return false, err
		case a.Finish == FinishError:
		case !held:
			return d.interrupted(ctx, gen)
		default:
			return d.answered(ctx, gen, a.Text, &reason)
		}
		delay, again := fault.Recovery.Delay(d.retries)
		if !again || fault.RetryAfter > maxRetryAfter {
			reason = live.ReasonFailed
			return false, fault
		}
		d.retries++
		if !d.wait(gen, max(delay, fault.RetryAfter)) {
			return d.interrupted(ctx, gen)
		}
		if err := d.admit(); err != nil {
			reason = live.ReasonFailed
			return false, err
		}
	}
}

// maxRetryAfter bounds the wait that a refusal may demand.
const maxRetryAfter = 5 * time.Second

// admit asks the breaker whether the generator may be called.
func (d *driver) admit() error {
	code, after := d.seam.Admit(d.r.Generator, d.r.Breaker)
	switch code {
	case "":
		d.admitted = true
		return nil
	case agents.ErrQueueFull:
		return d.blame(&GeneratorError{Code: code, Err: ErrGeneratorStuck})
	default:
		return d.blame(&GeneratorError{Code: code, RetryAfter: after})
	}
}

// blame completes an error of the generator.
func (d *driver) blame(e *GeneratorError) *GeneratorError {
	e.Generator, e.AgentID, e.ReqID = d.r.Generator, d.agent.ID(), d.r.ReqID
	return e.judge()
}

// report reports the result of a call to the breaker, once for each admission.
func (d *driver) report(v live.CallResult) {
	if d.admitted {
		d.admitted = false
		d.seam.Report(d.r.Generator, d.r.Breaker, v)
	}
}

// begin takes the view and the token that is based on it, in one turn. If the
// request has an outcome, it returns no generation and the outcome's error.
func (d *driver) begin(ctx context.Context) (*live.Generation, view.View, error) {
	request := agents.TokenRequest{
		ReqID: d.r.ReqID, Reads: d.r.Reads, Classes: d.r.Classes, Deadline: d.r.Deadline, Budget: d.r.Budget,
	}
	p, err := d.seam.Begin(ctx, request)
	if p.Outcome != nil {
		d.out.Outcome = *p.Outcome
		return nil, p.View, d.repeat(ctx)
	}
	d.sent = Attempt{ViewSeq: p.Basis.ViewSeq, ViewDigest: p.Basis.ViewDigest}
	return p.Generation, p.View, err
}

// repeat returns the error of the outcome that the request has, once it is durable.
func (d *driver) repeat(ctx context.Context) error {
	if err := d.seam.WaitDurable(ctx); err != nil {
		return err
	}
	return d.out.Outcome.Err()
}

// stream calls the generator once. It returns a fault only with [FinishError].
func (d *driver) stream(ctx context.Context, gen *live.Generation, p Prompt) (a Attempt, fault *GeneratorError) {
	a = d.sent
	a.AgentID, a.ReqID, a.Number, a.Generator = d.agent.ID(), d.r.ReqID, len(d.out.Attempts)+1, d.r.Generator
	var text strings.Builder
	began := d.now()
	st := start(gen.Context(), d.seam, d.generator, p)
	defer func() {
		st.leave()
		d.tellStream(ctx, gen, &a, d.now().Sub(began))
	}()
	most := d.maxText() - d.sentSize
	for a.Finish == "" {
		var token string
		ended := false
		select {
		case <-gen.Context().Done():
		case token = <-st.tokens:
		case <-st.done:
			ended = true
		}
		if d.halted(ctx, gen) { // before anything else: an interrupted generation takes no further token
			a.Finish = FinishInterrupted
			break
		}
		if ended {
			if a.Finish = FinishStop; st.fault != nil {
				a.Finish, fault = FinishError, d.blame(st.fault)
				a.Reason, _ = clip(fault.cause(), maxLabel)
			}
			break
		}
		if a.Tokens++; !d.spoken {
			d.out.FirstToken, d.spoken = d.elapsed(), true
		}
		if a.Cut = len(token) > most-text.Len(); a.Cut {
			token, _ = clip(token, most-text.Len())
		}
		text.WriteString(token)
		if d.r.Token != nil {
			d.r.Token(a.Number, token)
		}
		if a.Cut || a.Tokens == p.MaxTokens {
			a.Finish = FinishBudget
		}
	}
	var cut bool // the replacement of invalid UTF-8 may lengthen the text
	a.Text, cut = clip(text.String(), most)
	a.Cut = a.Cut || cut
	return a, fault
}

// soundPrompt replaces invalid UTF-8 in a prompt, so that a record holds it exactly
// as it is sent.
func soundPrompt(p Prompt) Prompt {
	p.Messages = slices.Clone(p.Messages)
	for i := range p.Messages {
		m := &p.Messages[i]
		m.Role, m.Content = strings.ToValidUTF8(m.Role, "\uFFFD"), strings.ToValidUTF8(m.Content, "\uFFFD")
	}
	return p
}

// note sets the fields of the attempts that describe the prompt. It refuses a
// prompt that is too large to be recorded, if prompts are recorded.
func (d *driver) note(p Prompt) error {
	v := promptValue(p.Messages)
	d.sent.PromptDigest, d.sentSize = agents.PromptDigest(v), 0
	if !d.cfg.RecordPrompts {
		return nil
	}
	if most := d.maxText() / 2; len(v) > most { // the rest is for the answer
		return fmt.Errorf("%w: generation %q of %q: the prompt takes %d bytes, and at most %d can be recorded; shorten it, allow larger entries or do not record prompts",
			eventlog.ErrTooLarge, d.r.ReqID, d.agent.ID(), len(v), most)
	}
	d.sent.Prompt, d.sentSize = p.Messages, len(v)
	return nil
}

// tellStream reports the end of a stream to the metrics.
func (d *driver) tellStream(ctx context.Context, gen *live.Generation, a *Attempt, took time.Duration) {
	metrics, world := d.cfg.Metrics.Generations, d.seam.World()
	if metrics == nil {
		return
	}
	end := live.StreamCancelled
	switch a.Finish {
	case FinishStop:
		end = live.StreamDone
	case FinishBudget:
		end = live.StreamCut
	case FinishError:
		end = live.StreamFailed
	default: // interrupted, or past the deadline
		if why, at := d.seam.Interruption(gen); why != nil {
			metrics.Halted(world, d.agent.ID(), max(d.now().Sub(at), 0))
		}
	}
	metrics.StreamEnded(ctx, live.EndedStream{
		World: world, Agent: d.agent.ID(), ReqID: a.ReqID, Generator: a.Generator, End: end, Took: max(took, 0), Tokens: a.Tokens,
	})
}

// maxText returns the number of bytes of text that the record of an attempt can
// hold.
func (d *driver) maxText() int {
	return max(d.seam.MaxValue()-maxAttempt, 0)
}

// halted reports whether a generation must stop.
func (d *driver) halted(ctx context.Context, gen *live.Generation) bool {
	d.seam.Overdue(ctx, gen)
	return gen.Context().Err() != nil
}

// keep records an attempt. A complete one counts only if the generation holds its
// token; held reports whether it does.
func (d *driver) keep(ctx context.Context, gen *live.Generation, a *Attempt) (held bool, err error) {
	ctx, over := d.seam.Outlast(ctx)
	defer over()
	if a.Finish.Complete() {
		if held, err = d.seam.Keep(ctx, gen, a.value(), true); err == nil && !held {
			d.seam.Settle(ctx, gen)
			a.Finish = FinishInterrupted
		}
	}
	if !a.Finish.Complete() {
		if i, _ := d.seam.Interruption(gen); a.Finish == FinishInterrupted && i != nil {
			if a.Reason = i.Reason; i.Reason == agents.ReasonTimeout {
				a.Finish = FinishDeadline
			}
		} else if a.Finish == FinishInterrupted {
			a.Reason = live.ReasonGivenUp
		}
		if err == nil {
			_, err = d.seam.Keep(ctx, gen, a.value(), false)
		}
		held = false
	}
	switch a.Finish {
	case FinishStop, FinishBudget:
		d.report(live.CallSucceeded)
	case FinishError, FinishDeadline:
		d.report(live.CallFailed)
	default:
		d.report(live.CallAbandoned)
	}
	told := *a
	told.ViewSeq = gen.Token().ContextSeq // the agent's own number
	d.out.Attempts = append(d.out.Attempts, told)
	d.out.Text, d.out.Finish = a.Text, a.Finish
	if cause := context.Cause(gen.Context()); err != nil && cause != nil {
		err = cause // the reason why the record was refused
	}
	return held, err
}

// interrupted returns why a generation was stopped before its generator ended.
func (d *driver) interrupted(ctx context.Context, gen *live.Generation) (stale bool, err error) {
	err = context.Cause(gen.Context())
	if i, _ := d.seam.Interruption(gen); i != nil {
		d.out.Interruptions = append(d.out.Interruptions, i.Cancellation)
		return strings.HasPrefix(i.Reason, agents.ReasonStale), err
	}
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		// The request got its outcome by another call.
		if d.out.Outcome, _, err = d.seam.Answered(ctx, d.r.ReqID); err == nil {
			err = d.repeat(ctx)
		}
	}
	return false, err
}

// wait waits for a delay. It returns false if the generation is interrupted.
func (d *driver) wait(gen *live.Generation, delay time.Duration) bool {
	due := make(chan struct{})
	stop := d.cfg.AfterFunc(delay, func() { close(due) })
	defer stop()
	select {
	case <-due:
	case <-gen.Context().Done():
	}
	return gen.Context().Err() == nil
}

// answered submits the intent made of an answer. If the intent does not end the
// token, it sets the reason with which generation ends it.
func (d *driver) answered(ctx context.Context, gen *live.Generation, text string, reason *string) (stale bool, err error) {
	var in agents.Intent
	asks := false
	if d.r.Intent != nil {
		in, asks = d.r.Intent(text)
	}
	if !asks {
		*reason = live.ReasonCompleted
		return false, nil
	}
	in.ReqID, in.ContextSeq = gen.Token().ReqID, gen.Token().ContextSeq
	for n := 0; ; n++ {
		d.out.Outcome, err = d.agent.Submit(ctx, in)
		r, ok := errors.AsType[*agents.Rejection](err)
		if !ok {
			return false, err
		}
		if r.Code == agents.ErrStaleContext {
			*reason = r.Reason
			d.out.Interruptions = append(d.out.Interruptions,
				agents.Cancellation{Agent: d.agent.ID(), ReqID: in.ReqID, Reason: r.Reason, At: d.seam.Now()})
			return true, err
		}
		delay, again := r.Recovery.Delay(n)
		if !again || r.Recovery == agents.Regenerate || r.RetryAfter > maxRetryAfter {
			return false, err
		}
		if !d.wait(gen, max(delay, r.RetryAfter)) {
			return d.interrupted(ctx, gen)
		}
	}
}
