package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrTime is wrapped by the error about a timestamp that the session's time cannot
// take in.
var ErrTime = errors.New("sajou: timestamp out of range")

// SkewError is the error about a timestamp that is too far ahead of the wall clock for
// a session that records live. It wraps [ErrTime].
type SkewError struct {
	Timestamp signal.Number // of the signal, in milliseconds of Unix time
	Ahead     time.Duration // of the wall clock
	Max       time.Duration // the bound
}

func (e *SkewError) Error() string {
	return fmt.Sprintf("sajou: timestamp %v is %s ahead of the clock, more than the %s allowed; correct the clock of the source, or import the signals as a recording",
		e.Timestamp, wording.Span(e.Ahead), wording.Span(e.Max))
}

func (e *SkewError) Unwrap() error { return ErrTime }

// TimeAuthority says where a session's time comes from. It is recorded in the
// session's first entry.
type TimeAuthority string

// The time authorities.
const (
	// TimeWall takes the signals' own timestamps, made non-decreasing; session
	// time zero is the first signal's timestamp.
	TimeWall TimeAuthority = "wall"

	// TimeManual takes timestamps as milliseconds of session time. One that
	// goes back is refused. Time passes by entries and when the program says so. It
	// is for tests and scenarios.
	TimeManual TimeAuthority = "manual"

	// TimeSim is [TimeManual] for a game engine: time passes by its ticks. Everything
	// that needs time waits for the next tick: deadlines, delayed interruptions,
	// latencies of observations, and what choreographies begin after a delay. A world
	// whose config has the authority "sim" decides at ticks alone, so that a
	// submission waits for one too, in every session.
	TimeSim TimeAuthority = "sim"
)

// Valid reports whether a is one of the time authorities.
func (a TimeAuthority) Valid() bool { return a == TimeWall || a == TimeManual || a == TimeSim }

// Time says how a session's time runs.
type Time struct {
	Authority TimeAuthority // empty before the session is opened
	Origin    int64         // Unix time at session time zero, ns; 0 if HasOrigin is false
	HasOrigin bool          // never, unless the authority is [TimeWall]
}

// WantsOrigin reports whether the next signal with a timestamp says when session
// time began.
func (t *Time) WantsOrigin() bool { return !t.HasOrigin && t.Authority == TimeWall }

// Note derives when session time began from the first signal that carries a
// timestamp, which takes effect at the given session time.
func (t *Time) Note(sig *signal.Signal, at time.Duration) {
	ns, ok := sig.Timestamp.Nanos()
	if !ok || !sig.Timestamp.IsSet() || !t.WantsOrigin() {
		return
	}
	if origin := ns - int64(at); origin <= ns {
		t.Origin, t.HasOrigin = origin, true
	}
}

// Skew returns a [*SkewError] if a signal's timestamp is more than most ahead of the wall
// clock, which shows now. Only in a session of [TimeWall] a timestamp is a time of the
// wall clock.
func (t *Time) Skew(sig *signal.Signal, now time.Time, most time.Duration) error {
	ns, ok := sig.Timestamp.Nanos()
	if t.Authority != TimeWall || !ok || !sig.Timestamp.IsSet() {
		return nil
	}
	if ahead := time.Unix(0, ns).Sub(now); ahead > most {
		return &SkewError{sig.Timestamp, ahead, most}
	}
	return nil
}

// Late reports whether the timestamp of a signal is before the session time at which it
// takes effect: an earlier entry had moved session time past it.
func (t *Time) Late(sig *signal.Signal, at time.Duration) bool {
	ns, ok := sig.Timestamp.Nanos()
	switch {
	case !ok || !sig.Timestamp.IsSet():
		return false
	case t.Authority != TimeWall:
		return ns < int64(at)
	}
	return t.HasOrigin && ns < t.Origin+int64(at)
}

// At returns the session time at which a signal takes effect, never before
// last. The error wraps [ErrTime].
func (t *Time) At(sig *signal.Signal, last time.Duration) (time.Duration, error) {
	ns, ok := sig.Timestamp.Nanos()
	if !sig.Timestamp.IsSet() {
		return last, nil // only a signal that was recorded leniently lacks it
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("%w: timestamp %v is outside the years 1678 to 2262", ErrTime, sig.Timestamp)
	case t.Authority != TimeWall:
		if ns < int64(last) {
			return 0, fmt.Errorf("%w: timestamp %v ms is before the session's %v", ErrTime, sig.Timestamp, last)
		}
		return time.Duration(ns), nil
	case !t.HasOrigin:
		return last, nil // this signal sets the origin
	case ns > t.Origin && ns-t.Origin < 0:
		return 0, fmt.Errorf("%w: timestamp %v is more than 292 years after the session began", ErrTime, sig.Timestamp)
	}
	return max(last, time.Duration(ns-t.Origin)), nil
}

// LastTime returns the time of the wall clock at the newest durable entry of a session. It
// returns false for a session without entries, or whose time is not the wall clock's. It
// reads the log up to the entry that says when session time began, which is one of the
// first.
func LastTime(ctx context.Context, log *eventlog.SessionReader) (last time.Time, ok bool, err error) {
	var s State
	newest := log.At()
	for e, err := range log.Entries(ctx, 1) {
		if err != nil {
			return time.Time{}, false, err
		}
		s.Apply(&e)
		if s.time.HasOrigin {
			return time.Unix(0, s.time.Origin).Add(newest).UTC(), true, nil
		}
		if !s.time.WantsOrigin() {
			break
		}
	}
	return time.Time{}, false, nil
}
