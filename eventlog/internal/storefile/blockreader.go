package storefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/sstable/rowblk"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// TableReader reads one table file and passes over the blocks that cannot be read. An
// iterator of Pebble ends at such a block, and at a seek it reads neighbours of the block
// that it is asked for.
//
// The index of a table has for each block an end: a key that is not smaller than the
// keys of the block, and smaller than those of the next one. So each block is read by
// itself, and what is lost are exactly the keys between the ends of the blocks around the
// damaged ones.
//
// The methods may panic where Pebble does, on blocks with valid checksums that Pebble did
// not write; see [GuardPebble].
type TableReader struct {
	name     string
	readable objstorage.Readable
	r        *sstable.Reader
	it       sstable.Iterator
	ends     [][]byte // by block
	state    []blockState
	damage   []error // of the blocks that cannot be read, in the order in which they were found

	block int // in which the reader stands; len(ends) at the end
	key   []byte
	value []byte
	set   bool // whether the key is set, not deleted
	seq   uint64
	err   error
}

type blockState uint8

const (
	blockUnread blockState = iota
	blockReadable
	blockDamaged
)

// OpenTable opens a table file. The error is [chain.ErrCorrupt] if its index cannot be
// read.
func OpenTable(disk vfs.FS, path string) (t *TableReader, err error) {
	t = &TableReader{name: disk.PathBase(path)}
	err = GuardPebble(func() error { return t.open(disk, path) })
	if err != nil {
		err = errors.Join(err, t.Close())
		if pebble.IsCorruptionError(err) && !errors.Is(err, chain.ErrCorrupt) {
			err = fmt.Errorf("%w: %w", chain.ErrCorrupt, err)
		}
		return nil, err
	}
	return t, nil
}

func (t *TableReader) open(disk vfs.FS, path string) error {
	file, err := BlockFS{disk}.Open(path)
	if err != nil {
		return err
	}
	t.readable, err = sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	opts := &pebble.Options{}
	opts.EnsureDefaults()
	if t.r, err = sstable.NewReader(context.Background(), t.readable, opts.MakeReaderOptions()); err != nil {
		return err
	}
	t.readable = nil // the reader closes it
	if t.it, err = t.r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles); err != nil {
		return err
	}
	return t.readIndex()
}

// readIndex reads the ends of the blocks.
func (t *TableReader) readIndex() error {
	layout, err := t.r.Layout()
	if err != nil {
		return err
	}
	format, err := t.r.TableFormat()
	if err != nil {
		return err
	}
	var it block.IndexBlockIterator = new(rowblk.IndexIter)
	if format.BlockColumnar() {
		it = new(colblk.IndexIter)
	}
	for _, at := range layout.Index {
		b, err := t.r.BlockReader().Read(context.Background(), block.NoReadEnv, nil, at, blockkind.Index, func(*block.Metadata, []byte) error { return nil })
		if err != nil {
			return err
		}
		err = it.Init(t.r.Comparer, b.BlockData(), block.NoTransforms)
		for ok := err == nil && it.First(); ok; ok = it.Next() {
			t.ends = append(t.ends, slices.Clone(it.Separator()))
		}
		b.Release()
		if err != nil {
			return err
		}
	}
	t.state = make([]blockState, len(t.ends))
	t.block = len(t.ends)
	return nil
}

// Close closes the file.
func (t *TableReader) Close() error {
	var errs []error
	if t.it != nil {
		_ = t.it.Close() // repeats the error of the block that was read last
	}
	if t.r != nil {
		errs = append(errs, t.r.Close())
	}
	if t.readable != nil {
		errs = append(errs, t.readable.Close())
	}
	return errors.Join(errs...)
}

// Valid reports whether the reader stands at a key.
func (t *TableReader) Valid() bool { return t.err == nil && t.block < len(t.ends) }

// Key and Value return the key at which the reader stands, and its value. They are valid
// until the reader moves.
func (t *TableReader) Key() []byte { return t.key }

// Value is described at [TableReader.Key].
func (t *TableReader) Value() []byte { return t.value }

// IsSet reports whether the key is set; otherwise it is a deletion.
func (t *TableReader) IsSet() bool { return t.set }

// SeqNum orders the values of a key in several tables: the greatest is the newest.
func (t *TableReader) SeqNum() uint64 { return t.seq }

// Error returns the error that ended the reading, such as that of a disk. Damage does not
// end it; see [TableReader.Damage].
func (t *TableReader) Error() error { return t.err }

