package keyspace

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// SessionRecord is the record of one session.
type SessionRecord struct {
	Name   string
	Number uint32 // ascends in the order in which sessions began
}

// BadRecord is a session record that cannot be read.
type BadRecord struct {
	Name   string
	Number uint32 // 0 where the record holds none
	Err    error
}

// MaxBadRecords bounds the bad records that [ReadRecords] lists: a hostile store
// must not fill the memory with them.
const MaxBadRecords = 1000

// Records are the session records of a store.
type Records struct {
	Sessions   []SessionRecord // by number and name
	Tombstones []Tombstone     // of deleted sessions, by number and name
	Bad        []BadRecord     // the first of those that cannot be read
}

// ReadRecords reads all session records.
func ReadRecords(reader pebble.Reader) (r Records, err error) {
	it, err := reader.NewIter(&pebble.IterOptions{LowerBound: []byte{TagSession}, UpperBound: []byte{TagSession + 1}})
	if err != nil {
		return Records{}, fmt.Errorf("eventlog: list sessions: %w", err)
	}
	for it.First(); it.Valid(); it.Next() {
		r.add(string(it.Key()[1:]), it.Value())
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return Records{}, ReadError("list sessions", err)
	}
	slices.SortFunc(r.Sessions, func(a, b SessionRecord) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(r.Tombstones, func(a, b Tombstone) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Session, b.Session))
	})
	return r, nil
}

// add adds one record.
func (r *Records) add(name string, value []byte) {
	err := chain.CheckName(name)
	var number uint32
	var tomb Tombstone
	var bad error
	if IsTombstone(value) {
		tomb, bad = decodeTombstone(name, value)
		number = tomb.Number
	} else {
		number, bad = recordNumber(value)
	}
	switch err = cmp.Or(bad, err); {
	case err != nil && len(r.Bad) < MaxBadRecords:
		r.Bad = append(r.Bad, BadRecord{name, number, err})
	case err != nil:
	case tomb.Number != 0:
		r.Tombstones = append(r.Tombstones, tomb)
	default:
		r.Sessions = append(r.Sessions, SessionRecord{name, number})
	}
}

// Sessions reads all session records: the valid ones by number and name, and the
// first of the others. Tombstones are left out.
func Sessions(reader pebble.Reader) (sessions []SessionRecord, bad []BadRecord, err error) {
	r, err := ReadRecords(reader)
	return r.Sessions, r.Bad, err
}

// SessionNumber looks a name up; ok is false when no such session exists, also if it was
// deleted.
func SessionNumber(reader pebble.Reader, name string) (number uint32, ok bool, err error) {
	v, closer, err := reader.Get(SessionKey(name))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, ReadError("look up session "+name, err)
	}
	if IsTombstone(v) {
		return 0, false, closer.Close()
	}
	number, err = recordNumber(v)
	if err != nil {
		err = fmt.Errorf("%w: the record of session %q: %w", chain.ErrCorrupt, name, err)
	}
	return number, err == nil, errors.Join(err, closer.Close())
}

// recordNumber reads the number in a session record.
func recordNumber(v []byte) (uint32, error) {
	if len(v) != 4 {
		return 0, fmt.Errorf("it has %d bytes, want 4", len(v))
	}
	number := binary.BigEndian.Uint32(v)
	if number == 0 || number == math.MaxUint32 {
		return 0, fmt.Errorf("no session has the number %d", number)
	}
	return number, nil
}

// LastNumber returns the greatest session number of a key with that tag, and 0
// if no key has one.
func LastNumber(reader pebble.Reader, tag byte) (number uint32, err error) {
	it, err := reader.NewIter(&pebble.IterOptions{LowerBound: []byte{tag}, UpperBound: []byte{tag + 1}})
	if err != nil {
		return 0, ReadError("find the last session number", err)
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		if n, numbered := Number(it.Key()); numbered {
			number = n
			break
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return 0, ReadError("find the last session number", err)
	}
	return number, nil
}
