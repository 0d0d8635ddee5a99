package episode

import (
	"slices"

	"github.com/sajou-dev/sajou-go/signal"
)

// Subject identifies the beat or objective that a verdict is about.
type Subject struct {
	Kind SubjectKind
	ID   string
}

// SubjectKind is a kind of [Subject].
type SubjectKind uint8

// The kinds of subject.
const (
	AboutBeat SubjectKind = iota
	AboutObjective
)

var subjectKinds = []string{"beat", "objective"}

func (k SubjectKind) String() string { return subjectKinds[k] }

// Has reports whether the episode has the subject.
func (e *Episode) Has(s Subject) bool {
	if s.Kind == AboutBeat {
		_, ok := e.beats[s.ID]
		return ok
	}
	return s.Kind == AboutObjective && slices.ContainsFunc(e.Objectives, func(o Objective) bool { return o.ID == s.ID })
}

// SubjectOf reads {"beat": id} or {"objective": id} and returns the subject with its
// index; false if the episode does not have it.
func (e *Episode) SubjectOf(v signal.Value) (Subject, int, bool) {
	if id, ok := v.Member("beat").Text(); ok {
		i, known := e.beats[id]
		return Subject{AboutBeat, id}, i, known
	}
	if id, ok := v.Member("objective").Text(); ok {
		for i := range e.Objectives {
			if e.Objectives[i].ID == id {
				return Subject{AboutObjective, id}, i, true
			}
		}
	}
	return Subject{}, 0, false
}
