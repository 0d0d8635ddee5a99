// Package choreography runs authored sequences of visual actions. It is a
// pure, exact state machine: signals and instants of session time go in,
// commands to a renderer come out.
//
// # Nouns
//
// A [Definition] says which signal type it answers to, under what condition,
// and which steps follow. A [Registry] keeps definitions in the order they came
// into force. A [Scheduler] makes one performance of each definition that a
// signal matches and moves all performances through time. A [Resolver] turns
// the "signal.x" references of a step into values of the signal's payload. What
// happens is told to a [CommandSink], and to an [Observer] in a form that costs
// nothing where nobody looks. What conditions ask of the stage is answered by a
// [World].
//
// # Time
//
// Time is session time, a [time.Duration] since the session began. Milliseconds
// of a definition are converted once, rounded to the nearest nanosecond;
// what does not fit is the farthest instant. There is no clock in here: the
// caller says how far to go with [Scheduler.Advance].
//
// Boundaries are exact. A step begins at the very instant the step before it
// ends, whatever frames were drawn, so any way of cutting a span of time into
// advances gives the same commands, updates aside, and the same state bytes.
// Only updates depend on the cutting: one for each running animation at the
// end of each advance.
//
// # Order
//
// Commands come in time order. At one instant performances go in the order they
// were made, each one completely: depth first, the children of a parallel group
// in the order they are written. One that a guard lets begin at that instant
// does so when all of these are through; if that frees others, they follow in
// the next round.
//
// # Steps
//
//   - An action without "duration", and spawn, destroy, playSound and
//     setAnimation always, is instant: one execute.
//   - Any other action is animated: start, updates while its progress is below
//     one, complete. With a duration of zero or less there is no update.
//   - "delay" holds an action back, measured from when its turn comes.
//   - wait passes time; parallel runs its steps side by side and ends with the
//     last; onArrive stands for its steps, and directly inside parallel it is a
//     sequence beside its siblings.
//   - onInterrupt at the top is no step: its steps are what runs, as a
//     performance of its own, when the performance is interrupted.
//   - Any of them may have a "when". It is judged at the very instant at which
//     the step is reached, before its delay; if it does not hold, the step is
//     passed as if it were not written, with all that is inside it. A "when"
//     that is no condition at all, such as a string, is a parameter like others.
//
// # Conditions
//
// A condition asks the signal, "signal.x", or the stage as it is at that
// instant, "stage:ENTITY.PROPERTY": the property stands after the last dot, and
// an entity that begins with "signal." is a reference. That of a definition is
// judged when the signal comes.
//
// # Guards
//
// A definition with a "guard" names entities of which its performances want to
// be alone: {"guard": {"entity": NAME or [NAME…], "policy": …}}. Names may be references; they are
// resolved when the signal comes, those that lead to no text are dropped, and
// without any there is no guard. A performance holds all of its names from when
// it begins until it ends; no two hold one name. Where one is taken,
//
//   - "queue", which is also meant without a policy, has the performance wait. It begins when all of
//     its names are free and no earlier one waits for any of them, at the
//     instant at which the last of these ends. It holds nothing while it waits,
//     so nobody waits in a circle, and nobody is overtaken but by preemption;
//   - "skip" makes no performance, also if a name is only waited for;
//   - "preempt" interrupts whoever holds one of the names and begins at once.
//     Those who wait go on waiting.
//
// At most [MaxWaiting] performances wait for one name; whoever would be one more is
// skipped. Handlers run without a guard.
//
// # Replacement
//
// A definition with an "id" takes the place of the one in force with that id.
// What is under way, or waits, goes on as it began.
//
// # Interruption
//
// A definition with "interrupts" ends every performance that carries the
// correlation id of its signal, at once and without a complete. Handlers run
// against the signal of the performance they belong to, carry no correlation
// id, and therefore cannot be interrupted themselves. A performance that waits
// for its guard is interrupted like any other, and its handler runs.
//
// # What it does not do
//
// Without a guard two performances may animate one entity: both streams are
// sent and the renderer decides. A guard is over names as they are written or
// resolved: what the steps in fact touch is not looked at.
package choreography

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/signal"
)

// Limits of one definition.
const (
	// MaxSteps bounds the steps of one definition, nested ones included.
	MaxSteps = 100_000
	// MaxNesting bounds how deep steps may stand inside steps.
	MaxNesting = 1000
)

// ErrDefinition is wrapped by every error of [Compile]: the value cannot be
// made into a definition at all.
var ErrDefinition = errors.New("choreography: not a definition")

// Definition is one choreography, compiled. It is immutable and may be shared.
type Definition struct {
	value      signal.Value
	id         string // "" if it has none
	on         string
	interrupts bool
	when       clause
	guard      guard

	// nodes holds all steps; a block is a stretch of it. Inside a block the
	// nodes follow one another in time.
	nodes   []node
	main    block
	handler block // empty: nothing runs after an interruption
}

