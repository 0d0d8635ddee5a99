package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/session"
)

// Tea is an episode of two beats, the second with a choice.
const Tea = `{
	"id": "tea",
	"policy": {"judge_retries": 1},
	"beats": [
		{"id": "warm", "character_instruction": "Make them feel at home.", "target_turn": 1, "detection_type": "semantic", "detection_criteria": "the guest is put at ease"},
		{"id": "offer", "character_instruction": "Offer tea.", "target_turn": 2, "detection_type": "keyword", "detection_criteria": "tea", "requires_beat": "warm",
		 "choice_point": {"id": "drink", "prompt": "Well?", "choices": [{"id": "yes", "label": "Yes, please.", "sets_flag": "warmed"}, {"id": "no", "label": "No time."}]}}
	]
}`

// Authored compiles an episode.
func Authored(t testing.TB, text string) *episode.Episode {
	t.Helper()
	e, diagnostics := episode.Parse("episode.json", []byte(text))
	require.NoError(t, diagnostics.Err(episode.ErrEpisode))
	return e
}

// JudgeFunc is a judge that is a function.
type JudgeFunc func(ctx context.Context, q director.Question) (string, error)

// Judge implements [director.Judge].
func (f JudgeFunc) Judge(ctx context.Context, q director.Question) (model, answer string, err error) {
	answer, err = f(ctx, q)
	return "scripted", answer, err
}

// Says returns a judge that always gives the same answer.
func Says(answer string) JudgeFunc {
	return func(context.Context, director.Question) (string, error) { return answer, nil }
}

