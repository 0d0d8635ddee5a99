package recording

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// States of an agent, as the signal protocol has them.
const (
	Idle     = "idle"
	Thinking = "thinking"
	Acting   = "acting"
	Waiting  = "waiting"
	Done     = "done"
	Failed   = "error"
)

// Severities of an error.
const (
	Warning = "warning"
	Severe  = "error"
)

// CodeInterrupted is the code of the error of a turn that a person ended.
const CodeInterrupted = "interrupted"

// User is the agent id of the person.
const User = "user"

// agent is what the mapping knows of one agent.
type agent struct {
	state string
	open  int // calls without a result
}

func (m *Mapping) agent(id string) *agent {
	a := m.agents[id]
	if a == nil {
		a = &agent{state: Idle}
		m.agents[strings.Clone(id)] = a
	}
	return a
}

// State emits the change of an agent's state, if it is one.
func (m *Mapping) State(corr, agentID, to, reason string) {
	a := m.agent(agentID)
	if a.state == to {
		return
	}
	o := signal.NewObject(4).Text("agentId", agentID).Text("from", a.state).Text("to", to)
	if reason != "" {
		o.Text("reason", reason)
	}
	a.state = to
	m.Emit("agent_state_change", corr, o.Value())
}

// Assume says in which state an agent is, and how many of its calls have no result yet. It
// emits nothing: a record that is mapped without those before it begins from there.
func (m *Mapping) Assume(agentID, state string, open int) {
	a := m.agent(agentID)
	a.state, a.open = state, open
}

// Dispatch emits that a task was given to an agent, which begins to think. A task of a
// person comes from [User].
func (m *Mapping) Dispatch(corr, taskID, from, to, description string) {
	o := signal.NewObject(4).Text("taskId", taskID).Text("from", from).Text("to", to)
	if description != "" {
		o.Text("description", description)
	}
	m.Emit("task_dispatch", corr, o.Value())
	m.agent(to).open = 0
	m.State(corr, to, Thinking, "")
}

// Text emits what an agent said.
func (m *Mapping) Text(corr, agentID, content string) {
	m.Emit("text_delta", corr, signal.NewObject(2).Text("agentId", agentID).Text("content", content).Value())
}

// Thought emits what an agent thought.
func (m *Mapping) Thought(corr, agentID, content string) {
	m.Emit("thinking", corr, signal.NewObject(2).Text("agentId", agentID).Text("content", content).Value())
}

// Call emits the call of a tool. Recorded is made an object, see [AsObject]. The call is
// open until [Mapping.Result] answers it; an empty callID is never answered.
func (m *Mapping) Call(corr, agentID, tool, callID string, input signal.Value) {
	o := signal.NewObject(4).Text("toolName", tool).Text("agentId", agentID)
	if callID != "" {
		o.Text("callId", callID)
		m.calls.add(strings.Clone(callID), call{strings.Clone(tool), strings.Clone(agentID), strings.Clone(corr)})
	}
	if k := input.Kind(); k != signal.KindAbsent && k != signal.KindNull {
		o.Add("input", AsObject(input))
	}
	m.Emit("tool_call", corr, o.Value())
	a := m.agent(agentID)
	if a.open++; a.open == 1 {
		m.State(corr, agentID, Acting, "")
	}
}

// Answer is the answer of a tool.
type Answer struct {
	CallID  string
	Tool    string // if the call is not known
	Agent   string // if the call is not known
	Success bool
	Output  signal.Value // made an object, see [AsObject]
}

// Result emits the answer to a call. The name of the tool, the agent and, if corr is empty,
// the correlation id are those of the call.
func (m *Mapping) Result(corr string, r Answer) {
	c, known := m.calls.take(r.CallID)
	if !known {
		c = call{tool: r.Tool, agent: r.Agent, corr: corr}
		if c.tool == "" {
			c.tool = "unknown"
		}
	}
	if corr == "" {
		corr = c.corr
	}
	o := signal.NewObject(5).Text("toolName", c.tool).Text("agentId", c.agent).Bool("success", r.Success)
	if r.CallID != "" {
		o.Text("callId", r.CallID)
	}
	if k := r.Output.Kind(); k != signal.KindAbsent && k != signal.KindNull {
		o.Add("output", AsObject(r.Output))
	}
	m.Emit("tool_result", corr, o.Value())
	// An agent that waited, for a permission of this call or another, goes on with the answer.
	a := m.agent(c.agent)
	a.open = max(a.open-1, 0)
	switch {
	case a.open == 0 && (a.state == Acting || a.state == Waiting):
		m.State(corr, c.agent, Thinking, "")
	case a.open > 0 && a.state == Waiting:
		m.State(corr, c.agent, Acting, "")
	}
}

// CallOf returns the tool and agent of an open call.
func (m *Mapping) CallOf(callID string) (tool, agentID string, ok bool) {
	c, ok := m.calls.open[callID]
	return c.tool, c.agent, ok
}

// TokenCount counts the tokens of one message of a model. Prompt counts all tokens of the input,
// those of caches included; Completion all of the output, reasoning included.
type TokenCount struct {
	Model              string
	Prompt, Completion int64
	CacheRead          int64
	CacheWrite         int64
	Reasoning          int64
	Cost               float64 // 0 if it is not known
}

