package choreography

import (
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// Condition is a condition by itself, with the meaning that a "when" has on a
// signal. The zero Condition always holds.
type Condition struct{ clause clause }

// CompileCondition reads a condition. What is none restricts nothing: judge it
// with [CheckCondition] before. The value must not be changed afterwards.
func CompileCondition(v signal.Value) Condition { return Condition{compileClause(v)} }

// Holds reports whether the condition holds for a signal, on a stage where there
// is nothing.
func (c Condition) Holds(r Resolver) bool {
	return c.clause.matches(&facts{signal: r.ofObject()})
}

// CheckCondition judges a condition on signals of a type, as [Parse] would, save
// that the stage cannot be asked. Of "", and of types that are not well-known,
// any field may be there. Each remark comes with the names and indexes that lead
// to what is meant, from the condition on; atName says that it is the name there.
func CheckCondition(on string, when signal.Value, remark func(s Severity, segments []string, atName bool, message string)) {
	var v validator
	// The stage comes first, so that it is not lost behind other remarks.
	switch when.Kind() {
	case signal.KindObject:
		v.offStage(nil, when)
	case signal.KindArray:
		i := 0
		for e := range when.Elements() {
			v.offStage((*path)(nil).element(i), e)
			i++
		}
	default:
	}
	v.when(nil, when, referencesOf(on))
	for _, f := range v.findings {
		remark(f.severity, f.Segments, f.AtName, f.message)
	}
	if v.full && v.refused {
		remark(Error, nil, false, "there is more, which is not listed")
	}
}

// offStage refuses the tests of the stage in one alternative.
func (v *validator) offStage(p *path, c signal.Value) {
	for way := range c.Members() {
		if strings.HasPrefix(way, stagePrefix) {
			v.add(Error, p.at(way), true, "the stage cannot be asked here")
		}
	}
}
