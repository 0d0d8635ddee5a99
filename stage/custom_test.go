package stage_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// A track moves a channel or sets a property by the property's own name. Any other name
// changes nothing and is remarked.
func TestTracksOfUnknownChannels(t *testing.T) {
	for name, moves := range map[stage.Channel]bool{
		stage.ChannelX: true, "position.x": false, "animation.state": false, "nothing": false, "not.hing": false, "": false,
	} {
		st := stage.New(stage.Config{Actions: map[string]stage.Action{"act": {
			Version: 1,
			Start: func(c stage.ActionCall) []stage.Track {
				return []stage.Track{{Channel: name, From: 5, To: 5, Text: "t"}}
			},
		}}})
		scheduler := choreography.NewScheduler()
		scheduler.Observe(st, st)
		definitions, _ := language.Parse("act.json", []byte(`[{"on": "before", "steps": [{"action": "spawn", "entity": "plant"}]}, {"on": "fed", "steps": [{"action": "act", "entity": "plant"}]}]`))
		for _, d := range definitions {
			require.NoError(t, scheduler.Define(d))
		}
		scheduler.Signal(1, &signal.Signal{Type: "before"})
		scheduler.Advance(0)
		before := st.Frame().Figures[0]
		scheduler.Signal(2, &signal.Signal{Type: "fed"})
		scheduler.Advance(0)
		after := st.Frame().Figures[0]
		values := st.View().(map[string]any)["diagnostics"].(map[string]any)["values"]
		if moves {
			require.Equal(t, 5.0, after.X)
			require.Equal(t, int64(0), values)
			continue
		}
		require.Equal(t, before, after, "%q", name)
		require.Equal(t, int64(1), values, "%q is not remarked", name)
	}
}

// Tracks and their data are counted, and their texts and numbers are bounded; what is too
// much of one track leaves the others.
func TestTracksAreBounded(t *testing.T) {
	many := func(n int, last stage.Track) []stage.Track {
		tracks := make([]stage.Track, n-1, n)
		for i := range tracks {
			tracks[i] = stage.Track{Channel: stage.ChannelRotation, To: float64(i)}
		}
		return append(tracks, last)
	}
	name, text := strings.Repeat("n", stage.MaxName), strings.Repeat("é", stage.MaxText)
	to := func(ch stage.Channel, v float64) stage.Track { return stage.Track{Channel: ch, From: v, To: v} }
	saying := func(ch stage.Channel, text string) stage.Track { return stage.Track{Channel: ch, Text: text} }
	type told struct {
		x, opacity, scale, strength float64
		state, label, text, tint    string
		remark                      string
	}
	for title, c := range map[string]struct {
		tracks []stage.Track
		want   func(*told)
	}{
		"sixteen tracks":         {many(stage.MaxTracks, to(stage.ChannelX, 5)), func(w *told) { w.x = 5 }},
		"seventeen tracks":       {many(stage.MaxTracks+1, to(stage.ChannelX, 5)), func(*told) {}},
		"sixteen numbers":        {[]stage.Track{{Channel: stage.ChannelX, From: 5, To: 5, Data: make([]float64, stage.MaxTrackData)}}, func(w *told) { w.x = 5 }},
		"seventeen numbers":      {[]stage.Track{{Channel: stage.ChannelX, Data: make([]float64, stage.MaxTrackData+1)}, to(stage.ChannelScale, 3)}, func(w *told) { w.scale, w.remark = 3, "value" }},
		"a long name":            {[]stage.Track{saying(stage.ChannelState, name), saying(stage.ChannelLabel, name)}, func(w *told) { w.state, w.label = name, name }},
		"too long a name":        {[]stage.Track{saying(stage.ChannelState, name+"n"), saying(stage.ChannelLabel, "l")}, func(w *told) { w.label, w.remark = "l", "limit" }},
		"too long a color":       {[]stage.Track{{Channel: stage.ChannelTint, From: 1, To: 1, Text: name + "n"}}, func(w *told) { w.remark = "limit" }},
		"a long text":            {[]stage.Track{saying(stage.ChannelText, text)}, func(w *told) { w.text = text }},
		"too long a text":        {[]stage.Track{saying(stage.ChannelText, text+"x")}, func(w *told) { w.text = text }},
		"a text that is no UTF8": {[]stage.Track{saying(stage.ChannelText, "a\xffb")}, func(w *told) { w.text = "a\uFFFDb" }},
		"a color":                {[]stage.Track{{Channel: stage.ChannelTint, From: 0.5, To: 0.5, Text: "tan"}}, func(w *told) { w.tint, w.strength = "tan", 0.5 }},
		"no number":              {[]stage.Track{to(stage.ChannelX, math.NaN()), to(stage.ChannelOpacity, math.NaN())}, func(w *told) { w.x, w.opacity = 0, 0 }},
		"numbers without end":    {[]stage.Track{to(stage.ChannelX, math.Inf(1)), to(stage.ChannelOpacity, math.Inf(1)), to(stage.ChannelScale, math.Inf(1))}, func(w *told) { w.x, w.scale = 1e9, 1000 }},
		"numbers below":          {[]stage.Track{to(stage.ChannelX, math.Inf(-1)), to(stage.ChannelOpacity, -3), to(stage.ChannelScale, -3)}, func(w *told) { w.x, w.opacity, w.scale = -1e9, 0, 0 }},
	} {
		for _, duration := range []string{"", `, "duration": 100`} {
			w := newWorld(stage.Config{Actions: map[string]stage.Action{
				"act":  {Version: 1, Start: func(stage.ActionCall) []stage.Track { return c.tracks }},
				"rest": {Version: 1},
			}})
			w.define(t, `[{"on": "x", "steps": [{"action": "spawn", "entity": "ann", "at": {"x": 70, "y": 0}}, {"action": "rest", "entity": "ann"}, {"action": "act", "entity": "ann"`+duration+`}]}]`)
			w.signal(0, &signal.Signal{Type: "x"})
			w.advance(50 * time.Millisecond)
			w.restore(t)
			f := w.stage.Frame().Figures[0]
			got := told{f.X, f.Opacity, f.Scale, f.Strength, f.State, f.Label, f.Text, f.Tint, ""}
			for _, remark := range w.stage.View().(map[string]any)["diagnostics"].(map[string]any)["recent"].([]any) {
				got.remark += remark.(map[string]any)["kind"].(string)
			}
			want := told{70, 1, 1, 0, "idle", "ann", "", "", ""}
			c.want(&want)
			require.Equal(t, want, got, title+duration)
		}
	}
}

