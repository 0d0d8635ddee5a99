package definition

import (
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// RefPrefix begins every reference to the signal.
const RefPrefix = "signal."

// Resolver resolves the references of a step against one signal.
//
// A reference is a string that begins with "signal.". "signal.type" is the
// signal's type; any other path is looked up in the payload, objects by key and
// arrays by index. References do not reach the rest of the envelope.
type Resolver struct {
	Type    string
	Payload signal.Value // an object
}

// Lookup returns the value at a path (a reference without "signal."); false if there
// is none.
func (r Resolver) Lookup(path string) (signal.Value, bool) {
	if path == "type" {
		return msgp.AppendString(nil, r.Type), true
	}
	if len(r.Payload) == 0 {
		return nil, false
	}
	return r.Payload.Lookup(path)
}

// Resolve returns the value that v refers to, or v itself if it is not a reference;
// false if that value is missing. A parameter that a binding computes from the payload
// counts as a reference.
func (r Resolver) Resolve(v signal.Value) (signal.Value, bool) {
	path, ok := Reference(v)
	if !ok {
		if found, ok := compute(v, r.Payload); ok {
			return found, found != nil
		}
		return v, true
	}
	return r.Lookup(path)
}

// OfObject returns r without a payload that is not an object, as cues keep it.
func (r Resolver) OfObject() Resolver {
	if r.Payload.Kind() != signal.KindObject {
		r.Payload = nil
	}
	return r
}

// Entity resolves an entity reference; a value that is not a string becomes "".
func (r Resolver) Entity(v signal.Value) string {
	v, _ = r.Resolve(v)
	s, _ := v.Text()
	return s
}

// Params resolves the parameters of a step. It omits those whose reference is missing.
func (r Resolver) Params(ps []Param) map[string]any {
	m := make(map[string]any, len(ps))
	for _, p := range ps {
		if v, ok := r.Resolve(p.Value); ok {
			m[p.Name] = v.Any()
		}
	}
	return m
}

// Reference returns the path of a reference.
func Reference(v signal.Value) (path string, ok bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	return strings.CutPrefix(s, RefPrefix)
}
