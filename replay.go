package sajou

import (
	"context"

	agenthistory "github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/workspace"
)

// Replay returns the time travel of a recorded session: its states, addresses, cursors,
// commands and searches. Errors: [eventlog.ErrNoSession], and [*session.RulesError] if a
// newer program recorded the session.
func (e *Engine) Replay(name string) (*replay.Replay, error) { return e.ReplayWith(name, e.set) }

// ReplayWith is [Engine.Replay] with other projections than the engine's, such as those
// of [session.Projections].
func (e *Engine) ReplayWith(name string, set projection.Set) (*replay.Replay, error) {
	log, err := e.log.Session(name)
	if err != nil {
		return nil, err
	}
	r, err := session.OpenReplay(&log.SessionReader, set, e.snaps)
	if err != nil {
		return nil, err
	}
	r.UseIndexes(e.indexesOf(&log.SessionReader))
	return r, nil
}

// Files returns the files that the agents of a recorded session worked on, as far as
// they are known at a moment. It folds the entries up to there. For a search over many
// moments pass [workspace.Projection] to [Engine.ReplayWith]. The errors are those of
// [Engine.Replay] and [replay.Replay.At].
func (e *Engine) Files(ctx context.Context, name string, m replay.Moment) (*workspace.State, error) {
	r, err := e.ReplayWith(name, projection.Set{workspace.Projection()})
	if err != nil {
		return nil, err
	}
	f, err := r.At(ctx, m)
	if err != nil {
		return nil, err
	}
	return workspace.Of(f), nil
}

// AgentHistory answers questions about what the agents of a recorded session knew. The
// errors are those of [Engine.Replay].
func (e *Engine) AgentHistory(name string) (*agenthistory.History, error) {
	r, err := e.Replay(name)
	if err != nil {
		return nil, err
	}
	return agenthistory.New(r, e.cfg.World), nil
}
