package sajou

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
)

// The reasons with which a driver ends its token: none answers the request for
// ever. One that is out of date has the reason of the refusal, which begins with
// [agents.ReasonStale].
const (
	ReasonCompleted = "completed"         // the answer is recorded, and no intent comes of it
	ReasonGivenUp   = "given_up"          // whoever asked for it no longer waits, or what came of it was refused
	ReasonFailed    = "generation_failed" // the generator gave no answer
)

// GenerateRequest says what an agent is to generate. Prompt must be set.
type GenerateRequest struct {
	// ReqID names the request, with all attempts at it. What comes of it has it.
	ReqID string
	// Prompt makes the prompt from what the agent has been shown.
	Prompt func(agents.View) Prompt
	// Token, unless nil, is told each token, with the number of the attempt: what
	// it was told of earlier ones is void then.
	Token func(attempt int, token string)
	// Intent, unless nil, makes an intent of the answer, or says that there is
	// none. agent_id, req_id and context_seq are set in it.
	Intent func(text string) (agents.Intent, bool)

	// Reads and Classes say what conflicts, see [agents.Token].
	Reads, Classes []string
	// Deadline is that of the answer, from when its newest view was taken; 0 is
	// the agent's setting.
	Deadline time.Duration
	// Budget is how many tokens an answer may have; 0 is the agent's setting.
	// The prompt's MaxTokens bounds it too.
	Budget int64
	// Regenerations is how often it is begun anew when it is out of date. 0 means
	// [agents.MaxRetries], less than zero not at all, and more than 100 means 100.
	Regenerations int
	// Generator is what the generator is called, in the log and by its breaker.
	// Empty means what its method Name says, or else its type.
	Generator string
	// Breaker says when the generator is left alone, for this agent.
	Breaker agents.BreakerConfig
}

// Generated is what came of [Agent.Generate].
type Generated struct {
	Text   string // of the last attempt
	Finish Finish // of the last attempt; "" if there was none
	// Attempts are all that were made, as they are in the log.
	Attempts []Attempt
	// Interruptions are what ended attempts before their time, or had their
	// intent refused as out of date.
	Interruptions []agents.Cancellation
	// Outcome is the intent's; zero if none was submitted. It is a
	// [agents.Duplicate] without any attempt if the request had been answered before.
	Outcome agents.Outcome
	// FirstToken is the time from the call to the first token of all, 0 if none
	// came. Total is the time of the whole call.
	FirstToken, Total time.Duration
}

// Generate has a generator answer for the agent, and returns when there is an
// answer that stands, or when there will be none.
//
// It goes by the agent's view as it is: [Agents.View], news on its way included. While
// the generator streams, each token is a boundary at which interruption,
// deadline and token budget are looked at; an interruption is heeded between them
// too, also when the generator stalls and does not heed its context. It is not
// waited for then. The budget ends the answer, which stands as far as it has come.
//
//   - Out of date: it begins anew with the newest view, up to r.Regenerations
//     times and without delay, since the agent's debounce keeps interruptions apart. All
//     attempts have one req_id, each generation a token of its own. So
//     [Agent.Cancel] reaches whichever is under way, and the request has one
//     effect at most, also if it is asked again after a crash.
//   - The generator fails: it is asked again with the same prompt when its error
//     allows (see [Generator]) after the delay of [agents.Recovery.Delay], three times at
//     most. When the error asks for more than 5 s, it is not asked again.
//   - The generator failed too often for this agent: it is not asked until the
//     breaker lets it. Errors, panics and missed deadlines are failures;
//     interruptions are not.
//   - Cancelled by the user, left, replaced by another token of the same req_id,
//     past the deadline: that is the end.
//
// Each attempt is recorded when it ends ([Attempt]). An intent that comes of the
// answer is submitted with the context that the answer went by, so that it is
// judged once more whether that is out of date. What is refused because of its
// time alone ([agents.RetryWithDelay]) is submitted again, three times at most.
//
// The error is an [*Interrupted], a [*GeneratorError], an [*agents.Rejection] of the token
// or of the intent, or one of ctx or of the log. What came until then is returned too.
//
// The functions of r run on the caller's goroutine, so that one that takes its
// time delays a halt, and their panics are the caller's. The generator runs on a
// goroutine of its own, which passes one token at a time. When it was given up it
// is left alone; an agent for which 16 such have not ended is refused any further
// with [ErrGeneratorStuck].
func (g *Agent) Generate(ctx context.Context, gen Generator, r GenerateRequest) (Generated, error) {
	if r.Prompt == nil {
		return Generated{}, errors.New("sajou: a generation without a prompt")
	}
	d := &driver{agent: g, all: &g.world.running, generator: gen, r: r, begun: g.world.session.engine.cfg.Now()}
	if d.r.Generator == "" {
		d.r.Generator = generatorName(gen)
	}
	d.r.Generator, _ = clip(d.r.Generator, maxLabel)
	d.regenerations = r.Regenerations
	if d.regenerations == 0 {
		d.regenerations = agents.MaxRetries
	}
	d.regenerations = min(max(d.regenerations, 0), 100)

	d.all.enrol(d)
	defer d.all.dismiss(d)
	err := d.run(ctx)
	d.out.Total = d.elapsed()
	return d.out, err
}

