package provenance_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

const walkAndGlow = `{"id": "walk", "on": "x", "steps": [
	{"action": "move", "entity": "signal.who", "to": {"x": 100, "y": 100}, "duration": 1000, "animationOnArrival": "there"},
	{"action": "parallel", "steps": [
		{"action": "flash", "entity": "signal.who", "duration": 500},
		{"action": "set", "entity": "signal.who", "property": "layer", "value": 0}]}]}`

func story(t tester) *memory {
	m := begin(t, walkAndGlow, `{"on": "stop", "interrupts": true, "steps": [
		{"action": "set", "entity": "ann", "property": "state", "value": "tired"},
		{"action": "set", "entity": "ann", "property": "state", "value": "asleep"}]}`)
	m.signal(t, 100*time.Millisecond, "x", "c", object{"who": "ann"}) // entry 4
	m.signal(t, 200*time.Millisecond, "y", "", object{})              // entry 5
	m.signal(t, 600*time.Millisecond, "stop", "c", object{})          // entry 6
	return m
}

func blame(t testing.TB, m *memory, path string, at replay.Moment) provenance.Blamed {
	t.Helper()
	p, err := provenance.ParsePath(path)
	require.NoError(t, err)
	b, err := provenance.Blame(t.Context(), m.replay(), p, at)
	require.NoError(t, err)
	return b
}

// TestBlame follows one figure: it appears at the act that first names it, a movement
// under way is blamed on its start, an interrupted one on the entry that ended it.
func TestBlame(t *testing.T) {
	m := story(t)
	moving := blame(t, m, "stage.entities.ann.x", replay.Moment{Seq: 5, Offset: 250 * time.Millisecond})
	assert.True(t, moving.Moving)
	assert.Equal(t, replay.Moment{Seq: 4}, moving.Setting.Moment)
	assert.Equal(t, provenance.Setter{
		Kind: provenance.ByStart, Entry: 4, Performance: "p-4-1", Definition: "walk", Step: "1", Action: "move",
		Entity: "ann", Params: object{"to": object{"x": int64(100), "y": int64(100)}, "animationOnArrival": "there"},
	}, moving.Setter)

	stopped := blame(t, m, "stage.entities.ann.x", replay.Moment{Seq: 6})
	assert.False(t, stopped.Moving)
	assert.Equal(t, provenance.Setter{Kind: provenance.ByInterrupt, Entry: 6, Performance: "p-4-1"}, stopped.Setter)

	// Two acts of one instant set the state: the last one counts.
	state := blame(t, m, "stage.entities.ann.state", replay.Moment{Seq: 6})
	assert.Equal(t, "2", state.Setter.Step)
	assert.Equal(t, "stop", state.Setter.Definition)
	assert.Equal(t, []any{"tired", "asleep"}, []any{state.Old, state.New})

	m.entries = m.entries[:5] // without the interruption
	arrived := blame(t, m, "stage.entities.ann.state", replay.Moment{Seq: 5, Offset: 2 * time.Second})
	assert.Equal(t, provenance.ByComplete, arrived.Setter.Kind)
	assert.Equal(t, replay.Moment{Seq: 5, Offset: 900 * time.Millisecond}, arrived.Setting.Moment)
	glow := blame(t, m, "stage.entities.ann.strength", replay.Moment{Seq: 5, Offset: time.Second})
	assert.Equal(t, "2.1", glow.Setter.Step)
}

// TestBlameOfOtherProjections names entries, and the acts of an instant where no entry
// came.
func TestBlameOfOtherProjections(t *testing.T) {
	m := story(t)
	count := blame(t, m, "session.entries.signal", replay.Moment{Seq: 5, Offset: time.Millisecond})
	assert.Equal(t, provenance.Setter{Kind: provenance.ByEntry, Entry: 5}, count.Setter)
	assert.Equal(t, []any{int64(1), int64(2)}, []any{count.Old, count.New})
	m.entries = m.entries[:5]
	running := blame(t, m, "performances.p-4-1.running", replay.Moment{Seq: 5, Offset: time.Second})
	assert.Equal(t, provenance.ByTime, running.Setter.Kind)
	assert.Len(t, running.Setter.Candidates, 3) // the move ends, the flash and the set begin
}

