package stage

import (
	"maps"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

// stateVersion is the first element of a state. It changes with the format, and with
// every change of rules by which a restored state would continue differently.
const stateVersion = 2

// Append appends the state of s to dst: canonical bytes, equal for equal histories
// however time was divided. They are one MessagePack array:
//
//	[version, actions, now, choreographed, scene, placed, others, acts, beams, sounds, totals, recent]
//
//	actions  [[name, version]…], the custom ones by name
//	scene    as it was declared, nil for the default scene
//	placed   [[index, body…]…], the touched entities of the scene, in the
//	         order of the scene
//	others   [[id, actor, body…]…], entities that the scene does not place
//	body     look, label or nil, home, home x, home y, cell, numbers…, color,
//	         layer, visible, state, words, glow or nil, ray or nil, undo
//	numbers  x, y, opacity, strength of the tint, scale, rotation
//	words    text, or [text, stream, before, since, said] of speech
//	glow     [color, since]
//	ray      [to, x, y, since]
//	undo     [[property, seq, index, number, text]…] by property
//	acts     [[seq, index, node, start, duration, curve, claims]…] as they began
//	claims   [[entity, kind, channels, contested, members of the kind…]…]
//	beams    [[from, to or nil, x, y, name, color, width, began, act or nil, grown]…]
//	sounds   [[at, sound, entity]…]
//	totals   [conflicts, actions, entities, places, values, limits]
//	recent   [[at, kind, entity, channel, seq, index, seq, index, detail]…]
//	unresolved  [[slot, action, member, reference, at, seq, index, definition]…],
//	         the references that did not resolve; left out if there are none
//
// Entities are numbered from 0: all that the scene places, then the others. Acts are
// numbered in their order. Of the kinds of claim, a line has from, to, text; a way from
// x, from y, to x, to y, height, arrival; a route arrival and the numbers of its points;
// a pulse from and amount; typing its text; a custom claim the action's name, from, to,
// text, data.
func (s *Stage) Append(dst []byte) []byte {
	fields := uint32(stateFields)
	if len(s.diagnostics.unresolved) > 0 {
		fields++
	}
	dst = msgp.AppendArrayHeader(dst, fields)
	return s.appendRemarks(s.AppendWithoutRemarks(dst))
}

// AppendWithoutRemarks appends the state without the sounds and the diagnostics, on which
// nothing that comes later depends: stages with the same bytes continue alike, and look
// alike but for the notes of sounds.
func (s *Stage) AppendWithoutRemarks(dst []byte) []byte {
	dst = msgp.AppendInt(dst, stateVersion)
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.actions)))
	if len(s.actions) > 0 {
		for _, name := range slices.Sorted(maps.Keys(s.actions)) {
			dst = msgp.AppendArrayHeader(dst, 2)
			dst = msgp.AppendString(dst, name)
			dst = msgp.AppendUint32(dst, s.actions[name].Version)
		}
	}
	dst = msgp.AppendInt64(dst, int64(s.now))
	dst = msgp.AppendBool(dst, s.choreographed)
	if v := s.scene.Value(); len(v) > 0 {
		dst = append(dst, v...)
	} else {
		dst = msgp.AppendNil(dst)
	}

	placed, others := 0, 0
	for e := s.first; e != nil; e = e.next {
		switch {
		case e.def == nil:
			e.number = len(s.scene.Entities) + others
			others++
		default:
			e.number = e.index
			if e.touched {
				placed++
			}
		}
	}
	dst = msgp.AppendArrayHeader(dst, uint32(placed))
	e := s.first
	for ; e != nil && e.def != nil; e = e.next {
		if e.touched {
			dst = msgp.AppendArrayHeader(dst, 1+bodyFields)
			dst = msgp.AppendInt(dst, e.index)
			dst = e.append(dst)
		}
	}
	dst = msgp.AppendArrayHeader(dst, uint32(others))
	for ; e != nil; e = e.next {
		dst = msgp.AppendArrayHeader(dst, 2+bodyFields)
		dst = msgp.AppendString(dst, e.id)
		dst = msgp.AppendString(dst, e.actor)
		dst = e.append(dst)
	}

	acts := 0
	for a := s.firstAct; a != nil; a = a.next {
		a.number = acts
		acts++
	}
	dst = msgp.AppendArrayHeader(dst, uint32(acts))
	for a := s.firstAct; a != nil; a = a.next {
		dst = a.append(dst, s)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.beams)))
	for _, b := range s.beams {
		dst = b.append(dst)
	}
	return dst
}