// A missing coordinate is 0 in "by" and "offset". One that is not a number is refused,
// and the entity stays.
func TestCoordinates(t *testing.T) {
	for value, want := range map[string][2]float64{
		`{"x": 5}`: {5, 0}, `{"y": 7}`: {0, 7}, `{"x": 5, "y": 7}`: {5, 7}, `[5, 7]`: {5, 7}, `{}`: {},
		`{"x": 5, "y": "7"}`: {}, `{"x": "5", "y": 7}`: {}, `{"x": 5, "y": null}`: {}, `{"x": null, "y": 7}`: {}, `[5]`: {}, `[5, "7"]`: {}, `["5", 7]`: {}, `[5, 7, 9]`: {}, `5`: {},
	} {
		st := stage.New(stage.Config{})
		scheduler := choreography.NewScheduler()
		scheduler.Observe(st, st)
		definitions, diagnostics := language.Parse("move.json", []byte(`[{"on": "before", "steps": [{"action": "spawn", "entity": "ann", "at": {"x": 100, "y": 50}}]},
			{"on": "x", "steps": [{"action": "move", "entity": "ann", "by": `+value+`}]}]`))
		require.NotEmpty(t, definitions, "%v", diagnostics)
		for _, d := range definitions {
			require.NoError(t, scheduler.Define(d))
		}
		scheduler.Signal(1, &signal.Signal{Type: "before"})
		scheduler.Advance(0)
		before := st.Frame().Figures[0]
		scheduler.Signal(2, &signal.Signal{Type: "x"})
		scheduler.Advance(time.Hour)
		st.Advance(time.Hour)
		after := st.Frame().Figures[0]
		require.Equal(t, want, [2]float64{after.X - before.X, after.Y - before.Y}, value)
		require.Zero(t, after.Height, "it stands on the ground")
	}
}