// Events tells the director's events of a session in a line each.
func Events(t *testing.T, ses *sajou.Session, words ...string) (lines []string) {
	t.Helper()
	for e, err := range ses.Entries(t.Context(), 1) {
		require.NoError(t, err)
		r, err := session.BeatOf(&e)
		if err != nil || !slices.Contains(words, r.Word) {
			continue
		}
		line := r.Word
		for _, name := range []string{"turn", "attempt", "role", "text", "beat", "choice", "flag", "verdict", "raw", "failure", "again", "inactive"} {
			if v, ok := r.Value.Get(name); ok {
				line += fmt.Sprintf(" %s=%s", name, v.AppendJSON(nil))
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Joined is an episode with signals of its own and rules for flags.
const Joined = `{
	"id": "door",
	"beats": [
		{"id": "knock", "character_instruction": "Have somebody knock.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "knock"},
		{"id": "open", "character_instruction": "Open.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "opens", "requires_flag": "unlocked"},
		{"id": "alarm", "character_instruction": "Run.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "runs", "requires_flag": "alarmed"}
	],
	"signals": [
		{"on": "beatLanded", "beat": "knock", "type": "play.knock", "payload": {"loud": true}},
		{"on": "flagSet", "flag": "unlocked", "type": "play.unlocked"}
	],
	"flag_rules": [
		{"on_effect": "Interact", "when": {"signal.target_id": {"equals": "lock"}}, "set": "unlocked"},
		{"on_signal": "error", "set": "alarmed"}
	]
}`

// Dinner is an episode of several beats and choices.
const Dinner = `{
	"id": "dinner", "opening_line": "You came.", "turn_budget": 8,
	"policy": {"judge_retries": 1, "spontaneous": true, "pending_choice": "free"},
	"user_objective": "Learn who invited you.", "success_condition": "semantic:the user knows who wrote",
	"beats": [
		{"id": "greet", "character_instruction": "Greet them.", "target_turn": 1, "detection_type": "automatic"},
		{"id": "toast", "character_instruction": "Raise your glass.", "target_turn": 2, "detection_criteria": "she proposes a toast",
		 "choice_point": {"id": "drink", "prompt": "Well?", "choices": [{"id": "yes", "label": "To us.", "sets_flag": "drank"}, {"id": "no", "label": "I don't drink."}]}},
		{"id": "letter", "character_instruction": "Show the letter.", "target_turn": 3, "deadline_turn": 3, "detection_type": "keyword", "detection_criteria": "letter",
		 "max_overdue_turns": 1, "on_miss": "force", "forced_line": "Here: the letter.",
		 "choice_point": {"id": "read", "prompt": "And?", "choices": [{"id": "aloud", "label": "Read it aloud."}, {"id": "burn", "label": "Burn it."}]}},
		{"id": "leave", "character_instruction": "Get up.", "target_turn": 5, "detection_criteria": "she leaves", "requires_beat": "letter"}
	]
}`

// table plays dinner, with a judge who knows what to answer by turn, attempt
// and subject, and is asked in that order.
type table struct {
	t        testing.TB
	ses      *sajou.Session
	director *live.Director
	before   []director.TranscriptLine
}

func (p *table) guide(turn int, text string) {
	p.t.Helper()
	if _, err := p.director.Guide(p.t.Context(), director.TurnInput{Turn: turn, Text: text}); err != nil {
		p.t.Fatal(err)
	}
	if text != "" {
		p.before = append(p.before, director.TranscriptLine{Role: "user", Text: text})
	}
}

// respond is one attempt; the last one is what was said.
func (p *table) respond(turn int, texts ...string) (out director.ResponseResult) {
	p.t.Helper()
	for i, text := range texts {
		var err error
		out, err = p.director.Respond(p.t.Context(), director.Response{Turn: turn, Attempt: i + 1, Text: text, Before: p.before})
		if err != nil || !out.Evaluated {
			p.t.Fatalf("turn %d: %+v, %v", turn, out, err)
		}
	}
	p.before = append(p.before, director.TranscriptLine{Role: "character", Text: texts[len(texts)-1]})
	for _, in := range out.Insertions {
		p.before = append(p.before, director.TranscriptLine{Role: "character", Text: in.Line})
	}
	return out
}

func (p *table) choose(point, option, label string) {
	p.t.Helper()
	if _, err := p.director.Choose(p.t.Context(), point, option); err != nil {
		p.t.Fatal(err)
	}
	p.before = append(p.before, director.TranscriptLine{Role: "user", Text: label})
}

// InTurn answers what it is asked about a response again and again in turn, and
// else NO.
func InTurn(answers map[string][]string) JudgeFunc {
	asked := map[string]int{}
	var mu sync.Mutex
	return func(_ context.Context, q director.Question) (string, error) {
		key := fmt.Sprintf("%d.%d %s", q.Turn, q.Attempt, q.Subject.ID)
		mu.Lock()
		defer mu.Unlock()
		list := answers[key]
		n := asked[key]
		asked[key]++
		if n >= len(list) {
			return "NO", nil
		}
		if failure, ok := strings.CutPrefix(list[n], "!"); ok {
			return "", errors.New(failure)
		}
		return list[n], nil
	}
}

// Memory opens an engine in memory and closes it at the end of the test.
func Memory(t testing.TB, cfg sajou.Config) *sajou.Engine {
	t.Helper()
	if cfg.FS == nil {
		cfg.FS = vfs.NewMem()
	}
	eng, err := sajou.Open("store", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	return eng
}

// BeginManual begins a session whose time only ticks move.
func BeginManual(t testing.TB, eng *sajou.Engine, name string) *sajou.Session {
	t.Helper()
	ses, err := eng.Begin(t.Context(), name, session.TimeManual)
	require.NoError(t, err)
	return ses
}

// PlayDinner plays an evening with everything in it: attempts, retries, a judge
// that fails, choices that are made and declined, a forced line, an objective.
func PlayDinner(t testing.TB, eng *sajou.Engine, judge director.Judge) *sajou.Session {
	t.Helper()
	ses := BeginManual(t, eng, "dinner")
	p := &table{t: t, ses: ses, director: ses.Director().With(judge)}
	require.NoError(t, p.director.Start(t.Context(), Authored(t, Dinner), director.Opening{Flags: []string{"late"}, Energy: "bold"}))
	p.before = []director.TranscriptLine{{Role: "character", Text: "You came."}}
	p.guide(1, "Hello.")
	p.respond(1, "Sit.", "Please sit down.")
	p.guide(2, "Thank you.")
	p.guide(2, "Thank you!") // the same words again
	p.before = slices.Delete(p.before, len(p.before)-2, len(p.before)-1)
	p.respond(2, "Wine?", "A toast, to you.")
	p.choose("drink", "yes", "To us.")
	p.guide(3, "")
	out := p.respond(3, "I have something for you.") // and the letter is forced
	if out.Choice == nil || out.Choice.ID != "read" {
		t.Fatalf("%+v", out)
	}
	p.guide(4, "What is it?") // instead of choosing
	p.respond(4, "You know whose hand it is.")
	p.guide(5, "Yours.")
	p.respond(5, "Goodbye.")
	return ses
}

// DinnerAnswers are the judge's answers in a play of [Dinner].
var DinnerAnswers = map[string][]string{
	"2.1 toast": {"Hard to say.", "NO"}, "2.2 toast": {"Well…", "YES."}, "2.2 primary": {"!HTTP 500", "NO"},
	"4.1 primary": {"YES"}, "5.1 leave": {"Maybe", "Maybe not"},
}
