package choreography

import (
	"regexp"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// clause is a compiled "when": any of its conjunctions must hold. The zero
// value always holds.
type clause struct {
	any  []conjunction
	also *clause // must hold too; a binding has its choreography's condition beside its own
}

// conjunction holds when all of its tests do.
type conjunction []test

// stagePrefix begins every path of a condition that asks the stage.
const stagePrefix = "stage:"

// test is one entry of a condition, "path: operator".
type test struct {
	path    string // into the payload; of a test of the stage, the property
	stage   bool   // asks the stage
	refers  bool   // the entity is to be looked up in the signal
	entity  string // asked on the stage, or the path to it
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

// pattern is a compiled regular expression; nil matches nothing.
type pattern struct{ re *regexp.Regexp }

// facts is what a condition can ask: a signal, and the stage as it is now.
type facts struct {
	signal Resolver
	world  World // nil: there is nothing on the stage
	at     time.Duration
}

// look returns what t asks for, absent if there is no such thing.
func (f *facts) look(t *test) signal.Value {
	if !t.stage {
		v, _ := f.signal.Lookup(t.path)
		return v
	}
	entity := t.entity
	if t.refers {
		v, _ := f.signal.Lookup(entity)
		entity, _ = v.Text()
	}
	if f.world == nil || entity == "" || t.path == "" {
		return nil
	}
	v, ok := f.world.Property(entity, t.path, f.at)
	if !ok {
		return nil
	}
	return v
}

// isCondition reports whether the "when" of a step is a condition: an object
// whose members all have operators, or a list of such objects. Anything else is
// a parameter, as in definitions from before steps had conditions.
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

// compileClause reads a condition. Whatever is no object, or no array of
// objects, restricts nothing.
func compileClause(v signal.Value) clause {
	switch v.Kind() {
	case signal.KindObject:
		if c := compileConjunction(v); len(c) > 0 {
			return clause{any: []conjunction{c}}
		}
	case signal.KindArray:
		var alternatives []conjunction
		for e := range v.Elements() {
			c := compileConjunction(e)
			if len(c) == 0 {
				return clause{} // one alternative always holds
			}
			alternatives = append(alternatives, c)
		}
		return clause{any: alternatives}
	default:
	}
	return clause{}
}

func compileConjunction(v signal.Value) conjunction {
	if v.Kind() != signal.KindObject {
		return nil
	}
	var c conjunction
	for path, op := range v.Members() {
		t := test{path: strings.TrimPrefix(path, refPrefix)}
		if asked, ok := strings.CutPrefix(path, stagePrefix); ok {
			t.stage = true
			t.entity, t.path = asked, ""
			if dot := strings.LastIndexByte(asked, '.'); dot >= 0 {
				t.entity, t.path = asked[:dot], asked[dot+1:]
			}
			t.entity, t.refers = strings.CutPrefix(t.entity, refPrefix)
		}
		// The siblings of a "not" are ignored, as the original does.
		for op.Kind() == signal.KindObject {
			inner, ok := op.Get("not")
			if !ok {
				break
			}
			t.negated = !t.negated
			op = inner
		}
		t.operators(op)
		c = append(c, t)
	}
	return c
}

func (t *test) operators(op signal.Value) {
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
				t.matches.re, _ = compilePattern(text)
			}
		case "gt":
			t.gt = operand
		case "lt":
			t.lt = operand
		case "exists":
			t.exists = existsNo
			if truthy(operand) {
				t.exists = existsYes
			}
		}
	}
}

// matches reports whether the condition holds.
func (c clause) matches(f *facts) bool {
	if c.also != nil && !c.also.matches(f) {
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

func (c conjunction) matches(f *facts) bool {
	for i := range c {
		t := &c[i]
		if t.holds(f.look(t)) == t.negated {
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
		if !ok || !isText || !strings.Contains(text, part) {
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

// strictlyEqual is JavaScript's ===, save that integers are compared exactly.
// Objects and arrays are never equal to anything.
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

// compareNumbers orders two numbers; false when either is none.
func compareNumbers(v, w signal.Value) (order int, ok bool) {
	if a, ok := v.Int64(); ok && v.Kind() == signal.KindInt {
		if b, ok := w.Int64(); ok && w.Kind() == signal.KindInt {
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

// stepWhen judges the condition of a step that has no parameters.
func (v *validator) stepWhen(p *path, step signal.Value, refs references) {
	if w, ok := step.Get("when"); ok {
		v.when(p.at("when"), w, refs)
	}
}

// stagePath judges what stands behind "stage:" in a condition.
func (v *validator) stagePath(p *path, asked string, refs references) {
	dot := strings.LastIndexByte(asked, '.')
	if dot <= 0 || dot == len(asked)-1 || asked[:dot+1] == refPrefix {
		v.add(Error, p, true, "%s names no property of an entity: write stage:ENTITY.PROPERTY", wording.Quoted(stagePrefix+asked))
		return
	}
	if way, ok := strings.CutPrefix(asked[:dot], refPrefix); ok {
		if f := v.way(p, true, way, refs); f != nil && f.Kind != signal.FieldString {
			v.add(Warning, p, true, "signal.%s has no text for a name: the field is of kind %s", way, f.Kind)
		}
	}
}
