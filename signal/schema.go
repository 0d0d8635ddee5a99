package signal

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
)

//go:embed signal.schema.json
var schemaText string

// Schema returns the protocol's JSON Schema (draft 2020-12), which defines the valid
// signals.
func Schema() []byte { return []byte(schemaText) }

// ErrSchema is wrapped by the errors about signals that the schema refuses.
var ErrSchema = errors.New("not a valid signal")

// FieldError names the field for which the schema refuses a signal. It wraps
// [ErrSchema].
type FieldError struct {
	Path   string // JSON pointer from the envelope, like "/payload/toolName"; "" for the whole
	Reason string // the fault, like "is required"
}

func (e *FieldError) Error() string { return "signal: " + e.problem() }
func (e *FieldError) Unwrap() error { return ErrSchema }

// The reasons of a [FieldError]. [ParseLenient] keeps them as a signal's Problem,
// which is recorded, so they are part of the format of entry data: never reword
// them. The names in them come from [ValueKind.WithArticle] and the schema, clipped
// to 64 bytes where a sender wrote them.
const (
	problemEnum     = "%q is none of %s"
	problemKind     = "must be %s, not %s"
	problemFraction = "must be an integer, not %s"
	problemMinimum  = "must be at least %d, not %s"
	problemUnknown  = "is not a field of %s"
	problemRequired = "is required"
)

// problem returns the text kept as a signal's Problem.
func (e *FieldError) problem() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// under returns e, seen from the object that has the faulty value as its
// member name.
func (e *FieldError) under(name string) *FieldError {
	e.Path = "/" + jsonpointer.Escape(clip(name)) + e.Path
	return e
}

// Field is one field that the payload of a well-known type can have.
type Field struct {
	Name     string
	Kind     FieldKind
	Required bool

	// Enum lists the values that a string may have; nil if it may have any.
	Enum []string

	// Fields are those of an object of fixed form, like a position's x and y.
	// They are nil for an object whose content is free.
	Fields []Field
}

// FieldKind is the kind of value that a [Field] holds.
type FieldKind uint8

// The kinds of field. An integer is any whole number: 5.0 is one.
const (
	FieldString FieldKind = iota + 1
	FieldBool
	FieldInteger
	FieldNumber
	FieldObject
)

var fieldKinds = [...]struct{ name, article string }{
	FieldString:  {"string", "a"},
	FieldBool:    {"boolean", "a"},
	FieldInteger: {"integer", "an"},
	FieldNumber:  {"number", "a"},
	FieldObject:  {"object", "an"},
}

// String returns the kind's name in JSON Schema.
func (k FieldKind) String() string {
	if k == 0 || int(k) >= len(fieldKinds) {
		return "unknown"
	}
	return fieldKinds[k].name
}

// PayloadFields returns the fields of a well-known type's payload, in the
// schema's order; ok is false for any other type, whose payload is free. The
// caller must not change the result.
func PayloadFields(typ string) (fields []Field, ok bool) {
	r := protocol().payloads[typ]
	if r == nil {
		return nil, false
	}
	return r.fields(), true
}

// WellKnownTypes returns the 14 types whose payloads have a fixed form, in the
// schema's order.
func WellKnownTypes() []string { return slices.Clone(protocol().types) }

// protocol is the compiled schema, which checks every signal. It is compiled from
// the embedded file, so that there is one source of truth; a keyword that
// compileSchema does not support stops the program at the first check. A program that
// starts often and checks nothing, such as a hook, does not wait for it.
var protocol = sync.OnceValue(func() *ruleSet { return compileSchema(schemaText) })

// judge returns why the schema refuses an envelope, nil if it does not.
func judge(envelope Value) *FieldError {
	if e := protocol().envelope.check(envelope); e != nil {
		return e
	}
	typ, _ := envelope.Get("type")
	name, _ := typ.Text()
	payload, _ := envelope.Get("payload")
	return judgePayload(name, payload)
}

// judgePayload returns why the schema refuses the payload of a signal whose
// envelope is sound.
func judgePayload(typ string, payload Value) *FieldError {
	r := protocol().payloads[typ]
	if r == nil {
		return nil
	}
	if e := r.check(payload); e != nil {
		return e.under("payload")
	}
	return nil
}

// rule holds the constraints of one schema on one value.
type rule struct {
	title   string
	kind    FieldKind
	enum    []string // of a string; nil if any is allowed
	bounded bool     // minimum holds
	minimum int64
	members []member // of an object, if it is closed
	closed  bool     // no other members are allowed
}

type member struct {
	name     string
	rule     *rule
	required bool
}

func (r *rule) fields() []Field {
	var fields []Field
	for _, m := range r.members {
		fields = append(fields, Field{m.name, m.rule.kind, m.required, m.rule.enum, m.rule.fields()})
	}
	return fields
}

// check returns the first fault of v: a required member that is missing, else that
// of the first faulty member.
func (r *rule) check(v Value) *FieldError {
	switch k := v.Kind(); {
	case r.kind == FieldString && k == KindString:
		if text, _ := v.Text(); r.enum != nil && !slices.Contains(r.enum, text) {
			return &FieldError{"", fmt.Sprintf(problemEnum, clip(text), strings.Join(r.enum, ", "))}
		}
	case r.kind == FieldBool && k == KindBool:
	case (r.kind == FieldNumber || r.kind == FieldInteger) && k.IsNumber():
		return r.checkNumber(v)
	case r.kind == FieldObject && k == KindObject:
		return r.checkObject(v)
	default:
		want := fieldKinds[r.kind]
		return &FieldError{"", fmt.Sprintf(problemKind, want.article+" "+want.name, k.WithArticle())}
	}
	return nil
}

func (r *rule) checkNumber(v Value) *FieldError {
	n, _ := v.Number()
	f := n.Float64()
	if r.kind == FieldInteger && n.Kind() == KindFloat && f != math.Trunc(f) {
		return &FieldError{"", fmt.Sprintf(problemFraction, n)}
	}
	if r.bounded {
		low := false
		switch i, ok := n.Int64(); {
		case ok:
			low = i < r.minimum
		case n.Kind() == KindFloat:
			low = f < float64(r.minimum)
		}
		if low {
			return &FieldError{"", fmt.Sprintf(problemMinimum, r.minimum, n)}
		}
	}
	return nil
}

func (r *rule) checkObject(v Value) *FieldError {
	if !r.closed {
		return nil
	}
	var seen uint64
	var first *FieldError
	for name, value := range v.Members() {
		i := r.find(name)
		if i < 0 {
			if first == nil {
				first = (&FieldError{"", fmt.Sprintf(problemUnknown, r.title)}).under(name)
			}
			continue
		}
		seen |= 1 << i
		if first != nil {
			continue
		}
		if e := r.members[i].rule.check(value); e != nil {
			first = e.under(name)
		}
	}
	for i, m := range r.members {
		if m.required && seen&(1<<i) == 0 {
			return (&FieldError{"", problemRequired}).under(m.name)
		}
	}
	return first
}

func (r *rule) find(name string) int {
	for i := range r.members {
		if r.members[i].name == name {
			return i
		}
	}
	return -1
}

// WithArticle returns the kind's name as it stands in a sentence: "a string",
// "an object", "null"; "nothing" for the absent value. It is in the texts of
// [FieldError] and so part of the format of entry data.
func (k ValueKind) WithArticle() string {
	switch k {
	case KindNull:
		return k.String()
	case KindAbsent:
		return "nothing"
	case KindInt, KindUint, KindArray, KindObject:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}
