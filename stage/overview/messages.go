package overview

import (
	"fmt"
	"strings"
	"time"
)

// messageKind is the kind of a row of a sequence diagram.
type messageKind uint8

const (
	asks    messageKind = iota // from one agent to another
	answers                    // back to the agent that asked
	works                      // the calls of one agent between two other messages
	fails                      // an error of one agent
)

// message is one row of a sequence diagram. An agent of -1 is unknown.
type message struct {
	at       time.Duration
	kind     messageKind
	from, to int
	text     string
	failed   bool

	tools    []toolCount // of works, in the order of their first calls
	calls    int
	failures int
}

type toolCount struct {
	tool string
	n    int
}

// mostTools bounds the tools of one row. Further ones are counted together.
const mostTools = 12

// say adds a message. The calls of its agents from now on are counted in new rows.
func (o *Overview) say(m message) {
	delete(o.working, m.from)
	delete(o.working, m.to)
	if m.from < 0 && m.to < 0 || !o.room(len(o.messages)) {
		return
	}
	m.text = clip(m.text)
	o.messages = append(o.messages, m)
}

// work counts a call of an agent, or the failure of one.
func (o *Overview) work(at time.Duration, agent int, tool string, failed bool) {
	i, ok := o.working[agent]
	if !ok {
		if failed || !o.room(len(o.messages)) {
			return // the failure of a call in an earlier row
		}
		i = len(o.messages)
		o.working[agent] = i
		o.messages = append(o.messages, message{at: at, kind: works, from: agent, to: agent})
	}
	m := &o.messages[i]
	if failed {
		m.failures++
		return
	}
	m.calls++
	for j := range m.tools {
		if m.tools[j].tool == tool {
			m.tools[j].n++
			return
		}
	}
	if len(m.tools) < mostTools {
		m.tools = append(m.tools, toolCount{tool, 1})
	}
}

// words returns the text of a row.
func (m *message) words() string {
	if m.kind != works {
		return m.text
	}
	var b strings.Builder
	listed := 0
	for i, t := range m.tools {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.tool)
		if t.n > 1 {
			fmt.Fprintf(&b, " ×%d", t.n)
		}
		listed += t.n
	}
	if more := m.calls - listed; more > 0 {
		fmt.Fprintf(&b, ", %d others", more)
	}
	if m.failures > 0 {
		fmt.Fprintf(&b, " (%d failed)", m.failures)
	}
	return b.String()
}
