package explore_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
)

// An exploration plays an episode with every choice of options. It finds a beat that
// cannot be reached, because no option sets its flag.
func ExampleExploration() {
	e, diagnostics := episode.Parse("tea.json", []byte(`{
		"id": "tea",
		"beats": [
			{"id": "offer", "character_instruction": "Offer tea.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "tea",
			 "choice_point": {"id": "drink", "prompt": "Well?", "choices": [
				{"id": "yes", "label": "Yes, please.", "sets_flag": "warmed"}, {"id": "no", "label": "No time."}]}},
			{"id": "thank", "character_instruction": "Have them thank you.", "target_turn": 2, "detection_type": "automatic", "requires_flag": "warmed"},
			{"id": "leave", "character_instruction": "Show them out.", "target_turn": 2, "detection_type": "automatic", "requires_flag": "offended"}
		]}`))
	if err := diagnostics.Err(episode.ErrEpisode); err != nil {
		fmt.Println(err)
		return
	}
	x := explore.New(e, explore.Config{})
	for x.Step() {
	}
	coverage, err := x.Coverage()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("complete:", coverage.Complete)
	for _, beat := range coverage.Beats {
		fmt.Printf("%s lands: %t, first in turn %d\n", beat.Beat, beat.Landed.Seen(), beat.Landed.Turn)
	}
	for _, part := range coverage.Unreached {
		fmt.Println(part)
	}
	// Output:
	// complete: true
	// offer lands: true, first in turn 1
	// thank lands: true, first in turn 2
	// leave lands: false, first in turn 0
	// beat "leave" is never directed and never lands
	// flag "offended" is waited for, and nothing sets it
}
