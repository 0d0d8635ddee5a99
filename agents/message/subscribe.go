package message

import (
	"context"
	"iter"
	"slices"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// Filter is what of all that an agent hears it wants to be told. The zero Filter
// is everything.
type Filter struct {
	// Channels are those that are wanted; empty means all.
	Channels []string
	// Kinds are those that are wanted; empty means all of the room.
	Kinds []string
	// Others leaves out what the agent said itself.
	Others bool
}

// Subscribe iterates over the messages that an agent hears, from now on: after the
// call, not only once it is iterated over. It ends with ctx, which is no error, or
// with an error: [agents.UnknownAgent] if nobody of this id is registered,
// [eventlog.ErrClosed]. While the agent is out of the world there is nothing for it; when
// it is registered again the messages go on.
func (r *Room) Subscribe(ctx context.Context, agentID string, f Filter) iter.Seq2[Message, error] {
	state, err := r.ses.State(ctx)
	return r.messages(ctx, agentID, f, func(context.Context) (*projection.Fold, error) {
		if err != nil {
			return nil, err
		}
		return state.Clone() // each iteration moves its own on
	}, 0)
}

// Resume is [Room.Subscribe] from behind an effect: with all messages whose
// GlobalSeq is greater, those that were said already first. After 0 it begins with the
// first message ever.
func (r *Room) Resume(ctx context.Context, agentID string, after uint64, f Filter) iter.Seq2[Message, error] {
	return r.messages(ctx, agentID, f, func(ctx context.Context) (*projection.Fold, error) {
		seq, err := r.behind(ctx, after)
		if err != nil {
			return nil, err
		}
		return r.ses.At(ctx, replay.Moment{Seq: seq})
	}, after)
}

// messages folds the world on from where begin says.
func (r *Room) messages(
	ctx context.Context, agentID string, f Filter, begin func(context.Context) (*projection.Fold, error), after uint64,
) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		fail := func(err error) {
			if ctx.Err() == nil {
				yield(Message{}, err)
			}
		}
		if _, ok := r.world.LatestViewSeq(agentID); !ok {
			fail(&agents.Rejection{
				Code: agents.UnknownAgent, Recovery: agents.Abort, AgentID: agentID, Reason: "nobody of this id is registered",
			})
			return
		}
		state, err := begin(ctx)
		if err != nil {
			fail(err)
			return
		}
		l := newListener(sajou.WorldOf(state), agentID) // ours: the rest of the fold stays where it is
		for entry, err := range r.ses.Subscribe(ctx, state.Head().Seq+1) {
			if err != nil {
				fail(err)
				return
			}
			m, ok := l.hear(&entry, r.kinds)
			if !ok || m.GlobalSeq <= after || !f.wants(&m, agentID) {
				continue
			}
			if err := r.world.WaitUntil(ctx, m.At); err != nil {
				fail(err)
				return
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// wants reports whether a message that the agent hears is to be told.
func (f *Filter) wants(m *Message, agentID string) bool {
	return (len(f.Channels) == 0 || slices.Contains(f.Channels, m.Channel)) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, m.Kind)) && (!f.Others || m.From != agentID)
}

// listener folds the world for one agent. What the others are shown makes no
// difference to what it hears, so they are not in its core: folding for one costs
// what happens and what it sees of that, and not how many there are.
type listener struct {
	core  *agents.Core
	agent string
}

func newListener(core *agents.Core, agent string) *listener {
	for _, id := range slices.Collect(core.Agents()) {
		if id != agent {
			core.Apply(core.Now(), agents.Record{
				Word: agents.WordLeft, Value: object{{"agent_id", text(id)}}.value(),
			})
		}
	}
	return &listener{core, agent}
}

// hear folds an entry and returns the message that it is for the agent.
func (l *listener) hear(entry *eventlog.Entry, kinds []string) (Message, bool) {
	record, err := sajou.WorldRecordOf(entry)
	if err != nil {
		return Message{}, false // of another kind; the next record says what time it is
	}
	switch record.Word {
	case agents.WordConfig, agents.WordWorld:
	case agents.WordAgent, agents.WordLeft:
		v, _ := record.Value.Get("agent_id")
		if id, _ := v.Text(); id != l.agent {
			return Message{}, false
		}
	case agents.WordEffect:
		return l.effect(entry, record, kinds)
	default: // of requests and generations, which change nothing that is seen
		return Message{}, false
	}
	l.core.Apply(entry.At, record)
	return Message{}, false
}

func (l *listener) effect(entry *eventlog.Entry, record agents.Record, kinds []string) (Message, bool) {
	effect, err := agents.ParseEffect(record.Value)
	if err != nil {
		return Message{}, false
	}
	// Whose request it was would have to be registered here: the effect alone.
	record.Value = effect.Value()
	out := l.core.Apply(entry.At, record)
	if out.Effect == nil || !slices.Contains(kinds, effect.Kind) {
		return Message{}, false
	}
	// Whom an effect concerns it is delivered to; when, that says.
	i := slices.IndexFunc(out.Deliveries, func(d agents.Delivery) bool { return d.Agent == l.agent })
	if i < 0 || !l.core.Hears(l.agent, *out.Effect) {
		return Message{}, false
	}
	m := read(effect.Payload)
	m.Kind, m.From, m.ReqID = effect.Kind, effect.SourceID, effect.ReqID
	m.GlobalSeq, m.UUID, m.SimTime = effect.GlobalSeq, effect.UUID, effect.SimTime
	m.At, m.Seq = out.Deliveries[i].At, entry.Seq
	return m, true
}

// behind returns the last entry before the first effect whose global_seq is
// greater: where a fold stands that is to go on with that effect. Effects are numbered
// in the order of entries, so it is found by halves.
func (r *Room) behind(ctx context.Context, after uint64) (eventlog.Seq, error) {
	low, high := eventlog.Seq(1), r.ses.Head().Seq+1 // what is looked for is in low…high
	for low < high {
		middle := low + (high-low)/2
		seq, global, err := r.effect(ctx, middle, high)
		switch {
		case err != nil:
			return 0, err
		case seq == high || global > after:
			high = middle
		default:
			low = seq + 1
		}
	}
	return low - 1, nil
}

// effect returns the first effect from an entry on, with its global_seq, or end if
// there is none before that.
func (r *Room) effect(ctx context.Context, from, end eventlog.Seq) (eventlog.Seq, uint64, error) {
	for entry, err := range r.ses.Entries(ctx, from) {
		if err != nil {
			return 0, 0, err
		}
		if entry.Seq >= end {
			break
		}
		record, err := sajou.WorldRecordOf(&entry)
		if err != nil || record.Word != agents.WordEffect {
			continue
		}
		v, _ := record.Value.Get("global_seq")
		if n, ok := v.Int64(); ok && n >= 0 {
			return entry.Seq, uint64(n), nil
		}
	}
	return end, 0, nil
}