// Damage returns the errors of the blocks that could not be read so far, and the number of
// all blocks.
func (t *TableReader) Damage() (damage []error, blocks int) { return t.damage, len(t.ends) }

// First moves to the first key.
func (t *TableReader) First() bool { return t.SeekGE(nil) }

// SeekGE moves to the first key that can be read and is not smaller than key.
func (t *TableReader) SeekGE(key []byte) bool {
	t.block, _ = slices.BinarySearchFunc(t.ends, key, bytes.Compare)
	return t.load(key)
}

// Next moves to the next key that can be read.
func (t *TableReader) Next() bool {
	if !t.Valid() {
		return false
	}
	if t.step() {
		return true
	}
	t.block++
	return t.load(nil)
}

// load moves to the first key that can be read, in this block or a later one, and is not
// smaller than key.
func (t *TableReader) load(key []byte) bool {
	for ; t.Valid(); t.block++ {
		if !t.check(t.block) {
			continue
		}
		from := t.begin(t.block)
		if bytes.Compare(from, key) < 0 {
			from = key
		}
		if t.seek(from) {
			return true
		}
	}
	return false
}

// seek moves to the first key of this block that is not smaller than from.
func (t *TableReader) seek(from []byte) bool {
	kv := t.it.SeekGE(from, 0)
	return kv != nil && t.take(kv.K, kv.Value)
}

// step moves to the next key of this block.
func (t *TableReader) step() bool {
	kv := t.it.Next()
	return kv != nil && t.take(kv.K, kv.Value)
}

// take takes a key of the iterator if it is in this block.
func (t *TableReader) take(key pebble.InternalKey, read func([]byte) ([]byte, bool, error)) bool {
	if bytes.Compare(key.UserKey, t.ends[t.block]) > 0 {
		return false
	}
	value, _, err := read(nil)
	if err != nil {
		t.err = fmt.Errorf("%s: %w", t.name, err)
		return false
	}
	t.key, t.value, t.seq = key.UserKey, value, uint64(key.SeqNum())
	t.set = key.Kind() == pebble.InternalKeyKindSet || key.Kind() == sstable.InternalKeyKindSetWithDelete
	return true
}

// begin returns a key that is greater than those of the blocks before i and not greater than
// those of i.
func (t *TableReader) begin(i int) []byte {
	if i == 0 {
		return nil
	}
	return append(slices.Clone(t.ends[i-1]), 0)
}

// check reports whether a block can be read.
func (t *TableReader) check(i int) bool {
	if t.state[i] == blockUnread {
		t.state[i] = blockReadable
		if kv := t.it.SeekGE(t.begin(i), 0); kv == nil && t.it.Error() != nil {
			err := t.it.Error()
			if !pebble.IsCorruptionError(err) {
				t.err = fmt.Errorf("%s: %w", t.name, err)
				t.state[i] = blockUnread
				return false
			}
			t.state[i] = blockDamaged
			t.damage = append(t.damage, err)
		}
	}
	return t.state[i] == blockReadable
}

// SeekLE moves to the last key that can be read and is not greater than key.
func (t *TableReader) SeekLE(key []byte) bool {
	i, _ := slices.BinarySearchFunc(t.ends, key, bytes.Compare)
	for i = min(i, len(t.ends)-1); i >= 0 && t.err == nil; i-- {
		var last []byte
		t.block = i
		if !t.check(i) {
			continue
		}
		for ok := t.seek(t.begin(i)); ok && bytes.Compare(t.key, key) <= 0; ok = t.step() {
			last = append(last[:0], t.key...)
		}
		if last != nil {
			return t.SeekGE(last)
		}
	}
	t.block = len(t.ends)
	return false
}

// EachReadableKey calls f with every key of a table file that is set and can be read, and
// its value, which are valid until f returns. It returns the errors of the blocks that
// cannot be read, and the number of all blocks.
func EachReadableKey(disk vfs.FS, path string, f func(key, value []byte) error) (damage []error, blocks int, err error) {
	t, err := OpenTable(disk, path)
	if err != nil {
		return nil, 0, err
	}
	err = GuardPebble(func() error {
		for ok := t.First(); ok; ok = t.Next() {
			if !t.IsSet() {
				continue
			}
			if err := f(t.Key(), t.Value()); err != nil {
				return err
			}
		}
		return t.Error()
	})
	damage, blocks = t.Damage()
	return damage, blocks, errors.Join(err, t.Close())
}
