package episode_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

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

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(episode.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("episode.json", document))
	s, err := c.Compile("episode.json")
	require.NoError(t, err)
	return s
}

// The schema accepts every episode that Parse accepts, and Parse reports an error for
// every episode that the schema refuses.
func TestSchemaAgrees(t *testing.T) {
	s := schema(t)
	names, err := filepath.Glob("../testdata/*/*.txtar")
	own, _ := filepath.Glob("testdata/*/*.txtar")
	names = append(names, own...)
	if err != nil || len(own) == 0 || len(names) < 30 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	texts := map[string]string{
		"interview": read(t, "../script/interview.json"), "before": read(t, "../script/interview-before.json"),
		"no turn": `{"beats": [{"id": "a", "character_instruction": "x"}]}`, "no id": `{"beats": [{"target_turn": 1, "character_instruction": "x"}]}`,
		"empty label": `{"choice_points": [{"id": "a", "trigger": "turn:1", "choices": [{"id": "x", "label": " "}]}]}`,
		"doctrine":    `{"doctrine": ` + strings.Replace(read(t, "genres/mystery.json"), `"purpose"`, `"porpoise"`, 1) + `}`,
		"own":         `{"doctrine": ` + read(t, "genres/mystery.json") + `}`, "null": `{"genre": null, "beats": null}`, "list": `[]`,
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		require.NoError(t, err)
		texts[name] = string(archive.Files[0].Data)
	}
	refused := 0
	for name, text := range texts {
		_, diagnostics := episode.Parse(name, []byte(text))
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			continue
		}
		if err := s.Validate(value); err != nil {
			refused++
			if diagnostics.Err(episode.ErrEpisode) == nil {
				t.Errorf("%s: Parse accepts what the schema refuses: %v", name, err)
			}
		}
	}
	if refused < 6 {
		t.Errorf("the schema refuses only %d of the texts", refused)
	}
}

// Compile accepts what Parse accepts, and gives the same episode.
func TestCompileAgrees(t *testing.T) {
	text := read(t, "../script/interview.json")
	e := parse(t, text)
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	c, err := episode.Compile(v)
	if err != nil || c.Digest() != e.Digest() || c.Name() != "interview" || c.Word() != "episode" {
		t.Errorf("Compile: %v, %v", c, err)
	}
	if spaced := parse(t, " "+strings.ReplaceAll(text, "\n", "\n ")); spaced.Digest() != e.Digest() {
		t.Error("the digest depends on blanks")
	}
	if !strings.Contains(e.Briefing(), "You want: Find out") {
		t.Errorf("Briefing: %s", e.Briefing())
	}
}

// An episode is refused even if its errors come after the limit of the list.
func TestManyRemarks(t *testing.T) {
	text := `{` + strings.Repeat(`"x": 1, `, 1) + `"props": [` + strings.Repeat(`{"id": "", "name": ""},`, 300) + `7]}`
	if e, diagnostics := episode.Parse("x", []byte(text)); e != nil || diagnostics.Err(episode.ErrEpisode) == nil || len(diagnostics) != 101 {
		t.Errorf("%d diagnostics", len(diagnostics))
	}
	var unknown []string
	for i := range 300 {
		unknown = append(unknown, `"x`+strings.Repeat("i", i)+`": 0`)
	}
	text = `{` + strings.Join(unknown, ",") + `, "beats": [{"id": ""}]}`
	if e, diagnostics := episode.Parse("x", []byte(text)); e != nil || diagnostics.Err(episode.ErrEpisode) == nil {
		t.Error("an error behind a hundred warnings is lost")
	}
}

// The embedded doctrines are complete, and an unknown genre falls back to the default.
func TestGenres(t *testing.T) {
	want := []string{
		"dark_romance", "enemies_to_lovers", "fake_dating", "forced_proximity", "medical_romance", "mystery",
		"psychological_thriller", "romantic_tension", "slice_of_life", "survival_thriller",
	}
	if got := episode.Genres(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("Genres: %v", got)
	}
	for _, name := range want {
		g, diagnostics := episode.ParseGenre(name, []byte(read(t, "genres/"+name+".json")))
		if g == nil || len(diagnostics) > 0 || g.Digest() != episode.GenreByName(name).Digest() {
			t.Errorf("%s: %v", name, diagnostics)
		}
	}
	if episode.GenreByName("Slice of-Life") == nil || episode.GenreByName("western") != nil {
		t.Error("names are not normalised")
	}
	if e := parse(t, `{"genre": "western"}`); e.Doctrine.ID != "romantic_tension" {
		t.Errorf("western is played as %s", e.Doctrine.ID)
	}
	if g, diagnostics := episode.ParseGenre("x", []byte(`{"id": "Not Snake", "mandatory": []}`)); g != nil || len(diagnostics) < 8 {
		t.Errorf("%v", diagnostics)
	}
}

