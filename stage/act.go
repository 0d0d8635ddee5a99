package stage

import (
	"math"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// performanceKey identifies a performance.
type performanceKey struct {
	seq   uint64
	index uint32
}

// act is one action under way, as far as it still moves something. It has at least one
// claim, except while it is the current act.
type act struct {
	key      choreography.ActKey
	start    time.Duration
	duration time.Duration
	curve    curve.Curve

	first, last *claim // in the order in which they were made

	prev, next                               *act // among all acts, in the order in which they began
	previousOfPerformance, nextOfPerformance *act
	number                                   int // while a state is written
}

func (a *act) performance() performanceKey { return performanceKey{a.key.Seq, a.key.Index} }

// end is the instant at which a completes unless it is interrupted.
func (a *act) end() time.Duration { return later(a.start, a.duration) }

// progress is the eased progress of a. The arc is a height and not a position, so it
// counts as linear here.
func (a *act) progress(at time.Duration) float64 {
	raw := share(at-a.start, a.duration)
	if a.curve.IsArc() {
		return raw
	}
	p := a.curve.At(raw)
	if p != p {
		return raw
	}
	return math.Max(-steepest, math.Min(p, steepest))
}

// share returns elapsed as a share of whole, clamped to [0, 1].
func share(elapsed, whole time.Duration) float64 {
	switch {
	case elapsed >= whole:
		return 1
	case elapsed <= 0:
		return 0
	default:
		return float64(elapsed) / float64(whole)
	}
}

// later adds durations and saturates instead of overflowing.
func later(at, d time.Duration) time.Duration {
	if d > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + d
}

func between(from, to, p float64) float64 { return from + float64((to-from)*p) }

// kind is how a claim moves its channels. The numbers are part of the state format.
type kind uint8

const (
	asLine   kind = iota // one number, straight
	asWay                // the position, straight, with a height
	asRoute              // the position, along points
	asPulse              // the scale, which grows and comes back
	asTyping             // the text
	asCustom             // one number, computed by an [Action]
	asBeam               // no channel: a beam that grows
	kinds
)

// claim is the ownership of one act over a channel of one entity, or over both
// channels of its position. A takeover removes the channel from the mask; a claim with
// an empty mask is removed from its act.
type claim struct {
	act       *act
	entity    *entity
	mask      mask
	kind      kind
	contested time.Duration // when the act from which it took over would have completed

	from, to scene.Point // a single number is in X; a pulse has its scale and its amount there
	height   float64     // of a way
	text     string      // the color of a tint; the whole text of typing
	runes    int         // in text
	arrival  string      // state on arrival, "" for none
	points   []scene.Point
	lengths  []float64 // of the path up to each point
	beam     *beam
	action   *Action
	track    Track

	prev, next *claim
}

// value returns the value of a numeric channel under c.
func (c *claim) value(ch channel, at time.Duration) float64 {
	switch c.kind {
	case asWay, asRoute:
		p := c.point(at)
		if ch == channelX {
			return p.X
		}
		return p.Y
	case asPulse:
		p := c.act.progress(at)
		swing := float64(float64(4*p) * (1 - p))
		return ch.bound(float64(c.from.X * (1 + float64((c.to.X-1)*swing))))
	case asCustom:
		return ch.bound(c.action.value(c.track, c.act.progress(at)))
	default:
		return ch.bound(between(c.from.X, c.to.X, c.act.progress(at)))
	}
}

// point returns the position under c.
func (c *claim) point(at time.Duration) scene.Point {
	p := c.act.progress(at)
	if c.kind == asRoute {
		return inside(along(c.points, c.lengths, p))
	}
	return inside(scene.Point{
		X: between(c.from.X, c.to.X, p),
		Y: between(c.from.Y, c.to.Y, p) - c.lift(p),
	})
}

// lift returns the height above the path at progress p.
func (c *claim) lift(p float64) float64 { return float64(c.height * float64(float64(4*p)*(1-p))) }

// typed returns the number of characters that are typed.
func (c *claim) typed(at time.Duration) int {
	n := math.Floor(float64(c.act.progress(at) * float64(c.runes)))
	return int(math.Max(0, math.Min(n, float64(c.runes))))
}

// end returns the value of ch once c has completed: exactly its target.
func (c *claim) end(ch channel) float64 {
	target := c.to
	switch c.kind {
	case asPulse:
		return c.from.X
	case asCustom:
		return ch.bound(c.action.value(c.track, 1))
	case asRoute:
		target = c.points[len(c.points)-1]
	default:
	}
	if ch == channelY && c.kind != asLine {
		return target.Y
	}
	return target.X
}

// settle stores the values of an instant, or the targets if done, in the entity and
// removes the channels from c.
func (c *claim) settle(m mask, at time.Duration, done bool) {
	e := c.entity
	for ch := range channel(channels) {
		if !m.has(ch) {
			continue
		}
		switch {
		case ch == chText && done:
			e.words = words{text: c.text}
		case ch == chText:
			e.words = words{text: prefix(c.text, c.typed(at))}
		case done:
			e.values[ch] = c.end(ch)
		default:
			e.values[ch] = c.value(ch, at)
		}
		if ch == chTint {
			e.color = c.text
		}
		e.owner[ch] = nil
	}
	c.mask &^= m
}

// take takes channels of e away from the acts that own them, each at its current
// value. It settles them before the new owner reads its start value, so that nothing
// jumps. Taking a channel from another performance is a conflict; take returns the
// instant at which the last such act would have completed.
func (s *Stage) take(e *entity, m mask) (contested time.Duration) {
	e.touched = true
	if m.has(chTint) {
		e.glow = glow{}
	}
	for ch := range channel(channels) {
		o := e.owner[ch]
		if o == nil || !m.has(ch) {
			continue
		}
		lost := o.mask & m
		o.settle(lost, s.now, false)
		if s.current.Act != nil && o.act.performance() != s.performance() {
			s.conflict(e, lost, o.act.performance())
			contested = max(contested, o.act.end())
		}
		if o.mask == 0 {
			s.dropClaim(o)
		}
	}
	return contested
}

// claimChannels makes the current act the owner of channels of e.
func (s *Stage) claimChannels(e *entity, m mask, k kind) *claim {
	contested := s.take(e, m)
	c := s.claim(e)
	c.mask, c.kind, c.contested = m, k, contested
	for ch := range channel(channels) {
		if m.has(ch) {
			e.owner[ch] = c
		}
	}
	return c
}

// claim makes a claim of the current act without a channel. The act is begun by its
// first claim: an act that moves nothing is not part of the state.
func (s *Stage) claim(e *entity) *claim {
	if s.current.act == nil {
		a := s.current.Act
		s.current.act = s.begin(a.Key, a.At, a.Duration, a.Curve)
	}
	return s.claimOf(s.current.act, e)
}

func (s *Stage) claimOf(a *act, e *entity) *claim {
	var c *claim
	if n := len(s.spareClaims); n > 0 {
		c, s.spareClaims = s.spareClaims[n-1], s.spareClaims[:n-1]
	} else {
		c = new(claim)
	}
	c.act, c.entity = a, e
	c.prev = a.last
	if a.last != nil {
		a.last.next = c
	} else {
		a.first = c
	}
	a.last = c
	return c
}

// begin adds an act as the newest.
func (s *Stage) begin(key choreography.ActKey, at, duration time.Duration, curve curve.Curve) *act {
	if old := s.acts[key]; old != nil {
		s.stop(old, at) // possible only after Restore of a state without its performances
	}
	var a *act
	if n := len(s.spareActs); n > 0 {
		a, s.spareActs = s.spareActs[n-1], s.spareActs[:n-1]
	} else {
		a = new(act)
	}
	a.key, a.start, a.duration, a.curve = key, at, duration, curve
	s.acts[key] = a
	a.prev = s.lastAct
	if s.lastAct != nil {
		s.lastAct.next = a
	} else {
		s.firstAct = a
	}
	s.lastAct = a
	if newest := s.newestActs[a.performance()]; newest != nil {
		newest.nextOfPerformance, a.previousOfPerformance = a, newest
	}
	s.newestActs[a.performance()] = a
	return a
}

// maxSpare bounds the acts and the claims that are kept for reuse.
const maxSpare = 64

// dropClaim removes a claim without channels from its act, and the act if that was
// its last claim.
func (s *Stage) dropClaim(c *claim) {
	a := c.act
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		a.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		a.last = c.prev
	}
	s.spareClaim(c)
	// The current act may make further claims.
	if a.first == nil && a != s.current.act {
		s.dropAct(a)
	}
}

