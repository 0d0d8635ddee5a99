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
	var good, bad, expr string
	cmd := &cobra.Command{
		Use:   "bisect [SESSION] [--good ADDR] [--bad ADDR] (--where EXPR | -- COMMAND ARG...)",
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

` + expressionHelp + `

Both ends are tested first. The exit code is 0 when the first bad entry was
found, 1 when an end is not what it was given as, 125 when an end cannot be told,
and 5 when skipped tests leave more than one candidate.`,
		Example: `  sajou-replay bisect --where 'state.performances.size() > 3'
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
			if (expr != "") == (len(command) > 0) {
				return misuse("bisect needs a test: either --where EXPR or a program after --")
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
			for _, address := range []string{good, bad} {
				if _, err := replay.ParseAddress(address); err != nil {
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
			test := t.asks(predicate)
			if predicate == nil {
				test = t.runs(a, command)
			}
			return a.bisect(cmd.Context(), t, from, to, test)
		},
	}
	cmd.Flags().StringVar(&good, "good", "0", "address of an entry that is good")
	cmd.Flags().StringVar(&bad, "bad", "end", "address of a later entry that is bad")
	cmd.Flags().StringVar(&expr, "where", "", "expression that is true where the state is bad")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func (a *app) bisect(ctx context.Context, t *target, good, bad eventlog.Seq, test replay.Test) error {
	var last replay.Verdict
	logged := func(ctx context.Context, m replay.Moment, f *projection.Fold) (replay.Verdict, error) {
		v, err := test(ctx, m, f)
		if last = v; err == nil {
			fmt.Fprintf(a.stderr, "%6d  %s  %v\n", m.Seq, clockText(f.At()), v)
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
	}{found.Good, found.Bad, nil, found.Conclusive(), found.Tests, found.Skipped}
	text := found.String()
	if found.Conclusive() {
		view.First = &found.Bad
		e, err := t.log.Entry(ctx, found.Bad)
		if err != nil {
			return err
		}
		text += "\n" + entryText(&e)
	}
	if err := a.output().one(text, view); err != nil {
		return err
	}
	if !found.Conclusive() {
		return &exit{code: exitInconclusive}
	}
	return nil
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
