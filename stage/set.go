package stage

import (
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// property is what set can set. The numbers are part of the state format.
type property uint8

const (
	propX property = iota
	propY
	propOpacity
	propTint
	propScale
	propRotation
	propText
	propLayer
	propVisible
	propState
	propLabel
	properties
)

// propertyNamed reads a property as set has it.
func propertyNamed(name string) (property, bool) {
	switch name {
	case "x", "position.x":
		return propX, true
	case "y", "position.y":
		return propY, true
	case "opacity":
		return propOpacity, true
	case "tint":
		return propTint, true
	case "scale":
		return propScale, true
	case "rotation":
		return propRotation, true
	case "text":
		return propText, true
	case "layer":
		return propLayer, true
	case "visible":
		return propVisible, true
	case "state":
		return propState, true
	case "label":
		return propLabel, true
	}
	return 0, false
}

// channel returns the channel of numbers that the property is.
func (p property) channel() (channel, bool) { return channel(p), p < propText }

// undo is what a property was before its last set. Only the performance that
// set it can go back, or who comes in its place: see [act.bequeath].
type undo struct {
	property property
	run      run
	number   float64 // visible: 1 or 0
	text     string  // of tint the color
}

// brokenOff stands for a performance that was interrupted at an instant while
// it moved a property. No performance has the index 0.
func brokenOff(at time.Duration) run { return run{seq: uint64(at)} }

// bequeath leaves what properties were before a was to move them to whoever sets
// them at this very instant, which is who preempted it: where it goes back to is
// not some point on a way that was never gone to its end.
func (a *act) bequeath(at time.Duration) {
	for c := a.first; c != nil; c = c.next {
		for p := range propText {
			if ch, _ := p.channel(); c.kind != asLine || !c.mask.has(ch) {
				continue
			}
			if i, found := c.entity.undone(p); found && c.entity.undo[i].run == a.run() {
				c.entity.undo[i].run = brokenOff(at)
			}
		}
	}
}

// set is the action.
func (s *Stage) set() {
	v, _ := s.deed.Param("property")
	name, _ := v.Text()
	p, ok := propertyNamed(name)
	if !ok {
		s.report(noteValue, "", "property")
		return
	}
	v, _ = s.deed.Param("value")
	revert := s.flag("revert")
	if back, ok := v.Get("revert"); ok {
		b, _ := back.Bool()
		revert = revert || b
	}
	for _, e := range s.players() {
		if revert {
			s.revert(e, p)
			continue
		}
		before := s.present(e, p)
		if after, ok := s.wanted(e, p, v); ok {
			s.bring(e, p, after)
			s.remember(e, before)
		}
	}
}

// present returns what a property is now.
func (s *Stage) present(e *entity, p property) undo {
	u := undo{property: p, run: s.run()}
	switch p {
	case propTint:
		u.text, u.number = e.tinted(s.now)
	case propText:
		u.text, _ = e.text(s.now)
	case propLayer:
		u.number = float64(e.layer)
	case propVisible:
		u.number = truth(e.visible)
	case propState:
		u.text = e.state
	case propLabel:
		u.text = e.shownLabel()
	default:
		ch, _ := p.channel()
		u.number = e.value(ch, s.now)
	}
	return u
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// wanted reads what a property is to be.
func (s *Stage) wanted(e *entity, p property, v signal.Value) (undo, bool) {
	u := undo{property: p}
	ok := true
	switch p {
	case propTint:
		u.text, u.number, ok = s.tintOf(e, v)
	case propText:
		u.text, ok = s.wordingOf(v, "value")
		return u, ok
	case propLayer:
		u.number = float64(s.layerParam(v, "value", e.layer))
	case propVisible:
		u.number, ok = visibleOf(e, v)
	case propState:
		u.text = s.nameOf(v, "value", e.state)
	case propLabel:
		if name, isText := v.Text(); !isText || name != "" {
			u.text = s.nameOf(v, "value", e.shownLabel())
		}
	default:
		u.number, ok = finite(v)
	}
	if !ok {
		s.report(noteValue, "", "value")
	}
	return u, ok
}

// visibleOf reads whether e is to be seen. Without a value, or with "toggle", it
// is the other way round.
func visibleOf(e *entity, v signal.Value) (float64, bool) {
	if b, ok := v.Bool(); ok {
		return truth(b), true
	}
	if f, ok := finite(v); ok {
		return truth(f != 0), true
	}
	word, _ := v.Text()
	if kind := v.Kind(); kind == signal.KindAbsent || kind == signal.KindNull || word == "toggle" {
		return truth(!e.visible), true
	}
	return 0, false
}

// tintOf reads a color, or {color, strength}, or nothing for no tint.
func (s *Stage) tintOf(e *entity, v signal.Value) (color string, strength float64, ok bool) {
	present, _ := e.tinted(s.now)
	switch v.Kind() {
	case signal.KindNull:
		return present, 0, true
	case signal.KindString:
		if color = s.nameOf(v, "value", ""); color == "" {
			return present, 0, true
		}
		return color, 1, true
	case signal.KindObject:
		c, _ := v.Get("color")
		color = present
		if c.Kind() == signal.KindString {
			color = s.nameOf(c, "value", present)
		}
		strength = 1
		if n, given := v.Get("strength"); given {
			if strength, ok = finite(n); !ok {
				return "", 0, false
			}
		}
		return color, chTint.bound(strength), true
	default:
		return "", 0, false
	}
}

// bring makes a property what it is to be: numbers and the tint at once or by
// and by, whatever has nothing in between at the start.
func (s *Stage) bring(e *entity, p property, to undo) {
	e.touched = true
	switch p {
	case propTint:
		from, _ := e.tinted(s.now)
		c := s.glide(e, chTint, to.number)
		if to.text == "" {
			to.text = from
		}
		if c != nil {
			c.text = to.text
		} else {
			e.color = to.text
		}
	case propText:
		s.take(e, chText.mask())
		e.words = words{text: to.text}
	case propLayer:
		e.layer = s.layerOf(to.number)
	case propVisible:
		e.visible = to.number != 0
	case propState:
		e.state = to.text
	case propLabel:
		e.label, e.labelled = to.text, true
	default:
		ch, _ := p.channel()
		s.glide(e, ch, to.number)
	}
}

// remember keeps what a property was.
func (s *Stage) remember(e *entity, u undo) {
	i, found := e.undone(u.property)
	switch {
	case !found:
		e.undo = slices.Insert(e.undo, i, u)
	case e.undo[i].run == brokenOff(s.now):
		e.undo[i].run = u.run
	default:
		e.undo[i] = u
	}
}

func (e *entity) undone(p property) (int, bool) {
	return slices.BinarySearchFunc(e.undo, p, func(u undo, p property) int { return int(u.property) - int(p) })
}

// revert brings back what a property was before the last set, if that was this
// performance's.
func (s *Stage) revert(e *entity, p property) {
	i, found := e.undone(p)
	if !found || e.undo[i].run != s.run() {
		return
	}
	u := e.undo[i]
	if s.deed.instant {
		e.undo = slices.Delete(e.undo, i, i+1)
	}
	s.bring(e, p, u)
}
