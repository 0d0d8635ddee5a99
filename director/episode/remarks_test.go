package episode_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// remarks returns the remarks about an episode, without its places in the text.
func remarks(text string) (all []string) {
	_, diagnostics := episode.Parse("e", []byte(text))
	for _, d := range diagnostics {
		all = append(all, fmt.Sprintf("%v %s: %s", d.Severity, d.Pointer, d.Message))
	}
	return all
}

// Each part of the wrong kind, and each text that is empty, has its remark.
func TestRemarksOnKinds(t *testing.T) {
	const beat = `"id": "b", "description": "d", "character_instruction": "x", "target_turn": 1`
	for _, c := range []struct {
		text string
		want []string
	}{
		{`{"beats": [{` + beat + `, "choice_point": 7}]}`, []string{"error /beats/0/choice_point: want a choice point, an object, not an integer"}},
		{`{"beats": [{` + beat + `, "choice_point": {"id": "p", "choices": [7]}}]}`, []string{
			"error /beats/0/choice_point: a choice point without choices", "error /beats/0/choice_point/choices/0: want a choice, an object, not an integer",
		}},
		{`{"beats": 7, "props": {}, "objectives": "x", "flags": true}`, []string{
			"error /beats: want an array, not an integer", "error /props: want an array, not an object", "error /objectives: want an array, not a string", "error /flags: want an array, not a boolean",
		}},
		{`{"objectives": [7]}`, []string{"error /objectives/0: want an objective, an object, not an integer"}},
		{`{"objectives": [{"id": "g", "success_condition": "keyword: , ,"}]}`, []string{"error /objectives/0/success_condition: no keyword is left; the condition could never hold"}},
		{`{"beats": [{` + beat + `, "detection_type": "keyword", "detection_criteria": " , "}]}`, []string{"error /beats/0/detection_criteria: no keyword is left; the beat could never land"}},
		{`{"beats": [{` + beat + `, "detection_type": "keyword"}]}`, []string{"error /beats/0: no keyword is left; the beat could never land"}},
		{`{"flags": ["f", "", " ", 7]}`, []string{"error /flags/1: an empty text", "error /flags/2: an empty text", "error /flags/3: want a string, not an integer"}},
		{`{"policy": {"spontaneous": 1, "order": 7}}`, []string{"error /policy/spontaneous: want true or false, not an integer", "error /policy/order: want a string, not an integer"}},
		{`{"policy": {"order": ""}}`, []string{`error /policy/order: "" is not one of authored, urgent`}},
		{`{"policy": []}`, []string{"error /policy: want a policy, an object, not an array"}},
		{`{"visuals": []}`, []string{"error /visuals: want visuals, an object, not an array"}},
		{`{"user_objective": "o", "success_condition": "turn:1", "on_success": 7}`, []string{"error /on_success: want an effect, an object, not an integer"}},
		{`{"props": [7]}`, []string{"error /props/0: want a prop, an object, not an integer"}},
		{`{"flag_context_rules": [7, {"if_flag": " ", "inject": "x"}]}`, []string{
			"error /flag_context_rules/0: want a rule, an object, not an integer", "error /flag_context_rules/1/if_flag: if_flag is empty",
		}},
		{`{"doctrine": 7}`, []string{"error /doctrine: want a doctrine, an object, not an integer"}},
		{`{"user_objective": "o", "success_condition": null, "title": null, "beats": null, "turn_budget": null}`, []string{`warning : objective "primary" has no success_condition: it is never completed`}},
		{`{"props": [{"id": null, "name": null}, {"id": "k", "name": "n", "requires_prop": "k"}]}`, []string{
			"error /props/0: id is missing", "error /props/0: name is missing", `error /props/1/requires_prop: no earlier prop has the id "k"`,
		}},
		{`7`, []string{"error : want an episode, an object, not an integer"}},
		{`{"sajou": "play"}`, []string{`error /sajou: want "episode"`}},
		{`{"version": 2, "id": 7}`, []string{"error /version: this program reads version 1 of the format"}},
		{`{"version": 0}`, []string{"error /version: this program reads version 1 of the format"}},
		{`{"version": "1"}`, []string{"error /version: this program reads version 1 of the format"}},
		{`{"version": 1}`, nil},
	} {
		require.ElementsMatch(t, c.want, remarks(c.text), c.text)
	}
	_, diagnostics := episode.ParseGenre("g", []byte(`{`))
	require.Len(t, diagnostics, 1)
	g, diagnostics := episode.ParseGenre("g", []byte(`[]`))
	require.Nil(t, g)
	require.Equal(t, "want a doctrine, an object, not an array", diagnostics[0].Message)
}

