// Package copilot reads the sessions of the Copilot CLI: the events that it writes, one a
// line, to ~/.copilot/session-state/SESSION/events.jsonl.
//
// An interaction of a person has several turns of the model. It ends with the turn whose
// last message asks for no tool. A message tells only the tokens that it has; those of the
// input come with the end of the session, as a sum for each model.
package copilot

import (
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// mainAgent is the id of the main agent.
const mainAgent = "copilot"

// Format returns the format of the sessions of the Copilot CLI.
func Format() recording.Format {
	return recording.Format{
		Name:       "copilot-cli",
		Title:      "Copilot CLI session",
		Agent:      mainAgent,
		Recognized: "lines with type, data, id and parentId",
		Grows:      true,
		Detect:     detect,
		Map:        read,
	}
}

func detect(s *recording.Sample) string {
	if s.AnyLine(func(v signal.Value) bool {
		_, hasParent := v.Get("parentId")
		group, _, dotted := strings.Cut(v.TextOf("type"), ".")
		known := group == "session" || group == "user" || group == "assistant" || group == "tool"
		return dotted && known && v.TextOf("id") != "" && v.Member("data").Kind() == signal.KindObject && (hasParent || v.TextOf("type") == "session.start")
	}) {
		return "a line has type, data, id and parentId of an event"
	}
	return ""
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	r := &reader{m: m, output: map[string]int64{}}
	for rec, err := range in.Lines(in.Name) {
		if err != nil {
			return err
		}
		r.line(rec.Value)
	}
	return nil
}

// reader is the state of one reading. The texts of a record are parts of the whole record, so
// the state has copies.
type reader struct {
	m         *recording.Mapping
	turn      string // the interaction of the last prompt
	tasks     []string
	asks      bool             // the last message asked for tools
	reasoning string           // the last reasoning, which the message after it repeats
	output    map[string]int64 // tokens of messages, by model
}

// event is one event with the agent that it is of.
type event struct {
	signal.Value        // data
	kind, id     string // of the event
	agent, corr  string
}

// text returns a member that is a text, "" if its publisher trimmed it.
func text(v signal.Value, name string) string {
	member := v.Member(name)
	if recording.Trimmed(member) {
		return ""
	}
	text, _ := member.Text()
	return text
}

func (r *reader) line(v signal.Value) {
	e := event{Value: v.Member("data"), kind: v.TextOf("type"), id: text(v, "id")}
	r.m.SetTime(recording.TimeText(v.TextOf("timestamp")))
	if e.kind == "" {
		return
	}
	if e.id != "" {
		if r.m.Repeats(e.id) {
			r.m.Skip("repeated event")
			return
		}
		r.m.SetNativeID(e.id)
	}
	e.agent, e.corr = mainAgent, text(e.Value, "interactionId")
	if e.corr == "" {
		e.corr = r.turn
	}
	if parent := text(e.Value, "parentToolCallId"); parent != "" {
		e.agent, e.corr = parent, parent
	}
	r.event(e)
}

func (r *reader) event(e event) {
	switch e.kind {
	case "session.start", "session.resume":
		r.start(e)
	case "user.message":
		r.prompt(e)
	case "assistant.turn_start":
		r.m.State(e.corr, e.agent, recording.Thinking, "")
		r.m.Skip("no change")
	case "assistant.reasoning":
		if content := text(e.Value, "content"); content != "" {
			r.reasoning = strings.Clone(content)
			r.m.Thought(e.corr, e.agent, content)
		}
		r.m.Skip("no content")
	case "assistant.message":
		r.message(e)
	case "assistant.turn_end":
		if e.agent == mainAgent && !r.asks {
			r.end(true)
		}
		r.m.Skip("turn of the model")
	case "tool.execution_start":
		r.m.Call(e.corr, e.agent, tool(e), text(e.Value, "toolCallId"), recording.Nested(e.Member("arguments")))
	case "tool.execution_complete":
		r.result(e)
	case "subagent.started":
		r.subagent(e)
	case "subagent.completed", "subagent.failed":
		if id := text(e.Value, "toolCallId"); id != "" {
			r.m.Complete(id, id, id, e.kind == "subagent.completed", "")
		}
	case "abort":
		r.m.Error(e.corr, mainAgent, recording.CodeInterrupted, recording.Warning, "The person aborted the turn.")
		r.end(false)
	case "session.shutdown":
		r.shutdown(e)
	default:
		r.other(e)
	}
}

func (r *reader) other(e event) {
	message := text(e.Value, "message")
	if message == "" {
		message = e.kind
	}
	code := text(e.Value, "errorType")
	switch e.kind {
	case "session.error":
		if code == "" {
			code = "error"
		}
		r.m.Error(e.corr, e.agent, code, recording.Severe, message)
	case "session.warning":
		r.m.Error(e.corr, e.agent, text(e.Value, "warningType"), recording.Warning, message)
	case "permission.requested":
		r.m.State(e.corr, e.agent, recording.Waiting, "permission")
		r.m.Skip("no change")
	case "session.compaction_complete":
		r.m.KeepPart("compact", e.corr, e.Value)
	case "session.info", "session.model_change", "session.usage_checkpoint", "session.auto_mode_resolved", "session.idle",
		"system.message", "hook.start", "hook.end", "permission.completed", "assistant.intent", "session.compaction_start":
		r.m.Skip(e.kind)
	default:
		r.m.Keep(e.kind)
	}
}

func (r *reader) start(e event) {
	r.m.SetSession(text(e.Value, "sessionId"))
	r.m.Origin("version", e.Member("copilotVersion"))
	r.m.Origin("cwd", e.Member("context").Member("cwd"))
	r.m.Origin("model", e.Member("selectedModel"))
	r.m.Skip(e.kind)
}

func (r *reader) prompt(e event) {
	content := text(e.Value, "content")
	n := e.Member("attachments").Len()
	if content == "" && n == 0 {
		r.m.Skip("no content")
		return
	}
	corr := text(e.Value, "interactionId")
	task := corr
	if corr == "" || corr == r.turn && len(r.tasks) > 0 {
		if task = e.id; task == "" {
			task = r.m.NativeID()
		}
	}
	if corr == "" {
		corr = task
	}
	if corr != r.turn {
		r.end(true)
	}
	r.turn = strings.Clone(corr)
	r.tasks = append(r.tasks, strings.Clone(task))
	r.asks = false
	if n > 0 {
		r.m.AddMeta("attachments", signal.Int(int64(n)).Value())
	}
	r.m.Dispatch(r.turn, task, recording.User, mainAgent, content)
}

func (r *reader) message(e event) {
	r.m.AddMeta("model", e.Member("model"))
	if thought := text(e.Value, "reasoningText"); thought != "" && thought != r.reasoning {
		r.m.Thought(e.corr, e.agent, thought)
	}
	r.reasoning = ""
	if content := text(e.Value, "content"); content != "" {
		r.m.Text(e.corr, e.agent, content)
	}
	if e.agent == mainAgent {
		r.asks = e.Member("toolRequests").Len() > 0
	}
	// The chunks of a message repeat its count.
	id := text(e.Value, "messageId")
	if n := e.IntOf("outputTokens"); n > 0 && (id == "" || !r.m.Repeats("tokens of "+id)) {
		model := text(e.Value, "model")
		if _, known := r.output[model]; known || len(r.output) < maxModels {
			r.output[strings.Clone(model)] += n
		}
		r.m.Tokens(e.corr, e.agent, recording.TokenCount{Model: model, Completion: n})
	}
	r.m.Skip("no content")
}

// maxModels bounds the models whose tokens are summed.
const maxModels = 1024

func tool(e event) string {
	if name := text(e.Value, "toolName"); name != "" {
		return name
	}
	return "unknown"
}

func (r *reader) result(e event) {
	id := text(e.Value, "toolCallId")
	output := e.Member("result")
	if failure := e.Member("error"); failure.Kind() == signal.KindObject {
		output = signal.NewObject(1).Add("error", failure).Value()
	}
	corr := e.corr
	if _, _, known := r.m.CallOf(id); known {
		corr = ""
	}
	r.m.Result(corr, recording.Answer{CallID: id, Agent: e.agent, Success: e.BoolOf("success"), Output: output})
}

func (r *reader) subagent(e event) {
	id := text(e.Value, "toolCallId")
	if id == "" {
		return // kept
	}
	r.m.AddMeta("agentType", e.Member("agentName"))
	r.m.AddMeta("callId", e.Member("toolCallId"))
	about := text(e.Value, "agentDescription")
	if about == "" {
		about = text(e.Value, "agentDisplayName")
	}
	r.m.Dispatch(id, id, e.agent, id, about)
}

// shutdown maps the end of the session: for each model the tokens that its messages did not tell.
func (r *reader) shutdown(e event) {
	for model, metrics := range e.Member("modelMetrics").Members() {
		u := metrics.Member("usage")
		if u.Kind() != signal.KindObject {
			continue
		}
		r.m.Tokens("", mainAgent, recording.TokenCount{
			Model:      model,
			Prompt:     u.IntOf("inputTokens"),
			Completion: max(u.IntOf("outputTokens")-r.output[model], 0),
			CacheRead:  u.IntOf("cacheReadTokens"),
			CacheWrite: u.IntOf("cacheWriteTokens"),
		})
		delete(r.output, model)
	}
	r.m.State("", mainAgent, recording.Idle, text(e.Value, "shutdownType"))
	r.m.Skip("no change")
}

// end completes the tasks of the interaction.
func (r *reader) end(success bool) {
	for _, task := range r.tasks {
		r.m.Complete(r.turn, task, mainAgent, success, "")
	}
	r.tasks = nil
}
