package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
)

// The turns that directed a beat are spans of consecutive turns. Of more than 32 spans the
// first are kept, and the others are counted.
func TestSpansOfTurns(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	ses := enginetest.BeginManual(t, eng, "long")
	d := ses.Director()
	require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, `{"id": "long", "turn_budget": 0, "beats": [
		{"id": "run", "character_instruction": "Run.", "target_turn": 1, "deadline_turn": 3, "detection_type": "keyword", "detection_criteria": "runs", "requires_flag": "alarmed"},
		{"id": "wait", "character_instruction": "Wait.", "target_turn": 2, "deadline_turn": 9, "detection_type": "keyword", "detection_criteria": "waits"}],
		"flag_rules": [{"on_signal": "error", "set": "alarmed"}, {"on_signal": "thinking", "clear": "alarmed"}]}`), director.Opening{}))
	alarmed := func(turn int) bool { return turn <= 4 || turn%2 == 0 || turn > 76 }
	const turns = 80
	want := map[string][]int{}
	for turn := 1; turn <= turns; turn++ {
		kind, beat := "thinking", "wait"
		if alarmed(turn) {
			kind, beat = "error", "run"
		}
		want[beat] = append(want[beat], turn)
		_, err := ses.Record(t.Context(), sajou.Addition{Signals: enginetest.Step{Typ: kind}.Record(t, turn, int64(turn)).Signals})
		require.NoError(t, err)
		_, err = d.Guide(t.Context(), director.TurnInput{Turn: turn})
		require.NoError(t, err)
		_, err = d.Respond(t.Context(), director.Response{Turn: turn, Text: "Hm."})
		require.NoError(t, err)
	}
	p, err := history.ProgressAt(t.Context(), enginetest.Replay(t, eng, "long"), ses.Head().Seq)
	require.NoError(t, err)
	for _, b := range p.Beats {
		var spans [][2]int
		overdue := 0
		for _, turn := range want[b.Beat.ID] {
			if turn >= b.Beat.Deadline {
				overdue++
			}
			if n := len(spans); n > 0 && spans[n-1][1] == turn-1 {
				spans[n-1][1] = turn
			} else {
				spans = append(spans, [2]int{turn, turn})
			}
		}
		require.Greater(t, len(spans), 32, b.Beat.ID)
		var text []string
		shown := 0
		for _, s := range spans[:32] {
			shown += s[1] - s[0] + 1
			if s[0] == s[1] {
				text = append(text, fmt.Sprint(s[0]))
			} else {
				text = append(text, fmt.Sprintf("%d-%d", s[0], s[1]))
			}
		}
		require.Equal(t, spans[:32], b.Directed.Spans, b.Beat.ID)
		require.Equal(t, len(want[b.Beat.ID]), b.Directed.Count, b.Beat.ID)
		require.Equal(t, fmt.Sprintf("%s and %d more", strings.Join(text, ", "), len(want[b.Beat.ID])-shown), b.Directed.String())
		require.Equal(t, overdue, b.Overdue, b.Beat.ID)
	}
	require.Equal(t, "", history.TurnList{}.String())
}
