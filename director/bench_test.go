package director_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/director"
)

func many(b *testing.B, n int) *director.Episode {
	var beats []string
	for i := range n {
		beats = append(beats, fmt.Sprintf(`{"id": "b%d", "character_instruction": "x", "target_turn": %d, "deadline_turn": %d, "detection_type": "keyword", "detection_criteria": "w%d"}`, i, i+3, i+5, i))
	}
	return parse(b, `{"turn_budget": 0, "policy": {"order": "urgent"}, "beats": [`+strings.Join(beats, ",")+`]}`)
}

// Guidance before a turn, with a thousand beats that are all looked at.
func BenchmarkGuidance(b *testing.B) {
	var s director.State
	play(b, &s, must(s.Start(many(b, 1000), director.Opening{})))
	for b.Loop() {
		if _, err := s.Guidance(1000); err != nil {
			b.Fatal(err)
		}
	}
}

// Folding the events of 100,000 turns.
func BenchmarkFold(b *testing.B) {
	const turns = 100_000
	var s director.State
	records := must(s.Start(many(b, 20), director.Opening{}))
	play(b, &s, records)
	for n := range turns {
		_, more, err := s.Guide(director.Input{Turn: n + 1, Text: "Go on."})
		play(b, &s, must(more, err))
		records = append(records, more...)
		_, more, err = s.Respond(director.Response{Turn: n + 1, Text: "I see."})
		play(b, &s, must(more, err))
		records = append(records, more...)
	}
	for b.Loop() {
		var s director.State
		play(b, &s, records)
	}
	b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