// A doctrine has six to eight mandatory and five to eleven forbidden rules, and a text for each
// energy and phase.
func TestGenreBounds(t *testing.T) {
	var mystery map[string]any
	require.NoError(t, json.Unmarshal([]byte(read(t, "genres/mystery.json")), &mystery))
	rules := func(n int) []string { return slices.Repeat([]string{"a rule"}, n) }
	for _, c := range []struct {
		member string
		n      int
		want   string
	}{
		{"mandatory", 5, "want 6 to 8 rules, not 5"},
		{"mandatory", 6, ""},
		{"mandatory", 8, ""},
		{"mandatory", 9, "want 6 to 8 rules, not 9"},
		{"forbidden", 4, "want 5 to 11 rules, not 4"},
		{"forbidden", 5, ""},
		{"forbidden", 11, ""},
		{"forbidden", 12, "want 5 to 11 rules, not 12"},
	} {
		before := mystery[c.member]
		mystery[c.member] = rules(c.n)
		text, err := json.Marshal(mystery)
		require.NoError(t, err)
		g, diagnostics := episode.ParseGenre("g", text)
		require.Equal(t, c.want == "", g != nil)
		if c.want != "" {
			require.Equal(t, []string{"/" + c.member + " " + c.want}, []string{diagnostics[0].Pointer + " " + diagnostics[0].Message})
		} else {
			require.Empty(t, diagnostics)
		}
		mystery[c.member] = before
	}
	for name, key := range map[string]string{
		"Slice of Life": "slice_of_life", "slice-of_life": "slice_of_life", "__SLICE  of--life_": "slice_of_life", "mystery": "mystery", "My stery": "",
	} {
		g := episode.GenreByName(name)
		require.Equal(t, key != "", g != nil, name)
		if g != nil {
			require.Equal(t, key, g.ID)
		}
	}
}

// A list of rules has 256 at most; the others are then not read.
func TestRulesAreBounded(t *testing.T) {
	for member, rule := range map[string]string{"signals": `{"on": "turnOpened", "type": "x"}`, "flag_rules": `{"on_signal": "s", "set": "f"}`} {
		for n, want := range map[int][]string{256: nil, 257: {"error /" + member + ": more than 256 rules"}} {
			text := `{"flags": ["f"], "` + member + `": [` + strings.Join(slices.Repeat([]string{rule}, n), ", ") + `]}`
			require.Equal(t, want, remarks(text), member)
		}
	}
}

