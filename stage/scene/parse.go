package scene

import (
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
)

// Parse parses the text of a file, JSON or YAML, as a scene and returns diagnostics for
// its author, which name the file; [authored.Read] says which names are those of YAML.
// The scene is nil if any diagnostic is of severity [authored.SeverityError].
//
// A scene of one of Sajou's tools is translated: the result's Value is in the
// format of this package. Of a bundle only the scene is read; see [ParseBundle].
func Parse(file string, text []byte) (*Scene, authored.Diagnostics) {
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil, refused
	}
	if kindOf(t.Value) != foreign {
		var r reader
		s := r.scene(&node{value: t.Value})
		if r.Refused() {
			s = nil
		}
		return s, t.Placed(r.Diagnostics(file, t.JSON))
	}
	i := newImport([]*authored.Text{t})
	s := i.scene()
	for _, list := range append(i.choreographies, i.bindings...) {
		if list.value.Len() > 0 {
			i.lose("rest", list, "choreographies and bindings are not part of the scene, and are left out")
		}
	}
	return s, i.diagnostics()
}

// IsScene reports whether a value appears to be a scene, in the format of this
// package or one that [Parse] translates. In a file with other declarations it
// identifies those for this package.
func IsScene(v signal.Value) bool { return kindOf(v) != noScene }

// kind is the apparent intent of a value.
type kind int

const (
	noScene kind = iota
	native
	foreign
)

func kindOf(v signal.Value) kind {
	object := func(name string) bool {
		member, _ := v.Get(name)
		return member.Kind() == signal.KindObject
	}
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := v.Get(name); ok {
				return true
			}
		}
		return false
	}
	switch {
	case v.Kind() != signal.KindObject:
		return noScene
	case has("sajou"):
		return native
	case has("on", "steps", "sequence", "curve", "property"):
		return noScene
	case object("dimensions"), object("board"), object("scene"), object("scene.json"), isVisuals(v):
		return foreign
	case has("looks", "slots", "waypoints", "agents", "stranger", "impressions", "entities"):
		return native // a scene without "sajou"
	default:
		return noScene
	}
}

// isVisuals reports whether v is a table of entity visuals.
func isVisuals(v signal.Value) bool {
	entities, _ := v.Get("entities")
	if entities.Kind() != signal.KindObject || entities.Len() == 0 {
		return false
	}
	for _, e := range entities.Members() {
		for _, name := range [...]string{"fallbackColor", "displayHeight", "visual", "states"} {
			if _, ok := e.Get(name); ok {
				return true
			}
		}
	}
	return false
}

// isThemeTable reports whether a table of entity visuals is that of a theme. The table of
// the scene-builder has a version, or members in its entities that no theme has.
func isThemeTable(v signal.Value) bool {
	if _, ok := v.Get("version"); ok {
		return false
	}
	for _, e := range v.Member("entities").Members() {
		for _, name := range [...]string{"id", "tags", "defaults", "visual"} {
			if _, ok := e.Get(name); ok {
				return false
			}
		}
	}
	return true
}
