package session

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// stageState is the state of [ProjectionStage]. The performances report to it what
// they do while they advance; see Join in stageProjection.
type stageState struct {
	*stage.Stage
	fixed bool // the scene is given; scenes of the log are ignored

	// performances has decoded the entry already; nil if the set lacks it.
	performances *Performances
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
		// The stage itself refuses bytes that were written with other actions.
		Restore: func(data []byte) (projection.State, error) {
			s, err := stage.Restore(cfg, data)
			if err != nil {
				return nil, err
			}
			return &stageState{Stage: s, fixed: fixed}, nil
		},
		Join: func(s projection.State, before func(string) projection.State) {
			st := s.(*stageState)
			if ses, ok := before(ProjectionSession).(*State); ok && ses.time.Authority != "" {
				st.follow(ses.rules, ses.fork)
			}
			if p, ok := before(ProjectionPerformances).(*Performances); ok {
				st.performances = p
				p.scheduler.Observe(st.Stage, st.Stage)
			}
		},
	}
}

// follow has the stage fold by the rules of a number and show that the session is a fork,
// neither of which is in its state: a fold that has applied no entry gets it from the
// first one.
func (s *stageState) follow(rules int, fork *Fork) {
	if fork != nil {
		s.SetMark(fork.Title())
	}
	if rules < rulesUnresolved {
		s.IgnoreUnresolved()
	}
}

func (s *stageState) Apply(e *eventlog.Entry) {
	if e.Seq == 1 {
		s.follow(RulesOf(e), ForkOf(e))
	}
	switch e.Kind {
	case eventlog.KindSignal:
		if !s.Impressed() {
			return // the performances have decoded it and reported the outcome
		}
		if p := s.performances; p != nil && p.seq == e.Seq {
			s.Signal(uint64(e.Seq), &p.signal)
		} else if sig, err := signal.DecodeSound(e.Data); err == nil {
			s.Signal(uint64(e.Seq), &sig)
		}
	case eventlog.KindDefine, eventlog.KindSession:
		for d, err := range DeclarationsOf(e) {
			if err == nil {
				s.declared(d)
			}
		}
	default:
	}
}

func (s *stageState) declared(d language.Declaration) {
	switch d := d.(type) {
	case *scene.Scene:
		if !s.fixed {
			s.SetScene(d)
		}
	case *definition.Definition, *language.Binding:
		// In the log of another program it may refer to a missing declaration, and then
		// is not in force.
		if p := s.performances; p == nil || p.scheduler.Performing() {
			s.Choreographed()
		}
	}
}

// StageOf returns the stage where a fold stands, nil if it has none. It belongs to
// the fold and changes with it.
func StageOf(f *projection.Fold) *stage.Stage {
	if s, ok := f.State(ProjectionStage).(*stageState); ok {
		return s.Stage
	}
	return nil
}

// Fits implements [projection.Placed].
func (s *stageState) Fits(_ eventlog.Head, at time.Duration) error { return fitsTime(s.Now(), at) }

// Vocabulary returns the names of the stage's members. It implements Closed of
// package replay/where.
func (s *stageState) Vocabulary() []string { return s.Names() }
