package choreography

import (
	"bytes"
	"slices"

	"github.com/sajou-dev/sajou-go/choreography/definition"
)

// registry keeps definitions in the order in which they came into force. A definition
// without id that is added twice is in it twice. The zero value is empty and ready.
type registry struct {
	all    []*definition.Definition
	byType map[string][]int32 // slots in all, ascending
	byID   map[string]int32
}

// add appends d, or puts it in the place of the definition with its id. Adding a
// definition whose value is in force already has no effect.
func (r *registry) add(d *definition.Definition) {
	if r.byType == nil {
		r.byType, r.byID = make(map[string][]int32), make(map[string]int32)
	}
	slot, replaces := r.byID[d.Name()]
	if d.Name() != "" {
		if replaces && bytes.Equal(r.all[slot].Value(), d.Value()) {
			return
		}
		// A copy gives d an identity of its own: performances compare pointers, and a
		// definition that returns must differ from the one they began with.
		same := *d
		d = &same
	}
	if !replaces {
		slot = int32(len(r.all))
		r.all = append(r.all, d)
		if d.Name() != "" {
			r.byID[d.Name()] = slot
		}
	} else {
		r.unlist(r.all[slot].On(), slot)
		r.all[slot] = d
	}
	slots := r.byType[d.On()]
	at, _ := slices.BinarySearch(slots, slot)
	r.byType[d.On()] = slices.Insert(slots, at, slot)
}

// unlist removes a slot from the slots of a type.
func (r *registry) unlist(on string, slot int32) {
	slots := r.byType[on]
	if at, ok := slices.BinarySearch(slots, slot); ok {
		slots = slices.Delete(slots, at, at+1)
	}
	if r.byType[on] = slots; len(slots) == 0 {
		delete(r.byType, on)
	}
}

// has reports whether d is in force at a slot.
func (r *registry) has(d *definition.Definition, slot int32) bool {
	return r.all[slot] == d
}
