package sajou

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// Session records into one session of the log. Its methods may be called from
// many goroutines.
type Session struct {
	engine    *Engine
	log       *eventlog.Session
	authority TimeAuthority // for a session that has no entry yet

	// mu is held while a record is decided on and gets its place, in a round
	// of the log; never while the disk is waited for.
	mu       sync.Mutex
	fold     *projection.Fold // the newest state, perhaps not durable yet; guarded by mu
	broken   error            // set when fold and log have parted; guarded by mu
	snapped  eventlog.Seq     // the newest snapshot; guarded by mu
	logBytes uint64           // estimated size of the session's log; guarded by mu
	scratch  scratch          // guarded by mu
}

// scratch is memory that is used anew for each record.
type scratch struct {
	drafts []eventlog.Draft
	data   []byte
	ends   []int // where each draft's data ends in data
}

// Session returns the session of that name. A new one is begun by its first
// record and takes its time from the signals' timestamps ([TimeWall]).
func (e *Engine) Session(ctx context.Context, name string) (*Session, error) {
	return e.Begin(ctx, name, TimeWall)
}

// Begin is [Engine.Session] with another time authority for a new session. A
// session that exists keeps the one it has.
func (e *Engine) Begin(ctx context.Context, name string, authority TimeAuthority) (*Session, error) {
	if authority != TimeWall && authority != TimeManual {
		return nil, fmt.Errorf("sajou: no time authority %q: want %q or %q", authority, TimeWall, TimeManual)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, eventlog.ErrClosed
	}
	if s := e.sessions[name]; s != nil {
		return s, nil
	}
	log, err := e.log.Session(name)
	if err != nil {
		return nil, err
	}
	s := &Session{engine: e, log: log, authority: authority}
	// Recovery: the newest snapshot that fits, and the entries behind it.
	s.fold, err = e.replayOf(log).Fold(ctx, log.Head().Seq)
	if err != nil {
		return nil, fmt.Errorf("sajou: open session %q: %w", name, err)
	}
	s.snapped = s.fold.Head().Seq
	if s.logBytes, err = e.log.DiskSize(ctx, name); err != nil {
		return nil, fmt.Errorf("sajou: open session %q: %w", name, err)
	}
	e.sessions[name] = s
	return s, nil
}

// Record is what one call writes: all of it or none.
type Record struct {
	// Definitions come into force, in order, before the signals happen.
	Definitions []*choreography.Definition

	// Signals happen in order.
	Signals []*signal.Signal

	// Expect, unless zero, is the Head the session must have; see
	// [eventlog.Batch].
	Expect eventlog.Head

	// Key, unless empty, makes the record idempotent: a repeat writes nothing
	// and answers with the first outcome, for ever.
	Key string

	// Lenient records signals that the schema refuses, flagged with the
	// reason, instead of refusing the record.
	Lenient bool
}

// Outcome is what came of a record.
type Outcome struct {
	First  eventlog.Seq  // the first entry it wrote
	Head   eventlog.Head // the place behind its last entry
	Repeat bool          // its key had been seen before: nothing was written now
}

// Name returns the session's name.
func (s *Session) Name() string { return s.log.Name() }

// Head returns the place of the newest durable entry.
func (s *Session) Head() eventlog.Head { return s.log.Head() }

// Define brings choreographies into force, in order, in one batch.
func (s *Session) Define(ctx context.Context, definitions ...*choreography.Definition) (eventlog.Head, error) {
	out, err := s.Record(ctx, Record{Definitions: definitions})
	return out.Head, err
}

// Signal records one signal. It is durable when the call returns. A signal
// that the schema refuses is not recorded: the error matches
// [signal.ErrSchema] and names the field.
func (s *Session) Signal(ctx context.Context, sig *signal.Signal) (eventlog.Head, error) {
	out, err := s.Record(ctx, Record{Signals: []*signal.Signal{sig}})
	return out.Head, err
}

// Record writes definitions and signals as one batch, durable when the call
// returns. Errors: [signal.ErrSchema], [ErrTime], and those of
// [eventlog.Session.Append].
func (s *Session) Record(ctx context.Context, r Record) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	if len(r.Definitions) == 0 && len(r.Signals) == 0 {
		return Outcome{}, fmt.Errorf("%w: a record needs a definition or a signal", eventlog.ErrInvalid)
	}
	signals, err := judge(r.Signals, r.Lenient)
	if err != nil {
		return Outcome{}, err
	}
	var t *eventlog.Ticket
	var refused error
	err = s.log.Write(func(round *eventlog.Round) { t, refused = s.stage(round, &r, signals) })
	switch {
	case refused != nil:
		return Outcome{}, refused
	case t == nil:
		return Outcome{}, err
	}
	head, err := t.Wait()
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{First: t.First(), Head: head, Repeat: t.Repeat()}, nil
}

// judge asks the schema about each signal. Leniently, those it refuses are
// replaced by copies that carry the reason.
func judge(signals []*signal.Signal, lenient bool) ([]*signal.Signal, error) {
	copied := false
	for i, sig := range signals {
		if sig == nil {
			return nil, fmt.Errorf("%w: signal %d of the record is nil", eventlog.ErrInvalid, i+1)
		}
		err := sig.Validate()
		switch {
		case err == nil && sig.Problem == "":
			continue
		case err != nil && !lenient:
			if len(signals) > 1 {
				return nil, fmt.Errorf("signal %d of the record: %w", i+1, err)
			}
			return nil, err
		}
		if !copied {
			signals, copied = append([]*signal.Signal(nil), signals...), true
		}
		marked := *sig
		marked.Problem = problemOf(err)
		// Lenience is for the schema: what cannot be read back, a payload
		// that is no JSON object above all, is refused all the same.
		if !readable(&marked) {
			return nil, err
		}
		signals[i] = &marked
	}
	return signals, nil
}

