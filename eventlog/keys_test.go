package eventlog_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// outcome returns the record of a key, written from the package comment alone.
func outcome(first eventlog.Seq, head eventlog.Head) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(first))
	b = binary.BigEndian.AppendUint64(b, uint64(head.Seq))
	return append(b, head.Hash[:]...)
}

// keyed fills session "a" (number 1) with batches of 1, 2, 3, 1, 2, 3… entries
// of which every one but the fourth, eighth, … has a key, and returns the
// outcomes of the keys.
func keyed(t *testing.T, l *eventlog.Log, batches int) (first map[string]eventlog.Seq, head map[string]eventlog.Head) {
	t.Helper()
	s := session(t, l, "a")
	first, head = map[string]eventlog.Seq{}, map[string]eventlog.Head{}
	for i := range batches {
		at := s.Head().Seq + 1
		b := eventlog.Batch{Drafts: drafts(int(at), i%3+1)}
		if i%4 != 3 {
			b.Key = fmt.Sprintf("k%d", i)
		}
		h := must(t, s, b)
		if b.Key != "" {
			first[b.Key], head[b.Key] = at, h
		}
	}
	return first, head
}

// Verification finds a missing record, one that is wrong in any of its three parts or
// in its length, and an invented one, with the entry and the key. A rebuild restores
// the records.
func TestKeyFaults(t *testing.T) {
	l := open(t, vfs.NewMem(), eventlog.Config{})
	first, head := keyed(t, l, 8)
	// k5 is entries 9 to 11 (batches of 1 2 3 1 2 3).
	other := head["k4"]
	for _, tt := range []struct {
		name   string
		key    string
		record []byte // nil: deleted
		want   []verify.KeyFault
	}{
		{"gone", "k5", nil, []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyMissing}}},
		{"another first Seq", "k5", outcome(first["k5"]+1, head["k5"]), []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyWrong}}},
		{"first Seq 0", "k5", outcome(0, head["k5"]), []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyWrong}}},
		{"another last Seq", "k5", outcome(first["k5"], eventlog.Head{Seq: head["k5"].Seq - 1, Hash: head["k5"].Hash}), []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyWrong}}},
		{"another hash", "k5", outcome(first["k5"], eventlog.Head{Seq: head["k5"].Seq, Hash: other.Hash}), []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyWrong}}},
		{"another key's outcome", "k5", outcome(first["k4"], head["k4"]), []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyWrong}}},
		{"beyond the head", "k5", outcome(1000, eventlog.Head{Seq: 1001}), []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyWrong}}},
		{"cut", "k5", outcome(first["k5"], head["k5"])[:47], []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyWrong}}},
		{"empty", "k5", []byte{}, []verify.KeyFault{{Seq: first["k5"], Key: "k5", Kind: verify.KeyWrong}}},
		{"invented, of another batch", "new", outcome(first["k4"], head["k4"]), []verify.KeyFault{{Seq: first["k4"], Key: "new", Kind: verify.KeyInvented}}},
		{"invented, of a batch without a key", "new", outcome(7, eventlog.Head{Seq: 7}), []verify.KeyFault{{Seq: 7, Key: "new", Kind: verify.KeyInvented}}},
		{"invented, beyond the head", "new", outcome(1000, eventlog.Head{Seq: 1000}), []verify.KeyFault{{Seq: 1000, Key: "new", Kind: verify.KeyInvented}}},
		{"invented, and too long a key", string(make([]byte, 300)), outcome(1, head["k0"]), []verify.KeyFault{{Seq: 1, Key: string(make([]byte, 300)), Kind: verify.KeyInvented}}},
		{"invented, and no outcome", "new", []byte("x"), []verify.KeyFault{{Key: "new", Kind: verify.KeyInvented}}},
		{"invented, of the empty key", "", outcome(first["k4"], head["k4"]), []verify.KeyFault{{Seq: first["k4"], Kind: verify.KeyInvented}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key := keyspace.OutcomeKey(1, tt.key)
			var err error
			if tt.record == nil {
				err = l.Remove(key)
			} else {
				err = l.Put(key, tt.record)
			}
			require.NoError(t, err)
			check := func(r verify.SessionReport, err error) {
				t.Helper()
				require.NoError(t, err)
				for i := range r.Keys {
					says := map[verify.KeyFaultKind]string{
						verify.KeyMissing:  "a repeat of this append would be recorded a second time",
						verify.KeyWrong:    fmt.Sprintf("which are %d to %v", first["k5"], head["k5"]),
						verify.KeyInvented: "no entry carries the key",
					}[r.Keys[i].Kind]
					if r.Keys[i].Kind == verify.KeyWrong && len(tt.record) != 48 {
						says = "its record is not an outcome"
					}
					assert.Contains(t, r.Keys[i].Detail, says)
					r.Keys[i].Detail = ""
				}
				if d := cmp.Diff(tt.want, r.Keys); d != "" || r.Fault != nil || r.KeyFaults != len(tt.want) || r.Whole() {
					t.Errorf("%+v\n%s", r, d)
				}
			}
			check(l.Verify(t.Context(), "a", verify.Options{}))
			check(l.RebuildKeys(t.Context(), "a", verify.Options{}))
			if r := verified(t, l, "a", eventlog.Head{}); !r.Whole() {
				t.Errorf("rebuilt: %+v", r)
			}
			for k, seq := range first {
				var v []byte
				if err := l.Get(keyspace.OutcomeKey(1, k), &v); err != nil || !slices.Equal(v, outcome(seq, head[k])) {
					t.Errorf("the record of %s is %x, %v", k, v, err)
				}
			}
		})
	}
}