// A rule about signals names what the episode has: an option of the choice point that it names,
// or of any.
func TestSubjectsOfSignalRules(t *testing.T) {
	const parts = `"user_objective": "o", "success_condition": "turn:1", "props": [{"id": "k", "name": "key"}],
		"choice_points": [{"id": "l", "trigger": "turn:1", "choices": [{"id": "only_l", "label": "L"}]}],
		"beats": [{"id": "b", "description": "d", "character_instruction": "x", "target_turn": 1, "choice_point": {"id": "p", "choices": [{"id": "only_p", "label": "P"}]}}]`
	for rule, want := range map[string]string{
		`"on": "beatLanded", "beat": "b"`:                                 "",
		`"on": "beatLanded", "beat": "p"`:                                 `/signals/0/beat: unknown beat "p"`,
		`"on": "choiceOffered", "beat": "b", "choice_point": "p"`:         "",
		`"on": "choiceOffered", "choice_point": "b"`:                      `/signals/0/choice_point: unknown choice point "b"`,
		`"on": "choiceSelected", "choice": "only_l"`:                      "",
		`"on": "choiceSelected", "choice_point": "l", "choice": "only_l"`: "",
		`"on": "choiceSelected", "choice_point": "p", "choice": "only_l"`: `/signals/0/choice: unknown choice "only_l"`,
		`"on": "choiceSelected", "choice": "none"`:                        `/signals/0/choice: unknown choice "none"`,
		`"on": "objectiveCompleted", "objective": "primary"`:              "",
		`"on": "objectiveCompleted", "objective": "b"`:                    `/signals/0/objective: unknown objective "b"`,
		`"on": "propRevealed", "prop": "k"`:                               "",
		`"on": "propRevealed", "prop": "b"`:                               `/signals/0/prop: unknown prop "b"`,
		`"on": "turnOpened", "prop": "k"`:                                 `/signals/0/prop: a rule on turnOpened takes no prop`,
		`"on": "turnOpened", "payload": null`:                             "",
		`"on": "turnOpened", "payload": {}`:                               "",
		`"on": "turnOpened", "payload": 7`:                                `/signals/0/payload: want a payload, an object, not an integer`,
		`"on": ""`:                                                        `/signals/0/on: on is empty`,
		`"on": "guidanceIssued"`:                                          `/signals/0/on: unknown transition "guidanceIssued"`,
	} {
		var got []string
		for _, r := range remarks(`{"signals": [{` + rule + `, "type": "x"}], ` + parts + `}`) {
			if message, isError := strings.CutPrefix(r, "error "); isError {
				got = append(got, message)
			}
		}
		if want == "" {
			require.Empty(t, got, rule)
		} else {
			require.Equal(t, []string{want}, got, rule)
		}
	}
}

// Rules that set and clear a flag without end are refused, by a way through any number of
// others; a way that ends, or leads to another flag, is allowed.
func TestCirclesOfRules(t *testing.T) {
	const circle = `the rules could set and clear the flag "a" without end, through their signals`
	for _, c := range []struct {
		signals, rules string
		want           []string
	}{
		{`{"on": "flagCleared", "flag": "a", "type": "x"}, {"on": "flagSet", "flag": "a", "type": "y"}`, `{"on_signal": "x", "set": "a"}, {"on_signal": "y", "clear": "a"}`, []string{"/flag_rules/1"}},
		{`{"on": "flagCleared", "flag": "a", "type": "x"}, {"on": "flagSet", "flag": "a", "type": "y"}`, `{"on_signal": "y", "clear": "a"}, {"on_signal": "x", "set": "a"}`, []string{"/flag_rules/0"}},
		{`{"on": "flagCleared", "flag": "a", "type": "x"}, {"on": "flagSet", "flag": "a", "type": "y"}`, `{"on_effect": "x", "set": "a"}, {"on_signal": "y", "clear": "a"}`, nil},
		{`{"on": "flagCleared", "flag": "a", "type": "x"}, {"on": "flagSet", "flag": "a", "type": "y"}`, `{"on_signal": "x", "set": "b"}, {"on_signal": "y", "clear": "a"}`, nil},
		{`{"on": "flagCleared", "flag": "b", "type": "x"}, {"on": "flagSet", "flag": "a", "type": "y"}`, `{"on_signal": "x", "set": "a"}, {"on_signal": "y", "clear": "a"}`, nil},
		{`{"on": "flagCleared", "flag": "a", "type": "x"}, {"on": "flagSet", "flag": "b", "type": "y"}`, `{"on_signal": "x", "set": "a"}, {"on_signal": "y", "clear": "a"}`, nil},
		// Through another flag.
		{
			`{"on": "flagCleared", "flag": "a", "type": "x"}, {"on": "flagSet", "flag": "b", "type": "y"}, {"on": "flagSet", "flag": "a", "type": "z"}`,
			`{"on_signal": "x", "set": "b"}, {"on_signal": "y", "set": "a"}, {"on_signal": "z", "clear": "a"}`,
			[]string{"/flag_rules/2"},
		},
		{
			`{"on": "flagCleared", "flag": "a", "type": "x"}, {"on": "flagSet", "flag": "b", "type": "y"}`,
			`{"on_signal": "x", "set": "b"}, {"on_signal": "y", "set": "a"}, {"on_signal": "z", "clear": "a"}`, nil,
		},
		// Signals of all flags, of one type twice.
		{`{"on": "flagCleared", "type": "x"}, {"on": "flagCleared", "type": "x"}, {"on": "flagSet", "type": "x"}`, `{"on_signal": "x", "set": "a"}, {"on_signal": "x", "clear": "a"}`, []string{"/flag_rules/1"}},
		{`{"on": "flagCleared", "type": "x"}, {"on": "flagSet", "type": "y"}`, `{"on_signal": "x", "set": "a"}, {"on_signal": "y", "clear": "a"}, {"on_signal": "y", "clear": "a"}, {"on_signal": "x", "set": "a"}`, []string{"/flag_rules/1", "/flag_rules/2"}},
	} {
		_, diagnostics := episode.Parse("e", []byte(`{"flags": ["a", "b"], "signals": [`+c.signals+`], "flag_rules": [`+c.rules+`]}`))
		var got []string
		for _, d := range diagnostics {
			if d.Message == circle {
				got = append(got, d.Pointer)
			}
		}
		require.Equal(t, c.want, got, "%s: %s", c.signals, c.rules)
		require.Equal(t, c.want != nil, diagnostics.Err(episode.ErrEpisode) != nil)
	}
}

