// Package stage makes choreographies visible. It is a pure fold: what performances
// do and what signals say goes in, and what is seen at any moment comes out.
//
// # Nouns
//
// A [Stage] shows a scene with its entities. It is told of every boundary by the
// choreographer ([choreography.Observer]), answers conditions on what is seen
// ([choreography.World]), and gives a [Frame] of the present instant: a
// [Figure] for each entity, a [Beam] for each beam, and the last sounds. An
// entity has channels: x and y, opacity, tint (its strength), scale, rotation and text.
// An action that takes time is an act; it owns the channels that it moves.
// Layer, visible, state and label have nothing in between and are not owned.
//
// # Time
//
// Nothing is advanced from frame to frame. What moves is kept as where it comes
// from, where it goes, when it began, how long it takes and by what curve; its value
// at an instant is computed when somebody asks. So the stage costs what
// its commands cost, and its bytes at a moment are the same on every way there.
//
// # Who moves what
//
// The last start wins. An act, or a setting at once, takes the channels it needs
// from whoever moves them, each with the value it has at that instant. The
// act that lost them runs on in the choreographer and moves nothing more; it
// sets no state on arrival either. If the two belong to different performances
// that is a conflict, and a diagnostic. Only x or only y may be taken
// from a walk, which then goes on with the other.
//
// When an act completes, its channels are exactly where they were to go. When
// its performance is interrupted, every channel it still owns keeps the
// value of that instant for good, and what it has set already stays set.
//
// The easing of a step says how far an act is. The arc is a height: it lifts a
// move and otherwise counts as linear, so that nothing comes back to its start.
//
// # Entities and places
//
// A step means all entities whose id or actor is its entity. When there is none,
// the scene's first rule that matches the name says who stands for it or what
// it looks like, and without a rule it appears as a stranger: at the slot of
// the rule, at the first slot that is nobody's home, or on a grid. Only destroy and
// playSound make nobody appear.
//
// A place is {x, y}, [x, y], or a name: of a slot, a waypoint, an entity (where it is
// at that instant, the first of several), or an agent that the scene has a
// rule for. In the default scene, which has no places of its own, every name
// is an agent's.
//
// # Actions
//
//   - move (to or by; offset, animationDuring, animationOnArrival): a straight
//     way. Going to an entity it ends at the side it comes from, unless offset
//     says where from the entity. By is {x, y} from where the figure is.
//   - fly (as move; height): the same with a height above the way, a quarter of the
//     distance and at least 40 if nothing is said. Y is where the figure is seen;
//     its height tells how far below it the ground is.
//   - followRoute (route, from, to, reverse, animationDuring,
//     animationOnArrival): along a route, by its length. From and to are points of
//     the route: a number from 0, a name, or the place that the point is nearest to. A
//     closed route goes round; reverse goes it the other way.
//   - spawn (at, look, label, state, text, scale, opacity, rotation, layer): on the
//     stage, visible, with fresh values, at a place or at home.
//   - destroy: off the stage. What the scene places is hidden until it is spawned or
//     set visible; anybody else is forgotten.
//   - flash (color): a tint that fades from full to none.
//   - pulse (amount or scale, 1.25): the scale grows by that factor and comes back.
//   - drawBeam (to, color, width): a beam that grows from the entity and follows
//     both ends, and goes when the act completes. Without a duration, or
//     interrupted, it stays until the entity's next beam, or its end.
//   - typeText (text): letter by letter; it stays until the next text.
//   - say (text, append): speech that types itself, 30 characters a second and
//     200 at most, and is gone 5 s after the last. Append adds to speech to
//     which something was added in the last 3 s.
//   - setAnimation (state): the animation state.
//   - playSound (sound): noted among the last sounds.
//   - set (property, value or revert): opacity, scale, rotation, x, y (also
//     position.x, position.y), tint (a color, {color, strength}, or null), layer (a number or a
//     name), visible (without a value, or "toggle": the other way round), state,
//     text or label. Numbers and the tint take the step's duration, anything
//     else is there at its start. Revert goes back to what the property
//     was before its last set, if that was of the same performance. Who preempts
//     a performance in the middle of its set, and sets the same, goes back to what
//     was before that one's.
//
// AnimationDuring is the state from the start on, animationOnArrival that from the
// completion on. A program adds actions of its own ([Config], [Action]). Any other
// action changes nothing.
//
// # Impressions
//
// As long as no choreography is in force, and the scene wants them, signals show
// by themselves: whoever is named by agentId, by from and to, or as the source
// appears; a dispatch is a beam and a sentence, a tool call a sentence and the
// state "acting", a result, an error or a completion a flash, thinking and text
// deltas speech. Each effect runs out by itself and is replaced by the next.
//
// # What goes wrong
//
// Nothing that a step or a signal says is an error. What cannot be done is left
// out, and noted as a diagnostic: conflict, action (unknown, or it panicked), entity (none named),
// place (unknown), value (a parameter of the wrong kind), limit. A state has the
// number of each kind and the last of them all; see [Stage.View].
//
// Numbers are brought within limits: positions and rotations to 10⁹ on either side, scales
// to 0…1000, opacities and strengths to 0…1. None is ever infinite.
//
// # What it does not do
//
// A stage does not draw, play sounds or know what looks look like; see package
// picture. It does not plan: figures walk through each other and through walls. It
// keeps no history: of what was, only what is still seen, the last sounds
// and the last diagnostics are left.
package stage

