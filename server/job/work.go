package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/imagetest"
	"github.com/sajou-dev/sajou-go/workspace"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
)

// order is the body of a request for a job.
type order struct {
	Kind string `json:"kind"` // scan, bisect, verify, minimize or policy-diff

	// A scan and a bisect have one test. A minimize may have one, which it keeps true.
	Where string      `json:"where"`
	Image *imageOrder `json:"image"`

	// Definitions are other definitions to see the session through: an object, or an array of
	// them.
	Definitions rawJSON `json:"definitions"`

	// Of a scan and a policy-diff.
	Range string `json:"range"`

	// Of a scan; Count of a policy-diff too.
	Mode    string  `json:"mode"`    // all, first, last or changes; empty means all
	Moments bool    `json:"moments"` // also between entries
	EveryMS float64 `json:"every_ms"`
	Count   bool    `json:"count"`

	// Of a bisect.
	Good   string `json:"good"`
	Bad    string `json:"bad"`
	Find   string `json:"find"` // any, first, last or all; empty means any
	Probes *int   `json:"probes"`

	// Of a verify.
	Head string `json:"head"`

	// Of a minimize: the moment, and the value that it keeps without a test.
	At   string `json:"at"`
	Path string `json:"path"`

	// Of a policy-diff: the other policy, and the agents, by default all.
	Policy rawJSON  `json:"policy"`
	Agents []string `json:"agents"`
}

// imageOrder is a picture to compare the stage with. PNG and Mask are PNG files in base64.
type imageOrder struct {
	PNG      []byte  `json:"png"`
	Mask     []byte  `json:"mask"`
	Region   string  `json:"region"` // x,y,width,height
	Entity   string  `json:"entity"`
	MaxDiff  float64 `json:"max_diff"` // share of the pixels, 0 to 1
	MaxColor int     `json:"max_color"`
	Same     bool    `json:"same"`
}

// rawJSON is a part of a body that is read later.
type rawJSON []byte

// UnmarshalJSON keeps the text.
func (r *rawJSON) UnmarshalJSON(text []byte) error {
	*r = append((*r)[:0], text...)
	return nil
}

func badRequest(format string, args ...any) error {
	return problem.New(problem.BadRequest, fmt.Sprintf(format, args...))
}

// prepare checks an order as far as that is quick, and returns its work.
func (j *Jobs) prepare(ctx context.Context, name string, o *order) (task, error) {
	switch o.Kind {
	case "verify":
		return j.verify(name, o)
	case "policy-diff":
		return j.policyDiff(ctx, name, o)
	case "minimize":
		if o.Where != "" && o.Image != nil {
			return nil, badRequest("a minimize keeps one test: where or image")
		}
	case "scan", "bisect":
		if (o.Where != "") == (o.Image != nil) {
			return nil, badRequest("a %s needs one test: where or image", o.Kind)
		}
	default:
		return nil, badRequest("kind %.80q: must be scan, bisect, verify, minimize or policy-diff", o.Kind)
	}
	travel, err := j.travel(ctx, name, o)
	if err != nil {
		return nil, err
	}
	switch o.Kind {
	case "bisect":
		return j.bisect(ctx, travel, o)
	case "minimize":
		return j.minimize(ctx, travel, o)
	}
	return j.scan(ctx, travel, o)
}

// travel opens the session of an order, through its definitions if it has some.
func (j *Jobs) travel(ctx context.Context, name string, o *order) (*replay.Replay, error) {
	set := j.engine.Projections()
	if o.Where != "" {
		x, err := answer.CompileValue(o.Where)
		if err != nil {
			return nil, err
		}
		if x.Reads(workspace.Name) {
			set = append(append(projection.Set(nil), set...), workspace.Projection())
		}
	}
	travel, err := j.engine.ReplayWith(name, set)
	if err != nil || o.Definitions == nil {
		return travel, err
	}
	last, err := travel.At(ctx, replay.Moment{Seq: travel.Head().Seq})
	if err != nil {
		return nil, err
	}
	catalog := new(language.Catalog)
	if s, ok := last.State(session.ProjectionPerformances).(replay.Choreographer); ok {
		catalog = s.Scheduler().Catalog()
	}
	declared, _, diagnostics := lint.Read(catalog, "definitions.json", o.Definitions)
	if diagnostics.Refused() {
		return nil, diagnostics.Err(definition.ErrInvalid)
	}
	var edits variant.Edits
	for i := range declared {
		edits.Define = append(edits.Define, declared[i].Declaration)
	}
	log, err := j.engine.Log().Session(name)
	if err != nil {
		return nil, err
	}
	changed, err := variant.New(ctx, log, edits)
	if err != nil {
		return nil, err
	}
	return session.NewReplay(changed, set, nil), nil
}

// verify verifies the chain of a session.
func (j *Jobs) verify(name string, o *order) (task, error) {
	opts := verify.Options{}
	if o.Head != "" {
		expect, err := eventlog.ParseHead(o.Head)
		if err != nil {
			return nil, badRequest("head: %v", err)
		}
		if expect.Seq == 0 {
			return nil, badRequest("head: a head of entry 0 proves nothing, because every session of this name contains it")
		}
		opts.Expect = expect
	}
	return func(ctx context.Context, b *job) error {
		opts.Progress = func(done, total eventlog.Seq) { b.progress(uint64(done), uint64(total)) }
		report, err := j.engine.Log().Verify(ctx, name, opts)
		if err != nil {
			return err
		}
		return b.add(answer.ViewVerified(&report))
	}, nil
}

