package stage

import (
	"math"
)

// channel is a value of an entity that one act at a time can move. The numbers
// are part of the state format.
type channel uint8

const (
	channelX channel = iota
	channelY
	chOpacity
	chTint // its strength
	chScale
	chRotation
	chText // the text as far as it is typed
)

const (
	numbers  = int(chText) // the channels before chText are numbers
	channels = int(chText) + 1
)

// mask is a set of channels.
type mask uint8

const (
	position mask = 1<<channelX | 1<<channelY
	all      mask = 1<<channels - 1
)

func (ch channel) mask() mask { return 1 << ch }

func (m mask) has(ch channel) bool { return m&ch.mask() != 0 }

// channelNames are the members of a view that the channels move.
var channelNames = [channels]string{"x", "y", "opacity", "tint", "scale", "rotation", "text"}

// String names the channels of one claim, which are a single channel or the two of
// the position.
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

// Limits of the numbers of a stage. Every number that is read or computed is clamped
// to them, so that none is infinite or NaN.
const (
	farthest = 1e9
	largest  = 1000 // scale
	steepest = 1000 // a curve's overshoot, in multiples of its range
)

// bound clamps a value of ch to its limits.
func (ch channel) bound(v float64) float64 {
	low, high := -float64(farthest), float64(farthest)
	switch ch {
	case chOpacity, chTint:
		low, high = 0, 1
	case chScale:
		low, high = 0, largest
	default:
	}
	if !(v > low) { // NaN too
		return low
	}
	// Adding 0 turns -0 into 0: states are compared as bytes.
	return math.Min(v, high) + 0
}
