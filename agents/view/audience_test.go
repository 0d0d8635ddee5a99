package view_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

func parse(t *testing.T, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	return v
}

// A policy that joins others depends on all that any of them depends on, and sees within the
// tightest bound of all, or the widest of any.
func TestDependenciesOfJoinedPolicies(t *testing.T) {
	near, far, lost := view.Distance(5, false), view.Distance(9, false), view.Distance(7, true)
	cone, team := view.Cone(90, 6), view.Allies("hp")
	related := view.Relationships(view.RelationshipRule{Depth: 3})
	rivals := view.Fields(view.FieldRule{Fields: map[string]bool{"hp": false}, Of: view.OfRivals})
	for name, tt := range map[string]struct {
		policy view.Policy
		want   view.Dependencies
	}{
		"no distance":          {view.Distance(0, false), view.Dependencies{Radius: math.SmallestNonzeroFloat64}},
		"all of none":          {view.All(), view.Dependencies{Everything: true, Fixed: true}},
		"the nearer":           {view.All(far, near), view.Dependencies{Radius: 5}},
		"the nearer first":     {view.All(near, far), view.Dependencies{Radius: 5}},
		"the nearer of three":  {view.All(lost, far, near), view.Dependencies{Radius: 5}},
		"a cone in a circle":   {view.All(far, cone), view.Dependencies{Radius: 6, Fields: []string{"facing"}}},
		"a circle in a cone":   {view.All(cone, near), view.Dependencies{Radius: 5, Fields: []string{"facing"}}},
		"near of the team":     {view.All(team, near), view.Dependencies{Radius: 5, Fields: []string{"team"}}},
		"the related ones":     {view.All(team, related), view.Dependencies{Depth: 3, Graph: 3, Fixed: true, Fields: []string{"team"}}},
		"near of the related":  {view.All(related, near), view.Dependencies{Radius: 5, Graph: 3}},
		"itself":               {view.All(related, view.Self(), near), view.Dependencies{Graph: 3}},
		"all but":              {view.All(view.Everything(), rivals), view.Dependencies{Everything: true, Fixed: true, Mixed: true, Fields: []string{"team"}}},
		"any of none":          {view.Any(), view.Dependencies{Fixed: true, Mixed: true}},
		"the farther":          {view.Any(near, far), view.Dependencies{Radius: 9, Mixed: true}},
		"the farther and lost": {view.Any(far, lost), view.Dependencies{Radius: 9, Unplaced: true, Mixed: true}},
		"team or related":      {view.Any(team, related), view.Dependencies{Team: true, Depth: 3, Graph: 3, Fixed: true, Mixed: true, Fields: []string{"team"}}},
		"near or related":      {view.Any(related, near), view.Dependencies{Radius: 5, Depth: 3, Graph: 3, Mixed: true}},
		"anything":             {view.Any(near, view.Everything()), view.Dependencies{Everything: true, Radius: 5, Mixed: true}},
		"a talk":               {view.Conversation(), view.Dependencies{Depth: 1, Graph: 1, Fixed: true, Kinds: []string{"ParticipantJoined", "ParticipantLeft"}}},
	} {
		got := tt.policy.Dependencies()
		if len(got.Fields) == 0 {
			got.Fields = nil
		}
		if len(got.Kinds) == 0 {
			got.Kinds = nil
		}
		require.Equal(t, tt.want, got, name)
	}
}

