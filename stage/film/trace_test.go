package film_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/overview"
)

// drawnSignal draws the type and the payload of a signal, of which some members are missing or
// of another kind.
func drawnSignal(d *golden.Dice) string {
	who := func() string { return golden.Pick(d, `"ada"`, `"bob"`, `"ada"`, `" cid "`, `""`, `7`, `null`) }
	text := func() string {
		return golden.Pick(d, `"Fix it."`, `"  two  words  "`, `""`, `"日本"`, `[1]`, `"`+strings.Repeat("long ", 40)+`"`)
	}
	fact := func() string { return golden.Pick(d, "true", "false", "false", `"false"`, "0", "null") }
	typ := golden.Pick(d, "task_dispatch", "tool_call", "tool_result", "agent_state_change", "thinking", "text_delta", "error", "completion", "completion", "token_usage", "codex.compact", "user.click")
	var members []string
	for _, m := range []string{
		`"agentId":` + who(), `"taskId":` + who(), `"from":` + who(), `"to":` + who(), `"toolName":` + text(), `"description":` + text(), `"content":` + text(), `"message":` + text(),
		`"result":` + text(), `"success":` + fact(), `"promptTokens":` + golden.Pick(d, "1200", "0", "1.5", "-3", `"7"`, "9007199254740993"), `"completionTokens":` + golden.Pick(d, "34", "0", "0.5"), `"severity":"error"`,
	} {
		if !d.Once(4) {
			members = append(members, m)
		}
	}
	return fmt.Sprintf(`"type":%q,"payload":{%s}`, typ, strings.Join(members, ","))
}

// Recorded sessions have the captions, pictures, sheets and films that they had.
func TestRecordedFilms(t *testing.T) {
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		for n := range uint64(16) {
			d := golden.NewDice(n)
			var signals []string
			for len(signals) < 14 {
				text := drawnSignal(d)
				if _, err := signal.Parse(fmt.Appendf(nil, `{"id":"x","timestamp":1,"source":"test",%s}`, text)); err == nil {
					signals = append(signals, text)
				}
			}
			reel := recorded(t, signals...)
			head := eventlog.Seq(len(signals) + 1)
			var out strings.Builder
			tell := func(shot film.Shot, err error) {
				frame, _ := json.Marshal(shot.Frame)
				fmt.Fprintln(&out, shot.Moment, shot.At, string(frame), err)
			}
			for seq := eventlog.Seq(0); seq <= head+1; seq++ {
				for _, offset := range []time.Duration{0, 3 * time.Millisecond} {
					m := replay.Moment{Seq: seq, Offset: offset}
					caption, err := reel.Caption(t.Context(), m)
					fmt.Fprintln(&out, caption, err)
					tell(reel.Shot(t.Context(), m))
				}
			}
			step(fmt.Sprintf("%d moments", n), out.String())
			for i := range 4 {
				out.Reset()
				first := replay.Moment{Seq: eventlog.Seq(d.N(int(head))), Offset: golden.Pick(d, 0, 0, 2*time.Millisecond)}
				last := replay.Moment{Seq: first.Seq + eventlog.Seq(d.N(int(head-first.Seq)+1)), Offset: golden.Pick(d, 0, 0, 3*time.Millisecond, 5*time.Microsecond)}
				over, err := reel.Interval(t.Context(), first, last)
				fmt.Fprintln(&out, over, err)
				instants := over.Spread(1 + d.N(9))
				if d.Once(2) {
					instants, err = over.Every(time.Duration(1+d.N(20)) * 1001 * time.Microsecond)
				}
				fmt.Fprintln(&out, instants, err)
				for shot, err := range reel.At(t.Context(), over, instants) {
					tell(shot, err)
				}
				for shot, err := range reel.Effects(t.Context(), over) {
					tell(shot, err)
				}
				style := film.Style{Width: golden.Pick(d, 40, 120), Places: d.Once(2), Caption: d.Once(2)}
				progress := func(done ...int) { fmt.Fprintln(&out, done) }
				sheet, at, count, err := reel.Sheet(t.Context(), over, film.SheetConfig{Style: style, Count: d.N(4), Columns: d.N(3), Progress: func(done, of int) { progress(done, of) }})
				fmt.Fprintln(&out, at.Moment, count, err)
				if err == nil {
					fmt.Fprintf(&out, "%s\n", sheet.AppendSVG(nil))
				}
				o, err := reel.Overview(t.Context(), over)
				require.NoError(t, err)
				fmt.Fprintf(&out, "%d %s\n", o.Signals(), o.Timeline(overview.Options{}).AppendSVG(nil))
				if i == 0 {
					var gif bytes.Buffer
					last, err := reel.GIF(t.Context(), &gif, over, instants[:min(len(instants), 4)], 1+d.N(30), style, func(done int) { progress(done) })
					fmt.Fprintf(&out, "%v %v %x\n", last.Moment, err, sha256.Sum256(gif.Bytes()))
				}
				step(fmt.Sprintf("%d interval %d", n, i), out.String())
			}
		}
	})
}

// The text of an entry has what it records, in the words of its kind, and its kind alone if its
// data has another form.
func TestEntryText(t *testing.T) {
	word := func(text string) []byte {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		return v
	}
	for _, tt := range []struct {
		kind eventlog.Kind
		data []byte
		want string
	}{
		{eventlog.KindSignal, nil, "signal"},
		{eventlog.KindSignal, []byte{0xc1}, "signal"},
		{eventlog.KindBeat, word(`["turnOpened", {"turn": 1}]`), "director: turnOpened"},
		{eventlog.KindBeat, word(`["message", {"turn": 1, "role": "user", "text": "Good morning."}]`), "user: Good morning."},
		{eventlog.KindBeat, word(`["message"]`), "beat"},
		{eventlog.KindBeat, nil, "beat"},
		{eventlog.KindEffect, word(`["moved", {"n": 1}]`), "effect moved"},
		{eventlog.KindEffect, word(`["", {"n": 1}]`), "effect"},
		{eventlog.KindEffect, word(`[7, 8]`), "effect"},
		{eventlog.KindDefine, word(`["choreography", {}]`), "define choreography"},
		{eventlog.KindSession, word(`["time", 7]`), "session time"},
		{eventlog.KindSession, word(`{"a": 1}`), "session"},
	} {
		require.Equal(t, tt.want, film.EntryText(&eventlog.Entry{Kind: tt.kind, Data: tt.data}), "%v %x", tt.kind, tt.data)
	}
}
