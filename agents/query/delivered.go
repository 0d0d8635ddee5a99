package query

import (
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// FoldedEntry is one entry of a log together with the result of folding it.
type FoldedEntry struct {
	Entry uint64        // its number in the log
	At    time.Duration // its session time
	// Record is its record. The Word is "" if the record is not the world's: the
	// entry then only lets time pass.
	Record signal.Record
	// Passed are the cancellations that the time since the entry before caused.
	Passed  []agents.Cancellation
	Applied agents.Applied
}

// Fold folds one entry into a core: it lets time pass up to the entry, then applies
// the entry's record, if it has one.
func Fold(c *agents.Core, entry uint64, at time.Duration, r signal.Record) FoldedEntry {
	s := FoldedEntry{Entry: entry, At: at, Record: r, Passed: c.Advance(at).Cancellations}
	if r.Word != "" {
		s.Applied = c.Apply(at, r)
	}
	return s
}

// registers reports whether the entry registers an agent.
func (s *FoldedEntry) registers(agent string) bool {
	return s.Record.Word == agents.WordAgent && s.Applied.Err == nil && jsonvalue.TextOf(s.Record.Value, "agent_id") == agent
}

// Dismisses reports whether the entry removes an agent from the world. Deltas that
// are in flight for the agent are then never delivered.
func (s *FoldedEntry) Dismisses(agent string) bool {
	return s.Record.Word == agents.WordLeft && s.Applied.Err == nil && jsonvalue.TextOf(s.Record.Value, "agent_id") == agent
}

// delivery returns the delta that the entry makes for an agent.
func (s *FoldedEntry) delivery(agent string) (TracedDelivery, bool) {
	for _, d := range s.Applied.Deliveries {
		if d.Agent == agent {
			return TracedDelivery{s.Entry, s.At, s.cause(), d}, true
		}
	}
	return TracedDelivery{}, false
}

func (s *FoldedEntry) cause() Cause {
	c := Cause{Word: s.Record.Word}
	if e := s.Applied.Effect; e != nil {
		c.GlobalSeq, c.Kind, c.Source, c.ReqID = e.GlobalSeq, e.Kind, e.SourceID, e.ReqID
	}
	return c
}

// Cause is the record that caused a delta.
type Cause struct {
	// Word is the word of the record: [agents.WordEffect], [agents.WordAgent] if the
	// agent was registered and so got a full view, or that of a changed configuration.
	Word string
	// The other fields are set if the record is an effect.
	GlobalSeq           uint64
	Kind, Source, ReqID string
}

// TracedDelivery is a delta that was made for an agent, with the entry that caused
// it.
type TracedDelivery struct {
	Entry    uint64        // that caused it
	Made     time.Duration // the entry's time
	Cause    Cause
	Delivery agents.Delivery // its At is the time of delivery
}

// Presence says whether an agent is registered.
type Presence uint8

// The values of Presence.
const (
	Absent     Presence = iota // not registered yet
	Registered                 // in the world
	Departed                   // has left
)

func (p Presence) String() string {
	if int(p) < len(presenceNames) {
		return presenceNames[p]
	}
	return fmt.Sprintf("presence %d", p)
}

var presenceNames = [...]string{"absent", "registered", "left"}

// DeliveredView is the view that had been delivered to one agent by some time: the
// view of a client that applies every delta when it is delivered. Deltas in flight
// are not in it. When the agent leaves, deltas in flight are dropped and the view
// stays as it was.
type DeliveredView struct {
	agent    string
	presence Presence
	left     uint64 // the entry that removed the agent; 0 while it is in the world
	doc      *jsondoc.Document
	seq      uint64
	digest   string
	pending  []TracedDelivery // deltas in flight, in the order of delivery
}

// NewDeliveredView returns the delivered view before the first entry: an empty one.
func NewDeliveredView(agent string) *DeliveredView {
	t := &DeliveredView{agent: agent}
	t.reset()
	return t
}

// DeliveredBy returns the view that an agent will have when all deltas that c has
// made are delivered, and the time at which they are. It returns false if no such
// agent is registered.
func DeliveredBy(c *agents.Core, agent string) (*DeliveredView, time.Duration, bool) {
	v, ok := c.View(agent)
	if !ok {
		return nil, 0, false
	}
	t := &DeliveredView{agent: agent, presence: Registered, seq: v.ViewSeq, digest: v.ContextDigest}
	var err error
	t.doc, err = jsondoc.NewDocument(viewDocument(v.VisibleEntities, v.VisibleRelationships))
	at, _ := c.Complete(agent)
	return t, at, err == nil
}

func viewDocument(entities, relations signal.Value) signal.Value {
	return jsonvalue.Fields{{view.PathEntities[1:], entities}, {view.PathRelations[1:], relations}}.Value()
}

func (t *DeliveredView) reset() {
	t.doc, _ = jsondoc.NewDocument(viewDocument(jsonvalue.Empty(), jsonvalue.Empty())) // always within the bounds
	t.seq, t.digest, t.pending = 0, "", nil
}

// Apply applies an entry. An error means that a delta does not fit the view before
// it, which is a bug of the program that made it.
func (t *DeliveredView) Apply(s *FoldedEntry) error {
	if err := t.Advance(s.At); err != nil {
		return err
	}
	switch {
	case s.Dismisses(t.agent):
		t.presence, t.left, t.pending = Departed, s.Entry, nil
	case s.registers(t.agent):
		if t.presence != Registered {
			t.reset()
		}
		t.presence, t.left = Registered, 0
	}
	if n, ok := s.delivery(t.agent); ok {
		t.pending = append(t.pending, n)
	}
	return t.Advance(s.At)
}

// Advance delivers the deltas that are due at an instant.
func (t *DeliveredView) Advance(to time.Duration) error {
	for len(t.pending) > 0 && t.pending[0].Delivery.At <= to {
		n := t.pending[0]
		t.pending[0] = TracedDelivery{}
		t.pending = t.pending[1:]
		if err := t.doc.Apply(n.Delivery.Delta.Patches); err != nil {
			return fmt.Errorf("agents: entry %d, for %q: %w", n.Entry, t.agent, err)
		}
		t.seq, t.digest = n.Delivery.Delta.ViewSeq, n.Delivery.Delta.ContextDigest()
	}
	return nil
}

// Presence returns whether the agent is registered and, if it has left, the entry
// that removed it.
func (t *DeliveredView) Presence() (p Presence, left uint64) { return t.presence, t.left }

// Pending returns the deltas in flight, in the order of delivery.
func (t *DeliveredView) Pending() []TracedDelivery { return slices.Clone(t.pending) }

// View returns the delivered view. Its members are in the order of their names,
// whatever the order of the deltas.
func (t *DeliveredView) View() view.View {
	doc := t.doc.Value()
	entities, _ := doc.Get(view.PathEntities[1:])
	relations, _ := doc.Get(view.PathRelations[1:])
	v := view.View{AgentID: t.agent, ViewSeq: t.seq, VisibleEntities: entities, VisibleRelationships: relations, ContextDigest: t.digest}
	if v.ContextDigest == "" {
		v.ContextDigest = v.Digest() // no delta was delivered yet
	}
	return v
}
