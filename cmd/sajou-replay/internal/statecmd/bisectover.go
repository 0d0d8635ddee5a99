package statecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/edits"
	"github.com/sajou-dev/sajou-go/replay/edits/versions"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// overFlags are the flags of a search over versions instead of moments.
type overFlags struct {
	kind    string // "defs", or "" for a search over moments
	repo    string
	at      string
	changed string
}

const overHelp = `With --over defs, bisect searches over the versions of a definition file, and not
over moments: which edit turned the moment --at, by default the end, from good to
bad? Each version is a file in DIR, or a folder of several files in it, in the
order of their names, where v2 is before v10. With --repo, each version is a
commit of the git repository that changed PATH, a file or a folder; of a branch
that was merged, the merge counts. --good and --bad name versions or commits; by
default the first one must prove good and the last one bad. The recorded signals
are the same with each version, which is used like a file of --define elsewhere.

The test is one of those above, or --changed PATH: a version is bad if the value
at the PATH of the state, or with --changed picture the drawing of the stage, is
not the one with the first version. A version that has errors, or that the session
does not admit, is skipped and named. With --where and --changed every version is
judged.

The answer has the edit, and the first moment at which the two versions around it
make a difference for the test.`

func (o *overFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.kind, "over", "", "search over `WHAT` instead of moments: defs, the versions of a definition file")
	f.StringVar(&o.repo, "repo", "", "with --over, take the commits that changed `PATH` in its git repository")
	f.StringVar(&o.at, "at", "end", "with --over, `ADDR` of the moment that is judged")
	f.StringVar(&o.changed, "changed", "", "with --over, bad is another value at the `PATH` of the state, or picture")
}

func (o *overFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if o.kind == "" {
		for _, name := range []string{"repo", "at", "changed"} {
			if changed(name) {
				return cli.Misuse("--%s needs --over defs", name)
			}
		}
	}
	switch {
	case changed("over") && o.kind != "defs":
		return cli.Misuse("--over %s: must be defs", o.kind)
	case changed("changed") && o.changed == "":
		return cli.Misuse("--changed is empty; name a path of the state, or picture")
	case changed("repo") && o.repo == "":
		return cli.Misuse("--repo is empty; name a file or folder of a git repository")
	case o.kind != "" && changed("every"):
		return cli.Misuse("--every is for a search over moments; omit it")
	case o.kind != "" && changed("define"):
		return cli.Misuse("--define is for a search over moments; omit it")
	}
	return nil
}

// splitFolder takes the folder of versions, the last argument without --repo.
func (o *overFlags) splitFolder(names []string) (rest []string, dir string) {
	if o.repo != "" || len(names) == 0 {
		return names, ""
	}
	last := len(names) - 1
	return names[:last], names[last]
}

// versions reads the versions from one to another.
func (o *overFlags) versions(ctx context.Context, dir, from, to string) ([]edits.Version, error) {
	var all []edits.Version
	var err error
	switch {
	case o.repo != "":
		all, err = versions.Repository(ctx, o.repo, from, to)
	case dir == "":
		return nil, cli.Misuse("--over defs needs the folder of the versions, or --repo PATH")
	default:
		if info, failed := os.Stat(dir); failed != nil || !info.IsDir() {
			return nil, cli.Fail(cli.ExitNotFound, "%s is not a folder of versions", dir)
		}
		if all, err = versions.Folder(ctx, dir); err == nil && len(all) > 0 {
			all, err = versions.Between(all, from, to)
		}
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, cli.Fail(cli.ExitCannotRun, "%w; --repo needs the program git", err)
	case errors.Is(err, versions.ErrNoHistory):
		return nil, cli.Fail(cli.ExitNotFound, "%w", err)
	case errors.Is(err, versions.ErrTooMuch):
		return nil, cli.Fail(cli.ExitInconclusive, "%w; search between later ones with --good", err)
	case cli.IsA[*versions.GitError](err):
		return nil, cli.Fail(cli.ExitCannotRun, "%w", err)
	case err == nil && len(all) < 2:
		return nil, cli.Fail(cli.ExitNotFound, "%s has %s, and a search needs two", o.repo+dir, cli.Plural(len(all), "version", "versions"))
	}
	return all, err
}

// overSearch is one search over versions.
type overSearch struct {
	a     *cli.App
	t     *cli.OpenedSession
	flags *bisectFlags
	at    replay.Moment
	all   []edits.Version

	values map[bisect.InputHash]string // with --changed PATH: the values by their hash, as text
	absent error                       // the value was not found, and never yet
}

