package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
)

func asEvalError(err error) (*where.EvalError, bool) { return errors.AsType[*where.EvalError](err) }

func (a *app) bisectCommand() *cobra.Command {
	var (
		good, bad, expr string
		look            looks
		moment          bool
	)
	cmd := &cobra.Command{
		Use:   "bisect [SESSION] [--good ADDR] [--bad ADDR] (--where EXPR | --image PNG | -- COMMAND ARG...)",
		Short: "Find the entry where the state went wrong",
		Long: `Bisect finds the first bad entry between one that is good and a later one that
is bad, with few tests. It assumes that the session goes from good to bad once;
scan needs no such assumption and is better for everything an expression can
tell. Bisect is for tests that are dear: a program, a rendered picture, a person.

With --where the state is bad where the expression is true. With a command after
-- it is run for each test, with the state as JSON on stdin and SAJOU_SESSION,
SAJOU_SEQ and SAJOU_AT (ms) in its environment; its exit code says
  0        good
  125      cannot be told here, try another
  1..124   bad
  126..    the program could not run: bisect stops with exit code 7
What it prints goes to stderr.

` + looksHelp + ` The state is
bad where the stage is another picture than the PNG, which shows it as it should
be; or with --same where it is this picture, which shows what is wrong.

` + expressionHelp + `

With --image, and for other tests with --moment, the instant is looked for too:
whether it is the entry itself that makes the state bad, or to the millisecond
when it has become so in the time before it. That assumes that it stays bad until
the entry.

Both ends are tested first. The exit code is 0 when the first bad entry was
found, 1 when an end is not what it was given as, 125 when an end cannot be told,
5 when skipped tests leave more than one candidate, and 7 when the program could
not run or a picture not be drawn.`,
		Example: `  sajou-replay bisect --where 'state.performances.size() > 3'
  sajou-replay bisect --image good.png --max-diff 1% --mask clock.png
  sajou-replay bisect --good 10 --bad 812 -- ./check-picture.sh
  sajou-replay bisect release-42 -- sh -c 'jq -e ".performances | length < 4"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names, command = args[:dash], args[dash:]
			}
			if len(names) > 1 {
				return misuse("too many arguments; the program to run stands after --")
			}
			if count(expr != "", look.image != "", len(command) > 0) != 1 {
				return misuse("bisect needs one test: either --where EXPR, or --image PNG, or a program after --")
			}
			if err := look.check(cmd); err != nil {
				return err
			}
			session, err := a.sessionArg(names)
			if err != nil {
				return err
			}
			var predicate *where.Predicate
			if expr != "" {
				if predicate, err = where.Compile(expr, sajou.Projections()); err != nil {
					return err
				}
			}
			var compared *comparison
			if look.image != "" {
				if compared, err = look.load(); err != nil {
					return err
				}
			}
			for _, address := range []string{good, bad} {
				if _, err := parseAddress(address); err != nil {
					return err
				}
			}
			t, err := a.target(session)
			if err != nil {
				return err
			}
			defer t.Close()
			from, err := t.resolveSeq(cmd.Context(), good)
			if err != nil {
				return err
			}
			to, err := t.resolveSeq(cmd.Context(), bad)
			if err != nil {
				return err
			}
			var test replay.Test
			switch {
			case compared != nil:
				test = compared.test
			case predicate != nil:
				test = t.asks(predicate)
			default:
				test = t.runs(a, command)
			}
			return a.bisect(cmd.Context(), t, from, to, test, moment || compared != nil)
		},
	}
	cmd.Flags().StringVar(&good, "good", "0", "address of an entry that is good")
	cmd.Flags().StringVar(&bad, "bad", "end", "address of a later entry that is bad")
	cmd.Flags().StringVar(&expr, "where", "", "expression that is true where the state is bad")
	look.flags(cmd, "the picture shows what is wrong")
	cmd.Flags().BoolVar(&moment, "moment", false, "look for the instant too, between the entries")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func (a *app) bisect(ctx context.Context, t *target, good, bad eventlog.Seq, test replay.Test, moment bool) error {
	var last replay.Verdict
	logged := func(ctx context.Context, m replay.Moment, f *projection.Fold) (replay.Verdict, error) {
		v, err := test(ctx, m, f)
		if last = v; err == nil {
			fmt.Fprintf(a.stderr, "%6v  %s  %v\n", m, clockText(f.At()), v)
		}
		return v, err
	}
	found, err := t.travel.Bisect(ctx, good, bad, logged)
	if err != nil {
		if e, ok := errors.AsType[*exit](err); ok {
			return e
		}
		if e, ok := asEvalError(err); ok {
			return e
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, replay.ErrEndpoint) && last == replay.Skip {
			return &exit{exitUntestable, err}
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
		e, err := t.log.Entry(ctx, found.Bad)
		if err != nil {
			return err
		}
		text += "\n" + entryText(&e)
		if moment {
			when, err := t.instant(ctx, &e, logged)
			if err != nil {
				return err
			}
			view.Moment = when.String()
			at := projection.Millis(when.at)
			view.At = &at
			text += "\n" + when.text(&e)
		}
	}
	if err := a.output().one(text, view); err != nil {
		return err
	}
	if !found.Conclusive() {
		return &exit{code: exitInconclusive}
	}
	return nil
}

// instant is when within the time before an entry something went wrong.
type instant struct {
	replay.Moment
	at time.Duration
}

func (i instant) text(e *eventlog.Entry) string {
	if i.Seq == e.Seq {
		return fmt.Sprintf("the entry itself makes it so, at %s", clockText(i.at))
	}
	return fmt.Sprintf("it is so already before the entry comes, from %v on (%s)", i.Moment, clockText(i.at))
}

// instant finds when in the time between an entry that is bad and the one
// before, which is good, it became so: to the millisecond. A test that cannot
// tell counts as good.
func (t *target) instant(ctx context.Context, e *eventlog.Entry, test replay.Test) (instant, error) {
	base := time.Duration(0)
	if e.Seq > 1 {
		before, err := t.log.Entry(ctx, e.Seq-1)
		if err != nil {
			return instant{}, err
		}
		base = before.At
	}
	bad := func(offset time.Duration) (bool, error) {
		m := replay.Moment{Seq: e.Seq - 1, Offset: offset}
		fold, err := t.travel.At(ctx, m)
		if err != nil {
			return false, err
		}
		v, err := test(ctx, m, fold)
		return v == replay.Bad, err
	}
	good, wrong := time.Duration(0), e.At-base
	if wrong == 0 {
		return instant{momentOf(e.Seq), e.At}, nil
	}
	if is, err := bad(wrong); err != nil || !is {
		return instant{momentOf(e.Seq), e.At}, err
	}
	for wrong-good > time.Millisecond {
		// Whole milliseconds make addresses that can be read.
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

// asks is a test by an expression.
func (t *target) asks(p *where.Predicate) replay.Test {
	return func(ctx context.Context, m replay.Moment, f *projection.Fold) (replay.Verdict, error) {
		in := where.Input{State: f}
		if m.Seq > 0 {
			e, err := t.log.Entry(ctx, m.Seq)
			if err != nil {
				return 0, err
			}
			in.Entry = &e
		}
		if p.NeedsPrev() && m.Seq > 0 {
			before, err := t.travel.At(ctx, momentOf(m.Seq-1))
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

// runs is a test by a program, in the protocol of git bisect run.
func (t *target) runs(a *app, command []string) replay.Test {
	return func(ctx context.Context, m replay.Moment, f *projection.Fold) (replay.Verdict, error) {
		state, err := marshal(f.View())
		if err != nil {
			return 0, err
		}
		at, err := marshal(projection.Millis(f.At()))
		if err != nil {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Stdin = bytes.NewReader(append(state, '\n'))
		cmd.Stdout, cmd.Stderr = a.stderr, a.stderr
		cmd.Env = append(os.Environ(), "SAJOU_SESSION="+t.name,
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
			return 0, fail(exitCannotRun, "%s cannot be run: %v", command[0], err)
		}
		switch {
		case code == 0:
			return replay.Good, nil
		case code == 125:
			return replay.Skip, nil
		case 0 < code && code < 125:
			return replay.Bad, nil
		}
		return 0, fail(exitCannotRun, "%s stopped at entry %d with %v; it can answer 0 good, 1..124 bad, 125 skip", command[0], m.Seq, err)
	}
}
