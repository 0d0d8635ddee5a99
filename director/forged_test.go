package director_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
)

// scene is an episode with one of everything. The first beat has a choice, so that index
// 0 is a beat, a choice and an objective like the others.
const scene = `{"id": "scene", "turn_budget": 4, "flags": ["given"], "success_condition": "flag:won", "user_objective": "Win.",
	"objectives": [{"id": "judged", "success_condition": "semantic:it is kind"}],
	"props": [{"id": "key", "name": "key"}, {"id": "box", "name": "box", "requires_prop": "key"}],
	"policy": {"judge_retries": 1, "pending_choice": "free", "spontaneous": true},
	"beats": [
		{"id": "ask", "description": "d", "character_instruction": "i", "target_turn": 1, "deadline_turn": 2, "detection_type": "keyword", "detection_criteria": "tea",
			"choice_point": {"id": "drink", "choices": [{"id": "tea", "label": "Tea.", "sets_flag": "hot"}, {"id": "milk", "label": "Milk.", "clears_flag": "given"}]}},
		{"id": "look", "description": "d", "character_instruction": "i", "target_turn": 1, "deadline_turn": 3, "detection_type": "semantic", "detection_criteria": "she looks"},
		{"id": "also", "description": "d", "character_instruction": "i", "target_turn": 1, "deadline_turn": 3, "detection_type": "keyword", "detection_criteria": "sugar",
			"choice_point": {"id": "sweet", "choices": [{"id": "yes", "label": "Yes."}, {"id": "no", "label": "No."}]}},
		{"id": "later", "description": "d", "character_instruction": "i", "target_turn": 2, "detection_type": "automatic", "requires_beat": "look"}],
	"choice_points": [{"id": "card", "trigger": "turn:2", "choices": [{"id": "a", "label": "A."}, {"id": "b", "label": "B."}]}]}`

// scenes are states of the scene, by what happened last.
func scenes(t *testing.T) map[string][]byte {
	t.Helper()
	states := map[string][]byte{}
	var s director.State
	e := parse(t, scene)
	note := func(name string) { states[name] = s.AppendState(nil) }
	note("nothing")
	play(t, &s, must(s.Start(e, director.Opening{Flags: []string{"early"}})))
	note("started")
	guide := func(n int, text string) {
		_, records, err := s.Guide(director.TurnInput{Turn: n, Text: text})
		play(t, &s, must(records, err))
	}
	respond := func(text string) {
		_, records, err := s.Respond(director.Response{Turn: s.Turn(), Text: text})
		play(t, &s, must(records, err))
	}
	judge := func(kind episode.SubjectKind, id, raw string) {
		_, records, err := s.Judge(director.Verdict{Turn: s.Turn(), Attempt: 1, Subject: episode.Subject{Kind: kind, ID: id}, Raw: raw})
		play(t, &s, must(records, err))
	}
	guide(1, "Hello.")
	note("opened")
	respond("Tea with sugar? There is a key in the box.")
	note("awaiting")
	judge(episode.AboutBeat, "look", "hm")
	note("asked again")
	judge(episode.AboutBeat, "look", "no")
	judge(episode.AboutObjective, "judged", "yes")
	note("pending") // the choice drink, with also held
	_, records, err := s.Choose("drink", "tea")
	play(t, &s, must(records, err))
	note("chosen")
	guide(2, "")
	respond("Here.")
	note("second")
	respond("Here, again.")
	_, records, err = s.Expire("")
	play(t, &s, must(records, err))
	note("evaluated")
	without := strings.NewReplacer(`{"id": "key", "name": "key"}, {"id": "box", "name": "box", "requires_prop": "key"}`, `{"id": "new", "name": "new"}`, `{"id": "judged", "success_condition": "semantic:it is kind"}`, ``)
	play(t, &s, must(s.Revise(parse(t, without.Replace(scene)))))
	note("revised")
	return states
}

