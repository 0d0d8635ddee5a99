package session

import (
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

func worldProjection(options agents.Options) projection.Projection {
	return projection.Projection{
		Name:    ProjectionWorld,
		Version: worldVersion,
		New: func() projection.State {
			core, err := agents.NewCore(options)
			if err != nil {
				panic(err.Error()) // see Projections
			}
			return &worldState{core: core}
		},
		Restore: func(data []byte) (projection.State, error) {
			core, err := agents.RestoreCore(data, options)
			if err != nil {
				return nil, err
			}
			return &worldState{core: core}, nil
		},
		Join: func(s projection.State, before func(string) projection.State) {
			// The bytes of the core do not hold the number of the rules. A fold that
			// has applied no entry gets it from the first one.
			if ses, ok := before(ProjectionSession).(*State); ok && ses.time.Authority != "" {
				s.(*worldState).core.SetRules(ses.rules)
			}
		},
	}
}

// worldState is the state of [ProjectionWorld]: the agents' core. An entry of kind effect
// holds one of its records.
type worldState struct {
	core *agents.Core

	// applied, unless nil, is called with the outcome of each entry.
	applied func(WorldChange)
	passed  []agents.Cancellation // by the time before the next entry
}

// WorldChange is the outcome of one entry for the agents' world.
type WorldChange struct {
	Entry  *eventlog.Entry
	Record signal.Record // zero if the entry is not one of the world's
	// Passed are the cancellations that the time up to the entry caused.
	Passed []agents.Cancellation
	// Applied is the outcome of the entry itself.
	Applied agents.Applied
}

// ObserveWorld has f called with the outcome of each entry that a fold applies from
// now on, before the fold's later projections take the entry in. It does nothing if the
// fold has no world. A clone of the fold is not observed.
func ObserveWorld(fold *projection.Fold, f func(WorldChange)) {
	if s, ok := fold.State(ProjectionWorld).(*worldState); ok {
		s.applied = f
	}
}

// WorldOf returns the agents' world where a fold stands, nil if it has none. It
// belongs to the fold and changes with it; only the fold may change it.
func WorldOf(f *projection.Fold) *agents.Core {
	if s, ok := f.State(ProjectionWorld).(*worldState); ok {
		return s.core
	}
	return nil
}

// Advance implements [projection.State].
func (s *worldState) Advance(at time.Duration) {
	if out := s.core.Advance(at); s.applied != nil {
		s.passed = append(s.passed, out.Cancellations...)
	}
}

// NextBoundary implements [replay.Timed].
func (s *worldState) NextBoundary() (time.Duration, bool) { return s.core.NextBoundary() }

// Apply implements [projection.State].
func (s *worldState) Apply(e *eventlog.Entry) {
	var record signal.Record
	var out agents.Applied
	if e.Seq == 1 {
		s.core.SetRules(RulesOf(e))
	}
	if e.Kind == eventlog.KindEffect {
		if r, err := WorldRecordOf(e); err == nil {
			// A record that the core cannot read, in the log of another program, changes nothing.
			record, out = r, s.core.Apply(e.At, r)
		}
	}
	if s.applied == nil {
		return
	}
	s.applied(WorldChange{e, record, s.passed, out})
	s.passed = nil
}

// Append implements [projection.State].
func (s *worldState) Append(dst []byte) []byte { return s.core.AppendState(dst) }

// Fits implements [projection.Placed].
func (s *worldState) Fits(_ eventlog.Head, at time.Duration) error { return fitsTime(s.core.Now(), at) }

// Len, Names and Member let expressions read one part of the world without
// making the view of all. They implement Members of package replay/where.

// Len returns how many parts the view has.
func (s *worldState) Len() int { return len(worldParts) }

// Names returns the names of the parts.
func (s *worldState) Names() []string { return worldParts }

var worldParts = []string{"agents", "entities", "metadata", "paused", "relationships", "seq", "spatial_index"}

// Vocabulary returns the names of the parts. It implements Closed of package
// replay/where.
func (s *worldState) Vocabulary() []string { return worldParts }

// Member returns one part of the view.
func (s *worldState) Member(name string) (any, bool) {
	switch name {
	case "seq":
		return int64(s.core.Seq()), true
	case "paused":
		return s.core.Config().Paused, true
	case "metadata":
		return s.core.World().Metadata().Any(), true
	case "entities", "relationships", "spatial_index":
		part, ok := s.core.World().Value().Get(name)
		return part.Any(), ok
	case "agents":
		return s.agents(), true
	}
	return nil, false
}

func (s *worldState) agents() map[string]any {
	view := map[string]any{}
	for id := range s.core.Agents() {
		v, _ := s.core.View(id)
		tokens := []any{}
		for _, t := range s.core.Tokens(id) {
			tokens = append(tokens, map[string]any{
				"req_id":      t.ReqID,
				"context_seq": int64(t.ContextSeq),
				"issued":      projection.Millis(t.Issued),
				"deadline":    projection.Millis(t.Deadline),
				"conflict":    t.Conflict,
			})
		}
		view[id] = map[string]any{
			"view_seq":       int64(v.ViewSeq),
			"context_digest": v.ContextDigest,
			"tokens":         tokens,
		}
	}
	return view
}

// View shows the world: seq (global_seq of the last effect), paused, entities,
// relationships, spatial_index, metadata, and of each agent view_seq,
// context_digest and the tokens of its generations.
func (s *worldState) View() any {
	view := make(map[string]any, len(worldParts))
	for _, name := range worldParts {
		view[name], _ = s.Member(name)
	}
	return view
}
