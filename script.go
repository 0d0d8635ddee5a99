package sajou

import (
	"context"
	"iter"
	"slices"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// This file reads what the director did from the log alone. Only events count
// that follow those before them: what the fold passes over is passed over here.

// Script returns the director's events of the session in order, from the first
// entry up to and including one, each with its entry and the declarations of
// episodes among them. What cannot follow is left out, as the fold leaves it out.
// The state is where the director stands right after the event; it is only lent.
func (r *Replay) Script(ctx context.Context, to eventlog.Seq) iter.Seq2[Scripted, error] {
	return func(yield func(Scripted, error) bool) {
		log, err := r.engine.log.Session(r.name)
		if err != nil {
			yield(Scripted{}, err)
			return
		}
		for s, err := range scriptOf(ctx, log, to) {
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Scripted is one event of the director's and the state that it left.
type Scripted struct {
	Beat
	State *director.State
}

func scriptOf(ctx context.Context, log *eventlog.Session, to eventlog.Seq) iter.Seq2[Scripted, error] {
	return func(yield func(Scripted, error) bool) {
		state := &director.State{}
		for e, err := range log.Entries(ctx, 1) {
			if err != nil {
				yield(Scripted{}, err)
				return
			}
			if e.Seq > to {
				return
			}
			record, ok := eventOf(&e)
			if !ok || state.Apply(record.Word, record.Value) != nil {
				continue
			}
			if !yield(Scripted{Beat{e.Seq, e.At, record}, state}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Scripted{}, err)
		}
	}
}

// eventOf returns what an entry tells the director, if it does: an event, or the
// declaration of an episode.
func eventOf(e *eventlog.Entry) (r director.Record, ok bool) {
	if e.Kind != eventlog.KindBeat && e.Kind != eventlog.KindDefine {
		return r, false
	}
	word, v, err := wordOf(e)
	if err != nil || word == wordMessage || (word == director.Word) != (e.Kind == eventlog.KindDefine) {
		return r, false
	}
	return director.Record{Word: word, Value: v}, true
}

// Marks implements [replay.Script].
func (s *source) Marks(ctx context.Context) iter.Seq2[replay.Mark, error] {
	return func(yield func(replay.Mark, error) bool) {
		var episode *director.Episode
		for e, err := range scriptOf(ctx, s.Session, s.Head().Seq) {
			m := replay.Mark{Seq: e.Seq}
			if err == nil && e.State.Episode() != episode {
				episode = e.State.Episode()
				m.Beats = beatIDs(episode)
			}
			switch {
			case err != nil:
			case e.Word == director.BeatLanded:
				m.Landed = textMember(e.Value, "beat")
			case e.Word == director.TurnOpened:
				m.Turn = uint64(e.State.Turn())
			case m.Beats == nil:
				continue
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func beatIDs(e *director.Episode) []string {
	ids := make([]string, len(e.Beats))
	for i := range e.Beats {
		ids[i] = e.Beats[i].ID
	}
	return slices.Clip(ids)
}
