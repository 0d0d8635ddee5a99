package director_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// sentences say what an event means; {name} stands for its member.
var sentences = map[string]string{
	episode.EpisodeStarted:     "the episode begins with the flags {flags}",
	episode.EpisodeRevised:     "the episode is revised; dropped: {dropped}",
	episode.TurnOpened:         "turn {turn} opens, its input: {input} {choice_point} {choice}",
	episode.ChoiceDeclined:     "{choice_point} is declined {cause}",
	episode.ResponseRecorded:   "response {attempt} of turn {turn} is recorded",
	episode.AttemptDropped:     "response {attempt} is dropped and its effects undone",
	episode.JudgementAsked:     "a judge is asked about {beat}{objective}",
	episode.VerdictRecorded:    "verdict on {beat}{objective}, {method}: {verdict} {matched}{raw}{failure}{again}{inactive}",
	episode.BeatHeld:           "{beat} was found in turn {heard_at_turn} and is held: this turn has its choice",
	episode.BeatLanded:         "{beat} lands, {assurance}, found in turn {heard_at_turn}",
	episode.BeatForced:         "the line of {beat} is inserted: {line}",
	episode.BeatMissed:         "{beat} is given up ({cause})",
	episode.DeadlineMissed:     "{beat} missed its deadline, turn {deadline}; eligible: {eligible}",
	episode.ChoiceOffered:      "the choice {choice_point} is offered, {mode}, after: {character_said}",
	episode.ChoiceSelected:     "of {choice_point} the user chooses {choice}: {label}",
	episode.FlagSet:            "the flag {flag} is set by {cause} {outside}",
	episode.FlagCleared:        "the flag {flag} is cleared by {cause} {outside}",
	episode.ObjectiveCompleted: "objective {objective} is completed ({cause})",
	episode.ObjectiveFailed:    "objective {objective} fails ({cause})",
	episode.EpisodeFailed:      "the episode fails ({cause})",
	episode.PropRevealed:       "{prop} is revealed ({cause})",
	episode.VisualTriggered:    "picture {index} of {of} is triggered",
	episode.SuggestionMade:     "the next episode suggested is {episode} ({cause})",
}

// TestStories plays the scripts in testdata/stories. Each begins with the rule
// that it shows. Lines of a script are
//
//	start [FLAG…]             begin episode.json
//	turn N [TEXT]             open a turn with the user's text, and guide the character
//	says TEXT                 the character responds
//	retry TEXT                record another attempt of the response
//	judge ID RAW              a model's verdict about a beat
//	late N ATTEMPT ID RAW     a verdict about an attempt that may be over
//	expire                    give up the awaited verdicts
//	choose POINT OPTION       the user chooses
//	prompt ID                 show the open question about a beat
//	section                   show the prompt section of the turn
//	beats, flags, removed     show the state of these
//	records                   show from now on the records in full
//	revise                    continue with revised.json
//	hears KIND NAME PAYLOAD   a signal or an effect is recorded
//
// A line that begins with an arrow shows a signal or a line to insert.
//
// After every line the state is folded again from the records alone, and restored
// from its bytes, and must be the same.
func TestStories(t *testing.T) {
	golden.Tell(t, "testdata/stories/*.txtar", func(t *testing.T, files map[string]string) string {
		e, diagnostics := episode.Parse("episode.json", []byte(files["episode.json"]))
		var out strings.Builder
		for _, d := range diagnostics {
			fmt.Fprintln(&out, d)
		}
		if e == nil {
			return out.String()
		}
		s := stage{t: t, out: &out, episode: e}
		if text, ok := files["revised.json"]; ok {
			s.revised, diagnostics = episode.Parse("revised.json", []byte(text))
			require.NoError(t, diagnostics.Err(episode.ErrEpisode))
		}
		for line := range strings.Lines(files["script"]) {
			if line = strings.TrimSpace(line); line != "" {
				s.play(line)
			}
		}
		return out.String()
	})
}

// Each of the rules that complete the beat contract has a story whose title begins
// with its number.
func TestEveryRuleHasAStory(t *testing.T) {
	const rules = 26
	for n := 1; n <= rules; n++ {
		names, err := filepath.Glob(fmt.Sprintf("testdata/stories/%02d*.txtar", n))
		if err != nil || len(names) == 0 {
			t.Errorf("rule %d: no story, %v", n, err)
		}
		for _, name := range names {
			if story := read(t, name); !strings.HasPrefix(story, fmt.Sprintf("%d. ", n)) {
				t.Errorf("%s does not begin with its rule", name)
			}
		}
	}
}

type stage struct {
	t       *testing.T
	out     *strings.Builder
	episode *episode.Episode
	revised *episode.Episode
	live    director.State
	again   director.State
	asked   []director.Question
	guided  director.Guidance
	records bool // are shown in full
}

func (s *stage) say(format string, args ...any) {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	fmt.Fprintf(s.out, "\t%s\n", text)
}

