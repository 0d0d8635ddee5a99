package simulate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// What is the kind of an [Event].
type What string

// The kinds of event.
const (
	whatJoined      What = "joined"      // an agent joins
	whatLeft        What = "left"        // an agent leaves
	whatAsked       What = "intent"      // an agent submitted an intent, with its outcome
	whatHappened    What = "event"       // an event of the scenario, with its outcome
	whatObserved    What = "observation" // an agent received an observation
	whatBegan       What = "generation"  // an agent begins an attempt to generate
	whatInterrupted What = "interrupted" // its generation is interrupted
	whatGaveUp      What = "gave_up"     // an agent makes no further attempt
	whatCalled      What = "cancel"      // an agent cancels a request
	whatTicked      What = "tick"        // a tick decided something
)

// Event is one event of a play. Fields that its kind does not use are zero.
type Event struct {
	At    time.Duration // session time
	What  What
	Agent string // or the source of an event
	ReqID string

	Kind    string // of the intent or effect
	Payload signal.Value
	// Status of the outcome: accepted, rejected, duplicate; undecided if the
	// play ended before.
	Status    string
	GlobalSeq uint64 // of the effect
	Code      agents.Code
	Reason    string // of a refusal or an interruption

	Delta      view.Delta // the observed one
	ContextSeq uint64     // on which a generation is based
	Attempt    int        // which of its attempts it is, from 1
	Tokens     int        // yielded so far
	Of         int        // the tokens of the whole generation, or the intents that a tick decided
	Until      time.Duration
	Frame      uint64
}

// MarshalJSON writes the event as one object, times in milliseconds.
func (e *Event) MarshalJSON() ([]byte, error) {
	var patches signal.Value
	var digest string
	var viewSeq *uint64
	if e.What == whatObserved {
		patches, digest, viewSeq = jsondoc.PatchValue(e.Delta.Patches), e.Delta.ContextDigest(), &e.Delta.ViewSeq
	}
	var context *uint64
	var until *float64
	if e.What == whatBegan {
		context = &e.ContextSeq
	}
	if e.Until > 0 {
		until = new(projection.Millis(e.Until))
	}
	return json.Marshal(struct {
		At        float64      `json:"at"`
		What      What         `json:"what"`
		Agent     string       `json:"agent,omitempty"`
		ReqID     string       `json:"req_id,omitempty"`
		Kind      string       `json:"kind,omitempty"`
		Payload   signal.Value `json:"payload,omitempty"`
		Status    string       `json:"status,omitempty"`
		GlobalSeq uint64       `json:"global_seq,omitempty"`
		Code      agents.Code  `json:"code,omitempty"`
		Reason    string       `json:"reason,omitempty"`
		ViewSeq   *uint64      `json:"view_seq,omitempty"`
		Patches   signal.Value `json:"patches,omitempty"`
		Digest    string       `json:"context_digest,omitempty"`
		Context   *uint64      `json:"context_seq,omitempty"`
		Attempt   int          `json:"attempt,omitempty"`
		Tokens    int          `json:"tokens,omitempty"`
		Of        int          `json:"of,omitempty"`
		Until     *float64     `json:"deadline,omitempty"`
		Frame     uint64       `json:"frame,omitempty"`
	}{
		projection.Millis(e.At), e.What, e.Agent, e.ReqID, e.Kind, e.Payload, e.Status, e.GlobalSeq, e.Code, e.Reason,
		viewSeq, patches, digest, context, e.Attempt, e.Tokens, e.Of, until, e.Frame,
	})
}

// Who returns the agent or tick of the event, for a column of the listing.
func (e *Event) Who() string {
	switch {
	case e.What == whatTicked:
		return "tick " + strconv.FormatUint(e.Frame, 10)
	case e.Agent == "":
		return "-"
	default:
		return e.Agent
	}
}

