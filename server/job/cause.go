package job

import (
	"context"
	"errors"

	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/signal"
)

// maxHeld bounds the entries of a minimize, which holds them in memory.
const maxHeld = 200_000

// minimize finds signals of which none can be left out, so that a value stays the same or a
// test true.
func (j *Jobs) minimize(ctx context.Context, travel *replay.Replay, o *order) (task, error) {
	m, err := resolve(ctx, travel, o.At, "end")
	if err != nil {
		return nil, err
	}
	if m.Seq > maxHeld {
		return nil, problem.New(problem.OverBudget, "a minimize takes moments up to entry 200000; ask for blame, which has no such bound")
	}
	text := o.Path
	if text == "" {
		text = "stage.entities"
	}
	path, err := provenance.ParsePath(text)
	if err != nil {
		return nil, err
	}
	holds, err := o.criterion(ctx, travel, m)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, b *job) error {
		if holds == nil {
			if holds, err = provenance.Same(ctx, travel, path, m); err != nil {
				return err
			}
		}
		// How many runs there will be is not known before the end.
		runs := uint64(0)
		counted := func(ctx context.Context, f *projection.Fold) (bool, error) {
			runs++
			b.progress(runs, 0)
			return holds(ctx, f)
		}
		least, err := answer.Minimize(ctx, travel, m, path, counted)
		if errors.Is(err, provenance.ErrUnmet) {
			return &problem.Details{Code: problem.Invalid, Detail: err.Error() + "; name a moment at which it holds", Err: err}
		}
		if err != nil {
			return evalError(err)
		}
		b.progress(runs, runs)
		return b.add(answer.ViewMinimal(&least))
	}, nil
}

// criterion returns the test that a minimize keeps true, or nil for the value itself.
func (o *order) criterion(ctx context.Context, travel *replay.Replay, m replay.Moment) (provenance.Criterion, error) {
	switch {
	case o.Image != nil:
		t, err := o.Image.test()
		if err != nil {
			return nil, err
		}
		return func(_ context.Context, f *projection.Fold) (bool, error) {
			measured, err := answer.Measure(t, f)
			return err == nil && t.Wrong(measured), err
		}, nil
	case o.Where != "":
		p, err := answer.Compile(o.Where)
		if err != nil {
			return nil, err
		}
		holds, err := answer.Holding(ctx, travel, m, p)
		if errors.Is(err, answer.ErrReadsPrev) {
			return nil, invalid("/where", err)
		}
		return holds, err
	}
	return nil, nil
}

// policyDiff compares the views of agents with those of another policy.
func (j *Jobs) policyDiff(ctx context.Context, name string, o *order) (task, error) {
	if o.Where != "" || o.Image != nil || o.Definitions != nil {
		return nil, badRequest("a policy-diff takes no test and no definitions")
	}
	if o.Policy == nil {
		return nil, badRequest("a policy-diff needs a policy")
	}
	trial := history.PolicyTrial{Agents: o.Agents}
	var err error
	if trial.Policy, err = signal.ParseValue(o.Policy); err != nil {
		return nil, invalid("/policy", err)
	}
	travel, err := j.engine.Replay(name)
	if err != nil {
		return nil, err
	}
	if trial.From, trial.To, err = answer.EntryRange(ctx, travel, o.Range); err != nil {
		return nil, err
	}
	h, err := j.engine.AgentHistory(name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, b *job) error {
		var tally query.PolicyTally
		if trial.To > 0 { // before the first entry no agent has a view
			asked := h.OnProgress(func(done, total eventlog.Seq) { b.progress(uint64(done), uint64(total)) })
			var err error
			tally, err = asked.TryPolicy(ctx, trial, func(d query.PolicyDifference) error {
				if o.Count {
					return nil
				}
				return b.add(answer.ViewDifference(d))
			})
			if err != nil {
				return err
			}
		}
		return b.addLast(answer.SummaryView{Summary: answer.ViewTally(tally)})
	}, nil
}
