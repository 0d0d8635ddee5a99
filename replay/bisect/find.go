package bisect

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/replay"
)

// Config configures [Find].
type Config struct {
	Options

	Repeat Repeat        // of the test, for one judgment
	Jobs   int           // judgments at the same time; 0 is 1
	Every  time.Duration // adds the moments of a grid, for values that move; 0 adds none

	// Verdicts has results that are known, and takes new ones. Nil is an empty one.
	Verdicts *Verdicts

	// These are called in the goroutine of Find, unless they are nil: at each moment of
	// the walk that finds the stretches, before the first judgment, and after each.
	Visited func(replay.Moment)
	Begin   func(*Search)
	Judged  func(Judged)
}

// Judged is one judgment of [Find].
type Judged struct {
	Pick
	Moment replay.Moment
	At     time.Duration // the session time of Moment
	Result TestResult
	Votes  Votes // of the test; none if the result was known
}

// Findings are the answer of [Find].
type Findings struct {
	Conclusion
	Search *Search

	Tests int // runs of the test
	Mixed int // judgments with runs of both results

	// Onset is the place of the transition between its two stretches. It is nil if
	// there is no transition, or stretches between the two were skipped.
	Onset *Onset
}

// Find searches a range of a session. It folds the range once for its stretches, which
// are the candidates, judges those that the [Search] wants, and then goes on between
// the two sides of the transition to the [Onset]. A test without Judge judges every
// moment of the range.
//
// The ends are over.From, which for the goal [Any] must be good, and a later over.To,
// which must be bad; the zero From is the beginning, before the first entry. The error
// is [ErrEndpoint] or [ErrAlike] if they do not hold, and [replay.ErrSyntax] if From is
// not before To. With an error the findings, unless nil, have what is known by then.
func Find(ctx context.Context, r *replay.Replay, from, to replay.Moment, test Test, cfg Config) (*Findings, error) {
	if from.Compare(to) >= 0 {
		return nil, fmt.Errorf("%w: the good end %v must come before the bad end %v; to find a fix, swap the two and let the test report the fixed state as bad", replay.ErrSyntax, from, to)
	}
	if err := cfg.Repeat.Check(); err != nil {
		return nil, err
	}
	d := &driver{r: r, test: test, cfg: cfg}
	if d.cfg.Verdicts == nil {
		d.cfg.Verdicts = &Verdicts{}
	}
	stretches, err := Stretches(ctx, r, replay.MomentRange{From: from, To: to, Every: cfg.Every}, test, cfg.Visited)
	if err != nil {
		return nil, err
	}
	s := New(stretches, cfg.Options)
	if cfg.Begin != nil {
		cfg.Begin(s)
	}
	if test.Judge == nil {
		err = s.judgeResults()
	} else {
		err = d.drive(ctx, s)
	}
	out := &Findings{Search: s, Conclusion: s.Conclusion()}
	if err == nil {
		err = s.Err()
	}
	if err == nil && out.Exact() {
		out.Onset, err = d.onset(ctx, stretches[out.Good], stretches[out.Bad])
	}
	out.Tests, out.Mixed = d.tests, d.mixed
	return out, err
}

// judgeResults judges every input of a test without Judge.
func (s *Search) judgeResults() error {
	for i := range s.stretches {
		if s.Result(i) != 0 {
			continue
		}
		result, err := s.stretches[i].Input.result()
		if err != nil {
			return err
		}
		if err := s.Judge(i, result); err != nil {
			return err
		}
	}
	return nil
}

// driver runs the test for a search.
type driver struct {
	r       *replay.Replay
	test    Test
	cfg     Config
	cursors []*replay.Cursor // one for each job
	tests   int
	mixed   int
}

// drive judges what s wants until it wants nothing more.
func (d *driver) drive(ctx context.Context, s *Search) error {
	for {
		picks := s.NextN(max(d.cfg.Jobs, 1))
		if len(picks) == 0 {
			return nil
		}
		judged, err := d.judge(ctx, s, picks)
		for _, j := range judged {
			if j.Result == 0 {
				continue // not reached before the error
			}
			d.tests += j.Votes.Good + j.Votes.Bad + j.Votes.Skipped
			if j.Votes.Mixed() {
				d.mixed++
			}
			d.cfg.Verdicts.Put(d.test.Identity, s.stretches[j.Index].Input, j.Result)
			if err := s.Judge(j.Index, j.Result); err != nil {
				return err
			}
			if d.cfg.Judged != nil {
				d.cfg.Judged(j)
			}
		}
		if err != nil {
			return err
		}
	}
}

// judge judges stretches at the same time.
func (d *driver) judge(ctx context.Context, s *Search, picks []Pick) ([]Judged, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	judged := make([]Judged, len(picks))
	var wg sync.WaitGroup
	for k, p := range picks {
		at := s.stretches[p.Index]
		judged[k] = Judged{Pick: p, Moment: at.From, At: at.At}
		if p.Purpose != ForRecheck {
			judged[k].Result = d.cfg.Verdicts.Get(d.test.Identity, at.Input)
		}
		if judged[k].Result != 0 {
			continue
		}
		for len(d.cursors) <= k {
			d.cursors = append(d.cursors, d.r.Cursor())
		}
		wg.Go(func() {
			if err := d.run(ctx, d.cursors[k], &judged[k]); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return judged, context.Cause(ctx)
	}
	return judged, nil
}

// run runs the test at a moment until its result is decided.
func (d *driver) run(ctx context.Context, c *replay.Cursor, j *Judged) error {
	if err := c.Seek(ctx, j.Moment); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := d.test.Judge(ctx, j.Moment, c.Fold())
		if err != nil {
			return err
		}
		if r < Good || r > Skip {
			return fmt.Errorf("bisect: the test at %v returned %v", j.Moment, r)
		}
		j.Votes.Add(r)
		if result, done := d.cfg.Repeat.Decide(j.Votes); done {
			j.Result = result
			return nil
		}
	}
}
