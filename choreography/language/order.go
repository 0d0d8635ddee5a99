package language

import (
	"slices"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// item is one declaration of a file.
type item struct {
	p     *authored.Location
	value signal.Value
	word  string

	sequence *Sequence // if it compiles as a sequence

	order ordering
}

// ordering is the state of an item during the topological sort.
type ordering uint8

const (
	unordered ordering = iota
	beingOrdered
	isOrdered
)

// item records a declaration, so that others can refer to it from anywhere in the file.
func (v *validator) item(p *authored.Location, value signal.Value) *item {
	it := &item{p: p, value: value, word: WordFor(value)}
	var name, at string
	switch it.word {
	case wordSequence:
		name, at = firstText(value, "sequence"), "sequence"
		if s, err := compileSequence(value); err == nil {
			it.sequence = s
		}
	case wordEasing:
		name, at = firstText(value, "easing"), "easing"
	case wordBinding:
		name, at = firstText(value, "binding", "id"), "id"
	default:
		name, at = firstText(value, "id"), "id"
	}
	if name == "" {
		return it
	}
	k := key(it.word, name)
	if v.items[k] != nil {
		v.Errorf(p.At(at), "there is another %s %s in this file", it.word, wording.Quoted(name))
		return it
	}
	v.items[k] = it
	return it
}

// name returns the name by which others refer to an item, "" if it has none.
func (it *item) name() string {
	switch it.word {
	case wordSequence:
		return firstText(it.value, "sequence")
	case wordBinding:
		return firstText(it.value, "binding", "id")
	default:
		return firstText(it.value, "id")
	}
}

// maxReferences bounds the length of a chain of references between the declarations of
// a file.
const maxReferences = 10_000

// ordered sorts items so that each comes after those that it refers to.
func (v *validator) ordered(items []*item) []*item {
	var order []*item
	for _, it := range items {
		if it.word == wordEasing {
			it.order = isOrdered
			order = append(order, it)
		}
	}
	var inside []string
	var visit func(it *item)
	visit = func(it *item) {
		switch it.order {
		case unordered:
			if len(inside) >= maxReferences {
				v.Errorf(it.p, "declarations refer to each other through more than %d others", maxReferences)
				return
			}
		case isOrdered:
			return
		case beingOrdered:
			what := "choreographies extend"
			if it.word == wordSequence {
				what = "sequences include"
			}
			first := slices.Index(inside, it.name())
			v.Errorf(it.p, "%s each other without end: %s", what, cycle(append(slices.Clone(inside[max(first, 0):]), it.name())))
			return
		}
		it.order = beingOrdered
		inside = append(inside, it.name())
		it.refersTo(func(word, name string) {
			if other := v.items[key(word, name)]; other != nil {
				visit(other)
			}
		})
		inside = inside[:len(inside)-1]
		it.order = isOrdered
		order = append(order, it)
	}
	for _, it := range items {
		visit(it)
	}
	return order
}

// refersTo calls f for each declaration that an item refers to.
func (it *item) refersTo(f func(word, name string)) {
	for _, name := range [...]string{"before", "steps", "after"} {
		steps := it.value.Member(name)
		includes(steps, func(name string) { f(wordSequence, name) })
	}
	if name := firstText(it.value, "extends"); name != "" && it.word == wordChoreography {
		f(wordChoreography, name)
	}
	if name := firstText(it.value, "sourceChoreographyId"); name != "" && it.word == wordBinding {
		f(wordChoreography, name)
	}
}
