package sajou

import (
	"context"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// This file is who asks for something, and waits for what comes of it.

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
		t.drain()
		return nil
	})
	if err != nil && a.inbox.withdraw(c) {
		return nil, err // or else whoever has it answers it
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

// call is a submission and who waits for its outcome.
type call struct {
	sub     agents.Submission
	began   time.Time
	outcome agents.Outcome
	ticket  *eventlog.Ticket // what records it; nil if nothing does
	took    IntentTiming     // but for the total, and the wait for the disk
	err     error
	done    chan struct{} // closed when all of that is known
}

func (c *call) resolve(o agents.Outcome, t *eventlog.Ticket, err error) {
	c.outcome, c.ticket, c.err = o, t, err
	close(c.done)
}

// await waits for a call.
func (a *Agents) await(ctx context.Context, c *call) (agents.Outcome, error) {
	var err error
	select {
	case <-c.done:
		return a.outcome(ctx, c)
	case <-ctx.Done():
		err = ctx.Err()
	case <-a.outbox.over: // the engine closes, or nothing can be recorded any more
		err = a.outbox.ended()
	}
	_ = a.turn(func(t *turn) error {
		t.withdraw(c, err)
		return nil
	})
	select {
	case <-c.done:
		return a.outcome(ctx, c) // it may have been decided after all
	default:
		return agents.Outcome{}, err
	}
}

// outcome returns what came of a call that is done, once that is durable.
func (a *Agents) outcome(ctx context.Context, c *call) (agents.Outcome, error) {
	if c.err != nil {
		return agents.Outcome{}, c.err
	}
	if c.ticket != nil {
		if _, err := c.ticket.Wait(); err != nil {
			return agents.Outcome{}, err
		}
	}
	if c.outcome.Status == agents.Duplicate {
		// What it repeats may still be on its way to the disk.
		if err := a.Settle(ctx); err != nil {
			return agents.Outcome{}, err
		}
	}
	if in := c.sub.Intent; in != nil {
		took := c.took
		took.Total = max(a.session.engine.cfg.Now().Sub(c.began), 0)
		if c.ticket != nil {
			took.Sync = max(took.Total-took.Wait-took.Decide-took.Apply, 0)
		}
		a.report(ctx, in, c.outcome, took)
	}
	return c.outcome, c.outcome.Err()
}

// withdraw takes back a call that waits for a tick.
func (t *turn) withdraw(c *call, err error) {
	for ticket, calls := range t.waiting { // one of them has it
		i := slices.Index(calls, c)
		if i < 0 {
			continue
		}
		if t.waiting[ticket] = slices.Delete(calls, i, i+1); len(calls) == 1 {
			delete(t.waiting, ticket)
			t.intake.Withdraw(ticket)
			t.count(c.sub.Intent)
		}
		c.resolve(agents.Outcome{}, nil, err)
		return
	}
}
