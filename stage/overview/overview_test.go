package overview_test

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/overview"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// read returns the overview of a file of signals.
func read(t *testing.T, file string) *overview.Overview {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	o := new(overview.Overview)
	lines := bufio.NewScanner(in)
	first := math.NaN()
	for lines.Scan() {
		sig, err := signal.Parse(lines.Bytes())
		require.NoError(t, err)
		ms := sig.Timestamp.Float64()
		if math.IsNaN(first) {
			first = ms
		}
		o.Add(time.Duration(ms-first)*time.Millisecond, sig)
	}
	require.NoError(t, lines.Err())
	return o
}

func golden(t *testing.T, name string, d *picture.Drawing) {
	t.Helper()
	file := filepath.Join("testdata", name)
	got := string(d.AppendSVG(nil))
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// TestGolden draws a short recording. A change of a file needs a look at it.
func TestGolden(t *testing.T) {
	o := read(t, "../agentscene/testdata/small.jsonl")
	golden(t, "timeline.svg", o.Timeline(overview.Options{Title: "small", Width: 900}))
	golden(t, "sequence.svg", o.Sequence(1, overview.Options{Title: "small", Width: 900, Theme: picture.ThemeLight}))
}

// checkBoxes requires that texts and bars do not overlap, except a text within a bar, and are
// in the drawing.
func checkBoxes(t require.TestingT, name string, d *picture.Drawing) {
	w, h := d.Size()
	boxes := d.Boxes()
	const e = .01
	for i, b := range boxes {
		if b.X < -e || b.Y < -e || b.X+b.W > w+e || b.Y+b.H > h+e {
			require.Fail(t, "outside", "%s: %+v is not in the drawing of %v by %v", name, b, w, h)
		}
		for _, a := range boxes[:i] {
			if a.X+a.W <= b.X+e || b.X+b.W <= a.X+e || a.Y+a.H <= b.Y+e || b.Y+b.H <= a.Y+e {
				continue
			}
			within := a.Kind == picture.BoxBar && b.Kind == picture.BoxText && b.X >= a.X-e && b.X+b.W <= a.X+a.W+e && b.Y >= a.Y-e && b.Y+b.H <= a.Y+a.H+e
			if !within {
				require.Fail(t, "overlap", "%s: %+v overlaps %+v", name, b, a)
			}
		}
	}
}

func checkAll(t require.TestingT, o *overview.Overview, opt overview.Options) {
	checkBoxes(t, "timeline", o.Timeline(opt))
	for n := range o.Pages(opt) {
		checkBoxes(t, fmt.Sprint("page ", n+1), o.Sequence(n+1, opt))
	}
}

// TestCrowd: twenty agents and thirty tools are legible in any width.
func TestCrowd(t *testing.T) {
	o := read(t, "../agentscene/testdata/crowd.jsonl")
	for _, width := range []int{0, 320, 700, 3000} {
		checkAll(t, o, overview.Options{Title: strings.Repeat("a long title ", 20), Width: width, PerPage: 25})
	}
	rows := 0
	for _, b := range o.Sequence(1, overview.Options{PerPage: 25}).Boxes() {
		if b.Kind == picture.BoxText && strings.Contains(b.Text, "Port module") {
			rows++
		}
	}
	assert.Equal(t, 12, rows, "each task with its call in a row of its own, after the first")
}

// at adds a signal of a JSON payload.
func at(t require.TestingT, o *overview.Overview, ms int64, typ, payload string) {
	sig, err := signal.ParseLenient(fmt.Appendf(nil, `{"id":"1","type":%q,"timestamp":1,"source":"test","payload":%s}`, typ, payload))
	require.NoError(t, err)
	o.Add(time.Duration(ms)*time.Millisecond, sig)
}

// TestAnything: no sequence of signals gives overlaps, and the same signals give the same
// drawing.
func TestAnything(t *testing.T) {
	types := append(signal.WellKnownTypes(), "x.message", "x.unreadable")
	rapid.Check(t, func(t *rapid.T) {
		agents := rapid.IntRange(1, 50).Draw(t, "agents")
		wait := rapid.SampledFrom([]int64{1, 100, 5000}).Draw(t, "wait")
		var two [2]overview.Overview
		now := int64(0)
		for range rapid.IntRange(0, 80).Draw(t, "signals") {
			now += rapid.OneOf(rapid.Int64Range(0, wait), rapid.SampledFrom([]int64{0, 60_000, 86_400_000})).Draw(t, "after")
			name := func(of string) string {
				return rapid.SampledFrom([]string{"", "user", "a", "日本語の助手", "long-name-of-an-agent-"}).Draw(t, of) + fmt.Sprint(rapid.IntRange(1, agents).Draw(t, of))
			}
			payload := fmt.Sprintf(`{"agentId":%q,"from":%q,"to":%q,"taskId":"t%d","toolName":%q,"callId":%q,"description":%q,"message":"m","success":%t,"promptTokens":%d,"completionTokens":1,"cost":%g}`,
				name("agent"), name("from"), name("to"), rapid.IntRange(0, 3).Draw(t, "task"), rapid.SampledFrom([]string{"Bash", "Read", "mcp__a__b", ""}).Draw(t, "tool"),
				rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "call"), strings.Repeat("words ", rapid.IntRange(0, 60).Draw(t, "words")),
				rapid.Bool().Draw(t, "success"), rapid.Int64Min(0).Draw(t, "tokens"), rapid.Float64Range(0, 1e300).Draw(t, "cost"))
			typ := rapid.SampledFrom(types).Draw(t, "type")
			for i := range two {
				at(t, &two[i], now, typ, payload)
			}
		}
		opt := overview.Options{Title: "t", Width: rapid.SampledFrom([]int{-1, 0, 400, 2000}).Draw(t, "width"), PerPage: rapid.IntRange(0, 30).Draw(t, "per page")}
		checkAll(t, &two[0], opt)
		require.Equal(t, two[0].Timeline(opt).AppendSVG(nil), two[1].Timeline(opt).AppendSVG(nil))
	})
}

