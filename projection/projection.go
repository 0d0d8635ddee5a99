// Package projection folds a session's entries into states: everything that is
// true at a moment is such a state, and every state can be thrown away and
// folded again.
//
// A [Projection] is a named, versioned, pure function over entries; its
// [State] is what it has made of them so far. A [Set] of projections advances
// together as one [Fold], which stands at one Head and one session time. A
// [Image] is a Fold written down: the bytes of its states and the place where
// they were taken.
//
// # The fold
//
// An entry is applied in two steps, to each state in the Set's order:
// State.Advance(entry.At), then State.Apply(entry). So whatever is due up to
// and including the entry's time happens before the entry does. Time never
// runs back: [Fold.Advance] to an earlier time changes nothing, and
// [Fold.Apply] refuses an entry that is earlier than the Fold.
//
// Right after Apply the entry's instant is still open: what the entry itself
// made due at its own time has not happened. f.Advance(f.At()) completes it.
// That never changes what comes later, since the next entry begins with an
// Advance in any case; but whoever compares two folds, or shows one, completes
// the instant of both, as the replay package does. Images are taken before, or
// after, as one likes; replay uses those whose time is the entry's own.
//
// # States that hear of each other
//
// A state may follow what another one does while that advances: a projection's
// Join is given the states of those before it in the Set, and ties its own to
// them, after New, after Restore and so for each clone. What it is told lies
// between the state's own last Advance and the next, since the one before it
// advances, and applies, first. The tie is no part of either state's bytes: it
// is made anew each time, and so whatever is told through it must be a function
// of the entries and the time.
//
// # Invariants
//
//   - States are functions of the entries alone. They have no clock, no
//     randomness, no goroutines, no input or output, and nothing in them
//     depends on the order of a map.
//   - How time is cut between two entries makes no difference to a state's
//     canonical bytes once the same time is reached.
//   - The digest of a state, xxhash64 of its canonical bytes, is the same live,
//     folded from the first entry, folded from any image, and on any machine.
//   - A projection whose bytes or rules change gets a new version, so images
//     of the old one are no longer taken for its own.
//
// # Format of an image
//
// Integers are big-endian and unsigned; [AppendImage] writes it and
// [DecodeImage] reads it.
//
//	| 1 (1B) | seq (8B) | hash (32B) | at (8B, ns) | parts (1B) | part … |
//
// and each part, in the Set's order, with names that differ from each other:
//
//	| name length (1B, not 0) | name (UTF-8) | version (4B) | data length (4B) | data |
//
// Nothing follows the last part. The first byte is the version of this layout;
// another number there is [ErrVersion], anything else that is wrong is
// [ErrCorrupt]. A length is compared with the bytes that are there before it
// is believed, and the decoder allocates only the list of parts.
//
// # Limits
//
// An image carries no checksum and proves nothing about the log: whoever keeps
// images adds the one and compares the Head for the other (see the snapshot
// package). A Fold is not safe for concurrent use.
package projection

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// State is what one projection has made of the entries so far.
type State interface {
	// Apply takes in one entry. It is total: what a state cannot read it
	// ignores. The [Fold] has already advanced the state to e.At. The entry is
	// only lent: its slices are immutable and may be kept, e itself may not.
	Apply(e *eventlog.Entry)

	// Advance moves session time on without an entry, up to and including at.
	// It is never called with an earlier time than before.
	Advance(at time.Duration)

	// Append appends the state's canonical bytes: equal states give equal
	// bytes, and the projection's Restore makes an equal state of them.
	Append(dst []byte) []byte

	// View returns the state for people, diffs and expressions, made of
	// map[string]any, []any, string, bool, int64, float64 and nil. The caller
	// must not change it, and it must not change when the state does.
	View() any
}

// Projection is a named, versioned fold.
type Projection struct {
	// Name is its word in views, digests and images: 1 to 255 bytes of UTF-8,
	// neither "seq" nor "at".
	Name string

	// Version grows when the rules or the canonical bytes change.
	Version uint32

	// New returns the state before the first entry.
	New func() State

	// Restore makes a state of canonical bytes, which are untrusted and may be
	// kept but not changed.
	Restore func(data []byte) (State, error)

	// Join, unless nil, ties a state that New or Restore has made to the states
	// of the projections before it in the [Set], all made and joined already: a
	// state may so be told things by another one while that advances. It is
	// called once for each state, in the set's order. Before returns the state
	// of the projection with that name, nil if none before it has it, and is
	// good during the call only. What is told must be a function of the entries
	// and the time, as states are.
	Join func(s State, before func(name string) State)
}

// Set is the projections that advance together, in a fixed order.
type Set []Projection

// MaxProjections bounds a [Set].
const MaxProjections = 255

// maxName bounds a projection's name, in bytes.
const maxName = 255

// Check reports what makes s unusable: too many projections, a bad or a
// repeated name, a missing function.
func (s Set) Check() error {
	if len(s) > MaxProjections {
		return fmt.Errorf("projection: %d projections in a set, more than %d", len(s), MaxProjections)
	}
	for i, p := range s {
		if err := checkName(p.Name); err != nil {
			return err
		}
		if p.Name == "seq" || p.Name == "at" {
			return fmt.Errorf("projection: the name %q is taken by every view", p.Name)
		}
		if s[:i].find(p.Name) >= 0 {
			return fmt.Errorf("projection: two projections are named %q", p.Name)
		}
		if p.New == nil || p.Restore == nil {
			return fmt.Errorf("projection: %q lacks New or Restore", p.Name)
		}
	}
	return nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("projection: bad name %q: want 1 to %d bytes of UTF-8", name, maxName)
	}
	return nil
}

// find returns the index of the projection with that name, or -1.
func (s Set) find(name string) int {
	for i := range s {
		if s[i].Name == name {
			return i
		}
	}
	return -1
}

var (
	// ErrOrder is the class of [Fold.Apply]'s refusals: the entry is not the
	// next one, or it is earlier than the fold.
	ErrOrder = errors.New("entry out of order")

	// ErrCorrupt says that bytes are no image.
	ErrCorrupt = errors.New("corrupt image")

	// ErrVersion says that an image has a layout this program does not know.
	ErrVersion = errors.New("image of an unknown version")

	// ErrMismatch says that an image is of other projections, or of other
	// versions of them, than the set it is restored for.
	ErrMismatch = errors.New("image of another set of projections")
)
