// Package spans turns the spans of traces into signals. It is what the formats of traces
// share: each of them reads its files into [TraceSpan] values, and a [Collection] gives the
// spans an order, tells their parts in a session of agents, and maps them.
//
// # From spans to signals
//
// A span is an agent, a workflow of agents, a tool, a call of a model (chat), a handoff, or
// transport: HTTP, queues and all else, which gives no signal but stays in the chain of
// parents. [AttributeNames] has the names that tell it.
//
//	start of an agent or workflow   task_dispatch from the agent around it, or from the user
//	start and end of a tool         tool_call and tool_result
//	start of a chat                 the agent thinks
//	end of a chat                   thinking, text_delta, token_usage
//	end of an agent or workflow     completion
//
// A chat or agent that failed gives an error, a tool that failed does not. Parents often repeat
// the tokens and texts of their children: only a span without a descendant that has tokens
// counts, and the same goes for texts. A span that carries the names of two conventions is
// read by one of them.
//
// The task of an agent has the id of its span, and so has the correlation of all signals
// below. Agents of one name that work at the same time are told apart by a number, unless they
// have ids of their own. An agent that says no name of its own, around exactly one other agent, is that
// agent; so is a workflow around several, with the first of them.
//
// # Order and times
//
// Exports are mostly in the order of ends. The spans are sorted by start, depth and id. A
// span that begins before the agent, tool or model call above it, or ends after it, takes effect at
// its start or end; transport binds nothing. A span alone in its time, further ahead than [recording.Options.MaxSkew],
// while the file comes back from it within 64 records, has a wrong clock. A parent that is
// not in the file makes its children roots. A cycle of parents is cut at its earliest span.
//
// # Memory
//
// Sorting needs all spans. Of transport the collection keeps some 400 bytes a span, of other
// spans the attributes that are read as well. It holds at most [MaxSpans] spans and
// [MaxBytes] of attributes, and refuses a recording with more by [ErrTooMany].
package spans

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// The bounds of what a [Collection] holds.
const (
	MaxSpans = 4 << 20
	MaxBytes = 512 << 20
)

// ErrTooMany reports a recording with more spans than can be sorted.
var ErrTooMany = fmt.Errorf("more than %d spans or %d MiB of their attributes cannot be sorted; split the recording by traces", MaxSpans, MaxBytes>>20)

// TraceSpan is one span, as a format has read it. It may share the bytes of its record: the
// collection copies what it keeps.
type TraceSpan struct {
	Record recording.NativeRecord

	Trace  string
	ID     string
	Parent string // "" for none
	Name   string

	Start recording.Instant
	End   recording.Instant // ignored if Open
	Timed bool              // Start is known
	Open  bool              // the span has no end

	// Attributes yields the attributes; of nested objects the members count too, with
	// the names of both joined by a dot. Service is the name of the service that
	// recorded the span.
	Attributes iter.Seq2[string, signal.Value]
	Service    string

	Events []SpanEvent

	Failed  bool
	Message string // of the status

	// Kind is what the format itself says, for spans whose attributes say nothing.
	// Strong makes it count before the attributes.
	Kind   SpanKind
	Strong bool

	// From and To are the agents of a handoff.
	From, To string
}

// SpanEvent is an event of a span.
type SpanEvent struct {
	Name       string
	Attributes iter.Seq2[string, signal.Value]
}

// Attributes returns the members of an object as attributes.
func Attributes(v signal.Value) iter.Seq2[string, signal.Value] { return v.Members() }

// Joined yields the attributes of several sequences. Of one name, the first counts.
func Joined(lists ...iter.Seq2[string, signal.Value]) iter.Seq2[string, signal.Value] {
	return func(yield func(string, signal.Value) bool) {
		for _, list := range lists {
			for name, v := range list {
				if !yield(name, v) {
					return
				}
			}
		}
	}
}

// Collection holds the spans of one recording until all are known.
type Collection struct {
	m       *recording.Mapping
	nodes   []node
	traces  map[string]int32
	names   []string // of traces
	shared  map[string]string
	held    int
	bad     []badRecord
	aside   []asideRecord
	session string
	scratch scratch
	parts   bool // a span is part of a session

	order    []int32 // the places of the spans by (start, depth, id); transport may stand before its parent
	down     []int32 // the same, parents before children
	behind   int     // spans that the file has behind later ones
	furthest recording.Instant
	leader   []int32                        // the nearest agent or workflow of each span
	agent    []string                       // of each span
	base     []string                       // the same without the number of the instance
	working  map[string][]recording.Instant // the ends of the agents of one name, by instance
	calls    map[string]string
	remarks  []remark // to be made with the first signal
}

// badRecord is a record that cannot be read.
type badRecord struct {
	rec    recording.NativeRecord
	reason string
	text   []byte
}

// asideRecord is a record that is no span of its own.
type asideRecord struct {
	rec  recording.NativeRecord
	rule string
}

