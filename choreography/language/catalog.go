package language

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Catalog holds the declarations in force that others refer to by name:
// choreographies by their ids, sequences, easings and bindings. It is immutable;
// the zero value is empty. Adding to n declarations takes time and memory
// proportional to the logarithm of n.
//
// A declaration refers to others as they are in force when it comes into force
// itself. A choreography is kept with these written into it, so later declarations
// do not change it.
type Catalog struct {
	places *treeNode // the index in all of a word and name
	all    vector
	used   definition.Cost // of the budget, by all of them and by declarations without a name

	// The choreography or binding that was added last and the definition that it
	// performs: the caller of With asks for that next.
	last  Declaration
	bound *definition.Definition
}

// With returns the catalog with d in force too, replacing the declaration with its
// word and name. Other declarations cannot refer to a d that has no name or that
// another package adds, such as a scene; then the result holds what c holds.
//
// The error says why d cannot come into force: it refers to a declaration that does
// not exist or, through others, to itself, or exceeds the budget
// ([definition.ErrBudget]). It wraps [definition.ErrInvalid].
func (c *Catalog) With(d Declaration) (*Catalog, error) {
	switch d := d.(type) {
	case *definition.Definition:
		if strings.HasPrefix(d.Name(), bindingPrefix) {
			return nil, refused(reasonIDPrefix, bindingPrefix)
		}
		bound, err := c.bind(d)
		if err != nil {
			return nil, err
		}
		return c.with(d, bound, bound, bound.Cost())
	case *Binding:
		bound, err := c.boundBy(d)
		if err != nil {
			return nil, err
		}
		return c.with(d, bound, &boundBinding{d, bound}, bound.Cost().Plus(costOfText(d)))
	case *Sequence:
		if err := c.checkSequence(d); err != nil {
			return nil, err
		}
		return c.with(d, nil, d, costOfText(d))
	case *Easing:
		return c.with(d, nil, d, costOfText(d))
	default:
		return c, nil
	}
}

// with returns c with d, which performs bound and takes cost of the budget. Kept is
// the form in which the catalog stores d.
func (c *Catalog) with(d Declaration, bound *definition.Definition, kept Declaration, cost definition.Cost) (*Catalog, error) {
	used := c.without(d).Plus(cost)
	if err := used.Check(); err != nil {
		return nil, err
	}
	next := &Catalog{places: c.places, all: c.all}
	if d.Name() != "" {
		next = c.put(kept)
	}
	next.used = used
	if bound != nil {
		next.last, next.bound = d, bound
	}
	return next, nil
}

// Unchanged reports whether a named d is in force already, and [Catalog.With] would
// change nothing: what d refers to is as it was when d came into force. A sequence that
// has changed makes the choreographies that include it changed, since they were bound
// to the one before.
func (c *Catalog) Unchanged(d Declaration) bool {
	same := func(a, b Declaration) bool { return bytes.Equal(a.Value(), b.Value()) }
	switch old := c.kept(d.Word(), d.Name()).(type) {
	case nil:
		return false
	case *boundBinding:
		bound, err := c.Bind(d)
		return err == nil && same(d, old) && same(bound[0], old.bound)
	case *definition.Definition:
		bound, err := c.Bind(d)
		return err == nil && same(bound[0], old)
	default:
		return same(d, old)
	}
}

// Used returns what the declarations in force take of the budget.
func (c *Catalog) Used() definition.Cost { return c.used }

// Holds returns an error that wraps [definition.ErrBudget] if the declarations in
// force and those retained beside them exceed the budget. The scheduler retains
// definitions that were replaced and are still performed.
func (c *Catalog) Holds(retained definition.Cost) error { return c.used.Plus(retained).Check() }

// without returns the cost of the declarations in force except the one that d replaces.
func (c *Catalog) without(d Declaration) definition.Cost {
	if d.Name() == "" {
		return c.used
	}
	switch old := c.kept(d.Word(), d.Name()).(type) {
	case nil:
		return c.used
	case *definition.Definition:
		return c.used.Minus(old.Cost())
	case *boundBinding:
		return c.used.Minus(costOfText(old)).Minus(old.bound.Cost())
	default:
		return c.used.Minus(costOfText(old))
	}
}

// costOfText returns the cost of a declaration that is kept as it was written.
func costOfText(d Declaration) definition.Cost {
	return definition.Cost{Bytes: definition.BytesPerDeclaration + len(d.Value())}
}

