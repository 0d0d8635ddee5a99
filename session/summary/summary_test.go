package summary_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/session/summary"
	"github.com/sajou-dev/sajou-go/signal"
)

// count folds lines of signals; each takes effect at its timestamp.
func count(t require.TestingT, lines string) *summary.Summary {
	c := summary.NewCounter()
	for line := range strings.Lines(lines) {
		s, err := signal.ParseLenient([]byte(line))
		require.NoError(t, err, line)
		ms, _ := s.Timestamp.Value().Float64()
		c.Add(time.Duration(ms*float64(time.Millisecond)), s)
	}
	return c.Summary()
}

const recorded = `{"id":"0","type":"import.recording","timestamp":0,"source":"import:x","payload":{"format":"codex","session":"s-1","timeSource":"synthetic","cwd":"/p"}}
{"id":"1","type":"task_dispatch","timestamp":0,"source":"import:x","payload":{"taskId":"t","from":"user","to":"main","description":"go"}}
{"id":"2","type":"thinking","timestamp":1000,"source":"import:x","metadata":{"redactions":{"email":2}},"payload":{"agentId":"main","content":"hm"}}
{"id":"3","type":"tool_call","timestamp":2000,"source":"import:x","payload":{"toolName":"Task","agentId":"main","callId":"c1"}}
{"id":"4","type":"task_dispatch","timestamp":2000,"source":"import:x","payload":{"taskId":"u","from":"main","to":"sub"}}
{"id":"5","type":"tool_call","timestamp":3000,"source":"import:x","payload":{"toolName":"grep","agentId":"sub","callId":"c2"}}
{"id":"6","type":"tool_result","timestamp":3250.5,"source":"import:x","metadata":{"native":{"id":"n6"},"skewMs":12.5},"payload":{"toolName":"grep","agentId":"sub","callId":"c2","success":false}}
{"id":"7","type":"tool_result","timestamp":5000,"source":"import:x","metadata":{"removed":{"parts":1,"bytes":40}},"payload":{"toolName":"Task","agentId":"main","callId":"c1","success":true,"output":{"length":40}}}
{"id":"8","type":"token_usage","timestamp":5000,"source":"import:x","metadata":{"cacheReadTokens":90,"reasoningTokens":3},"payload":{"agentId":"main","promptTokens":100,"completionTokens":7,"model":"m-1","cost":0.5}}
{"id":"9","type":"token_usage","timestamp":5000,"source":"import:x","payload":{"agentId":"sub","promptTokens":10,"completionTokens":1,"model":"m-1"}}
{"id":"10","type":"text_delta","timestamp":6000,"source":"import:x","payload":{"agentId":"main","content":"done"}}
{"id":"11","type":"error","timestamp":6000,"source":"import:x","payload":{"message":"m","severity":"warning"}}
{"id":"12","type":"error","timestamp":6000,"source":"import:x","payload":{"message":"m","severity":"error","agentId":"main"}}
{"id":"13","type":"completion","timestamp":7000,"source":"import:x","payload":{"taskId":"t","success":false,"agentId":"main"}}
{"id":"14","type":"agent_state_change","timestamp":7000,"source":"import:x","payload":{"agentId":"main","from":"acting","to":"done"}}
{"id":"15","type":"codex.compact","timestamp":7000,"source":"import:x","metadata":{"native":{"id":"n15"},"clockAhead":true},"payload":{}}
{"id":"16","type":"codex.unreadable","timestamp":7000,"source":"import:x","metadata":{"cutBytes":5},"payload":{"line":3}}
{"id":"17","type":"tool_call","timestamp":7000,"source":"import:x","payload":{"toolName":"ls","agentId":"main","callId":"c3"}}
{"id":"18","type":"import.remark","timestamp":7000,"source":"import:x","payload":{"kind":"torn","message":"the last line"}}
{"id":"19","type":"import.end","timestamp":7000,"source":"import:x","payload":{"records":9}}`

