package statecmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// bisectFlags are the flags of one search.
type bisectFlags struct {
	good, bad, expr string
	look            imageTest
	find            string
	probes, jobs    int
	repeat          bisect.Repeat
	timeout, every  time.Duration
	see             []string
	defines         cli.Definitions

	seeSeq, seeTime bool // of see

	over overFlags
}

// Bisect returns the command "bisect".
func Bisect(a *cli.App) *cobra.Command {
	var b bisectFlags
	cmd := &cobra.Command{
		Use:   "bisect [SESSION] [--over defs DIR] [--good ADDR] [--bad ADDR] (--where EXPR | --image PNG | -- COMMAND ARG...)",
		Short: "Find where a session goes wrong, with few tests",
		Long: `Bisect finds where a session turns from good to bad, between a good moment and
a later bad one, and the instant at which it does.

The test is one of three:

With --where, a state is bad if the expression is true. The test is cheap, so
bisect evaluates it at every entry and at every moment between entries at which
something changes. The answer is exact.

With a COMMAND after --, bisect runs the command for each test. The command reads
the state as JSON from stdin. Its output goes to stderr. Its exit code is the
verdict:
  0        good
  1..124   bad
  125      skip: the state cannot be tested; so does a run beyond --timeout
  126..    error: bisect stops with exit code 7
States that look alike share one verdict. So the JSON has no "seq" and "at", and
the environment has only SAJOU_SESSION, unless --see asks for more: with seq also
SAJOU_SEQ, with time SAJOU_AT (in ms).

` + imageTestHelp + `
The state is bad if the picture differs from the PNG, or with --same if it is
equal. Pictures that are drawn alike share one verdict.

What an answer means:

The candidates are the moments at which the input of the test changes. With
--find any, the default, a command or a picture is tested at both ends, then in
the middle of what is open. That finds a transition: a bad candidate after a good
one. There may be others. So bisect tests --probe more candidates, evenly spread,
reports those that contradict one transition as islands, and tests both ends
again. Unless every candidate was judged, the answer says "assumes: one
transition".

With --find first, last or all, every candidate is judged, and their number is
told before. The answer has every time at which the session is bad.

Last, bisect goes on between the good and the bad candidate: whether the entry
itself makes the state bad, or which instant before it, to the millisecond. This
assumes that the state stays bad until the candidate.

A test that judges the same input good and bad is nondeterministic, and bisect
says so. --repeat N takes the majority of N runs. --confidence P runs the test
until the majority is right with probability P: each run is taken to be wrong
with the probability --flake, independently, and before the first run good and
bad are equally likely.

` + overHelp + `

` + keptSearchHelp + `

` + cli.DefinitionsHelp + `

` + cli.ExpressionHelp + `

The exit code is 0 if a transition was found, 1 if an end is not what it was
given as or nothing is bad, 3 if a part of the recording cannot be read, 5 if
skipped candidates or islands leave the answer open or the test is
nondeterministic, 7 if the command could not run or a picture could not be drawn,
and 125 if an end cannot be tested.`,
		Example: `  sajou-replay bisect --where 'state.stage.entities.smoke.visible'
  sajou-replay bisect --good 10 --bad 39+500ms --where 'state.stage.entities.smoke.visible'
  sajou-replay bisect --where 'state.workspace["main.go"].text.contains("panic(")'
  sajou-replay bisect night-shift -- sh -c 'grep -qv smoke'
  sajou-replay bisect night-shift --find all --repeat 3 -- sh -c 'grep -qv smoke'
  sajou-replay bisect --image good.png --max-diff 1% --mask mask.png
  sajou-replay bisect --over defs versions --changed picture --at 36+50ms
  sajou-replay bisect --over defs versions --where 'state.stage.entities.smith.x > 400.0'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names, command = args[:dash], args[dash:]
			}
			return b.run(cmd, a, names, command)
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.good, "good", "0", "`ADDR` of a good moment, or with --over a version")
	f.StringVar(&b.bad, "bad", "end", "`ADDR` of a later, bad moment, or with --over a version")
	f.StringVar(&b.expr, "where", "", "the state is bad if `EXPR` is true")
	b.look.flags(cmd, "the state is bad if the picture equals the PNG")
	f.StringVar(&b.find, "find", "any", "find `WHICH` transition: any, first, last or all")
	f.IntVar(&b.probes, "probe", bisect.DefaultProbes, "with --find any, test `N` more candidates for islands")
	f.IntVar(&b.repeat.Times, "repeat", 0, "run each test `N` times and take the majority")
	f.Float64Var(&b.repeat.Confidence, "confidence", 0, "run each test until its verdict is right with probability `P`")
	f.Float64Var(&b.repeat.Flake, "flake", bisect.DefaultFlake, "with --confidence, the probability `Q` of a wrong run")
	f.DurationVar(&b.timeout, "timeout", 0, "skip a candidate whose command runs longer than `D`")
	f.IntVar(&b.jobs, "jobs", 1, "run up to `N` tests at the same time")
	f.DurationVar(&b.every, "every", 0, "also compare moments each `D`, for values that move")
	f.StringSliceVar(&b.see, "see", nil, "let the command see `WHAT` besides the state: seq, time")
	b.defines.Flag(cmd)
	f.Bool("moment", false, "")
	_ = f.MarkHidden("moment") // bisect always goes on to the instant
	b.over.flags(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	cmd.AddCommand(keptCommands(a)...)
	return cmd
}

// check refuses flags that do not fit each other.
func (b *bisectFlags) check(cmd *cobra.Command, command []string) error {
	if err := b.over.check(cmd); err != nil {
		return err
	}
	if cli.Count(b.expr != "", b.look.image != "", len(command) > 0, b.over.changed != "") != 1 {
		return cli.Misuse("bisect needs one test: --where EXPR, --image PNG, or a command after --")
	}
	for name, needs := range map[string]bool{
		"timeout": len(command) > 0, "see": len(command) > 0, "repeat": !b.cheap(), "confidence": !b.cheap(), "jobs": !b.cheap(), "probe": !b.cheap(),
	} {
		if cmd.Flags().Changed(name) && !needs {
			return cli.Misuse("--%s is for tests that are expensive to run; omit it", name)
		}
	}
	switch {
	case b.probes < 0:
		return cli.Misuse("--probe %d: must be 0 or more", b.probes)
	case b.jobs < 1 || b.jobs > maxJobs:
		return cli.Misuse("--jobs %d: must be from 1 to %d", b.jobs, maxJobs)
	case cmd.Flags().Changed("repeat") && b.repeat.Times < 1:
		return cli.Misuse("--repeat %d: must be at least 1", b.repeat.Times)
	case cmd.Flags().Changed("flake") && b.repeat.Confidence == 0:
		return cli.Misuse("--flake needs --confidence P")
	case cmd.Flags().Changed("confidence") && b.repeat.Confidence == 0:
		return cli.Misuse("--confidence 0: must be above 0.5 and below 1")
	case cmd.Flags().Changed("timeout") && b.timeout <= 0:
		return cli.Misuse("--timeout %v: must be above 0", b.timeout)
	case cmd.Flags().Changed("every") && b.every < time.Microsecond:
		return cli.Misuse("--every %v: must be at least 1µs", b.every)
	}
	if err := b.repeat.Check(); err != nil {
		return cli.Misuse("%s", strings.TrimPrefix(err.Error(), "bisect: "))
	}
	for _, what := range b.see {
		switch what {
		case "seq":
			b.seeSeq = true
		case "time":
			b.seeTime = true
		default:
			return cli.Misuse("--see %s: must be seq, time, or both", what)
		}
	}
	return b.look.check(cmd)
}

// cheap reports whether the test judges every candidate.
func (b *bisectFlags) cheap() bool { return b.expr != "" || b.over.changed != "" }

// maxJobs bounds the tests that run at the same time.
const maxJobs = 256

func (b *bisectFlags) goal() (bisect.Goal, error) {
	goals := []bisect.Goal{bisect.Any, bisect.First, bisect.Last, bisect.AllPhases}
	i := slices.IndexFunc(goals, func(g bisect.Goal) bool { return g.String() == b.find })
	if i < 0 {
		return 0, cli.Misuse("--find %s: must be any, first, last or all", b.find)
	}
	return goals[i], nil
}

func (b *bisectFlags) run(cmd *cobra.Command, a *cli.App, names, command []string) error {
	dir := ""
	if b.over.kind != "" {
		names, dir = b.over.splitFolder(names)
	}
	if len(names) > 1 {
		return cli.Misuse("too many arguments: %q; put the command to run after --", names[1])
	}
	if err := b.check(cmd, command); err != nil {
		return err
	}
	goal, err := b.goal()
	if err != nil {
		return err
	}
	name, err := a.SessionArg(names)
	if err != nil {
		return err
	}
	made, err := b.compile(cmd.Context(), command)
	if err != nil {
		return err
	}
	if b.over.kind != "" {
		return b.runOver(cmd, a, name, dir, goal, made)
	}
	for _, address := range []string{b.good, b.bad} {
		if _, err := cli.ParseAddress(address); err != nil {
			return err
		}
	}
	t, err := a.OpenSession(name)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := a.SeeThrough(cmd.Context(), t, b.defines); err != nil {
		return err
	}
	s := &bisection{a: a, t: t, cfg: bisect.Config{
		Options: bisect.Options{Goal: goal, Probes: b.probes, Recheck: !b.cheap()},
		Repeat:  b.repeat, Jobs: b.jobs, Every: b.every,
	}}
	if s.test, err = b.test(a, t, made); err != nil {
		return err
	}
	if s.from, err = t.Resolve(cmd.Context(), b.good); err != nil {
		return err
	}
	if s.to, err = t.Resolve(cmd.Context(), b.bad); err != nil {
		return err
	}
	return s.run(cmd.Context())
}

// compiledTest is the test of the flags before the session is open. One member is set, or
// none with --changed.
type compiledTest struct {
	predicate *where.Predicate
	compared  *referenceImage
	command   []string
}

func (b *bisectFlags) compile(ctx context.Context, command []string) (made compiledTest, err error) {
	made.command = command
	if b.expr != "" {
		made.predicate, err = cli.Compile(b.expr)
	} else if b.look.image != "" {
		made.compared, err = b.look.load(ctx)
	}
	return made, err
}

// test returns the test for a session.
func (b *bisectFlags) test(a *cli.App, t *cli.OpenedSession, made compiledTest) (bisect.Test, error) {
	switch {
	case made.compared != nil:
		return made.compared.bisectTest(), nil
	case made.predicate != nil:
		return expressionTest(made.predicate), t.FoldFor(&made.predicate.Expression)
	default:
		return b.programTest(t, a, made.command), nil
	}
}

// expressionTest is a test that finds a state bad if the expression is true.
func expressionTest(p *where.Predicate) bisect.Test {
	return bisect.Exact(cli.Needs(&p.Expression), func(ctx context.Context, s *replay.ScanStep) (bisect.TestResult, error) {
		wrong, err := p.Match(ctx, cli.InputOf(s))
		if err != nil {
			return 0, fmt.Errorf("at %v: %w", s.Moment, err)
		}
		return resultOf(wrong), nil
	})
}
