package session

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// OpenReplay returns the time travel of a session of the log: addresses, cursors,
// commands, searches. A nil store folds from the first entry every time. Errors:
// [eventlog.ErrNoSession] if the session has no entry, [*RulesError] if a newer
// program recorded it, and those of reading its first entry.
func OpenReplay(log *eventlog.SessionReader, set projection.Set, store *snapshot.Store) (*replay.Replay, error) {
	if !log.Exists() {
		return nil, fmt.Errorf("%w: %q", eventlog.ErrNoSession, log.Name())
	}
	if err := checkRules(context.Background(), log); err != nil {
		return nil, err
	}
	return NewReplay(log, set, store), nil
}

// NewReplay is [OpenReplay] without its checks, also for a session that has no
// entries yet, and for other sources of entries than a log, such as a variant of a
// recorded session.
func NewReplay(src replay.Source, set projection.Set, store *snapshot.Store) *replay.Replay {
	if store == nil {
		return replay.Open(source{src}, set, nil)
	}
	return replay.Open(source{src}, set, replay.Stored(store, src, set))
}

// source is a session with the meaning that package replay needs for addresses: the
// time of day, beats and turns.
type source struct{ replay.Source }

// Origin implements [replay.Origin]. It folds only the entries up to the first
// signal.
func (s source) Origin() (time.Time, bool) {
	state := &State{}
	for e, err := range s.Entries(context.Background(), 1) {
		if err != nil || state.time.Authority == TimeManual || state.time.Authority == TimeSim {
			return time.Time{}, false
		}
		if state.Apply(&e); state.time.HasOrigin {
			return time.Unix(0, state.time.Origin).UTC(), true
		}
	}
	return time.Time{}, false
}

// Correlation implements [replay.CorrelationSource].
func (s source) Correlation(e *eventlog.Entry) (id string, ok bool) {
	if e.Kind != eventlog.KindSignal {
		return "", false
	}
	sig, err := signal.Decode(e.Data)
	if err != nil || sig.CorrelationID == nil {
		return "", false
	}
	return *sig.CorrelationID, true
}

// Marks implements [replay.MarkSource].
func (s source) Marks(ctx context.Context) iter.Seq2[replay.Mark, error] {
	return s.marks(ctx, &director.State{}, 0)
}

// MarksAfter implements [replay.ContinuedMarks].
func (s source) MarksAfter(ctx context.Context, f *projection.Fold) iter.Seq2[replay.Mark, error] {
	state := DirectorOf(f)
	if state == nil {
		return nil
	}
	return s.marks(ctx, state, f.Head().Seq)
}

// marks yields the marks behind an entry, after which the director is in a state.
func (s source) marks(ctx context.Context, state *director.State, after eventlog.Seq) iter.Seq2[replay.Mark, error] {
	return func(yield func(replay.Mark, error) bool) {
		played := state.Episode()
		if after >= s.Head().Seq {
			return
		}
		for e, err := range directorEvents(ctx, state, s.Entries(ctx, after+1), s.Head().Seq) {
			m := replay.Mark{Seq: e.Seq}
			if err == nil && e.State.Episode() != played {
				played = e.State.Episode()
				m.Beats = beatIDs(played)
			}
			switch {
			case err != nil:
			case e.Word == episode.BeatLanded:
				beat, _ := e.Value.Get("beat")
				m.Landed, _ = beat.Text()
			case e.Word == episode.TurnOpened:
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

func beatIDs(e *episode.Episode) []string {
	ids := make([]string, len(e.Beats))
	for i := range e.Beats {
		ids[i] = e.Beats[i].ID
	}
	return slices.Clip(ids)
}
