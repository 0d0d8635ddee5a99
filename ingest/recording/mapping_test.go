package recording_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// toy is a format of lines such as {"t":SECONDS,"do":"prompt","n":1}. The usage of a message
// ("use") stands in all of its lines, and the last one counts.
var toy = recording.Format{
	Name: "toy", Title: "Toy", Agent: "toy", Grows: true,
	Map: func(in *recording.Recorded, m *recording.Mapping) error {
		var held *recording.SavedRecord
		var tokens int64
		release := func() {
			if held != nil {
				m.Within(*held, func() { m.Tokens("c", "toy", recording.TokenCount{Prompt: tokens}) })
			}
			held = nil
		}
		for rec, err := range in.Lines(in.Name) {
			if err != nil {
				return err
			}
			v := rec.Value
			m.SetTime(recording.TimeValue(v.Member("t"), time.Second))
			m.SetNativeID(v.TextOf("id"))
			if v.TextOf("do") != "use" {
				release()
			}
			switch v.TextOf("do") {
			case "prompt":
				m.Dispatch("c", "c", recording.User, "toy", v.TextOf("text"))
			case "call":
				m.Call("c", "toy", "grep", v.TextOf("call"), v.Member("input"))
			case "result":
				m.Result("", recording.Answer{CallID: v.TextOf("call"), Success: true, Output: v.Member("output")})
			case "use":
				if tokens = v.IntOf("tokens"); held != nil {
					m.Release(1) // its line before this one
				}
				m.Hold()
				mark := m.Save()
				held = &mark
			case "noise":
				m.Skip("noise")
			}
		}
		if in.Final() {
			release()
		}
		return nil
	},
}

func read(t require.TestingT, text string, o recording.Options) ([]string, recording.Balance, error) {
	r := toy.Open(fstest.MapFS{"f": {Data: []byte(text)}}, "f", o)
	got := []string{}
	last := -1.0
	for item, err := range r.Items() {
		if err != nil {
			return got, r.Balance(), err
		}
		require.Empty(t, item.Signal.Problem)
		line := string(item.Signal.AppendJSON(nil))
		v, err := signal.ParseValue([]byte(line))
		require.NoError(t, err)
		ms, _ := v.Member("timestamp").Float64()
		require.GreaterOrEqual(t, ms, last)
		last = ms
		got = append(got, line)
	}
	return got, r.Balance(), nil
}

