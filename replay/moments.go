package replay

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Timed is an optional interface of a state that changes at certain instants without
// an entry.
type Timed interface {
	// NextBoundary returns the next session time at which the state changes without
	// an entry, with or without commands, or false if it would stay as it is. A value
	// under way, such as a position, changes between boundaries too; see [Mover].
	NextBoundary() (time.Duration, bool)
}

// MaxRest bounds the session time after an entry that [MomentRange].Rest adds, because
// some performances have no end.
const MaxRest = time.Minute

// MomentRange selects the moments that a walk visits.
type MomentRange struct {
	From Moment // the first; the zero Moment stands for entry 1
	To   Moment // the last

	// Rest continues after To to the last boundary before the next entry, but at most
	// for [MaxRest] after the entry of To.
	Rest bool

	// Every adds the multiples of a span of session time, for values that change
	// between boundaries. 0 adds none.
	Every time.Duration
}

// MomentKind says why a walk visits a moment.
type MomentKind uint8

// The kinds of moments. One moment has the first that applies.
const (
	EntryMoment    MomentKind = iota // the instant of an entry
	BoundaryMoment                   // a state changed without an entry; see [Timed]
	GridMoment                       // a multiple of [MomentRange].Every
	EdgeMoment                       // an end of the range; also where Rest ends although more would change
)

// String returns "entry", "boundary", "grid" or "edge".
func (k MomentKind) String() string {
	switch k {
	case EntryMoment:
		return "entry"
	case BoundaryMoment:
		return "boundary"
	case GridMoment:
		return "grid"
	case EdgeMoment:
		return "edge"
	}
	return fmt.Sprintf("moment kind %d", uint8(k))
}

// Moments yields the moments of a range at which the state can change, in their order:
// the two ends, each entry, and each boundary between entries. A state without
// continuous values is the same between two of them. A boundary at the instant of an
// entry is a moment before that entry: with entry 5 two seconds after entry 4, it is
// 4+2s.
//
// The step always has the state, whatever needs says, and is valid until the next.
// [ScanStep.Prev] is the state at the moment before in the walk, and at the first
// moment the state right before it. After an error the sequence ends; [ErrNoAddress]
// says that the session does not have the range.
func (r *Replay) Moments(ctx context.Context, over MomentRange, needs Needs) iter.Seq2[*ScanStep, error] {
	return func(yield func(*ScanStep, error) bool) {
		w := momentWalk{r: r, ctx: ctx, over: over, prev: needs&NeedsPrev != 0, yield: func(s *ScanStep) bool { return yield(s, nil) }}
		if err := w.run(); err != nil {
			yield(nil, err)
		}
	}
}

// StepAt returns the step of [Replay.Moments] at one moment, with Seq 0 the state before the
// first entry. It stays valid.
func (r *Replay) StepAt(ctx context.Context, m Moment, needs Needs) (*ScanStep, error) {
	if m.Seq == 0 {
		f, err := r.At(ctx, m)
		if err != nil {
			return nil, err
		}
		return &ScanStep{Moment: m, Kind: EdgeMoment, Fold: f}, nil
	}
	for s, err := range r.Moments(ctx, MomentRange{From: m, To: m}, needs|NeedsState) {
		return s, err
	}
	return nil, ctx.Err()
}

// momentWalk is the state of one walk of [Replay.Moments].
type momentWalk struct {
	r     *Replay
	ctx   context.Context
	over  MomentRange
	prev  bool // the steps need the state before
	yield func(*ScanStep) bool

	// stop, unless 0, is the entry before which the walk ends, with all boundaries up to
	// it; To is then the entry before. It is set for a part of a walk.
	stop eventlog.Seq

	// silent, unless 0, is the entry with which the walk begins to yield.
	silent eventlog.Seq

	step  ScanStep
	entry eventlog.Entry // of the step; reused by all
	timed []Timed
	base  time.Duration // session time of the entry
}

func (w *momentWalk) run() error {
	if w.over.From.IsZero() {
		w.over.From.Seq = 1
	}
	from, to := w.over.From, w.over.To
	if w.stop == 0 && from.Compare(to) > 0 {
		return nil // a part goes on up to stop, so it can begin after its last entry
	}
	end, err := w.r.timeOf(w.ctx, to)
	if err != nil {
		return err
	}
	if more, err := w.begin(); err != nil || !more {
		return err
	}
	if w.r.src.Head().Seq > from.Seq {
		for e, err := range w.r.src.Entries(w.ctx, from.Seq+1) {
			if err != nil {
				return fmt.Errorf("replay: read after entry %d: %w", w.step.Moment.Seq, err)
			}
			if e.Seq == w.stop {
				_, err := w.between(e.At)
				return err
			}
			if e.Seq > to.Seq {
				return w.end(end, min(e.At, w.rest()))
			}
			if more, err := w.between(e.At); err != nil || !more {
				return err
			}
			if more, err := w.apply(&e); err != nil || !more {
				return err
			}
			if e.Seq == to.Seq && !w.over.Rest && w.stop == 0 {
				return w.end(end, end)
			}
		}
	}
	if at := w.step.Moment.Seq; at < to.Seq {
		return w.r.ended(w.ctx, at, to.Seq)
	}
	return w.end(end, w.rest())
}

