package choreography

import (
	"bytes"
	"iter"
	"slices"
)

// Registry keeps definitions in the order they came into force. A definition
// without id that is added twice is there twice. The zero value is empty and
// ready.
type Registry struct {
	all    []*Definition
	byType map[string][]int32 // slots in all, ascending
	byID   map[string]int32
}

// Add puts d after all others, or in the place of the one that has its id.
// To add what is in force already, word for word, changes nothing.
func (r *Registry) Add(d *Definition) {
	if r.byType == nil {
		r.byType, r.byID = make(map[string][]int32), make(map[string]int32)
	}
	slot, replaces := r.byID[d.id]
	if d.id != "" {
		if replaces && bytes.Equal(r.all[slot].value, d.value) {
			return
		}
		// A copy, so that a definition which comes back is not taken for the
		// one that performances under way began with.
		same := *d
		d = &same
	}
	if !replaces {
		slot = int32(len(r.all))
		r.all = append(r.all, d)
		if d.id != "" {
			r.byID[d.id] = slot
		}
	} else {
		r.unlist(r.all[slot].on, slot)
		r.all[slot] = d
	}
	slots := r.byType[d.on]
	at, _ := slices.BinarySearch(slots, slot)
	r.byType[d.on] = slices.Insert(slots, at, slot)
}

// unlist takes a slot from those of a type.
func (r *Registry) unlist(on string, slot int32) {
	slots := r.byType[on]
	if at, ok := slices.BinarySearch(slots, slot); ok {
		slots = slices.Delete(slots, at, at+1)
	}
	if r.byType[on] = slots; len(slots) == 0 {
		delete(r.byType, on)
	}
}

// has reports whether d is in force at a slot.
func (r *Registry) has(d *Definition, slot int32) bool {
	return slot >= 0 && r.all[slot] == d
}

// Len returns how many definitions there are.
func (r *Registry) Len() int { return len(r.all) }

// All yields every definition in order.
func (r *Registry) All() iter.Seq[*Definition] {
	return func(yield func(*Definition) bool) {
		for _, d := range r.all {
			if !yield(d) {
				return
			}
		}
	}
}

// For yields the definitions that answer to a signal type, in order and
// whatever their condition.
func (r *Registry) For(typ string) iter.Seq[*Definition] {
	return func(yield func(*Definition) bool) {
		for _, slot := range r.byType[typ] {
			if !yield(r.all[slot]) {
				return
			}
		}
	}
}
