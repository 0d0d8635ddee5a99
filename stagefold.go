package sajou

import (
	"time"

	"github.com/cespare/xxhash/v2"

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

// stageVersion is the version of the projection.
const stageVersion = 2

// stageState is the visible stage as a state. The performances tell it what
// they do while they advance; see Join.
type stageState struct {
	*stage.Stage
	fixed bool // the scene is given, whatever the log says

	// performances has decoded the entry already; nil if the set lacks it.
	performances *performances
}

func stageProjection(pc ProjectionConfig) projection.Projection {
	cfg, fixed := stage.Config{Actions: pc.Actions}, pc.Scene != nil
	version := uint32(stageVersion)
	if fixed {
		// Another rule, and so another version, which no ordinary one reaches.
		version = 1<<31 | uint32(xxhash.Sum64(pc.Scene.Value())>>33)
	}
	return projection.Projection{
		Name:    ProjectionStage,
		Version: version,
		New: func() projection.State {
			s := stage.New(cfg)
			if fixed {
				s.SetScene(pc.Scene)
			}
			return &stageState{Stage: s, fixed: fixed}
		},
		// What was written with other actions the stage itself refuses.
		Restore: func(data []byte) (projection.State, error) {
			s, err := stage.Restore(cfg, data)
			if err != nil {
				return nil, err
			}
			return &stageState{Stage: s, fixed: fixed}, nil
		},
		Join: func(s projection.State, before func(string) projection.State) {
			if p, ok := before(ProjectionPerformances).(*performances); ok {
				st := s.(*stageState)
				st.performances = p
				p.scheduler.Observe(st.Stage, st.Stage)
			}
		},
	}
}

func (s *stageState) Apply(e *eventlog.Entry) {
	switch e.Kind {
	case eventlog.KindSignal:
		if !s.Impressed() {
			return // the performances have decoded it, and told what it made
		}
		if p := s.performances; p != nil && p.seq == e.Seq {
			s.Signal(uint64(e.Seq), &p.signal)
		} else if sig, err := signal.Decode(e.Data); err == nil {
			s.Signal(uint64(e.Seq), &sig)
		}
	case eventlog.KindDefine:
		switch d, _ := DeclarationOf(e); d := d.(type) {
		case *scene.Scene:
			if !s.fixed {
				s.SetScene(d)
			}
		case *choreography.Definition, *choreography.Binding:
			// In the log of another program it may refer to what is not there,
			// and is not in force then.
			if p := s.performances; p == nil || p.scheduler.Registry().Len() > 0 {
				s.Choreographed()
			}
		}
	default:
	}
}

// FrameOf returns what is seen where a fold stands, nil if it has no stage.
func FrameOf(f *projection.Fold) *stage.Frame {
	if s, ok := f.State(ProjectionStage).(*stageState); ok {
		return s.Frame()
	}
	return nil
}

// Advance moves the stage on; what performances do up to then they have told.
func (s *stageState) Advance(at time.Duration) { s.Stage.Advance(at) }

// Moving reports whether anything on the stage of a fold changes by itself
// right after the instant where the fold stands.
func Moving(f *projection.Fold) bool {
	s, ok := f.State(ProjectionStage).(*stageState)
	return ok && s.Moving()
}