// An append never uses a record that contradicts the entries: it neither returns a
// false outcome nor waits for entries beyond the head.
func TestForgedRecordAnswersNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := open(t, vfs.NewMem(), eventlog.Config{})
	_, head := keyed(t, l, 4)
	before := session(t, l, "a").Head()
	for name, record := range map[string][]byte{
		"of another batch": outcome(1, head["k0"]),
		"beyond the head":  outcome(1000, eventlog.Head{Seq: 1000}),
		"cut":              {1},
	} {
		require.NoError(t, l.Put(keyspace.OutcomeKey(1, "new"), record))
		s := session(t, l, "a")
		if h, err := s.Append(ctx, eventlog.Batch{Key: "new", Drafts: drafts(100, 1)}); !errors.Is(err, eventlog.ErrCorrupt) || s.Head() != before {
			t.Errorf("%s: appended as %v, %v; the session stands at %v", name, h, err, s.Head())
		}
	}
	if _, err := l.RebuildKeys(ctx, "a", verify.Options{}); err != nil {
		t.Fatal(err)
	}
	if h, err := session(t, l, "a").Append(ctx, eventlog.Batch{Key: "new", Drafts: drafts(100, 1)}); err != nil || h.Seq != before.Seq+1 {
		t.Errorf("rebuilt: appended as %v, %v", h, err)
	}
}

// A key that was used twice, because its record was missing, is reported at the second
// entry; the first stays the outcome, however often the records are rebuilt.
func TestRepeatedKey(t *testing.T) {
	l := open(t, vfs.NewMem(), eventlog.Config{})
	first, head := keyed(t, l, 4)
	key := keyspace.OutcomeKey(1, "k1")
	require.NoError(t, l.Remove(key))
	second := must(t, session(t, l, "a"), eventlog.Batch{Key: "k1", Drafts: drafts(100, 1)})
	for round, want := range []verify.KeyFaultKind{verify.KeyWrong, verify.KeyRepeated, verify.KeyRepeated} {
		r, err := l.RebuildKeys(t.Context(), "a", verify.Options{})
		seq := second.Seq
		if want == verify.KeyWrong {
			seq = first["k1"] // its record is the second append's
		}
		if err != nil || len(r.Keys) != 1 || r.Keys[0].Seq != seq || r.Keys[0].Kind != want {
			t.Errorf("round %d: %+v, %v, want %s at %d", round, r, err, want, seq)
		}
		var v []byte
		if err := l.Get(key, &v); err != nil || !slices.Equal(v, outcome(first["k1"], head["k1"])) {
			t.Errorf("round %d: the record is %x, %v", round, v, err)
		}
	}
}

// Records are rebuilt only from an intact chain, and not in a log opened for reading.
func TestRebuildKeysRefuses(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs, eventlog.Config{})
	keyed(t, l, 4)
	if _, err := l.RebuildKeys(t.Context(), "b", verify.Options{}); !errors.Is(err, eventlog.ErrNoSession) {
		t.Errorf("no session: %v", err)
	}
	key, batch := keyspace.OutcomeKey(1, "k0"), keyspace.BatchKey(nil, 1, 2)
	var value []byte
	require.NoError(t, errors.Join(l.Get(batch, &value), l.Remove(key)))
	broken := slices.Clone(value)
	broken[len(broken)-1] ^= 1
	require.NoError(t, l.Put(batch, broken))
	r, err := l.RebuildKeys(t.Context(), "a", verify.Options{})
	if !errors.Is(err, eventlog.ErrCorrupt) || r.Fault == nil || r.Fault.Seq != 3 {
		t.Errorf("a broken chain: %+v, %v", r, err)
	}
	assert.Error(t, l.Get(key, &value), "a record was made of a broken chain")
	require.NoError(t, l.Close())
	reader := open(t, fs, eventlog.Config{ReadOnly: true})
	if _, err := reader.RebuildKeys(t.Context(), "a", verify.Options{}); !errors.Is(err, eventlog.ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
}