// Each event that cannot follow is refused with its own reason, and changes nothing; the
// event beside it that differs only in this is taken.
func TestForgedEvents(t *testing.T) {
	states := scenes(t)
	digest := strings.Repeat("ab", 32)
	for _, tt := range []struct{ state, word, event, want string }{
		{"nothing", episode.TurnOpened, `{"turn": 1}`, "no episode has started"},
		{"started", episode.EpisodeFailed, `{}`, "no turn"},
		{"started", episode.EpisodeFailed, `{"turn": -1}`, "no turn"},
		{"started", episode.EpisodeFailed, `{"turn": 1}`, "its turn is 1, and the current turn is 0"},
		{"started", episode.EpisodeFailed, `{"turn": 0}`, ""},
		{"second", episode.VerdictRecorded, `{"turn": 1, "inactive": true}`, ""},
		{"second", episode.VerdictRecorded, `{"turn": 1}`, "its turn is 1"},
		{"second", episode.VerdictRecorded, `{"turn": 3, "inactive": true}`, "its turn is 3"},
		{"second", episode.EpisodeFailed, `{"turn": 1, "inactive": true}`, "its turn is 1"},
		{"second", "invented", `{"turn": 2}`, "an unknown word"},

		{"started", episode.TurnOpened, `{"turn": 0, "input": "none"}`, "the turn is not after turn 0"},
		{"started", episode.TurnOpened, `{"turn": 1, "input": "none"}`, ""},
		{"opened", episode.TurnOpened, `{"turn": 1, "input": "text"}`, ""},
		{"awaiting", episode.TurnOpened, `{"turn": 1, "input": "text"}`, "the turn is not after turn 1"},
		{"second", episode.TurnOpened, `{"turn": 1, "input": "text"}`, "the turn is not after turn 2"},
		{"second", episode.TurnOpened, `{"turn": 3, "input": "text"}`, ""},
		{"opened", episode.TurnOpened, `{"turn": 2, "input": "whistle"}`, "an unknown kind of input"},
		{"opened", episode.TurnOpened, `{"turn": 2, "input": "text", "digest": "` + digest + `"}`, ""},
		{"opened", episode.TurnOpened, `{"turn": 2, "input": "text", "digest": "` + digest + `a"}`, "a digest that is too long"},

		{"started", episode.GuidanceIssued, `{"turn": 0}`, "the turn is not open"},
		{"awaiting", episode.GuidanceIssued, `{"turn": 1}`, "the turn is not open"},
		{"opened", episode.GuidanceIssued, `{"turn": 1}`, ""},
		{"opened", episode.GuidanceIssued, `{"turn": 1, "directive": {"beat": "nobody"}}`, "no such beat"},
		{"opened", episode.GuidanceIssued, `{"turn": 1, "directive": {"beat": "ask"}}`, ""},

		{"opened", episode.ResponseRecorded, `{"turn": 1, "attempt": 0, "digest": "` + digest + `"}`, "the turn does not expect the response"},
		{"opened", episode.ResponseRecorded, `{"turn": 1, "digest": "` + digest + `"}`, "the turn does not expect the response"},
		{"awaiting", episode.ResponseRecorded, `{"turn": 1, "attempt": 2, "digest": "` + digest + `"}`, "the turn does not expect the response"},
		{"opened", episode.ResponseRecorded, `{"turn": 1, "attempt": 1, "digest": "` + digest[1:] + `"}`, "no digest"},
		{"opened", episode.ResponseRecorded, `{"turn": 1, "attempt": 1, "digest": "` + digest + `"}`, ""},
		{"opened", episode.ResponseRecorded, `{"turn": 1, "attempt": 2, "digest": "` + digest + `"}`, ""},

		{"opened", episode.AttemptDropped, `{"turn": 1}`, "there is no response to drop"},
		{"awaiting", episode.AttemptDropped, `{"turn": 1}`, ""},
		{"chosen", episode.AttemptDropped, `{"turn": 1}`, "there is no response to drop"},

		{"awaiting", episode.JudgementAsked, `{"turn": 1, "attempt": 1, "beat": "look"}`, "the question was asked before"},
		{"awaiting", episode.JudgementAsked, `{"turn": 1, "attempt": 1, "beat": "ask"}`, ""},
		{"awaiting", episode.JudgementAsked, `{"turn": 1, "attempt": 2, "beat": "ask"}`, "the verdict is not about the current response"},
		{"awaiting", episode.JudgementAsked, `{"turn": 1, "attempt": 1, "beat": "nobody"}`, "the verdict is not about the current response"},
		{"opened", episode.JudgementAsked, `{"turn": 1, "attempt": 0, "beat": "ask"}`, "the verdict is not about the current response"},
		{"pending", episode.JudgementAsked, `{"turn": 1, "attempt": 1, "beat": "ask"}`, "the verdict is not about the current response"},
		{"awaiting", episode.VerdictRecorded, `{"turn": 1, "attempt": 1, "beat": "look", "method": "guess", "verdict": "yes"}`, "an unknown method or verdict"},
		{"awaiting", episode.VerdictRecorded, `{"turn": 1, "attempt": 1, "beat": "look", "method": "semantic", "verdict": "maybe"}`, "an unknown method or verdict"},
		{"awaiting", episode.VerdictRecorded, `{"turn": 1, "attempt": 1, "beat": "ask", "method": "semantic", "verdict": "yes"}`, "the question was not asked"},
		{"awaiting", episode.VerdictRecorded, `{"turn": 1, "attempt": 1, "beat": "look", "method": "semantic", "verdict": "yes"}`, ""},
		{"awaiting", episode.VerdictRecorded, `{"turn": 1, "attempt": 1, "objective": "judged", "method": "semantic", "verdict": "no"}`, ""},
		{"awaiting", episode.VerdictRecorded, `{"turn": 1, "attempt": 1, "beat": "ask", "method": "keyword", "verdict": "yes"}`, ""},
		{"pending", episode.VerdictRecorded, `{"turn": 1, "attempt": 1, "beat": "ask", "method": "keyword", "verdict": "yes"}`, "the verdict is not about the current response"},
		{"pending", episode.VerdictRecorded, `{"turn": 1, "attempt": 1, "beat": "ask", "inactive": true}`, ""},
		{"awaiting", episode.TurnEvaluated, `{"turn": 1}`, "the turn is not ready for it"},
		{"opened", episode.TurnEvaluated, `{"turn": 1}`, "the turn is not ready for it"},
		{"pending", episode.TurnEvaluated, `{"turn": 1}`, "the turn is not ready for it"},

		{"awaiting", episode.BeatLanded, `{"turn": 1, "beat": "nobody", "assurance": "verified", "heard_at_turn": 1}`, "no such beat"},
		{"awaiting", episode.BeatLanded, `{"turn": 1, "beat": "look", "assurance": "verified", "heard_at_turn": 1}`, ""},
		{"awaiting", episode.BeatLanded, `{"turn": 1, "beat": "look", "assurance": "", "heard_at_turn": 1}`, "no assurance or turn"},
		{"awaiting", episode.BeatLanded, `{"turn": 1, "beat": "look", "assurance": "sure", "heard_at_turn": 1}`, "no assurance or turn"},
		{"awaiting", episode.BeatLanded, `{"turn": 1, "beat": "look", "assurance": "verified", "heard_at_turn": 0}`, "no assurance or turn"},
		{"awaiting", episode.BeatLanded, `{"turn": 1, "beat": "look", "assurance": "verified", "heard_at_turn": 2}`, "no assurance or turn"},
		{"awaiting", episode.BeatLanded, `{"turn": 1, "beat": "look", "assurance": "verified"}`, "no assurance or turn"},
		{"awaiting", episode.BeatLanded, `{"turn": 1, "beat": "later", "assurance": "verified", "heard_at_turn": 1}`, "the beat was not eligible in this turn"},
		{"opened", episode.BeatLanded, `{"turn": 1, "beat": "look", "assurance": "verified", "heard_at_turn": 1}`, "the beat was not eligible in this turn"},
		{"pending", episode.BeatLanded, `{"turn": 1, "beat": "look", "assurance": "verified", "heard_at_turn": 1}`, "the beat was not eligible in this turn"},
		{"pending", episode.BeatLanded, `{"turn": 1, "beat": "ask", "assurance": "verified", "heard_at_turn": 1}`, "the beat is not pending"},
		{"pending", episode.BeatForced, `{"turn": 1, "beat": "ask"}`, "the beat is not pending"},
		{"pending", episode.BeatForced, `{"turn": 1, "beat": "look", "line": "Look!"}`, ""},
		{"pending", episode.BeatMissed, `{"turn": 1, "beat": "also", "dependants": "release"}`, ""},
		{"pending", episode.DeadlineMissed, `{"turn": 1, "beat": "also"}`, ""},
		{"awaiting", episode.BeatHeld, `{"turn": 1, "beat": "also", "assurance": "verified", "heard_at_turn": 1, "method": "` + strings.Repeat("m", episode.MaxID) + `"}`, ""},
		{"awaiting", episode.BeatHeld, `{"turn": 1, "beat": "also", "assurance": "verified", "heard_at_turn": 1, "method": "` + strings.Repeat("m", episode.MaxID+1) + `"}`, "a method that is too long"},
		{"second", episode.BeatHeld, `{"turn": 2, "beat": "look", "assurance": "verified", "heard_at_turn": 2}`, ""},
		{"second", episode.BeatHeld, `{"turn": 2, "beat": "also", "assurance": "verified", "heard_at_turn": 2}`, "the beat is held already"},
		{"second", episode.BeatLanded, `{"turn": 2, "beat": "also", "assurance": "verified", "heard_at_turn": 1}`, ""},

		{"pending", episode.ChoiceOffered, `{"turn": 1, "choice_point": "nothing"}`, "no such choice point"},
		{"pending", episode.ChoiceOffered, `{"turn": 1, "choice_point": "drink"}`, "the choice was offered before"},
		{"pending", episode.ChoiceOffered, `{"turn": 1, "choice_point": "sweet"}`, "the beat of the choice has not landed, or is over"},
		{"chosen", episode.ChoiceOffered, `{"turn": 1, "choice_point": "drink"}`, "the beat of the choice has not landed, or is over"},
		{"pending", episode.ChoiceOffered, `{"turn": 1, "choice_point": "card"}`, ""},
		{"pending", episode.ChoiceSelected, `{"turn": 1, "choice_point": "card", "choice": "a"}`, "the choice is not open"},
		{"pending", episode.ChoiceSelected, `{"turn": 1, "choice_point": "drink", "choice": "soup"}`, "no such choice"},
		{"pending", episode.ChoiceSelected, `{"turn": 1, "choice_point": "drink", "choice": "tea"}`, ""},
		{"pending", episode.ChoiceSelected, `{"turn": 1, "choice_point": "drink", "choice": "milk"}`, ""},
		{"pending", episode.ChoiceDeclined, `{"turn": 1, "choice_point": "drink"}`, ""},

		{"opened", episode.FlagSet, `{"turn": 1}`, "no flag"},
		{"opened", episode.FlagSet, `{"turn": 1, "flag": ""}`, "no flag"},
		{"opened", episode.FlagSet, `{"turn": 1, "flag": "f"}`, ""},
		{"opened", episode.FlagCleared, `{"turn": 1}`, "no flag"},
		{"opened", episode.FlagCleared, `{"turn": 1, "flag": "early"}`, ""},
		{"opened", episode.ObjectiveFailed, `{"turn": 1, "objective": "nothing"}`, "no such objective"},
		{"opened", episode.ObjectiveFailed, `{"turn": 1, "beat": "ask"}`, "no such objective"},
		{"opened", episode.ObjectiveFailed, `{"turn": 1, "objective": "judged"}`, ""},
		{"opened", episode.ObjectiveCompleted, `{"turn": 1, "objective": "primary"}`, ""},
		{"started", episode.PropRevealed, `{"turn": 0, "prop": "key"}`, "no such prop"},
		{"opened", episode.PropRevealed, `{"turn": 1, "prop": "nothing"}`, "no such prop"},
		{"opened", episode.PropRevealed, `{"turn": 1, "prop": "key"}`, ""},
		{"opened", episode.PropRevealed, `{"turn": 1, "prop": "box"}`, ""},
		{"opened", episode.VisualTriggered, `{"turn": 1, "index": 0}`, "not the index of the next picture"},
		{"opened", episode.VisualTriggered, `{"turn": 1, "index": 2}`, "not the index of the next picture"},
		{"opened", episode.VisualTriggered, `{"turn": 1}`, "not the index of the next picture"},
		{"opened", episode.VisualTriggered, `{"turn": 1, "index": 1}`, ""},
		{"opened", episode.SuggestionMade, `{"turn": 1, "cause": "budget"}`, ""},
	} {
		name := tt.state + ": " + tt.word + " " + tt.event
		s, err := director.Restore(states[tt.state])
		require.NoError(t, err)
		err = s.Apply(tt.word, value(t, tt.event))
		after := s.AppendState(nil)
		if tt.want != "" {
			require.ErrorIs(t, err, director.ErrRecord, name)
			assert.ErrorContains(t, err, tt.want, name)
			assert.Equal(t, states[tt.state], after, name)
			continue
		}
		require.NoError(t, err, name)
		if _, err := director.Restore(after); err != nil {
			t.Errorf("%s: leads to a state that is none: %v", name, err)
		}
	}
}

