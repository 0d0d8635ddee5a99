package world_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents/world"
)

// A trial that is undone leaves the world as it was, with its very revisions, and one that is
// done again leaves it as it became, however often and whatever the effects wrote.
func TestTrialBothWays(t *testing.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c"})
	kinds := []string{world.KindEntityCreated, world.KindEntityRemoved, world.KindEntityUpdated, world.KindRelationshipAdded, world.KindRelationshipRemoved, world.KindMove, "Unknown"}
	texts := map[string][]string{
		world.KindEntityCreated:       {`{"entity_id":"a","entity_data":{"team":"red"},"position":[1,1]}`, `{"entity_id":"b","entity_data":{"team":7}}`, `{"entity_id":"c"}`},
		world.KindEntityRemoved:       {`{"entity_id":"a"}`, `{"entity_id":"b"}`},
		world.KindEntityUpdated:       {`{"entity_id":"a","fields":{"team":"blue"}}`, `{"entity_id":"b","fields":{"x":1},"remove":["team"]}`},
		world.KindRelationshipAdded:   {`{"from":"a","to":"b"}`, `{"from":"a","to":"c","type":"t","mutual":true}`, `{"from":"b","to":"a","strength":2}`},
		world.KindRelationshipRemoved: {`{"from":"a","to":"b"}`, `{"from":"a","to":"c","mutual":true}`},
		world.KindMove:                {`{"to":[3,4]}`, `{"to":[0,0,1]}`},
		"Unknown":                     {`{}`},
	}
	rapid.Check(t, func(r *rapid.T) {
		w, err := world.ParseWorld(parse(t, `{"entities":{"a":{"team":"red"},"b":{}},"relationships":{"a":["b"],"b":["a"]},"spatial_index":{"a":[0,0]}}`))
		require.NoError(t, err)
		trial := w.Try()
		before := world.Dump(w.ReadOnly)
		tried := 0
		for n := range rapid.IntRange(0, 8).Draw(r, "effects") {
			kind := rapid.SampledFrom(kinds).Draw(r, "kind")
			plan, err := w.Plan(world.Effect{Kind: kind, SourceID: id.Draw(r, "source"), GlobalSeq: uint64(n + 1), SimTime: float64(n), Payload: parse(t, rapid.SampledFrom(texts[kind]).Draw(r, "payload"))})
			if err == nil {
				trial.Apply(plan)
				tried++
			}
		}
		after := world.Dump(w.ReadOnly)
		checkIndex(t, w)
		undone := false
		for range rapid.IntRange(0, 5).Draw(r, "swaps") {
			if tried == 0 {
				break
			}
			trial.Swap()
			undone = !undone
			want := after
			if undone {
				want = before
			}
			require.Equal(t, want, world.Dump(w.ReadOnly))
		}
		trial.End()
		require.Equal(t, before, world.Dump(w.ReadOnly))
	})
}

// checkIndex compares the indexes of a world with a scan of all that it holds.
func checkIndex(t *testing.T, w *world.World) {
	t.Helper()
	teams, referrers, neighbours := map[string][]string{}, map[string][]string{}, map[string][]string{}
	var unplaced []string
	for id := range w.Entities() {
		if team := w.Team(id); team != "" {
			teams[team] = append(teams[team], id)
		}
		if _, ok := w.Position(id); !ok {
			unplaced = append(unplaced, id)
		}
		ends := map[string]bool{}
		for _, r := range w.Relations(id) {
			neighbours[id] = append(neighbours[id], r.To)
			neighbours[r.To] = append(neighbours[r.To], id)
			if !ends[r.To] {
				referrers[r.To] = append(referrers[r.To], id)
			}
			ends[r.To] = true
		}
	}
	index := w.Index()
	for _, team := range []string{`"red"`, `"blue"`, "7", ""} {
		require.Equal(t, teams[team], slices.Sorted(index.Team(team)), "team %s", team)
	}
	require.Equal(t, unplaced, slices.Sorted(index.Unplaced()))
	for _, id := range []string{"a", "b", "c"} {
		require.Equal(t, referrers[id], slices.Sorted(index.Referrers(id)), "to %s", id)
		var found []string
		index.Neighbours(id, func(other string) { found = append(found, other) })
		slices.Sort(found)
		slices.Sort(neighbours[id])
		require.Equal(t, slices.Compact(neighbours[id]), slices.Compact(found), "around %s", id)
	}
}
