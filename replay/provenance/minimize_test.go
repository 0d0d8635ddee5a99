package provenance_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// holdsWith reports whether a condition holds at a moment of the session with only some
// of its signals, by a replay of a variant.
func holdsWith(t require.TestingT, m *memory, at replay.Moment, holds provenance.Criterion, signals []eventlog.Seq) bool {
	kept := map[eventlog.Seq]bool{}
	for _, seq := range signals {
		kept[seq] = true
	}
	var edits variant.Edits
	for _, e := range m.entries {
		if e.Kind == eventlog.KindSignal && !kept[e.Seq] {
			edits.Drop = append(edits.Drop, e.Seq)
		}
	}
	v, err := variant.New(context.Background(), m, edits)
	require.NoError(t, err)
	f, err := replay.Open(v, session.Projections(session.ProjectionConfig{}), nil).At(context.Background(), at)
	require.NoError(t, err)
	ok, err := holds(context.Background(), f)
	require.NoError(t, err)
	return ok
}

// TestMinimize finds the two signals that make ann stand where she was interrupted.
func TestMinimize(t *testing.T) {
	m := story(t)
	path, err := provenance.ParsePath("stage.entities.ann.x")
	require.NoError(t, err)
	at := replay.Moment{Seq: 6, Offset: time.Second}
	same, err := provenance.Same(t.Context(), m.replay(), path, at)
	require.NoError(t, err)
	got, err := provenance.Minimize(t.Context(), m.replay(), at, same, nil)
	require.NoError(t, err)
	assert.Equal(t, []eventlog.Seq{4, 6}, got.Signals)
	assert.Equal(t, 3, got.Of)

	never := func(context.Context, *projection.Fold) (bool, error) { return false, nil }
	_, err = provenance.Minimize(t.Context(), m.replay(), at, never, nil)
	require.ErrorIs(t, err, provenance.ErrUnmet)
	always := func(context.Context, *projection.Fold) (bool, error) { return true, nil }
	got, err = provenance.Minimize(t.Context(), m.replay(), at, always, nil)
	require.NoError(t, err)
	assert.Empty(t, got.Signals)
}

// TestMinimalSets checks by replays of variants that the result suffices and that no
// single signal of it can be left out.
func TestMinimalSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawSession(t)
		path, err := provenance.ParsePath(drawPath(t))
		require.NoError(t, err)
		at := drawMoment(t, m)
		ctx := context.Background()
		same, err := provenance.Same(ctx, m.replay(), path, at)
		require.NoError(t, err)
		got, err := provenance.Minimize(ctx, m.replay(), at, same, nil)
		require.NoError(t, err)
		require.True(t, holdsWith(t, m, at, same, got.Signals))
		for i := range got.Signals {
			fewer := append(append([]eventlog.Seq{}, got.Signals[:i]...), got.Signals[i+1:]...)
			require.False(t, holdsWith(t, m, at, same, fewer), "%v of %v", got.Signals[i], got.Signals)
		}
	})
}
