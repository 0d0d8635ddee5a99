package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// worldText tells a record of the agents' world in a word and one line: who did
// what, and what came of it. What it cannot read it shows as it is.
func worldText(r agents.Record) (word, detail string) {
	v := r.Value
	who, reqID := member(v, "agent_id"), member(v, "req_id")
	switch r.Word {
	case agents.WordConfig:
		return r.Word, "the rules are " + v.String()
	case agents.WordWorld:
		return r.Word, worldBegins(v)
	case agents.WordAgent:
		policy, _ := v.Get("policy")
		name := member(policy, "policy")
		if name == "" {
			name = "default"
		}
		detail = fmt.Sprintf("%s registered, sees by %s", who, name)
		if class := member(v, "class"); class != "" {
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
		detail = fmt.Sprintf("%s's %s was refused: %s", who, reqID, member(v, "code"))
		if reason := member(v, "reason"); reason != "" {
			detail += ", " + reason
		}
		return r.Word, detail
	case agents.WordQuantum:
		return r.Word, fmt.Sprintf("closed by %s: %s from %s on", quantumText(v), plural(int(integer(v, "effects")), "effect", "effects"), figure(v, "first"))
	case agents.WordToken:
		detail = fmt.Sprintf("%s generates %s, going by %s", who, reqID, figure(v, "context_seq"))
		if until := integer(v, "deadline"); until > 0 {
			detail += ", until " + clockText(time.Duration(until))
		}
		return r.Word, detail
	case agents.WordCancel:
		return r.Word, fmt.Sprintf("%s cancelled %s: %s", who, reqID, member(v, "reason"))
	case agents.WordGenerated:
		text := member(v, "text")
		if text == "" {
			return r.Word, fmt.Sprintf("%s answered %s: %s", who, reqID, v)
		}
		return r.Word, fmt.Sprintf("%s answered %s: %s", who, reqID, strconv.Quote(text))
	default:
		return r.Word, v.String()
	}
}

// worldBegins says how much there is of what.
func worldBegins(v signal.Value) string {
	entities, _ := v.Get("entities")
	var ids []string
	for id := range entities.Members() {
		ids = append(ids, id)
		if len(ids) == 10 {
			break
		}
	}
	text := "begins with " + plural(entities.Len(), "entity", "entities")
	if len(ids) > 0 {
		text += ": " + strings.Join(ids, ", ")
	}
	return text
}

// effectText tells an accepted effect under its kind.
func effectText(v signal.Value, reqID string) (word, detail string) {
	who := member(v, "source_id")
	if who == "" {
		who = "the world"
	}
	detail = fmt.Sprintf("%s: effect %s", who, figure(v, "global_seq"))
	if reqID != "" {
		detail = fmt.Sprintf("%s's %s was accepted: effect %s", who, reqID, figure(v, "global_seq"))
	}
	if payload, ok := v.Get("payload"); ok && payload.Len() > 0 {
		detail += ", " + payload.String()
	}
	return member(v, "kind"), detail
}

func quantumText(v signal.Value) string {
	by := member(v, "by")
	if by == agents.CloseTick {
		by += " " + figure(v, "frame_number")
	}
	return by
}

func member(v signal.Value, name string) string {
	m, _ := v.Get(name)
	s, _ := m.Text()
	return s
}

func integer(v signal.Value, name string) int64 {
	m, _ := v.Get(name)
	i, _ := m.Int64()
	return i
}

// figure shows a number that may be of any kind.
func figure(v signal.Value, name string) string {
	m, _ := v.Get(name)
	return m.String()
}
