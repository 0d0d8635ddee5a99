package director_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

func parse(t testing.TB, text string) *episode.Episode {
	t.Helper()
	e, diagnostics := episode.Parse("episode.json", []byte(text))
	require.NoError(t, diagnostics.Err(episode.ErrEpisode))
	return e
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// many returns an episode of n beats, each with its own target turn.
func many(b testing.TB, n int, policy string) *episode.Episode {
	var beats []string
	for i := range n {
		beats = append(beats, fmt.Sprintf(`{"id": "b%d", "character_instruction": "x", "target_turn": %d, "deadline_turn": %d, "detection_type": "keyword", "detection_criteria": "w%d"}`, i, i+3, i+5, i))
	}
	return parse(b, `{"turn_budget": 0, "policy": {`+policy+`}, "beats": [`+strings.Join(beats, ",")+`]}`)
}

// turn plays a turn.
func turn(t testing.TB, s *director.State, n int, said string) (records []signal.Record) {
	_, more, err := s.Guide(director.TurnInput{Turn: n, Text: "Go on."})
	play(t, s, must(more, err))
	records = append(records, more...)
	_, more, err = s.Respond(director.Response{Turn: n, Text: said})
	play(t, s, must(more, err))
	return append(records, more...)
}

// Guidance before a turn that examines all of a thousand beats. It must take less than
// a millisecond.
func BenchmarkGuidance(b *testing.B) {
	var s director.State
	play(b, &s, must(s.Start(many(b, 1000, `"order": "urgent"`), director.Opening{})))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Guidance(1000); err != nil {
			b.Fatal(err)
		}
	}
}

// A turn of an episode of a thousand beats, from guidance to evaluation.
func BenchmarkTurn(b *testing.B) {
	for name, policy := range map[string]string{"urgent": `"order": "urgent"`, "spontaneous": `"spontaneous": true`} {
		b.Run(name, func(b *testing.B) {
			e := many(b, 1000, policy)
			var start director.State
			play(b, &start, must(start.Start(e, director.Opening{})))
			for n := range 500 {
				turn(b, &start, n+1, fmt.Sprintf("I see. w%d.", n-2))
			}
			b.ReportAllocs()
			for b.Loop() {
				s := start
				turn(b, &s, 501, "I see. w498.")
			}
		})
	}
}

// Folding the events of 100,000 turns.
func BenchmarkFold(b *testing.B) {
	const turns = 100_000
	var s director.State
	records := must(s.Start(many(b, 20, `"order": "urgent"`), director.Opening{}))
	play(b, &s, records)
	for n := range turns {
		records = append(records, turn(b, &s, n+1, "I see.")...)
	}
	b.ReportAllocs()
	for b.Loop() {
		var s director.State
		play(b, &s, records)
	}
	b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