// rest returns the session time at which [MaxRest] is over.
func (w *momentWalk) rest() time.Duration {
	if w.base > math.MaxInt64-MaxRest {
		return math.MaxInt64
	}
	return w.base + MaxRest
}

// begin visits the first moment.
func (w *momentWalk) begin() (more bool, err error) {
	from := w.over.From
	f, err := w.r.before(w.ctx, from)
	if err != nil {
		return false, err
	}
	w.use(f)
	if from.Offset == 0 {
		e, err := w.r.Entry(w.ctx, from.Seq)
		if err != nil {
			return false, err
		}
		return w.apply(&e)
	}
	if from.Seq > 0 {
		if w.entry, err = w.r.Entry(w.ctx, from.Seq); err != nil {
			return false, err
		}
		w.step.Entry, w.base = &w.entry, w.entry.At
	}
	at := w.base + from.Offset
	kind := EdgeMoment
	if next, ok := nextBoundary(w.timed); ok && next == at {
		kind = BoundaryMoment
	} else if w.over.Every > 0 && at%w.over.Every == 0 {
		kind = GridMoment
	}
	return w.advance(at, kind), nil
}

// use makes f the state of the steps.
func (w *momentWalk) use(f *projection.Fold) {
	w.step.Fold, w.timed = f, timedStates(f)
}

// keepPrev keeps the view of the present state before it changes.
func (w *momentWalk) keepPrev() {
	if w.prev {
		w.step.prev = w.step.View()
	}
	w.step.view = nil
}

// apply visits the instant of an entry.
func (w *momentWalk) apply(e *eventlog.Entry) (more bool, err error) {
	w.keepPrev()
	if err := w.step.Fold.Apply(e); err != nil {
		return false, fmt.Errorf("replay: %w", err)
	}
	w.step.Fold.Advance(e.At)
	w.entry, w.base = *e, e.At
	w.step.Entry, w.step.Moment, w.step.Kind = &w.entry, Moment{Seq: e.Seq}, EntryMoment
	return w.show(), nil
}

// advance visits a moment after the present entry.
func (w *momentWalk) advance(at time.Duration, kind MomentKind) (more bool) {
	w.keepPrev()
	w.step.Fold.Advance(at)
	w.step.Moment.Seq = w.step.Fold.Head().Seq
	w.step.Moment.Offset, w.step.Kind = at-w.base, kind
	return w.show()
}

// show yields the present step.
func (w *momentWalk) show() (more bool) {
	return w.step.Moment.Seq < w.silent || w.yield(&w.step)
}

// between visits the boundaries and the grid after the present moment up to limit.
func (w *momentWalk) between(limit time.Duration) (more bool, err error) {
	for {
		at, kind, ok := w.next()
		if !ok || at > limit {
			return true, w.ctx.Err()
		}
		if err := w.ctx.Err(); err != nil {
			return false, err
		}
		if !w.advance(at, kind) {
			return false, nil
		}
	}
}

// next returns the next boundary or moment of the grid.
func (w *momentWalk) next() (at time.Duration, kind MomentKind, ok bool) {
	now := w.step.Fold.At()
	at, ok = nextBoundary(w.timed)
	// A boundary that Advance does not remove would be visited for ever.
	ok = ok && at > now
	kind = BoundaryMoment
	if every := w.over.Every; every > 0 && now <= math.MaxInt64-every {
		if t := (now/every + 1) * every; !ok || t < at {
			at, kind, ok = t, GridMoment, true
		}
	}
	return at, kind, ok
}

// end visits what follows the last entry of the range: everything up to end, where the
// range ends, and with Rest the boundaries up to rest.
func (w *momentWalk) end(end, rest time.Duration) error {
	if more, err := w.between(end); err != nil || !more {
		return err
	}
	if w.step.Fold.At() < end && !w.advance(end, EdgeMoment) || !w.over.Rest {
		return nil
	}
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		now := w.step.Fold.At()
		if last, ok := nextBoundary(w.timed); !ok || last <= now || now >= rest {
			return nil // the grid ends with the boundaries
		}
		at, kind, _ := w.next()
		if at > rest {
			at, kind = rest, EdgeMoment
		}
		if !w.advance(at, kind) {
			return nil
		}
	}
}

// NextBoundary returns the earliest session time at which a state of f changes without an
// entry, or false if none would; see [Timed].
func NextBoundary(f *projection.Fold) (time.Duration, bool) { return nextBoundary(timedStates(f)) }

// timedStates returns the states of f that change without an entry.
func timedStates(f *projection.Fold) []Timed {
	var all []Timed
	for _, st := range f.States() {
		if t, ok := st.(Timed); ok {
			all = append(all, t)
		}
	}
	return all
}
