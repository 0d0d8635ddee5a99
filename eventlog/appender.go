package eventlog

import (
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
// Writers that arrive at the same time share rounds: a goroutine of the log runs the
// functions of all, one after the other, and hands their batches to the store as one
// write. A panic of f is raised again on its caller's goroutine, once the batches that
// f had staged are durable. [runtime.Goexit] in f, which testing's FailNow calls, ends
// its caller's goroutine too; the session stays usable. While a round is on its way to
// the disk, f waits for it, unless a full round waits. After Write, [Ticket.Wait] returns at once with the outcome
// of each batch; that of a repeat may belong to an earlier round.
//
// When ctx ends first, Write returns its error at once. Then f either has not run
// and never will, or has run to its end; its batches become durable or fail without
// the caller, and a panic of f is logged.
func (a *Appender) Write(ctx context.Context, f func(*Round)) error { return a.session.write(ctx, f) }

// AppendIn runs f in a round, as [Appender.Write] does, and returns the ticket of the
// batch that f staged once it is durable. The ticket of a repeat may belong to an earlier
// round, which [Ticket.Wait] waits for. Errors are those of f and of [Session.Append].
func (a *Appender) AppendIn(ctx context.Context, f func(*Round) (*Ticket, error)) (*Ticket, error) {
	return a.session.appendIn(ctx, f)
}

// StageIn runs f in a round, as [Appender.Write] does, and returns the ticket of the
// batch that f staged, in the order of the calls, without waiting for the disk. The
// caller must call [Ticket.Wait] once for every ticket, and a goroutine in the order
// in which it staged them. Errors are those of f and of [Session.Append].
func (a *Appender) StageIn(ctx context.Context, f func(*Round) (*Ticket, error)) (*Ticket, error) {
	return a.session.stageIn(ctx, f)
}

func (s *Session) write(ctx context.Context, f func(*Round)) error {
	if err := s.log.acquire(); err != nil {
		return err
	}
	defer s.log.release()
	_, err := s.inRound(ctx, func(r *Round) (*Ticket, error) {
		f(r)
		return nil, nil
	}, Batch{}, true)
	return err
}

func (s *Session) appendIn(ctx context.Context, f func(*Round) (*Ticket, error)) (*Ticket, error) {
	if err := s.log.acquire(); err != nil {
		return nil, err
	}
	defer s.log.release()
	return s.inRound(ctx, f, Batch{}, true)
}

func (s *Session) stageIn(ctx context.Context, f func(*Round) (*Ticket, error)) (_ *Ticket, err error) {
	if err := s.log.acquire(); err != nil {
		return nil, err
	}
	var t *Ticket
	defer func() {
		if t == nil {
			s.log.release()
		}
	}()
	if t, err = s.inRound(ctx, f, Batch{}, false); t != nil {
		t.holds = true
	}
	return t, err
}
