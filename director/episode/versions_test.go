package episode_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// A choice of the first beat is another than a legacy choice of the same name, in both
// directions. Legacy choices are kept, whatever triggers them.
func TestKeepsLegacyChoice(t *testing.T) {
	const options = `"choices": [{"id": "o", "label": "O."}]`
	beat := parse(t, `{"beats": [{"id": "b", "character_instruction": "x", "target_turn": 1, "detection_type": "automatic", "choice_point": {"id": "c", `+options+`}}]}`)
	second := parse(t, `{"beats": [{"id": "a", "character_instruction": "x", "target_turn": 1, "detection_type": "automatic"},
		{"id": "b", "character_instruction": "x", "target_turn": 1, "detection_type": "automatic", "choice_point": {"id": "c", `+options+`}}]}`)
	legacy := parse(t, `{"choice_points": [{"id": "c", "trigger": "turn:1", `+options+`}]}`)
	later := parse(t, `{"choice_points": [{"id": "other", "trigger": "turn:1", `+options+`}, {"id": "c", "trigger": "turn:2", `+options+`}]}`)
	none := parse(t, `{"id": "none"}`)
	for _, c := range []struct {
		of    *episode.Episode
		i     int
		other *episode.Episode
		want  bool
	}{
		{beat, 0, beat, true},
		{beat, 0, second, true},
		{second, 0, beat, true},
		{beat, 0, legacy, false},
		{legacy, 0, beat, false},
		{second, 0, legacy, false},
		{legacy, 0, second, false},
		{legacy, 0, legacy, true},
		{legacy, 0, later, true},
		{later, 1, legacy, true},
		{later, 0, legacy, false},
		{beat, 0, none, false},
		{legacy, 0, none, false},
	} {
		require.Equal(t, c.want, c.of.KeepsChoice(c.i, c.other), "%s choice %d in %s", c.of.Value(), c.i, c.other.Value())
	}
}

// The parts that a version lacks are listed by kind, in their order. A beat is found by its id,
// wherever it stands.
func TestDifferencesOfVersions(t *testing.T) {
	version := func(ids ...string) *episode.Episode {
		var beats, objectives, props, legacy []string
		for _, id := range ids {
			beats = append(beats, `{"id": "b`+id+`", "character_instruction": "x", "target_turn": 1, "detection_type": "automatic", "choice_point": {"id": "c`+id+`", "choices": [{"id": "o", "label": "O."}]}}`)
			objectives = append(objectives, `{"id": "g`+id+`", "success_condition": "turn:2"}`)
			props = append(props, `{"id": "p`+id+`", "name": "thing"}`)
			legacy = append(legacy, `{"id": "l`+id+`", "trigger": "turn:1", "choices": [{"id": "o", "label": "O."}]}`)
		}
		list := func(all []string) string { return "[" + strings.Join(all, ", ") + "]" }
		return parse(t, `{"beats": `+list(beats)+`, "objectives": `+list(objectives)+`, "props": `+list(props)+`, "choice_points": `+list(legacy)+`}`)
	}
	all, some, none := version("3", "1", "2"), version("2", "4"), version()
	require.Equal(t, episode.Dropped{}, all.Without(all))
	require.Equal(t, episode.Dropped{}, none.Without(all))
	require.Equal(t, episode.Dropped{
		Beats: []string{"b3", "b1"}, ChoicePoints: []string{"c3", "c1", "l3", "l1"}, Objectives: []string{"g3", "g1"}, Props: []string{"p3", "p1"},
	}, all.Without(some))
	require.Equal(t, episode.Dropped{Beats: []string{"b4"}, ChoicePoints: []string{"c4", "l4"}, Objectives: []string{"g4"}, Props: []string{"p4"}}, some.Without(all))
	require.Equal(t, episode.Dropped{
		Beats: []string{"b2", "b4"}, ChoicePoints: []string{"c2", "c4", "l2", "l4"}, Objectives: []string{"g2", "g4"}, Props: []string{"p2", "p4"},
	}, some.Without(none))

	require.Equal(t, []int{-1, -1, -1, 0}, []int{some.SameBeat(all, -1), some.SameBeat(all, 0), some.SameBeat(all, 1), some.SameBeat(all, 2)})
	require.Equal(t, []int{2, -1}, []int{all.SameBeat(some, 0), all.SameBeat(some, 1)})
	require.Equal(t, []int{0, 1, 2}, []int{all.SameBeat(all, 0), all.SameBeat(all, 1), all.SameBeat(all, 2)})
}