import (
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Limits of a stage. What goes beyond one is left out, and a diagnostic says so.
const (
	// MaxEntities bounds the entities at one time; a scene may place more.
	MaxEntities = 10_000
	// MaxBeams bounds the beams at one time, impressions aside.
	MaxBeams = 1000
	// MaxText bounds a text of typeText and of set, in characters.
	MaxText = 4096
	// MaxName bounds the names of entities, states, colors, looks and sounds, in bytes.
	MaxName = 256
	// MaxSounds is how many of the sounds that started are remembered.
	MaxSounds = 32
	// MaxRecent is how many diagnostics are remembered.
	MaxRecent = 32
)

// Stage is what is visible, as a fold. It is for one goroutine at a time.
type Stage struct {
	actions       map[string]*Action // immutable
	scene         *scene.Scene
	now           time.Duration
	choreographed bool

	// Entities are linked in their order: the scene's, as it lists them, then
	// the others, as they came.
	first, last *entity
	count       int
	names       map[string][]*entity // by id and by actor, in that order
	slots       map[string]scene.Point
	taken       map[string]int // how many call a slot their home
	firstFree   int            // no slot of the scene before it is free
	cells       []bool         // homes that are no slots, see [Stage.settleDown]

	// Acts under way are linked in the order in which they began.
	acts              map[choreography.ActKey]*act
	runs              map[run]*act // the newest act of each performance
	firstAct, lastAct *act

	beams       []*beam // in the order they began
	sounds      []Sound
	diagnostics diagnostics

	// Memory to be used again, without a meaning between calls.
	deed        deed
	lively      time.Duration // no speech and no impression goes on for longer; it may be less
	liveliest   *entity       // the one of which they went on longest when somebody looked, or nil
	spareActs   []*act
	spareClaims []*claim
	known       map[string]string
}

var (
	_ choreography.Observer = (*Stage)(nil)
	_ choreography.World    = (*Stage)(nil)
)

// Config says what a program adds to the stage.
type Config struct {
	// Actions are custom ones by name. One with the name of a built-in action
	// takes its place. They are part of the rules: a state that was made with
	// other names or versions is refused by [Restore].
	Actions map[string]Action
}

// New returns the default scene's stage at session time 0.
func New(cfg Config) *Stage {
	s := &Stage{
		names: make(map[string][]*entity),
		taken: make(map[string]int),
		acts:  make(map[choreography.ActKey]*act),
		runs:  make(map[run]*act),
		known: make(map[string]string),
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

// Now returns the session time that was reached.
func (s *Stage) Now() time.Duration { return s.now }

// Scene returns the scene in force.
func (s *Stage) Scene() *scene.Scene { return s.scene }

// Advance moves the stage's time on; an earlier instant stands for the present
// one. What performances do up to then has been told by then.
func (s *Stage) Advance(at time.Duration) { s.now = max(s.now, at) }

// Choreographed tells that a choreography came into force: no signal makes an
// impression from now on. What the earlier ones made runs out.
func (s *Stage) Choreographed() { s.choreographed = true }

// Impressed reports whether signals make impressions. When not,
// [Stage.Signal] need not be called.
func (s *Stage) Impressed() bool { return !s.choreographed && s.scene.Impressions }

// SetScene brings a scene into force.
//
// An entity that something has happened to keeps its place, its values and
// whatever is under way, and takes actor, look and label from the new scene if
// that places it too. Those that nothing has happened to stand as the new
// scene says, or go if it does not place them. Its other entities appear.
func (s *Stage) SetScene(sc *scene.Scene) {
	var stay []*entity
	for e := s.first; e != nil; e = e.next {
		if e.touched {
			stay = append(stay, e)
		}
	}
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
	s.enlistPlaced(stay)
	s.enlistOthers(stay)
	for e := s.first; e != nil; e = e.next {
		if e.home != "" {
			s.taken[e.home]++
		}
	}
}

// enlistPlaced enlists the entities that the scene places, those among them
// that stay and new ones.
func (s *Stage) enlistPlaced(stay []*entity) {
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
			e.fresh()
		}
		s.enlist(e)
	}
}

// enlistOthers enlists those that stay although the scene does not place them.
func (s *Stage) enlistOthers(stay []*entity) {
	for _, e := range stay {
		if e.def != nil {
			if i := e.index; i < len(s.scene.Entities) && e.def == &s.scene.Entities[i] {
				continue // it does
			}
			e.keepDefinition()
		}
		if at, ok := s.slots[e.home]; ok && e.home != "" {
			e.homeAt = inside(at)
		} else {
			e.home = ""
		}
		s.enlist(e)
	}
}

// enlist puts e at the end of the entities.
func (s *Stage) enlist(e *entity) {
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

// forget takes an entity that the scene does not place out of the stage.
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

// detach ends the beams between e and others: its own go, those of others end
// where it is.
func (s *Stage) detach(e *entity) {
	s.removeBeams(e, true)
	at := e.position(s.now)
	for _, b := range s.beams {
		if b.to == e {
			b.to, b.at = nil, at
		}
	}
}

// Property implements [choreography.World]: a member of the view of the first
// entity that the name means. It makes no entity.
func (s *Stage) Property(entity, property string, at time.Duration) (signal.Value, bool) {
	group := s.find(entity)
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
