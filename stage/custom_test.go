package stage_test

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// actions are the custom actions that stories can use.
var actions = map[string]stage.Action{"shake": shake, "vanish": vanish, "stumble": stumble}

// shake makes a figure swing from side to side with decreasing width.
var shake = stage.Action{
	Version: 1,
	Start: func(c stage.ActionCall) []stage.Track {
		width := 10.0
		if v, ok := c.Param("width"); ok {
			width, _ = v.Float64()
		}
		return []stage.Track{
			{Channel: stage.ChannelX, From: c.Figure.X, To: c.Figure.X, Data: []float64{width}},
			{Channel: stage.ChannelState, Text: "shaking"},
		}
	},
	Value: func(t stage.Track, progress float64) float64 {
		// Four swings, as a wave of straight lines.
		const swings = 4
		phase := progress * swings
		phase -= float64(int(phase))
		wave := 1 - 4*phase
		if phase > 0.5 {
			wave = 4*phase - 3
		}
		return t.From + float64(float64(t.Data[0]*(1-progress))*(1-wave))/2
	},
}

// vanish fades a figure out while it moves.
var vanish = stage.Action{
	Version: 2,
	Start: func(c stage.ActionCall) []stage.Track {
		at, ok := c.Place("to")
		if !ok {
			return nil
		}
		return []stage.Track{
			{Channel: stage.ChannelX, From: c.Figure.X, To: at.X},
			{Channel: stage.ChannelY, From: c.Figure.Y, To: at.Y},
			{Channel: stage.ChannelOpacity, From: c.Figure.Opacity, To: 0},
		}
	},
}

// stumble panics where its parameters say: at its start, or in the value of its track at
// a progress.
var stumble = stage.Action{
	Version: 1,
	Start: func(c stage.ActionCall) []stage.Track {
		t := stage.Track{Channel: stage.ChannelX, From: c.Figure.X, To: c.Figure.X + 100}
		v, ok := c.Param("at")
		if !ok || c.Figure.ID == "careful" {
			return []stage.Track{t, {Channel: stage.ChannelState, Text: "fine"}}
		}
		at, ok := v.Float64()
		if !ok {
			var nobody *stage.Figure
			return []stage.Track{{To: nobody.X}}
		}
		t.Data = []float64{at}
		return []stage.Track{{Channel: stage.ChannelState, Text: "fallen"}, t}
	},
	Value: func(t stage.Track, progress float64) float64 {
		if len(t.Data) > 0 && progress == t.Data[0] {
			panic(fmt.Sprintf("stumbled at %p", &t))
		}
		return t.From + float64((t.To-t.From)*progress)
	},
}

// A custom action consists of two pure functions; the stage does the rest.
func ExampleAction() {
	grow := stage.Action{
		Version: 1,
		Start: func(c stage.ActionCall) []stage.Track {
			return []stage.Track{{Channel: stage.ChannelScale, From: c.Figure.Scale, To: 2 * c.Figure.Scale}}
		},
	}
	st := stage.New(stage.Config{Actions: map[string]stage.Action{"grow": grow}})
	scheduler := choreography.NewScheduler()
	scheduler.Observe(st, st)
	definitions, _ := language.Parse("grow.json", []byte(
		`{"on": "fed", "steps": [{"action": "grow", "entity": "plant", "duration": 1000}]}`))
	if err := scheduler.Define(definitions[0]); err != nil {
		panic(err)
	}
	scheduler.Signal(1, &signal.Signal{Type: "fed"})
	scheduler.Advance(250 * time.Millisecond)
	st.Advance(250 * time.Millisecond)
	fmt.Println(st.Frame().Figures[0].Scale)
	// Output: 1.25
}
