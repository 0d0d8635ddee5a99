package snapshot_test

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// A note comes back as it was put, as long as it is intact and of its session. It is
// no image.
func TestNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshots.db")
	s, err := snapshot.Open(path, snapshot.Config{})
	require.NoError(t, err)
	want := func(session, note string) {
		t.Helper()
		got, err := s.Note(session)
		require.NoError(t, err)
		require.Equal(t, note, string(got))
	}
	want("a", "")
	require.NoError(t, s.PutNotes(nil))
	require.NoError(t, s.PutNotes(map[string][]byte{"a": []byte("one"), "b": []byte("two")}))
	require.NoError(t, s.PutNotes(map[string][]byte{"a": []byte("three")}))
	want("a", "three")
	want("b", "two")
	require.ErrorIs(t, s.PutNotes(map[string][]byte{"c": make([]byte, 4<<10+1)}), snapshot.ErrTooLarge)
	longest := strings.Repeat("n", 4<<10)
	require.NoError(t, s.PutNotes(map[string][]byte{"c": []byte(longest)}))
	want("c", longest)
	require.NoError(t, s.PutNotes(map[string][]byte{"c": {}}))
	empty, err := s.Note("c")
	require.NoError(t, err)
	require.NotNil(t, empty, "a note of no bytes is one")
	list, err := s.List("a")
	require.NoError(t, err)
	require.Empty(t, list)
	_, ok, err := s.Nearest("a", 1<<63, nil, func(eventlog.Head) bool { return true })
	require.NoError(t, err)
	require.False(t, ok)
	n, err := s.DropAll("b")
	require.NoError(t, err)
	require.Zero(t, n)
	want("b", "")
	require.NoError(t, s.Close())

	// The layout is that of the package comment.
	reads, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, reads.View(func(tx *bolt.Tx) error {
		sum := xxhash.Sum64String("a\x00note\x00three")
		require.Equal(t, append(binary.BigEndian.AppendUint64([]byte{1}, sum), "three"...), tx.Bucket([]byte("sajou-snapshots/1")).Bucket([]byte("a")).Get([]byte("note")))
		return nil
	}))
	require.NoError(t, reads.Close())

	// Put into another session's place, or changed, it is none.
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		root := tx.Bucket([]byte("sajou-snapshots/1"))
		value := append([]byte{}, root.Bucket([]byte("a")).Get([]byte("note"))...)
		for name, change := range map[string]func(v []byte) []byte{
			"moved":   func(v []byte) []byte { return v },
			"version": func(v []byte) []byte { v[0]++; return v },
			"cut":     func(v []byte) []byte { return v[:8] },
		} {
			b, err := root.CreateBucket([]byte(name))
			if err == nil {
				err = b.Put([]byte("note"), change(append([]byte{}, value...)))
			}
			if err != nil {
				return err
			}
		}
		value[len(value)-1] ^= 1
		return root.Bucket([]byte("a")).Put([]byte("note"), value)
	}))
	require.NoError(t, db.Close())
	s, err = snapshot.Open(path, snapshot.Config{ReadOnly: true})
	require.NoError(t, err)
	for _, name := range []string{"a", "moved", "version", "cut"} {
		want(name, "")
	}
	require.ErrorIs(t, s.PutNotes(map[string][]byte{"a": nil}), snapshot.ErrReadOnly)
	require.NoError(t, s.Close())
	_, err = s.Note("a")
	require.ErrorIs(t, err, snapshot.ErrClosed)
}
