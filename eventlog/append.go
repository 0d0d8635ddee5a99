package eventlog

import (
	"context"
	"fmt"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// Batch is the content of one append: one or more entries, all or none.
type Batch struct {
	// Drafts are the entries in order. At least one.
	Drafts []Draft

	// Expect, unless zero, is the Head that the session must have. Another Head
	// is a [ConflictError].
	Expect Head

	// Key, unless empty, makes the append idempotent: if the session has
	// recorded the key before, nothing is written and the first outcome is
	// returned, regardless of the drafts and of Expect. At most [MaxKey] bytes.
	Key string

	// Fresh says that the same function has called [Round.Repeat] with the key
	// in this round, with nil for an answer. Stage then does not look it up again.
	Fresh bool
}

// Append writes a batch and returns the Head behind it once it is durable.
//
// If the session has recorded b.Key before, Append writes nothing and returns the
// Head behind the first append with that key. Errors: [ErrInvalid],
// [ErrTooLarge], [ErrConflict], [ErrClaimed], [ErrDeleted], [ErrReadOnly], [ErrClosed], and that of
// ctx, which ends every wait. After a failed write the outcome is unknown until the log
// is opened again; after the error of ctx, until the batch is durable or the write
// has failed. Append again then with the same Key.
func (s *Session) Append(ctx context.Context, b Batch) (Head, error) {
	if s.claimed() {
		return Head{}, ErrClaimed
	}
	if err := s.log.acquire(); err != nil {
		return Head{}, err
	}
	defer s.log.release()
	t, err := s.inRound(ctx, nil, b, true)
	if err != nil {
		return Head{}, err
	}
	return t.Wait(ctx) // returns at once, unless b repeats an earlier round
}

// checkDrafts refuses drafts that no log may hold, before they are sealed.
func checkDrafts(b *Batch, cfg *Config, last time.Duration) error {
	if len(b.Drafts) == 0 {
		return fmt.Errorf("%w: a batch needs at least one entry", ErrInvalid)
	}
	if len(b.Drafts) > MaxBatchEntries {
		return fmt.Errorf("%w: batch has %d entries, at most %d are allowed", ErrTooLarge, len(b.Drafts), MaxBatchEntries)
	}
	if len(b.Key) > MaxKey {
		return fmt.Errorf("%w: idempotency key has %d bytes, at most %d are allowed", ErrTooLarge, len(b.Key), MaxKey)
	}
	total := 0
	for i := range b.Drafts {
		d := &b.Drafts[i]
		if !d.Kind.Valid() {
			return fmt.Errorf("%w: entry %d of the batch has no valid kind (%d)", ErrInvalid, i+1, d.Kind)
		}
		if d.At < last {
			return fmt.Errorf("%w: entry %d of the batch goes back in session time, from %v to %v", ErrInvalid, i+1, last, d.At)
		}
		last = d.At
		if rest, err := msgp.Skip(d.Data); err != nil || len(rest) != 0 {
			return fmt.Errorf("%w: entry %d of the batch does not hold one whole msgpack value", ErrInvalid, i+1)
		}
		if size := len(d.Data) + chain.MaxBodyOverhead + len(b.Key); size > cfg.MaxEntry {
			return fmt.Errorf("%w: entry %d of the batch takes %d bytes, at most %d are allowed", ErrTooLarge, i+1, size, cfg.MaxEntry)
		}
		total += len(d.Data) + chain.MaxBatchOverhead
	}
	if total > cfg.MaxBatch {
		return fmt.Errorf("%w: batch takes %d bytes, at most %d are allowed", ErrTooLarge, total, cfg.MaxBatch)
	}
	return nil
}
