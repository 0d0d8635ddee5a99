package scene

import (
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// File is one file of a bundle.
type File struct {
	Name string // as it appears in diagnostics
	JSON []byte
}

// ParseBundle reads a text that may hold more than a scene: the state of the
// scene-builder, or one of the files of its export. Rest are the choreographies
// and bindings, in the form in which package choreography takes them. The scene
// is nil if the text has none; both are nil if any diagnostic is an error.
//
// The scene-builder's editor keeps choreographies in a form of its own, which is
// translated: params are members of the step, children are its steps, a step
// without an entity has the choreography's defaultTargetEntityId. The signal
// types that are wired to a choreography take the place of its "on"; for several
// of them there are as many choreographies.
func ParseBundle(file string, json []byte) (*Scene, []signal.Value, choreography.Diagnostics) {
	return ParseFiles(File{file, json})
}

// ParseFiles is [ParseBundle] for a bundle of several files, as the
// scene-builder exports it: scene.json, entities.json, choreographies.json and
// shaders.json. They are told apart by what is in them, in any order.
func ParseFiles(files ...File) (*Scene, []signal.Value, choreography.Diagnostics) {
	var sources []source
	for _, f := range files {
		v, err := signal.ParseValue(f.JSON)
		if err != nil {
			return nil, nil, syntaxDiagnostics(f.Name, f.JSON, err)
		}
		if kindOf(v) == native {
			s, ds := Parse(f.Name, f.JSON)
			if len(files) > 1 && s != nil {
				ds = append(ds, choreography.Diagnostic{
					File: f.Name, Line: 1, Column: 1, Severity: choreography.Error,
					Message: "a scene of this format is whole by itself: read it alone",
				})
			}
			if ds.Err() != nil {
				s = nil
			}
			return s, nil, ds
		}
		sources = append(sources, source{f, v})
	}
	i := newImport(sources)
	if i.state == nil && i.board == nil && i.visuals == nil && len(i.choreographies) == 0 {
		for _, d := range i.parts {
			i.errorf(d.root, "this is no scene, and no part of an export of the scene-builder")
		}
	}
	var s *Scene
	if i.state != nil || i.board != nil || i.visuals != nil {
		s = i.scene()
	}
	rest := i.declarations()
	ds := i.diagnostics()
	if ds.Err() != nil {
		return nil, nil, ds
	}
	return s, rest, ds
}

// maxWires bounds the signal types that set one choreography off, since each
// makes a choreography of its own.
const maxWires = 64

// IsBundle reports whether a value is for [ParseBundle]: it is of the
// scene-builder and holds choreographies, whether or not it has a scene too.
func IsBundle(v signal.Value) bool {
	if kindOf(v) == native {
		return false
	}
	for _, name := range [...]string{"choreographies", "choreographies.json"} {
		member, _ := v.Get(name)
		if k := member.Kind(); k == signal.KindArray || k == signal.KindObject {
			return true
		}
	}
	return false
}

// structural are the actions of steps that only hold other steps.
var structural = map[string]bool{"parallel": true, "onArrive": true, "onInterrupt": true}

// declarations translates the choreographies and bindings.
func (i *importer) declarations() []signal.Value {
	var all []signal.Value
	ids := map[string][]string{} // what an editor's choreography became
	wired := i.wired()
	for _, list := range i.choreographies {
		for k, at := range elements(list) {
			if k >= MaxItems {
				i.errorf(list, "choreographies holds more than %d", MaxItems)
				break
			}
			if at.value.Kind() != signal.KindObject {
				i.lose("no choreography", at, "it is no choreography, and is left out")
				continue
			}
			i.known(at, "a choreography", "id", "on", "when", "interrupts", "steps", "defaultTargetEntityId",
				"name", "nodeX", "nodeY", "collapsed")
			id, on := i.text(at, "id"), i.text(at, "on")
			if _, twice := ids[id]; twice {
				i.lose("second choreography", at, "there is a choreography "+wording.Quoted(id)+" already: this one is left out")
				continue
			}
			types := wired[id]
			if id == "" || len(types) == 0 {
				types = []string{on}
			} else if len(types) != 1 || types[0] != on {
				i.lose("wired", at.get("on"), "the signal types that are wired to it take the place of on: "+offered(types))
			}
			if types[0] == "" {
				i.lose("never", at, "nothing sets it off, neither on nor a wire: it is left out")
				continue
			}
			for n, typ := range types {
				own := id
				if n > 0 && id != "" {
					own = id + ":" + typ
				}
				if own != "" {
					ids[id] = append(ids[id], own)
				}
				all = append(all, i.choreography(at, own, typ))
			}
		}
	}
	for _, list := range i.bindings {
		for k, at := range elements(list) {
			if k >= MaxItems {
				i.errorf(list, "bindings holds more than %d", MaxItems)
				break
			}
			all = append(all, i.binding(at, ids)...)
		}
	}
	return all
}

// wired returns the signal types that wires lead to each choreography from.
func (i *importer) wired() map[string][]string {
	types := map[string][]string{}
	seen := map[[2]string]bool{}
	for _, list := range i.wires {
		for _, at := range elements(list) {
			from, to := i.text(at, "fromZone"), i.text(at, "toZone")
			typ, id := i.text(at, "fromId"), i.text(at, "toId")
			switch {
			case from == "signal-type" && to == "choreographer" && strings.HasPrefix(typ, "__"):
				i.lose("filter", at, "the filter of a wire is not known here: the wire is left out")
			case from == "signal-type" && to == "choreographer":
				if len(types[id]) >= maxWires {
					i.lose("many wires", at, "the other wires to this choreography are left out: there are too many")
				} else if typ != "" && id != "" && !seen[[2]string{id, typ}] {
					seen[[2]string{id, typ}] = true
					types[id] = append(types[id], typ)
				}
			case to == "shader", to == "p5":
				i.lose("wire to "+to, at, "wires to a "+to+" have no effect: it is not shown")
			}
		}
	}
	return types
}

// choreography translates one choreography of the editor.
func (i *importer) choreography(n *node, id, on string) signal.Value {
	var o object
	if id != "" {
		o.text("id", id)
	}
	o.text("on", on)
	if when := n.get("when"); when.value.Kind() > signal.KindNull {
		o.put("when", when.value)
	}
	if interrupts := n.get("interrupts"); i.truth(n, "interrupts", false) {
		o.put("interrupts", interrupts.value)
	}
	o.list("steps", i.steps(n.get("steps"), i.text(n, "defaultTargetEntityId")))
	return o.value()
}

// steps translates a list of steps. It recurses once for each nesting, which
// the value has bounded.
func (i *importer) steps(list *node, target string) []signal.Value {
	var all []signal.Value
	for _, at := range elements(list) {
		action := i.text(at, "action")
		if action == "" {
			i.lose("no action", at, "a step without an action does nothing, and is left out")
			continue
		}
		var o object
		o.text("action", action)
		if structural[action] {
			i.known(at, "a step that holds others", "id", "action", "children", "params", "entity", "target", "delay", "duration", "easing")
			o.list("steps", i.steps(at.get("children"), target))
			all = append(all, o.value())
			continue
		}
		i.known(at, "a step", "id", "action", "entity", "target", "delay", "duration", "easing", "params", "children")
		params := at.get("params")
		put := func(name string, v signal.Value) {
			// What params say takes the place of what the step says.
			if _, ok := params.value.Get(name); !ok {
				o.put(name, v)
			}
		}
		switch entity := at.get("entity"); {
		case i.text(at, "entity") != "":
			put("entity", entity.value)
		case target != "" && action != "wait":
			put("entity", textValue(target))
		}
		if i.text(at, "target") != "" {
			put("target", at.get("target").value)
		}
		if delay := at.get("delay"); delay.value.Kind().IsNumber() {
			if ms, _ := delay.value.Float64(); ms > 0 {
				put("delay", delay.value)
			}
		}
		for _, name := range [...]string{"duration", "easing"} {
			if v := at.get(name).value; v.Kind() > signal.KindNull {
				put(name, v)
			}
		}
		for name, v := range params.value.Members() {
			if name != "action" {
				o.put(name, v)
			}
		}
		all = append(all, o.value())
	}
	return all
}

// binding translates one binding, into as many as its choreography became.
func (i *importer) binding(n *node, ids map[string][]string) []signal.Value {
	i.known(n, "a binding", "id", "targetEntityId", "property", "sourceChoreographyId", "sourceType",
		"mapping", "action", "sourceField", "transition")
	source := i.text(n, "sourceChoreographyId")
	if len(ids[source]) == 0 {
		i.lose("unbound", n, "the binding's choreography is not there: the binding is left out")
		return nil
	}
	id := i.text(n, "id")
	if id == "" {
		id = source + ":" + i.text(n, "targetEntityId") + ":" + i.text(n, "property")
	}
	var all []signal.Value
	for k, choreography := range ids[source] {
		var o object
		own := id
		if k > 0 {
			own += strings.TrimPrefix(choreography, source)
		}
		o.text("id", own)
		// The editor's sourceType is a kind of value, which the property tells
		// as well; here it would be a signal type.
		o.text("sourceChoreographyId", choreography)
		for _, name := range [...]string{"targetEntityId", "property", "mapping", "action", "sourceField", "transition"} {
			if v := n.get(name).value; v.Kind() > signal.KindNull {
				o.put(name, v)
			}
		}
		all = append(all, o.value())
	}
	return all
}
