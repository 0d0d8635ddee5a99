package statecmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/searchlog"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// keptSearchHelp is the part of the help of bisect that describes searches that are kept.
const keptSearchHelp = `A search can also be kept and continued, as with git: bisect start, then good, bad
and skip, or run. The words of bisect start --terms stand for good and bad. The
search lies beside the store in a file of its own. The names of these subcommands
are not taken for sessions; use --session for such a session.`

// keptCommands are the subcommands of bisect.
func keptCommands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		startSearch(a), judgeSearch(a, bisect.Good), judgeSearch(a, bisect.Bad), judgeSearch(a, bisect.Skip), undoSearch(a),
		keptCommand(a, "next", "Tell the moment to judge next", `Next tells the moment that is to be judged next, why, and how many candidates are
left. The exit code of a search that has finished is that of bisect run.`, (*keptSearch).report),
		keptCommand(a, "status", "Tell the state of a kept search", `Status tells what is known to be good and bad, and what is left.`, (*keptSearch).report),
		keptCommand(a, "explain", "Tell what is known, and what is assumed", `Explain tells in sentences what the search knows, from which judgments, and what
its answer assumes.`, (*keptSearch).explain),
		keptCommand(a, "terms", "Tell the words for good and bad", `Terms tells the words of the search for good and bad, of bisect start --terms.`, (*keptSearch).terms),
		runSearch(a), askSearch(a), logSearch(a), replaySearch(a), visualizeSearch(a), resetSearch(a),
	}
}

// keptCommand is a subcommand that only reads a search.
func keptCommand(a *cli.App, name, short, long string, do func(*keptSearch) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Long: long,
		Example: "  sajou-replay bisect start\n  sajou-replay bisect " + name,
		Args:    cli.Between(0, 0),
		RunE:    withSearch(a, func(_ context.Context, s *keptSearch, _ []string) error { return do(s) }),
	}
}

// withSearch runs do with the search of the session.
func withSearch(a *cli.App, do func(context.Context, *keptSearch, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := openSearch(cmd.Context(), a)
		if err != nil {
			return err
		}
		defer s.t.Close()
		return do(cmd.Context(), s, args)
	}
}

// notKept are the flags of bisect that bisect start refuses, with the reasons.
var notKept = map[string]string{
	"jobs":    "is a flag of bisect run, which runs the tests",
	"over":    "searches in one command: sajou-replay bisect --over defs",
	"repo":    "is for a search over versions: sajou-replay bisect --over defs",
	"at":      "is for a search over versions: sajou-replay bisect --over defs",
	"changed": "is for a search over versions: sajou-replay bisect --over defs",
}

