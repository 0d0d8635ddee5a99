package sajou

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file asks a recorded session what its agents knew, and why they were
// interrupted or refused. Every answer comes from the log alone: a pass over the
// entries with nothing but the agents' world folded, beside which a witness of package
// agents stands. A pass keeps no entries; ctx ends it between two of them.

// NoAgentError answers a question about an agent that a session never had. It
// wraps [agents.UnknownAgent].
type NoAgentError struct {
	Session, Agent string
	Known          []string // ids that it had, in order, at most 16
	More           bool     // there are more
}

func (e *NoAgentError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("sajou: session %q never had an agent", e.Session)
	}
	more := ""
	if e.More {
		more = " and more"
	}
	return fmt.Sprintf("sajou: session %q never had an agent %q; it had %s%s", e.Session, e.Agent, strings.Join(e.Known, ", "), more)
}

func (e *NoAgentError) Unwrap() error { return agents.UnknownAgent }

// OnProgress returns r with a function that is told now and then how many of the
// entries an answer has gone over; nil for none.
func (r *Replay) OnProgress(f func(done, total eventlog.Seq)) *Replay {
	c := *r
	c.progress = f
	return &c
}

// inquiry is one pass over a session.
type inquiry struct {
	*Replay
	log  *eventlog.Session
	head eventlog.Head // the last entry that it goes over
}

// inquire begins a question about some agents, who must have been registered at
// some time.
func (r *Replay) inquire(ctx context.Context, ids ...string) (*inquiry, error) {
	log, err := r.engine.log.Session(r.name)
	if err != nil {
		return nil, err
	}
	if !log.Exists() {
		return nil, fmt.Errorf("%w: %q", eventlog.ErrNoSession, r.name)
	}
	q := &inquiry{r, log, log.Head()}
	return q, q.roll(ctx, ids)
}

// entries goes over the entries from one on, up to the inquiry's head.
func (q *inquiry) entries(ctx context.Context, from, to eventlog.Seq, visit func(*eventlog.Entry) (more bool, err error)) error {
	const often = 256
	if from > to {
		return nil
	}
	for e, err := range q.log.Entries(ctx, from) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("sajou: ask session %q: %w", q.name, err)
		}
		if more, err := visit(&e); err != nil || !more {
			return err
		}
		if q.progress != nil && (e.Seq%often == 0 || e.Seq == to) {
			q.progress(e.Seq, to)
		}
		if e.Seq >= to {
			return nil
		}
	}
	return ctx.Err()
}

// roll looks for the registrations of agents. It reads up to the last of them,
// which is near the beginning as a rule, and folds nothing.
func (q *inquiry) roll(ctx context.Context, ids []string) error {
	const most = 16
	if len(ids) == 0 {
		return nil
	}
	wanted := slices.Clone(ids)
	var known []string
	more := false
	err := q.entries(ctx, 1, q.head.Seq, func(e *eventlog.Entry) (bool, error) {
		if e.Kind != eventlog.KindEffect {
			return true, nil
		}
		r, err := WorldRecordOf(e)
		if err != nil || r.Word != agents.WordAgent {
			return true, nil //nolint:nilerr // what the world cannot read is none of it
		}
		id, _ := memberText(r.Value, "agent_id")
		wanted = slices.DeleteFunc(wanted, func(s string) bool { return s == id })
		if i, ok := slices.BinarySearch(known, id); !ok {
			known = slices.Insert(known, i, strings.Clone(id))
			if len(known) > most {
				known, more = known[:most], true
			}
		}
		return len(wanted) > 0, nil
	})
	if err != nil || len(wanted) == 0 {
		return err
	}
	return &NoAgentError{q.name, wanted[0], known, more}
}

func memberText(v signal.Value, name string) (string, bool) {
	m, _ := v.Get(name)
	return m.Text()
}

// fold goes over entries with the world of agents beside them. A nil core is
// that before the first entry.
func (q *inquiry) fold(ctx context.Context, core *agents.Core, from, to eventlog.Seq, visit func(*agents.Core, *agents.Step) (bool, error)) error {
	if core == nil {
		var err error
		if core, err = agents.NewCore(q.engine.cfg.World); err != nil {
			return err
		}
	}
	return q.entries(ctx, from, to, func(e *eventlog.Entry) (bool, error) {
		var record agents.Record
		if e.Kind == eventlog.KindEffect {
			// As the projection does it: what cannot be read changes nothing.
			if r, err := WorldRecordOf(e); err == nil {
				record = r
			}
		}
		s := core.Step(uint64(e.Seq), e.At, record)
		return visit(core, &s)
	})
}