// block is the stretch nodes[first:end] of a definition.
type block struct{ first, end int32 }

type nodeKind uint8

const (
	nodeInstant nodeKind = iota
	nodeAnimated
	nodeWait
	nodeParallel
	nodeBranch // passes over the nodes of a step whose "when" does not hold
)

// node is one step after compilation. Structure that takes no time by itself
// (onArrive, empty groups, waits of no length) leaves no node.
type node struct {
	kind     nodeKind
	curve    Curve
	action   string
	entity   signal.Value // absent: the entity is ""
	delay    int64        // ns, instant and animated only
	duration int64        // ns, never negative; animated and wait only
	written  float64      // ms, the duration as written
	easing   string       // the name as written
	params   []param
	children []block // parallel only, none of them empty
	when     clause  // branch only
	skip     int32   // branch only: how many nodes the step has
}

type param struct {
	name  string
	value signal.Value
}

// Compile makes a definition of v, which it copies.
//
// It is as forgiving as the runtime that recorded definitions were written for:
// missing steps are no steps, a step without an action is none either, an unusable
// pattern matches nothing, a duration that is no number is zero. What an author should be told about is found by [Parse].
// The error wraps [ErrDefinition] and comes only for a v that is no
// object or exceeds [MaxSteps], [MaxNesting] or [MaxGuarded].
func Compile(v signal.Value) (*Definition, error) {
	if v.Kind() != signal.KindObject {
		return nil, fmt.Errorf("%w: want an object", ErrDefinition)
	}
	d := &Definition{value: slices.Clone(v)}
	v = d.value
	if on, ok := v.Get("on"); ok {
		d.on, _ = on.Text()
	}
	if id, ok := v.Get("id"); ok {
		d.id, _ = id.Text()
	}
	if w, ok := v.Get("when"); ok {
		d.when = compileClause(w)
	}
	if g, ok := v.Get("guard"); ok {
		var err error
		if d.guard, err = compileGuard(g); err != nil {
			return nil, err
		}
	}
	if i, ok := v.Get("interrupts"); ok {
		d.interrupts = truthy(i)
	}
	c := compiler{def: d}
	c.easings, _ = v.Get("easings")
	if w, ok := v.Get("andWhen"); ok {
		also := compileClause(w)
		d.when.also = &also
	}
	if steps, ok := v.Get("steps"); ok {
		main := c.sequence(steps, 1, nil)
		var handler []node
		for step := range steps.Elements() {
			if actionOf(step) == "onInterrupt" {
				inner, _ := step.Get("steps")
				from := len(handler)
				handler = openBranch(step, handler)
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
	return d, nil
}

// Value returns the definition as it was written. It must not be changed.
func (d *Definition) Value() signal.Value { return d.value }

// On returns the signal type that d answers to, compared exactly.
func (d *Definition) On() string { return d.on }

// Interrupts reports whether a signal that d answers to first ends the
// performances of its correlation id.
func (d *Definition) Interrupts() bool { return d.interrupts }

// Matches reports whether d answers to sig: its type and its condition, on a
// stage where there is nothing.
func (d *Definition) Matches(sig *signal.Signal) bool {
	return d.on == sig.Type && d.when.matches(&facts{signal: Resolver{Type: sig.Type, Payload: sig.Payload}})
}

// compiler turns steps into nodes. It recurses once per nesting, never per step.
type compiler struct {
	def     *Definition
	steps   int
	easings signal.Value     // curves by the names that steps use, see [Catalog.Bind]
	curves  map[string]Curve // those that were read already
	err     error
}

// sequence appends the nodes of steps, in order, to nodes. Blocks of parallel
// groups inside are placed as they are met.
func (c *compiler) sequence(steps signal.Value, depth int, nodes []node) []node {
	if c.err != nil || steps.Kind() != signal.KindArray {
		return nodes
	}
	if depth > MaxNesting {
		c.err = fmt.Errorf("%w: steps nest deeper than %d", ErrDefinition, MaxNesting)
		return nodes
	}
	for step := range steps.Elements() {
		nodes = c.step(step, depth, nodes)
		if c.err != nil {
			break
		}
	}
	return nodes
}

func (c *compiler) step(step signal.Value, depth int, nodes []node) []node {
	v, _ := step.Get("action")
	action, ok := v.Text()
	if !ok {
		return nodes
	}
	c.steps++
	if c.steps > MaxSteps {
		c.err = fmt.Errorf("%w: more than %d steps", ErrDefinition, MaxSteps)
		return nodes
	}
	if action == "onInterrupt" {
		// At the top it is taken out by Compile, deeper it means nothing.
		return nodes
	}
	from := len(nodes)
	nodes = openBranch(step, nodes)
	opened := len(nodes)
	return closeBranch(c.unconditional(action, step, depth, nodes), from, opened)
}

// unconditional appends what a step becomes, its condition aside.
func (c *compiler) unconditional(action string, step signal.Value, depth int, nodes []node) []node {
	switch action {
	case "onArrive":
		inner, _ := step.Get("steps")
		return c.sequence(inner, depth+1, nodes)
	case "wait":
		n := node{kind: nodeWait, action: action}
		if d, ok := step.Get("duration"); ok {
			n.duration = nanos(d)
		}
		if n.duration > 0 {
			nodes = append(nodes, n)
		}
		return nodes
	case "parallel":
		n := node{kind: nodeParallel, action: action}
		inner, _ := step.Get("steps")
		if inner.Kind() == signal.KindArray {
			n.children = c.children(inner, depth+1)
		}
		if len(n.children) > 0 {
			nodes = append(nodes, n)
		}
		return nodes
	default:
		n := actionNode(action, step)
		n.curve = c.curve(n.easing)
		return append(nodes, n)
	}
}

// openBranch puts the condition of a step, if it has one, before the nodes that
// the step will become, and closeBranch says how many these are. From is how
// many nodes there were before.
func openBranch(step signal.Value, nodes []node) []node {
	w, ok := step.Get("when")
	if !ok || !isCondition(w) {
		return nodes
	}
	if when := compileClause(w); len(when.any) > 0 {
		nodes = append(nodes, node{kind: nodeBranch, when: when})
	}
	return nodes
}

func closeBranch(nodes []node, from, opened int) []node {
	switch {
	case opened == from:
	case opened == len(nodes):
		return nodes[:from] // there is nothing to pass over
	default:
		nodes[from].skip = int32(len(nodes) - opened)
	}
	return nodes
}

// children places each step of a parallel group as a block of its own.
func (c *compiler) children(steps signal.Value, depth int) []block {
	if depth > MaxNesting {
		c.err = fmt.Errorf("%w: steps nest deeper than %d", ErrDefinition, MaxNesting)
		return nil
	}
	var blocks []block
	for step := range steps.Elements() {
		if b := c.place(c.step(step, depth, nil)); b.first < b.end {
			blocks = append(blocks, b)
		}
		if c.err != nil {
			break
		}
	}
	return blocks
}

// place gives nodes their final home and returns where it is.
func (c *compiler) place(nodes []node) block {
	first := int32(len(c.def.nodes))
	c.def.nodes = append(c.def.nodes, nodes...)
	return block{first, int32(len(c.def.nodes))}
}

func actionNode(action string, step signal.Value) node {
	n := node{kind: nodeInstant, action: action, easing: "linear"}
	var target signal.Value
	for key, v := range step.Members() {
		switch key {
		case "action", "steps":
		case "entity":
			if v.Kind() != signal.KindNull {
				n.entity = v
			}
		case "target":
			target = v
		case "delay":
			n.delay = nanos(v)
		case "duration":
			if !alwaysInstant(action) {
				n.kind = nodeAnimated
			}
			n.written, _ = v.Float64()
			n.duration = nanos(v)
		case "easing":
			if name, ok := v.Text(); ok {
				n.easing = name
			}
		case "when":
			if !isCondition(v) {
				n.params = append(n.params, param{key, v})
			}
		default:
			n.params = append(n.params, param{key, v})
		}
	}
	if n.entity.Kind() == signal.KindAbsent && target.Kind() != signal.KindNull {
		n.entity = target
	}
	return n
}

// alwaysInstant reports whether an action takes no time whatever its step says.
func alwaysInstant(action string) bool {
	switch action {
	case "spawn", "destroy", "playSound", "setAnimation":
		return true
	}
	return false
}

func actionOf(step signal.Value) string {
	v, _ := step.Get("action")
	s, _ := v.Text()
	return s
}

// nanos converts milliseconds to nanoseconds, rounded; zero for what is no
// number or not above zero, the farthest instant for what does not fit.
func nanos(v signal.Value) int64 {
	if ms, ok := v.Int64(); ok {
		switch {
		case ms <= 0:
			return 0
		case ms > math.MaxInt64/1_000_000:
			return math.MaxInt64
		}
		return ms * 1_000_000
	}
	ms, ok := v.Float64()
	if !ok || !(ms > 0) {
		return 0
	}
	ns := math.Round(float64(ms * 1e6))
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(ns)
}

// truthy is JavaScript's notion of it.
func truthy(v signal.Value) bool {
	switch v.Kind() {
	case signal.KindAbsent, signal.KindNull:
		return false
	case signal.KindBool:
		b, _ := v.Bool()
		return b
	case signal.KindString:
		s, _ := v.Text()
		return s != ""
	case signal.KindArray, signal.KindObject:
		return true
	default:
		f, _ := v.Float64()
		return f != 0
	}
}
