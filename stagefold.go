package sajou

import (
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// ProjectionStage is what a viewer sees: the entities, beams and sounds that
// the scene and the performances make.
const ProjectionStage = "stage"

// stageState is the visible stage as a state. The performances tell it what
// they do while they advance; see join.
type stageState struct{ *stage.Stage }

func stageProjection(cfg stage.Config) projection.Projection {
	return projection.Projection{
		Name:    ProjectionStage,
		Version: 1,
		New:     func() projection.State { return stageState{stage.New(cfg)} },
		Restore: func(data []byte) (projection.State, error) {
			s, err := stage.Restore(cfg, data)
			if err != nil {
				return nil, err
			}
			return stageState{s}, nil
		},
		Join: func(s projection.State, before func(string) projection.State) {
			if p, ok := before(ProjectionPerformances).(*performances); ok {
				st := s.(stageState).Stage
				p.scheduler.Observe(st, st)
			}
		},
	}
}

func (s stageState) Apply(e *eventlog.Entry) {
	switch e.Kind {
	case eventlog.KindSignal:
		if !s.Impressed() {
			return // the performances have decoded it, and told what it made
		}
		if sig, err := signal.Decode(e.Data); err == nil {
			s.Signal(uint64(e.Seq), &sig)
		}
	case eventlog.KindDefine:
		switch d, _ := DeclarationOf(e); d := d.(type) {
		case *scene.Scene:
			s.SetScene(d)
		case *choreography.Definition:
			s.Choreographed()
		}
	default:
	}
}

// FrameOf returns what is seen where a fold stands, nil if it has no stage.
func FrameOf(f *projection.Fold) *stage.Frame {
	if s, ok := f.State(ProjectionStage).(stageState); ok {
		return s.Frame()
	}
	return nil
}

// Advance moves the stage on; what performances do up to then they have told.
func (s stageState) Advance(at time.Duration) { s.Stage.Advance(at) }