func (b *bisectFlags) runOver(cmd *cobra.Command, a *cli.App, name, dir string, made compiledTest) error {
	ctx := cmd.Context()
	from, to := "", ""
	if cmd.Flags().Changed("good") {
		from = b.good
	}
	if cmd.Flags().Changed("bad") {
		to = b.bad
	}
	if _, err := cli.ParseAddress(b.over.at); err != nil {
		return err
	}
	all, err := b.over.versions(ctx, dir, from, to)
	if err != nil {
		return err
	}
	t, err := a.OpenSession(name)
	if err != nil {
		return err
	}
	defer t.Close()
	s := &overSearch{a: a, t: t, flags: b, all: all, values: map[bisect.InputHash]string{}}
	if s.at, err = t.Resolve(ctx, b.over.at); err != nil {
		return err
	}
	test := s.changedTest()
	if b.over.changed == "" {
		if test, err = b.test(a, t, made); err != nil {
			return err
		}
	}
	last, err := t.Travel.At(ctx, cli.MomentOf(t.Travel.Head().Seq))
	if err != nil {
		return err
	}
	catalog := new(language.Catalog) // the files may refer to what the session declares
	if state, ok := last.State(session.ProjectionPerformances).(cli.Scheduling); ok {
		catalog = state.Scheduler().Catalog()
	}
	meter := cli.NewProgress(a.Stderr)
	cfg := edits.Config{
		Options: bisect.Options{Goal: b.goal, Probes: b.probes, Recheck: !b.cheap()}, Repeat: b.repeat, Jobs: b.jobs,
		At: s.at, Projections: last.Set(), Changed: b.over.changed != "",
		Compile: func(ctx context.Context, v *edits.Version, files []edits.VersionFile) (variant.Edits, error) {
			return cli.CompileVersion(ctx, catalog, v, files)
		},
		Begin: func(found *bisect.Search) {
			if test.Judge != nil && found.Err() == nil {
				fmt.Fprintf(a.Stderr, "%s with %s\n", cli.Plural(len(all), "version", "versions"), cli.Plural(found.Inputs(), "content", "different contents"))
			}
		},
		Judged: func(j edits.JudgedVersion) {
			meter.Clear()
			switch {
			case j.Refused != nil:
				fmt.Fprintf(a.Stderr, "%s  skip  %s\n", printable(j.Version.Name), printable(cli.OneLine(j.Refused.Error())))
			case test.Judge != nil:
				fmt.Fprintf(a.Stderr, "%s  %v\n", printable(j.Version.Name), j.Result)
			default:
				meter.Show(j.Version.Name)
			}
		},
	}
	out, err := edits.Find(ctx, t.Log, all, test, cfg)
	meter.Clear()
	if err != nil {
		return s.explain(ctx, out, err)
	}
	if s.absent != nil && len(s.values) == 0 {
		return s.absent
	}
	view, text, err := s.answer(ctx, out)
	if err != nil {
		return err
	}
	if err := a.Output().One(text, view); err != nil {
		return err
	}
	if len(out.Conflicts) > 0 {
		return nondeterministic(out.Conflicts[0], all[out.Conflicts[0].Index].Name)
	}
	return exitOf(out.Conclusion, judgedAll(out))
}

func printable(text string) string { return termtext.Clip(termtext.Printable(text), 200) }

// pictureOnly is the value of --changed that stands for the drawing of the stage.
const pictureOnly = "picture"

// changedTest sees what --changed names.
func (s *overSearch) changedTest() bisect.Test {
	if s.flags.over.changed == pictureOnly {
		return bisect.Test{Input: pictureInput}
	}
	return bisect.Test{Input: func(_ context.Context, at *replay.ScanStep) (bisect.InputHash, error) {
		view, left, err := answer.State(at.Fold, at.Moment, s.flags.over.changed, answer.ComparedLimits())
		if cli.IsA[*answer.NoMemberError](err) {
			s.absent = err
			return bisect.HashInput(), nil
		}
		if err == nil && len(left) > 0 {
			err = cli.Fail(cli.ExitInconclusive, "the value at %v is too large to compare: %s; name a longer PATH", at.Moment, strings.Join(left, ", "))
		}
		if err != nil {
			return bisect.InputHash{}, err
		}
		data, err := cli.Marshal(view)
		h := bisect.HashInput(data)
		if at.Moment == s.at && s.values[h] == "" {
			s.values[h] = printable(string(data))
		}
		return h, err
	}}
}

