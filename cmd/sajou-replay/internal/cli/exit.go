package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// The exit codes. The help of the program describes them.
const (
	ExitNo           = 1
	ExitMisuse       = 2
	ExitLoss         = 3
	ExitNotFound     = 4
	ExitInconclusive = 5
	ExitLocked       = 6
	ExitCannotRun    = 7
	ExitUntestable   = 125
	ExitNoVerdict    = 128
	ExitInterrupted  = 130
)

// ExitError is an error with an exit code. Without a cause nothing is printed,
// because the result already has the answer.
type ExitError struct {
	Code  int
	Cause error
}

func (e *ExitError) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Cause.Error()
}

func (e *ExitError) Unwrap() error { return e.Cause }

// Fail returns an error that ends the command with code.
func Fail(code int, format string, args ...any) error {
	return &ExitError{code, fmt.Errorf(format, args...)}
}

// AnswerNo is the exit of a command whose answer is no, such as a search that found
// nothing.
var AnswerNo = &ExitError{Code: ExitNo}

// Misuse returns the error for an invalid command line.
func Misuse(format string, args ...any) error { return Fail(ExitMisuse, format, args...) }

// ExitCode prints err in one line, unless it has nothing to print, and returns the
// exit code.
func ExitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	code, message := judge(err)
	if message != "" {
		fmt.Fprintf(stderr, "sajou-replay: %s\n", OneLine(message))
	}
	return code
}

func judge(err error) (code int, message string) {
	if e, ok := errors.AsType[*ExitError](err); ok {
		if e.Cause == nil {
			return e.Code, ""
		}
		return e.Code, err.Error()
	}
	message = err.Error()
	switch {
	case errors.Is(err, syscall.EPIPE):
		return 0, "" // the reader closed the pipe, as head does
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ExitInterrupted, "interrupted"
	case errors.Is(err, where.ErrBudget), IsA[*film.NoStageError](err), IsA[*play.ActorError](err), IsA[*play.TerminalError](err):
		return ExitCannotRun, message
	case IsA[*film.BoundError](err), errors.Is(err, play.ErrLongLine):
		return ExitMisuse, message
	case errors.Is(err, where.ErrExpression), errors.Is(err, replay.ErrSyntax):
		return ExitMisuse, message
	case errors.Is(err, eventlog.ErrNoSession), errors.Is(err, replay.ErrNoAddress), errors.Is(err, eventlog.ErrNoStore):
		return ExitNotFound, message
	case errors.Is(err, eventlog.ErrLocked), errors.Is(err, eventlog.ErrReadOnly):
		return ExitLocked, message
	}
	return ExitNo, message
}

// IsA reports whether err is or wraps an error of a type.
func IsA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// VerdictCommand is the annotation of a command whose exit codes are the verdicts of
// git bisect run. Its value names a flag with which the codes are the ordinary ones.
const VerdictCommand = "verdict"

// GivesVerdict reports whether the exit code of a parsed command is a verdict.
func GivesVerdict(cmd *cobra.Command) bool {
	unless, verdict := cmd.Annotations[VerdictCommand]
	return verdict && !cmd.Flags().Changed(unless)
}

// VerdictOnly returns the error of such a command. Its verdicts stay as they are: nil is
// good, [AnswerNo] is bad, and [ExitUntestable] a skip. For git the codes 2 to 127 are bad
// too, so every other error gets a code above them. Incomplete says that the command could
// not read everything, so that its verdict is none.
func VerdictOnly(err error, incomplete bool) error {
	code := 0
	if err != nil {
		code, _ = judge(err)
	}
	var cause error
	switch {
	case err == nil || errors.Is(err, AnswerNo):
		if !incomplete {
			return err
		}
		cause = errors.New("the store lost entries, so the verdict does not count")
	case code == ExitUntestable && !incomplete, code == ExitInterrupted:
		return err
	default:
		if e, ok := errors.AsType[*ExitError](err); !ok || e.Cause != nil {
			cause = err
		}
	}
	return &ExitError{ExitNoVerdict, cause}
}

// OneLine is [errtext.OneLine].
func OneLine(message string) string { return errtext.OneLine(message) }
