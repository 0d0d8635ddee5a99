package stage

import (
	"fmt"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/internal/wording"
)

// diagnosticKind is the subject of a diagnostic. The numbers are part of the state
// format.
type diagnosticKind uint8

const (
	noteConflict diagnosticKind = iota // a performance took a channel from another
	noteAction                         // no such action; with an entity, one that panicked
	noteEntity                         // a step that names no entity
	notePlace                          // no such place
	noteValue                          // a parameter that cannot be used
	noteLimit                          // a limit was reached
	noteKinds
)

// kindNames are the kinds as views show them; totalNames are the members with their
// totals. Both are part of the format of views.
var kindNames = [noteKinds]string{"conflict", "action", "entity", "place", "value", "limit"}

var totalNames = [noteKinds]string{"conflicts", "actions", "entities", "places", "values", "limits"}

// diagnostic is one diagnostic.
type diagnostic struct {
	at          time.Duration
	kind        diagnosticKind
	entity      string
	channel     string
	performance performanceKey // the performance that caused it, or that won the conflict
	with        performanceKey // the performance that lost the conflict
	detail      string
}

// diagnostics counts the diagnostics and keeps the most recent.
type diagnostics struct {
	totals [noteKinds]uint64
	recent []diagnostic

	unresolved []unresolved // the first occurrences; see [Stage.Unresolved]
}

// maxDetail bounds what a diagnostic quotes, in bytes.
const maxDetail = 64

// report counts a diagnostic. The detail is a short copy, because it may share the memory
// of a signal and the state keeps it.
func (s *Stage) report(kind diagnosticKind, entity, detail string) {
	n := diagnostic{at: s.now, kind: kind, entity: entity}
	if s.current.Act != nil {
		n.performance = s.performance()
	}
	n.detail = strings.Clone(wording.Truncate(detail, maxDetail))
	s.diagnostics.add(n)
}

func (s *Stage) conflict(e *entity, m mask, loser performanceKey) {
	s.diagnostics.add(diagnostic{at: s.now, kind: noteConflict, entity: e.id, channel: m.String(), performance: s.performance(), with: loser})
}

func (d *diagnostics) add(n diagnostic) {
	d.totals[n.kind]++
	if len(d.recent) == maxRecent {
		copy(d.recent, d.recent[1:])
		d.recent = d.recent[:maxRecent-1]
	}
	d.recent = append(d.recent, n)
}

// message describes the diagnostic in a sentence.
func (n *diagnostic) message() string {
	switch n.kind {
	case noteConflict:
		return fmt.Sprintf("%s takes the %s of %s from %s", n.performance, n.channel, n.entity, n.with)
	case noteAction:
		if n.entity != "" {
			return fmt.Sprintf("the action %q panicked at %s, and changed nothing", n.detail, n.entity)
		}
		return fmt.Sprintf("there is no action %q", n.detail)
	case noteEntity:
		return "the step names no entity"
	case notePlace:
		if n.detail == "" {
			return "the step says no place"
		}
		return fmt.Sprintf("there is no place %q", n.detail)
	case noteValue:
		return fmt.Sprintf("%q has no value that can be used", n.detail)
	default:
		return limitMessages[n.detail]
	}
}

// limitMessages describe the limits by name. The names are part of the state format.
var limitMessages = map[string]string{
	"entities": fmt.Sprintf("there are %d entities already", maxEntities),
	"beams":    fmt.Sprintf("there are %d beams already", maxBeams),
	"text":     fmt.Sprintf("the text has more than %d characters", MaxText),
	"name":     fmt.Sprintf("the name has more than %d bytes", MaxName),
}
