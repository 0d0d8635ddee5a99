package spans

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// RemarkOrder is the kind of the remark that spans stand behind later ones.
const RemarkOrder = "order"

// remark is something that the user should know.
type remark struct{ kind, message string }

// pending is a span that has begun and will end.
type pending struct {
	at    recording.Instant
	depth int32
	seq   int
	node  int32
	saved recording.SavedRecord
}

// ends are the pending spans by end, children before parents.
type ends []*pending

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	a, b := e[i], e[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.depth != b.depth:
		return a.depth > b.depth
	}
	return a.seq < b.seq
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(*pending)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	p := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return p
}

// emit turns the spans into signals, in the order of their starts and ends.
func (c *Collection) emit() {
	if c.behind > 0 {
		c.m.Sorted(c.behind, time.Duration(c.furthest))
	}
	for i := range c.nodes {
		if c.nodes[i].flags&repeated != 0 {
			c.m.Begin(c.nodes[i].rec)
			c.m.Skip("repeated")
		}
	}
	if !c.parts {
		c.nothing()
		return
	}
	c.describe()
	// A span ends after all spans below it. Their ends are not later than its own, so only
	// those of one instant need to be counted.
	over, left := c.enclosing()
	var waiting ends
	ended := func(i int32) {
		if o := over[i]; o != none {
			left[o]--
		}
	}
	finish := func() {
		p := heap.Pop(&waiting).(*pending)
		c.m.Within(p.saved, func() {
			c.m.SetTime(p.at, true)
			c.end(p.node)
		})
		ended(p.node)
	}
	for seq, i := range c.order {
		if c.m.Stopped() {
			return
		}
		n := &c.nodes[i]
		for len(waiting) > 0 && (waiting[0].at < n.start || waiting[0].at == n.start && left[waiting[0].node] == 0) {
			finish()
		}
		c.begin(i)
		switch {
		case n.ends():
			heap.Push(&waiting, &pending{n.end, n.depth, seq, i, c.m.Save()})
		case n.speaks():
			ended(i)
		}
	}
	for len(waiting) > 0 && !c.m.Stopped() {
		finish()
	}
}

// enclosing returns the nearest span above each that ends, and how many spans that give
// signals are below each.
func (c *Collection) enclosing() (over, left []int32) {
	over, left = make([]int32, len(c.nodes)), make([]int32, len(c.nodes))
	for _, i := range c.down {
		over[i] = none
		if p := c.nodes[i].parent; p != none {
			if over[i] = over[p]; c.nodes[p].ends() {
				over[i] = p
			}
		}
		if o := over[i]; o != none && c.nodes[i].speaks() {
			left[o]++
		}
	}
	return over, left
}

// nothing accounts for a recording in which there is no agent.
func (c *Collection) nothing() {
	for _, i := range c.order {
		c.m.Begin(c.nodes[i].rec)
		c.m.Skip("transport")
	}
	if len(c.nodes) > 0 {
		c.m.Note(fmt.Sprintf("none of the %d spans is of an agent, a tool or a model: none has an attribute of gen_ai, OpenInference or Traceloop that says so", len(c.nodes)))
	}
}

// describe says what the user should know before the first signal.
func (c *Collection) describe() {
	lost := 0
	for i := range c.nodes {
		if n := &c.nodes[i]; n.above != "" && n.parent == none && n.flags&repeated == 0 {
			lost++
		}
	}
	if lost > 0 {
		c.remarks = append(c.remarks, remark{"parents", fmt.Sprintf("spans whose parents are not in the recording: %d; they are taken for roots", lost)})
	}
	if c.behind > 0 {
		c.remarks = append(c.remarks, remark{RemarkOrder, fmt.Sprintf("%d of %d spans stood behind later ones, by %v at most; they were sorted by start", c.behind, len(c.order), time.Duration(c.furthest))})
	}
	moved, furthest := 0, recording.Instant(0)
	for i := range c.nodes {
		if n := &c.nodes[i]; n.moved > 0 && n.flags&repeated == 0 {
			moved++
			furthest = max(furthest, n.moved)
		}
	}
	if moved > 0 {
		c.remarks = append(c.remarks, remark{"times", fmt.Sprintf("%d of %d spans began before the agent, tool or model call above them or ended after it, by %v at most; they were moved between", moved, len(c.order), time.Duration(furthest))})
	}
}

