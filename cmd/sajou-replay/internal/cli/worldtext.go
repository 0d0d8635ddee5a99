package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// worldText describes a record of the agents' world in a word and one line: the
// agent, its action and the outcome. A record of an unknown word is shown as JSON.
func worldText(r signal.Record) (word, detail string) {
	v := r.Value
	who, reqID := v.TextOf("agent_id"), v.TextOf("req_id")
	switch r.Word {
	case agents.WordConfig:
		return r.Word, "the rules are " + v.String()
	case agents.WordWorld:
		return r.Word, worldBegins(v)
	case agents.WordAgent:
		policy, _ := v.Get("policy")
		name := policy.TextOf("policy")
		if name == "" {
			name = "default"
		}
		detail = fmt.Sprintf("%s registered, sees by %s", who, name)
		if class := v.TextOf("class"); class != "" {
			detail += ", class " + class
		}
		if granted, _ := v.Get("permissions"); granted.Len() < len(agents.DefaultPermissions()) {
			detail += ", may " + granted.String()
		}
		return r.Word, detail
	case agents.WordLeft:
		return r.Word, who + " left"
	case agents.WordEffect:
		return effectText(v, reqID)
	case agents.WordOutcome:
		detail = fmt.Sprintf("%s's %s was refused: %s", who, reqID, v.TextOf("code"))
		if reason := v.TextOf("reason"); reason != "" {
			detail += ", " + reason
		}
		if _, _, answer, ok := agents.FinalOutcomeOf(r); ok {
			for _, p := range answer.Problems {
				detail += ", " + p.Path + ": " + p.Reason
			}
		}
		return r.Word, detail
	case agents.WordQuantum:
		return r.Word, fmt.Sprintf("closed by %s: %s from %s on", quantumText(v), Plural(int(v.IntOf("effects")), "effect", "effects"), v.Member("first").String())
	case agents.WordToken:
		detail = fmt.Sprintf("%s generates %s, based on %s", who, reqID, v.Member("context_seq").String())
		if until := v.IntOf("deadline"); until > 0 {
			detail += ", until " + ClockText(time.Duration(until))
		}
		return r.Word, detail
	case agents.WordCancel:
		return r.Word, fmt.Sprintf("%s cancelled %s: %s", who, reqID, v.TextOf("reason"))
	case agents.WordGenerated:
		text := v.TextOf("text")
		if text == "" {
			return r.Word, fmt.Sprintf("%s answered %s: %s", who, reqID, v)
		}
		return r.Word, fmt.Sprintf("%s answered %s: %s", who, reqID, strconv.Quote(text))
	default:
		return r.Word, v.String()
	}
}

// worldBegins counts the entities of a new world and names the first ten.
func worldBegins(v signal.Value) string {
	entities, _ := v.Get("entities")
	var ids []string
	for id := range entities.Members() {
		ids = append(ids, id)
		if len(ids) == 10 {
			break
		}
	}
	text := "begins with " + Plural(entities.Len(), "entity", "entities")
	if len(ids) > 0 {
		text += ": " + strings.Join(ids, ", ")
	}
	return text
}

// effectText describes an accepted effect under its kind.
func effectText(v signal.Value, reqID string) (word, detail string) {
	who := v.TextOf("source_id")
	if who == "" {
		who = "the world"
	}
	detail = fmt.Sprintf("%s: effect %s", who, v.Member("global_seq").String())
	if reqID != "" {
		detail = fmt.Sprintf("%s's %s was accepted: effect %s", who, reqID, v.Member("global_seq").String())
	}
	if payload, ok := v.Get("payload"); ok && payload.Len() > 0 {
		detail += ", " + payload.String()
	}
	return v.TextOf("kind"), detail
}

func quantumText(v signal.Value) string {
	by := v.TextOf("by")
	if by == agents.CloseTick {
		by += " " + v.Member("frame_number").String()
	}
	return by
}