// Whichever write of a rebuild fails, it says so, and the log is read-only from then on.
func TestRebuildKeysFails(t *testing.T) {
	for n := int64(1); ; n++ {
		disk := newFaults(vfs.NewMem())
		l, err := eventlog.Open("store", eventlog.Config{FS: disk})
		require.NoError(t, err)
		keyed(t, l, 4)
		require.NoError(t, l.Remove(keyspace.OutcomeKey(1, "k0")))
		require.NoError(t, l.Put(keyspace.OutcomeKey(1, "new"), []byte("x")))
		failed, before := false, disk.count.Load()
		disk.set(func(k int64, _ errorfs.Op) error {
			if k < before+n {
				return nil
			}
			failed = true
			return errDisk
		})
		_, err = l.RebuildKeys(t.Context(), "a", verify.Options{})
		disk.set(func(int64, errorfs.Op) error { return nil })
		if !failed {
			require.NoError(t, err)
			require.Greater(t, n, int64(2))
			require.NoError(t, l.Close())
			return
		}
		require.ErrorIs(t, err, eventlog.ErrReadOnly, "write %d", n)
		require.ErrorIs(t, err, errDisk, "write %d", n)
		_, err = l.RebuildKeys(t.Context(), "a", verify.Options{})
		require.ErrorIs(t, err, eventlog.ErrReadOnly)
		_ = l.Close() // its errors are those of the disk
	}
}

// A write to a log that takes none is refused and not taken for done: one that failed,
// and one that was opened for reading.
func TestWriteSyncRefused(t *testing.T) {
	disk := newFaults(vfs.NewMem())
	l, err := eventlog.Open("store", eventlog.Config{FS: disk})
	require.NoError(t, err)
	keyed(t, l, 2)
	require.NoError(t, l.WriteSync([]byte("\xffkey"), nil))
	require.NoError(t, l.Close())
	reader := open(t, disk, eventlog.Config{ReadOnly: true})
	require.ErrorIs(t, reader.WriteSync([]byte("\xffkey"), nil), eventlog.ErrReadOnly)
	require.NoError(t, reader.Close())

	l, err = eventlog.Open("store", eventlog.Config{FS: disk})
	require.NoError(t, err)
	disk.set(func(int64, errorfs.Op) error { return errDisk })
	require.ErrorIs(t, l.WriteSync([]byte("\xffkey"), nil), errDisk)
	require.ErrorIs(t, l.WriteSync([]byte("\xffkey"), nil), errDisk)
	_ = l.Close() // its errors are those of the disk
}

