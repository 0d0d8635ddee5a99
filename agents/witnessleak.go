package agents

import (
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// LeakQuery says what an agent must never have been told: one of these.
type LeakQuery struct {
	// Path is a place of its view: nothing there, nothing below it. Nil is none.
	Path Pointer
	// Entity is an id: neither the entity, nor its relationships, nor its id among
	// those of another.
	Entity string
	// Text is a secret: it stands in no text and no name, also not as a part of
	// one, and is no number. Case counts.
	Text string
}

// Leak is where an agent was told it.
type Leak struct {
	News
	// Operation is the place in the delta's patch, from 0. A refusal of what the
	// agent asked for has no delta, and it is -1.
	Operation int
	Place     string // JSON pointer into the view; of a refusal /reason
	How       LeakForm
}

// LeakForm says how something was told.
type LeakForm string

// The forms.
const (
	LeakPath     LeakForm = "path"     // the path, or something below it
	LeakRelation LeakForm = "relation" // the id among an entity's relationships
	LeakName     LeakForm = "name"     // the text, in a name on the way
	LeakValue    LeakForm = "value"    // the text, in a value
	LeakReason   LeakForm = "reason"   // the text, in why a request was refused
)

// Looked is what a [LeakWatch] has looked at.
type Looked struct {
	Deltas     uint64 // made for the agent
	Whole      uint64 // of which replaced its whole view
	Operations uint64
	Values     uint64 // names, texts, numbers and the like, when a text is looked for
	Refusals   uint64 // of the agent's requests, that are recorded
}

// LeakWatch looks through everything that is made for one agent: each delta,
// whether it arrived or was on its way when the agent left, and each recorded
// refusal. What an agent knows comes from nowhere else, so what it does not find
// the agent was never told.
type LeakWatch struct {
	Looked Looked

	agent  string
	query  LeakQuery
	paths  []string // of Path or Entity
	number *signal.Number
	news   News
	op     int
	found  []Leak
}

// NewLeakWatch returns a watch that has looked at nothing yet.
func NewLeakWatch(agent string, q LeakQuery) *LeakWatch {
	w := &LeakWatch{agent: agent, query: q}
	switch {
	case q.Path != nil:
		w.paths = []string{q.Path.String()}
	case q.Entity != "":
		w.paths = []string{EntityPath(q.Entity).String(), Pointer{pathRelations[1:], q.Entity}.String()}
	}
	if v, err := signal.ParseValue([]byte(q.Text)); err == nil {
		if n, ok := v.Number(); ok {
			w.number = &n
		}
	}
	return w
}

// Step takes in an entry and returns what it tells that it must not.
func (w *LeakWatch) Step(s *Step) []Leak {
	w.found = nil
	if s.Record.Word == WordOutcome && textOf(s.Record.Value, "agent_id") == w.agent {
		w.Looked.Refusals++
		w.news, w.op = News{Entry: s.Entry, Made: s.At, Cause: s.cause()}, -1
		w.news.Delivery.Agent, w.news.Delivery.At = w.agent, s.At
		if w.query.Text != "" && strings.Contains(textOf(s.Record.Value, "reason"), w.query.Text) {
			w.add("/reason", LeakReason)
		}
	}
	n, ok := s.news(w.agent)
	if !ok {
		return w.found
	}
	w.news = n
	w.Looked.Deltas++
	if n.Delivery.Delta.Whole() {
		w.Looked.Whole++
	}
	for i, op := range n.Delivery.Delta.Patches {
		w.op = i
		w.Looked.Operations++
		w.operation(op)
	}
	return w.found
}

func (w *LeakWatch) add(place string, how LeakForm) {
	w.found = append(w.found, Leak{w.news, w.op, place, how})
}

func (w *LeakWatch) operation(op Operation) {
	for _, path := range w.paths {
		switch {
		case within(op.Path, path):
			w.add(op.Path, LeakPath)
		case within(path, op.Path):
			// What lies between was unescaped and escaped again by the same rules.
			rest, err := ParsePointer(path[len(op.Path):])
			if _, ok := rest.In(op.Value); err == nil && ok {
				w.add(path, LeakPath)
			}
		}
	}
	if w.query.Entity != "" {
		w.relations(op)
	}
	if w.query.Text != "" {
		place := func() string { return op.Path }
		if p, err := ParsePointer(op.Path); err == nil {
			for _, name := range p {
				w.name(name, place)
			}
		}
		w.value(op.Value, place)
	}
}

// relations looks for an id among the relationships that an operation gives.
func (w *LeakWatch) relations(op Operation) {
	if op.Path == pathRelations {
		for from, list := range op.Value.Members() {
			w.list(op.Path+"/"+escape(from), list)
		}
	} else if within(op.Path, pathRelations) {
		w.list(op.Path, op.Value)
	}
}

func (w *LeakWatch) list(place string, list signal.Value) {
	i := 0
	for e := range list.Elements() {
		to, ok := e.Text()
		if !ok {
			to = textOf(e, "to")
		}
		if to == w.query.Entity {
			w.add(place+"/"+strconv.Itoa(i), LeakRelation)
		}
		i++
	}
}

func (w *LeakWatch) name(name string, place func() string) {
	w.Looked.Values++
	if strings.Contains(name, w.query.Text) {
		w.add(place(), LeakName)
	}
}

// value looks through a value, which is at most [signal.MaxDepth] deep. Only
// where something is found its place is written out.
func (w *LeakWatch) value(v signal.Value, place func() string) {
	switch v.Kind() {
	case signal.KindObject:
		for name, m := range v.Members() {
			at := func() string { return place() + "/" + escape(name) }
			w.name(name, at)
			w.value(m, at)
		}
	case signal.KindArray:
		i := 0
		for e := range v.Elements() {
			w.value(e, func() string { return place() + "/" + strconv.Itoa(i) })
			i++
		}
	case signal.KindAbsent:
	default:
		w.Looked.Values++
		text, _ := v.Text()
		n, isNumber := v.Number()
		if strings.Contains(text, w.query.Text) || isNumber && w.number != nil && sameNumber(n, *w.number) {
			w.add(place(), LeakValue)
		}
	}
}