// image returns the test of an uploaded image.
func (o *imageOrder) test() (*imagetest.ImageTest, error) {
	opts := imagetest.Options{Entity: o.Entity, MaxDiff: o.MaxDiff, MaxColor: o.MaxColor, Same: o.Same}
	var err error
	if o.Region != "" {
		if opts.Region, err = imagetest.ParseRegion(o.Region); err != nil {
			return nil, invalid("/image/region", err)
		}
	}
	want, err := imagetest.ReadPNG(o.PNG)
	if err != nil {
		return nil, invalid("/image/png", err)
	}
	if o.Mask != nil {
		if opts.Mask, err = imagetest.ReadPNG(o.Mask); err != nil {
			return nil, invalid("/image/mask", err)
		}
	}
	t, err := imagetest.New(want, opts)
	if err != nil {
		return nil, invalid("/image", err)
	}
	return t, nil
}

func invalid(pointer string, err error) error {
	return (&problem.Details{Code: problem.Invalid, Detail: err.Error(), Err: err}).At(pointer)
}

// matching returns the test of an order as a predicate of a scan.
func (o *order) matching() (replay.EntryPredicate, error) {
	if o.Image == nil {
		p, err := answer.Compile(o.Where)
		if err != nil {
			return replay.EntryPredicate{}, err
		}
		return answer.Matching(p, nil), nil
	}
	t, err := o.Image.test()
	if err != nil {
		return replay.EntryPredicate{}, err
	}
	return replay.EntryPredicate{Needs: replay.NeedsState, Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
		m, err := answer.Measure(t, s.Fold)
		return err == nil && t.Wrong(m), err
	}}, nil
}

// evalError returns the error of an expression without the errors around it, which repeat
// the entry.
func evalError(err error) error {
	if e, ok := errors.AsType[*where.EvalError](err); ok {
		return e
	}
	return err
}

// every returns the grid of an order.
func (o *order) every() (time.Duration, error) {
	d := time.Duration(o.EveryMS * float64(time.Millisecond))
	if o.EveryMS != 0 && (!(o.EveryMS >= 0.001) || d <= 0) {
		return 0, badRequest("every_ms %v: must be a span of session time, such as 16", o.EveryMS)
	}
	return d, nil
}

// bisect searches with tests.
func (j *Jobs) bisect(ctx context.Context, travel *replay.Replay, o *order) (task, error) {
	goal, ok := bisect.GoalByName(o.Find)
	if !ok {
		return nil, badRequest("find %.80q: must be any, first, last or all", o.Find)
	}
	probes := bisect.DefaultProbes
	if o.Probes != nil {
		if probes = *o.Probes; probes < 0 {
			return nil, badRequest("probes %d: must be 0 or more", probes)
		}
	}
	every, err := o.every()
	if err != nil {
		return nil, err
	}
	from, err := resolve(ctx, travel, o.Good, "0")
	if err != nil {
		return nil, err
	}
	to, err := resolve(ctx, travel, o.Bad, "end")
	if err != nil {
		return nil, err
	}
	test, err := o.bisectTest()
	if err != nil {
		return nil, err
	}
	cfg := bisect.Config{Options: bisect.Options{Goal: goal, Probes: probes, Recheck: o.Image != nil}, Every: every}
	return func(ctx context.Context, b *job) error {
		cfg.Visited = func(m replay.Moment) { b.progress(uint64(m.Seq), uint64(to.Seq)) }
		found, err := bisect.Find(ctx, travel, from, to, test, cfg)
		if errors.Is(err, bisect.ErrEndpoint) || errors.Is(err, bisect.ErrAlike) {
			return &problem.Details{Code: problem.Invalid, Detail: fmt.Sprintf("%v; name other ends with good and bad, or judge every candidate with find all", err), Err: err}
		}
		if err != nil {
			return evalError(err)
		}
		return b.add(answer.ViewBisect(found))
	}, nil
}

// bisectTest returns the test of an order as that of a bisection.
func (o *order) bisectTest() (bisect.Test, error) {
	if o.Image == nil {
		p, err := answer.Compile(o.Where)
		if err != nil {
			return bisect.Test{}, err
		}
		return answer.BadIf(p), nil
	}
	t, err := o.Image.test()
	if err != nil {
		return bisect.Test{}, err
	}
	measure := func(f *projection.Fold) (imagetest.Measurement, error) { return answer.Measure(t, f) }
	return answer.BadPicture(t, measure), nil
}

// resolve returns the moment of an address, or of another one if it is empty.
func resolve(ctx context.Context, travel *replay.Replay, address, none string) (replay.Moment, error) {
	if address == "" {
		address = none
	}
	parsed, err := replay.ParseAddress(address)
	if err != nil {
		return replay.Moment{}, err
	}
	return travel.Resolve(ctx, parsed)
}
