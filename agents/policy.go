package agents

import (
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/signal"
)

// Policy is what one agent may see: a pure function of the world. It is asked
// about any id, also one that is no entity. An agent's own entity is visible to
// it whatever its policy says, so no policy needs to grant that.
type Policy interface {
	// Sees reports whether what has this id is visible.
	Sees(eye *Eye, id string) bool
	// Shows reports whether a field of a visible entity is shown.
	Shows(eye *Eye, id, field string) bool
	// Reach bounds what Sees and Shows depend on. It is asked once.
	Reach() Reach
}

// Viewer is a [Policy] that also limits which places are in view. Without it
// every place is.
type Viewer interface {
	// Covers reports whether something that happens at a point is in view.
	Covers(eye *Eye, at Point) bool
}

// Listener is a [Policy] with a say on effects beyond the general rule of
// [Observer.Observes].
type Listener interface {
	Hears(eye *Eye, e Effect) Verdict
}

// Verdict is what a [Listener] says about one effect.
type Verdict uint8

// The verdicts.
const (
	ByRule  Verdict = iota // as the general rule says
	Heard                  // observed in any case
	Unheard                // not observed in any case, the agent's own effects excepted
)

// Reach says what can matter to a policy, so that an effect is brought only to
// those whom it may concern. A policy that claims less than it depends on gives
// views that are out of date; [Opaque] is always right.
//
// The first four bound which entities can be visible; each of them adds some.
type Reach struct {
	Everything bool    // any entity
	Radius     float64 // those with a position at most so far away; none if it is 0 or less
	Unplaced   bool    // those without a position
	Team       bool    // those whose field team is the observer's
	Depth      int     // those at most so many relations away, whatever their direction

	// The others say on what the answer about an entity depends beyond that
	// entity and the observer's position.

	Fixed  bool     // not even on that position: who moves sees what it saw before
	Graph  int      // relations so many steps from the observer
	Fields []string // these fields of the observer's entity
	Opaque bool     // anything: every effect asks about every entity again
	Mixed  bool     // Shows depends on more than the entity, the field and Graph
	Kinds  []string // kinds of effect that are heard from anywhere
}

// Opaque is the reach of a policy of which nothing is known.
func Opaque() Reach { return Reach{Everything: true, Opaque: true} }

