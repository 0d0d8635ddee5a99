package projection

import (
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Core returns the projections of s whose images are kept together.
func (s Set) Core() Set { return s.part(false) }

// Apart returns the projections of s whose images are kept apart.
func (s Set) Apart() Set { return s.part(true) }

func (s Set) part(apart bool) Set {
	return slices.DeleteFunc(slices.Clone(s), func(p Projection) bool { return p.Apart != apart })
}

// Split returns the images that are kept of an image of set: that of the core, and one
// for each projection apart. A [Contained] state that has failed has none.
func (img *Image) Split(set Set) []Image {
	core := Image{Head: img.Head, At: img.At}
	var apart []Image
	for i, p := range set {
		switch part := img.Parts[i]; {
		case !p.Apart:
			core.Parts = append(core.Parts, part)
		case len(part.Data) > 0 && part.Data[0] == containedSound:
			apart = append(apart, Image{img.Head, img.At, []Part{part}})
		}
	}
	return append([]Image{core}, apart...)
}

// Merge returns the fold of set whose states are those of folds, which stand at one
// Head and time and must not be used afterwards. It panics if a state is missing.
func Merge(set Set, folds ...*Fold) *Fold {
	f := &Fold{set: set, states: make([]State, len(set)), head: folds[0].head, at: folds[0].at}
	for i, p := range set {
		for _, from := range folds {
			if st := from.State(p.Name); st != nil {
				f.states[i] = st
			}
		}
		if f.states[i] == nil {
			panic(fmt.Sprintf("projection: merge: no state of %q", p.Name))
		}
	}
	return f
}

// Contain returns the projection p of another program, apart, so that nothing that it
// does ends the process or disturbs the states of others: its states are [Contained].
func Contain(p Projection) Projection {
	c := p
	c.Apart = true
	c.New = func() State {
		s := &Contained{}
		s.call(0, "New", func() { s.state = p.New() })
		return s
	}
	c.Restore = func(data []byte) (State, error) {
		s := &Contained{}
		switch {
		case len(data) > 0 && data[0] == containedFailed:
			s.err = fmt.Errorf("%s", data[1:]) // only a clone of a failed state has these bytes
			return s, nil
		case len(data) == 0 || data[0] != containedSound:
			return nil, fmt.Errorf("%w: no contained state", ErrCorrupt)
		}
		var err error
		s.call(0, "Restore", func() { s.state, err = p.Restore(data[1:]) })
		if s.err != nil {
			return nil, s.err
		}
		return s, err
	}
	return c
}

// The first byte of the canonical bytes of a [Contained] state.
const (
	containedSound  = 0 // the state's own bytes follow
	containedFailed = 1 // the text of its failure follows
)

// Contained is the state of a projection of another program. When one of its functions
// panics, the state has failed: it is dropped, takes in nothing more, and gives the
// failure.
type Contained struct {
	state State // nil once it has failed
	err   error // why it has failed
}

// State returns the state, or the failure.
func (c *Contained) State() (State, error) { return c.state, c.err }

// call runs f, a function of the state.
func (c *Contained) call(seq eventlog.Seq, name string, f func()) {
	if c.err != nil {
		return
	}
	returned := false
	defer func() {
		if !returned { // also after runtime.Goexit, of which there is nothing to recover
			c.state, c.err = nil, fmt.Errorf("%s panicked at entry %d: %v", name, seq, recover())
		}
	}()
	f()
	if c.state == nil {
		panic("the state is nil")
	}
	returned = true
}

// Apply implements [State].
func (c *Contained) Apply(e *eventlog.Entry) { c.call(e.Seq, "Apply", func() { c.state.Apply(e) }) }

// Advance implements [State].
func (c *Contained) Advance(at time.Duration) { c.call(0, "Advance", func() { c.state.Advance(at) }) }

// Append implements [State].
func (c *Contained) Append(dst []byte) []byte {
	n := len(dst)
	c.call(0, "Append", func() { dst = c.state.Append(append(dst, containedSound)) })
	if c.err != nil {
		return append(append(dst[:n], containedFailed), c.err.Error()...)
	}
	return dst
}

// View implements [State]: the state's own view, or the failure as member "error".
func (c *Contained) View() (v any) {
	c.call(0, "View", func() { v = c.state.View() })
	if c.err != nil {
		return map[string]any{"error": c.err.Error()}
	}
	return v
}

// Failed returns the projections of f that have failed, by name, in the set's order.
func (f *Fold) Failed() (names []string, errs []error) {
	for i, st := range f.states {
		if c, ok := st.(*Contained); ok && c.err != nil {
			names, errs = append(names, f.set[i].Name), append(errs, c.err)
		}
	}
	return names, errs
}
