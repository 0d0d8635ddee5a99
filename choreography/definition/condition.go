package definition

import (
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/internal/find"
	"github.com/sajou-dev/sajou-go/signal"
)

// Condition is a compiled "when": any of its conjunctions must hold. The zero
// value always holds.
type Condition struct {
	any  []conjunction
	also *Condition // must hold too; a binding has its choreography's condition beside its own
}

// conjunction holds when all of its tests do.
type conjunction []test

// StagePrefix begins every path of a condition on the stage.
const StagePrefix = "stage:"

// test is one entry of a condition, "path: operator".
type test struct {
	path    string // into the payload; of a test of the stage, the property
	stage   bool   // tests the stage
	refers  bool   // the entity is to be looked up in the signal
	entity  string // the entity on the stage, or the path to its name in the signal
	negated bool   // the operator stood inside an odd number of "not"

	// All operators that are present must hold.
	equals   signal.Value // absent: no such operator
	contains signal.Value
	gt, lt   signal.Value
	matches  *pattern
	exists   existence
}

type existence uint8

const (
	existsUnasked existence = iota
	existsYes
	existsNo
)

// Facts are the input of a condition: a signal, and the stage at the present instant.
type Facts struct {
	Signal Resolver
	Stage  StageView // nil: the stage is empty
	At     time.Duration

	Matching *int // the cost of matching so far, see [freeMatching]; nil: it is not added up
}

// affords reports whether v may be matched with a pattern, and adds up the cost.
func (f *Facts) affords(p *pattern, v signal.Value) bool {
	text, ok := v.Text()
	if !ok || p.re == nil {
		return true
	}
	work := p.size * len(text)
	switch {
	case work <= freeMatching:
		return true
	case work > maxMatching:
		return false
	case f.Matching == nil:
		return true
	case *f.Matching+work > MaxMatchingOfSignal:
		return false
	}
	*f.Matching += work
	return true
}

// look returns the value that t tests, absent if it does not exist.
func (f *Facts) look(t *test) signal.Value {
	if !t.stage {
		v, _ := f.Signal.Lookup(t.path)
		return v
	}
	entity := t.entity
	if t.refers {
		v, _ := f.Signal.Lookup(entity)
		entity, _ = v.Text()
	}
	if f.Stage == nil || entity == "" || t.path == "" {
		return nil
	}
	v, ok := f.Stage.Property(entity, t.path, f.At)
	if !ok {
		return nil
	}
	return v
}

