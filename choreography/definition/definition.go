// Package definition holds choreographies in the form in which they run: steps
// compiled to nodes, conditions, guards, references to the signal, and the cost of
// each. The scheduler of package choreography performs definitions; package
// choreography/language makes them from the declarations of authors.
//
// A [Definition] depends on nothing but its own value: the other declarations that it
// names are written into it. It is immutable and safe for concurrent use.
//
// # Rules
//
// The limits of this package and the results of [Compile] belong to rules 1 (see
// docs/adr/0023-rules-have-a-number.md): a log that was written under these rules is
// performed by them, on every machine and permanently.
//
// The package is pure: no clock, no goroutine, no input or output.
package definition

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/signal"
)

// Limits of one definition.
const (
	// MaxSteps bounds the steps of one definition, nested ones included.
	MaxSteps = 100_000
	// MaxNesting bounds the nesting of steps.
	MaxNesting = 1000
)

// ErrInvalid is wrapped by every error of [Compile].
var ErrInvalid = errors.New("choreography: not a definition")

// The reasons for which [Compile] and a [Cost.Check] refuse a definition. They are
// part of the format of define entries: never reword them.
const (
	reasonNotObject    = "want an object"
	reasonNesting      = "steps nest deeper than %d"
	reasonGuarded      = "a guard of more than %d names"
	reasonStepsInForce = "with it, more than %d steps would be in force; replace a choreography that is in force, or repeat less"
	reasonBytesInForce = "with it, more than %d MiB of declarations would be in force; replace one that is in force, or shorten this one"
	reasonValueNesting = "so many bytes must not be nested so deeply: write the steps in fewer groups"
	reasonSteps        = "more than %d steps"
	reasonBytes        = "compiled, it takes more than %d MiB"
)

// refused returns the error about a value that cannot be compiled.
func refused(reason string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(reason, args...))
}

// Definition is one compiled choreography. It is immutable and may be shared.
type Definition struct {
	value      signal.Value
	id         string // "" if it has none
	on         string
	interrupts bool
	when       Condition
	guard      Guard
	cost       Cost
	width      int // the most that one performance counts for, see [Definition.Width]

	// nodes holds all steps; a block is a contiguous part of it. Inside a block the
	// nodes follow one another in time.
	nodes   []Node
	main    Block
	handler Block // empty: no step runs after an interruption
}

// Block is the part nodes[First:End] of a definition.
type Block struct{ First, End int32 }

// NodeKind is the kind of a [Node].
type NodeKind uint8

// The kinds of nodes.
const (
	NodeInstant NodeKind = iota
	NodeAnimated
	NodeWait
	NodeParallel
	NodeBranch // skips the nodes of a step whose "when" does not hold
)

// Node is one compiled step. A step that takes no time by itself (onArrive, an empty
// group, a wait of no length) leaves no node.
type Node struct {
	Kind     NodeKind
	Refers   bool // the entity or a parameter is a reference
	Curve    curve.Curve
	Action   string
	Entity   signal.Value // absent: the entity is ""
	Delay    int64        // ns, instant and animated only
	Duration int64        // ns, never negative; animated and wait only
	Written  float64      // ms, the duration as written
	Easing   string       // the name as written
	Params   []Param
	Children []Block   // parallel only, none of them empty
	When     Condition // branch only
	Skip     int32     // branch only: the number of nodes of the step
}

// Param is one parameter of a step.
type Param struct {
	Name  string
	Value signal.Value
}

