package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// This file classifies a link that does not hold. It runs once, for the first bad
// entry, and may read the whole store.
//
// An unchanged entry still fits the hash it was chained to. If that hash stands in
// this session, the entry was moved; if in another session, it was copied from
// there; if in neither, its bytes or its hash were changed.

// diagnose returns the fault at link i of b, whose stored bytes and hash do not
// follow from at.
func (v *verifier) diagnose(ctx context.Context, at chain.Head, b chain.Sealed, i int, stored []byte, hash chain.Hash) (*Fault, error) {
	seq := at.Seq + 1
	origin, err := v.origin(ctx, stored, hash)
	if err != nil {
		return nil, err
	}
	if origin != nil {
		return origin.fault(seq, v.name), nil
	}
	// Entries taken out of a batch leave it shorter than its count says, or
	// leave a gap before the next batch; the remaining links still hold together.
	rest, links, holds := b, i+1, true
	for links < b.Count && holds {
		next, _, h, err := rest.Next()
		if err != nil {
			break
		}
		holds = links > i+1 || chain.Link(hash, next) == *h
		links++
	}
	after, ok, err := v.nextKey(b.First)
	if err != nil {
		return nil, err
	}
	if holds && len(rest.Rest) == 0 && wholeEntry(stored) && (links < b.Count || ok && after > b.First+chain.Seq(links)) {
		return &Fault{seq, FaultMissing, "the entry at its place belongs behind one that is gone"}, nil
	}
	return &Fault{seq, FaultAltered, "its bytes do not give its hash"}, nil
}

// wholeEntry reports whether stored bytes are those of an entry: with another
// length in front of it, an entry takes in the ones behind it.
func wholeEntry(stored []byte) bool {
	_, n := binary.Uvarint(stored)
	if n <= 0 {
		return false
	}
	var e chain.Entry
	if err := chain.DecodeBody(&e, stored[n:]); err != nil {
		return false
	}
	rest, err := msgp.Skip(e.Data)
	return err == nil && len(rest) == 0
}

