// Package course tells a recorded session from beginning to end: its entries, the
// performances that they make, and the commands of these, in one order and one pass.
// Measurements and exports are sinks of it.
//
// docs/glossary.md has the nouns of all packages.
package course

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// Sink receives the course of a session. All calls come from one goroutine, in the
// order of time. OnActionUpdate is called with the progress of running actions at each
// entry, which most sinks ignore.
type Sink interface {
	choreography.CommandSink
	choreography.PerformanceSink

	// OnEntry reports an entry: after everything that was due up to its time, and
	// before the performances that it makes or ends. The sink must not keep it. An
	// error ends the walk.
	OnEntry(e *eventlog.Entry) error
}

// Passage selects a part of a session.
type Passage struct {
	From eventlog.Seq // the first entry; 0 is entry 1
	To   eventlog.Seq // the last entry; 0 is the present end
}

// Walk sends sink the course of a range of entries, then what follows the last of them
// up to the next entry, but at most [replay.MaxRest]. It returns the session time at
// which the course ends: the time of the last entry, or of the last command after it.
//
// The performances that are under way before the range are reported first, as they
// stand there, with the starts of their running actions. Errors are those of reading, of
// ctx and of sink; [replay.ErrNoAddress] says that the session does not have the range.
func Walk(ctx context.Context, r *replay.Replay, over Passage, sink Sink) (end time.Duration, err error) {
	over.From = max(over.From, 1)
	if over.To == 0 {
		over.To = r.Head().Seq
	}
	if over.From > over.To {
		return 0, nil
	}
	fold, err := r.At(ctx, replay.Moment{Seq: over.From - 1})
	if err != nil {
		return 0, err
	}
	last := &lastCommand{Sink: sink}
	performances := session.PerformancesOf(fold)
	if performances != nil {
		for p := range performances.Scheduler().Performances() {
			sink.OnPerformance(p)
		}
		performances.UnderWay(sink)
		performances.Perform(last)
		defer performances.Perform(nil)
	}
	rest := time.Duration(math.MaxInt64)
	for e, err := range r.Entries(ctx, over.From) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return end, fmt.Errorf("course: after entry %d: %w", fold.Head().Seq, err)
		}
		if e.Seq > over.To {
			rest = e.At
			break
		}
		fold.Advance(e.At)
		if err := sink.OnEntry(&e); err != nil {
			return end, err
		}
		if err := fold.Apply(&e); err != nil {
			return end, fmt.Errorf("course: %w", err)
		}
		end = e.At
	}
	if seq := fold.Head().Seq; seq < over.To {
		if err := ctx.Err(); err != nil {
			return end, err
		}
		return end, fmt.Errorf("%w: entry %d; the last entry of %s is %d", replay.ErrNoAddress, over.To, r.Name(), seq)
	}
	if end <= math.MaxInt64-replay.MaxRest {
		rest = min(rest, end+replay.MaxRest)
	}
	fold.Advance(rest)
	return max(end, last.at), ctx.Err()
}

// lastCommand passes the course on and notes the time of its last event other than an
// update.
type lastCommand struct {
	Sink

	at time.Duration
}

func (l *lastCommand) OnActionStart(c choreography.ActionStart) {
	l.at = c.At
	l.Sink.OnActionStart(c)
}

func (l *lastCommand) OnActionComplete(c choreography.ActionComplete) {
	l.at = c.At
	l.Sink.OnActionComplete(c)
}

func (l *lastCommand) OnActionExecute(c choreography.ActionExecute) {
	l.at = c.At
	l.Sink.OnActionExecute(c)
}

func (l *lastCommand) OnInterrupt(c choreography.Interrupt) {
	l.at = c.At
	l.Sink.OnInterrupt(c)
}

func (l *lastCommand) OnPerformanceEnd(at time.Duration, id string) {
	l.at = at
	l.Sink.OnPerformanceEnd(at, id)
}
