//go:build unix

package testprogram_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/testprogram"
)

// acting is the variable that makes the binary of the tests a test program.
const acting = "TESTPROGRAM_ACT"

func TestMain(m *testing.M) {
	if os.Getenv(acting) != "" {
		act(os.Args[1:])
	}
	os.Exit(m.Run())
}

// act is a test program that behaves as its arguments say.
func act(args []string) {
	switch args[0] {
	case "exit":
		code, _ := strconv.Atoi(args[1])
		os.Exit(code)
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		never()
	case "hang":
		never()
	case "stubborn": // does not end when it is asked to
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		never()
	case "flood":
		line := bytes.Repeat([]byte("x"), 1<<16)
		for range 256 {
			_, _ = os.Stdout.Write(line)
		}
		os.Exit(1)
	case "copy":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		fmt.Print(os.Getenv("A"), os.Getenv("B"))
		os.Exit(0)
	case "terminal":
		if _, err := os.Open("/dev/tty"); err == nil {
			os.Exit(1)
		}
		os.Exit(0)
	case "fork": // leaves a process behind that holds the output open
		child := exec.Command(os.Args[0], "stay", args[1])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if len(args) > 2 {
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}
		ready, told, _ := os.Pipe()
		child.ExtraFiles = []*os.File{told}
		_ = child.Start()
		_, _ = ready.Read(make([]byte, 1))
		os.Exit(3)
	case "stay":
		c, err := net.Dial("unix", args[1])
		if err != nil {
			os.Exit(1)
		}
		_, _ = os.NewFile(3, "told").Write([]byte{1})
		_, _ = c.Read(make([]byte, 1)) // until the test closes it
		os.Exit(0)
	}
}

// never waits for a signal that nobody sends.
func never() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	<-c
}

func program(t *testing.T, args ...string) *testprogram.Program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return &testprogram.Program{Args: append([]string{self}, args...), Env: []string{acting + "=1"}, Grace: 100 * time.Millisecond}
}

func TestExitCodesAreVerdicts(t *testing.T) {
	for code, want := range map[int]bisect.TestResult{0: bisect.Good, 1: bisect.Bad, 124: bisect.Bad, 125: bisect.Skip} {
		o, err := program(t, "exit", strconv.Itoa(code)).Run(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, testprogram.ProgramResult{Result: want, Code: code}, o)
	}
	for _, code := range []int{126, 127, 128, 255} {
		_, err := program(t, "exit", strconv.Itoa(code)).Run(t.Context(), nil)
		var failed *testprogram.FailedError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, fmt.Sprintf("exit status %d", code), failed.Status)
	}
	_, err := program(t, "die").Run(t.Context(), nil)
	require.ErrorContains(t, err, "failed with signal: killed; it must exit with 0 for good, 1..124 for bad, or 125 to skip")
}

func TestProgramsThatCannotStart(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {filepath.Join(t.TempDir(), "nothing")}, {t.TempDir()}} {
		_, err := (&testprogram.Program{Args: args}).Run(t.Context(), nil)
		var start *testprogram.StartError
		require.ErrorAsf(t, err, &start, "%q", args)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := program(t, "exit", "0").Run(gone, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// A program reads its state and its environment, and its output is passed on.
func TestInputAndOutput(t *testing.T) {
	var out bytes.Buffer
	p := program(t, "copy")
	p.Output = &out
	state := strings.Repeat("state ", 100_000) // more than a pipe holds
	p.Env = append(p.Env, "A=1", "B=2")
	o, err := p.Run(t.Context(), []byte(state), "B=3")
	require.NoError(t, err)
	assert.Equal(t, bisect.Good, o.Result)
	assert.Equal(t, state+"13", out.String())
}

// A program that leaves a large input unread, or writes without end, is judged all the same.
func TestFloods(t *testing.T) {
	o, err := program(t, "exit", "1").Run(t.Context(), make([]byte, 8<<20))
	require.NoError(t, err)
	assert.Equal(t, bisect.Bad, o.Result)

	var out bytes.Buffer
	p := program(t, "flood")
	p.Output, p.MaxOutput = &out, 100
	o, err = p.Run(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, testprogram.ProgramResult{Result: bisect.Bad, Code: 1, Discarded: 256<<16 - 100}, o)
	assert.Equal(t, strings.Repeat("x", 100), out.String())
}

// A program that hangs is a skip after the time limit, and an interruption ends it.
func TestHanging(t *testing.T) {
	p := program(t, "hang")
	p.Timeout = 30 * time.Millisecond
	o, err := p.Run(t.Context(), []byte("state"))
	require.NoError(t, err)
	assert.Equal(t, testprogram.ProgramResult{Result: bisect.Skip, Code: -1, TimedOut: true}, o)

	ctx, cancel := context.WithCancel(t.Context())
	p = program(t, "stubborn")
	p.Output = writerFunc(func([]byte) { cancel() }) // once it ignores the request to end
	_, err = p.Run(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

// A program has no terminal, so it cannot stop at a question to a person.
func TestNoTerminal(t *testing.T) {
	o, err := program(t, "terminal").Run(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, bisect.Good, o.Result)
}

// Processes that a program leaves behind do not delay the result, although they hold its
// output open. Those of its group are dead afterwards.
func TestProcessesLeftBehind(t *testing.T) {
	for _, escapes := range []bool{false, true} {
		dir, err := os.MkdirTemp("", "p") //nolint:usetesting // a short path, for the name of a socket
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		listener, err := net.Listen("unix", filepath.Join(dir, "s"))
		require.NoError(t, err)
		args := []string{"fork", listener.Addr().String()}
		if escapes {
			args = append(args, "away")
		}
		p := program(t, args...)
		o, err := p.Run(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, testprogram.ProgramResult{Result: bisect.Bad, Code: 3}, o)
		child, err := listener.Accept()
		require.NoError(t, err)
		if !escapes {
			_, err = child.Read(make([]byte, 1))
			assert.ErrorIs(t, err, io.EOF, "the process of the group is gone")
		}
		require.NoError(t, child.Close()) // ends the one that escaped
		require.NoError(t, listener.Close())
	}
}
