package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	agentview "github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// scriptedAgent is an agent of the simulation while it is played.
type scriptedAgent struct {
	*agent
	hand  *agentslive.Agent // nil unless it is registered
	view  signal.Value      // what it has read
	fired []int             // how often each reaction has fired

	// Of an agent with reads_every.
	read time.Duration // when it last read, if ever
	ever bool
	idle uint64 // the count of changes after which there was nothing to read
}

var emptyView = func() signal.Value {
	v, err := signal.ParseValue([]byte(`{"visible_entities":{},"visible_relationships":{}}`))
	if err != nil {
		panic("simulate: " + err.Error())
	}
	return v
}()

func newScriptedAgent(a *agent) *scriptedAgent {
	return &scriptedAgent{agent: a, view: emptyView, fired: make([]int, len(a.on))}
}

func (p *play) join(ctx context.Context, scripted *scriptedAgent) (err error) {
	if scripted.hand, err = p.world.RegisterAs(ctx, scripted.registration); err != nil {
		return fmt.Errorf("agent %q joins at %v: %w", scripted.registration.AgentID, p.now, err)
	}
	return p.say(&Event{What: whatJoined, Agent: scripted.registration.AgentID})
}

func (p *play) leave(ctx context.Context, scripted *scriptedAgent) error {
	if scripted.hand == nil {
		return nil
	}
	hand := scripted.hand
	scripted.hand = nil
	if err := hand.Leave(ctx); err != nil {
		return err
	}
	return p.say(&Event{What: whatLeft, Agent: scripted.registration.AgentID})
}

// reads returns when the agent next reads an observation, or next checks for one.
func (scripted *scriptedAgent) reads(now time.Duration, doings uint64) (time.Duration, bool) {
	if scripted.hand == nil {
		return 0, false
	}
	at, ok := scripted.hand.NextAt()
	every := scripted.readsEvery
	if every == 0 {
		return at, ok
	}
	if !ok && scripted.idle == doings {
		return 0, false
	}
	at = max(at, now)
	slot := at + (every-at%every)%every
	if scripted.ever && slot <= scripted.read {
		slot = scripted.read - scripted.read%every + every
	}
	return slot, true
}

// observe lets an agent read the observations that have arrived: all of them, or
// one if it has reads_every and its time has come.
func (p *play) observe(ctx context.Context, scripted *scriptedAgent) error {
	if scripted.readsEvery > 0 {
		if at, ok := scripted.reads(p.now, p.doings); !ok || at > p.now {
			return nil
		}
		scripted.read, scripted.ever = p.now, true
		some, err := p.readOne(ctx, scripted)
		if !some {
			scripted.idle = p.doings
		}
		return err
	}
	return p.readAll(ctx, scripted)
}

func (p *play) readAll(ctx context.Context, scripted *scriptedAgent) error {
	for {
		some, err := p.readOne(ctx, scripted)
		if err != nil || !some {
			return err
		}
	}
}

// readOne lets an agent read one observation and schedules its reactions.
func (p *play) readOne(ctx context.Context, scripted *scriptedAgent) (some bool, err error) {
	if scripted.hand == nil {
		return false, nil
	}
	o, ok, err := scripted.hand.Poll(ctx)
	if err != nil || !ok {
		return false, err
	}
	if err := p.meter.step(p.now); err != nil {
		return false, err
	}
	before := scripted.view
	if scripted.view, err = jsondoc.ApplyPatch(before, o.Patches); err != nil {
		return false, fmt.Errorf("the delta of %q at %v does not apply to its view: %w", o.AgentID, p.now, err)
	}
	if digest := digestOf(o.AgentID, scripted.view); digest != o.ContextDigest() {
		return false, fmt.Errorf("the delta of %q at %v gives a view of digest %s, not %s", o.AgentID, p.now, digest, o.ContextDigest())
	}
	if err := p.meter.spend(len(scripted.view), 4+2*len(scripted.on), p.now); err != nil {
		return false, err
	}
	if err := p.say(&Event{What: whatObserved, Agent: o.AgentID, Delta: o.Delta}); err != nil {
		return false, err
	}
	for i := range scripted.on {
		r := &scripted.on[i]
		if scripted.fired[i] == r.times || !r.fires(before, scripted.view) {
			continue
		}
		if err := p.meter.reaction(p.now); err != nil {
			return false, err
		}
		scripted.fired[i]++
		p.at(p.now+r.after, func(ctx context.Context) error { return p.act(ctx, scripted, &r.do) })
	}
	return true, nil
}

// digestOf returns the context digest that a view must have.
func digestOf(id string, view signal.Value) string {
	v := agentview.View{AgentID: id}
	v.VisibleEntities, _ = view.Get("visible_entities")
	v.VisibleRelationships, _ = view.Get("visible_relationships")
	return v.Digest()
}

// fires reports whether the condition of a reaction has become true.
func (r *reaction) fires(before, after signal.Value) bool {
	old, was := lookup(before, r.path)
	now, is := lookup(after, r.path)
	switch r.test {
	case isEqual:
		return is && sameValue(now, r.value) && (!was || !sameValue(old, r.value))
	case isThere:
		return is && !was
	case isGone:
		return was && !is
	default:
		return was != is || is && !sameValue(old, now)
	}
}

