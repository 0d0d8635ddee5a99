package script_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/script"
	"github.com/sajou-dev/sajou-go/signal"
)

func bundled(t testing.TB, name string) (*episode.Episode, *script.Script) {
	t.Helper()
	text, lines, ok := script.Bundled(name)
	if !ok {
		t.Fatalf("no episode %q", name)
	}
	e, diagnostics := episode.Parse(name, text)
	require.NoError(t, diagnostics.Err(episode.ErrEpisode))
	s, err := script.Parse(lines)
	require.NoError(t, err)
	return e, s
}

// Every bundled episode has a script that names its beats and choices. An unknown name
// has no script.
func TestBundled(t *testing.T) {
	for _, name := range script.Names() {
		e, s := bundled(t, name)
		if e.ID != name || s.Episode != name {
			t.Errorf("%s has the id %q and a script for %q", name, e.ID, s.Episode)
		}
		assert.NoErrorf(t, s.Check(e), "%s", name)
	}
	for _, name := range []string{"", "interview.json", "../script/interview", "interview-before"} {
		if _, _, ok := script.Bundled(name); ok {
			t.Errorf("there is an episode %q", name)
		}
	}
}

// For all choices of the user, the script of the interview lands every beat that can
// land, by its deadline, and never repeats a line.
func TestInterviewLands(t *testing.T) {
	for _, salary := range []string{"range", "number", "later"} {
		for _, answer := range []string{"take", "leave"} {
			e, lines := bundled(t, "interview")
			var s director.State
			said := map[string]bool{}
			apply := func(records []signal.Record, err error) {
				t.Helper()
				require.NoError(t, err)
				for _, r := range records {
					require.NoError(t, s.Apply(r.Word, r.Value))
				}
			}
			apply(s.Start(e, director.Opening{}))
			landed := map[string]int{}
			for n := 1; n <= e.Budget; n++ {
				m := script.LineContext{Turn: n, Said: func(words string) bool { return said[words] }, Flag: func(name string) bool {
					_, set := s.View().(map[string]any)["flags"].(map[string]any)[name]
					return set
				}}
				in := director.TurnInput{Turn: n, Text: "Tell me more."}
				if a := s.ChoiceLine(); a != nil {
					in.Text, m.Choice = "", a.ChoicePoint+"/"+a.Choice
				}
				g, records, err := s.Guide(in)
				apply(records, err)
				m.Directive = g.Directive
				line := lines.Line(m)
				if said[line] {
					t.Errorf("turn %d: %q is said twice", n, line)
				}
				said[line] = true
				out, records, err := s.Respond(director.Response{Turn: n, Text: line})
				apply(records, err)
				for _, q := range out.Questions {
					out, records, err = s.Judge(director.Verdict{Turn: n, Attempt: q.Attempt, Subject: q.Subject, Raw: lines.Answer(line, q.Subject.ID)})
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

// A script gives the first matching line that it has not given yet; then it repeats the
// lines without a condition.
func TestLine(t *testing.T) {
	s, err := script.Parse([]byte(`{"sajou": "script", "version": 1, "lines": [
		{"beat": "b", "urgency": "required", "say": "pressed"},
		{"beat": "b", "say": "told"},
		{"choice": "c/yes", "say": "chosen"},
		{"flag": "f", "turn": 3, "say": "flagged"},
		{"say": "one"}, {"say": "two", "judge": {"b": "YES"}}]}`))
	require.NoError(t, err)
	said := map[string]bool{}
	for i, step := range []struct {
		turn   int
		beat   episode.Urgency // of b, NotDue for none
		choice string
		flag   bool
		want   string
	}{
		{1, episode.NotDue, "", true, "one"},
		{2, episode.Suggested, "c/no", false, "told"},
		{3, episode.Suggested, "c/yes", true, "chosen"},
		{3, episode.Suggested, "c/yes", true, "flagged"},
		{3, episode.Overdue, "c/yes", true, "pressed"},
		{3, episode.Overdue, "c/yes", true, "two"},
		{4, episode.Overdue, "c/yes", true, "one"},
		{5, episode.NotDue, "", false, "two"},
	} {
		m := script.LineContext{
			Turn: step.turn, Choice: step.choice,
			Flag: func(string) bool { return step.flag }, Said: func(words string) bool { return said[words] },
		}
		if step.beat != episode.NotDue {
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
	var mute script.Script
	if mute.Line(script.LineContext{Turn: 1}) == "" {
		t.Error("a script without lines says nothing at all")
	}
}

// Invalid scripts are refused with the place of the mistake.
func TestScriptRefused(t *testing.T) {
	begin := `{"sajou": "script", "version": 1, `
	for text, want := range map[string]string{
		``:                                     "line 1: unexpected end",
		`{}`:                                   "must be \"script\"",
		`{"sajou": "script"}`:                  "version 1",
		`{"sajou": "script", "version": 2}`:    "version 1",
		begin + `"lines": [{}]}`:               "line 1 of the script: say is empty",
		begin + "\n\"lines\": [{\"say\": 3}]}": "line 2: ",
		begin + `"line": []}`:                  "unknown field",
		begin + `"lines": [{"say": "a"}, {"say": "b", "urgency": "soon"}]}`:                   "line 2 of the script: its urgency",
		begin + `"lines": [{"say": "b", "urgency": "overdue"}]}`:                              "without a beat",
		begin + `"lines": [{"say": "b", "choice": "a"}]}`:                                     "POINT/OPTION",
		begin + `"lines": [{"say": "b", "turn": -1}]}`:                                        "below 0",
		begin + `"lines": []} {}`:                                                             "after top-level value",
		begin + `"note": "` + strings.Repeat("a", script.MaxSize) + `"}`:                      "more than",
		begin + `"lines": [{"say": "b", "beat": "nobody"}]}`:                                  "no beat \"nobody\"",
		begin + `"lines": [{"say": "b"}, {"say": "b", "choice": "salary_question/nothing"}]}`: "line 2 of the script: the episode has no choice",
	} {
		s, err := script.Parse([]byte(text))
		if err == nil {
			e, _ := bundled(t, "interview")
			err = s.Check(e)
		}
		if !errors.Is(err, script.ErrScript) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

// Every valid script has a line for every turn.
func FuzzScript(f *testing.F) {
	_, text, _ := script.Bundled("interview")
	f.Add(text, 3, "ask_salary", uint8(2), "salary_question/number", true)
	f.Add([]byte(`{"sajou": "script", "version": 1, "lines": [{"say": "a"}]}`), -1, "", uint8(0), "", false)
	f.Fuzz(func(t *testing.T, text []byte, turn int, beat string, urgency uint8, choice string, set bool) {
		s, err := script.Parse(text)
		if err != nil {
			if !errors.Is(err, script.ErrScript) {
				t.Errorf("%v is not ErrScript", err)
			}
			return
		}
		m := script.LineContext{
			Turn: turn, Choice: choice, Directive: &director.Directive{Beat: beat, Urgency: episode.Urgency(urgency % 4)},
			Flag: func(string) bool { return set }, Said: func(string) bool { return set },
		}
		if line := s.Line(m); strings.TrimSpace(line) == "" || s.Answer(line, beat) == "" {
			t.Errorf("it says %q", line)
		}
	})
}