func (s *Stage) spareClaim(c *claim) {
	*c = claim{}
	if len(s.spareClaims) < maxSpare {
		s.spareClaims = append(s.spareClaims, c)
	}
}

// dropAct removes an act and its claims, which own no channel any more.
func (s *Stage) dropAct(a *act) {
	for c := a.first; c != nil; {
		next := c.next
		s.spareClaim(c)
		c = next
	}
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		s.firstAct = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		s.lastAct = a.prev
	}
	if a.previousOfPerformance != nil {
		a.previousOfPerformance.nextOfPerformance = a.nextOfPerformance
	}
	switch {
	case a.nextOfPerformance != nil:
		a.nextOfPerformance.previousOfPerformance = a.previousOfPerformance
	case a.previousOfPerformance != nil:
		s.newestActs[a.performance()] = a.previousOfPerformance
	default:
		delete(s.newestActs, a.performance())
	}
	delete(s.acts, a.key)
	*a = act{}
	if len(s.spareActs) < maxSpare {
		s.spareActs = append(s.spareActs, a)
	}
}

// String returns the id of the performance, "" for the zero key.
func (r performanceKey) String() string {
	if r == (performanceKey{}) {
		return ""
	}
	return "p-" + strconv.FormatUint(r.seq, 10) + "-" + strconv.FormatUint(uint64(r.index), 10)
}
