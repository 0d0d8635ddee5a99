package definition

import (
	"math"

	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/signal"
)

// compiler turns steps into nodes. It recurses once for each nesting, never for each step.
type compiler struct {
	def      *Definition
	easings  map[string]string      // curves by the names that steps use, see the Bind of package language; nil if there are none
	curves   map[string]curve.Curve // the easings parsed so far, by their texts
	patterns patterns               // the patterns compiled so far
	err      error
}

// sequence appends the nodes of steps, in order, to nodes. It places the blocks of
// parallel groups when it meets them.
func (c *compiler) sequence(steps signal.Value, depth int, nodes []Node) []Node {
	if c.err != nil || steps.Kind() != signal.KindArray {
		return nodes
	}
	if depth > MaxNesting {
		c.err = refused(reasonNesting, MaxNesting)
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

func (c *compiler) step(step signal.Value, depth int, nodes []Node) []Node {
	v := step.Member("action")
	action, ok := v.Text()
	if !ok {
		return nodes
	}
	if action == "onInterrupt" {
		// Compile takes it out at the top; inside another step it has no effect.
		return nodes
	}
	from := len(nodes)
	nodes = c.openBranch(step, nodes)
	opened := len(nodes)
	return closeBranch(c.unconditional(action, step, depth, nodes), from, opened)
}

// unconditional appends the nodes of a step without its condition.
func (c *compiler) unconditional(action string, step signal.Value, depth int, nodes []Node) []Node {
	switch action {
	case "onArrive":
		inner := step.Member("steps")
		return c.sequence(inner, depth+1, nodes)
	case "wait":
		n := Node{Kind: NodeWait, Action: action}
		if d, ok := step.Get("duration"); ok {
			n.Duration = Nanoseconds(d)
		}
		if n.Duration > 0 {
			nodes = append(nodes, n)
		}
		return nodes
	case "parallel":
		n := Node{Kind: NodeParallel, Action: action}
		inner := step.Member("steps")
		if inner.Kind() == signal.KindArray {
			n.Children = c.children(inner, depth+1)
		}
		if len(n.Children) > 0 {
			nodes = append(nodes, n)
		}
		return nodes
	default:
		n := actionNode(action, step)
		n.Curve = c.curve(n.Easing)
		return append(nodes, n)
	}
}

// openBranch appends a branch with the condition of a step, if it has one. The nodes
// of the step follow, and closeBranch sets how many they are. From is the number of
// nodes before the branch.
func (c *compiler) openBranch(step signal.Value, nodes []Node) []Node {
	w, ok := step.Get("when")
	if !ok || !isCondition(w) {
		return nodes
	}
	if when := c.patterns.condition(w); len(when.any) > 0 {
		nodes = append(nodes, Node{Kind: NodeBranch, When: when})
	}
	return nodes
}

func closeBranch(nodes []Node, from, opened int) []Node {
	switch {
	case opened == from:
	case opened == len(nodes):
		return nodes[:from] // nothing to skip
	default:
		nodes[from].Skip = int32(len(nodes) - opened)
	}
	return nodes
}

// children places each step of a parallel group as a block of its own.
func (c *compiler) children(steps signal.Value, depth int) []Block {
	if depth > MaxNesting {
		c.err = refused(reasonNesting, MaxNesting)
		return nil
	}
	var blocks []Block
	for step := range steps.Elements() {
		if b := c.place(c.step(step, depth, nil)); b.First < b.End {
			blocks = append(blocks, b)
		}
		if c.err != nil {
			break
		}
	}
	return blocks
}

// place appends nodes to those of the definition and returns their block.
func (c *compiler) place(nodes []Node) Block {
	first := int32(len(c.def.nodes))
	c.def.nodes = append(c.def.nodes, nodes...)
	return Block{first, int32(len(c.def.nodes))}
}

// curve returns the curve of an easing: one of the definition's own easings, a
// built-in one, or a curve given as data; else linear.
func (c *compiler) curve(easing string) curve.Curve {
	if easing == "linear" && c.easings == nil {
		return curve.Curve{}
	}
	known, ok := c.curves[easing]
	if ok {
		return known
	}
	text := easing
	if own, ok := c.easings[easing]; ok {
		text = own
	}
	known, _ = curve.Parse(text)
	if c.curves == nil {
		c.curves = make(map[string]curve.Curve)
	}
	c.curves[easing] = known
	return known
}

func actionNode(action string, step signal.Value) Node {
	n := Node{Kind: NodeInstant, Action: action, Easing: "linear"}
	var target signal.Value
	for key, v := range step.Members() {
		switch key {
		case "action", "steps":
		case "entity":
			if v.Kind() != signal.KindNull {
				n.Entity = v
			}
		case "target":
			target = v
		case "delay":
			n.Delay = Nanoseconds(v)
		case "duration":
			if !AlwaysInstant(action) {
				n.Kind = NodeAnimated
			}
			n.Written, _ = v.Float64()
			n.Duration = Nanoseconds(v)
		case "easing":
			if name, ok := v.Text(); ok {
				n.Easing = name
			}
		case "when":
			if !isCondition(v) {
				n.Params = append(n.Params, Param{key, v})
			}
		default:
			n.Params = append(n.Params, Param{key, v})
		}
	}
	if n.Entity.Kind() == signal.KindAbsent && target.Kind() != signal.KindNull {
		n.Entity = target
	}
	_, n.Refers = Reference(n.Entity)
	for i := range n.Params {
		_, refers := Reference(n.Params[i].Value)
		n.Refers = n.Refers || refers
	}
	return n
}

// AlwaysInstant reports whether an action takes no time even if its step has a duration.
func AlwaysInstant(action string) bool {
	switch action {
	case "spawn", "destroy", "playSound", "setAnimation":
		return true
	}
	return false
}

// ActionOf returns the action of a step, "" if it has none.
func ActionOf(step signal.Value) string {
	s := step.TextOf("action")
	return s
}

// Nanoseconds converts milliseconds to nanoseconds, rounded. A value that is not a
// number above zero becomes zero, one that does not fit the largest int64.
func Nanoseconds(v signal.Value) int64 {
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

// Truthy reports whether JavaScript would convert v to true.
func Truthy(v signal.Value) bool {
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
