package lint

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// ask is one test of a condition: a path and its operators.
type ask struct {
	path string // without "signal."
	op   signal.Value
	at   *authored.Location
}

// lasting reports whether the result is the same during the whole performance. The
// stage changes, the signal does not.
func (a ask) lasting() bool { return !strings.HasPrefix(a.path, stagePrefix) }

// shown returns the path as an author would write it.
func (a ask) shown() string {
	if !a.lasting() {
		return a.path
	}
	return "signal." + a.path
}

const (
	signalPrefix = "signal."
	stagePrefix  = "stage:"
)

// conjunction is one alternative of a condition: all of its tests must hold.
type conjunction []ask

// clauseOf reads a condition as choreography does: a value that is neither an object
// nor an array of objects always holds. One alternative without tests always holds.
func clauseOf(v signal.Value, at *authored.Location) []conjunction {
	switch v.Kind() {
	case signal.KindObject:
		return []conjunction{conjunctionOf(v, at)}
	case signal.KindArray:
		var all []conjunction
		i := 0
		for e := range v.Elements() {
			c := conjunctionOf(e, at.Element(i))
			if len(c) == 0 {
				return []conjunction{nil}
			}
			all = append(all, c)
			i++
		}
		if len(all) > 0 {
			return all
		}
	default:
	}
	return []conjunction{nil}
}

func conjunctionOf(v signal.Value, at *authored.Location) conjunction {
	var c conjunction
	for path, op := range v.Members() {
		c = append(c, ask{strings.TrimPrefix(path, signalPrefix), op, at.At(path).Key()})
	}
	return c
}

// both returns the alternatives of two conditions that hold together, without the
// tests of the first that are not lasting. If there are too many it returns the
// second alone, which restricts less.
func both(first, second []conjunction) []conjunction {
	const most = 64
	if len(first)*len(second) > most {
		return second
	}
	var all []conjunction
	for _, a := range first {
		a = slices.DeleteFunc(slices.Clone(a), func(x ask) bool { return !x.lasting() })
		for _, b := range second {
			all = append(all, slices.Concat(a, b))
		}
	}
	return all
}

// clash is the reason why a conjunction can never hold.
type clash struct {
	rule string
	at   *authored.Location // of the last part that takes part in it
	why  string
}

// impossible returns why a conjunction can never hold of a signal of type on,
// nil if it may.
func (c conjunction) impossible(on string) *clash {
	var paths []string
	asks := map[string][]ask{}
	for _, a := range c {
		if asks[a.path] == nil {
			paths = append(paths, a.path)
		}
		asks[a.path] = append(asks[a.path], a)
	}
	for _, path := range paths {
		group := asks[path]
		last := group[len(group)-1]
		ops := operatorsOf(group)
		if anything.refuses(ops) {
			return &clash{ruleNever, last.at, fmt.Sprintf("%s: %s never %s", last.shown(), describe(ops), holdTogether(ops))}
		}
		if d, known := domainOf(on, path); known && d.refuses(ops) {
			return &clash{rulePayload, last.at, fmt.Sprintf("%s is %s: %s never %s", last.shown(), d, describe(ops), holdTogether(ops))}
		}
	}
	return nil
}

// operator is one operator of a condition, such as gt 5.
type operator struct {
	name    string
	operand signal.Value
	negated bool
}

var operatorNames = []string{"equals", "contains", "matches", "gt", "lt", "exists"}

// operatorsOf takes operators out of the objects they stand in. As in
// choreography, what stands beside a "not" is ignored.
func operatorsOf(group []ask) []operator {
	var ops []operator
	for _, a := range group {
		op, negated := a.op, false
		for {
			inner, ok := op.Get("not")
			if !ok {
				break
			}
			op, negated = inner, !negated
		}
		if negated && op.Len() > 1 {
			continue // not (a and b) holds if either fails
		}
		for name, operand := range op.Members() {
			text, _ := operand.Text()
			switch k := operand.Kind(); {
			case k == signal.KindArray, k == signal.KindObject: // Parse has reported it
			case !slices.Contains(operatorNames, name):
			case isPlaceholder(text): // its value is unknown here
			default:
				ops = append(ops, operator{name, operand, negated})
			}
		}
	}
	return ops
}

func describe(ops []operator) string {
	var parts []string
	for _, op := range ops {
		part := op.name + " " + wording.Clip(op.operand.String(), 60)
		if op.negated {
			part = "not " + part
		}
		parts = append(parts, part)
	}
	if n := len(parts) - 1; n > 0 {
		return strings.Join(parts[:n], ", ") + " and " + parts[n]
	}
	return strings.Join(parts, "")
}

func holdTogether(ops []operator) string {
	if len(ops) > 1 {
		return "hold together"
	}
	return "holds"
}

// kinds is a set of kinds of value.
type kinds uint8

const (
	isAbsent kinds = 1 << iota
	isNull
	isBool
	isNumber
	isString
	isOther // array or object

	nothing   = isAbsent | isNull
	isAnyKind = nothing | isBool | isNumber | isString | isOther
)

// domain is the set of values that a path can have.
type domain struct {
	kinds   kinds
	enum    []string // the strings there can be; nil: any
	integer bool     // the numbers are whole
}

var anything = domain{kinds: isAnyKind}

// String describes d, as the text after "is".
func (d domain) String() string {
	text := "an object"
	switch {
	case d.enum != nil:
		text = "one of " + strings.Join(d.enum, ", ")
		if len(d.enum) == 1 {
			text = fmt.Sprintf("%q", d.enum[0])
		}
	case d.kinds&isBool != 0:
		text = "a boolean"
	case d.kinds&isString != 0:
		text = "a string"
	case d.integer:
		text = "an integer"
	case d.kinds&isNumber != 0:
		text = "a number"
	}
	if d.kinds&isAbsent == 0 {
		text += " and always there"
	}
	return text
}

