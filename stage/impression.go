package stage

import (
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// How long impressions last.
const (
	glowLasts = 600 * time.Millisecond
	rayLasts  = 800 * time.Millisecond
)

// The colors of impressions.
const (
	glowGood = "#4ade80"
	glowBad  = "#ef4444"
	rayColor = "#7dd3fc"
)

// glow is the flash of an impression.
type glow struct {
	color string // "" for none
	since time.Duration
}

func (g *glow) strength(at time.Duration) float64 {
	if g.color == "" {
		return 0
	}
	return 1 - share(at-g.since, glowLasts)
}

// ray is the beam of an impression: it grows for the first half of its time and fades
// in the second.
type ray struct {
	to    string // entity, "" for none
	at    scene.Point
	since time.Duration
}

func (r *ray) lit(at time.Duration) bool { return r.to != "" && at-r.since < rayLasts }

func (r *ray) frame(e *entity, at time.Duration) Beam {
	from, elapsed := e.position(at), at-r.since
	p := share(elapsed, rayLasts/2)
	return Beam{
		From: e.id, To: r.to, FromX: from.X, FromY: from.Y,
		ToX: between(from.X, r.at.X, p), ToY: between(from.Y, r.at.Y, p),
		Color: rayColor, Width: beamWidth, Opacity: 1 - share(elapsed-rayLasts/2, rayLasts/2),
	}
}

// fields are the members of a payload that impressions read.
type fields struct {
	from, to, agent, source         string
	tool, task, description, result string
	content, message, text          string
	success                         bool
	succeeded                       bool // the payload has success
}

// read scans the payload once. A lookup for each member would scan everything before
// the payload again, and the input of a tool may be long.
func (f *fields) read(payload signal.Value) {
	for name, v := range payload.Members() {
		var t *string
		switch name {
		case "from":
			t = &f.from
		case "to":
			t = &f.to
		case "agentId":
			t = &f.agent
		case "source":
			t = &f.source
		case "toolName":
			t = &f.tool
		case "taskId":
			t = &f.task
		case "description":
			t = &f.description
		case "result":
			t = &f.result
		case "content":
			t = &f.content
		case "message":
			t = &f.message
		case "text":
			t = &f.text
		case "success":
			f.success, f.succeeded = v.Bool()
			continue
		default:
			continue
		}
		*t, _ = v.Text()
	}
}

// Signal shows the impression of a signal if [Stage.Impressed]. It keeps no
// reference to sig.
func (s *Stage) Signal(_ uint64, sig *signal.Signal) {
	if !s.Impressed() {
		return
	}
	var f fields
	f.read(sig.Payload)
	switch sig.Type {
	case "task_dispatch":
		s.dispatch(f.from, f.to, first(f.description, f.task))
	case "tool_call":
		if e := s.agent(f.agent); e != nil {
			s.speak(e, "→ "+prefix(f.tool, maxSpeech), false)
			e.state = "acting"
		}
	case "tool_result":
		if e := s.agent(f.agent); e != nil {
			s.light(e, f.success)
		}
	case "agent_state_change":
		if e := s.agent(f.agent); e != nil && f.to != "" && len(f.to) <= MaxName && e.state != f.to {
			e.state = s.intern(f.to)
		}
	case "error":
		if e := s.agent(first(f.agent, speaker(sig.Source))); e != nil {
			s.light(e, false)
			s.speak(e, f.message, false)
		}
	case "completion":
		if e := s.agent(first(f.agent, speaker(sig.Source))); e != nil {
			s.light(e, f.success || !f.succeeded)
			s.speak(e, f.result, false)
		}
	case "thinking":
		if e := s.agent(f.agent); e != nil {
			s.speak(e, f.content, true)
			if e.state != "thinking" {
				e.state = "thinking"
			}
		}
	case "text_delta":
		if e := s.agent(f.agent); e != nil {
			s.speak(e, f.content, true)
		}
	case "token_usage":
		s.agent(f.agent)
	default:
		if strings.HasPrefix(sig.Type, "user.") {
			return
		}
		s.dispatch(first(f.from, f.agent, f.source, speaker(sig.Source)), f.to, first(f.text, f.content, f.message))
	}
}

// dispatch shows a message from one agent to another, or speech.
func (s *Stage) dispatch(from, to, said string) {
	e := s.agent(from)
	other := s.agent(to)
	if e == nil {
		return
	}
	if other != nil && other != e {
		e.ray = ray{to: other.id, at: other.position(s.now), since: s.now}
		s.extendBusy(later(s.now, rayLasts))
	}
	s.speak(e, said, false)
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// speaker returns the agent that the source of a signal names, or "" if the source is a
// part of the system.
func speaker(source string) string {
	switch source {
	case "system", "sajou", "mcp", "http", "unknown":
		return ""
	}
	if strings.HasPrefix(source, "adapter:") || strings.HasPrefix(source, "local:") {
		return ""
	}
	return source
}

// agent returns the entity of an agent, or nil without a name or at the limit of
// entities.
func (s *Stage) agent(name string) *entity {
	if name == "" {
		return nil
	}
	group := s.resolve(name, nil)
	if len(group) == 0 {
		return nil
	}
	e := group[0]
	e.touched = true
	return e
}

// speak makes e say a text, unless the text is empty. Added text continues only speech
// that began as a stream, not the sentence of another signal.
func (s *Stage) speak(e *entity, said string, add bool) {
	if said == "" {
		return
	}
	s.take(e, chText.mask())
	if add && !e.words.stream {
		e.words = words{}
	}
	e.words = e.words.say(said, add, s.now)
	s.extendBusy(e.words.end())
}

// light makes e flash.
func (s *Stage) light(e *entity, good bool) {
	e.glow = glow{color: glowBad, since: s.now}
	if good {
		e.glow.color = glowGood
	}
	s.extendBusy(later(s.now, glowLasts))
}
