package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/workspace"
)

// A program asks for the text of a file.
func Example() {
	state := workspace.Projection().New().(*workspace.State)
	for i, line := range []string{
		`{"id":"1","type":"tool_call","timestamp":1,"source":"import:example","payload":{"toolName":"Write","agentId":"claude","callId":"c","input":{"file_path":"/w/main.go","content":"package main\n"}}}`,
		`{"id":"2","type":"tool_result","timestamp":2,"source":"import:example","payload":{"toolName":"Write","agentId":"claude","callId":"c","success":true}}`,
	} {
		sig, err := signal.Parse([]byte(line))
		if err != nil {
			panic(err)
		}
		state.Apply(&eventlog.Entry{Seq: eventlog.Seq(i + 1), Kind: eventlog.KindSignal, Data: sig.Append(nil)})
	}
	file, err := state.File("main.go")
	if err != nil {
		panic(err)
	}
	for line := range file.Lines() {
		fmt.Println(line.Number, line.Text, line.Certainty, "by entry", line.By)
	}
	// Output:
	// 1 package main known by entry 1
}

// Beyond the limit the oldest texts are forgotten, and the files say so.
func TestLimit(t *testing.T) {
	s := newSession(t)
	s.state = workspace.NewState(40_000)
	text := quote(strings.Repeat("0123456789abcde\n", 100))
	for i := range 40 {
		s.call("Write", fmt.Sprintf(`{"file_path":"/f%02d","content":%s}`, i, text))
		s.result(true, "")
		counted, again := s.state.Held()
		require.Equal(t, again, counted)
		require.LessOrEqual(t, counted, 40_000)
	}
	oldest, err := s.state.File("/f10")
	require.NoError(t, err)
	assert.True(t, oldest.Forgotten())
	assert.False(t, oldest.Complete())
	newest, err := s.state.File("/f39")
	require.NoError(t, err)
	assert.False(t, newest.Forgotten())
	assert.True(t, newest.Complete())
	s.call("Write", `{"file_path":"/f10","content":"x\n"}`)
	s.result(true, "")
	assert.False(t, oldest.Forgotten(), "a write makes it known again")
}

// Calls without results are bounded too; what they may have changed becomes a guess.
func TestPendingIsBounded(t *testing.T) {
	s := newSession(t)
	s.call("Write", `{"file_path":"/f","content":"x\n"}`)
	s.result(true, "")
	for range 5000 {
		s.call("Write", `{"file_path":"/f","content":"y\n"}`)
	}
	assert.LessOrEqual(t, s.state.PendingCalls(), 4096)
	f, err := s.state.File("/f")
	require.NoError(t, err)
	assert.Equal(t, workspace.Guessed, f.Certainty())
	_, sure := f.Exists()
	assert.False(t, sure)
}

// A call that the recording has twice takes effect once, a result without a call has
// none, and calls without ids are paired in their order.
func TestPairing(t *testing.T) {
	s := newSession(t)
	payload := `{"toolName":"str_replace_editor","agentId":"a","callId":"x","input":{"command":"insert","path":"/f","insert_line":0,"new_str":"one"}}`
	s.record("tool_call", payload)
	s.record("tool_call", payload)
	result := `{"toolName":"str_replace_editor","agentId":"a","callId":"x","success":true}`
	s.record("tool_result", result)
	s.record("tool_result", result)
	f, err := s.state.File("/f")
	require.NoError(t, err)
	assert.Equal(t, "one\n"+workspace.Gap, f.Text())
	for _, text := range []string{"1", "2"} {
		s.record("tool_call", fmt.Sprintf(`{"toolName":"Write","agentId":"a","input":{"file_path":"/g%s","content":"%s"}}`, text, text))
	}
	s.record("tool_result", `{"toolName":"Write","agentId":"a","success":true}`)
	g, err := s.state.File("/g1")
	require.NoError(t, err)
	assert.Equal(t, "1", g.Text())
	g, err = s.state.File("/g2")
	require.NoError(t, err)
	exists, sure := g.Exists()
	assert.Equal(t, []any{true, false, []eventlog.Seq{6}}, []any{exists, sure, g.Pending()})
}

