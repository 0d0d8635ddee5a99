package choreography

import (
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// refPrefix begins every reference to the signal, exactly as written here.
const refPrefix = "signal."

// Resolver resolves the references of a step against one signal.
//
// A reference is a string that begins with "signal.". "signal.type" is the
// signal's type; any other path is looked up in the payload, objects by key and
// arrays by index. The rest of the envelope cannot be reached.
type Resolver struct {
	Type    string
	Payload signal.Value // an object
}

// Lookup returns what a path (a reference without "signal.") stands for; false
// when there is no such thing.
func (r Resolver) Lookup(path string) (signal.Value, bool) {
	if path == "type" {
		return msgp.AppendString(nil, r.Type), true
	}
	if len(r.Payload) == 0 {
		return nil, false
	}
	return r.Payload.Lookup(path)
}

// Resolve returns v itself, or what it stands for if v is a reference; false
// when that is missing. What a binding computes of the payload is a reference
// too.
func (r Resolver) Resolve(v signal.Value) (signal.Value, bool) {
	path, ok := reference(v)
	if !ok {
		if found, ok := compute(v, r.Payload); ok {
			return found, found != nil
		}
		return v, true
	}
	return r.Lookup(path)
}

// ofObject returns r without a payload that is no object, as cues keep it.
func (r Resolver) ofObject() Resolver {
	if r.Payload.Kind() != signal.KindObject {
		r.Payload = nil
	}
	return r
}

// entity resolves an entity reference; whatever is no string is "".
func (r Resolver) entity(v signal.Value) string {
	v, _ = r.Resolve(v)
	s, _ := v.Text()
	return s
}

// params resolves the parameters of a step; a missing reference is left out.
func (r Resolver) params(ps []param) map[string]any {
	m := make(map[string]any, len(ps))
	for _, p := range ps {
		if v, ok := r.Resolve(p.value); ok {
			m[p.name] = v.Any()
		}
	}
	return m
}

// reference returns the path of a reference.
func reference(v signal.Value) (path string, ok bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	return strings.CutPrefix(s, refPrefix)
}