// ends reports whether the end of a span gives signals.
func (n *node) ends() bool {
	if !n.speaks() {
		return false
	}
	return n.flags&open == 0 || n.kind != Tool && (n.told.usage != nil || len(n.told.texts) > 0 || n.told.problem != "")
}

// begin begins the record of a span and emits what its start means.
func (c *Collection) begin(i int32) {
	n, m := &c.nodes[i], c.m
	m.Begin(n.rec)
	m.SetTime(n.start, true)
	m.SetNativeID(n.native)
	if n.flags&ahead != 0 {
		m.Moved(0, true)
	} else if n.moved > 0 {
		m.Moved(time.Duration(n.moved), false)
	}
	switch {
	case n.kind == Handoff:
		m.Skip("handoff")
		return
	case !n.speaks():
		m.Skip("transport")
		return
	}
	if trace := c.names[n.trace]; trace != "" {
		m.AddMeta("trace", signal.Text(trace))
	}
	for _, r := range c.remarks {
		m.Remark(r.kind, r.message)
	}
	c.remarks = nil
	f, corr, agent := n.told, c.corr(i), c.agent[i]
	switch n.kind {
	case Agent, Workflow:
		m.AddMeta("span", signal.Text(f.name))
		if f.about != "" {
			m.AddMeta("agentDescription", signal.Text(f.about))
		}
		m.Dispatch(corr, n.native, c.from(i), agent, firstText(f.prompt, f.about))
	case Tool:
		m.Call(corr, agent, f.tool, c.callID(n), f.input)
	case Chat:
		m.State(corr, agent, recording.Thinking, "")
	default:
	}
	m.Hold() // has an effect if nothing was emitted
}

// end emits what the end of a span means.
func (c *Collection) end(i int32) {
	n, m := &c.nodes[i], c.m
	f, corr, agent := n.told, c.corr(i), c.agent[i]
	if n.flags&textsBelow == 0 {
		for _, p := range f.texts {
			if p.Thought {
				m.Thought(corr, agent, p.Text)
			} else {
				m.Text(corr, agent, p.Text)
			}
		}
	}
	if f.usage != nil && n.flags&tokensBelow == 0 {
		m.Tokens(corr, agent, *f.usage)
	}
	switch n.kind {
	case Tool:
		if n.flags&open == 0 {
			m.Result(corr, recording.Answer{CallID: c.callID(n), Tool: f.tool, Agent: agent, Success: n.flags&failed == 0, Output: f.output})
		}
	case Chat, Agent, Workflow:
		if f.problem != "" {
			severity := recording.Warning
			if l := c.leader[i]; l == none && n.flags&failed != 0 || l != none && c.nodes[l].flags&failed != 0 {
				severity = recording.Severe
			}
			m.Error(corr, agent, f.code, severity, f.problem)
		}
		if n.leads() && n.flags&open == 0 {
			m.Complete(corr, n.native, agent, n.flags&failed == 0, f.result)
		}
	default:
	}
}

// corr returns the correlation of a span: the nearest agent's span, or the trace.
func (c *Collection) corr(i int32) string {
	if l := c.leader[i]; l != none {
		return c.nodes[l].native
	}
	return c.names[c.nodes[i].trace]
}

// from returns the agent that gave an agent its task.
func (c *Collection) from(i int32) string {
	n := &c.nodes[i]
	if n.told.handedBy != "" && n.told.handedBy != c.agent[i] {
		return n.told.handedBy
	}
	if over := c.above(i); over != none {
		return c.agent[over]
	}
	return recording.User
}

// callID returns the id of a call. An id that another call of the recording has is replaced
// by that of the span.
func (c *Collection) callID(n *node) string {
	id := n.told.callID
	if id == "" {
		return n.native
	}
	if owner, taken := c.calls[id]; taken && owner != n.native {
		return n.native
	}
	if c.calls == nil {
		c.calls = map[string]string{}
	}
	c.calls[id] = n.native
	return id
}
