package live

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	agentview "github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file keeps, while a session runs, the view that was delivered to an agent by
// now. The world has the view with all deltas in flight. The two differ only while
// a delta is in flight, so only agents whose delivered view was requested at such a
// time are followed.

// knownViews holds the followed agents, by id.
type knownViews map[string]*knownView

// knownView is the delivered view of one followed agent.
type knownView struct {
	delivered *query.DeliveredView // nil until it has been read from the log
	done      chan struct{}        // closed when it has been read, or the read failed
	entries   []query.FoldedEntry  // entries folded while the log is read
	err       error                // if not nil, an entry could not be applied
}

// errNotAtHand says that the delivered view of an agent is not in memory: the
// caller reads it from the log first, outside of the turn, since reading takes
// time.
var errNotAtHand = errors.New("sajou: the view that the agent has been sent is not at hand")

// onApplied applies an entry. The caller holds the lock of the writer's fold.
func (k knownViews) onApplied(e *eventlog.Entry, r signal.Record, out agents.Applied) {
	if len(k) == 0 {
		return
	}
	follow := func(id string, deliveries []agents.Delivery) {
		v, ok := k[id]
		if !ok {
			return
		}
		s := query.FoldedEntry{Entry: uint64(e.Seq), At: e.At, Record: signal.Record{Word: r.Word, Value: slices.Clone(r.Value)}}
		s.Applied.Deliveries, s.Applied.Err = deliveries, out.Err
		if v.delivered == nil {
			v.entries = append(v.entries, s)
		} else if v.err == nil {
			v.err = v.delivered.Apply(&s)
		}
	}
	for i := range out.Deliveries {
		follow(out.Deliveries[i].Agent, out.Deliveries[i:i+1])
	}
	if r.Word == agents.WordLeft && out.Err == nil {
		id, _ := r.Value.Member("agent_id").Text()
		delete(k, id) // deltas in flight are never delivered
	}
}

// knownView returns the view that was delivered to an agent by now, an empty one for an
// unknown agent.
func (t *turn) knownView(id string) (agentview.View, error) {
	now := max(t.now, t.core.Now())
	if t.core.Reached(id, now) {
		v, _ := t.core.View(id)
		return v, nil
	}
	k, ok := t.known[id]
	if !ok || k.delivered == nil {
		return agentview.View{}, errNotAtHand
	}
	if k.err == nil {
		k.err = k.delivered.Advance(now)
	}
	if k.err != nil {
		return agentview.View{}, k.err
	}
	v := k.delivered.View()
	if sum := v.Digest(); sum != v.ContextDigest {
		return agentview.View{}, fmt.Errorf("sajou: session %q: the view delivered to %q has the digest %s, but %s was recorded", t.w.Name(), id, sum, v.ContextDigest)
	}
	return v, nil
}

// recallView prepares turn.knownView for an agent: if a delta is in flight, or
// follow is set, it reads the delivered view from the log and follows the agent
// from then on.
func (a *Agents) recallView(ctx context.Context, id string, follow bool) error {
	for {
		var k *knownView
		var head eventlog.Seq
		done, begun := false, false
		a.w.Look(func(f *projection.Fold) {
			now, core := a.clock.Now(), a.core
			_, registered := core.Settings(id)
			k, begun = a.known[id]
			if !registered || !begun && !follow && core.Reached(id, max(now, core.Now())) || begun && k.delivered != nil {
				done = true
				return
			}
			if head = f.Head().Seq; !begun {
				k = &knownView{done: make(chan struct{})}
				a.known[id] = k
			}
		})
		switch {
		case done:
			return nil
		case !begun:
			return a.followView(ctx, id, k, head)
		}
		select {
		case <-k.done: // another call reads it from the log
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// followView reads the view that was delivered to an agent at an entry from the
// log, and applies the entries since. The log is read without a lock; meanwhile
// onApplied collects entries.
func (a *Agents) followView(ctx context.Context, id string, k *knownView, seq eventlog.Seq) error {
	delivered, err := a.deliveredAt(ctx, id, seq)
	a.w.Look(func(*projection.Fold) {
		defer close(k.done)
		if err != nil {
			if a.known[id] == k {
				delete(a.known, id)
			}
			return
		}
		var failed error
		for i := range k.entries {
			if failed == nil {
				failed = delivered.Apply(&k.entries[i])
			}
		}
		k.delivered, k.entries, k.err = delivered, nil, failed
	})
	return err
}

// deliveredAt returns the view that was delivered to an agent at the time of an entry.
func (a *Agents) deliveredAt(ctx context.Context, id string, seq eventlog.Seq) (*query.DeliveredView, error) {
	if err := a.w.WaitDurable(ctx, seq); err != nil {
		return nil, err
	}
	return a.cfg.DeliveredAt(ctx, id, seq)
}

// Known returns the view that was delivered to an agent by now: what it knows.
// [Agents.View] includes deltas in flight.
func (a *Agents) Known(ctx context.Context, id string) (agentview.View, error) {
	var view agentview.View
	for follow := false; ; follow = true {
		if err := a.recallView(ctx, id, follow); err != nil {
			return agentview.View{}, err
		}
		err := a.turn(ctx, func(t *turn) error {
			if _, ok := t.core.Settings(id); !ok {
				return unknownAgent(id)
			}
			v, err := t.knownView(id)
			view = t.outwardView(v)
			return err
		})
		if errors.Is(err, errNotAtHand) {
			continue
		}
		if err == nil {
			err = a.Settle(ctx)
		}
		return view, err
	}
}
