package agents

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Bounds of the deltas in flight to one agent and of their footprints.
const (
	// maxInFlight bounds their number; beyond it the last ones are joined.
	maxInFlight = 1024
	// maxNews bounds the bytes of their footprints. A delta beyond it conflicts with
	// every generation.
	maxNews = 1 << 18
	// maxNamed bounds the paths or classes of one effect, or of one token.
	maxNamed = 256
)

// inFlightDelta is a delta on its way to an agent, as far as interruptions need it.
type inFlightDelta struct {
	at        time.Duration
	seq       uint64
	own       bool      // of the agent's own effect
	visible   bool      // changes something in its view
	footprint Footprint // only if the agent is interrupted by conflicts alone
}

// Footprint is what an effect touches, for the test whether it conflicts with a
// generation. Both lists are in order; an empty string stands for anything.
type Footprint struct {
	Classes []string
	Paths   []string // that were written, as [world.Changes.Paths] names them
}

// anything conflicts with every generation that names paths or classes.
func anything() Footprint { return Footprint{[]string{""}, []string{""}} }

func (w Footprint) anything() bool { return len(w.Classes) == 1 && w.Classes[0] == "" }

// size is what a footprint counts in maxNews.
func (w Footprint) size() int {
	n := len(w.Classes) + len(w.Paths)
	for _, s := range w.Classes {
		n += len(s)
	}
	for _, s := range w.Paths {
		n += len(s)
	}
	return n
}

// footprint returns what an effect says about conflicts to an agent to which it is
// delivered: of what it wrote only what the agent may see, before or after; its kind
// and classes only if the agent observes it. before holds how what it wrote was shown.
// The observer has been updated.
func footprint(o *view.Observer, r world.ReadOnly, e world.Effect, changes world.Changes, before view.Rendered) Footprint {
	w := Footprint{Paths: o.VisiblePaths(changes, before)}
	if o.Observes(r, e) {
		w.Classes = append(conflictClasses(e.Payload), strings.Clone(clip(e.Kind)))
		slices.Sort(w.Classes)
		w.Classes = slices.Compact(w.Classes)
	}
	if len(w.Paths) > maxNamed || w.size() > maxNews {
		w.Paths = []string{""} // any path
	}
	return w
}

// conflictClasses reads a payload's conflict_class, one name or an array of them.
func conflictClasses(payload signal.Value) []string {
	v, _ := payload.Get("conflict_class")
	list := []signal.Value{v}
	if v.Kind() == signal.KindArray {
		list = slices.Collect(v.Elements())
	}
	var classes []string
	for _, e := range list {
		if class, ok := e.Text(); ok && len(class) <= 4*world.MaxID && len(classes) < maxNamed-1 {
			classes = append(classes, strings.Clone(class))
		}
	}
	return classes
}

// conflicts reports whether a delta conflicts with the context of a generation.
func (n *inFlightDelta) conflicts(t *Token) bool {
	switch {
	case n.own || n.seq <= t.ContextSeq:
		return false
	case len(t.Reads) == 0 && len(t.Classes) == 0:
		return n.visible
	case n.footprint.anything():
		return true
	}
	for _, class := range t.Classes {
		if _, ok := slices.BinarySearch(n.footprint.Classes, class); ok {
			return true
		}
	}
	for _, path := range t.Reads {
		if crosses(n.footprint.Paths, path) {
			return true
		}
	}
	return false
}

// crosses reports whether one of the paths, which are in order, is the given
// one, or lies above or below it.
func crosses(paths []string, path string) bool {
	for end := len(path); end >= 0; end = strings.LastIndexByte(path[:end], '/') {
		if _, ok := slices.BinarySearch(paths, path[:end]); ok {
			return true
		}
	}
	below := path + "/"
	i, _ := slices.BinarySearch(paths, below)
	return i < len(paths) && strings.HasPrefix(paths[i], below)
}

// send adds a delta in flight. It first removes those that have arrived, so that the
// bounds count the same deltas whether a call read the agent meanwhile or not.
func (a *agentState) send(now time.Duration, n inFlightDelta) {
	a.arrive(now)
	if a.inFlightBytes += n.footprint.size(); a.inFlightBytes > maxNews {
		a.inFlightBytes -= n.footprint.size()
		n.footprint = anything()
		a.inFlightBytes += n.footprint.size()
	}
	if len(a.inFlight) >= maxInFlight {
		a.joinLast(n)
		return
	}
	a.inFlight = append(a.inFlight, n)
	for _, t := range a.tokens {
		if t.conflictAt == never && n.conflicts(&t.Token) {
			t.conflictAt = n.at
		}
	}
}

// joinLast joins the last delta in flight and one that exceeds the bound. The result
// arrives with the later one and conflicts with everything that either does.
func (a *agentState) joinLast(n inFlightDelta) {
	last := &a.inFlight[len(a.inFlight)-1]
	was := last.at
	a.inFlightBytes -= last.footprint.size() + n.footprint.size()
	if n.own = n.own && last.own; n.own {
		n.footprint = Footprint{}
	} else {
		n.footprint = anything()
	}
	n.visible = n.visible || last.visible
	a.inFlightBytes += n.footprint.size()
	*last = n
	for _, t := range a.tokens {
		if t.conflictAt == never || t.conflictAt == was { // perhaps by the one that is now later
			t.conflictAt = a.conflictTime(&t.Token, was)
		}
	}
}

// conflictTime returns when the first delta that conflicts with a generation arrives, of
// those that arrive at a time or later; never if there is none.
func (a *agentState) conflictTime(t *Token, from time.Duration) time.Duration {
	i := sort.Search(len(a.inFlight), func(i int) bool { return a.inFlight[i].at >= from })
	for ; i < len(a.inFlight); i++ {
		if n := &a.inFlight[i]; n.conflicts(t) {
			return n.at
		}
	}
	return never
}

// arrive takes the deltas that have arrived by now out of flight. It may be called late,
// because every reader compares times too.
func (a *agentState) arrive(now time.Duration) {
	arrived := a.arrived(now)
	if arrived == 0 {
		return
	}
	a.latest = a.inFlight[arrived-1].seq
	for i := range a.inFlight[:arrived] {
		a.inFlightBytes -= a.inFlight[i].footprint.size()
	}
	a.inFlight = slices.Delete(a.inFlight, 0, arrived)
	for _, t := range a.tokens {
		if t.conflicted(now) {
			t.Conflict, t.conflictAt = true, never
		}
	}
}

// arrived returns how many of the deltas in inFlight have arrived by now.
func (a *agentState) arrived(now time.Duration) int {
	return sort.Search(len(a.inFlight), func(i int) bool { return a.inFlight[i].at > now })
}

// seen returns the newest sequence number that has reached an agent by now.
func (a *agentState) seen(now time.Duration) uint64 {
	if n := a.arrived(now); n > 0 {
		return a.inFlight[n-1].seq // the newest comes last
	}
	return a.latest
}
