package provenance_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

// TestWhy finds the interruption and the signal that began the walk, and not the signal
// between them.
func TestWhy(t *testing.T) {
	m := story(t)
	path, err := provenance.ParsePath("stage.entities.ann.x")
	require.NoError(t, err)
	s, err := provenance.Why(t.Context(), m.replay(), path, replay.Moment{Seq: 6, Offset: time.Second})
	require.NoError(t, err)
	assert.Equal(t, []eventlog.Seq{4, 6}, s.Signals)
	assert.Equal(t, provenance.FromEdges, s.Precision)
	var texts []string
	for _, e := range s.Edges {
		texts = append(texts, s.Nodes[e.From].Text+" "+e.Reason+" "+s.Nodes[e.To].Text)
	}
	assert.Equal(t, []string{
		"stage.entities.ann.x was set by step 1 of walk: move ann",
		"step 1 of walk: move ann is a step of performance p-4-1 of walk",
		"performance p-4-1 of walk was begun by entry 4, x",
		"performance p-4-1 of walk was ended by entry 6, stop",
		"performance p-4-1 of walk performs entry 2, choreography walk",
	}, texts)
	other, err := provenance.ParsePath("session.entries")
	require.NoError(t, err)
	_, err = provenance.Why(t.Context(), m.replay(), other, replay.Moment{Seq: 6})
	require.ErrorIs(t, err, provenance.ErrNoSlice)
}

// TestSlicesSuffice replays variants of random sessions with the signals of the slice
// alone. It also bounds how often the edges alone did not suffice.
func TestSlicesSuffice(t *testing.T) {
	count := map[provenance.Precision]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := drawSession(t)
		path, err := provenance.ParsePath(drawPath(t))
		require.NoError(t, err)
		at := drawMoment(t, m)
		ctx := context.Background()
		same, err := provenance.Same(ctx, m.replay(), path, at)
		require.NoError(t, err)
		s, err := provenance.Why(ctx, m.replay(), path, at)
		if never := provenance.Existed(ctx, m.replay(), path, at); never != nil {
			require.ErrorIs(t, never, provenance.ErrNever)
			require.ErrorIs(t, err, provenance.ErrNever)
			return
		}
		require.NoError(t, err)
		count[s.Precision]++
		require.True(t, holdsWith(t, m, at, same, s.Signals))
	})
	t.Log(count)
}