// Knowledge is what an agent knows at a moment.
type Knowledge struct {
	Agent    string
	Head     eventlog.Head // of the entry before the moment
	At       time.Duration // session time of the moment
	Presence agents.Presence
	Left     eventlog.Seq // the entry by which it left; 0 if it has not
	// View is what it had been told by then, and what it was told last if it
	// has left; empty before it is registered.
	View agents.View
	// Pending is what was on its way, in the order in which it comes.
	Pending []agents.News
}

// Knows returns what an agent knew at a moment: the view that the deltas that
// had reached it by then led to. Errors: [eventlog.ErrNoSession], [replay.ErrNoAddress],
// [*NoAgentError].
func (r *Replay) Knows(ctx context.Context, agent string, m replay.Moment) (Knowledge, error) {
	q, err := r.inquire(ctx, agent)
	if err != nil {
		return Knowledge{}, err
	}
	travel, err := r.Open()
	if err != nil {
		return Knowledge{}, err
	}
	fold, err := travel.At(ctx, m)
	if err != nil {
		return Knowledge{}, err
	}
	k := Knowledge{Agent: agent, Head: fold.Head(), At: fold.At()}
	told, err := q.told(ctx, travel, agent, WorldOf(fold), m.Seq, k.At)
	if err != nil {
		return Knowledge{}, err
	}
	var left uint64
	k.Presence, left = told.Presence()
	k.Left, k.View, k.Pending = eventlog.Seq(left), told.View(), told.Pending()
	if sum := k.View.Digest(); sum != k.View.ContextDigest {
		return Knowledge{}, fmt.Errorf("sajou: session %q: what %q was told up to %v has the digest %s, and it was told %s",
			r.name, agent, m, sum, k.View.ContextDigest)
	}
	return k, nil
}

// told returns what an agent had been told after an entry and up to an instant,
// given the world as it is then.
//
// The world knows what was made for the agent, not what has reached it. So that
// is taken from an earlier world, of which everything has, and what was made since
// is put on top. News takes an hour at most, and mostly no time at all.
func (q *inquiry) told(ctx context.Context, travel *replay.Replay, agent string, core *agents.Core, seq eventlog.Seq, instant time.Duration) (*agents.Told, error) {
	told, all, ok := agents.ToldBy(core, agent)
	if ok && all <= instant {
		return told, nil
	}
	var start eventlog.Seq
	told, core = agents.NewTold(agent), nil
	if ok { // or else it was told last nobody knows when
		for back := eventlog.Seq(q.engine.cfg.SnapshotEvery); back > 0 && back < seq; back *= 2 {
			fold, err := travel.Fold(ctx, seq-back)
			if err != nil {
				return nil, err
			}
			earlier, all, ok := agents.ToldBy(WorldOf(fold), agent)
			if ok && all > instant {
				continue
			}
			if ok {
				told = earlier
			}
			start, core = seq-back, WorldOf(fold)
			break
		}
	}
	err := q.fold(ctx, core, start+1, seq, func(_ *agents.Core, s *agents.Step) (bool, error) {
		return true, told.Step(s)
	})
	if err != nil {
		return nil, err
	}
	return told, told.Advance(instant)
}

// Sighting is that an agent came to know something, another value of it, or
// lost it.
type Sighting struct {
	agents.Sighting
	// Coming says that it was on its way when the log ended.
	Coming bool
}

// Sightings goes over the changes of one path of an agent's view, in the order
// in which it was told. With a value only that it came to be that value counts. What had
// not reached the agent when it left is not among them. After an error the
// sequence ends.
func (r *Replay) Sightings(ctx context.Context, agent string, path agents.Pointer, is signal.Value) iter.Seq2[Sighting, error] {
	return func(yield func(Sighting, error) bool) {
		q, err := r.inquire(ctx, agent)
		if err != nil {
			yield(Sighting{}, err)
			return
		}
		watch, more := agents.NewPathWatch(agent, path, is), true
		err = q.fold(ctx, nil, 1, q.head.Seq, func(c *agents.Core, s *agents.Step) (bool, error) {
			for _, sighting := range watch.Step(c, s) {
				if more = yield(Sighting{sighting, false}, nil); !more {
					break
				}
			}
			return more, nil
		})
		if err != nil {
			yield(Sighting{}, err)
			return
		}
		for _, sighting := range watch.Coming() {
			if more = more && yield(Sighting{sighting, true}, nil); !more {
				return
			}
		}
	}
}

