package statecmd

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/testprogram"
	"github.com/sajou-dev/sajou-go/session"
)

// programTest is a test by a program, in the protocol of git bisect run.
func (s *searchFlags) programTest(t *cli.OpenedSession, a *cli.App, command []string) bisect.Test {
	program := &testprogram.Program{Args: command, Output: a.Stderr, Timeout: s.timeout}
	return bisect.Test{
		Identity: strings.Join(command, "\x00"),
		Input: func(_ context.Context, at *replay.ScanStep) (bisect.InputHash, error) {
			stdin, env, err := s.programInput(t.Name, at.Moment, at.Fold)
			return bisect.HashInput(stdin, []byte(strings.Join(env, "\x00"))), err
		},
		Judge: func(ctx context.Context, m replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
			stdin, env, err := s.programInput(t.Name, m, f)
			if err != nil {
				return 0, err
			}
			o, err := program.Run(ctx, stdin, env...)
			if e, ok := errors.AsType[*testprogram.FailedError](err); ok {
				return 0, cli.Fail(cli.ExitCannotRun, "%s failed at %v with %s; it must exit with 0 for good, 1..124 for bad, or 125 to skip", e.Name, m, e.Status)
			}
			if e, ok := errors.AsType[*testprogram.StartError](err); ok {
				return 0, cli.Fail(cli.ExitCannotRun, "cannot run %s: %w", e.Name, e.Cause)
			}
			return o.Result, err
		},
	}
}

// programInput returns everything that the program sees at a moment: its stdin and the
// variables that are added to its environment. Members that count entries grow with every
// entry, so with them no two moments would be alike.
func (s *searchFlags) programInput(name string, m replay.Moment, f *projection.Fold) (stdin []byte, env []string, err error) {
	view := maps.Clone(f.View())
	env = []string{"SAJOU_SESSION=" + name}
	if s.seeSeq {
		env = append(env, "SAJOU_SEQ="+strconv.FormatUint(uint64(m.Seq), 10))
	} else {
		delete(view, "seq")
		withoutMember(view, session.ProjectionSession, "entries")
		withoutMember(view, session.ProjectionWorld, "seq")
	}
	if s.seeTime {
		at, err := cli.Marshal(projection.Millis(f.At()))
		if err != nil {
			return nil, nil, err
		}
		env = append(env, "SAJOU_AT="+string(at))
	} else {
		delete(view, "at")
	}
	stdin, err = cli.Marshal(view)
	return append(stdin, '\n'), env, err
}

// withoutMember removes a member of the view of one projection.
func withoutMember(view map[string]any, projection, member string) {
	if part, ok := view[projection].(map[string]any); ok {
		part = maps.Clone(part)
		delete(part, member)
		view[projection] = part
	}
}
