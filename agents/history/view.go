package history

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// Knowledge is what an agent knows at a moment.
type Knowledge struct {
	Agent    string
	Head     eventlog.Head // of the entry before the moment
	At       time.Duration // session time of the moment
	Presence query.Presence
	Left     eventlog.Seq // the entry by which it left; 0 if it has not left
	// View is the view that had been delivered by then: the last one if the agent has
	// left, an empty one before it is registered.
	View view.View
	// Pending are the deltas in flight, in the order of their arrival.
	Pending []query.TracedDelivery
}

// ViewAt returns the view of an agent at a moment: the result of the deltas that had
// reached it by then. Errors: [replay.ErrNoAddress], [*NoAgentError]; and a
// [*session.RulesError] together with the answer by the present rules, where the
// session was recorded under other rules.
func (h *History) ViewAt(ctx context.Context, agent string, m replay.Moment) (Knowledge, error) {
	q, err := h.pass(ctx, agent)
	if err != nil {
		return Knowledge{}, err
	}
	fold, err := h.replay.At(ctx, m)
	if err != nil {
		return Knowledge{}, err
	}
	k := Knowledge{Agent: agent, Head: fold.Head(), At: fold.At()}
	delivered, err := q.delivered(ctx, agent, session.WorldOf(fold), m.Seq, k.At)
	if err != nil {
		return Knowledge{}, err
	}
	var left uint64
	k.Presence, left = delivered.Presence()
	k.Left, k.View, k.Pending = eventlog.Seq(left), delivered.View(), delivered.Pending()
	if sum := k.View.Digest(); sum != k.View.ContextDigest {
		return Knowledge{}, fmt.Errorf("sajou: session %q: the view delivered to %q up to %v has the digest %s, but %s was recorded",
			h.replay.Name(), agent, m, sum, k.View.ContextDigest)
	}
	return k, q.rules
}

// DeliveredAt returns what had been delivered to an agent at the time of an entry, for
// a caller that applies later entries to it.
func (h *History) DeliveredAt(ctx context.Context, agent string, seq eventlog.Seq) (*query.DeliveredView, error) {
	fold, err := h.replay.At(ctx, replay.Moment{Seq: seq})
	if err != nil {
		return nil, err
	}
	q := &pass{History: h}
	return q.delivered(ctx, agent, session.WorldOf(fold), seq, fold.At())
}

// delivered returns what had been delivered to an agent after an entry and up to an
// instant, given the world at that entry.
//
// The world holds the deltas that were made for the agent, whether they have arrived or
// not. So the delivered view is taken from an earlier world whose deltas have all
// arrived, and the deltas made since are applied on top. A delta is in flight for an
// hour at most and usually for no time at all, so one step back usually suffices.
func (q *pass) delivered(ctx context.Context, agent string, core *agents.Core, seq eventlog.Seq, instant time.Duration) (*query.DeliveredView, error) {
	delivered, all, ok := query.DeliveredBy(core, agent)
	if ok && all <= instant {
		return delivered, nil
	}
	var start eventlog.Seq
	delivered, core = query.NewDeliveredView(agent), nil
	if ok { // otherwise the agent is not registered, and the time of its last delta is unknown
		for back := eventlog.Seq(snapshot.DefaultInterval); back < seq; back *= 2 {
			fold, err := q.replay.Fold(ctx, seq-back)
			if err != nil {
				return nil, err
			}
			earlier, all, ok := query.DeliveredBy(session.WorldOf(fold), agent)
			if ok && all > instant {
				continue
			}
			if ok {
				delivered = earlier
			}
			start, core = seq-back, session.WorldOf(fold)
			break
		}
	}
	err := q.fold(ctx, core, start+1, seq, func(_ *agents.Core, s *query.FoldedEntry) (bool, error) {
		return true, delivered.Apply(s)
	})
	if err != nil {
		return nil, err
	}
	return delivered, delivered.Advance(instant)
}

// ValueChange is one change of a value in an agent's view: the value appeared, became
// another or disappeared.
type ValueChange struct {
	query.PathChange
	// Coming says that the change was still in flight when the log ended.
	Coming bool
}

// ValueChanges iterates over the changes of one path of an agent's view, in the order
// of their delivery. If is is not nil, only changes to that value count. Changes
// that had not reached the agent when it left are not among them. After an error the
// sequence ends; a [*session.RulesError] comes after all changes.
func (h *History) ValueChanges(ctx context.Context, agent string, path jsondoc.Pointer, is signal.Value) iter.Seq2[ValueChange, error] {
	return func(yield func(ValueChange, error) bool) {
		q, err := h.pass(ctx, agent)
		if err != nil {
			yield(ValueChange{}, err)
			return
		}
		watch, more := query.NewPathWatch(agent, path, is), true
		visit := func(c *agents.Core, s *query.FoldedEntry) (bool, error) {
			for _, change := range watch.Apply(c, s) {
				if more = yield(ValueChange{change, false}, nil); !more {
					break
				}
			}
			return more, nil
		}
		if at, ok, wrong := q.candidates(ctx, agent, path); wrong != nil {
			err = wrong
		} else if ok {
			err = q.foldAt(ctx, at, nil, visit)
		} else {
			err = q.fold(ctx, nil, 1, q.head.Seq, visit)
		}
		if err != nil {
			yield(ValueChange{}, err)
			return
		}
		for _, change := range watch.Coming() {
			if more = more && yield(ValueChange{change, true}, nil); !more {
				return
			}
		}
		if more && q.rules != nil {
			yield(ValueChange{}, q.rules)
		}
	}
}

// FirstKnown returns the change by which an agent first had a path in its view, or
// first had the value is there. It returns false if no such change reached the agent;
// the change is then one that was in flight when the log ended, if there was one. A
// [*session.RulesError] comes together with the answer.
func (h *History) FirstKnown(ctx context.Context, agent string, path jsondoc.Pointer, is signal.Value) (ValueChange, bool, error) {
	var first ValueChange
	for s, err := range h.ValueChanges(ctx, agent, path, is) {
		if err != nil {
			return first, first.Value != nil && !first.Coming, err
		}
		if s.Value != nil && first.Value == nil {
			if first = s; !s.Coming {
				break
			}
		}
	}
	if first.Value == nil {
		return first, false, nil
	}
	return first, !first.Coming, h.CheckRules(ctx)
}
