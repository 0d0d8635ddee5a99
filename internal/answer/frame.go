package answer

import (
	"encoding/json"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// FrameView is the visible stage at a moment: what a renderer has to draw, from back to
// front. Lengths are units of the scene, and times milliseconds of session time. A number
// that is not finite is null; an element with one is not drawn.
type FrameView struct {
	Moment  string         `json:"moment"`
	Seq     uint64         `json:"seq"`
	At      float64        `json:"at"`
	Mark    string         `json:"mark,omitempty"` // what every picture of the session has to say of it
	Scene   FrameSceneView `json:"scene"`
	Figures []FigureView   `json:"figures"` // in the order they are drawn
	Beams   []BeamView     `json:"beams"`   // in the order they began
	Sounds  []SoundView    `json:"sounds"`  // the most recent, oldest first
}

// FrameSceneView is the scene behind a frame.
type FrameSceneView struct {
	Title      string               `json:"title,omitempty"`
	Width      float64              `json:"width"`
	Height     float64              `json:"height"`
	Background string               `json:"background"`
	Layers     []string             `json:"layers"` // from back to front
	Slots      map[string]PointView `json:"slots"`
	Waypoints  map[string]PointView `json:"waypoints"`
}

// PointView is a point of a scene.
type PointView struct {
	X NumberView `json:"x"`
	Y NumberView `json:"y"`
}

// LookView says how a figure is drawn.
type LookView struct {
	Figure string     `json:"figure"`
	Color  string     `json:"color"`
	Size   NumberView `json:"size"` // units high at scale 1
}

// FigureView is one figure of a frame.
type FigureView struct {
	ID          string     `json:"id"`
	Actor       string     `json:"actor,omitempty"`
	Label       string     `json:"label,omitempty"`
	Look        LookView   `json:"look"`
	X           NumberView `json:"x"` // of the foot
	Y           NumberView `json:"y"`
	Height      NumberView `json:"height"` // of the foot above the ground
	Layer       int        `json:"layer"`
	Visible     bool       `json:"visible"`
	Opacity     NumberView `json:"opacity"`
	Tint        string     `json:"tint,omitempty"`
	Strength    NumberView `json:"strength"` // of the tint, 0 to 1
	Scale       NumberView `json:"scale"`
	Rotation    NumberView `json:"rotation"` // degrees clockwise
	State       string     `json:"state"`
	Text        string     `json:"text,omitempty"` // speech as far as it is typed
	TextOpacity NumberView `json:"textOpacity"`
}

// BeamView is a ray between two points.
type BeamView struct {
	From    string     `json:"from,omitempty"` // an entity or a place
	To      string     `json:"to,omitempty"`
	FromX   NumberView `json:"fromX"`
	FromY   NumberView `json:"fromY"`
	ToX     NumberView `json:"toX"` // as far as the beam has grown
	ToY     NumberView `json:"toY"`
	Color   string     `json:"color"`
	Width   NumberView `json:"width"`
	Opacity NumberView `json:"opacity"`
}

// SoundView is a sound that started.
type SoundView struct {
	At     float64 `json:"at"`
	Sound  string  `json:"sound"`
	Entity string  `json:"entity,omitempty"`
}

// NumberView is a number of a picture, which may not be finite.
type NumberView float64

// MarshalJSON returns the number, or null if it is not finite.
func (n NumberView) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// ViewFrame returns the view of the frame at a moment, whose session time is at.
func ViewFrame(f *stage.Frame, m replay.Moment, at time.Duration) FrameView {
	v := FrameView{
		Moment: m.String(), Seq: uint64(m.Seq), At: projection.Millis(at), Mark: f.Mark, Scene: viewScene(f.Scene),
		Figures: []FigureView{}, Beams: []BeamView{}, Sounds: []SoundView{},
	}
	for i := range f.Figures {
		g := &f.Figures[i]
		v.Figures = append(v.Figures, FigureView{
			ID: g.ID, Actor: g.Actor, Label: g.Label, Look: LookView{g.Look.Figure, g.Look.Color, NumberView(g.Look.Size)},
			X: NumberView(g.X), Y: NumberView(g.Y), Height: NumberView(g.Height), Layer: g.Layer, Visible: g.Visible,
			Opacity: NumberView(g.Opacity), Tint: g.Tint, Strength: NumberView(g.Strength), Scale: NumberView(g.Scale),
			Rotation: NumberView(g.Rotation), State: g.State, Text: g.Text, TextOpacity: NumberView(g.TextOpacity),
		})
	}
	for i := range f.Beams {
		b := &f.Beams[i]
		v.Beams = append(v.Beams, BeamView{
			b.From, b.To, NumberView(b.FromX), NumberView(b.FromY), NumberView(b.ToX), NumberView(b.ToY),
			b.Color, NumberView(b.Width), NumberView(b.Opacity),
		})
	}
	for _, s := range f.Sounds {
		v.Sounds = append(v.Sounds, SoundView{projection.Millis(s.At), s.Sound, s.Entity})
	}
	return v
}

func viewScene(s *scene.Scene) FrameSceneView {
	v := FrameSceneView{
		Title: s.Title, Width: s.Width, Height: s.Height, Background: s.Background, Layers: s.Layers,
		Slots: map[string]PointView{}, Waypoints: map[string]PointView{},
	}
	for _, slot := range s.Slots {
		v.Slots[slot.Name] = PointView{NumberView(slot.At.X), NumberView(slot.At.Y)}
	}
	for name, p := range s.Waypoints {
		v.Waypoints[name] = PointView{NumberView(p.X), NumberView(p.Y)}
	}
	return v
}
