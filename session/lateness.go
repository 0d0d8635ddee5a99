package session

import (
	"context"
	"iter"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// Lateness finds the late signals of one session: those whose timestamp is before the
// session time at which they take effect, see [Time.Late]. The log does not say it. It
// follows from the signal, its session time and the time at which the session began, so
// an entry is late whatever range it is read with.
//
// A Lateness may not be used by several goroutines at once.
type Lateness struct {
	entries func(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error]
	state   State
	next    eventlog.Seq // the first entry that state has not taken
}

// NewLateness returns the lateness of the session with these entries. It reads them at
// the first signal that has a timestamp, up to the entry that says when the session
// began, which is most often among the first.
func NewLateness(entries func(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error]) *Lateness {
	return &Lateness{entries: entries, next: 1}
}

// Of reports whether an entry is a late signal.
func (l *Lateness) Of(ctx context.Context, e *eventlog.Entry) (bool, error) {
	if e.Kind != eventlog.KindSignal {
		return false, nil
	}
	sig, err := signal.Decode(e.Data)
	if err != nil || !sig.Timestamp.IsSet() {
		return false, nil // what cannot be decoded has no timestamp
	}
	if l.next <= e.Seq && (l.next == 1 || l.state.time.WantsOrigin()) {
		for before, err := range l.entries(ctx, l.next) {
			if err != nil {
				return false, err
			}
			l.state.Apply(&before)
			if l.next = before.Seq + 1; l.next > e.Seq || !l.state.time.WantsOrigin() {
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	return l.state.time.Late(&sig, e.At), nil
}

// AppendEntryJSON appends an entry as the function [AppendEntryJSON] does, with
// "late":true if it is a late signal.
func (l *Lateness) AppendEntryJSON(ctx context.Context, dst []byte, e *eventlog.Entry) ([]byte, error) {
	late, err := l.Of(ctx, e)
	if err != nil {
		return dst, err
	}
	return appendEntry(dst, e, late), nil
}
