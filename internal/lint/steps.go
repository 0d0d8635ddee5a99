package lint

import (
	"math"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// script is a list of steps as it is written.
type script struct {
	place
	steps signal.Value
	on    string        // the signal type that starts it, "" if unknown
	when  []conjunction // conditions that hold whenever it runs
}

// choreographyUse is a choreography.
type choreographyUse struct {
	place
	value      signal.Value // as it is written
	on, id     string
	interrupts bool
	when       []conjunction
	guard      guard
	endless    bool
	handlers   []place
}

// guard holds the names that a choreography needs exclusively.
type guard struct {
	names  []string
	policy string // queue, skip or preempt
}

// add takes in one declaration.
func (l *linter) add(src *source, d *Declared, c *language.Catalog) {
	at := (*authored.Location)(nil)
	if d.Pointer != "" {
		at = at.At(strings.TrimPrefix(d.Pointer, "/"))
	}
	p := place{src, at}
	v := d.Value()
	switch decl := d.Declaration.(type) {
	case *scene.Scene:
		l.scenes = append(l.scenes, decl)
	case *definition.Definition:
		l.define(p, decl, c)
	default:
		l.named = append(l.named, named{p, d.Word(), d.Name(), v})
		if when, ok := v.Get("when"); ok {
			l.condition(place{src, at.At("when")}, when, "", []conjunction{nil})
		}
		if steps, ok := v.Get("steps"); ok {
			l.script(&script{place{src, at.At("steps")}, steps, "", []conjunction{nil}})
		}
	}
}

func (l *linter) define(p place, decl *definition.Definition, c *language.Catalog) {
	d := &choreographyUse{place: p, value: decl.Value(), id: decl.Name()}
	l.definitions = append(l.definitions, d)
	// Its form in force, with the declarations that it extends and includes.
	v := d.value
	if bound, err := c.Bind(decl); err == nil && len(bound) == 1 {
		v = bound[0].Value()
	}
	d.on = v.TextOf("on")
	if yes, ok := v.Get("interrupts"); ok {
		d.interrupts, _ = yes.Bool()
	}
	if g, ok := v.Get("guard"); ok {
		d.guard = guardOf(g)
	}
	d.when = []conjunction{nil}
	if when, ok := v.Get("when"); ok {
		d.when = clauseOf(when, nil)
	}
	if when, ok := d.value.Get("when"); ok {
		d.when = l.condition(place{p.src, p.at.At("when")}, when, d.on, []conjunction{nil})
	}
	steps, _ := v.Get("steps")
	d.endless = sequenceEndless(steps)
	for _, member := range []string{"before", "steps", "after"} {
		written, ok := d.value.Get(member)
		if !ok {
			continue
		}
		at := p.at.At(member)
		l.script(&script{place{p.src, at}, written, d.on, d.when})
		i := 0
		for step := range written.Elements() {
			if step.TextOf("action") == "onInterrupt" {
				d.handlers = append(d.handlers, place{p.src, at.Element(i)})
			}
			i++
		}
	}
}

func guardOf(v signal.Value) guard {
	g := guard{policy: v.TextOf("policy")}
	if g.policy == "" {
		g.policy = "queue"
	}
	entity, _ := v.Get("entity")
	if name, ok := entity.Text(); ok {
		g.names = []string{name}
	}
	for e := range entity.Elements() {
		if name, ok := e.Text(); ok {
			g.names = append(g.names, name)
		}
	}
	return g
}

// condition checks a "when" and returns the condition that holds inside it, given
// the condition around it.
func (l *linter) condition(p place, when signal.Value, on string, around []conjunction) []conjunction {
	clause := clauseOf(when, p.at)
	var live []conjunction
	var dead []*clash
	for _, c := range clause {
		if clash := c.impossible(on); clash != nil {
			dead = append(dead, clash)
			continue
		}
		live = append(live, c)
	}
	for _, clash := range dead {
		at := place{p.src, clash.at}
		if len(live) > 0 {
			at.lighter(clash.rule, "%s; this alternative never holds", clash.why)
		} else {
			at.report(clash.rule, "%s", clash.why)
		}
	}
	if len(live) == 0 {
		return clause
	}
	// The condition around it may contradict it.
	var first *clash
	var possible []conjunction
	for _, c := range both(around, live) {
		clash := c.impossible(on)
		if clash == nil {
			possible = append(possible, c)
		} else if first == nil {
			first = clash
		}
	}
	if len(possible) == 0 {
		place{p.src, p.at}.report(ruleOuter, "never holds inside the condition around it: %s", first.why)
		return live
	}
	return possible
}

// script checks a list of steps by itself.
func (l *linter) script(s *script) {
	l.scripts = append(l.scripts, s)
	w := walker{l, s.src, s.on}
	w.sequence(s.steps, s.at, s.when)
}

// walker visits the steps of a script. It recurses once for each nesting,
// which Parse has bounded.
type walker struct {
	l   *linter
	src *source
	on  string
}

// sequence checks steps that run one after the other.
func (w *walker) sequence(steps signal.Value, at *authored.Location, when []conjunction) {
	gone := map[string]bool{} // entities that were destroyed and not brought back
	var endless *authored.Location
	i := 0
	for step := range steps.Elements() {
		here := at.Element(i)
		i++
		if step.TextOf("action") != "onInterrupt" { // runs separately, at any position
			if endless != nil {
				place{w.src, here}.report(ruleDead, "never runs: %s never ends", endless.Pointer())
				return
			}
			w.destroyed(step, here, gone)
			if stepEndless(step) {
				endless = here
			}
		}
		w.step(step, here, when)
	}
}

// step checks one step and the steps inside it.
func (w *walker) step(step signal.Value, at *authored.Location, when []conjunction) {
	if v, ok := step.Get("when"); ok {
		when = w.l.condition(place{w.src, at.At("when")}, v, w.on, when)
	}
	inner, ok := step.Get("steps")
	if !ok {
		return
	}
	at = at.At("steps")
	switch step.TextOf("action") {
	case "parallel":
		i := 0
		for child := range inner.Elements() {
			w.step(child, at.Element(i), when)
			i++
		}
	default:
		w.sequence(inner, at, when)
	}
}

// sequenceEndless reports whether steps one after the other never end.
func sequenceEndless(steps signal.Value) bool {
	for step := range steps.Elements() {
		if step.TextOf("action") != "onInterrupt" && stepEndless(step) {
			return true
		}
	}
	return false
}

// stepEndless reports whether only an interruption ends a step.
func stepEndless(step signal.Value) bool {
	if _, conditional := step.Get("when"); conditional {
		return false
	}
	inner, _ := step.Get("steps")
	switch step.TextOf("action") {
	case "parallel", "onArrive":
		return sequenceEndless(inner)
	case "repeat":
		times, _ := step.Get("times")
		n, _ := times.Float64()
		return n >= 1 && sequenceEndless(inner)
	case "include", "stagger", "spawn", "destroy", "playSound", "setAnimation":
		return false
	}
	d, _ := step.Get("duration")
	ms, ok := d.Float64()
	return ok && float64(ms*1e6) >= math.MaxInt64
}

// destroyed records which entities a step destroys or spawns, and checks that the
// step's own entity is on the stage.
func (w *walker) destroyed(step signal.Value, at *authored.Location, gone map[string]bool) {
	action := step.TextOf("action")
	name, member := step.TextOf("entity"), "entity"
	if name == "" {
		name, member = step.TextOf("target"), "target"
	}
	switch _, conditional := step.Get("when"); {
	case action == "parallel" || action == "repeat" || conditional:
		clear(gone) // a step in it may spawn any entity
	case name == "":
	case action == "spawn":
		delete(gone, name)
	case action == "destroy":
		gone[name] = true
	case gone[name]:
		place{w.src, at.At(member)}.report(ruleDestroyed, "%s was destroyed before; without a spawn in between this brings a stranger of that name", name)
		delete(gone, name)
	}
}