// judgedAll reports whether every version that can come into force was judged.
func judgedAll(out *edits.FoundEdit) bool {
	return out.Judged+len(out.Refused) == out.Candidates && len(out.Conflicts) == 0
}

// explain returns the error with which the command ends.
func (s *overSearch) explain(ctx context.Context, out *edits.FoundEdit, err error) error {
	if ctx.Err() != nil {
		if out != nil {
			fmt.Fprintf(s.a.Stderr, "interrupted after %s: %d of %d versions are judged\n", cli.Plural(out.Judgments, "judgment", "judgments"), out.Judged, out.Candidates)
			if out.Found {
				fmt.Fprintf(s.a.Stderr, "known so far: %s is good and %s is bad\n", printable(s.all[out.Good].Name), printable(s.all[out.Bad].Name))
			}
		}
		return ctx.Err()
	}
	if e, ok := cli.AsEvalError(err); ok {
		return e
	}
	if end, ok := errors.AsType[*bisect.EndpointError](err); ok {
		name, flag := s.all[end.Index].Name, "--"+end.Want.String()
		if end.Got == bisect.Skip {
			reason := "the test skips it"
			if out.Refused[end.Index] != nil {
				reason = cli.OneLine(out.Refused[end.Index].Error())
			}
			return cli.Fail(cli.ExitUntestable, "the version %s cannot be judged: %s; name another one with %s", name, reason, flag)
		}
		return cli.Fail(cli.ExitNo, "the version %s was given as %v, and the test says %v; name another one with %s, or judge every version with --find all", name, end.Want, end.Got, flag)
	}
	if errors.Is(err, bisect.ErrAlike) {
		return cli.Fail(cli.ExitNo, "the versions %s and %s have the same content, so one cannot be good and the other bad; name others with --good and --bad, or judge every version with --find all", s.all[0].Name, s.all[len(s.all)-1].Name)
	}
	if e, ok := errors.AsType[*edits.RefusedError](err); ok {
		return cli.Fail(cli.ExitUntestable, "the version %s, to which the others are compared, cannot come into force: %w; name another one with --good", e.Version, e.Reason)
	}
	return err
}

// overView is an answer as JSON.
type overView struct {
	Find       string           `json:"find"`
	JudgedAt   string           `json:"judgedAt"`
	LastGood   string           `json:"lastGood,omitempty"`
	FirstBad   string           `json:"firstBad,omitempty"`
	First      string           `json:"first,omitempty"`
	Title      string           `json:"title,omitempty"`
	Entry      *eventlog.Seq    `json:"entry,omitempty"`
	Moment     string           `json:"moment,omitempty"`
	At         *float64         `json:"at,omitempty"`
	Was        string           `json:"was,omitempty"`
	Now        string           `json:"now,omitempty"`
	Conclusive bool             `json:"conclusive"`
	Assumes    string           `json:"assumes,omitempty"`
	Conflict   string           `json:"conflict,omitempty"`
	Versions   int              `json:"versions"`
	Contents   int              `json:"contents"`
	Judged     int              `json:"judged"`
	Tests      int              `json:"tests"`
	Skipped    int              `json:"skipped"`
	Refused    []refusedView    `json:"refused,omitempty"`
	Phases     []versionRunView `json:"phases,omitempty"`
	Islands    []versionRunView `json:"islands,omitempty"`
}

// refusedView is a version that cannot come into force, as JSON.
type refusedView struct {
	Version string `json:"version"`
	Reason  string `json:"reason"`
}

// versionRunView is successive versions with one result, as JSON.
type versionRunView struct {
	Result string `json:"result"`
	First  string `json:"first"`
	Last   string `json:"last"`
}

func (s *overSearch) runs(phases []bisect.Phase) (views []versionRunView) {
	for _, p := range phases {
		views = append(views, versionRunView{p.Result.String(), s.all[p.First].Name, s.all[p.Last].Name})
	}
	return views
}

func (v versionRunView) String() string {
	if v.First == v.Last {
		return v.Result + " with " + printable(v.First)
	}
	return fmt.Sprintf("%s with %s to %s", v.Result, printable(v.First), printable(v.Last))
}