func TestSummary(t *testing.T) {
	text, err := json.MarshalIndent(count(t, recorded), "", " ")
	require.NoError(t, err)
	var got, want any
	require.NoError(t, json.Unmarshal(text, &got))
	require.NoError(t, json.Unmarshal([]byte(`{
 "origin": {"format": "codex", "session": "s-1", "time_source": "synthetic", "options": {"format":"codex","session":"s-1","timeSource":"synthetic","cwd":"/p"}},
 "signals": 20, "prompts": 1, "tasks": 1, "texts": 1, "thoughts": 1, "tool_calls": 3, "tool_results": 2, "failures": 1, "unanswered": 1,
 "errors": 1, "warnings": 1, "completions": 1, "failed": 1, "state_changes": 1, "messages": 2,
 "tokens": {"prompt": 110, "completion": 8, "cache_read": 90, "cache_write": 0, "reasoning": 3, "cost": 0.5},
 "agents": [
  {"id": "main", "tasks": 1, "texts": 1, "thoughts": 1, "tool_calls": 2, "failures": 0, "errors": 1, "messages": 1, "tokens": {"prompt": 100, "completion": 7, "cache_read": 90, "cache_write": 0, "reasoning": 3, "cost": 0.5}},
  {"id": "sub", "parent": "main", "tasks": 1, "texts": 0, "thoughts": 0, "tool_calls": 1, "failures": 1, "errors": 0, "messages": 1, "tokens": {"prompt": 10, "completion": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0, "cost": 0}}],
 "tools": [
  {"name": "Task", "calls": 1, "results": 1, "failures": 0, "timed": 1, "total_ms": 3000, "max_ms": 3000},
  {"name": "grep", "calls": 1, "results": 1, "failures": 1, "timed": 1, "total_ms": 250.5, "max_ms": 250.5},
  {"name": "ls", "calls": 1, "results": 0, "failures": 0, "timed": 0, "total_ms": 0, "max_ms": 0}],
 "models": [{"name": "m-1", "messages": 2, "tokens": {"prompt": 110, "completion": 8, "cache_read": 90, "cache_write": 0, "reasoning": 3, "cost": 0.5}}],
 "first_ms": 0, "last_ms": 7000,
 "activity": {"bucket_ms": 128, "counts": [1,0,0,0,0,0,0,1,0,0,0,0,0,0,0,2,0,0,0,0,0,0,0,1,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,3,0,0,0,0,0,0,3,0,0,0,0,0,0,0,5]},
 "other_types": {"codex.compact": 1, "codex.unreadable": 1}, "unreadable": 1, "cut": 1,
 "skew": {"moved": 1, "max_ms": 12.5, "jumped": 1},
 "remarks": 1, "remark_list": [{"kind": "torn", "message": "the last line"}], "complete": true,
 "redactions": {"email": 2}, "removed": {"parts": 1, "bytes": 40}
}`), &want))
	assert.Equal(t, want, got, "%s", text)
}

// A session of the protocol's own signals has no origin, and an empty one has no times.
func TestSummaryOfNothing(t *testing.T) {
	s := summary.NewCounter().Summary()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Equal(t, `{"signals":0,"prompts":0,"tasks":0,"texts":0,"thoughts":0,"tool_calls":0,"tool_results":0,"failures":0,"unanswered":0,"errors":0,"warnings":0,"completions":0,"failed":0,"state_changes":0,"messages":0,`+
		`"tokens":{"prompt":0,"completion":0,"cache_read":0,"cache_write":0,"reasoning":0,"cost":0},"agents":[],"tools":[],"models":[],"activity":{"bucket_ms":1,"counts":[]},"unreadable":0,"cut":0,"skew":{"moved":0,"max_ms":0,"jumped":0},"remarks":0,"remark_list":[]}`, string(text))
}

