package choreography

import "iter"

// Registry keeps definitions in the order they came into force. A definition
// added twice is there twice. The zero value is empty and ready.
type Registry struct {
	all    []*Definition
	byType map[string][]int32 // slots in all, ascending
}

// Add puts d after all others.
func (r *Registry) Add(d *Definition) {
	if r.byType == nil {
		r.byType = make(map[string][]int32)
	}
	r.byType[d.on] = append(r.byType[d.on], int32(len(r.all)))
	r.all = append(r.all, d)
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
