// Package hooks reads captured payloads of hooks: the JSON objects that Claude Code, and in the
// same form Codex, hand to the commands of a user at each event. Collectors keep them one a
// line, as an array, or one a file.
//
// A payload has no time. The signals then have the times of the stated clock, unless the
// collector added a time. Payloads of several kinds may be missing from a capture,
// so that a call may have no result, or a result no call.
package hooks

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Format returns the format of captured payloads of hooks.
func Format() recording.Format {
	return recording.Format{
		Name:       "hooks",
		Title:      "Hook payloads of Claude Code and Codex",
		Agent:      "claude",
		Recognized: "lines, an array or one object with hook_event_name",
		Grows:      true,
		Detect:     detect,
		Map:        read,
	}
}

// eventNames are the names of the member that has the event: Grok writes the second.
var eventNames = []string{"hook_event_name", "hookEventName"}

func detect(s *recording.Sample) string {
	for _, name := range eventNames {
		if s.Has("[]."+name) || s.Has(name) || s.AnyLine(func(v signal.Value) bool { return v.TextOf(name) != "" }) {
			return "the payloads have " + name
		}
	}
	return ""
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	r := &reader{m: m, sessions: map[string]*session{}}
	for rec, err := range in.Records(in.Name) {
		if err != nil {
			return err
		}
		r.payload(rec.Value)
	}
	return nil
}

type reader struct {
	m        *recording.Mapping
	live     bool // the payload came alone, see [Live]
	begun    bool
	cwd      string // the last one that a signal has told
	sessions map[string]*session
}

// The bounds of what is remembered of sessions.
const (
	maxSessions = 1024
	maxOpen     = 1024
)

// session is the state of one native session. A capture may have several.
type session struct {
	prompts int
	turn    string // of the last prompt
	ended   bool   // the turn has its completion
	calls   int
	open    []openCall // without ids of their own, the oldest first
	tasks   []string   // open calls that started subagents, the oldest first
}

// openCall is a call without an id, which its result has to find.
type openCall struct {
	key [sha256.Size]byte
	id  string
}

func (r *reader) session(id string) *session {
	s := r.sessions[id]
	if s == nil {
		if len(r.sessions) >= maxSessions {
			// So many sessions are no capture of one collector: forget them all.
			clear(r.sessions)
		}
		s = &session{}
		r.sessions[strings.Clone(id)] = s
	}
	return s
}

// payload is one payload with what is derived from it.
type payload struct {
	signal.Value
	event   string // lower case, without underscores
	session *session
	agent   string
	main    string // the main agent
	corr    string
}

// text returns the first member that is there, by its names in snake case and in camel case.
func (p payload) text(names ...string) string {
	v := p.any(names...)
	text, _ := v.Text()
	return text
}

func (p payload) any(names ...string) signal.Value {
	for _, name := range names {
		if v, ok := p.Get(name); ok && !recording.Trimmed(v) {
			return v
		}
	}
	return nil
}

// timeNames are the members in which collectors note a time.
var timeNames = []string{"logged_at", "timestamp", "received_at", "time"}

func (r *reader) payload(v signal.Value) {
	p := payload{Value: v}
	event := p.text(eventNames...)
	if event == "" {
		return // kept as a record
	}
	p.event = canonical(event)
	at, timed := recording.TimeValue(p.any(timeNames...), time.Millisecond)
	if !r.begun {
		r.begun = true
		if !timed {
			r.m.Invent()
		}
	}
	r.m.SetTime(at, timed)
	r.identify(&p)
	r.event(p, event)
}

// identify derives the agent and the turn of a payload.
func (r *reader) identify(p *payload) {
	id := p.text("session_id", "sessionId")
	r.m.SetSession(id)
	p.session = r.session(id)
	transcript := strings.ReplaceAll(p.text("transcript_path", "transcriptPath"), "\\", "/")
	switch {
	case strings.Contains(transcript, "/.codex/"), transcript == "" && p.text("turn_id") != "":
		p.main = "codex"
	case strings.Contains(transcript, "/.grok/"), p.text("hookEventName") != "":
		p.main = "grok"
	default:
		p.main = "claude"
	}
	p.agent = p.text("agent_id", "agentId")
	p.corr = p.agent
	if p.agent == "" {
		p.agent = p.main
	}
	for _, corr := range []string{p.text("turn_id"), p.text("prompt_id"), p.session.turn, id} {
		if p.corr == "" {
			p.corr = corr
		}
	}
	if cwd := p.text("cwd"); cwd != "" && cwd != r.cwd {
		r.cwd = strings.Clone(cwd)
		r.m.AddMeta("cwd", p.any("cwd"))
	}
	r.m.AddMeta("permissionMode", p.any("permission_mode"))
	r.m.AddMeta("agentType", p.any("agent_type"))
	r.m.Origin("model", p.any("model"))
}

func (r *reader) event(p payload, name string) {
	if call := p.text("tool_use_id", "toolUseId"); call != "" && r.m.Repeats(p.event+" "+call) {
		// Two collectors, or hooks of the user and of the project, note one event.
		r.m.Skip("repeated event")
		return
	}
	switch p.event {
	case "sessionstart":
		r.m.State("", p.agent, recording.Thinking, p.text("source"))
		r.m.Skip("no change")
	case "sessionend":
		r.m.State("", p.agent, recording.Idle, p.text("reason"))
		r.m.Skip("no change")
	case "userpromptsubmit":
		r.prompt(p)
	case "pretooluse":
		r.call(p)
	case "posttooluse":
		r.result(p)
	case "posttoolusefailure":
		r.failure(p)
	case "permissionrequest":
		reason := "permission"
		if tool := p.text("tool_name", "toolName"); tool != "" {
			reason += " for " + tool
		}
		r.m.State(p.corr, p.agent, recording.Waiting, reason)
		r.m.Skip("no change")
	case "notification":
		r.m.AddMeta("notificationType", p.any("notification_type"))
		r.m.State(p.corr, p.agent, recording.Waiting, p.text("message"))
		r.m.Skip("no change")
	case "subagentstart":
		if id := p.text("agent_id", "agentId"); id != "" {
			r.m.Dispatch(id, id, p.main, id, p.text("prompt", "agent_type"))
		}
	case "subagentstop":
		r.subagentStop(p)
	case "stop":
		r.stop(p)
	case "precompact":
		r.m.KeepPart("pre_compact", p.corr, p.Value)
	default:
		r.m.Keep(name)
	}
}

