package bisect

import (
	"context"
	"time"

	"github.com/sajou-dev/sajou-go/replay"
)

// Resolution is the step in which a search looks for the instant of a transition between
// two moments at which something changes at once. It is larger if maxSteps of them are
// not enough.
const Resolution = time.Millisecond

const maxSteps = 100_000

// Onset is the place of a transition: the first moment at which the state is bad, to
// the step of a grid of session time. Within the time between the two sides of the
// transition, it assumes that the state stays bad.
type Onset struct {
	Good replay.Moment // the latest moment before it that is good
	Bad  replay.Moment // the first that is bad
	At   time.Duration // the session time of Bad

	// ByEntry says that the entry of Bad makes the state bad: right before it, the state
	// is good.
	ByEntry bool

	// Step is the step of the grid between Good and Bad, or 0 if the state was judged at
	// every moment at which it can change.
	Step time.Duration

	// Skipped says that the test skipped moments between Good and Bad.
	Skipped bool
}

// onset finds the onset between two successive stretches, of which the first is good
// and the second bad.
func (d *driver) onset(ctx context.Context, good, bad Stretch) (*Onset, error) {
	byEntry := bad.From.Offset == 0
	end, at := bad.From, bad.At
	if byEntry {
		base := time.Duration(0)
		if good.Last.Seq > 0 {
			e, err := d.r.Entry(ctx, good.Last.Seq)
			if err != nil {
				return nil, err
			}
			base = e.At
		}
		end = replay.Moment{Seq: good.Last.Seq, Offset: bad.At - base}
	}
	found := &Onset{Good: good.Last, Bad: bad.From, At: at, ByEntry: byEntry}
	if good.Last.Compare(end) >= 0 {
		return found, nil
	}
	step := Resolution
	if n := (end.Offset - good.Last.Offset) / step; n > maxSteps {
		step *= (n + maxSteps - 1) / maxSteps
	}
	stretches, err := Stretches(ctx, d.r, replay.MomentRange{From: good.Last, To: end, Every: step}, d.test, d.cfg.Visited)
	if err != nil {
		return nil, err
	}
	s, last := New(stretches, Options{Goal: Any}), len(stretches)-1
	if d.test.Judge == nil {
		err = s.judgeResults()
	} else if err = s.Judge(0, Good); err == nil {
		err = d.drive(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	if s.Result(0) != Good {
		// The test reads the moment before as well, which differs on the grid.
		return found, nil
	}
	switch s.Result(last) {
	case Bad:
		c := s.Conclusion()
		from := stretches[c.Bad]
		return &Onset{Good: stretches[c.Good].Last, Bad: from.From, At: from.At, Step: step, Skipped: !c.Exact()}, nil
	case Skip:
		found.ByEntry, found.Skipped = false, true
	default: // good right before the entry
		found.Good = stretches[last].Last
	}
	return found, nil
}
