package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

func performancesProjection() projection.Projection {
	return projection.Projection{
		Name:    ProjectionPerformances,
		Version: performancesVersion,
		New:     func() projection.State { return &Performances{scheduler: choreography.NewScheduler()} },
		Restore: func(data []byte) (projection.State, error) {
			s, err := choreography.RestoreScheduler(data)
			if err != nil {
				return nil, err
			}
			return &Performances{scheduler: s}, nil
		},
	}
}

// Performances is the state of [ProjectionPerformances]: the choreographer.
type Performances struct {
	scheduler *choreography.Scheduler

	// byID holds the active performances by id. It is made when an expression asks
	// for one and dropped before the scheduler changes.
	byID map[string]choreography.Performance

	// signal is that of entry seq, the last that could be decoded. It points
	// into the entry. The stage, which applies the same entry next, reads it.
	signal signal.Signal
	seq    eventlog.Seq
}

// PerformancesOf returns the state of [ProjectionPerformances] where a fold stands,
// nil if the fold does not have it. It belongs to the fold and changes with it.
func PerformancesOf(f *projection.Fold) *Performances {
	p, _ := f.State(ProjectionPerformances).(*Performances)
	return p
}

// Apply implements [projection.State].
func (p *Performances) Apply(e *eventlog.Entry) {
	p.byID = nil
	switch e.Kind {
	case eventlog.KindSignal:
		var err error
		if p.signal, err = signal.DecodeSound(e.Data); err == nil {
			p.seq = e.Seq
			p.scheduler.Signal(uint64(e.Seq), &p.signal)
		}
	case eventlog.KindDefine, eventlog.KindSession:
		// The writer refuses a declaration that cannot come into force, so a log
		// has one only if another program, or another version of this one, wrote
		// it. It then changes nothing. A declaration that exceeds the budget is
		// counted, so that opening the session can report it.
		for d, err := range DeclarationsOf(e) {
			if err == nil {
				err = p.scheduler.Define(d)
			}
			if errors.Is(err, definition.ErrBudget) {
				p.scheduler.NoteRefused()
			}
		}
	default:
	}
}

// Advance implements [projection.State].
func (p *Performances) Advance(at time.Duration) {
	p.byID = nil
	p.scheduler.Advance(at)
}

// Append implements [projection.State].
func (p *Performances) Append(dst []byte) []byte { return p.scheduler.AppendState(dst) }

// Scheduler returns the choreographer. Only the fold may change it. It implements
// [replay.Choreographer].
func (p *Performances) Scheduler() *choreography.Scheduler { return p.scheduler }

// Fits implements [projection.Placed]: every performance belongs to a signal that
// the log has by then.
func (p *Performances) Fits(head eventlog.Head, at time.Duration) error {
	for perf := range p.scheduler.Performances() {
		if perf.Seq > uint64(head.Seq) {
			return fmt.Errorf("sajou: performance %s of a signal that is to come", perf.ID())
		}
	}
	return fitsTime(p.scheduler.Now(), at)
}

// Perform makes the state send its commands to sink from now on; a nil sink drops
// them. It implements [replay.Performer].
func (p *Performances) Perform(sink choreography.CommandSink) { p.scheduler.SetSink(sink) }

// UnderWay sends sink the start and the progress of every running animation. It
// implements [replay.Performer].
func (p *Performances) UnderWay(sink choreography.CommandSink) { p.scheduler.UnderWay(sink) }

// NextBoundary returns the instant at which the next step begins or ends. It
// implements [replay.Performer].
func (p *Performances) NextBoundary() (time.Duration, bool) { return p.scheduler.Next() }

// Moving reports whether an animation is running. It implements [replay.Mover].
func (p *Performances) Moving() bool {
	for perf := range p.scheduler.Performances() {
		for range perf.Animations() {
			return true
		}
	}
	return false
}

// Len, Names and Member let expressions read one performance without making
// the view of all. They implement Members of package replay/where.

// Len returns the number of active performances.
func (p *Performances) Len() int { return p.scheduler.Active() }

// Names returns the ids of the active performances in the order they were made.
func (p *Performances) Names() []string {
	names := make([]string, 0, p.scheduler.Active())
	for perf := range p.scheduler.Performances() {
		names = append(names, perf.ID())
	}
	return names
}

// Member returns the view of one performance.
func (p *Performances) Member(id string) (any, bool) {
	if p.byID == nil {
		p.byID = make(map[string]choreography.Performance, p.scheduler.Active())
		for perf := range p.scheduler.Performances() {
			p.byID[perf.ID()] = perf
		}
	}
	perf, ok := p.byID[id]
	if !ok {
		return nil, false
	}
	return performanceView(perf, p.scheduler.Now()), true
}

// View shows the active performances by id.
func (p *Performances) View() any {
	view := make(map[string]any, p.scheduler.Active())
	for perf := range p.scheduler.Performances() {
		view[perf.ID()] = performanceView(perf, p.scheduler.Now())
	}
	return view
}

// performanceView shows one performance at session time now, for people and
// expressions: on, signal, handler, began, running, waiting, and correlationId
// if it has one. A name that it waits for is listed in waiting as an entity.
// Times are milliseconds of session time.
func performanceView(p choreography.Performance, now time.Duration) map[string]any {
	running, waiting := []any{}, []any{}
	for a := range p.Animations() {
		raw, eased := a.Progress(now)
		running = append(running, map[string]any{
			"action":   a.Action,
			"entity":   a.Entity,
			"params":   a.Params(),
			"easing":   a.Easing,
			"start":    projection.Millis(a.Start),
			"duration": projection.Millis(a.Duration),
			"elapsed":  projection.Millis(min(now-a.Start, a.Duration)),
			"raw":      raw,
			"progress": eased,
		})
	}
	for w := range p.Pauses() {
		kind := "wait"
		if w.Delay {
			kind = "delay"
		}
		waiting = append(waiting, map[string]any{
			"kind":   kind,
			"action": w.Action,
			"since":  projection.Millis(w.Since),
			"until":  projection.Millis(w.Until),
		})
	}
	if p.Queued {
		for name := range p.Guard() {
			waiting = append(waiting, map[string]any{
				"kind":   "guard",
				"entity": name,
				"since":  projection.Millis(p.Began),
			})
		}
	}
	view := map[string]any{
		"on":      p.On,
		"signal":  int64(p.Signal),
		"handler": p.Handler,
		"began":   projection.Millis(p.Began),
		"running": running,
		"waiting": waiting,
	}
	if p.Correlated {
		view["correlationId"] = p.CorrelationID
	}
	return view
}
