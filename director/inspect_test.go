package director_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
)

// The response decides about the beats that may land and are searched for, and about
// the objectives that are: the directed beat alone unless beats may land on their own.
func TestUndecided(t *testing.T) {
	const beats = `"user_objective": "win", "success_condition": "semantic:the user wins", "beats": [
		{"id": "auto", "character_instruction": "x", "target_turn": 5, "detection_type": "automatic"},
		{"id": "word", "character_instruction": "x", "target_turn": 3, "detection_type": "keyword", "detection_criteria": "salt"},
		{"id": "sense", "description": "d", "character_instruction": "x", "target_turn": 1, "detection_type": "semantic"},
		{"id": "later", "character_instruction": "x", "target_turn": 3, "detection_type": "keyword", "detection_criteria": "salt", "requires_beat": "word"}]`
	beat := func(id string) episode.Subject { return episode.Subject{Kind: episode.AboutBeat, ID: id} }
	objective := episode.Subject{Kind: episode.AboutObjective, ID: "primary"}
	for policy, want := range map[string][]episode.Subject{
		`{"spontaneous": true}`:  {beat("word"), beat("sense"), objective},
		`{"spontaneous": false}`: {beat("sense"), objective},
	} {
		var s director.State
		assert.Empty(t, s.Undecided(), "no episode")
		e := parse(t, `{"policy": `+policy+`, `+beats+`}`)
		play(t, &s, must(s.Start(e, director.Opening{})))
		g, records, err := s.Guide(director.TurnInput{Turn: 1})
		play(t, &s, must(records, err))
		require.Equal(t, "sense", g.Directive.Beat)
		assert.Equal(t, want, s.Undecided(), policy)
	}
	// An automatic beat is decided by the state, also while it is directed.
	var s director.State
	e := parse(t, `{"beats": [{"id": "auto", "character_instruction": "x", "target_turn": 1, "detection_type": "automatic"}]}`)
	play(t, &s, must(s.Start(e, director.Opening{})))
	_, records, err := s.Guide(director.TurnInput{Turn: 1})
	play(t, &s, must(records, err))
	assert.Empty(t, s.Undecided())
}
