package lint

import (
	"strconv"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
)

// names finds declarations with the same name and declarations that nothing uses.
func (l *linter) names() {
	ids := map[string]*choreographyUse{}
	texts := map[string]*choreographyUse{}
	for _, d := range l.definitions {
		text := d.value.String()
		switch other := ids[d.id]; {
		case d.id != "" && other != nil:
			place{d.src, d.at.At("id")}.report(ruleSameID, "takes the place of the choreography at %s, which has this id too", other.stands(d.place))
		case d.id == "" && texts[text] != nil:
			d.report(ruleRepeated, "is written at %s already: each %s runs both", texts[text].stands(d.place), d.on)
		}
		ids[d.id] = d
		texts[text] = d
	}
	declared := map[[2]string]place{}
	used := l.used()
	for _, n := range l.named {
		key := [2]string{n.word, n.name}
		if n.name != "" {
			if other, ok := declared[key]; ok {
				n.report(ruleSameID, "takes the place of the %s at %s, which has this name too", n.word, other.stands(n.place))
			}
			declared[key] = n.place
		}
		if (n.word == "sequence" || n.word == "easing") && !used[key] {
			n.report(ruleUnused, "the %s %s is used by nothing in these files", n.word, strconv.Quote(n.name))
			used[key] = true // reported once
		}
	}
}

// used returns the sequences and easings that are referred to, by word and name.
func (l *linter) used() map[[2]string]bool {
	used := map[[2]string]bool{}
	note := func(v signal.Value) {
		for _, word := range []string{"sequence", "easing"} {
			if name := v.TextOf(word); name != "" {
				used[[2]string{word, name}] = true
			}
		}
	}
	for _, s := range l.scripts {
		eachStep(s.steps, s.at, func(step signal.Value, _ *authored.Location) { note(step) })
	}
	for _, n := range l.named { // of bindings
		if transition, ok := n.value.Get("transition"); ok {
			note(transition)
		}
	}
	return used
}

// eachStep calls visit for each step of a list and for the steps inside them. The depth
// of its recursion is that of the steps, which Parse has bounded.
func eachStep(steps signal.Value, at *authored.Location, visit func(step signal.Value, at *authored.Location)) {
	i := 0
	for step := range steps.Elements() {
		here := at.Element(i)
		i++
		visit(step, here)
		if inner, ok := step.Get("steps"); ok {
			eachStep(inner, here.At("steps"), visit)
		}
	}
}
