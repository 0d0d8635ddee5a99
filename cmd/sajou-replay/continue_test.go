//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// fifo creates a named pipe.
func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe.jsonl")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	return name
}

// release ends an open of the pipe that waits for a writer.
func release(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, syscall.ENXIO) { // that nothing waits any more
		t.Error(err)
	}
}

// A command that waits to open or read a named pipe ends when it is interrupted,
// and does not lock the store while it waits.
func TestInterruptedPipe(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 3)
	for _, args := range []string{
		"import FIFO -s new", "import FIFO -s a --append", "import FIFO -s a --continue", "import FIFO --define FIFO -s new",
		"define add FIFO -s a", "lint FIFO", "sim FIFO", "rehearse FIFO", "policy-diff --policy FIFO", "episode play FIFO",
		"episode play --script FIFO", "scan --image FIFO", "render 1 --scene FIFO -O x.svg", "episode graph FIFO", "episode simulate FIFO",
	} {
		for _, writes := range []bool{false, true} {
			name := fifo(t)
			ctx, interrupt := context.WithCancel(t.Context())
			done := make(chan result, 1)
			go func() {
				done <- sajouReplay(ctx, t, nil, append([]string{"-C", store}, strings.Fields(strings.ReplaceAll(args, "FIFO", name))...)...)
			}()
			var writer *os.File
			for writes && writer == nil && len(done) == 0 { // until the command has opened the pipe
				writer, _ = os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
				runtime.Gosched()
			}
			// A command may open the store for a moment before it waits.
			if other := sajouReplay(t.Context(), t, nil, "-C", store, "ls", "--wait", "10s"); other.code != 0 {
				t.Errorf("%s, opened %v: the store is locked: %s", args, writes, other.stderr)
			}
			interrupt()
			select {
			case got := <-done:
				if got.code != cli.ExitInterrupted {
					t.Errorf("%s, opened %v: exit %d, %s%s", args, writes, got.code, got.stdout, got.stderr)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s, opened %v: it does not end", args, writes)
			}
			if writer != nil {
				_ = writer.Close()
			}
			release(t, name)
		}
	}
	if r := sajouReplay(t.Context(), t, nil, "-C", store, "ls", "-o", "jsonl"); strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("sessions were begun: %s", r.stdout)
	}
}

// talk writes a file of signals whose batches are large, and returns its name.
func talk(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		payload := map[string]any{"n": i, "text": strings.Repeat(strconv.Itoa(i*7919), 40)}
		line, err := json.Marshal(map[string]any{"id": fmt.Sprint(i), "type": "note", "timestamp": 1000 + i, "source": "adapter:test", "payload": payload})
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	name := filepath.Join(t.TempDir(), "talk.jsonl")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	return name
}

var imported = regexp.MustCompile(`imported (\d+) signals? into "talk": entries (\d+)\.\.(\d+), head (\S+)`)

// After a disk became full at any point of an import, the store has the entries that
// the import reported, and --continue completes the session with the same head. The
// limit of the process on the size of a file stands in for the full disk.
func TestAttackFullDisk(t *testing.T) {
	const signals = 24_000
	file := talk(t, signals)
	whole := filepath.Join(t.TempDir(), "store")
	want := sajouReplay(t.Context(), t, nil, "-C", whole, "import", file)
	head := imported.FindStringSubmatch(want.stdout)
	if head == nil {
		t.Fatalf("%+v", want)
	}
	cut := 0
	for round := range attack.Rounds(5, 60) {
		limit := 300 + round*attack.Rounds(1100, 97) // KiB
		store := filepath.Join(t.TempDir(), "store")
		sh := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf(`ulimit -f %d; trap "" XFSZ; exec sajou-replay -C "$0" import "$1"`, 2*limit), store, file)
		var stdout, stderr bytes.Buffer
		sh.Stdout, sh.Stderr = &stdout, &stderr
		err := sh.Run()
		if err == nil {
			continue // there was room for all
		}
		cut++
		said := imported.FindStringSubmatch(stdout.String())
		is := sajouReplay(t.Context(), t, nil, "-C", store, "verify")
		switch {
		case said == nil && is.code == 0:
			t.Errorf("%d KiB: it says %s%s, and there is %s", limit, &stdout, &stderr, is.stdout)
		case said != nil && !strings.Contains(is.stdout, "head "+said[4]+"\n"):
			t.Errorf("%d KiB: it says head %s, and there is %s%s", limit, said[4], is.stdout, is.stderr)
		case said != nil && sh.ProcessState.ExitCode() != cli.ExitLoss:
			t.Errorf("%d KiB: exit %d: %s", limit, sh.ProcessState.ExitCode(), &stderr)
		}
		again := sajouReplay(t.Context(), t, nil, "-C", store, "import", file, "--continue")
		if is := sajouReplay(t.Context(), t, nil, "-C", store, "verify"); again.code != 0 || !strings.Contains(is.stdout, "head "+head[4]) {
			t.Errorf("%d KiB: continued: %+v, and there is %s%s", limit, again, is.stdout, is.stderr)
		}
	}
	if cut == 0 {
		t.Error("the disk was never full")
	}
}

