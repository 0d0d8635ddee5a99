package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// puppet is a scripted agent in a play.
type puppet struct {
	*agent
	hand  *sajou.Agent // nil unless it takes part
	view  signal.Value // what it has read
	fired []int        // how often each reaction was

	// Of a slow one.
	read time.Duration // when it read last, if it ever has
	ever bool
	idle uint64 // doings after which there was nothing to read
}

var emptyView = func() signal.Value {
	v, err := signal.ParseValue([]byte(`{"visible_entities":{},"visible_relationships":{}}`))
	if err != nil {
		panic("simulate: " + err.Error())
	}
	return v
}()

func newPuppet(a *agent) *puppet {
	return &puppet{agent: a, view: emptyView, fired: make([]int, len(a.on))}
}

func (p *play) join(ctx context.Context, who *puppet) (err error) {
	if who.hand, err = p.world.RegisterAs(ctx, who.registration); err != nil {
		return fmt.Errorf("agent %q joins at %v: %w", who.registration.AgentID, p.now, err)
	}
	return p.say(&Event{What: Joined, Agent: who.registration.AgentID})
}

func (p *play) leave(ctx context.Context, who *puppet) error {
	if who.hand == nil {
		return nil
	}
	hand := who.hand
	who.hand = nil
	if err := hand.Leave(ctx); err != nil {
		return err
	}
	return p.say(&Event{What: Left, Agent: who.registration.AgentID})
}

// reads returns when the puppet has something to read, or looks whether it has.
func (who *puppet) reads(now time.Duration, doings uint64) (time.Duration, bool) {
	if who.hand == nil {
		return 0, false
	}
	at, ok := who.hand.NextAt()
	every := who.readsEvery
	if every == 0 {
		return at, ok
	}
	if !ok && who.idle == doings {
		return 0, false
	}
	at = max(at, now)
	slot := at + (every-at%every)%every
	if who.ever && slot <= who.read {
		slot = who.read - who.read%every + every
	}
	return slot, true
}

// observe has a puppet read what has arrived: all of it, or if it is slow and its
// time has come, one observation.
func (p *play) observe(ctx context.Context, who *puppet) error {
	if who.readsEvery > 0 {
		if at, ok := who.reads(p.now, p.doings); !ok || at > p.now {
			return nil
		}
		who.read, who.ever = p.now, true
		some, err := p.readOne(ctx, who)
		if !some {
			who.idle = p.doings
		}
		return err
	}
	return p.readAll(ctx, who)
}

func (p *play) readAll(ctx context.Context, who *puppet) error {
	for {
		some, err := p.readOne(ctx, who)
		if err != nil || !some {
			return err
		}
	}
}

// readOne has a puppet read one observation, and react to it.
func (p *play) readOne(ctx context.Context, who *puppet) (some bool, err error) {
	if who.hand == nil {
		return false, nil
	}
	o, ok, err := who.hand.Poll(ctx)
	if err != nil || !ok {
		return false, err
	}
	if err := p.meter.step(p.now); err != nil {
		return false, err
	}
	before := who.view
	if who.view, err = agents.ApplyPatch(before, o.Patches); err != nil {
		return false, fmt.Errorf("what %q is told at %v does not apply to what it was told before: %w", o.AgentID, p.now, err)
	}
	if digest := digestOf(o.AgentID, who.view); digest != o.ContextDigest {
		return false, fmt.Errorf("what %q is told at %v leads to a view of digest %s, not %s", o.AgentID, p.now, digest, o.ContextDigest)
	}
	if err := p.meter.spend(len(who.view), 4+2*len(who.on), p.now); err != nil {
		return false, err
	}
	if err := p.say(&Event{What: Observed, Agent: o.AgentID, Delta: o.Delta}); err != nil {
		return false, err
	}
	for i := range who.on {
		r := &who.on[i]
		if who.fired[i] == r.times || !r.fires(before, who.view) {
			continue
		}
		if err := p.meter.reaction(p.now); err != nil {
			return false, err
		}
		who.fired[i]++
		p.at(p.now+r.after, func(ctx context.Context) error { return p.act(ctx, who, &r.do) })
	}
	return true, nil
}

