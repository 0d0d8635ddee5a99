package statecmd

import (
	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// bisectFlags are the flags of a search in one command.
type bisectFlags struct {
	searchFlags
	jobs int
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
something changes. The answer is exact. If an end is not what it was given as, the
answer has the times at which the session is bad.

With a COMMAND after --, bisect runs the command for each test. The command reads
the state as JSON from stdin. Its output goes to stderr. Its exit code is the
verdict:
  0        good
  1..124   bad
  125      skip: the state cannot be tested; so does a run beyond --timeout
  126..    error: bisect stops with exit code 7
States that look alike share one verdict. So the JSON has no "at" and no number of
entries ("seq", "session.entries" and "world.seq"), and the environment has only
SAJOU_SESSION, unless --see asks for more: with seq the numbers and SAJOU_SEQ,
with time "at" and SAJOU_AT (in ms).

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
			} else if len(names) > 0 && b.expr == "" && b.look.image == "" && b.over.kind == "" && a.Server == "" {
				if done, err := judgeByTerm(cmd, a, names); done {
					return err
				}
			}
			return b.run(cmd, a, names, command)
		},
	}
	b.flags(cmd)
	f := cmd.Flags()
	jobsFlag(cmd, &b.jobs)
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
	kind, err := b.kind(command)
	if err != nil || (kind == byPerson) != (b.over.changed != "") {
		return errOneTest
	}
	if b.over.changed != "" {
		kind = byWhere // it judges every candidate too
	}
	if kind == byWhere && cmd.Flags().Changed("jobs") {
		return cli.Misuse("--jobs is for tests that are expensive to run; omit it")
	}
	if err := checkJobs(b.jobs); err != nil {
		return err
	}
	return b.searchFlags.check(cmd, kind)
}

// cheap reports whether the test judges every candidate.
func (b *bisectFlags) cheap() bool { return b.expr != "" || b.over.changed != "" }

// maxJobs bounds the tests that run at the same time.
const maxJobs = 256

func jobsFlag(cmd *cobra.Command, jobs *int) {
	cmd.Flags().IntVar(jobs, "jobs", 1, "run up to `N` tests at the same time")
}

func checkJobs(jobs int) error {
	if jobs < 1 || jobs > maxJobs {
		return cli.Misuse("--jobs %d: must be from 1 to %d", jobs, maxJobs)
	}
	return nil
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
	name, err := a.SessionArg(names)
	if err != nil {
		return err
	}
	made, err := b.compile(cmd.Context(), command)
	if err != nil {
		return err
	}
	if b.over.kind != "" {
		return b.runOver(cmd, a, name, dir, made)
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
		Options: bisect.Options{Goal: b.goal, Probes: b.probes, Recheck: !b.cheap()},
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
