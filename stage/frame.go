package stage

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Frame is the visible stage at one instant. It shares no mutable memory with the stage.
type Frame struct {
	At      time.Duration
	Scene   *scene.Scene
	Figures []Figure // in the order they are drawn: by layer, then y, then id
	Beams   []Beam   // in the order they began
	Sounds  []Sound  // the most recent, oldest first

	// Mark is what every picture of the session has to say of it, "" for nothing; see
	// [Stage.SetMark].
	Mark string
}

// Figure is one entity in a frame.
type Figure struct {
	ID, Actor   string
	Label       string // shown below it, "" for none
	Look        scene.Look
	X, Y        float64 // the figure's foot, in units of the scene
	Height      float64 // of the foot above the way while it flies: Y+Height is the ground
	Layer       int
	Visible     bool
	Opacity     float64 // 0 to 1
	Tint        string  // color of the tint, "" if Strength is 0
	Strength    float64 // of the tint, 0 to 1
	Scale       float64
	Rotation    float64 // degrees clockwise
	State       string  // animation state
	Text        string  // speech as far as it is typed, "" if none
	TextOpacity float64 // 0 to 1
}

// Beam is a ray between two points.
type Beam struct {
	From, To     string // entities or places, "" for bare points
	FromX, FromY float64
	ToX, ToY     float64 // the end, as far as the beam has grown
	Color        string
	Width        float64
	Opacity      float64
}

// Sound is a sound that started.
type Sound struct {
	At     time.Duration
	Sound  string
	Entity string
}

// SetMark has every frame say something of the session, such as that it was never
// recorded. It is not part of the state, and must be set again on a restored stage.
func (s *Stage) SetMark(text string) { s.mark = text }

// Frame returns the visible stage at the current instant. Without a stage, for a nil s, it
// returns nil.
func (s *Stage) Frame() *Frame {
	if s == nil {
		return nil
	}
	f := &Frame{At: s.now, Scene: s.scene, Sounds: slices.Clone(s.sounds), Beams: s.frameBeams(), Mark: s.mark}
	// Moving whole figures would take most of the time of sorting them.
	type rank struct {
		*entity
		layer int
		y     float64
	}
	ranks := make([]rank, 0, s.count)
	for e := s.first; e != nil; e = e.next {
		ranks = append(ranks, rank{e, s.layerOf(float64(e.layer)), e.position(s.now).Y})
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.y, b.y), cmp.Compare(a.id, b.id))
	})
	f.Figures = make([]Figure, len(ranks))
	for i, r := range ranks {
		f.Figures[i] = s.figure(r.entity)
	}
	return f
}

// figure returns e as it appears at the current instant.
func (s *Stage) figure(e *entity) Figure {
	at, now := e.position(s.now), s.now
	f := Figure{
		ID: e.id, Actor: e.actor, Label: e.shownLabel(), X: at.X, Y: at.Y, Height: e.height(now),
		Layer: s.layerOf(float64(e.layer)), Visible: e.visible, State: e.state,
		Opacity: e.value(chOpacity, now), Scale: e.value(chScale, now), Rotation: e.value(chRotation, now),
	}
	f.Look = s.lookOf(e)
	f.Tint, f.Strength = e.tinted(now)
	f.Text, f.TextOpacity = e.text(now)
	return f
}

// frameBeams returns the beams and the rays of impressions.
func (s *Stage) frameBeams() []Beam {
	type begun struct {
		Beam
		at time.Duration
	}
	var all []begun
	for _, b := range s.beams {
		all = append(all, begun{b.frame(s.now), b.began})
	}
	for e := s.first; e != nil; e = e.next {
		if e.ray.lit(s.now) {
			all = append(all, begun{e.ray.frame(e, s.now), e.ray.since})
		}
	}
	slices.SortStableFunc(all, func(a, b begun) int { return cmp.Compare(a.at, b.at) })
	beams := make([]Beam, len(all))
	for i := range all {
		beams[i] = all[i].Beam
	}
	return beams
}

// SoundLasts is the time for which a picture shows the note of a sound, which fades
// meanwhile.
const SoundLasts = 600 * time.Millisecond

// maxShown bounds the notes of sounds in a picture.
const maxShown = 64

// ShownSounds yields the sounds whose notes a picture of f shows, oldest first.
func (f *Frame) ShownSounds() iter.Seq[Sound] {
	return func(yield func(Sound) bool) {
		for _, sound := range f.Sounds[max(0, len(f.Sounds)-maxShown):] {
			if age := f.At - sound.At; age >= 0 && age < SoundLasts && !yield(sound) {
				return
			}
		}
	}
}

// Moving reports whether anything changes after the current instant without a
// further boundary of a performance. Viewers call it for every frame, so it usually
// answers without a scan of all entities.
func (s *Stage) Moving() bool {
	if e := s.lastToEnd; e != nil && e.busyUntil() > s.now {
		return true
	}
	_, ok := s.Until()
	return ok
}

// Until returns the instant after which nothing changes by itself: every act would
// have completed, and all speech and impressions ended. It returns false if nothing
// is under way.
func (s *Stage) Until() (time.Duration, bool) {
	end := s.now
	for a := s.firstAct; a != nil; a = a.next {
		end = max(end, a.end())
	}
	if s.busyUntil <= s.now {
		return end, end > s.now
	}
	s.busyUntil, s.lastToEnd = 0, nil
	for e := s.first; e != nil; e = e.next {
		if last := e.busyUntil(); last > s.busyUntil {
			s.busyUntil, s.lastToEnd = last, e
		}
	}
	end = max(end, s.busyUntil)
	return end, end > s.now
}

// NextBoundary returns the next instant at which something changes at once although no
// act begins or ends then: speech is fully typed or disappears, the flash or the ray of
// an impression ends, an entity is no longer conflicted, or the note of a sound is gone
// ([SoundLasts]). What changes little by
// little between two boundaries is under way; see [Stage.Moving]. It returns false if
// there is no such instant.
func (s *Stage) NextBoundary() (at time.Duration, ok bool) {
	for i := range s.sounds { // in the order of time
		if at = later(s.sounds[i].At, SoundLasts); at > s.now {
			ok = true
			break
		}
	}
	if s.busyUntil <= s.now && len(s.acts) == 0 {
		return at, ok
	}
	for e := s.first; e != nil; e = e.next {
		for _, t := range e.boundaries() {
			if t > s.now && (!ok || t < at) {
				at, ok = t, true
			}
		}
	}
	return at, ok
}

// extendBusy notes that speech or an impression lasts until an instant.
func (s *Stage) extendBusy(until time.Duration) { s.busyUntil = max(s.busyUntil, until) }