func startSearch(a *cli.App) *cobra.Command {
	var s searchFlags
	var terms string
	cmd := &cobra.Command{
		Use:   "start [SESSION] [--good ADDR] [--bad ADDR] [--where EXPR | --image PNG | -- COMMAND ARG...]",
		Short: "Begin a search that is kept",
		Long: `Start begins a search that goes on over several commands, and is kept beside the
store until bisect reset. Its test is named here: an expression, an image or a
command as for bisect. Without one a person judges the pictures of the stage, with
bisect ask, or with bisect good, bad and skip; with --find any the ends then count
as given.

The candidates are the moments at which the input of the test changes. The search
remembers the head at the bad moment, the declarations up to there, the files of
--define, the test with its flags and the files that it names, and what the test
saw at each moment that was judged. It refuses to go on if one of them changed. A
damaged session can be searched in front of the damage.

The flags mean the same as those of bisect, and hold for every command of the
search. --jobs is a flag of bisect run. Versions (--over) are searched in one
command.

` + imageTestHelp + `

` + cli.DefinitionsHelp,
		Example: `  sajou-replay bisect start --good 30 --bad 40
  sajou-replay bisect reset
  sajou-replay bisect start --find all --repeat 3 --see time -- sh -c 'grep -qv smoke'
  sajou-replay bisect reset
  sajou-replay bisect start --terms old,new -- sh -c 'grep -qv smoke'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for name, reason := range notKept {
				if cmd.Flags().Changed(name) {
					return cli.Misuse("--%s %s", name, reason)
				}
			}
			var command []string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, command = args[:dash], args[dash:]
			}
			if len(args) > 1 {
				return cli.Misuse("too many arguments: %q; put the command to run after --", args[1])
			}
			subject, err := s.subject(cmd, command)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("terms") {
				words := strings.Split(terms, ",")
				if len(words) != 2 || words[0] == "" || words[1] == "" || words[0] == words[1] {
					return cli.Misuse("--terms %s: must be two different words, such as old,new", terms)
				}
				subject.Terms = words
			}
			name, err := a.SessionArg(args)
			if err != nil {
				return err
			}
			return beginSearch(cmd.Context(), a, name, s.good, s.bad, subject)
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&terms, "terms", "", "other words for good and bad, as `OLD,NEW`")
	for name := range notKept {
		cmd.Flags().String(name, "", "")
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// subject returns the subject of a kept search, without what the session adds to it.
func (s *searchFlags) subject(cmd *cobra.Command, command []string) (subject searchlog.SearchSubject, err error) {
	test := searchlog.SearchedTest{Args: command}
	if test.Kind, err = s.kind(command); err != nil {
		return subject, err
	}
	if err := s.check(cmd, test.Kind); err != nil {
		return subject, err
	}
	if test.Kind == byWhere {
		test.Args = []string{s.expr}
	}
	test.Flags = s.values(cmd)
	subject = searchlog.SearchSubject{Define: s.defines, Test: test}
	if cmd.Flags().Changed("every") {
		if s.every < time.Millisecond {
			return subject, cli.Misuse("--every %v: must be at least 1ms for a search that is kept", s.every)
		}
		subject.Every = s.every.String()
	}
	if s.goal != bisect.Any {
		subject.Find = s.goal.String()
	}
	if cmd.Flags().Changed("probe") {
		subject.Probes = &s.probes
	}
	return subject, nil
}

// beginSearch keeps a new search. It makes the search before it keeps it, so that one that
// cannot go on is not kept.
func beginSearch(ctx context.Context, a *cli.App, name, good, bad string, subject searchlog.SearchSubject) error {
	t, err := a.OpenSession(name)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := a.SeeThrough(ctx, t, subject.Define); err != nil {
		return err
	}
	from, err := t.Resolve(ctx, good)
	if err != nil {
		return err
	}
	to, err := t.Resolve(ctx, bad)
	if err != nil {
		return err
	}
	if from.Compare(to) >= 0 {
		return cli.Misuse("the good moment %v must come before the bad one %v; to find a fix, swap the two and use --terms broken,fixed", from, to)
	}
	test, _, err := keptTest(ctx, a, t, subject.Test)
	if err != nil {
		return err
	}
	subject.Session, subject.Good, subject.Bad, subject.Test.Digest = t.Name, from.String(), to.String(), test.Identity
	if subject.Head, subject.Definitions, err = fingerprint(ctx, t, to.Seq, subject.Define); err != nil {
		return err
	}
	text, err := searchlog.Begin(subject)
	if err != nil {
		return cli.Misuse("%w", err)
	}
	if err := a.BeginSearch(t.Name, text); err != nil {
		return err
	}
	s := &keptSearch{a: a, t: t}
	if err := s.resume(ctx); err != nil {
		_, _ = a.EndSearch(t.Name)
		return err
	}
	if err := s.search.Err(); err != nil {
		_, _ = a.EndSearch(t.Name)
		return cli.Fail(cli.ExitNo, "%w; choose ends that differ", err)
	}
	if subject.Test.Kind == byPerson && subject.Find == "" {
		for i, end := range []bisect.TestResult{bisect.Good, bisect.Bad} {
			at := i * (len(s.search.Stretches()) - 1)
			if err := s.judge(at, s.search.Stretches()[at].From, end, "given"); err != nil {
				return err
			}
		}
	}
	return s.report()
}

// judgeSearch is the subcommand good, bad or skip.
func judgeSearch(a *cli.App, r bisect.TestResult) *cobra.Command {
	return &cobra.Command{
		Use:   r.String() + " [ADDR]",
		Short: "Record that a moment is " + map[bisect.TestResult]string{bisect.Good: "good", bisect.Bad: "bad", bisect.Skip: "not to be judged"}[r],
		Long: `Records a judgment of the moment that bisect next tells, or of the one that ADDR
names, and tells the next one. Moments at which the test sees the same share it.`,
		Example: "  sajou-replay bisect start\n  sajou-replay bisect " + r.String() + "\n  sajou-replay bisect undo",
		Args:    cli.Between(0, 1),
		RunE:    withSearch(a, judging(r)),
	}
}

// judging records r for the moment that the argument names, or for the next one.
func judging(r bisect.TestResult) func(context.Context, *keptSearch, []string) error {
	return func(ctx context.Context, s *keptSearch, args []string) error {
		if len(args) == 1 {
			m, err := s.t.Resolve(ctx, args[0])
			if err != nil {
				return err
			}
			i, ok := searchlog.Find(s.search, m)
			if !ok {
				return cli.Fail(cli.ExitNotFound, "%v is not within %s..%s, the range of the search", m, s.log.Subject.Good, s.log.Subject.Bad)
			}
			if err := s.judge(i, m, r, "person"); err != nil {
				return err
			}
			return s.report()
		}
		p, more := s.search.Next()
		if !more {
			return cli.Fail(cli.ExitNo, "the search has finished; name a moment to judge another one")
		}
		if err := s.judge(p.Index, s.search.Stretches()[p.Index].From, r, "person"); err != nil {
			return err
		}
		return s.report()
	}
}

// judgeByTerm runs the subcommand good or bad by the word that the kept search has for it.
// Done is false if the arguments are not a subcommand; then the first is a session.
func judgeByTerm(cmd *cobra.Command, a *cli.App, args []string) (done bool, err error) {
	r, session, err := meaningOf(a, args[0])
	if err != nil || session {
		return false, nil //nolint:nilerr // bisect itself reports what is wrong
	}
	if r == 0 {
		return true, cli.NoCommand(cmd, args[0])
	}
	if len(args) > 2 {
		return true, cli.Misuse("too many arguments: %q; bisect %s takes one address", args[2], args[0])
	}
	return true, withSearch(a, judging(r))(cmd, args[1:])
}

// meaningOf returns the result that a word of the kept search stands for, or 0, and whether
// the word is the name of a session instead.
func meaningOf(a *cli.App, word string) (r bisect.TestResult, session bool, err error) {
	t, err := a.OpenSession("")
	if err != nil {
		return 0, false, err
	}
	defer t.Close()
	if l, err := a.SearchLog(t.Name); err == nil {
		if i := slices.Index(l.Subject.Terms, word); i >= 0 {
			return bisect.Good + bisect.TestResult(i), false, nil
		}
	}
	names, err := t.Engine.Sessions()
	return 0, slices.Contains(names, word), err
}

func undoSearch(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "undo",
		Short:   "Take back the latest judgment",
		Long:    `Undo takes back the latest judgment. The file of the search keeps both.`,
		Example: "  sajou-replay bisect start\n  sajou-replay bisect bad\n  sajou-replay bisect undo",
		Args:    cli.Between(0, 0),
		RunE: withSearch(a, func(_ context.Context, s *keptSearch, _ []string) error {
			_, ok, err := s.undo()
			if err != nil {
				return err
			}
			if !ok {
				return cli.Fail(cli.ExitNo, "there is no judgment to take back")
			}
			return s.report()
		}),
	}
}

func runSearch(a *cli.App) *cobra.Command {
	jobs := 0
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Judge with the test of the search until it has finished",
		Long: `Run judges with the test of bisect start until the search has finished. Each
judgment is kept at once, so an interrupted run goes on where it was. Then it goes
on between the good and the bad candidate, as bisect does; these judgments are not
kept.

The exit code is 0 if a transition was found, 1 if an end is not what it was given
as or nothing is bad, 5 if skipped candidates or islands leave the answer open,
and 7 if the test could not run.`,
		Example: "  sajou-replay bisect start -- sh -c 'grep -qv smoke'\n  sajou-replay bisect run",
		Args:    cli.Between(0, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkJobs(jobs); err != nil {
				return err
			}
			return withSearch(a, func(ctx context.Context, s *keptSearch, _ []string) error { return s.run(ctx, jobs) })(cmd, args)
		},
	}
	jobsFlag(cmd, &jobs)
	return cmd
}

func logSearch(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "log",
		Short: "Write the search as JSON Lines, to share it",
		Long: `Log writes what is searched and the judgments that count, one JSON object a line.
bisect replay continues from it, also beside another store with the same session.`,
		Example: "  sajou-replay bisect start\n  sajou-replay bisect log > search.jsonl",
		Args:    cli.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.OpenSession("")
			if err != nil {
				return err
			}
			defer t.Close()
			l, err := a.SearchLog(t.Name)
			if err != nil {
				return err
			}
			text, err := l.Text()
			if err != nil {
				return err
			}
			o := a.Output()
			if _, err := o.Write(termtext.PrintableJSON(text)); err != nil {
				return err
			}
			return o.Flush()
		},
	}
}

func replaySearch(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Continue a search from the output of bisect log",
		Long: `Replay keeps the search of a file that bisect log wrote, or of stdin if FILE is -.
It refuses one of another recording, or whose test changed.`,
		Example: "  sajou-replay bisect start\n  sajou-replay bisect log > search.jsonl\n  sajou-replay bisect reset\n  sajou-replay bisect replay search.jsonl",
		Args:    cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			shown, text, err := a.ReadInput(cmd.Context(), args[0], maxSearchFile)
			if err != nil {
				return err
			}
			l, err := searchlog.Read(strings.NewReader(string(text)))
			if err != nil {
				return cli.Misuse("%s: %w", shown, err)
			}
			t, err := a.OpenSession(l.Subject.Session)
			if err != nil {
				return err
			}
			defer t.Close()
			if text, err = l.Text(); err != nil {
				return err
			}
			if err := a.BeginSearch(t.Name, text); err != nil {
				return err
			}
			s := &keptSearch{a: a, t: t}
			if err := s.resume(cmd.Context()); err != nil {
				_, _ = a.EndSearch(t.Name)
				return err
			}
			return s.report()
		},
	}
}

// maxSearchFile bounds the bytes of a file of bisect log.
const maxSearchFile = 64 << 20

func visualizeSearch(a *cli.App) *cobra.Command {
	var out string
	var count int
	cmd := &cobra.Command{
		Use:   "visualize -O FILE",
		Short: "Draw the pictures of what remains",
		Long: `Visualize draws a sheet of the stage at the candidates between the good and the
bad side of the search, --count at most, evenly, as SVG or PNG.`,
		Example: "  sajou-replay bisect start\n  sajou-replay bisect visualize -O remaining.svg",
		Args:    cli.Between(0, 0),
		RunE: withSearch(a, func(ctx context.Context, s *keptSearch, _ []string) error {
			if count < 2 || count > 400 {
				return cli.Misuse("--count %d: must be from 2 to 400", count)
			}
			format, svg := "png", strings.HasSuffix(out, ".svg")
			if svg {
				format = "svg"
			} else if !strings.HasSuffix(out, ".png") {
				return cli.Misuse("-O %q: name a file that ends in .svg or .png", out)
			}
			var cells []picture.Cell
			for _, at := range s.remaining(count) {
				shot, err := s.shot(ctx, at.From)
				if err != nil {
					return err
				}
				i, _ := searchlog.Find(s.search, at.From)
				caption := at.From.String()
				if r := s.search.Result(i); r != 0 {
					caption += " " + s.term(r)
				}
				cells = append(cells, picture.Cell{Frame: shot.Frame, Caption: caption})
			}
			d := picture.Sheet(cells, 0, picture.Options{Width: 320, Clock: true})
			if err := cli.WriteFile(out, cli.Encode(d, format)); err != nil {
				return err
			}
			return a.Output().Text(fmt.Sprintf("%s: %s", out, cli.Plural(len(cells), "picture", "pictures")))
		}),
	}
	cmd.Flags().StringVarP(&out, "out", "O", "", "write to `FILE`")
	cmd.Flags().IntVar(&count, "count", 24, "most pictures")
	return cmd
}

func resetSearch(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "reset",
		Short:   "End a search and forget it",
		Long:    `Reset removes the search of the session. Nothing else is changed.`,
		Example: "  sajou-replay bisect start\n  sajou-replay bisect reset",
		Args:    cli.Between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			t, err := a.OpenSession("")
			if err != nil {
				return err
			}
			defer t.Close()
			ended, err := a.EndSearch(t.Name)
			if err != nil {
				return err
			}
			if !ended {
				return a.Output().Text("no search was under way")
			}
			return a.Output().Text("the search of " + termtext.Printable(t.Name) + " was removed")
		},
	}
}

// terms writes the words of the search.
func (s *keptSearch) terms() error {
	good, bad := s.term(bisect.Good), s.term(bisect.Bad)
	return s.a.Output().One(fmt.Sprintf("good is called %s, bad is called %s", good, bad), map[string]string{"good": good, "bad": bad})
}

// explain writes in sentences what is known and what is assumed.
func (s *keptSearch) explain() error {
	subject, c := &s.log.Subject, s.search.Conclusion()
	var b strings.Builder
	fmt.Fprintf(&b, "The session %s is searched from %s to %s.\n", termtext.Printable(s.t.Name), subject.Good, subject.Bad)
	switch test := subject.Test; test.Kind {
	case byPerson:
		b.WriteString("A person judges the picture of the stage.\n")
	case byWhere:
		fmt.Fprintf(&b, "A state is %s if %s.\n", s.term(bisect.Bad), termtext.Printable(test.Args[0]))
	case byImage:
		fmt.Fprintf(&b, "A picture is compared with %s.\n", termtext.Printable(test.Flags["image"]))
	case byProgram:
		fmt.Fprintf(&b, "A command judges the state: %s.\n", termtext.Printable(strings.Join(test.Args, " ")))
	}
	if r := s.repeat; r.Confidence > 0 {
		fmt.Fprintf(&b, "It is run until its verdict is right with the probability %v.\n", r.Confidence)
	} else if r.Times > 1 {
		fmt.Fprintf(&b, "The verdict is the majority of %d runs.\n", r.Times)
	}
	if len(subject.Define) > 0 {
		fmt.Fprintf(&b, "The session is seen through %s.\n", termtext.Printable(strings.Join(subject.Define, ", ")))
	}
	fmt.Fprintf(&b, "The test sees something else at %s, the candidates; %d of them are different. %d are judged, %d were skipped.\n",
		cli.Plural(c.Candidates, "moment", "moments"), c.Inputs, c.Judged, c.Skipped)
	list := s.search.Stretches()
	if c.Found {
		fmt.Fprintf(&b, "%v is %s and %v is %s", list[c.Good].From, s.term(bisect.Good), list[c.Bad].From, s.term(bisect.Bad))
		if c.Exact() {
			b.WriteString(", and no candidate is between them: this is a transition.\n")
		} else {
			fmt.Fprintf(&b, ", and %s between them: a transition is among these.\n", cli.Plural(c.Bad-c.Good-1, "candidate is", "candidates are"))
		}
	}
	if c.Goal == bisect.Any {
		for _, island := range c.Islands() {
			fmt.Fprintf(&b, "But %v is %s, so the session turns more than once.\n", list[island.First].From, s.term(island.Result))
		}
	}
	for _, conflict := range c.Conflicts {
		fmt.Fprintf(&b, "%v was judged %s and then %s, although the test saw the same: the judgments contradict each other.\n", list[conflict.Index].From, s.term(conflict.Was), s.term(conflict.Now))
	}
	switch {
	case c.Conclusive():
		b.WriteString("Every candidate was judged, so nothing is assumed.\n")
	case c.Goal != bisect.Any:
		fmt.Fprintf(&b, "Every candidate is to be judged (--find %v).\n", c.Goal)
	case len(c.Islands()) == 0:
		fmt.Fprintf(&b, "That there is only one transition is assumed: %d candidates were not judged.\n", c.Candidates-c.Judged-c.Skipped)
	}
	v, _ := s.view()
	return s.a.Output().One(b.String(), v)
}
