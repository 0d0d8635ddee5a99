package agents

import (
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// A witness stands beside a core that folds a log, is shown what came of each
// entry, and answers afterwards what was told to whom, when and why. It keeps
// what its question needs and no more, so a log of any length can be gone through.
// [Told] knows what an agent has been told, [PathWatch] when it came to know a
// thing, [LeakWatch] whether it ever did, [RequestWatch] what became of what it asked
// for, [PolicyWatch] what it would have been told by another policy.

// Step is one entry of a log and what came of it.
type Step struct {
	Entry uint64        // its number in the log
	At    time.Duration // its session time
	// Record is what it holds; its Word is "" if it is none of the world's, so
	// that by it time has passed and no more.
	Record Record
	// Passed is what time brought about since the entry before.
	Passed  []Cancellation
	Applied Applied
}

// Step folds one entry: time passes up to it, and then its record is applied,
// if it has one.
func (c *Core) Step(entry uint64, at time.Duration, r Record) Step {
	s := Step{Entry: entry, At: at, Record: r, Passed: c.Advance(at).Cancellations}
	if r.Word != "" {
		s.Applied = c.Apply(at, r)
	}
	return s
}

// registers reports whether the entry registers an agent.
func (s *Step) registers(agent string) bool {
	return s.Record.Word == WordAgent && s.Applied.Err == nil && textOf(s.Record.Value, "agent_id") == agent
}

// dismisses reports whether the entry takes an agent out.
func (s *Step) dismisses(agent string) bool {
	return s.Record.Word == WordLeft && s.Applied.Err == nil && textOf(s.Record.Value, "agent_id") == agent
}

// news returns what the entry has an agent told.
func (s *Step) news(agent string) (News, bool) {
	for _, d := range s.Applied.Deliveries {
		if d.Agent == agent {
			return News{s.Entry, s.At, s.cause(), d}, true
		}
	}
	return News{}, false
}

func (s *Step) cause() Cause {
	c := Cause{Word: s.Record.Word}
	if e := s.Applied.Effect; e != nil {
		c.GlobalSeq, c.Kind, c.Source, c.ReqID = e.GlobalSeq, e.Kind, e.SourceID, e.ReqID
	}
	return c
}

// Cause is what an agent is told of.
type Cause struct {
	// Word is that of the record: [WordEffect], [WordAgent] if the agent was
	// registered and so shown everything, or what changed the rules.
	Word string
	// Of an effect.
	GlobalSeq           uint64
	Kind, Source, ReqID string
}

// News is a delta that was made for an agent, and where it comes from.
type News struct {
	Entry    uint64        // by which it was made
	Made     time.Duration // the entry's time
	Cause    Cause
	Delivery Delivery // At is when the agent is told
}

// Presence says whether an agent takes part.
type Presence uint8

// The ways to be there or not.
const (
	Absent     Presence = iota // not registered yet
	Registered                 // takes part
	Departed                   // has left
)

func (p Presence) String() string {
	if int(p) < len(presenceNames) {
		return presenceNames[p]
	}
	return fmt.Sprintf("presence %d", p)
}

var presenceNames = [...]string{"absent", "registered", "left"}

// Told is what one agent has been told by some time: the view that a client
// has which was given every delta at its time. What is on its way is not in it.
// Once the agent has left it stays what it was: news that was on its way then
// never came.
type Told struct {
	agent    string
	presence Presence
	left     uint64 // the entry by which it left
	doc      *treeNode
	seq      uint64
	digest   string
	pending  []News // in the order in which they come
}

// NewTold returns what an agent has been told before the first entry.
func NewTold(agent string) *Told {
	t := &Told{agent: agent}
	t.reset()
	return t
}

// ToldBy returns what an agent will have been told of all that has happened in
// c once nothing is on its way any more, which is from the returned time on. It
// returns false if c knows no such agent.
func ToldBy(c *Core, agent string) (*Told, time.Duration, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return nil, 0, false
	}
	entities, relations := a.observer.values()
	t := &Told{agent: agent, presence: Registered, seq: a.observer.seq, digest: a.observer.digest}
	w := tree{left: MaxPatched, work: maxPatchWork}
	t.doc = w.node(viewDocument(entities, relations), signal.MaxDepth)
	return t, a.delivered, t.doc != nil
}

func viewDocument(entities, relations signal.Value) signal.Value {
	return object{{pathEntities[1:], entities}, {pathRelations[1:], relations}}.value()
}

func (t *Told) reset() {
	w := tree{left: MaxPatched, work: maxPatchWork}
	t.doc = w.node(viewDocument(emptyObject(), emptyObject()), signal.MaxDepth)
	t.seq, t.digest, t.pending = 0, "", nil
}

// Step takes in an entry. The error says that a delta does not apply, which is
// a fault of the program that made it.
func (t *Told) Step(s *Step) error {
	if err := t.Advance(s.At); err != nil {
		return err
	}
	switch {
	case s.dismisses(t.agent):
		t.presence, t.left, t.pending = Departed, s.Entry, nil
	case s.registers(t.agent):
		if t.presence != Registered {
			t.reset()
		}
		t.presence, t.left = Registered, 0
	}
	if n, ok := s.news(t.agent); ok {
		t.pending = append(t.pending, n)
	}
	return t.Advance(s.At)
}

// Advance lets what has arrived by an instant be told.
func (t *Told) Advance(to time.Duration) error {
	for len(t.pending) > 0 && t.pending[0].Delivery.At <= to {
		n := t.pending[0]
		t.pending[0] = News{}
		t.pending = t.pending[1:]
		w := tree{left: MaxPatched, work: maxPatchWork}
		for i, op := range n.Delivery.Delta.Patches {
			if t.doc = w.apply(t.doc, op); w.why != "" {
				return fmt.Errorf("agents: entry %d, for %q: %w", n.Entry, t.agent, &PatchError{i, op.Op, op.Path, w.why})
			}
		}
		t.seq, t.digest = n.Delivery.Delta.ViewSeq, n.Delivery.Delta.ContextDigest
	}
	return nil
}

// Presence returns whether the agent takes part, and if it has left by which
// entry.
func (t *Told) Presence() (p Presence, left uint64) { return t.presence, t.left }

// Pending returns what is on its way, in the order in which it comes.
func (t *Told) Pending() []News { return slices.Clone(t.pending) }

// View returns the view that the agent has, its members in the order of their
// names, however they came.
func (t *Told) View() View {
	t.doc.sort()
	doc := t.doc.append(nil)
	entities, _ := doc.Get(pathEntities[1:])
	relations, _ := doc.Get(pathRelations[1:])
	v := View{t.agent, t.seq, entities, relations, t.digest}
	if v.ContextDigest == "" {
		v.ContextDigest = v.Digest() // nothing has been told yet
	}
	return v
}

// sort brings the members of all objects into the order of their names.
func (n *treeNode) sort() {
	for _, e := range n.list {
		e.sort()
	}
	if n.kind != signal.KindObject || slices.IsSorted(n.names) {
		return
	}
	members := make(map[string]*treeNode, len(n.names))
	for i, name := range n.names {
		members[name] = n.list[i]
	}
	slices.Sort(n.names)
	for i, name := range n.names {
		n.list[i] = members[name]
	}
	n.index = nil
}
