package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// Result is what came of a play.
type Result struct {
	At       time.Duration // where its time ended
	Effects  int
	Failures []Failure // expectations that are not fulfilled
}

// PlayIn plays the scenario in a session that has nothing in it and is of
// [sajou.TimeManual]. It tells each event as it happens; an error of tell ends the
// play. Errors: a [*LimitError], those of ctx and of the session.
func (s *Scenario) PlayIn(ctx context.Context, ses *sajou.Session, tell func(*Event) error) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // generations that have no end
	p := &play{
		s: s, ses: ses, world: ses.Agents(), tell: tell, judge: newJudge(s.expect), meter: meter{most: s.limits},
		done: map[*action]int{}, looked: -1, size: len(s.world), tickAt: s.ticks.first,
	}
	if err := p.begin(ctx); err != nil {
		return Result{}, err
	}
	if err := p.run(ctx); err != nil {
		return Result{}, err
	}
	return p.end(ctx)
}

// play is one play under way.
type play struct {
	s     *Scenario
	ses   *sajou.Session
	world *sajou.Agents
	tell  func(*Event) error
	judge *judge
	meter meter

	now     time.Duration
	looked  time.Duration                             // up to there expectations have been looked at
	agenda  agents.Queue[func(context.Context) error] // what is to be done, at its time
	done    map[*action]int                           // how often
	doings  uint64                                    // things that may have changed the world
	size    int                                       // of the world, about, in bytes
	puppets []*puppet                                 // in the order of the file
	waiting []*asked                                  // what has no outcome yet
	running []*generation

	tickAt time.Duration
	frame  uint64
}

// begin puts everything on the agenda. Of what happens at one time agents join
// first, then come the events, and then the scripts, each in the order of the file.
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
		who := newPuppet(&p.s.agents[i])
		p.puppets = append(p.puppets, who)
		p.at(who.joins, func(ctx context.Context) error { return p.join(ctx, who) })
	}
	for i := range p.s.events {
		e := &p.s.events[i]
		p.at(e.at, func(ctx context.Context) error { return p.happen(ctx, e) })
	}
	for _, who := range p.puppets {
		for i := range who.script {
			p.at(who.script[i].at, func(ctx context.Context) error { return p.act(ctx, who, &who.script[i].do) })
		}
	}
	return nil
}

func (p *play) at(at time.Duration, do func(context.Context) error) { p.agenda.Put(at, do) }

// run goes from one thing that is due to the next.
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

// next returns when something is due next.
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
	for _, who := range p.puppets {
		sooner(who.reads(p.now, p.doings))
	}
	return at, ok
}

func (p *play) ticks() bool { return p.s.ticks.every > 0 && p.tickAt <= p.s.until }

// reach lets time pass up to an instant.
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

// instant does what is due now. A tick comes after all that is asked at its time.
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

// settle tells what has come of what was done: outcomes, what agents are told,
// and which generations are in vain by that.
func (p *play) settle(ctx context.Context) error {
	if err := p.world.Settle(ctx); err != nil {
		return err
	}
	if err := p.outcomes(ctx); err != nil {
		return err
	}
	for _, who := range p.puppets {
		if err := p.observe(ctx, who); err != nil {
			return err
		}
	}
	return p.interruptions(ctx)
}

func (p *play) tick(ctx context.Context) error {
	p.frame++
	n, err := p.world.Tick(ctx, sajou.Tick{
		SimTime: agents.Seconds(p.now), DeltaTime: agents.Seconds(p.s.ticks.every), FrameNumber: p.frame, SourceID: p.s.ticks.source,
	})
	p.tickAt += p.s.ticks.every
	if err != nil || n == 0 {
		return err
	}
	return p.say(&Event{What: Ticked, Of: n, Frame: p.frame})
}

// say tells an event.
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

// view returns what an agent has been shown, as far as it has read it.
func (p *play) view(id string) signal.Value {
	for _, who := range p.puppets {
		if who.registration.AgentID == id {
			return who.view
		}
	}
	return nil
}

// end lets the rest of the time pass and looks what has come of it all.
func (p *play) end(ctx context.Context) (Result, error) {
	if p.s.bounded && p.s.until > p.now {
		if err := p.reach(ctx, p.s.until); err != nil {
			return Result{}, err
		}
	}
	if err := p.withdraw(ctx); err != nil {
		return Result{}, err
	}
	for _, who := range p.puppets {
		if who.hand != nil {
			who.hand.Close()
		}
	}
	r := Result{At: p.now}
	for e, err := range p.ses.Entries(ctx, 1) {
		if err != nil {
			return Result{}, err
		}
		if record, err := sajou.WorldRecordOf(&e); err == nil && record.Word == agents.WordEffect {
			effect, err := agents.ParseEffect(record.Value)
			if err != nil {
				return Result{}, fmt.Errorf("entry %d: %w", e.Seq, err)
			}
			p.judge.effect(effect.SourceID, effect.Kind)
			r.Effects++
		}
	}
	p.judge.look(-1, p.view)
	r.Failures = p.judge.verdict()
	return r, nil
}
