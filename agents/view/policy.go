package view

import (
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Policy says what one agent may see: a pure function of the world. Its methods are
// called with any id, also with one that is not an entity's. An agent always sees
// its own entity, so a policy need not grant that.
type Policy interface {
	// Sees reports whether the entity of an id is visible.
	Sees(vp *Viewpoint, id string) bool
	// Shows reports whether a field of a visible entity is shown.
	Shows(vp *Viewpoint, id, field string) bool
	// Dependencies bounds what Sees and Shows depend on. It is called once.
	Dependencies() Dependencies
}

// Viewer is a [Policy] that also limits the places that are in view. Without it
// every place is in view.
type Viewer interface {
	// Covers reports whether something that happens at a point is in view.
	Covers(vp *Viewpoint, at world.Position) bool
}

// showsAll reports whether a policy is known to show every field of every entity.
func showsAll(p Policy) bool {
	switch p := p.(type) {
	case open, nothing, distancePolicy, conePolicy:
		return true
	case all:
		return !slices.ContainsFunc(p, func(q Policy) bool { return !showsAll(q) })
	default:
		return false
	}
}

// Listener is a [Policy] that also decides whether the agent receives an effect,
// beyond the general rule of [Observer.Observes].
type Listener interface {
	Receives(vp *Viewpoint, e world.Effect) Reception
}

// Reception is the decision of a [Listener] about one effect.
type Reception uint8

// The receptions.
const (
	ByRule      Reception = iota // the general rule decides
	Received                     // the agent observes the effect
	NotReceived                  // the agent does not observe the effect, unless it is its own
)

// Dependencies names what a policy depends on, so that an effect is compared with
// the views of those agents only that it may concern. A policy that names less than
// it depends on produces outdated views; [Opaque] is always correct.
//
// The first five fields bound the entities that can be visible; each adds some.
type Dependencies struct {
	Everything bool    // any entity
	Radius     float64 // entities with a position at most so far away; none if it is 0 or less
	Unplaced   bool    // entities without a position
	Team       bool    // entities of the observer's team
	Depth      int     // entities at most so many relations away, in either direction

	// The other fields name what the answer about an entity depends on beyond that
	// entity and the observer's position.

	Fixed  bool     // not on the observer's position: a move does not change what it sees
	Graph  int      // on relations up to so many steps from the observer
	Fields []string // on these fields of the observer's entity
	Opaque bool     // on anything: after each effect all entities are evaluated again
	Mixed  bool     // Shows depends on more than the entity, the field and Graph
	Kinds  []string // kinds of effect that the agent receives from anywhere
}

// Opaque returns the dependencies of a policy of which nothing is known.
func Opaque() Dependencies { return Dependencies{Everything: true, Opaque: true} }

// rank orders the bounds of visible entities from the tightest to none.
func (r Dependencies) rank() int {
	switch {
	case r.Everything:
		return 4
	case r.Team:
		return 3
	case r.Depth > 0:
		return 2
	case r.Radius > 0 || r.Unplaced:
		return 1
	default:
		return 0
	}
}

// merge adds the fields that do not bound the visible entities from other to r.
func (r *Dependencies) merge(other Dependencies) {
	r.Fixed = r.Fixed && other.Fixed
	r.Graph = max(r.Graph, other.Graph)
	r.Opaque = r.Opaque || other.Opaque
	r.Mixed = r.Mixed || other.Mixed
	r.Kinds = union(r.Kinds, other.Kinds)
	r.Fields = union(r.Fields, other.Fields)
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(slices.Clip(a), s)
		}
	}
	return a
}

// Viewpoint is one agent that looks at a world at one moment. It is valid until the
// world changes.
type Viewpoint struct {
	world.ReadOnly
	// Agent is the id of the observing agent.
	Agent string
	// At is the agent's position, the origin if it has none.
	At world.Position
	// Team is the agent's team, "" for none.
	Team string

	hops map[*relationshipPolicy]map[string]int // cached numbers of relations from the agent
}

func newViewpoint(w world.ReadOnly, agent string) *Viewpoint {
	vp := &Viewpoint{}
	vp.set(w, agent)
	return vp
}

func (e *Viewpoint) set(w world.ReadOnly, agent string) {
	at, _ := w.Position(agent)
	*e = Viewpoint{ReadOnly: w, Agent: agent, At: at, Team: w.Team(agent)}
}