func (s *stage) play(line string) {
	fmt.Fprintln(s.out, line)
	verb, rest, _ := strings.Cut(line, " ")
	var records []signal.Record
	var err error
	var outcome director.ResponseResult
	switch verb {
	case "start":
		records, err = s.live.Start(s.episode, director.Opening{Flags: strings.Fields(rest)})
	case "turn":
		var n int
		if _, err := fmt.Sscan(rest, &n); err != nil {
			s.t.Fatal(err)
		}
		_, text, _ := strings.Cut(rest, " ")
		s.guided, records, err = s.live.Guide(director.TurnInput{Turn: n, Text: text})
	case "says", "retry":
		r := director.Response{Turn: s.live.Turn(), Text: rest}
		if verb == "says" {
			r.Attempt = 1
		}
		outcome, records, err = s.live.Respond(r)
		s.asked = outcome.Questions
	case "judge":
		id, raw, _ := strings.Cut(rest, " ")
		for _, q := range s.asked {
			if q.Subject.ID == id {
				outcome, records, err = s.live.Judge(director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Raw: raw})
			}
		}
	case "late":
		v := director.Verdict{Subject: episode.Subject{Kind: episode.AboutBeat}}
		if _, err := fmt.Sscan(rest, &v.Turn, &v.Attempt, &v.Subject.ID, &v.Raw); err != nil {
			s.t.Fatal(err)
		}
		outcome, records, err = s.live.Judge(v)
	case "expire":
		outcome, records, err = s.live.Expire("the time was up")
	case "choose":
		point, option, _ := strings.Cut(rest, " ")
		var c director.ChoiceResult
		c, records, err = s.live.Choose(point, option)
		if err == nil && c.Again {
			s.say("it was chosen before; the first result is returned")
		}
		if err == nil && c.Message != nil {
			s.say("the next line of the user: %s", c.Message.Content)
		}
	case "prompt":
		for _, q := range s.asked {
			if q.Subject.ID == rest {
				fmt.Fprint(s.out, q.Prompt)
			}
		}
	case "section":
		fmt.Fprint(s.out, s.guided.Section())
	case "beats":
		view := s.live.View().(map[string]any)
		for _, b := range s.live.Episode().Beats {
			beat := view["beats"].(map[string]any)[b.ID].(map[string]any)
			s.say("%s is %v; delivered in turn %v, detected in turn %v", b.ID, beat["status"], beat["delivered_at_turn"], beat["detected_at_turn"])
		}
	case "revise":
		records, err = s.live.Revise(s.revised)
	case "hears":
		words := strings.SplitN(rest, " ", 3)
		payload, parseErr := signal.ParseValue([]byte(words[2]))
		if parseErr != nil {
			s.t.Fatal(parseErr)
		}
		kind := episode.OfSignal
		if words[0] == "effect" {
			kind = episode.OfEffect
		}
		records, err = s.live.ExternalEvent(kind, words[1], payload, words[0]+":7")
		if listens := s.live.Listens(kind, words[1]); !listens && len(records) > 0 {
			s.t.Errorf("%s: records, although no rule listens", line)
		}
	case "records":
		s.records = true
	case "removed":
		s.say("%v", s.live.View().(map[string]any)["removed"])
	case "flags":
		s.say("%v", s.live.View().(map[string]any)["flag_causes"])
	default:
		s.t.Fatalf("unknown step %q", line)
	}
	if err != nil {
		s.say("refused: %v", err)
		if len(records) > 0 {
			s.t.Errorf("%s: refused with %d records", line, len(records))
		}
		for _, decided := range []error{
			director.ErrTurn, director.ErrAwaiting, director.ErrChoicePending, director.ErrNotFound, director.ErrNotOpen, director.ErrConflict,
			director.ErrRevision,
		} {
			if errors.Is(err, decided) {
				return
			}
		}
		s.t.Errorf("%s: an error that is not a decision: %v", line, err)
	}
	s.record(records)
	if verb == "turn" {
		if d := s.guided.Directive; d != nil {
			s.say("%s: %s [%s] %s. %s", s.guided.Pacing, d.Beat, d.Urgency.Label(), d.Instruction, d.Context)
		} else {
			s.say("%s: no beat", s.guided.Pacing)
		}
	}
	for _, in := range outcome.Insertions {
		s.say("→ to be said: %s", in.Line)
	}
}

// record applies records to the live state and to one that is made of records alone,
// and compares the two, and the live one with the state restored from its bytes.
func (s *stage) record(records []signal.Record) {
	s.t.Helper()
	for _, r := range records {
		if r.Word == episode.GuidanceIssued {
			if err := s.again.CheckGuidance(r.Value); err != nil {
				s.t.Error(err)
			}
		}
		for _, state := range []*director.State{&s.live, &s.again} {
			if err := state.Apply(r.Word, r.Value); err != nil {
				s.t.Fatal(err)
			}
		}
		if s.records {
			s.say("%s %s", r.Word, r.Value)
		} else if sentence, ok := sentences[r.Word]; ok {
			s.say("%s", tell(sentence, r.Value))
		}
		for _, cue := range s.live.Signals(r) {
			s.say("→ signal %s %s", cue.Type, cue.Payload)
		}
	}
	live := s.live.AppendState(nil)
	if diff := cmp.Diff(live, s.again.AppendState(nil)); diff != "" {
		s.t.Fatalf("replayed, the state differs: %s", diff)
	}
	restored, err := director.Restore(live)
	if err != nil {
		s.t.Fatal(err)
	}
	s.again = *restored
}

func tell(sentence string, v signal.Value) string {
	for {
		before, rest, ok := strings.Cut(sentence, "{")
		name, after, _ := strings.Cut(rest, "}")
		if !ok {
			return sentence
		}
		text := ""
		if m, ok := v.Get(name); ok {
			if text, ok = m.Text(); !ok {
				text = strings.NewReplacer("{", "(", "}", ")").Replace(m.String())
			}
			if name == "again" || name == "inactive" || name == "outside" {
				text = " (" + name + ")"
			}
		}
		sentence = before + strings.NewReplacer("{", "(", "}", ")").Replace(text) + after
	}
}