func TestLookup(t *testing.T) {
	s := newSession(t)
	for _, p := range []string{"/a/x.go", "/b/x.go", "/b/y.go", "rel/z.go"} {
		s.call("Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, p))
		s.result(true, "")
	}
	_, err := s.state.File("x.go")
	assert.ErrorIs(t, err, workspace.ErrAmbiguous)
	assert.ErrorContains(t, err, "/a/x.go, /b/x.go")
	_, err = s.state.File("")
	assert.ErrorIs(t, err, workspace.ErrNoFile)
	for path, want := range map[string]string{"b/x.go": "/b/x.go", "y.go": "/b/y.go", "z.go": "rel/z.go", "/b/./y.go": "/b/y.go"} {
		f, err := s.state.File(path)
		require.NoError(t, err, path)
		assert.Equal(t, want, f.Path())
	}
	s.call("delete_file", `{"path":"/a/x.go"}`)
	s.result(true, "")
	f, err := s.state.File("x.go")
	require.NoError(t, err, "a file that exists is meant")
	assert.Equal(t, "/b/x.go", f.Path())
	assert.True(t, workspace.Inside("/a", "/a/x") && workspace.Inside("/a", "x") && workspace.Inside("/", "/x"))
	assert.False(t, workspace.Inside("/a", "/ab") || workspace.Inside("/a", "../x") || workspace.Inside("/a", "~/x"))
}

// The views of a state and of its files have the members that expressions read.
func TestMembers(t *testing.T) {
	s := newSession(t)
	s.call("Write", `{"file_path":"/a","content":"x\ny"}`)
	s.result(true, "")
	s.call("Write", `{"file_path":"/b","content":"x\ny"}`)
	assert.Equal(t, []string{"/a", "/b"}, s.state.Names())
	assert.Equal(t, 2, s.state.Len())
	assert.Equal(t, map[string]any{
		"by": int64(1), "certainty": "known", "complete": true, "exists": true, "forgotten": false, "lines": int64(2), "pending": []any{},
		"spans": []any{map[string]any{"from": int64(1), "lines": int64(2), "certainty": "known", "by": int64(1)}},
		"sure":  true, "text": "x\ny", "touched": int64(2),
	}, s.state.View().(map[string]any)["/a"])
	b, ok := s.state.Member("/b")
	require.True(t, ok)
	f := b.(*workspace.TrackedFile)
	assert.Equal(t, f.Len(), len(f.Names()))
	lines, _ := f.Member("lines")
	assert.Nil(t, lines)
	pending, _ := f.Member("pending")
	assert.Equal(t, []any{int64(3)}, pending)
	_, ok = f.Member("nothing")
	assert.False(t, ok)
}

// The difference of two texts, applied by the program patch, makes one of the other.
func TestUnified(t *testing.T) {
	patch, err := exec.LookPath("patch")
	rapid.Check(t, func(rt *rapid.T) {
		text := func(label string) string {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "", "{", "}"}), 0, 14).Draw(rt, label)
			out := strings.Join(lines, "\n")
			if rapid.Bool().Draw(rt, label+" ended") && out != "" {
				out += "\n"
			}
			return out
		}
		from, to := text("from"), text("to")
		diff := workspace.Unified("a", from, "b", to)
		if (diff == "") != (from == to) {
			rt.Fatalf("%q to %q: %q", from, to, diff)
		}
		if got := applyUnified(from, diff); got != to {
			rt.Fatalf("%q and\n%sgive %q, not %q", from, diff, got, to)
		}
	})
	if err != nil {
		return // the model above is enough
	}
	name := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(name, []byte("a\nb\nc"), 0o600))
	cmd := exec.CommandContext(t.Context(), patch, name)
	cmd.Stdin = strings.NewReader(workspace.Unified("a", "a\nb\nc", "b", "a\nB\nc\nd\n"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "a\nB\nc\nd\n", string(got))
}

