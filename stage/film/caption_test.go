package film_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// recorded returns the reel of a session with the given signals, 10 ms apart, which begin at
// entry 2.
func recorded(t *testing.T, signals ...string) *film.Reel {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, eng.Close()) })
	ses, err := eng.Session(t.Context(), "a")
	require.NoError(t, err)
	for i, text := range signals {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"%d","timestamp":%d,"source":"test",%s}`, i, 1000+10*i, text))
		require.NoError(t, err, text)
		_, err = ses.Signal(t.Context(), sig)
		require.NoError(t, err)
	}
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	travel, err := eng.Replay("a")
	require.NoError(t, err)
	return film.Open(log, travel)
}

// TestCaptions: a caption says who did what.
func TestCaptions(t *testing.T) {
	cases := []struct{ signal, want string }{
		{`"type":"task_dispatch","payload":{"taskId":"t","from":"user","to":"ada","description":"Fix it."}`, "user → ada: Fix it."},
		{`"type":"task_dispatch","payload":{"taskId":"t","from":"ada","to":"bob"}`, "ada → bob"},
		{`"type":"tool_call","payload":{"agentId":"ada","toolName":"Bash"}`, "ada calls Bash"},
		{`"type":"tool_result","payload":{"agentId":"ada","toolName":"Bash","success":true}`, "ada: Bash answered"},
		{`"type":"tool_result","payload":{"agentId":"ada","toolName":"Bash","success":false}`, "ada: Bash failed"},
		{`"type":"agent_state_change","payload":{"agentId":"ada","from":"idle","to":"waiting"}`, "ada is waiting"},
		{`"type":"thinking","payload":{"agentId":"ada","content":"Hm."}`, "ada thinks: Hm."},
		{`"type":"text_delta","payload":{"agentId":"ada","content":"Yes."}`, "ada says: Yes."},
		{`"type":"error","payload":{"agentId":"ada","severity":"error","message":"no disk"}`, "ada has an error: no disk"},
		{`"type":"completion","payload":{"taskId":"t","agentId":"ada","success":true,"result":"It works."}`, "ada is done: It works."},
		{`"type":"completion","payload":{"taskId":"t","agentId":"ada","success":false}`, "ada gives up"},
		{`"type":"completion","payload":{"taskId":"t","success":true}`, "task t is done"},
		{`"type":"error","payload":{"severity":"error","message":"no disk"}`, "test has an error: no disk"},
		{`"type":"token_usage","payload":{"agentId":"ada","promptTokens":1200,"completionTokens":34}`, "ada uses 1234 tokens"},
		{`"type":"codex.compact","payload":{"agentId":"ada"}`, "codex.compact of ada"},
		{`"type":"codex.compact","payload":{"size":3}`, "codex.compact of test"},
	}
	var signals []string
	for _, c := range cases {
		signals = append(signals, c.signal)
	}
	reel := recorded(t, signals...)
	for i, c := range cases {
		seq := eventlog.Seq(i + 2)
		got, err := reel.Caption(t.Context(), replay.Moment{Seq: seq})
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("%d %s", seq, c.want), got)
	}
	got, err := reel.Caption(t.Context(), replay.Moment{Seq: 1})
	require.NoError(t, err)
	assert.Equal(t, "1 session opened", got)
	got, err = reel.Caption(t.Context(), replay.Moment{Seq: 3, Offset: time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, "3+1ms", got)
}

// TestEffects: the picture of an entry has its effect, and neither that of the next entry, 10
// ms later, nor another time.
func TestEffects(t *testing.T) {
	reel := recorded(t,
		`"type":"text_delta","payload":{"agentId":"ada","content":"Hello."}`,
		`"type":"task_dispatch","payload":{"taskId":"t","from":"ada","to":"bob"}`,
		`"type":"error","payload":{"agentId":"ada","severity":"error","message":"no"}`)
	whole, err := reel.Interval(t.Context(), replay.Moment{Seq: 2}, replay.Moment{Seq: 4})
	require.NoError(t, err)
	var frames []*stage.Frame
	for shot, err := range reel.Effects(t.Context(), whole) {
		require.NoError(t, err)
		e, err := reel.Entry(t.Context(), shot.Seq)
		require.NoError(t, err)
		assert.Equal(t, e.At, shot.At)
		assert.Equal(t, e.At, shot.Frame.At)
		frames = append(frames, shot.Frame)
	}
	require.Len(t, frames, 3)
	require.Len(t, frames[0].Figures, 1)
	assert.Equal(t, "Hello.", frames[0].Figures[0].Text)
	require.Len(t, frames[1].Beams, 1)
	assert.Equal(t, frames[1].Beams[0].ToX, figure(frames[1], "bob").X, "the beam has grown")
	assert.Zero(t, figure(frames[1], "ada").Strength)
	assert.Positive(t, figure(frames[2], "ada").Strength)
}

func figure(f *stage.Frame, id string) stage.Figure {
	for _, g := range f.Figures {
		if g.ID == id {
			return g
		}
	}
	return stage.Figure{}
}