// act performs an action of an agent.
func (p *play) act(ctx context.Context, scripted *scriptedAgent, do *action) error {
	p.done[do]++
	id := scripted.registration.AgentID
	again := func(reqID string) string {
		if n := p.done[do]; n > 1 {
			return fmt.Sprintf("%s.%d", reqID, n)
		}
		return reqID
	}
	switch {
	case do.submit != nil:
		in := do.submit.intent(id, again(do.submit.reqID), newFiller(scripted.view, ""))
		if do.submit.current {
			in.ContextSeq = scripted.context()
		}
		return p.ask(ctx, in, nil)
	case do.generate != nil:
		return p.generate(ctx, scripted, do.generate, again(do.generate.intent.reqID), 1)
	case do.cancel != "":
		return p.cancel(ctx, scripted, do.cancel)
	default:
		return p.leave(ctx, scripted)
	}
}

// context returns the view_seq of the last observation that the agent has read.
func (scripted *scriptedAgent) context() uint64 {
	if scripted.hand == nil {
		return 0
	}
	return scripted.hand.ViewSeq()
}

func (s *submission) intent(agentID, reqID string, f *filler) agents.Intent {
	return agents.Intent{
		Kind: s.kind, Payload: f.payload(s.payload), ContextSeq: s.contextSeq, ReqID: reqID, AgentID: agentID,
		Priority: s.priority, Unprioritized: s.unprioritized, SchemaVersion: s.version,
	}
}

func (p *play) cancel(ctx context.Context, scripted *scriptedAgent, reqID string) error {
	e := &Event{What: whatCalled, Agent: scripted.registration.AgentID, ReqID: reqID}
	if scripted.hand != nil {
		found, err := scripted.hand.Cancel(ctx, reqID)
		if err != nil {
			return err
		}
		if found {
			return p.say(e)
		}
	}
	e.Status = statusNone
	return p.say(e)
}

// pending is a submission whose outcome has not been reported.
type pending struct {
	event     *Event
	submitted *agentslive.Submitted
	by        *generation // that made the intent, or nil
}

// ask submits an intent.
func (p *play) ask(ctx context.Context, in agents.Intent, by *generation) error {
	return p.submit(ctx, agents.Submission{Intent: &in}, &pending{
		event: &Event{What: whatAsked, Agent: in.AgentID, ReqID: in.ReqID, Kind: in.Kind, Payload: in.Payload}, by: by,
	})
}

// happen submits an event of the world.
func (p *play) happen(ctx context.Context, e *event) error {
	draft := e.draft
	return p.submit(ctx, agents.Submission{Draft: &draft}, &pending{
		event: &Event{What: whatHappened, Agent: draft.SourceID, Kind: draft.Kind, Payload: draft.Payload},
	})
}

func (p *play) submit(ctx context.Context, s agents.Submission, a *pending) (err error) {
	// Whatever the outcome, the view of each agent may have to be computed.
	p.size += len(a.event.Payload)
	for _, scripted := range p.cast {
		if err := p.meter.spend(p.size, 1+len(scripted.registration.Policy)/256, p.now); err != nil {
			return err
		}
	}
	if a.submitted, err = p.world.SubmitAsync(ctx, s); err != nil {
		return err
	}
	p.waiting = append(p.waiting, a)
	return nil
}

// outcomes reports the outcomes that are known now, in the order of submission.
func (p *play) outcomes(ctx context.Context) error {
	waiting := p.waiting
	p.waiting = nil
	for i, a := range waiting {
		select {
		case <-a.submitted.Done():
		default:
			p.waiting = append(p.waiting, a)
			continue
		}
		if err := p.outcome(ctx, a); err != nil {
			p.waiting = append(p.waiting, waiting[i+1:]...)
			return err
		}
	}
	return nil
}

func (p *play) outcome(ctx context.Context, a *pending) error {
	o, err := a.submitted.Wait(ctx)
	if err != nil && o.Rejection == nil {
		return err
	}
	e := a.event
	e.Status = o.Status.String()
	if o.OK() { // an account of the program, and so with numbers of the log
		if e.GlobalSeq, _, err = p.world.GlobalSeq(ctx, e.Agent, e.ReqID); err != nil {
			return err
		}
	}
	if r := o.Rejection; r != nil {
		e.Code, e.Reason = r.Code, r.Reason
		for _, problem := range r.Problems {
			if e.Reason != "" {
				e.Reason += "; "
			}
			e.Reason += problem.Path + ": " + problem.Reason
		}
	}
	if o.Status == agents.Accepted {
		if err := p.meter.effect(p.now); err != nil {
			return err
		}
	}
	if err := p.say(e); err != nil {
		return err
	}
	if a.by != nil && o.Rejection != nil {
		return p.refused(ctx, a.by, o.Rejection)
	}
	return nil
}

// withdraw cancels the submissions that no tick has decided.
func (p *play) withdraw(ctx context.Context) error {
	if len(p.waiting) == 0 {
		return nil
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	for _, a := range p.waiting {
		if _, err := a.submitted.Wait(over); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("a submission that no tick has decided cannot be withdrawn: %w", err)
		}
		a.event.Status = statusUndecided
		if err := p.say(a.event); err != nil {
			return err
		}
	}
	p.waiting = nil
	return ctx.Err()
}