// A state that no events lead to is refused: each part is held against the episode and
// against the others.
func TestImpossibleStates(t *testing.T) {
	states := scenes(t)
	pending, asked, revised, second := states["pending"], states["asked again"], states["revised"], states["second"]
	const theEpisode, theCore, theRollback = 2, 3, 4
	const turn, attempt, phase, input, inputDigest, digest, tail, directive, answer, energy, visuals = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	const beats, choices, objectives, props, flags, held, awaiting, found, removed = 13, 14, 15, 16, 17, 18, 19, 20, 21
	num := func(n int) []byte { return msgp.AppendInt(nil, n) }
	text := func(s string) []byte { return msgp.AppendString(nil, s) }
	set := msgptest.Set
	for name, data := range map[string][]byte{
		"a turn beyond the last":                    set(pending, num(episode.MaxTurn+1), theCore, turn),
		"a negative turn":                           set(pending, num(-1), theCore, turn),
		"an attempt beyond the last":                set(pending, num(episode.MaxTurn+1), theCore, attempt),
		"a phase that is none":                      set(pending, num(4), theCore, phase),
		"an input that is none":                     set(pending, num(3), theCore, input),
		"a digest of an input that is too long":     set(pending, text(strings.Repeat("a", 65)), theCore, inputDigest),
		"a digest of a response that is too short":  set(pending, msgp.AppendBytes(nil, make([]byte, 31)), theCore, digest),
		"a digest of a response that is too long":   set(pending, msgp.AppendBytes(nil, make([]byte, 33)), theCore, digest),
		"a tail that is too long":                   set(pending, text(strings.Repeat("é", 201)), theCore, tail),
		"a directive to a beat beyond the last":     set(pending, num(5), theCore, directive),
		"an answer without a choice point":          set(pending, text("Tea."), theCore, answer, 0),
		"an energy that is none":                    set(pending, num(len(episode.Energies())), theCore, energy),
		"pictures beyond all turns":                 set(pending, num(episode.MaxTurn+1), theCore, visuals),
		"a beat too few":                            set(pending, []byte{0x90}, theCore, beats),
		"a beat of an unknown status":               set(pending, num(4), theCore, beats, 1, 0),
		"a beat of an unknown assurance":            set(pending, num(4), theCore, beats, 1, 1),
		"a beat without a choice that waits for it": set(pending, num(1), theCore, beats, 1, 0),
		"an open choice of a beat that is over":     set(pending, num(2), theCore, beats, 0, 0),
		"an open choice of a beat that is pending":  set(pending, num(1), theCore, choices, 1, 0),
		"a choice of an unknown status":             set(pending, num(4), theCore, choices, 0, 0),
		"a selection without an option":             set(pending, num(2), theCore, choices, 0, 0),
		"an option without a selection":             set(pending, text("tea"), theCore, choices, 0, 1),
		"what was said before a choice is too long": set(pending, text(strings.Repeat("x", 201)), theCore, choices, 0, 4),
		"an objective of an unknown status":         set(pending, num(4), theCore, objectives, 0, 0),
		"an objective too few":                      set(pending, []byte{0x91, 0x92, 0, 0}, theCore, objectives),
		"a prop too many":                           set(pending, []byte{0x93, 0, 0, 0}, theCore, props),
		"flags out of order":                        msgptest.Swap(second, 0, 1, theCore, flags),
		"a flag twice":                              set(second, msgptest.Get(second, theCore, flags, 0), theCore, flags, 1),
		"a flag without a name":                     set(second, text(""), theCore, flags, 0, 0),
		"a held beat that is not there":             set(pending, num(4), theCore, held, 0, 0),
		"a held beat that has landed":               set(pending, num(0), theCore, held, 0, 0),
		"a held beat twice":                         set(pending, append([]byte{0x92}, bytes.Repeat(msgptest.Get(pending, theCore, held, 0), 2)...), theCore, held),
		"a held beat of no assurance":               set(pending, num(4), theCore, held, 0, 3),
		"a held beat of a tail that is too long":    set(pending, text(strings.Repeat("x", 201)), theCore, held, 0, 4),
		"a question about a beat that is not there": set(asked, num(4), theCore, awaiting, 0, 1),
		"a question about nothing":                  set(asked, num(2), theCore, awaiting, 0, 0),
		"a question twice":                          set(asked, msgptest.Get(asked, theCore, awaiting, 0), theCore, awaiting, 1),
		"a question of too many tries":              set(asked, num(episode.MaxTurn+1), theCore, awaiting, 0, 2),
		"a finding about a beat that is not there":  set(asked, num(4), theCore, found, 0, 1),
		"a finding by no method":                    set(asked, num(int(episode.Undetected)), theCore, found, 0, 2),
		"a rollback of another turn":                set(pending, num(2), theRollback, turn),
		"a rollback to a response":                  set(pending, num(2), theRollback, phase),
		"a rollback of a turn without a response":   set(pending, num(1), theCore, phase),
		"a core without an episode":                 set(pending, []byte{0xc0}, theEpisode),
		"a rollback without an episode":             set(set(pending, []byte{0xc0}, theCore), []byte{0xc0}, theEpisode),
		"an episode that is none":                   set(pending, []byte{0x81, 0xa5, 'b', 'e', 'a', 't', 's', 7}, theEpisode),
		"a removed prop without progress":           set(revised, num(0), theCore, removed, 3, 0, 1),
		"a removed prop twice":                      set(revised, msgptest.Get(revised, theCore, removed, 3, 0), theCore, removed, 3, 1),
		"removed props out of order":                msgptest.Swap(revised, 0, 1, theCore, removed, 3),
		"a removed objective that is there":         set(revised, text("primary"), theCore, removed, 2, 0, 0),
		"a removed objective of an unknown status":  set(revised, num(4), theCore, removed, 2, 0, 1, 0),
		"a removed beat that waits for its choice":  set(revised, []byte{0x91, 0x92, 0xa1, 'x', 0x98, 1, 0, 0xc2, 0xc2, 0, 0, 0, 0}, theCore, removed, 0),
		"a removed beat that is there":              set(revised, []byte{0x91, 0x92, 0xa3, 'a', 's', 'k', 0x98, 2, 0, 0xc2, 0xc2, 0, 0, 0, 0}, theCore, removed, 0),
		"a removed choice that is open":             set(revised, []byte{0x91, 0x92, 0xa1, 'x', 0x95, 1, 0xa0, 0, 0, 0xa0}, theCore, removed, 1),
		"a removed choice that is there":            set(revised, []byte{0x91, 0x92, 0xa4, 'c', 'a', 'r', 'd', 0x95, 3, 0xa0, 0, 0, 0xa0}, theCore, removed, 1),
	} {
		if _, err := director.Restore(data); !errors.Is(err, director.ErrState) {
			t.Errorf("%s: err = %v, want ErrState", name, err)
		}
	}
	for name, data := range map[string][]byte{
		"the last turn":             set(set(pending, num(episode.MaxTurn), theCore, turn), num(episode.MaxTurn), theRollback, turn),
		"a tail of 200 code points": set(pending, text(strings.Repeat("é", 200)), theCore, tail),
		"a removed beat":            set(revised, []byte{0x91, 0x92, 0xa1, 'x', 0x98, 2, 0, 0xc2, 0xc2, 0, 0, 0, 0}, theCore, removed, 0),
		"a removed choice":          set(revised, []byte{0x91, 0x92, 0xa1, 'x', 0x95, 3, 0xa0, 0, 0, 0xa0}, theCore, removed, 1),
	} {
		if _, err := director.Restore(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, state := range states {
		s, err := director.Restore(state)
		require.NoError(t, err, name)
		require.Equal(t, state, s.AppendState(nil), name)
	}
}

// A verdict is about a turn and an attempt that there can be; one about those that are
// over is recorded and changes nothing.
func TestVerdictBounds(t *testing.T) {
	s, err := director.Restore(scenes(t)["evaluated"])
	require.NoError(t, err)
	subject := episode.Subject{Kind: episode.AboutBeat, ID: "look"}
	for _, tt := range []struct {
		turn, attempt int
		want          error
	}{
		{0, 1, director.ErrTurn},
		{3, 1, director.ErrTurn},
		{1, -1, director.ErrTurn},
		{2, episode.MaxTurn + 1, director.ErrTurn},
		{1, 0, nil},
		{1, 1, nil},
		{2, 1, nil},
		{2, episode.MaxTurn, nil},
	} {
		out, records, err := s.Judge(director.Verdict{Turn: tt.turn, Attempt: tt.attempt, Subject: subject, Raw: "YES"})
		if tt.want != nil {
			assert.ErrorIs(t, err, tt.want, "%+v", tt)
			assert.Empty(t, records)
			continue
		}
		require.NoError(t, err, "%+v", tt)
		require.Len(t, records, 1)
		assert.True(t, records[0].Value.BoolOf("inactive"))
		assert.False(t, out.Evaluated)
		after := *s
		require.NoError(t, after.Apply(records[0].Word, records[0].Value))
		assert.Equal(t, s.AppendState(nil), after.AppendState(nil))
	}
	_, _, err = s.Judge(director.Verdict{Turn: 1, Subject: episode.Subject{Kind: episode.AboutBeat, ID: "nobody"}})
	assert.ErrorIs(t, err, director.ErrNotFound)
}

// An offer says whether it replaces the user's message, what was said before it, and of
// which beat it is.
func TestOffers(t *testing.T) {
	s, err := director.Restore(scenes(t)["pending"])
	require.NoError(t, err)
	o := s.Pending()
	require.NotNil(t, o)
	assert.Equal(t, []string{"drink", director.ModeReplacement, "ask", "Tea with sugar? There is a key in the box."}, []string{o.ID, o.Mode, o.Beat, o.Said})
	require.Len(t, s.Open(), 1)
	assert.Equal(t, o, s.Open()[0])
	s, err = director.Restore(scenes(t)["evaluated"])
	require.NoError(t, err)
	for _, open := range s.Open() {
		if open.ID == "card" {
			assert.Equal(t, director.ModeFloating, open.Mode)
			assert.Empty(t, open.Beat)
		}
	}
	s, err = director.Restore(scenes(t)["started"])
	require.NoError(t, err)
	assert.Nil(t, s.Pending())
	assert.Empty(t, s.Open())
}

// An event that an episode starts is refused without the episode that was declared, with an
// energy that does not exist and with a flag that has no name; the flags of the episode before
// stay, with their causes, and those that are given are set by the start.
func TestForgedStarts(t *testing.T) {
	e := parse(t, `{"id": "e", "flags": ["a", "b", "c"]}`)
	event := func(members string) string {
		return `{"episode": "e", "digest": "` + e.Digest().String() + `", "doctrine": "` + e.Doctrine.Digest().String() + `"` + members + `}`
	}
	for members, want := range map[string]string{
		`, "energy": "playful"`:                      "",
		`, "energy": "playful", "flags": null`:       "",
		`, "energy": "playful", "flags": []`:         "",
		`, "energy": "playful", "flags": ["a", "b"]`: "",
		`, "energy": "playful", "flags": ["a", ""]`:  "a flag without a name",
		`, "energy": "playful", "flags": ["a", 7]`:   "a flag without a name",
		`, "energy": "playful", "flags": [null]`:     "a flag without a name",
		`, "energy": "wild"`:                         "no such energy",
		`, "energy": 7`:                              "no such energy",
		``:                                           "no such energy",
		`, "energy": ""`:                             "no such energy",
		`, "energy": "playful", "flags": ["a", "a"]`: "",
	} {
		var s director.State
		require.NoError(t, s.Declare(e.Value()))
		before := s.AppendState(nil)
		err := s.Apply(episode.EpisodeStarted, value(t, event(members)))
		if want == "" {
			require.NoError(t, err, members)
			require.NotNil(t, s.Episode())
			require.Nil(t, s.Declared())
			continue
		}
		require.ErrorIs(t, err, director.ErrRecord)
		require.ErrorContains(t, err, want, members)
		require.Equal(t, before, s.AppendState(nil))
	}
	var s director.State
	require.ErrorIs(t, s.Apply(episode.EpisodeStarted, value(t, event(`, "energy": "playful"`))), director.ErrRecord, "nothing is declared")
	play(t, &s, must(s.Start(e, director.Opening{Flags: []string{"b", "a"}})))
	flags := func() string {
		view := s.View().(map[string]any)
		return string(asJSON(t, view["flags"]))
	}
	first := flags()
	play(t, &s, must(s.Start(e, director.Opening{Flags: []string{"c"}})))
	for _, name := range []string{"a", "b", "c"} {
		require.Contains(t, flags(), `"`+name+`"`)
	}
	require.NotContains(t, first, `"c"`)
}

// asJSON returns a value as JSON.
func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}
