package claudecode

import (
	"cmp"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// syntheticModel is the model of messages that the program wrote itself.
const syntheticModel = "<synthetic>"

func (r *reader) assistant(th *thread, l *line) {
	msg := &l.message
	if th.usage != nil && th.usage.message != msg.id {
		r.release(th)
	}
	if l.apiError {
		r.apiError(th, l)
		return
	}
	if th.ended != "" && th.ended != msg.id {
		th.ended = "" // the turn goes on
	}
	r.resume(th, l)
	r.m.AddMeta("model", optional(msg.model))
	r.place(l)
	if text, ok := msg.content.Text(); ok {
		r.text(th, text)
	}
	for block := range msg.content.Elements() {
		r.block(th, l, block)
	}
	if msg.stop == "end_turn" && th == r.main {
		th.ended = strings.Clone(cmp.Or(msg.id, r.id(l)))
	}
	r.tokens(th, l)
	r.m.Skip("no content") // if the line gave no signal
	if l.aborted {
		r.interrupted(th, "The answer was aborted.")
	}
}

func (r *reader) text(th *thread, text string) {
	if text != "" {
		r.m.Text(th.corr, th.agent, text)
		th.answered = true
	}
}

func (r *reader) block(th *thread, l *line, block signal.Value) {
	switch kind := block.TextOf("type"); {
	case kind == "text":
		r.text(th, block.TextOf("text"))
	case kind == "thinking":
		if thought := block.TextOf("thinking"); thought != "" {
			r.m.Thought(th.corr, th.agent, thought)
		}
		th.answered = false
	case kind == "redacted_thinking":
		th.answered = false
	case strings.HasSuffix(kind, "tool_use"): // also server_tool_use and mcp_tool_use
		r.call(th, block)
		th.answered = false
	case strings.HasSuffix(kind, "tool_result"): // of tools that run on the server
		r.result(th, l, withError(block), nil)
		th.answered = false
	default:
		r.m.KeepPart("block."+kind, th.corr, block)
	}
}

// withError marks the result of a tool of the server that is an error. Its content tells.
func withError(block signal.Value) signal.Value {
	if !strings.HasSuffix(block.Member("content").TextOf("type"), "_error") {
		return block
	}
	o := signal.ObjectOf(block)
	o.Set("is_error", signal.Bool(true))
	return o.Value()
}

func (r *reader) call(th *thread, block signal.Value) {
	name, id, input := block.TextOf("name"), block.TextOf("id"), block.Member("input")
	if name == "" {
		name = "unknown"
	}
	if id != "" && (name == "Task" || name == "Agent") {
		r.calls.add(&agentCall{
			id: strings.Clone(id), caller: th.agent,
			prompt: strings.Clone(strings.TrimSpace(input.TextOf("prompt"))),
			kind:   strings.Clone(input.TextOf("subagent_type")),
			about:  strings.Clone(input.TextOf("description")),
		})
	}
	r.m.Call(th.corr, th.agent, name, id, input)
}

// tokens holds the usage of a message, since a later line of it may have greater numbers. A
// message without an id has one line.
func (r *reader) tokens(th *thread, l *line) {
	u := l.message.usage
	if u.Kind() != signal.KindObject || l.message.model == syntheticModel {
		return
	}
	count := recording.TokenCount{Model: strings.Clone(l.message.model)}
	var input int64
	for name, v := range u.Members() {
		n, _ := v.Int64()
		switch n = max(n, 0); name {
		case "input_tokens":
			input = n
		case "output_tokens":
			count.Completion = n
		case "cache_read_input_tokens":
			count.CacheRead = n
		case "cache_creation_input_tokens":
			count.CacheWrite = n
		}
	}
	count.Prompt = input + count.CacheRead + count.CacheWrite
	if cost, ok := l.cost.Float64(); ok {
		count.Cost = cost
	}
	if l.message.id == "" {
		r.m.Tokens(th.corr, th.agent, count)
		return
	}
	th.usage = &usage{strings.Clone(l.message.id), r.m.Save(), count}
}

// release emits the usage of a message of which no more lines come.
func (r *reader) release(th *thread) {
	u := th.usage
	th.usage = nil
	if u == nil || r.m.Repeats("usage of "+u.message) {
		return
	}
	r.m.Within(u.record, func() { r.m.Tokens(th.corr, th.agent, u.count) })
}

// apiError maps that the program gave up after an error of the API.
func (r *reader) apiError(th *thread, l *line) {
	if th.failed && !th.open {
		r.m.Skip("repeated error")
		return
	}
	code, isText := l.errorValue.Text()
	if !isText || code == "" {
		code = "api_error"
	}
	message := parseContent(l.message.content).text
	if message == "" {
		message = code
	}
	if th.corr == "" {
		th.corr = strings.Clone(r.id(l))
	}
	r.m.Error(th.corr, th.agent, code, recording.Severe, message)
	r.endTurn(th, false)
	th.failed = true
}
