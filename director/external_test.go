package director_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/signal"
)

// A signal that no rule names costs nothing. Every signal of a session takes this path.
func TestHeardCostsNothing(t *testing.T) {
	var s director.State
	play(t, &s, must(s.Start(parse(t, read(t, "script/interview.json")), director.Opening{})))
	payload := value(t, `{"caller": "nobody"}`)
	turn := signal.Record{Word: episode.TurnEvaluated, Value: value(t, `{"turn": 1, "attempt": 1}`)}
	if n := testing.AllocsPerRun(100, func() {
		if s.Listens(episode.OfEffect, "telephone_rings") {
			t.Error("a signal's rule listens to effects")
		}
		if records, err := s.ExternalEvent(episode.OfSignal, "doorbell", payload, "signal:1"); err != nil || records != nil {
			t.Errorf("%v, %v", records, err)
		}
		if cues := s.Signals(turn); cues != nil {
			t.Errorf("%v", cues)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if !s.Listens(episode.OfSignal, "telephone_rings") {
		t.Error("no rule concerns the telephone")
	}
}

// The meter measures both versions of a revised episode, and an event recorded under
// the first counts for the second.
func TestMeterRevised(t *testing.T) {
	first := parse(t, `{"id": "e", "beats": [{"id": "a", "character_instruction": "a", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "alpha"},
		{"id": "b", "character_instruction": "b", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "beta"}]}`)
	second := parse(t, `{"id": "e", "title": "E", "beats": [{"id": "b", "character_instruction": "b", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "beta"},
		{"id": "a", "character_instruction": "a", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "alpha"}], "policy": {"spontaneous": true}}`)
	var s director.State
	records := must(s.Start(first, director.Opening{}))
	play(t, &s, records)
	records = append(records, turn(t, &s, 1, "Nothing.")...)
	more := must(s.Revise(second))
	play(t, &s, more)
	records = append(append(records, more...), turn(t, &s, 2, "Alpha, beta.")...)

	var m explore.Meter
	require.NoError(t, m.Session(slices.Values(records)))
	reports := map[episode.ContentDigest]explore.Report{}
	for _, r := range m.Reports() {
		reports[r.Digest] = r
	}
	old, revised := reports[first.Digest()], reports[second.Digest()]
	if old.Sessions != 1 || old.Turns != 1 || old.Delivery != (explore.Rate{N: 0, Of: 1}) {
		t.Errorf("before: %+v", old)
	}
	if revised.Sessions != 1 || revised.Turns != 1 || revised.Delivery != (explore.Rate{N: 2, Of: 2}) || revised.Beats[1].Landed.N != 1 {
		t.Errorf("after: %+v", revised)
	}
}
