package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// terminal is a program on its own pseudo-terminal.
type terminal struct {
	t      *testing.T
	tty    *os.File // our side
	seen   bytes.Buffer
	chunks chan []byte // what the program writes; closed at its end
	code   chan int    // holds the one exit code
}

// onTerminal runs a command line on a pseudo-terminal of the given size.
func onTerminal(ctx context.Context, t *testing.T, rows, cols uint16, args ...string) *terminal {
	t.Helper()
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(theirs, &pty.Winsize{Rows: rows, Cols: cols}))
	term := &terminal{t: t, tty: ours, chunks: make(chan []byte, 1000), code: make(chan int, 1)}
	go func() {
		defer close(term.chunks)
		for {
			b := make([]byte, 4096)
			n, err := ours.Read(b)
			if err != nil {
				return
			}
			term.chunks <- b[:n]
		}
	}()
	go func() {
		var stderr bytes.Buffer
		err := run(ctx, args, theirs, theirs, &stderr)
		term.code <- cli.ExitCode(err, &stderr)
		// The other side stays open: after the program was stopped, bubbletea
		// leaves a blocked reader behind, because not every read can be cancelled.
	}()
	t.Cleanup(func() { _ = ours.Close() })
	return term
}

// until waits for a text on the terminal.
func (p *terminal) until(text string) {
	p.t.Helper()
	timeout := time.After(20 * time.Second)
	for !strings.Contains(p.seen.String(), text) {
		select {
		case chunk, ok := <-p.chunks:
			if !ok {
				p.t.Fatalf("the program ended without %q; it wrote\n%q", text, p.seen.String())
			}
			p.seen.Write(chunk)
		case <-timeout:
			p.t.Fatalf("%q did not appear; there is\n%q", text, p.seen.String())
		}
	}
	p.seen.Reset()
}

func (p *terminal) press(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.tty, keys); err != nil {
		p.t.Fatal(err)
	}
}

// TestPlayStageOnTerminal shows that the stage is animated in place, reacts to keys,
// and restores the terminal, also when it is interrupted.
func TestPlayStageOnTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := onTerminal(ctx, t, 24, 100, "-C", store, "play", "--stage", "--rate", "0.001", "1..end")
	p.until("\x1b[?1049h") // the other screen
	p.until("space play")
	p.press(" ")
	p.until("‖")
	p.press("G") // to the end
	p.until("■")
	p.press("q")
	p.until("\x1b[?1049l")
	if code := <-p.code; code != 0 {
		t.Errorf("exit %d after q", code)
	}

	p = onTerminal(ctx, t, 24, 100, "-C", store, "play", "--stage", "--rate", "0.001")
	p.until("space play")
	require.NoError(t, pty.Setsize(p.tty, &pty.Winsize{Rows: 10, Cols: 60}))
	p.press("\x03") // ctrl-C
	p.until("\x1b[?1049l")
	if code := <-p.code; code != cli.ExitInterrupted {
		t.Errorf("exit %d after ctrl-C, want %d", code, cli.ExitInterrupted)
	}

	p = onTerminal(ctx, t, 24, 100, "-C", store, "play", "--stage", "--rate", "0.001")
	p.until("space play")
	cancel()
	p.until("\x1b[?1049l")
	if code := <-p.code; code != cli.ExitInterrupted {
		t.Errorf("exit %d after the context ended, want %d", code, cli.ExitInterrupted)
	}
}

// TestPlayStageWithoutTerminal shows that the debugger refuses a stdin or stdout that is
// no terminal, and that -o text writes the stage as texts in any case. The null device
// is not a terminal, although both are character devices.
func TestPlayStageWithoutTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 5)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	defer ours.Close()
	defer theirs.Close()
	for _, streams := range [][2]*os.File{{theirs, null}, {null, theirs}, {null, null}} {
		var stderr bytes.Buffer
		err := run(t.Context(), []string{"-C", store, "play", "--stage"}, streams[0], streams[1], &stderr)
		require.Equal(t, cli.ExitMisuse, cli.ExitCode(err, &stderr))
		require.Equal(t, "sajou-replay: play --stage needs a terminal for its keys; write the frames as text with: play --stage -o text\n", stderr.String())
	}
	for _, args := range [][]string{{"play", "--stage", "-o", "text", "--rate", "0"}, {"play", "--stage", "-o", "text", "--rate", "1000"}} {
		var stderr bytes.Buffer
		err := run(t.Context(), append([]string{"-C", store}, args...), theirs, null, &stderr)
		require.Zerof(t, cli.ExitCode(err, &stderr), "%v >/dev/null: %s", args, &stderr)
		require.Empty(t, stderr.String())
		if err := run(t.Context(), append([]string{"-C", store}, args...), null, theirs, &stderr); err != nil {
			t.Fatalf("%v </dev/null: %v", args, err)
		}
		written := make([]byte, 4096)
		n, err := ours.Read(written)
		require.NoError(t, err)
		require.Contains(t, string(written[:n]), "a 0  00:00.000\r\n")
		require.NotContains(t, string(written[:n]), "\x1b")
	}
}

// TestRehearseWatch shows that rehearse --watch runs files again when they
// change, goes on after an error in them, and ends when it is interrupted.
func TestRehearseWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write(`{"id":"a","name":"The first","definitions":[],"script":[{"advance":5}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks := make(chan time.Time)
	out, stdout := io.Pipe()
	remarks, stderr := io.Pipe()
	ended := make(chan int, 1) // holds the one code
	go func() {
		a := &cli.App{Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Ticks: ticks}
		root := rootCommand(a)
		root.SetArgs([]string{"rehearse", "--watch", file})
		ended <- cli.ExitCode(root.ExecuteContext(ctx), io.Discard)
		_, _ = stdout.Close(), stderr.Close()
	}()
	lines, said := linesOf(out), linesOf(remarks)
	expect := func(from <-chan string, want string) {
		t.Helper()
		for {
			select {
			case line, ok := <-from:
				if !ok {
					t.Fatalf("it ended without saying %q", want)
				}
				if strings.Contains(line, want) {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("it did not say %q", want)
			}
		}
	}
	expect(lines, "The first")
	expect(said, "watching 1 file")
	ticks <- time.Time{} // nothing has changed
	write(`{"id":"a","name":"Number two","definitions":[],"script":[{"advance":5}]}`)
	ticks <- time.Time{}
	expect(said, "changed: "+file)
	expect(lines, "Number two")
	expect(said, "watching")
	write(`{`)
	ticks <- time.Time{}
	expect(said, "nothing was rehearsed")
	expect(said, "watching")
	write(`{"id":"a","name":"A third one","definitions":[],"script":[{"advance":5}]}`)
	ticks <- time.Time{}
	expect(lines, "A third one")
	cancel()
	if code := <-ended; code != cli.ExitInterrupted {
		t.Errorf("exit %d, want %d", code, cli.ExitInterrupted)
	}
}

// linesOf returns the lines of a stream as they arrive.
func linesOf(r io.Reader) <-chan string {
	lines := make(chan string, 100) // more than a test makes it wait for
	go func() {
		defer close(lines)
		for l := bufio.NewScanner(r); l.Scan(); {
			if line := strings.TrimSpace(l.Text()); line != "" {
				lines <- line
			}
		}
	}()
	return lines
}
