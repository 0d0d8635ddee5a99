package agents

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// Bounds of the news on its way to one agent.
const (
	// MaxArrivals bounds how many there are; beyond it the last are joined.
	MaxArrivals = 1024
	// maxNews bounds the bytes of what they say about conflicts. What goes beyond
	// it is taken to conflict with everything.
	maxNews = 1 << 18
)

// arrival is news on its way to an agent.
type arrival struct {
	at      time.Duration
	seq     uint64
	own     bool // of the agent's own effect
	visible bool // changes something in its view
	word    word // only if the agent minds conflicts
}

// word is what an effect says about conflicts; both lists are in order.
type word struct {
	classes []string
	writes  []string // paths into the world
}

// anything conflicts with all that goes by something.
func anything() word { return word{[]string{""}, []string{""}} }

func (w word) anything() bool { return len(w.classes) == 1 && w.classes[0] == "" }

// size is what a word counts in maxNews.
func (w word) size() int {
	n := len(w.classes) + len(w.writes)
	for _, s := range w.classes {
		n += len(s)
	}
	for _, s := range w.writes {
		n += len(s)
	}
	return n
}

// wordOf returns what an effect says about conflicts.
func wordOf(e Effect, changes Changes) word {
	w := word{classes: append(conflictClasses(e.Payload), strings.Clone(clip(e.Kind))), writes: changes.Paths()}
	slices.Sort(w.classes)
	w.classes = slices.Compact(w.classes)
	if len(w.writes) > maxNamed || w.size() > maxNews {
		w.writes = []string{""} // any path
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
		if class, ok := e.Text(); ok && len(class) <= 4*MaxID && len(classes) < maxNamed-1 {
			classes = append(classes, strings.Clone(class))
		}
	}
	return classes
}

// conflicts reports whether news conflicts with what a generation goes by.
func (n *arrival) conflicts(t *Token) bool {
	switch {
	case n.own || n.seq <= t.ContextSeq:
		return false
	case len(t.Reads) == 0 && len(t.Classes) == 0:
		return n.visible
	case n.word.anything():
		return true
	}
	for _, class := range t.Classes {
		if _, ok := slices.BinarySearch(n.word.classes, class); ok {
			return true
		}
	}
	for _, path := range t.Reads {
		if crosses(n.word.writes, path) {
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

// announce puts the news of an effect on its way. What has arrived before is no
// longer on its way, whether anybody asked since or not.
func (a *agentState) announce(now time.Duration, n arrival) {
	a.arrive(now)
	if a.news += n.word.size(); a.news > maxNews {
		a.news -= n.word.size()
		n.word = anything()
		a.news += n.word.size()
	}
	if len(a.arrivals) >= MaxArrivals {
		a.join(n)
		return
	}
	a.arrivals = append(a.arrivals, n)
	for _, t := range a.tokens {
		if t.clash == never && n.conflicts(&t.Token) {
			t.clash = n.at
		}
	}
}

// join makes one of the last arrival and of one for which there is no room.
func (a *agentState) join(n arrival) {
	last := &a.arrivals[len(a.arrivals)-1]
	was := last.at
	a.news -= last.word.size() + n.word.size()
	if n.own = n.own && last.own; n.own {
		n.word = word{}
	} else {
		n.word = anything()
	}
	n.visible = n.visible || last.visible
	a.news += n.word.size()
	*last = n
	for _, t := range a.tokens {
		if t.clash == never || t.clash == was { // perhaps by the one that is now later
			t.clash = a.clash(&t.Token, was)
		}
	}
}

// clash returns when the first news that conflicts with a generation arrives, of
// what arrives from a time on; never if none does.
func (a *agentState) clash(t *Token, from time.Duration) time.Duration {
	i := sort.Search(len(a.arrivals), func(i int) bool { return a.arrivals[i].at >= from })
	for ; i < len(a.arrivals); i++ {
		if n := &a.arrivals[i]; n.conflicts(t) {
			return n.at
		}
	}
	return never
}

// arrive lets arrive what is on its way up to now. It may be asked late, for
// what depends on it looks at the time as well.
func (a *agentState) arrive(now time.Duration) {
	arrived := a.arrived(now)
	if arrived == 0 {
		return
	}
	a.latest = a.arrivals[arrived-1].seq
	for i := range a.arrivals[:arrived] {
		a.news -= a.arrivals[i].word.size()
	}
	a.arrivals = slices.Delete(a.arrivals, 0, arrived)
	for _, t := range a.tokens {
		if t.clashed(now) {
			t.Conflict, t.clash = true, never
		}
	}
}

// arrived returns how much of what is noted as on its way has arrived by now.
func (a *agentState) arrived(now time.Duration) int {
	return sort.Search(len(a.arrivals), func(i int) bool { return a.arrivals[i].at > now })
}

// seen returns the newest sequence number that has reached an agent by now.
func (a *agentState) seen(now time.Duration) uint64 {
	if n := a.arrived(now); n > 0 {
		return a.arrivals[n-1].seq // the newest comes last
	}
	return a.latest
}
