package stage

import (
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// property is a property that set changes. The numbers are part of the state format.
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

// propertyNamed returns the property of a name.
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

// channel returns the numeric channel of the property, if it has one. The properties
// before propText have the numbers of their channels.
func (p property) channel() (channel, bool) { return channel(p), p < propText }

// undo is the value of a property before its last set. Only the performance that set it
// can restore it, or the performance that preempts that one; see [act.leaveUndo].
type undo struct {
	property    property
	performance performanceKey
	number      float64 // visible: 1 or 0
	text        string  // the color of a tint
}

// interruptedAt stands for a performance that was interrupted at an instant while it
// moved a property. It cannot be confused with a performance, whose index is never 0.
func interruptedAt(at time.Duration) performanceKey { return performanceKey{seq: uint64(at)} }

// leaveUndo leaves the undo values of a, which is interrupted, to the performance
// that sets the same properties at this same instant, which is the one that preempted
// it. Its revert then restores the value before both, not one in the middle of a
// movement.
func (a *act) leaveUndo(at time.Duration) {
	for c := a.first; c != nil; c = c.next {
		for p := range propText {
			if ch, _ := p.channel(); c.kind != asLine || !c.mask.has(ch) {
				continue
			}
			if i, found := c.entity.undone(p); found && c.entity.undo[i].performance == a.performance() {
				c.entity.undo[i].performance = interruptedAt(at)
			}
		}
	}
}

// set performs the action set.
func (s *Stage) set() {
	v, _ := s.current.Param("property")
	name, _ := v.Text()
	p, ok := propertyNamed(name)
	if !ok {
		s.report(noteValue, "", "property")
		return
	}
	v, _ = s.current.Param("value")
	revert := s.flagParam("revert")
	if back, ok := v.Get("revert"); ok {
		b, _ := back.Bool()
		revert = revert || b
	}
	for _, e := range s.targets() {
		if revert {
			s.revert(e, p)
			continue
		}
		before := s.currentValue(e, p)
		if after, ok := s.readValue(e, p, v); ok {
			s.setProperty(e, p, after)
			s.remember(e, before)
		}
	}
}

// currentValue returns the present value of a property.
func (s *Stage) currentValue(e *entity, p property) undo {
	u := undo{property: p, performance: s.performance()}
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

// readValue reads the new value of a property. It returns false, and counts a
// diagnostic, if the value cannot be used.
func (s *Stage) readValue(e *entity, p property, v signal.Value) (undo, bool) {
	u := undo{property: p}
	ok := true
	switch p {
	case propTint:
		u.text, u.number, ok = s.tintOf(e, v)
	case propText:
		u.text, ok = s.textOf(v, "value")
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

// visibleOf reads the visibility of e. Without a value, or with "toggle", it is
// inverted.
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

// tintOf reads a color, {color, strength}, or null for no tint.
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

// setProperty sets a property: numbers and the tint over the duration of the act,
// all others at its start.
func (s *Stage) setProperty(e *entity, p property, to undo) {
	e.touched = true
	switch p {
	case propTint:
		from, _ := e.tinted(s.now)
		c := s.animateTo(e, chTint, to.number)
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
		s.animateTo(e, ch, to.number)
	}
}

// remember stores the value that a property had before its set. If the act of a
// preempted performance was moving it at this instant, the value before that act stays.
func (s *Stage) remember(e *entity, u undo) {
	i, found := e.undone(u.property)
	switch {
	case !found:
		e.undo = slices.Insert(e.undo, i, u)
	case e.undo[i].performance == interruptedAt(s.now):
		e.undo[i].performance = u.performance
	default:
		e.undo[i] = u
	}
}

// undone finds a property in the undo values, which are ordered by property.
func (e *entity) undone(p property) (int, bool) {
	return slices.BinarySearchFunc(e.undo, p, func(u undo, p property) int { return int(u.property) - int(p) })
}

// revert restores the value before the last set, if the same performance made that set.
// A revert with a duration keeps the value, which a preempting performance may need.
func (s *Stage) revert(e *entity, p property) {
	i, found := e.undone(p)
	if !found || e.undo[i].performance != s.performance() {
		return
	}
	u := e.undo[i]
	if s.current.instant {
		e.undo = slices.Delete(e.undo, i, i+1)
	}
	s.setProperty(e, p, u)
}
