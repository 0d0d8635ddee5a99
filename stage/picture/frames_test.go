package picture_test

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

var (
	testColors = []string{"#4f8cff", "#22c55e", "#f59e0b", "#a78bfa", "#ef4444", "#14b8a6", "#f472b6", "#eab308"}
	testStates = []string{"idle", "thinking", "acting", "waiting", "done", "error", "walk", ""}
)

// forge is a small stage with everything that a frame can contain.
func forge(background string) *stage.Frame {
	return &stage.Frame{
		At: 12350 * time.Millisecond,
		Scene: &scene.Scene{
			Width: 960, Height: 540, Background: background, Layers: []string{"ground", "stage"},
			Slots: []scene.Slot{{Name: "left", At: scene.Point{X: 200, Y: 300}}, {Name: "right", At: scene.Point{X: 760, Y: 300}}},
			Waypoints: map[string]scene.Point{
				"mine": {X: 480, Y: 430}, "well": {X: 330, Y: 380},
			},
			Routes: map[string]scene.Route{
				"patrol": {Points: []scene.Point{{X: 200, Y: 460}, {X: 480, Y: 500}, {X: 760, Y: 460}}},
				"square": {Points: []scene.Point{{X: 620, Y: 380}, {X: 700, Y: 380}, {X: 700, Y: 430}, {X: 620, Y: 430}}, Closed: true},
			},
		},
		Figures: []stage.Figure{
			{
				ID: "forge", Label: "Forge", Look: scene.Look{Figure: "building", Color: "#a78bfa", Size: 120},
				X: 480, Y: 250, Visible: true, Opacity: 1, Scale: 1, State: "waiting",
			},
			{
				ID: "claude", Label: "claude", Look: scene.Look{Figure: "robot", Color: "#4f8cff", Size: 80},
				X: 200, Y: 300, Layer: 1, Visible: true, Opacity: 1, Scale: 1, State: "thinking",
				Text: "I read the specification first, then I write the tests", TextOpacity: 1,
			},
			{
				ID: "peon", Label: "peon <3 & co", Look: scene.Look{Figure: "person", Color: "#22c55e", Size: 80},
				X: 760, Y: 300, Layer: 1, Visible: true, Opacity: 1, Scale: 1, State: "acting", Tint: "gold", Strength: .4,
			},
			{
				ID: "pigeon", Label: "pigeon", Look: scene.Look{Figure: "bird", Color: "orange", Size: 60},
				X: 330, Y: 450, Layer: 1, Visible: true, Opacity: .5, Scale: 1.2, Rotation: -20, State: "fly",
			},
			{ID: "ghost", Label: "ghost", X: 400, Y: 400, Scale: 1, Opacity: 1},
		},
		Beams: []stage.Beam{{
			From: "claude", To: "peon", FromX: 200, FromY: 300, ToX: 620, ToY: 300, Color: "gold", Width: 4, Opacity: 1,
		}},
		Sounds: []stage.Sound{
			{At: 11 * time.Second, Sound: "long ago"},
			{At: 12250 * time.Millisecond, Sound: "hammer", Entity: "peon"},
			{At: 12150 * time.Millisecond, Sound: "door"},
		},
	}
}

// everyone has all figures, each with another state.
func everyone() *stage.Frame {
	f := &stage.Frame{At: 950 * time.Millisecond, Scene: &scene.Scene{Width: 960, Height: 540, Background: "#101826"}}
	for i, name := range append(picture.Figures(), "unheard of", "robot") {
		g := stage.Figure{
			ID: fmt.Sprintf("%s-%d", name, i), Label: name,
			Look: scene.Look{Figure: name, Color: testColors[i%len(testColors)], Size: 90},
			X:    float64(90 + i%6*155), Y: float64(150 + i/6*165),
			Visible: true, Opacity: 1, Scale: 1, State: testStates[i%len(testStates)],
		}
		switch i {
		case 8:
			g.Text, g.TextOpacity = "日本語 and 🙂 stay", 1
		case 12:
			g.Rotation = 25
		case 13:
			g.Tint, g.Strength = "gold", .6
		case 14:
			g.Opacity = .5
		}
		f.Figures = append(f.Figures, g)
	}
	return f
}

// nameless has figures without a label, and one with a label.
func nameless() *stage.Frame {
	f := &stage.Frame{Scene: &scene.Scene{Width: 320, Height: 180, Background: "#101826"}}
	for i, label := range []string{"", "said", ""} {
		f.Figures = append(f.Figures, stage.Figure{
			ID: fmt.Sprint("unsaid-", i), Label: label, Look: scene.Look{Figure: []string{"person", "robot", "token"}[i], Color: testColors[i], Size: 80},
			X: float64(60 + 100*i), Y: 120, Visible: true, Opacity: 1, Scale: 1, State: []string{"walk", "thinking", "idle"}[i],
		})
	}
	return f
}

// crowd is n figures in rows of twenty.
func crowd(n int) *stage.Frame {
	f := &stage.Frame{Scene: &scene.Scene{Width: 960, Height: 540}}
	names := picture.Figures()
	for i := range n {
		f.Figures = append(f.Figures, stage.Figure{
			ID: fmt.Sprint("agent-", i), Label: fmt.Sprint("agent-", i), Look: scene.Look{Figure: names[i%len(names)], Color: testColors[i%8], Size: 44},
			X: float64(30 + i%20*47), Y: float64(50 + i/20%10*50), Visible: true, Opacity: 1, Scale: 1, State: testStates[i%8],
		})
	}
	return f
}
