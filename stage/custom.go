package stage

import (
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Channel is a value of an entity that a custom [Action] can change.
type Channel string

// The channels. Those of the first group are numbers and can be animated; the others
// get their value from a [Track] when the action starts.
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
	ChannelVisible Channel = "visible" // To: 0 hides, any other number shows
)

// Action is an action that a program adds. Its functions are pure: equal arguments
// give equal results, on every machine and in every later version of the program, or
// else Version changes.
//
// A panic in them is recovered, because the step that causes it is in the log and
// every replay would meet it again. If Start panics, or Value at progress 0 or 1, the
// action changes nothing of that entity, and a diagnostic is counted. If Value panics
// in between, the track is linear there.
type Action struct {
	// Version is the version of the action's rules. It is part of the state of a
	// stage: [Restore] refuses a state with another version.
	Version uint32

	// Start returns the effects of the action on an entity. It is called once for each
	// entity of the step, when the action starts. Tracks beyond [MaxTracks] are
	// ignored.
	Start func(c ActionCall) []Track

	// Value returns the number of a track at an eased progress from 0, its first
	// value, to 1, its last. Nil means linear from From to To.
	Value func(t Track, progress float64) float64
}

// MaxTracks bounds the tracks of one action for one entity.
const MaxTracks = 16

// MaxTrackData bounds the Data of a track.
const MaxTrackData = 16

// Track is the effect of an action on one channel of an entity. It takes the channel
// over as built-in actions do, and is part of the state while the action runs.
type Track struct {
	Channel  Channel
	From, To float64
	Text     string
	Data     []float64 // further numbers for Value
}

// ActionCall is the argument of an action's Start. It is valid until Start returns.
type ActionCall struct {
	Figure Figure // the entity as it is seen at that instant

	s *Stage
}

// Param returns a resolved parameter of the step; false if it is absent or refers to
// a missing value.
func (c ActionCall) Param(name string) (signal.Value, bool) { return c.s.current.Param(name) }

// Place resolves a parameter as a place, as move does with its destination. If that
// fails, a diagnostic is counted.
func (c ActionCall) Place(param string) (at scene.Point, ok bool) {
	spot, ok := c.s.resolvePlace(param)
	return spot.at, ok
}

func (a *Action) value(t Track, progress float64) float64 {
	if v, ok := a.ask(t, progress); ok {
		return v
	}
	return between(t.From, t.To, progress)
}

// ask calls Value. It returns false if Value is nil or panics.
func (a *Action) ask(t Track, progress float64) (v float64, ok bool) {
	if a.Value == nil {
		return 0, false
	}
	defer func() { ok = recover() == nil }()
	return a.Value(t, progress), true
}

// begin calls Start, and returns false if that panics or if Value panics at progress
// 0 or 1 of a track.
func (a *Action) begin(c ActionCall) (tracks []Track, ok bool) {
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

// perform performs a custom action.
func (s *Stage) perform(a *Action) {
	if a.Start == nil {
		return
	}
	for _, e := range s.targets() {
		tracks, ok := a.begin(ActionCall{Figure: s.figure(e), s: s})
		if !ok {
			// The panic value is not recorded: it may differ on another machine.
			s.report(noteAction, e.id, s.current.Action)
			continue
		}
		e.touched = true
		for _, t := range tracks {
			s.track(a, e, t)
		}
	}
}

// track applies one track. It copies what it keeps, since the program may reuse it.
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
		s.setProperty(e, p, undo{number: t.To, text: t.Text})
	case s.current.instant:
		s.take(e, ch.mask())
		e.values[ch] = ch.bound(a.value(t, 1))
		if ch == chTint {
			e.color = t.Text
		}
	default:
		c := s.claimChannels(e, ch.mask(), asCustom)
		c.action, c.track, c.text = a, t, t.Text
	}
}

// bounded clamps a number of a custom action; NaN becomes 0.
func bounded(v float64) float64 {
	if v != v {
		return 0
	}
	return channelX.bound(v)
}
