package stage

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Defaults of actions.
const (
	flashColor  = "gold"
	pulseAmount = 1.25
	flyShare    = 0.25 // height of a flight, as a share of its distance
	flyLeast    = 40   // height of a short flight
)

// BuiltInActions returns the actions that every stage has, by name, with the parameters
// that each reads. Any step may also have entity, target, delay, duration, easing and
// when. The result belongs to the caller.
func BuiltInActions() map[string][]string {
	return map[string][]string{
		"move":         {"to", "by", "offset", "height", "animationDuring", "animationOnArrival"},
		"fly":          {"to", "by", "offset", "height", "animationDuring", "animationOnArrival"},
		"spawn":        {"at", "look", "label", "state", "text", "scale", "opacity", "rotation", "layer"},
		"destroy":      {},
		"flash":        {"color"},
		"pulse":        {"amount", "scale"},
		"drawBeam":     {"to", "color", "width"},
		"typeText":     {"text"},
		"say":          {"text", "append"},
		"playSound":    {"sound"},
		"setAnimation": {"state"},
		"followRoute":  {"route", "from", "to", "reverse", "animationDuring", "animationOnArrival"},
		"set":          {"property", "value", "revert"},
	}
}

// builtIn performs one of the actions of [BuiltInActions]. Its names are part of the
// format of choreographies.
func (s *Stage) builtIn(action string) {
	switch action {
	case "move":
		s.move(s.current.Curve.IsArc() && !s.current.instant)
	case "fly":
		s.move(true)
	case "spawn":
		s.spawn()
	case "destroy":
		s.destroy()
	case "flash":
		s.flash()
	case "pulse":
		s.pulse()
	case "drawBeam":
		players := s.targets()
		to, ok := s.resolvePlace("to")
		if !ok {
			return
		}
		color, width := s.nameParam("color", beamColor), s.numberParam("width", beamWidth)
		for _, e := range players {
			s.drawBeam(e, to, color, math.Max(0, math.Min(width, widest)))
		}
	case "typeText":
		s.typeText()
	case "say":
		more, ok := s.textParam("text")
		if !ok {
			return
		}
		add := s.flagParam("append")
		for _, e := range s.targets() {
			s.take(e, chText.mask())
			e.words = e.words.say(more, add, s.now)
			s.extendBusy(e.words.end())
		}
	case "playSound":
		s.playSound()
	case "setAnimation":
		if state := s.nameParam("state", ""); state != "" {
			for _, e := range s.targets() {
				e.touched = true
				e.state = state
			}
		}
	case "followRoute":
		s.followRoute()
	case "set":
		s.set()
	default:
		s.report(noteAction, "", action)
	}
}

// targets returns the entities of the current act; see [Stage.resolve].
func (s *Stage) targets() []*entity { return s.resolve(s.current.Entity(), nil) }

// animateTo moves a number to a value, at once or over the duration of the current act.
func (s *Stage) animateTo(e *entity, ch channel, to float64) *claim {
	to = ch.bound(to)
	if s.current.instant {
		s.take(e, ch.mask())
		e.values[ch] = to
		return nil
	}
	c := s.claimChannels(e, ch.mask(), asLine)
	c.from.X, c.to.X = e.values[ch], to
	return c
}

// move performs move and fly.
func (s *Stage) move(lifted bool) {
	players := s.targets()
	if len(players) == 0 {
		return
	}
	var (
		to     resolvedPlace
		by     scene.Point
		offset scene.Point
		beside bool
	)
	_, absolute := s.current.Param("to")
	v, relative := s.current.Param("by")
	switch {
	case !absolute && relative:
		var ok bool
		if by, ok = pointOf(v, false); !ok {
			s.report(noteValue, "", "by")
			return
		}
	default:
		var ok bool
		if to, ok = s.resolvePlace("to"); !ok {
			return
		}
		relative, beside = false, to.entity != nil
	}
	if v, ok := s.current.Param("offset"); ok {
		if offset, ok = pointOf(v, false); ok {
			beside = false
		} else {
			s.report(noteValue, "", "offset")
		}
	}
	during, arrival := s.nameParam("animationDuring", ""), s.nameParam("animationOnArrival", "")
	height := math.NaN() // NaN: it depends on the distance
	if _, ok := s.current.Param("height"); ok && lifted {
		height = s.numberParam("height", height)
	}
	for _, e := range players {
		from := e.position(s.now)
		target := to.at
		switch {
		case relative:
			target = scene.Point{X: from.X + by.X, Y: from.Y + by.Y}
		case beside:
			target = s.beside(e, to.entity, to.at)
		}
		target = inside(scene.Point{X: target.X + offset.X, Y: target.Y + offset.Y})
		if s.current.instant {
			s.take(e, position)
			e.values[channelX], e.values[channelY] = target.X, target.Y
			s.arrive(e, during, arrival)
			continue
		}
		c := s.claimChannels(e, position, asWay)
		c.from, c.to, c.arrival = from, target, arrival
		if lifted {
			c.height = height
			if height != height {
				c.height = math.Max(flyLeast, float64(flyShare*scene.Distance(from, target)))
			}
		}
		if during != "" {
			e.state = during
		}
	}
}

