package director_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/signal"
)

func parse(t testing.TB, text string) *director.Episode {
	t.Helper()
	e, diagnostics := director.Parse("episode.json", []byte(text))
	if err := diagnostics.Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(director.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("episode.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("episode.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The schema refuses nothing that Parse accepts, and Parse nothing in silence:
// what the schema refuses has an error too.
func TestSchemaAgrees(t *testing.T) {
	s := schema(t)
	names, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(names) < 30 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	texts := map[string]string{
		"interview": read(t, "episodes/interview.json"), "before": read(t, "episodes/interview-before.json"),
		"no turn": `{"beats": [{"id": "a", "character_instruction": "x"}]}`, "no id": `{"beats": [{"target_turn": 1, "character_instruction": "x"}]}`,
		"empty label": `{"choice_points": [{"id": "a", "trigger": "turn:1", "choices": [{"id": "x", "label": " "}]}]}`,
		"doctrine":    `{"doctrine": ` + strings.Replace(read(t, "genres/mystery.json"), `"purpose"`, `"porpoise"`, 1) + `}`,
		"own":         `{"doctrine": ` + read(t, "genres/mystery.json") + `}`, "null": `{"genre": null, "beats": null}`, "list": `[]`,
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(archive.Files[0].Data)
	}
	refused := 0
	for name, text := range texts {
		_, diagnostics := director.Parse(name, []byte(text))
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			continue
		}
		if err := s.Validate(value); err != nil {
			refused++
			if diagnostics.Err() == nil {
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
	text := read(t, "episodes/interview.json")
	e := parse(t, text)
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := director.Compile(v)
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

// More errors than are listed do not make an episode pass.
func TestManyRemarks(t *testing.T) {
	text := `{` + strings.Repeat(`"x": 1, `, 1) + `"props": [` + strings.Repeat(`{"id": "", "name": ""},`, 300) + `7]}`
	if e, diagnostics := director.Parse("x", []byte(text)); e != nil || diagnostics.Err() == nil || len(diagnostics) != 101 {
		t.Errorf("%d diagnostics", len(diagnostics))
	}
	var unknown []string
	for i := range 300 {
		unknown = append(unknown, `"x`+strings.Repeat("i", i)+`": 0`)
	}
	text = `{` + strings.Join(unknown, ",") + `, "beats": [{"id": ""}]}`
	if e, diagnostics := director.Parse("x", []byte(text)); e != nil || diagnostics.Err() == nil {
		t.Error("an error behind a hundred warnings is lost")
	}
}

// The doctrines are complete, and unknown ones fall back.
func TestGenres(t *testing.T) {
	want := []string{
		"dark_romance", "enemies_to_lovers", "fake_dating", "forced_proximity", "medical_romance", "mystery",
		"psychological_thriller", "romantic_tension", "slice_of_life", "survival_thriller",
	}
	if got := director.Genres(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("Genres: %v", got)
	}
	for _, name := range want {
		g, diagnostics := director.ParseGenre(name, []byte(read(t, "genres/"+name+".json")))
		if g == nil || len(diagnostics) > 0 || g.Digest() != director.Doctrine(name).Digest() {
			t.Errorf("%s: %v", name, diagnostics)
		}
	}
	if director.Doctrine("Slice of-Life") == nil || director.Doctrine("western") != nil {
		t.Error("names are not normalised")
	}
	if e := parse(t, `{"genre": "western"}`); e.Doctrine.ID != "romantic_tension" {
		t.Errorf("western is played as %s", e.Doctrine.ID)
	}
	if g, diagnostics := director.ParseGenre("x", []byte(`{"id": "Not Snake", "mandatory": []}`)); g != nil || len(diagnostics) < 8 {
		t.Errorf("%v", diagnostics)
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
		if got := director.Pacing(c.n, c.budget); got != c.want {
			t.Errorf("turn %d of %d: %s, want %s", c.n, c.budget, got, c.want)
		}
	}
}

// The anchor is the first sentence, at most 100 characters of it.
func TestAnchor(t *testing.T) {
	for situation, want := range map[string]string{
		"":                           "",
		"A room. Another.":           "A room",
		"Version 1.5 of a room! Yes": "Version 1.5 of a room",
		"夜の部屋。雨が降る。":                 "夜の部屋",
		strings.Repeat("é", 150):     strings.Repeat("é", 100),
	} {
		var s director.State
		e := parse(t, `{"situation": "`+situation+`"}`)
		play(t, &s, must(s.Start(e, director.Opening{})))
		if g, err := s.Guidance(1); err != nil || g.Anchor != want {
			t.Errorf("%q: %q, %v", situation, g.Anchor, err)
		}
	}
}

// The first word decides, without what stands around it.
func TestParseVerdict(t *testing.T) {
	for raw, want := range map[string]director.Finding{
		"YES": director.Yes, "yes.": director.Yes, " **Yes** ": director.Yes, "- YES": director.Yes, "YES\nbecause": director.Yes,
		"Yes—she asks": director.Yes, "no,not yet": director.No, "– YES": director.Yes,
		"No": director.No, "\"no\", it did not": director.No,
		"": director.Unclear, "...": director.Unclear, "Yesterday": director.Unclear, "The answer is YES": director.Unclear,
		"YES/NO": director.Unclear, "N/A": director.Unclear, "oui": director.Unclear,
	} {
		if got := director.ParseVerdict(raw); got != want {
			t.Errorf("%q: %v, want %v", raw, got, want)
		}
	}
}

// The cards of the document become beats, and a person is told what to decide.
func TestMigrate(t *testing.T) {
	v, err := signal.ParseValue([]byte(read(t, "episodes/interview-before.json")))
	if err != nil {
		t.Fatal(err)
	}
	out, todo, err := director.Migrate(v)
	if err != nil {
		t.Fatal(err)
	}
	e, err := director.Compile(out)
	if err != nil {
		t.Fatal(err)
	}
	b := e.Beats[0]
	if b.ID != "salary_question_beat" || b.Target != 4 || b.Deadline != 6 || b.Description != "Morgan asks about your salary expectations" ||
		e.Choices[b.Choice].Prompt != "How do you respond?" || len(e.Choices[b.Choice].Options) != 3 || len(e.Choices) != 1 {
		t.Errorf("%s", out)
	}
	if len(todo) != 2 || todo[0].Pointer != "/beats/0/character_instruction" {
		t.Errorf("%v", todo)
	}
	again, todo, err := director.Migrate(out)
	if err != nil || again.String() != out.String() || len(todo) > 0 {
		t.Errorf("migrated twice: %v %v\n%s", err, todo, again)
	}
}
