// Package projection folds a session's entries into states. Every fact about a
// moment is part of such a state, and every state can be deleted and folded again.
//
// A [Projection] is a named, versioned, pure function over entries; its
// [State] is its result so far. A [Set] of projections advances together as one
// [Fold], which stands at one Head and one session time. An [Image] is a stored
// Fold: the bytes of its states and the position at which they were taken.
//
// # The fold
//
// An entry is applied in two steps, to each state in the Set's order:
// State.Advance(entry.At), then State.Apply(entry). So every event that is due up to
// and including the entry's time happens before the entry. Time never runs back:
// [Fold.Advance] to an earlier time changes nothing, and
// [Fold.Apply] refuses an entry that is earlier than the Fold.
//
// Right after Apply the entry's instant is still open: events that the entry itself
// made due at its own time have not happened. f.Advance(f.At()) completes it.
// That never changes later states, since the next entry begins with an Advance in
// any case. Before two folds are compared, or one is shown, their instants must be
// complete, as the replay package does. An image may be taken before or after;
// replay uses those whose time is the entry's own.
//
// # States that depend on each other
//
// A state may be notified by another one while that advances: a projection's Join
// receives the states of the projections before it in the Set and connects its own
// state to them, after New, after Restore and so for each clone. A notification
// arrives between the state's own last Advance and the next, because the earlier
// state advances, and applies, first. The connection is not part of either state's
// bytes: it is made again each time, so a notification must be a function of the
// entries and the time.
//
// # Invariants
//
//   - States are functions of the entries alone. They have no clock, no
//     randomness, no goroutines, no input or output, and nothing in them
//     depends on the order of a map.
//   - The canonical bytes of a state do not depend on the steps in which Advance
//     reaches a time.
//   - The digest of a state, xxhash64 of its canonical bytes, is the same live,
//     folded from the first entry, folded from any image, and on any machine.
//   - A projection whose bytes or rules change gets a new version, so images of the
//     old version no longer match.
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
// another number there is [ErrVersion], any other defect is
// [ErrCorrupt]. The decoder compares every length with the bytes that are present
// before it uses it, and allocates only the list of parts.
//
// # Limits
//
// An image carries no checksum and proves nothing about the log. A store of images
// adds the checksum, and a reader compares the Head with the log (see the snapshot
// package). A Fold is not safe for concurrent use.
//
// docs/glossary.md has the nouns of all packages.
package projection

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// State is the result of one projection over the entries so far.
type State interface {
	// Apply processes one entry. It is total: a state ignores entries that it
	// cannot read. The [Fold] has already advanced the state to e.At. The slices
	// of the entry are immutable and may be kept, e itself may not.
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

// Placed is an optional interface of a [State] that holds positions in the log or
// session times. After Restore it checks the state against the image's position.
type Placed interface {
	// Fits returns an error if the state cannot be the one right after the entry of
	// that head, at session time at.
	Fits(head eventlog.Head, at time.Duration) error
}

// Projection is a named, versioned fold.
type Projection struct {
	// Name names the projection in views, digests and images: 1 to 255 bytes of
	// UTF-8, neither "seq" nor "at".
	Name string

	// Version grows when the rules or the canonical bytes change.
	Version uint32

	// New returns the state before the first entry.
	New func() State

	// Restore makes a state from canonical bytes. They are untrusted; the state may
	// keep but not change them.
	Restore func(data []byte) (State, error)

	// Apart keeps the images of the projection apart from those of the others of its
	// [Set], under its own name and version, so that its absence, or another version of
	// it, leaves the others' in use. It has no Join. See [Contain].
	Apart bool

	// Join, unless nil, connects a state that New or Restore has made to the states
	// of the projections before it in the [Set], all made and joined already, so
	// that an earlier state can notify it while advancing. The fold calls it once for
	// each state, in the set's order. before returns the state of the earlier
	// projection with that name, or nil if there is none, and is valid only during
	// the call. Notifications must be functions of the entries and the time, as
	// states are.
	Join func(s State, before func(name string) State)
}

// Set is the projections that advance together, in a fixed order.
type Set []Projection

// MaxProjections bounds a [Set].
const MaxProjections = 255

// maxName bounds a projection's name, in bytes.
const maxName = 255

// Check returns an error if s is unusable: too many projections, a bad or repeated
// name, a missing function.
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
		if p.Apart && p.Join != nil {
			return fmt.Errorf("projection: %q is apart and has a Join", p.Name)
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
	// ErrOrder is wrapped by the errors of [Fold.Apply]: the entry is not the next
	// one, or it is earlier than the fold.
	ErrOrder = errors.New("entry out of order")

	// ErrCorrupt says that bytes are not an image.
	ErrCorrupt = errors.New("corrupt image")

	// ErrVersion says that an image has a layout this program does not know.
	ErrVersion = errors.New("image of an unknown version")

	// ErrMismatch says that an image is of other projections, or of other
	// versions of them, than the set it is restored for.
	ErrMismatch = errors.New("image of another set of projections")
)