// Distance returns the distance from the agent to an entity, if the entity has a
// position.
func (e *Viewpoint) Distance(id string) (float64, bool) {
	at, ok := e.Position(id)
	return e.At.Distance(at), ok
}

// IsAlly reports whether an entity is of the agent's team.
func (e *Viewpoint) IsAlly(id string) bool {
	if id == e.Agent {
		return true
	}
	return e.Team != "" && e.ReadOnly.Team(id) == e.Team
}

// open is embedded by policies that restrict one thing only: it sees and shows
// everything.
type open struct{}

func (open) Sees(*Viewpoint, string) bool          { return true }
func (open) Shows(*Viewpoint, string, string) bool { return true }
func (open) Dependencies() Dependencies            { return Dependencies{Everything: true, Fixed: true} }

// Everything is the policy that hides nothing.
func Everything() Policy { return open{} }

// nothing sees only the agent's own entity.
type nothing struct{ open }

func (nothing) Sees(*Viewpoint, string) bool           { return false }
func (nothing) Dependencies() Dependencies             { return Dependencies{Fixed: true} }
func (nothing) Covers(*Viewpoint, world.Position) bool { return false }

// Self is the policy of an agent that sees only itself.
func Self() Policy { return nothing{} }

// All is the policy that sees an entity if each of the policies does, and shows a
// field if each of them does. Without policies it is [Everything].
func All(policies ...Policy) Policy { return all(slices.Clone(policies)) }

type all []Policy

func (a all) Sees(vp *Viewpoint, id string) bool {
	for _, p := range a {
		if !p.Sees(vp, id) {
			return false
		}
	}
	return true
}

func (a all) Shows(vp *Viewpoint, id, field string) bool {
	for _, p := range a {
		if !p.Shows(vp, id, field) {
			return false
		}
	}
	return true
}

func (a all) Covers(vp *Viewpoint, at world.Position) bool {
	for _, p := range a {
		if !covers(p, vp, at) {
			return false
		}
	}
	return true
}

// Receives returns NotReceived if one of the policies does, else Received if one of
// them does.
func (a all) Receives(vp *Viewpoint, e world.Effect) Reception {
	verdict := ByRule
	for _, p := range a {
		switch reception(p, vp, e) {
		case NotReceived:
			return NotReceived
		case Received:
			verdict = Received
		case ByRule:
		}
	}
	return verdict
}

// Dependencies returns the tightest of the bounds, since each of them holds.
func (a all) Dependencies() Dependencies {
	tightest := Dependencies{Everything: true, Fixed: true}
	for _, p := range a {
		r := p.Dependencies()
		if r.rank() < tightest.rank() || r.rank() == 1 && tightest.rank() == 1 && r.Radius < tightest.Radius {
			r.merge(tightest)
			tightest = r
			continue
		}
		tightest.merge(r)
	}
	return tightest
}

// Any is the policy that sees an entity if one of the policies does, and shows a
// field if one of those that see the entity does. Without policies it is [Self].
func Any(policies ...Policy) Policy { return anyOf(slices.Clone(policies)) }

type anyOf []Policy

func (a anyOf) Sees(vp *Viewpoint, id string) bool {
	for _, p := range a {
		if p.Sees(vp, id) {
			return true
		}
	}
	return false
}

// Shows asks all policies about the agent's own entity, which none of them needs to
// see.
func (a anyOf) Shows(vp *Viewpoint, id, field string) bool {
	for _, p := range a {
		if (id == vp.Agent || p.Sees(vp, id)) && p.Shows(vp, id, field) {
			return true
		}
	}
	return false
}

func (a anyOf) Covers(vp *Viewpoint, at world.Position) bool {
	for _, p := range a {
		if covers(p, vp, at) {
			return true
		}
	}
	return false
}

// Receives returns Received if one of the policies does, and NotReceived only if
// all of them do.
func (a anyOf) Receives(vp *Viewpoint, e world.Effect) Reception {
	verdict := NotReceived
	for _, p := range a {
		switch reception(p, vp, e) {
		case Received:
			return Received
		case ByRule:
			verdict = ByRule
		case NotReceived:
		}
	}
	return verdict
}

