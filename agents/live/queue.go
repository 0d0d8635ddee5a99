package live

import (
	"math"
	"slices"
	"sync"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// This file holds the queue of submissions and the order in which they are decided.

// submissionQueue holds submissions until a turn takes them. Many goroutines put;
// the one that gets the next turn takes and decides all.
type submissionQueue struct {
	mu    sync.Mutex
	calls []*pendingSubmission // guarded by mu
}

func (b *submissionQueue) put(c *pendingSubmission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
}

func (b *submissionQueue) take() []*pendingSubmission {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

// withdraw removes a submission that no turn has taken.
func (b *submissionQueue) withdraw(c *pendingSubmission) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := len(b.calls)
	b.calls = slices.DeleteFunc(b.calls, func(other *pendingSubmission) bool { return other == c })
	return len(b.calls) < held
}

// waiters are the calls that wait for one outcome: the first submitted it, the
// others submitted the same request again.
type waiters []*pendingSubmission

// admit moves the submissions of the queue to the intake, or resolves them at once.
func (t *turn) admit() {
	began := t.cfg.Now()
	for _, c := range t.inbox.take() {
		c.took.Wait = max(began.Sub(c.began), 0)
		t.answers.err = nil
		t.answers.use(c.lookup)
		o := t.intake.Offer(t.core, t.now, t.inwardAll([]agents.Submission{c.sub})[0])
		if o.Shed != nil {
			t.answer(o.Shed.Ticket, agents.Outcome{Rejection: o.Refusal}, nil, nil)
		}
		if o.Ticket == 0 {
			c.resolve(t, o.Outcome, nil, t.answers.err)
			continue
		}
		t.waiting[o.Ticket] = append(t.waiting[o.Ticket], c)
		t.count(c.sub.Intent)
	}
}

// count reports the number of an agent's waiting intents, in sessions in which they
// wait for ticks.
func (t *turn) count(in *agents.Intent) {
	if m := t.cfg.Metrics.Intents; m != nil && in != nil && t.core.Config().Authority == agents.TimeSim {
		m.IntentsWaiting(t.w.Name(), in.AgentID, t.intake.Waiting(in.AgentID))
	}
}

// drain decides all submissions in the intake, each as a quantum of its own: by
// priority, and in turns among agents. If ticks have the authority, it does
// nothing: a tick decides.
func (t *turn) drain() {
	if t.core.Config().Authority == agents.TimeSim {
		return
	}
	for t.intake.Len() > 0 {
		// The intake hands out portions in which agents take turns.
		taken := t.intake.Take(t.core, t.core.Config().MaxQuantum, math.Inf(1))
		for i, next := range taken {
			t.answers.err = nil // a failed lookup concerns one submission only
			began := t.cfg.Now()
			d := t.core.Decide(t.now, agents.Quantum{}, []agents.Submission{next.Submission})
			decided := t.cfg.Now()
			last := i == len(taken)-1 && t.intake.Len() == 0
			ticket, err := t.keep(d.Records, last)
			for _, c := range t.waiting[next.Ticket] {
				// The wait includes the decisions before it in this turn.
				c.took.Wait = max(began.Sub(c.began), 0)
				c.took.Decide = max(decided.Sub(began), 0)
				c.took.Apply = max(t.cfg.Now().Sub(decided), 0)
			}
			t.answer(next.Ticket, d.Outcomes[0], ticket, err)
		}
	}
	t.answers.err = nil
}

// answer resolves all calls that wait for an outcome: the first one caused it, to
// the others it is a duplicate.
func (t *turn) answer(ticket uint64, o agents.Outcome, kept *eventlog.Ticket, err error) {
	calls := t.waiting[ticket]
	delete(t.waiting, ticket)
	for _, c := range calls {
		c.resolve(t, o, kept, err)
		if o.Status == agents.Accepted || o.Rejection != nil && o.Rejection.Code.Final() {
			o.Status, o.Effect = agents.Duplicate, nil
		}
	}
}
