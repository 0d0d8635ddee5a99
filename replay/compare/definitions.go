package compare

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// ErrOtherEntries is wrapped by the error of [Definitions] about two sessions whose entries
// do not have the same numbers and times.
var ErrOtherEntries = errors.New("compare: other entries")

// DefaultGrid is the distance of the moments at which [Definitions] compares what moves.
const DefaultGrid = 100 * time.Millisecond

// MaxListed bounds the moments, and the intervals, that [Definitions] returns.
const MaxListed = 10_000

// DefinitionConfig says what [Definitions] compares.
type DefinitionConfig struct {
	// Over is the range. While something moves and the stages are not in the same state, the
	// multiples of Over.Every are compared too, or of [DefaultGrid] if it is 0.
	Over replay.MomentRange

	// Progress, unless nil, is called with each moment that was compared.
	Progress func(m replay.Moment)
}

// DefinitionDiff is how one recording differs through two sets of definitions.
type DefinitionDiff struct {
	Moments int                   // that were compared
	Last    replay.ExaminedMoment // the last of them
	First   *FirstDifference      // nil if nothing differs

	// Picture is the first picture that differs, at Pictured; nil if none does.
	Picture  *PictureDiff
	Pictured replay.ExaminedMoment

	// Commands are the moments at which the commands differ, at most [MaxListed]. The
	// numbers count all of these moments, the commands that one side alone has, and the
	// moments with the same commands in another order.
	Commands                                       []CommandDifference
	CommandMoments, OnlyLeft, OnlyRight, Reordered int

	// Intervals are the stretches in which a part differs, in the order of their beginnings,
	// at most [MaxListed]. Totals has the numbers of all, by part.
	Intervals []DifferenceInterval
	Totals    map[DifferencePart]DifferenceTotal
}

// Same reports whether nothing differs.
func (d *DefinitionDiff) Same() bool { return d.First == nil }

// FirstDifference is the first moment at which anything differs.
type FirstDifference struct {
	At    replay.ExaminedMoment
	Entry eventlog.Entry // the left one of At.Moment.Seq

	Commands CommandDifference // without commands if they do not differ there
	Parts    []DifferencePart  // that differ there

	// Left and Right are the states, which belong to the caller.
	Left, Right *projection.Fold
}

// CommandDifference is a moment at which the commands to a renderer differ. Updates are not
// compared, because they follow from the starts. The ids of performances are not compared
// either, because they count the performances of a signal.
type CommandDifference struct {
	At replay.ExaminedMoment

	// Left and Right are the commands that only one side has. If both have the same ones
	// in another order, Reordered is set, and they are all commands of the moment.
	Left, Right []choreography.Command
	Reordered   bool
}

// DifferencePart is what can differ during an interval: the picture, the director or
// the view of an agent.
type DifferencePart struct {
	Kind  PartKind
	Agent string // of a view
}

// String returns "picture", "director" or "view of AGENT".
func (p DifferencePart) String() string {
	if p.Kind == AgentView {
		return "view of " + p.Agent
	}
	return string(p.Kind)
}

// PartKind is the kind of a [DifferencePart].
type PartKind string

// The kinds of parts.
const (
	StagePicture   PartKind = "picture"
	DirectorStates PartKind = "director" // the progress of the episode
	AgentView      PartKind = "view"     // as it was made, whether it has reached the agent or not
)

// DifferenceInterval is a stretch of moments, from From up to and without Until, in which a
// part differs. An open one has no end: Until is then the last moment that was compared.
type DifferenceInterval struct {
	Part        DifferencePart
	From, Until replay.ExaminedMoment
	Open        bool
}

// DifferenceTotal counts the intervals of one part, and their session time.
type DifferenceTotal struct {
	Intervals int
	Time      time.Duration
}

// Definitions compares two replays of sessions whose entries have the same numbers and
// times, such as a recorded session and a variant of it with other definitions. It compares
// commands, pictures, the views of agents, and the director's state at every entry and
// every boundary of either side.
//
// Errors: [ErrOtherEntries], [replay.ErrNoAddress] for a range that the sessions do not have,
// those of reading, and of ctx.
func Definitions(ctx context.Context, left, right *replay.Replay, cfg DefinitionConfig) (*DefinitionDiff, error) {
	w := &sideWalk{ctx: ctx, cfg: cfg, halves: [2]*half{newHalf(left), newHalf(right)}, open: map[DifferencePart]*openInterval{}}
	w.diff.Totals = map[DifferencePart]DifferenceTotal{}
	if err := w.run(); err != nil {
		return nil, err
	}
	w.finish()
	return &w.diff, nil
}

// sideWalk visits the moments of two sessions side by side.
type sideWalk struct {
	ctx    context.Context
	cfg    DefinitionConfig
	halves [2]*half
	diff   DefinitionDiff
	open   map[DifferencePart]*openInterval

	entry eventlog.Entry // the left one that was applied last
	grid  bool           // something moves, and the stages differ

	// stageAlone says that the sides have the same marks, so that pictures differ only if
	// stages or episodes do.
	stageAlone bool
}

