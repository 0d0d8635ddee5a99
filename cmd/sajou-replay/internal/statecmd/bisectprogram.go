package statecmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// programTest is a test by a program, in the protocol of git bisect run.
func (b *bisectFlags) programTest(t *cli.OpenedSession, a *cli.App, command []string) bisect.Test {
	output := &lockedWriter{w: a.Stderr}
	return bisect.Test{
		Identity: strings.Join(command, "\x00"),
		Input: func(_ context.Context, s *replay.ScanStep) (bisect.InputHash, error) {
			stdin, env, err := b.programInput(t.Name, s.Moment, s.Fold)
			return bisect.HashInput(stdin, []byte(strings.Join(env, "\x00"))), err
		},
		Judge: func(ctx context.Context, m replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
			stdin, env, err := b.programInput(t.Name, m, f)
			if err != nil {
				return 0, err
			}
			return b.runProgram(ctx, command, m, stdin, env, output)
		},
	}
}

// programInput returns everything that the program sees at a moment: its stdin and the
// variables that are added to its environment.
func (b *bisectFlags) programInput(session string, m replay.Moment, f *projection.Fold) (stdin []byte, env []string, err error) {
	view := maps.Clone(f.View())
	env = []string{"SAJOU_SESSION=" + session}
	if b.seeSeq {
		env = append(env, "SAJOU_SEQ="+strconv.FormatUint(uint64(m.Seq), 10))
	} else {
		delete(view, "seq")
	}
	if b.seeTime {
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

func (b *bisectFlags) runProgram(ctx context.Context, command []string, m replay.Moment, stdin []byte, env []string, output io.Writer) (bisect.TestResult, error) {
	limited := ctx
	if b.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, b.timeout)
		defer cancel()
	}
	cmd := exec.CommandContext(limited, command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if limited.Err() != nil {
		return bisect.Skip, nil
	}
	code := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code = failed.ExitCode() // -1 when a signal ended it
	} else if err != nil {
		return 0, cli.Fail(cli.ExitCannotRun, "cannot run %s: %v", command[0], pathless(err))
	}
	switch {
	case code == 0:
		return bisect.Good, nil
	case code == 125:
		return bisect.Skip, nil
	case 0 < code && code < 125:
		return bisect.Bad, nil
	}
	return 0, cli.Fail(cli.ExitCannotRun, "%s failed at %v: %v; it must exit with 0 for good, 1..124 for bad, or 125 to skip", command[0], m, err)
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

// lockedWriter lets several programs write to one writer.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
