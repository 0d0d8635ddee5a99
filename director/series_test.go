package director_test

import (
	"slices"
	"testing"

	"github.com/sajou-dev/sajou-go/director"
)

// What only a series tells: which flags are read, which ids stand twice, where
// suggestions lead. As long as one of it cannot be read, nothing of that is told.
func TestParseSeries(t *testing.T) {
	one := director.Source{File: "one", JSON: []byte(`{"id": "one", "next_episode": "two", "choice_points": [{"id": "c", "trigger": "turn:1",
		"choices": [{"id": "a", "label": "A", "sets_flag": "read"}, {"id": "b", "label": "B", "sets_flag": "unread"}]}]}`)}
	two := director.Source{File: "two", JSON: []byte(`{"id": "two", "next_episode": "three", "flags": ["read"], "flag_context_rules": [{"if_flag": "read", "inject": "x"}]}`)}
	broken := director.Source{File: "broken", JSON: []byte(`{`)}
	for _, tc := range []struct {
		sources []director.Source
		good    []bool
		want    []string
	}{
		{[]director.Source{one}, []bool{true}, []string{
			`one:2:54: warning: nothing reads the flag "read": no beat, objective or rule depends on it (/choice_points/0/choices/0/sets_flag)`,
			`one:2:102: warning: nothing reads the flag "unread": no beat, objective or rule depends on it (/choice_points/0/choices/1/sets_flag)`,
		}},
		{[]director.Source{one, two}, []bool{true, true}, []string{
			`one:2:102: warning: nothing reads the flag "unread": no beat, objective or rule depends on it (/choice_points/0/choices/1/sets_flag)`,
			`two:1:31: warning: no episode here is called "three" (/next_episode)`,
		}},
		{[]director.Source{two, two}, []bool{true, false}, []string{
			`two:1:31: warning: no episode here is called "three" (/next_episode)`,
			`two:1:8: error: there is another episode "two", in two (/id)`,
		}},
		{[]director.Source{one, broken}, []bool{true, false}, []string{`broken:1:2: error: the text ends where a key should be`}},
	} {
		episodes, diagnostics := director.ParseSeries(tc.sources...)
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
