package stage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
