package message

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Filter selects messages among those that an agent receives. The zero Filter
// selects all.
type Filter struct {
	// Channels selects messages by channel; empty means all.
	Channels []string
	// Kinds selects messages by kind; empty means all of the room.
	Kinds []string
	// Others omits the agent's own messages.
	Others bool
}

// Subscribe iterates over the messages that an agent receives after the call, also
// those before the iteration begins. It ends without an error when ctx does, or
// with an error: [agents.ErrUnknownAgent] if no agent of this id is registered,
// [eventlog.ErrClosed]. While the agent is not registered it gets no messages; when
// it is registered again they continue.
func (r *Room) Subscribe(ctx context.Context, agentID string, f Filter) iter.Seq2[Message, error] {
	state, err := r.ses.State(ctx)
	return r.messages(ctx, agentID, f, func(context.Context) (*projection.Fold, error) {
		if err != nil {
			return nil, err
		}
		return state.Clone() // each iteration moves its own on
	}, 0)
}

// Resume is [Room.Subscribe] from after a message on: it yields all messages with a
// greater GlobalSeq, earlier ones first. After 0 it begins with the first message.
func (r *Room) Resume(ctx context.Context, agentID string, after uint64, f Filter) iter.Seq2[Message, error] {
	return r.messages(ctx, agentID, f, func(ctx context.Context) (*projection.Fold, error) {
		global := uint64(0)
		if after > 0 {
			state, err := r.ses.State(ctx)
			if err != nil {
				return nil, err
			}
			// A message older than the numbers that the world keeps is searched from
			// the beginning on.
			if core := session.WorldOf(state); core.Number(agentID, core.ViewSeqOf(agentID, after)) == after {
				global = core.ViewSeqOf(agentID, after)
			}
		}
		seq, err := r.behind(ctx, global)
		if err != nil {
			return nil, err
		}
		return r.ses.At(ctx, replay.Moment{Seq: seq})
	}, after)
}

// messages folds the world from the state of begin on, and yields the messages.
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
				Code: agents.ErrUnknownAgent, Recovery: agents.Abort, AgentID: agentID, Reason: fmt.Sprintf("agent %q is not registered", agentID),
			})
			return
		}
		state, err := begin(ctx)
		if err != nil {
			fail(err)
			return
		}
		l := newListener(session.WorldOf(state), agentID) // ours: the rest of the fold stays where it is
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

// wants reports whether the filter selects a message.
func (f *Filter) wants(m *Message, agentID string) bool {
	return (len(f.Channels) == 0 || slices.Contains(f.Channels, m.Channel)) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, m.Kind)) && (!f.Others || m.From != agentID)
}

// listener folds the world for one agent. The core does not have the other agents,
// since their views do not affect what the agent receives: the cost depends on the
// effects and on what the agent sees, not on the number of agents.
type listener struct {
	core  *agents.Core
	agent string
}

func newListener(core *agents.Core, agent string) *listener {
	for _, id := range slices.Collect(core.Agents()) {
		if id != agent {
			core.Apply(core.Now(), signal.Record{
				Word: agents.WordLeft, Value: signal.NewObject(1).Text("agent_id", id).Value(),
			})
		}
	}
	return &listener{core, agent}
}

// hear folds an entry and returns the message that the agent receives by it.
func (l *listener) hear(entry *eventlog.Entry, kinds []string) (Message, bool) {
	record, err := session.WorldRecordOf(entry)
	if err != nil {
		return Message{}, false // not a world record; the next one brings the time
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

func (l *listener) effect(entry *eventlog.Entry, record signal.Record, kinds []string) (Message, bool) {
	effect, err := world.ParseEffect(record.Value)
	if err != nil {
		return Message{}, false
	}
	// Whose request it was would have to be registered here: the effect alone.
	record.Value = effect.Value()
	out := l.core.Apply(entry.At, record)
	if out.Effect == nil || !slices.Contains(kinds, effect.Kind) {
		return Message{}, false
	}
	// An effect that concerns the agent has a delivery, which gives its time.
	i := slices.IndexFunc(out.Deliveries, func(d agents.Delivery) bool { return d.Agent == l.agent })
	if i < 0 || !l.core.Receives(l.agent, *out.Effect) {
		return Message{}, false
	}
	m := read(effect.Payload)
	m.Kind, m.From, m.ReqID = effect.Kind, effect.SourceID, effect.ReqID
	m.GlobalSeq, m.SimTime, m.At = out.Deliveries[i].Number-1, effect.SimTime, out.Deliveries[i].At
	if effect.ReqID != "" {
		m.UUID = effect.UUID // that of a draft is made of the world's number
	}
	return m, true
}

// behind returns the last entry before the first effect whose global_seq is greater
// than after: the state from which a fold continues with that effect. Effects are
// numbered in the order of entries, so it is found by binary search.
func (r *Room) behind(ctx context.Context, after uint64) (eventlog.Seq, error) {
	low, high := eventlog.Seq(1), r.ses.Head().Seq+1 // the result is in low…high
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
// there is none before it.
func (r *Room) effect(ctx context.Context, from, end eventlog.Seq) (eventlog.Seq, uint64, error) {
	for entry, err := range r.ses.Entries(ctx, from) {
		if err != nil {
			return 0, 0, err
		}
		if entry.Seq >= end {
			break
		}
		record, err := session.WorldRecordOf(&entry)
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