// FirstKnown returns how an agent first had something in its view, or a value
// there. It returns false if it never had, and what was still on its way when the log
// ended, if that was.
func (r *Replay) FirstKnown(ctx context.Context, agent string, path agents.Pointer, is signal.Value) (Sighting, bool, error) {
	for s, err := range r.Sightings(ctx, agent, path, is) {
		if err != nil {
			return Sighting{}, false, err
		}
		if s.Value != nil {
			return s, !s.Coming, nil
		}
	}
	return Sighting{}, false, nil
}

// LeakProof is what was looked at, and what was found.
type LeakProof struct {
	Agent  string
	From   eventlog.Seq  // the first entry that was looked at
	Head   eventlog.Head // the last one, and with it the whole log up to it
	Looked agents.Looked
	Leaks  uint64
}

// Leak looks whether an agent was ever told something: through every delta that
// was ever made for it, and every refusal of what it asked. found is called with
// each place, and may be nil; its error ends the search. That the log is whole,
// [eventlog.Log.Verify] says.
func (r *Replay) Leak(ctx context.Context, agent string, what agents.LeakQuery, found func(agents.Leak) error) (LeakProof, error) {
	q, err := r.inquire(ctx, agent)
	if err != nil {
		return LeakProof{}, err
	}
	proof := LeakProof{Agent: agent, From: 1, Head: q.head}
	watch := agents.NewLeakWatch(agent, what)
	err = q.fold(ctx, nil, 1, q.head.Seq, func(_ *agents.Core, s *agents.Step) (bool, error) {
		for _, leak := range watch.Step(s) {
			proof.Leaks++
			if found == nil {
				continue
			}
			if err := found(leak); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	proof.Looked = watch.Looked
	return proof, err
}

// Request returns what became of a request: of the generations for it, of which
// each may have been cancelled, and of the answer. A refusal that may change
// (stale, over quota, …) leaves no record; see [Replay.Standing].
func (r *Replay) Request(ctx context.Context, agent, reqID string) (agents.RequestReport, error) {
	q, err := r.inquire(ctx, agent)
	if err != nil {
		return agents.RequestReport{}, err
	}
	watch := agents.NewRequestWatch(agent, reqID)
	err = q.fold(ctx, nil, 1, q.head.Seq, func(c *agents.Core, s *agents.Step) (bool, error) {
		watch.Step(c, s)
		return true, nil
	})
	return watch.Report(), err
}

// Standing returns how an agent stood at a moment: what would have met a request.
func (r *Replay) Standing(ctx context.Context, agent string, m replay.Moment) (agents.Standing, error) {
	if _, err := r.inquire(ctx, agent); err != nil {
		return agents.Standing{}, err
	}
	fold, err := r.AtMoment(ctx, m)
	if err != nil {
		return agents.Standing{}, err
	}
	return WorldOf(fold).Standing(fold.At(), agent), nil
}

// PolicyTrial is a question what would have been seen under another policy.
type PolicyTrial struct {
	Agents []string     // empty for all that are ever registered
	Policy signal.Value // as [agents.CompileLens] reads it
	// From and To are the entries whose differences are listed, both included.
	// Zero means the first and the last. The policy is in force from the beginning.
	From, To eventlog.Seq
}

// TryPolicy replays a session under another observation policy, and calls found
// for whatever somebody would have seen otherwise, in order: first what differs
// already before From. The error of a policy wraps [agents.ErrPolicy].
func (r *Replay) TryPolicy(ctx context.Context, trial PolicyTrial, found func(agents.PolicyDifference) error) (agents.PolicyTally, error) {
	watch, err := agents.NewPolicyWatch(trial.Policy, r.engine.cfg.World, trial.Agents...)
	if err != nil {
		return agents.PolicyTally{}, err
	}
	q, err := r.inquire(ctx, trial.Agents...)
	if err != nil {
		return agents.PolicyTally{}, err
	}
	from, to := uint64(max(trial.From, 1)), q.head.Seq
	if trial.To != 0 {
		to = min(to, trial.To)
	}
	tell := func(list []agents.PolicyDifference) error {
		for _, d := range list {
			if d.Standing {
				d.Entry = from - 1
			}
			if err := found(d); err != nil {
				return err
			}
		}
		return nil
	}
	err = q.fold(ctx, nil, 1, to, func(c *agents.Core, s *agents.Step) (bool, error) {
		list := watch.Step(c, s, s.Entry >= from)
		if s.Entry < from {
			list = nil
		}
		if s.Entry == from-1 {
			list = watch.Standing(c)
		}
		return true, tell(list)
	})
	return watch.Tally, err
}
