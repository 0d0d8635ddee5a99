package stage

import (
	"encoding/json"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

func init() { compileScene = CompileScene }

func CompileScene(v signal.Value) (*scene.Scene, error) {
	s, err := scene.Compile(v)
	if err != nil {
		return nil, err
	}
	var j struct {
		Title  string
		Size   *struct{ Width, Height float64 }
		Layers []string
		Looks  map[string]struct {
			Figure, Color string
			Size          float64
		}

		Waypoints map[string]scene.Point
		Routes    map[string]struct {
			Points []scene.Point
			Closed bool
		}
		Entities []struct {
			ID, Actor, Look string
			Label           *string
			At              scene.Point
			Layer           string
			Hidden          bool
			Opacity, Scale  *float64
			Rotation        float64
			State           string
		}
		Agents      []scene.Rule
		Stranger    string
		Impressions *bool
	}
	if err := json.Unmarshal(v.AppendJSON(nil), &j); err != nil {
		return nil, err
	}
	s.Title, s.Stranger = j.Title, j.Stranger
	if j.Size != nil {
		s.Width, s.Height = j.Size.Width, j.Size.Height
	}
	if j.Layers != nil {
		s.Layers = j.Layers
	}
	s.Looks, s.Waypoints, s.Routes = map[string]scene.Look{}, j.Waypoints, map[string]scene.Route{}
	for n, l := range j.Looks {
		s.Looks[n] = scene.Look{Figure: l.Figure, Color: l.Color, Size: l.Size}
	}
	// Slots in the order of the text.
	top, _ := v.Get("slots")
	for name, at := range top.Members() {
		p, _ := pointOf(at, true)
		s.Slots = append(s.Slots, scene.Slot{Name: name, At: p})
	}
	for n, r := range j.Routes {
		s.Routes[n] = scene.Route{Points: r.Points, Closed: r.Closed}
	}
	for _, e := range j.Entities {
		d := scene.Entity{ID: e.ID, Actor: e.Actor, Look: e.Look, Label: e.ID, At: e.At, Hidden: e.Hidden, Opacity: 1, Scale: 1, Rotation: e.Rotation, State: e.State}
		if e.Actor == "" {
			d.Actor = e.ID
		}
		if e.Label != nil {
			d.Label = *e.Label
		}
		if e.Opacity != nil {
			d.Opacity = *e.Opacity
		}
		if e.Scale != nil {
			d.Scale = *e.Scale
		}
		for i, l := range s.Layers {
			if l == e.Layer {
				d.Layer = i
			}
		}
		s.Entities = append(s.Entities, d)
	}
	s.Agents = j.Agents
	if j.Impressions != nil {
		s.Impressions = *j.Impressions
	}
	return s, nil
}

var Matches = matches