// An audience names the agents near to what was written, of its team, closely enough related,
// and those that see all; and no others. It follows those that move.
func TestAudienceIsNear(t *testing.T) {
	w, err := world.ParseWorld(parse(t, `{
		"entities": {"near":{},"far":{},"red":{"team":"red"},"blue":{"team":"blue"},"one":{},"two":{},"three":{},"lost":{},"god":{},"box":{},"ball":{"team":"red"},"self":{},"talk":{}},
		"relationships": {"one":["two"],"two":["box"],"three":["one"]},
		"spatial_index": {"near":[0,0],"far":[100,0],"box":[3,0],"ball":[200,0],"red":[300,0],"blue":[400,0],"one":[500,0],"two":[500,1],"three":[500,2],"god":[600,0],"self":[700,0],"talk":[800,0]}}`))
	require.NoError(t, err)
	a := view.NewAudience()
	policies := map[string]view.Policy{
		"near": view.Distance(5, false), "far": view.Distance(5, false), "red": view.Allies(), "blue": view.Allies(), "lost": view.Distance(1, true),
		"one": view.Relationships(view.RelationshipRule{Depth: 2}), "two": view.Relationships(view.RelationshipRule{Depth: 1}), "three": view.Relationships(view.RelationshipRule{Depth: 2}),
		"god": view.Everything(), "self": view.Self(), "talk": view.Conversation(),
	}
	for agent, p := range policies {
		a.Add(w.ReadOnly, agent, view.NewCompiledPolicy(p, view.Options{}))
	}
	seq := uint64(0)
	follow := func(kind, source, payload string) []string {
		t.Helper()
		seq++
		e := world.Effect{Kind: kind, SourceID: source, GlobalSeq: seq, Payload: parse(t, payload)}
		c, err := w.Apply(e)
		require.NoError(t, err)
		return a.Follow(w.ReadOnly, e, c)
	}
	update := func(id string) []string {
		t.Helper()
		return follow("EntityUpdated", "", `{"entity_id":"`+id+`","fields":{"x":1}}`)
	}
	// An effect without a source has one that is nowhere.
	require.Equal(t, []string{"god", "lost", "near", "one", "two"}, update("box"), "two relations away from one, three from three")
	require.Equal(t, []string{"god", "lost", "red"}, update("ball"))
	require.Equal(t, []string{"god", "lost", "self"}, update("self"))
	require.Equal(t, []string{"far", "god"}, follow("Bang", "far", `{}`))
	require.Equal(t, []string{"god", "near", "self"}, follow("Bang", "self", `{"position":[5,0]}`), "at the edge of what is near")
	require.Equal(t, []string{"god", "self"}, follow("Bang", "self", `{"position":[6,0]}`))
	require.Equal(t, []string{"far", "god", "self"}, follow("Bang", "self", `{"to":[96,3]}`))
	require.Equal(t, []string{"god", "near", "one", "self", "two"}, follow("Bang", "self", `{"target_id":"box"}`))
	require.Equal(t, []string{"god", "self", "talk"}, follow("ParticipantJoined", "self", `{}`))

	require.Equal(t, []string{"far", "god", "near", "one", "two"}, follow("Move", "box", `{"to":[100,1]}`), "where it was and where it is")
	require.Equal(t, []string{"far", "god", "one", "two"}, follow("Bang", "box", `{}`))
	require.Equal(t, []string{"far", "god"}, follow("Move", "far", `{"to":[1000,0]}`))
	require.Equal(t, []string{"god", "one", "two"}, follow("Bang", "box", `{}`), "far has gone")
	require.Equal(t, []string{"far", "god", "self"}, follow("Bang", "self", `{"position":[1000,1]}`))

	require.Equal(t, []string{"blue", "god", "lost", "red"}, follow("EntityUpdated", "", `{"entity_id":"ball","fields":{"team":"blue"}}`), "of the team before and after")
	require.Equal(t, []string{"blue", "god", "lost"}, update("ball"))
	require.Equal(t, []string{"blue", "god", "lost", "red"}, follow("EntityUpdated", "", `{"entity_id":"red","fields":{"team":"blue"}}`))
	require.Equal(t, []string{"blue", "god", "lost", "red"}, update("ball"), "red is of the other team now")

	require.Equal(t, []string{"god", "lost", "one", "three", "two"}, follow("RelationshipRemoved", "", `{"from":"two","to":"box"}`))
	require.Equal(t, []string{"god", "lost"}, update("box"))
	a.Remove("one")
	require.Equal(t, []string{"god", "lost", "three", "two"}, update("two"), "one is no observer any more, and the way leads through it")
	a.Remove("three")
	a.Remove("nobody")
	require.Equal(t, []string{"god", "lost", "two"}, update("one"))
	a.Add(w.ReadOnly, "god", view.NewCompiledPolicy(view.Self(), view.Options{}))
	require.Equal(t, []string{"lost", "two"}, update("one"), "another policy of god")
}
