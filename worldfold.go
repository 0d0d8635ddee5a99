package sajou

import (
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// ProjectionWorld is the world that agents share: its entities, who is
// registered, and what each of them has been shown.
const ProjectionWorld = "world"

// worldVersion is the version of the projection.
const worldVersion = 1

func worldProjection(options agents.Options) projection.Projection {
	return projection.Projection{
		Name:    ProjectionWorld,
		Version: worldVersion,
		New: func() projection.State {
			core, err := agents.NewCore(options)
			if err != nil {
				panic(err.Error()) // Open has tried them
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
	}
}

// worldState is the agents' core as a state. An entry of kind effect holds one
// of its records, ["effect", value] or another of its words.
type worldState struct {
	core *agents.Core

	// tell, unless nil, is told what the time up to an entry cancelled, and what
	// came of the entry.
	tell   func(e *eventlog.Entry, r agents.Record, passed []agents.Cancellation, out agents.Applied)
	passed []agents.Cancellation // by the time before the next entry
}

func (s *worldState) Advance(at time.Duration) {
	if out := s.core.Advance(at); s.tell != nil {
		s.passed = append(s.passed, out.Cancellations...)
	}
}

func (s *worldState) Apply(e *eventlog.Entry) {
	var record agents.Record
	var out agents.Applied
	if e.Kind == eventlog.KindEffect {
		if r, err := WorldRecordOf(e); err == nil {
			// What the core cannot read, in the log of another program, changes nothing.
			record, out = r, s.core.Apply(e.At, r)
		}
	}
	if s.tell == nil {
		return
	}
	s.tell(e, record, s.passed, out)
	s.passed = nil
}

func (s *worldState) Append(dst []byte) []byte { return s.core.AppendState(dst) }

// WorldOf returns the agents' world where a fold stands, nil if it has none. It
// belongs to the fold and changes with it; only the fold may move it on.
func WorldOf(f *projection.Fold) *agents.Core {
	if s, ok := f.State(ProjectionWorld).(*worldState); ok {
		return s.core
	}
	return nil
}

// Len, Names and Member let expressions read one part of the world without
// making the view of all. They implement Members of package replay/where.

// Len returns how many parts the view has.
func (s *worldState) Len() int { return len(worldParts) }

// Names returns the names of the parts.
func (s *worldState) Names() []string { return worldParts }

var worldParts = []string{"agents", "entities", "metadata", "paused", "relationships", "seq", "spatial_index"}

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
