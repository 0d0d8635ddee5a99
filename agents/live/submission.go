package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Submitted is a submission whose outcome may be known only after a tick.
type Submitted struct {
	world *Agents
	call  *pendingSubmission
}

// SubmitAsync is [Agents.Submit], or [Agents.Broadcast], without the wait: when it
// returns, the submission has been decided or is queued behind all earlier ones,
// and [Submitted.Wait] returns its outcome. If ticks have the authority, this lets
// one caller submit several requests for one tick.
func (a *Agents) SubmitAsync(ctx context.Context, s agents.Submission) (*Submitted, error) {
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
	c := &pendingSubmission{sub: s, began: a.cfg.Now(), done: make(chan struct{})}
	c.lookup = a.lookUp(s.Intent)
	a.inbox.put(c)
	err := a.turn(ctx, func(t *turn) error {
		t.admit()
		t.drain()
		return nil
	})
	if err != nil && a.inbox.withdraw(c) {
		return nil, err // otherwise the turn that took it resolves it
	}
	return &Submitted{a, c}, nil
}

// Done is closed when the submission has been decided or refused. Only Wait makes
// sure that the decision is durable.
func (p *Submitted) Done() <-chan struct{} { return p.call.done }

// Wait returns the outcome once it is durable, as [Agents.Submit] does. If ctx ends
// before, the submission is withdrawn.
func (p *Submitted) Wait(ctx context.Context) (agents.Outcome, error) {
	return p.world.await(ctx, p.call)
}

// pendingSubmission is a submission and its outcome. The turn that resolves it
// writes the outcome and then closes done; the caller reads it after that.
type pendingSubmission struct {
	sub     agents.Submission
	began   time.Time
	lookup  lookup
	outcome agents.Outcome   // in the core's numbers
	outward agents.Outcome   // in the agent's numbers
	ticket  *eventlog.Ticket // of its records; nil if there are none
	took    IntentTiming     // without Total and Sync
	err     error
	done    chan struct{} // closed when the fields from outcome on are set
}

func (c *pendingSubmission) resolve(t *turn, o agents.Outcome, ticket *eventlog.Ticket, err error) {
	c.outcome, c.outward, c.ticket, c.err = o, t.outward(c.sub.Intent, o), ticket, err
	close(c.done)
}

// await waits for the outcome of a submission.
func (a *Agents) await(ctx context.Context, c *pendingSubmission) (agents.Outcome, error) {
	var err error
	select {
	case <-c.done:
		return a.outcome(ctx, c)
	case <-ctx.Done():
		err = ctx.Err()
	case <-a.outbox.over: // the engine closes, or the log can no longer be written
		err = a.outbox.ended()
	}
	still, over := a.outlast(ctx)
	defer over()
	_ = a.turn(still, func(t *turn) error {
		t.withdraw(c, err)
		return nil
	})
	select {
	case <-c.done:
		return a.outcome(ctx, c) // it was decided meanwhile
	default:
		return agents.Outcome{}, err
	}
}

// outcome returns the outcome of a resolved submission once it is durable.
func (a *Agents) outcome(ctx context.Context, c *pendingSubmission) (agents.Outcome, error) {
	if c.err != nil {
		return agents.Outcome{}, c.err
	}
	if c.ticket != nil {
		if _, err := c.ticket.Wait(ctx); err != nil {
			return agents.Outcome{}, err
		}
	}
	if c.outcome.Status == agents.Duplicate {
		// The outcome that it repeats may not be durable yet.
		if err := a.Settle(ctx); err != nil {
			return agents.Outcome{}, err
		}
	}
	if in := c.sub.Intent; in != nil {
		took := c.took
		took.Total = max(a.cfg.Now().Sub(c.began), 0)
		if c.ticket != nil {
			took.Sync = max(took.Total-took.Wait-took.Decide-took.Apply, 0)
		}
		a.report(ctx, in, c.outcome, took)
	}
	return c.outward, c.outward.Err()
}

// withdraw removes a submission that waits for a tick.
func (t *turn) withdraw(c *pendingSubmission, err error) {
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
		c.resolve(t, agents.Outcome{}, nil, err)
		return
	}
}

// farewell bounds the time to record the end of a context.
const farewell = time.Second

// outlast returns a context that ends soon after ctx: for records and deliveries
// that are necessary because ctx has ended. It bounds the wait for a disk that does
// not answer. The caller calls over when it is done.
func (a *Agents) outlast(ctx context.Context) (still context.Context, over func()) {
	still, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if ctx.Done() == nil {
		return still, cancel
	}
	var mu sync.Mutex
	ended := false // guarded by mu
	var timer func() bool
	unhook := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			timer = a.cfg.AfterFunc(farewell, cancel)
		}
	})
	return still, func() {
		unhook()
		mu.Lock()
		defer mu.Unlock()
		if ended = true; timer != nil {
			timer()
		}
		cancel()
	}
}