// driver is one call of [Agent.Generate]. It belongs to the caller's goroutine.
type driver struct {
	agent         *Agent
	all           *generations
	generator     Generator
	r             GenerateRequest
	begun         time.Time
	regenerations int  // that may still be made
	retries       int  // of the generator that were made
	admitted      bool // and not reported yet
	spoken        bool // there has been a token
	out           Generated

	dropped bool // the user gave it up while it had no token; guarded by all.mu
}

// breaker is the key of the breaker that it goes by.
func (d *driver) breaker() [2]string { return [2]string{d.agent.id, d.r.Generator} }

func (d *driver) tellBreaker(before, after agents.BreakerState) {
	if s := d.agent.world.session; before != after {
		s.engine.cfg.Metrics.Breaker(s.Name(), d.agent.id, after)
	}
}

func (d *driver) key() [2]string { return [2]string{d.agent.id, d.r.ReqID} }

func (d *driver) elapsed() time.Duration { return d.now().Sub(d.begun) }

func (d *driver) now() time.Time { return d.agent.world.session.engine.cfg.Now() }

func (d *driver) run(ctx context.Context) error {
	for ; ; d.regenerations-- {
		stale, err := d.generation(ctx)
		if !stale || d.regenerations == 0 {
			return err
		}
	}
}

// generation goes by one token, with one view. Stale says that it is out of
// date and may be begun anew; err says so too.
func (d *driver) generation(ctx context.Context) (stale bool, err error) {
	if err := d.admit(); err != nil {
		return false, err
	}
	defer d.report(unknown) // of what has not been reported: it did not come to that
	gen, view, err := d.begin(ctx)
	if err != nil || gen == nil {
		return false, err
	}
	// However it ends, no token lingers. What ended the token has ended
	// the context too.
	reason := ReasonGivenUp
	defer func() {
		if gen.ctx.Err() == nil || ctx.Err() != nil {
			_ = gen.End(context.WithoutCancel(ctx), reason)
		}
	}()
	if d.all.wasDropped(d) { // while there was no token
		if err := gen.End(ctx, agents.ReasonUser); err != nil {
			return false, err
		}
		d.told(ctx, gen)
		return d.interrupted(ctx, gen)
	}

	prompt := d.r.Prompt(view)
	limit := gen.token.Budget
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
			reason = ReasonFailed
			return false, fault
		}
		d.retries++
		if !d.wait(gen, max(delay, fault.RetryAfter)) {
			return d.interrupted(ctx, gen)
		}
		if err := d.admit(); err != nil {
			reason = ReasonFailed
			return false, err
		}
	}
}

// maxRetryAfter is how long a wait may be that a refusal asks for.
const maxRetryAfter = 5 * time.Second

// admit asks whether the generator may be asked.
func (d *driver) admit() error {
	if e := d.all.streams.admit(d); e != nil {
		return d.blame(e)
	}
	d.admitted = true
	return nil
}

// blame completes what a generator did wrong.
func (d *driver) blame(e *GeneratorError) *GeneratorError {
	e.Generator, e.AgentID, e.ReqID = d.r.Generator, d.agent.id, d.r.ReqID
	return e.judge()
}

// report says how the generator did, once for each time that it was admitted.
func (d *driver) report(v verdict) {
	if d.admitted {
		d.admitted = false
		d.all.streams.report(d, v)
	}
}

