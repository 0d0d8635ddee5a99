package graph_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/episode/graph"
)

// A graph shows the beats of an episode along its turns.
func ExampleGraph_Text() {
	e, diagnostics := episode.Parse("tea.json", []byte(`{
		"id": "tea", "turn_budget": 6,
		"beats": [
			{"id": "warm", "character_instruction": "Make them feel at home.", "target_turn": 1, "detection_criteria": "the guest is put at ease"},
			{"id": "offer", "character_instruction": "Offer tea.", "target_turn": 3, "deadline_turn": 5, "detection_type": "keyword", "detection_criteria": "tea", "requires_beat": "warm"}
		]}`))
	if err := diagnostics.Err(episode.ErrEpisode); err != nil {
		fmt.Println(err)
		return
	}
	g := graph.Of(e)
	fmt.Print(g.Text())
	// Output:
	// tea (6 turns)
	//        1   5
	//
	// warm   ==!     semantic
	// offer   .==!   keyword, after warm
}
