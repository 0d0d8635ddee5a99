package writer

import (
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

// Turn is the exclusive right to decide in a session. It is valid until the function
// that received it returns.
type Turn struct {
	writer *Writer
	round  *eventlog.Round
	now    time.Duration // session time of the decision; set by CatchUp
	held   bool          // the turn holds writer.mu, and the fold is at the newest entry
	origin session.Time  // of the batch that the reactor extends
}

// end releases the lock of the fold.
func (t *Turn) end() {
	if t.held {
		t.writer.mu.Unlock()
	}
	*t = Turn{}
}

// CatchUp brings the fold up to the newest entry and holds its lock until the turn
// ends.
func (t *Turn) CatchUp() error {
	if t.held {
		return nil
	}
	w := t.writer
	w.mu.Lock()
	t.held = true
	w.foldBacklog()
	if broken := w.broken.Load(); broken != nil {
		return *broken
	}
	if err := w.Err(); err != nil && w.fold.Head().Seq > w.log.Head().Seq {
		return err // the state has entries that the log will never have
	}
	w.clock.follow(&w.next.Frontier)
	t.now = w.clock.Now()
	return nil
}

// Fold returns the newest state, nil before [Turn.CatchUp]. It belongs to the
// writer; Keep moves it on.
func (t *Turn) Fold() *projection.Fold {
	if !t.held {
		return nil
	}
	return t.writer.fold
}

// Now returns the session time of the turn's decisions, which does not pass by
// itself during the turn. It is not before the newest entry.
func (t *Turn) Now() time.Duration { return t.now }

// Reach moves session time on to an instant, at least.
func (t *Turn) Reach(at time.Duration) {
	t.writer.clock.Reach(at)
	t.now = t.writer.clock.Now()
}

// Origin returns the Unix time in nanoseconds at session time zero, for the batch
// that a reactor extends; false where session time has none.
func (t *Turn) Origin() (ns int64, ok bool) { return t.origin.Origin, t.origin.HasOrigin }

// Frontier returns the session's position. For a session without entries it is the
// position after the first one.
func (t *Turn) Frontier() Frontier {
	p := t.writer.next.Frontier
	if t.writer.next.head.Seq == 0 {
		p.Time.Authority = t.writer.authority
	}
	return p
}

// Proposal is a batch that [Turn.Keep] appends as a whole or not at all.
type Proposal struct {
	// Drafts are the entries in order. Their data may be used again after Keep.
	Drafts []eventlog.Draft

	// Key, unless empty, makes the batch idempotent, and Expect, unless zero, is the
	// Head that the session must have; see [eventlog.Batch].
	Key    string
	Expect eventlog.Head

	// Fresh says that Key has been looked up in this turn and was not found.
	Fresh bool

	// Last says that the turn does not use the state behind the batch, a decision of
	// effects alone. It is then folded while the disk works, so that a caller that waits for the
	// disk does not wait for the fold too. It has no effect while the reactor reacts.
	Last bool

	// After is the session's position after a plain record. Nil says that the batch is
	// a decision: its entries have the turn's time, and in a session of the wall clock
	// whose origin is unknown, an entry before them records the origin.
	After *Frontier
}

// Keep appends a batch to the session. It puts the session's first entry before
// it where there is none, and has the reactor extend it. In a turn that holds the
// fold the batch is folded at once, unless it is the last one, and otherwise when the
// round has been handed to the store. A decision whose key was seen before is an error; a
// plain record gets the first outcome then.
func (t *Turn) Keep(b Proposal) (*eventlog.Ticket, error) {
	w := t.writer
	if t.held {
		w.foldBacklog() // of a batch that was said to be the last one
	}
	if w.next.reacts {
		if err := t.CatchUp(); err != nil {
			return nil, err
		}
	}
	p := w.next
	drafts := w.opened(&p, &b, t.now)
	if w.reactor != nil && t.held {
		t.origin = p.Time
		var err error
		if drafts, err = w.reactor.React(t, drafts); err != nil {
			return t.refused(&b, err)
		}
	}
	ticket, err := t.round.Stage(eventlog.Batch{Drafts: drafts, Expect: b.Expect, Key: b.Key, Fresh: b.Fresh})
	switch {
	case err != nil:
		return nil, err
	case ticket.Repeat() && b.After == nil:
		return nil, fmt.Errorf("sajou: session %q: %q is decided twice", w.Name(), b.Key)
	case ticket.Repeat():
		return ticket, nil
	}
	p.head = ticket.Head()
	w.clock.follow(&p.Frontier)
	if b.Last && !p.reacts || !t.held { // effects do not begin to make the reactor react
		w.next = p
		w.backlog.add(ticket, w.log.Head().Seq)
		t.round.Then(w.follow)
		return ticket, nil
	}
	w.apply(ticket)
	p.reacts = w.reactor != nil && w.reactor.Reacts(w.fold)
	w.next = p
	if broken := w.broken.Load(); broken != nil && b.After == nil {
		return nil, *broken
	}
	return ticket, nil
}

// opened returns the drafts of a batch behind the entries that have to come
// before them, and moves p on behind all of them.
func (w *Writer) opened(p *position, b *Proposal, now time.Duration) []eventlog.Draft {
	var before session.Drafts
	at := p.At
	if b.After != nil {
		p.Frontier = *b.After
	}
	if p.head.Seq == 0 {
		p.Time.Authority = w.authority
		before.Opened(at, w.authority)
	}
	if b.After == nil {
		if p.Time.WantsOrigin() {
			// No signal has set the origin of session time. Choose it so that the
			// wall clock now shows the time of the newest entry.
			p.Time.Origin, p.Time.HasOrigin = w.group.cfg.Now().UnixNano()-int64(at), true
			before.Clock(at, p.Time.Origin)
		}
		p.At = max(at, now)
	}
	if before.Len() == 0 {
		return b.Drafts
	}
	return slices.Concat(before.List(), b.Drafts)
}

// refused returns the outcome of a batch that the reactor refused: the first outcome if
// a plain record is repeated, because a record that was valid then may be invalid now.
func (t *Turn) refused(b *Proposal, err error) (*eventlog.Ticket, error) {
	if b.After != nil {
		if first, lookup := t.Repeat(b.Key); first != nil || lookup != nil {
			return first, lookup
		}
	}
	return nil, err
}

// Then registers f to run when the round has been handed to the store, before its writers
// wake; see [eventlog.Round.Then].
func (t *Turn) Then(f func()) { t.round.Then(f) }

// Repeat returns the first outcome of an idempotency key, nil when there is none.
func (t *Turn) Repeat(key string) (*eventlog.Ticket, error) { return t.round.Repeat(key) }
