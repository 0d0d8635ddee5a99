package textsearch_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/session/textsearch"
	"github.com/sajou-dev/sajou-go/signal"
)

func signalEntry(t require.TestingT, line string) *eventlog.Entry {
	s, err := signal.ParseLenient([]byte(line))
	require.NoError(t, err)
	return &eventlog.Entry{Seq: 1, Kind: eventlog.KindSignal, Data: s.Append(nil)}
}

func literal(t require.TestingT, text string, ignoreCase bool) *textsearch.Query {
	q, err := textsearch.Literal(text, ignoreCase)
	require.NoError(t, err)
	return q
}

func TestEntry(t *testing.T) {
	call := signalEntry(t, `{"id":"ab","type":"tool_call","timestamp":1,"source":"ab","metadata":{"x":"ab"},"payload":{"toolName":"w","agentId":"smith","input":{"ab/c":["1","two\r\nxab\nab ab"],"n":7}}}`)
	assert.Equal(t, []textsearch.MatchedLine{
		{Type: "tool_call", Agent: "smith", Pointer: "/payload/input/ab~1c", Key: true, Line: 1, Text: "ab/c", From: 0, To: 2},
		{Type: "tool_call", Agent: "smith", Pointer: "/payload/input/ab~1c/1", Line: 2, Text: "xab", From: 1, To: 3},
		{Type: "tool_call", Agent: "smith", Pointer: "/payload/input/ab~1c/1", Line: 3, Text: "ab ab", From: 0, To: 2},
	}, slices.Collect(literal(t, "ab", false).Entry(call)))
	assert.Len(t, slices.Collect(literal(t, "XAB", true).Entry(call)), 1)
	assert.Empty(t, slices.Collect(literal(t, "XAB", false).Entry(call)))
	q, err := textsearch.Expression("^ab .b$", false)
	require.NoError(t, err)
	assert.Len(t, slices.Collect(q.Entry(call)), 1)

	irregular := signalEntry(t, `{"id":7,"note":"hello"}`)
	assert.Equal(t, []textsearch.MatchedLine{{Pointer: "/note", Line: 1, Text: "hello", From: 1, To: 3}}, slices.Collect(literal(t, "el", false).Entry(irregular)))

	message := &eventlog.Entry{Kind: eventlog.KindBeat, Data: session.AppendWord(nil, session.WordMessage, signal.NewObject(2).Text("role", "user").Text("text", "hello").Value())}
	assert.Equal(t, []textsearch.MatchedLine{{Type: "message", Pointer: "/text", Line: 1, Text: "hello", From: 0, To: 5}}, slices.Collect(literal(t, "hello", false).Entry(message)))

	assert.Empty(t, slices.Collect(literal(t, "a", false).Entry(&eventlog.Entry{Kind: eventlog.KindSignal, Data: []byte("aaa")})), "no signal")
	for range literal(t, "ab", false).Entry(call) {
		break // a caller may stop
	}
}

func TestQueryIsRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{{"", "is empty"}, {"a\nb", "has a line end"}} {
		_, err := textsearch.Literal(c.text, false)
		assert.ErrorContains(t, err, c.want)
	}
	for _, c := range []struct{ expr, want string }{{"(", "RE2 syntax"}, {"a*", "matches the empty text"}} {
		_, err := textsearch.Expression(c.expr, true)
		assert.ErrorContains(t, err, c.want)
	}
}

// As many lines are found as a search of the values that encoding/json reads finds.
func TestAsMany(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "ab", "b a", "Ab", "\n", "a\nab", "", "x\r\ny"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch n := rapid.IntRange(0, 3).Draw(t, "form"); {
			case n == 0 || depth == 0:
				return word.Draw(t, "text")
			case n == 1:
				return 7
			case n == 2:
				return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list")
			default:
				return rapid.MapOfN(word, value(depth-1), 0, 3).Draw(t, "object")
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.MapOfN(word, value(3), 0, 3).Draw(t, "payload")
		line, err := json.Marshal(map[string]any{"id": "ab", "type": "x", "timestamp": 1, "source": "ab", "payload": payload})
		require.NoError(t, err)
		fold := rapid.Bool().Draw(t, "ignore case")
		want := 0
		var count func(v any)
		text := func(s string) {
			for line := range strings.SplitSeq(s, "\n") {
				if strings.Contains(line, "ab") || fold && strings.Contains(strings.ToLower(line), "ab") {
					want++
				}
			}
		}
		count = func(v any) {
			switch v := v.(type) {
			case string:
				text(v)
			case []any:
				for _, e := range v {
					count(e)
				}
			case map[string]any:
				for name, m := range v {
					text(name)
					count(m)
				}
			}
		}
		count(payload)
		hits := slices.Collect(literal(t, "ab", fold).Entry(signalEntry(t, string(line))))
		require.Len(t, hits, want)
		for _, hit := range hits {
			require.Equal(t, "ab", strings.ToLower(hit.Text[hit.From:hit.To]))
		}
	})
}

func Example() {
	sig, err := signal.Parse([]byte(`{"id":"1","type":"text_delta","timestamp":0,"source":"s","payload":{"agentId":"claude","content":"The login\nis fixed."}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	query, err := textsearch.Literal("FIXED", true)
	if err != nil {
		fmt.Println(err)
		return
	}
	entry := &eventlog.Entry{Seq: 4, Kind: eventlog.KindSignal, Data: sig.Append(nil)}
	for hit := range query.Entry(entry) {
		fmt.Println(hit.Agent, hit.Pointer, hit.Line, hit.Text)
	}
	// Output: claude /payload/content 2 is fixed.
}
