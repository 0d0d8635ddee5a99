// Package history reads what the director of a recorded session did, and plays it
// again.
//
// [Events] iterates over the director's events, [Turns] over the turns that were
// played, and [ProgressAt] says how far the episode has come. [Rerun] gives the recorded
// inputs (what was said and chosen, and what happened outside the play) to the director
// of another session, with the recorded verdicts, with those that still fit, or with a
// judge that is asked again; [Differences] compares two sessions turn by turn.
//
// Everything is read from the log alone. Only events count that can follow the ones
// before them: what the director's fold ignores is ignored here.
package history

import (
	"context"
	"iter"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// Events iterates over the director's events of a session in order, from the first
// entry up to and including one, each with the state right after it; see
// [session.DirectorEvents].
func Events(ctx context.Context, r *replay.Replay, to eventlog.Seq) iter.Seq2[session.StatefulEvent, error] {
	return session.DirectorEvents(ctx, r.Entries(ctx, 1), to)
}

// PlayedTurn holds the events that the director recorded in one turn.
type PlayedTurn struct {
	Play   int // counts the episodes of the session, from 1
	Number int
	Events []session.DirectorEvent // in their order
	Left   int                     // the number of events after those, which are left out
	bytes  int                     // of the events
}

// The bounds of one turn. A turn of an honest log has a few events for each beat,
// and each of them is short.
const (
	maxTurnEvents = 1 << 16
	maxTurnBytes  = 32 << 20
)

func (t *PlayedTurn) add(b session.DirectorEvent) {
	if t.Left > 0 || len(t.Events) == maxTurnEvents || t.bytes+len(b.Value) > maxTurnBytes {
		t.Left++
		return
	}
	t.Events, t.bytes = append(t.Events, b), t.bytes+len(b.Value)
}

// Turns iterates over the turns that were played from one entry to another, both
// included. A late verdict is in the turn in which it came.
func Turns(ctx context.Context, r *replay.Replay, from, to eventlog.Seq) iter.Seq2[PlayedTurn, error] {
	return func(yield func(PlayedTurn, error) bool) {
		var turn PlayedTurn
		play := 0
		// flush yields the current turn, if there is one.
		flush := func() bool {
			done := turn
			turn = PlayedTurn{}
			return done.Number == 0 || yield(done, nil)
		}
		for e, err := range Events(ctx, r, to) {
			if err != nil {
				yield(PlayedTurn{}, err)
				return
			}
			if e.Word == episode.EpisodeStarted {
				play++
			}
			if e.Word == episode.EpisodeStarted || e.Word == episode.Word {
				if e.Word == episode.EpisodeStarted && !flush() {
					return
				}
				continue
			}
			if e.Seq < from {
				continue
			}
			if n := e.State.Turn(); n != turn.Number {
				if !flush() {
					return
				}
				turn.Play, turn.Number = play, n
			}
			turn.add(e.DirectorEvent)
		}
		flush()
	}
}