// Compile compiles v, which it copies.
//
// It is as lenient as the runtime that first performed recorded definitions: absent
// steps are an empty list, a step without an action is skipped, an invalid pattern
// matches nothing, a duration that is not a number is zero. Parse of package language
// reports these to an author. The error wraps [ErrInvalid]. It comes only for a v that
// is not an object or that exceeds [MaxSteps], [MaxBytesInForce] (then it wraps
// [ErrBudget]), [MaxNesting] or [MaxGuarded].
func Compile(v signal.Value) (*Definition, error) {
	if v.Kind() != signal.KindObject {
		return nil, refused(reasonNotObject)
	}
	cost, err := costOf(v)
	if err != nil {
		return nil, err
	}
	d := &Definition{value: slices.Clone(v), cost: cost}
	v = d.value
	c := compiler{def: d, patterns: patterns{}}
	if on, ok := v.Get("on"); ok {
		d.on, _ = on.Text()
	}
	if id, ok := v.Get("id"); ok {
		d.id, _ = id.Text()
	}
	if w, ok := v.Get("when"); ok {
		d.when = c.patterns.condition(w)
	}
	if g, ok := v.Get("guard"); ok {
		if d.guard, err = compileGuard(g); err != nil {
			return nil, err
		}
	}
	if i, ok := v.Get("interrupts"); ok {
		d.interrupts = Truthy(i)
	}
	if easings, ok := v.Get("easings"); ok {
		c.easings = map[string]string{}
		for name, curve := range easings.Members() {
			c.easings[name], _ = curve.Text()
		}
	}
	if w, ok := v.Get("andWhen"); ok {
		also := c.patterns.condition(w)
		d.when.also = &also
	}
	if steps, ok := v.Get("steps"); ok {
		main := c.sequence(steps, 1, nil)
		var handler []Node
		for step := range steps.Elements() {
			if ActionOf(step) == "onInterrupt" {
				inner := step.Member("steps")
				from := len(handler)
				handler = c.openBranch(step, handler)
				opened := len(handler)
				handler = closeBranch(c.sequence(inner, 2, handler), from, opened)
			}
		}
		d.main = c.place(main)
		d.handler = c.place(handler)
	}
	if c.err != nil {
		return nil, c.err
	}
	d.nodes = slices.Clip(d.nodes)
	d.width = 1 + max(d.widthOf(d.main), d.widthOf(d.handler))
	return d, nil
}

// Value returns the definition as it was written. It must not be changed.
func (d *Definition) Value() signal.Value { return d.value }

// On returns the type of the signals that start d, compared exactly.
func (d *Definition) On() string { return d.on }

// Interrupts reports whether a signal that matches d first ends the performances
// with its correlation id.
func (d *Definition) Interrupts() bool { return d.interrupts }

// Matches reports whether sig starts d on an empty stage: whether its type and d's
// condition match.
func (d *Definition) Matches(sig *signal.Signal) bool {
	return d.on == sig.Type && d.when.Matches(&Facts{Signal: Resolver{Type: sig.Type, Payload: sig.Payload}})
}

// widthOf returns the largest number of children of parallel groups that a performance
// can be in at once inside a block.
func (d *Definition) widthOf(b Block) int {
	most := 0
	for i := b.First; i < b.End; i++ {
		width := len(d.nodes[i].Children)
		for _, child := range d.nodes[i].Children {
			width += d.widthOf(child)
		}
		most = max(most, width)
	}
	return most
}

// Word is the word of a define entry that declares a definition.
const Word = "choreography"

// Word returns "choreography".
func (d *Definition) Word() string { return Word }

// Name returns the definition's id, "" if it has none.
func (d *Definition) Name() string { return d.id }

// Progress returns the share of an animation that has passed, in [0, 1]. For a
// duration beyond the largest int64 it is computed from the written duration, so that
// an animation never reaches its end there.
func (n *Node) Progress(elapsed int64) float64 {
	switch {
	case elapsed >= n.Duration:
		return 1
	case n.Duration == math.MaxInt64:
		return float64(elapsed) / float64(n.Written*1e6)
	default:
		return float64(elapsed) / float64(n.Duration)
	}
}

// Cost returns the share of the session's budget that d takes.
func (d *Definition) Cost() Cost { return d.cost }

// Width returns the most that one performance of d counts for: one for itself and one
// for each child of the parallel groups that it can be in at once. The scheduler
// bounds the sum (MaxUnderWay of package choreography).
func (d *Definition) Width() int { return d.width }

// Nodes returns the compiled steps. They must not be changed.
func (d *Definition) Nodes() []Node { return d.nodes }

// Main returns the block that a performance runs.
func (d *Definition) Main() Block { return d.main }

// Handler returns the block that runs after an interruption, empty if there is none.
func (d *Definition) Handler() Block { return d.handler }

// When returns the condition on the signal.
func (d *Definition) When() *Condition { return &d.when }

// Guard returns the names that a performance must hold.
func (d *Definition) Guard() *Guard { return &d.guard }
