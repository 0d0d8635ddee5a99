package statecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// Bisect returns the command "bisect".
func Bisect(a *cli.App) *cobra.Command {
	var (
		good, bad, expr string
		look            imageTest
		moment          bool
	)
	cmd := &cobra.Command{
		Use:   "bisect [SESSION] [--good ADDR] [--bad ADDR] (--where EXPR | --image PNG | -- COMMAND ARG...)",
		Short: "Find the first bad entry by binary search",
		Long: `Bisect finds the first bad entry between a good entry and a later bad one by
binary search. It assumes that the state changes from good to bad once. Use it for
tests that are expensive to run: a program, a rendered image, a person. For an
expression prefer scan, which needs no such assumption.

The test is one of three:

With --where, a state is bad if the expression is true.

With a COMMAND after --, bisect runs the command for each test. The command reads
the state as JSON from stdin, and the environment has SAJOU_SESSION, SAJOU_SEQ
and SAJOU_AT (in ms). Its output goes to stderr. Its exit code is the verdict:
  0        good
  1..124   bad
  125      skip: the entry cannot be tested
  126..    error: bisect stops with exit code 7

` + imageTestHelp + ` The
state is bad if the picture differs from the PNG, or with --same if it is equal.

` + cli.ExpressionHelp + `

With --image, and for the other tests with --moment, bisect also searches the
time before the first bad entry: whether the entry itself makes the state bad, or
at which millisecond before it the state became bad. This assumes that the state
stays bad until the entry.

Bisect tests both ends first. The exit code is 0 if the first bad entry was found,
1 if an end is not what it was given as, 5 if skipped entries leave several
candidates, 7 if the command could not run or a picture could not be drawn, and
125 if an end cannot be tested.`,
		Example: `  sajou-replay bisect --where 'state.stage.entities.smoke.visible'
  sajou-replay bisect --good 10 --bad 40 --where 'state.stage.entities.smoke.visible' --moment
  sajou-replay bisect --where 'state.workspace["main.go"].text.contains("panic(")'
  sajou-replay bisect night-shift -- sh -c 'grep -qv smoke'
  sajou-replay bisect --image good.png --max-diff 1% --mask mask.png`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names, command = args[:dash], args[dash:]
			}
			if len(names) > 1 {
				return cli.Misuse("too many arguments: %q; put the command to run after --", names[1])
			}
			if cli.Count(expr != "", look.image != "", len(command) > 0) != 1 {
				return cli.Misuse("bisect needs one test: --where EXPR, --image PNG, or a command after --")
			}
			if err := look.check(cmd); err != nil {
				return err
			}
			name, err := a.SessionArg(names)
			if err != nil {
				return err
			}
			var predicate *where.Predicate
			if expr != "" {
				if predicate, err = cli.Compile(expr); err != nil {
					return err
				}
			}
			var compared *referenceImage
			if look.image != "" {
				if compared, err = look.load(cmd.Context()); err != nil {
					return err
				}
			}
			for _, address := range []string{good, bad} {
				if _, err := cli.ParseAddress(address); err != nil {
					return err
				}
			}
			t, err := a.OpenSession(name)
			if err != nil {
				return err
			}
			defer t.Close()
			if predicate != nil {
				if err := t.FoldFor(&predicate.Expression); err != nil {
					return err
				}
			}
			from, err := t.ResolveSeq(cmd.Context(), good)
			if err != nil {
				return err
			}
			to, err := t.ResolveSeq(cmd.Context(), bad)
			if err != nil {
				return err
			}
			var test replay.Test
			switch {
			case compared != nil:
				test = compared.test
			case predicate != nil:
				test = ExpressionTest(t, predicate)
			default:
				test = programTest(t, a, command)
			}
			return runBisect(cmd.Context(), a, t, from, to, test, moment || compared != nil)
		},
	}
	cmd.Flags().StringVar(&good, "good", "0", "`ADDR` of a good entry")
	cmd.Flags().StringVar(&bad, "bad", "end", "`ADDR` of a later, bad entry")
	cmd.Flags().StringVar(&expr, "where", "", "the state is bad if `EXPR` is true")
	look.flags(cmd, "the state is bad if the picture equals the PNG")
	cmd.Flags().BoolVar(&moment, "moment", false, "also find the instant between two entries")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func runBisect(ctx context.Context, a *cli.App, t *cli.OpenedSession, good, bad eventlog.Seq, test replay.Test, moment bool) error {
	var last replay.TestResult
	logged := func(ctx context.Context, m replay.Moment, f *projection.Fold) (replay.TestResult, error) {
		v, err := test(ctx, m, f)
		if last = v; err == nil {
			fmt.Fprintf(a.Stderr, "%6v  %s  %v\n", m, cli.ClockText(f.At()), v)
		}
		return v, err
	}
	found, err := t.Travel.Bisect(ctx, good, bad, logged)
	if err != nil {
		if e, ok := errors.AsType[*cli.ExitError](err); ok {
			return e
		}
		if e, ok := cli.AsEvalError(err); ok {
			return e
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, replay.ErrEndpoint) && last == replay.Skip {
			return &cli.ExitError{Code: cli.ExitUntestable, Cause: err}
		}
		return err
	}
	view := struct {
		Good       eventlog.Seq  `json:"good"`
		Bad        eventlog.Seq  `json:"bad"`
		First      *eventlog.Seq `json:"first,omitempty"`
		Conclusive bool          `json:"conclusive"`
		Tests      int           `json:"tests"`
		Skipped    int           `json:"skipped"`
		Moment     string        `json:"moment,omitempty"`
		At         *float64      `json:"at,omitempty"`
	}{found.Good, found.Bad, nil, found.Conclusive(), found.Tests, found.Skipped, "", nil}
	text := found.String()
	if found.Conclusive() {
		view.First = &found.Bad
		e, err := t.Log.Entry(ctx, found.Bad)
		if err != nil {
			return err
		}
		text += "\n" + cli.EntryText(&e)
		if moment {
			when, err := findInstant(ctx, t, &e, logged)
			if err != nil {
				return err
			}
			view.Moment = when.String()
			at := projection.Millis(when.at)
			view.At = &at
			text += "\n" + when.text(&e)
		}
	}
	if err := a.Output().One(text, view); err != nil {
		return err
	}
	if !found.Conclusive() {
		return &cli.ExitError{Code: cli.ExitInconclusive}
	}
	return nil
}

