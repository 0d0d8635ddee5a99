package rl

import (
	"context"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// member is one agent's ears.
type member struct {
	reader *sajou.Agent
	known  agents.View         // what it has been told
	news   []sajou.Observation // since it last acted
}

func newMember(reader *sajou.Agent) *member {
	m := &member{reader: reader, known: agents.View{AgentID: reader.ID()}}
	m.known.VisibleEntities, m.known.VisibleRelationships = emptyObject(), emptyObject()
	m.known.ContextDigest = m.known.Digest()
	return m
}

// emptyObject is {}.
func emptyObject() signal.Value { return signal.Value{0x80} }

// listen takes in what the agent has been told by now, and waits for nothing.
func (m *member) listen(ctx context.Context, w *sajou.Agents) error {
	had := len(m.news)
	for {
		o, ok, err := m.reader.Poll(ctx)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		m.news = append(m.news, o)
	}
	if len(m.news) == had {
		return nil
	}
	// If nothing is on its way, what it has been told is what the world has for it,
	// and need not be pieced together.
	last := m.news[len(m.news)-1]
	v, err := w.View(ctx, m.reader.ID())
	if err != nil {
		return err
	}
	if v.ContextDigest == last.ContextDigest {
		m.known, m.known.ViewSeq = v, last.ViewSeq
		return nil
	}
	for _, o := range m.news[had:] {
		if err := m.learn(o.Delta); err != nil {
			return err
		}
	}
	return nil
}

// learn takes a delta into what is known.
func (m *member) learn(d agents.Delta) error {
	switch {
	case d.Whole():
		m.known.VisibleEntities, m.known.VisibleRelationships = d.Patches[0].Value, d.Patches[1].Value
	case len(d.Patches) > 0:
		doc, err := agents.ApplyPatch(m.document(), d.Patches)
		if err != nil {
			return err
		}
		m.known.VisibleEntities, _ = doc.Get("visible_entities")
		m.known.VisibleRelationships, _ = doc.Get("visible_relationships")
	}
	m.known.ViewSeq, m.known.ContextDigest = d.ViewSeq, d.ContextDigest
	return nil
}

// document returns what is known as the object that patches are against.
func (m *member) document() signal.Value {
	doc := signal.Value{0x82} // an object of two members
	doc = appendMember(doc, "visible_entities", m.known.VisibleEntities)
	return appendMember(doc, "visible_relationships", m.known.VisibleRelationships)
}

func appendMember(dst signal.Value, name string, v signal.Value) signal.Value {
	return append(msgp.AppendString(dst, name), v...)
}

// heed notes that the agent has acted by what it knows.
func (m *member) heed() { m.news = nil }

func (m *member) observation() Observation { return Observation{m.known, slices.Clone(m.news)} }
