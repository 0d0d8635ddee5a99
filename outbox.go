package sajou

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// This file is how what came of entries is told: in their order, and each once it
// is durable.

// outbox holds what is not told yet.
type outbox struct {
	mu    sync.Mutex
	items []told       // guarded by mu
	last  eventlog.Seq // of the newest item ever put; guarded by mu
	told  eventlog.Seq // everything up to it has been told; guarded by mu
	err   error        // why nothing more will be, once over is closed; guarded by mu

	filled chan struct{} // holds one
	change bell          // more has been told, or nothing more will be
	over   chan struct{} // closed when nothing more will be told
}

// told is what came of an entry.
type told struct {
	seq          eventlog.Seq
	passed       []agents.Cancellation // by the time before it
	out          agents.Applied
	joined, left string // an agent
}

func newOutbox() outbox {
	return outbox{filled: make(chan struct{}, 1), over: make(chan struct{})}
}

func (b *outbox) put(item told) {
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

func (b *outbox) take() []told {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}

// note says how far it has been told.
func (b *outbox) note(seq eventlog.Seq) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = seq
	b.change.ring()
}

// end says why nothing more will be told.
func (b *outbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.items, b.err = nil, err
	close(b.over)
	b.change.ring()
}

// ended returns why nothing more will be told, nil if something may.
func (b *outbox) ended() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// settled reports whether everything up to an item has been told; if not,
// change says when to ask again.
func (b *outbox) settled(seq eventlog.Seq) (ok bool, change <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told >= seq {
		return true, nil, nil
	}
	return false, b.change.next(), b.err
}

func (b *outbox) newest() eventlog.Seq {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// hear takes in what came of an entry, see worldState. It is called with the
// session's lock held.
func (a *Agents) hear(e *eventlog.Entry, r agents.Record, passed []agents.Cancellation, out agents.Applied) {
	item := told{seq: e.Seq, passed: passed, out: out}
	if out.Err == nil {
		id, _ := memberText(r.Value, "agent_id")
		switch r.Word {
		case agents.WordAgent:
			item.joined = strings.Clone(id)
		case agents.WordLeft:
			item.left = strings.Clone(id)
		}
	}
	a.outbox.put(item)
	if a.clock.leads(e.At) {
		a.moved.ring()
	}
}

// dispatch tells what came of entries, until the engine closes or nothing can be
// recorded any more.
func (a *Agents) dispatch(ctx context.Context) {
	a.stop(a.tellAll(ctx))
}

func (a *Agents) tellAll(ctx context.Context) error {
	log := a.session.engine.log
	for over := log.Err(); ; {
		for _, item := range a.outbox.take() {
			if err := a.session.log.WaitDurable(ctx, item.seq); ctx.Err() != nil {
				return eventlog.ErrClosed
			} else if err != nil {
				return err // what is not durable is never told
			}
			a.tell(item)
			a.outbox.note(item.seq)
		}
		if over != nil {
			return over
		}
		select {
		case <-ctx.Done():
			return eventlog.ErrClosed
		case <-log.Failed():
			over = cmp.Or(log.Err(), eventlog.ErrReadOnly) // what is durable is told all the same
		case <-a.outbox.filled:
		}
	}
}

// tell tells what came of an entry that is durable.
func (a *Agents) tell(item told) {
	world, metrics := a.session.Name(), a.session.engine.cfg.Metrics
	if item.joined != "" {
		metrics.Joined(world, item.joined)
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
	if e := item.out.Effect; e != nil {
		metrics.Reached(world, e.GlobalSeq)
	}
	for _, d := range item.out.Deliveries {
		a.audience.tell(world, news{d, item.seq, item.joined == d.Agent}, metrics)
	}
	if item.left != "" {
		a.audience.gone(item.left, item.seq)
		metrics.Left(world, item.left)
	}
}

// Settle waits until everything that has been decided is durable, and told to
// those whom it concerns.
func (a *Agents) Settle(ctx context.Context) error {
	s := a.session
	s.catchUp()
	s.mu.Lock()
	head, last := s.fold.Head().Seq, a.outbox.newest()
	s.mu.Unlock()
	if err := s.log.WaitDurable(ctx, head); err != nil {
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
