package codex

import (
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// repeated are the events that repeat an item, or the beginning of what another event ends.
var repeated = map[string]bool{
	"agent_message": true, "agent_reasoning": true, "agent_reasoning_raw_content": true, "agent_reasoning_section_break": true,
	"item_started": true, "item_completed": true, "exec_command_begin": true, "mcp_tool_call_begin": true,
	"patch_apply_begin": true, "web_search_begin": true, "image_generation_begin": true, "collab_agent_spawn_begin": true,
	"collab_close_begin": true, "collab_waiting_begin": true, "collab_agent_interaction_begin": true,
}

// settings are the events about the program, not about the conversation.
var settings = map[string]bool{
	"thread_name_updated": true, "thread_settings_applied": true, "session_configured": true,
}

// event maps what the screen showed.
func (r *reader) event(p signal.Value) {
	kind, call := p.TextOf("type"), text(p, "call_id")
	switch kind {
	case "user_message":
		r.userMessage(p)
	case "task_started", "turn_started":
		r.limits = true
		r.started(p)
	case "task_complete", "turn_complete":
		r.limits = true
		if !r.turn.open {
			r.m.Skip(kind)
			return
		}
		r.m.AddMeta("durationMs", p.Member("duration_ms"))
		r.endTurn(!r.turn.failed)
		r.m.Skip(kind)
	case "turn_aborted":
		r.aborted(p)
	case "token_count":
		r.tokens(p)
	case "exec_command_end", "patch_apply_end", "mcp_tool_call_end", "view_image_tool_call", "dynamic_tool_call_response":
		r.ended(kind, call, p)
	case "dynamic_tool_call_request":
		r.m.Skip("repeats an item")
	case "web_search_end":
		if r.search.event() {
			input := signal.NewObject(2).Add("query", p.Member("query")).Add("action", p.Member("action")).Value()
			r.whole("web_search", call, input, true, results(p))
		}
		r.m.Skip("repeats an item")
	case "image_generation_end":
		if r.image.event() {
			r.whole("image_generation", call, promptOf(p), p.TextOf("status") != "failed", nil)
		}
		r.m.Skip("repeats an item")
	case "context_compacted":
		if r.shrunk.event() {
			r.m.KeepPart("compact", r.turn.id, p)
		}
		r.m.Skip("repeated compaction")
	default:
		r.otherEvent(kind, p)
	}
}

func (r *reader) otherEvent(kind string, p signal.Value) {
	switch {
	case kind == "error" || kind == "stream_error" || kind == "warning":
		r.failed(kind, p)
	case strings.HasPrefix(kind, "collab_") && !repeated[kind]:
		r.collab(kind, p)
	case kind == "sub_agent_activity":
		r.m.Skip(kind)
	case repeated[kind]:
		r.m.Skip("repeats an item")
	case settings[kind]:
		r.m.Skip("settings")
	case kind != "":
		r.m.Keep(kind)
	}
}

func results(p signal.Value) signal.Value {
	if p.Member("results").Len() == 0 {
		return nil
	}
	return signal.NewObject(1).Add("results", p.Member("results")).Value()
}

func (r *reader) userMessage(p signal.Value) {
	r.prompted = true
	r.flush()
	r.prompt(text(p, "message"), p)
}

func (r *reader) started(p signal.Value) {
	r.m.Skip("task_started")
	if id := text(p, "turn_id"); id != "" && id != r.turn.id {
		if r.turn.open && !r.turn.answered && r.turn.failed {
			r.endTurn(false)
		}
		r.open(id)
	}
}

func (r *reader) aborted(p signal.Value) {
	r.limits = true
	reason := text(p, "reason")
	code := reason
	if reason == "" || reason == "interrupted" {
		code = recording.CodeInterrupted
	}
	r.m.AddMeta("durationMs", p.Member("duration_ms"))
	r.m.Error(r.active(), r.agent, code, recording.Warning, "The turn was aborted: "+code)
	r.endTurn(false)
}

// failed maps an error. After an error of the stream the program tries again.
func (r *reader) failed(kind string, p signal.Value) {
	message := text(p, "message")
	if message == "" {
		message = kind
	}
	code := text(p, "codex_error_info")
	for name := range p.Member("codex_error_info").Members() {
		code = name
		break
	}
	if code == "" {
		code = kind
	}
	severity := recording.Warning
	if kind == "error" {
		severity = recording.Severe
		r.turn.failed = true
	}
	r.m.Error(r.active(), r.agent, code, severity, message)
}

// tokens maps a count of tokens. It repeats the last one when nothing was used since.
func (r *reader) tokens(p signal.Value) {
	info := p.Member("info")
	last, total := info.Member("last_token_usage"), info.Member("total_token_usage")
	if last.Kind() != signal.KindObject {
		r.m.Skip("token_count without counts")
		return
	}
	if total.Kind() == signal.KindObject {
		if string(total) == string(r.total) {
			r.m.Skip("repeated token_count")
			return
		}
		r.total = append(r.total[:0], total...)
	}
	r.usage(last)
}

func (r *reader) usage(u signal.Value) {
	r.m.Tokens(r.active(), r.agent, recording.TokenCount{
		Model:      r.model,
		Prompt:     u.IntOf("input_tokens"),
		Completion: u.IntOf("output_tokens"),
		CacheRead:  u.IntOf("cached_input_tokens"),
		CacheWrite: u.IntOf("cache_write_input_tokens"),
		Reasoning:  u.IntOf("reasoning_output_tokens"),
	})
}

// ended maps the event that a call ended. If the call is known, its output is still to come and
// takes its success from here; else the event is all there is.
func (r *reader) ended(kind, id string, p signal.Value) {
	tool, input, success, output := outcome(kind, p)
	if id == "" {
		r.m.Keep(kind)
		return
	}
	if _, _, open := r.m.CallOf(id); open {
		r.status.add(id, success)
		r.m.Skip("repeats an item")
		return
	}
	if r.m.Repeats("call " + id) { // it was answered before
		r.m.Skip("repeats an item")
		return
	}
	r.whole(tool, id, input, success, output)
}

// outcome reads the event of an ended call.
func outcome(kind string, p signal.Value) (tool string, input signal.Value, success bool, output signal.Value) {
	o := signal.NewObject(3)
	switch kind {
	case "exec_command_end":
		code, known := p.Member("exit_code").Int64()
		success = p.TextOf("status") != "failed" && p.TextOf("status") != "declined" && (!known || code == 0)
		for _, name := range []string{"stdout", "stderr", "exit_code"} {
			o.Add(name, p.Member(name))
		}
		return "exec_command", signal.NewObject(2).Add("command", p.Member("command")).Add("cwd", p.Member("cwd")).Value(), success, o.Value()
	case "patch_apply_end":
		for _, name := range []string{"stdout", "stderr"} {
			o.Add(name, p.Member(name))
		}
		return "apply_patch", signal.NewObject(1).Add("changes", p.Member("changes")).Value(), p.BoolOf("success"), o.Value()
	case "mcp_tool_call_end":
		call := p.Member("invocation")
		if tool = text(call, "tool"); tool == "" {
			tool = "unknown"
		}
		if server := text(call, "server"); server != "" {
			tool = "mcp__" + server + "__" + tool
		}
		output = p.Member("result")
		_, failed := output.Get("Err")
		ok := output.Member("Ok")
		failed = failed || ok.BoolOf("isError") || ok.BoolOf("is_error")
		return tool, call.Member("arguments"), !failed, output
	case "dynamic_tool_call_response":
		if tool = text(p, "tool"); tool == "" {
			tool = "unknown"
		}
		return tool, p.Member("arguments"), p.BoolOf("success"), signal.NewObject(1).Add("content_items", p.Member("content_items")).Value()
	default: // view_image_tool_call
		return "view_image", signal.NewObject(1).Add("path", p.Member("path")).Value(), true, nil
	}
}

// collab maps what the agent does with the threads of other agents.
func (r *reader) collab(kind string, p signal.Value) {
	thread := text(p, "new_thread_id")
	switch {
	case kind == "collab_agent_spawn_end" && thread != "":
		r.m.AddMeta("nickname", p.Member("new_agent_nickname"))
		r.m.AddMeta("agentType", p.Member("new_agent_role"))
		r.m.AddMeta("callId", p.Member("call_id"))
		r.m.Dispatch(thread, thread, r.agent, thread, text(p, "prompt"))
	case kind == "collab_close_end" && text(p, "receiver_thread_id") != "":
		thread = text(p, "receiver_thread_id")
		_, failed := p.Member("status").Get("errored")
		r.m.Complete(thread, thread, thread, !failed, "")
	default:
		r.m.Keep(kind)
	}
}

// compacted notes that the history was shortened. The history that it repeats is not taken.
func (r *reader) compacted(p signal.Value) {
	if r.shrunk.item() {
		o := signal.ObjectOf(p)
		o.Remove("replacement_history")
		r.m.KeepPart("compact", r.turn.id, o.Value())
	}
	r.m.Skip("repeated compaction")
}
