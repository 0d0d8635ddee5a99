package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// LeakProof is the result of a search for content that an agent was sent. It proves
// that the agent was never sent the content only if [LeakProof.Err] is nil.
type LeakProof struct {
	Agent string
	Query query.LeakQuery
	From  eventlog.Seq  // the first entry that was searched
	Head  eventlog.Head // the last one; its hash stands for the log up to it
	Stats query.SearchStats
	Leaks uint64
	// Unsearched are messages that were sent, or may have been, and could not be searched.
	Unsearched []query.Unsearched
	// Exists says that the path or entity was in the world or in the view of any agent at some
	// time. It is always true of a text.
	Exists bool
	// Rules is set if the session was recorded under other rules, so that nothing is
	// proven; nil otherwise.
	Rules *session.RulesError
}

// The errors of [LeakProof.Err].
var (
	ErrLeak      = errors.New("sajou: the agent was sent the content")
	ErrUncovered = errors.New("sajou: not all content that the agent was sent is covered")
	ErrNoThing   = errors.New("sajou: the queried path or entity never existed")
)

// Err returns nil if the agent was never sent the content. Otherwise it wraps
// [ErrNoThing], [ErrLeak], [session.ErrRules] or [ErrUncovered], in this order.
// [ErrNoThing] is first because an agent can guess an id: a refusal then repeats
// the id of an entity that never existed.
func (p *LeakProof) Err() error {
	switch {
	case !p.Exists && p.Query.Path != nil:
		return fmt.Errorf("%w: nothing was ever at %v, in the world or in the view of any agent", ErrNoThing, p.Query.Path)
	case !p.Exists:
		return fmt.Errorf("%w: no entity or agent %q was ever in the world", ErrNoThing, p.Query.Entity)
	case p.Leaks > 0:
		return fmt.Errorf("%w: %q, in %d places", ErrLeak, p.Agent, p.Leaks)
	case p.Rules != nil:
		return p.Rules
	case len(p.Unsearched) > 0:
		return fmt.Errorf("%w: %v", ErrUncovered, p.Unsearched[0])
	}
	return nil
}

// Leak searches everything that an agent was sent, by each [query.DisclosureRoute]: every delta
// that was made for it, the answers to its requests, its cancellations and prompts.
// found is called with each place and may be nil; its error ends the search. The proof
// names the gaps of its coverage, see [LeakProof.Err]. [eventlog.Log.Verify] proves
// that the log is intact.
//
// It is one pass over all entries, also with an index: the answer is a proof and counts what
// was searched. An index names candidates, so it could neither count nor show that nothing is
// missing.
func (h *History) Leak(ctx context.Context, agent string, what query.LeakQuery, found func(query.Leak) error) (LeakProof, error) {
	return h.search(ctx, agent, what, 0, func(_ *query.FoldedEntry, list []query.Leak) (bool, error) {
		for _, leak := range list {
			if found == nil {
				break
			}
			if err := found(leak); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// search calls visit for each entry up to one, or for all if to is 0, with the leaks
// that it causes.
func (h *History) search(
	ctx context.Context, agent string, what query.LeakQuery, to eventlog.Seq, visit func(*query.FoldedEntry, []query.Leak) (more bool, err error),
) (LeakProof, error) {
	q, err := h.pass(ctx, agent)
	if err != nil {
		return LeakProof{}, err
	}
	if to != 0 && to < q.head.Seq {
		last, err := h.replay.Entry(ctx, to)
		if err != nil {
			return LeakProof{}, err
		}
		q.head = last.Head()
	}
	proof := LeakProof{Agent: agent, Query: what, From: 1, Head: q.head}
	proof.Rules, _ = errors.AsType[*session.RulesError](q.rules)
	watch := query.NewLeakWatch(agent, what)
	q.look = func(e *eventlog.Entry) {
		if e.Kind != eventlog.KindBeat && e.Kind != eventlog.KindDefine {
			return
		}
		if word, v, err := session.WordOf(e); err == nil && (e.Kind == eventlog.KindBeat || word == episode.Word) {
			watch.Guidance(uint64(e.Seq), v)
		}
	}
	err = q.fold(ctx, nil, 1, q.head.Seq, func(c *agents.Core, s *query.FoldedEntry) (bool, error) {
		list := watch.Apply(c, s)
		proof.Leaks += uint64(len(list))
		return visit(s, list)
	})
	proof.Stats, proof.Unsearched, proof.Exists = watch.Stats, watch.Unsearched(), watch.Exists()
	return proof, err
}

// FirstSent is [History.Leak] up to a moment, by default the end: it returns the
// first place, in the order of delivery, by which the content had reached the agent
// by then. found is false if there is none; [LeakProof.Err] says what that proves.
func (h *History) FirstSent(ctx context.Context, agent string, what query.LeakQuery, until *replay.Moment) (first query.Leak, found bool, proof LeakProof, err error) {
	var to eventlog.Seq
	instant := time.Duration(math.MaxInt64)
	if until != nil {
		fold, err := h.replay.At(ctx, *until)
		if err != nil {
			return first, false, proof, err
		}
		if until.Seq == 0 {
			return first, false, LeakProof{Agent: agent, Query: what, Exists: true}, nil // before the first entry
		}
		to, instant = until.Seq, fold.At()
	}
	// A leak in flight may arrive after a later one that takes another route.
	var coming []query.Leak
	arrive := func(now time.Duration) {
		for _, l := range coming {
			if l.Delivery.At <= min(now, instant) && (!found || l.Delivery.At < first.Delivery.At) {
				first, found = l, true
			}
		}
		coming = slices.DeleteFunc(coming, func(l query.Leak) bool { return l.Delivery.At <= now })
	}
	proof, err = h.search(ctx, agent, what, to, func(s *query.FoldedEntry, list []query.Leak) (bool, error) {
		arrive(s.At)
		if s.Dismisses(agent) {
			coming = coming[:0] // it never arrives
		}
		coming = append(coming, list...)
		arrive(s.At)
		return !found, nil
	})
	if err == nil {
		arrive(instant)
	}
	proof.Leaks = 0
	if found {
		proof.Leaks = 1
	}
	return first, found, proof, err
}
