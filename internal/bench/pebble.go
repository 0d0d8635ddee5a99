package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// rawStore is the peer: Pebble with the options that the log gives it, one key
// an entry, and as values the bodies that the log stores.
type rawStore struct {
	db *pebble.DB
}

func openRaw(dir string) (*rawStore, error) {
	opts := &pebble.Options{
		FormatMajorVersion: pebble.FormatWALSyncChunks,
		MemTableSize:       16 << 20,
		CacheSize:          8 << 20,
		Logger:             silent{},
	}
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionBalanced })
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, err
	}
	return &rawStore{db}, nil
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...)) // the peer may die of a full disk; this program is only a measurement
}

func rawKey(dst []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst[:0], 'r'), seq)
}

// put writes bodies as one batch and syncs.
func (r *rawStore) put(first uint64, bodies [][]byte) error {
	batch := r.db.NewBatch()
	var key [9]byte
	for i, body := range bodies {
		if err := batch.Set(rawKey(key[:], first+uint64(i)), body, nil); err != nil {
			return err
		}
	}
	return errors.Join(batch.Commit(pebble.Sync), batch.Close())
}

// scan reads every value and adds up its bytes, so that each is touched.
func (r *rawStore) scan() (sum uint64, err error) {
	it, err := r.db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	for it.First(); it.Valid(); it.Next() {
		v := it.Value()
		sum += uint64(v[0]) + uint64(v[len(v)-1])
	}
	return sum, errors.Join(it.Error(), it.Close())
}

func (r *rawStore) close() error {
	return errors.Join(r.db.Flush(), r.db.Close())
}

// bodies records n signals in a scratch engine and returns the bytes that the
// log stored for them: what the peer is given to store.
func bodies(ctx context.Context, dir string, n int) ([][]byte, error) {
	scratch := filepath.Join(dir, "bodies")
	eng, err := sajou.Open(scratch, sajou.Config{SnapshotEvery: -1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	defer func() { _ = eng.Close() }()
	ses, err := eng.Session(ctx, "bodies")
	if err != nil {
		return nil, err
	}
	if err := record(ctx, ses, n, 1000, nil); err != nil {
		return nil, err
	}
	all := make([][]byte, 0, n)
	for e, err := range ses.Entries(ctx, 1) {
		if err != nil {
			return nil, err
		}
		if e.Kind == eventlog.KindSignal {
			all = append(all, e.Body)
		}
	}
	return all, nil
}

// diskBytes returns the bytes that the file system has allocated for the files of a closed
// store, without those of the given extensions.
func diskBytes(dir string, without ...string) (n int64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if slices.Contains(without, filepath.Ext(f.Name())) {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return 0, err
		}
		n += allocated(info)
	}
	return n, nil
}
