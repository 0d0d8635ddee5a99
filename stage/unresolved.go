package stage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Unresolved is the first occurrence of a reference that led to nothing in the payload
// of its signal. ADR-002 calls for a warning of it.
type Unresolved struct {
	At          time.Duration // session time of the first occurrence
	Performance string        // the performance in which it occurred
	Signal      uint64        // the number of the entry whose signal made the performance
	Definition  string        // the id of the choreography, or else the signal type that starts it
	Action      string        // of the step, or "guard"
	Member      string        // "entity", or the name of the parameter
	Reference   string        // as it was written, such as "signal.extra"
}

// String describes u in a sentence.
func (u Unresolved) String() string {
	return fmt.Sprintf("%s of %s in %s: the payload has no %s", u.Member, u.Action, u.Definition, u.Reference)
}

// unresolved is an [Unresolved] of the state. Its place is the slot of the definition
// with the action, the member and the reference: it is reported once.
type unresolved struct {
	place
	at          time.Duration
	performance performanceKey
	definition  string
}

type place struct {
	slot                      int32
	action, member, reference string
}

// IgnoreUnresolved has s note no reference that does not resolve, as the stages of
// earlier programs did. It must be called before the first act, and again on a restored
// stage, whose state does not hold it.
func (s *Stage) IgnoreUnresolved() { s.ignoresUnresolved = true }

// warnUnresolved notes the references of the current act that do not resolve.
func (s *Stage) warnUnresolved() {
	if s.ignoresUnresolved {
		return
	}
	s.unresolved = s.current.Act.AppendUnresolved(s.unresolved[:0])
	for _, ref := range s.unresolved {
		s.diagnostics.unresolve(ref, s)
	}
	clear(s.unresolved) // the texts lie in the memory of definitions
}

func (d *diagnostics) unresolve(ref choreography.UnresolvedReference, s *Stage) {
	at := place{ref.Slot, wording.Truncate(ref.Action, maxDetail), wording.Truncate(ref.Member, maxDetail), wording.Truncate(ref.Reference, maxDetail)}
	if len(d.unresolved) == maxUnresolved || d.isUnresolved(at) {
		return
	}
	// The state keeps copies, so that it holds no definition in memory.
	at.action, at.member, at.reference = strings.Clone(at.action), strings.Clone(at.member), strings.Clone(at.reference)
	d.unresolved = append(d.unresolved, unresolved{
		place: at, at: s.now, performance: s.performance(), definition: strings.Clone(wording.Truncate(ref.Definition, maxDetail)),
	})
}

// isUnresolved reports whether a place was reported. A definition that replaces
// another has its slot: a place is reported again there if its reference is another.
func (d *diagnostics) isUnresolved(at place) bool {
	return slices.ContainsFunc(d.unresolved, func(u unresolved) bool { return u.place == at })
}

// Unresolved returns the references that did not resolve, from number from on, in the
// order of their first occurrences: each place in a definition once. There are at most
// 256.
func (s *Stage) Unresolved(from int) []Unresolved {
	all := s.diagnostics.unresolved
	var list []Unresolved
	for i := from; i < len(all); i++ {
		u := &all[i]
		list = append(list, Unresolved{u.at, u.performance.String(), u.performance.seq, u.definition, u.action, u.member, u.reference})
	}
	return list
}