// The trigger of a legacy choice is a decimal turn.
func TestTriggerTurn(t *testing.T) {
	for trigger, want := range map[string]int{"turn:1": 1, "turn: 9": 9, "turn:10": 10, "turn:19": 19, "turn:128": 128} {
		e := parse(t, `{"choice_points": [{"id": "a", "trigger": "`+trigger+`", "choices": [{"id": "x", "label": "X"}]}]}`)
		require.Equal(t, want, e.Choices[0].Trigger.Turn, trigger)
	}
	for _, trigger := range []string{"turn:0", "turn:", "turn:-1", "turn:0x10", "turn:1e1"} {
		_, diagnostics := episode.Parse("x", []byte(`{"choice_points": [{"id": "a", "trigger": "`+trigger+`", "choices": [{"id": "x", "label": "X"}]}]}`))
		require.Error(t, diagnostics.Err(episode.ErrEpisode), trigger)
	}
}

// Phases of pacing at their exact bounds.
func TestPacing(t *testing.T) {
	for _, c := range []struct {
		n, budget int
		want      string
	}{
		{1, 10, "establish"},
		{2, 10, "develop"},
		{3, 20, "develop"},
		{2, 20, "establish"},
		{4, 10, "escalate"},
		{7, 10, "peak"},
		{9, 10, "resolve"},
		{99, 10, "resolve"},
		{1, 0, "establish"},
		{2, 0, "develop"},
		{5, 0, "escalate"},
		{10, 0, "peak"},
		{15, 0, "resolve"},
	} {
		if got := episode.Pacing(c.n, c.budget); got != c.want {
			t.Errorf("turn %d of %d: %s, want %s", c.n, c.budget, got, c.want)
		}
	}
}

// Migrate makes beats of the choice points of the beat contract, and lists the decisions
// that are left to the author.
func TestMigrate(t *testing.T) {
	v, err := signal.ParseValue([]byte(read(t, "../script/interview-before.json")))
	require.NoError(t, err)
	out, todo, err := episode.Migrate(v)
	require.NoError(t, err)
	e, err := episode.Compile(out)
	require.NoError(t, err)
	b := e.Beats[0]
	if b.ID != "salary_question_beat" || b.Target != 4 || b.Deadline != 6 || b.Description != "Morgan asks about your salary expectations" ||
		e.Choices[b.Choice].Prompt != "How do you respond?" || len(e.Choices[b.Choice].Options) != 3 || len(e.Choices) != 1 {
		t.Errorf("%s", out)
	}
	if len(todo) != 2 || todo[0].Pointer != "/beats/0/character_instruction" {
		t.Errorf("%v", todo)
	}
	again, todo, err := episode.Migrate(out)
	if err != nil || again.String() != out.String() || len(todo) > 0 {
		t.Errorf("migrated twice: %v %v\n%s", err, todo, again)
	}
}

// A prompt of one sentence is the moment, and the question is the common one; a prompt
// that only asks is the question, and the moment is named after the beat.
func TestMigratePrompts(t *testing.T) {
	const old = "Morgan asks about your salary expectations. How do you respond?"
	text := read(t, "../script/interview-before.json")
	require.Contains(t, text, old)
	for _, tt := range []struct {
		prompt, description, ask string
		todo                     int
	}{
		{old, "Morgan asks about your salary expectations", "How do you respond?", 2},
		{"Morgan asks about money.", "Morgan asks about money", "How do you respond?", 3},
		{"Morgan asks about money", "Morgan asks about money", "How do you respond?", 3},
		{"What do you say?", "", "What do you say?", 2},
		{". What do you say?", "", "What do you say?", 2},
		{"Morgan waits. And now?", "Morgan waits", "And now?", 2},
	} {
		v, err := signal.ParseValue([]byte(strings.Replace(text, old, tt.prompt, 1)))
		require.NoError(t, err)
		out, todo, err := episode.Migrate(v)
		require.NoError(t, err, tt.prompt)
		e, err := episode.Compile(out)
		require.NoError(t, err, tt.prompt)
		b := e.Beats[0]
		if tt.description == "" {
			tt.description = "The moment of salary_question_beat comes"
		}
		if b.Description != tt.description || e.Choices[b.Choice].Prompt != tt.ask || len(todo) != tt.todo {
			t.Errorf("%q: %q, asks %q, %d left: %v", tt.prompt, b.Description, e.Choices[b.Choice].Prompt, len(todo), todo)
		}
	}
}

