// Package edits searches the versions of a definition file for the edit that changed a
// recorded session.
//
// A [Version] is the state of a file of definitions, or of a folder of them, after an
// edit; package versions reads them from a folder or from a git repository. With each one a
// moment of the session is seen through a variant, see package variant: the same signals,
// played by other choreographies and scenes. [Find] then searches with the tests and the
// goals of package bisect, whose candidates are the versions here.
//
// # Two axes
//
// The answer has both: the edit, as the last good version and the first bad one after it,
// and the moment, a [Parting], at which the sessions with these two first differ for the
// test.
//
// # What is judged
//
// Versions with equal contents share a verdict, and so do versions with which the test sees
// the same. A version that cannot come into force, because it is absent, has errors, or
// contradicts the session, is a skip; [FoundEdit].Refused has the reasons. With a test without
// Judge every version is judged, because the cost of a version is that of its replay.
//
// # Cost
//
// Judging a version replays the session once, from the first declaration that it changes to
// the moment.
//
// docs/glossary.md has the nouns of all packages.
package edits

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// Version is a state of a definition file, or of a folder of them.
type Version struct {
	Name  string // of the file, or the abbreviated hash of the commit
	Title string // what is known of the edit that made it, such as the subject of the commit

	// Content is a hash of the content. Versions with equal hashes have equal contents.
	Content bisect.InputHash

	// Read returns the files, in the order in which they come into force: none if there is
	// no file in this version. It may be called by several goroutines at once.
	Read func(ctx context.Context) ([]VersionFile, error)
}

// VersionFile is a file of a version.
type VersionFile struct {
	Name string // for messages; its ending tells JSON from YAML
	Text []byte
}

// Config configures [Find].
type Config struct {
	bisect.Options

	Repeat bisect.Repeat // of the test, for one judgment
	Jobs   int           // judgments at the same time; 0 is 1

	At          replay.Moment  // the moment that is judged
	Projections projection.Set // with which the session is replayed

	// Compile makes the changes of a version's files, of which there is at least one. A
	// [*RefusedError] says that they cannot be used. It may be called by several goroutines
	// at once.
	Compile func(ctx context.Context, v *Version, files []VersionFile) (variant.Edits, error)

	// Changed judges by what a test without Judge sees: a version is bad if that is not
	// what it sees with the first version.
	Changed bool

	// These are called in the goroutine of Find, unless they are nil: before the first
	// judgment, and after each.
	Begin  func(*bisect.Search)
	Judged func(JudgedVersion)
}

// JudgedVersion is one judgment of [Find].
type JudgedVersion struct {
	bisect.Judged
	Version *Version
	Refused error // why the version cannot come into force, with the result Skip
}

// FoundEdit is the answer of [Find]. Its numbers of candidates are those of versions.
type FoundEdit struct {
	bisect.Conclusion
	Search *bisect.Search

	Tests   int                // runs of Judge
	Refused map[int]error      // why versions cannot come into force, by their index
	Seen    []bisect.InputHash // what the test saw with each version; zero if it saw none

	// Parting is where the sessions with the versions Good and Bad part. It is nil if there
	// are no such versions, or the test sees no difference up to the moment.
	Parting *Parting
}

// ErrVersions is wrapped by the error for less than two versions.
var ErrVersions = errors.New("a search needs at least two versions")

// RefusedError reports that a version cannot come into force.
type RefusedError struct {
	Version string
	Reason  error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("edits: the version %s cannot come into force: %v", e.Version, e.Reason)
}

func (e *RefusedError) Unwrap() error { return e.Reason }

// Find searches versions, the oldest first, for the one with which the state of a session
// at a moment turns bad. With an error the answer, unless nil, has what is known by then.
// Errors: [ErrVersions]; a [*RefusedError] for the first version if Changed needs it; those
// of [bisect.FindAmong], of reading, of the test, and of ctx.
func Find(ctx context.Context, recorded replay.Source, versions []Version, test bisect.Test, cfg Config) (*FoundEdit, error) {
	if len(versions) < 2 {
		return nil, fmt.Errorf("edits: %w, and there are %d", ErrVersions, len(versions))
	}
	f := &finder{
		recorded: recorded, versions: versions, test: test, cfg: cfg,
		seen: make([]bisect.InputHash, len(versions)), refused: map[int]error{},
	}
	if test.Judge == nil && cfg.Goal == bisect.Any {
		cfg.Goal = bisect.First
	}
	if cfg.Changed {
		p, err := f.see(ctx, 0)
		if err != nil {
			return nil, err
		}
		if reason := f.refused[0]; reason != nil {
			return nil, &RefusedError{versions[0].Name, reason}
		}
		f.first = p.input
	}
	among := bisect.Candidates{Prepare: f.prepare}
	for i := range versions {
		among.Inputs = append(among.Inputs, versions[i].Content)
	}
	answer, err := bisect.FindAmong(ctx, among, bisect.Config{
		Options: cfg.Options, Repeat: cfg.Repeat, Jobs: cfg.Jobs, Begin: cfg.Begin, Judged: f.judged,
	})
	if answer == nil {
		return nil, err
	}
	f.share()
	out := &FoundEdit{Search: answer.Search, Conclusion: answer.Conclusion, Tests: f.tests, Refused: f.refused, Seen: f.seen}
	if err == nil && out.Found {
		out.Parting, err = f.part(ctx, out.Good, out.Bad)
	}
	return out, err
}

