package agents

import "slices"

// Direction says along which relations one goes from the observer.
type Direction uint8

// The directions.
const (
	Outgoing Direction = iota
	Incoming
	EitherWay
)

// RelationshipRule says who is related enough to be seen.
type RelationshipRule struct {
	// Types are the types of relation that count; empty means all. A relation
	// without a type always counts, as the plain lists of the document do.
	Types []string
	// Depth is how many relations away an entity may be; 0 means 1.
	Depth     int
	Direction Direction
	// Entities, if not "", is the type that an entity must have.
	Entities string
}

// Relationships is the policy of an agent that sees whom it is related to.
func Relationships(rule RelationshipRule) Policy {
	rule.Types = slices.Clone(rule.Types)
	rule.Depth = max(rule.Depth, 1)
	return &relationshipPolicy{rule: rule}
}

type relationshipPolicy struct {
	open
	rule RelationshipRule
}

func (p *relationshipPolicy) Sees(eye *Eye, id string) bool {
	if _, ok := p.reached(eye)[id]; !ok {
		return false
	}
	return p.rule.Entities == "" || typeOf(eye.Reader, id) == p.rule.Entities
}

func (p *relationshipPolicy) Covers(*Eye, Point) bool { return false }

func (p *relationshipPolicy) Reach() Reach {
	return Reach{Depth: p.rule.Depth, Graph: p.rule.Depth, Fixed: true}
}

// reached returns all that is within reach of the agent, itself included.
func (p *relationshipPolicy) reached(eye *Eye) map[string]int {
	if hops, ok := eye.hops[p]; ok {
		return hops
	}
	hops := eye.Reader.reach([]string{eye.Agent}, p.rule.Depth, p.follow)
	if eye.hops == nil {
		eye.hops = map[*relationshipPolicy]map[string]int{}
	}
	eye.hops[p] = hops
	return hops
}

// follow goes over the neighbours of an id to which a relation that counts leads.
func (p *relationshipPolicy) follow(w Reader, id string, visit func(string)) {
	counts := func(r Relation) bool {
		return len(p.rule.Types) == 0 || r.Type == "" || slices.Contains(p.rule.Types, r.Type)
	}
	if p.rule.Direction != Incoming {
		for _, r := range w.s.out[id] {
			if counts(r) {
				visit(r.To)
			}
		}
	}
	if p.rule.Direction != Outgoing {
		for from := range w.s.in[id] {
			if slices.ContainsFunc(w.s.out[from], func(r Relation) bool { return r.To == id && counts(r) }) {
				visit(from)
			}
		}
	}
}

// everyWay goes over all neighbours.
func everyWay(w Reader, id string, visit func(string)) {
	for _, r := range w.s.out[id] {
		visit(r.To)
	}
	for from := range w.s.in[id] {
		visit(from)
	}
}

// reach searches breadth first: every id is visited once, so a dense graph
// costs its relations and no more. The result maps ids to their distance from
// the nearest start.
func (r Reader) reach(starts []string, depth int, follow func(Reader, string, func(string))) map[string]int {
	hops := make(map[string]int, len(starts))
	front := make([]string, 0, len(starts))
	for _, id := range starts {
		if _, ok := hops[id]; !ok {
			hops[id] = 0
			front = append(front, id)
		}
	}
	for d := 1; d <= depth && len(front) > 0; d++ {
		var next []string
		visit := func(id string) {
			if _, ok := hops[id]; !ok {
				hops[id] = d
				next = append(next, id)
			}
		}
		for _, id := range front {
			follow(r, id, visit)
		}
		front = next
	}
	return hops
}

// Conversation is the policy of an agent that takes part in a conversation: it
// sees the agents that it is directly related to, hears them speak, and hears
// of everybody who joins or leaves.
func Conversation() Policy {
	return &conversationPolicy{relationshipPolicy{rule: RelationshipRule{Depth: 1, Direction: EitherWay, Entities: "agent"}}}
}

type conversationPolicy struct{ relationshipPolicy }

// The kinds of effect that everybody in a conversation hears of.
const (
	KindParticipantJoined = "ParticipantJoined"
	KindParticipantLeft   = "ParticipantLeft"
)

func (p *conversationPolicy) Hears(eye *Eye, e Effect) Verdict {
	switch {
	case e.Kind == KindParticipantJoined || e.Kind == KindParticipantLeft:
		return Heard
	case isMessage(e.Kind) && p.related(eye, e.SourceID):
		return Heard
	default:
		return Unheard
	}
}

// related reports whether the agent is directly related to a source, which
// need not be an agent to be heard.
func (p *conversationPolicy) related(eye *Eye, id string) bool {
	_, ok := p.reached(eye)[id]
	return ok
}

func (p *conversationPolicy) Reach() Reach {
	r := p.relationshipPolicy.Reach()
	r.Kinds = []string{KindParticipantJoined, KindParticipantLeft}
	return r
}