// digestOf returns what the context digest of a view must be.
func digestOf(id string, view signal.Value) string {
	v := agents.View{AgentID: id}
	v.VisibleEntities, _ = view.Get("visible_entities")
	v.VisibleRelationships, _ = view.Get("visible_relationships")
	return v.Digest()
}

// fires reports whether what a reaction waits for has become so.
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

// act does an action of a puppet.
func (p *play) act(ctx context.Context, who *puppet, do *action) error {
	p.done[do]++
	id := who.registration.AgentID
	again := func(reqID string) string {
		if n := p.done[do]; n > 1 {
			return fmt.Sprintf("%s.%d", reqID, n)
		}
		return reqID
	}
	switch {
	case do.submit != nil:
		in := do.submit.intent(id, again(do.submit.reqID), newFiller(who.view, ""))
		if do.submit.current {
			in.ContextSeq = who.context()
		}
		return p.ask(ctx, in, nil)
	case do.generate != nil:
		return p.generate(ctx, who, do.generate, again(do.generate.intent.reqID), 1)
	case do.cancel != "":
		return p.cancel(ctx, who, do.cancel)
	default:
		return p.leave(ctx, who)
	}
}

// context returns the view_seq of what the puppet has read.
func (who *puppet) context() uint64 {
	if who.hand == nil {
		return 0
	}
	return who.hand.ViewSeq()
}

func (s *submission) intent(agentID, reqID string, f *filler) agents.Intent {
	return agents.Intent{
		Kind: s.kind, Payload: f.payload(s.payload), ContextSeq: s.contextSeq, ReqID: reqID, AgentID: agentID,
		Priority: s.priority, Unprioritized: s.unprioritized, SchemaVersion: s.version,
	}
}

func (p *play) cancel(ctx context.Context, who *puppet, reqID string) error {
	e := &Event{What: Called, Agent: who.registration.AgentID, ReqID: reqID}
	if who.hand != nil {
		found, err := who.hand.Cancel(ctx, reqID)
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

// asked is something that was asked for.
type asked struct {
	event     *Event
	submitted *sajou.Submitted
	by        *generation // that it comes from, if it does
}

// ask submits an intent.
func (p *play) ask(ctx context.Context, in agents.Intent, by *generation) error {
	return p.submit(ctx, agents.Submission{Intent: &in}, &asked{
		event: &Event{What: Asked, Agent: in.AgentID, ReqID: in.ReqID, Kind: in.Kind, Payload: in.Payload}, by: by,
	})
}

// happen submits an event of the scenario.
func (p *play) happen(ctx context.Context, e *event) error {
	draft := e.draft
	return p.submit(ctx, agents.Submission{Draft: &draft}, &asked{
		event: &Event{What: Happened, Agent: draft.SourceID, Kind: draft.Kind, Payload: draft.Payload},
	})
}

func (p *play) submit(ctx context.Context, s agents.Submission, a *asked) (err error) {
	// Whatever comes of it, each agent's view of the world may have to be looked at.
	p.size += len(a.event.Payload)
	for _, who := range p.puppets {
		if err := p.meter.spend(p.size, 1+len(who.registration.Policy)/256, p.now); err != nil {
			return err
		}
	}
	if a.submitted, err = p.world.Ask(ctx, s); err != nil {
		return err
	}
	p.waiting = append(p.waiting, a)
	return nil
}

// outcomes tells those that are known now, in the order in which they were asked
// for.
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

func (p *play) outcome(ctx context.Context, a *asked) error {
	o, err := a.submitted.Wait(ctx)
	if err != nil && o.Rejection == nil {
		return err
	}
	e := a.event
	e.Status, e.GlobalSeq = o.Status.String(), o.GlobalSeq
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

// withdraw takes back what no tick has decided.
func (p *play) withdraw(ctx context.Context) error {
	if len(p.waiting) == 0 {
		return nil
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	for _, a := range p.waiting {
		if _, err := a.submitted.Wait(over); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("what no tick has decided cannot be taken back: %w", err)
		}
		a.event.Status = statusUndecided
		if err := p.say(a.event); err != nil {
			return err
		}
	}
	p.waiting = nil
	return ctx.Err()
}
