package found_test

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

	"github.com/sajou-dev/sajou-go/ingest/found"
	"github.com/sajou-dev/sajou-go/ingest/source"
	"github.com/sajou-dev/sajou-go/session/price"
)

const (
	aider = "# aider chat started at 2024-08-05 17:12:22\n\n> Model: m  \n\n#### Make it faster  \n\nI did.\n\n> Tokens: 2k sent, 1k received.  \n> Applied edit to a.py  \n"
	mini  = `[{"role":"user","content":"Solve it."},{"role":"assistant","content":"<returncode>"}]`
)

// write writes a file whose age is a number of days.
func write(t *testing.T, name, text string, age int) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	at := time.Date(2026, 1, 30-age, 0, 0, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(name, at, at))
	return name
}

func none(string) string { return "" }

// told returns each recording as "TOOL PATH", relative to a folder.
func told(t *testing.T, home string, list []found.Found) []string {
	t.Helper()
	var lines []string
	for _, f := range list {
		rel, err := filepath.Rel(home, f.Path)
		require.NoError(t, err)
		lines = append(lines, f.Tool+" "+filepath.ToSlash(rel))
	}
	return lines
}

func Example() {
	home, err := os.UserHomeDir()
	if err != nil {
		fmt.Println(err)
		return
	}
	list, _, err := found.List(context.Background(), found.Places(filepath.Join(home, "an-empty-folder"), ".", none)[:5])
	fmt.Println(len(list), err)
	// Output: 0 <nil>
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	work := filepath.Join(home, "work")
	for i, name := range []string{
		".claude/projects/-w-a/s1.jsonl", ".codex/sessions/2026/01/02/rollout-x.jsonl", ".gemini/tmp/h/chats/session-1.json",
		".copilot/session-state/u/events.jsonl", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/ui_messages.json",
		".openhands/conversations/c/base_state.json", "work/.aider.chat.history.md", ".config/mini-swe-agent/last_mini_run.traj.json",
		"Library/Application Support/Cursor/User/globalStorage/rooveterinaryinc.roo-cline/tasks/2/ui_messages.json",
	} {
		write(t, filepath.Join(home, name), "x", i)
	}
	// None of these is a recording of its own.
	for _, name := range []string{".claude/projects/-w-a/agent-1.jsonl", ".claude/settings.json", ".claude/projects/-w-a/s1/subagents/agent-2.jsonl", ".codex/history.jsonl"} {
		write(t, filepath.Join(home, name), "x", 0)
	}
	require.NoError(t, os.Symlink(filepath.Join(home, ".codex/history.jsonl"), filepath.Join(home, ".claude/projects/-w-a/link.jsonl")))
	list, remarks, err := found.List(t.Context(), found.Places(home, work, none))
	require.NoError(t, err)
	assert.Empty(t, remarks)
	assert.Equal(t, []string{
		"Claude Code .claude/projects/-w-a/s1.jsonl", "Codex .codex/sessions/2026/01/02/rollout-x.jsonl", "Gemini CLI .gemini/tmp/h/chats/session-1.json",
		"Copilot CLI .copilot/session-state/u/events.jsonl", "Cline .config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/ui_messages.json",
		"OpenHands .openhands/conversations/c", "aider work/.aider.chat.history.md", "mini-swe-agent .config/mini-swe-agent/last_mini_run.traj.json",
		"Roo Code Library/Application Support/Cursor/User/globalStorage/rooveterinaryinc.roo-cline/tasks/2/ui_messages.json",
	}, told(t, home, list))
	assert.Equal(t, int64(1), list[0].Size)

	// Variables move the places.
	other := t.TempDir()
	moved := map[string]string{
		"CLAUDE_CONFIG_DIR": filepath.Join(other, "c"), "CODEX_HOME": filepath.Join(other, "x"),
		"AIDER_CHAT_HISTORY_FILE": filepath.Join(other, "history.md"), "MSWEA_GLOBAL_CONFIG_DIR": filepath.Join(other, "m"),
	}
	for i, name := range []string{"c/projects/p/s.jsonl", "x/archived_sessions/rollout-1.jsonl", "history.md", "m/a.traj.json"} {
		write(t, filepath.Join(other, name), "x", i)
	}
	list, _, err = found.List(t.Context(), found.Places(other, work, func(name string) string { return moved[name] }))
	require.NoError(t, err)
	assert.Equal(t, []string{"Claude Code c/projects/p/s.jsonl", "Codex x/archived_sessions/rollout-1.jsonl", "aider history.md", "mini-swe-agent m/a.traj.json"}, told(t, other, list))

	ended, end := context.WithCancel(t.Context())
	end()
	_, _, err = found.List(ended, found.Places(home, work, none))
	require.ErrorIs(t, err, context.Canceled)
}

// Folders that a user names may hold recordings of any format.
func TestBelow(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "a/history.md"), aider, 2)
	write(t, filepath.Join(home, "b/run.traj.json"), mini, 1)
	write(t, filepath.Join(home, "b/notes.txt"), "nothing", 0)
	folder := filepath.Join(home, "conv")
	write(t, filepath.Join(folder, "events/event-00000-a.json"), `{"kind":"PauseEvent"}`, 3)
	list, remarks, err := found.Below(t.Context(), []string{home, folder, filepath.Join(home, "absent")}, source.Config{})
	require.NoError(t, err)
	assert.Equal(t, []string{"mini-swe-agent trajectory b/run.traj.json", "aider chat history a/history.md", "OpenHands events conv"}, told(t, home, list))
	require.Len(t, remarks, 1)
	assert.Contains(t, remarks[0], "absent was not looked at")
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	list, diagnostics := price.Compile("p.json", []byte(`{"currency":"USD","models":{"m":{"input":10,"output":50}}}`))
	require.Empty(t, diagnostics)
	path := write(t, filepath.Join(dir, "history.md"), aider, 0)
	a, err := found.Read(t.Context(), path, list)
	require.NoError(t, err)
	assert.Equal(t, "aider", a.Format)
	assert.Equal(t, "Make it faster", a.Prompt)
	assert.Equal(t, []int{1, 1, 0}, []int{a.Summary.Prompts, a.Summary.ToolCalls, a.Summary.Failures})
	assert.True(t, a.Costed)
	assert.InDelta(t, 0.07, a.Cost, 1e-9)
	assert.Positive(t, a.Length)

	a, err = found.Read(t.Context(), path, nil)
	require.NoError(t, err)
	assert.False(t, a.Costed)
	other, _ := price.Compile("p.json", []byte(`{"models":{"n":{"input":1,"output":1}}}`))
	a, err = found.Read(t.Context(), path, other)
	require.NoError(t, err)
	assert.Equal(t, []string{"m"}, a.Unpriced)
	// The cost that the recording has is the one.
	path = write(t, path, strings.Replace(aider, "received.", "received. Cost: $0.5 message, $1 session.", 1), 0)
	a, err = found.Read(t.Context(), path, list)
	require.NoError(t, err)
	assert.InDelta(t, 0.5, a.Cost, 1e-9)

	_, err = found.Read(t.Context(), write(t, filepath.Join(dir, "x.txt"), "nothing", 0), nil)
	require.ErrorIs(t, err, source.ErrUnrecognized)
	_, err = found.Read(t.Context(), filepath.Join(dir, "absent"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}
