package eventlog

import (
	"cmp"
	"context"
	"errors"
	"weak"
)

// ErrClaimed is the error of an append to a session that an [Appender] has claimed.
var ErrClaimed = errors.New("eventlog: only its writer may append to this session")

// Appender is the sole right to append to a session. Its holder decides in rounds and
// may keep a state that follows its own appends; an append past it would break that
// state silently, and is refused with [ErrClaimed].
type Appender struct{ session *Session }

// Claim returns the sole right to append to the session, or [ErrClaimed] while
// another Appender has it: until that is released, or no longer used.
func (s *Session) Claim() (*Appender, error) {
	before := s.claim.Load()
	if before != nil && before.Value() != nil {
		return nil, ErrClaimed
	}
	a := &Appender{s}
	claim := weak.Make(a)
	if !s.claim.CompareAndSwap(before, &claim) {
		return nil, ErrClaimed
	}
	return a, nil
}

// claimed reports whether an Appender has the sole right to append.
func (s *Session) claimed() bool {
	claim := s.claim.Load()
	return claim != nil && claim.Value() != nil
}

// Release gives the right up. The Appender must not be used afterwards.
func (a *Appender) Release() { a.session.claim.Store(nil) }

// Write runs f while no other writer appends to the session. It returns once the
// batches that f staged are durable, or with the error that made the log read-only.
// f decides against the newest state and stages batches; it must not block, nor
// wait for its tickets, nor call the session's other appending methods.
//
// Writers that arrive at the same time share rounds: one of them runs the functions
// of all, one after the other, and hands their batches to the store as one write.
// So f may run on the goroutine of another writer. A panic of f is raised again on
// its caller's goroutine, once the batches that f had staged are durable.
// [runtime.Goexit] in f, which testing's FailNow calls, ends both goroutines; the
// session stays usable. After Write, [Ticket.Wait] returns at once with the outcome
// of each batch; that of a repeat may belong to an earlier round.
//
// When ctx ends first, Write returns its error at once. Then f either has not run
// and never will, or has run to its end; its batches become durable or fail without
// the caller, and a panic of f is logged.
func (a *Appender) Write(ctx context.Context, f func(*Round)) error { return a.session.write(ctx, f) }

// StageIn runs f in a round, as [Appender.Write] does, and returns the ticket of the
// batch that f staged, in the order of the calls, without waiting for the disk. The
// caller must call [Ticket.Wait] once for every ticket, and a goroutine in the order
// in which it staged them. Errors are those of f and of [Session.Append].
func (a *Appender) StageIn(ctx context.Context, f func(*Round) (*Ticket, error)) (*Ticket, error) {
	return a.session.stageIn(ctx, f)
}

func (s *Session) write(ctx context.Context, f func(*Round)) error {
	release, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer release()
	return s.inRound(ctx, f, true)
}

func (s *Session) stageIn(ctx context.Context, f func(*Round) (*Ticket, error)) (*Ticket, error) {
	release, err := s.log.acquire()
	if err != nil {
		return nil, err
	}
	var t *Ticket
	defer func() {
		if t == nil {
			release()
		}
	}()
	var staged *Ticket
	var refused error
	err = s.inRound(ctx, func(r *Round) { staged, refused = f(r) }, false)
	if err := cmp.Or(refused, err); err != nil {
		return nil, err
	}
	t = staged
	t.release = release
	return t, nil
}
