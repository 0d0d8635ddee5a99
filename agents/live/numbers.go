package live

import (
	"context"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
)

// The methods of this file translate between global_seqs, which the log and the core
// use, and the agent's own numbers, which an agent gets and submits: see
// [agents.Core.Number].

// inward returns an intent with its context_seq in the core's numbers.
func (t *turn) inward(in agents.Intent) agents.Intent {
	in.ContextSeq = t.core.ContextSeq(t.now, in.AgentID, in.ContextSeq)
	return in
}

// inwardAll applies inward to the submissions that are intents.
func (t *turn) inwardAll(subs []agents.Submission) []agents.Submission {
	list := make([]agents.Submission, len(subs))
	for i, s := range subs {
		if s.Intent != nil {
			in := t.inward(*s.Intent)
			s.Intent = &in
		}
		list[i] = s
	}
	return list
}

// outward returns an outcome in the numbers of the agent that submitted the intent.
// The outcome of a draft, which has no intent, stays as it is.
func (t *turn) outward(asked *agents.Intent, o agents.Outcome) agents.Outcome {
	if asked == nil {
		return o
	}
	o.GlobalSeq = o.Number
	if o.Effect != nil {
		e := *o.Effect
		e.GlobalSeq = o.GlobalSeq
		o.Effect = &e
	}
	if r := o.Rejection; r != nil && r.Code == agents.ErrStaleContext {
		stale := *r
		stale.ExpectedSeq = t.core.Number(asked.AgentID, r.ExpectedSeq)
		stale.ActualSeq = asked.ContextSeq
		o.Rejection = &stale
	}
	return o
}

// outwardView returns a view in the agent's numbers.
func (t *turn) outwardView(v view.View) view.View {
	v.ViewSeq = t.core.Number(v.AgentID, v.ViewSeq)
	return v
}

// outwardDelivery returns a delivery in the agent's numbers.
func outwardDelivery(d agents.Delivery) agents.Delivery {
	d.Delta.ViewSeq = d.Number - 1
	return d
}

// answered returns the final outcome of a request in its agent's numbers.
func (t *turn) answered(agent, reqID string) (agents.Outcome, bool) {
	o, ok := t.core.Answered(agent, reqID)
	return t.outward(&agents.Intent{AgentID: agent, ReqID: reqID}, o), ok
}

// GlobalSeq returns the global_seq of the effect of an accepted request, for the
// program's own records: it is the number in the log. An agent must not get it,
// because the gaps between two of them count effects that the agent may not see. It
// returns false if the request has no effect.
func (a *Agents) GlobalSeq(ctx context.Context, agentID, reqID string) (seq uint64, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	err = a.turn(ctx, func(t *turn) error {
		t.answers.err = nil
		o, answered := t.core.Answered(agentID, reqID)
		seq, ok = o.GlobalSeq, answered && o.OK()
		return t.answers.err
	})
	return seq, ok && err == nil, err
}
