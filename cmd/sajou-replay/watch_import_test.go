package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// lines is an output of which a test waits for lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	come chan string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for {
		line, rest, ok := strings.Cut(l.text.String(), "\n")
		if !ok {
			return len(p), nil
		}
		l.text.Reset()
		l.text.WriteString(rest)
		l.come <- line
	}
}

// import --watch records what is in a folder, what is added to its files, and files that
// come; a second run goes on where the first ended.
func TestImportWatch(t *testing.T) {
	script, err := os.ReadFile("testdata/script/recordings.txtar")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(script), "-- grown/lamp.jsonl --\n")
	text, _, _ = strings.Cut(text, "-- ")
	recorded := strings.SplitAfter(strings.TrimSpace(text)+"\n", "\n")
	dir, store := t.TempDir(), t.TempDir()
	lamp := filepath.Join(dir, "lamp.jsonl")
	require.NoError(t, os.WriteFile(lamp, []byte(strings.Join(recorded[:3], "")), 0o644))

	watch := func(steps func(out *lines, look func())) {
		ctx, stop := context.WithCancel(t.Context())
		ticks := make(chan time.Time)
		out := &lines{come: make(chan string, 100)}
		a := &cli.App{Stdin: strings.NewReader(""), Stdout: out, Stderr: &lines{come: make(chan string, 100)}, Ticks: ticks}
		done := make(chan error)
		go func() { done <- execute(ctx, a, []string{"-C", store, "import", "--watch", dir, "-o", "jsonl"}) }()
		steps(out, func() { ticks <- time.Time{} })
		stop()
		err := <-done
		code := cli.ExitCode(err, a.Stderr)
		assert.Contains(t, []int{0, cli.ExitInterrupted}, code, "%v", err)
	}
	add := func(name string, more ...string) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		require.NoError(t, err)
		_, err = f.WriteString(strings.Join(more, ""))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	watch(func(out *lines, look func()) {
		assert.Contains(t, <-out.come, `"session":"lamp"`)
		add(lamp, recorded[3], recorded[4][:50])
		look()
		assert.Contains(t, <-out.come, `"session":"lamp"`)
		add(filepath.Join(dir, "second.jsonl"), recorded[1], recorded[2])
		look()
		assert.Contains(t, <-out.come, `"session":"second"`)
		// A subagent's file belongs to the session of its main file.
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "second/subagents"), 0o755))
		add(filepath.Join(dir, "second/subagents/agent-a1.jsonl"), `{"type":"user","isSidechain":true,"agentId":"a1","uuid":"x1","parentUuid":null,"sessionId":"s1","timestamp":"2026-01-05T10:00:02.500Z","message":{"role":"user","content":"look below"}}
{"type":"assistant","isSidechain":true,"agentId":"a1","uuid":"x2","parentUuid":"x1","sessionId":"s1","timestamp":"2026-01-05T10:00:02.600Z","message":{"id":"m9","role":"assistant","content":[{"type":"text","text":"nothing"}]}}
`)
		look()
		assert.Contains(t, <-out.come, `"session":"second","file":"second/subagents/agent-a1.jsonl"`)
	})
	watch(func(out *lines, look func()) {
		add(lamp, recorded[4][50:], recorded[5])
		look()
		assert.Contains(t, <-out.come, `"session":"lamp"`)
	})

	// Nothing stands twice, and nothing but the end is missing.
	other := t.TempDir()
	require.Equal(t, 0, sajouReplay(t.Context(), t, nil, "-C", other, "import", lamp).code)
	types := func(store string) string {
		r := sajouReplay(t.Context(), t, nil, "-C", store, "info", "-s", "lamp")
		require.Equal(t, 0, r.code, r.stderr)
		for line := range strings.Lines(r.stdout) {
			if strings.HasPrefix(line, "signals") {
				return line
			}
		}
		return ""
	}
	assert.Equal(t, types(other), types(store))
}
