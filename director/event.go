package director

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// The words of events, in about the order in which a session has them. Each
// event is an object; Turn is the turn it belongs to.
const (
	EpisodeStarted     = "episodeStarted"     // the episode that was declared, its digests, the flags it starts with
	EpisodeRevised     = "episodeRevised"     // another version goes on in its place
	TurnOpened         = "turnOpened"         // what the user said or chose, as a digest or by name
	ChoiceDeclined     = "choiceDeclined"     // the user typed instead
	GuidanceIssued     = "guidanceIssued"     // can be derived again
	ResponseRecorded   = "responseRecorded"   // digest and end of a response
	AttemptDropped     = "attemptDropped"     // what came of that response is undone
	JudgementAsked     = "judgementAsked"     // of a model; the digest of its prompt
	VerdictRecorded    = "verdictRecorded"    // how it was found, and what
	BeatHeld           = "beatHeld"           // landed, but another choice has this turn
	BeatLanded         = "beatLanded"         // verified, assumed or forced
	BeatForced         = "beatForced"         // the authored line is part of the scene
	BeatMissed         = "beatMissed"         // given up
	DeadlineMissed     = "deadlineMissed"     // once a beat
	ChoiceOffered      = "choiceOffered"      // the user is asked
	ChoiceSelected     = "choiceSelected"     // the user has answered
	FlagSet            = "flagSet"            // and by what
	FlagCleared        = "flagCleared"        // by an authored rule only
	ObjectiveCompleted = "objectiveCompleted" //
	ObjectiveFailed    = "objectiveFailed"    //
	EpisodeFailed      = "episodeFailed"      // by a beat that must not be missed
	PropRevealed       = "propRevealed"       // once a prop
	VisualTriggered    = "visualTriggered"    // a picture of the scene is wanted
	SuggestionMade     = "suggestionMade"     // what could be played next
	TurnEvaluated      = "turnEvaluated"      // nothing is open about this turn
)

// Words lists the words of all events. The declaration of an episode is none.
func Words() []string { return slices.Clone(eventWords) }

var eventWords = []string{
	EpisodeStarted, EpisodeRevised, TurnOpened, ChoiceDeclined, GuidanceIssued, ResponseRecorded, AttemptDropped, JudgementAsked, VerdictRecorded,
	BeatHeld, BeatLanded, BeatForced, BeatMissed, DeadlineMissed, ChoiceOffered, ChoiceSelected, FlagSet, FlagCleared,
	ObjectiveCompleted, ObjectiveFailed, EpisodeFailed, PropRevealed, VisualTriggered, SuggestionMade, TurnEvaluated,
}

// Record is one event, a word and an object; or the declaration of an episode,
// which an event names: see [Record.Declares].
type Record struct {
	Word  string
	Value signal.Value
}

// ErrRecord is wrapped by the errors about events that cannot follow a state.
var ErrRecord = errors.New("director: not an event that can follow")

func recordError(word, reason string) error {
	return fmt.Errorf("%w: %s: %s", ErrRecord, word, reason)
}