// isCondition reports whether the "when" of a step is a condition: an object whose
// members are all objects, or a list of such objects. Anything else is a parameter,
// as in definitions written before steps had conditions.
func isCondition(v signal.Value) bool {
	switch v.Kind() {
	case signal.KindObject:
		for _, op := range v.Members() {
			if op.Kind() != signal.KindObject {
				return false
			}
		}
		return true
	case signal.KindArray:
		for e := range v.Elements() {
			if e.Kind() != signal.KindObject || !isCondition(e) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// patterns holds the patterns of one definition by their texts, so that each is
// compiled once.
type patterns map[string]*pattern

// of returns the pattern of a text.
func (ps patterns) of(text string) *pattern {
	p := ps[text]
	if p == nil {
		p = &pattern{size: patternSize(text)}
		p.re, _ = CompilePattern(text)
		ps[text] = p
	}
	return p
}

// condition compiles a condition. A value that is neither an object nor an array of
// objects always holds.
func (ps patterns) condition(v signal.Value) Condition {
	switch v.Kind() {
	case signal.KindObject:
		if c := ps.conjunction(v); len(c) > 0 {
			return Condition{any: []conjunction{c}}
		}
	case signal.KindArray:
		var alternatives []conjunction
		for e := range v.Elements() {
			c := ps.conjunction(e)
			if len(c) == 0 {
				return Condition{} // this alternative always holds
			}
			alternatives = append(alternatives, c)
		}
		return Condition{any: alternatives}
	default:
	}
	return Condition{}
}

func (ps patterns) conjunction(v signal.Value) conjunction {
	if v.Kind() != signal.KindObject {
		return nil
	}
	var c conjunction
	for path, op := range v.Members() {
		t := test{path: strings.TrimPrefix(path, RefPrefix)}
		if asked, ok := strings.CutPrefix(path, StagePrefix); ok {
			t.stage = true
			t.entity, t.path = asked, ""
			if dot := strings.LastIndexByte(asked, '.'); dot >= 0 {
				t.entity, t.path = asked[:dot], asked[dot+1:]
			}
			t.entity, t.refers = strings.CutPrefix(t.entity, RefPrefix)
		}
		// The operators beside "not" are ignored, as the runtime that recorded logs did.
		for op.Kind() == signal.KindObject {
			inner, ok := op.Get("not")
			if !ok {
				break
			}
			t.negated = !t.negated
			op = inner
		}
		t.operators(op, ps)
		c = append(c, t)
	}
	return c
}

func (t *test) operators(op signal.Value, ps patterns) {
	if op.Kind() != signal.KindObject {
		return
	}
	for name, operand := range op.Members() {
		switch name {
		case "equals":
			t.equals = operand
		case "contains":
			t.contains = operand
		case "matches":
			t.matches = new(pattern)
			if text, ok := operand.Text(); ok {
				t.matches = ps.of(text)
			}
		case "gt":
			t.gt = operand
		case "lt":
			t.lt = operand
		case "exists":
			t.exists = existsNo
			if Truthy(operand) {
				t.exists = existsYes
			}
		}
	}
}

// Matches reports whether the condition holds for the facts.
func (c Condition) Matches(f *Facts) bool {
	if c.also != nil && !c.also.Matches(f) {
		return false
	}
	if len(c.any) == 0 {
		return true
	}
	for _, all := range c.any {
		if all.matches(f) {
			return true
		}
	}
	return false
}

func (c conjunction) matches(f *Facts) bool {
	for i := range c {
		t := &c[i]
		v := f.look(t)
		if t.matches != nil && !f.affords(t.matches, v) || t.holds(v) == t.negated {
			return false
		}
	}
	return true
}

// holds applies the operators to v, absent when the path leads nowhere.
func (t *test) holds(v signal.Value) bool {
	kind := v.Kind()
	if t.equals != nil && !strictlyEqual(v, t.equals) {
		return false
	}
	if t.exists != existsUnasked {
		exists := kind != signal.KindAbsent && kind != signal.KindNull
		if exists != (t.exists == existsYes) {
			return false
		}
	}
	if t.contains != nil {
		text, ok := v.Text()
		part, isText := t.contains.Text()
		if !ok || !isText || !find.Contains(text, part) {
			return false
		}
	}
	if t.matches != nil {
		text, ok := v.Text()
		if !ok || t.matches.re == nil || !t.matches.re.MatchString(text) {
			return false
		}
	}
	if t.gt != nil {
		if order, ok := compareNumbers(v, t.gt); !ok || order <= 0 {
			return false
		}
	}
	if t.lt != nil {
		if order, ok := compareNumbers(v, t.lt); !ok || order >= 0 {
			return false
		}
	}
	return true
}

// strictlyEqual is JavaScript's ===, except that integers are compared exactly.
// Objects and arrays equal nothing.
func strictlyEqual(v, w signal.Value) bool {
	kind := v.Kind()
	switch kind {
	case signal.KindNull:
		return w.Kind() == signal.KindNull
	case signal.KindBool:
		b, _ := v.Bool()
		c, ok := w.Bool()
		return ok && b == c
	case signal.KindString:
		s, _ := v.Text()
		u, ok := w.Text()
		return ok && s == u
	case signal.KindInt, signal.KindUint, signal.KindFloat:
		order, ok := compareNumbers(v, w)
		return ok && order == 0
	default:
		return false
	}
}

// compareNumbers orders two numbers; ok is false if either is not a number.
func compareNumbers(v, w signal.Value) (order int, ok bool) {
	if a, ok := v.Int64(); ok {
		if b, ok := w.Int64(); ok {
			return compare(a, b), true
		}
	}
	a, ok := v.Float64()
	if !ok {
		return 0, false
	}
	b, ok := w.Float64()
	if !ok {
		return 0, false
	}
	return compare(a, b), true
}

func compare[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// CompileCondition compiles a condition. A value that is not a condition always
// holds; CheckCondition of package language reports it. The caller must not change
// the value afterwards.
func CompileCondition(v signal.Value) Condition { return patterns{}.condition(v) }

// Holds reports whether the condition holds for a signal and an empty stage.
func (c Condition) Holds(r Resolver) bool {
	return c.Matches(&Facts{Signal: r.OfObject()})
}

// StageView answers the conditions on the stage.
type StageView interface {
	// Property returns a property of an entity at the present instant, by its name
	// in the views of the stage; false if it does not exist. By then the
	// choreography's ActObserver has received everything before this instant in the
	// order of commands, and nothing after it.
	Property(entity, property string, at time.Duration) (signal.Value, bool)
}
