package director

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrRecord is wrapped by the errors about events that cannot follow a state.
var ErrRecord = errors.New("director: the event cannot follow")

func recordError(word, reason string) error {
	return fmt.Errorf("%w: %s: %s", ErrRecord, word, reason)
}

// The events, with the names and the order that their members have in the log. Both
// are part of the format.
type (
	episodeStarted struct {
		Episode  string   `json:"episode"` // its id
		Digest   string   `json:"digest"`
		Doctrine string   `json:"doctrine"`
		Energy   string   `json:"energy"`
		Flags    []string `json:"flags"`
	}
	episodeRevised struct {
		Turn     int             `json:"turn"`
		Episode  string          `json:"episode"`
		From     string          `json:"from"`
		To       string          `json:"to"`
		Doctrine string          `json:"doctrine"`
		Dropped  episode.Dropped `json:"dropped"`
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
		Again    bool   `json:"again,omitempty"`    // the question is asked again
		Inactive bool   `json:"inactive,omitempty"` // its question was over
	}
	beatLanded struct { // and beatHeld
		Turn      int    `json:"turn"`
		Beat      string `json:"beat"`
		Method    string `json:"method"`
		Assurance string `json:"assurance"`
		Heard     int    `json:"heard_at_turn"`
		Tail      string `json:"tail,omitempty"` // of the response, if held
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
		Cause  string `json:"cause,omitempty"` // why it was declined, if not by the user
	}
	flagged struct {
		Turn    int    `json:"turn"`
		Flag    string `json:"flag"`
		Cause   string `json:"cause"`
		Outside bool   `json:"outside,omitempty"` // by an external event, so it stays if a response is dropped
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

// recordOf returns one of the structs above as a record.
func recordOf(word string, event any) (signal.Record, error) {
	text, err := json.Marshal(event)
	if err != nil {
		return signal.Record{}, fmt.Errorf("director: record %s: %w", word, err)
	}
	v, err := signal.ParseValue(text)
	if err != nil {
		return signal.Record{}, fmt.Errorf("director: record %s: %w", word, err)
	}
	return signal.Record{Word: word, Value: v}, nil
}

// intOf returns a member that counts turns, attempts or pictures; false if it is not
// an integer within bounds.
func intOf(v signal.Value, name string) (int, bool) {
	i, ok := v.Member(name).Int64()
	return int(i), ok && i >= 0 && i <= episode.MaxTurn
}