// instant is the moment, at or before the first bad entry, at which the state
// became bad.
type instant struct {
	replay.Moment
	at time.Duration
}

func (i instant) text(e *eventlog.Entry) string {
	if i.Seq == e.Seq {
		return fmt.Sprintf("the entry itself makes the state bad, at %s", cli.ClockText(i.at))
	}
	return fmt.Sprintf("the state is bad before the entry, from %v on (%s)", i.Moment, cli.ClockText(i.at))
}

// findInstant finds, to the millisecond, when the state became bad between the
// first bad entry and the good entry before it. A skipped test counts as good.
func findInstant(ctx context.Context, t *cli.OpenedSession, e *eventlog.Entry, test replay.Test) (instant, error) {
	base := time.Duration(0)
	if e.Seq > 1 {
		before, err := t.Log.Entry(ctx, e.Seq-1)
		if err != nil {
			return instant{}, err
		}
		base = before.At
	}
	bad := func(offset time.Duration) (bool, error) {
		m := replay.Moment{Seq: e.Seq - 1, Offset: offset}
		fold, err := t.Travel.At(ctx, m)
		if err != nil {
			return false, err
		}
		v, err := test(ctx, m, fold)
		return v == replay.Bad, err
	}
	good, wrong := time.Duration(0), e.At-base
	if wrong == 0 {
		return instant{cli.MomentOf(e.Seq), e.At}, nil
	}
	if is, err := bad(wrong); err != nil || !is {
		return instant{cli.MomentOf(e.Seq), e.At}, err
	}
	for wrong-good > time.Millisecond {
		// Whole milliseconds make readable addresses.
		middle := (good + (wrong-good)/2).Truncate(time.Millisecond)
		if middle <= good {
			middle = good + time.Millisecond
		}
		is, err := bad(middle)
		if err != nil {
			return instant{}, err
		}
		if is {
			wrong = middle
		} else {
			good = middle
		}
	}
	return instant{replay.Moment{Seq: e.Seq - 1, Offset: wrong}, base + wrong}, nil
}

// ExpressionTest is a test that finds a state bad if the expression is true.
func ExpressionTest(t *cli.OpenedSession, p *where.Predicate) replay.Test {
	return func(ctx context.Context, m replay.Moment, f *projection.Fold) (replay.TestResult, error) {
		in := where.Input{State: f}
		if m.Seq > 0 {
			e, err := t.Log.Entry(ctx, m.Seq)
			if err != nil {
				return 0, err
			}
			in.Entry = &e
		}
		if p.NeedsPrev() && m.Seq > 0 {
			before, err := t.Travel.At(ctx, cli.MomentOf(m.Seq-1))
			if err != nil {
				return 0, err
			}
			in.Prev = before.View()
		}
		wrong, err := p.Match(ctx, in)
		if err != nil {
			return 0, err
		}
		if wrong {
			return replay.Bad, nil
		}
		return replay.Good, nil
	}
}

// pathless returns an error without the operation and the path of a PathError or
// an exec.Error, which the message around it names.
func pathless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

// programTest is a test by a program, in the protocol of git bisect run.
func programTest(t *cli.OpenedSession, a *cli.App, command []string) replay.Test {
	return func(ctx context.Context, m replay.Moment, f *projection.Fold) (replay.TestResult, error) {
		state, err := cli.Marshal(f.View())
		if err != nil {
			return 0, err
		}
		at, err := cli.Marshal(projection.Millis(f.At()))
		if err != nil {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Stdin = bytes.NewReader(append(state, '\n'))
		cmd.Stdout, cmd.Stderr = a.Stderr, a.Stderr
		cmd.Env = append(os.Environ(), "SAJOU_SESSION="+t.Name,
			"SAJOU_SEQ="+strconv.FormatUint(uint64(m.Seq), 10), "SAJOU_AT="+string(at))
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 5 * time.Second
		err = cmd.Run()
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		code := 0
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			code = failed.ExitCode() // -1 when a signal ended it
		} else if err != nil {
			return 0, cli.Fail(cli.ExitCannotRun, "cannot run %s: %v", command[0], pathless(err))
		}
		switch {
		case code == 0:
			return replay.Good, nil
		case code == 125:
			return replay.Skip, nil
		case 0 < code && code < 125:
			return replay.Bad, nil
		}
		return 0, cli.Fail(cli.ExitCannotRun, "%s failed at entry %d: %v; it must exit with 0 for good, 1..124 for bad, or 125 to skip", command[0], m.Seq, err)
	}
}
