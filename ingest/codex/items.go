package codex

import (
	"regexp"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// item maps an item of the conversation with the model.
func (r *reader) item(p signal.Value) {
	kind := p.TextOf("type")
	if kind == "message" && p.TextOf("role") == "user" {
		r.input(p)
		return
	}
	if kind != "ghost_snapshot" && p.TextOf("role") != "developer" && p.TextOf("role") != "system" {
		r.flush()
	}
	call := text(p, "call_id")
	switch kind {
	case "message":
		r.answer(p)
	case "reasoning":
		r.reasoning(p)
	case "function_call":
		r.call(text(p, "name"), call, recording.Nested(p.Member("arguments")))
	case "custom_tool_call":
		r.call(text(p, "name"), call, customInput(p.Member("input")))
	case "local_shell_call":
		if call == "" {
			call = text(p, "id")
		}
		r.call("local_shell", call, p.Member("action"))
	case "tool_search_call":
		r.call("tool_search", call, p.Member("arguments"))
	case "function_call_output", "custom_tool_call_output":
		r.output(call, p.Member("output"))
	case "tool_search_output":
		r.result(call, "tool_search", p.TextOf("status") != "failed", signal.NewObject(1).Add("tools", p.Member("tools")).Value())
	case "web_search_call":
		if r.search.item() {
			r.whole("web_search", text(p, "id"), p.Member("action"), p.TextOf("status") != "failed", nil)
		}
		r.m.Skip("repeats an event")
	case "image_generation_call":
		if r.image.item() {
			r.whole("image_generation", text(p, "id"), promptOf(p), p.TextOf("status") != "failed", nil)
		}
		r.m.Skip("repeats an event")
	case "ghost_snapshot", "compaction", "compaction_summary":
		r.m.Skip(kind)
	case "":
	default:
		r.m.Keep(kind)
	}
}

func promptOf(p signal.Value) signal.Value {
	return signal.NewObject(1).Add("revised_prompt", p.Member("revised_prompt")).Value()
}

// customInput is the input of a custom tool, which is free text.
func customInput(v signal.Value) signal.Value {
	if v.Kind() == signal.KindString {
		return signal.NewObject(1).Add("input", v).Value()
	}
	return v
}

// input holds an item with the role user: the next event tells whether it is a prompt, and
// if the recording has no such events, the answer to it does.
func (r *reader) input(p signal.Value) {
	content := joined(p.Member("content"))
	if r.prompted || strings.HasPrefix(content, "<") || strings.HasPrefix(content, "# AGENTS.md") || content == "" {
		r.m.Skip("input that is no prompt")
		return
	}
	r.flush()
	r.m.Hold()
	r.asked = &askedInput{strings.Clone(content), r.m.Save()}
}

// joined returns the texts of a list of parts.
func joined(content signal.Value) string {
	if text, ok := content.Text(); ok {
		return text
	}
	var texts []string
	for part := range content.Elements() {
		if t := text(part, "text"); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n")
}

func (r *reader) answer(p signal.Value) {
	if p.TextOf("role") != "assistant" {
		r.m.Skip("instructions")
		return
	}
	for part := range p.Member("content").Elements() {
		if content := text(part, "text"); content != "" {
			r.m.Text(r.active(), r.agent, content)
			r.turn.answered = true
		}
	}
	r.m.Skip("no content")
}

func (r *reader) reasoning(p signal.Value) {
	r.turn.answered = false
	parts := p.Member("summary")
	if parts.Len() == 0 {
		parts = p.Member("content")
	}
	for part := range parts.Elements() {
		if thought := text(part, "text"); thought != "" {
			r.m.Thought(r.active(), r.agent, thought)
		}
	}
	r.m.Skip("encrypted reasoning")
}

func (r *reader) call(tool, id string, input signal.Value) {
	r.turn.answered = false
	if tool == "" {
		tool = "unknown"
	}
	if id != "" {
		r.m.Repeats("call " + id) // remembers it
	}
	r.m.Call(r.active(), r.agent, tool, id, input)
}

// whole maps a call that is told together with its end.
func (r *reader) whole(tool, id string, input signal.Value, success bool, output signal.Value) {
	if id == "" {
		id = r.m.NativeID()
	}
	r.call(tool, id, input)
	r.result(id, tool, success, output)
}

func (r *reader) result(id, tool string, success bool, output signal.Value) {
	r.turn.answered = false
	corr := ""
	if _, _, known := r.m.CallOf(id); !known {
		corr = r.active()
	}
	r.m.Result(corr, recording.Answer{CallID: id, Tool: tool, Agent: r.agent, Success: success, Output: output})
}

// output maps the output of a call. Its success is what the event of the call says, and else
// what the output says.
func (r *reader) output(id string, v signal.Value) {
	success, known := r.status.take(id)
	if !known {
		success = succeeded(v)
	}
	r.result(id, "", success, v)
}

// exitCode is how the outputs of commands tell it, above the output itself.
var exitCode = regexp.MustCompile(`(?m)^(?:Process exited with code|Exit code:) (-?\d+)\s*$`)

// failures begin the outputs of calls that failed without an exit code.
var failures = []string{"execution error", "aborted", "apply_patch verification failed", "failed to parse function arguments", "unsupported call"}

// succeeded tells by an output whether its call succeeded. One that says nothing did.
func succeeded(v signal.Value) bool {
	inner := recording.Nested(v)
	if inner.Kind() == signal.KindObject {
		if code, ok := inner.Member("metadata").Member("exit_code").Int64(); ok {
			return code == 0
		}
		if success, ok := inner.Member("success").Bool(); ok {
			return success
		}
		if content := inner.Member("content"); content.Kind() != signal.KindAbsent {
			inner = content
		}
	}
	content := joined(inner)
	head, _, _ := strings.Cut(content, "\nOutput:")
	if m := exitCode.FindStringSubmatch(head[:min(len(head), 1000)]); m != nil {
		return m[1] == "0"
	}
	for _, start := range failures {
		if strings.HasPrefix(content, start) {
			return false
		}
	}
	return true
}

// maxStatuses bounds the calls whose success is known before their output.
const maxStatuses = 1024

// statuses are the calls whose end an event told, in the order of the events.
type statuses struct {
	success map[string]bool
	order   []string
}

func (s *statuses) add(id string, success bool) {
	if s.success == nil {
		s.success = map[string]bool{}
	}
	id = strings.Clone(id)
	if _, known := s.success[id]; !known {
		s.order = append(s.order, id)
	}
	s.success[id] = success
	if len(s.order) > maxStatuses {
		delete(s.success, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *statuses) take(id string) (success, known bool) {
	success, known = s.success[id]
	delete(s.success, id)
	return success, known
}

// settle answers the calls whose end was told by an event alone.
func (r *reader) settle() {
	order := r.status.order
	r.status.order = nil
	for _, id := range order {
		success, known := r.status.take(id)
		if _, _, open := r.m.CallOf(id); known && open {
			r.result(id, "", success, nil)
		}
	}
}
