package eventlog

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// Round collects the batches of one write to the store. It is valid inside the
// function that it was passed to.
type Round struct {
	session *Session
	batch   *pebble.Batch      // nil before the first Stage
	keys    map[string]*Ticket // staged in this round; nil before the first
	commit  *commit
	number  uint32
	batches int
	entries int
	bytes   int
	running *turn // the turn whose function runs
	flies   bool  // the store has it, and a writer of the round waits for the disk
	exited  bool  // a function ended the goroutine that leads the round
	then    []afterwards
}

// afterwards is a function of a turn that runs once the store has the round.
type afterwards struct {
	turn *turn
	f    func()
}

// Then registers f to run when the store has the round, while the disk works and
// possibly beside later rounds. It is the place for consequences of an append that
// need not precede the next one. If the store refuses the round, f does not run.
func (r *Round) Then(f func()) { r.then = append(r.then, afterwards{r.running, f}) }

// Stage adds a batch to the round and gives it its place. Errors are those of
// [Session.Append]; they leave the round as it was.
func (r *Round) Stage(b Batch) (*Ticket, error) {
	s := r.session
	l := s.log
	if err := l.writable(); err != nil {
		return nil, err
	}
	if err := s.deletedErr(); err != nil {
		return nil, err
	}
	if s.misfit != nil {
		return nil, s.misfit
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
	t := &Ticket{session: s, first: s.head.Seq + 1, at: b.Drafts[len(b.Drafts)-1].At}
	t.sealed, t.head = chain.AppendBatch(s.sealed.room(chain.SealedSize(b.Drafts, b.Key)), s.head, b.Drafts, b.Key)
	if err := r.set(t, b.Key); err != nil {
		return nil, err
	}
	s.sealed.take(t.sealed)
	s.head, s.at = t.head, t.at
	return t, nil
}

// Repeat returns the first outcome of an idempotency key, or nil if the session has
// not recorded it. [Round.Stage] calls it, unless [Batch.Fresh] is set.
func (r *Round) Repeat(key string) (*Ticket, error) {
	if key == "" {
		return nil, nil
	}
	if t := r.keys[key]; t != nil {
		return &Ticket{session: r.session, commit: r.commit, first: t.first, head: t.head}, nil
	}
	if err := r.session.deletedErr(); err != nil {
		return nil, err
	}
	if r.session.number == 0 {
		return nil, nil
	}
	o, ok, err := keyspace.FirstAppend(r.session.log.db, r.session.number, key)
	if err != nil || !ok {
		return nil, err
	}
	first, head := o.First, o.Head
	// An outcome is written with its entries, so none names an entry behind the
	// newest one. A ticket for such an entry would wait forever.
	if last := r.session.head.Seq; first == 0 || first > head.Seq || head.Seq > last {
		return nil, fmt.Errorf("%w: session %q: the outcome of key %q is entries %d to %d, and the session ends with entry %d",
			ErrCorrupt, r.session.name, key, first, head.Seq, last)
	}
	return &Ticket{session: r.session, first: first, head: head}, nil
}

// set puts a sealed batch, and the outcome of its key, into the round's write.
func (r *Round) set(t *Ticket, key string) error {
	s := r.session
	l := s.log
	if r.batch == nil {
		number := s.number
		if number == 0 {
			var err error
			if number, err = l.reserveNumber(); err != nil {
				return fmt.Errorf("eventlog: append: %w", err)
			}
		}
		r.number = number
		r.batch = l.db.NewBatchWithSize(len(t.sealed) + 64)
		r.commit = &commit{session: s, batch: r.batch, handed: make(chan struct{}), done: make(chan struct{})}
		if s.number == 0 {
			if err := r.batch.Set(keyspace.SessionKey(s.name), binary.BigEndian.AppendUint32(nil, r.number), nil); err != nil {
				return fmt.Errorf("eventlog: append: %w", err)
			}
		}
	}
	var scratch [keyspace.BatchKeySize]byte
	err := r.batch.Set(keyspace.BatchKey(scratch[:0], r.number, t.first), t.sealed, nil)
	if err == nil && key != "" {
		err = r.batch.Set(keyspace.OutcomeKey(r.number, key), keyspace.AppendOutcome(nil, t.first, t.head), nil)
		if r.keys == nil {
			r.keys = make(map[string]*Ticket)
		}
		r.keys[key] = t
	}
	if err != nil {
		return fmt.Errorf("eventlog: append: %w", err)
	}
	t.commit = r.commit
	r.batches++
	r.entries += int(t.head.Seq-t.first) + 1
	r.bytes += len(t.sealed)
	return nil
}

// apply hands the round to the store. From here on the whole round is in the log if
// the sync that [commit.wait] waits for succeeds. A crash before that sync leaves
// the whole round or nothing, since it is one record of the store's write-ahead
// log.
func (r *Round) apply() error {
	if r.batch == nil {
		return nil // no function staged a batch
	}
	s := r.session
	l := s.log
	defer close(r.commit.handed)
	r.commit.durable = durable{r.number, s.head, s.at}
	r.commit.measure = r.measure()
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	// Checked again, because under applyMu no other write can fail in between.
	if err := l.writable(); err != nil {
		return r.commit.abandon(err)
	}
	if err := l.notes.mark(r.batch.Set); err != nil {
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
