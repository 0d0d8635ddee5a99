package statecmd

import (
	"context"
	"errors"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/testprogram"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// momentCheck holds the flags of a check of one moment.
type momentCheck struct {
	expr    string
	look    imageTest
	timeout time.Duration
	defines cli.Definitions
}

const momentCheckHelp = `Check judges the state at one moment. The test is one of three: with --where, the
state is bad if the expression is true; with --image, if the picture differs; with
a COMMAND after --, as the command says, which reads the state as JSON from stdin.
The environment of the command has SAJOU_SESSION, SAJOU_SEQ and SAJOU_AT (in ms).

The exit codes are those of git bisect run:
  0       good
  1       bad
  125     untestable: the recording has no such moment, the command exited with
          125, or it ran longer than --timeout
  128     no answer: any mistake or failure, such as a missing store, damage, an
          expression that does not compile, or a command that exited with 126 or
          more or died of a signal
  130     interrupted
So the commit that broke a recording, of this or another program, is found with
  git bisect run sh -c 'make record && sajou-replay check end --where EXPR'
and a failure of the check itself stops git and blames no commit.`

func (c *momentCheck) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.expr, "where", "", "the state is bad if `EXPR` is true")
	c.look.flags(cmd, "the state is bad if the picture equals the PNG")
	c.defines.Flag(cmd)
	cmd.Flags().DurationVar(&c.timeout, "timeout", 0, "a command that runs longer than `D` is untestable")
}

// verdict is the result of a check.
type verdict struct {
	Session string  `json:"session"`
	Moment  string  `json:"moment"`
	At      float64 `json:"at"`
	Verdict string  `json:"verdict"`

	// Of a picture.
	Differs *float64 `json:"differs,omitempty"`
	Color   *int     `json:"color,omitempty"`

	reason string
	result bisect.TestResult
}

// run judges a moment. A missing moment is a verdict; all other errors mean that there is none.
func (c *momentCheck) run(cmd *cobra.Command, a *cli.App, args, command []string) error {
	if cli.Count(c.expr != "", c.look.image != "", len(command) > 0) != 1 {
		return cli.Misuse("check needs one test: --where EXPR, --image PNG, or a command after --")
	}
	if err := c.look.check(cmd); err != nil {
		return err
	}
	if cmd.Flags().Changed("timeout") && (len(command) == 0 || c.timeout <= 0) {
		return cli.Misuse("--timeout %v: must be above 0, and needs a command after --", c.timeout)
	}
	name, rest, err := a.SplitArgs(args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return cli.Misuse("check needs the address of one moment; usage: %s", cmd.UseLine())
	}
	address, err := cli.ParseAddress(rest[0])
	if err != nil {
		return err
	}
	var judge func(context.Context, *cli.OpenedSession, *replay.ScanStep) (verdict, error)
	var needs replay.Needs
	var expression *where.Expression
	switch {
	case c.expr != "":
		p, err := answer.Compile(c.expr)
		if err != nil {
			return err
		}
		expression, needs = &p.Expression, answer.Needs(&p.Expression)
		judge = func(ctx context.Context, _ *cli.OpenedSession, s *replay.ScanStep) (verdict, error) {
			wrong, err := p.Match(ctx, answer.InputOf(s))
			return verdict{result: resultOf(wrong)}, err
		}
	case c.look.image != "":
		compared, err := c.look.load(cmd.Context())
		if err != nil {
			return err
		}
		judge = func(_ context.Context, _ *cli.OpenedSession, s *replay.ScanStep) (verdict, error) {
			m, err := compared.measure(s.Fold)
			return verdict{result: resultOf(compared.Wrong(m)), Differs: &m.Share, Color: &m.Color, reason: compared.Text(m)}, err
		}
	default:
		program := &testprogram.Program{Args: command, Output: a.Stderr, Timeout: c.timeout}
		judge = func(ctx context.Context, t *cli.OpenedSession, s *replay.ScanStep) (verdict, error) {
			return judgeByProgram(ctx, program, t, s)
		}
	}
	t, err := a.OpenSession(name)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := a.SeeThrough(cmd.Context(), t, c.defines); err != nil {
		return err
	}
	if err := t.FoldFor(expression); err != nil {
		return err
	}
	m, err := t.Travel.Resolve(cmd.Context(), address)
	var s *replay.ScanStep
	if err == nil {
		s, err = t.Travel.StepAt(cmd.Context(), m, needs)
	}
	if errors.Is(err, replay.ErrNoAddress) {
		return &cli.ExitError{Code: cli.ExitUntestable, Cause: err}
	}
	if err != nil {
		return err
	}
	v, err := judge(cmd.Context(), t, s)
	if err != nil {
		return err
	}
	v.Session, v.Moment, v.At, v.Verdict = t.Name, s.Moment.String(), projection.Millis(s.Fold.At()), v.result.String()
	text := v.Moment + "  " + cli.ClockText(s.Fold.At()) + "  " + v.Verdict
	if v.reason != "" {
		text += "  " + v.reason
	}
	// The verdict counts although the reader of the result is gone.
	if err := a.Output().One(text, v); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	switch v.result {
	case bisect.Bad:
		return cli.AnswerNo
	case bisect.Skip:
		return &cli.ExitError{Code: cli.ExitUntestable}
	case bisect.Good:
	}
	return nil
}

// withoutPanic makes a panic of a command an error. A program that panics exits with 2,
// which git bisect run takes for a verdict.
func withoutPanic(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = cli.Fail(cli.ExitNoVerdict, "check panicked: %v: %s", p, debug.Stack())
		}
	}()
	return run()
}

func resultOf(wrong bool) bisect.TestResult {
	if wrong {
		return bisect.Bad
	}
	return bisect.Good
}

// judgeByProgram judges a moment with a program that reads the state.
func judgeByProgram(ctx context.Context, program *testprogram.Program, t *cli.OpenedSession, s *replay.ScanStep) (verdict, error) {
	state, err := cli.Marshal(s.Fold.View())
	if err != nil {
		return verdict{}, err
	}
	at, err := cli.Marshal(projection.Millis(s.Fold.At()))
	if err != nil {
		return verdict{}, err
	}
	o, err := program.Run(ctx, append(state, '\n'),
		"SAJOU_SESSION="+t.Name, "SAJOU_SEQ="+strconv.FormatUint(uint64(s.Moment.Seq), 10), "SAJOU_AT="+string(at))
	v := verdict{result: o.Result}
	if o.TimedOut {
		v.reason = "the command ran longer than " + program.Timeout.String()
	}
	return v, err
}
