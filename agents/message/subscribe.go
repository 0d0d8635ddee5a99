package message

import (
	"context"
	"iter"
	"slices"
	"strings"

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
		core := sajou.WorldOf(state) // ours: the rest of the fold stays where it is
		for entry, err := range r.ses.Subscribe(ctx, state.Head().Seq+1) {
			if err != nil {
				fail(err)
				return
			}
			m, ok := r.hear(core, &entry, agentID, &f)
			if !ok || m.GlobalSeq <= after {
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

// hear folds an entry and returns the message that it is for the agent.
func (r *Room) hear(core *agents.Core, entry *eventlog.Entry, agentID string, f *Filter) (Message, bool) {
	record, err := sajou.WorldRecordOf(entry)
	if err != nil {
		return Message{}, false // of another kind; the next record says what time it is
	}
	out := core.Apply(entry.At, record)
	if out.Effect == nil || !slices.Contains(r.kinds, out.Effect.Kind) {
		return Message{}, false
	}
	// Whom an effect concerns it is delivered to; when, that says.
	i := slices.IndexFunc(out.Deliveries, func(d agents.Delivery) bool { return d.Agent == agentID })
	if i < 0 || !core.Hears(agentID, *out.Effect) {
		return Message{}, false
	}
	m := read(out.Effect.Payload)
	m.Kind, m.From, m.ReqID = out.Effect.Kind, out.Effect.SourceID, out.Effect.ReqID
	m.GlobalSeq, m.UUID, m.SimTime = out.Effect.GlobalSeq, out.Effect.UUID, out.Effect.SimTime
	m.At, m.Seq = out.Deliveries[i].At, entry.Seq
	m.Channel, m.To, m.Text = strings.Clone(m.Channel), strings.Clone(m.To), strings.Clone(m.Text)
	wanted := (len(f.Channels) == 0 || slices.Contains(f.Channels, m.Channel)) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, m.Kind)) && !(f.Others && m.From == agentID)
	return m, wanted
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
