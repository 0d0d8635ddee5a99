package language

import (
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// The prefixes and names of placeholders.
const (
	paramPrefix = "param."
	eachPrefix  = "each."
	eachItem    = "each.item"
	eachIndex   = "each.index"
)

// scope holds the values of the placeholders of a step. A sequence sees only its own
// arguments, and the items of the staggers around a step in it.
type scope struct {
	sequence string // "" outside of sequences
	params   []definition.Param

	item, index signal.Value // absent outside of each
}

// value returns the value of a placeholder, or v itself if it is not one.
func (x *expansion) value(v signal.Value, sc *scope) signal.Value {
	text, ok := v.Text()
	if !ok {
		return v
	}
	if name, ok := strings.CutPrefix(text, paramPrefix); ok && sc.sequence != "" && isParamName(name) {
		for _, p := range sc.params {
			if p.Name == name {
				return p.Value
			}
		}
		x.fail(reasonUnlistedParam, wording.Quoted(sc.sequence), name)
		return v
	}
	switch {
	case text == eachItem && sc.item != nil:
		return sc.item
	case text == eachIndex && sc.index != nil:
		return sc.index
	}
	return v
}

// object appends a step with its placeholders replaced. Inside, unless nil, appends
// its steps.
func (x *expansion) object(dst []byte, step signal.Value, sc *scope, inside func([]byte, signal.Value) []byte) []byte {
	if step.Kind() != signal.KindObject {
		return append(dst, step...) // not a step; kept as it is
	}
	dst = msgp.AppendMapHeader(dst, uint32(step.Len()))
	for name, v := range step.Members() {
		if x.full(dst) {
			break
		}
		dst = msgp.AppendString(dst, name)
		switch {
		case name == "steps" && inside != nil && v.Kind() == signal.KindArray:
			dst = inside(dst, v)
		case name == "when":
			dst = x.when(dst, v, sc)
		case name == "guard":
			dst = x.members(dst, v, sc)
		case name == "action":
			dst = append(dst, v...)
		default:
			dst = append(dst, x.value(v, sc)...)
		}
	}
	return dst
}

// members appends an object with the placeholders directly in it replaced.
func (x *expansion) members(dst []byte, v signal.Value, sc *scope) []byte {
	if v.Kind() != signal.KindObject {
		return append(dst, x.value(v, sc)...)
	}
	dst = msgp.AppendMapHeader(dst, uint32(v.Len()))
	for name, e := range v.Members() {
		if x.full(dst) {
			break
		}
		dst = msgp.AppendString(dst, name)
		dst = append(dst, x.value(e, sc)...)
	}
	return dst
}

// when appends a condition. A placeholder may be the entity of a condition on the
// stage, or an operand.
func (x *expansion) when(dst []byte, v signal.Value, sc *scope) []byte {
	switch v.Kind() {
	case signal.KindArray:
		return list(dst, func(dst []byte) ([]byte, int) {
			n := 0
			for e := range v.Elements() {
				if x.full(dst) {
					break
				}
				dst = x.when(dst, e, sc)
				n++
			}
			return dst, n
		})
	case signal.KindObject:
		dst = msgp.AppendMapHeader(dst, uint32(v.Len()))
		for path, op := range v.Members() {
			if x.full(dst) {
				break
			}
			dst = msgp.AppendString(dst, x.path(path, sc))
			dst = x.operator(dst, op, sc)
		}
		return dst
	default:
		return append(dst, x.value(v, sc)...)
	}
}

func (x *expansion) operator(dst []byte, op signal.Value, sc *scope) []byte {
	if op.Kind() != signal.KindObject {
		return append(dst, x.value(op, sc)...)
	}
	dst = msgp.AppendMapHeader(dst, uint32(op.Len()))
	for name, operand := range op.Members() {
		if x.full(dst) {
			break
		}
		dst = msgp.AppendString(dst, name)
		dst = x.operator(dst, operand, sc)
	}
	return dst
}

// path replaces a placeholder that is the entity of a condition on the stage.
func (x *expansion) path(path string, sc *scope) string {
	rest, ok := strings.CutPrefix(path, definition.StagePrefix)
	if !ok {
		return path
	}
	placeholder, property, ok := cutPlaceholder(rest)
	if !ok {
		return path
	}
	written := msgp.AppendString(nil, placeholder)
	v := x.value(written, sc)
	entity, ok := v.Text()
	if !ok {
		x.fail(reasonNotAName, placeholder, v.Kind().WithArticle())
	}
	return definition.StagePrefix + entity + "." + property
}

// cutPlaceholder splits "param.NAME.PROPERTY" and "each.NAME.PROPERTY" before PROPERTY.
func cutPlaceholder(path string) (placeholder, property string, ok bool) {
	if !strings.HasPrefix(path, paramPrefix) && !strings.HasPrefix(path, eachPrefix) {
		return "", "", false
	}
	first, rest, _ := strings.Cut(path, ".")
	name, property, ok := strings.Cut(rest, ".")
	return first + "." + name, property, ok
}
