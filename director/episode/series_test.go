package episode_test

import (
	"slices"
	"testing"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// ParseSeries reports unread flags, duplicate ids and unknown next episodes. It reports
// none of these while an episode of the series cannot be read.
func TestParseSeries(t *testing.T) {
	one := episode.SourceFile{File: "one", Text: []byte(`{"id": "one", "next_episode": "two", "choice_points": [{"id": "c", "trigger": "turn:1",
		"choices": [{"id": "a", "label": "A", "sets_flag": "read"}, {"id": "b", "label": "B", "sets_flag": "unread"}]}]}`)}
	two := episode.SourceFile{File: "two", Text: []byte(`{"id": "two", "next_episode": "three", "flags": ["read"], "flag_context_rules": [{"if_flag": "read", "inject": "x"}]}`)}
	broken := episode.SourceFile{File: "broken", Text: []byte(`{`)}
	for _, tc := range []struct {
		sources []episode.SourceFile
		good    []bool
		want    []string
	}{
		{[]episode.SourceFile{one}, []bool{true}, []string{
			`one:1:55: warning: choice_points of an episode are deprecated (ADR-009, phase 3): make each a beat with a choice_point, as episode migrate does (/choice_points)`,
			`one:2:54: warning: nothing reads the flag "read": no beat, objective or rule depends on it (/choice_points/0/choices/0/sets_flag)`,
			`one:2:102: warning: nothing reads the flag "unread": no beat, objective or rule depends on it (/choice_points/0/choices/1/sets_flag)`,
		}},
		{[]episode.SourceFile{one, two}, []bool{true, true}, []string{
			`one:1:55: warning: choice_points of an episode are deprecated (ADR-009, phase 3): make each a beat with a choice_point, as episode migrate does (/choice_points)`,
			`one:2:102: warning: nothing reads the flag "unread": no beat, objective or rule depends on it (/choice_points/0/choices/1/sets_flag)`,
			`two:1:31: warning: unknown episode "three" (/next_episode)`,
		}},
		{[]episode.SourceFile{two, two}, []bool{true, false}, []string{
			`two:1:31: warning: unknown episode "three" (/next_episode)`,
			`two:1:8: error: an episode "two" exists already, in two (/id)`,
		}},
		{[]episode.SourceFile{one, broken}, []bool{true, false}, []string{
			`one:1:55: warning: choice_points of an episode are deprecated (ADR-009, phase 3): make each a beat with a choice_point, as episode migrate does (/choice_points)`,
			`broken:1:2: error: the text ends where a key should be`,
		}},
	} {
		episodes, diagnostics := episode.ParseSeries(tc.sources...)
		var got []string
		for i, ds := range diagnostics {
			if (episodes[i] != nil) != tc.good[i] {
				t.Errorf("%s: %v", tc.sources[i].File, episodes[i])
			}
			for _, d := range ds {
				got = append(got, d.String())
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("got %q", got)
		}
	}
}
