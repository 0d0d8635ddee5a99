package provenance_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

// TestStandalone makes a recording of the two signals that matter, without the
// declaration that does not.
func TestStandalone(t *testing.T) {
	m := begin(t, walkAndGlow, `{"id": "idle", "on": "y", "steps": []}`)
	m.signal(t, 100*time.Millisecond, "y", "", object{})
	m.signal(t, 250*time.Millisecond, "x", "", object{"who": "ann"})
	m.signal(t, 400*time.Millisecond, "y", "", object{})
	path, err := provenance.ParsePath("stage.entities.ann.x")
	require.NoError(t, err)
	at := replay.Moment{Seq: 6, Offset: 50 * time.Millisecond}
	same, err := provenance.Same(t.Context(), m.replay(), path, at)
	require.NoError(t, err)
	x, err := provenance.Standalone(t.Context(), m.replay(), at, []eventlog.Seq{5}, same)
	require.NoError(t, err)
	require.Len(t, x.Declarations, 1)
	assert.Nil(t, x.Scene)
	assert.Equal(t, 200*time.Millisecond, x.Rest)
	assert.Equal(t, `{"id":"4","type":"x","timestamp":250,"source":"test","payload":{"who":"ann"}}`+"\n", string(x.JSONL()))
	_, err = provenance.Standalone(t.Context(), m.replay(), at, nil, same)
	require.ErrorIs(t, err, provenance.ErrStandalone)
	_, err = provenance.Standalone(t.Context(), m.replay(), at, []eventlog.Seq{99}, same)
	require.ErrorIs(t, err, provenance.ErrStandalone)
}

// TestScenariosGiveTheValue runs the scenarios of random sessions.
func TestScenariosGiveTheValue(t *testing.T) {
	drawn, made := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		drawn++
		m := drawSession(t)
		path, err := provenance.ParsePath(drawPath(t))
		require.NoError(t, err)
		at, ctx := drawMoment(t, m), context.Background()
		same, err := provenance.Same(ctx, m.replay(), path, at)
		require.NoError(t, err)
		least, err := provenance.Minimize(ctx, m.replay(), at, same, nil)
		require.NoError(t, err)
		x, err := provenance.Standalone(ctx, m.replay(), at, least.Signals, same)
		if err != nil {
			require.ErrorIs(t, err, provenance.ErrStandalone)
			return
		}
		made++
		f, err := m.replay().At(ctx, at)
		require.NoError(t, err)
		v, _ := path.In(f)
		scenarios, diagnostics := rehearsal.Parse("s.json", x.Scenario("s", "s", []provenance.Expected{{Path: path.String(), Value: v}}, nil))
		require.Empty(t, diagnostics)
		require.Empty(t, rehearsal.CompareValues(scenarios[0]))

		// Through its own declarations a session has its own values.
		same2, values, err := x.Redeclared(ctx, m.replay(), at, []provenance.StatePath{path})
		require.NoError(t, err)
		require.Equal(t, []provenance.Expected{{Path: path.String(), Value: v}}, values)
		require.Subset(t, same2.Declarations, x.Declarations)
	})
	assert.Greater(t, made, drawn/2, "most sessions have such a recording")
}

// TestDrawings draws a graph with a node of two dependants and an uncertain edge.
func TestDrawings(t *testing.T) {
	s := provenance.Slice{
		Nodes: []provenance.DependencyNode{{Kind: "value", Text: `a "b" <c>`}, {Kind: "entry", Text: "e1"}, {Kind: "act", Text: "s", Moment: replay.Moment{Seq: 3}}},
		Edges: []provenance.Dependency{{From: 0, To: 2, Reason: "r", Exact: true}, {From: 0, To: 1, Reason: "r2"}, {From: 2, To: 1, Reason: "q", Exact: true}},
	}
	assert.Equal(t, "  r s at 3\n    q e1\n~ r2 e1 (above)\n", s.Text())
	assert.Contains(t, s.DOT(), `n0 [label="a \"b\" <c>"];`)
	assert.Contains(t, s.DOT(), `n0 -> n1 [label="r2", style=dashed];`)
	svg := s.SVG()
	assert.Contains(t, svg, "a &#34;b&#34; &lt;c&gt;")
	assert.Contains(t, svg, "<title>q</title>")
	// A cycle ends.
	s.Edges = append(s.Edges, provenance.Dependency{From: 1, To: 0})
	assert.NotEmpty(t, s.SVG())
	assert.NotEmpty(t, s.Text())
}
