package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session/transcript"
	"github.com/sajou-dev/sajou-go/signal"
)

var update = flag.Bool("update", false, "write the golden files")

func write(t require.TestingT, lines string, layout transcript.Layout, o transcript.Options) string {
	var out bytes.Buffer
	tr := transcript.New(&out, layout, o)
	seq := eventlog.Seq(1)
	for line := range strings.Lines(lines) {
		s, err := signal.ParseLenient([]byte(line))
		require.NoError(t, err, line)
		ms, _ := s.Timestamp.Int64()
		require.NoError(t, tr.Add(seq, time.Duration(ms)*time.Millisecond, s))
		seq++
	}
	require.NoError(t, tr.End())
	return out.String()
}

// A session with a subagent, a failure, pieces of text, and texts that try to break out of
// every layout.
func TestLayouts(t *testing.T) {
	lines, err := os.ReadFile(filepath.Join("testdata", "session.jsonl"))
	require.NoError(t, err)
	for _, layout := range []transcript.Layout{transcript.Text, transcript.Markdown, transcript.HTML} {
		got := write(t, string(lines), layout, transcript.Options{Title: "a <night>", Lines: 3})
		name := filepath.Join("testdata", "session."+string(layout))
		if *update {
			require.NoError(t, os.WriteFile(name, []byte(got), 0o600))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, string(want), got)
		assert.NotContains(t, got, "\x1b")
		if layout == transcript.HTML {
			assert.NotContains(t, got, "<script")
			assert.NotContains(t, got, "<night>")
		}
	}
}

// The note stands below the title, and cannot become a part of the document's form.
func TestNote(t *testing.T) {
	for layout, want := range map[transcript.Layout]string{
		transcript.Text: "night\na fork of `<b>`\n", transcript.Markdown: "# `night`\n\n`` a fork of `<b>` ``\n",
		transcript.HTML: "<h1>night</h1>\n<p>a fork of `&lt;b&gt;`</p>\n",
	} {
		assert.Contains(t, write(t, "", layout, transcript.Options{Title: "night", Note: "a fork of `<b>`"}), want)
	}
}

func TestUnknownLayout(t *testing.T) {
	tr := transcript.New(&bytes.Buffer{}, "pdf", transcript.Options{})
	require.ErrorContains(t, tr.Add(1, 0, &signal.Signal{Type: "error"}), `no layout "pdf"`)
	require.Error(t, tr.End())
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterFails(t *testing.T) {
	for _, layout := range []transcript.Layout{transcript.Text, transcript.Markdown, transcript.HTML} {
		require.ErrorIs(t, transcript.New(broken{}, layout, transcript.Options{}).End(), errBroken)
	}
}

// open matches the beginning of a fence as the layout writes it.
var open = regexp.MustCompile("^(`{3,})text$")

// In Markdown every recorded line stands in a fence or a span, whatever it has.
func TestMarkdownFencesHold(t *testing.T) {
	part := rapid.SampledFrom([]string{"`", "```", "````", "~~~", "\n", "> ", "# ", "</details>", "<script>", " ", "    ", "\t", "text", "- ", "|", "\r", "\\", "[x](y)"})
	said := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, line := range rapid.SliceOfN(rapid.SliceOfN(part, 0, 6), 1, 5).Draw(t, "lines") {
			b.WriteString(strings.Join(line, "") + "ZQ" + strings.Join(rapid.SliceOfN(part, 0, 3).Draw(t, "rest"), ""))
		}
		return b.String()
	})
	rapid.Check(t, func(t *rapid.T) {
		var lines strings.Builder
		signalOf := func(typ string, payload map[string]any) {
			line, err := json.Marshal(map[string]any{"id": "1", "type": typ, "timestamp": 0, "source": "s", "payload": payload})
			require.NoError(t, err)
			lines.Write(append(line, '\n'))
		}
		signalOf("task_dispatch", map[string]any{"taskId": "t", "from": "a", "to": said.Draw(t, "agent"), "description": said.Draw(t, "description")})
		signalOf("thinking", map[string]any{"agentId": "a", "content": said.Draw(t, "thought")})
		signalOf("text_delta", map[string]any{"agentId": said.Draw(t, "writer"), "content": said.Draw(t, "content")})
		signalOf("tool_call", map[string]any{"agentId": "a", "toolName": said.Draw(t, "tool"), "input": map[string]any{said.Draw(t, "name"): said.Draw(t, "value"), "n": 1}})
		var inside string
		for line := range strings.Lines(write(t, lines.String(), transcript.Markdown, transcript.Options{Title: said.Draw(t, "title")})) {
			line = strings.TrimSuffix(line, "\n")
			for strings.HasPrefix(line, "> ") && inside == "" {
				line = line[2:]
			}
			line = strings.TrimPrefix(line, "> ")
			m := open.FindStringSubmatch(line)
			switch trimmed := strings.TrimLeft(line, " "); {
			case inside == "" && m != nil:
				inside = m[1]
			case inside == "":
				for _, outside := range outsideSpans(line) {
					require.NotContains(t, outside, "ZQ", "%q", line)
					require.NotContains(t, outside, "<script", "%q", line)
				}
			case len(line)-len(trimmed) < 4 && strings.HasPrefix(trimmed, inside) && strings.Trim(trimmed, "` ") == "":
				inside = ""
			}
		}
		require.Empty(t, inside, "the last fence is closed")
	})
}

// outsideSpans returns the parts of a line of Markdown outside of its spans of code.
func outsideSpans(line string) (parts []string) {
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			return append(parts, line)
		}
		n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
		rest := line[i+n:]
		end := -1
		for k := 0; k < len(rest); {
			if rest[k] != '`' {
				k++
				continue
			}
			run := len(rest[k:]) - len(strings.TrimLeft(rest[k:], "`"))
			if run == n {
				end = k
				break
			}
			k += run
		}
		parts = append(parts, line[:i])
		if end < 0 {
			return append(parts, rest)
		}
		line = rest[end+n:]
	}
}

// No text that a signal has acts on a terminal or on a browser.
func FuzzTranscript(f *testing.F) {
	f.Add(`{"id":"1","type":"error","timestamp":0,"source":"s","payload":{"message":"\u001b[31m<script>` + "```" + `","severity":"error"}}`)
	f.Add(`{"type":"tool_call","payload":{"input":{"a":[1,"\u202e"]},"toolName":"<b>"}}`)
	f.Add(`{"type":"task_dispatch","payload":{"from":"user","to":"\u009b"}}`)
	f.Fuzz(func(t *testing.T, line string) {
		s, err := signal.ParseLenient([]byte(line))
		if err != nil {
			return
		}
		for _, layout := range []transcript.Layout{transcript.Text, transcript.Markdown, transcript.HTML} {
			var out bytes.Buffer
			tr := transcript.New(&out, layout, transcript.Options{Title: line})
			require.NoError(t, tr.Add(1, 0, s))
			require.NoError(t, tr.End())
			require.NotContains(t, out.String(), "\x1b")
			require.NotContains(t, out.String(), "\u202e")
			if layout == transcript.HTML {
				require.NotContains(t, out.String(), "<script")
			}
		}
	})
}

func Example() {
	t := transcript.New(os.Stdout, transcript.Text, transcript.Options{Title: "night"})
	sig, err := signal.Parse([]byte(`{"id":"1","type":"task_dispatch","timestamp":0,"source":"s","payload":{"taskId":"t","from":"user","to":"claude","description":"fix the login"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := errors.Join(t.Add(4, 1500*time.Millisecond, sig), t.End()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// night
	//
	// 00:01.500  user → claude  (entry 4)
	//     fix the login
}
