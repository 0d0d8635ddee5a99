package agents

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// ErrPointer is wrapped by the errors of [ParsePointer].
var ErrPointer = errors.New("no JSON pointer")

// Pointer is a JSON pointer (RFC 6901): the names on the way, without escapes.
// The empty one is the whole document.
type Pointer []string

// ParsePointer reads a pointer by the letter of the RFC: empty, or each name
// behind a slash, with ~0 for a tilde and ~1 for a slash.
func ParsePointer(s string) (Pointer, error) {
	var t tree
	p := t.pointer(s)
	if t.why != "" {
		return nil, fmt.Errorf("agents: %w: %s", ErrPointer, t.why)
	}
	return append(Pointer{}, p...), nil
}

// ParseViewPath reads a pointer into a view; what does not begin with a slash
// is the id of an entity.
func ParseViewPath(s string) (Pointer, error) {
	if s == "" || s[0] == '/' {
		return ParsePointer(s)
	}
	if len(s) > MaxID {
		return nil, fmt.Errorf("agents: %w: an id has at most %d bytes", ErrPointer, MaxID)
	}
	return EntityPath(s), nil
}

// EntityPath returns where an entity stands in a view.
func EntityPath(id string) Pointer { return Pointer{pathEntities[1:], id} }

func (p Pointer) String() string {
	var b strings.Builder
	for _, name := range p {
		b.WriteByte('/')
		b.WriteString(escape(name))
	}
	return b.String()
}

// In returns what p leads to in v.
func (p Pointer) In(v signal.Value) (signal.Value, bool) {
	for _, name := range p {
		var next signal.Value
		found := false
		switch v.Kind() {
		case signal.KindObject:
			next, found = v.Get(name)
		case signal.KindArray:
			i, ok := elementIndex(name)
			if !ok {
				return nil, false
			}
			for e := range v.Elements() {
				if i == 0 {
					next, found = e, true
					break
				}
				i--
			}
		default:
		}
		if !found {
			return nil, false
		}
		v = next
	}
	return v, v.Kind() != signal.KindAbsent
}

// lookup returns what p leads to in the observer's view, without making the
// view of what lies beside it.
func (o *Observer) lookup(p Pointer) (signal.Value, bool) {
	if len(p) >= 2 {
		switch p[0] {
		case pathEntities[1:]:
			return p[2:].In(o.shown(p[1]))
		case pathRelations[1:]:
			return p[2:].In(o.tied(p[1]))
		}
	}
	return p.In(o.View().Value())
}

// shown returns an entity as it is in the view, nil if it is not.
func (o *Observer) shown(id string) signal.Value {
	if i, ok := o.find(id); ok {
		return o.seen[i].value()
	}
	return nil
}

// tied returns the list of relationships of an id in the view, nil if there is
// none.
func (o *Observer) tied(id string) signal.Value {
	for _, t := range o.ties {
		if t.id == id {
			return t.list
		}
	}
	return nil
}

// Sighting is that an agent gets something into its view that it did not have,
// gets another value of it, or loses it.
type Sighting struct {
	News
	Value  signal.Value // what it has from then on; nil: it lost it
	Before signal.Value // what it had; nil: nothing
}

// PathWatch finds when something in an agent's view changes.
type PathWatch struct {
	agent string
	path  Pointer
	text  string
	is    signal.Value
	had   signal.Value // by what has been made, told or not
	queue []Sighting   // on their way
}

// NewPathWatch returns a watch over one path of an agent's view. With a value
// only its coming to be that value counts, 1 being 1.0; with nil every change.
func NewPathWatch(agent string, path Pointer, is signal.Value) *PathWatch {
	return &PathWatch{agent: agent, path: path, text: path.String(), is: is}
}

// Step takes in an entry, which c has folded, and returns what the agent has
// been told by its time and not before.
func (w *PathWatch) Step(c *Core, s *Step) []Sighting {
	told := w.arrived(nil, s.At)
	if s.dismisses(w.agent) {
		w.had, w.queue = nil, nil // what was on its way never comes
	}
	n, ok := s.news(w.agent)
	a, known := c.agents[w.agent]
	if !ok || !known || !w.touchedBy(n.Delivery.Delta) {
		return told
	}
	now, _ := a.observer.lookup(w.path)
	if sameValue(w.had, now) {
		return told
	}
	before := w.had
	w.had = now
	if w.is == nil || equalValue(now, w.is) && !equalValue(before, w.is) {
		w.queue = append(w.queue, Sighting{n, now, before})
	}
	return w.arrived(told, s.At)
}

// Coming returns what was on its way when the last entry had been taken in.
func (w *PathWatch) Coming() []Sighting { return w.queue }

func (w *PathWatch) arrived(told []Sighting, to time.Duration) []Sighting {
	for len(w.queue) > 0 && w.queue[0].Delivery.At <= to {
		told = append(told, w.queue[0])
		w.queue[0] = Sighting{}
		w.queue = w.queue[1:]
	}
	return told
}

func (w *PathWatch) touchedBy(d Delta) bool {
	if len(w.path) == 0 || w.path[0] != pathEntities[1:] && w.path[0] != pathRelations[1:] {
		return true // its number and digest are no patch's
	}
	for _, op := range d.Patches {
		if within(w.text, op.Path) || within(op.Path, w.text) {
			return true
		}
	}
	return false
}

// sameValue reports whether two values are written alike, but for the order of
// members.
func sameValue(a, b signal.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || bytes.Equal(AppendCanonical(nil, a), AppendCanonical(nil, b))
}

// equalValue compares as the patch operation test does.
func equalValue(a, b signal.Value) bool {
	t := tree{left: MaxPatched, work: maxPatchWork}
	n, o := t.node(a, signal.MaxDepth), t.node(b, signal.MaxDepth)
	return t.why == "" && t.equal(n, o)
}

// within reports whether a path, written as a pointer, is another one or lies
// below it.
func within(path, other string) bool {
	return strings.HasPrefix(path, other) && (len(path) == len(other) || path[len(other)] == '/')
}