func TestBlameOfNothing(t *testing.T) {
	m := story(t)
	path := func(text string) provenance.StatePath {
		p, err := provenance.ParsePath(text)
		require.NoError(t, err)
		return p
	}
	b, err := provenance.Blame(t.Context(), m.replay(), path("stage.size"), replay.Moment{Seq: 6})
	require.ErrorIs(t, err, provenance.ErrNever)
	assert.True(t, b.Has)
	b, err = provenance.Blame(t.Context(), m.replay(), path("/stage/entities/nobody.x"), replay.Moment{Seq: 6})
	require.ErrorIs(t, err, provenance.ErrNever)
	assert.False(t, b.Has)
	assert.Equal(t, "/stage/entities/nobody.x", b.Path.String())
	_, err = provenance.Blame(t.Context(), m.replay(), path("nothing.x"), replay.Moment{Seq: 6})
	require.ErrorIs(t, err, provenance.ErrPath)
	_, err = provenance.Blame(t.Context(), m.replay(), path("stage.size"), replay.Moment{Seq: 7})
	require.ErrorIs(t, err, replay.ErrNoAddress)
	for _, text := range []string{"", "seq", "at.x", "/", ".x"} {
		_, err := provenance.ParsePath(text)
		require.ErrorIs(t, err, provenance.ErrPath, text)
	}
}

// instants returns every moment of a session up to one at which something happens, and
// that one.
func instants(t rapid.TB, m *memory, to replay.Moment) (list []replay.Moment) {
	r, ctx := m.replay(), context.Background()
	for seq := eventlog.Seq(1); seq <= to.Seq; seq++ {
		at, limit := replay.Moment{Seq: seq}, time.Hour
		if int(seq) < len(m.entries) {
			limit = m.entries[seq].At - m.entries[seq-1].At
		}
		for at.Offset <= limit && at.Compare(to) <= 0 {
			list = append(list, at)
			f, err := r.At(ctx, at)
			require.NoError(t, err)
			next, ok := f.State("performances").(replay.Performer).NextBoundary()
			if !ok {
				break
			}
			at.Offset = next - m.entries[seq-1].At
		}
	}
	if len(list) == 0 || list[len(list)-1] != to {
		list = append(list, to)
	}
	return list
}

// discrete reports whether a value changes only by events.
func discrete(path provenance.StatePath) bool {
	for _, member := range []string{".state", ".visible", ".layer", ".label"} {
		if strings.HasSuffix(path.String(), member) {
			return true
		}
	}
	return false
}

// TestBlameAgainstEveryMoment compares the history of a value with its values at every
// moment: each change has a setting at its moment, and the settings of a moment end with
// the value of that moment. Blame is the last of the history.
func TestBlameAgainstEveryMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawSession(t)
		to := drawMoment(t, m)
		moments := instants(t, m, to)
		checkHistory(t, m, drawPath(t), moments)
		for _, entity := range []string{"ann", "bob", "cup"} {
			checkHistory(t, m, "stage.entities."+entity+".state", moments)
			checkHistory(t, m, "stage.entities."+entity+".visible", moments)
		}
	})
}

func checkHistory(t *rapid.T, m *memory, text string, moments []replay.Moment) {
	path, err := provenance.ParsePath(text)
	require.NoError(t, err)
	ctx, r, to := context.Background(), m.replay(), moments[len(moments)-1]
	last := map[replay.Moment]provenance.Setting{}
	var newest *provenance.Setting
	for s, err := range provenance.History(ctx, r, path, to) {
		require.NoError(t, err)
		last[s.Moment], newest = s, &s
	}
	old := []byte("null")
	for _, at := range moments {
		f, err := r.At(ctx, at)
		require.NoError(t, err)
		v, _ := path.In(f)
		now, err := json.Marshal(v)
		require.NoError(t, err)
		if s, ok := last[at]; ok {
			set, err := json.Marshal(s.New)
			require.NoError(t, err)
			require.JSONEq(t, string(now), string(set), "at %v", at)
		} else if discrete(path) && string(old) != "null" {
			require.Equal(t, string(old), string(now), "%v changed at %v without a setting", path, at)
		}
		old = now
	}
	b, err := provenance.Blame(ctx, r, path, to)
	if newest == nil {
		require.ErrorIs(t, err, provenance.ErrNever)
		return
	}
	require.NoError(t, err)
	require.Equal(t, *newest, b.Setting)
}