func (a anyOf) Dependencies() Dependencies {
	sum := Dependencies{Fixed: true}
	for _, p := range a {
		r := p.Dependencies()
		sum.Everything = sum.Everything || r.Everything
		sum.Radius = max(sum.Radius, r.Radius)
		sum.Unplaced = sum.Unplaced || r.Unplaced
		sum.Team = sum.Team || r.Team
		sum.Depth = max(sum.Depth, r.Depth)
		sum.merge(r)
	}
	sum.Mixed = true // the fields shown depend on the policy that sees the entity
	return sum
}

// Not is the policy that sees an entity if the given policy does not, and shows all
// of its fields. It restricts sight alone: the general rule decides about effects.
func Not(p Policy) Policy { return not{p: p} }

type not struct {
	open
	p Policy
}

func (n not) Sees(vp *Viewpoint, id string) bool           { return !n.p.Sees(vp, id) }
func (n not) Covers(vp *Viewpoint, at world.Position) bool { return !covers(n.p, vp, at) }
func (n not) Dependencies() Dependencies {
	r := Dependencies{Everything: true, Fixed: true}
	r.merge(n.p.Dependencies())
	r.Kinds = nil
	return r
}

func covers(p Policy, vp *Viewpoint, at world.Position) bool {
	v, ok := p.(Viewer)
	return !ok || v.Covers(vp, at)
}

func reception(p Policy, vp *Viewpoint, e world.Effect) Reception {
	l, ok := p.(Listener)
	if !ok {
		return ByRule
	}
	return l.Receives(vp, e)
}

// Distance is the policy of an agent that sees entities at most limit away and,
// with unplaced, those without a position.
func Distance(limit float64, unplaced bool) Policy { return distancePolicy{limit, unplaced} }

type distancePolicy struct {
	limit    float64
	unplaced bool
}

func (p distancePolicy) Sees(vp *Viewpoint, id string) bool {
	d, ok := vp.Distance(id)
	if !ok {
		return p.unplaced
	}
	return d <= p.limit
}
func (distancePolicy) Shows(*Viewpoint, string, string) bool { return true }
func (p distancePolicy) Covers(vp *Viewpoint, at world.Position) bool {
	return vp.At.Distance(at) <= p.limit
}

func (p distancePolicy) Dependencies() Dependencies {
	// A limit of 0 still includes entities at the same position.
	return Dependencies{Radius: max(p.limit, math.SmallestNonzeroFloat64), Unplaced: p.unplaced}
}

// Cone is the policy of an agent that sees entities in a cone before it. The cone
// points in the direction of the field facing of its entity, [x, y] or [x, y, z],
// by default [1, 0, 0]. The angle is that of the whole cone, in degrees.
func Cone(angle, radius float64) Policy { return conePolicy{angle, radius} }

type conePolicy struct{ angle, radius float64 }

func (p conePolicy) cone(vp *Viewpoint) world.Cone {
	facing := world.Position{X: 1}
	if self, ok := vp.Entity(vp.Agent); ok {
		v, _ := self.Get("facing")
		if f, err := world.ParsePosition(v); err == nil && f != (world.Position{}) {
			facing = f
		}
	}
	return world.Cone{At: vp.At, Facing: facing, Angle: p.angle, Range: p.radius}
}

func (p conePolicy) Sees(vp *Viewpoint, id string) bool {
	at, ok := vp.Position(id)
	return ok && p.cone(vp).Holds(at)
}
func (conePolicy) Shows(*Viewpoint, string, string) bool          { return true }
func (p conePolicy) Covers(vp *Viewpoint, at world.Position) bool { return p.cone(vp).Holds(at) }
func (p conePolicy) Dependencies() Dependencies {
	return Dependencies{Radius: max(p.radius, math.SmallestNonzeroFloat64), Fields: []string{"facing"}}
}

// Allies is the policy of an agent that sees its team, at any distance. If fields
// are given, it shows only those: Any(Distance(10, false), Allies("name",
// "position")) shows all fields of entities nearby and two fields of distant
// allies.
func Allies(fields ...string) Policy { return allyPolicy{slices.Clone(fields)} }

type allyPolicy struct{ fields []string }

func (allyPolicy) Sees(vp *Viewpoint, id string) bool { return vp.IsAlly(id) }
func (p allyPolicy) Shows(_ *Viewpoint, _, field string) bool {
	return len(p.fields) == 0 || slices.Contains(p.fields, field)
}
func (allyPolicy) Covers(*Viewpoint, world.Position) bool { return false }
func (allyPolicy) Dependencies() Dependencies {
	return Dependencies{Team: true, Fixed: true, Fields: []string{"team"}}
}

