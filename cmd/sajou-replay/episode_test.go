package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// The exit codes of the commands for authors.
func TestEpisodeExitCodes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	good := "../../director/script/interview.json"
	bad := file("bad.json", "{\n")
	dead := file("dead.json", `{"beats": [{"id": "a", "character_instruction": "x", "target_turn": 1, "detection_type": "automatic", "requires_flag": "f"}]}`)
	yaml := file("a.yaml", "beats: [{id: a, description: d, character_instruction: x, target_turn: 1}]\n")
	for _, tc := range []struct {
		args string
		code int
	}{
		{"", 0},
		{"nonsense", 2},
		{"lint", 2},
		{"lint " + good, 0},
		{"lint --strict " + good, 1},
		{"lint " + bad, 1},
		{"lint " + yaml + " " + dead, 0},
		{"lint " + dir, 2},
		{"graph", 2},
		{"graph " + good, 0},
		{"graph " + bad, 1},
		{"graph --svg " + filepath.Join(dir, "no", "such.svg") + " " + good, 1},
		{"simulate " + good, 0},
		{"simulate " + dead, 1},
		{"simulate --turns 2 " + good, 5},
		{"simulate --states 10 " + good, 5},
		{"simulate --moves 10 " + good, 5},
		{"simulate --moves 0 " + good, 2},
		{"simulate --delay 0 " + good, 0},
		{"simulate --delay soon " + good, 2},
		{"simulate " + bad, 1},
		{"migrate " + good, 0},
		{"migrate " + bad, 1},
		{"migrate -w -", 1},
		{"migrate -w " + yaml, 2},
	} {
		args := append([]string{"episode"}, strings.Fields(tc.args)...)
		r := sajouReplay(t.Context(), t, strings.NewReader(""), args...)
		if r.code != tc.code || strings.Count(r.stderr, "sajou-replay: ") > 1 {
			t.Errorf("sajou-replay %v: exit %d, want %d\nstdout: %.300s\nstderr: %s", args, r.code, tc.code, r.stdout, r.stderr)
		}
	}
}

// FuzzMigrate: what a migration writes is what it decided, however the file was
// written.
func FuzzMigrate(f *testing.F) {
	for _, text := range []string{
		`{"choice_points": [{"id": "a", "trigger": "turn:1", "choices": [{"id": "x", "label": "X"}]}]}`,
		"{\n\t\"choice_points\" : [ {\"id\": \"a\", \"trigger\": \"turn:1\", \"choices\": [{\"id\": \"x\", \"label\": \"X\"}]} ] ,\n\t\"beats\": [ ],\n\t\"id\": \"z\"\n}",
		`{"id": "z", "choice_points": [{"id": "a", "trigger": "turn:1", "choices": [{"id": "x", "label": "X"}]}], "beats": null}`,
	} {
		f.Add([]byte(text))
	}
	for _, name := range []string{"interview.json", "interview-before.json"} {
		text, err := os.ReadFile("../../director/script/" + name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := sajouReplay(t.Context(), t, strings.NewReader("  "+string(text)), "episode", "migrate", "-")
		if r.code != 0 {
			return
		}
		again := sajouReplay(t.Context(), t, strings.NewReader(r.stdout), "episode", "migrate", "-")
		if again.code != 0 || again.stdout != r.stdout {
			t.Fatalf("exit %d %s\n%s\nbecame\n%s", again.code, again.stderr, r.stdout, again.stdout)
		}
	})
}

// A simulation that is interrupted while its episode is read shows nothing.
func TestSimulateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := sajouReplay(ctx, t, strings.NewReader(""), "episode", "simulate", "-o", "json", "../../director/script/interview.json")
	if r.code != cli.ExitInterrupted || r.stdout != "" {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
