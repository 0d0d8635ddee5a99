package stage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// The instants at which impressions and speech change at once are announced: at each the
// stage shows the change, and a nanosecond before it does not.
func TestNextBoundary(t *testing.T) {
	payload, err := signal.ParseValue([]byte(`{"agentId":"scout","message":"lost"}`))
	require.NoError(t, err)
	s := stage.New(stage.Config{})
	_, ok := s.NextBoundary()
	require.False(t, ok, "nothing is under way")
	s.Signal(1, &signal.Signal{Type: "error", Payload: payload})
	figure := func() stage.Figure { return s.Frame().Figures[0] }
	for _, tt := range []struct {
		at    time.Duration
		shown func(stage.Figure) bool
	}{
		{133333334 * time.Nanosecond, func(f stage.Figure) bool { return f.Text == "lost" }},
		{600 * time.Millisecond, func(f stage.Figure) bool { return f.Strength == 0 }},
		{5133333334 * time.Nanosecond, func(f stage.Figure) bool { return f.Text == "" }},
	} {
		at, ok := s.NextBoundary()
		require.True(t, ok)
		require.Equal(t, tt.at, at)
		s.Advance(at - 1)
		assert.False(t, tt.shown(figure()), "before %v", at)
		s.Advance(at)
		assert.True(t, tt.shown(figure()), "at %v", at)
	}
	_, ok = s.NextBoundary()
	assert.False(t, ok, "all is over")
}

// The end of the note of each sound that a stage remembers is announced, whatever else is
// under way.
func TestNextBoundaryOfSounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(stage.Config{})
		w.define(t, `[{"on": "ring", "steps": [{"action": "playSound", "sound": "gong", "entity": "bell"}]},
		 {"on": "run", "steps": [{"action": "move", "entity": "bell", "to": [300, 300], "duration": 500}]}]`)
		gaps := []time.Duration{0, 1, time.Millisecond, 599 * time.Millisecond, 600 * time.Millisecond, 601 * time.Millisecond, 2 * time.Second}
		now, run := time.Duration(0), -time.Hour // the last movement: a second one at once would be in conflict
		var ends []time.Duration                 // of all notes, by the model
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += rapid.SampledFrom(gaps).Draw(rt, "gap")
			w.advance(now)
			if typ := rapid.SampledFrom([]string{"ring", "ring", "run", "nothing"}).Draw(rt, "type"); typ == "ring" || typ == "run" && now-run > time.Second {
				w.signal(now, scriptSignal(t, typ+" {}"))
				w.advance(now)
				if typ == "run" {
					run = now
				} else if typ == "ring" {
					ends = append(ends, now+600*time.Millisecond)
				}
			}
			remembered := ends[max(0, len(ends)-stage.MaxSounds):]
			shown, next := 0, time.Duration(0)
			for _, end := range remembered {
				if end > now {
					if shown++; next == 0 {
						next = end
					}
				}
			}
			at, ok := w.stage.NextBoundary()
			require.Equal(rt, shown > 0, ok)
			if ok {
				require.Equal(rt, next, at)
			}
		}
	})
}
