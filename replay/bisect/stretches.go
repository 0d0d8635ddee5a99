package bisect

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/replay"
)

// Stretch is a candidate: successive moments at which the input of the test is the same.
// It lasts until the next stretch begins.
type Stretch struct {
	From  replay.Moment // its first moment
	Last  replay.Moment // the last moment at which the input was compared
	At    time.Duration // the session time of From
	Input InputHash
}

// MaxStretches bounds the stretches of one search, and so its memory.
const MaxStretches = 4 << 20

// TooManyError reports a range with more than [MaxStretches] stretches.
type TooManyError struct{ At replay.Moment }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("bisect: the input of the test changes more than %d times by %v; search a shorter range", MaxStretches, e.At)
}

// Stretches folds a range once and returns its stretches. The moments that it compares
// are those of [replay.Replay.Moments]: both ends, every entry, every boundary between
// entries, and the grid of over.Every. Here the zero From is the beginning, before the
// first entry. It calls visited, unless nil, before each moment.
func Stretches(ctx context.Context, r *replay.Replay, over replay.MomentRange, test Test, visited func(replay.Moment)) ([]Stretch, error) {
	var list []Stretch
	visit := func(s *replay.ScanStep) error {
		if visited != nil {
			visited(s.Moment)
		}
		input, err := test.Input(ctx, s)
		if err != nil {
			return err
		}
		if n := len(list); n > 0 && list[n-1].Input == input {
			list[n-1].Last = s.Moment
			return nil
		}
		if len(list) == MaxStretches {
			return &TooManyError{s.Moment}
		}
		list = append(list, Stretch{From: s.Moment, Last: s.Moment, At: s.Fold.At(), Input: input})
		return nil
	}
	if over.From.IsZero() {
		// Nothing happens between the beginning and the first entry, so both ends are
		// enough of a range that ends there.
		ends := []replay.Moment{over.From}
		if over.To.Seq == 0 && !over.To.IsZero() {
			ends = append(ends, over.To)
		}
		for _, m := range ends {
			f, err := r.At(ctx, m)
			if err != nil {
				return nil, err
			}
			if err := visit(&replay.ScanStep{Moment: m, Kind: replay.EdgeMoment, Fold: f}); err != nil {
				return nil, err
			}
		}
		if over.To.Seq == 0 {
			return list, nil
		}
	}
	for s, err := range r.Moments(ctx, over, test.Needs|replay.NeedsState) {
		if err != nil {
			return nil, err
		}
		if err := visit(s); err != nil {
			return nil, err
		}
	}
	return list, nil
}
