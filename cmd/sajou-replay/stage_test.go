package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"
)

// terminal is a program on a terminal of its own.
type terminal struct {
	t      *testing.T
	tty    *os.File // our side
	seen   bytes.Buffer
	chunks chan []byte // what the program writes; closed at its end
	code   chan int    // holds the one exit code
}

// onTerminal runs a command line on a terminal of some size.
func onTerminal(ctx context.Context, t *testing.T, rows, cols uint16, args ...string) *terminal {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(theirs, &pty.Winsize{Rows: rows, Cols: cols}); err != nil {
		t.Fatal(err)
	}
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
		term.code <- exitCode(err, &stderr)
		// Their side stays open: where the program was stopped, bubbletea
		// leaves a reader behind, as a read cannot be called off everywhere.
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

// TestPlayStageOnTerminal shows that the stage is played in place, obeys keys,
// and leaves the terminal as it was, also when it is interrupted.
func TestPlayStageOnTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := onTerminal(ctx, t, 24, 100, "-C", store, "play", "--stage", "--rate", "0.001", "1..end")
	p.until("\x1b[?1049h") // the other screen
	p.until("space pause")
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
	p.until("space pause")
	if err := pty.Setsize(p.tty, &pty.Winsize{Rows: 10, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	p.press("\x03") // ctrl-C
	p.until("\x1b[?1049l")
	if code := <-p.code; code != exitInterrupted {
		t.Errorf("exit %d after ctrl-C, want %d", code, exitInterrupted)
	}

	p = onTerminal(ctx, t, 24, 100, "-C", store, "play", "--stage", "--rate", "0.001")
	p.until("space pause")
	cancel()
	p.until("\x1b[?1049l")
	if code := <-p.code; code != exitInterrupted {
		t.Errorf("exit %d after the context ended, want %d", code, exitInterrupted)
	}
}

// TestViewer shows what keys do, and that time passes at the rate.
func TestViewer(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 5) // entries 2 to 6, a millisecond apart
	a := &app{store: store}
	target, err := a.target("")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	s := target.stagedWith(nil)
	over, err := s.span(t.Context(), momentOf(1), momentOf(6))
	if err != nil {
		t.Fatal(err)
	}
	v := &viewer{ctx: t.Context(), s: s, over: over, pace: pace{rate: 0.001, fps: 20, idle: time.Hour}, cursor: s.travel.Cursor()}
	if err := v.seek(over.first); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	pass := func(d time.Duration) func() {
		return func() { now = now.Add(d); v.Update(frameMsg(now)) }
	}
	press := func(keys ...rune) func() {
		return func() {
			for _, k := range keys {
				v.Update(tea.KeyPressMsg{Code: k})
			}
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a size", func() { v.Update(tea.WindowSizeMsg{Width: 100, Height: 5}) }, "▶ a  1  00:00.000  x0.001"},
		{"the first frame", pass(time.Second), "▶ a  2  00:00.000  x0.001"},
		{"1.5 s", pass(1500 * time.Millisecond), "▶ a  3+500µs  00:00.001  x0.001"},
		{"space", press(tea.KeySpace), "‖ a  3+500µs  00:00.001  x0.001"},
		{"a second that does not count", pass(time.Second), "‖ a  3+500µs  00:00.001  x0.001"},
		{"left", press(tea.KeyLeft), "‖ a  3  00:00.001  x0.001"},
		{"left", press(tea.KeyLeft), "‖ a  2  00:00.000  x0.001"},
		{"right twice", press(tea.KeyRight, tea.KeyRight), "‖ a  4  00:00.002  x0.001"},
		{"faster", press('+'), "‖ a  4  00:00.002  x0.125"},
		{"home", press(tea.KeyHome, tea.KeyLeft), "‖ a  1  00:00.000  x0.125"},
		{"space", press(tea.KeySpace), "▶ a  1  00:00.000  x0.125"},
		{"the rest", pass(time.Minute), "■ a  6  00:00.004  x0.125"},
		{"space at the end", press(tea.KeySpace), "▶ a  1  00:00.000  x0.125"},
		{"end", press(tea.KeyEnd, tea.KeyRight), "■ a  6  00:00.004  x0.125"},
		{"a narrow window", func() { v.Update(tea.WindowSizeMsg{Width: 8, Height: 2}) }, "■ a  6  "},
		{"no window", func() { v.Update(tea.WindowSizeMsg{}) }, ""},
	} {
		step.do()
		content := v.View().Content
		lines := strings.Split(content, "\n")
		if got := lines[len(lines)-1]; !strings.HasPrefix(got, step.want) {
			t.Errorf("after %s the line is %q, want %q", step.what, got, step.want)
		}
		if len(lines) > max(v.rows, 1) && v.rows > 0 {
			t.Errorf("after %s there are %d lines in a window of %d", step.what, len(lines), v.rows)
		}
		if v.err != nil {
			t.Fatal(v.err)
		}
	}
}

// TestRehearseWatch shows that rehearse --watch runs files again when they
// change, survives what is wrong in them, and ends when it is interrupted.
func TestRehearseWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"id":"a","name":"The first","definitions":[],"script":[{"advance":5}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks := make(chan time.Time)
	out, stdout := io.Pipe()
	remarks, stderr := io.Pipe()
	ended := make(chan int, 1) // holds the one code
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, ticks: ticks}
		root := a.root()
		root.SetArgs([]string{"rehearse", "--watch", file})
		ended <- exitCode(root.ExecuteContext(ctx), io.Discard)
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
	if code := <-ended; code != exitInterrupted {
		t.Errorf("exit %d, want %d", code, exitInterrupted)
	}
}

// linesOf hands out lines as they come.
func linesOf(r io.Reader) <-chan string {
	lines := make(chan string, 100) // more than a test makes it wait for
	go func() {
		defer close(lines)
		l := newLineReader(r)
		for {
			line, err := l.next()
			if err != nil {
				return
			}
			lines <- string(line)
		}
	}()
	return lines
}
