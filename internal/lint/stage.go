package lint

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/find"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/signal"
)

// stage checks the names in steps and bindings: properties, and if there is a
// scene, entities and places.
func (l *linter) stage() {
	for _, s := range l.scripts {
		eachStep(s.steps, s.at, func(step signal.Value, at *authored.Location) {
			p := place{s.src, at}
			asked(p, step)
			if name := step.TextOf("property"); step.TextOf("action") == "set" && name != "" && !isVariable(name) && !settable[name] {
				place{p.src, at.At("property")}.report(ruleProperty, "nothing has a property %s to be set%s", strconv.Quote(name), p.nearest(name, settable))
			}
		})
	}
	for _, d := range l.definitions {
		asked(d.place, d.value)
	}
	for _, n := range l.named {
		asked(n.place, n.value)
	}
	if len(l.scenes) == 0 {
		return
	}
	k := l.known()
	for _, n := range l.named {
		for _, member := range []string{"targetEntityId", "entity"} {
			if name := n.value.TextOf(member); n.word == "binding" && name != "" && !k.hasEntity(name) {
				place{n.src, n.at.At(member)}.report(ruleEntity, "the scene has no entity %s and no rule for it, and nothing spawns it%s",
					strconv.Quote(name), n.nearest(name, k.entities))
			}
		}
	}
	for _, s := range l.scripts {
		eachStep(s.steps, s.at, func(step signal.Value, at *authored.Location) { k.step(place{s.src, at}, step) })
	}
}

// shown are the properties that conditions can test, and settable those that
// "set" takes.
var (
	shown = map[string]kinds{
		"actor": isString, "label": isString, "look": isString, "x": isNumber, "y": isNumber, "visible": isBool,
		"opacity": isNumber, "tint": isString, "strength": isNumber, "scale": isNumber, "rotation": isNumber, "layer": isNumber,
		"state": isString, "text": isString, "textOpacity": isNumber, "moving": isOther, "conflicted": isBool, "home": isString, "height": isNumber,
	}
	settable = setOf("opacity", "rotation", "scale", "position.x", "position.y", "x", "y", "visible", "layer", "state", "tint", "text", "label")
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// asked checks the properties of the stage that a "when" tests.
func asked(p place, v signal.Value) {
	when, ok := v.Get("when")
	if !ok {
		return
	}
	for _, c := range clauseOf(when, p.at.At("when")) {
		for _, a := range c {
			if a.lasting() {
				continue
			}
			property := a.path[strings.LastIndexByte(a.path, '.')+1:]
			if shown[property] == 0 {
				known := setOf(slices.Collect(maps.Keys(shown))...)
				place{p.src, a.at}.report(ruleProperty, "nothing on the stage has a property %s%s", strconv.Quote(property), p.nearest(property, known))
			}
		}
	}
}

// known holds the names on the stage.
type known struct {
	entities map[string]bool // ids, actors and spawned entities
	patterns []string        // agents that rules of the scene bring
	stranger bool            // the scene has a look for all other names
	open     bool            // a spawned name depends on the signals
	places   map[string]bool // slots and waypoints
	routes   map[string]bool
}

func (l *linter) known() *known {
	k := &known{entities: map[string]bool{}, places: map[string]bool{}, routes: map[string]bool{}}
	for _, sc := range l.scenes {
		for _, e := range sc.Entities {
			k.entities[e.ID] = true
			if e.Actor != "" {
				k.entities[e.Actor] = true
			}
		}
		for _, r := range sc.Agents {
			k.patterns = append(k.patterns, r.Match)
			if r.Entity != "" {
				k.entities[r.Entity] = true
			}
		}
		for _, s := range sc.Slots {
			k.places[s.Name] = true
		}
		for name := range sc.Waypoints {
			k.places[name] = true
		}
		for name := range sc.Routes {
			k.routes[name] = true
		}
		// Every scene has a look for strangers; only one that the author writes
		// allows them.
		_, said := sc.Value().Get("stranger")
		k.stranger = k.stranger || said
	}
	for _, s := range l.scripts {
		eachStep(s.steps, s.at, func(step signal.Value, _ *authored.Location) {
			// Where strangers are allowed, any entity that acts appears.
			if step.TextOf("action") == "spawn" || k.stranger {
				for _, name := range []string{step.TextOf("entity"), step.TextOf("target")} {
					k.entities[name] = true
					k.open = k.open || isVariable(name) && step.TextOf("action") == "spawn"
				}
			}
		})
	}
	delete(k.entities, "")
	return k
}

// step checks the names in one step.
func (k *known) step(p place, step signal.Value) {
	action := step.TextOf("action")
	if action != "spawn" && action != "playSound" {
		for _, member := range []string{"entity", "target"} {
			if name := step.TextOf(member); name != "" && !k.hasEntity(name) {
				place{p.src, p.at.At(member)}.report(ruleEntity, "the scene has no entity %s and no rule for it, and nothing spawns it%s",
					strconv.Quote(name), p.nearest(name, k.entities))
			}
		}
	}
	var members []string
	switch action {
	case "move", "fly", "drawBeam":
		members = []string{"to", "from"}
	case "spawn":
		members = []string{"at"}
	case "followRoute":
		if name := step.TextOf("route"); name != "" && !isVariable(name) && !k.routes[name] {
			place{p.src, p.at.At("route")}.report(rulePlace, "the scene has no route %s%s", strconv.Quote(name), p.nearest(name, k.routes))
		}
		return
	}
	for _, member := range members {
		if name := step.TextOf(member); name != "" && !k.places[name] && !k.mayBeThere(name) {
			place{p.src, p.at.At(member)}.report(rulePlace, "the scene has no slot, waypoint or entity %s%s",
				strconv.Quote(name), p.nearest(name, k.places, k.entities))
		}
	}
}

// hasEntity reports whether a step may act on a name.
func (k *known) hasEntity(name string) bool { return k.stranger || k.mayBeThere(name) }

// mayBeThere reports whether a name may be that of an entity on the stage.
func (k *known) mayBeThere(name string) bool {
	return k.open || isVariable(name) || k.entities[name] ||
		slices.ContainsFunc(k.patterns, func(p string) bool { return find.Wildcard(p, name) })
}

// isVariable reports whether a name is replaced by another one at run time or by an
// expansion.
func isVariable(name string) bool { return isReference(name) || isPlaceholder(name) }

// isPlaceholder reports whether an expansion replaces a text.
func isPlaceholder(text string) bool {
	return strings.HasPrefix(text, "param.") || strings.HasPrefix(text, "each.")
}

// nearest suggests a name that differs by a letter or two. It compares all names, so
// it is called only for issues that are listed.
func (p place) nearest(name string, sets ...map[string]bool) string {
	if len(p.src.spots) == maxIssues {
		return ""
	}
	var names []string
	for _, set := range sets {
		names = append(names, slices.Sorted(maps.Keys(set))...)
	}
	found, ok := spelling.Nearest(name, names)
	if !ok {
		return ""
	}
	return "; did you mean " + strconv.Quote(found) + "?"
}
