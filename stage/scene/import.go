package scene

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// part is one text of an import with its remarks.
type part struct {
	remarks
	text   *authored.Text
	root   *node
	losses int // kinds of them
}

// importer makes a scene, choreographies and bindings of the files of Sajou's tools. A
// stage scene and the entity visuals of a theme must have the shapes of their schemas.
// The files of the scene-builder have no schema, and the importer is lenient with them.
// Anything that it cannot translate is left out with a warning, one for each kind of loss.
type importer struct {
	parts  []*part
	losses []*loss
	byKind map[string]*loss
	s      *Scene
	places map[string]Point // slots and waypoints
	looks  map[string]*node // of the table

	state   *node // a scene of the scene-builder
	board   *node // a stage scene
	visuals *node // looks by name

	choreographies, bindings, wires []*node // lists

	steps     int // of choreographies that were translated
	stepBytes int // the size of those steps
	made      int // bytes of choreographies and bindings
}

// loss is one kind of content that was left out or changed.
type loss struct {
	first   *node
	message string
	count   int
}

func newImport(sources []*authored.Text) *importer {
	i := &importer{byKind: map[string]*loss{}, places: map[string]Point{}, looks: map[string]*node{}}
	for _, src := range sources {
		root := &node{value: src.Value}
		i.parts = append(i.parts, &part{text: src, root: root})
		i.sort(root)
	}
	return i
}

// sort assigns an object to the part of the import that it is, by its members.
func (i *importer) sort(n *node) {
	dimensions, board, entities := n.get("dimensions"), n.get("board"), n.get("entities")
	switch {
	case n.value.Kind() != signal.KindObject:
	case board.there():
		i.only(&i.board, n)
	case dimensions.there():
		i.only(&i.state, n)
	case isVisuals(n.value):
		if isThemeTable(n.value) {
			themeVisuals(i, n)
		} else {
			i.known(n, "a table of looks", "version", "entities")
		}
		i.only(&i.visuals, entities)
	default:
		for name, v := range n.value.Members() {
			i.member(strings.TrimSuffix(name, ".json"), n.at(name, v))
		}
	}
}

// member assigns a member of a bundle, or of one of its files, by its name.
func (i *importer) member(name string, at *node) {
	inner := func(name string) *node {
		if at.value.Kind() == signal.KindObject {
			return at.get(name)
		}
		return at
	}
	switch name {
	case "scene":
		i.sort(at)
	case "entities":
		if e := inner("entities"); e.value.Kind() == signal.KindObject {
			at = e
		}
		if at.value.Len() > 0 {
			i.only(&i.visuals, at)
		}
	case "choreographies":
		if at.value.Kind() == signal.KindObject {
			// In an export this file also holds the wires and bindings.
			for _, other := range [...]string{"wires", "bindings"} {
				if at.get(other).there() {
					i.member(other, at.get(other))
				}
			}
		}
		i.choreographies = append(i.choreographies, inner("choreographies"))
	case "wiring", "wires":
		i.wires = append(i.wires, inner("wires"))
	case "bindings":
		i.bindings = append(i.bindings, inner("bindings"))
	case "shaders", "p5":
		if list := inner(map[string]string{"shaders": "shaders", "p5": "sketches"}[name]); list.value.Len() > 0 {
			i.lose(name, list, name+" are not shown")
		}
	case "version", "signalSources", "editor", "timeline", "assets":
		// These concern only the editor.
	default:
		i.lose("member "+name, at, wording.Quoted(name)+" is not known here, and is left out")
	}
}

// only sets a part of which an import has one; further ones are left out.
func (i *importer) only(what **node, n *node) {
	if *what != nil {
		i.lose("second", n, "there is one already: this one is left out")
		return
	}
	*what = n
}

// scene translates the scene. It is nil if there are errors.
func (i *importer) scene() *Scene {
	i.s = &Scene{
		Width: defaultWidth, Height: defaultHeight, Background: defaultBackground, Layers: []string{defaultLayer},
		Looks: map[string]Look{}, Waypoints: map[string]Point{}, Routes: map[string]Route{},
		Stranger: defaultLook, Impressions: true,
	}
	at := i.parts[0].root
	if i.state == nil && i.board != nil {
		stageScene(i, i.board)
	}
	if i.anyRefused() {
		return nil
	}
	if i.visuals != nil {
		i.readVisuals(i.bounded(i.visuals, "entities"))
		at = i.visuals
	}
	switch {
	case i.state != nil:
		i.readState(i.state)
		at = i.state
		if i.board != nil {
			i.lose("second", i.board, "there is one already: this one is left out")
		}
	case i.board != nil:
		i.readBoard(i.board)
		at = i.board
	}
	if i.anyRefused() {
		return nil
	}
	// The translation is compiled as any other scene, so that it is subject to the same
	// checks.
	s, err := Compile(i.s.write())
	if err != nil {
		i.errorf(at, "it cannot be translated to a scene: %s", strings.TrimPrefix(err.Error(), definition.ErrInvalid.Error()+": "))
		return nil
	}
	return s
}

// anyRefused reports whether a text of the import has an error.
func (i *importer) anyRefused() bool {
	return slices.ContainsFunc(i.parts, func(p *part) bool { return p.Refused() })
}

