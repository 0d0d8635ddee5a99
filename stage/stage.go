// Package stage makes choreographies visible. It is a pure fold: the acts of
// performances and the signals go in, and a picture of any instant comes out.
//
// # Nouns
//
// A [Stage] shows a scene with its entities. It receives every boundary from the
// choreographer ([choreography.ActObserver]), answers conditions on what is seen
// ([definition.StageView]), and gives a [Frame] of the present instant: a
// [Figure] for each entity, a [Beam] for each beam, and the last sounds. An
// entity has channels: x and y, opacity, tint (its strength), scale, rotation and text.
// An action that takes time is an act; it owns the channels that it moves.
// Layer, visible, state and label change at once and are not owned.
//
// # Time
//
// Nothing is advanced from frame to frame. A movement is stored as its origin,
// target, start, duration and curve, and its value at an instant is computed when it
// is read. So the cost of a stage is that of its commands, and its bytes at an instant
// do not depend on how time was divided on the way there.
//
// # Who moves what
//
// The last start wins. An act, or an immediate set, takes over the channels it
// needs from the acts that own them, each at its value of that instant. The act that
// lost them continues in the scheduler and moves nothing more; it sets no state on
// arrival either. Between different performances that is a conflict, and a
// diagnostic. An act that moves x and y may lose one of them and keep the other.
//
// When an act completes, its channels have exactly their target values. When its
// performance is interrupted, every channel it still owns keeps the value of that
// instant, and properties that it has already set keep their values.
//
// The easing of a step maps time to progress. The arc is a height: it lifts a move
// and otherwise counts as linear, so that nothing returns to its start.
//
// # Entities and places
//
// A step acts on all entities whose id or actor is its entity. If there is none,
// the scene's first rule that matches the name selects an entity or the look of a new
// one; without a rule a new entity looks like the scene's stranger. It appears at the
// slot of the rule, at the first slot that is not the home of an entity, or on a grid.
// destroy and playSound never create an entity.
//
// A place is {x, y}, [x, y], or the name of a slot, of a waypoint, of an entity (its
// position at that instant; the first of several), or of an agent for which the scene
// has a rule. In the default scene, which names no places, every name is an agent's.
//
// # Actions
//
//   - move (to or by; offset, animationDuring, animationOnArrival): a straight
//     way. Going to an entity it ends at the side it comes from, unless offset
//     says where from the entity. By is {x, y} from where the figure is.
//   - fly (as move; height): the same with a height above the way, a quarter of the
//     distance and at least 40 by default. Y is where the figure is seen; the ground is
//     below it by the height.
//   - followRoute (route, from, to, reverse, animationDuring,
//     animationOnArrival): along a route, by its length. From and to are points of
//     the route: a number from 0, a name, or the place that the point is nearest to. A
//     closed route goes round; reverse goes it the other way.
//   - spawn (at, look, label, state, text, scale, opacity, rotation, layer): on the
//     stage, visible, with fresh values, at a place or at home.
//   - destroy: off the stage. An entity that the scene places is hidden until it is
//     spawned or set visible; any other entity is removed.
//   - flash (color): a tint that fades from full to none.
//   - pulse (amount or scale, 1.25): the scale grows by that factor and comes back.
//   - drawBeam (to, color, width): a beam that grows from the entity and follows
//     both ends, and disappears when the act completes. Without a duration, or
//     interrupted, it stays until the entity's next beam, or its end.
//   - typeText (text): letter by letter; it stays until the next text.
//   - say (text, append): speech that types itself, 30 characters a second and
//     200 at most, and is gone 5 s after the last. Append adds to speech to
//     which text was added in the last 3 s.
//   - setAnimation (state): the animation state.
//   - playSound (sound): noted among the last sounds.
//   - set (property, value or revert): opacity, scale, rotation, x, y (also
//     position.x, position.y), tint (a color, {color, strength}, or null), layer (a number or a
//     name), visible (without a value, or "toggle", it is inverted), state,
//     text or label. Numbers and the tint take the step's duration, anything
//     else is there at its start. Revert goes back to what the property
//     was before its last set, if the same performance made that. A performance that
//     preempts another in the middle of its set, and sets the same property, reverts to
//     the value before the set of the preempted one.
//
// AnimationDuring is the state from the start on, animationOnArrival the state from the
// completion on. A program adds actions of its own ([Config], [Action]). Any other
// action changes nothing.
//
// # Impressions
//
// While no choreography is in force, and if the scene enables them, signals show by
// themselves. The agents that agentId, from, to or the source name appear; a dispatch
// is a beam and a sentence, a tool call a sentence and the state "acting", a result, an
// error or a completion a flash, thinking and text deltas speech. Each effect ends by
// itself or when the next one replaces it.
//
// # What goes wrong
//
// No step and no signal is an error. An effect that cannot be shown is left out and
// counted as a diagnostic: conflict, action (unknown, or it panicked), entity (none
// named), place (unknown), value (a parameter of the wrong kind), limit. A state has the number of
// each kind and the most recent diagnostics; see [Stage.View]. A reference that leads to
// nothing in the payload of its signal is a diagnostic too, once for each place in a
// definition; see [Stage.Unresolved].
//
// Numbers are clamped: positions and rotations to ±10⁹, scales to 0…1000, opacities
// and strengths to 0…1. No number is ever infinite or NaN.
//
// # What it does not do
//
// A stage does not draw, play sounds or interpret looks; see package picture. It does
// not plan paths: figures walk through each other. It keeps no history beyond the last
// sounds and diagnostics.
//
// docs/glossary.md has the nouns of all packages.
package stage

