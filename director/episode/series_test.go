package episode_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

// A series reports, by pointer, each place that sets a flag which no episode reads, and
// each that suggests an episode which the series does not have. It reports no others.
func TestSeriesPlaces(t *testing.T) {
	ends := func(flag, next string) string {
		return `"on_success": {"set_flag": "` + flag + `1", "suggest_episode": "` + next + `"}, "on_failure": {"set_flag": "` + flag + `2", "suggest_episode": "` + next + `"}`
	}
	text := func(p, o, b, c, next string) string {
		return `{"id": "one", "user_objective": "w", "success_condition": "turn:3", ` + ends(p, next) + `, "next_episode": "` + next + `",
			"objectives": [{"id": "other", "success_condition": "turn:2", ` + ends(o, next) + `}],
			"beats": [{"id": "b", "description": "d", "character_instruction": "i", "target_turn": 1, "detection_type": "automatic",
				"choice_point": {"id": "bc", "choices": [{"id": "x", "label": "X", "sets_flag": "` + b + `1"}, {"id": "y", "label": "Y", "sets_flag": "` + b + `2"}]}}],
			"choice_points": [{"id": "c", "trigger": "turn:1", "choices": [{"id": "x", "label": "X", "sets_flag": "` + c + `1"}, {"id": "y", "label": "Y", "sets_flag": "` + c + `2"}]}]}`
	}
	reads := `{"id": "two", "success_condition": "flag:p1", "user_objective": "w", "failure_condition": "flag:p2",
		"objectives": [{"id": "x", "success_condition": "flag:o1", "failure_condition": "flag:o2"}],
		"beats": [{"id": "b", "description": "d", "character_instruction": "i", "target_turn": 1, "detection_type": "automatic", "requires_flag": "b1"}],
		"flag_context_rules": [{"if_flag": "b2", "inject": "x"}, {"if_flag": "c1", "inject": "x"}],
		"signals": [{"on": "flagSet", "type": "x", "flag": "c2"}]}`
	places := func(text string) (pointers []string) {
		_, all := episode.ParseSeries(episode.SourceFile{File: "one", Text: []byte(text)}, episode.SourceFile{File: "two", Text: []byte(reads)})
		for _, d := range all[0] {
			if strings.Contains(d.Message, "nothing reads the flag") || strings.Contains(d.Message, "unknown episode") {
				pointers = append(pointers, d.Pointer)
			}
		}
		return pointers
	}
	require.ElementsMatch(t, []string{
		"/on_success/set_flag", "/on_failure/set_flag", "/objectives/0/on_success/set_flag", "/objectives/0/on_failure/set_flag",
		"/beats/0/choice_point/choices/0/sets_flag", "/beats/0/choice_point/choices/1/sets_flag",
		"/choice_points/0/choices/0/sets_flag", "/choice_points/0/choices/1/sets_flag",
		"/next_episode", "/on_success/suggest_episode", "/on_failure/suggest_episode",
		"/objectives/0/on_success/suggest_episode", "/objectives/0/on_failure/suggest_episode",
	}, places(text("un", "un", "un", "un", "nowhere")))
	require.Empty(t, places(text("p", "o", "b", "c", "two")))
}

// The members of the episode itself are an objective if it has a description or a condition;
// the flags that its effects set are then reported. Without either the effects are none.
func TestSeriesPrimaryObjective(t *testing.T) {
	const effects = `"on_success": {"set_flag": "s"}, "on_failure": {"set_flag": "f"}`
	unread := []string{"/on_success/set_flag", "/on_failure/set_flag"}
	for text, want := range map[string][]string{
		`{"id": "e", "user_objective": "w", ` + effects + `}`:                                                                                         unread,
		`{"id": "e", "success_condition": "turn:3", ` + effects + `}`:                                                                                 unread,
		`{"id": "e", "user_objective": "w", "success_condition": "turn:3", ` + effects + `}`:                                                          unread,
		`{"id": "e", ` + effects + `}`:                                                                                                                nil,
		`{"id": "e", "user_objective": "w", "success_condition": "turn:3", "flags": ["s"], ` + effects + `}`:                                          unread,
		`{"id": "e", "user_objective": "w", "success_condition": "turn:3", "flag_context_rules": [{"if_flag": "s", "inject": "x"}], ` + effects + `}`: {"/on_failure/set_flag"},
		`{"id": "e", "user_objective": "w", "success_condition": "turn:3", "signals": [{"on": "flagSet", "type": "x"}], ` + effects + `}`:             nil,
		`{"id": "e", "user_objective": "w", "success_condition": "turn:3", "signals": [{"on": "flagCleared", "type": "x"}], ` + effects + `}`:         nil,
		`{"id": "e", "user_objective": "w", "success_condition": "turn:3", "signals": [{"on": "turnOpened", "type": "x"}], ` + effects + `}`:          unread,
	} {
		_, all := episode.ParseSeries(episode.SourceFile{File: "e", Text: []byte(text)})
		var got []string
		for _, d := range all[0] {
			if strings.Contains(d.Message, "nothing reads the flag") {
				got = append(got, d.Pointer)
			}
		}
		require.Equal(t, want, got, text)
	}
}

// An episode that is refused reads whatever it may, so no flag is reported then, wherever it
// stands; several episodes may have no id.
func TestSeriesRefused(t *testing.T) {
	source := func(text string) episode.SourceFile { return episode.SourceFile{File: "e", Text: []byte(text)} }
	sets := source(`{"id": "sets", "user_objective": "w", "success_condition": "turn:3", "on_success": {"set_flag": "s", "suggest_episode": "nowhere"}}`)
	tells := source(`{"id": "tells", "signals": [{"on": "flagSet", "type": "x"}]}`)
	nameless := source(`{"user_objective": "w", "success_condition": "turn:3"}`)
	const unread, unknown = `nothing reads the flag "s": no beat, objective or rule depends on it`, `unknown episode "nowhere"`
	for _, tc := range []struct {
		sources []episode.SourceFile
		want    []string
		good    int
	}{
		{[]episode.SourceFile{sets}, []string{unread}, 1},
		{[]episode.SourceFile{sets, nameless}, []string{unread, unknown}, 2},
		{[]episode.SourceFile{nameless, sets, nameless}, []string{unread, unknown}, 3},
		{[]episode.SourceFile{sets, tells}, []string{unknown}, 2},
		{[]episode.SourceFile{tells, sets}, []string{unknown}, 2},
		{[]episode.SourceFile{sets, source(`{"id": 7}`)}, []string{"want a string, not an integer"}, 1},
		{[]episode.SourceFile{source(`{"id": 7}`), sets}, []string{"want a string, not an integer"}, 1},
		{[]episode.SourceFile{source(`{`), sets}, []string{"the text ends where a key should be"}, 1},
	} {
		episodes, all := episode.ParseSeries(tc.sources...)
		var got []string
		for _, ds := range all {
			for _, d := range ds {
				got = append(got, d.Message)
			}
		}
		require.ElementsMatch(t, tc.want, got)
		good := 0
		for _, e := range episodes {
			if e != nil {
				good++
			}
		}
		require.Equal(t, tc.good, good)
	}
}