// appendRemarks appends the sounds and the diagnostics.
func (s *Stage) appendRemarks(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.sounds)))
	for _, sound := range s.sounds {
		dst = msgp.AppendArrayHeader(dst, 3)
		dst = msgp.AppendInt64(dst, int64(sound.At))
		dst = msgp.AppendString(dst, sound.Sound)
		dst = msgp.AppendString(dst, sound.Entity)
	}
	return s.diagnostics.append(dst)
}

// stateFields is the number of elements of a state in which all references resolved.
const stateFields = 12

// bodyFields is the number of elements of an entity besides its index, or its id and
// actor.
const bodyFields = 14 + uint32(numbers)

func (e *entity) append(dst []byte) []byte {
	dst = msgp.AppendString(dst, e.look)
	if e.labelled {
		dst = msgp.AppendString(dst, e.label)
	} else {
		dst = msgp.AppendNil(dst)
	}
	dst = msgp.AppendString(dst, e.home)
	dst = appendPoint(dst, e.homeAt)
	dst = msgp.AppendInt32(dst, e.cell)
	for _, v := range e.values {
		dst = msgp.AppendFloat64(dst, v)
	}
	dst = msgp.AppendString(dst, e.color)
	dst = msgp.AppendInt(dst, e.layer)
	dst = msgp.AppendBool(dst, e.visible)
	dst = msgp.AppendString(dst, e.state)
	if w := &e.words; w.speech {
		dst = msgp.AppendArrayHeader(dst, 5)
		dst = msgp.AppendString(dst, w.text)
		dst = msgp.AppendBool(dst, w.stream)
		dst = msgp.AppendInt(dst, w.before)
		dst = msgp.AppendInt64(dst, int64(w.since))
		dst = msgp.AppendInt64(dst, int64(w.said))
	} else {
		dst = msgp.AppendString(dst, w.text)
	}
	if e.glow.color != "" {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, e.glow.color)
		dst = msgp.AppendInt64(dst, int64(e.glow.since))
	} else {
		dst = msgp.AppendNil(dst)
	}
	if e.ray.to != "" {
		dst = msgp.AppendArrayHeader(dst, 4)
		dst = msgp.AppendString(dst, e.ray.to)
		dst = appendPoint(dst, e.ray.at)
		dst = msgp.AppendInt64(dst, int64(e.ray.since))
	} else {
		dst = msgp.AppendNil(dst)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(e.undo)))
	for _, u := range e.undo {
		dst = msgp.AppendArrayHeader(dst, 5)
		dst = msgp.AppendUint8(dst, uint8(u.property))
		dst = u.performance.append(dst)
		dst = msgp.AppendFloat64(dst, u.number)
		dst = msgp.AppendString(dst, u.text)
	}
	return dst
}

func appendPoint(dst []byte, p scene.Point) []byte {
	dst = msgp.AppendFloat64(dst, p.X)
	return msgp.AppendFloat64(dst, p.Y)
}

func (r performanceKey) append(dst []byte) []byte {
	dst = msgp.AppendUint64(dst, r.seq)
	return msgp.AppendUint32(dst, r.index)
}

func (a *act) append(dst []byte, s *Stage) []byte {
	dst = msgp.AppendArrayHeader(dst, 7)
	dst = a.performance().append(dst)
	dst = msgp.AppendInt32(dst, a.key.Node)
	dst = msgp.AppendInt64(dst, int64(a.start))
	dst = msgp.AppendInt64(dst, int64(a.duration))
	dst = msgp.AppendString(dst, a.curve.String())
	claims := uint32(0)
	for c := a.first; c != nil; c = c.next {
		if c.kind != asBeam {
			claims++
		}
	}
	dst = msgp.AppendArrayHeader(dst, claims)
	for c := a.first; c != nil; c = c.next {
		if c.kind != asBeam {
			dst = c.append(dst, s)
		}
	}
	return dst
}

