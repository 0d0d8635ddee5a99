package scene

import (
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// BundleFile is one file of a bundle.
type BundleFile struct {
	Name string // as it appears in diagnostics
	Text []byte // JSON, or YAML as [authored.Read] tells by the name
}

// ParseBundle reads a text that may hold more than a scene: the state of the
// scene-builder, or one of the files of its export. Rest are the choreographies
// and bindings, in the form in which package choreography takes them. The scene
// is nil if the text has none; both are nil if any diagnostic is an error.
//
// The scene-builder's editor keeps choreographies in its own form, which is translated:
// params become members of the step, children become its steps, and a step without an
// entity gets the choreography's defaultTargetEntityId. The signal types that are wired to
// a choreography replace its "on": each gives one choreography.
func ParseBundle(file string, text []byte) (*Scene, []signal.Value, authored.Diagnostics) {
	return ParseFiles(BundleFile{file, text})
}

// ParseFiles is [ParseBundle] for a bundle of several files, as the
// scene-builder exports it: scene.json, entities.json, choreographies.json and
// shaders.json. Their contents identify them; their order is free.
func ParseFiles(files ...BundleFile) (*Scene, []signal.Value, authored.Diagnostics) {
	var sources []*authored.Text
	for _, f := range files {
		t, refused := authored.Read(f.Name, f.Text)
		if refused != nil {
			return nil, nil, refused
		}
		if err := definition.CheckNesting(t.Value); err != nil {
			return nil, nil, authored.Diagnostics{authored.SyntaxDiagnostic(f.Name, f.Text, err)}
		}
		if kindOf(t.Value) == native {
			s, ds := Parse(f.Name, f.Text)
			if len(files) > 1 && s != nil {
				ds = append(ds, authored.Diagnostic{
					File: f.Name, Line: 1, Column: 1, Severity: authored.SeverityError,
					Message: "a scene of this format is whole by itself: read it alone",
				})
			}
			if ds.Refused() {
				s = nil
			}
			return s, nil, ds
		}
		sources = append(sources, t)
	}
	i := newImport(sources)
	if i.state == nil && i.board == nil && i.visuals == nil && len(i.choreographies) == 0 {
		for _, d := range i.parts {
			i.errorf(d.root, "this is not a scene, and not a part of an export of the scene-builder")
		}
	}
	var s *Scene
	if i.state != nil || i.board != nil || i.visuals != nil {
		s = i.scene()
	}
	rest := i.declarations()
	ds := i.diagnostics()
	if ds.Refused() {
		return nil, nil, ds
	}
	return s, rest, ds
}

// maxWires bounds the signal types that start one choreography, since each gives a
// choreography of its own.
const maxWires = 64

// structural are the actions of steps that only group other steps.
var structural = map[string]bool{"parallel": true, "onArrive": true, "onInterrupt": true}

// declarations translates the choreographies and bindings.
func (i *importer) declarations() []signal.Value {
	var all []signal.Value
	ids := map[string][]string{} // the ids of the choreographies by the id in the editor
	wired := i.wired()
	for _, list := range i.choreographies {
		for _, at := range elements(i.bounded(list, "choreographies")) {
			if at.value.Kind() != signal.KindObject {
				i.lose("no choreography", at, "it is not a choreography, and is left out")
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
			steps := i.choreographySteps(at)
			for n, typ := range types {
				own := id
				if n > 0 && id != "" {
					own = id + ":" + typ
				}
				if own != "" {
					ids[id] = append(ids[id], own)
				}
				if !i.hasRoom(at, len(steps)) {
					return nil
				}
				all = append(all, i.choreography(at, own, typ, steps))
			}
		}
	}
	for _, list := range i.bindings {
		for _, at := range elements(i.bounded(list, "bindings")) {
			all = append(all, i.binding(at, ids)...)
			if i.made > definition.MaxBytesInForce {
				return nil
			}
		}
	}
	return all
}

// hasRoom counts a declaration of the given size, made from n. It reports whether all
// declarations so far fit into the budget of a session, and adds an error if not.
func (i *importer) hasRoom(n *node, bytes int) bool {
	if i.made += bytes + definition.BytesPerDeclaration; i.made > definition.MaxBytesInForce {
		i.errorf(n, "with it, the choreographies and bindings take more than %d MiB, each counted for every signal type that is wired to it", definition.MaxBytesInForce>>20)
		return false
	}
	return true
}

// choreographySteps translates the steps of one choreography, once for all signal
// types that are wired to it.
func (i *importer) choreographySteps(n *node) signal.Value {
	all := i.stepsOf(n.get("steps"), i.text(n, "defaultTargetEntityId"))
	return signal.Array(all...)
}

// wired returns the signal types that are wired to each choreography.
func (i *importer) wired() map[string][]string {
	types := map[string][]string{}
	seen := map[[2]string]bool{}
	for _, list := range i.wires {
		for _, at := range elements(i.bounded(list, "wires")) {
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
func (i *importer) choreography(n *node, id, on string, steps signal.Value) signal.Value {
	var o signal.Object
	if id != "" {
		o.Text("id", id)
	}
	o.Text("on", on)
	if when := n.get("when"); when.value.Kind() > signal.KindNull {
		o.Add("when", when.value)
	}
	if interrupts := n.get("interrupts"); i.truth(n, "interrupts", false) {
		o.Add("interrupts", interrupts.value)
	}
	o.Add("steps", steps)
	return o.Value()
}

// stepsOf translates a list of steps. It recurses once for each level of nesting, which
// is bounded in every value.
func (i *importer) stepsOf(list *node, target string) []signal.Value {
	var all []signal.Value
	for _, at := range elements(list) {
		if i.steps++; i.steps > definition.MaxSteps {
			if !i.refused(list) {
				i.errorf(list, "the choreographies have more than %d steps", definition.MaxSteps)
			}
			return nil
		}
		action := i.text(at, "action")
		if action == "" {
			i.lose("no action", at, "a step without an action does nothing, and is left out")
			continue
		}
		var o signal.Object
		o.Text("action", action)
		if structural[action] {
			i.known(at, "a step that holds others", "id", "action", "children", "params", "entity", "target", "delay", "duration", "easing")
			o.Add("steps", signal.Array(i.stepsOf(at.get("children"), target)...))
			all = append(all, o.Value())
			continue
		}
		i.known(at, "a step", "id", "action", "entity", "target", "delay", "duration", "easing", "params", "children")
		params := at.get("params")
		put := func(name string, v signal.Value) {
			// A member of params has precedence over the same member of the step.
			if _, ok := params.value.Get(name); !ok {
				o.Add(name, v)
			}
		}
		switch entity := at.get("entity"); {
		case i.text(at, "entity") != "":
			put("entity", entity.value)
		case target != "" && action != "wait":
			put("entity", signal.Text(target))
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
				o.Add(name, v)
			}
		}
		written := o.Value()
		all = append(all, written)
		if i.stepBytes += len(written); i.stepBytes > definition.MaxBytesInForce {
			if !i.refused(list) {
				i.errorf(list, "the steps of the choreographies take more than %d MiB", definition.MaxBytesInForce>>20)
			}
			return nil
		}
	}
	return all
}

// refused reports whether the text of a node has an error.
func (i *importer) refused(n *node) bool { return i.part(n).Refused() }

// binding translates one binding: one for each choreography that was made of its own.
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
		var o signal.Object
		own := id
		if k > 0 {
			own += strings.TrimPrefix(choreography, source)
		}
		o.Text("id", own)
		// The editor's sourceType is left out: it is a kind of value, which follows from
		// the property, while in a binding it would be a signal type.
		o.Text("sourceChoreographyId", choreography)
		for _, name := range [...]string{"targetEntityId", "property", "mapping", "action", "sourceField", "transition"} {
			if v := n.get(name).value; v.Kind() > signal.KindNull {
				o.Add(name, v)
			}
		}
		binding := o.Value()
		if !i.hasRoom(n, len(binding)) {
			return nil
		}
		all = append(all, binding)
	}
	return all
}