// told is a short form of signals: their time in seconds, type, and marks.
func told(t require.TestingT, lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		v, err := signal.ParseValue([]byte(line))
		require.NoError(t, err)
		ms, _ := v.Member("timestamp").Float64()
		fmt.Fprintf(&b, "%g %s", ms/1000, v.TextOf("type"))
		if skew, ok := v.Member("metadata").Member("skewMs").Float64(); ok {
			fmt.Fprintf(&b, " moved %g", skew/1000)
		}
		if v.Member("metadata").BoolOf("clockAhead") {
			b.WriteString(" ahead")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestStory(t *testing.T) {
	got, balance, err := read(t, `{"t":10,"do":"prompt","text":"find it"}
{"t":11,"do":"call","call":"k","input":"{\"a\":1}"}

{"t":12,"do":"result","call":"k","output":["x"]}
{"t":13,"do":"noise"}
{"t":13,"do":"use","tokens":1}
{"t":14,"do":"use","tokens":5}
{"t":15,"do":"later","type":"odd kind"}
`, recording.Options{Final: true})
	require.NoError(t, err)
	assert.Equal(t, `10 import.recording
10 task_dispatch
10 agent_state_change
11 tool_call
11 agent_state_change
12 tool_result
12 agent_state_change
15 token_usage
15 toy.odd_kind
15 agent_state_change
15 import.end
`, told(t, got))
	assert.Contains(t, got[3], `"input":{"a":1}`)
	assert.Contains(t, got[5], `"output":{"value":["x"]}`)
	assert.Contains(t, got[7], `"promptTokens":5`)
	assert.Contains(t, got[7], `"line":7`, "the usage is of its own record")
	assert.Equal(t, 7, balance.Records)
	assert.Equal(t, map[string]int{"noise": 1}, balance.Skipped)
	assert.Equal(t, [4]int{5, 1, 0, 0}, [4]int{balance.Mapped, balance.Kept, balance.Held, balance.Unreadable})
}

func TestTimes(t *testing.T) {
	const century = 100 * 365 * 24 * 3600
	line := func(s int64) string { return fmt.Sprintf("{\"t\":%d,\"do\":\"prompt\"}\n", s) }
	tests := []struct {
		name  string
		text  string
		final bool
		want  string // without the first signal and the changes of state
	}{
		{"earlier than one before", line(100) + line(90) + line(101), false, "100 task_dispatch\n100 task_dispatch moved 10\n101 task_dispatch\n"},
		{"one far ahead", line(100) + line(century) + line(101), false, "100 task_dispatch\n100 task_dispatch ahead\n101 task_dispatch\n"},
		{"the first far ahead", line(century) + line(100) + line(101), false, "100 task_dispatch ahead\n100 task_dispatch\n101 task_dispatch\n"},
		{"the session goes on on Monday", line(100) + line(250000) + line(250001), true, "100 task_dispatch\n250000 task_dispatch\n250001 task_dispatch\n"},
		{"a jump that may still be wrong waits", line(100) + line(250000) + line(250001), false, "100 task_dispatch\n"},
		{"the end of the look ahead", line(100) + strings.Repeat(line(250000), 65), false, "100 task_dispatch\n" + strings.Repeat("250000 task_dispatch\n", 65)},
		{"one before the end of the look ahead", line(100) + strings.Repeat(line(250000), 64), false, "100 task_dispatch\n"},
		{"no time before the first", `{"do":"prompt"}` + "\n" + line(100) + line(101), false, "100 task_dispatch\n100 task_dispatch\n101 task_dispatch\n"},
		{"a single record waits", line(100), false, ""},
		{"no times", `{"do":"prompt"}` + "\n" + `{"do":"prompt"}`, true, "0 task_dispatch\n0 task_dispatch\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, balance, err := read(t, tt.text, recording.Options{Final: tt.final})
			require.NoError(t, err)
			var b strings.Builder
			for line := range strings.Lines(told(t, got)) {
				if strings.Contains(line, "task_dispatch") {
					b.WriteString(line)
				}
			}
			assert.Equal(t, tt.want, b.String())
			assert.Equal(t, balance.Records, balance.Mapped)
			assert.Equal(t, strings.Count(tt.want, "ahead"), balance.Ahead)
			assert.Equal(t, strings.Count(tt.want, "moved"), balance.Clamped)
			assert.Equal(t, balance.Records-strings.Count(tt.want, "task_dispatch"), balance.Waiting)
		})
	}
}

// Whatever the lines, the signals of a prefix are a prefix of the signals of the whole. The jump
// of the very first record is the stated exception: it is decided as soon as another
// record has a time.
func TestPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := int64(1_000_000)
		var lines []string
		for i := range rapid.IntRange(1, 90).Draw(t, "n") {
			do := rapid.SampledFrom([]string{"prompt", "call", "result", "use", "noise", "odd"}).Draw(t, "do")
			at := now
			switch rapid.IntRange(0, 20).Draw(t, "time") {
			case 0:
				if i > 0 {
					at += 1e9
				}
			case 1:
				at -= 50
			case 2:
				if i > 0 {
					now += 100_000
					at = now
				}
			default:
				now += 3
			}
			text := fmt.Sprintf(`{"t":%d,"do":%q,"call":"k%d","tokens":%d}`, at, do, i%3, i)
			if i > 0 && rapid.IntRange(0, 40).Draw(t, "untimed") == 0 {
				text = fmt.Sprintf(`{"do":%q}`, do)
			}
			lines = append(lines, text+"\n")
		}
		whole, balance, err := read(t, strings.Join(lines, ""), recording.Options{})
		require.NoError(t, err)
		require.Equal(t, balance.Records, balance.Mapped+balance.Kept+balance.Total()+balance.Held+balance.Unreadable)
		final, _, err := read(t, strings.Join(lines, ""), recording.Options{Final: true})
		require.NoError(t, err)
		require.Equal(t, whole, final[:len(whole)])
		for range 3 {
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "prefix")
			got, _, err := read(t, strings.Join(lines[:i], ""), recording.Options{})
			require.NoError(t, err)
			require.LessOrEqual(t, len(got), len(whole))
			require.Equal(t, told(t, whole[:len(got)]), told(t, got), "after %d lines", i)
			require.Equal(t, whole[:len(got)], got)
			torn, _, err := read(t, strings.Join(lines[:i], "")+lines[i][:len(lines[i])/2], recording.Options{})
			require.NoError(t, err)
			require.Equal(t, got, torn, "after %d lines and a half", i)
		}
	})
}

