package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// This file tells what happened to a link that does not hold. It runs once,
// for the first bad entry, and may read the whole store to find out.
//
// The means: an entry that was not changed still fits the hash it was
// chained to. If that hash is found in this session, the entry was
// moved; if in another session, it was brought in from there; if nowhere, its
// bytes or its hash were changed.

// diagnose names the kind of the fault at link i of b, whose stored bytes and
// hash do not follow from at.
func (v *verifier) diagnose(ctx context.Context, at Head, b sealed, i int, stored []byte, hash Hash) (*Fault, error) {
	seq := at.Seq + 1
	origin, err := v.origin(ctx, stored, hash)
	if err != nil {
		return nil, err
	}
	if origin != nil {
		return origin.fault(seq, v.name), nil
	}
	// Entries taken out of a batch leave it shorter than its count says, or
	// leave a gap before the next batch; what is left in it still holds together.
	rest, links, holds := b, i+1, true
	for links < b.count && holds {
		next, _, h, err := rest.link()
		if err != nil {
			break
		}
		holds = links > i+1 || Link(hash, next) == *h
		links++
	}
	after, ok, err := v.nextKey(b.first)
	if err != nil {
		return nil, err
	}
	if holds && len(rest.rest) == 0 && (links < b.count || ok && after > b.first+Seq(links)) {
		return &Fault{seq, FaultMissing, "the entry at its place belongs behind one that is gone"}, nil
	}
	return &Fault{seq, FaultAltered, "its bytes do not give its hash"}, nil
}

// misplaced names the fault of a batch that stands at the place of seq but
// says it begins elsewhere.
func (v *verifier) misplaced(ctx context.Context, seq Seq, b sealed) (*Fault, error) {
	claimed := b.first
	if stored, _, hash, err := b.link(); err == nil {
		origin, err := v.origin(ctx, stored, *hash)
		if err != nil {
			return nil, err
		}
		// If the entry belongs here, only the Seq in the header is wrong.
		if origin != nil && (origin.session != v.name || origin.head.Seq+1 != seq) {
			return origin.fault(seq, v.name), nil
		}
	}
	return &Fault{seq, FaultAltered, fmt.Sprintf("the batch at its place says that it begins with entry %d", claimed)}, nil
}

// short names the fault of a batch that ends before its count is reached.
func (v *verifier) short(_ context.Context, at Head, seq Seq, b sealed, cause error) (*Fault, error) {
	if at.Seq+1 != seq {
		seq = at.Seq + 1
	}
	if len(b.rest) == 0 {
		return &Fault{seq, FaultMissing, "its batch ends before it"}, nil
	}
	return &Fault{seq, FaultAltered, cause.Error()}, nil
}

// origin is the link that an entry was chained to.
type origin struct {
	session string
	head    Head
}

func (o *origin) fault(seq Seq, session string) *Fault {
	if o.session == session {
		return &Fault{seq, FaultReordered, fmt.Sprintf("what stands at its place was written as entry %d", o.head.Seq+1)}
	}
	return &Fault{seq, FaultForeign, fmt.Sprintf("what stands at its place was written as entry %d of session %q", o.head.Seq+1, o.session)}
}

// origin looks for the hash that stored was chained to, in this session first.
func (v *verifier) origin(ctx context.Context, stored []byte, hash Hash) (*origin, error) {
	infos, err := v.log.Sessions()
	if err != nil {
		return nil, err
	}
	if head, ok, err := v.predecessor(ctx, SessionInfo{v.name, v.number}, stored, hash); err != nil || ok {
		return &origin{v.name, head}, err
	}
	for _, info := range infos {
		if info.Name == v.name {
			continue
		}
		if head, ok, err := v.predecessor(ctx, info, stored, hash); err != nil || ok {
			return &origin{info.Name, head}, err
		}
	}
	return nil, nil
}

func (v *verifier) predecessor(ctx context.Context, info SessionInfo, stored []byte, hash Hash) (Head, bool, error) {
	candidate := Head{0, Genesis(info.Name)}
	if Link(candidate.Hash, stored) == hash {
		return candidate, true, nil
	}
	it, err := v.log.batches(ctx, info.number, 1)
	if err != nil {
		return Head{}, false, readError("verify", err)
	}
	for ; it.Valid(); it.Next() {
		if ctx.Err() != nil {
			return Head{}, false, errors.Join(ctx.Err(), it.Close())
		}
		b, err := openBatch(it.Value())
		if err != nil {
			continue // another fault; only good links can be predecessors
		}
		for i := range b.count {
			_, _, h, err := b.link()
			if err != nil {
				break
			}
			if Link(*h, stored) == hash {
				return Head{b.first + Seq(i), *h}, true, it.Close()
			}
		}
	}
	// An unreadable stretch only means that nothing was found in it, so the
	// error that Close repeats is dropped.
	_ = it.Close()
	return Head{}, false, nil
}

// nextKey returns where the batch after the one at seq begins.
func (v *verifier) nextKey(seq Seq) (Seq, bool, error) {
	it, err := v.log.db.NewIter(&pebble.IterOptions{
		LowerBound: batchKey(nil, v.number, seq+1),
		UpperBound: batchKey(nil, v.number+1, 0),
	})
	if err != nil {
		return 0, false, readError("verify", err)
	}
	var next Seq
	ok := it.First()
	if ok {
		next, ok = keySeq(it.Key())
	}
	return next, ok, it.Close()
}

// hashAt reads the stored hash of one link.
func (v *verifier) hashAt(ctx context.Context, seq Seq) (Hash, error) {
	it, err := v.log.batches(ctx, v.number, seq)
	if err != nil {
		return Hash{}, err
	}
	hash, err := hashIn(it, seq)
	return hash, errors.Join(err, it.Close())
}

func hashIn(it *pebble.Iterator, seq Seq) (Hash, error) {
	if !it.Valid() {
		return Hash{}, &EntryError{seq, "read", ErrCorrupt}
	}
	b, err := openBatchAt(it.Key(), it.Value())
	if err != nil {
		return Hash{}, err
	}
	for i := range b.count {
		_, _, hash, err := b.link()
		if err != nil {
			return Hash{}, err
		}
		if b.first+Seq(i) == seq {
			return *hash, nil
		}
	}
	return Hash{}, &EntryError{seq, "read", ErrCorrupt}
}
