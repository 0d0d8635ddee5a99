package projection

import (
	"fmt"
	"iter"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Fold is the states of a [Set] at one Head and one session time. It is not
// safe for concurrent use.
type Fold struct {
	set    Set // immutable
	states []State
	head   eventlog.Head
	at     time.Duration
	entry  eventlog.Entry // while it is applied
	buf    []byte         // canonical bytes while a digest is made
}

// NewFold returns the states before the first entry of the session with that genesis
// hash. It panics if the set does not pass [Set.Check], because a set is part of the
// program.
func NewFold(set Set, genesis eventlog.Hash) *Fold {
	if err := set.Check(); err != nil {
		panic(err.Error())
	}
	f := &Fold{set: set, states: make([]State, len(set)), head: eventlog.Head{Hash: genesis}}
	for i, p := range set {
		f.states[i] = p.New()
	}
	f.join()
	return f
}

// join calls the Join functions of the states, in the set's order.
func (f *Fold) join() {
	for i, p := range f.set {
		if p.Join == nil {
			continue
		}
		p.Join(f.states[i], func(name string) State {
			if j := f.set[:i].find(name); j >= 0 {
				return f.states[j]
			}
			return nil
		})
	}
}

// RestoreFold returns the Fold that img was taken of. The error is [ErrMismatch] if
// img is not of this set, [ErrCorrupt] if its time is negative or a state belongs to
// another position, or the error of a projection's Restore. The states may keep the
// image's data.
func RestoreFold(set Set, img Image) (*Fold, error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	if !img.Of(set) {
		return nil, fmt.Errorf("projection: restore at seq %d: %w", img.Head.Seq, ErrMismatch)
	}
	if img.At < 0 {
		return nil, fmt.Errorf("projection: restore at seq %d: %w: negative time %v", img.Head.Seq, ErrCorrupt, img.At)
	}
	f := &Fold{set: set, states: make([]State, len(set)), head: img.Head, at: img.At}
	for i, p := range set {
		st, err := p.Restore(img.Parts[i].Data)
		if err != nil {
			return nil, fmt.Errorf("projection: restore %s at seq %d: %w", p.Name, img.Head.Seq, err)
		}
		if placed, ok := st.(Placed); ok {
			if err := placed.Fits(img.Head, img.At); err != nil {
				return nil, fmt.Errorf("projection: restore %s at seq %d: %w: %w", p.Name, img.Head.Seq, ErrCorrupt, err)
			}
		}
		f.states[i] = st
	}
	f.join()
	return f, nil
}

// Apply advances every state to e.At and applies e to it. It refuses, with
// [ErrOrder] and without a change, an entry whose Seq is not the next one or
// whose At is before [Fold.At]. It trusts e's Hash, which the log verifies.
func (f *Fold) Apply(e *eventlog.Entry) error {
	if e.Seq != f.head.Seq+1 {
		return fmt.Errorf("projection: apply entry %d at seq %d: %w", e.Seq, f.head.Seq, ErrOrder)
	}
	if e.At < f.at {
		return fmt.Errorf("projection: apply entry %d of %v at %v: %w", e.Seq, e.At, f.at, ErrOrder)
	}
	// The states get a copy, so that the caller's entry does not escape to the heap,
	// which would cost an allocation for each entry of every pass.
	f.entry = *e
	for _, st := range f.states {
		// Advance even if the time is the same: events that the previous entry made
		// due at this instant come before this entry.
		st.Advance(e.At)
		st.Apply(&f.entry)
	}
	f.head, f.at = e.Head(), e.At
	return nil
}

// Advance moves session time on to at without an entry. An at that is already
// past changes nothing.
func (f *Fold) Advance(at time.Duration) {
	if at < f.at {
		return
	}
	for _, st := range f.states {
		st.Advance(at)
	}
	f.at = at
}

// Head returns the Head of the last entry applied: Seq 0 and the genesis hash before
// the first.
func (f *Fold) Head() eventlog.Head { return f.head }

// At returns the session time the fold has reached.
func (f *Fold) At() time.Duration { return f.at }

// Set returns the projections of f. The caller must not change it.
func (f *Fold) Set() Set { return f.set }

// State returns the state of the projection with that name, or nil. It belongs
// to the fold and changes with it.
func (f *Fold) State(name string) State {
	if i := f.set.find(name); i >= 0 {
		return f.states[i]
	}
	return nil
}

// States returns name and state of each projection, in the set's order.
func (f *Fold) States() iter.Seq2[string, State] {
	return func(yield func(string, State) bool) {
		for i, st := range f.states {
			if !yield(f.set[i].Name, st) {
				return
			}
		}
	}
}

// View returns the whole fold for people, diffs and expressions: "seq" (int64),
// "at" (float64, milliseconds of session time) and one member for each
// projection. The caller owns the map, but not the values in it.
func (f *Fold) View() map[string]any {
	v := make(map[string]any, len(f.states)+2)
	v["seq"] = int64(f.head.Seq)
	v["at"] = Millis(f.at)
	for i, st := range f.states {
		v[f.set[i].Name] = st.View()
	}
	return v
}

// Millis returns d in milliseconds, as views, commands and exports write times.
func Millis(d time.Duration) float64 { return float64(d) / 1e6 }

// Digest is the fingerprint of one projection's state.
type Digest struct {
	Name    string
	Version uint32
	Sum     uint64 // xxhash64 of the state's canonical bytes
}

// String returns the digest as "NAME/VERSION SUM", the sum as 16 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%s/%d %016x", d.Name, d.Version, d.Sum) }

// Digest returns xxhash64 of the canonical bytes of the projection with that
// name, and 0 when there is none.
func (f *Fold) Digest(name string) uint64 {
	if i := f.set.find(name); i >= 0 {
		return f.digest(i)
	}
	return 0
}

func (f *Fold) digest(i int) uint64 {
	f.buf = f.states[i].Append(f.buf[:0])
	return xxhash.Sum64(f.buf)
}

// Digests returns the digest of every projection, in the set's order.
func (f *Fold) Digests() []Digest {
	ds := make([]Digest, len(f.set))
	for i, p := range f.set {
		ds[i] = Digest{p.Name, p.Version, f.digest(i)}
	}
	return ds
}

// Image returns the fold as an image, which shares no memory with the fold.
func (f *Fold) Image() Image {
	img := Image{Head: f.head, At: f.at, Parts: make([]Part, len(f.set))}
	for i, p := range f.set {
		img.Parts[i] = Part{p.Name, p.Version, f.states[i].Append(nil)}
	}
	return img
}

// Clone returns a Fold equal to f that shares no mutable memory with it. The error is
// that of a projection's Restore for bytes that its own Append has written.
func (f *Fold) Clone() (*Fold, error) { return RestoreFold(f.set, f.Image()) }