// A choice is kept if the other version opens it at the same beat, wherever that beat
// stands, or at none in both.
func TestKeepsChoice(t *testing.T) {
	version := func(beats ...string) *episode.Episode {
		v, err := signal.ParseValue([]byte(`{"id":"e","title":"t","character":{"name":"c","system":"s"},"beats":[` + strings.Join(beats, ",") + `]}`))
		require.NoError(t, err)
		e, err := episode.Compile(v)
		require.NoError(t, err)
		return e
	}
	plain := func(id string) string {
		return `{"id":"` + id + `","description":"d","character_instruction":"i","target_turn":1,"deadline_turn":3,"detection_type":"keyword","detection_criteria":"w"}`
	}
	asks := func(id, choice string) string {
		return strings.TrimSuffix(plain(id), "}") + `,"choice_point":{"id":"` + choice + `","prompt":"p","choices":[{"id":"y","label":"Y"},{"id":"n","label":"N"}]}}`
	}
	first := version(asks("a", "c"), plain("b"))
	for _, tt := range []struct {
		name  string
		other *episode.Episode
		want  bool
	}{
		{"the same", first, true},
		{"behind another beat", version(plain("b"), asks("a", "c")), true},
		{"at another beat", version(plain("a"), asks("b", "c")), false},
		{"of another name", version(asks("a", "d"), plain("b")), false},
	} {
		if got := first.KeepsChoice(0, tt.other); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if got := tt.other.KeepsChoice(0, first); got != tt.want {
			t.Errorf("%s, from there: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// An id, a list and a turn can be as long as their bounds say, and no longer; so can the
// beats that a migration makes.
func TestBounds(t *testing.T) {
	refused := func(text string) string {
		_, diagnostics := episode.Parse("e.json", []byte(text))
		if err := diagnostics.Err(episode.ErrEpisode); err != nil {
			return err.Error()
		}
		return ""
	}
	beat := func(id string, turn int) string {
		return fmt.Sprintf(`{"id": %q, "character_instruction": "x", "target_turn": %d, "detection_type": "automatic"}`, id, turn)
	}
	list := func(n int) string {
		beats := make([]string, n)
		for i := range beats {
			beats[i] = beat(fmt.Sprint("b", i), 1)
		}
		return strings.Join(beats, ", ")
	}
	for _, more := range []int{0, 1} {
		for bound, text := range map[string]string{
			"longer than 200 bytes":  `{"turn_budget": 0, "beats": [` + beat(strings.Repeat("a", episode.MaxID+more), 1) + `]}`,
			"more than 4096":         `{"turn_budget": 0, "beats": [` + list(episode.MaxItems+more) + `]}`,
			"more than 1073741824":   `{"turn_budget": 0, "beats": [` + beat("a", episode.MaxTurn-2+3*more) + `]}`,
			`want "episode"`:         `{"sajou": "` + episode.Word + strings.Repeat("x", more) + `"}`,
			"deadline_turn is less":  `{"turn_budget": 0, "beats": [{"id": "a", "character_instruction": "x", "target_turn": 4, "deadline_turn": ` + fmt.Sprint(4*(1-more)-more) + `, "detection_type": "automatic"}]}`,
			"judge_retries is less ": `{"policy": {"judge_retries": ` + fmt.Sprint(-more) + `}}`,
		} {
			if got := refused(text); more == 0 {
				require.Empty(t, got, bound)
			} else {
				require.NotEmpty(t, got, bound)
			}
		}
		v, err := signal.ParseValue([]byte(`{"turn_budget": 0, "beats": [` + list(episode.MaxItems-1+more) + `],
			"choice_points": [{"id": "p", "prompt": "Well?", "trigger": "turn:1", "choices": [{"id": "o", "label": "O"}]}]}`))
		require.NoError(t, err)
		_, _, err = episode.Migrate(v)
		require.Equal(t, more == 0, err == nil, "%v", err)
	}
}
