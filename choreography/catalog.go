package choreography

import (
	"fmt"
	"iter"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Catalog is the declarations in force that others refer to by name:
// choreographies by their ids, sequences, easings and bindings. It is immutable;
// the zero value is empty. To add to one of n declarations takes time and memory
// proportional to the logarithm of n.
//
// What refers to others takes them as they are in force when it comes into force
// itself. A choreography is kept with all it refers to put in its place, so what
// is declared later does not change it.
type Catalog struct {
	places *treeNode // where a word and name stand in all
	all    vector

	// The last choreography or binding that was added and what it makes
	// signals perform, which is asked for next.
	last  Declaration
	bound *Definition
}

// With returns the catalog with d in force too, in the place of what has its
// word and name. What is of no package's concern here, or has no name, nothing
// can refer to: then the result holds what c holds.
//
// The error says why d cannot come into force: it refers to what is not there,
// or leads back to itself. It wraps [ErrDefinition].
func (c *Catalog) With(d Declaration) (*Catalog, error) {
	switch d := d.(type) {
	case *Definition:
		bound, err := c.bind(d)
		switch {
		case err != nil:
			return nil, err
		case d.Name() == "" && bound == d:
			return c, nil
		case d.Name() == "":
			return &Catalog{c.places, c.all, d, bound}, nil
		}
		next := c.put(bound)
		next.last, next.bound = d, bound
		return next, nil
	case *Binding:
		bound, err := c.boundBy(d)
		if err != nil {
			return nil, err
		}
		next := c.put(d)
		next.last, next.bound = d, bound
		return next, nil
	case *Sequence:
		if err := c.checkSequence(d); err != nil {
			return nil, err
		}
		return c.put(d), nil
	case *Easing:
		return c.put(d), nil
	default:
		return c, nil
	}
}

// Bind returns what d makes signals perform once it is in force: a choreography
// itself, with all that it refers to put in its place, and a binding what it
// stands for. Nothing else makes signals perform anything.
//
// The result's value is complete: compiled anew, it is the same whatever else is
// in force. It has no include, repeat, stagger or extends, and the curves that
// its steps use by name are a member "easings" of it.
func (c *Catalog) Bind(d Declaration) ([]*Definition, error) {
	if c.last != nil && c.last == d {
		return []*Definition{c.bound}, nil
	}
	var bound *Definition
	var err error
	switch d := d.(type) {
	case *Definition:
		bound, err = c.bind(d)
	case *Binding:
		bound, err = c.boundBy(d)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []*Definition{bound}, nil
}

// All yields the declarations in force, in the order in which their names were
// first declared. A choreography is yielded as it is in force, see
// [Catalog.Bind].
func (c *Catalog) All() iter.Seq[Declaration] { return c.all.each }

// Get returns what is in force under a word and a name, nil if nothing is.
func (c *Catalog) Get(word, name string) Declaration {
	if i, ok := c.places.find(key(word, name)); ok {
		return c.all.at(i)
	}
	return nil
}

func (c *Catalog) definition(id string) *Definition {
	d, _ := c.Get(wordChoreography, id).(*Definition)
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

// put returns c with d in its place, unjudged.
func (c *Catalog) put(d Declaration) *Catalog {
	k := key(d.Word(), d.Name())
	if i, ok := c.places.find(k); ok {
		return &Catalog{places: c.places, all: c.all.set(i, d)}
	}
	return &Catalog{places: c.places.with(k, c.all.n), all: c.all.push(d)}
}

// restoreCatalog returns the catalog whose [Catalog.All] yields all, as far as
// no name stands in it twice. Nothing is judged anew: what was replaced since
// may have come before what it refers to.
func restoreCatalog(all []Declaration) *Catalog {
	c := &Catalog{}
	for _, d := range all {
		c = c.put(d)
	}
	return c
}

func key(word, name string) string { return word + "\x00" + name }

// checkSequence refuses a sequence that includes what is not there, or itself
// by a detour. Only one that takes the place of another can do the latter:
// nothing includes a name before it is declared.
func (c *Catalog) checkSequence(s *Sequence) error {
	var err error
	includes(s.steps, func(name string) {
		if err == nil && name != s.name && c.sequence(name) == nil {
			err = fmt.Errorf("%w: sequence %s: there is no sequence %s to include", ErrDefinition, wording.Quoted(s.name), wording.Quoted(name))
		}
	})
	if err != nil {
		return err
	}
	passed := map[string]bool{}
	if c.sequence(s.name) == nil {
		// Nothing leads to a new name but itself, and the way through all that
		// it includes may be long.
		includes(s.steps, func(name string) { passed[name] = name != s.name })
	}
	if way := c.wayTo(s, s.name, passed); way != nil {
		return fmt.Errorf("%w: sequences include each other without end: %s", ErrDefinition, cycle(append([]string{s.name}, way...)))
	}
	return nil
}

// wayTo returns the sequences by which from includes a name, ending with it;
// nil if it does not. Passed are those that are known to lead nowhere.
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

// treeNode is a node of a balanced search tree that is never changed: to add a key
// copies the way to it.
type treeNode struct {
	key         string
	place       int
	height      int
	left, right *treeNode
}

func (t *treeNode) find(key string) (place int, ok bool) {
	for t != nil {
		switch order := strings.Compare(key, t.key); {
		case order < 0:
			t = t.left
		case order > 0:
			t = t.right
		default:
			return t.place, true
		}
	}
	return 0, false
}

func (t *treeNode) high() int {
	if t == nil {
		return 0
	}
	return t.height
}

// with returns t with a key that is not in it.
func (t *treeNode) with(key string, place int) *treeNode {
	if t == nil {
		return &treeNode{key: key, place: place, height: 1}
	}
	if key < t.key {
		return t.join(t.left.with(key, place), t.right)
	}
	return t.join(t.left, t.right.with(key, place))
}

// join returns a tree of two and the key of t between them. One of the two may
// be higher than the other by two.
func (t *treeNode) join(left, right *treeNode) *treeNode {
	switch l, r := left.high(), right.high(); {
	case l > r+1:
		if left.left.high() >= left.right.high() {
			return left.join(left.left, t.join(left.right, right))
		}
		m := left.right
		return m.join(left.join(left.left, m.left), t.join(m.right, right))
	case r > l+1:
		if right.right.high() >= right.left.high() {
			return right.join(t.join(left, right.left), right.right)
		}
		m := right.left
		return m.join(t.join(left, m.left), right.join(m.right, right.right))
	default:
		return &treeNode{t.key, t.place, 1 + max(l, r), left, right}
	}
}

// fan is how many branches a node of a vector has.
const fan = 16

// vector is a list of declarations that is never changed: to set or add one
// copies the way to it.
type vector struct {
	n, depth int // depth of nodes above the leaves
	root     *vectorNode
}

type vectorNode struct {
	inside [fan]*vectorNode
	leaf   [fan]Declaration
}

func (v vector) at(i int) Declaration {
	node := v.root
	for level := v.depth; level > 0; level-- {
		node = node.inside[i>>(4*level)%fan]
	}
	return node.leaf[i%fan]
}

func (v vector) set(i int, d Declaration) vector {
	v.root = v.root.with(v.depth, i, d)
	return v
}

func (v vector) push(d Declaration) vector {
	if v.n == fan<<(4*v.depth) { // full
		v.root, v.depth = &vectorNode{inside: [fan]*vectorNode{v.root}}, v.depth+1
	}
	v.n++
	return v.set(v.n-1, d)
}

func (n *vectorNode) with(level, i int, d Declaration) *vectorNode {
	next := new(vectorNode)
	if n != nil {
		*next = *n
	}
	if level == 0 {
		next.leaf[i%fan] = d
		return next
	}
	branch := i >> (4 * level) % fan
	next.inside[branch] = next.inside[branch].with(level-1, i, d)
	return next
}

func (v vector) each(yield func(Declaration) bool) {
	for i := range v.n {
		if !yield(v.at(i)) {
			return
		}
	}
}