// node is one span in the collection.
type node struct {
	rec    recording.NativeRecord
	id     string
	native string // unique in the recording
	trace  int32
	above  string // the id of its parent
	parent int32  // its place in nodes, or none
	depth  int32
	kind   SpanKind
	flags  flags
	start  recording.Instant
	end    recording.Instant
	moved  recording.Instant // how far its times were moved
	told   *facts            // nil for transport
}

const none = -1

// flags of a node.
type flags uint16

const (
	untimed flags = 1 << iota
	open          // it has no end
	failed
	repeated    // another record has the same span
	ahead       // its clock was wrong
	tokensBelow // a descendant has tokens
	textsBelow
)

// speaks reports whether a span gives signals, now or for its tokens.
func (n *node) speaks() bool {
	switch n.kind {
	case Agent, Workflow, Tool, Chat:
		return true
	default:
		return n.told != nil && n.told.usage != nil
	}
}

// NewCollection returns an empty collection for the spans of a mapping's recording.
func NewCollection(m *recording.Mapping) *Collection {
	return &Collection{m: m, traces: map[string]int32{}, shared: map[string]string{}}
}

// Add adds a span.
func (c *Collection) Add(s TraceSpan) error {
	if len(c.nodes) >= MaxSpans || c.held > MaxBytes {
		return &recording.PlaceError{Place: s.Record.Place, Err: ErrTooMany}
	}
	f := c.scratch.read(&s)
	n := node{
		rec: s.Record, id: strings.Clone(s.ID), above: c.share(s.Parent), trace: c.trace(s.Trace),
		parent: none, kind: f.kind, start: s.Start, end: s.End,
	}
	n.rec.Value = nil
	if s.Parent == s.ID {
		n.above = ""
	}
	if !s.Timed {
		n.flags |= untimed
	}
	if s.Open {
		n.flags |= open
		n.end = n.start
	}
	if f.failed {
		n.flags |= failed
	}
	if f.conversation != "" && c.session == "" {
		c.session = strings.Clone(f.conversation)
	}
	if f.kind != Transport && f.kind != Chain || f.usage != nil || f.kind == Chain && s.Parent == "" {
		c.parts = c.parts || f.kind != Handoff && f.kind != Chain
		n.told = f.keep(c)
		if c.m.KeepsNative() {
			n.rec.Value = bytes.Clone(s.Record.Value)
		}
		c.held += n.told.size() + len(n.rec.Value)
	} else if f.kind == Chain || f.agent != "" {
		n.told = &facts{name: strings.Clone(s.Name), prompt: strings.Clone(f.prompt), agent: c.share(f.agent)}
		c.held += n.told.size()
	}
	c.nodes = append(c.nodes, n)
	return nil
}

// Unreadable adds a record that cannot be read as a span.
func (c *Collection) Unreadable(rec recording.NativeRecord, reason string, text []byte) {
	const most = 4 << 10
	rec.Value = nil
	c.bad = append(c.bad, badRecord{rec, reason, bytes.Clone(text[:min(len(text), most)])})
}

// Skip adds a record that a rule of the format leaves out.
func (c *Collection) Skip(rec recording.NativeRecord, rule string) {
	rec.Value = nil
	c.aside = append(c.aside, asideRecord{rec, rule})
}

// SetSession says the native id of the session, where a file says it apart from its spans.
func (c *Collection) SetSession(id string) {
	if c.session == "" {
		c.session = strings.Clone(id)
	}
}

// trace returns the number of a trace.
func (c *Collection) trace(id string) int32 {
	n, ok := c.traces[id]
	if !ok {
		n = int32(len(c.names))
		id = strings.Clone(id)
		c.traces[id] = n
		c.names = append(c.names, id)
	}
	return n
}

// share returns a copy of a text that many spans have.
func (c *Collection) share(text string) string {
	if text == "" {
		return ""
	}
	if s, ok := c.shared[text]; ok {
		return s
	}
	if len(c.shared) > 1<<16 {
		clear(c.shared)
	}
	text = strings.Clone(text)
	c.shared[text] = text
	return text
}

// Map maps the spans. The collection can be used no more.
func (c *Collection) Map() {
	c.m.SetSession(firstText(c.session, c.firstTrace()))
	c.mapBad()
	c.link()
	c.clocks()
	c.chains()
	c.nest()
	c.identify()
	c.emit()
}

// firstTrace returns the trace that begins first.
func (c *Collection) firstTrace() string {
	first := none
	for i := range c.nodes {
		if c.nodes[i].flags&untimed == 0 && (first == none || c.nodes[i].start < c.nodes[first].start) {
			first = i
		}
	}
	if first == none {
		return ""
	}
	return c.names[c.nodes[first].trace]
}

// mapBad begins the records that cannot be read. They come first: most of them have no time.
func (c *Collection) mapBad() {
	for _, b := range c.bad {
		c.m.Begin(b.rec)
		c.m.Unreadable(b.reason, b.text)
	}
	for _, a := range c.aside {
		c.m.Begin(a.rec)
		c.m.Skip(a.rule)
	}
}