// arrive sets the state of an entity that reaches its target at once.
func (s *Stage) arrive(e *entity, during, arrival string) {
	switch {
	case arrival != "":
		e.state = arrival
	case during != "":
		e.state = during
	}
}

func (s *Stage) spawn() {
	var at *resolvedPlace
	if _, ok := s.current.Param("at"); ok {
		if place, ok := s.resolvePlace("at"); ok {
			at = &place
		}
	}
	look := s.nameParam("look", "")
	label, labelled := s.labelParam()
	state := s.nameParam("state", "")
	words := words{}
	if _, ok := s.current.Param("text"); ok {
		words.text, _ = s.textParam("text")
	}
	for _, e := range s.resolve(s.current.Entity(), at) {
		s.take(e, all)
		s.removeBeams(e, true)
		if at != nil && at.slot && e.home != at.name {
			s.moveHome(e, s.intern(at.name), at.at)
		}
		s.resetForEntry(e)
		e.visible = true
		if at != nil {
			e.values[channelX], e.values[channelY] = at.at.X, at.at.Y
		}
		if look != "" {
			e.look = look
		}
		if labelled {
			e.label, e.labelled = label, true
		}
		if state != "" {
			e.state = state
		}
		e.words = words
		e.values[chScale] = chScale.bound(s.numberParam("scale", e.values[chScale]))
		e.values[chOpacity] = chOpacity.bound(s.numberParam("opacity", e.values[chOpacity]))
		e.values[chRotation] = chRotation.bound(s.numberParam("rotation", e.values[chRotation]))
		if v, ok := s.current.Param("layer"); ok {
			e.layer = s.layerParam(v, "layer", e.layer)
		}
	}
}

func (s *Stage) destroy() {
	ref := s.current.Entity()
	if ref == "" {
		s.report(noteEntity, "", "")
		return
	}
	// A copy, because forget removes entities from the group.
	for _, e := range slices.Clone(s.lookup(ref)) {
		s.take(e, all)
		e.words, e.glow, e.ray, e.undo = words{}, glow{}, ray{}, nil
		e.values[chTint], e.color, e.visible = 0, "", false
		if e.def == nil {
			s.forget(e)
		} else {
			s.detach(e)
		}
	}
}

func (s *Stage) flash() {
	color := s.nameParam("color", flashColor)
	for _, e := range s.targets() {
		if s.current.instant {
			s.take(e, chTint.mask())
			e.values[chTint], e.color = 0, color
			continue
		}
		c := s.claimChannels(e, chTint.mask(), asLine)
		c.from.X, c.to.X, c.text = 1, 0, color
	}
}

func (s *Stage) pulse() {
	amount := s.numberParam("amount", s.numberParam("scale", pulseAmount))
	for _, e := range s.targets() {
		if s.current.instant {
			s.take(e, chScale.mask())
			continue
		}
		c := s.claimChannels(e, chScale.mask(), asPulse)
		c.from.X, c.to.X = e.values[chScale], chScale.bound(amount)
	}
}

func (s *Stage) typeText() {
	t, ok := s.textParam("text")
	if !ok {
		return
	}
	for _, e := range s.targets() {
		if s.current.instant {
			s.take(e, chText.mask())
			e.words = words{text: t}
			continue
		}
		c := s.claimChannels(e, chText.mask(), asTyping)
		c.text, c.runes = t, utf8.RuneCountInString(t)
	}
}

func (s *Stage) playSound() {
	sound := s.nameParam("sound", "")
	if sound == "" {
		if _, ok := s.current.Param("sound"); !ok {
			s.report(noteValue, "", "sound")
		}
		return
	}
	entity := s.current.Entity()
	if len(entity) > MaxName {
		entity = ""
	}
	if len(s.sounds) == maxSounds {
		copy(s.sounds, s.sounds[1:])
		s.sounds = s.sounds[:maxSounds-1]
	}
	s.sounds = append(s.sounds, Sound{At: s.now, Sound: sound, Entity: strings.Clone(entity)})
}