// --continue records the missing entries after an interruption at any point, and
// nothing if the files differ from the session.
func TestContinue(t *testing.T) {
	file := talk(t, 30)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	write := func(name string, lines ...string) string {
		name = filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "")), 0o600))
		return name
	}
	definitions := write("definitions.json", `{"on":"note","steps":[{"action":"move","entity":"x","duration":10}]}`)
	other := write("other.json", `{"on":"note","steps":[{"action":"move","entity":"x","duration":11}]}`)
	store := func() string { return filepath.Join(t.TempDir(), "store") }
	run := func(store string, args ...string) result {
		return sajouReplay(t.Context(), t, nil, append([]string{"-C", store, "import", "-s", "talk"}, args...)...)
	}
	whole := run(store(), file, "--define", definitions)
	head := imported.FindStringSubmatch(whole.stdout)
	for _, n := range []int{0, 1, 17, 30} {
		at := store()
		if n > 0 {
			run(at, write("part.jsonl", lines[:n]...), "--define", definitions)
		}
		r := run(at, write("a.jsonl", lines[:9]...), write("b.jsonl", lines[9:]...), "--define", definitions, "--continue")
		if r.code != 0 || !strings.Contains(r.stdout, "head "+head[4]) || n < 30 && !strings.Contains(r.stdout, fmt.Sprintf("imported %d signal", 30-n)) {
			t.Errorf("behind %d: %+v", n, r)
		}
	}
	at := store()
	run(at, write("part.jsonl", lines[:17]...), "--define", definitions)
	changed := append([]string{}, lines...)
	changed[4] = strings.Replace(changed[4], `"n":4`, `"n":5`, 1)
	for name, args := range map[string][]string{
		"a changed line":      {write("x.jsonl", changed...), "--define", definitions},
		"a missing line":      {write("x.jsonl", append(append([]string{}, lines[:3]...), lines[4:]...)...), "--define", definitions},
		"fewer lines":         {write("x.jsonl", lines[:5]...), "--define", definitions},
		"other definitions":   {file, "--define", other},
		"more definitions":    {file, "--define", definitions, "--define", other},
		"without definitions": {file},
		"to be added":         {file, "--append"},
	} {
		r := run(at, append(args, "--continue")...)
		if r.code != cli.ExitNo && (name != "to be added" || r.code != cli.ExitMisuse) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := sajouReplay(t.Context(), t, nil, "-C", at, "info", "talk", "-o", "json"); !strings.Contains(r.stdout, `"entries": 19`) {
		t.Errorf("something was recorded: %s", r.stdout)
	}
}

// judgedPlay is an episode whose first turn needs a judge.
const judgedPlay = `{"id": "tea", "beats": [{
	"id": "warm", "character_instruction": "Make them feel at home.", "target_turn": 1,
	"detection_type": "semantic", "detection_criteria": "the guest is put at ease"}]}`

// SIGINT ends a play at once while a model does not answer, for every behavior of
// its server.
func TestInterruptedPlay(t *testing.T) {
	for name, answer := range map[string]string{
		"silence": "", "headers": "HTTP/1.1 200 OK\r\n", "half": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
		"an upgrade": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
	} {
		for _, flag := range []string{"--character-url", "--judge-url"} {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 1))
				_, _ = io.WriteString(conn, answer)
				interrupt()
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()
			play := filepath.Join(t.TempDir(), "tea.json")
			require.NoError(t, os.WriteFile(play, []byte(judgedPlay), 0o600))
			args := []string{"-C", filepath.Join(t.TempDir(), "store"), "episode", "play", play, "--model", "m", flag, "http://" + l.Addr().String()}
			lines, user := io.Pipe()
			go func() {
				for range 20 {
					_, _ = io.WriteString(user, "Hello.\n")
				}
			}()
			done := make(chan result, 1)
			go func() { done <- sajouReplay(ctx, t, lines, args...) }()
			select {
			case got := <-done:
				// An upgrade is refused at once, perhaps before the interruption.
				refused := name == "an upgrade" && got.code == cli.ExitCannotRun
				if !refused && (ctx.Err() == nil || got.code != cli.ExitInterrupted) {
					t.Errorf("%s, %s: exit %d: %s", name, flag, got.code, got.stderr)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s, %s: it does not end; interrupted: %v", name, flag, ctx.Err())
			}
			_ = lines.Close()
			_ = l.Close()
		}
	}
}