type (
	episodeStarted struct {
		Episode  string   `json:"episode"` // its id
		Digest   string   `json:"digest"`
		Doctrine string   `json:"doctrine"`
		Energy   string   `json:"energy"`
		Flags    []string `json:"flags"`
	}
	episodeRevised struct {
		Turn     int     `json:"turn"`
		Episode  string  `json:"episode"`
		From     string  `json:"from"`
		To       string  `json:"to"`
		Doctrine string  `json:"doctrine"`
		Dropped  dropped `json:"dropped"`
	}
	turnOpened struct {
		Turn   int    `json:"turn"`
		Input  string `json:"input"`            // "none", "text" or "choice"
		Digest string `json:"digest,omitempty"` // of a text
		Choice string `json:"choice_point,omitempty"`
		Option string `json:"choice,omitempty"`
	}
	directiveIssued struct {
		Beat    string `json:"beat"`
		Urgency string `json:"urgency"`
	}
	guidanceIssued struct {
		Turn      int              `json:"turn"`
		Pacing    string           `json:"pacing"`
		Energy    string           `json:"energy"`
		Genre     string           `json:"genre"`
		Directive *directiveIssued `json:"directive,omitempty"`
	}
	responseRecorded struct {
		Turn    int    `json:"turn"`
		Attempt int    `json:"attempt"`
		Digest  string `json:"digest"`
		Tail    string `json:"tail"`
		Length  int    `json:"length"` // in code points
	}
	attempted struct { // attemptDropped, turnEvaluated
		Turn    int `json:"turn"`
		Attempt int `json:"attempt"`
	}
	about struct {
		Beat      string `json:"beat,omitempty"`
		Objective string `json:"objective,omitempty"`
	}
	judgementAsked struct {
		Turn    int `json:"turn"`
		Attempt int `json:"attempt"`
		about
		Prompt string `json:"prompt"`
	}
	verdictRecorded struct {
		Turn    int `json:"turn"`
		Attempt int `json:"attempt"`
		about
		Method   string `json:"method"` // as Detection
		Verdict  string `json:"verdict"`
		Matched  string `json:"matched,omitempty"`
		Model    string `json:"model,omitempty"`
		Raw      string `json:"raw,omitempty"`
		Failure  string `json:"failure,omitempty"`
		Latency  int64  `json:"latency_ms,omitempty"`
		Again    bool   `json:"again,omitempty"`    // it is asked for again
		Inactive bool   `json:"inactive,omitempty"` // it came for what is over
	}
	beatLanded struct { // and beatHeld
		Turn      int    `json:"turn"`
		Beat      string `json:"beat"`
		Method    string `json:"method"`
		Assurance string `json:"assurance"`
		Heard     int    `json:"heard_at_turn"`
		Tail      string `json:"tail,omitempty"` // of what was said, if held
	}
	beatForced struct {
		Turn int    `json:"turn"`
		Beat string `json:"beat"`
		Line string `json:"line"`
	}
	beatMissed struct {
		Turn       int    `json:"turn"`
		Beat       string `json:"beat"`
		Cause      string `json:"cause"`
		Dependants string `json:"dependants"`
	}
	deadlineMissed struct {
		Turn     int    `json:"turn"`
		Beat     string `json:"beat"`
		Deadline int    `json:"deadline"`
		Eligible bool   `json:"eligible"`
	}
	choiceOffered struct {
		Turn   int    `json:"turn"`
		Choice string `json:"choice_point"`
		Mode   string `json:"mode"`
		Beat   string `json:"beat,omitempty"`
		Said   string `json:"character_said"`
	}
	choiceMade struct { // choiceSelected, choiceDeclined
		Turn   int    `json:"turn"`
		Choice string `json:"choice_point"`
		Option string `json:"choice,omitempty"`
		Label  string `json:"label,omitempty"`
		Beat   string `json:"beat,omitempty"`
		Cause  string `json:"cause,omitempty"` // of declining, if it was not the user
	}
	flagged struct {
		Turn    int    `json:"turn"`
		Flag    string `json:"flag"`
		Cause   string `json:"cause"`
		Outside bool   `json:"outside,omitempty"` // heard, so it stays if a response is dropped
	}
	objectiveEnded struct {
		Turn      int    `json:"turn"`
		Objective string `json:"objective"`
		Cause     string `json:"cause"`
	}
	episodeFailed struct {
		Turn  int    `json:"turn"`
		Cause string `json:"cause"`
	}
	propRevealed struct {
		Turn  int    `json:"turn"`
		Prop  string `json:"prop"`
		Cause string `json:"cause"`
	}
	visualTriggered struct {
		Turn  int `json:"turn"`
		Index int `json:"index"` // from 1
		Of    int `json:"of"`
	}
	suggestionMade struct {
		Turn    int    `json:"turn"`
		Episode string `json:"episode"`
		Cause   string `json:"cause"`
	}
)

// recordOf makes a record of one of the structs above.
func recordOf(word string, event any) (Record, error) {
	text, err := json.Marshal(event)
	if err != nil {
		return Record{}, fmt.Errorf("director: record %s: %w", word, err)
	}
	v, err := signal.ParseValue(text)
	if err != nil {
		return Record{}, fmt.Errorf("director: record %s: %w", word, err)
	}
	return Record{word, v}, nil
}

func itoa(i int) string { return strconv.Itoa(i) }

func textOf(v signal.Value, name string) (string, bool) {
	m, _ := v.Get(name)
	return m.Text()
}

// ownText is textOf for what a state keeps: the event may belong to an entry.
func ownText(v signal.Value, name string) (string, bool) {
	s, ok := textOf(v, name)
	return strings.Clone(s), ok
}

func intOf(v signal.Value, name string) (int, bool) {
	m, _ := v.Get(name)
	i, ok := m.Int64()
	return int(i), ok && i >= 0 && i <= maxTurn
}

func boolOf(v signal.Value, name string) bool {
	m, _ := v.Get(name)
	b, _ := m.Bool()
	return b
}
