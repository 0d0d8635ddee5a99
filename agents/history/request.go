package history

import (
	"context"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Request returns the history of a request: the generations for it, each of which may
// have been cancelled, and the answer. A refusal that is not final (stale, over
// quota, …) leaves no record; see [History.AdmissionAt]. A [*session.RulesError] comes
// together with the answer.
func (h *History) Request(ctx context.Context, agent, reqID string) (query.RequestReport, error) {
	q, err := h.pass(ctx, agent)
	if err != nil {
		return query.RequestReport{}, err
	}
	watch := query.NewRequestWatch(agent, reqID)
	visit := func(c *agents.Core, s *query.FoldedEntry) (bool, error) {
		watch.Apply(c, s)
		return true, nil
	}
	at, ok, err := q.requestCandidates(ctx, agent, reqID)
	switch {
	case err != nil:
		return query.RequestReport{}, err
	case ok:
		err = q.foldAt(ctx, at, watch.Resume, visit)
	default:
		err = q.fold(ctx, nil, 1, q.head.Seq, visit)
	}
	if err == nil {
		err = q.rules
	}
	return watch.Report(), err
}

// AdmissionAt returns how a request of an agent would have been admitted at a moment.
func (h *History) AdmissionAt(ctx context.Context, agent string, m replay.Moment) (agents.AdmissionStatus, error) {
	q, err := h.pass(ctx, agent)
	if err != nil {
		return agents.AdmissionStatus{}, err
	}
	fold, err := h.replay.At(ctx, m)
	if err != nil {
		return agents.AdmissionStatus{}, err
	}
	return session.WorldOf(fold).AdmissionStatus(fold.At(), agent), q.rules
}

// PolicyTrial asks what agents would have seen under another observation policy.
type PolicyTrial struct {
	Agents []string     // empty for all that were ever registered
	Policy signal.Value // as [view.CompilePolicy] reads it
	// From and To are the entries whose differences are listed, both included.
	// Zero means the first and the last. The policy is in force from the beginning.
	From, To eventlog.Seq
}

// TryPolicy replays a session under another observation policy and calls found for
// each difference in what an agent would have seen, in order; those that already
// exist before From come first. The error of a policy wraps [view.ErrPolicy].
func (h *History) TryPolicy(ctx context.Context, trial PolicyTrial, found func(query.PolicyDifference) error) (query.PolicyTally, error) {
	watch, err := query.NewPolicyWatch(trial.Policy, h.world, trial.Agents...)
	if err != nil {
		return query.PolicyTally{}, err
	}
	q, err := h.pass(ctx, trial.Agents...)
	if err != nil {
		return query.PolicyTally{}, err
	}
	from, to := uint64(max(trial.From, 1)), q.head.Seq
	if trial.To != 0 {
		to = min(to, trial.To)
	}
	tell := func(list []query.PolicyDifference) error {
		for _, d := range list {
			if d.Standing {
				d.Entry = from - 1
			}
			if err := found(d); err != nil {
				return err
			}
		}
		return nil
	}
	err = q.fold(ctx, nil, 1, to, func(c *agents.Core, s *query.FoldedEntry) (bool, error) {
		list := watch.Apply(c, s, s.Entry >= from)
		if s.Entry < from {
			list = nil
		}
		if s.Entry == from-1 {
			list = watch.Standing(c)
		}
		return true, tell(list)
	})
	return watch.Tally, err
}