// The spans of the activity are those of counting each signal in its span, whatever the
// times and their order.
func TestActivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 200), rapid.Int64Range(0, 100*365*86400e3)), 1, 40).Draw(t, "times")
		c := summary.NewCounter()
		last := int64(0)
		for _, ms := range times {
			c.Add(time.Duration(ms)*time.Millisecond, &signal.Signal{Type: "x", Payload: signal.NewObject(0).Value()})
			last = max(last, ms)
		}
		got := c.Summary().Activity
		width := int64(1)
		for last/width >= 64 {
			width *= 2
		}
		want := make([]int, last/width+1)
		for _, ms := range times {
			want[ms/width]++
		}
		require.Equal(t, summary.Activity{BucketMS: width, Counts: want}, got)
	})
}

// Names and open calls beyond the bounds are counted together and take no memory.
func TestBounds(t *testing.T) {
	c := summary.NewCounter()
	const more = 5
	for i := range summary.MaxNames + more {
		id := strconv.Itoa(i)
		c.Add(0, &signal.Signal{Type: "tool_call", Payload: signal.NewObject(3).Text("toolName", "t"+id).Text("agentId", "a"+id).Text("callId", id).Value()})
	}
	s := c.Summary()
	require.Len(t, s.Agents, summary.MaxNames+1)
	require.Len(t, s.Tools, summary.MaxNames+1)
	assert.Equal(t, summary.ToolTotals{Name: summary.Others, Calls: more}, s.Tools[summary.MaxNames])
	assert.Equal(t, more, s.Agents[summary.MaxNames].ToolCalls)
	for i := range summary.MaxOpen {
		c.Add(0, &signal.Signal{Type: "tool_call", Payload: signal.NewObject(3).Text("toolName", "t0").Text("agentId", "a0").Text("callId", "x"+strconv.Itoa(i)).Value()})
	}
	assert.Equal(t, summary.MaxOpen, c.Summary().Unanswered)
}

// Whatever a signal has, the counter counts it and goes on.
func FuzzAdd(f *testing.F) {
	for line := range strings.Lines(recorded) {
		f.Add(line, int64(5))
	}
	f.Add(`{"metadata":{"skewMs":"x","redactions":[1],"removed":7},"payload":{}}`, int64(-1))
	f.Fuzz(func(t *testing.T, line string, at int64) {
		s, err := signal.ParseLenient([]byte(line))
		if err != nil {
			return
		}
		c := summary.NewCounter()
		c.Add(time.Duration(at), s)
		_, err = json.Marshal(c.Summary())
		require.NoError(t, err)
		require.Equal(t, 1, c.Summary().Signals)
	})
}

func TestSparkline(t *testing.T) {
	assert.Equal(t, "▁·▄█", summary.Sparkline([]int{1, 0, 4, 8}))
	assert.Equal(t, "█", summary.Sparkline([]int{3}))
	assert.Empty(t, summary.Sparkline(nil))
}

func BenchmarkAdd(b *testing.B) {
	var entries [][]byte
	for line := range strings.Lines(recorded) {
		s, err := signal.ParseLenient([]byte(line))
		require.NoError(b, err)
		entries = append(entries, s.Append(nil))
	}
	c := summary.NewCounter()
	i := 0
	for b.Loop() {
		s, err := signal.Decode(entries[i%len(entries)])
		if err != nil {
			b.Fatal(err)
		}
		c.Add(time.Duration(i), &s)
		i++
	}
}

func Example() {
	counter := summary.NewCounter()
	for _, line := range []string{
		`{"id":"1","type":"tool_call","timestamp":0,"source":"s","payload":{"toolName":"grep","agentId":"a","callId":"c"}}`,
		`{"id":"2","type":"tool_result","timestamp":40,"source":"s","payload":{"toolName":"grep","agentId":"a","callId":"c","success":false}}`,
	} {
		sig, err := signal.Parse([]byte(line))
		if err != nil {
			fmt.Println(err)
			return
		}
		ms, _ := sig.Timestamp.Int64()
		counter.Add(time.Duration(ms)*time.Millisecond, sig)
	}
	s := counter.Summary()
	fmt.Println(s.ToolCalls, s.Failures, s.Tools[0].MaxMS, summary.Sparkline(s.Activity.Counts))
	// Output: 1 1 40 █·······································█
}