// applyUnified applies a difference by its numbers. It is the model of [TestUnified].
func applyUnified(from, diff string) string {
	old := strings.SplitAfter(from, "\n")
	var out strings.Builder
	at := 0
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i := 2; i < len(lines); i++ {
		line := lines[i]
		text := line[min(1, len(line)):] + "\n"
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], `\`) {
			text = strings.TrimSuffix(text, "\n")
		}
		switch {
		case strings.HasPrefix(line, "@@"):
			var start, size int
			if n, _ := fmt.Sscanf(line, "@@ -%d,%d", &start, &size); n == 1 {
				size = 1
			}
			if size > 0 {
				start--
			}
			for ; at < start; at++ {
				out.WriteString(old[at])
			}
		case line[0] == '+':
			out.WriteString(text)
		case line[0] == '-' || line[0] == ' ':
			if old[at] != text {
				return fmt.Sprintf("line %d is not %q", at+1, text)
			}
			if line[0] == ' ' {
				out.WriteString(text)
			}
			at++
		}
	}
	return out.String() + strings.Join(old[at:], "")
}

// Continued lines are equal, and their indexes increase.
func TestMatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 0, 10)
		a, b := lines.Draw(rt, "a"), lines.Draw(rt, "b")
		last := -1
		for j, i := range workspace.Match(a, b) {
			if i < 0 {
				continue
			}
			if i <= last || a[i] != b[j] {
				rt.Fatalf("%v and %v: %v", a, b, workspace.Match(a, b))
			}
			last = i
		}
		if slices.Equal(a, b) && last != len(a)-1 {
			rt.Fatalf("equal texts are not matched: %v", a)
		}
	})
}

// Untrusted bytes are refused or give a state of the same bytes.
func FuzzRestore(f *testing.F) {
	state := workspace.NewState(1 << 20)
	f.Add(state.Append(nil))
	for i, line := range []string{
		`{"toolName":"Write","agentId":"a","callId":"1","input":{"file_path":"/f","content":"a\nb"}}`,
		`{"toolName":"Edit","agentId":"a","callId":"2","input":{"file_path":"/g","old_string":"a","new_string":"b"}}`,
		`{"toolName":"Bash","agentId":"a","callId":"3","input":{"command":"rm /f"}}`,
	} {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"c%d","type":"tool_call","timestamp":1,"source":"s","payload":%s,"metadata":{"cwd":"/r"}}`, i, line))
		require.NoError(f, err)
		state.Apply(&eventlog.Entry{Seq: eventlog.Seq(2*i + 1), Kind: eventlog.KindSignal, Data: sig.Append(nil)})
		f.Add(state.Append(nil))
		sig, err = signal.Parse(fmt.Appendf(nil, `{"id":"r%d","type":"tool_result","timestamp":1,"source":"s","payload":{"toolName":"x","agentId":"a","callId":"%d","success":true}}`, i, i+1))
		require.NoError(f, err)
		state.Apply(&eventlog.Entry{Seq: eventlog.Seq(2*i + 2), Kind: eventlog.KindSignal, Data: sig.Append(nil)})
		f.Add(state.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := workspace.Restore(data)
		if err != nil {
			return
		}
		if got := s.Append(nil); string(got) != string(data) {
			t.Fatalf("restored %x, which appends %x", data, got)
		}
		s.View()
	})
}

// No text in the formats of tools makes a fold panic.
func FuzzFormats(f *testing.F) {
	for _, text := range []string{
		"*** Begin Patch\n*** Update File: a\n@@ x\n a\n-b\n+c\n*** End of File\n*** Add File: b\n+x\n*** Delete File: c\n*** Move to: d\n*** End Patch",
		"--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n",
		"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+d\n",
		"<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n------- SEARCH\n=======\n+++++++ REPLACE",
		"     1→a\n     2→b\n\nrest",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { workspace.ParseFormats(text) })
}

// Arbitrary inputs and outputs of every tool are folded without a panic, and what comes
// of them is restored from its bytes.
func FuzzTools(f *testing.F) {
	tools := []string{"Write", "Edit", "MultiEdit", "Read", "Bash", "apply_patch", "str_replace_editor", "replace_in_file", "edit", "create", "NotebookEdit", "read_files", "move_file", "editor"}
	f.Add(uint8(0), `{"file_path":"/f","content":"a"}`, `{}`)
	f.Add(uint8(1), `{"file_path":"/f","old_string":"a","new_string":"b","replace_all":true}`, `{"originalFile":"a","structuredPatch":[{"oldStart":1,"lines":[" a"]}]}`)
	f.Add(uint8(3), `{"file_path":"/f"}`, `{"file":{"content":"a","startLine":3,"totalLines":2}}`)
	f.Add(uint8(4), `{"command":"mv /f /g; cat > /f <<A\nx\nA"}`, `{"stdout":"x"}`)
	f.Add(uint8(6), `{"command":"insert","path":"/f","insert_line":1000000000,"new_str":"a"}`, `{"value":"cat -n`+"`"+` on a snippet of x\n 1\ta"}`)
	f.Add(uint8(8), `{"action":"edit 1:2\nx\nend_of_edit"}`, `{"value":"[File: /f (3 lines total)]\n1:x"}`)
	f.Fuzz(func(t *testing.T, tool uint8, input, output string) {
		s := workspace.NewState(1 << 16)
		for seq := eventlog.Seq(1); seq <= 4; seq++ {
			kind, payload := "tool_call", fmt.Sprintf(`"input":%s`, input)
			if seq%2 == 0 {
				kind, payload = "tool_result", fmt.Sprintf(`"success":true,"output":%s`, output)
			}
			sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"s","type":%q,"timestamp":1,"source":"s","payload":{"toolName":%q,"agentId":"a","callId":"c",%s}}`, kind, tools[int(tool)%len(tools)], payload))
			if err != nil {
				return
			}
			s.Apply(&eventlog.Entry{Seq: seq, Kind: eventlog.KindSignal, Data: sig.Append(nil)})
		}
		s.View()
		data := s.Append(nil)
		if restored, err := workspace.Restore(data); err != nil || string(restored.Append(nil)) != string(data) {
			t.Fatalf("%v: not restored: %x", err, data)
		}
	})
}
