package stage

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// noteKind says what a diagnostic is about. The numbers are part of the state
// format.
type noteKind uint8

const (
	noteConflict noteKind = iota // a performance took a channel from another
	noteAction                   // no such action; with an entity, one that panicked
	noteEntity                   // a step that names no entity
	notePlace                    // no such place
	noteValue                    // a parameter that cannot be used
	noteLimit                    // a limit was reached
	noteKinds
)

// noteNames is the kinds as views show them, and the members of their totals.
var noteNames = [noteKinds]string{"conflict", "action", "entity", "place", "value", "limit"}

var noteTotals = [noteKinds]string{"conflicts", "actions", "entities", "places", "values", "limits"}

// note is one diagnostic.
type note struct {
	at      time.Duration
	kind    noteKind
	entity  string
	channel string
	run     run // of the performance at fault, or that prevailed
	with    run // of the performance that lost
	detail  string
}

// diagnostics is how many there were, and the last of them.
type diagnostics struct {
	totals [noteKinds]uint64
	recent []note
}

// maxDetail bounds what a diagnostic quotes, in bytes.
const maxDetail = 64

func (s *Stage) report(kind noteKind, entity, detail string) {
	n := note{at: s.now, kind: kind, entity: entity}
	if s.deed.Act != nil {
		n.run = s.run()
	}
	if len(detail) > maxDetail {
		cut := maxDetail
		for !utf8.RuneStart(detail[cut]) {
			cut--
		}
		detail = detail[:cut]
	}
	n.detail = strings.Clone(detail)
	s.diagnostics.add(n)
}

func (s *Stage) conflict(e *entity, m mask, loser run) {
	s.diagnostics.add(note{at: s.now, kind: noteConflict, entity: e.id, channel: m.String(), run: s.run(), with: loser})
}

func (d *diagnostics) add(n note) {
	d.totals[n.kind]++
	if len(d.recent) == MaxRecent {
		copy(d.recent, d.recent[1:])
		d.recent = d.recent[:MaxRecent-1]
	}
	d.recent = append(d.recent, n)
}

// message says what happened in a sentence.
func (n *note) message() string {
	switch n.kind {
	case noteConflict:
		return fmt.Sprintf("%s takes the %s of %s from %s", n.run, n.channel, n.entity, n.with)
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

// limitMessages says which limit was reached. The names are part of the state
// format.
var limitMessages = map[string]string{
	"entities": fmt.Sprintf("there are %d entities already", MaxEntities),
	"beams":    fmt.Sprintf("there are %d beams already", MaxBeams),
	"text":     fmt.Sprintf("the text has more than %d characters", MaxText),
	"name":     fmt.Sprintf("the name has more than %d bytes", MaxName),
}

// String returns the performance's id, "" of none.
func (r run) String() string {
	if r == (run{}) {
		return ""
	}
	return "p-" + strconv.FormatUint(r.seq, 10) + "-" + strconv.FormatUint(uint64(r.index), 10)
}
