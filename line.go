package sajou

import (
	"math"
	"slices"
	"sync"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// This file is how what was asked stands in line, and how its turn comes.

// inbox holds calls until somebody's turn comes.
type inbox struct {
	mu    sync.Mutex
	calls []*call // guarded by mu
}

func (b *inbox) put(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
}

func (b *inbox) take() []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

// withdraw takes out a call that nobody has looked at.
func (b *inbox) withdraw(c *call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := len(b.calls)
	b.calls = slices.DeleteFunc(b.calls, func(other *call) bool { return other == c })
	return len(b.calls) < held
}

// asked are the calls that wait for one answer: the first asked, the others
// asked the same.
type asked []*call

// admit puts what has come in line, or answers it at once.
func (t *turn) admit() {
	began := t.session.engine.cfg.Now()
	for _, c := range t.inbox.take() {
		c.took.Wait = max(began.Sub(c.began), 0)
		t.answers.err = nil
		o := t.intake.Offer(t.core, t.now, c.sub)
		if o.Shed != nil {
			t.answer(o.Shed.Ticket, agents.Outcome{Rejection: o.Refusal}, nil, nil)
		}
		if o.Ticket == 0 {
			c.resolve(o.Outcome, nil, t.answers.err)
			continue
		}
		t.waiting[o.Ticket] = append(t.waiting[o.Ticket], c)
		t.count(c.sub.Intent)
	}
}

// count tells how many of an agent's intents wait, where they wait for ticks.
func (t *turn) count(in *agents.Intent) {
	if in != nil && t.core.Config().Authority == agents.TimeSim {
		t.session.engine.cfg.Metrics.IntentsWaiting(t.session.Name(), in.AgentID, t.intake.Waiting(in.AgentID))
	}
}

// drain decides all that waits, each thing as a quantum of its own: the urgent
// first, and agents in turns. Where ticks have the authority it waits for them.
func (t *turn) drain() {
	if t.core.Config().Authority == agents.TimeSim {
		return
	}
	for t.intake.Len() > 0 {
		// Who waits is decided in portions, so that agents take turns.
		for _, next := range t.intake.Take(t.core, t.core.Config().MaxQuantum, math.Inf(1)) {
			t.answers.err = nil // what was not found out for one is no fault of the next
			began := t.session.engine.cfg.Now()
			d := t.core.Decide(t.now, agents.Quantum{}, []agents.Submission{next.Submission})
			decided := t.session.engine.cfg.Now()
			ticket, err := t.keep(d.Records)
			for _, c := range t.waiting[next.Ticket] {
				// What was decided before it in this turn it waited for, too.
				c.took.Wait = max(began.Sub(c.began), 0)
				c.took.Decide = max(decided.Sub(began), 0)
				c.took.Apply = max(t.session.engine.cfg.Now().Sub(decided), 0)
			}
			t.answer(next.Ticket, d.Outcomes[0], ticket, err)
		}
	}
	t.answers.err = nil
}

// answer tells an outcome to all who asked for it: the first caused it, to the
// others it is a duplicate.
func (t *turn) answer(ticket uint64, o agents.Outcome, kept *eventlog.Ticket, err error) {
	calls := t.waiting[ticket]
	delete(t.waiting, ticket)
	for _, c := range calls {
		c.resolve(o, kept, err)
		if o.Status == agents.Accepted || o.Rejection != nil && o.Rejection.Code.Final() {
			o.Status, o.Effect = agents.Duplicate, nil
		}
	}
}
