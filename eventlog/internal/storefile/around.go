package storefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// AroundDamage iterates over keys of a store of which some blocks cannot be read. It
// yields the keys outside of these blocks, as an iterator of Pebble would if nothing were
// damaged. It reads each table by itself, because in an iterator of Pebble one damaged
// block hides what other tables hold between the same ends.
type AroundDamage struct {
	upper   []byte
	sources []keySource
	at      int // the source with the key at which the iterator stands; -1 at the end
	err     error
}

// keySource is a table, or what is in no table yet.
type keySource interface {
	SeekGE(key []byte) bool
	SeekLE(key []byte) bool
	Next() bool
	Valid() bool
	Key() []byte
	Value() []byte
	IsSet() bool
	SeqNum() uint64
	Error() error
	Close() error
}

// ReadAround returns an iterator over the keys of db within bounds, which stands at none.
// disk and dir hold the tables of db.
func ReadAround(ctx context.Context, db *pebble.DB, disk vfs.FS, dir string, bounds *pebble.IterOptions) (*AroundDamage, error) {
	a := &AroundDamage{upper: bounds.UpperBound, at: -1}
	// The memtables come first: what is flushed meanwhile is then met twice, not missed.
	fresh, err := db.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: bounds.LowerBound, UpperBound: bounds.UpperBound,
		PointKeyFilters: []pebble.BlockPropertyFilter{noTable{}},
	})
	if err != nil {
		return nil, err
	}
	a.sources = append(a.sources, unflushed{fresh})
	levels, err := db.SSTables()
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	for _, level := range levels {
		for _, info := range level {
			if bytes.Compare(info.Largest.UserKey, bounds.LowerBound) < 0 || bytes.Compare(info.Smallest.UserKey, bounds.UpperBound) >= 0 {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, errors.Join(err, a.Close())
			}
			t, err := OpenTable(disk, disk.PathJoin(dir, TableFile(info)))
			if errors.Is(err, chain.ErrCorrupt) {
				continue // nothing of it can be read
			}
			if err != nil {
				return nil, errors.Join(fmt.Errorf("read %s: %w", TableFile(info), err), a.Close())
			}
			a.sources = append(a.sources, t)
		}
	}
	return a, nil
}

// Close closes the tables.
func (a *AroundDamage) Close() error {
	var errs []error
	for _, s := range a.sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// SeekGE moves to the first key that can be read and is not smaller than key.
func (a *AroundDamage) SeekGE(key []byte) bool {
	for _, s := range a.sources {
		s.SeekGE(key)
	}
	return a.settle()
}

// SeekLE moves to the last key that can be read and is not greater than key, which is
// within the bounds, and to the first one if there is none.
func (a *AroundDamage) SeekLE(key, lower []byte) bool {
	last := lower
	for _, s := range a.sources {
		if s.SeekLE(key) && bytes.Compare(s.Key(), last) > 0 {
			last = bytes.Clone(s.Key())
		}
	}
	return a.SeekGE(last)
}

// Next moves to the next key that can be read.
func (a *AroundDamage) Next() bool {
	if !a.Valid() {
		return false
	}
	a.pass()
	return a.settle()
}

// pass moves every source behind the key at which the iterator stands.
func (a *AroundDamage) pass() {
	key := bytes.Clone(a.Key())
	for _, s := range a.sources {
		for s.Valid() && bytes.Equal(s.Key(), key) {
			s.Next()
		}
	}
}

// settle stands at the smallest key of the sources, with its newest value.
func (a *AroundDamage) settle() bool {
	for {
		a.at = -1
		for i, s := range a.sources {
			if err := s.Error(); err != nil {
				a.at, a.err = -1, err
				return false
			}
			if !s.Valid() || bytes.Compare(s.Key(), a.upper) >= 0 {
				continue
			}
			if a.at >= 0 {
				best := a.sources[a.at]
				if c := bytes.Compare(s.Key(), best.Key()); c > 0 || c == 0 && s.SeqNum() <= best.SeqNum() {
					continue
				}
			}
			a.at = i
		}
		if a.at < 0 || a.sources[a.at].IsSet() {
			return a.at >= 0
		}
		a.pass() // a deleted key
	}
}

// Valid reports whether the iterator stands at a key.
func (a *AroundDamage) Valid() bool { return a.at >= 0 }

// Key returns the key at which the iterator stands; valid until it moves.
func (a *AroundDamage) Key() []byte { return a.sources[a.at].Key() }

// Value returns the value of the key; valid until the iterator moves.
func (a *AroundDamage) Value() []byte { return a.sources[a.at].Value() }

// Error returns the error that ended the reading, such as that of a disk. Damage does
// not end it.
func (a *AroundDamage) Error() error { return a.err }

// unflushed iterates over the keys that are in no table. In a store from before SAJOU it
// also reads the tables, which are not marked, and then ends at damage.
type unflushed struct{ *pebble.Iterator }

// SeekLE implements keySource.
func (u unflushed) SeekLE(key []byte) bool { return u.SeekLT(append(bytes.Clone(key), 0)) }

// IsSet implements keySource: Pebble leaves out what was deleted.
func (unflushed) IsSet() bool { return true }

// SeqNum implements keySource. Nothing is newer than a memtable. A value from a table
// without a mark can be older than another table's, but batches are written once.
func (unflushed) SeqNum() uint64 { return math.MaxUint64 }

// Error implements keySource.
func (u unflushed) Error() error {
	if err := u.Iterator.Error(); !pebble.IsCorruptionError(err) {
		return err
	}
	return nil
}

// Close implements keySource.
func (u unflushed) Close() error {
	if err := u.Iterator.Close(); !pebble.IsCorruptionError(err) {
		return err
	}
	return nil
}

// noTable leaves all tables out that have a mark; see [TableMark]. It implements
// [pebble.BlockPropertyFilter].
type noTable struct{}

// Name implements [pebble.BlockPropertyFilter].
func (noTable) Name() string { return storeMarkName }

// Intersects implements [pebble.BlockPropertyFilter].
func (noTable) Intersects([]byte) (bool, error) { return false, nil }

// SyntheticSuffixIntersects implements [pebble.BlockPropertyFilter].
func (noTable) SyntheticSuffixIntersects(_, _ []byte) (bool, error) { return false, nil }
