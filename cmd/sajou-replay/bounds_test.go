package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// Reading a file ends with the context, for every kind of file.
func TestInterruptedReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	err := cli.Interruptibly(ctx, func() { cancel(); <-release })
	assert.ErrorIs(t, err, context.Canceled)
	dir := t.TempDir()
	file := filepath.Join(dir, "f.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"on":"x","steps":[{"action":"a"}]}`), 0o600))
	for _, args := range []string{"lint " + file, "define add " + file + " -s a -C " + dir + "/store", "rehearse " + file, "episode lint " + file} {
		if r := sajouReplay(ctx, t, strings.NewReader(""), strings.Fields(args)...); r.code != cli.ExitInterrupted {
			t.Errorf("%s: exit %d, want %d\n%s", args, r.code, cli.ExitInterrupted, r.stderr)
		}
	}
}

// A large state is shown in part, and the omitted parts are counted. It is not
// compared in part, because the result would be wrong.
func TestStateIsBounded(t *testing.T) {
	dir := t.TempDir()
	var signals strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&signals, `{"id":"s%d","type":"x","timestamp":%d,"source":"t","payload":{}}`+"\n", i, 1000+i)
	}
	for name, text := range map[string]string{
		"s.jsonl": signals.String(),
		"c.json":  `{"on":"x","steps":[{"action":"move","entity":"e","duration":1e9}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run := func(args string) result {
		t.Helper()
		return sajouReplay(t.Context(), t, strings.NewReader(""), append(strings.Fields(args), "-C", filepath.Join(dir, "store"))...)
	}
	if r := run("import " + filepath.Join(dir, "s.jsonl") + " --define " + filepath.Join(dir, "c.json")); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for _, tc := range []struct {
		args string
		code int
		says string
	}{
		{"state end performances -o json", cli.ExitLoss, "1000 of 1200 of performances"},
		{"state -o json", cli.ExitLoss, "the state is shown in part"},
		{"state end performances -o json --all", 0, ""},
		{"state end session -o json", 0, ""},
		{"state end performances.p-1202-1.on", 0, ""},
		{"diff 100 101 performances", cli.ExitNo, ""},
		{"diff 1 end --all", cli.ExitNo, ""},
	} {
		r := run(tc.args)
		if r.code != tc.code || !strings.Contains(r.stderr, tc.says) {
			t.Errorf("%s: exit %d, want %d that says %q\n%s", tc.args, r.code, tc.code, tc.says, r.stderr)
		}
	}
}

// A simulation ends at its time limit, and counts the plays that it did not try.
func TestSimulateFor(t *testing.T) {
	begun := time.Now()
	r := sajouReplay(t.Context(), t, strings.NewReader(""), "episode", "simulate", "--for", "1ns", "../../director/script/interview.json")
	if r.code != cli.ExitInconclusive || !strings.Contains(r.stdout, "not tried, because of the bound of time: 1 state was not played on from") || time.Since(begun) > time.Minute {
		t.Errorf("exit %d\n%s\n%s", r.code, r.stdout, r.stderr)
	}
}
