package sajou

import (
	"context"

	"github.com/sajou-dev/sajou-go/agents"
)

// Submitted is a submission whose outcome may take a tick to be known.
type Submitted struct {
	world *Agents
	call  *call
}

// Ask is [Agents.Submit], or [Agents.Broadcast], for who has something else to do
// meanwhile: when it returns, the submission has been decided or stands in line
// behind all that was asked before, and [Submitted.Wait] gets its outcome. Where ticks
// have the authority that is how one caller can ask for several things of one tick.
func (a *Agents) Ask(ctx context.Context, s agents.Submission) (*Submitted, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.Intent != nil {
		in := *s.Intent
		if err := a.migrate(&in); err != nil {
			return nil, err
		}
		s.Intent = &in
	}
	c := &call{sub: s, began: a.session.engine.cfg.Now(), done: make(chan struct{})}
	a.inbox.put(c)
	err := a.turn(func(t *turn) error {
		t.admit()
		if t.core.Config().Authority != agents.TimeSim {
			t.drain()
		}
		return nil
	})
	if err != nil && a.inbox.withdraw(c) {
		return nil, err
	}
	return &Submitted{a, c}, nil
}

// Done is closed when the submission has been decided, or refused a place in
// line. What it was decided is durable only when Wait says so.
func (p *Submitted) Done() <-chan struct{} { return p.call.done }

// Wait returns the outcome once it is durable, as [Agents.Submit] does. When ctx
// ends before, the submission is withdrawn.
func (p *Submitted) Wait(ctx context.Context) (agents.Outcome, error) {
	return p.world.await(ctx, p.call)
}
