package spans_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/ingest/flatspans"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

// drawn is a span of a drawn recording.
type drawn struct {
	id, parent string
	kind       string
	start, end int
	tokens     int
}

func (d drawn) line() string {
	attributes := map[string]any{}
	if d.kind != "" {
		attributes["gen_ai.operation.name"] = d.kind
	}
	if d.tokens > 0 {
		attributes["gen_ai.usage.input_tokens"] = d.tokens
	}
	const second = 1_000_000_000
	text, _ := json.Marshal(map[string]any{
		"trace_id": "t", "span_id": d.id, "parent_span_id": d.parent, "name": d.id, "attributes": attributes,
		"start_time": int64(1_700_000_000+d.start) * second, "end_time": int64(1_700_000_000+d.end) * second,
	})
	return string(text) + "\n"
}

// Whatever the spans and their order: the order of the lines does not matter, tokens
// count once, every tool is called and answered once, and calls stand within the
// agents above them.
func TestAnySpans(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(t, "n")
		list := make([]drawn, n)
		for i := range list {
			d := drawn{id: fmt.Sprintf("s%02d", i)}
			// Any parent: itself, none, lost, or in a cycle.
			if p := rapid.IntRange(-2, n).Draw(t, "parent"); p >= 0 {
				d.parent = fmt.Sprintf("s%02d", p)
			}
			d.kind = rapid.SampledFrom([]string{"", "", "invoke_agent", "execute_tool", "chat"}).Draw(t, "kind")
			d.start = rapid.IntRange(0, 6).Draw(t, "start")
			d.end = rapid.IntRange(0, 6).Draw(t, "end")
			if rapid.Bool().Draw(t, "has tokens") {
				d.tokens = 1 + i
			}
			list[i] = d
		}
		tell := func(list []drawn) (string, map[string]int) {
			var text strings.Builder
			for _, d := range list {
				text.WriteString(d.line())
			}
			signals, balance, err := recordingtest.TryRead(outer, flatspans.Format(), recordingtest.File("f", []byte(text.String())), "f", recording.Options{Final: true})
			require.NoError(t, err)
			require.Zero(t, balance.Held)
			require.Zero(t, balance.Kept)
			var b strings.Builder
			got := map[string]int{}
			open := map[string]bool{}
			for _, s := range signals {
				if s.Type == recording.TypeRemark || s.Type == recording.TypeEnd || s.Type == recording.TypeRecording {
					continue // they count what the order of the lines has
				}
				id := s.Metadata.Member("native").TextOf("id")
				fmt.Fprintf(&b, "%s %v %s %s\n", id, recordingtest.Milliseconds(s), s.Type, s.Payload.AppendJSON(nil))
				got[s.Type]++
				switch s.Type {
				case "task_dispatch":
					open[id] = true
				case "completion":
					require.True(t, open[id])
					delete(open, id)
				case "token_usage":
					got["tokens"] += int(s.Payload.IntOf("promptTokens"))
				case "tool_call", "tool_result":
					require.True(t, *s.CorrelationID == "t" || open[*s.CorrelationID], "%s stands outside of its agent", id)
				}
			}
			require.Empty(t, open)
			return b.String(), got
		}
		told, got := tell(list)
		want := map[string]int{}
		children := map[string][]drawn{}
		for _, d := range list {
			switch d.kind {
			case "invoke_agent":
				want["task"]++
			case "execute_tool":
				want["tool"]++
			}
			children[d.parent] = append(children[d.parent], d)
		}
		require.Equal(t, want["task"], got["task_dispatch"])
		require.Equal(t, want["task"], got["completion"])
		require.Equal(t, want["tool"], got["tool_call"])
		require.Equal(t, want["tool"], got["tool_result"])
		if !cyclic(list) {
			for _, d := range list {
				if d.tokens > 0 && !below(children, d.id) {
					want["tokens"] += d.tokens
				}
			}
			require.Equal(t, want["tokens"], got["tokens"])
		}
		slices.Reverse(list)
		again, _ := tell(list)
		require.Equal(t, told, again)
	})
}

func cyclic(list []drawn) bool {
	parent := map[string]string{}
	for _, d := range list {
		parent[d.id] = d.parent
	}
	for _, d := range list {
		at := d.parent
		for range len(list) + 1 {
			at = parent[at]
		}
		if at != "" {
			return true
		}
	}
	return false
}

// below reports whether a descendant has tokens.
func below(children map[string][]drawn, id string) bool {
	return slices.ContainsFunc(children[id], func(d drawn) bool { return d.tokens > 0 || below(children, d.id) })
}
