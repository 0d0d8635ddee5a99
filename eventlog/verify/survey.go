package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// StoreFaultKind is the way in which a store is wrong outside its chains.
type StoreFaultKind string

// The kinds of [StoreFault].
const (
	// StoreBadRecord: a session record cannot be read: no session can have its
	// name, or it holds no session number.
	StoreBadRecord StoreFaultKind = "bad session record"

	// StoreEmptySession: a session record stands without any entry. The first
	// batch is written together with the record, so its entries are gone.
	StoreEmptySession StoreFaultKind = "session without entries"

	// StoreSharedNumber: two or more session records have one number, so that
	// they lead to the same entries.
	StoreSharedNumber StoreFaultKind = "shared session number"

	// StoreOrphanedBatches: entries stand under a number that no session
	// record has.
	StoreOrphanedBatches StoreFaultKind = "orphaned entries"

	// StoreOrphanedKeys: outcomes of idempotency keys stand under a number
	// that no session record has.
	StoreOrphanedKeys StoreFaultKind = "orphaned idempotency records"

	// StoreBadKey: a key of the store has the tag of entries or of outcomes,
	// but not their form.
	StoreBadKey StoreFaultKind = "malformed key"

	// StoreUnreadable: a part of the store cannot be read. Its contents and the
	// keys behind it were not checked.
	StoreUnreadable StoreFaultKind = "unreadable"
)

// StoreFault is a part of a store that belongs to no session, or to more than
// one.
type StoreFault struct {
	Kind    StoreFaultKind
	Session string // the name of the session record; empty where there is none
	Number  uint32 // the session number; 0 where there is none
	Detail  string // for people
}

// String describes the fault for people.
func (f *StoreFault) String() string { return fmt.Sprintf("%s: %s", f.Kind, f.Detail) }

// maxStoreFaults bounds the faults that [Store] lists: a hostile store must not
// fill the memory with them.
const maxStoreFaults = keyspace.MaxBadRecords

// Store finds faults that [Session], which follows one chain, cannot see: session
// records that cannot be read, that lead to no entries or to those of another
// session, and entries and outcomes that no session record leads to. It reads no
// entries, and takes a few look-ups for each session. It returns at most 1,000
// faults.
func Store(ctx context.Context, reader pebble.Reader) ([]StoreFault, error) {
	s := &survey{reader: reader}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.faults, nil
}

// survey is one run of [Store].
type survey struct {
	reader pebble.Reader
	faults []StoreFault
}

func (s *survey) found(f StoreFault) {
	if len(s.faults) < maxStoreFaults {
		s.faults = append(s.faults, f)
	}
}

func (s *survey) run(ctx context.Context) error {
	records, err := keyspace.ReadRecords(s.reader)
	if err != nil {
		return err
	}
	infos := records.Sessions
	for _, b := range records.Bad {
		s.found(StoreFault{StoreBadRecord, b.Name, b.Number, fmt.Sprintf("the record of session %q: %v", b.Name, b.Err)})
	}
	known := make(map[uint32]bool, len(infos)) // by number: whether it has entries
	for i, info := range infos {
		known[info.Number] = false
		other := ""
		if i > 0 && infos[i-1].Number == info.Number {
			other = infos[i-1].Name
		} else if i+1 < len(infos) && infos[i+1].Number == info.Number {
			other = infos[i+1].Name
		} else {
			continue
		}
		s.found(StoreFault{
			StoreSharedNumber, info.Name, info.Number,
			fmt.Sprintf("the record of session %q has the number %d, as that of session %q has", info.Name, info.Number, other),
		})
	}
	under := s.deleted(records, known)
	err = s.numbers(ctx, keyspace.TagBatch, func(number uint32, it *pebble.Iterator) error {
		if _, ok := known[number]; ok {
			known[number] = true
			return nil
		}
		first, _ := keyspace.BatchSeq(it.Key())
		s.found(StoreFault{
			StoreOrphanedBatches, "", number,
			fmt.Sprintf("entries from %d on stand under the number %d, %s", first, number, under(number)),
		})
		return nil
	})
	unreadable := s.unreadable(err)
	if err != nil && !unreadable {
		return err
	}
	for _, info := range infos {
		if unreadable {
			break // the part that cannot be read may hold an entry
		}
		if !known[info.Number] {
			s.found(StoreFault{
				StoreEmptySession, info.Name, info.Number,
				fmt.Sprintf("session %q has a record, but no entries", info.Name),
			})
		}
	}
	err = s.numbers(ctx, keyspace.TagOutcome, func(number uint32, it *pebble.Iterator) error {
		if _, ok := known[number]; !ok {
			s.found(StoreFault{
				StoreOrphanedKeys, "", number,
				fmt.Sprintf("the outcome of key %q and perhaps of others stands under the number %d, %s", it.Key()[keyspace.NumberedSize:], number, under(number)),
			})
		}
		return nil
	})
	if s.unreadable(err) {
		return nil
	}
	return err
}

// deleted finds the tombstones whose number a session has. It returns a function that
// describes, for a message, a number that no session has.
func (s *survey) deleted(records keyspace.Records, known map[uint32]bool) func(number uint32) string {
	names := make(map[uint32]string, len(records.Tombstones))
	for _, t := range records.Tombstones {
		names[t.Number] = t.Session
		if _, ok := known[t.Number]; ok {
			s.found(StoreFault{
				StoreSharedNumber, t.Session, t.Number,
				fmt.Sprintf("the tombstone of session %q has the number %d of a session", t.Session, t.Number),
			})
		}
	}
	return func(number uint32) string {
		if name, ok := names[number]; ok {
			return fmt.Sprintf("which is that of the deleted session %q", name)
		}
		return "which no session record has"
	}
}

// unreadable records that reading stopped at damage, if err says so.
func (s *survey) unreadable(err error) bool {
	if !errors.Is(err, chain.ErrCorrupt) {
		return false
	}
	s.found(StoreFault{Kind: StoreUnreadable, Detail: keyspace.FirstLine(err)})
	return true
}

// numbers calls f once for each session number that keys of that tag have, with
// an iterator at the first of them that is well formed, if any is. It steps
// from number to number and does not read the keys between.
func (s *survey) numbers(ctx context.Context, tag byte, f func(number uint32, it *pebble.Iterator) error) error {
	it, err := s.reader.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: []byte{tag}, UpperBound: []byte{tag + 1}})
	if err != nil {
		return keyspace.ReadError("survey the store", err)
	}
	for ok := it.First(); ok; {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, it.Close())
		}
		number, numbered := keyspace.Number(it.Key())
		if !numbered || tag == keyspace.TagBatch && len(it.Key()) != keyspace.BatchKeySize {
			s.found(StoreFault{StoreBadKey, "", number, fmt.Sprintf("%x is not a key of a session", it.Key())})
			ok = it.Next()
			continue
		}
		if err := f(number, it); err != nil {
			return errors.Join(err, it.Close())
		}
		if number == math.MaxUint32 {
			break
		}
		ok = it.SeekGE(binary.BigEndian.AppendUint32([]byte{tag}, number+1))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return keyspace.ReadError("survey the store", err)
	}
	return nil
}
