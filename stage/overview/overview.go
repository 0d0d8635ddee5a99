// Package overview draws a whole recording of agents in one picture: as a timeline, with a
// lane for each agent, or as a sequence diagram, of who asked whom.
//
// An [Overview] is made of the signals of a session, in order. It draws nothing itself:
// [Overview.Timeline] and [Overview.Sequence] make drawings of package picture.
//
// # What is read
//
// The well-known types of signals: task_dispatch and completion are the tasks of agents,
// tool_call and tool_result their calls, paired by the callId, or without one by the tool, the
// oldest open call first. token_usage, error and agent_state_change are marks. A signal of
// another type counts as a message if it has the texts from and to in its payload; all others
// are counted and not shown.
//
// # Invariants
//
//   - The same signals and options give the same drawing, on every machine.
//   - Texts, bars and marks of one drawing do not overlap, except the text of a bar, which is
//     within it. [picture.Drawing.Boxes] has the areas.
//   - Whatever has no room is merged or counted, and the drawing says so.
//
// # Limits
//
// An Overview keeps at most 200,000 calls, tasks, marks and messages each, and the first 400
// characters of a text. What exceeds them is counted, and the drawing says so.
//
// docs/glossary.md has the nouns of all packages.
package overview

import (
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// The limits of an overview.
const (
	mostKept   = 200_000
	mostText   = 400 // characters of a kept text
	mostAgents = 10_000
)

// Overview collects the signals of a session. The zero Overview is empty and ready for
// use. It keeps no reference to the signals.
type Overview struct {
	signals     int
	left        int // calls, tasks, marks and messages beyond the limits
	first, last time.Duration
	instants    []time.Duration // of the signals, each once, in order

	agents  []*lane
	byName  map[string]int
	calls   []call
	open    map[callKey][]int // indices of calls without a result, oldest first
	tasks   []task
	running map[string]int // the index of the newest task of an id
	usage   []usagePoint

	messages []message
	working  map[int]int // the message that counts the calls of an agent
}

// lane is one agent with its marks.
type lane struct {
	name    string
	errors  []time.Duration
	prompts []time.Duration // tasks that it gave to others
}

// call is a call of a tool, without an end as long as it is not answered.
type call struct {
	agent    int
	tool     string
	from, to time.Duration
	answered bool
	failed   bool
}

type callKey struct {
	agent    int
	id, tool string // one of them
}

// task is the work of an agent from a dispatch to its completion.
type task struct {
	id       string
	from, to int // agents
	begin    time.Duration
	end      time.Duration
	over     bool
	failed   bool
}

// usagePoint is the sum of tokens and cost from an instant on.
type usagePoint struct {
	at     time.Duration
	tokens int64
	cost   float64
}

// Signals returns the number of signals that were added.
func (o *Overview) Signals() int { return o.signals }

// Add adds a signal at its session time, which must not decrease. The signal may be of any
// type and need not be valid.
func (o *Overview) Add(at time.Duration, sig *signal.Signal) {
	if o.byName == nil {
		o.byName, o.open, o.running, o.working = map[string]int{}, map[callKey][]int{}, map[string]int{}, map[int]int{}
		o.first = at
	}
	at = max(at, o.last)
	o.signals++
	o.last = at
	if n := len(o.instants); n == 0 || o.instants[n-1] < at {
		if n < mostKept {
			o.instants = append(o.instants, at)
		} else {
			o.instants[n-1] = at
		}
	}
	p := sig.Payload
	switch sig.Type {
	case "task_dispatch":
		o.dispatch(at, p.TextOf("taskId"), p.TextOf("from"), p.TextOf("to"), p.TextOf("description"))
	case "tool_call":
		o.call(at, p.TextOf("agentId"), p.TextOf("callId"), p.TextOf("toolName"))
	case "tool_result":
		o.result(at, p.TextOf("agentId"), p.TextOf("callId"), p.TextOf("toolName"), p.BoolOf("success"))
	case "token_usage":
		cost, _ := p.Member("cost").Float64()
		o.use(at, p.IntOf("promptTokens"), p.IntOf("completionTokens"), cost)
		o.agent(p.TextOf("agentId"))
	case "error":
		o.fail(at, p.TextOf("agentId"), p.TextOf("message"))
	case "completion":
		o.complete(at, p.TextOf("taskId"), p.TextOf("agentId"), p.TextOf("result"), p.BoolOf("success"))
	case "agent_state_change", "thinking", "text_delta":
		o.agent(p.TextOf("agentId"))
	default:
		if from, to := p.TextOf("from"), p.TextOf("to"); from != "" && to != "" {
			o.say(message{at: at, kind: asks, from: o.agent(from), to: o.agent(to), text: firstOf(p.TextOf("text"), p.TextOf("content"), p.TextOf("message"), sig.Type)})
		}
	}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}

// agent returns the index of an agent, -1 without a name or beyond the limit.
func (o *Overview) agent(name string) int {
	name = clip(name)
	if name == "" {
		return -1
	}
	i, ok := o.byName[name]
	if !ok {
		if len(o.agents) == mostAgents {
			o.left++
			return -1
		}
		i = len(o.agents)
		o.agents = append(o.agents, &lane{name: name})
		o.byName[name] = i
	}
	return i
}

// clip returns a copy of the beginning of a text.
func clip(text string) string {
	n := 0
	for i := range text {
		if n++; n > mostText {
			return strings.Clone(text[:i]) + "…"
		}
	}
	return strings.Clone(text)
}

// room reports whether a list of n elements may have one more, and counts the element if
// not.
func (o *Overview) room(n int) bool {
	if n >= mostKept {
		o.left++
		return false
	}
	return true
}

func (o *Overview) dispatch(at time.Duration, id, from, to, text string) {
	a, b := o.agent(from), o.agent(to)
	if a >= 0 && o.room(len(o.agents[a].prompts)) {
		o.agents[a].prompts = append(o.agents[a].prompts, at)
	}
	if b >= 0 && o.room(len(o.tasks)) {
		o.running[clip(id)] = len(o.tasks)
		o.tasks = append(o.tasks, task{id: clip(id), from: a, to: b, begin: at})
	}
	o.say(message{at: at, kind: asks, from: a, to: b, text: firstOf(text, id)})
}

func (o *Overview) call(at time.Duration, agent, id, tool string) {
	a := o.agent(agent)
	if a < 0 || !o.room(len(o.calls)) {
		return
	}
	k := keyOf(a, id, tool)
	o.open[k] = append(o.open[k], len(o.calls))
	o.calls = append(o.calls, call{agent: a, tool: clip(tool), from: at})
	o.work(at, a, clip(tool), false)
}

func keyOf(agent int, id, tool string) callKey {
	if id != "" {
		return callKey{agent: agent, id: clip(id)}
	}
	return callKey{agent: agent, tool: clip(tool)}
}

func (o *Overview) result(at time.Duration, agent, id, tool string, success bool) {
	a := o.agent(agent)
	if a < 0 {
		return
	}
	k := keyOf(a, id, tool)
	waiting := o.open[k]
	if len(waiting) == 0 {
		return // the result of a call before the recording
	}
	c := &o.calls[waiting[0]]
	c.to, c.answered, c.failed = at, true, !success
	if len(waiting) == 1 {
		delete(o.open, k)
	} else {
		o.open[k] = waiting[1:]
	}
	if !success {
		o.work(at, a, "", true)
	}
}

func (o *Overview) use(at time.Duration, prompt, completion int64, cost float64) {
	p := usagePoint{at: at}
	if n := len(o.usage); n > 0 {
		p.tokens, p.cost = o.usage[n-1].tokens, o.usage[n-1].cost
	}
	p.tokens = add(p.tokens, add(max(prompt, 0), max(completion, 0)))
	if sum := p.cost + cost; cost > 0 && sum < 1e12 {
		p.cost = sum
	}
	if n := len(o.usage); n > 0 && (o.usage[n-1].at == at || n == mostKept) {
		o.usage[n-1] = p
		return
	}
	o.usage = append(o.usage, p)
}

// add returns the sum of two numbers that are not negative, or the greatest one.
func add(a, b int64) int64 {
	const most = 1<<63 - 1
	if a > most-b {
		return most
	}
	return a + b
}

func (o *Overview) fail(at time.Duration, agent, text string) {
	a := o.agent(agent)
	if a >= 0 && o.room(len(o.agents[a].errors)) {
		o.agents[a].errors = append(o.agents[a].errors, at)
	}
	o.say(message{at: at, kind: fails, from: a, to: a, text: firstOf(text, "error")})
}

func (o *Overview) complete(at time.Duration, id, agent, result string, success bool) {
	a, asker := o.agent(agent), -1
	if i, ok := o.running[clip(id)]; ok {
		t := &o.tasks[i]
		t.end, t.over, t.failed = at, true, !success
		asker = t.from
		if a < 0 {
			a = t.to
		}
		delete(o.running, clip(id))
	}
	text := firstOf(result, "done")
	if !success {
		text = firstOf(result, "failed")
	}
	o.say(message{at: at, kind: answers, from: a, to: asker, text: text, failed: !success})
}