// openInterval is an interval that has not ended.
type openInterval struct {
	from replay.ExaminedMoment
	at   int // its index in the result, -1 beyond [MaxListed]
}

func (w *sideWalk) run() error {
	over := &w.cfg.Over
	if over.From.IsZero() {
		over.From.Seq = 1
	}
	if over.From.Compare(over.To) > 0 {
		return nil
	}
	for _, h := range w.halves {
		if last := h.travel.Head().Seq; over.To.Seq > last {
			_, err := h.travel.Entry(w.ctx, over.To.Seq)
			return err
		}
		if err := h.begin(w.ctx, over.From); err != nil {
			return err
		}
	}
	first := over.From.Seq
	if over.From.Offset > 0 {
		if first > 0 {
			var err error
			if w.entry, err = w.halves[0].travel.Entry(w.ctx, first); err != nil {
				return err
			}
		}
		if err := w.advance(w.halves[0].fold.At()+1, replay.EdgeMoment); err != nil {
			return err
		}
		first++
	}
	// What comes after the last entry of the range ends with the entry behind it.
	behind := theEnd
	for pair, err := range w.entries(first) {
		if err != nil {
			return err
		}
		if pair[0].Seq > over.To.Seq {
			behind = pair[0].At
			break
		}
		if err := w.between(pair[0].At); err != nil {
			return err
		}
		if err := w.apply(pair); err != nil {
			return err
		}
	}
	if at := w.halves[0].fold.Head().Seq; at < over.To.Seq {
		return fmt.Errorf("compare: the entries of %q end after %d, before %d", w.halves[0].travel.Name(), at, over.To.Seq)
	}
	return w.rest(behind)
}

// entries yields the entries of both sides from a Seq on.
func (w *sideWalk) entries(from eventlog.Seq) iter.Seq2[[2]*eventlog.Entry, error] {
	return func(yield func([2]*eventlog.Entry, error) bool) {
		none := [2]*eventlog.Entry{}
		if from > w.halves[0].travel.Head().Seq {
			return
		}
		next, stop := iter.Pull2(w.halves[1].travel.Entries(w.ctx, from))
		defer stop()
		for left, err := range w.halves[0].travel.Entries(w.ctx, from) {
			if err != nil {
				yield(none, fmt.Errorf("compare: read %q: %w", w.halves[0].travel.Name(), err))
				return
			}
			right, err, ok := next()
			switch {
			case err != nil:
				yield(none, fmt.Errorf("compare: read %q: %w", w.halves[1].travel.Name(), err))
				return
			case !ok || left.Seq != right.Seq || left.At != right.At:
				yield(none, fmt.Errorf("%w: entry %d is not at the same time in both sessions", ErrOtherEntries, left.Seq))
				return
			}
			if !yield([2]*eventlog.Entry{&left, &right}, nil) {
				return
			}
		}
	}
}

// apply visits the instant of an entry.
func (w *sideWalk) apply(pair [2]*eventlog.Entry) error {
	for i, h := range w.halves {
		if err := h.apply(pair[i]); err != nil {
			return err
		}
	}
	w.entry = *pair[0]
	return w.compare(replay.EntryMoment)
}

// advance visits a moment after the present entry.
func (w *sideWalk) advance(at time.Duration, kind replay.MomentKind) error {
	for _, h := range w.halves {
		h.fold.Advance(at)
	}
	return w.compare(kind)
}

// between visits the boundaries and the grid up to limit.
func (w *sideWalk) between(limit time.Duration) error {
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		at, kind, ok := w.next()
		if !ok || at > limit {
			return nil
		}
		if err := w.advance(at, kind); err != nil {
			return err
		}
	}
}

// next returns the next boundary of either side, or moment of the grid.
func (w *sideWalk) next() (at time.Duration, kind replay.MomentKind, ok bool) {
	now := w.halves[0].fold.At()
	for _, h := range w.halves {
		if t, has := replay.NextBoundary(h.fold); has && t > now && (!ok || t < at) {
			at, ok = t, true
		}
	}
	kind = replay.BoundaryMoment
	every := w.cfg.Over.Every
	if every <= 0 {
		every = DefaultGrid
	}
	// An endless animation in hours without entries would give millions of moments.
	if w.grid && now-w.entry.At < replay.MaxStill {
		if t := (now/every + 1) * every; !ok || t < at {
			at, kind, ok = t, replay.GridMoment, true
		}
	}
	return at, kind, ok
}

// rest visits what follows the last entry of the range, before the next entry.
func (w *sideWalk) rest(behind time.Duration) error {
	over, fold := &w.cfg.Over, w.halves[0].fold
	end := min(w.entry.At+over.To.Offset, behind)
	if over.To.Offset > 0 {
		if err := w.between(end); err != nil {
			return err
		}
		if fold.At() < end {
			if err := w.advance(end, replay.EdgeMoment); err != nil {
				return err
			}
		}
	}
	if !over.Rest {
		return nil
	}
	limit := min(behind, w.entry.At+replay.MaxRest)
	if err := w.between(limit); err != nil {
		return err
	}
	if _, _, more := w.next(); more && fold.At() < limit {
		return w.advance(limit, replay.EdgeMoment)
	}
	return nil
}
