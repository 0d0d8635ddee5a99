package choreography

import (
	"iter"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
)

// Performance returns the id of the act's performance, as commands have it.
func (a *Act) Performance() string { return a.p.ID() }

// Handler reports whether the act is one of those that follow an interruption.
func (a *Act) Handler() bool { return a.p.handler }

// Correlation returns the correlation id by which the performance can be
// interrupted; false if there is none, as in a handler.
func (a *Act) Correlation() (id string, ok bool) {
	if a.p.chain == nil {
		return "", false
	}
	return a.p.cue.correlationID, true
}

// Params yields the resolved parameters in the order of the step, without those
// whose reference leads nowhere.
func (a *Act) Params() iter.Seq2[string, signal.Value] {
	return func(yield func(string, signal.Value) bool) {
		for _, param := range a.n.Params {
			if v, ok := a.p.cue.resolver.Resolve(param.Value); ok && !yield(param.Name, v) {
				return
			}
		}
	}
}

// Definition returns what the performance performs.
func (p Performance) Definition() *definition.Definition { return p.p.def }

// Answering returns the definitions in force that answer to a signal type.
func (s *Scheduler) Answering(typ string) (found []*definition.Definition) {
	for _, slot := range s.registry.byType[typ] {
		found = append(found, s.registry.all[slot])
	}
	return found
}