// misplaced returns the fault of a batch that stands at the place of seq and
// whose header names another Seq.
func (v *verifier) misplaced(ctx context.Context, seq chain.Seq, b chain.Sealed) (*Fault, error) {
	claimed := b.First
	if stored, _, hash, err := b.Next(); err == nil {
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

// short returns the fault of a batch whose link i cannot be read. The links before
// it hold, up to at.
func (v *verifier) short(at chain.Head, b chain.Sealed, i int, cause error) (*Fault, error) {
	seq := at.Seq + 1
	if len(b.Rest) > 0 {
		return &Fault{seq, FaultAltered, cause.Error()}, nil
	}
	// Either the entry was taken out of the batch, or the count in the header
	// was raised. Nothing is missing if the next batch begins with that entry, or
	// if the outcome of the batch's key ends here.
	next, ok, err := v.nextKey(b.First)
	if err != nil {
		return nil, err
	}
	if ok && next == seq || !ok && v.recordedEnd(b.First) == at {
		return miscounted(b, i), nil
	}
	return &Fault{seq, FaultMissing, "its batch ends before it"}, nil
}

// recordedEnd returns the end of the batch that begins at first, according to the
// outcome of its idempotency key; a zero Head if there is none.
func (v *verifier) recordedEnd(first chain.Seq) chain.Head {
	value, closer, err := v.reader.Get(keyspace.BatchKey(nil, v.number, first))
	if err != nil {
		return chain.Head{}
	}
	defer func() { _ = closer.Close() }() // it was only read
	var e chain.Entry
	b, err := chain.OpenBatch(value)
	if err == nil {
		var body []byte
		if _, body, _, err = b.Next(); err == nil {
			err = chain.DecodeBody(&e, body)
		}
	}
	if err != nil || e.Key == "" {
		return chain.Head{}
	}
	record, found, err := keyspace.FindOutcome(v.reader, v.number, e.Key)
	if err != nil || !found || record.Malformed || record.First != first {
		return chain.Head{}
	}
	return record.Head
}

// behind returns the fault of a batch with bytes behind its last entry, which is
// at. They are either the next entry, and the count in the header was lowered, or
// garbage.
func behind(at chain.Head, b chain.Sealed) *Fault {
	rest, prev, more := b, at.Hash, 0
	for len(rest.Rest) > 0 {
		stored, _, hash, err := rest.Next()
		if err != nil || chain.Link(prev, stored) != *hash {
			break
		}
		prev = *hash
		more++
	}
	if more > 0 {
		return miscounted(b, b.Count+more)
	}
	return &Fault{at.Seq, FaultTrailing, fmt.Sprintf("%d bytes stand behind it", len(b.Rest))}
}

// miscounted is the fault of a batch whose header has another count than the
// number of its entries. Like any change of the header it is a fault of the
// batch's first entry.
func miscounted(b chain.Sealed, holds int) *Fault {
	return &Fault{b.First, FaultAltered, fmt.Sprintf("the header of the batch that begins with it says %d entries, and %d stand in it", b.Count, holds)}
}

// origin is the position that an entry was chained to.
type origin struct {
	session string
	head    chain.Head
}

func (o *origin) fault(seq chain.Seq, session string) *Fault {
	if o.session == session {
		return &Fault{seq, FaultReordered, fmt.Sprintf("the entry at its place was written as entry %d", o.head.Seq+1)}
	}
	return &Fault{seq, FaultForeign, fmt.Sprintf("the entry at its place was written as entry %d of session %q", o.head.Seq+1, o.session)}
}

// origin searches for the hash that stored was chained to, in this session first.
func (v *verifier) origin(ctx context.Context, stored []byte, hash chain.Hash) (*origin, error) {
	sessions, _, err := keyspace.Sessions(v.reader)
	if err != nil {
		return nil, err
	}
	if head, ok, err := v.predecessor(ctx, keyspace.SessionRecord{Name: v.name, Number: v.number}, stored, hash); err != nil || ok {
		return &origin{v.name, head}, err
	}
	for _, other := range sessions {
		if other.Name == v.name {
			continue
		}
		if head, ok, err := v.predecessor(ctx, other, stored, hash); err != nil || ok {
			return &origin{other.Name, head}, err
		}
	}
	return nil, nil
}

// predecessor searches a session for the position that stored was chained to.
func (v *verifier) predecessor(ctx context.Context, in keyspace.SessionRecord, stored []byte, hash chain.Hash) (chain.Head, bool, error) {
	candidate := chain.Head{Hash: chain.Genesis(in.Name)}
	if chain.Link(candidate.Hash, stored) == hash {
		return candidate, true, nil
	}
	it, err := keyspace.SeekBatch(ctx, v.reader, in.Number, 1)
	if err != nil {
		return chain.Head{}, false, keyspace.ReadError("verify", err)
	}
	for ; it.Valid(); it.Next() {
		if ctx.Err() != nil {
			return chain.Head{}, false, errors.Join(ctx.Err(), it.Close())
		}
		b, err := chain.OpenBatch(it.Value())
		if err != nil {
			continue // another fault; only a good link can be the predecessor
		}
		for i := range b.Count {
			_, _, h, err := b.Next()
			if err != nil {
				break
			}
			if chain.Link(*h, stored) == hash {
				return chain.Head{Seq: b.First + chain.Seq(i), Hash: *h}, true, it.Close()
			}
		}
	}
	// An unreadable stretch only means that nothing was found in it: the error,
	// which Close repeats, is dropped.
	_ = it.Close()
	return chain.Head{}, false, nil
}

// nextKey returns where the batch after the one at seq begins.
func (v *verifier) nextKey(seq chain.Seq) (chain.Seq, bool, error) {
	if seq == math.MaxUint64 {
		return 0, false, nil
	}
	it, err := v.reader.NewIter(keyspace.BatchesOf(v.number))
	if err != nil {
		return 0, false, keyspace.ReadError("verify", err)
	}
	var next chain.Seq
	ok := it.SeekGE(keyspace.BatchKey(nil, v.number, seq+1))
	if ok {
		next, ok = keyspace.BatchSeq(it.Key())
	}
	return next, ok, it.Close()
}
