package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/signal"
)

// hostile is a text that clears a terminal, changes its title and its colors, reverses
// what follows, and hides.
const hostile = "\x1b[2J\x1b]0;owned\x07\x9b31m\u009b31m\u0090q\u009c\x7f\u202eabc\u2066\u200b\ufeff\x08\r\tend"

// hostileText is hostile as valid UTF-8.
var hostileText = strings.ToValidUTF8(hostile, "")

// hostileSession returns signals of all types with the hostile text in every string.
func hostileSession(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	n := 0
	add := func(typ string, payload map[string]any, more map[string]any) {
		n++
		s := map[string]any{
			"id": hostileText, "type": typ, "timestamp": n, "source": hostileText, "correlationId": hostileText,
			"metadata": map[string]any{hostileText: hostileText, "sessionId": hostileText, "redactions": map[string]any{hostileText: 1}}, "payload": payload,
		}
		for name, v := range more {
			s[name] = v
		}
		line, err := json.Marshal(s)
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	add("import.recording", map[string]any{"format": hostileText, "session": hostileText, "timeSource": hostileText}, nil)
	add("import.remark", map[string]any{"kind": hostileText, "message": hostileText}, nil)
	for _, typ := range signal.WellKnownTypes() {
		payload := map[string]any{}
		fields, _ := signal.PayloadFields(typ)
		for _, f := range fields {
			switch {
			case f.Enum != nil:
				payload[f.Name] = f.Enum[0]
			case f.Kind == signal.FieldString:
				payload[f.Name] = hostileText
			case f.Kind == signal.FieldBool:
				payload[f.Name] = false
			case f.Kind == signal.FieldObject && f.Fields == nil:
				payload[f.Name] = map[string]any{hostileText: hostileText, "list": []any{hostileText}}
			case f.Kind == signal.FieldObject:
				inner := map[string]any{}
				for _, f := range f.Fields {
					inner[f.Name] = 1
				}
				payload[f.Name] = inner
			default:
				payload[f.Name] = 1
			}
		}
		add(typ, payload, nil)
	}
	add("task_dispatch", map[string]any{"taskId": "t", "from": "user", "to": hostileText, "description": hostileText}, nil)
	for i, path := range []string{"/p/main.go", "/p/" + hostileText} {
		id := string(rune('a' + i))
		add("tool_call", map[string]any{"toolName": "Write", "agentId": hostileText, "callId": id, "input": map[string]any{"file_path": path, "content": hostileText + "\n" + hostileText}}, nil)
		add("tool_result", map[string]any{"toolName": "Write", "agentId": hostileText, "callId": id, "success": true, "output": map[string]any{}}, nil)
	}
	add(hostileText, map[string]any{hostileText: []any{hostileText}}, nil)
	add("error", map[string]any{"message": "m", "severity": hostileText}, nil)    // breaks the schema
	add("x", map[string]any{}, map[string]any{hostileText: hostileText, "id": 7}) // irregular
	return lines.String()
}

// No command prints anything that a terminal acts on, whatever was recorded and whatever
// a file has: every command is in the list, with every string of its store planted.
func TestEscapesAreNeutralised(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	quoted, err := json.Marshal(hostileText)
	require.NoError(t, err)
	inside := string(quoted[1 : len(quoted)-1])
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	store, played := filepath.Join(dir, "store"), filepath.Join(dir, "played")
	session := file("session.jsonl", hostileSession(t))
	scenario := file("scenario.json", strings.NewReplacer("something important!", inside, "the guide", inside, "A answers at length", inside, "nothing but a beach", inside).
		Replace(read("../../internal/simulate/examples/conversation.json")))
	wrong := file("wrong.json", strings.ReplaceAll(read("demo/choreographies.json"), `"move"`, string(quoted)))
	broken := file("broken.json", `{"`+hostileText)
	choreographies := file("choreographies.json", read("demo/choreographies.json"))
	episode := file("episode.json", strings.ReplaceAll(read("../../director/script/interview.json"), `"description": "`, `"description": "`+inside))
	rehearsal := file("rehearsal.json", `{"id": `+string(quoted)+`, "name": `+string(quoted)+`, "script": [{"signal": {"type": `+string(quoted)+`, "payload": {}}}, {"advance": 100}], "definitions": [], "expected": [{"action": `+string(quoted)+`}]}`)
	transcripts := file(".claude/projects/p/a.jsonl", `{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-01-01T00:00:00Z","cwd":`+string(quoted)+`,"message":{"role":"user","content":`+string(quoted)+`}}`+"\n")
	policy := file("policy.json", `{"policy":"everything"}`)

	check := func(args []string, r result) {
		for where, text := range map[string]string{"stdout": r.stdout, "stderr": r.stderr} {
			hidden, yes := shows(strings.ReplaceAll(text, "\t", " ")) // the text of a file has tabs
			assert.Falsef(t, yes, "%q prints %U to %s: %.300q", args, hidden, where, text)
			assert.Truef(t, utf8.ValidString(text), "%q prints bytes that are not UTF-8 to %s", args, where)
		}
	}
	ran := map[string]bool{}
	command := func(store, stdin string, args ...string) result {
		cmd, _, err := rootCommand(&cli.App{}).Find(args)
		require.NoError(t, err)
		for ; cmd != nil; cmd = cmd.Parent() {
			ran[cmd.CommandPath()] = true
		}
		r := sajouReplay(t.Context(), t, strings.NewReader(stdin), append([]string{"-C", store}, args...)...)
		check(args, r)
		return r
	}
	both := func(args ...string) {
		for _, format := range []string{"text", "json", "jsonl"} {
			command(store, "", append(slices.Clone(args), "-o", format)...)
		}
	}

	require.Zero(t, command(store, "", "import", session, "-s", "planted", "--lenient").code)
	require.Zero(t, command(store, "", "sim", scenario, "-s", "conversation").code&^1)
	lines := make([]string, len(interviewLines))
	for i, line := range interviewLines {
		if lines[i] = line; i%3 == 1 {
			lines[i] += hostileText
		}
	}
	lines[len(lines)-1] += "\n"
	command(played, strings.Join(lines, "\n"), "-s", "friday", "episode", "play", "--new", "--manual-time")

	command(filepath.Join(dir, "demo"), "", "demo")
	command(store, "", "import", session, "-s", hostileText)
	command(store, "", "import", broken, "-s", "broken")
	command(store, "", "import", transcripts, "-s", "claude", "--final", "--keep-native")
	command(store, "", "import", transcripts, "--dry-run")
	command(store, "", "define", "add", wrong, "-s", "planted")
	command(store, "", "define", "add", choreographies, "-s", "planted")
	for _, name := range []string{"planted", "claude"} {
		both("info", name)
		both("risks", name)
		both("cat", name)
		both("cat", name, "--type", hostileText)
		both("tail", name)
		both("show", name, "3")
		both("show", name, "end")
		both("state", name, "end")
		both("state", name, "end", "stage/"+hostileText)
		both("diff", name, "1", "end")
		both("diff", name, "1", "end", "--all")
		both("state", name, "end", "workspace")
		for _, path := range []string{"main.go", hostileText} {
			both("state", name, "end", "workspace/"+path)
			both("diff", name, "1", "end", "workspace/"+path)
			both("blame", name, "end", path)
		}
		both("blame", name, "stage.entities."+hostileText)
		both("blame", name, "stage.entities", "--all")
		both("why", name, "end")
		both("order", name, "--within", "1h", "--limit", "2", "--all")
		both("why", name, "end", "stage.entities."+hostileText, "--minimize")
		command(store, "", "why", name, "end", "--dot")
		command(store, "", "why", name, "end", "--svg")
		command(store, "", "extract-test", name, "end", "stage.entities."+hostileText, "-O", "-")
		both("scan", name, "--where", "true")
		both("scan", name, "--where", "entry.type", "--changes")
		both("scan", name, "--where", "entry."+hostileText)
		both("bisect", name, "--where", "at > 5.0")
		both("bisect", name, "--over", "defs", filepath.Dir(wrong), "--changed", "picture")
		both("bisect", name, "--over", "defs", "--repo", hostileText, "--changed", "picture")
		for _, args := range [][]string{
			{"start", name, "--where", "at > 5.0"}, {"run"}, {"bad"}, {"good"}, {"skip"}, {"undo"}, {"next"}, {"status"}, {"explain"}, {"terms"}, {"log"}, {"ask"}, {"visualize", "-O", filepath.Join(dir, "left.svg")}, {"reset"}, {"replay", broken},
		} {
			command(store, "", append([]string{"bisect", "-s", name}, args...)...)
		}
		both("check", name, "end", "--where", "at > 5.0")
		both("play", name, "--rate", "0", "--fps", "0")
		command(store, "", "play", name, "--stage", "-o", "text", "--rate", "0", "--fps", "1")
		both("grep", "end", name)
		both("grep", "-e", ".", name)
		both("grep", hostileText, name)
		for _, format := range []string{"text", "md", "html", hostileText} {
			command(store, "", "transcript", name, "--format", format)
		}
		command(store, "", "export", name)
		command(store, "", "export", name, "--all")
		command(store, "", "export", name, "--format", hostileText)
		for _, format := range []string{"perfetto", "asciicast", "html"} {
			command(store, "", "export", name, "--format", format)
		}
		both("report", "--time", name)
		command(store, "", "render", name, "end", "-O", "-")
		command(store, "", "render", name, "end", "-O", filepath.Join(dir, "x.svg"))
		for _, sub := range []string{"build", "ls", "verify", "digests", "drop"} {
			both("snapshot", sub, name)
		}
		both("define", "ls", name)
		both("define", "show", name, "2")
		both("verify", name)
		command(store, "", "mark", "add", "a", "3", "--note", hostileText, "-s", name)
		both("mark", "add", hostileText, "3", "-s", name)
		both("mark", "add", "a", "4", "--force", "--note", hostileText, "-s", name)
		both("mark", "ls", name)
		both("show", name, "@"+hostileText)
		both("show", name, "corr:"+hostileText)
		both("mark", "rm", hostileText, "-s", name)
	}
	both("check", "--corpus", dir)
	both("mark", "ls", "--all")
	both("mark", "rm", "a", "-s", "planted")
	both("mark", "import", broken)
	both("diff", "--rec", "planted", "claude")
	both("diff", "--rec", "planted", "claude", "--all")
	both("diff", "--defs", "-", choreographies, "planted", "--all")
	both("diff", "--defs", wrong, broken, "planted")
	both("diff", "--defs", "-", policy, "conversation", "--all")
	command(store, "", "fork", "planted", "3", "--drop", "3", "--out", hostileText+"-fork")
	both("fork", "planted", "3", "--set", hostileText, "--out", "other")
	both("info", hostileText+"-fork")
	both("ls")
	both("formats")
	both("find", "--dir", dir)
	both("info", hostileText)
	both("verify", "--all")
	both("lint", wrong)
	both("lint", broken)
	both("rehearse", rehearsal)
	for _, args := range [][]string{
		{"knows", "A", "conversation"},
		{"first-known", "A", "/visible_entities/B/last_message", "conversation"},
		{"leak", "A", "--value", hostileText, "conversation"},
		{"leak", "C", "--value", "end", "conversation"},
		{"why-cancelled", "A", "story", "conversation"},
		{"why-cancelled", "A", hostileText, "conversation"},
		{"why-rejected", hostileText, "story", "conversation"},
		{"policy-diff", "conversation", "--policy", policy},
	} {
		both(args...)
	}
	both("beats", "-C", played, "--verdicts")
	both("beats", "-C", played, "--timeline")
	both("report", "-C", played)
	both("cat", "-C", played)
	both("transcript", "-C", played)
	both("grep", "end", "-C", played)
	both("episode", "lint", episode)
	both("episode", "lint", broken)
	both("episode", "graph", episode)
	both("episode", "simulate", episode)
	command(store, "", "episode", "migrate", file("old.json", strings.ReplaceAll(read("../../director/script/interview-before.json"), `"description": "`, `"description": "`+inside)))
	command(played, "", "-s", "friday", "episode", "rerun", episode)
	both("schema", "signal")
	both("version")
	both("serve", "--listen", hostileText)
	command(store, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_entries","arguments":{"session":"planted"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"state","arguments":{"session":`+string(quoted)+`}}}
`, "mcp")
	command(store, "", "token", "create", hostileText, "--scope", "read")
	command(store, "", "token", "create", "tap", "--scope", hostileText)
	command(store, "", "token", "create", "tap", "--scope", "act", "--agent", hostileText, "--on", hostileText)
	command(store, "", "token", "create", "tap", "--scope", "read", "--tokens", filepath.Join(dir, hostileText, hostileText))
	command(store, "", "token", "create", "tap\u202e", "--scope", "read")
	command(store, "", "token", "create", "tap", "--scope", "read", "--on", "plain")
	both("token", "ls")
	both("token", "ls", "--tokens", broken)
	both("token", "revoke", hostileText)
	both("hook", hostileText)
	both("hooks")
	both("hooks", "install", "--file", file("settings.json", `{"a": "`+inside+`"}`), "--program", hostileText, "--dry-run")
	both("hooks", "remove", "--file", broken)
	both("hooks", "status", "--file", file("installed.json", `{"hooks": {"Stop": [{"hooks": [{"command": "`+inside+`", "statusMessage": "sajou-hook"}]}]}}`))
	both("record", hostileText)
	both("config")
	both("config", "check", "--host", hostileText)
	both("config", "check", "--config", broken)
	command(store, "", "man", filepath.Join(dir, "man"))
	both("backup", filepath.Join(dir, "backup", hostileText))
	command(store, "", "backup", filepath.Join(dir, "copy"))
	command(filepath.Join(dir, "restored"), "", "restore", filepath.Join(dir, "copy"))
	command(store, "", "repair", "--to", filepath.Join(dir, "repaired"))
	both("prune", "--older-than", "1h", "--dry-run")
	both("delete", "claude")
	both("ls", "--deleted")

	for _, cmd := range documented() {
		assert.Truef(t, ran[cmd.CommandPath()] || !cmd.Runnable(), "%s is not tried with planted texts: add it", cmd.CommandPath())
	}
}
