package stage

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Defaults of actions.
const (
	flashColor  = "gold"
	pulseAmount = 1.25
	flyShare    = 0.25 // of the distance, the height of a way through the air
	flyLeast    = 40
)

// builtIn carries out one of the actions that every stage has.
func (s *Stage) builtIn(action string) {
	switch action {
	case "move":
		s.move(s.deed.Curve.IsArc() && !s.deed.instant)
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
		players := s.players()
		to, ok := s.place("to")
		if !ok {
			return
		}
		color, width := s.name("color", beamColor), s.number("width", beamWidth)
		for _, e := range players {
			s.drawBeam(e, to, color, math.Max(0, math.Min(width, widest)))
		}
	case "typeText":
		s.typeText()
	case "say":
		more, ok := s.wording("text")
		if !ok {
			return
		}
		add := s.flag("append")
		for _, e := range s.players() {
			s.take(e, chText.mask())
			e.words = e.words.say(more, add, s.now)
			s.enliven(e.words.end())
		}
	case "playSound":
		s.playSound()
	case "setAnimation":
		if state := s.name("state", ""); state != "" {
			for _, e := range s.players() {
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

// players returns the entities of the present deed.
func (s *Stage) players() []*entity { return s.cast(s.deed.Entity(), nil) }

// flag reads a parameter that is true or not.
func (s *Stage) flag(param string) bool {
	v, ok := s.deed.Param(param)
	if !ok {
		return false
	}
	b, _ := v.Bool()
	return b
}

// number reads a parameter that is a number.
func (s *Stage) number(param string, otherwise float64) float64 {
	v, ok := s.deed.Param(param)
	if !ok {
		return otherwise
	}
	f, ok := finite(v)
	if !ok {
		s.report(noteValue, "", param)
		return otherwise
	}
	return f
}

// name reads a parameter that is a short text: a state, a color, a look.
func (s *Stage) name(param, otherwise string) string {
	v, ok := s.deed.Param(param)
	if !ok {
		return otherwise
	}
	return s.nameOf(v, param, otherwise)
}

func (s *Stage) nameOf(v signal.Value, param, otherwise string) string {
	name, ok := v.Text()
	switch {
	case !ok:
		s.report(noteValue, "", param)
		return otherwise
	case len(name) > MaxName:
		s.report(noteLimit, "", "name")
		return otherwise
	case name == "":
		return otherwise
	}
	return s.own(name)
}

// own returns a text as memory that does not keep a signal's alive. Names are
// few, and the same ones come again and again.
func (s *Stage) own(name string) string {
	if known, ok := s.known[name]; ok {
		return known
	}
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	name = strings.Clone(name)
	s.known[name] = name
	return name
}

// maxKnown bounds the names that are kept to be used again.
const maxKnown = 256

// wording reads a parameter that is a text to be read. Numbers and truths are
// texts too.
func (s *Stage) wording(param string) (string, bool) {
	v, ok := s.deed.Param(param)
	if !ok {
		s.report(noteValue, "", param)
		return "", false
	}
	return s.wordingOf(v, param)
}

func (s *Stage) wordingOf(v signal.Value, param string) (string, bool) {
	t, ok := v.Text()
	switch kind := v.Kind(); {
	case ok:
	case kind.IsNumber(), kind == signal.KindBool:
		t = v.String()
	case kind == signal.KindNull:
	default:
		s.report(noteValue, "", param)
		return "", false
	}
	t, cut := clip(t, MaxText)
	if cut {
		s.report(noteLimit, "", "text")
	}
	return strings.Clone(t), true
}

// glide brings a number to a value, at once or in the time of the present act.
func (s *Stage) glide(e *entity, ch channel, to float64) *claim {
	to = ch.bound(to)
	if s.deed.instant {
		s.take(e, ch.mask())
		e.values[ch] = to
		return nil
	}
	c := s.hold(e, ch.mask(), asLine)
	c.from.X, c.to.X = e.values[ch], to
	return c
}

// move is move and fly.
func (s *Stage) move(lifted bool) {
	players := s.players()
	if len(players) == 0 {
		return
	}
	var (
		to     spot
		by     scene.Point
		offset scene.Point
		beside bool
	)
	_, absolute := s.deed.Param("to")
	v, relative := s.deed.Param("by")
	switch {
	case !absolute && relative:
		var ok bool
		if by, ok = pointOf(v, false); !ok {
			s.report(noteValue, "", "by")
			return
		}
	default:
		var ok bool
		if to, ok = s.place("to"); !ok {
			return
		}
		relative, beside = false, to.entity != nil
	}
	if v, ok := s.deed.Param("offset"); ok {
		if offset, ok = pointOf(v, false); ok {
			beside = false
		} else {
			s.report(noteValue, "", "offset")
		}
	}
	during, arrival := s.name("animationDuring", ""), s.name("animationOnArrival", "")
	height := math.NaN() // as the distance says
	if _, ok := s.deed.Param("height"); ok && lifted {
		height = s.number("height", height)
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
		if s.deed.instant {
			s.take(e, position)
			e.values[chX], e.values[chY] = target.X, target.Y
			s.arrive(e, during, arrival)
			continue
		}
		c := s.hold(e, position, asWay)
		c.from, c.to, c.arrival = from, target, arrival
		if lifted {
			c.height = height
			if height != height {
				c.height = math.Max(flyLeast, float64(flyShare*distance(from, target)))
			}
		}
		if during != "" {
			e.state = during
		}
	}
}

// arrive sets the state of an entity that is there at once.
func (s *Stage) arrive(e *entity, during, arrival string) {
	switch {
	case arrival != "":
		e.state = arrival
	case during != "":
		e.state = during
	}
}

func (s *Stage) spawn() {
	var at *spot
	if _, ok := s.deed.Param("at"); ok {
		if place, ok := s.place("at"); ok {
			at = &place
		}
	}
	look := s.name("look", "")
	label, labelled := s.labelParam()
	state := s.name("state", "")
	words := words{}
	if _, ok := s.deed.Param("text"); ok {
		words.text, _ = s.wording("text")
	}
	for _, e := range s.cast(s.deed.Entity(), at) {
		s.take(e, all)
		s.removeBeams(e, true)
		if at != nil && at.slot && e.home != at.name {
			s.moveHome(e, s.own(at.name), at.at)
		}
		s.freshen(e)
		e.visible = true
		if at != nil {
			e.values[chX], e.values[chY] = at.at.X, at.at.Y
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
		e.values[chScale] = chScale.bound(s.number("scale", e.values[chScale]))
		e.values[chOpacity] = chOpacity.bound(s.number("opacity", e.values[chOpacity]))
		e.values[chRotation] = chRotation.bound(s.number("rotation", e.values[chRotation]))
		if v, ok := s.deed.Param("layer"); ok {
			e.layer = s.layerParam(v, "layer", e.layer)
		}
	}
}

// labelParam reads what is to stand below a figure: nothing, if that is an empty
// text. It answers false if nothing is said that can be used.
func (s *Stage) labelParam() (string, bool) {
	v, ok := s.deed.Param("label")
	if !ok {
		return "", false
	}
	if t, ok := v.Text(); ok && t == "" {
		return "", true
	}
	label := s.nameOf(v, "label", "")
	return label, label != ""
}

// layerParam reads a layer: its name or its number.
func (s *Stage) layerParam(v signal.Value, param string, otherwise int) int {
	if f, ok := finite(v); ok {
		return s.layerOf(f)
	}
	if name, ok := v.Text(); ok {
		if i := slices.Index(s.scene.Layers, name); i >= 0 {
			return i
		}
	}
	s.report(noteValue, "", param)
	return otherwise
}

func (s *Stage) destroy() {
	ref := s.deed.Entity()
	if ref == "" {
		s.report(noteEntity, "", "")
		return
	}
	// A copy, since what is destroyed leaves the group.
	for _, e := range slices.Clone(s.find(ref)) {
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
	color := s.name("color", flashColor)
	for _, e := range s.players() {
		if s.deed.instant {
			s.take(e, chTint.mask())
			e.values[chTint], e.color = 0, color
			continue
		}
		c := s.hold(e, chTint.mask(), asLine)
		c.from.X, c.to.X, c.text = 1, 0, color
	}
}

func (s *Stage) pulse() {
	amount := s.number("amount", s.number("scale", pulseAmount))
	for _, e := range s.players() {
		if s.deed.instant {
			s.take(e, chScale.mask())
			continue
		}
		c := s.hold(e, chScale.mask(), asPulse)
		c.from.X, c.to.X = e.values[chScale], chScale.bound(amount)
	}
}

func (s *Stage) typeText() {
	t, ok := s.wording("text")
	if !ok {
		return
	}
	for _, e := range s.players() {
		if s.deed.instant {
			s.take(e, chText.mask())
			e.words = words{text: t}
			continue
		}
		c := s.hold(e, chText.mask(), asTyping)
		c.text, c.runes = t, utf8.RuneCountInString(t)
	}
}

func (s *Stage) playSound() {
	sound := s.name("sound", "")
	if sound == "" {
		if _, ok := s.deed.Param("sound"); !ok {
			s.report(noteValue, "", "sound")
		}
		return
	}
	entity := s.deed.Entity()
	if len(entity) > MaxName {
		entity = ""
	}
	if len(s.sounds) == MaxSounds {
		copy(s.sounds, s.sounds[1:])
		s.sounds = s.sounds[:MaxSounds-1]
	}
	s.sounds = append(s.sounds, Sound{At: s.now, Sound: sound, Entity: strings.Clone(entity)})
}

func (s *Stage) followRoute() {
	v, _ := s.deed.Param("route")
	name, _ := v.Text()
	r, ok := s.scene.Routes[name]
	if !ok || len(r.Points) == 0 {
		s.report(notePlace, "", name)
		return
	}
	players := s.players()
	from, hasFrom := s.waypoint("from", r)
	to, hasTo := s.waypoint("to", r)
	points := stretch(r, from, to, hasFrom, hasTo, s.flag("reverse"))
	lengths := lengthsOf(points)
	during, arrival := s.name("animationDuring", ""), s.name("animationOnArrival", "")
	for _, e := range players {
		if s.deed.instant {
			s.take(e, position)
			end := points[len(points)-1]
			e.values[chX], e.values[chY] = end.X, end.Y
			s.arrive(e, during, arrival)
			continue
		}
		c := s.hold(e, position, asRoute)
		c.points, c.lengths, c.arrival = points, lengths, arrival
		if during != "" {
			e.state = during
		}
	}
}
