package lint

import (
	"maps"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
)

var (
	// structural are the actions of steps that the language replaces or groups. Parse
	// judges their members.
	structural = setOf("wait", "parallel", "onArrive", "onInterrupt", "include", "repeat", "stagger")
	// common are the members that a step with any other action may have. Parse warns of
	// steps in such a step.
	common = setOf("action", "entity", "target", "delay", "duration", "easing", "when", "steps")
)

// steps checks the actions of all steps, and their members.
func (l *linter) steps() {
	actions := maps.Clone(structural)
	for name := range l.actions {
		actions[name] = true
	}
	for _, s := range l.scripts {
		eachStep(s.steps, s.at, func(step signal.Value, at *authored.Location) {
			action := step.TextOf("action")
			if structural[action] {
				return
			}
			params, known := l.actions[action]
			if !known {
				p := place{s.src, at.At("action")}
				p.report(ruleAction, "the stage has no action %s%s", strconv.Quote(action), p.nearest(action, actions))
				return
			}
			if params == nil {
				return
			}
			for name := range step.Members() {
				if common[name] || slices.Contains(params, name) {
					continue
				}
				p := place{s.src, at.At(name).Key()}
				p.report(ruleMember, "%s does not read %s%s", action, strconv.Quote(name), p.nearest(name, setOf(params...), common))
			}
		})
	}
}
