package replay

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Performer is a state that emits commands while it advances.
type Performer interface {
	projection.State
	Timed

	// Perform sets the sink that receives the commands from now on, nil for none.
	// With a sink, Advance also reports the progress of running actions.
	Perform(sink choreography.CommandSink)

	// UnderWay sends sink, for each action under way, its start with the time at which
	// it began, and an update of the present instant.
	UnderWay(sink choreography.CommandSink)
}

func performers(f *projection.Fold) []Performer {
	var ps []Performer
	for _, st := range f.States() {
		if p, ok := st.(Performer); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

func perform(ps []Performer, sink choreography.CommandSink) {
	for _, p := range ps {
		p.Perform(sink)
	}
}

// nextBoundary returns the earliest boundary of ps.
func nextBoundary[T Timed](ps []T) (at time.Duration, ok bool) {
	for _, p := range ps {
		if t, has := p.NextBoundary(); has && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// Commands sends sink the commands of all [Performer] states from one moment to
// another, both included. The commands at the instant of from are sent whether its
// entry or the passing of time caused them. Updates come at each entry and at each
// multiple of frame in session time while an action runs; a frame of zero means only
// at entries. Commands does not wait for session time; a sink that shows commands at
// their time does.
func (r *Replay) Commands(ctx context.Context, from, to Moment, frame time.Duration, sink choreography.CommandSink) error {
	if from.Compare(to) > 0 {
		return syntax(from.String()+".."+to.String(), "%v comes after %v", from, to)
	}
	end, err := r.timeOf(ctx, to)
	if err != nil {
		return err
	}
	f, err := r.before(ctx, from)
	if err != nil {
		return err
	}
	ps := performers(f)
	perform(ps, sink)
	defer perform(ps, nil)
	if f.Head().Seq < to.Seq {
		for e, err := range r.src.Entries(ctx, f.Head().Seq+1) {
			if err != nil {
				return fmt.Errorf("replay: read after entry %d: %w", f.Head().Seq, err)
			}
			if err := playFrames(ctx, f, ps, frame, e.At); err != nil {
				return err
			}
			if err := f.Apply(&e); err != nil {
				return fmt.Errorf("replay: %w", err)
			}
			if e.Seq == to.Seq {
				break
			}
		}
	}
	if err := playFrames(ctx, f, ps, frame, end); err != nil {
		return err
	}
	f.Advance(end)
	return nil
}

// playFrames advances f frame by frame to the last one before at.
func playFrames(ctx context.Context, f *projection.Fold, ps []Performer, frame, at time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if frame <= 0 {
		return nil
	}
	for t := (f.At()/frame + 1) * frame; t < at && t > 0; t += frame {
		if _, ok := nextBoundary(ps); !ok {
			return nil // no action runs, so no frame has an update
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		f.Advance(t)
	}
	return nil
}

// before returns the fold right before the instant of m: before its entry, or for a
// moment between entries, one nanosecond earlier.
func (r *Replay) before(ctx context.Context, m Moment) (*projection.Fold, error) {
	at, err := r.timeOf(ctx, m)
	if err != nil {
		return nil, err
	}
	if m.Offset > 0 {
		f, err := r.foldTo(ctx, m.Seq, nil, nil)
		if err != nil {
			return nil, err
		}
		f.Advance(at - 1)
		return f, nil
	}
	if m.Seq == 0 {
		return projection.NewFold(r.set, r.src.Genesis()), nil
	}
	f, err := r.foldTo(ctx, m.Seq-1, nil, nil)
	if err != nil {
		return nil, err
	}
	f.Advance(at)
	return f, nil
}

// maxBoundaries bounds the boundaries that are passed to find an end.
const maxBoundaries = 1_000_000

// Rest returns the moment after last at which no performance is under way. It does
// not wait for a performance without an end, and stops after a million boundaries.
func (r *Replay) Rest(ctx context.Context, last Moment) (Moment, error) {
	f, err := r.At(ctx, last)
	if err != nil {
		return last, err
	}
	ps := performers(f)
	began := f.At()
	for range maxBoundaries {
		if err := ctx.Err(); err != nil {
			return last, err
		}
		next, ok := nextBoundary(ps)
		if !ok || next == math.MaxInt64 || next < f.At() {
			break
		}
		before := f.At()
		f.Advance(next)
		if again := f.At(); again == before && next == before {
			break
		}
	}
	last.Offset += f.At() - began
	return last, nil
}

// timeOf returns the session time of m.
func (r *Replay) timeOf(ctx context.Context, m Moment) (time.Duration, error) {
	if err := r.checkSeq(m); err != nil {
		return 0, err
	}
	base, err := r.atOf(ctx, m.Seq)
	if err != nil {
		return 0, err
	}
	return r.instant(ctx, m, base)
}

// commandMoments advances f, which is at m, whose entry is at base. It calls visit at
// every moment that has commands other than updates, until visit returns false or the
// entry after last is reached.
func (r *Replay) commandMoments(
	ctx context.Context, f *projection.Fold, m Moment, base time.Duration, last eventlog.Seq,
	saw func(*projection.Fold), visit func(Moment) bool,
) error {
	ps := performers(f)
	var n commandCounter
	perform(ps, &n)
	defer perform(ps, nil)

	// drain visits the boundaries up to limit and reports whether to continue.
	drain := func(limit time.Duration) bool {
		for ctx.Err() == nil {
			at, ok := nextBoundary(ps)
			if !ok || at > limit {
				break
			}
			n = 0
			f.Advance(at)
			m.Offset = f.At() - base
			if n > 0 && !visit(m) {
				return false
			}
			if again, ok := nextBoundary(ps); ok && again <= at {
				break // Advance does not remove this boundary
			}
		}
		return true
	}

	if r.src.Head().Seq > m.Seq {
		for e, err := range r.src.Entries(ctx, m.Seq+1) {
			if err != nil {
				return fmt.Errorf("replay: read after entry %d: %w", m.Seq, err)
			}
			if !drain(e.At) {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err // drain has perhaps passed over a moment
			}
			if e.Seq > last {
				return nil
			}
			n = 0
			if err := f.Apply(&e); err != nil {
				return fmt.Errorf("replay: %w", err)
			}
			if saw != nil {
				saw(f)
			}
			f.Advance(e.At)
			m, base = Moment{Seq: e.Seq}, e.At
			if n > 0 && !visit(m) {
				return nil
			}
		}
	}
	drain(math.MaxInt64)
	return ctx.Err()
}

// commandCounter counts commands other than updates.
type commandCounter int

func (n *commandCounter) OnActionStart(choreography.ActionStart)       { *n++ }
func (n *commandCounter) OnActionUpdate(choreography.ActionUpdate)     {}
func (n *commandCounter) OnActionComplete(choreography.ActionComplete) { *n++ }
func (n *commandCounter) OnActionExecute(choreography.ActionExecute)   { *n++ }
func (n *commandCounter) OnInterrupt(choreography.Interrupt)           { *n++ }

var _ choreography.CommandSink = (*commandCounter)(nil)

// chunkStart returns the Seq at which a backward search from seq starts reading.
func chunkStart(seq eventlog.Seq) eventlog.Seq {
	if seq == 0 {
		return 0
	}
	return (seq - 1) / reach * reach
}
