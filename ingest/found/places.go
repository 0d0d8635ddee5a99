// Package found finds the recordings that agents keep on this machine.
//
// It lists the files of known places by their names and times of modification, newest
// first ([List]), and reads a recording to tell what is in it ([Read]). It opens files to
// read them, and only below the places; it writes nothing and uses no network.
//
// docs/glossary.md has the nouns of all packages.
package found

import (
	"path/filepath"
	"strings"
)

// Folder is a place where a tool keeps recordings.
type Folder struct {
	Tool string // for people: "Claude Code"
	Dir  string

	// Pattern matches the main files of recordings below Dir, with slashes; see [path.Match].
	Pattern string

	// Not matches the base names of files that are no recordings of their own.
	Not string

	// Up is the number of folders from a main file up to the recording: 1 if the
	// recording is the folder in which it lies.
	Up int
}

// Places returns the places that are known, whether they exist or not. Home is the folder of
// the user, and work the one in which tools that keep their recordings with a project are
// looked for. Getenv is [os.Getenv] or the like; these variables move a place:
//
//	CLAUDE_CONFIG_DIR        instead of ~/.claude
//	CODEX_HOME               instead of ~/.codex
//	COPILOT_HOME             instead of ~/.copilot
//	AIDER_CHAT_HISTORY_FILE  instead of .aider.chat.history.md
//	MSWEA_GLOBAL_CONFIG_DIR  instead of ~/.config/mini-swe-agent
func Places(home, work string, getenv func(string) string) []Folder {
	var list []Folder
	add := func(tool, dir, pattern string) *Folder {
		list = append(list, Folder{Tool: tool, Dir: dir, Pattern: pattern})
		return &list[len(list)-1]
	}
	in := func(variable, dir string) string {
		if named := getenv(variable); named != "" {
			return named
		}
		return filepath.Join(home, dir)
	}
	// A subagent of older versions has a file beside those of the sessions.
	add("Claude Code", in("CLAUDE_CONFIG_DIR", ".claude"), "projects/*/*.jsonl").Not = "agent-*.jsonl"
	codex := in("CODEX_HOME", ".codex")
	add("Codex", codex, "sessions/*/*/*/rollout-*.jsonl")
	add("Codex", codex, "archived_sessions/rollout-*.jsonl")
	gemini := filepath.Join(home, ".gemini")
	add("Gemini CLI", gemini, "tmp/*/chats/session-*.json")
	add("Gemini CLI", gemini, "tmp/*/chats/session-*.jsonl")
	copilot := in("COPILOT_HOME", ".copilot")
	add("Copilot CLI", copilot, "session-state/*/events.jsonl")
	add("Copilot CLI", copilot, "session-state/*.jsonl")
	add("Cline", filepath.Join(home, ".cline"), "data/sessions/*/*.messages.json")
	add("Cline", filepath.Join(home, ".cline"), "tasks/*/ui_messages.json")
	for _, editors := range []string{".config", "Library/Application Support", "AppData/Roaming"} {
		for _, editor := range []string{"Code", "Code - Insiders", "VSCodium", "Cursor"} {
			dir := filepath.Join(home, filepath.FromSlash(editors), editor, "User", "globalStorage")
			add("Cline", dir, "saoudrizwan.claude-dev/tasks/*/ui_messages.json")
			add("Roo Code", dir, "rooveterinaryinc.roo-cline/tasks/*/ui_messages.json")
		}
	}
	add("OpenHands", filepath.Join(home, ".openhands"), "conversations/*/base_state.json").Up = 1
	history := filepath.Join(work, ".aider.chat.history.md")
	if named := getenv("AIDER_CHAT_HISTORY_FILE"); filepath.IsAbs(named) {
		history = named
	} else if named != "" {
		history = filepath.Join(work, named)
	}
	add("aider", filepath.Dir(history), escape(filepath.Base(history)))
	dir := filepath.Join(home, ".config", "mini-swe-agent")
	if named := getenv("MSWEA_GLOBAL_CONFIG_DIR"); named != "" {
		dir = named
	}
	add("mini-swe-agent", dir, "*.traj.json")
	return list
}

// escape returns the pattern that matches one name.
func escape(name string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(name)
}