// Keywords are found as whole words whatever their case, normal form, apostrophe and spaces are,
// or as they are inside of words.
func TestKeywordsFound(t *testing.T) {
	for _, c := range []struct {
		keyword, response string
		word, contains    bool
	}{
		{"pay", "You pay.", true, true},
		{"pay", "You PAY", true, true},
		{"pay", "Paying.", false, true},
		{"pay", "repay", false, true},
		{"pay", "pa y", false, false},
		{"pay", "(pay)", true, true},
		{"pay", "pay", true, true},
		{"pay", "", false, false},
		{"pay", "paypay pay", true, true},
		{"apple pie", "An apple  pie.", true, false},
		{"apple pie", "apple\npie", true, false},
		{"apple  pie", "an apple pie", true, false},
		{"apple pie", "apple pies", false, true},
		{"can't", "I CAN’T.", true, false},
		{"can’t", "I can't.", true, false},
		{"straße", "STRASSE", true, false},
		{"STRASSE", "die Straße", true, false},
		{"é", "e\u0301", true, false},
		{"", "x", false, true},
		{" ", "x y", false, true},
	} {
		require.Equal(t, c.word, episode.Occurs(c.keyword, c.response, false), "%q in %q", c.keyword, c.response)
		require.Equal(t, c.contains, episode.Occurs(c.keyword, c.response, true), "%q inside %q", c.keyword, c.response)
	}
}

// A response mentions a prop by its name, by its slug with spaces, and by each word of the name
// of four letters at least.
func TestNamesOfProps(t *testing.T) {
	e := parse(t, `{"props": [
		{"id": "a", "name": "the old silver key", "slug": "night-lamp_2"},
		{"id": "b", "name": "ax"},
		{"id": "c", "name": "éclair", "slug": "-_-"}]}`)
	found := func(i int, response string) string {
		word, ok := e.Props[i].FoundIn(e.Search(response))
		require.Equal(t, ok, word != "")
		return word
	}
	for i, cases := range []map[string]string{
		{"The old silver key!": "the old silver key", "silver": "silver", "key": "", "the old": "", "A night lamp 2": "night lamp 2", "night-lamp": "", "": ""},
		{"an ax": "ax", "axe": ""},
		{"Éclair": "éclair", "-": "", " ": ""},
	} {
		for response, want := range cases {
			require.Equal(t, want, found(i, response), response)
		}
	}
}

