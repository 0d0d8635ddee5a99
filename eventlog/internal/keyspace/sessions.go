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

// MaxBadRecords bounds the bad records that [Sessions] lists: a hostile store
// must not fill the memory with them.
const MaxBadRecords = 1000

// Sessions reads all session records: the valid ones by number and name, and the
// first of the others.
func Sessions(reader pebble.Reader) (sessions []SessionRecord, bad []BadRecord, err error) {
	it, err := reader.NewIter(&pebble.IterOptions{LowerBound: []byte{TagSession}, UpperBound: []byte{TagSession + 1}})
	if err != nil {
		return nil, nil, fmt.Errorf("eventlog: list sessions: %w", err)
	}
	for it.First(); it.Valid(); it.Next() {
		name := string(it.Key()[1:])
		number, err := recordNumber(it.Value())
		if err == nil {
			err = chain.CheckName(name)
		}
		if err == nil {
			sessions = append(sessions, SessionRecord{name, number})
		} else if len(bad) < MaxBadRecords {
			bad = append(bad, BadRecord{name, number, err})
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, nil, ReadError("list sessions", err)
	}
	slices.SortFunc(sessions, func(a, b SessionRecord) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	return sessions, bad, nil
}

// SessionNumber looks a name up; ok is false when no such session exists.
func SessionNumber(reader pebble.Reader, name string) (number uint32, ok bool, err error) {
	v, closer, err := reader.Get(SessionKey(name))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, ReadError("look up session "+name, err)
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
