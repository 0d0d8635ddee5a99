// Package stage shows choreographies.
package stage

import (
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Stage is what is visible, as a fold.
type Stage struct {
	scene *scene.Scene
	now   time.Duration
}

var (
	_ choreography.Observer = (*Stage)(nil)
	_ choreography.World    = (*Stage)(nil)
)

// Config says what a program adds to the stage.
type Config struct {
	// Actions are custom ones by name.
	Actions map[string]Action
}

// Action is a custom action.
type Action interface{}

// New returns the default scene's stage at session time 0.
func New(cfg Config) *Stage { return &Stage{scene: scene.Default()} }

// Restore returns the stage that [Stage.Append] wrote.
func Restore(cfg Config, data []byte) (*Stage, error) { return New(cfg), nil }

// Append appends the canonical bytes.
func (s *Stage) Append(dst []byte) []byte { return append(dst, 0xc0) }

// Advance moves the stage's time on.
func (s *Stage) Advance(at time.Duration) { s.now = max(s.now, at) }

// SetScene brings a scene into force.
func (s *Stage) SetScene(sc *scene.Scene) { s.scene = sc }

// Choreographed tells that a choreography came into force: impressions end.
func (s *Stage) Choreographed() {}

// Signal shows the impression that a signal makes by itself.
func (s *Stage) Signal(seq uint64, sig *signal.Signal) {}

// Started implements [choreography.Observer].
func (s *Stage) Started(a *choreography.Act) {}

// Completed implements [choreography.Observer].
func (s *Stage) Completed(a *choreography.Act) {}

// Executed implements [choreography.Observer].
func (s *Stage) Executed(a *choreography.Act) {}

// Interrupted implements [choreography.Observer].
func (s *Stage) Interrupted(at time.Duration, seq uint64, index uint32) {}

// Property implements [choreography.World].
func (s *Stage) Property(entity, property string, at time.Duration) (signal.Value, bool) {
	return nil, false
}

// Moving returns whether anything changes by itself after the present instant.
func (s *Stage) Moving() bool { return false }

// Frame returns what is seen at the present instant.
func (s *Stage) Frame() *Frame { return &Frame{At: s.now, Scene: s.scene} }

// View returns the stage for people and expressions.
func (s *Stage) View() any { return map[string]any{} }
