package session

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

func directorProjection() projection.Projection {
	return projection.Projection{
		Name:    ProjectionDirector,
		Version: directorVersion,
		New:     func() projection.State { return &directorState{state: &director.State{}} },
		Restore: func(data []byte) (projection.State, error) {
			s, err := director.Restore(data)
			if err != nil {
				return nil, err
			}
			return &directorState{s}, nil
		},
	}
}

// directorState is the state of [ProjectionDirector].
type directorState struct{ state *director.State }

func (s *directorState) Advance(time.Duration)    {}
func (s *directorState) Append(dst []byte) []byte { return s.state.AppendState(dst) }
func (s *directorState) View() any                { return s.state.View() }

func (s *directorState) Apply(e *eventlog.Entry) {
	if r, ok := DirectorRecordOf(e); ok {
		// An event that does not follow, in the log of another program, changes nothing.
		_ = s.state.Apply(r.Word, r.Value)
	}
}

// DirectorOf returns the director where a fold stands, nil if it has none. It
// belongs to the fold and changes with it.
func DirectorOf(f *projection.Fold) *director.State {
	if s, ok := f.State(ProjectionDirector).(*directorState); ok {
		return s.state
	}
	return nil
}

// BeatOf returns the event or message that a beat entry records. It points into the
// entry.
func BeatOf(e *eventlog.Entry) (signal.Record, error) {
	if e.Kind != eventlog.KindBeat {
		return signal.Record{}, fmt.Errorf("sajou: entry %d is a %v, not a beat", e.Seq, e.Kind)
	}
	word, v, err := WordOf(e)
	return signal.Record{Word: word, Value: v}, err
}

// DirectorRecordOf returns the record that an entry holds for the director's fold: an
// event, or the declaration of an episode. It returns false for every other entry,
// messages included.
func DirectorRecordOf(e *eventlog.Entry) (r signal.Record, ok bool) {
	if e.Kind != eventlog.KindBeat && e.Kind != eventlog.KindDefine {
		return r, false
	}
	word, v, err := WordOf(e)
	if err != nil || word == WordMessage || (word == episode.Word) != (e.Kind == eventlog.KindDefine) {
		return r, false
	}
	return signal.Record{Word: word, Value: v}, true
}

// Utterance is a message of the scene: what the user or the character said.
type Utterance struct {
	Turn    int
	Attempt int    // of a response; 0 for a message of the user
	Role    string // "user" or "character"
	Text    string
}

// UtteranceOf returns the message that a record of a beat entry holds; false if it
// is an event.
func UtteranceOf(r signal.Record) (u Utterance, ok bool) {
	if r.Word != WordMessage {
		return u, false
	}
	number := func(name string) int {
		v, _ := r.Value.Get(name)
		i, _ := v.Int64()
		return int(i)
	}
	text := func(name string) string {
		v, _ := r.Value.Get(name)
		s, _ := v.Text()
		return s
	}
	return Utterance{number("turn"), number("attempt"), text("role"), text("text")}, true
}

// Record returns the message as the record of a beat entry.
func (u Utterance) Record() signal.Record {
	v := msgp.AppendMapHeader(nil, 4)
	v = msgp.AppendInt(msgp.AppendString(v, "turn"), u.Turn)
	v = msgp.AppendInt(msgp.AppendString(v, "attempt"), u.Attempt)
	v = msgp.AppendString(msgp.AppendString(v, "role"), u.Role)
	v = msgp.AppendString(msgp.AppendString(v, "text"), u.Text)
	return signal.Record{Word: WordMessage, Value: signal.Value(v)}
}

// Before returns the records with the message in front, or the records alone if there
// are none or the message has no text.
func (u Utterance) Before(records []signal.Record) []signal.Record {
	if len(records) == 0 || u.Text == "" {
		return records
	}
	return append([]signal.Record{u.Record()}, records...)
}

// DirectorEvent is one event of the director, or the declaration of an episode,
// where it stands in the log.
type DirectorEvent struct {
	Seq eventlog.Seq
	At  time.Duration
	signal.Record
}

// StatefulEvent is an event of the director and the state right after it. The state
// is only lent: the next event changes it.
type StatefulEvent struct {
	DirectorEvent
	State *director.State
}

// DirectorEvents iterates over the director's events among the entries of a session,
// up to and including entry to, with the declarations of episodes among them. It
// skips events that cannot follow the ones before, as the fold does.
func DirectorEvents(ctx context.Context, entries iter.Seq2[eventlog.Entry, error], to eventlog.Seq) iter.Seq2[StatefulEvent, error] {
	return directorEvents(ctx, &director.State{}, entries, to)
}

// directorEvents is [DirectorEvents] from a state on, which it changes.
func directorEvents(ctx context.Context, state *director.State, entries iter.Seq2[eventlog.Entry, error], to eventlog.Seq) iter.Seq2[StatefulEvent, error] {
	return func(yield func(StatefulEvent, error) bool) {
		for e, err := range entries {
			if err != nil {
				yield(StatefulEvent{}, err)
				return
			}
			if e.Seq > to {
				return
			}
			r, ok := DirectorRecordOf(&e)
			if !ok || state.Apply(r.Word, r.Value) != nil {
				continue
			}
			if !yield(StatefulEvent{DirectorEvent{e.Seq, e.At, r}, state}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(StatefulEvent{}, err)
		}
	}
}