func (r *reader) prompt(p payload) {
	s := p.session
	s.prompts++
	id := p.text("turn_id")
	if id == "" {
		id = p.text("prompt_id")
	}
	switch {
	case id != "" && id != s.turn:
	case r.live:
		id = p.text("session_id", "sessionId") // the number of the prompt is not known
	default:
		id = p.text("session_id", "sessionId") + "/" + strconv.Itoa(s.prompts)
	}
	s.turn, s.ended = strings.Clone(id), false
	text := p.text("prompt")
	r.m.SetLength(len(text))
	r.m.Dispatch(s.turn, s.turn, recording.User, p.agent, text)
}

func (r *reader) call(p payload) {
	tool, input := p.tool()
	s := p.session
	id := p.text("tool_use_id", "toolUseId")
	if id == "" && !r.live {
		s.calls++
		id = p.text("session_id", "sessionId") + "/call/" + strconv.Itoa(s.calls)
		if len(s.open) == maxOpen {
			s.open = s.open[1:]
		}
		s.open = append(s.open, openCall{callKey(tool, input), id})
	}
	if startsAgent(tool) {
		if len(s.tasks) == maxOpen {
			s.tasks = s.tasks[1:]
		}
		s.tasks = append(s.tasks, strings.Clone(id))
	}
	r.m.SetLength(len(input))
	r.m.Call(p.corr, p.agent, tool, id, input)
}

// startsAgent reports whether a tool starts a subagent: those of Claude Code, and that of Codex.
func startsAgent(tool string) bool {
	return tool == "Task" || tool == "Agent" || tool == "spawn_agent"
}

func (p payload) tool() (name string, input signal.Value) {
	if name = p.text("tool_name", "toolName"); name == "" {
		name = "unknown"
	}
	return name, p.any("tool_input", "toolInput")
}

// callKey is equal for a call and its result.
func callKey(tool string, input signal.Value) [sha256.Size]byte {
	return sha256.Sum256(append(append([]byte(tool), 0), input...))
}

// callID returns the id of the call that a payload is about. Without ids a result belongs to
// the oldest open call of the same tool with the same input.
func (p payload) callID() string {
	id := p.text("tool_use_id", "toolUseId")
	s := p.session
	if id == "" {
		tool, input := p.tool()
		key := callKey(tool, input)
		for i, c := range s.open {
			if c.key == key {
				id = c.id
				s.open = append(s.open[:i:i], s.open[i+1:]...)
				break
			}
		}
	}
	for i, task := range s.tasks {
		if task == id {
			s.tasks = append(s.tasks[:i:i], s.tasks[i+1:]...)
			break
		}
	}
	return id
}

func (r *reader) result(p payload) {
	response := p.any("tool_response", "toolResponse", "tool_result", "toolResult")
	success := !response.BoolOf("is_error") && !response.BoolOf("interrupted")
	if ok, has := response.Member("success").Bool(); has && !ok {
		success = false
	}
	r.answer(p, success, response)
}

func (r *reader) failure(p payload) {
	message := p.any("error")
	r.answer(p, false, signal.NewObject(1).Add("error", message).Value())
	if p.BoolOf("is_interrupt") {
		text, _ := message.Text()
		if text == "" {
			text = "interrupted"
		}
		r.m.Error(p.corr, p.agent, recording.CodeInterrupted, recording.Warning, text)
	}
}

func (r *reader) answer(p payload, success bool, output signal.Value) {
	tool, _ := p.tool()
	r.m.AddMeta("durationMs", p.any("duration_ms"))
	r.m.SetLength(len(output))
	call, corr := p.callID(), p.corr
	if _, _, known := r.m.CallOf(call); known {
		corr = ""
	}
	r.m.Result(corr, recording.Answer{CallID: call, Tool: tool, Agent: p.agent, Success: success, Output: output})
}

// stop maps the end of a turn. One that follows another because a hook held the agent back is
// the end of the same turn.
func (r *reader) stop(p payload) {
	s := p.session
	if p.BoolOf("stop_hook_active") && s.ended {
		r.m.State(p.corr, p.agent, recording.Done, "")
		r.m.Skip("repeated stop")
		return
	}
	s.ended = true
	r.m.Complete(p.corr, p.corr, p.agent, true, p.text("last_assistant_message"))
}

// subagentStop maps the end of a subagent. Older payloads do not name it: then it is the one
// that the oldest open call started.
func (r *reader) subagentStop(p payload) {
	result := p.text("last_assistant_message")
	if id := p.text("agent_id", "agentId"); id != "" {
		r.m.Complete(id, id, id, true, result)
		return
	}
	if len(p.session.tasks) == 0 {
		r.m.Keep("SubagentStop")
		return
	}
	call := p.session.tasks[0]
	p.session.tasks = p.session.tasks[1:]
	r.m.Complete(p.corr, call, "", true, result)
}
