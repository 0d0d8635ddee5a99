package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// The exit codes, as main's comment tells them.
const (
	exitNo           = 1
	exitMisuse       = 2
	exitLoss         = 3
	exitNotFound     = 4
	exitInconclusive = 5
	exitLocked       = 6
	exitCannotRun    = 7
	exitUntestable   = 125
	exitInterrupted  = 130
)

// exit is an error with an exit code. Without a cause nothing is printed: the
// result has said it already.
type exit struct {
	code  int
	cause error
}

func (e *exit) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.cause.Error()
}

func (e *exit) Unwrap() error { return e.cause }

func fail(code int, format string, args ...any) error {
	return &exit{code, fmt.Errorf(format, args...)}
}

// answerNo is the exit of a question whose answer is no.
var answerNo = &exit{code: exitNo}

func misuse(format string, args ...any) error { return fail(exitMisuse, format, args...) }

// exitCode prints what is to be said about err in one line, and returns the
// code to exit with.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	code, message := judge(err)
	if message != "" {
		fmt.Fprintf(stderr, "sajou-replay: %s\n", oneLine(message))
	}
	return code
}

func judge(err error) (code int, message string) {
	if e, ok := errors.AsType[*exit](err); ok {
		if e.cause == nil {
			return e.code, ""
		}
		return e.code, err.Error()
	}
	message = err.Error()
	switch {
	case errors.Is(err, syscall.EPIPE):
		return 0, "" // the reader has seen enough
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return exitInterrupted, "interrupted"
	case errors.Is(err, where.ErrExpression), errors.Is(err, replay.ErrSyntax):
		return exitMisuse, message
	case errors.Is(err, eventlog.ErrNoSession), errors.Is(err, replay.ErrNoAddress), errors.Is(err, eventlog.ErrNoStore):
		return exitNotFound, message
	case errors.Is(err, eventlog.ErrLocked), errors.Is(err, eventlog.ErrReadOnly):
		return exitLocked, message
	}
	return exitNo, message
}

// packages are the names that errors have in front, for programmers.
var packages = []string{"sajou: ", "eventlog: ", "replay: ", "projection: ", "signal: ", "snapshot: "}

// oneLine makes one line of a message, without the names of packages.
func oneLine(message string) string {
	for trimmed := ""; trimmed != message; {
		trimmed = message
		for _, name := range packages {
			message = strings.TrimPrefix(message, name)
			message = strings.ReplaceAll(message, ": "+name, ": ")
		}
	}
	lines := strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = printable(strings.TrimSpace(lines[i]))
	}
	return strings.Join(lines, "; ")
}
