package stage

import (
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Channel is a value of an entity that a custom [Action] can set.
type Channel string

// The channels. Those of the first line are numbers and can be moved; the others
// become what a [Track] says when the action starts.
const (
	ChannelX        Channel = "x"
	ChannelY        Channel = "y"
	ChannelOpacity  Channel = "opacity" // 0 to 1
	ChannelTint     Channel = "tint"    // its strength, 0 to 1; Text is its color
	ChannelScale    Channel = "scale"
	ChannelRotation Channel = "rotation"

	ChannelState   Channel = "state"   // Text
	ChannelLabel   Channel = "label"   // Text
	ChannelText    Channel = "text"    // Text
	ChannelLayer   Channel = "layer"   // To
	ChannelVisible Channel = "visible" // To, 0 or not
)

// Action is an action that a program adds. Its functions are pure: of equal
// arguments they make equal results, on every machine, for ever. When they
// change, Version does.
//
// A panic in them is not passed on: a replay must not end where the session
// went on, and what they panic at is in the log for ever. An action whose Start
// panics, or its Value at the beginning or the end, changes nothing of that entity,
// and a diagnostic says so. Where Value panics in between, the track goes straight.
type Action struct {
	// Version is the version of the action's rules. It is part of a stage's
	// state, so that states of other rules are not gone on with.
	Version uint32

	// Start says what the action does with an entity. It is called once for each
	// entity that the action means, when it starts. More than [MaxTracks]
	// tracks are not looked at.
	Start func(c Cue) []Track

	// Value returns the number of a track at an eased progress: at 0 where
	// it begins, at 1 where it stays. Nil is straight from From to To.
	Value func(t Track, progress float64) float64
}

// MaxTracks bounds what one action does with one entity.
const MaxTracks = 16

// MaxTrackData bounds the numbers that a track keeps.
const MaxTrackData = 16

// Track is what an action does with one channel of an entity. It takes the
// channel over as any action does, and is kept while the action runs.
type Track struct {
	Channel  Channel
	From, To float64
	Text     string
	Data     []float64 // whatever else Value needs
}

// Cue is what an action starts with. It is good until Start returns.
type Cue struct {
	Figure Figure // the entity as it is seen at that instant

	s *Stage
}

// Param returns a resolved parameter of the step; false when it is not written
// or refers to what is missing.
func (c Cue) Param(name string) (signal.Value, bool) { return c.s.deed.Param(name) }

// Place returns the place that a parameter means, as destinations are read. A
// diagnostic says so when it means none.
func (c Cue) Place(param string) (at scene.Point, ok bool) {
	spot, ok := c.s.place(param)
	return spot.at, ok
}

func (a *Action) value(t Track, progress float64) float64 {
	if v, ok := a.ask(t, progress); ok {
		return v
	}
	return between(t.From, t.To, progress)
}

// ask calls Value, and answers false if there is none or it panics.
func (a *Action) ask(t Track, progress float64) (v float64, ok bool) {
	if a.Value == nil {
		return 0, false
	}
	defer func() { ok = recover() == nil }()
	return a.Value(t, progress), true
}

// begin calls Start, and answers false if that panics or if a track would at its
// beginning or its end.
func (a *Action) begin(c Cue) (tracks []Track, ok bool) {
	defer func() { ok = recover() == nil && ok }()
	tracks = a.Start(c)
	tracks = tracks[:min(len(tracks), MaxTracks)]
	if a.Value != nil {
		for _, t := range tracks {
			if p, known := propertyNamed(string(t.Channel)); known && p < propText {
				a.Value(t, 0)
				a.Value(t, 1)
			}
		}
	}
	return tracks, true
}

// perform carries out a custom action.
func (s *Stage) perform(a *Action) {
	if a.Start == nil {
		return
	}
	for _, e := range s.players() {
		tracks, ok := a.begin(Cue{Figure: s.figure(e), s: s})
		if !ok {
			// What it panicked with may be otherwise on another machine.
			s.report(noteAction, e.id, s.deed.Action)
			continue
		}
		e.touched = true
		for _, t := range tracks {
			s.track(a, e, t)
		}
	}
}

// track lets one track take effect.
func (s *Stage) track(a *Action, e *entity, t Track) {
	t.From, t.To = bounded(t.From), bounded(t.To)
	if len(t.Data) > MaxTrackData {
		s.report(noteValue, e.id, string(t.Channel))
		return
	}
	data := make([]float64, len(t.Data))
	for i, d := range t.Data {
		data[i] = bounded(d)
	}
	t.Data = data
	t.Text = strings.ToValidUTF8(t.Text, "\uFFFD")
	if len(t.Text) > MaxName && t.Channel != ChannelText {
		s.report(noteLimit, e.id, "name")
		return
	}
	p, ok := propertyNamed(string(t.Channel))
	if !ok || strings.Contains(string(t.Channel), ".") {
		s.report(noteValue, e.id, string(t.Channel))
		return
	}
	ch, moves := p.channel()
	switch {
	case !moves:
		t.Text, _ = clip(t.Text, MaxText)
		s.bring(e, p, undo{number: t.To, text: t.Text})
	case s.deed.instant:
		s.take(e, ch.mask())
		e.values[ch] = ch.bound(a.value(t, 1))
		if ch == chTint {
			e.color = t.Text
		}
	default:
		c := s.hold(e, ch.mask(), asCustom)
		c.action, c.track, c.text = a, t, t.Text
	}
}

// bounded is finite of a number that no JSON wrote.
func bounded(v float64) float64 {
	if v != v {
		return 0
	}
	return chX.bound(v)
}
