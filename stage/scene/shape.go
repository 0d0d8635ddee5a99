package scene

import (
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// shape judges a value of a file of another tool. The shapes below give the verdicts
// of the JSON Schemas of Sajou's stage scenes and entity visuals, with one exception: a
// file may name its schema in "$schema".
type shape func(i *importer, n *node)

// member is a member of an object with its shape.
type member struct {
	name     string
	required bool
	shape    shape
}

func required(name string, s shape) member { return member{name, true, s} }

func optional(name string, s shape) member { return member{name, false, s} }

// objectShape returns the shape of an object with these members and no others. What
// describes the object in messages.
func objectShape(what string, members ...member) shape {
	var names []string
	for _, m := range members {
		names = append(names, m.name)
	}
	has := strings.Join(names, ", ")
	return func(i *importer, n *node) {
		if !i.isKind(n, signal.KindObject) {
			return
		}
		for _, m := range members {
			at := n.get(m.name)
			switch {
			case at.there():
				m.shape(i, at)
			case m.required:
				i.errorf(n, "%s is missing in %s", wording.Quoted(m.name), what)
			}
		}
		for name, v := range n.value.Members() {
			if !slices.Contains(names, name) {
				i.part(n).unknown(n.at(name, v), what, has)
			}
		}
	}
}

// tableShape returns the shape of an object whose members, at least least, have one shape.
func tableShape(least int, of shape) shape {
	return func(i *importer, n *node) {
		if !i.isKind(n, signal.KindObject) {
			return
		}
		if n.value.Len() < least {
			i.errorf(n, "%s must not be empty", called(n))
		}
		for name, v := range n.value.Members() {
			of(i, n.at(name, v))
		}
	}
}

// listShape returns the shape of an array of at least least elements, and at most most
// unless that is 0.
func listShape(least, most int, of shape) shape {
	return func(i *importer, n *node) {
		if !i.isKind(n, signal.KindArray) {
			return
		}
		switch size := n.value.Len(); {
		case size >= least && (most == 0 || size <= most):
		case least == most:
			i.errorf(n, "%s must have %d elements, not %d", called(n), least, size)
		default:
			i.errorf(n, "%s must not be empty", called(n))
		}
		for _, at := range elements(n) {
			of(i, at)
		}
	}
}

func textShape(i *importer, n *node) { i.isKind(n, signal.KindString) }

func boolShape(i *importer, n *node) { i.isKind(n, signal.KindBool) }

// wordShape returns the shape of a text that is one of a few.
func wordShape(words ...string) shape {
	return func(i *importer, n *node) {
		if text, ok := n.value.Text(); !ok || !slices.Contains(words, text) {
			i.errorf(n, "%s must be one of %s, not %s", called(n), strings.Join(words, ", "), wording.Clip(n.value.String(), 60))
		}
	}
}

// hexColorShape is the shape of a color that is written #rrggbb. Unlike a scene of this
// package, the files of other tools have no names of colors.
func hexColorShape(i *importer, n *node) {
	text, _ := n.value.Text()
	digits, hex := strings.CutPrefix(text, "#")
	if !hex || len(digits) != 6 || !isColor(text) {
		i.errorf(n, "%s must be a color such as #ff6b35, not %s", called(n), wording.Clip(n.value.String(), 60))
	}
}

func numberShape(i *importer, n *node) {
	if !n.value.Kind().IsNumber() {
		i.errorf(n, "%s must be a number, not %s", called(n), n.value.Kind().WithArticle())
	}
}

// numberFrom returns the shape of a number that is not below least.
func numberFrom(least float64) shape {
	return func(i *importer, n *node) {
		if f, ok := n.value.Float64(); !ok || f < least {
			i.errorf(n, "%s must be a number from %g, not %s", called(n), least, wording.Clip(n.value.String(), 60))
		}
	}
}

// wholeFrom returns the shape of a whole number that is not below least.
func wholeFrom(least float64) shape {
	return func(i *importer, n *node) {
		if f, ok := n.value.Float64(); !ok || f < least || f != math.Trunc(f) {
			i.errorf(n, "%s must be a whole number from %g, not %s", called(n), least, wording.Clip(n.value.String(), 60))
		}
	}
}

func shareShape(i *importer, n *node) {
	if f, ok := n.value.Float64(); !ok || f < 0 || f > 1 {
		i.errorf(n, "%s must be a number from 0 to 1, not %s", called(n), wording.Clip(n.value.String(), 60))
	}
}

// isKind reports whether a value is of a kind, and adds an error if not.
func (i *importer) isKind(n *node, kind signal.ValueKind) bool {
	if n.value.Kind() == kind {
		return true
	}
	i.errorf(n, "%s must be %s, not %s", called(n), kind.WithArticle(), n.value.Kind().WithArticle())
	return false
}

var (
	positionShape = objectShape("a position", required("x", numberShape), required("y", numberShape))
	rangeShape    = listShape(2, 2, numberFrom(0))
)

// stageScene is the shape of a stage scene.
var stageScene = objectShape("a stage scene",
	optional("$schema", textShape),
	required("board", objectShape("a board",
		required("projection", wordShape("isometric", "top-down")),
		optional("angle", numberShape),
		required("zones", listShape(1, 0, objectShape("a zone",
			required("id", textShape),
			optional("label", textShape),
			optional("elevation", numberShape),
			required("bounds", objectShape("bounds",
				required("x", numberShape), required("y", numberShape), required("w", numberFrom(0)), required("h", numberFrom(0)))),
			optional("ambiance", objectShape("an ambiance",
				optional("lighting", textShape), optional("particles", textShape), optional("soundLoop", textShape))),
			optional("slots", listShape(0, 0, objectShape("a slot",
				required("id", textShape), required("position", positionShape), optional("role", textShape)))),
			optional("connections", listShape(0, 0, objectShape("a connection",
				required("to", textShape), required("type", wordShape("stairs", "bridge", "portal", "path")), optional("path", textShape)))),
		))),
	)),
	optional("lighting", objectShape("lighting",
		optional("global", objectShape("a global light",
			required("type", wordShape("directional")), required("angle", numberShape), required("elevation", numberShape),
			required("color", hexColorShape), required("intensity", numberFrom(0)))),
		optional("sources", listShape(0, 0, objectShape("a source of light",
			required("id", textShape), required("type", wordShape("point", "spot")), required("position", positionShape),
			required("color", hexColorShape), required("intensity", numberFrom(0)), required("radius", numberFrom(0)),
			optional("flicker", objectShape("a flicker", required("speed", numberFrom(0)), required("amount", shareShape)))))),
	)),
	optional("particles", tableShape(0, objectShape("a system of particles",
		required("emitter", textShape), required("sprite", textShape), optional("type", wordShape("radial", "directional")),
		required("count", wholeFrom(1)), required("lifetime", rangeShape),
		optional("velocity", objectShape("a velocity", optional("x", listShape(2, 2, numberShape)), optional("y", listShape(2, 2, numberShape)))),
		optional("direction", positionShape), optional("speed", rangeShape), optional("colorOverLife", listShape(0, 0, textShape)),
		optional("size", rangeShape), optional("glow", boolShape)))),
	optional("entities", listShape(0, 0, objectShape("an entity",
		required("id", textShape),
		optional("displayName", textShape),
		optional("rig", wordShape("humanoid", "quadruped", "flying", "mechanical", "static")),
		required("visual", objectShape("a visual",
			required("spritesheet", textShape), optional("normalMap", textShape), required("frameSize", listShape(2, 2, wholeFrom(1))),
			required("animations", tableShape(0, objectShape("an animation",
				required("frames", listShape(1, 0, wholeFrom(0))), required("fps", numberFrom(1)), optional("loop", boolShape)))))),
		optional("interactions", listShape(0, 0, objectShape("an interaction",
			required("type", wordShape("click", "context_menu", "drag")), optional("signal", textShape), optional("label", textShape), modeMember,
			optional("options", listShape(0, 0, objectShape("an option", required("label", textShape), required("signal", textShape), modeMember)))))),
		optional("slot", textShape),
		optional("state", textShape),
	))),
)

var modeMember = optional("mode", wordShape("drag_to_slot", "drag_free"))

// themeVisuals is the shape of the table of entity visuals of a theme. That of the
// scene-builder, which has a version, is another format.
var themeVisuals = objectShape("a table of entity visuals",
	optional("$schema", textShape),
	required("entities", tableShape(0, objectShape("an entity",
		required("displayWidth", numberFrom(1)), required("displayHeight", numberFrom(1)), required("fallbackColor", hexColorShape),
		required("states", tableShape(1, visualState))))),
)

var (
	staticState = objectShape("a static state",
		required("type", textShape), required("asset", textShape),
		optional("sourceRect", objectShape("a sourceRect",
			required("x", numberFrom(0)), required("y", numberFrom(0)), required("w", numberFrom(1)), required("h", numberFrom(1)))))
	spritesheetState = objectShape("a spritesheet state",
		required("type", textShape), required("asset", textShape), required("frameWidth", numberFrom(1)), required("frameHeight", numberFrom(1)),
		required("frameCount", numberFrom(1)), optional("frameRow", numberFrom(0)), optional("frameStart", numberFrom(0)),
		required("fps", numberFrom(1)), optional("loop", boolShape))
)

// visualState is the shape of a state of an entity, whose type decides its members.
func visualState(i *importer, n *node) {
	switch text, _ := n.get("type").value.Text(); {
	case n.value.Kind() != signal.KindObject, text == "static":
		staticState(i, n)
	case text == "spritesheet":
		spritesheetState(i, n)
	case n.get("type").there():
		wordShape("static", "spritesheet")(i, n.get("type"))
	default:
		i.errorf(n, `"type" is missing in a state: static or spritesheet`)
	}
}