func (i *importer) part(n *node) *part {
	for n.up != nil {
		n = n.up
	}
	for _, p := range i.parts {
		if p.root == n {
			return p
		}
	}
	return i.parts[0]
}

func (i *importer) errorf(n *node, format string, args ...any) { i.part(n).errorf(n, format, args...) }

func (i *importer) warnf(n *node, format string, args ...any) { i.part(n).warnf(n, format, args...) }

// lose reports that content is left out or changed. Losses of one kind share one
// warning.
func (i *importer) lose(kind string, n *node, message string) {
	if l := i.byKind[kind]; l != nil {
		l.count++
		return
	}
	p := i.part(n)
	if p.losses++; p.losses > authored.MaxDiagnostics {
		p.Omit()
		return
	}
	l := &loss{n, message, 1}
	i.byKind[kind] = l
	i.losses = append(i.losses, l)
}

// unseen reports members whose visible content is not shown.
func (i *importer) unseen(n *node, names ...string) {
	for _, name := range names {
		if at := n.get(name); at.value.Len() > 0 {
			verb := " are not shown"
			if name == "lighting" {
				verb = " is not shown"
			}
			i.lose(name, at, name+verb)
		}
	}
}

// known reports the members of an object that are not among the given names.
func (i *importer) known(n *node, what string, names ...string) {
	for name, v := range n.value.Members() {
		found := false
		for _, known := range names {
			found = found || known == name
		}
		if !found {
			i.lose("member "+name+" of "+what, n.at(name, v), wording.Quoted(name)+" of "+what+" is not known here, and is left out")
		}
	}
}

// diagnostics returns all remarks, file by file.
func (i *importer) diagnostics() authored.Diagnostics {
	for _, l := range i.losses {
		if l.count == 1 {
			i.warnf(l.first, "%s", l.message)
		} else {
			i.warnf(l.first, "%s (there are %d of the kind)", l.message, l.count)
		}
	}
	i.losses = nil
	var ds authored.Diagnostics
	for _, p := range i.parts {
		ds = append(ds, p.text.Placed(p.Diagnostics(p.text.File, p.text.JSON))...)
	}
	return ds
}

// put adds a slot or a waypoint, unless its name is taken.
func (i *importer) put(name string, p Point, slot bool) bool {
	if _, taken := i.places[name]; taken {
		return false
	}
	i.places[name] = p
	if slot {
		i.s.Slots = append(i.s.Slots, Slot{name, p})
	} else {
		i.s.Waypoints[name] = p
	}
	return true
}

// text returns a text member, or "" if it is of another kind.
func (i *importer) text(n *node, name string) string {
	at := n.get(name)
	text, ok := at.value.Text()
	if !ok && at.value.Kind() > signal.KindNull {
		i.lose("kind of "+name, at, name+" must be a string, not "+at.value.Kind().WithArticle()+": it is left out")
	}
	return text
}

// name returns a member that is used as a name.
func (i *importer) name(n *node, name string) string {
	text := i.text(n, name)
	if len(text) > MaxName {
		i.errorf(n.get(name), "a name must not be longer than %d bytes", MaxName)
	}
	return text
}

func (i *importer) truth(n *node, name string, otherwise bool) bool {
	at := n.get(name)
	b, ok := at.value.Bool()
	if !ok {
		if at.value.Kind() > signal.KindNull {
			i.lose("kind of "+name, at, name+" must be true or false, not "+at.value.Kind().WithArticle()+": it is left out")
		}
		return otherwise
	}
	return b
}

// number returns a numeric member, clamped to bounds.
func (i *importer) number(n *node, name string, least, most, otherwise float64) float64 {
	at := n.get(name)
	f, ok := at.value.Float64()
	switch {
	case !ok && at.value.Kind() > signal.KindNull:
		i.lose("kind of "+name, at, fmt.Sprintf("%s must be a number, not %s: %g is taken", name, at.value.Kind().WithArticle(), otherwise))
		return otherwise
	case !ok:
		return otherwise
	case f < least || f > most:
		i.lose("range of "+name, at, fmt.Sprintf("%s must be from %.0f to %.0f: the nearest is taken", name, least, most))
	}
	return math.Max(least, math.Min(f, most)) + 0
}

// coordinate returns x or y.
func (i *importer) coordinate(n *node, name string) float64 {
	return i.number(n, name, -farthest, farthest, 0)
}

// color returns a member that is a color, or otherwise.
func (i *importer) color(n *node, name, otherwise string) string {
	text := i.text(n, name)
	if text == "" {
		return otherwise
	}
	if text = strings.ToLower(text); !isColor(text) {
		i.lose("color", n.get(name), wording.Quoted(text)+" is not a known color: "+otherwise+" is taken")
		return otherwise
	}
	return text
}

// list returns a member that is an array; its value is absent for another kind.
func (i *importer) list(n *node, name string) *node {
	at := n.get(name)
	if k := at.value.Kind(); k > signal.KindNull && k != signal.KindArray {
		i.lose("kind of "+name, at, name+" must be an array, not "+k.WithArticle()+": it is left out")
	}
	return i.bounded(at, name)
}

// bounded returns a list, or an object whose members are listed, unless it has
// more than [MaxItems].
func (i *importer) bounded(at *node, name string) *node {
	if at.value.Len() > MaxItems {
		i.errorf(at, "%s holds more than %d", name, MaxItems)
		return &node{}
	}
	return at
}