// rank orders bounds from the tightest to none.
func (r Reach) rank() int {
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

// mind adds to r on what other depends.
func (r *Reach) mind(other Reach) {
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

// Eye is one agent that looks at a world at one moment.
type Eye struct {
	Reader
	// Agent is who looks.
	Agent string
	// At is where the agent is; an agent without a position stands at the origin.
	At Point
	// Team is the agent's team, "" for none.
	Team string

	hops map[*relationshipPolicy]map[string]int // distances in relations, once asked for
}

func newEye(w Reader, agent string) *Eye {
	at, _ := w.Position(agent)
	return &Eye{Reader: w, Agent: agent, At: at, Team: w.Team(agent)}
}

// Distance returns how far something is from the agent, if it has a position.
func (e *Eye) Distance(id string) (float64, bool) {
	at, ok := e.Position(id)
	return e.At.Distance(at), ok
}

// IsAlly reports whether an entity is of the agent's team.
func (e *Eye) IsAlly(id string) bool {
	if id == e.Agent {
		return true
	}
	return e.Team != "" && e.Reader.Team(id) == e.Team
}

// open is what policies are made of that restrict only one thing: it sees and
// shows everything.
type open struct{}

func (open) Sees(*Eye, string) bool          { return true }
func (open) Shows(*Eye, string, string) bool { return true }
func (open) Reach() Reach                    { return Reach{Everything: true, Fixed: true} }

// Everything is the policy that hides nothing.
func Everything() Policy { return open{} }

// nothing sees nothing but the agent itself.
type nothing struct{ open }

func (nothing) Sees(*Eye, string) bool  { return false }
func (nothing) Reach() Reach            { return Reach{Fixed: true} }
func (nothing) Covers(*Eye, Point) bool { return false }

// Self is the policy of an agent that sees itself alone.
func Self() Policy { return nothing{} }

// All sees what each of the policies sees, and shows what each of them shows.
// With none it is [Everything].
func All(policies ...Policy) Policy { return all(slices.Clone(policies)) }

type all []Policy

func (a all) Sees(eye *Eye, id string) bool {
	for _, p := range a {
		if !p.Sees(eye, id) {
			return false
		}
	}
	return true
}

func (a all) Shows(eye *Eye, id, field string) bool {
	for _, p := range a {
		if !p.Shows(eye, id, field) {
			return false
		}
	}
	return true
}

func (a all) Covers(eye *Eye, at Point) bool {
	for _, p := range a {
		if !covers(p, eye, at) {
			return false
		}
	}
	return true
}

// Hears asks all: one refusal is enough, and so is one consent if the others
// leave it to the rule.
func (a all) Hears(eye *Eye, e Effect) Verdict {
	verdict := ByRule
	for _, p := range a {
		switch hears(p, eye, e) {
		case Unheard:
			return Unheard
		case Heard:
			verdict = Heard
		case ByRule:
		}
	}
	return verdict
}

// Reach is the tightest bound of any: each of them holds.
func (a all) Reach() Reach {
	tightest := Reach{Everything: true, Fixed: true}
	for _, p := range a {
		r := p.Reach()
		if r.rank() < tightest.rank() || r.rank() == 1 && tightest.rank() == 1 && r.Radius < tightest.Radius {
			r.mind(tightest)
			tightest = r
			continue
		}
		tightest.mind(r)
	}
	return tightest
}

// Any sees what one of the policies sees, and shows what one of those that see
// the entity shows. With none it is [Self].
func Any(policies ...Policy) Policy { return anyOf(slices.Clone(policies)) }

type anyOf []Policy

func (a anyOf) Sees(eye *Eye, id string) bool {
	for _, p := range a {
		if p.Sees(eye, id) {
			return true
		}
	}
	return false
}

// Shows of the agent's own entity asks all of them, for none needs to see it.
func (a anyOf) Shows(eye *Eye, id, field string) bool {
	for _, p := range a {
		if (id == eye.Agent || p.Sees(eye, id)) && p.Shows(eye, id, field) {
			return true
		}
	}
	return false
}

func (a anyOf) Covers(eye *Eye, at Point) bool {
	for _, p := range a {
		if covers(p, eye, at) {
			return true
		}
	}
	return false
}

// Hears asks all: one consent is enough, and only if all refuse is it refused.
func (a anyOf) Hears(eye *Eye, e Effect) Verdict {
	verdict := Unheard
	for _, p := range a {
		switch hears(p, eye, e) {
		case Heard:
			return Heard
		case ByRule:
			verdict = ByRule
		case Unheard:
		}
	}
	return verdict
}

func (a anyOf) Reach() Reach {
	sum := Reach{Fixed: true}
	for _, p := range a {
		r := p.Reach()
		sum.Everything = sum.Everything || r.Everything
		sum.Radius = max(sum.Radius, r.Radius)
		sum.Unplaced = sum.Unplaced || r.Unplaced
		sum.Team = sum.Team || r.Team
		sum.Depth = max(sum.Depth, r.Depth)
		sum.mind(r)
	}
	sum.Mixed = true // which of them sees an entity decides what is shown
	return sum
}

// Not sees what the policy does not see, and shows all of it. It concerns sight
// alone: effects go by the rule.
func Not(p Policy) Policy { return not{p: p} }

type not struct {
	open
	p Policy
}

func (n not) Sees(eye *Eye, id string) bool  { return !n.p.Sees(eye, id) }
func (n not) Covers(eye *Eye, at Point) bool { return !covers(n.p, eye, at) }
func (n not) Reach() Reach {
	r := Reach{Everything: true, Fixed: true}
	r.mind(n.p.Reach())
	r.Kinds = nil
	return r
}

func covers(p Policy, eye *Eye, at Point) bool {
	v, ok := p.(Viewer)
	return !ok || v.Covers(eye, at)
}

func hears(p Policy, eye *Eye, e Effect) Verdict {
	l, ok := p.(Listener)
	if !ok {
		return ByRule
	}
	return l.Hears(eye, e)
}

// Distance is the policy of an agent that sees what is at most limit away,
// and, if unplaced says so, also what has no position at all.
func Distance(limit float64, unplaced bool) Policy { return distancePolicy{limit, unplaced} }

type distancePolicy struct {
	limit    float64
	unplaced bool
}

func (p distancePolicy) Sees(eye *Eye, id string) bool {
	d, ok := eye.Distance(id)
	if !ok {
		return p.unplaced
	}
	return d <= p.limit
}
func (distancePolicy) Shows(*Eye, string, string) bool  { return true }
func (p distancePolicy) Covers(eye *Eye, at Point) bool { return eye.At.Distance(at) <= p.limit }
func (p distancePolicy) Reach() Reach {
	// A limit of 0 still reaches what is at the same place.
	return Reach{Radius: max(p.limit, math.SmallestNonzeroFloat64), Unplaced: p.unplaced}
}

// Sight is the policy of an agent that sees what lies in a cone before it. It
// looks in the direction of its entity's field facing, [x, y] or [x, y, z];
// without one it looks along [1, 0, 0]. The angle is that of the whole cone, in degrees.
func Sight(angle, reach float64) Policy { return sightPolicy{angle, reach} }

type sightPolicy struct{ angle, reach float64 }

func (p sightPolicy) cone(eye *Eye) Cone {
	facing := Point{X: 1}
	if self, ok := eye.Entity(eye.Agent); ok {
		v, _ := self.Get("facing")
		if f, err := ParsePoint(v); err == nil && f != (Point{}) {
			facing = f
		}
	}
	return Cone{At: eye.At, Facing: facing, Angle: p.angle, Range: p.reach}
}

func (p sightPolicy) Sees(eye *Eye, id string) bool {
	at, ok := eye.Position(id)
	return ok && p.cone(eye).Holds(at)
}
func (sightPolicy) Shows(*Eye, string, string) bool  { return true }
func (p sightPolicy) Covers(eye *Eye, at Point) bool { return p.cone(eye).Holds(at) }
func (p sightPolicy) Reach() Reach {
	return Reach{Radius: max(p.reach, math.SmallestNonzeroFloat64), Fields: []string{"facing"}}
}

// Allies is the policy of an agent that sees its team, wherever it is. If
// fields are given, those are what it sees of them: Any(Distance(10, false),
// Allies("name", "position")) sees all of what is near and those two of the
// allies that are far.
func Allies(fields ...string) Policy { return allyPolicy{slices.Clone(fields)} }

type allyPolicy struct{ fields []string }

func (allyPolicy) Sees(eye *Eye, id string) bool { return eye.IsAlly(id) }
func (p allyPolicy) Shows(_ *Eye, _, field string) bool {
	return len(p.fields) == 0 || slices.Contains(p.fields, field)
}
func (allyPolicy) Covers(*Eye, Point) bool { return false }
func (allyPolicy) Reach() Reach            { return Reach{Team: true, Fixed: true, Fields: []string{"team"}} }

// Of says whose fields a [FieldRule] is about.
type Of uint8

// Whose.
const (
	OfAll    Of = iota
	OfOthers    // every entity but the agent's own
	OfAllies    // the agent's team, itself excepted
	OfRivals    // every entity that is not of the agent's team
)

// FieldRule hides fields.
type FieldRule struct {
	// Fields maps names to whether they are shown. A name that is not in it is shown.
	Fields map[string]bool
	// Types are the values of an entity's field type that it is about; empty means all.
	Types []string
	Of    Of
}

// Fields is the policy that sees everything and hides the fields that one of
// the rules hides.
func Fields(rules ...FieldRule) Policy { return fieldPolicy{rules: slices.Clone(rules)} }

type fieldPolicy struct {
	open
	rules []FieldRule
}

func (p fieldPolicy) Shows(eye *Eye, id, field string) bool {
	for _, r := range p.rules {
		shown, named := r.Fields[field]
		if named && !shown && r.concerns(eye, id) {
			return false
		}
	}
	return true
}

func (r FieldRule) concerns(eye *Eye, id string) bool {
	switch r.Of {
	case OfOthers:
		if id == eye.Agent {
			return false
		}
	case OfAllies:
		if id == eye.Agent || !eye.IsAlly(id) {
			return false
		}
	case OfRivals:
		if eye.IsAlly(id) {
			return false
		}
	case OfAll:
	}
	if len(r.Types) == 0 {
		return true
	}
	return slices.Contains(r.Types, typeOf(eye.Reader, id))
}

func (p fieldPolicy) Reach() Reach {
	r := Reach{Everything: true, Fixed: true}
	for _, rule := range p.rules {
		if rule.Of == OfAllies || rule.Of == OfRivals {
			r.Mixed, r.Fields = true, []string{"team"}
		}
	}
	return r
}

func typeOf(w Reader, id string) string {
	o, _ := w.Entity(id)
	s, _ := textMember(o, "type")
	return s
}

// Channels is the policy that sees everything, but of messages only those of
// the given channels; an effect of any kind is one if it is said to a team or in
// private. Whatever the policy, a private message is for its source
// and its target alone, and a team's message for the team.
func Channels(channels ...string) Policy { return channelPolicy{channels: slices.Clone(channels)} }

type channelPolicy struct {
	open
	channels []string
}

func (p channelPolicy) Shows(_ *Eye, _, field string) bool {
	switch field {
	case "last_message", "last_speak_time", "message_count", "last_emit_time", "emit_count":
		return slices.Contains(p.channels, ChannelPublic)
	case fieldPrivate:
		return slices.Contains(p.channels, ChannelPrivate)
	case fieldTeam:
		return slices.Contains(p.channels, ChannelTeam)
	default:
		return true
	}
}

func (p channelPolicy) Hears(_ *Eye, e Effect) Verdict {
	channel, err := channelOf(e)
	if !isMessage(e.Kind) && (err != nil || channel == ChannelPublic) {
		return ByRule
	}
	if err != nil || !slices.Contains(p.channels, channel) {
		return Unheard
	}
	return ByRule
}

// confidential reports whether an effect is something said that the agent is
// not meant to know of, and whether it is meant for it. Of whatever kind it is, its
// channel says so.
func confidential(eye *Eye, e Effect) (hidden, addressed bool) {
	switch channel, _ := channelOf(e); channel {
	case ChannelPrivate:
		target, _ := textMember(e.Payload, "target_id")
		return target != eye.Agent, target == eye.Agent
	case ChannelTeam:
		return eye.Team == "" || eye.Reader.Team(e.SourceID) != eye.Team, false
	default:
		return false, false
	}
}

// discloses reports whether a field that keeps a message may be known to the
// agent. It stands above every policy.
func discloses(eye *Eye, id, field string, v signal.Value) bool {
	switch field {
	case fieldPrivate:
		return id == eye.Agent
	case fieldTeam:
		return id == eye.Agent || eye.Team != "" && teamOf(v) == eye.Team
	default:
		return true
	}
}
