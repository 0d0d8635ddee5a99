// Package testprogram runs a program that judges a state, in the protocol of git bisect
// run. The program reads the state from its stdin and answers with its exit code:
//
//	0        good
//	1..124   bad
//	125      skip: the state cannot be judged
//	126..    no verdict: the program failed
//
// Death by a signal is a failure too. A run that exceeds the time limit is a skip.
//
// # What a program cannot do
//
// On Unix each run is a session of its own. Its processes have no terminal, so a program
// that asks a person fails instead of waiting for an answer that the terminal withholds. The
// processes end with the run: those of its group are killed when the program has exited, when
// the time limit is over, and when the context ends. A process that leaves the group goes on,
// but the run does not wait for it. Elsewhere only the program itself is killed.
//
// The program may leave its stdin unread. Its output is read to the end whatever its length,
// so the program never waits for a reader; only the first [Program.MaxOutput] bytes are
// passed on.
package testprogram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// The defaults of [Program].
const (
	DefaultMaxOutput = 1 << 20
	DefaultGrace     = 2 * time.Second
)

// Program is a test program. It is safe for concurrent use, and must not be copied after
// its first run.
type Program struct {
	Args []string // the program and its arguments
	Env  []string // additions to the environment of this process, each NAME=VALUE

	// Output receives stdout and stderr of the runs as they are written, in whole pieces
	// that do not overlap. Its errors are ignored. Nil discards them.
	Output io.Writer

	// MaxOutput bounds the bytes of one run that Output receives; the rest is discarded. Zero
	// is DefaultMaxOutput.
	MaxOutput int64

	// Timeout is the most time for one run. Zero is without limit.
	Timeout time.Duration

	// Grace is the time between the request to end, SIGTERM on Unix, and the kill. It is also
	// the most time for which the output of a program that has exited is read, when another
	// process holds it open. Zero is DefaultGrace.
	Grace time.Duration

	mu sync.Mutex // guards Output
}

// ProgramResult is the result of a run.
type ProgramResult struct {
	Result    bisect.TestResult
	Code      int   // the exit code; -1 after a timeout
	TimedOut  bool  // the run exceeded Timeout; Result is Skip
	Discarded int64 // bytes of output beyond MaxOutput
}

// StartError reports that a program could not be started.
type StartError struct {
	Name  string
	Cause error // without the name
}

func (e *StartError) Error() string { return fmt.Sprintf("cannot run %s: %v", e.Name, e.Cause) }

func (e *StartError) Unwrap() error { return e.Cause }

// FailedError reports that a program ended without a verdict.
type FailedError struct {
	Name   string
	Status string // such as "exit status 126" or "signal: killed"
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("%s failed with %s; it must exit with 0 for good, 1..124 for bad, or 125 to skip", e.Name, e.Status)
}

// Run runs the program once, with stdin as its input and env in addition to p.Env. The
// error is a [*StartError], a [*FailedError], or that of ctx.
func (p *Program) Run(ctx context.Context, stdin []byte, env ...string) (ProgramResult, error) {
	if len(p.Args) == 0 {
		return ProgramResult{}, &StartError{"", errors.New("the command is empty")}
	}
	if err := ctx.Err(); err != nil {
		return ProgramResult{}, err
	}
	limit := ctx
	if p.Timeout > 0 {
		var stop context.CancelFunc
		limit, stop = context.WithTimeout(ctx, p.Timeout)
		defer stop()
	}
	r := &run{program: p, left: p.MaxOutput, grace: p.Grace}
	if r.left == 0 {
		r.left = DefaultMaxOutput
	}
	if r.grace == 0 {
		r.grace = DefaultGrace
	}
	state, err := r.do(limit, stdin, env)
	switch {
	case err != nil:
		return ProgramResult{}, err
	case ctx.Err() != nil:
		return ProgramResult{}, ctx.Err()
	case limit.Err() != nil:
		return ProgramResult{Result: bisect.Skip, Code: -1, TimedOut: true, Discarded: r.discarded}, nil
	}
	o := ProgramResult{Code: state.ExitCode(), Discarded: r.discarded}
	switch code := o.Code; {
	case code == 0:
		o.Result = bisect.Good
	case code == 125:
		o.Result = bisect.Skip
	case 0 < code && code < 125:
		o.Result = bisect.Bad
	default: // -1 when a signal ended it
		return o, &FailedError{p.Args[0], state.String()}
	}
	return o, nil
}

// run is one run of a program.
type run struct {
	program   *Program
	grace     time.Duration
	left      int64 // bytes of output that are still passed on
	discarded int64
}

// do starts the program and waits for it, for at most as long as ctx lasts and two times
// the grace. The pipes are files, so that cmd.Wait returns as soon as the program itself has
// exited, even if another process holds them open.
func (r *run) do(ctx context.Context, stdin []byte, env []string) (*os.ProcessState, error) {
	args := r.program.Args
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, &StartError{args[0], err}
	}
	defer func() { _ = inWrite.Close() }()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		_ = inRead.Close()
		return nil, &StartError{args[0], err}
	}
	defer func() { _ = outRead.Close() }()

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, outWrite
	cmd.Env = append(append(os.Environ(), r.program.Env...), env...)
	ownGroup(cmd)
	err = cmd.Start()
	_ = inRead.Close() // the program has its own
	_ = outWrite.Close()
	if err != nil {
		return nil, &StartError{args[0], pathless(err)}
	}
	exited := make(chan struct{})
	ended := context.AfterFunc(ctx, func() {
		askGroup(cmd)
		if !within(r.grace, exited) {
			killGroup(cmd)
		}
	})
	defer ended()
	go func() {
		_, _ = inWrite.Write(stdin) // a program may leave it unread
		_ = inWrite.Close()
	}()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		r.drain(outRead)
	}()

	_ = cmd.Wait() // the state has the exit code
	close(exited)
	killGroup(cmd)
	if !within(r.grace, drained) {
		_ = outRead.Close() // ends the read
		if !within(r.grace, drained) {
			return cmd.ProcessState, &FailedError{args[0], "output that cannot be written"}
		}
	}
	return cmd.ProcessState, nil
}

// within waits for done, and reports whether it was closed before d had passed.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// drain reads the output to its end and passes on its beginning.
func (r *run) drain(from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		keep := min(int64(n), r.left)
		r.left -= keep
		r.discarded += int64(n) - keep
		if keep > 0 {
			r.program.write(buffer[:keep])
		}
		if err != nil {
			return
		}
	}
}

func (p *Program) write(text []byte) {
	if p.Output == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.Output.Write(text)
}

// pathless returns an error without the operation and the path of a PathError or an
// exec.Error, which the message around it names.
func pathless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}
