package stage

import (
	"math"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

// entity is one figure. Its values hold the channels that no act moves; a channel with
// an owner has the value that its owner computes.
type entity struct {
	id      string
	def     *scene.Entity // as the scene places it; nil if the scene does not
	index   int           // of def in the scene
	actor   string
	touched bool // an act or a signal has changed it; always true without a def

	look     string // its own; "" is the def's, or the stranger's
	label    string // its own, if labelled is set
	labelled bool

	home   string // the slot it occupies, or ""
	homeAt scene.Point
	cell   int32 // its home in the grid, or noCell

	values  [numbers]float64
	color   string // of the tint
	layer   int
	visible bool
	state   string
	words   words
	owner   [channels]*claim
	undo    []undo // by property

	// Impressions, each replaced by the next.
	glow glow
	ray  ray

	prev, next *entity
	number     int // while a state is written
}

// noCell is the cell of an entity that has none.
const noCell = -1

// idle is the state of an entity until a state is set.
const idle = "idle"

// reset gives e the values that it has when it appears.
func (e *entity) reset() {
	e.values = [numbers]float64{channelX: e.homeAt.X, channelY: e.homeAt.Y, chOpacity: 1, chScale: 1}
	e.color, e.layer, e.visible, e.state = "", 0, true, idle
	e.words, e.undo, e.glow, e.ray = words{}, nil, glow{}, ray{}
	if d := e.def; d != nil {
		e.values[chOpacity] = chOpacity.bound(d.Opacity)
		e.values[chScale] = chScale.bound(d.Scale)
		e.values[chRotation] = chRotation.bound(d.Rotation)
		e.layer, e.visible = max(0, d.Layer), !d.Hidden
		if d.State != "" {
			e.state = d.State
		}
	}
}

// resetForEntry is reset for an entity that a step or a signal makes appear: one that
// the scene does not place is in the layer of its rule.
func (s *Stage) resetForEntry(e *entity) {
	e.reset()
	if e.def != nil {
		return
	}
	if rule, ok := s.scene.Rule(e.id); ok {
		e.layer = max(0, rule.Layer)
	}
}

// value returns the value of a numeric channel.
func (e *entity) value(ch channel, at time.Duration) float64 {
	if o := e.owner[ch]; o != nil {
		return o.value(ch, at)
	}
	return e.values[ch]
}

// position returns the position of e.
func (e *entity) position(at time.Duration) scene.Point {
	if o := e.owner[channelX]; o != nil && o == e.owner[channelY] {
		return o.point(at)
	}
	return scene.Point{X: e.value(channelX, at), Y: e.value(channelY, at)}
}

// height returns how far e is above its path while it flies. An entity that is
// stopped in the air has height 0, because no act makes it fly any more.
func (e *entity) height(at time.Duration) float64 {
	o := e.owner[channelY]
	if o == nil || o.kind != asWay || o.height == 0 {
		return 0
	}
	return channelY.bound(o.lift(o.act.progress(at)))
}

// tinted returns the color and strength of the tint, "" without strength.
func (e *entity) tinted(at time.Duration) (color string, strength float64) {
	color, strength = e.color, e.value(chTint, at)
	if o := e.owner[chTint]; o != nil {
		color = o.text
	} else if s := e.glow.strength(at); s > strength {
		color, strength = e.glow.color, s
	}
	if strength == 0 {
		color = ""
	}
	return color, strength
}

// text returns the typed part of the text, and its opacity.
func (e *entity) text(at time.Duration) (string, float64) {
	if o := e.owner[chText]; o != nil {
		return prefix(o.text, o.typed(at)), 1
	}
	return e.words.at(at)
}

// busyUntil returns when the last of e's speech and impressions ends, 0 if it has
// none. Speech that typed text covers does not return.
func (e *entity) busyUntil() time.Duration {
	var end time.Duration
	if e.words.speech && e.words.text != "" && e.owner[chText] == nil {
		end = e.words.end()
	}
	if e.glow.color != "" {
		end = max(end, later(e.glow.since, glowLasts))
	}
	if e.ray.to != "" {
		end = max(end, later(e.ray.since, rayLasts))
	}
	return end
}

// boundaries returns the instants of e for [Stage.NextBoundary]. An instant that does
// not exist is 0.
func (e *entity) boundaries() (all [5]time.Duration) {
	if e.words.speech && e.words.text != "" && e.owner[chText] == nil {
		gone := e.words.end()
		all[0], all[1] = gone-speechStays, gone
	}
	if e.glow.color != "" {
		all[2] = later(e.glow.since, glowLasts)
	}
	if e.ray.to != "" {
		all[3] = later(e.ray.since, rayLasts)
	}
	for _, o := range e.owner {
		if o != nil {
			all[4] = max(all[4], o.contested)
		}
	}
	return all
}

// shownLabel returns the label below the figure.
func (e *entity) shownLabel() string {
	switch {
	case e.labelled:
		return e.label
	case e.def != nil:
		return e.def.Label
	default:
		return e.id
	}
}

// lookName returns the name of e's look, or the stranger's if e has none.
func (s *Stage) lookName(e *entity) string {
	switch {
	case e.look != "":
		return e.look
	case e.def != nil && e.def.Look != "":
		return e.def.Look
	default:
		return s.scene.Stranger
	}
}

// lookOf returns the look of e.
func (s *Stage) lookOf(e *entity) scene.Look { return s.scene.LookNamed(s.lookName(e)) }

// keepDefinition copies what the old scene says about e, because the new scene does
// not place it.
func (e *entity) keepDefinition() {
	if e.look == "" {
		e.look = e.def.Look
	}
	e.label, e.labelled = e.shownLabel(), true
	e.def = nil
}

// lookup returns the entities that a name refers to, without creating any.
func (s *Stage) lookup(name string) []*entity {
	if group := s.names[name]; len(group) > 0 {
		return group
	}
	if rule, ok := s.scene.Rule(name); ok && rule.Entity != "" {
		return s.names[rule.Entity]
	}
	return nil
}

// resolve returns the entities that a reference refers to. If there is none, it
// creates one by the scene's rules or as a stranger, at the given place if there is
// one. The result is empty for an empty reference and at the limit of entities.
func (s *Stage) resolve(ref string, at *resolvedPlace) []*entity {
	if group := s.names[ref]; len(group) > 0 {
		return group
	}
	if ref == "" {
		s.report(noteEntity, "", "")
		return nil
	}
	rule, ok := s.scene.Rule(ref)
	switch {
	case !ok:
		return s.appear(ref, "", "", at)
	case rule.Entity == "":
		return s.appear(ref, rule.Look, rule.Slot, at)
	case len(s.names[rule.Entity]) > 0:
		return s.names[rule.Entity]
	default:
		return s.appear(rule.Entity, rule.Look, rule.Slot, at)
	}
}

// appear creates an entity that the scene does not place.
func (s *Stage) appear(id, look, slot string, at *resolvedPlace) []*entity {
	switch {
	case len(id) > MaxName:
		s.report(noteLimit, "", "name")
		return nil
	case s.count >= maxEntities:
		s.report(noteLimit, "", "entities")
		return nil
	}
	e := &entity{id: strings.Clone(id), look: look, touched: true, cell: noCell}
	e.actor = e.id
	if at != nil {
		e.homeAt = at.at
	} else {
		s.assignHome(e, slot)
	}
	s.resetForEntry(e)
	s.add(e)
	return s.names[e.id]
}

// assignHome gives a new entity a home: the named slot if it is free, the first free
// slot, or the first free cell of an unbounded grid.
func (s *Stage) assignHome(e *entity, named string) {
	if at, ok := s.slots[named]; ok && s.taken[named] == 0 {
		s.moveHome(e, named, at)
		return
	}
	for ; s.firstFree < len(s.scene.Slots); s.firstFree++ {
		if slot := &s.scene.Slots[s.firstFree]; s.taken[slot.Name] == 0 {
			s.moveHome(e, slot.Name, slot.At)
			return
		}
	}
	cell := 0
	for cell < len(s.cells) && s.cells[cell] {
		cell++
	}
	if cell == len(s.cells) {
		s.cells = append(s.cells, false)
	}
	s.cells[cell] = true
	e.cell = int32(cell)
	e.homeAt = inside(gridPoint(s.scene, cell))
}

// moveHome makes a slot the home of e.
func (s *Stage) moveHome(e *entity, slot string, at scene.Point) {
	s.leaveHome(e)
	e.home, e.homeAt = slot, inside(at)
	s.taken[slot]++
}

// leaveHome frees the home of e. A freed slot may come before firstFree, so the search
// for a free one begins at the first slot again.
func (s *Stage) leaveHome(e *entity) {
	if e.home != "" {
		if s.taken[e.home]--; s.taken[e.home] <= 0 {
			delete(s.taken, e.home)
			s.firstFree = 0
		}
	}
	if e.cell != noCell {
		s.cells[e.cell] = false
	}
	e.home, e.cell = "", noCell
}

// gridPoint returns the position of a cell. Six by three cells fill the scene from its
// middle; each further filling is shifted by an eighth of a cell.
func gridPoint(sc *scene.Scene, cell int) scene.Point {
	columns := [...]float64{2, 3, 1, 4, 0, 5}
	rows := [...]float64{1, 2, 0}
	filling := cell / 18 % 64
	column := columns[cell%6] + 0.5 + float64(float64(filling%8)/8)
	row := rows[cell/6%3] + 0.5 + float64(float64(filling/8)/8)
	if column >= 6 {
		column -= 6
	}
	if row >= 3 {
		row -= 3
	}
	// The upper fifth is kept free for speech above the figures.
	return scene.Point{X: float64(sc.Width*column) / 6, Y: float64(sc.Height * (0.2 + float64(row/4)))}
}

// inside clamps the coordinates of p.
func inside(p scene.Point) scene.Point {
	return scene.Point{X: channelX.bound(p.X), Y: channelY.bound(p.Y)}
}

// layerOf clamps the number of a layer to the layers of the scene.
func (s *Stage) layerOf(layer float64) int {
	return int(math.Max(0, math.Min(math.Round(layer), float64(len(s.scene.Layers)-1))))
}
