package spans

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// identify finds the order of the spans, the agents, and what is repeated upwards.
func (c *Collection) identify() {
	c.order = c.sorted()
	c.repeatedAbove()
	c.agents()
	c.prompts()
}

// chains makes a chain at the root of a trace without agents the workflow of the trace.
func (c *Collection) chains() {
	led := make([]bool, len(c.names)) // by an agent or a workflow
	parts := make([]bool, len(c.names))
	for i := range c.nodes {
		n := &c.nodes[i]
		switch n.kind {
		case Agent, Workflow:
			led[n.trace] = true
		case Tool, Chat:
			parts[n.trace] = true
		default:
		}
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.kind != Chain {
			continue
		}
		n.kind = Transport
		if n.parent == none && parts[n.trace] && !led[n.trace] {
			n.kind = Workflow
		}
	}
}

// repeatedAbove marks the spans of which a descendant has tokens or texts.
func (c *Collection) repeatedAbove() {
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.told == nil || n.flags&repeated != 0 {
			continue
		}
		var mark flags
		if n.told.usage != nil {
			mark |= tokensBelow
		}
		if len(n.told.texts) > 0 {
			mark |= textsBelow
		}
		for p := n.parent; mark != 0 && p != none; p = c.nodes[p].parent {
			if c.nodes[p].flags&mark == mark {
				break
			}
			c.nodes[p].flags |= mark
		}
	}
}

// leads reports whether a span is an agent or a workflow.
func (n *node) leads() bool { return n.kind == Agent || n.kind == Workflow }

// agents finds the agent of each span and the task that it belongs to.
func (c *Collection) agents() {
	c.leader = make([]int32, len(c.nodes))
	c.agent = make([]string, len(c.nodes))
	c.base = make([]string, len(c.nodes))
	// The nearest agent or workflow, the span itself included.
	for _, i := range c.down {
		n := &c.nodes[i]
		switch {
		case n.leads():
			c.leader[i] = i
		case n.parent != none:
			c.leader[i] = c.leader[n.parent]
		default:
			c.leader[i] = none
		}
	}
	inner := c.within()
	// Parents stand after their children here, so that a name that comes from a child is known.
	for k := len(c.order) - 1; k >= 0; k-- {
		i := c.order[k]
		n := &c.nodes[i]
		if !n.leads() {
			continue
		}
		in := inner[i]
		switch {
		case n.told.named:
			c.agent[i] = n.told.agent
		case in.first != none && (n.kind == Workflow || in.agents == 1 && in.others == 0):
			c.agent[i] = c.agent[in.first]
		case n.kind == Agent:
			c.agent[i] = n.told.agent
		}
	}
	// Among agents and workflows, the outer ones stand first in the order of starts.
	for _, i := range c.order {
		if !c.nodes[i].leads() {
			continue
		}
		if c.agent[i] == "" {
			c.agent[i] = c.orphan(i)
		}
		c.base[i] = c.agent[i]
		c.agent[i] = c.instance(i)
	}
	for _, i := range c.down {
		n := &c.nodes[i]
		if n.leads() {
			continue
		}
		above := ""
		if n.parent != none {
			above, c.base[i] = c.agent[n.parent], c.base[n.parent]
		}
		if n.told != nil && n.told.agent != "" && n.told.agent != c.base[i] {
			above, c.base[i] = n.told.agent, n.told.agent
		}
		c.agent[i] = above
		if c.agent[i] == "" && n.told != nil {
			c.agent[i] = firstText(known(n.told.service), c.m.Agent())
		}
	}
	c.handoffs()
}

// instance returns the id of an agent: its name, with a number if others of the name are at work.
func (c *Collection) instance(i int32) string {
	n := &c.nodes[i]
	name := c.base[i]
	if over := c.above(i); over != none && c.base[over] == name {
		return c.agent[over] // the same agent in two spans
	}
	if n.told.byID {
		return name
	}
	if c.working == nil {
		c.working = map[string][]recording.Instant{}
	}
	until := n.end
	if n.flags&open != 0 {
		until = math.MaxInt64
	}
	places := c.working[name]
	at := slices.IndexFunc(places, func(end recording.Instant) bool { return end <= n.start })
	if at < 0 {
		at = len(places)
		places = append(places, 0)
	}
	places[at] = until
	c.working[name] = places
	if at == 0 {
		return name
	}
	return name + "#" + strconv.Itoa(at+1)
}

// above returns the nearest agent or workflow above a span.
func (c *Collection) above(i int32) int32 {
	if p := c.nodes[i].parent; p != none {
		return c.leader[p]
	}
	return none
}

// orphan returns the agent of a workflow in which no agent is named.
func (c *Collection) orphan(i int32) string {
	n := &c.nodes[i]
	if over := c.above(i); over != none {
		return c.base[over]
	}
	return firstText(known(n.told.service), n.told.name, c.m.Agent())
}

// known returns the name of a service, if it is one.
func known(service string) string {
	if strings.HasPrefix(service, "unknown_service") {
		return ""
	}
	return service
}

// contents counts what is directly below an agent or workflow.
type contents struct {
	first  int32 // the first agent
	agents int
	others int // tools and chats
}

func (c *Collection) within() map[int32]contents {
	inner := map[int32]contents{}
	for _, i := range c.order {
		if c.nodes[i].leads() {
			inner[i] = contents{first: none}
		}
	}
	for _, i := range c.order {
		over := c.above(i)
		if over == none {
			continue
		}
		in := inner[over]
		switch c.nodes[i].kind {
		case Agent, Workflow:
			if in.first == none {
				in.first = i
			}
			in.agents++
		case Tool, Chat:
			in.others++
		default:
		}
		inner[over] = in
	}
	return inner
}

// handoffs gives the agents to which another one has handed its work that one as origin.
func (c *Collection) handoffs() {
	type to struct {
		trace int32
		agent string
	}
	from := map[to]string{}
	for _, i := range c.order {
		n := &c.nodes[i]
		switch {
		case n.kind == Handoff && n.told != nil && n.told.to != "":
			from[to{n.trace, n.told.to}] = firstText(n.told.from, c.agent[i])
		case n.kind == Agent:
			k := to{n.trace, c.agent[i]}
			n.told.handedBy = from[k]
			delete(from, k)
		}
	}
}

// prompts gives agents without a description the prompt of the first call of a model below
// them: frameworks often record it there alone.
func (c *Collection) prompts() {
	for _, i := range c.order {
		n := &c.nodes[i]
		if n.told == nil || n.told.prompt == "" || n.kind == Tool {
			continue
		}
		for l := c.above(i); l != none && c.agent[l] == c.agent[i]; l = c.above(l) {
			if up := c.nodes[l].told; up.prompt == "" {
				up.prompt = n.told.prompt
			} else {
				break
			}
		}
	}
}
