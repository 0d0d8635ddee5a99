package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
)

// An agent receives a message unless its policy hides the field that keeps it: of its source
// for a public or a team message, and the agent's own for a private one.
func TestHiddenFieldsHideMessages(t *testing.T) {
	w, err := world.ParseWorld(parse(t, `{"entities":{"a":{"team":"red"},"b":{"team":"red"},"c":{"team":"blue"}}}`))
	require.NoError(t, err)
	hides := func(field string, of view.Of) view.Policy {
		return view.Fields(view.FieldRule{Fields: map[string]bool{field: false}, Of: of})
	}
	for name, tt := range map[string]struct {
		policy                view.Policy
		public, team, private bool
	}{
		"nothing hidden":     {view.Everything(), true, true, true},
		"public":             {hides("last_message", view.OfAll), false, true, true},
		"of the team":        {hides(world.FieldTeam, view.OfOthers), true, false, true},
		"private":            {hides(world.FieldPrivate, view.OfAll), true, true, false},
		"private, of others": {hides(world.FieldPrivate, view.OfOthers), true, true, true},
		"another field":      {hides("hp", view.OfAll), true, true, true},
	} {
		o := view.NewObserver("b", view.NewCompiledPolicy(tt.policy, view.Options{}), 0)
		o.Begin(w.ReadOnly, 0)
		receives := func(payload string) bool {
			return o.Receives(w.ReadOnly, world.Effect{Kind: world.KindSpeak, SourceID: "a", Payload: parse(t, payload)})
		}
		require.Equal(t, tt.public, receives(`{"text":"hi"}`), name)
		require.Equal(t, tt.team, receives(`{"text":"hi","channel":"team"}`), name)
		require.Equal(t, tt.private, receives(`{"text":"hi","channel":"private","target_id":"b"}`), name)
		require.False(t, receives(`{"text":"hi","channel":"private","target_id":"c"}`), name)
		require.False(t, receives(`{"text":"hi","channel":"radio"}`), name)
		require.True(t, o.Receives(w.ReadOnly, world.Effect{Kind: world.KindSpeak, SourceID: "b", Payload: parse(t, `{"channel":"radio"}`)}), "its own")
	}
}