// finder is one search.
type finder struct {
	recorded replay.Source
	versions []Version
	test     bisect.Test
	cfg      Config
	first    bisect.InputHash // what the test sees with the first version
	verdicts bisect.Verdicts  // by what the test sees

	mu      sync.Mutex         // guards the following
	seen    []bisect.InputHash // what the test saw with each version; zero if it saw none
	refused map[int]error
	tests   int
}

// sight is what a test sees with a version.
type sight struct {
	input bisect.InputHash
	fold  *projection.Fold
}

// prepare makes a version ready for its test.
func (f *finder) prepare(ctx context.Context, _ int, p bisect.Pick) (func(context.Context) (bisect.TestResult, error), error) {
	at, err := f.see(ctx, p.Index)
	if err != nil {
		return nil, err
	}
	known := bisect.TestResult(0)
	switch {
	case at == nil:
		known = bisect.Skip
	case f.cfg.Changed:
		if known = bisect.Good; at.input != f.first {
			known = bisect.Bad
		}
	case p.Purpose != bisect.ForRecheck:
		known = f.verdicts.Get("", at.input)
	}
	return func(ctx context.Context) (bisect.TestResult, error) {
		if known != 0 {
			return known, nil
		}
		if f.test.Judge == nil {
			return at.input.Result()
		}
		f.mu.Lock()
		f.tests++
		f.mu.Unlock()
		return f.test.Judge(ctx, f.cfg.At, at.fold)
	}, nil
}

// judged notes a judgment, so that it counts for versions with which the test sees the same.
func (f *finder) judged(j bisect.Judged) {
	f.mu.Lock()
	input, reason := f.seen[j.Index], f.refused[j.Index]
	f.mu.Unlock()
	if reason == nil && !f.cfg.Changed && f.test.Judge != nil {
		f.verdicts.Put("", input, j.Result)
	}
	if f.cfg.Judged != nil {
		f.cfg.Judged(JudgedVersion{Judged: j, Version: &f.versions[j.Index], Refused: reason})
	}
}

// share gives versions what is known of one with an equal content.
func (f *finder) share() {
	of := map[bisect.InputHash]int{}
	for i := range f.versions {
		if f.refused[i] != nil || f.seen[i] != (bisect.InputHash{}) {
			of[f.versions[i].Content] = i
		}
	}
	for i := range f.versions {
		if k, ok := of[f.versions[i].Content]; ok {
			if f.seen[i] = f.seen[k]; f.refused[k] != nil {
				f.refused[i] = f.refused[k]
			}
		}
	}
}

// see returns what the test sees at the moment with a version, or nil if that cannot come
// into force.
func (f *finder) see(ctx context.Context, i int) (*sight, error) {
	r, err := f.replay(ctx, i)
	if r == nil || err != nil {
		return nil, err
	}
	s, err := r.StepAt(ctx, f.cfg.At, f.test.Needs)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	input, err := f.test.Input(ctx, s) // not for several goroutines at once
	if err != nil {
		return nil, fmt.Errorf("with the version %s: %w", f.versions[i].Name, err)
	}
	f.seen[i] = input
	return &sight{input, s.Fold}, nil
}

// replay returns the session with a version, or nil if that cannot come into force.
func (f *finder) replay(ctx context.Context, i int) (*replay.Replay, error) {
	refuse := func(reason error) (*replay.Replay, error) {
		f.mu.Lock()
		f.refused[i] = reason
		f.mu.Unlock()
		return nil, nil
	}
	files, err := f.versions[i].Read(ctx)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return refuse(errors.New("there is no file"))
	}
	changes, err := f.cfg.Compile(ctx, &f.versions[i], files)
	if e, ok := errors.AsType[*RefusedError](err); ok {
		return refuse(e.Reason)
	}
	if err != nil {
		return nil, err
	}
	v, err := variant.New(ctx, f.recorded, changes)
	if errors.Is(err, variant.ErrChange) {
		return refuse(err)
	}
	if err != nil {
		return nil, err
	}
	return session.NewReplay(v, f.cfg.Projections, nil), nil
}

// part finds where the sessions with two versions part.
func (f *finder) part(ctx context.Context, good, bad int) (*Parting, error) {
	left, err := f.replay(ctx, good)
	if err != nil {
		return nil, err
	}
	right, err := f.replay(ctx, bad)
	if err != nil {
		return nil, err
	}
	return Part(ctx, left, right, f.cfg.At, f.test)
}
