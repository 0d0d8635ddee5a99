package stage

import (
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// channel is a value of an entity that one act at a time can move. The numbers
// are part of the state format.
type channel uint8

const (
	chX channel = iota
	chY
	chOpacity
	chTint // its strength
	chScale
	chRotation
	chText // how much of it is typed
)

const (
	numbers  = int(chText) // channels before it are numbers
	channels = int(chText) + 1
)

// mask is a set of channels.
type mask uint8

const (
	position mask = 1<<chX | 1<<chY
	all      mask = 1<<channels - 1
)

func (ch channel) mask() mask { return 1 << ch }

func (m mask) has(ch channel) bool { return m&ch.mask() != 0 }

// channelNames is the members of a view that the channels move.
var channelNames = [channels]string{"x", "y", "opacity", "tint", "scale", "rotation", "text"}

// String names the channels of one claim: all of them are one channel, or the
// two of the position.
func (m mask) String() string {
	if m == position {
		return "position"
	}
	for ch := range channel(channels) {
		if m.has(ch) {
			return channelNames[ch]
		}
	}
	return ""
}

// limits of the numbers of a stage: whatever comes in or is computed is
// brought within them, so that no number is ever infinite or none at all.
const (
	farthest = 1e9
	largest  = 1000 // scale
	steepest = 1000 // how far a curve may go beyond its ends
)

// bound brings a value of ch within its limits.
func (ch channel) bound(v float64) float64 {
	low, high := -float64(farthest), float64(farthest)
	switch ch {
	case chOpacity, chTint:
		low, high = 0, 1
	case chScale:
		low, high = 0, largest
	default:
	}
	if !(v > low) { // nor is what is no number
		return low
	}
	// Adding 0 makes one zero of the two.
	return math.Min(v, high) + 0
}

// run names a performance.
type run struct {
	seq   uint64
	index uint32
}

// act is one action under way: what of it still moves something.
type act struct {
	key      choreography.ActKey
	start    time.Duration
	duration time.Duration
	curve    choreography.Curve

	first, last *claim // in the order they were made; never none

	prev, next               *act // of all, as they began
	previousOfRun, nextOfRun *act
	number                   int // while a state is written
}

func (a *act) run() run { return run{a.key.Seq, a.key.Index} }

// end is the instant at which a completes, if nothing interrupts it.
func (a *act) end() time.Duration { return later(a.start, a.duration) }

// progress is the eased share of a that has passed. The arc is a height above
// a way and no place on it: what it eases goes on evenly.
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

// share is elapsed in parts of whole, in [0, 1].
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

// later adds without going round.
func later(at, d time.Duration) time.Duration {
	if d > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + d
}

// kind says how a claim moves its channels. The numbers are part of the state
// format.
type kind uint8

const (
	asLine   kind = iota // one number, straight
	asWay                // the position, straight, with a height
	asRoute              // the position, along points
	asPulse              // the scale, there and back
	asTyping             // the text
	asCustom             // one number, as an [Action] says
	asBeam               // no channel at all
	kinds
)

// claim is the hold of one act on a channel of one entity, or on both of its
// position. Whoever takes a channel over takes it out of the mask; a claim
// without any is gone.
type claim struct {
	act       *act
	entity    *entity
	mask      mask
	kind      kind
	contested time.Duration // until when the act from which it took over would have run

	from, to scene.Point // of a single number X; of a pulse scale and amount
	height   float64     // of a way
	text     string      // of tint the color, of text the whole
	runes    int         // in text
	arrival  string      // state on arrival, "" for none
	points   []scene.Point
	lengths  []float64 // of the way up to each point
	beam     *beam
	action   *Action
	track    Track

	prev, next *claim
}

// value returns what c makes of a channel of numbers.
func (c *claim) value(ch channel, at time.Duration) float64 {
	switch c.kind {
	case asWay, asRoute:
		p := c.point(at)
		if ch == chX {
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

// point returns where on its way c is.
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

// lift returns how high above its way c is, as far as p.
func (c *claim) lift(p float64) float64 { return float64(c.height * float64(float64(4*p)*(1-p))) }

// typed returns how many characters are typed.
func (c *claim) typed(at time.Duration) int {
	n := math.Floor(float64(c.act.progress(at) * float64(c.runes)))
	return int(math.Max(0, math.Min(n, float64(c.runes))))
}

// end returns what ch is once c has completed: exactly where it was to go.
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
	if ch == chY && c.kind != asLine {
		return target.Y
	}
	return target.X
}

// settle gives the entity's channels what they are at an instant, or at the
// end, and takes them off c.
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

func between(from, to, p float64) float64 { return from + float64((to-from)*p) }

// along returns the point at a share of a way, whose ends are not left.
func along(points []scene.Point, lengths []float64, p float64) scene.Point {
	last := len(points) - 1
	gone := float64(p * lengths[last])
	if !(gone > 0) {
		return points[0]
	}
	for i := 1; i <= last; i++ {
		if step := lengths[i] - lengths[i-1]; gone < lengths[i] && step > 0 {
			q := (gone - lengths[i-1]) / step
			return scene.Point{X: between(points[i-1].X, points[i].X, q), Y: between(points[i-1].Y, points[i].Y, q)}
		}
	}
	return points[last]
}

// lengthsOf returns the length of the way up to each point.
func lengthsOf(points []scene.Point) []float64 {
	lengths := make([]float64, len(points))
	for i := 1; i < len(points); i++ {
		lengths[i] = lengths[i-1] + distance(points[i-1], points[i])
	}
	return lengths
}

// distance is no math.Hypot, which rounds otherwise on other machines.
func distance(a, b scene.Point) float64 {
	dx, dy := b.X-a.X, b.Y-a.Y
	return math.Sqrt(float64(dx*dx) + float64(dy*dy))
}