// TestAttackKeys deletes, swaps, changes and invents records at random. Verification
// reports exactly these changes, in number and by key; after a rebuild it reports
// nothing and every outcome is the first, also after a crash.
func TestAttackKeys(t *testing.T) {
	for seed := range attack.Rounds(6, 300) {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		mem := vfs.NewCrashableMem()
		l := open(t, mem, eventlog.Config{})
		first, head := keyed(t, l, 40+rng.IntN(200))
		names := slices.Sorted(func(yield func(string) bool) {
			for k := range first {
				if !yield(k) {
					return
				}
			}
		})
		want := map[string]verify.KeyFaultKind{}
		for range 1 + rng.IntN(150) {
			key := names[rng.IntN(len(names))]
			if want[key] != "" {
				continue
			}
			other := names[rng.IntN(len(names))]
			record := outcome(first[key], head[key])
			var err error
			switch rng.IntN(4) {
			case 0:
				want[key] = verify.KeyMissing
				err = l.Remove(keyspace.OutcomeKey(1, key))
			case 1:
				want[key] = verify.KeyWrong
				record[rng.IntN(len(record))] ^= 1 << rng.IntN(8)
				err = l.Put(keyspace.OutcomeKey(1, key), record)
			case 2:
				if other == key {
					continue
				}
				want[key] = verify.KeyWrong
				err = l.Put(keyspace.OutcomeKey(1, key), outcome(first[other], head[other]))
			case 3:
				invented := fmt.Sprintf("x%d", rng.Uint32())
				want[invented] = verify.KeyInvented
				err = l.Put(keyspace.OutcomeKey(1, invented), outcome(first[other], head[other]))
			}
			require.NoError(t, err)
		}
		r := verified(t, l, "a", eventlog.Head{})
		if r.Fault != nil || r.KeyFaults != len(want) || len(r.Keys) != min(len(want), 100) {
			t.Errorf("seed %d: %d faults listed of %d, want %d; %v", seed, len(r.Keys), r.KeyFaults, len(want), r.Fault)
		}
		for _, f := range r.Keys {
			if want[f.Key] != f.Kind || f.Kind != verify.KeyInvented && f.Seq != first[f.Key] {
				t.Errorf("seed %d: %v, want %q at %d", seed, &f, want[f.Key], first[f.Key])
			}
		}
		if _, err := l.RebuildKeys(t.Context(), "a", verify.Options{}); err != nil {
			t.Fatal(err)
		}
		l = open(t, mem.CrashClone(vfs.CrashCloneCfg{}), eventlog.Config{})
		if r := verified(t, l, "a", eventlog.Head{}); !r.Whole() {
			t.Errorf("seed %d: rebuilt: %+v", seed, r)
		}
		for _, key := range names {
			if h := must(t, session(t, l, "a"), eventlog.Batch{Key: key, Drafts: drafts(1000, 1)}); h != head[key] {
				t.Errorf("seed %d: a repeat of %s gives %v, want %v", seed, key, h, head[key])
			}
		}
	}
}

// Verification during appends reports no fault in partially visible writes.
func TestVerifyBesideAppends(t *testing.T) {
	l := open(t, vfs.NewMem(), eventlog.Config{})
	keyed(t, l, 10)
	s := session(t, l, "a")
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 300 && err == nil; i++ {
			_, err = s.Append(context.Background(), eventlog.Batch{Key: fmt.Sprint("beside", i), Drafts: drafts(100+i, 1)})
		}
		done <- err
	}()
	for range 20 {
		if r, err := l.Verify(t.Context(), "a", verify.Options{}); err != nil || !r.Whole() {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := l.RebuildKeys(t.Context(), "a", verify.Options{}); err != nil || !r.Whole() {
			t.Errorf("rebuild: %+v, %v", r, err)
		}
	}
	assert.NoError(t, <-done)
}

// Absent says up to where a key is certainly not recorded: never past an entry that
// carries it, durable or about to be, and nothing of a session that is gone.
func TestAbsent(t *testing.T) {
	type answer struct {
		upTo eventlog.Seq
		ok   bool
	}
	ask := func(s *eventlog.Session, key string) answer {
		upTo, ok := s.Absent(key)
		return answer{upTo, ok}
	}
	var hold sync.Mutex // held while nothing reaches the disk
	mem := vfs.NewMem()
	l := open(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo {
			hold.Lock()
			defer hold.Unlock()
		}
		return nil
	})), eventlog.Config{})
	s := session(t, l, "a")
	assert.Equal(t, answer{0, true}, ask(s, "k0"))
	first, _ := keyed(t, l, 8)
	head := s.Head().Seq
	for key := range first {
		assert.False(t, ask(s, key).ok, "%s is recorded", key)
	}
	assert.Equal(t, answer{head, true}, ask(s, "k3"))
	assert.Equal(t, answer{0, true}, ask(session(t, l, "b"), "k0"), "another session has its own keys")

	hold.Lock()
	ticket, err := s.Stage(t.Context(), eventlog.Batch{Drafts: drafts(100, 1), Key: "k3"})
	require.NoError(t, err)
	if a := ask(s, "k3"); a.ok {
		assert.Equal(t, answer{head, true}, a, "the entry behind the durable one carries it")
	}
	hold.Unlock()
	_, err = ticket.Wait(t.Context())
	require.NoError(t, err)
	assert.False(t, ask(s, "k3").ok)

	require.NoError(t, l.Flush()) // from the tables as from memory
	assert.False(t, ask(s, "k3").ok)
	assert.Equal(t, answer{head + 1, true}, ask(s, "k7"))
	_, err = l.Delete(t.Context(), "a", time.Unix(0, 0))
	require.NoError(t, err)
	assert.Equal(t, answer{}, ask(s, "k3"))
	b := session(t, l, "b")
	require.NoError(t, l.Close())
	assert.Equal(t, answer{}, ask(b, "k3"))
}
