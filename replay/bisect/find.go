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

	// Onset says that the candidate is one of the search for the [Onset], between two
	// candidates of the search itself.
	Onset bool
}

// Findings are the answer of [Find].
type Findings struct {
	Conclusion
	Search *Search

	Tests int // runs of the test
	Mixed int // judgments with runs of both results

	// Onset is the place of the transition between its two stretches. It is nil if
	// no transition was found, or if stretches between the two were skipped.
	Onset *Onset
}

// Find searches a range of a session. It folds the range once for its stretches, which
// are the candidates, judges those that the [Search] wants, and then goes on between
// the two sides of the transition to the [Onset]. A test without Judge judges every
// moment of the range.
//
// The ends are over.From, which for the goal [Any] must be good, and a later over.To,
// which must be bad; the zero From is the beginning, before the first entry. The error
// is [ErrEndpoint] or [ErrAlike] if they do not hold, and [*replay.RangeError] if From is
// not before To. With an error the findings, unless nil, have what is known by then.
func Find(ctx context.Context, r *replay.Replay, from, to replay.Moment, test Test, cfg Config) (*Findings, error) {
	if from.Compare(to) >= 0 {
		return nil, &replay.RangeError{
			Range:  fmt.Sprintf("%v..%v", from, to),
			Reason: fmt.Sprintf("the good end %v must come before the bad end %v; to find a fix, swap the two and let the test report the fixed state as bad", from, to),
		}
	}
	if err := cfg.Repeat.Check(); err != nil {
		return nil, err
	}
	stretches, err := Stretches(ctx, r, replay.MomentRange{From: from, To: to, Every: cfg.Every}, test, cfg.Visited)
	if err != nil {
		return nil, err
	}
	return Continue(ctx, r, New(stretches, cfg.Options), test, cfg)
}

// Continue is the part of [Find] that follows the walk: it judges what a search over
// stretches of r still wants, and then finds the onset. The search has Options of its own;
// those of cfg are not used, and neither is Every.
func Continue(ctx context.Context, r *replay.Replay, s *Search, test Test, cfg Config) (*Findings, error) {
	if err := cfg.Repeat.Check(); err != nil {
		return nil, err
	}
	d := newDriver(cfg)
	d.r, d.test, d.identity, d.prepare = r, test, test.Identity, d.atMoment
	if cfg.Begin != nil {
		cfg.Begin(s)
	}
	var err error
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
		d.inOnset = true
		out.Onset, err = d.onset(ctx, s.stretches[out.Good], s.stretches[out.Bad])
	}
	out.Tests, out.Mixed = d.tests, d.mixed
	return out, err
}

// Candidates are what [FindAmong] judges: a list in its order, such as the versions of a
// file.
type Candidates struct {
	// Inputs has the hash of each candidate. Candidates with equal hashes share one judgment.
	Inputs []InputHash

	// Prepare makes a candidate ready and returns its test, which is called once for each
	// run. Calls for different jobs, from 0 to Config.Jobs-1, run at the same time; what one
	// call has returned is not used after the next one of its job. An error ends the search.
	Prepare func(ctx context.Context, job int, p Pick) (test func(context.Context) (TestResult, error), err error)
}

// FindAmong is [Find] among other candidates than the moments of a session. For the goal
// [Any] the first one must be good and the last one bad. There is no Onset, the moments of
// what Config.Judged takes are zero, and Every, Visited and Verdicts of the Config are not
// used.
func FindAmong(ctx context.Context, c Candidates, cfg Config) (*Findings, error) {
	if err := cfg.Repeat.Check(); err != nil {
		return nil, err
	}
	cfg.Verdicts = nil
	d := newDriver(cfg)
	d.prepare = func(ctx context.Context, _ *Search, job int, p Pick) (func(context.Context) (TestResult, error), error) {
		return c.Prepare(ctx, job, p)
	}
	s := Among(c.Inputs, cfg.Options)
	if cfg.Begin != nil {
		cfg.Begin(s)
	}
	err := d.drive(ctx, s)
	if err == nil {
		err = s.Err()
	}
	return &Findings{Search: s, Conclusion: s.Conclusion(), Tests: d.tests, Mixed: d.mixed}, err
}

// judgeResults judges every input of a test without Judge.
func (s *Search) judgeResults() error {
	for i := range s.stretches {
		if s.Result(i) != 0 {
			continue
		}
		result, err := s.stretches[i].Input.Result()
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
	cfg      Config
	identity string // of the test

	// prepare returns the test of a candidate, for one of the jobs.
	prepare func(ctx context.Context, s *Search, job int, p Pick) (func(context.Context) (TestResult, error), error)

	tests   int
	mixed   int
	inOnset bool // the search for the onset is under way

	// Of a search over moments.
	r       *replay.Replay
	test    Test
	cursors []*replay.Cursor // one for each job
}

func newDriver(cfg Config) *driver {
	cfg.Jobs = max(cfg.Jobs, 1)
	if cfg.Verdicts == nil {
		cfg.Verdicts = &Verdicts{}
	}
	return &driver{cfg: cfg, cursors: make([]*replay.Cursor, cfg.Jobs)}
}

// atMoment returns the test at the beginning of a stretch.
func (d *driver) atMoment(ctx context.Context, s *Search, job int, p Pick) (func(context.Context) (TestResult, error), error) {
	if d.cursors[job] == nil {
		d.cursors[job] = d.r.Cursor()
	}
	c, m := d.cursors[job], s.stretches[p.Index].From
	if err := c.Seek(ctx, m); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (TestResult, error) {
		r, err := d.test.Judge(ctx, m, c.Fold())
		if err == nil && (r < Good || r > Skip) {
			err = fmt.Errorf("bisect: the test at %v returned %v", m, r)
		}
		return r, err
	}, nil
}

// drive judges what s wants until it wants nothing more.
func (d *driver) drive(ctx context.Context, s *Search) error {
	for {
		picks := s.NextN(d.cfg.Jobs)
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
			if s.stretches != nil {
				d.cfg.Verdicts.Put(d.identity, s.stretches[j.Index].Input, j.Result)
			}
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

// judge judges candidates at the same time.
func (d *driver) judge(ctx context.Context, s *Search, picks []Pick) ([]Judged, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	judged := make([]Judged, len(picks))
	var wg sync.WaitGroup
	for k, p := range picks {
		judged[k].Pick, judged[k].Onset = p, d.inOnset
		if s.stretches != nil {
			at := s.stretches[p.Index]
			judged[k].Moment, judged[k].At = at.From, at.At
			if p.Purpose != ForRecheck {
				judged[k].Result = d.cfg.Verdicts.Get(d.identity, at.Input)
			}
		}
		if judged[k].Result != 0 {
			continue
		}
		wg.Go(func() {
			if err := d.run(ctx, s, k, &judged[k]); err != nil {
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

// run runs the test of a candidate until its result is decided.
func (d *driver) run(ctx context.Context, s *Search, job int, j *Judged) error {
	test, err := d.prepare(ctx, s, job, j.Pick)
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := test(ctx)
		if err != nil {
			return err
		}
		if r < Good || r > Skip {
			return fmt.Errorf("bisect: the test of candidate %d returned %v", j.Index, r)
		}
		j.Votes.Add(r)
		if result, done := d.cfg.Repeat.Decide(j.Votes); done {
			j.Result = result
			return nil
		}
	}
}
