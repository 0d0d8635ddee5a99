package episode_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// Parse tells an author what is wrong with an episode, and where.
func ExampleParse() {
	e, diagnostics := episode.Parse("tea.json", []byte(`{
  "id": "tea",
  "beats": [
    {"id": "offer", "character_instruction": "Offer tea.", "target_turn": 2,
     "detection_criteria": "tea is offered", "requires_beat": "warm"}
  ]
}`))
	fmt.Println(e == nil)
	for _, d := range diagnostics {
		fmt.Println(d)
	}
	// Output:
	// true
	// tea.json:5:63: error: unknown beat "warm" (/beats/0/requires_beat)
}
