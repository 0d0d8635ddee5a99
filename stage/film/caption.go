package film

import (
	"context"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Caption returns the line below the picture of a moment: its address and, for an entry,
// what it records: who did what, if it is a signal of a well-known type.
func (r *Reel) Caption(ctx context.Context, m replay.Moment) (string, error) {
	if m.Seq == 0 || m.Offset != 0 {
		return m.String(), nil
	}
	e, err := r.log.Entry(ctx, m.Seq)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%v %s", m, EntryText(&e)), nil
}

// EntryText tells what an entry records, in a few words. They are not made printable.
func EntryText(e *eventlog.Entry) string {
	switch e.Kind {
	case eventlog.KindSignal:
		if sig, err := signal.Decode(e.Data); err == nil {
			return signalText(&sig)
		}
	case eventlog.KindBeat:
		if r, err := session.BeatOf(e); err == nil {
			if u, ok := session.UtteranceOf(r); ok {
				return u.Role + ": " + u.Text
			}
			return "director: " + r.Word
		}
	default:
		if word, _, err := session.WordOf(e); err == nil && word != "" {
			return e.Kind.String() + " " + word
		}
	}
	return e.Kind.String()
}

// signalText tells who did what. A signal of another type has its type and its agent or
// source.
func signalText(sig *signal.Signal) string {
	field := func(name string) string {
		v, _ := sig.Payload.Get(name)
		text, _ := v.Text()
		return strings.TrimSpace(text)
	}
	failed := false
	if v, ok := sig.Payload.Get("success"); ok {
		success, known := v.Bool()
		failed = known && !success
	}
	who := field("agentId")
	switch task := field("taskId"); {
	case who != "":
	case sig.Type == "completion" && task != "":
		who = "task " + task
	default:
		who = sig.Source
	}
	said := func(words ...string) string {
		return strings.TrimSpace(strings.Join(words, " "))
	}
	quoted := func(verb, text string) string {
		if text == "" {
			return said(who, verb)
		}
		return said(who, verb) + ": " + text
	}
	outcome := map[bool]string{true: "failed", false: "answered"}[failed]
	switch sig.Type {
	case "task_dispatch":
		text := said(field("from"), "→", field("to"))
		if what := field("description"); what != "" {
			text += ": " + what
		}
		return text
	case "tool_call":
		return said(who, "calls", field("toolName"))
	case "tool_result":
		return said(who+":", field("toolName"), outcome)
	case "agent_state_change":
		return said(who, "is", field("to"))
	case "thinking":
		return quoted("thinks", field("content"))
	case "text_delta":
		return quoted("says", field("content"))
	case "error":
		return quoted("has an error", field("message"))
	case "completion":
		if failed {
			return quoted("gives up", field("result"))
		}
		return quoted("is done", field("result"))
	case "token_usage":
		return said(who, "uses", tokens(sig.Payload), "tokens")
	}
	return said(sig.Type, "of", who)
}

// tokens returns the sum of the tokens of a payload.
func tokens(payload signal.Value) string {
	sum := int64(0)
	for _, name := range [...]string{"promptTokens", "completionTokens"} {
		v, _ := payload.Get(name)
		if n, ok := v.Int64(); ok {
			sum += n
		}
	}
	return fmt.Sprint(sum)
}
