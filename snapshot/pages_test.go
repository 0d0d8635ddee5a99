package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/snapshot"
)

var order = binary.NativeEndian

// setMeta changes a field of a meta page, by its place in the file, and updates the
// page's checksum.
func setMeta(data []byte, page int, change func(meta []byte)) []byte {
	data = bytes.Clone(data)
	meta := data[page*os.Getpagesize()+16:][:64]
	change(meta)
	h := fnv.New64a()
	_, _ = h.Write(meta[:56])
	order.PutUint64(meta[56:], h.Sum64())
	return data
}

// Fields of a meta page, from the start of the meta.
const (
	metaPageSize, metaRoot, metaFreelist, metaPages, metaTxid = 8, 16, 32, 40, 48
)

func putPageSize(n uint32) func([]byte) {
	return func(m []byte) { order.PutUint32(m[metaPageSize:], n) }
}
func put64(at int, n uint64) func([]byte) { return func(m []byte) { order.PutUint64(m[at:], n) } }

// An inconsistent file with valid checksums, which bbolt would open and trust, is
// refused.
func TestHostilePages(t *testing.T) {
	whole := sampleFile(t)
	size := os.Getpagesize()
	txid := func(page int) uint64 { return order.Uint64(whole[page*size+16+metaTxid:]) }
	newer, older := 0, 1
	if txid(1) > txid(0) {
		newer, older = 1, 0
	}
	pages := order.Uint64(whole[newer*size+16+metaPages:])
	// The second key of every branch page becomes equal to the first. Some of the
	// pages belong to an older tree.
	same := bytes.Clone(whole)
	branches := 0
	for at := 2 * size; at < len(whole); at += size {
		if order.Uint16(whole[at+8:]) != 1 || order.Uint16(whole[at+10:]) < 2 {
			continue
		}
		branches++
		key := func(i int) []byte {
			e := at + 16 + 16*i
			start := e + int(order.Uint32(whole[e:]))
			return same[start : start+int(order.Uint32(whole[e+4:]))]
		}
		copy(key(1), key(0))
	}
	if branches == 0 {
		t.Fatal("the sample has no branch page of two elements")
	}
	path := filepath.Join(t.TempDir(), "s.db")
	check := func(data []byte) error {
		t.Helper()
		require.NoError(t, os.WriteFile(path, data, 0o644))
		return snapshot.CheckFile(path)
	}
	require.NoError(t, check(whole))
	for name, data := range map[string][]byte{
		"equal keys in a branch":       same,
		"pages of 512 bytes":           setMeta(whole, 0, putPageSize(512)),
		"pages of 3000 bytes":          setMeta(whole, 0, putPageSize(3000)),
		"pages of no bytes":            setMeta(whole, 0, putPageSize(0)),
		"pages of 128 KiB":             setMeta(whole, 0, putPageSize(1<<17)),
		"pages of 4 GiB":               setMeta(whole, 0, putPageSize(1<<32-1)),
		"another size on the second":   setMeta(whole, 1, putPageSize(uint32(2*size))),
		"no second meta page":          append(append(bytes.Clone(whole[:size]), make([]byte, size)...), whole[2*size:]...),
		"a newer root beyond the file": setMeta(whole, newer, put64(metaRoot, pages)),
		"a newer root that is meta":    setMeta(whole, newer, put64(metaRoot, 1)),
		"a newer root that is itself":  setMeta(whole, newer, put64(metaRoot, order.Uint64(whole[newer*size+16+metaFreelist:]))),
		"a newer free list of a tree":  setMeta(whole, newer, put64(metaFreelist, order.Uint64(whole[newer*size+16+metaRoot:]))),
		"more pages than the file":     setMeta(whole, newer, put64(metaPages, uint64(len(whole)/size)+1)),
		"more pages than any file":     setMeta(whole, newer, put64(metaPages, 1<<62)),
		"three pages":                  setMeta(whole, newer, put64(metaPages, 3)),
		"pages that end before a tree": setMeta(whole, newer, put64(metaPages, 4)),
		"the older made the newer":     setMeta(setMeta(whole, older, put64(metaTxid, txid(newer)+1)), older, put64(metaRoot, pages)),
	} {
		if err := check(data); !errors.Is(err, snapshot.ErrUnusable) {
			t.Errorf("%s: %v, want ErrUnusable", name, err)
		}
		for _, readOnly := range []bool{true, false} {
			tryTorn(t, path, data, readOnly)
		}
	}
	// The tree of the older meta page is not checked: it may be stale.
	assert.NoError(t, check(setMeta(whole, older, put64(metaRoot, pages+100))), "an older root")
}

// A store may have any page size that bbolt accepts; bbolt itself writes the files.
func TestPageSizes(t *testing.T) {
	for _, size := range []int{1024, 4096, 1 << 16} {
		path := filepath.Join(t.TempDir(), "s.db")
		db, err := bolt.Open(path, 0o644, &bolt.Options{PageSize: size, NoSync: true})
		require.NoError(t, err)
		err = db.Update(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("sajou-snapshots/1"))
			return err
		})
		require.NoError(t, errors.Join(err, db.Close()))
		s := open(t, path, snapshot.Config{})
		put(t, s, "a", image(10, 3000), image(20, 10))
		require.NoError(t, s.Close())
		assert.NoErrorf(t, snapshot.CheckFile(path), "pages of %d bytes", size)
	}
}