// begin takes the view and the token that goes by it, at once: nothing comes
// in between. Without an error there is no token if the request has an answer.
func (d *driver) begin(ctx context.Context) (*Generation, agents.View, error) {
	var view agents.View
	answered := false
	request := agents.TokenRequest{
		ReqID: d.r.ReqID, Reads: d.r.Reads, Classes: d.r.Classes, Deadline: d.r.Deadline, Budget: d.r.Budget,
	}
	gen, err := d.agent.begin(ctx, request, func(t *turn, r *agents.TokenRequest) error {
		if d.out.Outcome, answered = t.core.Answered(r.AgentID, r.ReqID); answered {
			return errAnswered
		}
		view, _ = t.core.View(r.AgentID) // whoever is nobody gets no token
		r.ContextSeq = view.ViewSeq
		return nil
	})
	if answered {
		return nil, view, d.repeat(ctx)
	}
	return gen, view, err
}

var errAnswered = errors.New("sajou: the request has its answer")

// repeat returns the answer that the request has, once it is durable.
func (d *driver) repeat(ctx context.Context) error {
	if err := d.agent.world.Settle(ctx); err != nil {
		return err
	}
	return d.out.Outcome.Err()
}

// stream asks the generator once. The fault is there if it is its own, and
// only with [FinishError].
func (d *driver) stream(ctx context.Context, gen *Generation, p Prompt) (a Attempt, fault *GeneratorError) {
	a = Attempt{
		AgentID: d.agent.id, ReqID: d.r.ReqID, Number: len(d.out.Attempts) + 1, Generator: d.r.Generator,
	}
	var text strings.Builder
	began := d.now()
	st := d.all.streams.start(gen.ctx, d.agent.id, d.generator, p)
	defer func() {
		st.leave()
		d.tellStream(gen, &a, d.now().Sub(began))
	}()
	most := d.maxText()
	for a.Finish == "" {
		var token string
		ended := false
		select {
		case <-gen.ctx.Done():
		case token = <-st.tokens:
		case <-st.done:
			ended = true
		}
		if d.halted(ctx, gen) { // first of all, whatever else there is
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
	var cut bool // what is no UTF-8 is longer when it is made so
	a.Text, cut = clip(text.String(), most)
	a.Cut = a.Cut || cut
	return a, fault
}

// tellStream tells the metrics that a stream is over.
func (d *driver) tellStream(gen *Generation, a *Attempt, took time.Duration) {
	s := d.agent.world.session
	end := GenerationCancelled
	switch a.Finish {
	case FinishStop:
		end = GenerationDone
	case FinishBudget:
		end = GenerationCut
	case FinishError:
		end = GenerationFailed
	default: // whatever else ends it
		if interruption(gen) != nil {
			s.engine.cfg.Metrics.Halted(s.Name(), d.agent.id, max(d.now().Sub(gen.cancelled), 0))
		}
	}
	s.engine.cfg.Metrics.Generated(s.Name(), d.agent.id, end, max(took, 0), a.Tokens)
}

// maxText is how many bytes of text the record of an attempt has room for.
func (d *driver) maxText() int {
	return max(min(d.agent.world.session.engine.maxEntry(), agents.MaxPayload)-maxRecordOverhead-maxAttempt, 0)
}

// halted reports whether a generation is to stop. Its deadline may have passed
// without anybody having looked.
func (d *driver) halted(ctx context.Context, gen *Generation) bool {
	w := d.agent.world
	if at := gen.token.Deadline; gen.ctx.Err() == nil && at > 0 && w.clock.now() >= at {
		if err := w.turn((*turn).due); err == nil {
			d.told(ctx, gen)
		}
	}
	return gen.ctx.Err() != nil
}

// told waits until a generation that has been interrupted knows it.
func (d *driver) told(ctx context.Context, gen *Generation) {
	if err := d.agent.world.Settle(context.WithoutCancel(ctx)); err != nil {
		gen.cancel(err) // nobody else will
	}
}

// keep records an attempt. What would stand does so only if the generation
// has not been interrupted; held says that it stands, and its token with it.
func (d *driver) keep(ctx context.Context, gen *Generation, a *Attempt) (held bool, err error) {
	w, ctx := d.agent.world, context.WithoutCancel(ctx)
	record := func(t *turn) ([]agents.Record, error) {
		if held = t.holds(gen); a.Finish.Stands() && !held {
			return nil, nil
		}
		return t.core.Generated(a.AgentID, a.ReqID, a.value())
	}
	if a.Finish.Stands() {
		if err = w.do(ctx, record, nil); err == nil && !held {
			d.told(ctx, gen)
			a.Finish = FinishInterrupted
		}
	}
	if !a.Finish.Stands() {
		if i := interruption(gen); a.Finish == FinishInterrupted && i != nil {
			if a.Reason = i.Reason; i.Reason == agents.ReasonTimeout {
				a.Finish = FinishDeadline
			}
		} else if a.Finish == FinishInterrupted {
			a.Reason = ReasonGivenUp
		}
		if err == nil {
			err = w.do(ctx, record, nil)
		}
		held = false
	}
	switch a.Finish {
	case FinishStop, FinishBudget:
		d.report(well)
	case FinishError, FinishDeadline:
		d.report(ill)
	default:
		d.report(unknown)
	}
	d.out.Attempts = append(d.out.Attempts, *a)
	d.out.Text, d.out.Finish = a.Text, a.Finish
	if cause := context.Cause(gen.ctx); err != nil && cause != nil {
		err = cause // why it cannot be recorded either
	}
	return held, err
}

// holds reports whether a generation has its token still.
func (t *turn) holds(g *Generation) bool {
	if !t.running.has(g.token.AgentID, g.token.ReqID, g.seq) {
		return false
	}
	for _, token := range t.core.Tokens(g.token.AgentID) {
		if token.ReqID == g.token.ReqID {
			return true
		}
	}
	return false
}

// interrupted says why a generation has stopped that did not end by itself.
func (d *driver) interrupted(ctx context.Context, gen *Generation) (stale bool, err error) {
	err = context.Cause(gen.ctx)
	if i := interruption(gen); i != nil {
		d.out.Interruptions = append(d.out.Interruptions, i.Cancellation)
		return strings.HasPrefix(i.Reason, agents.ReasonStale), err
	}
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		// Somebody else has answered the request.
		err = d.agent.world.do(ctx, func(t *turn) ([]agents.Record, error) {
			d.out.Outcome, _ = t.core.Answered(d.agent.id, d.r.ReqID)
			return nil, nil
		}, nil)
		if err == nil {
			err = d.repeat(ctx)
		}
	}
	return false, err
}

// interruption returns why the world has interrupted a generation, nil if it
// has not: the context's parent may have been another one's.
func interruption(g *Generation) *Interrupted {
	i, ok := errors.AsType[*Interrupted](context.Cause(g.ctx))
	if !ok || i.Agent != g.token.AgentID || i.ReqID != g.token.ReqID {
		return nil
	}
	return i
}

// wait returns after a delay, or false if the generation is interrupted before.
func (d *driver) wait(gen *Generation, delay time.Duration) bool {
	due := make(chan struct{})
	stop := d.agent.world.session.engine.cfg.AfterFunc(delay, func() { close(due) })
	defer stop()
	select {
	case <-due:
	case <-gen.ctx.Done():
	}
	return gen.ctx.Err() == nil
}

// answered does with an answer what is to be done. Reason is with what the token ends
// if that does not end it.
func (d *driver) answered(ctx context.Context, gen *Generation, text string, reason *string) (stale bool, err error) {
	var in agents.Intent
	asks := false
	if d.r.Intent != nil {
		in, asks = d.r.Intent(text)
	}
	if !asks {
		*reason = ReasonCompleted
		return false, nil
	}
	in.ReqID, in.ContextSeq = gen.token.ReqID, gen.token.ContextSeq
	for n := 0; ; n++ {
		d.out.Outcome, err = d.agent.Submit(ctx, in)
		r, ok := errors.AsType[*agents.Rejection](err)
		if !ok {
			return false, err
		}
		if r.Code == agents.StaleContext {
			*reason = r.Reason
			d.out.Interruptions = append(d.out.Interruptions,
				agents.Cancellation{Agent: d.agent.id, ReqID: in.ReqID, Reason: r.Reason, At: d.agent.world.Now()})
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

// enrol notes a driver, so that it can be cancelled while it has no token.
func (r *generations) enrol(d *driver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drivers[d.key()] = append(r.drivers[d.key()], d)
}

func (r *generations) dismiss(d *driver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := d.key()
	for i, other := range r.drivers[key] {
		if other == d {
			r.drivers[key] = append(r.drivers[key][:i:i], r.drivers[key][i+1:]...)
			break
		}
	}
	if len(r.drivers[key]) == 0 {
		delete(r.drivers, key)
	}
}

// drop has the drivers of a request go no further. It reports whether there are
// any.
func (r *generations) drop(id, reqID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.drivers[[2]string{id, reqID}]
	for _, d := range list {
		d.dropped = true
	}
	return len(list) > 0
}

func (r *generations) wasDropped(d *driver) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return d.dropped
}
