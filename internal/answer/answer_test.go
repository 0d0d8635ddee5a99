package answer_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// recorded returns the state of a session after a few signals.
func recorded(t *testing.T) (*projection.Fold, replay.Moment) {
	t.Helper()
	engine, err := sajou.Open(t.TempDir(), sajou.Config{SnapshotEvery: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	s, err := engine.Session(t.Context(), "s")
	require.NoError(t, err)
	payload, err := signal.ParseValue([]byte("{}"))
	require.NoError(t, err)
	for _, id := range []string{"a", "b"} {
		_, err = s.Signal(t.Context(), &signal.Signal{ID: id, Type: "note", Timestamp: signal.Int(1000), Source: "test", Payload: payload})
		require.NoError(t, err)
	}
	m := replay.Moment{Seq: s.Head().Seq}
	fold, err := s.At(t.Context(), m)
	require.NoError(t, err)
	return fold, m
}

func TestStatePaths(t *testing.T) {
	fold, m := recorded(t)
	for _, path := range []string{"session.entries.signal", "/session/entries/signal"} {
		view, left, err := answer.State(fold, m, path, answer.ShownLimits())
		require.NoError(t, err)
		assert.Empty(t, left)
		assert.EqualValues(t, 2, view)
	}
	whole, _, err := answer.State(fold, m, "", answer.NoLimits())
	require.NoError(t, err)
	assert.Contains(t, whole, "stage")

	_, _, err = answer.State(fold, m, "session.nothing", answer.ShownLimits())
	require.ErrorIs(t, err, replay.ErrNoAddress)
	assert.Contains(t, err.Error(), "session.nothing; it has entries")

	_, left, err := answer.State(fold, m, "session", answer.StateLimits{Each: 2, Total: math.MaxInt})
	require.NoError(t, err)
	require.NotEmpty(t, left)
	assert.Contains(t, left[0], "2 of ")
}

func TestMarshalIsExact(t *testing.T) {
	data, err := answer.Marshal(map[string]any{"n": int64(math.MaxInt64), "t": "<&>"})
	require.NoError(t, err)
	assert.JSONEq(t, `{"n":9223372036854775807,"t":"<&>"}`, string(data))
	assert.True(t, strings.Contains(string(data), "<&>"), "not escaped")
	assert.Equal(t, answer.MomentView{Seq: 3, Offset: 1.5}, answer.ViewMoment(replay.Moment{Seq: 3, Offset: 1500 * time.Microsecond}))
}