// String describes the event in one line, without its time and its subject.
func (e *Event) String() string {
	switch e.What {
	case whatJoined:
		return "takes part"
	case whatLeft:
		return "leaves"
	case whatAsked:
		return fmt.Sprintf("asks %s (%s): %s", summary(e.Kind, e.Payload), e.ReqID, e.outcome())
	case whatHappened:
		return fmt.Sprintf("%s: %s", summary(e.Kind, e.Payload), e.outcome())
	case whatObserved:
		return fmt.Sprintf("receives %d: %s", e.Delta.ViewSeq, news(e.Delta))
	case whatBegan:
		again := ""
		if e.Attempt > 1 {
			again = fmt.Sprintf(" again, attempt %d,", e.Attempt)
		}
		return fmt.Sprintf("generates %s%s based on %d: %d words", e.ReqID, again, e.ContextSeq, e.Of)
	case whatInterrupted:
		return fmt.Sprintf("is interrupted in %s after %d of %d words: %s", e.ReqID, e.Tokens, e.Of, e.Reason)
	case whatGaveUp:
		return fmt.Sprintf("gives %s up", e.ReqID)
	case whatCalled:
		if e.Status == statusNone {
			return fmt.Sprintf("cancels %s: there is nothing to cancel", e.ReqID)
		}
		return fmt.Sprintf("cancels %s", e.ReqID)
	case whatTicked:
		return fmt.Sprintf("decides %d", e.Of)
	default:
		return string(e.What)
	}
}

// Statuses beside those of [agents.Status].
const (
	statusUndecided = "undecided"
	statusNone      = "none"
)

func (e *Event) outcome() string {
	text := e.Status
	switch e.Status {
	case agents.Accepted.String():
		return fmt.Sprintf("accepted, effect %d", e.GlobalSeq)
	case agents.Duplicate.String():
		text = "answered already"
	case agents.Rejected.String():
		text = "refused"
	}
	switch {
	case e.Code == "" && e.GlobalSeq > 0:
		return fmt.Sprintf("%s, effect %d", text, e.GlobalSeq)
	case e.Code == "":
		return text
	case e.Reason == "":
		return text + ", " + string(e.Code)
	default:
		return text + ", " + string(e.Code) + ", " + e.Reason
	}
}

// summary describes an intent or draft: by its text, or else by its payload.
func summary(kind string, payload signal.Value) string {
	if text, ok := payload.Get("text"); ok {
		if s, ok := text.Text(); ok {
			kind += " " + strconv.Quote(wording.Clip(s, 60))
		}
		if to, ok := payload.Get("target_id"); ok {
			if s, ok := to.Text(); ok {
				kind += " to " + s
			}
		}
		return kind
	}
	if payload.Len() == 0 {
		return kind
	}
	return kind + " " + wording.Clip(payload.String(), 72)
}

// asides are fields that only record that something happened.
var asides = map[string]bool{
	"last_speak_time": true, "last_emit_time": true, "last_move_time": true, "message_count": true,
	"emit_count": true, "last_position": true,
}

// news describes in one line what a delta changes.
func news(d view.Delta) string {
	if d.IsFullView() {
		var ids []string
		for id := range d.Patches[0].Value.Members() {
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			return "all it sees: nothing"
		}
		return "all it sees: " + wording.Clip(strings.Join(ids, ", "), 90)
	}
	const most = 3
	var parts []string
	more := 0
	for i, op := range d.Patches {
		path := jsonpointer.Split(op.Path)
		if asides[path[len(path)-1]] && len(d.Patches) > 1 && (i < len(d.Patches)-1 || len(parts) > 0) {
			continue
		}
		if len(parts) == most {
			more++
			continue
		}
		name := strings.Join(path[min(1, len(path)):], ".")
		if path[0] == "visible_relationships" {
			name += " relates to"
		}
		if op.Op == "remove" {
			parts = append(parts, name+" is gone")
			continue
		}
		parts = append(parts, name+" "+wording.Clip(op.Value.String(), 60))
	}
	text := strings.Join(parts, "; ")
	if more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	if text == "" {
		return "something happened, and nothing it sees changed"
	}
	return text
}
