package eventlog

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Append writes a batch and returns the Head behind it once it is durable.
//
// When b.Key was seen before, nothing is written and the Head behind the
// first append with that key is returned. Errors: [ErrInvalid],
// [ErrTooLarge], [ErrConflict], [ErrReadOnly], [ErrClosed]. After an error
// of the last write the outcome is unknown until the log is opened again;
// append again then with the same Key.
func (s *Session) Append(ctx context.Context, b Batch) (Head, error) {
	if err := ctx.Err(); err != nil {
		return Head{}, err
	}
	var t *Ticket
	var refused error
	err := s.Write(func(r *Round) { t, refused = r.Stage(b) })
	switch {
	case refused != nil:
		return Head{}, refused
	case t == nil:
		return Head{}, err
	}
	return t.Wait()
}

// Stage gives a batch its place in the log, in the order of the calls, and
// returns without waiting for the disk. Every ticket must be waited for, once,
// and those of one goroutine in the order they were staged. Errors are those
// of [Session.Append].
func (s *Session) Stage(b Batch) (*Ticket, error) {
	return s.StageIn(func(r *Round) (*Ticket, error) { return r.Stage(b) })
}

// StageIn is [Session.Stage] for who decides in the round what to stage: f runs
// as in [Session.Write], and returns the ticket of what it staged.
func (s *Session) StageIn(f func(*Round) (*Ticket, error)) (*Ticket, error) {
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
	err = s.inRound(func(r *Round) { staged, refused = f(r) }, false)
	if err := cmp.Or(refused, err); err != nil {
		return nil, err
	}
	t = staged
	t.release = release
	return t, nil
}

// Write runs f while nobody else appends to the session, and returns once what
// f staged is durable, or the error that made the log read-only. f decides
// against the newest state and stages what follows from it; it must not block,
// nor wait for its tickets, nor call the session's other appending methods.
//
// Writers that come at the same time share rounds: one of them runs the
// functions of all, one after the other, and hands what they staged to the
// store as one write. f may so run on another writer's goroutine. A panic in
// it is raised again on its own, once what f staged before is durable. With
// [runtime.Goexit], which testing's FailNow calls, it ends both goroutines; the
// session goes on. [Ticket.Wait] takes no time after Write, and gives the
// outcome of each: a repeat's may have been another round's.
func (s *Session) Write(f func(*Round)) error {
	release, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer release()
	return s.inRound(f, true)
}

// Round is what one write to the store is made of.
type Round struct {
	session *Session
	batch   *pebble.Batch      // nil before the first Stage
	keys    map[string]*Ticket // staged in this round; nil before the first
	commit  *commit
	number  uint32
	bytes   int
	running *turn // whose function runs
	then    []afterwards
}

// afterwards is what a turn has to do once the round is on its way.
type afterwards struct {
	turn *turn
	f    func()
}

// Then has f run when the round has been handed to the store, while the disk
// works and perhaps beside later rounds: the place for what follows from an
// append and need not precede the next. If the store refuses the round, f does
// not run.
func (r *Round) Then(f func()) { r.then = append(r.then, afterwards{r.running, f}) }

// Ticket is an append that has its place in the log and waits to become
// durable.
type Ticket struct {
	session *Session
	commit  *commit // nil for a repeat of an earlier round
	sealed  []byte  // the sealed batch; nil for a repeat; immutable
	first   Seq
	head    Head
	at      time.Duration
	release func() // lets go of what Close waits for; nil but for [Session.Stage]
}

// Head returns the place behind the append, durable or not.
func (t *Ticket) Head() Head { return t.head }

// Size returns the bytes that the append takes in the log; 0 for a repeat.
func (t *Ticket) Size() int { return len(t.sealed) }

// First returns the Seq of the first entry of the append.
func (t *Ticket) First() Seq { return t.first }

// Repeat reports whether the batch's key had been seen before, so that the
// ticket is the first outcome and nothing was written.
func (t *Ticket) Repeat() bool { return t.sealed == nil }

