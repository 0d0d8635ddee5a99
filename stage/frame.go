package stage

import (
	"time"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Frame is what a viewer sees at one moment. It shares nothing with the stage
// that changes.
type Frame struct {
	At      time.Duration
	Scene   *scene.Scene
	Figures []Figure // in the order they are drawn: by layer, then y, then id
	Beams   []Beam   // in the order they began
	Sounds  []Sound  // those that started last, oldest first
}

// Figure is one entity as it is seen.
type Figure struct {
	ID, Actor, Label string
	Look             scene.Look
	X, Y             float64 // the figure's foot... units of the scene
	Layer            int
	Visible          bool
	Opacity          float64 // 0 to 1
	Tint             string  // color of the tint, "" if Strength is 0
	Strength         float64 // of the tint, 0 to 1
	Scale            float64
	Rotation         float64 // degrees clockwise
	State            string  // animation state
	Text             string  // speech as far as it is typed, "" if none
	TextOpacity      float64 // 0 to 1
}

// Beam is a ray between two points.
type Beam struct {
	From, To     string // entities or places, "" for bare points
	FromX, FromY float64
	ToX, ToY     float64 // as far as it has grown
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
