package episode

import (
	"slices"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
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

	when definition.Condition
}

// listened identifies the events of one kind and name.
type listened struct {
	kind EventKind
	name string
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
			r.When = n.at("when").Value
			b.when(n.at("when"), &r)
		}
		key := listened{r.Kind, r.Name}
		if e.listens == nil {
			e.listens = map[listened][]int{}
		}
		e.listens[key] = append(e.listens[key], len(e.FlagRules))
		e.FlagRules = append(e.FlagRules, r)
	}
	if !b.Refused() {
		b.circles(list, e)
	}
}

// either returns the name of the one of two members that is present, and refuses
// neither and both.
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

// when checks a condition with the rules of choreographies, and compiles it.
func (b *builder) when(n node, r *FlagRule) {
	on := r.Name
	if r.Kind == OfEffect {
		on = "" // the payload's fields are not those of a signal's type of that name
	}
	language.CheckCondition(on, n.Value, func(f authored.Remark) {
		at := n.Location
		for _, name := range f.Location.Segments() {
			at = at.At(name)
		}
		if f.Location.IsKey() {
			at = at.Key()
		}
		b.Add(f.Severity, at, f.Message)
	})
	r.when = definition.CompileCondition(n.Value)
}

// circles refuses rules that could set and clear a flag without end: setting the flag
// makes a signal that clears it, possibly through other rules, and clearing it makes a
// signal that sets it again.
func (b *builder) circles(list node, e *Episode) {
	// next holds for each rule the rules that react to the signals of its effect.
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
				b.errorf(n, "the rules could set and clear the flag %s without end, through their signals", wording.Quoted(e.FlagRules[i].Clear))
				break
			}
		}
	}
}

// unread warns of flags that rules set and nothing reads, and of flags that rules clear
// and nothing sets.
func (b *builder) unread(list node, e *Episode, settable func(flag string) bool) {
	read, everything := e.Reads(), e.tellsFlags()
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

// tellsFlags reports whether a rule makes signals of all flags, so that choreographies
// may read any of them.
func (e *Episode) tellsFlags() bool {
	return slices.ContainsFunc(e.Signals, func(r SignalRule) bool {
		return (r.On == FlagSet || r.On == FlagCleared) && r.About["flag"] == ""
	})
}

// FlagRulesFor returns the indexes in FlagRules of the rules about an event, in
// ascending order. The caller must not change the result.
func (e *Episode) FlagRulesFor(kind EventKind, name string) []int {
	return e.listens[listened{kind, name}]
}

// Holds reports whether the condition of the rule holds for an event's payload.
func (r *FlagRule) Holds(payload signal.Value) bool {
	return r.when.Holds(definition.Resolver{Type: r.Name, Payload: payload})
}
