package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// KeyFaultKind is the way in which the record of an idempotency key differs from
// the entries.
type KeyFaultKind string

// The kinds of [KeyFault].
const (
	// KeyMissing: an entry carries the key, and the key has no record.
	KeyMissing KeyFaultKind = "missing record"

	// KeyWrong: the key's record is not the outcome of the first batch that
	// carries the key.
	KeyWrong KeyFaultKind = "wrong record"

	// KeyInvented: the key has a record, and no entry carries it.
	KeyInvented KeyFaultKind = "invented record"

	// KeyRepeated: a second batch carries the key. It was appended while the
	// record of the first was missing. The chain keeps both.
	KeyRepeated KeyFaultKind = "repeated key"
)

// KeyFault is a difference between the records of a session's idempotency keys and
// the keys that its entries carry. A missing record lets a repeated append be
// recorded twice; an invented one makes a new append look like a repeat.
type KeyFault struct {
	// Seq is the entry that carries the key. For an invented record it is the
	// entry that the record names, which need not exist.
	Seq    chain.Seq
	Key    string
	Kind   KeyFaultKind
	Detail string // for people
}

// String describes the fault for people.
func (f *KeyFault) String() string {
	return fmt.Sprintf("entry %d, key %q: %s: %s", f.Seq, f.Key, f.Kind, f.Detail)
}

// maxKeyFaults bounds the faults that a [SessionReport] lists.
const maxKeyFaults = 100

// maxWrongKeys bounds the wrong records that are remembered so that they are not
// listed as invented ones as well.
const maxWrongKeys = 1 << 16

// keySum is a sum over keys and their outcomes that does not depend on their
// order: the sums of the entries and of the records are equal when both hold the
// same. Its seeds are drawn for each comparison, so that no store can be made to
// fit.
type keySum struct {
	seeds [2]maphash.Seed
	sums  [2]uint64
	count uint64
}

func newKeySum() keySum {
	return keySum{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// add adds one key and its stored record.
func (s *keySum) add(key, record []byte) {
	var scratch [chain.MaxKey + 8 + 8 + chain.HashSize + 8]byte
	b := binary.BigEndian.AppendUint64(scratch[:0], uint64(len(key)))
	b = append(append(b, key...), record...)
	for i := range s.sums {
		s.sums[i] += maphash.Bytes(s.seeds[i], b)
	}
	s.count++
}

func (s *keySum) merge(o keySum) {
	for i := range s.sums {
		s.sums[i] += o.sums[i]
	}
	s.count += o.count
}

// checkKeys compares the records of a session whose chain is whole with the keys
// that its entries carry. It compares sums first, and looks each key up only if
// these differ.
func (v *verifier) checkKeys(ctx context.Context, r *SessionReport) error {
	records := keySum{seeds: v.keys.seeds}
	err := keyspace.EachOutcome(ctx, v.reader, v.number, func(key, record []byte) error {
		if len(key) > chain.MaxKey || len(record) != keyspace.OutcomeSize {
			records.count++ // no entry carries so long a key: the sums differ
			return nil
		}
		records.add(key, record)
		return nil
	})
	if err != nil || records == v.keys {
		return err
	}
	c := &keyChecker{verifier: v, report: r, wrong: make(map[uint64]struct{})}
	if err := keyspace.EachCarriedKey(ctx, v.reader, v.number, c.carried); err != nil {
		return err
	}
	return keyspace.EachOutcome(ctx, v.reader, v.number, c.recorded)
}

// keyChecker finds the faults of a session's records.
type keyChecker struct {
	*verifier
	report *SessionReport
	wrong  map[uint64]struct{} // hashes of keys whose record was reported as wrong
}

func (c *keyChecker) found(f KeyFault) {
	if c.report.KeyFaults++; len(c.report.Keys) < maxKeyFaults {
		c.report.Keys = append(c.report.Keys, f)
	}
}

// carried checks the record of a key that an entry carries.
func (c *keyChecker) carried(key []byte, want keyspace.KeyOutcome) error {
	have, found, err := keyspace.FindOutcome(c.reader, c.number, string(key))
	switch {
	case err != nil:
		return err
	case have == want && found:
		return nil
	case !found:
		c.found(KeyFault{want.First, string(key), KeyMissing, "a repeat of this append would be recorded a second time"})
		return nil
	}
	holds, err := have.Holds(c.reader, c.number, key)
	if err != nil {
		return err
	}
	if holds && have.First < want.First {
		c.found(KeyFault{want.First, string(key), KeyRepeated, fmt.Sprintf("entry %d carries it already", have.First)})
		return nil
	}
	if len(c.wrong) < maxWrongKeys {
		c.wrong[maphash.Bytes(c.keys.seeds[0], key)] = struct{}{}
	}
	c.found(KeyFault{want.First, string(key), KeyWrong, describe(have, want)})
	return nil
}

func describe(r, want keyspace.KeyOutcome) string {
	if r.Malformed {
		return "its record is not an outcome"
	}
	return fmt.Sprintf("its record says that entries %d to %v are its outcome, which are %d to %v", r.First, r.Head, want.First, want.Head)
}

// recorded checks one record.
func (c *keyChecker) recorded(key, record []byte) error {
	r := keyspace.DecodeOutcome(record)
	holds, err := r.Holds(c.reader, c.number, key)
	if err != nil || holds {
		return err
	}
	if _, named := c.wrong[maphash.Bytes(c.keys.seeds[0], key)]; !named {
		c.found(KeyFault{r.First, string(key), KeyInvented, "no entry carries the key; a new append with it would be taken for a repeat"})
	}
	return nil
}
