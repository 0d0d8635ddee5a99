package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// sealedBatch returns the stored bytes of a batch of three entries with a key.
func sealedBatch(t testing.TB) []byte {
	t.Helper()
	l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	s, err := l.Session("a")
	require.NoError(t, err)
	if _, err := s.Append(context.Background(), eventlog.Batch{Drafts: drafts(1, 3), Key: "key"}); err != nil {
		t.Fatal(err)
	}
	var sealed []byte
	require.NoError(t, errors.Join(l.Get(keyspace.BatchKey(nil, 1, 1), &sealed), l.Close()))
	return sealed
}

// Every truncation of a sealed batch is corrupt for verification and for opening
// the session.
func TestTruncatedBatch(t *testing.T) {
	whole := sealedBatch(t)
	l := open(t, vfs.NewMem(), eventlog.Config{})
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 3), Key: "key"})
	for n := range whole {
		require.NoError(t, l.Put(keyspace.BatchKey(nil, 1, 1), whole[:n]))
		if r := verified(t, l, "a", eventlog.Head{}); r.Fault == nil {
			t.Errorf("%d of %d bytes: verified", n, len(whole))
		}
		if _, err := l.Session("a"); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("%d of %d bytes: the session opens: %v", n, len(whole), err)
		}
	}
}

// For any bytes in the record of any idempotency key, verifying reports a fault or
// finds the record right, appending returns the true outcome or an error, and a rebuild
// restores the record.
func FuzzKeyRecord(f *testing.F) {
	l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(f, err)
	f.Cleanup(func() { _ = l.Close() })
	s, err := l.Session("a")
	require.NoError(f, err)
	head, err := s.Append(context.Background(), eventlog.Batch{Drafts: drafts(1, 3), Key: "key"})
	require.NoError(f, err)
	right := outcome(1, head)
	f.Add("key", right)
	f.Add("key", right[:40])
	f.Add("", right)
	f.Add("other", []byte{})
	f.Fuzz(func(t *testing.T, key string, record []byte) {
		at := keyspace.OutcomeKey(1, key)
		if len(key) > 1000 || l.Put(at, record) != nil {
			return
		}
		r, err := l.Verify(context.Background(), "a", verify.Options{})
		if whole := key == "key" && bytes.Equal(record, right); err != nil || r.Whole() != whole {
			t.Errorf("key %q, record %x: %+v, %v", key, record, r, err)
		}
		s, err := l.Session("a")
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.Append(context.Background(), eventlog.Batch{Drafts: drafts(9, 1), Key: "key"})
		if err == nil && h != head || err != nil && !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("key %q, record %x: a repeat gives %v, %v", key, record, h, err)
		}
		if _, err := l.RebuildKeys(context.Background(), "a", verify.Options{}); err != nil {
			t.Fatal(err)
		}
		if r, err := l.Verify(context.Background(), "a", verify.Options{}); err != nil || !r.Whole() {
			t.Errorf("key %q, record %x: rebuilt: %+v, %v", key, record, r, err)
		}
	})
}
