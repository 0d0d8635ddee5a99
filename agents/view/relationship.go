package view

import (
	"slices"

	"github.com/sajou-dev/sajou-go/agents/world"
)

// Direction is the direction in which a walk from the observer follows relations.
type Direction uint8

// The directions.
const (
	Outgoing Direction = iota
	Incoming
	EitherWay
)

// RelationshipRule selects the entities that are closely enough related to be seen.
type RelationshipRule struct {
	// Types are the types of relation to follow; empty means all. A relation
	// without a type is always followed: worlds may list plain ids.
	Types []string
	// Depth is the largest number of relations to an entity; 0 means 1.
	Depth     int
	Direction Direction
	// Entities, if not "", is the type that an entity must have.
	Entities string
}

// Relationships is the policy of an agent that sees related entities.
func Relationships(rule RelationshipRule) Policy {
	rule.Types = slices.Clone(rule.Types)
	rule.Depth = max(rule.Depth, 1)
	return &relationshipPolicy{rule: rule}
}

type relationshipPolicy struct {
	open
	rule RelationshipRule
}

func (p *relationshipPolicy) Sees(vp *Viewpoint, id string) bool {
	if _, ok := p.reached(vp)[id]; !ok {
		return false
	}
	return p.rule.Entities == "" || typeOf(vp.ReadOnly, id) == p.rule.Entities
}

func (p *relationshipPolicy) Covers(*Viewpoint, world.Position) bool { return false }

func (p *relationshipPolicy) Dependencies() Dependencies {
	return Dependencies{Depth: p.rule.Depth, Graph: p.rule.Depth, Fixed: true}
}

// reached returns the ids that the rule leads to, the agent's included, each with
// the number of relations.
func (p *relationshipPolicy) reached(vp *Viewpoint) map[string]int {
	if hops, ok := vp.hops[p]; ok {
		return hops
	}
	index := vp.Index()
	hops := index.Hops([]string{vp.Agent}, p.rule.Depth, func(id string, visit func(string)) { p.follow(index, id, visit) })
	if vp.hops == nil {
		vp.hops = map[*relationshipPolicy]map[string]int{}
	}
	vp.hops[p] = hops
	return hops
}

// follow calls visit for each neighbour of an id to which a followed relation
// leads.
func (p *relationshipPolicy) follow(w world.Index, id string, visit func(string)) {
	counts := func(r world.Relation) bool {
		return len(p.rule.Types) == 0 || r.Type == "" || slices.Contains(p.rule.Types, r.Type)
	}
	if p.rule.Direction != Incoming {
		for _, r := range w.Relations(id) {
			if counts(r) {
				visit(r.To)
			}
		}
	}
	if p.rule.Direction != Outgoing {
		for from := range w.Referrers(id) {
			if slices.ContainsFunc(w.Relations(from), func(r world.Relation) bool { return r.To == id && counts(r) }) {
				visit(from)
			}
		}
	}
}

// Conversation is the policy of an agent in a conversation: it sees the agents that
// it is directly related to, receives their messages, and receives the effects by
// which anyone joins or leaves.
func Conversation() Policy {
	return &conversationPolicy{relationshipPolicy{rule: RelationshipRule{Depth: 1, Direction: EitherWay, Entities: "agent"}}}
}

type conversationPolicy struct{ relationshipPolicy }

// The kinds of effect that each agent in a conversation receives.
const (
	KindParticipantJoined = "ParticipantJoined"
	KindParticipantLeft   = "ParticipantLeft"
)

func (p *conversationPolicy) Receives(vp *Viewpoint, e world.Effect) Reception {
	switch {
	case e.Kind == KindParticipantJoined || e.Kind == KindParticipantLeft:
		return Received
	case world.IsMessage(e.Kind) && p.related(vp, e.SourceID):
		return Received
	default:
		return NotReceived
	}
}

// related reports whether the agent is directly related to a source, which need not
// be an agent.
func (p *conversationPolicy) related(vp *Viewpoint, id string) bool {
	_, ok := p.reached(vp)[id]
	return ok
}

func (p *conversationPolicy) Dependencies() Dependencies {
	r := p.relationshipPolicy.Dependencies()
	r.Kinds = []string{KindParticipantJoined, KindParticipantLeft}
	return r
}