// claimFields is the number of elements that each kind of claim adds. The claims of
// beams are not written: each beam names its act.
var claimFields = [kinds]uint32{asLine: 3, asWay: 6, asRoute: 2, asPulse: 2, asTyping: 1, asCustom: 5}

func (c *claim) append(dst []byte, s *Stage) []byte {
	dst = msgp.AppendArrayHeader(dst, 4+claimFields[c.kind])
	dst = msgp.AppendInt(dst, c.entity.number)
	dst = msgp.AppendUint8(dst, uint8(c.kind))
	dst = msgp.AppendUint8(dst, uint8(c.mask))
	dst = msgp.AppendInt64(dst, int64(c.contested))
	switch c.kind {
	case asLine:
		dst = msgp.AppendFloat64(dst, c.from.X)
		dst = msgp.AppendFloat64(dst, c.to.X)
		dst = msgp.AppendString(dst, c.text)
	case asWay:
		dst = appendPoint(dst, c.from)
		dst = appendPoint(dst, c.to)
		dst = msgp.AppendFloat64(dst, c.height)
		dst = msgp.AppendString(dst, c.arrival)
	case asRoute:
		dst = msgp.AppendString(dst, c.arrival)
		dst = msgp.AppendArrayHeader(dst, 2*uint32(len(c.points)))
		for _, p := range c.points {
			dst = appendPoint(dst, p)
		}
	case asPulse:
		dst = msgp.AppendFloat64(dst, c.from.X)
		dst = msgp.AppendFloat64(dst, c.to.X)
	case asTyping:
		dst = msgp.AppendString(dst, c.text)
	case asCustom:
		dst = msgp.AppendString(dst, s.nameOfAction(c.action))
		dst = msgp.AppendFloat64(dst, c.track.From)
		dst = msgp.AppendFloat64(dst, c.track.To)
		dst = msgp.AppendString(dst, c.text)
		dst = msgp.AppendArrayHeader(dst, uint32(len(c.track.Data)))
		for _, d := range c.track.Data {
			dst = msgp.AppendFloat64(dst, d)
		}
	default:
	}
	return dst
}

func (s *Stage) nameOfAction(a *Action) string {
	for name, known := range s.actions {
		if known == a {
			return name
		}
	}
	return ""
}

func (b *beam) append(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 10)
	dst = msgp.AppendInt(dst, b.from.number)
	if b.to != nil {
		dst = msgp.AppendInt(dst, b.to.number)
	} else {
		dst = msgp.AppendNil(dst)
	}
	dst = appendPoint(dst, b.at)
	dst = msgp.AppendString(dst, b.name)
	dst = msgp.AppendString(dst, b.color)
	dst = msgp.AppendFloat64(dst, b.width)
	dst = msgp.AppendInt64(dst, int64(b.began))
	if b.claim != nil {
		dst = msgp.AppendInt(dst, b.claim.act.number)
	} else {
		dst = msgp.AppendNil(dst)
	}
	return msgp.AppendFloat64(dst, b.grown)
}

func (d *diagnostics) append(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(noteKinds))
	for _, n := range d.totals {
		dst = msgp.AppendUint64(dst, n)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(d.recent)))
	for i := range d.recent {
		n := &d.recent[i]
		dst = msgp.AppendArrayHeader(dst, 9)
		dst = msgp.AppendInt64(dst, int64(n.at))
		dst = msgp.AppendUint8(dst, uint8(n.kind))
		dst = msgp.AppendString(dst, n.entity)
		dst = msgp.AppendString(dst, n.channel)
		dst = n.performance.append(dst)
		dst = n.with.append(dst)
		dst = msgp.AppendString(dst, n.detail)
	}
	if len(d.unresolved) == 0 {
		return dst
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(d.unresolved)))
	for i := range d.unresolved {
		u := &d.unresolved[i]
		dst = msgp.AppendArrayHeader(dst, 8)
		dst = msgp.AppendInt32(dst, u.slot)
		dst = msgp.AppendString(dst, u.action)
		dst = msgp.AppendString(dst, u.member)
		dst = msgp.AppendString(dst, u.reference)
		dst = msgp.AppendInt64(dst, int64(u.at))
		dst = u.performance.append(dst)
		dst = msgp.AppendString(dst, u.definition)
	}
	return dst
}
