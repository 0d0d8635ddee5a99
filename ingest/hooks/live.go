package hooks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Arrival says how one payload came that is mapped at once, without those before it.
type Arrival struct {
	// At is when it came. It is the time of its signals.
	At recording.Instant

	// Key names this arrival and no other. The ids of the signals derive from it, or from
	// the event if the payload names that.
	Key string

	// Source of the signals. Empty means "adapter:" and the name of the main agent.
	Source string
}

// LivePayload is one payload as signals.
type LivePayload struct {
	Session string // the native id of the session; "" if the payload has none
	Agent   string // the main agent: claude, codex or grok
	Event   string // as the payload spells it

	// Key is the same for two arrivals of one event, as when the hooks of the user and
	// those of the project both run, if the payload names the event by a call of a tool.
	// Else it is the key of the arrival.
	Key string

	Signals []*signal.Signal
}

// ErrNoPayload reports text that is not the payload of a hook.
var ErrNoPayload = errors.New("hooks: not the payload of a hook")

// Live maps one payload at the time when it arrives, by the same rules as a capture. The
// payloads before it are not known, so three things differ:
//
//   - the correlation id of all signals is the native id of the session;
//   - the state that an agent leaves is the one that the event implies: an agent acts
//     before the result of a call, is idle before a prompt, and thinks otherwise;
//   - a result without the id of its call, and the end of a subagent without its id,
//     belong to no call.
//
// An event that is not known is a signal with the payload; its type is the event behind
// "hooks.".
func Live(text []byte, arrival Arrival) (LivePayload, error) {
	v, _, err := recording.ParseJSON(text)
	if err != nil {
		return LivePayload{}, fmt.Errorf("%w: %w", ErrNoPayload, err)
	}
	p := payload{Value: v}
	out := LivePayload{Session: p.text("session_id", "sessionId"), Event: p.text(eventNames...), Key: arrival.Key}
	if out.Event == "" {
		return LivePayload{}, fmt.Errorf("%w: it has no hook_event_name", ErrNoPayload)
	}
	if call := p.text("tool_use_id", "toolUseId"); call != "" && out.Session != "" {
		out.Key = recording.ID("hooks", out.Session, canonical(out.Event)+" "+call)
	}
	format := Format()
	format.Grows = false // so that no time waits for that of a later record
	format.Map = func(_ *recording.Recorded, m *recording.Mapping) error {
		m.Begin(recording.NativeRecord{Value: v})
		m.SetNativeID(out.Key)
		m.SetTime(arrival.At, true)
		r := &reader{m: m, live: true, sessions: map[string]*session{}}
		p := payload{Value: v, event: canonical(out.Event)}
		r.identify(&p)
		out.Agent = p.main
		r.assume(p)
		r.event(p, out.Event)
		return nil
	}
	source := arrival.Source
	for item, err := range format.Open(nil, "hook", recording.Options{Unchecked: true}).Items() {
		if err != nil {
			return LivePayload{}, err
		}
		sig := item.Signal
		if sig.Type == recording.TypeRecording {
			continue // no recording begins here
		}
		if source == "" {
			source = "adapter:" + out.Agent
		}
		sig.Source, sig.CorrelationID = source, nil
		if out.Session != "" {
			sig.CorrelationID = &out.Session
		}
		out.Signals = append(out.Signals, sig)
	}
	return out, nil
}

// assume says what the event implies about its agent.
func (r *reader) assume(p payload) {
	switch p.event {
	case "posttooluse", "posttoolusefailure":
		r.m.Assume(p.agent, recording.Acting, 1)
	case "userpromptsubmit", "sessionstart", "subagentstart":
	default:
		r.m.Assume(p.agent, recording.Thinking, 0)
	}
}

// canonical returns the name of an event in the form by which events are told apart.
func canonical(event string) string { return strings.ToLower(strings.ReplaceAll(event, "_", "")) }
