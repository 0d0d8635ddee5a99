package claudecode

import (
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// reader is the state of one reading of a transcript. The texts of a record are parts of
// the whole record, so the state has copies.
type reader struct {
	m         *recording.Mapping
	main      *thread
	subagents threads
	calls     agentCalls
	described map[string]description
	session   string
	cwd       string // the last one that a signal has told
	at        recording.Instant
}

func newReader(m *recording.Mapping) *reader {
	return &reader{m: m, main: &thread{agent: mainAgent}, described: map[string]description{}}
}

// silent are the types of records that say nothing about the conversation.
var silent = map[string]bool{
	"queue-operation": true, "progress": true, "summary": true, "file-history-snapshot": true,
	"last-prompt": true, "ai-title": true, "custom-title": true, "agent-name": true, "mode": true,
	"permission-mode": true, "tag": true, "pr-link": true,
}

// record maps one record. Agent is the id of the subagent whose file it is from, if any.
func (r *reader) record(v signal.Value, agent string) {
	l := parseLine(v)
	if agent != "" {
		l.sidechain = true
		if l.agentID == "" {
			l.agentID = agent
		}
	}
	at, timed := recording.TimeText(l.timestamp)
	r.m.SetTime(at, timed)
	if timed {
		r.at = at
	}
	r.m.SetNativeID(l.uuid)
	r.origin(&l, agent)
	if silent[l.typ] {
		if l.sidechain && l.agentID == "" {
			r.pass(&l)
		}
		r.m.Skip(l.typ)
		return
	}
	if l.uuid != "" && r.m.Repeats(l.uuid) {
		r.m.Skip("repeated line")
		return
	}
	th := r.thread(&l)
	switch {
	case l.typ == "user" && l.message.known:
		r.user(th, &l)
	case l.typ == "assistant" && l.message.known:
		r.assistant(th, &l)
	case l.typ == "system":
		r.system(th, &l)
	case l.typ == "attachment":
		r.attachment(th, &l)
	case l.typ != "":
		r.m.Keep(l.typ)
	}
	if timed {
		th.last = at
	}
}

// origin tells what the lines say about the session as a whole.
func (r *reader) origin(l *line, agent string) {
	if l.session != "" && l.session != r.session && (agent == "" && !l.sidechain || r.session == "") {
		r.session = strings.Clone(l.session)
		r.m.SetSession(l.session)
	}
	if r.cwd == "" {
		r.m.Origin("version", optional(l.version))
		r.m.Origin("cwd", optional(l.cwd))
		r.m.Origin("gitBranch", optional(l.branch))
	}
}

// place adds the working directory to the metadata if it is another than before.
func (r *reader) place(l *line) {
	if l.cwd != "" && l.cwd != r.cwd {
		r.cwd = strings.Clone(l.cwd)
		r.m.AddMeta("cwd", signal.Text(l.cwd))
	}
}

func optional(text string) signal.Value {
	if text == "" {
		return nil
	}
	return signal.Text(text)
}

// thread returns the thread of a line. A subagent is known by its id, and in older versions
// by the chain of parents up to a line without one.
func (r *reader) thread(l *line) *thread {
	if !l.sidechain {
		return r.main
	}
	id := l.agentID
	if id == "" {
		if th := r.pass(l); th != nil {
			return th
		}
		if id = l.uuid; id == "" {
			id = "subagent"
		}
	}
	th := r.subagents.byAgent[id]
	if th == nil {
		var forgotten *thread
		if th, forgotten = r.subagents.add(id); forgotten != nil {
			r.release(forgotten)
		}
	}
	if l.agentID == "" {
		r.subagents.note(l.uuid, th)
	}
	return th
}

// pass returns the thread that the parent of a line is in, and notes that the line is in it too. A
// parent that is not known stands for the last one.
func (r *reader) pass(l *line) *thread {
	if l.parent == "" {
		return nil
	}
	th := r.subagents.byUUID[l.parent]
	if th == nil {
		th = r.subagents.last
	}
	if th != nil {
		r.subagents.note(l.uuid, th)
	}
	return th
}

// id returns the id of a line that has one, and else one that is unique in the file.
func (r *reader) id(l *line) string {
	if l.uuid != "" {
		return l.uuid
	}
	return r.m.NativeID()
}

func (r *reader) user(th *thread, l *line) {
	c := parseContent(l.message.content)
	for i, block := range c.results {
		result := l.result
		if len(c.results) > 1 {
			// The structured result is that of one call.
			result = nil
		}
		r.result(th, l, block, result)
		if i == 0 {
			th.answered, th.returned = false, false
		}
	}
	for _, block := range c.other {
		r.m.KeepPart("block."+block.TextOf("type"), th.corr, block)
	}
	kind := classify(c.text)
	switch {
	case kind == feedbackText:
		// A stop hook sends the agent back: the turn goes on.
		th.ended, th.returned, th.answered = "", true, false
		r.m.KeepPart("hook_feedback", th.corr, l.whole)
	case kind == interruptedText:
		r.interrupted(th, c.text)
	case kind == notificationText:
		r.notification(c.text)
	case l.meta:
		r.m.Skip("meta line")
	case l.summary:
		r.m.Skip("compact summary")
	case l.transcriptOnly:
		r.m.Skip("transcript only")
	case kind == localText:
		r.m.Skip("local command")
		if th == r.main && th.open && !th.answered && th.ended == "" && strings.Contains(c.text, "<local-command-std") {
			th.ended = localCommand
		}
	case kind == commandText:
		r.prompt(th, l, command(c.text), c.media)
	case c.text != "" || len(c.media) > 0:
		r.prompt(th, l, c.text, c.media)
	case len(c.results) == 0 && c.texts > 0:
		r.m.Skip("system reminder")
	}
}

// localCommand ends the turn of a command that the program ran itself.
const localCommand = "local command"

// prompt begins a turn of the main agent, or gives a subagent its task.
func (r *reader) prompt(th *thread, l *line, text string, media []signal.Value) {
	r.release(th)
	if th != r.main {
		r.task(th, l, text, media)
		return
	}
	if i := slices.Index(th.queued, text); i >= 0 {
		th.queued = slices.Delete(th.queued, i, i+1)
		r.m.Skip("queued prompt")
		return
	}
	r.endTurn(th, true)
	task := l.promptID
	if task == "" || task == th.corr {
		task = r.id(l)
	}
	task = strings.Clone(task)
	*th = thread{agent: th.agent, corr: task, open: true, tasks: []string{task}, last: th.last}
	r.addMedia(media)
	r.place(l)
	r.m.Dispatch(task, task, recording.User, th.agent, text)
}

// task gives a subagent its task: its first prompt is that of the call that started it.
func (r *reader) task(th *thread, l *line, text string, media []signal.Value) {
	id := r.id(l)
	if !th.asked {
		id = th.agent
		r.link(th, text)
	}
	th.asked, th.open, th.cut, th.failed = true, true, false, false
	th.tasks = append(th.tasks, strings.Clone(id))
	r.addMedia(media)
	r.place(l)
	r.m.Dispatch(th.corr, id, th.from, th.agent, text)
}

// link finds the call that started a subagent: by the description of the subagent, or by
// the prompt, the oldest call first.
func (r *reader) link(th *thread, prompt string) {
	d := r.described[th.agent]
	call := r.calls.find(func(c *agentCall) bool { return d.ToolUseID != "" && c.id == d.ToolUseID })
	if call == nil {
		prompt = strings.TrimSpace(prompt)
		call = r.calls.find(func(c *agentCall) bool { return c.agent == "" && c.prompt != "" && c.prompt == prompt })
	}
	if call != nil {
		call.agent, th.from = th.agent, call.caller
		d = description{AgentType: call.kind, Description: call.about, ToolUseID: call.id}
	}
	r.m.AddMeta("callId", optional(d.ToolUseID))
	r.m.AddMeta("agentType", optional(d.AgentType))
	r.m.AddMeta("description", optional(d.Description))
}

func (r *reader) addMedia(media []signal.Value) {
	if len(media) > 0 {
		r.m.AddMeta("media", signal.Array(media...))
	}
}

// result maps one result of a tool. Structured is what the program knows of it.
func (r *reader) result(th *thread, l *line, block, structured signal.Value) {
	call := block.TextOf("tool_use_id")
	success := !block.BoolOf("is_error")
	output := structured
	if output.Kind() != signal.KindObject {
		output = block.Member("content")
	}
	corr := th.corr
	if _, _, known := r.m.CallOf(call); known {
		corr = ""
	}
	if !success && r.at-th.last >= waitGap && isDenial(l, block) {
		r.m.State(th.corr, th.agent, recording.Waiting, "permission")
	}
	r.subagentDone(call, structured, success)
	r.place(l)
	r.m.Result(corr, recording.Answer{CallID: call, Agent: th.agent, Success: success, Output: output})
}

// waitGap is the time from which on a refused call was waiting for a person.
const waitGap = recording.Instant(time.Second)

func isDenial(l *line, block signal.Value) bool {
	if l.denial != "" {
		return true
	}
	text := parseContent(block.Member("content")).text
	return strings.Contains(text, "haven't granted") || strings.Contains(text, "doesn't want to proceed")
}

// subagentDone completes the subagent that a call started, if its result is here.
func (r *reader) subagentDone(id string, structured signal.Value, success bool) {
	call := r.calls.take(id)
	agent := structured.TextOf("agentId")
	if agent == "" && call != nil {
		agent = call.agent
	}
	if structured.TextOf("status") == "async_launched" || structured.BoolOf("isAsync") {
		return // the subagent works in the background; a notification tells its end
	}
	if th := r.subagents.byAgent[agent]; th != nil && agent != "" {
		r.endTurn(th, success)
	}
}

// notification tells the end of a subagent in the background.
func (r *reader) notification(text string) {
	if th := r.subagents.byAgent[between(text, "task-id")]; th != nil {
		if status := between(text, "status"); status != "running" {
			r.endTurn(th, status == "completed")
		}
	}
	r.m.Keep("task_notification")
}

// interrupted maps that the person ended the turn.
func (r *reader) interrupted(th *thread, message string) {
	if th.cut && !th.open {
		r.m.Skip("repeated interruption")
		return
	}
	r.release(th)
	r.m.Error(th.corr, th.agent, recording.CodeInterrupted, recording.Warning, strings.TrimSpace(message))
	r.endTurn(th, false)
	th.cut = true
}

// endTurn completes the tasks of the turn, if one goes on.
func (r *reader) endTurn(th *thread, success bool) {
	r.release(th)
	if th.open {
		for _, task := range th.tasks {
			r.m.Complete(th.corr, task, th.agent, success, "")
		}
		if len(th.tasks) == 0 {
			r.m.State(th.corr, th.agent, recording.Done, "")
		}
	}
	th.open, th.tasks, th.queued = false, nil, nil
	th.ended, th.answered, th.returned = "", false, false
}

// resume opens a turn of an agent that goes on after the end of one.
func (r *reader) resume(th *thread, l *line) {
	th.cut, th.failed, th.returned = false, false, false
	if th.corr == "" {
		th.corr = strings.Clone(r.id(l))
	}
	if !th.open {
		th.open = true
		r.m.State(th.corr, th.agent, recording.Thinking, "")
	}
}

// finish maps what the end of a final recording implies.
func (r *reader) finish() {
	if th := r.main; th.open && (th.answered || th.ended != "") {
		r.endTurn(th, true)
	}
	r.release(r.main)
	for _, th := range r.subagents.order {
		r.release(th)
	}
}