// texts returns the texts of a drawing.
func texts(d *picture.Drawing) string {
	var all []string
	for _, b := range d.Boxes() {
		if b.Text != "" {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}

// TestLong: a week of a session with ten thousand calls has one drawing that says what it
// merges and cuts out, and counts all calls.
func TestLong(t *testing.T) {
	o := new(overview.Overview)
	now := int64(0)
	for i := range 10_000 {
		now += 500
		if i%1000 == 0 {
			now += 17 * 3600 * 1000
		}
		at(t, o, now, "tool_call", fmt.Sprintf(`{"agentId":"a%d","toolName":"Bash","callId":"%d"}`, i%60, i))
		at(t, o, now+200, "tool_result", fmt.Sprintf(`{"agentId":"a%d","toolName":"Bash","callId":"%d","success":%t}`, i%60, i, i%10 > 0))
	}
	d := o.Timeline(overview.Options{})
	checkBoxes(t, "timeline", d)
	all := texts(d)
	assert.Contains(t, all, "60 agents · 10,000 calls · 1,000 failed")
	assert.Contains(t, all, "terminal 10,000 (1,000 failed)")
	assert.Contains(t, all, "21 more agents")
	assert.Contains(t, all, "9 times are without signals cut out of the axis")
	assert.Contains(t, all, "calls have no room of their own")
	assert.Contains(t, all, "17h 0m")
	assert.Less(t, len(d.AppendSVG(nil)), 2<<20)
}

// TestRows tells the rows of a sequence diagram: calls between two messages are one row, an
// answer goes back to the agent that asked.
func TestRows(t *testing.T) {
	o := new(overview.Overview)
	at(t, o, 0, "task_dispatch", `{"taskId":"1","from":"user","to":"ada","description":"Do it."}`)
	for i, tool := range []string{"Read", "Bash", "Bash"} {
		at(t, o, 10, "tool_call", fmt.Sprintf(`{"agentId":"ada","toolName":%q,"callId":"%d"}`, tool, i))
		at(t, o, 20, "tool_result", fmt.Sprintf(`{"agentId":"ada","toolName":%q,"callId":"%d","success":%t}`, tool, i, i != 1))
	}
	at(t, o, 30, "task_dispatch", `{"taskId":"2","from":"ada","to":"bob","description":"Help."}`)
	at(t, o, 40, "completion", `{"taskId":"2","agentId":"bob","success":true,"result":"Here."}`)
	at(t, o, 50, "tool_call", `{"agentId":"ada","toolName":"Edit"}`)
	at(t, o, 60, "x.note", `{"from":"bob","to":"ada","text":"By the way."}`)
	at(t, o, 70, "error", `{"agentId":"ada","message":"no disk"}`)
	at(t, o, 80, "completion", `{"taskId":"1","success":false}`)
	assert.Equal(t, 1, o.Pages(overview.Options{}))
	assert.Equal(t, strings.Split(`page 1 of 1 · messages 1 to 8 of 8
user
ada
bob
0:00
Do it.
0:00.01
Read, Bash ×2 (1 failed)
0:00.03
Help.
0:00.04
Here.
0:00.05
Edit
0:00.06
By the way.
0:00.07
no disk
0:00.08
failed`, "\n"), strings.Split(texts(o.Sequence(1, overview.Options{})), "\n"))
	assert.Equal(t, 4, o.Pages(overview.Options{PerPage: 2}))
	assert.Contains(t, texts(o.Sequence(4, overview.Options{PerPage: 2})), "page 4 of 4 · messages 7 to 8 of 8")
	assert.Contains(t, texts(o.Sequence(9, overview.Options{})), "no messages")
}

// TestNothing: an overview without signals says so.
func TestNothing(t *testing.T) {
	o := new(overview.Overview)
	assert.Contains(t, texts(o.Timeline(overview.Options{})), "no signals")
	assert.Contains(t, texts(o.Sequence(1, overview.Options{})), "no messages")
	assert.Equal(t, 1, o.Pages(overview.Options{}))
	at(t, o, 5, "thinking", `{}`)
	assert.Equal(t, 1, o.Signals())
	checkAll(t, o, overview.Options{})
}