// Bind returns the definition that d performs once it is in force: the expanded
// choreography, or the definition of a binding. Other declarations perform none.
//
// The value of the result is complete: it compiles to the same definition whatever
// else is in force. It has no include, repeat, stagger or extends, and its member
// "easings" holds the curves that its steps use by name.
func (c *Catalog) Bind(d Declaration) ([]*definition.Definition, error) {
	if c.last != nil && c.last == d {
		return []*definition.Definition{c.bound}, nil
	}
	var bound *definition.Definition
	var err error
	switch d := d.(type) {
	case *definition.Definition:
		bound, err = c.bind(d)
	case *Binding:
		bound, err = c.boundBy(d)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []*definition.Definition{bound}, nil
}

// All yields the declarations in force, in the order in which their names were
// first declared. A choreography is yielded in its expanded form, see
// [Catalog.Bind].
func (c *Catalog) All() iter.Seq[Declaration] {
	return func(yield func(Declaration) bool) {
		for i := range c.all.n {
			if !yield(declared(c.all.at(i))) {
				return
			}
		}
	}
}

// Get returns the declaration in force under a word and a name, nil if there is none.
func (c *Catalog) Get(word, name string) Declaration { return declared(c.kept(word, name)) }

// kept is [Catalog.Get] for the stored form.
func (c *Catalog) kept(word, name string) Declaration {
	if i, ok := c.places.find(key(word, name)); ok {
		return c.all.at(i)
	}
	return nil
}

// declared returns the declaration of a stored form.
func declared(kept Declaration) Declaration {
	if b, ok := kept.(*boundBinding); ok {
		return b.Binding
	}
	return kept
}

func (c *Catalog) definition(id string) *definition.Definition {
	d, _ := c.Get(wordChoreography, id).(*definition.Definition)
	return d
}

func (c *Catalog) sequence(name string) *Sequence {
	s, _ := c.Get(wordSequence, name).(*Sequence)
	return s
}

func (c *Catalog) easing(name string) *Easing {
	e, _ := c.Get(wordEasing, name).(*Easing)
	return e
}

// put returns c with d in its place, without any check.
func (c *Catalog) put(d Declaration) *Catalog {
	k := key(d.Word(), d.Name())
	if i, ok := c.places.find(k); ok {
		return &Catalog{places: c.places, all: c.all.set(i, d)}
	}
	return &Catalog{places: c.places.with(k, c.all.n), all: c.all.push(d)}
}

// RestoreCatalog returns the catalog whose [Catalog.All] yields declared and whose
// declarations perform the definitions of performed, all of which are in force. It
// refuses a name that is declared twice, and a declaration whose definition is
// missing.
//
// It does not check references: a declaration that has replaced another may stand
// before the declarations that it refers to. It adds up the costs again.
func RestoreCatalog(declared []Declaration, performed []*definition.Definition) (*Catalog, error) {
	byID := make(map[string]*definition.Definition, len(performed))
	for _, d := range performed {
		byID[d.Name()] = d
	}
	c := &Catalog{}
	matched := 0
	for _, d := range declared {
		id := d.Name()
		switch own := d.(type) {
		case *definition.Definition:
			in, ok := byID[id]
			if !ok || id == "" || strings.HasPrefix(id, bindingPrefix) || !bytes.Equal(in.Value(), own.Value()) {
				return nil, fmt.Errorf("choreography %s is not what is performed", wording.Quoted(id))
			}
			d = in
			matched++
		case *Binding:
			in, ok := byID[bindingPrefix+id]
			if !ok {
				return nil, fmt.Errorf("binding %s performs nothing", wording.Quoted(id))
			}
			d = &boundBinding{own, in}
			matched++
			c.used = c.used.Plus(costOfText(d))
		default:
			c.used = c.used.Plus(costOfText(d))
		}
		used := c.used
		c = c.put(d)
		c.used = used
	}
	for _, d := range performed {
		c.used = c.used.Plus(d.Cost())
		if d.Name() == "" {
			matched++
		}
	}
	if matched != len(performed) || c.all.n != len(declared) {
		return nil, errors.New("what is in force is not what is performed")
	}
	return c, c.used.Check()
}

func key(word, name string) string { return word + "\x00" + name }

// checkSequence refuses a sequence that includes a missing sequence, or itself
// through others. Only a sequence that replaces another can do the latter: no
// sequence includes a name before it is declared.
func (c *Catalog) checkSequence(s *Sequence) error {
	var err error
	includes(s.steps, func(name string) {
		if err == nil && name != s.name && c.sequence(name) == nil {
			err = refused(reasonNoInclude, wording.Quoted(s.name), wording.Quoted(name))
		}
	})
	if err != nil {
		return err
	}
	passed := map[string]bool{}
	if c.sequence(s.name) == nil {
		// Only the new sequence itself can lead to a new name, and the search through all
		// its includes may be long.
		includes(s.steps, func(name string) { passed[name] = name != s.name })
	}
	if way := c.wayTo(s, s.name, passed); way != nil {
		return refused(reasonIncludeCycle, cycle(append([]string{s.name}, way...)))
	}
	return nil
}

// wayTo returns the sequences by which from includes a name, ending with it;
// nil if it does not. Passed holds the sequences that are known not to include it.
func (c *Catalog) wayTo(from *Sequence, name string, passed map[string]bool) (way []string) {
	includes(from.steps, func(next string) {
		switch {
		case way != nil || passed[next]:
			return
		case next == name:
			way = []string{name}
			return
		}
		passed[next] = true
		if s := c.sequence(next); s != nil {
			if rest := c.wayTo(s, name, passed); rest != nil {
				way = append([]string{next}, rest...)
			}
		}
	})
	return way
}
