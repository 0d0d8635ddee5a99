package eventlog_test

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// sealedBatch returns the bytes of a batch of three entries with a key, as
// they stand in a store.
func sealedBatch(t testing.TB) []byte {
	t.Helper()
	l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Session("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(context.Background(), eventlog.Batch{Drafts: drafts(1, 3), Key: "key"}); err != nil {
		t.Fatal(err)
	}
	var sealed []byte
	if err := errors.Join(l.Get(eventlog.BatchKey(1, 1), &sealed), l.Close()); err != nil {
		t.Fatal(err)
	}
	return sealed
}

// Whatever the bytes are, reading a sealed batch does not panic, takes no
// memory to speak of, and gives only what lies inside the bytes.
func FuzzOpenBatch(f *testing.F) {
	whole := sealedBatch(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Add([]byte{2, 1, 1})
	f.Add(binary.AppendUvarint(binary.AppendUvarint([]byte{1}, 1<<64-1), 1<<16))
	f.Add(append(eventlog.SealHeader(1, 1<<16), binary.AppendUvarint(nil, 1<<63)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		next, bytes := eventlog.Seq(0), 0
		rest, err := eventlog.WalkBatch(b, func(e eventlog.Entry, stored []byte) {
			if next != 0 && e.Seq != next || !e.Kind.Valid() || e.At < 0 || len(e.Key) > eventlog.MaxKey || len(e.Data) == 0 {
				t.Errorf("entry %+v where %d belongs", e, next)
			}
			if len(e.Data) > len(e.Body) || len(e.Body) > len(stored) {
				t.Errorf("entry %d: %d bytes of data in %d of body in %d stored", e.Seq, len(e.Data), len(e.Body), len(stored))
			}
			next = e.Seq + 1
			bytes += len(stored) + eventlog.HashSize
		})
		runtime.ReadMemStats(&after)
		if bytes+len(rest) > len(b) {
			t.Errorf("%d bytes of links and %d behind them in %d bytes", bytes, len(rest), len(b))
		}
		if err != nil && !errors.Is(err, eventlog.ErrCorrupt) && !errors.Is(err, eventlog.ErrVersion) {
			t.Errorf("error of no class: %v", err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(4*len(b))+64<<10 {
			t.Errorf("%d bytes of input took %d bytes of memory", len(b), used)
		}
	})
}

// Every truncation of a sealed batch is corrupt, for the decoder and for
// verification.
func TestTruncatedBatch(t *testing.T) {
	whole := sealedBatch(t)
	l := open(t, vfs.NewMem(), eventlog.Config{})
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 3), Key: "key"})
	for n := range whole {
		if _, err := eventlog.WalkBatch(whole[:n], func(eventlog.Entry, []byte) {}); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("%d of %d bytes: err = %v, want ErrCorrupt", n, len(whole), err)
		}
		if err := l.Put(eventlog.BatchKey(1, 1), whole[:n]); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, l, "a", eventlog.Head{}); r.Fault == nil {
			t.Errorf("%d of %d bytes: verified", n, len(whole))
		}
		if _, err := l.Session("a"); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("%d of %d bytes: the session opens: %v", n, len(whole), err)
		}
	}
}
