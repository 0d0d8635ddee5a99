package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// A failed read returns its error: it does not make a key look new, sessions look
// absent, or a session look verified.
func TestReadErrors(t *testing.T) {
	mem := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	noise := make([]byte, 500<<10) // does not compress
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	const keys = 1000
	a, b := session(t, l, "a"), session(t, l, "b")
	for i := range keys {
		must(t, a, eventlog.Batch{Key: fmt.Sprintf("key %04d", i), Drafts: drafts(i+1, 1)})
	}
	for i := range 24 { // more than the store's cache holds
		must(t, b, eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: msgp.AppendBytes(nil, noise[i:])}}})
	}
	require.NoError(t, l.Close())
	failed := map[string]int{}
	for name, ask := range map[string]func(l *eventlog.Log) (whole bool, err error){
		"append": func(l *eventlog.Log) (bool, error) {
			h, err := session(t, l, "a").Append(t.Context(), eventlog.Batch{Key: "key 0500", Drafts: drafts(2000, 1)})
			return h.Seq == 501 && session(t, l, "a").Head().Seq == keys, err
		},
		"sessions": func(l *eventlog.Log) (bool, error) { infos, err := l.Sessions(); return len(infos) == 2, err },
		"survey":   func(l *eventlog.Log) (bool, error) { faults, err := l.Survey(t.Context()); return faults == nil, err },
		"verify": func(l *eventlog.Log) (bool, error) {
			r, err := l.Verify(t.Context(), "a", verify.Options{})
			if err == nil && r.Fault != nil {
				if r.Fault.Kind != verify.FaultUnreadable {
					t.Errorf("verify: %v", r.Fault)
				}
				return false, errors.New(r.Fault.String())
			}
			return r.Head.Seq == keys && r.Whole(), err
		},
		"rebuild": func(l *eventlog.Log) (bool, error) {
			r, err := l.RebuildKeys(t.Context(), "a", verify.Options{})
			return r.Head.Seq == keys && r.Whole(), err
		},
	} {
		for after := range int64(3) {
			var broken atomic.Bool
			var reads atomic.Int64
			fs := errorfs.Wrap(mem.CrashClone(vfs.CrashCloneCfg{}), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if broken.Load() && strings.HasSuffix(op.Path, ".sst") && op.Kind.ReadOrWrite() == errorfs.OpIsRead && reads.Add(1) > after {
					return errDisk
				}
				return nil
			}))
			l, err := eventlog.Open("store", eventlog.Config{FS: fs})
			require.NoError(t, err)
			a := session(t, l, "a")
			if r, err := l.Verify(t.Context(), "b", verify.Options{}); err != nil || r.Fault != nil { // takes the cache
				t.Fatal(r.Fault, err)
			}
			broken.Store(true)
			whole, err := ask(l)
			broken.Store(false)
			runtime.KeepAlive(a) // an evicted session would be read from the disk
			if err == nil && !whole {
				t.Errorf("%s: after %d reads the others fail, and the answer is another one", name, after)
			}
			if err != nil {
				failed[name]++
			}
			var value []byte
			assert.Errorf(t, l.Get(keyspace.BatchKey(nil, 1, keys+1), &value), "%s: after %d reads the others fail, and an entry was appended", name, after)
			_ = l.Close()
		}
	}
	t.Log(failed)
	if failed["append"] == 0 || failed["verify"] == 0 || failed["rebuild"] == 0 {
		t.Errorf("no read of some of these failed: %v", failed)
	}
}