import (
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Limits of a stage. An excess is left out and counted as a diagnostic.
const (
	// maxEntities bounds the entities at one time; a scene may place more.
	maxEntities = 10_000
	// maxBeams bounds the beams at one time, impressions aside.
	maxBeams = 1000
	// MaxText bounds a text of typeText and of set, in characters.
	MaxText = 4096
	// MaxName bounds the names of entities, states, colors, looks and sounds, in bytes.
	MaxName = 256
	// maxSounds is how many of the sounds that started are remembered.
	maxSounds = 32
	// maxRecent is how many diagnostics are remembered.
	maxRecent = 32
	// maxUnresolved bounds the places whose references did not resolve; further ones
	// are not reported.
	maxUnresolved = 256
)

// Stage is the visible state, as a fold. Only one goroutine may use it at a time: even
// a read may update a cache.
type Stage struct {
	actions       map[string]*Action // immutable
	scene         *scene.Scene
	now           time.Duration
	choreographed bool

	// Entities are linked in order: those of the scene as it lists them, then the
	// others as they appeared. The order decides which of several is first, and so
	// is part of the state.
	first, last *entity
	count       int
	names       map[string][]*entity // by id and by actor, in that order
	slots       map[string]scene.Point
	taken       map[string]int // how many entities have a slot as their home
	firstFree   int            // no slot of the scene before this index is free
	cells       []bool         // occupied cells of the grid of homes; see [Stage.assignHome]

	// Acts under way are linked in the order in which they began.
	acts              map[choreography.ActKey]*act
	newestActs        map[performanceKey]*act // the newest act of each performance
	firstAct, lastAct *act

	// ignoresUnresolved says that references that do not resolve are not noted.
	ignoresUnresolved bool

	mark string // see SetMark

	beams       []*beam // in the order they began
	sounds      []Sound
	diagnostics diagnostics

	// The members below are scratch memory or caches: they are not part of the state.
	current     currentAct
	busyUntil   time.Duration // no speech and no impression lasts longer; an upper bound
	lastToEnd   *entity       // the entity whose speech or impression ends last, as of the last scan; or nil
	spareActs   []*act
	spareClaims []*claim
	unresolved  []choreography.UnresolvedReference
	interned    map[string]string
}

var (
	_ choreography.ActObserver = (*Stage)(nil)
	_ definition.StageView     = (*Stage)(nil)
)

// Config adds a program's own actions to a stage.
type Config struct {
	// Actions are the custom actions by name. One with the name of a built-in action
	// replaces it. They are part of the rules: a state that was made with
	// other names or versions is refused by [Restore].
	Actions map[string]Action
}

// New returns a stage with the default scene at session time 0.
func New(cfg Config) *Stage {
	s := &Stage{
		names:      make(map[string][]*entity),
		taken:      make(map[string]int),
		acts:       make(map[choreography.ActKey]*act),
		newestActs: make(map[performanceKey]*act),
		interned:   make(map[string]string),
	}
	if len(cfg.Actions) > 0 {
		s.actions = make(map[string]*Action, len(cfg.Actions))
		for name, a := range cfg.Actions {
			s.actions[name] = &a
		}
	}
	s.SetScene(scene.Default())
	return s
}

// Now returns the session time of the stage.
func (s *Stage) Now() time.Duration { return s.now }

// Scene returns the scene in force.
func (s *Stage) Scene() *scene.Scene { return s.scene }

// Advance moves the time of the stage on; an earlier instant has no effect. The
// caller has notified the stage of all boundaries up to that instant.
func (s *Stage) Advance(at time.Duration) { s.now = max(s.now, at) }

// Choreographed notes that a choreography came into force: from now on signals make
// no impressions. Earlier impressions end by themselves.
func (s *Stage) Choreographed() { s.choreographed = true }

// Impressed reports whether signals make impressions. When not,
// [Stage.Signal] need not be called.
func (s *Stage) Impressed() bool { return !s.choreographed && s.scene.Impressions }

// SetScene brings a scene into force.
//
// An entity that an act or a signal has touched keeps its position, its values and
// its movements, and takes actor, look and label from the new scene if that places it
// too. An untouched one is placed as the new scene says, or removed if it does not
// place it. The other entities of the new scene appear.
func (s *Stage) SetScene(sc *scene.Scene) {
	var stay []*entity
	for e := s.first; e != nil; e = e.next {
		if e.touched {
			stay = append(stay, e)
		}
	}
	// An untouched target may not survive, so its beams end at its present position.
	for _, b := range s.beams {
		if b.to != nil && !b.to.touched {
			b.at, b.to = b.to.position(s.now), nil
		}
	}
	s.scene = sc
	s.first, s.last, s.count = nil, nil, 0
	clear(s.names)
	clear(s.taken)
	s.slots, s.firstFree = make(map[string]scene.Point, len(sc.Slots)), 0
	for _, slot := range sc.Slots {
		s.slots[slot.Name] = slot.At
	}
	s.addPlaced(stay)
	s.addOthers(stay)
	for e := s.first; e != nil; e = e.next {
		if e.home != "" {
			s.taken[e.home]++
		}
	}
}

// addPlaced adds the entities that the scene places, new ones and those that stay. They
// come first in the order of entities, as states number them.
func (s *Stage) addPlaced(stay []*entity) {
	known := make(map[string]*entity, len(stay))
	for _, e := range stay {
		known[e.id] = e
	}
	slotAt := make(map[scene.Point]string, len(s.scene.Slots))
	for _, slot := range s.scene.Slots {
		slotAt[slot.At] = slot.Name
	}
	for i := range s.scene.Entities {
		def := &s.scene.Entities[i]
		e := known[def.ID]
		if e == nil {
			e = &entity{id: def.ID, cell: noCell}
		}
		e.def, e.index, e.actor = def, i, def.Actor
		if e.actor == "" {
			e.actor = def.ID
		}
		if e.cell != noCell {
			s.cells[e.cell], e.cell = false, noCell
		}
		e.home, e.homeAt = slotAt[def.At], inside(def.At)
		if !e.touched {
			e.reset()
		}
		s.add(e)
	}
}

// addOthers adds the entities that stay although the scene does not place them.
func (s *Stage) addOthers(stay []*entity) {
	for _, e := range stay {
		if e.def != nil {
			if i := e.index; i < len(s.scene.Entities) && e.def == &s.scene.Entities[i] {
				continue // addPlaced has added it
			}
			e.keepDefinition()
		}
		if at, ok := s.slots[e.home]; ok && e.home != "" {
			e.homeAt = inside(at)
		} else {
			e.home = ""
		}
		s.add(e)
	}
}

// add appends e to the entities.
func (s *Stage) add(e *entity) {
	e.prev, e.next = s.last, nil
	if s.last != nil {
		s.last.next = e
	} else {
		s.first = e
	}
	s.last = e
	s.count++
	s.names[e.id] = append(s.names[e.id], e)
	if e.actor != e.id {
		s.names[e.actor] = append(s.names[e.actor], e)
	}
}

// forget removes an entity that the scene does not place.
func (s *Stage) forget(e *entity) {
	s.detach(e)
	s.leaveHome(e)
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		s.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		s.last = e.prev
	}
	s.count--
	for _, name := range [...]string{e.id, e.actor} {
		if group := s.names[name]; len(group) > 1 {
			s.names[name] = slices.DeleteFunc(group, func(o *entity) bool { return o == e })
		} else if len(group) == 1 && group[0] == e {
			delete(s.names, name)
		}
	}
}

