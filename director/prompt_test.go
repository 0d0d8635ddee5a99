package director_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestPromptTakesTheCharactersWords lands a beat whose choice has {character_said} in its
// prompt. The offer, and the signal that a rule makes of it, have the character's words.
func TestPromptTakesTheCharactersWords(t *testing.T) {
	e, diagnostics := episode.Parse("tea.json", []byte(`{"id": "tea", "policy": {"keywords": "contains"},
		"beats": [{"id": "offer", "character_instruction": "Offer them tea.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "pay",
			"choice_point": {"id": "drink", "prompt": "“{character_said}” — and you?", "choices": [{"id": "no", "label": "No time."}]}}],
		"signals": [{"on": "choiceOffered", "type": "card"}]}`))
	require.Empty(t, diagnostics)
	var s director.State
	var offered []signal.Value
	apply := func(records []signal.Record, err error) {
		require.NoError(t, err)
		for _, r := range records {
			require.NoError(t, s.Apply(r.Word, r.Value))
			for _, cue := range s.Signals(r) {
				offered = append(offered, cue.Payload)
			}
		}
	}
	apply(s.Start(e, director.Opening{}))
	_, records, err := s.Guide(director.TurnInput{Turn: 1, Text: "Hello."})
	apply(records, err)
	result, records, err := s.Respond(director.Response{Turn: 1, Text: "Who is paying?"})
	apply(records, err)
	const want = "“Who is paying?” — and you?"
	require.Equal(t, want, result.Choice.Prompt)
	require.Equal(t, want, s.Pending().Prompt)
	require.Len(t, offered, 1)
	require.Equal(t, want, offered[0].TextOf("prompt"))
}