// The keywords of a subject are those of the beat or the objective, none of others.
func TestWordsOfSubjects(t *testing.T) {
	e := parse(t, `{"user_objective": "o", "success_condition": "keyword:win, , won", "objectives": [{"id": "b", "success_condition": "turn:1"}],
		"beats": [{"id": "b", "description": "d", "character_instruction": "x", "target_turn": 1, "detection_type": "keyword", "detection_criteria": " one,two ,, three "},
			{"id": "s", "description": "d", "character_instruction": "x", "target_turn": 1}]}`)
	words := func(kind episode.SubjectKind, id string) (all []string) {
		for _, w := range e.Words(episode.Subject{Kind: kind, ID: id}) {
			all = append(all, w.String())
		}
		return all
	}
	require.Equal(t, []string{"one", "two", "three"}, words(episode.AboutBeat, "b"))
	require.Equal(t, []string{"win", "won"}, words(episode.AboutObjective, "primary"))
	require.Empty(t, words(episode.AboutBeat, "s"))
	require.Empty(t, words(episode.AboutBeat, "primary"))
	require.Empty(t, words(episode.AboutObjective, "b"))
	require.Empty(t, words(episode.AboutObjective, "none"))
}

// Migration gives each beat a unique name of bounded length, and returns a remark for each
// decision that is left to the author.
func TestMigrateNames(t *testing.T) {
	point := func(id, trigger string) string {
		return `{"id": "` + id + `", "prompt": "They meet. And now?", "trigger": "` + trigger + `", "choices": [{"id": "o", "label": "O."}]}`
	}
	long := strings.Repeat("é", 60) // of two bytes each
	v, err := signal.ParseValue([]byte(`{"turn_budget": 5, "user_objective": "o", "success_condition": "turn:1",
		"beats": [{"id": "p_beat", "description": "d", "character_instruction": "x", "target_turn": 1}, {"id": "p_beat_", "description": "d", "character_instruction": "x", "target_turn": 1}],
		"choice_points": [` + strings.Join([]string{point("p", "turn:3"), point("kept", "after_objective:primary"), point(long, "turn:4"), point("q", "turn:1"), point("too", "after_objective:primary")}, ", ") + `]}`))
	require.NoError(t, err)
	out, todo, err := episode.Migrate(v)
	require.NoError(t, err)
	e, err := episode.Compile(out)
	require.NoError(t, err)
	var beats, choices, todos []string
	for _, b := range e.Beats {
		beats = append(beats, fmt.Sprint(b.ID, " ", b.Target, "-", b.Deadline))
	}
	for _, c := range e.Choices {
		choices = append(choices, fmt.Sprint(c.ID, " ", c.Beat))
	}
	for _, d := range todo {
		todos = append(todos, d.String())
	}
	require.Equal(t, []string{"p_beat 1-3", "p_beat_ 1-3", "p_beat__ 3-5", strings.Repeat("é", 50) + "_beat 4-6", "q_beat 1-3"}, beats)
	require.Equal(t, []string{"p 2", long + " 3", "q 4", "kept -1", "too -1"}, choices)
	const ask, judge = "tell the character what to do, in its own terms", "a judge is asked; if some words are enough, say keyword and name them"
	require.Equal(t, []string{
		"/beats/2/character_instruction: " + ask, "/beats/2/detection_criteria: " + judge,
		"/choice_points/0: it follows an objective: say in which turns its moment is wanted, or keep it",
		"/beats/3/character_instruction: " + ask, "/beats/3/detection_criteria: " + judge, "/beats/3/deadline_turn: turn 6 is beyond the budget of 5 turns",
		"/beats/4/character_instruction: " + ask, "/beats/4/detection_criteria: " + judge,
		"/choice_points/1: it follows an objective: say in which turns its moment is wanted, or keep it",
	}, todos)
	require.Equal(t, "Work towards this moment: They meet.", e.Beats[2].Instruction)
	_, _, err = episode.Migrate(signal.Null())
	require.ErrorIs(t, err, episode.ErrEpisode)
}