// Entries iterates over the entries of the append, durable or not. For a
// repeat there are none.
func (t *Ticket) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if t.sealed == nil {
			return
		}
		b, err := openBatch(t.sealed)
		for i := 0; i < b.count; i++ {
			var e Entry
			var body []byte
			var hash *Hash
			if err == nil {
				_, body, hash, err = b.link()
			}
			if err == nil {
				e = Entry{Seq: b.first + Seq(i), Hash: *hash}
				err = decodeBody(&e, body)
			}
			if err != nil {
				panic("eventlog: a batch that was just sealed does not open: " + err.Error())
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Wait returns once the append is durable, with the Head behind it, or with
// the error that made the log read-only.
func (t *Ticket) Wait() (Head, error) {
	if t.release != nil {
		defer t.release()
		t.release = nil
	}
	if t.commit == nil {
		if err := t.session.waitFor(context.Background(), t.head.Seq); err != nil {
			return Head{}, err
		}
		return t.head, nil
	}
	if err := t.commit.wait(); err != nil {
		return Head{}, err
	}
	return t.head, nil
}

// Stage adds a batch to the round and gives it its place. Errors are those of
// [Session.Append]; they leave the round as it was.
func (r *Round) Stage(b Batch) (*Ticket, error) {
	s := r.session
	l := s.log
	if err := l.writable(); err != nil {
		return nil, err
	}
	if len(b.Key) > MaxKey {
		return nil, fmt.Errorf("%w: idempotency key has %d bytes, at most %d are allowed", ErrTooLarge, len(b.Key), MaxKey)
	}
	if !b.Fresh {
		if first, err := r.Repeat(b.Key); first != nil || err != nil {
			return first, err
		}
	}
	if !b.Expect.IsZero() && b.Expect != s.head {
		return nil, &ConflictError{b.Expect, s.head}
	}
	if err := checkDrafts(&b, &l.cfg, s.at); err != nil {
		return nil, err
	}
	t := &Ticket{session: s, first: s.head.Seq + 1, head: s.head, at: b.Drafts[len(b.Drafts)-1].At}
	t.sealed = sealHeader(s.sealed.room(sealedSize(&b)), t.first, len(b.Drafts))
	key := b.Key
	for i := range b.Drafts {
		t.sealed, t.head.Hash = sealEntry(t.sealed, &b.Drafts[i], key, t.head.Hash, i > 0)
		key = ""
	}
	t.head.Seq += Seq(len(b.Drafts))
	if err := r.set(t, b.Key); err != nil {
		return nil, err
	}
	s.sealed.take(t.sealed)
	s.head, s.at = t.head, t.at
	return t, nil
}

// Repeat returns the first outcome of an idempotency key, or nil when nothing
// was appended with it. [Round.Stage] asks by itself.
func (r *Round) Repeat(key string) (*Ticket, error) {
	if key == "" {
		return nil, nil
	}
	if t := r.keys[key]; t != nil {
		return &Ticket{session: r.session, commit: r.commit, first: t.first, head: t.head}, nil
	}
	if r.session.number == 0 {
		return nil, nil
	}
	first, head, ok, err := r.session.log.outcome(r.session.number, key)
	if err != nil || !ok {
		return nil, err
	}
	return &Ticket{session: r.session, first: first, head: head}, nil
}

// set puts a sealed batch, and the outcome of its key, into the round's write.
func (r *Round) set(t *Ticket, key string) error {
	s := r.session
	l := s.log
	if r.batch == nil {
		r.batch = l.db.NewBatchWithSize(len(t.sealed) + 64)
		r.commit = &commit{session: s, batch: r.batch, handed: make(chan struct{}), done: make(chan struct{})}
		if r.number = s.number; r.number == 0 {
			r.number = l.reserveNumber()
			if err := r.batch.Set(sessionKey(s.name), binary.BigEndian.AppendUint32(nil, r.number), nil); err != nil {
				return fmt.Errorf("eventlog: append: %w", err)
			}
		}
	}
	var scratch [batchKeySize]byte
	err := r.batch.Set(batchKey(scratch[:0], r.number, t.first), t.sealed, nil)
	if err == nil && key != "" {
		err = r.batch.Set(idempotencyKey(nil, r.number, key), appendOutcome(nil, t.first, t.head), nil)
		if r.keys == nil {
			r.keys = make(map[string]*Ticket)
		}
		r.keys[key] = t
	}
	if err != nil {
		return fmt.Errorf("eventlog: append: %w", err)
	}
	t.commit = r.commit
	r.bytes += len(t.sealed)
	return nil
}

// apply hands the round to the store. From here on all of it is in the log if
// the sync that [commit.wait] waits for succeeds; a crash before leaves all of
// it or nothing, since it is one record of the store's write-ahead log.
func (r *Round) apply() error {
	if r.batch == nil {
		return nil // nobody staged anything
	}
	s := r.session
	l := s.log
	defer close(r.commit.handed)
	r.commit.durable = durable{r.number, s.head, s.at}
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	// Asked again, now that nothing can fail in between; see applyMu.
	if err := l.writable(); err != nil {
		return r.commit.abandon(err)
	}
	if err := l.db.ApplyNoSyncWait(r.batch, pebble.Sync); err != nil {
		l.fail(err)
		return r.commit.abandon(l.writable())
	}
	if l.fatal.Load() {
		return r.commit.abandon(l.writable()) // its sync may never end
	}
	s.number, l.wrote = r.number, true
	return nil
}

// commit is one write on its way to the disk, shared by the tickets of a round.
type commit struct {
	session *Session
	batch   *pebble.Batch
	durable durable       // where the session stands behind it
	handed  chan struct{} // closed when the store has it, or will not get it
	claimed atomic.Bool   // somebody waits for the sync, or it was abandoned
	done    chan struct{}
	err     error // set before done is closed
}

// abandon ends a commit that did not reach the store.
func (c *commit) abandon(err error) error {
	c.claimed.Store(true)
	c.err = err
	close(c.done)
	return err
}

// wait returns once the write is durable, or with the error that made the log
// read-only. The first who comes waits for the store, the others for the first.
// Who has a ticket of a round that still goes on waits for its end before: the
// store has no sync to wait for yet.
func (c *commit) wait() error {
	<-c.handed
	if !c.claimed.CompareAndSwap(false, true) {
		<-c.done
		return c.err
	}
	l := c.session.log
	err := c.batch.SyncWait()
	if err != nil {
		l.fail(err)
	}
	if closeErr := c.batch.Close(); err != nil || closeErr != nil || l.disk.lost.Load() {
		c.err = l.writable()
	} else {
		// A sync covers everything that was written before it, so all that
		// the session had when this was applied is durable.
		c.session.publish(&c.durable)
	}
	close(c.done)
	return c.err
}

// turns is the queue of those who want to append to a session.
type turns struct {
	mu      sync.Mutex
	waiting []*turn // guarded by mu; bounded by the number of callers
	leading bool    // somebody runs a round, or was told to; guarded by mu
	idle    []*turn // to be used anew, at most maxRound; guarded by mu
}

// turn is one caller's place in the queue.
type turn struct {
	f        func(*Round)
	sync     bool      // the caller waits until its round is durable
	wake     chan bool // 1: true tells the caller to lead, false that its round was run
	commit   *commit   // of its round; nil when nothing was staged in it
	err      error     // of its round
	panicked any
	exited   bool // f ended the goroutine it ran on
}

// A round is bounded, so that the write it makes is: it ends after maxRound
// turns, or behind the one that takes it over maxRoundBytes.
const (
	maxRound      = 64
	maxRoundBytes = 1 << 20
)

// inRound has f run in a round. With sync it returns when the round is durable,
// otherwise when it has reached the store. Its caller keeps the log open.
func (s *Session) inRound(f func(*Round), sync bool) error {
	s.turns.mu.Lock()
	var t *turn
	if n := len(s.turns.idle); n > 0 {
		t, s.turns.idle = s.turns.idle[n-1], s.turns.idle[:n-1]
	} else {
		t = &turn{wake: make(chan bool, 1)}
	}
	t.f, t.sync = f, sync
	s.turns.waiting = append(s.turns.waiting, t)
	lead := !s.turns.leading
	s.turns.leading = true
	s.turns.mu.Unlock()
	if !lead {
		lead = <-t.wake
	}
	if lead {
		s.lead()
	}
	err, c, panicked, exited := t.err, t.commit, t.panicked, t.exited
	*t = turn{wake: t.wake}
	s.turns.mu.Lock()
	if len(s.turns.idle) < maxRound {
		s.turns.idle = append(s.turns.idle, t)
	}
	s.turns.mu.Unlock()
	if err == nil && sync && c != nil {
		err = c.wait()
	}
	switch {
	case panicked != nil:
		panic(panicked)
	case exited:
		runtime.Goexit()
	}
	return err
}

// lead runs one round. Its caller's turn is the first of it, since whoever
// leads was alone or at the head of the queue.
func (s *Session) lead() {
	var round [maxRound]*turn
	s.turns.mu.Lock()
	n := copy(round[:], s.turns.waiting)
	s.turns.mu.Unlock()

	r := Round{session: s}
	ran := 0
	s.mu.Lock()
	// Deferred, so that nobody is left waiting by a function that ends the
	// goroutine. Those behind it take the next round.
	defer func() { r.end(round[:ran]) }()
	for ran < n && (ran == 0 || r.bytes < maxRoundBytes) {
		ran++
		round[ran-1].run(&r)
	}
}

// end hands the round to the store and the lead to the next, and tells those
// who ran along. The next round begins before this one is on the disk, so that
// rounds gather while the disk works and are not held up by it.
func (r *Round) end(ran []*turn) {
	s := r.session
	err := r.apply()
	s.mu.Unlock()
	s.turns.pass(len(ran))
	defer r.tell(ran, err)
	for _, a := range r.then {
		if err == nil {
			a.turn.guard(a.f)
		}
	}
}

// pass takes the first of the queue off it, and lets the next one lead.
func (q *turns) pass(ran int) {
	q.mu.Lock()
	rest := copy(q.waiting, q.waiting[ran:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	var next *turn
	if rest > 0 {
		next = q.waiting[0]
	} else {
		q.leading = false
	}
	q.mu.Unlock()
	if next != nil {
		next.wake <- true
	}
}

// tell wakes those who ran along with the leader, who is the first. Whoever
// waits for the disk is woken once, when the round is durable, and not for each
// of the two waits. A turn that was woken belongs to its caller again.
func (r *Round) tell(ran []*turn, err error) {
	leader := ran[0]
	leader.err, leader.commit = err, r.commit
	late := ran[:0]
	for _, t := range ran[1:] {
		t.err, t.commit = err, r.commit
		if t.sync {
			late = append(late, t)
		} else {
			t.wake <- false
		}
	}
	if leader.sync && err == nil && r.commit != nil {
		_ = r.commit.wait() // the commit keeps the outcome
	}
	for _, t := range late {
		t.wake <- false
	}
}

func (t *turn) run(r *Round) {
	r.running = t
	t.guard(func() { t.f(r) })
}

// guard keeps a panic for the goroutine whose turn it is.
func (t *turn) guard(f func()) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			t.panicked = p
		} else if !returned {
			t.exited = true
		}
	}()
	f()
	returned = true
}
