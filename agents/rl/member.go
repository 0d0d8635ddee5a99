package rl

import (
	"context"
	"slices"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// member is the reader of one agent.
type member struct {
	reader *agentslive.Agent
	known  view.View                // the delivered view
	news   []agentslive.Observation // delivered since it last acted
}

func newMember(reader *agentslive.Agent) *member {
	m := &member{reader: reader, known: view.View{AgentID: reader.ID()}}
	m.known.VisibleEntities, m.known.VisibleRelationships = signal.Object{}.Value(), signal.Object{}.Value()
	m.known.ContextDigest = m.known.Digest()
	return m
}

// listen reads the observations that are due, without waiting.
func (m *member) listen(ctx context.Context, w *agentslive.Agents) error {
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
	// If nothing is in flight, the delivered view is the world's view for the agent,
	// and no patch need be applied.
	last := m.news[len(m.news)-1]
	v, err := w.View(ctx, m.reader.ID())
	if err != nil {
		return err
	}
	if v.ContextDigest == last.ContextDigest() {
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

// learn applies a delta to the delivered view.
func (m *member) learn(d view.Delta) error {
	switch {
	case d.IsFullView():
		m.known.VisibleEntities, m.known.VisibleRelationships = d.Patches[0].Value, d.Patches[1].Value
	case len(d.Patches) > 0:
		doc, err := jsondoc.ApplyPatch(m.document(), d.Patches)
		if err != nil {
			return err
		}
		m.known.VisibleEntities, _ = doc.Get("visible_entities")
		m.known.VisibleRelationships, _ = doc.Get("visible_relationships")
	}
	m.known.ViewSeq, m.known.ContextDigest = d.ViewSeq, d.ContextDigest()
	return nil
}

// document returns the delivered view as the object that patches apply to.
func (m *member) document() signal.Value {
	return signal.NewObject(2).
		Add("visible_entities", m.known.VisibleEntities).
		Add("visible_relationships", m.known.VisibleRelationships).
		Value()
}

// heed notes that the agent has acted.
func (m *member) heed() { m.news = nil }

func (m *member) observation() AgentObservation {
	return AgentObservation{m.known, slices.Clone(m.news)}
}
