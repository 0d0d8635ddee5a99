package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// Verify checks one session as it is at one moment, whatever is appended
// meanwhile; see [verify.Session]. A broken chain is not an error but a report with
// a fault. Errors are [ErrNoSession], [ErrDeleted], [ErrVersion], [ErrInvalid], that of the
// context, and [ErrClosed].
func (l *Log) Verify(ctx context.Context, name string, opts verify.Options) (verify.SessionReport, error) {
	if err := l.acquire(); err != nil {
		return verify.SessionReport{}, err
	}
	defer l.release()
	return l.verify(ctx, name, opts)
}

// verify is [Log.Verify] for a caller that keeps the log open.
func (l *Log) verify(ctx context.Context, name string, opts verify.Options) (verify.SessionReport, error) {
	if err := verify.CheckOptions(opts); err != nil {
		return verify.SessionReport{}, err
	}
	number, ok, err := keyspace.SessionNumber(l.db, name)
	if err != nil {
		return verify.SessionReport{}, err
	}
	if !ok {
		if t, deleted, err := keyspace.FindTombstone(l.db, name); deleted || err != nil {
			return verify.SessionReport{}, cmp.Or(err, error(&DeletedError{t}))
		}
		if lost := l.lostReport(name); lost != nil {
			return *lost, nil
		}
		return verify.SessionReport{}, fmt.Errorf("%w: %q", ErrNoSession, name)
	}
	snap := l.db.NewSnapshot()
	r, err := verify.Session(ctx, verify.StoredSession{
		Reader: snap, Name: name, Number: number,
		Around: func(ctx context.Context, from Seq) (verify.StoredKeys, error) {
			it, err := l.readAround(ctx, number)
			if err != nil {
				return nil, err
			}
			it.SeekLE(keyspace.BatchKey(nil, number, max(from, 1)-1), keyspace.BatchesOf(number).LowerBound)
			return it, nil
		},
		Noted:   l.unreadEnds[number],
		LostEnd: func(end Head) *verify.Fault { return l.lostFault(name, end) },
	}, opts)
	return r, errors.Join(err, snap.Close())
}

// Survey finds faults of the store that [Log.Verify], which follows one session,
// cannot see; see [verify.Store].
func (l *Log) Survey(ctx context.Context) ([]verify.StoreFault, error) {
	if err := l.acquire(); err != nil {
		return nil, err
	}
	defer l.release()
	snap := l.db.NewSnapshot()
	faults, err := verify.Store(ctx, snap)
	if err := errors.Join(err, snap.Close()); err != nil {
		return nil, err
	}
	return faults, nil
}

// RebuildKeys verifies a session's chain and then rebuilds the records of its
// idempotency keys from the keys that its entries carry. The Report is that of the
// verification. Afterwards its Keys are corrected, except repeated ones: the chain
// keeps both batches, and the first stays the outcome. A chain with a fault changes
// nothing and is [ErrCorrupt]. Other errors: [ErrNoSession], [ErrReadOnly], those
// of the context and of the write. Appends to the session wait meanwhile.
func (l *Log) RebuildKeys(ctx context.Context, name string, opts verify.Options) (verify.SessionReport, error) {
	if err := l.acquire(); err != nil {
		return verify.SessionReport{}, err
	}
	defer l.release()
	if err := l.writable(); err != nil {
		return verify.SessionReport{}, err
	}
	report, err := l.verify(ctx, name, opts)
	switch {
	case err != nil:
		return report, err
	case report.Fault != nil:
		return report, fmt.Errorf("%w: the chain of session %q is broken at entry %d: its idempotency records were left as they are", ErrCorrupt, name, report.Fault.Seq)
	}
	s, err := l.Session(name)
	if err != nil {
		return report, err
	}
	s.mu.Lock() // no round runs, so no entry is appended behind those that were read
	defer s.mu.Unlock()
	b := &keyBuilder{log: l, number: s.number, batch: l.db.NewIndexedBatch()}
	defer b.close()
	if err := keyspace.EachCarriedKey(ctx, l.db, s.number, b.carried); err != nil {
		return report, err
	}
	if err := b.write(); err != nil {
		return report, err
	}
	if err := keyspace.EachOutcome(ctx, l.db, s.number, b.recorded); err != nil {
		return report, err
	}
	return report, b.write()
}

// keyBuilder corrects records. It writes them in pieces; a crash between two pieces
// leaves some records corrected and the others as they were.
type keyBuilder struct {
	log    *Log
	number uint32
	batch  *pebble.Batch // indexed, so that reading it sees its own changes
}

// maxKeyBatch bounds a piece, in bytes.
const maxKeyBatch = 1 << 20

// carried gives the key of an entry its record, unless an earlier entry has the
// key.
func (b *keyBuilder) carried(key []byte, want keyspace.KeyOutcome) error {
	have, found, err := keyspace.FindOutcome(b.batch, b.number, string(key))
	if err != nil || found && have == want {
		return err
	}
	if found && have.First < want.First {
		if holds, err := have.Holds(b.batch, b.number, key); err != nil || holds {
			return err
		}
	}
	return b.change(b.batch.Set(keyspace.OutcomeKey(b.number, string(key)), keyspace.AppendOutcome(nil, want.First, want.Head), nil))
}

// recorded deletes a record that no entry confirms. All keys that entries carry
// have their records by now.
func (b *keyBuilder) recorded(key, record []byte) error {
	holds, err := keyspace.DecodeOutcome(record).Holds(b.log.db, b.number, key)
	if err != nil || holds {
		return err
	}
	return b.change(b.batch.Delete(keyspace.OutcomeKey(b.number, string(key)), nil))
}

func (b *keyBuilder) change(err error) error {
	if err != nil {
		return fmt.Errorf("eventlog: rebuild keys: %w", err)
	}
	if b.batch.Len() < maxKeyBatch {
		return nil
	}
	return b.write()
}

// write makes the changes durable.
func (b *keyBuilder) write() error {
	if b.batch.Count() == 0 {
		return nil
	}
	if err := b.log.writeSync(b.batch, true); err != nil {
		b.batch = nil // its sync may never end, so the store may still use it
		return err
	}
	b.close()
	b.batch = b.log.db.NewIndexedBatch()
	return nil
}

// close releases the batch, whose written part is durable.
func (b *keyBuilder) close() {
	if b.batch != nil {
		_ = b.batch.Close()
	}
}