func TestBadRecords(t *testing.T) {
	good := strings.Repeat(`{"t":1,"do":"prompt"}`+"\n", 50)
	got, balance, err := read(t, "not JSON\n"+good+"{\"t\":2,\"do\":\"\xff\",\"do\":\"prompt\"}\n", recording.Options{Final: true})
	require.NoError(t, err)
	assert.Contains(t, got[1], `"type":"toy.unreadable"`)
	assert.Contains(t, got[1], `"text":"not JSON"`)
	assert.Equal(t, 1, balance.Unreadable)
	assert.Equal(t, 1, balance.Repaired)
	assert.Equal(t, 51, balance.Mapped)

	_, balance, err = read(t, good+strings.Repeat("x\n", 4), recording.Options{})
	require.ErrorIs(t, err, recording.ErrUnreadable)
	assert.Equal(t, 4, balance.Unreadable)
	_, _, err = read(t, good+strings.Repeat("x\n", 4), recording.Options{MaxBad: 0.5})
	require.NoError(t, err)
	_, _, err = read(t, good+"x\n", recording.Options{MaxBad: -1})
	require.ErrorIs(t, err, recording.ErrUnreadable)

	_, balance, err = read(t, good+`{"t":2,"do":"pro`, recording.Options{})
	require.NoError(t, err)
	assert.Equal(t, 1, balance.Held, "the last line is still being written")
}

func TestLongLines(t *testing.T) {
	long := `{"t":2,"do":"prompt","text":"` + strings.Repeat("a", recording.MaxLine) + "\"}\n"
	got, balance, err := read(t, `{"t":1,"do":"prompt"}`+"\n"+long+`{"t":3,"do":"prompt"}`+"\n", recording.Options{})
	require.NoError(t, err)
	assert.Equal(t, 1, balance.Unreadable)
	assert.Contains(t, strings.Join(got, "\n"), fmt.Sprintf(`"bytes":%d`, len(long)))

	for _, text := range []string{
		`{"t":2,"do":"prompt","text":"` + strings.Repeat("ä", 3<<20) + `"}`,
		`{"t":2,"do":"odd","list":[` + strings.TrimSuffix(strings.Repeat(`{"a":1},`, 1<<20), ",") + `]}`,
		`{"t":2,"do":"call","input":{"list":[` + strings.TrimSuffix(strings.Repeat(`"ab",`, 1<<20), ",") + `]}}`,
	} {
		got, balance, err = read(t, text+"\n", recording.Options{Final: true, KeepNative: true})
		require.NoError(t, err)
		assert.Equal(t, 1, balance.Cut)
		for _, line := range got {
			sig, err := signal.Parse([]byte(line))
			require.NoError(t, err)
			assert.Less(t, len(sig.Append(nil)), 1<<20)
		}
	}
}

func TestStops(t *testing.T) {
	r := toy.Open(fstest.MapFS{"f": {Data: []byte(strings.Repeat(`{"t":1,"do":"prompt"}`+"\n", 100))}}, "f", recording.Options{Final: true})
	n := 0
	for _, err := range r.Items() {
		require.NoError(t, err)
		if n++; n == 3 {
			break
		}
	}
	assert.Equal(t, 3, n)

	missing := toy.Open(fstest.MapFS{}, "f", recording.Options{Final: true})
	for _, err := range missing.Items() {
		assert.ErrorIs(t, err, fs.ErrNotExist)
	}
}

func FuzzMapping(f *testing.F) {
	f.Add([]byte(`{"t":10,"do":"prompt","text":"find it"}` + "\n" + `{"t":11,"do":"call","call":"k"}`))
	f.Add([]byte("\xef\xbb\xbf{\"t\":1e300}\n[1]\nnull\n\"x\"\n{\"t\":9223372036854775807,\"do\":\"use\",\"tokens\":-1}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, balance, err := read(t, string(text), recording.Options{MaxBad: 1})
		require.NoError(t, err)
		require.Equal(t, balance.Records, balance.Mapped+balance.Kept+balance.Total()+balance.Held+balance.Unreadable)
	})
}
