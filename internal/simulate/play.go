package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// playIn plays the simulation in an empty session of [session.TimeManual] and sets the
// results of r. It calls tell for each event as it happens; an error of tell ends the
// play. The other errors are a [*LimitError] and those of ctx and of the session.
func (s *Simulation) playIn(ctx context.Context, ses *sajou.Session, tell func(*Event) error, r *Recording) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the generations that are still running
	p := &play{
		s: s, ses: ses, world: ses.Agents(), tell: tell, judge: newJudge(s.expect), meter: meter{most: s.limits},
		done: map[*action]int{}, looked: -1, size: len(s.world), tickAt: s.ticks.first,
	}
	if err := p.begin(ctx); err != nil {
		return err
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	return p.end(ctx, r)
}

// play is one play under way.
type play struct {
	s     *Simulation
	ses   *sajou.Session
	world *agentslive.Agents
	tell  func(*Event) error
	judge *judge
	meter meter

	now     time.Duration
	looked  time.Duration                           // expectations up to here have been checked
	agenda  flow.Queue[func(context.Context) error] // actions by the time at which they are due
	done    map[*action]int                         // how often each was performed
	doings  uint64                                  // counts what may have changed the world
	size    int                                     // of the world, roughly, in bytes
	cast    []*scriptedAgent                        // in the order of the file
	waiting []*pending                              // submissions without an outcome
	running []*generation

	tickAt time.Duration
	frame  uint64
}

// begin puts everything on the agenda. At the same time agents join first, then the
// events happen, and then the scripts run, each in the order of the file.
func (p *play) begin(ctx context.Context) error {
	if p.s.config != nil {
		if err := p.world.Configure(ctx, p.s.config); err != nil {
			return err
		}
	}
	if p.s.world != nil {
		if err := p.world.Begin(ctx, p.s.world); err != nil {
			return err
		}
	}
	for i := range p.s.agents {
		scripted := newScriptedAgent(&p.s.agents[i])
		p.cast = append(p.cast, scripted)
		p.at(scripted.joins, func(ctx context.Context) error { return p.join(ctx, scripted) })
	}
	for i := range p.s.events {
		e := &p.s.events[i]
		p.at(e.at, func(ctx context.Context) error { return p.happen(ctx, e) })
	}
	for _, scripted := range p.cast {
		for i := range scripted.script {
			p.at(scripted.script[i].at, func(ctx context.Context) error { return p.act(ctx, scripted, &scripted.script[i].do) })
		}
	}
	return nil
}

func (p *play) at(at time.Duration, do func(context.Context) error) { p.agenda.Put(at, do) }

// run advances from one due instant to the next.
func (p *play) run(ctx context.Context) error {
	for {
		at, ok := p.next()
		if !ok || p.s.bounded && at > p.s.until {
			return nil
		}
		if at > maxTime {
			return &LimitError{"milliseconds", maxTime.Milliseconds(), p.now}
		}
		if err := p.reach(ctx, at); err != nil {
			return err
		}
		if err := p.instant(ctx); err != nil {
			return err
		}
		p.judge.look(p.now, p.view)
		p.looked = p.now
	}
}

// next returns the next instant at which something is due.
func (p *play) next() (at time.Duration, ok bool) {
	sooner := func(t time.Duration, due bool) {
		if t = max(t, p.now); due && (!ok || t < at) {
			at, ok = t, true
		}
	}
	sooner(p.agenda.Next())
	sooner(p.world.Next())
	sooner(p.judge.looks(p.looked))
	sooner(p.tickAt, p.ticks())
	for _, scripted := range p.cast {
		sooner(scripted.reads(p.now, p.doings))
	}
	return at, ok
}

func (p *play) ticks() bool { return p.s.ticks.every > 0 && p.tickAt <= p.s.until }

// reach advances session time to an instant.
func (p *play) reach(ctx context.Context, at time.Duration) error {
	if err := p.meter.step(p.now); err != nil {
		return err
	}
	p.now = at
	if err := p.world.Advance(ctx, at); err != nil {
		return err
	}
	return p.settle(ctx)
}

// instant performs everything that is due now. A tick comes after all submissions of
// its time.
func (p *play) instant(ctx context.Context) error {
	for {
		do, ok := p.agenda.Get(p.now)
		switch {
		case ok:
		case p.ticks() && p.tickAt <= p.now:
			do = p.tick
		default:
			return nil
		}
		if err := p.meter.step(p.now); err != nil {
			return err
		}
		if err := do(ctx); err != nil {
			return err
		}
		p.doings++
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
}

// settle reports the consequences of an action: outcomes first, then observations,
// then the generations that these made stale.
func (p *play) settle(ctx context.Context) error {
	if err := p.world.Settle(ctx); err != nil {
		return err
	}
	if err := p.outcomes(ctx); err != nil {
		return err
	}
	for _, scripted := range p.cast {
		if err := p.observe(ctx, scripted); err != nil {
			return err
		}
	}
	return p.interruptions(ctx)
}

func (p *play) tick(ctx context.Context) error {
	p.frame++
	n, err := p.world.Tick(ctx, agentslive.Tick{
		SimTime: world.Seconds(p.now), DeltaTime: world.Seconds(p.s.ticks.every), FrameNumber: p.frame, SourceID: p.s.ticks.source,
	})
	p.tickAt += p.s.ticks.every
	if err != nil || n == 0 {
		return err
	}
	return p.say(&Event{What: whatTicked, Of: n, Frame: p.frame})
}

// say reports an event.
func (p *play) say(e *Event) error {
	e.At = p.now
	if looked := p.judge.hear(e); looked > 0 {
		size := 0
		for _, op := range e.Delta.Patches {
			size += len(op.Value)
		}
		if err := p.meter.spend(size, looked, p.now); err != nil {
			return err
		}
	}
	return p.tell(e)
}

// view returns the view of an agent as of its last observation.
func (p *play) view(id string) signal.Value {
	for _, scripted := range p.cast {
		if scripted.registration.AgentID == id {
			return scripted.view
		}
	}
	return nil
}

// end advances to the end of the simulation and checks the expectations.
func (p *play) end(ctx context.Context, r *Recording) error {
	if p.s.bounded && p.s.until > p.now {
		if err := p.reach(ctx, p.s.until); err != nil {
			return err
		}
	}
	if err := p.withdraw(ctx); err != nil {
		return err
	}
	for _, scripted := range p.cast {
		if scripted.hand != nil {
			scripted.hand.Close()
		}
	}
	r.At = p.now
	for e, err := range p.ses.Entries(ctx, 1) {
		if err != nil {
			return err
		}
		if record, err := session.WorldRecordOf(&e); err == nil && record.Word == agents.WordEffect {
			effect, err := world.ParseEffect(record.Value)
			if err != nil {
				return fmt.Errorf("entry %d: %w", e.Seq, err)
			}
			p.judge.effect(effect.SourceID, effect.Kind)
			r.Effects++
		}
	}
	p.judge.look(-1, p.view)
	r.Failures = p.judge.verdict()
	return nil
}