// Of selects the entities whose fields a [FieldRule] hides.
type Of uint8

// The selections.
const (
	OfAll    Of = iota
	OfOthers    // every entity but the agent's own
	OfAllies    // the agent's team, itself excepted
	OfRivals    // every entity that is not of the agent's team
)

// FieldRule hides fields.
type FieldRule struct {
	// Fields maps a name to whether it is shown. Other names are shown.
	Fields map[string]bool
	// Types restricts the rule to entities with these values of the field type; empty means all.
	Types []string
	Of    Of
}

// Fields is the policy that sees every entity and hides the fields that one of the
// rules hides.
func Fields(rules ...FieldRule) Policy { return fieldPolicy{rules: slices.Clone(rules)} }

type fieldPolicy struct {
	open
	rules []FieldRule
}

func (p fieldPolicy) Shows(vp *Viewpoint, id, field string) bool {
	for _, r := range p.rules {
		shown, named := r.Fields[field]
		if named && !shown && r.concerns(vp, id) {
			return false
		}
	}
	return true
}

func (r FieldRule) concerns(vp *Viewpoint, id string) bool {
	switch r.Of {
	case OfOthers:
		if id == vp.Agent {
			return false
		}
	case OfAllies:
		if id == vp.Agent || !vp.IsAlly(id) {
			return false
		}
	case OfRivals:
		if vp.IsAlly(id) {
			return false
		}
	case OfAll:
	}
	if len(r.Types) == 0 {
		return true
	}
	return slices.Contains(r.Types, typeOf(vp.ReadOnly, id))
}

func (p fieldPolicy) Dependencies() Dependencies {
	r := Dependencies{Everything: true, Fixed: true}
	for _, rule := range p.rules {
		if rule.Of == OfAllies || rule.Of == OfRivals {
			r.Mixed, r.Fields = true, []string{"team"}
		}
	}
	return r
}

func typeOf(w world.ReadOnly, id string) string {
	o, _ := w.Entity(id)
	s, _ := jsonvalue.TextMember(o, "type")
	return s
}

// Channels is the policy that sees every entity, but receives messages on the given
// channels only. An effect of any kind is a message if its channel is team or
// private. Under every policy, a private message is for its source and its target
// alone, and a team message for the team.
func Channels(channels ...string) Policy { return channelPolicy{channels: slices.Clone(channels)} }

type channelPolicy struct {
	open
	channels []string
}

func (p channelPolicy) Shows(_ *Viewpoint, _, field string) bool {
	switch field {
	case "last_message", "last_speak_time", "message_count", "last_emit_time", "emit_count":
		return slices.Contains(p.channels, world.ChannelPublic)
	case world.FieldPrivate:
		return slices.Contains(p.channels, world.ChannelPrivate)
	case world.FieldTeam:
		return slices.Contains(p.channels, world.ChannelTeam)
	default:
		return true
	}
}

func (p channelPolicy) Receives(_ *Viewpoint, e world.Effect) Reception {
	channel, err := e.Channel()
	if !world.IsMessage(e.Kind) && (err != nil || channel == world.ChannelPublic) {
		return ByRule
	}
	if err != nil || !slices.Contains(p.channels, channel) {
		return NotReceived
	}
	return ByRule
}

// confidential reports whether an effect is a message that is withheld from the
// agent, and whether it is a private message to the agent. The channel decides,
// whatever the kind.
func confidential(vp *Viewpoint, e world.Effect) (hidden, addressed bool) {
	switch channel, _ := e.Channel(); channel {
	case world.ChannelPrivate:
		target, _ := jsonvalue.TextMember(e.Payload, "target_id")
		return target != vp.Agent, target == vp.Agent
	case world.ChannelTeam:
		return vp.Team == "" || vp.ReadOnly.Team(e.SourceID) != vp.Team, false
	default:
		return false, false
	}
}

// discloses reports whether the agent may see a field that keeps a message. No
// policy can grant what it denies.
func discloses(vp *Viewpoint, id, field string, v signal.Value) bool {
	switch field {
	case world.FieldPrivate:
		return id == vp.Agent
	case world.FieldTeam:
		return id == vp.Agent || vp.Team != "" && world.TeamOf(v) == vp.Team
	default:
		return true
	}
}