// detach ends the beams between e and other entities: its own are removed, those of
// others now end at its position.
func (s *Stage) detach(e *entity) {
	s.removeBeams(e, true)
	at := e.position(s.now)
	for _, b := range s.beams {
		if b.to == e {
			b.to, b.at = nil, at
		}
	}
}

// Property implements [definition.StageView]: a member of the view of the first
// entity that the name refers to. It creates no entity, because a condition must not
// change the state.
func (s *Stage) Property(entity, property string, at time.Duration) (signal.Value, bool) {
	group := s.lookup(entity)
	if len(group) == 0 {
		return nil, false
	}
	switch property {
	case "position.x", "position.y":
		property = property[len("position."):]
	}
	v, ok := s.member(group[0], property, max(at, s.now))
	if !ok {
		return nil, false
	}
	return exact(v)
}

// EntitiesNamed returns the ids of the entities to which a step with that name as its
// entity refers, in their order. It creates none.
func (s *Stage) EntitiesNamed(name string) []string {
	group := s.lookup(name)
	ids := make([]string, len(group))
	for i, e := range group {
		ids[i] = e.id
	}
	return ids
}

// ValueAt returns one member of the view of the entity with an id as it will be at a
// later instant if nothing begins or ends until then; an instant that has passed counts
// as the present. It is false for an entity or a member that does not exist.
func (s *Stage) ValueAt(id, member string, at time.Duration) (any, bool) {
	for _, e := range s.names[id] {
		if e.id == id {
			return s.member(e, member, max(at, s.now))
		}
	}
	return nil, false
}