// A body of an unknown kind is not an entry, for reads and for verification.
func TestUnknownKinds(t *testing.T) {
	l := open(t, vfs.NewMem(), eventlog.Config{})
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 1)})
	body := func(kind byte, at []byte, key []byte, data ...byte) []byte {
		b := append([]byte{0x94, kind}, at...)
		return append(append(b, key...), data...)
	}
	for name, tt := range map[string]struct {
		body []byte
		ok   bool
	}{
		"kind 1":          {body(1, []byte{0}, []byte{0xc0}, 0xc0), true},
		"kind 5":          {body(5, []byte{0}, []byte{0xc0}, 0xc0), true},
		"kind 0":          {body(0, []byte{0}, []byte{0xc0}, 0xc0), false},
		"kind 6":          {body(6, []byte{0}, []byte{0xc0}, 0xc0), false},
		"a negative kind": {body(0xff, []byte{0}, []byte{0xc0}, 0xc0), false},
		"a negative time": {body(1, []byte{0xff}, []byte{0xc0}, 0xc0), false},
		"a long key":      {body(1, []byte{0}, msgp.AppendString(nil, strings.Repeat("x", eventlog.MaxKey+1)), 0xc0), false},
		"no data":         {body(1, []byte{0}, []byte{0xc0}), false},
		"nothing":         {nil, false},
	} {
		stored := append(varint(uint64(len(tt.body)), 0), tt.body...)
		hash := chain.Link(eventlog.Genesis("a"), stored)
		value := append(batchHeader(1, 1), append(stored, hash[:]...)...)
		var e eventlog.Entry
		if err := chain.DecodeBody(&e, tt.body); (err == nil) != tt.ok {
			t.Errorf("%s: read: %v", name, err)
		}
		require.NoError(t, l.Put(keyspace.BatchKey(nil, 1, 1), value))
		r, err := l.Verify(t.Context(), "a", verify.Options{})
		if err != nil || (r.Fault == nil) != tt.ok || r.Fault != nil && (r.Fault.Seq != 1 || r.Fault.Kind != verify.FaultInvalid) {
			t.Errorf("%s: verify: %v, %v", name, r.Fault, err)
		}
	}
}

// An entry that goes back in time may fit its chain, but is invalid.
func TestVerifyTimes(t *testing.T) {
	seal := func(prev eventlog.Hash, first eventlog.Seq, at ...byte) ([]byte, eventlog.Hash) {
		value := batchHeader(first, len(at))
		for _, a := range at {
			stored := []byte{5, 0x94, 1, a, 0xc0, 0xc0}
			prev = chain.Link(prev, stored)
			value = append(append(value, stored...), prev[:]...)
		}
		return value, prev
	}
	for _, tt := range []struct {
		first, second []byte
		bad           eventlog.Seq
	}{
		{[]byte{1, 1, 2}, []byte{2, 3}, 0},
		{[]byte{1, 0, 2}, []byte{2, 3}, 2},
		{[]byte{1, 2, 3}, []byte{2, 3}, 4},
		{[]byte{1, 2, 3}, []byte{3, 2}, 5},
	} {
		l := open(t, vfs.NewMem(), eventlog.Config{})
		must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 1)})
		one, hash := seal(eventlog.Genesis("a"), 1, tt.first...)
		two, _ := seal(hash, 4, tt.second...)
		require.NoError(t, errors.Join(l.Put(keyspace.BatchKey(nil, 1, 1), one), l.Put(keyspace.BatchKey(nil, 1, 4), two)))
		switch r := verified(t, l, "a", eventlog.Head{}); {
		case tt.bad == 0 && r.Fault != nil, tt.bad > 0 && (r.Fault == nil || r.Fault.Seq != tt.bad || r.Fault.Kind != verify.FaultInvalid):
			t.Errorf("%v, %v: %v, want a fault at %d", tt.first, tt.second, r.Fault, tt.bad)
		}
	}
}

// A batch of exactly the bound is appended, and one of a byte more is not.
func TestBatchBound(t *testing.T) {
	for _, more := range []int{0, 1} {
		l := open(t, vfs.NewMem(), eventlog.Config{MaxEntry: 100, MaxBatch: 1000})
		b := eventlog.Batch{Drafts: make([]eventlog.Draft, 10)}
		for i := range b.Drafts {
			// A batch is counted with 63 bytes for each entry besides its data.
			b.Drafts[i] = eventlog.Draft{Kind: eventlog.KindSignal, Data: msgp.AppendBytes(nil, bytes.Repeat([]byte("x"), 35))}
		}
		b.Drafts[9].Data = msgp.AppendBytes(nil, bytes.Repeat([]byte("x"), 35+more))
		if _, err := session(t, l, "a").Append(t.Context(), b); (err == nil) != (more == 0) || err != nil && !errors.Is(err, eventlog.ErrTooLarge) {
			t.Errorf("%d bytes more than allowed: %v", more, err)
		}
	}
}
