// Package history answers questions about what the agents of a recorded session
// knew, and why they were interrupted or refused.
//
// Every answer comes from the log alone: a pass over the entries with nothing but the
// agents' world folded, accompanied by a watch of package agents/query. A pass keeps
// no entries, and its context can end it between two of them. The package needs a
// replay and the meaning of entries, never a session that is being written, so its
// answers are the same whether the session is live or not.
//
// An answer about what an agent was sent is only proven if the session was recorded
// under rules that this program has; see [session.RulesError]. That the log is
// intact is proven by verifying its chain, not here.
package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// NoAgentError is the error of a question about an agent that a session never had.
// It wraps [agents.ErrUnknownAgent].
type NoAgentError struct {
	Session, Agent string
	Known          []string // ids that it had, in order, at most 16
	More           bool     // there are more
}

func (e *NoAgentError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("sajou: session %q never had an agent", e.Session)
	}
	more := ""
	if e.More {
		more = " and more"
	}
	return fmt.Sprintf("sajou: session %q never had an agent %q; it had %s%s", e.Session, e.Agent, strings.Join(e.Known, ", "), more)
}

func (e *NoAgentError) Unwrap() error { return agents.ErrUnknownAgent }

// History is the recorded history of the agents of one session. It is safe for
// concurrent use if its replay is.
type History struct {
	replay   *replay.Replay
	world    agents.Options
	progress func(done, total eventlog.Seq) // may be nil
}

// New returns the history of the agents of a recorded session. The options are those
// with which the session was recorded: what the program adds to the agents' world.
func New(r *replay.Replay, world agents.Options) *History {
	return &History{replay: r, world: world}
}

// OnProgress returns a copy of h that calls f now and then with the number of
// entries that a pass has read, and of those that it has to read.
func (h *History) OnProgress(f func(done, total eventlog.Seq)) *History {
	c := *h
	c.progress = f
	return &c
}

// CheckRules returns a [*session.RulesError] if the session was recorded under rules
// that this program does not have: what its agents were sent then cannot be proven.
func (h *History) CheckRules(ctx context.Context) error {
	q, err := h.pass(ctx)
	if err != nil {
		return err
	}
	return q.rules
}

// pass is one reading of a session.
type pass struct {
	*History
	head  eventlog.Head         // the last entry that it reads
	rules error                 // a [*session.RulesError], if the session has rules that this program does not have
	look  func(*eventlog.Entry) // called with each entry before it is folded; may be nil
}

// pass begins a question about some agents, which must have been registered at
// some time.
func (h *History) pass(ctx context.Context, ids ...string) (*pass, error) {
	q := &pass{History: h, head: h.replay.Head()}
	if q.head.Seq > 0 {
		first, err := h.replay.Entry(ctx, 1)
		if err != nil {
			return nil, err
		}
		if n := session.RulesOf(&first); n < session.FirstRules || n > session.Rules {
			rules := &session.RulesError{Session: h.replay.Name(), Recorded: n, Present: session.Rules}
			if n > session.Rules {
				return nil, rules // a newer program recorded it: it cannot be folded here
			}
			q.rules = rules
		}
	}
	return q, q.checkRegistered(ctx, ids)
}

// entries calls visit with the entries from one on, up to the head of the pass.
func (q *pass) entries(ctx context.Context, from, to eventlog.Seq, visit func(*eventlog.Entry) (more bool, err error)) error {
	const progressEvery = 256
	if from > to {
		return nil
	}
	for e, err := range q.replay.Entries(ctx, from) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("sajou: ask session %q: %w", q.replay.Name(), err)
		}
		if more, err := visit(&e); err != nil || !more {
			return err
		}
		if q.progress != nil && (e.Seq%progressEvery == 0 || e.Seq == to) {
			q.progress(e.Seq, to)
		}
		if e.Seq >= to {
			return nil
		}
	}
	return ctx.Err()
}

// agentID returns the agent that a record is about, "" if it names none.
func agentID(r signal.Record) string {
	v, _ := r.Value.Get("agent_id")
	id, _ := v.Text()
	return id
}

// fold calls visit for each entry with the world of agents right after it. A nil core
// stands for the world before the first entry.
func (q *pass) fold(ctx context.Context, core *agents.Core, from, to eventlog.Seq, visit func(*agents.Core, *query.FoldedEntry) (bool, error)) error {
	if core == nil {
		var err error
		if core, err = agents.NewCore(q.world); err != nil {
			return err
		}
	}
	return q.entries(ctx, from, to, func(e *eventlog.Entry) (bool, error) {
		if q.look != nil {
			q.look(e)
		}
		if e.Seq == 1 {
			core.SetRules(session.RulesOf(e))
		}
		var record signal.Record
		if e.Kind == eventlog.KindEffect {
			// As in the projection, a record that cannot be read changes nothing.
			if r, err := session.WorldRecordOf(e); err == nil {
				record = r
			}
		}
		s := query.Fold(core, uint64(e.Seq), e.At, record)
		return visit(core, &s)
	})
}
