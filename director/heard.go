package director

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// EventKind is a kind of event outside the play that can set flags.
type EventKind uint8

// The kinds of event.
const (
	OfSignal EventKind = iota // a signal; its name is its type
	OfEffect                  // an effect in the agents' world; its name is its word
)

var eventKinds = []string{"signal", "effect"}

// String returns "signal" or "effect".
func (k EventKind) String() string { return eventKinds[k] }

// FlagRule says which events outside the play set or clear a flag.
type FlagRule struct {
	Kind EventKind
	Name string       // of the event
	When signal.Value // a condition on its payload; absent if there is none
	// Set and Clear are flags; one of them is "".
	Set, Clear string

	when choreography.Condition
}

// listened names a kind of event.
type listened struct {
	kind EventKind
	name string
}

// Listens reports whether any rule of the episode in play is about such events.
func (s *State) Listens(kind EventKind, name string) bool {
	return s.episode != nil && len(s.episode.listens[listened{kind, name}]) > 0
}

// maxCause bounds what a flag remembers of its cause, in bytes.
const maxCause = 200

// Heard sets and clears flags by the rules about an event, in their order. Cause
// names the event, as "signal:812" does. A flag that is as the rule wants it is
// left alone. What was heard stays if the response in hand is dropped.
func (s *State) Heard(kind EventKind, name string, payload signal.Value, cause string) ([]Record, error) {
	if !s.Listens(kind, name) {
		return nil, nil
	}
	var rules []int
	for _, i := range s.episode.listens[listened{kind, name}] {
		if s.episode.FlagRules[i].when.Holds(choreography.Resolver{Type: name, Payload: payload}) {
			rules = append(rules, i)
		}
	}
	return s.hear(rules, cause)
}

// hear sets and clears flags by some rules.
func (s *State) hear(rules []int, cause string) ([]Record, error) {
	cause = strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "")
	d := decision{s: *s}
	for _, i := range rules {
		rule := &s.episode.FlagRules[i]
		c := &d.s.core
		event := flagged{Turn: c.turn, Flag: rule.Set, Cause: cause, Outside: true}
		var err error
		switch {
		case rule.Set != "" && (!c.hasFlag(rule.Set) || c.fleeting(rule.Set, d.s.kept)):
			err = d.emit(FlagSet, event)
		case rule.Clear != "" && c.hasFlag(rule.Clear):
			event.Flag = rule.Clear
			err = d.emit(FlagCleared, event)
		}
		if err != nil {
			return nil, err
		}
	}
	return d.records, nil
}

// flagRules reads the rules about flags.
func (b *builder) flagRules(list node, e *Episode) {
	for _, n := range b.rules(list) {
		if !b.object(n, "a rule", "on_signal", "on_effect", "when", "set", "clear", "note") {
			continue
		}
		var r FlagRule
		on := b.either(n, "on_signal", "on_effect")
		if on == "on_effect" {
			r.Kind = OfEffect
		}
		switch b.either(n, "set", "clear") {
		case "set":
			r.Set = b.needed(n, "set")
		case "clear":
			r.Clear = b.needed(n, "clear")
		}
		if on != "" {
			r.Name = b.needed(n, on)
		}
		if n.has("when") {
			r.When = n.at("when").v
			b.when(n.at("when"), &r)
		}
		key := listened{r.Kind, r.Name}
		if e.listens == nil {
			e.listens = map[listened][]int{}
		}
		e.listens[key] = append(e.listens[key], len(e.FlagRules))
		e.FlagRules = append(e.FlagRules, r)
	}
	if !b.refused {
		b.circles(list, e)
	}
}

// either makes sure that one of two members is there, and returns its name.
func (b *builder) either(n node, one, other string) string {
	switch {
	case n.has(one) && n.has(other):
		b.errorf(n.at(other), "%s and %s exclude each other", one, other)
		return ""
	case n.has(one):
		return one
	case n.has(other):
		return other
	default:
		b.errorf(n, "%s or %s is missing", one, other)
		return ""
	}
}

// when judges a condition as choreographies do, and compiles it.
func (b *builder) when(n node, r *FlagRule) {
	on := r.Name
	if r.Kind == OfEffect {
		on = "" // a signal's type of that name would be another thing
	}
	choreography.CheckCondition(on, n.v, func(s choreography.Severity, segments []string, atName bool, message string) {
		at := n
		for _, name := range segments {
			at = node{path: &path{at.path, name}}
		}
		b.add(s, at, atName, "%s", message)
	})
	r.when = choreography.CompileCondition(n.v)
}

// circles refuses rules that could set and clear a flag for ever: a flag that
// becomes a signal, by way of which it is cleared, which becomes a signal, by way
// of which it is set.
func (b *builder) circles(list node, e *Episode) {
	// A rule leads to the rules that hear the signals of what it does.
	next := make([][]int, len(e.FlagRules))
	for i := range e.FlagRules {
		told := map[string]bool{}
		word, flag := FlagSet, e.FlagRules[i].Set
		if flag == "" {
			word, flag = FlagCleared, e.FlagRules[i].Clear
		}
		for _, j := range e.cues[word] {
			cue := &e.Signals[j]
			if about := cue.About["flag"]; !told[cue.Type] && (about == "" || about == flag) {
				told[cue.Type] = true
				next[i] = append(next[i], e.listens[listened{OfSignal, cue.Type}]...)
			}
		}
	}
	reached := make([][]bool, len(next))
	reach := func(from int) []bool {
		if reached[from] != nil {
			return reached[from]
		}
		seen := make([]bool, len(next))
		reached[from] = seen
		for todo := []int{from}; len(todo) > 0; {
			i := todo[0]
			todo = todo[1:]
			for _, j := range next[i] {
				if !seen[j] {
					seen[j], todo = true, append(todo, j)
				}
			}
		}
		return seen
	}
	for i, n := range list.elements {
		if e.FlagRules[i].Clear == "" {
			continue
		}
		for j, isReached := range reach(i) {
			if isReached && e.FlagRules[j].Set == e.FlagRules[i].Clear && reach(j)[i] {
				b.errorf(n, "the flag %s could be set and cleared without end, by way of signals", wording.Quoted(e.FlagRules[i].Clear))
				break
			}
		}
	}
}

// unread warns of flags that rules set for nobody, and clear though nothing sets
// them.
func (b *builder) unread(list node, e *Episode, settable func(flag string) bool) {
	read, everything := e.reads(), e.tellsFlags()
	for _, f := range e.Flags {
		read[f] = true
	}
	for i, n := range list.elements {
		switch r := &e.FlagRules[i]; {
		case r.Set != "" && !read[r.Set] && !everything:
			b.warnf(n.at("set"), "nothing depends on the flag %s; if another episode does, name it in flags", wording.Quoted(r.Set))
		case r.Clear != "" && !settable(r.Clear):
			b.warnf(n.at("clear"), "nothing sets the flag %s; if another episode does, name it in flags", wording.Quoted(r.Clear))
		}
	}
}

// tellsFlags reports whether a rule makes signals of all flags.
func (e *Episode) tellsFlags() bool {
	return slices.ContainsFunc(e.Signals, func(r SignalRule) bool {
		return (r.On == FlagSet || r.On == FlagCleared) && r.About["flag"] == ""
	})
}
