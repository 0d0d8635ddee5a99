package definition

import (
	"slices"

	"github.com/sajou-dev/sajou-go/signal"
)

// Limits of guards.
const (
	// MaxGuarded bounds the names of one guard.
	MaxGuarded = 16
	// MaxWaiting bounds how many performances wait for one name.
	MaxWaiting = 10_000
)

// Guard is a compiled "guard". Without names it has no effect.
type Guard struct {
	names  []signal.Value // strings, with unresolved references
	refers bool           // a name is a reference
	Policy GuardPolicy
}

// GuardPolicy says what happens to a performance whose names are taken.
type GuardPolicy uint8

// The policies of a guard.
const (
	GuardQueue GuardPolicy = iota
	GuardSkip
	GuardPreempt
)

// policyNames holds the written form of each policy.
var policyNames = [...]string{GuardQueue: "queue", GuardSkip: "skip", GuardPreempt: "preempt"}

// compileGuard compiles a guard. A value that is not an object has no names, a name
// that is not a string is dropped, and an unknown policy is "queue".
func compileGuard(v signal.Value) (Guard, error) {
	var g Guard
	if v.Kind() != signal.KindObject {
		return g, nil
	}
	switch entity := v.Member("entity"); entity.Kind() {
	case signal.KindString:
		g.names = []signal.Value{entity}
	case signal.KindArray:
		for e := range entity.Elements() {
			if e.Kind() == signal.KindString {
				g.names = append(g.names, e)
			}
		}
	default:
	}
	if len(g.names) > MaxGuarded {
		return Guard{}, refused(reasonGuarded, MaxGuarded)
	}
	for _, name := range g.names {
		_, ok := Reference(name)
		g.refers = g.refers || ok
	}
	name := v.TextOf("policy")
	g.Policy = GuardPolicy(max(0, slices.Index(policyNames[:], name)))
	return g, nil
}

// AppendNames appends the names of g for a signal, each once.
func (g *Guard) AppendNames(names []string, r Resolver) []string {
	for _, v := range g.names {
		if name := r.Entity(v); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Refers reports whether a name of g is a reference.
func (g *Guard) Refers() bool { return g.refers }

// Names returns the names of g as they were written. The list must not be changed.
func (g *Guard) Names() []signal.Value { return g.names }

// GuardPolicies returns the written forms of the policies.
func GuardPolicies() []string { return slices.Clone(policyNames[:]) }
