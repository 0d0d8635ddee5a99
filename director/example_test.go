package director_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// One beat, from guidance to the user's answer.
func ExampleState() {
	e, diagnostics := episode.Parse("tea.json", []byte(`{
		"id": "tea",
		"beats": [{
			"id": "offer", "character_instruction": "Offer them tea.",
			"target_turn": 1, "detection_type": "keyword", "detection_criteria": "tea",
			"choice_point": {"id": "drink", "prompt": "Well?", "choices": [
				{"id": "yes", "label": "Yes, please.", "sets_flag": "warm"},
				{"id": "no", "label": "No time."}]}}]}`))
	if diagnostics.Err(episode.ErrEpisode) != nil {
		fmt.Println(diagnostics)
		return
	}
	var s director.State
	// A program appends the records to its log before it applies them.
	apply := func(records []signal.Record, err error) {
		for _, r := range records {
			if err == nil {
				err = s.Apply(r.Word, r.Value)
			}
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	apply(s.Start(e, director.Opening{}))
	guidance, records, err := s.Guide(director.TurnInput{Turn: 1, Text: "It is cold."})
	apply(records, err)
	fmt.Println(guidance.Directive.Urgency.Label(), guidance.Directive.Instruction)

	outcome, records, err := s.Respond(director.Response{Turn: 1, Text: "Tea?"})
	apply(records, err)
	fmt.Println(outcome.Landed[0].Beat, outcome.Landed[0].Assurance, outcome.Choice.Prompt)

	choice, records, err := s.Choose("drink", "yes")
	apply(records, err)
	fmt.Println(choice.Message.Content, choice.Flag)
	// Output:
	// THIS TURN Offer them tea.
	// offer verified Well?
	// Yes, please. warm
}