// answer returns what the search found, as JSON and as text.
func (s *overSearch) answer(ctx context.Context, out *edits.FoundEdit) (overView, string, error) {
	v := overView{
		Find: out.Goal.String(), JudgedAt: s.at.String(), Conclusive: out.Conclusive(), Assumes: out.Assumes(),
		Versions: out.Candidates, Contents: out.Inputs, Judged: out.Judged, Tests: out.Tests, Skipped: out.Skipped,
	}
	for i := range s.all {
		if reason := out.Refused[i]; reason != nil {
			v.Refused = append(v.Refused, refusedView{s.all[i].Name, cli.OneLine(reason.Error())})
		}
	}
	if judgedAll(out) {
		v.Phases, v.Assumes = s.runs(out.Phases), ""
	} else if out.Goal == bisect.Any {
		v.Islands = s.runs(out.Islands())
	}
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if out.Found {
		good, bad := &s.all[out.Good], &s.all[out.Bad]
		v.LastGood, v.FirstBad, v.Title = good.Name, bad.Name, bad.Title
		switch first := out.Phases[0]; {
		case !out.Exact():
			say("the first bad version after %s is one of %s..%s, the others were skipped", printable(good.Name), printable(s.all[out.Good+1].Name), printable(bad.Name))
		case judgedAll(out) && first.Result == bisect.Good && first.Last == out.Good:
			v.First = bad.Name
			say("%s is the first bad version at %v, after %s", printable(bad.Name), s.at, printable(good.Name))
		default:
			say("%s is a bad version at %v after a good one, %s: a transition", printable(bad.Name), s.at, printable(good.Name))
		}
		if bad.Title != "" {
			say("  %s", printable(bad.Title))
		}
		v.Was, v.Now = s.values[out.Seen[out.Good]], s.values[out.Seen[out.Bad]]
		if s.flags.over.changed != "" && s.flags.over.changed != pictureOnly {
			say("%s at %v: %s → %s", printable(s.flags.over.changed), s.at, orNone(v.Was), orNone(v.Now))
		}
		if err := s.parting(ctx, out, &v, say); err != nil {
			return v, "", err
		}
	}
	s.certainty(out, &v, say)
	return v, strings.Join(lines, "\n"), nil
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// parting says at which moment the versions around the edit first make a difference.
func (s *overSearch) parting(ctx context.Context, out *edits.FoundEdit, v *overView, say func(string, ...any)) error {
	what := "the state"
	switch b := s.flags; {
	case b.look.image != "", b.over.changed == pictureOnly:
		what = "the picture"
	case b.over.changed != "":
		what = printable(b.over.changed)
	case b.expr != "":
		what = "the expression"
	}
	p := out.Parting
	if p == nil {
		say("between the two versions %s is the same at every entry up to %v", what, s.at)
		return nil
	}
	at := projection.Millis(p.At)
	v.Entry, v.Moment, v.At = &p.Moment.Seq, p.Moment.String(), &at
	say("between the two versions %s first differs at %v (%s):", what, p.Moment, cli.ClockText(p.At))
	if p.Moment.Seq == 0 {
		return nil
	}
	e, err := s.t.Log.Entry(ctx, p.Moment.Seq)
	if err != nil {
		return err
	}
	say("%s", cli.EntryText(&e))
	return nil
}

// certainty says how many of the versions an answer covers.
func (s *overSearch) certainty(out *edits.FoundEdit, v *overView, say func(string, ...any)) {
	for _, r := range v.Refused {
		say("skipped: %s: %s", printable(r.Version), printable(r.Reason))
	}
	if len(out.Conflicts) > 0 {
		v.Conflict = s.all[out.Conflicts[0].Index].Name
	}
	versions := cli.Plural(out.Candidates, "version", "versions")
	switch {
	case judgedAll(out):
		if !anyBad(out.Phases) {
			say("nothing is bad at %v with any version", s.at)
		}
		if len(out.Phases) != 2 {
			for _, r := range v.Phases {
				if r.Result == bisect.Bad.String() {
					say("%s", r)
				}
			}
		}
		if n := len(out.Refused); n > 0 {
			say("every version that can come into force was judged, %d of %s", out.Judged, versions)
		} else {
			say("conclusive: every version was judged, %d in all", out.Candidates)
		}
	case out.Goal != bisect.Any:
		say("not conclusive: %d of %s were skipped", out.Skipped, versions)
	case len(v.Islands) > 0:
		for _, i := range v.Islands {
			say("island: %s", i)
		}
		say("one transition was assumed, which the islands refute; --find all judges every version")
	default:
		say("assumes: one transition; %d of %s were judged", out.Judged, versions)
	}
}
