package simulate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// What says what an [Event] tells.
type What string

// What there is to tell.
const (
	Joined      What = "joined"      // an agent takes part
	Left        What = "left"        // and no more
	Asked       What = "intent"      // an agent asked for something, with its outcome
	Happened    What = "event"       // an event of the scenario, with its outcome
	Observed    What = "observation" // an agent was told something
	Began       What = "generation"  // an agent begins to generate, or begins anew
	Interrupted What = "interrupted" // what it generates is in vain
	GaveUp      What = "gave_up"     // and it does not begin anew
	Called      What = "cancel"      // an agent takes back what it asked for
	Ticked      What = "tick"        // a tick decided something
)

// Event is one thing that happened in a play. What it has no use for is zero.
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

	Delta      agents.Delta // that was observed
	ContextSeq uint64       // that a generation goes by
	Attempt    int          // which of its attempts it is, from 1
	Tokens     int          // that were yielded
	Of         int          // that there would be; or how many intents a tick decided
	Until      time.Duration
	Frame      uint64
}

// MarshalJSON writes the event as one object, times in milliseconds.
func (e *Event) MarshalJSON() ([]byte, error) {
	var patches signal.Value
	var digest string
	var viewSeq *uint64
	if e.What == Observed {
		patches, digest, viewSeq = agents.PatchValue(e.Delta.Patches), e.Delta.ContextDigest, &e.Delta.ViewSeq
	}
	var context *uint64
	var until *float64
	if e.What == Began {
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

// Who returns whom the event is about, as a column of an account names it.
func (e *Event) Who() string {
	switch {
	case e.What == Ticked:
		return "tick " + strconv.FormatUint(e.Frame, 10)
	case e.Agent == "":
		return "-"
	default:
		return e.Agent
	}
}

// String tells the event in one line, without its time and without who.
func (e *Event) String() string {
	switch e.What {
	case Joined:
		return "takes part"
	case Left:
		return "leaves"
	case Asked:
		return fmt.Sprintf("asks %s (%s): %s", summary(e.Kind, e.Payload), e.ReqID, e.outcome())
	case Happened:
		return fmt.Sprintf("%s: %s", summary(e.Kind, e.Payload), e.outcome())
	case Observed:
		return fmt.Sprintf("is told %d: %s", e.Delta.ViewSeq, news(e.Delta))
	case Began:
		again := ""
		if e.Attempt > 1 {
			again = fmt.Sprintf(" anew, attempt %d,", e.Attempt)
		}
		return fmt.Sprintf("generates %s%s going by %d: %d words", e.ReqID, again, e.ContextSeq, e.Of)
	case Interrupted:
		return fmt.Sprintf("is interrupted in %s after %d of %d words: %s", e.ReqID, e.Tokens, e.Of, e.Reason)
	case GaveUp:
		return fmt.Sprintf("gives %s up", e.ReqID)
	case Called:
		if e.Status == statusNone {
			return fmt.Sprintf("cancels %s: there is nothing to cancel", e.ReqID)
		}
		return fmt.Sprintf("cancels %s", e.ReqID)
	case Ticked:
		return fmt.Sprintf("decides %d", e.Of)
	default:
		return string(e.What)
	}
}

// Statuses that no [agents.Status] has.
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

// summary tells what is asked for: what is said, or else the payload.
func summary(kind string, payload signal.Value) string {
	if text, ok := payload.Get("text"); ok {
		if s, ok := text.Text(); ok {
			kind += " " + strconv.Quote(clip(s, 60))
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
	return kind + " " + clip(payload.String(), 72)
}

// asides are fields that tell no more than that something has happened.
var asides = map[string]bool{
	"last_speak_time": true, "last_emit_time": true, "last_move_time": true, "message_count": true,
	"emit_count": true, "last_position": true,
}

// news tells in one line what a delta changes.
func news(d agents.Delta) string {
	if d.Whole() {
		var ids []string
		for id := range d.Patches[0].Value.Members() {
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			return "all it sees: nothing"
		}
		return "all it sees: " + clip(strings.Join(ids, ", "), 90)
	}
	const most = 3
	var parts []string
	more := 0
	for i, op := range d.Patches {
		path := segments(op.Path)
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
		parts = append(parts, name+" "+clip(op.Value.String(), 60))
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
