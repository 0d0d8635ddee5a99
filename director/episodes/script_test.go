package episodes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episodes"
)

func bundled(t testing.TB, name string) (*director.Episode, *episodes.Script) {
	t.Helper()
	text, lines, ok := episodes.Text(name)
	if !ok {
		t.Fatalf("no episode %q", name)
	}
	e, diagnostics := director.Parse(name, text)
	if err := diagnostics.Err(); err != nil {
		t.Fatal(err)
	}
	s, err := episodes.ParseScript(lines)
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

// Every episode that comes with the program has a script, which knows its beats
// and choices, and that of another name is none.
func TestBundled(t *testing.T) {
	for _, name := range episodes.Names() {
		e, s := bundled(t, name)
		if e.ID != name || s.Episode != name {
			t.Errorf("%s has the id %q and a script for %q", name, e.ID, s.Episode)
		}
		if err := s.Check(e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "interview.json", "../episodes/interview", "interview-before"} {
		if _, _, ok := episodes.Text(name); ok {
			t.Errorf("there is an episode %q", name)
		}
	}
}

// Whatever the user chooses, the script of the interview lands every beat that
// can land, by its deadline, and never says a line twice.
func TestInterviewLands(t *testing.T) {
	for _, salary := range []string{"range", "number", "later"} {
		for _, answer := range []string{"take", "leave"} {
			e, script := bundled(t, "interview")
			var s director.State
			said := map[string]bool{}
			apply := func(records []director.Record, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range records {
					if err := s.Apply(r.Word, r.Value); err != nil {
						t.Fatal(err)
					}
				}
			}
			apply(s.Start(e, director.Opening{}))
			landed := map[string]int{}
			for n := 1; n <= e.Budget; n++ {
				m := episodes.Moment{Turn: n, Said: func(words string) bool { return said[words] }, Flag: func(name string) bool {
					_, set := s.View().(map[string]any)["flags"].(map[string]any)[name]
					return set
				}}
				in := director.Input{Turn: n, Text: "Tell me more."}
				if a := s.Answer(); a != nil {
					in.Text, m.Choice = "", a.ChoicePoint+"/"+a.Choice
				}
				g, records, err := s.Guide(in)
				apply(records, err)
				m.Directive = g.Directive
				line := script.Line(m)
				if said[line] {
					t.Errorf("turn %d: %q is said twice", n, line)
				}
				said[line] = true
				out, records, err := s.Respond(director.Response{Turn: n, Text: line})
				apply(records, err)
				for _, q := range out.Questions {
					out, records, err = s.Judge(director.Verdict{Turn: n, Attempt: q.Attempt, Subject: q.Subject, Raw: script.Answer(line, q.Subject.ID)})
					apply(records, err)
				}
				for _, l := range out.Landed {
					landed[l.Beat] = n
				}
				if len(out.Insertions) > 0 {
					t.Errorf("turn %d: the line of a beat was forced", n)
				}
				for _, choice := range []string{salary, answer} {
					if out.Choice != nil {
						if _, records, err := s.Choose(out.Choice.ID, choice); err == nil {
							apply(records, nil)
						}
					}
				}
			}
			if landed["ask_salary"] != 4 || landed["the_offer"] != 8 || (landed["name_range"] == 5) != (salary == "range") {
				t.Errorf("with %s and %s these landed: %v", salary, answer, landed)
			}
		}
	}
}

// The first line that fits and was not said is said; then those without a
// condition begin anew.
func TestLine(t *testing.T) {
	s, err := episodes.ParseScript([]byte(`{"sajou": "script", "version": 1, "lines": [
		{"beat": "b", "urgency": "required", "say": "pressed"},
		{"beat": "b", "say": "told"},
		{"choice": "c/yes", "say": "chosen"},
		{"flag": "f", "turn": 3, "say": "flagged"},
		{"say": "one"}, {"say": "two", "judge": {"b": "YES"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for i, step := range []struct {
		turn   int
		beat   director.Urgency // of b, NotDue for none
		choice string
		flag   bool
		want   string
	}{
		{1, director.NotDue, "", true, "one"},
		{2, director.Suggested, "c/no", false, "told"},
		{3, director.Suggested, "c/yes", true, "chosen"},
		{3, director.Suggested, "c/yes", true, "flagged"},
		{3, director.Overdue, "c/yes", true, "pressed"},
		{3, director.Overdue, "c/yes", true, "two"},
		{4, director.Overdue, "c/yes", true, "one"},
		{5, director.NotDue, "", false, "two"},
	} {
		m := episodes.Moment{
			Turn: step.turn, Choice: step.choice,
			Flag: func(string) bool { return step.flag }, Said: func(words string) bool { return said[words] },
		}
		if step.beat != director.NotDue {
			m.Directive = &director.Directive{Beat: "b", Urgency: step.beat}
		}
		got := s.Line(m)
		if got != step.want {
			t.Errorf("step %d: %q, want %q", i+1, got, step.want)
		}
		said[got] = true
	}
	if s.Answer("two", "b") != "YES" || s.Answer("two", "c") != "NO" || s.Answer("three", "b") != "NO" {
		t.Error("a judge's answers are not those of the script")
	}
	var mute episodes.Script
	if mute.Line(episodes.Moment{Turn: 1}) == "" {
		t.Error("a script without lines says nothing at all")
	}
}

// What cannot be meant is refused, with its place.
func TestScriptRefused(t *testing.T) {
	begin := `{"sajou": "script", "version": 1, `
	for text, want := range map[string]string{
		``:                                     "line 1: unexpected end",
		`{}`:                                   "must say \"script\"",
		`{"sajou": "script"}`:                  "version 1",
		`{"sajou": "script", "version": 2}`:    "version 1",
		begin + `"lines": [{}]}`:               "line 1 of the script: it says nothing",
		begin + "\n\"lines\": [{\"say\": 3}]}": "line 2: ",
		begin + `"line": []}`:                  "unknown field",
		begin + `"lines": [{"say": "a"}, {"say": "b", "urgency": "soon"}]}`:                   "line 2 of the script: its urgency",
		begin + `"lines": [{"say": "b", "urgency": "overdue"}]}`:                              "without a beat",
		begin + `"lines": [{"say": "b", "choice": "a"}]}`:                                     "POINT/OPTION",
		begin + `"lines": [{"say": "b", "turn": -1}]}`:                                        "below 0",
		begin + `"lines": []} {}`:                                                             "after top-level value",
		begin + `"note": "` + strings.Repeat("a", episodes.MaxScript) + `"}`:                  "more than",
		begin + `"lines": [{"say": "b", "beat": "nobody"}]}`:                                  "no beat \"nobody\"",
		begin + `"lines": [{"say": "b"}, {"say": "b", "choice": "salary_question/nothing"}]}`: "line 2 of the script: the episode has no choice",
	} {
		s, err := episodes.ParseScript([]byte(text))
		if err == nil {
			e, _ := bundled(t, "interview")
			err = s.Check(e)
		}
		if !errors.Is(err, episodes.ErrScript) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

// A script that is read has something to say in every turn.
func FuzzScript(f *testing.F) {
	_, text, _ := episodes.Text("interview")
	f.Add(text, 3, "ask_salary", uint8(2), "salary_question/number", true)
	f.Add([]byte(`{"sajou": "script", "version": 1, "lines": [{"say": "a"}]}`), -1, "", uint8(0), "", false)
	f.Fuzz(func(t *testing.T, text []byte, turn int, beat string, urgency uint8, choice string, set bool) {
		s, err := episodes.ParseScript(text)
		if err != nil {
			if !errors.Is(err, episodes.ErrScript) {
				t.Errorf("%v is not ErrScript", err)
			}
			return
		}
		m := episodes.Moment{
			Turn: turn, Choice: choice, Directive: &director.Directive{Beat: beat, Urgency: director.Urgency(urgency % 4)},
			Flag: func(string) bool { return set }, Said: func(string) bool { return set },
		}
		if line := s.Line(m); strings.TrimSpace(line) == "" || s.Answer(line, beat) == "" {
			t.Errorf("it says %q", line)
		}
	})
}