// readable reports whether a signal comes back from its entry as it is.
func readable(sig *signal.Signal) bool {
	if _, err := signal.Decode(sig.Append(nil)); err != nil {
		return false
	}
	for _, v := range []signal.Value{sig.Payload, sig.Metadata, sig.Raw} {
		if v == nil {
			continue
		}
		if _, rest, err := signal.CheckValue(v); err != nil || len(rest) != 0 {
			return false
		}
	}
	return true
}

// problemOf words a refusal for the signal that is recorded in spite of it.
func problemOf(err error) string {
	var field *signal.FieldError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &field) && field.Path != "":
		return field.Path + ": " + field.Reason
	case errors.As(err, &field):
		return field.Reason
	default:
		return err.Error()
	}
}

// stage decides on a record against the newest state and gives it its place.
// It runs in a round of the log, alone.
func (s *Session) stage(round *eventlog.Round, r *Record, signals []*signal.Signal) (*eventlog.Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	if err := s.draft(r, signals); err != nil {
		return nil, err
	}
	t, err := round.Stage(eventlog.Batch{Drafts: s.scratch.drafts, Expect: r.Expect, Key: r.Key})
	if err != nil || t.Repeat() {
		return t, err
	}
	if err := s.apply(t); err != nil {
		// The log has the batch and the state does not: a defect of this
		// program. What is recorded stays good; nothing more is.
		s.broken = err
		return t, nil
	}
	s.snapshot()
	return t, nil
}

// draft turns a record into drafts in s.scratch.
func (s *Session) draft(r *Record, signals []*signal.Signal) error {
	state, ok := s.fold.State(ProjectionSession).(*sessionState)
	if !ok {
		return fmt.Errorf("sajou: the projections lack %q", ProjectionSession)
	}
	c := &s.scratch
	c.drafts, c.data, c.ends = c.drafts[:0], c.data[:0], c.ends[:0]
	at := s.fold.At()
	add := func(kind eventlog.Kind, at time.Duration) {
		c.drafts = append(c.drafts, eventlog.Draft{Kind: kind, At: at})
		c.ends = append(c.ends, len(c.data))
	}
	now := *state // as it will be when the entries before are in
	if s.fold.Head().Seq == 0 {
		c.data = appendOpened(c.data, s.authority)
		add(eventlog.KindSession, at)
		now.time = s.authority
	}
	for _, d := range r.Definitions {
		c.data = appendDefinition(c.data, d)
		add(eventlog.KindDefine, at)
	}
	for i, sig := range signals {
		moved, err := now.at(sig, at)
		if err != nil {
			if !r.Lenient {
				return fmt.Errorf("signal %d of the record: %w", i+1, err)
			}
			moved = at // recorded as it came; its time cannot be used
		}
		at = moved
		c.data = sig.Append(c.data)
		add(eventlog.KindSignal, at)
		if !now.hasOrigin && now.time == TimeWall {
			if ns, ok := sig.Timestamp.Nanos(); ok && sig.Timestamp.IsSet() {
				now.origin, now.hasOrigin = ns-int64(at), true
			}
		}
	}
	// Only now does the memory stay where it is.
	start := 0
	for i, end := range c.ends {
		c.drafts[i].Data = c.data[start:end:end]
		start = end
	}
	return nil
}

// apply brings the newest state up to a staged batch.
func (s *Session) apply(t *eventlog.Ticket) error {
	for e := range t.Entries() {
		if err := s.fold.Apply(&e); err != nil {
			return fmt.Errorf("sajou: session %q: %w", s.Name(), err)
		}
	}
	s.logBytes += uint64(len(s.scratch.data))
	if cap(s.scratch.data) > 1<<20 {
		s.scratch = scratch{} // one large import should not be remembered for ever
	}
	return nil
}

// snapshot hands the state to the background writer when one is due. It may
// get to disk before the entries do; should they be lost then, the snapshot
// fits no entry of the log and is ignored.
func (s *Session) snapshot() {
	w, head := s.engine.writer, s.fold.Head()
	if w == nil || !s.engine.snaps.Due(s.snapped, head.Seq) {
		return
	}
	s.snapped = head.Seq
	w.Offer(s.Name(), s.fold.Image(), s.logBytes)
}

// State returns the state at the newest entry, complete at its instant, once
// that entry is durable. It belongs to the caller.
func (s *Session) State(ctx context.Context) (*projection.Fold, error) {
	s.mu.Lock()
	broken := s.broken
	f, err := s.fold.Clone()
	s.mu.Unlock()
	if err := errors.Join(broken, err); err != nil {
		return nil, err
	}
	if err := s.log.WaitDurable(ctx, f.Head().Seq); err != nil {
		return nil, err
	}
	f.Advance(f.At())
	return f, nil
}

// At returns the state at a moment of the session, see [Replay.AtMoment].
func (s *Session) At(ctx context.Context, m replay.Moment) (*projection.Fold, error) {
	return s.engine.replayOf(s.log).At(ctx, m)
}

// Entries iterates over the durable entries from a Seq on; see
// [eventlog.Session.Entries].
func (s *Session) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return s.log.Entries(ctx, from)
}

// Subscribe iterates over the durable entries from a Seq on and goes on with
// those that come, without gap or repeat, until ctx ends or the engine
// closes. The log itself is the buffer: a slow subscriber holds no memory,
// loses nothing and delays nobody.
func (s *Session) Subscribe(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return s.log.Follow(ctx, from)
}
