package codex

import (
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// exec maps an event of codex exec --json. It has no times and no prompts.
func (r *reader) exec(typ string, v signal.Value) {
	switch typ {
	case "thread.started":
		r.m.SetSession(text(v, "thread_id"))
		r.m.Skip(typ)
	case "turn.started":
		r.open("")
		r.m.State(r.turn.id, r.agent, recording.Thinking, "")
	case "turn.completed":
		if u := v.Member("usage"); u.Kind() == signal.KindObject {
			r.usage(u)
		}
		r.execEnd(true)
	case "turn.failed":
		r.m.Error(r.active(), r.agent, "turn_failed", recording.Severe, execMessage(v))
		r.execEnd(false)
	case "error":
		r.m.Error(r.active(), r.agent, "error", recording.Warning, execMessage(v))
	case "item.started", "item.completed":
		r.execItem(v.Member("item"), typ == "item.completed")
	case "item.updated":
		r.m.Skip(typ)
	default:
		r.m.Keep(typ)
	}
}

func execMessage(v signal.Value) string {
	for _, message := range []string{text(v.Member("error"), "message"), text(v, "message")} {
		if message != "" {
			return message
		}
	}
	return "the turn failed"
}

// execEnd completes a turn. Nobody dispatched it, but its end is worth a completion.
func (r *reader) execEnd(success bool) {
	if r.turn.open {
		r.m.Complete(r.turn.id, r.turn.id, r.agent, success, "")
	}
	r.turn.open = false
}

// execItem maps an item. Those that take time come twice, at their start and at their end.
func (r *reader) execItem(item signal.Value, done bool) {
	kind, id := text(item, "type"), text(item, "id")
	content := text(item, "text")
	r.m.SetLength(len(content))
	var input signal.Value
	tool := kind
	switch kind {
	case "agent_message", "assistant_message", "reasoning":
		switch {
		case !done || content == "":
			r.m.Skip("no content")
		case kind == "reasoning":
			r.m.Thought(r.active(), r.agent, content)
		default:
			r.m.Text(r.active(), r.agent, content)
		}
		return
	case "error":
		if done {
			r.m.Error(r.active(), r.agent, "error", recording.Warning, execMessage(item))
		}
		r.m.Skip("no content")
		return
	case "command_execution":
		tool, input = "exec_command", signal.NewObject(1).Add("command", item.Member("command")).Value()
	case "mcp_tool_call":
		tool, input = "mcp__"+text(item, "server")+"__"+text(item, "tool"), item.Member("arguments")
	case "file_change":
		tool, input = "apply_patch", signal.NewObject(1).Add("changes", item.Member("changes")).Value()
	case "web_search":
		input = signal.NewObject(1).Add("query", item.Member("query")).Value()
	default:
		r.m.KeepPart(kind, r.active(), item)
		return
	}
	// The ids of items begin again in each run.
	id = strings.Join([]string{r.active(), id}, "/")
	if _, _, open := r.m.CallOf(id); !open {
		r.call(tool, id, input)
	}
	if done {
		r.result(id, tool, execSuccess(item), execOutput(item))
	}
}

func execSuccess(item signal.Value) bool {
	code, known := item.Member("exit_code").Int64()
	_, failed := item.Get("error")
	failed = failed && item.Member("error").Kind() != signal.KindNull
	return !failed && item.TextOf("status") != "failed" && item.TextOf("status") != "declined" && (!known || code == 0)
}

func execOutput(item signal.Value) signal.Value {
	o := signal.NewObject(4)
	for _, name := range []string{"aggregated_output", "exit_code", "result", "error"} {
		if v := item.Member(name); v.Kind() != signal.KindNull {
			o.Add(name, v)
		}
	}
	if o.Value().Len() == 0 {
		return nil
	}
	return o.Value()
}
