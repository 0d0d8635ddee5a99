package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/workspace"
)

// session folds tool calls one by one. After each entry the state must be that of its
// own canonical bytes.
type session struct {
	t     *testing.T
	state *workspace.State
	seq   eventlog.Seq
	dir   string
	open  string // the id of the newest call
	tool  string
}

func newSession(t *testing.T) *session {
	return &session{t: t, state: workspace.Projection().New().(*workspace.State)}
}

func (s *session) record(kind, payload string) {
	s.t.Helper()
	s.seq++
	metadata := ""
	if s.dir != "" {
		metadata = fmt.Sprintf(`,"metadata":{"cwd":%q}`, s.dir)
	}
	sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"s%d","type":%q,"timestamp":%d,"source":"import:test","payload":%s%s}`, s.seq, kind, s.seq, payload, metadata))
	require.NoError(s.t, err, "of %s", payload)
	s.state.Apply(&eventlog.Entry{Seq: s.seq, Kind: eventlog.KindSignal, Data: sig.Append(nil)})
	if s.seq > 100 {
		return // the long tests compare the bytes themselves
	}
	restored, err := workspace.Projection().Restore(s.state.Append(nil))
	require.NoError(s.t, err)
	require.Equal(s.t, s.state.View(), restored.View())
}

func (s *session) call(tool, input string) {
	s.t.Helper()
	s.open, s.tool = fmt.Sprintf("c%d", s.seq+1), tool
	s.record("tool_call", fmt.Sprintf(`{"toolName":%q,"agentId":"a","callId":%q,"input":%s}`, tool, s.open, input))
}

func (s *session) result(success bool, output string) {
	s.t.Helper()
	if output == "" {
		output = "{}"
	}
	s.record("tool_result", fmt.Sprintf(`{"toolName":%q,"agentId":"a","callId":%q,"success":%v,"output":%s}`, s.tool, s.open, success, output))
}

// shown writes a file: its certainty, then its lines with number, writer and, unless
// they are known, certainty.
func shown(f *workspace.TrackedFile) string {
	var b strings.Builder
	exists, sure := f.Exists()
	state := "exists"
	if !exists {
		state = "deleted"
	}
	if !sure {
		state += ", unsure"
	}
	fmt.Fprintf(&b, "\t%s: %s, %v, by %d", f.Path(), state, f.Certainty(), f.By())
	if n, ok := f.CountLines(); ok {
		fmt.Fprintf(&b, ", %d lines", n)
	}
	if p := f.Pending(); len(p) > 0 {
		fmt.Fprintf(&b, ", pending %v", p)
	}
	b.WriteString("\n")
	for l := range f.Lines() {
		number := "?"
		if l.Number > 0 {
			number = fmt.Sprint(l.Number)
		}
		switch {
		case l.Certainty == workspace.Unknown && l.Lines < 0:
			fmt.Fprintf(&b, "\t%4s  --  …\n", number)
		case l.Certainty == workspace.Unknown:
			fmt.Fprintf(&b, "\t%4s  --  … %d lines\n", number, l.Lines)
		default:
			mark := ""
			if l.Certainty == workspace.Guessed {
				mark = "~"
			}
			if l.Partial {
				mark += "…"
			}
			fmt.Fprintf(&b, "\t%4s %3d %2s| %s\n", number, l.By, mark, l.Text)
		}
	}
	if text := f.Text(); text != "" && !strings.HasSuffix(text, "\n") && f.Complete() {
		b.WriteString("\tno line end\n")
	}
	return b.String()
}

// TestStories plays the scripts in testdata/stories. Lines of a script are
//
//	in DIR             metadata.cwd from here on
//	call TOOL INPUT    a tool_call
//	ok [OUTPUT]        its result
//	failed [OUTPUT]
//	show PATH          the file, as far as it is known
//	files              the paths
//
// and a line that begins with a tab continues the one before, after a line end within
// its JSON text.
func TestStories(t *testing.T) {
	golden.Tell(t, "testdata/stories/*.txtar", func(t *testing.T, files map[string]string) string {
		s := newSession(t)
		var told strings.Builder
		for line := range strings.SplitSeq(strings.TrimSpace(files["script"]), "\n") {
			verb, rest, _ := strings.Cut(line, " ")
			if verb == "call" || verb == "ok" || verb == "failed" {
				fmt.Fprintf(&told, "%d %s\n", s.seq+1, line)
			} else {
				told.WriteString(line + "\n")
			}
			switch verb {
			case "in":
				s.dir = rest
			case "call":
				tool, input, _ := strings.Cut(rest, " ")
				s.call(tool, input)
			case "ok":
				s.result(true, rest)
			case "failed":
				s.result(false, rest)
			case "show":
				f, err := s.state.File(rest)
				if err != nil {
					told.WriteString("\t" + err.Error() + "\n")
					continue
				}
				told.WriteString(shown(f))
			case "files":
				told.WriteString("\t" + strings.Join(s.state.Paths(), "\n\t") + "\n")
			case "", "#":
			default:
				t.Fatalf("no step %q", verb)
			}
		}
		return told.String()
	})
}
