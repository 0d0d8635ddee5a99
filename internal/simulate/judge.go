package simulate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// UnmetExpectation is an expectation that was not met.
type UnmetExpectation struct {
	Line, Column int    // where it stands in the scenario, from 1
	Pointer      string // the same place as a JSON pointer
	Message      string
}

func (f UnmetExpectation) String() string {
	return fmt.Sprintf("%d:%d: not as expected: %s (%s)", f.Line, f.Column, f.Message, f.Pointer)
}

// judge counts, for each expectation, the events that match it.
type judge struct {
	list  []expectation
	seen  []int    // the matches of each
	wrong []string // why an expectation cannot be met any more
	heard []string // the last similar event, for the message
}

func newJudge(list []expectation) *judge {
	return &judge{list, make([]int, len(list)), make([]string, len(list)), make([]string, len(list))}
}

// hear counts an event, and returns how many expectations searched its delta.
func (j *judge) hear(e *Event) (looked int) {
	for i := range j.list {
		x := &j.list[i]
		switch x.subject {
		case told, neverTold:
			if e.What != whatObserved || e.Agent != x.agent {
				continue
			}
			looked++
			j.tell(i, e)
		case accepted, rejected:
			if e.What != whatAsked || !x.about(e) {
				continue
			}
			j.heard[i] = e.Who() + " " + e.String()
			if e.Status == x.subject.String() && x.fits(e) {
				j.seen[i]++
			}
		case cancelled:
			if e.What == whatInterrupted && x.about(e) {
				j.heard[i] = e.Who() + " " + e.String()
				if x.fits(e) {
					j.seen[i]++
				}
			}
		case generations:
			if e.What == whatBegan && x.about(e) {
				j.seen[i]++
			}
		default: // decided from the log or from a view
		}
	}
	return looked
}

// about reports whether an expectation is about the subject of an event.
func (x *expectation) about(e *Event) bool {
	return (x.agent == "" || x.agent == e.Agent) && (x.reqID == "" || x.reqID == e.ReqID) && (x.kind == "" || x.kind == e.Kind)
}

func (x *expectation) fits(e *Event) bool {
	return (x.code == "" || x.code == e.Code) && strings.HasPrefix(e.Reason, x.reason)
}

// tell searches an observation for the next expected text. A text counts once for
// each time that it is expected; two texts in one observation have no order.
func (j *judge) tell(i int, e *Event) {
	x := &j.list[i]
	if j.seen[i] == len(x.texts) {
		return
	}
	for _, op := range e.Delta.Patches {
		if !mentions(op.Value, x.texts[j.seen[i]]) {
			continue
		}
		j.seen[i]++
		if x.subject == neverTold {
			j.wrong[i] = fmt.Sprintf("%s was told %s at %v, by observation %d", x.agent, wording.Quoted(x.texts[0]), e.At, e.Delta.ViewSeq)
		}
		return
	}
}

// mentions reports whether a string or a member name in a value contains a text.
func mentions(v signal.Value, text string) bool {
	switch v.Kind() {
	case signal.KindString:
		s, _ := v.Text()
		return strings.Contains(s, text)
	case signal.KindObject:
		for name, m := range v.Members() {
			if strings.Contains(name, text) || mentions(m, text) {
				return true
			}
		}
	case signal.KindArray:
		for e := range v.Elements() {
			if mentions(e, text) {
				return true
			}
		}
	default:
	}
	return false
}

// looks returns the first instant after another at which a view has to be checked;
// false if there is none.
func (j *judge) looks(after time.Duration) (at time.Duration, ok bool) {
	for i := range j.list {
		if x := &j.list[i]; x.at > after && (!ok || x.at < at) {
			at, ok = x.at, true
		}
	}
	return at, ok
}

// look checks the expectations about views at an instant; -1 is the end.
func (j *judge) look(at time.Duration, view func(agent string) signal.Value) {
	for i := range j.list {
		x := &j.list[i]
		if x.subject != sees && x.subject != seesNot || x.at != at {
			continue
		}
		j.wrong[i] = "" // an earlier check at this same instant no longer counts
		v, ok := lookup(view(x.agent), x.path)
		asSaid := ok && (x.equals == nil || sameValue(v, x.equals))
		switch {
		case x.subject == sees && !ok:
			j.wrong[i] = fmt.Sprintf("%s sees nothing at %s", x.agent, x.pointer())
		case x.subject == sees && !asSaid:
			j.wrong[i] = fmt.Sprintf("%s sees %s at %s, not %s", x.agent, wording.Clip(v.String(), 100), x.pointer(), wording.Clip(x.equals.String(), 100))
		case x.subject == seesNot && asSaid:
			j.wrong[i] = fmt.Sprintf("%s sees %s at %s", x.agent, wording.Clip(v.String(), 100), x.pointer())
		}
	}
}

func (x *expectation) pointer() string { return jsonpointer.Join(x.path) }

// sameValue compares values as JSON does: 1 and 1.0 are the same.
func sameValue(a, b signal.Value) bool { return bytes.Equal(a, b) || same(a.Any(), b.Any()) }

func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, m := range a {
			if n, ok := b[name]; !ok || !same(m, n) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case int64:
		if f, ok := b.(float64); ok {
			return float64(a) == f
		}
	case float64:
		if i, ok := b.(int64); ok {
			return a == float64(i)
		}
	}
	return a == b
}

// effect counts an effect of the log.
func (j *judge) effect(source, kind string) {
	for i := range j.list {
		x := &j.list[i]
		if x.subject == effects && (x.agent == "" || x.agent == source) && (x.kind == "" || x.kind == kind) {
			j.seen[i]++
		}
	}
}

// verdict returns the expectations that were not met.
func (j *judge) verdict() []UnmetExpectation {
	var failures []UnmetExpectation
	for i := range j.list {
		x := &j.list[i]
		message := j.wrong[i]
		switch x.subject {
		case sees, seesNot, neverTold:
		case told:
			if n := j.seen[i]; n < len(x.texts) {
				message = fmt.Sprintf("%s was not told %s", x.agent, wording.Quoted(x.texts[n]))
				if n > 0 {
					message += fmt.Sprintf(" after %s", wording.Quoted(x.texts[n-1]))
				}
			}
		default:
			message = x.counted(j.seen[i], j.heard[i])
		}
		if message != "" {
			failures = append(failures, UnmetExpectation{x.line, x.column, fmt.Sprintf("/expect/%d", i), message})
		}
	}
	return failures
}

// counted describes a wrong number of matches.
func (x *expectation) counted(n int, last string) string {
	if x.count < 0 && n > 0 || x.count == n {
		return ""
	}
	what := x.subject.String()
	for _, part := range []struct{ word, text string }{
		{"of", x.agent}, {"kind", x.kind}, {"under", x.reqID}, {"with", string(x.code)}, {"because of", x.reason},
	} {
		if part.text != "" {
			what += " " + part.word + " " + part.text
		}
	}
	want := "at least 1"
	if x.count >= 0 {
		want = fmt.Sprint(x.count)
	}
	message := fmt.Sprintf("%s: %d, want %s", what, n, want)
	if last != "" && n == 0 {
		message += "; the last like it: " + last
	}
	return message
}