// Tokens emits the usage of one message. The parts of the counts go to metadata.
func (m *Mapping) Tokens(corr, agentID string, u TokenCount) {
	o := signal.NewObject(5).Text("agentId", agentID).Int("promptTokens", max(u.Prompt, 0)).Int("completionTokens", max(u.Completion, 0))
	if u.Model != "" {
		o.Text("model", u.Model)
	}
	if u.Cost > 0 {
		o.Float("cost", u.Cost)
	}
	was := slices.Clone(m.now.meta)
	for _, part := range []struct {
		name string
		n    int64
	}{{"cacheReadTokens", u.CacheRead}, {"cacheWriteTokens", u.CacheWrite}, {"reasoningTokens", u.Reasoning}} {
		if part.n > 0 {
			m.now.meta.Int(part.name, part.n)
		}
	}
	m.Emit("token_usage", corr, o.Value())
	m.now.meta = was
}

// Error emits that something ended a turn, or threatened to: severity [Warning] or [Severe].
// An error of an agent that is not a warning puts the agent into the state error. A failed
// tool is no error but a [Answer].
func (m *Mapping) Error(corr, agentID, code, severity, message string) {
	o := signal.NewObject(4).Text("message", message).Text("severity", severity)
	if agentID != "" {
		o.Text("agentId", agentID)
	}
	if code != "" {
		o.Text("code", code)
	}
	m.Emit("error", corr, o.Value())
	if severity != Warning && agentID != "" {
		m.State(corr, agentID, Failed, code)
	}
}

// Complete emits the end of a task.
func (m *Mapping) Complete(corr, taskID, agentID string, success bool, result string) {
	o := signal.NewObject(4).Text("taskId", taskID).Bool("success", success)
	if agentID != "" {
		o.Text("agentId", agentID)
	}
	if result != "" {
		o.Text("result", result)
	}
	m.Emit("completion", corr, o.Value())
	if agentID == "" {
		return
	}
	m.agent(agentID).open = 0
	to := Done
	if !success {
		to = Failed
	}
	m.State(corr, agentID, to, "")
}

// finishAgents emits that the recording ended while agents were at work.
func (m *Mapping) finishAgents() {
	var ids []string
	for id, a := range m.agents {
		if a.state == Thinking || a.state == Acting || a.state == Waiting {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		m.State("", id, Idle, "end_of_recording")
	}
}

// call is an open call of a tool.
type call struct{ tool, agent, corr string }

// maxOpenCalls bounds the calls that wait for their results.
const maxOpenCalls = 100_000

// calls are the open calls by id, the oldest of which are forgotten.
type calls struct {
	open  map[string]call
	order []string
}

func (c *calls) add(id string, k call) {
	if c.open == nil {
		c.open = map[string]call{}
	}
	if _, known := c.open[id]; !known {
		c.order = append(c.order, id)
	}
	c.open[id] = k
	if len(c.order) > 2*maxOpenCalls {
		c.forget()
	}
}

// forget drops answered calls from the order, and the oldest of the open ones beyond the bound.
func (c *calls) forget() {
	kept := c.order[:0]
	over := len(c.open) - maxOpenCalls
	for _, id := range c.order {
		switch _, open := c.open[id]; {
		case !open:
		case over > 0:
			delete(c.open, id)
			over--
		default:
			kept = append(kept, id)
		}
	}
	c.order = kept
}

func (c *calls) take(id string) (call, bool) {
	k, ok := c.open[id]
	delete(c.open, id)
	return k, ok
}

// SavedRecord is a record to which a later one can come back, see [Mapping.Within].
type SavedRecord struct {
	rec    NativeRecord
	native string
	value  signal.Value
	meta   signal.Object
	types  typeCounts
	count  int
	held   bool
	number int // of the record
}

// Save returns the current record. A record that has given signals is kept without its
// value, so that what waits for later records stays small.
func (m *Mapping) Save() SavedRecord {
	r := &m.now
	k := SavedRecord{
		rec: r.rec, native: strings.Clone(r.native), value: r.value,
		meta: slices.Clone(r.meta), types: slices.Clone(r.types), count: r.count, held: r.count == 0 && r.fate == held, number: m.balance.Records,
	}
	for i := range k.meta {
		k.meta[i].Value = slices.Clone(k.meta[i].Value)
	}
	if r.count > 0 {
		k.value, k.rec.Value = nil, nil
	}
	return k
}

// Within emits what do emits as signals of an earlier record, with its id, metadata and
// place, and with the time of the current one, or the one that do sets. If the record was
// held, it counts as mapped.
func (m *Mapping) Within(k SavedRecord, do func()) {
	now := m.now
	m.now = current{open: now.open, rec: k.rec, native: k.native, value: k.value, meta: k.meta, types: k.types, count: k.count, sized: k.count > 0}
	do()
	same := now.open && k.number == m.balance.Records
	if same {
		// The record has not ended yet, so it is not among the held ones.
		now.count = max(m.now.count, 1)
		now.types = slices.Clone(m.now.types)
	}
	m.now = now
	if k.held && !same {
		m.Release(1)
	}
}
