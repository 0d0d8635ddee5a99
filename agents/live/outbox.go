package live

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

// This file delivers the outcomes of entries: in the order of the log, and each once its
// entry is durable.

// outbox holds the outcomes of entries that are not delivered yet. Any turn puts;
// only the dispatcher takes.
type outbox struct {
	mu        sync.Mutex
	items     []notification // guarded by mu
	last      eventlog.Seq   // of the newest item that was put; guarded by mu
	delivered eventlog.Seq   // everything up to it is delivered; guarded by mu
	err       error          // set when over is closed: why nothing more is delivered; guarded by mu

	filled chan struct{} // wakes the dispatcher; holds one, so that put never blocks
	change broadcast     // sent when delivered or err changes
	over   chan struct{} // closed when nothing more will be delivered
}

// notification is the outcome of an entry.
type notification struct {
	seq          eventlog.Seq
	passed       []agents.Cancellation // caused by the time before it
	out          agents.Applied
	joined, left string // an agent
}

func newOutbox() outbox {
	return outbox{filled: make(chan struct{}, 1), over: make(chan struct{})}
}

func (b *outbox) put(item notification) {
	if len(item.passed)+len(item.out.Cancellations)+len(item.out.Deliveries) == 0 && item.joined == "" && item.left == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.items, b.last = append(b.items, item), item.seq
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

func (b *outbox) take() []notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}

// note records that everything up to seq is delivered.
func (b *outbox) note(seq eventlog.Seq) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delivered = seq
	b.change.send()
}

// end stops the delivery, with the reason.
func (b *outbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.items, b.err = nil, err
	close(b.over)
	b.change.send()
}

// ended returns why nothing more will be delivered, nil if something may be.
func (b *outbox) ended() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// settled reports whether everything up to an item is delivered. If not, it returns
// a channel that is closed when the caller should check again.
func (b *outbox) settled(seq eventlog.Seq) (ok bool, change <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.delivered >= seq {
		return true, nil, nil
	}
	return false, b.change.wait(), b.err
}

func (b *outbox) newest() eventlog.Seq {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// onApplied puts the outcome of an entry into the outbox. The caller holds the lock
// of the writer's fold, so entries come in the order of the log.
func (a *Agents) onApplied(c session.WorldChange) {
	e, r, out := c.Entry, c.Record, c.Applied
	item := notification{seq: e.Seq, passed: c.Passed, out: out}
	if out.Err == nil {
		id, _ := r.Value.Member("agent_id").Text()
		switch r.Word {
		case agents.WordAgent:
			item.joined = strings.Clone(id)
		case agents.WordLeft:
			item.left = strings.Clone(id)
		}
	}
	a.known.onApplied(e, r, out)
	a.outbox.put(item)
	if a.clock.Leads(e.At) {
		a.moved.send()
	}
}

// dispatch delivers the outcomes of entries until the engine closes or the log can
// no longer be written.
func (a *Agents) dispatch(ctx context.Context) {
	a.stop(a.deliverAll(ctx))
}

func (a *Agents) deliverAll(ctx context.Context) error {
	w := a.w
	for over := w.Err(); ; {
		for _, item := range a.outbox.take() {
			// The digests are computed here, beside the decisions and while the disk syncs,
			// and not by the readers: a delta without one keeps the whole view in memory.
			for _, d := range item.out.Deliveries {
				d.Delta.ContextDigest()
			}
			if err := w.WaitDurable(ctx, item.seq); ctx.Err() != nil {
				return eventlog.ErrClosed
			} else if err != nil {
				return err // an outcome that is not durable is never delivered
			}
			a.deliver(item)
			a.outbox.note(item.seq)
		}
		if over != nil {
			return over
		}
		select {
		case <-ctx.Done():
			return eventlog.ErrClosed
		case <-w.Failed():
			over = cmp.Or(w.Err(), eventlog.ErrReadOnly) // outcomes that are durable are still delivered
		case <-a.outbox.filled:
		}
	}
}

// deliver delivers the outcome of a durable entry. Cancellations come before
// deliveries, so that a generation stops before its agent observes why.
func (a *Agents) deliver(item notification) {
	world, metrics := a.w.Name(), a.cfg.Metrics.Worlds
	if metrics != nil && item.joined != "" {
		metrics.AgentJoined(world, item.joined)
	}
	for _, c := range item.passed {
		a.interrupt(item.seq-1, c)
	}
	for _, c := range item.out.Cancellations {
		last := item.seq
		if c.Reason == agents.ReasonReplaced {
			last-- // the token of this entry takes its place
		}
		a.interrupt(last, c)
	}
	if e := item.out.Effect; metrics != nil && e != nil {
		metrics.WorldReached(world, e.GlobalSeq)
	}
	for _, d := range item.out.Deliveries {
		a.subscribers.deliver(world, delivery{outwardDelivery(d), item.seq}, a.cfg.Metrics.Observations)
	}
	if item.left != "" {
		a.subscribers.gone(item.left, item.seq)
		if metrics != nil {
			metrics.AgentLeft(world, item.left)
		}
	}
}

// settleStill is [Agents.Settle] with a context that outlasts ctx a little.
func (a *Agents) settleStill(ctx context.Context) error {
	still, over := a.outlast(ctx)
	defer over()
	return a.Settle(still)
}

// Settle waits until everything that was decided so far is durable and delivered to
// the agents' readers and generations.
func (a *Agents) Settle(ctx context.Context) error {
	var head, last eventlog.Seq
	a.w.Look(func(f *projection.Fold) { head, last = f.Head().Seq, a.outbox.newest() })
	if err := a.w.WaitDurable(ctx, head); err != nil {
		return err
	}
	for {
		ok, change, err := a.outbox.settled(last)
		if ok || err != nil {
			return err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