// domainOf returns the domain of a path into the payload of a well-known type or
// into the stage; false if any value is possible, or if the path does not exist,
// which Parse reports.
func domainOf(on, path string) (domain, bool) {
	if path == "type" && on != "" {
		return domain{kinds: isString, enum: []string{on}}, true
	}
	if asked, ok := strings.CutPrefix(path, stagePrefix); ok {
		kind, known := shown[asked[strings.LastIndexByte(asked, '.')+1:]]
		return domain{kinds: kind | isAbsent}, known
	}
	fields, known := signal.PayloadFields(on)
	if !known {
		return domain{}, false
	}
	var d domain
	optional := kinds(0)
	for name := range strings.SplitSeq(path, ".") {
		i := slices.IndexFunc(fields, func(f signal.Field) bool { return f.Name == name })
		if i < 0 {
			return domain{}, false
		}
		f := fields[i]
		if !f.Required {
			optional = isAbsent
		}
		switch f.Kind {
		case signal.FieldString:
			d = domain{kinds: isString, enum: f.Enum}
		case signal.FieldBool:
			d = domain{kinds: isBool}
		case signal.FieldInteger:
			d = domain{kinds: isNumber, integer: true}
		case signal.FieldNumber:
			d = domain{kinds: isNumber}
		default:
			d = domain{kinds: isOther}
		}
		fields = f.Fields
	}
	d.kinds |= optional
	return d, true
}

// refuses reports whether no value of d passes all operators. It returns false if it
// cannot decide.
func (d domain) refuses(ops []operator) bool {
	if len(ops) == 0 {
		return false
	}
	left := d.kinds
	for _, op := range ops {
		left &= op.kinds()
	}
	if left == 0 {
		return true
	}
	if candidates, all := d.candidates(left, ops); all {
		return !slices.ContainsFunc(candidates, func(v signal.Value) bool { return passes(v, ops) })
	}
	return left == isNumber && noNumber(ops, d.integer)
}

// kinds returns the kinds of value that an operator can hold of.
func (op operator) kinds() kinds {
	if op.name == "exists" {
		if yes, _ := op.operand.Bool(); yes != op.negated {
			return isAnyKind &^ nothing
		}
		return nothing
	}
	if op.negated {
		return isAnyKind
	}
	switch op.name {
	case "contains", "matches":
		return isString
	case "gt", "lt":
		return isNumber
	case "equals":
		return kindOf(op.operand)
	}
	return isAnyKind
}

func kindOf(v signal.Value) kinds {
	switch k := v.Kind(); {
	case k == signal.KindAbsent:
		return isAbsent
	case k == signal.KindNull:
		return isNull
	case k == signal.KindBool:
		return isBool
	case k.IsNumber():
		return isNumber
	case k == signal.KindString:
		return isString
	}
	return isOther
}

// candidates returns values of some kinds such that one of them passes if any value
// passes. All is false if there are too many.
func (d domain) candidates(left kinds, ops []operator) (values []signal.Value, all bool) {
	for _, op := range ops {
		if op.name == "equals" && !op.negated {
			// Nothing else can pass.
			if text, is := op.operand.Text(); is && d.enum != nil && !slices.Contains(d.enum, text) {
				return nil, true
			}
			if d.integer {
				if f, _ := op.operand.Float64(); f != math.Trunc(f) {
					return nil, true
				}
			}
			return []signal.Value{op.operand}, true
		}
	}
	if left&isNumber != 0 || left&isOther != 0 || left&isString != 0 && d.enum == nil {
		return nil, false
	}
	if left&isAbsent != 0 {
		values = append(values, nil)
	}
	if left&isNull != 0 {
		values = append(values, value("null"))
	}
	if left&isBool != 0 {
		values = append(values, value("false"), value("true"))
	}
	if left&isString != 0 {
		for _, text := range d.enum {
			values = append(values, value(fmt.Sprintf("%q", text)))
		}
	}
	return values, true
}

// value parses a JSON constant.
func value(json string) signal.Value {
	v, err := signal.ParseValue([]byte(json))
	if err != nil {
		panic("lint: " + json + " is no JSON")
	}
	return v
}

// passes evaluates operators on a value with the engine's own code.
func passes(v signal.Value, ops []operator) bool {
	payload := `{}`
	if v != nil {
		payload = `{"v":` + v.String() + `}`
	}
	sig := &signal.Signal{Type: "t", Payload: value(payload)}
	for _, op := range ops {
		test := fmt.Sprintf(`{"%s":%s}`, op.name, op.operand)
		if op.negated {
			test = `{"not":` + test + `}`
		}
		d, err := definition.Compile(value(`{"on":"t","steps":[],"when":{"v":` + test + `}}`))
		if err != nil || !d.Matches(sig) {
			return false
		}
	}
	return true
}

// noNumber reports whether no number fulfils both the gt and the lt operators.
func noNumber(ops []operator, integer bool) bool {
	low, high := math.Inf(-1), math.Inf(1)
	for _, op := range ops {
		n, ok := op.operand.Float64()
		if !ok || op.negated {
			continue
		}
		switch op.name {
		case "gt":
			low = max(low, n)
		case "lt":
			high = min(high, n)
		}
	}
	if integer {
		return math.Floor(low)+1 >= high
	}
	return low >= high
}
