package query

import (
	"bytes"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// PathChange is one change of a value in an agent's view: the value appears,
// becomes another or disappears.
type PathChange struct {
	TracedDelivery
	Value  signal.Value // the new value; nil if it disappears
	Before signal.Value // the old value; nil if it appears
}

// PathWatch finds the changes of one path of an agent's view.
type PathWatch struct {
	agent string
	path  jsondoc.Pointer
	text  string
	is    signal.Value
	had   signal.Value // the value after the last delta made, delivered or not
	queue []PathChange // in flight, in the order of delivery
}

// NewPathWatch returns a watch over one path of an agent's view. With a value it
// reports only changes to that value, where 1 equals 1.0; with nil every change.
func NewPathWatch(agent string, path jsondoc.Pointer, is signal.Value) *PathWatch {
	return &PathWatch{agent: agent, path: path, text: path.String(), is: is}
}

// Apply applies an entry, which c has folded, and returns the changes that were
// delivered since the entry before.
func (w *PathWatch) Apply(c *agents.Core, s *FoldedEntry) []PathChange {
	delivered := w.arrived(nil, s.At)
	if s.Dismisses(w.agent) {
		w.had, w.queue = nil, nil // changes in flight are never delivered
	}
	n, ok := s.delivery(w.agent)
	shown, known := c.Observer(w.agent)
	if !ok || !known || !w.touchedBy(n.Delivery.Delta) {
		return delivered
	}
	now, _ := shown.Lookup(w.path)
	if sameValue(w.had, now) {
		return delivered
	}
	before := w.had
	w.had = now
	if w.is == nil || jsondoc.Equal(now, w.is) && !jsondoc.Equal(before, w.is) {
		w.queue = append(w.queue, PathChange{n, now, before})
	}
	return w.arrived(delivered, s.At)
}

// Coming returns the changes that are still in flight after the last entry.
func (w *PathWatch) Coming() []PathChange { return w.queue }

func (w *PathWatch) arrived(delivered []PathChange, to time.Duration) []PathChange {
	for len(w.queue) > 0 && w.queue[0].Delivery.At <= to {
		delivered = append(delivered, w.queue[0])
		w.queue[0] = PathChange{}
		w.queue = w.queue[1:]
	}
	return delivered
}

func (w *PathWatch) touchedBy(d view.Delta) bool {
	if len(w.path) == 0 || w.path[0] != view.PathEntities[1:] && w.path[0] != view.PathRelations[1:] {
		return true // view_seq and digest change with every delta
	}
	for _, op := range d.Patches {
		if jsondoc.Within(w.text, op.Path) || jsondoc.Within(op.Path, w.text) {
			return true
		}
	}
	return false
}

// sameValue reports whether two values are equal as written, apart from the order
// of members.
func sameValue(a, b signal.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || bytes.Equal(jsondoc.AppendCanonical(nil, a), jsondoc.AppendCanonical(nil, b))
}
