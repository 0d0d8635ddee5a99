package lint

import (
	"slices"
	"strconv"
	"strings"
)

// handlers finds interruption handlers that are never called.
func (l *linter) handlers() {
	var preempted guard // the names of all guards that preempt
	for _, d := range l.definitions {
		if d.interrupts {
			return // it may interrupt any performance with its correlation id
		}
		if d.guard.policy == "preempt" {
			preempted.names = append(preempted.names, d.guard.names...)
		}
	}
	names := newNames(preempted.names)
	for _, d := range l.definitions {
		if slices.ContainsFunc(d.guard.names, names.mayHave) {
			continue
		}
		for _, h := range d.handlers {
			h.report(ruleHandler, "nothing interrupts this: no choreography has interrupts, and none preempts what this one guards")
		}
	}
}

// nameSet is a set of names, some of which may be references.
type nameSet struct {
	names     map[string]bool
	reference bool // one of them at least is a reference, and so may be any name
}

func newNames(names []string) nameSet {
	s := nameSet{names: make(map[string]bool, len(names))}
	for _, name := range names {
		s.names[name] = true
		s.reference = s.reference || isReference(name)
	}
	return s
}

func (s nameSet) mayHave(name string) bool {
	return s.names[name] || s.reference || isReference(name) && len(s.names) > 0
}

// surely reports whether two guards of choreographies for one signal always have a
// name in common.
func surely(a, b guard) (string, bool) {
	for _, name := range a.names {
		if slices.Contains(b.names, name) {
			return name, true
		}
	}
	return "", false
}

func isReference(name string) bool { return strings.HasPrefix(name, signalPrefix) }

// pairs finds choreographies that exclude each other.
func (l *linter) pairs() {
	const most = 100 // the earlier ones of a type with which each is compared
	byType := map[string][]*choreographyUse{}
	for _, d := range l.definitions {
		before := byType[d.on]
		for _, earlier := range before[max(0, len(before)-most):] {
			// A choreography with the same id replaces the earlier one.
			if earlier.id == "" || earlier.id != d.id {
				l.pair(earlier, d)
			}
		}
		byType[d.on] = append(before, d)
	}
	l.starved()
}

// pair checks two choreographies for one signal type, in the order in which they
// begin.
func (l *linter) pair(first, second *choreographyUse) {
	name, same := surely(first.guard, second.guard)
	switch {
	case same && second.guard.policy == "preempt" && implies(first.when, second.when):
		first.report(ruleStopped, "each %s that begins this begins another after it (%s), which preempts %s at the same instant", first.on, second.where(first.place), name)
	case same && second.guard.policy == "skip" && implies(second.when, first.when):
		second.report(ruleSkipped, "each %s that could begin this begins another before it (%s), which has %s already", second.on, first.where(second.place), name)
	case second.interrupts && first.interrupts && implies(first.when, second.when):
		// A signal without a correlation id interrupts nothing.
		first.lighter(ruleStopped, "each %s with a correlation id that begins this begins another after it (%s), which interrupts it at the same instant", first.on, second.where(first.place))
	case same && meet(first, second):
		contend(first, second, name)
	}
}

// meet reports whether one signal may begin both. For conditions with very many
// alternatives it returns false without checking.
func meet(first, second *choreographyUse) bool {
	const most = 64
	if len(first.when)*len(second.when) > most {
		return false
	}
	for _, a := range first.when {
		for _, b := range second.when {
			if slices.Concat(a, b).impossible(first.on) == nil {
				return true
			}
		}
	}
	return false
}

// contend checks two choreographies that one signal may begin and whose guards share a
// name, in the order in which they begin, where neither always excludes the other.
func contend(first, second *choreographyUse, name string) {
	switch [2]string{first.guard.policy, second.guard.policy} {
	case [2]string{"preempt", "preempt"}:
		first.report(ruleEachOther, "this and %s stop each other: both preempt %s, and one %s can begin both", second.where(first.place), name, first.on)
	case [2]string{"queue", "preempt"}, [2]string{"skip", "preempt"}:
		first.report(ruleMayStarve, "each %s that begins %s too stops this at once: that one preempts %s", first.on, second.where(first.place), name)
	case [2]string{"preempt", "queue"}:
		second.report(ruleMayStarve, "may wait for ever: each %s that begins %s makes that one preempt %s ahead of the performances that wait", second.on, first.where(second.place), name)
	case [2]string{"preempt", "skip"}, [2]string{"queue", "skip"}, [2]string{"skip", "skip"}:
		second.report(ruleMayStarve, "no %s that begins %s too can begin this: that one wants %s before it", second.on, first.where(second.place), name)
	case [2]string{"skip", "queue"}:
		first.report(ruleMayStarve, "no %s can begin this while %s waits for %s, and each that comes then may have one more wait", first.on, second.where(first.place), name)
	}
}

// where describes a definition for a message at another place.
func (d *choreographyUse) where(from place) string {
	if d.id != "" {
		return strconv.Quote(d.id)
	}
	return d.stands(from)
}

// stands describes p for a message at another place.
func (p place) stands(from place) string {
	pointer := p.at.Pointer()
	switch {
	case p.src != from.src && pointer == "":
		return p.src.Name
	case p.src != from.src:
		return p.src.Name + " " + pointer
	}
	return pointer
}

// implies reports whether the second condition certainly holds whenever the first
// does. It compares the text of the conditions.
func implies(first, second []conjunction) bool {
	for _, c := range first {
		if !slices.ContainsFunc(second, func(d conjunction) bool { return c.includes(d) }) {
			return false
		}
	}
	return true
}

// includes reports whether c has every test of d.
func (c conjunction) includes(d conjunction) bool {
	for _, a := range d {
		if !slices.ContainsFunc(c, func(b ask) bool { return a.path == b.path && a.op.String() == b.op.String() }) {
			return false
		}
	}
	return true
}

// starved finds choreographies whose guards wait for, or yield to, a name that another
// holds forever.
func (l *linter) starved() {
	holders := map[string]*choreographyUse{} // the first to hold a name forever
	var freed []string                       // names that are taken from a holder and released again
	for _, d := range l.definitions {
		switch {
		case d.interrupts:
			return // it may end any performance with its correlation id
		case !d.endless && d.guard.policy == "preempt":
			freed = append(freed, d.guard.names...)
		case d.endless:
			for _, name := range d.guard.names {
				if holders[name] == nil && !isReference(name) {
					holders[name] = d
				}
			}
		}
	}
	ends := newNames(freed)
	for _, d := range l.definitions {
		if d.guard.policy == "preempt" {
			continue
		}
		for _, name := range d.guard.names {
			if holder := holders[name]; holder != nil && holder != d && !ends.mayHave(name) {
				d.report(ruleStarved, "never begins once %s has begun, which holds %s and never ends", holder.where(d.place), name)
				break
			}
		}
	}
}
