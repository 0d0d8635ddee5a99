package keyspace_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// database opens a store of Pebble in memory.
func database(t require.TestingT, fs vfs.FS) *pebble.DB {
	db, err := pebble.Open("db", &pebble.Options{
		FS: fs, FormatMajorVersion: pebble.FormatWALSyncChunks, Logger: quiet{},
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}},
	})
	require.NoError(t, err)
	return db
}

// quiet drops the messages of Pebble.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// empty opens a store in memory that is closed with the test.
func empty(t *testing.T) *pebble.DB {
	t.Helper()
	db := database(t, vfs.NewMem())
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db
}

// put writes a key.
func put(t require.TestingT, db *pebble.DB, key, value []byte) {
	require.NoError(t, db.Set(key, value, pebble.NoSync))
}

// keysOf returns all keys of a store.
func keysOf(t require.TestingT, db *pebble.DB) (keys []string) {
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, string(it.Key()))
	}
	require.NoError(t, errors.Join(it.Error(), it.Close()))
	return keys
}

// sealed returns a batch of n entries behind a head, a second apart, and its end.
func sealed(after chain.Head, n int, key string) ([]byte, chain.Head) {
	var drafts []chain.Draft
	for i := range n {
		drafts = append(drafts, chain.Draft{Kind: chain.KindSignal, At: time.Duration(int(after.Seq)+i+1) * time.Second, Data: []byte{0xc0}})
	}
	return chain.AppendBatch(nil, after, drafts, key)
}

// written appends batches of these sizes to a session, which begins at its genesis, and
// returns the head behind each. The key of batch i is "ki" if i is odd, else none.
func written(t require.TestingT, db *pebble.DB, number uint32, sizes ...int) (ends []chain.Head) {
	head := chain.Head{Hash: chain.Genesis("a")}
	for i, n := range sizes {
		key := ""
		if i%2 == 1 {
			key = fmt.Sprint("k", i)
		}
		first := head.Seq + 1
		var b []byte
		b, head = sealed(head, n, key)
		put(t, db, keyspace.BatchKey(nil, number, first), b)
		if key != "" {
			put(t, db, keyspace.OutcomeKey(number, key), keyspace.AppendOutcome(nil, first, head))
		}
		ends = append(ends, head)
	}
	return ends
}

// The keys have the bytes that the package comment describes, and only keys of that form
// are read.
func TestKeyForms(t *testing.T) {
	batch := []byte("e\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c")
	assert.Equal(t, batch, keyspace.BatchKey(nil, 0x01020304, 0x05060708090a0b0c))
	assert.Equal(t, append([]byte("x"), batch...), keyspace.BatchKey([]byte("x"), 0x01020304, 0x05060708090a0b0c))
	assert.Equal(t, []byte("k\x01\x02\x03\x04a key"), keyspace.OutcomeKey(0x01020304, "a key"))
	assert.Equal(t, []byte("sname"), keyspace.SessionKey("name"))
	assert.Equal(t, []byte("f"), keyspace.FormatKey())
	assert.Equal(t, []byte("d"), keyspace.HeadsKey())
	for _, tt := range []struct {
		key    []byte
		seq    chain.Seq
		number uint32
		text   string
	}{
		{batch, 0x05060708090a0b0c, 0x01020304, "the batch of entry 361984551142689548 of session number 16909060"},
		{batch[:12], 0, 0x01020304, "key 650102030405060708090a0b"},
		{append(slices.Clone(batch), 0), 0, 0x01020304, "key 650102030405060708090a0b0c00"},
		{append([]byte("k"), batch[1:]...), 0, 0x01020304, `the outcome of key "\x05\x06\a\b\t\n\v\f"`},
		{[]byte("k\x00\x00\x00\x07x"), 0, 7, `the outcome of key "x"`},
		{[]byte("k\x00\x00\x00\x07"), 0, 7, "key 6b00000007"},
		{[]byte("e\x00\x00\x00"), 0, 0, "key 65000000"},
		{[]byte("sa b"), 0, 0x61206200, `session record "a b"`},
		{nil, 0, 0, "an empty key"},
		{bytes.Repeat([]byte{0xee}, 33), 0, 0xeeeeeeee, "key " + strings.Repeat("ee", 32)},
	} {
		seq, ok := keyspace.BatchSeq(tt.key)
		assert.Equal(t, tt.seq, seq, "%q", tt.key)
		assert.Equal(t, tt.seq != 0, ok, "%q", tt.key)
		number, numbered := keyspace.Number(tt.key)
		assert.Equal(t, len(tt.key) >= 5, numbered, "%q", tt.key)
		if numbered {
			assert.Equal(t, tt.number, number, "%q", tt.key)
		} else {
			assert.Zero(t, number, "%q", tt.key)
		}
		assert.Equal(t, tt.text, keyspace.KeyText(tt.key))
	}
}

// The bounds of a number hold every key that has it, well formed or not, and no other; its
// removal takes these and leaves the others.
func TestBoundsOfANumber(t *testing.T) {
	numbers := []uint32{0, 1, 254, 255, 256, 1<<24 - 1, 1 << 24, math.MaxUint32 - 1, math.MaxUint32}
	all := func(number uint32) (keys []string) {
		prefix := string(keyspace.OutcomeKey(number, ""))[1:]
		for _, rest := range []string{"", "\x00", "\x00\x00\x00\x00\x00\x00\x00\x01", "\xff\xff\xff\xff\xff\xff\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
			keys = append(keys, "e"+prefix+rest, "k"+prefix+rest)
		}
		return keys
	}
	for _, number := range numbers {
		db := empty(t)
		others := []string{"d", "e", "f", "k", "l", "s", "sname"}
		for _, n := range numbers {
			if n != number {
				others = append(others, all(n)...)
			}
		}
		for _, key := range slices.Concat(others, all(number)) {
			put(t, db, []byte(key), []byte("value"))
		}
		var within []string
		for _, bounds := range keyspace.Ranges(number) {
			it, err := db.NewIter(bounds)
			require.NoError(t, err)
			for ok := it.First(); ok; ok = it.Next() {
				within = append(within, string(it.Key()))
			}
			require.NoError(t, it.Close())
		}
		assert.ElementsMatch(t, all(number), within, "number %d", number)
		batch := db.NewBatch()
		require.NoError(t, errors.Join(keyspace.AppendRemoval(batch, number), batch.Commit(pebble.NoSync)))
		assert.ElementsMatch(t, others, keysOf(t, db), "without number %d", number)
	}
}

// SeekBatch stands at the batch that holds an entry: the last one that begins at or in
// front of it. Without one it stands at the first key of the session. It passes keys that
// are malformed, and never leaves the session.
func TestSeekBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db := database(t, vfs.NewMem())
		begins := slices.Sorted(maps.Keys(rapid.MapOfN(rapid.Uint64Range(1, 30), rapid.Just(true), 0, 8).Draw(t, "batches")))
		malformed := rapid.MapOfN(rapid.Uint64Range(0, 31), rapid.SampledFrom([]int{-8, -1, 1}), 0, 4).Draw(t, "malformed")
		var keys []string // of the session
		for _, seq := range begins {
			keys = append(keys, string(keyspace.BatchKey(nil, 7, chain.Seq(seq))))
		}
		for seq, longer := range malformed {
			key := append(keyspace.BatchKey(nil, 7, chain.Seq(seq)), 5)
			keys = append(keys, string(key[:keyspace.BatchKeySize+longer]))
		}
		slices.Sort(keys)
		for _, key := range keys {
			put(t, db, []byte(key), nil)
		}
		for _, other := range []uint32{6, 8} {
			put(t, db, keyspace.BatchKey(nil, other, 3), nil)
		}
		for seq := range uint64(33) {
			want := ""
			if len(keys) > 0 {
				want = keys[0]
			}
			for _, first := range begins {
				if first <= seq {
					want = string(keyspace.BatchKey(nil, 7, chain.Seq(first)))
				}
			}
			it, err := keyspace.SeekBatch(context.Background(), db, 7, chain.Seq(seq))
			require.NoError(t, err)
			got := ""
			if it.Valid() {
				got = string(it.Key())
			}
			if got != want {
				t.Fatalf("entry %d: stands at %x, want %x", seq, got, want)
			}
			require.NoError(t, it.Close())
		}
		has, err := keyspace.HasBatch(db, 7)
		require.NoError(t, err)
		if has != (len(keys) > 0) {
			t.Fatalf("%d keys, and has batches: %v", len(keys), has)
		}
		require.NoError(t, db.Close())
	})
}

// The hash of each entry is that of the chain, and the last entry is the end of the last
// batch, with its time. What is not there is an error that names the entry.
func TestEntriesOfASession(t *testing.T) {
	db := empty(t)
	sizes := []int{1, 3, 2, 1}
	ends := written(t, db, 7, sizes...)
	written(t, db, 6, 5)
	written(t, db, 8, 5)
	genesis := chain.Genesis("a")

	head, at, err := keyspace.LastEntry(db, 7, genesis)
	require.NoError(t, err)
	assert.Equal(t, ends[3], head)
	assert.Equal(t, 7*time.Second, at)
	head, at, err = keyspace.LastEntry(db, 5, genesis)
	require.NoError(t, err)
	assert.Equal(t, chain.Head{Hash: genesis}, head)
	assert.Zero(t, at)

	after, seq := chain.Head{Hash: genesis}, chain.Seq(1)
	for i, n := range sizes {
		for k := range n { // a shorter batch of the same entries ends at the inner entry
			_, want := sealed(after, k+1, map[bool]string{true: fmt.Sprint("k", i)}[i%2 == 1])
			hash, err := keyspace.HashAt(t.Context(), db, 7, seq)
			require.NoError(t, err)
			assert.Equal(t, want, chain.Head{Seq: seq, Hash: hash})
			seq++
		}
		after = ends[i]
	}
	for _, tt := range []struct {
		number uint32
		seq    chain.Seq
	}{{7, 8}, {7, 0}, {5, 1}} {
		hash, err := keyspace.HashAt(t.Context(), db, tt.number, tt.seq)
		var broken *chain.EntryError
		require.ErrorAs(t, err, &broken)
		assert.Equal(t, chain.EntryError{Seq: tt.seq, Op: "read", Err: chain.ErrCorrupt}, *broken)
		assert.Zero(t, hash)
	}
}

// A batch is read only under the key of its first entry, whole, and without bytes behind
// it; the error names the entry at which it breaks.
func TestDamagedBatch(t *testing.T) {
	whole, end := sealed(chain.Head{Seq: 4}, 3, "k")
	first, _ := sealed(chain.Head{Seq: 4}, 1, "k")
	second, _ := sealed(chain.Head{Seq: 4}, 2, "k")
	undecodable := slices.Clone(whole)
	undecodable[len(second)+1] = 0x93 // the third body: an array of three
	key := keyspace.BatchKey(nil, 7, 5)
	head, at, err := keyspace.BatchEnd(key, whole)
	require.NoError(t, err)
	assert.Equal(t, end, head)
	assert.Equal(t, 7*time.Second, at)
	for name, tt := range map[string]struct {
		key, value []byte
		want       error
		seq        chain.Seq // of the EntryError; 0 for none
		op         string
	}{
		"not a key":               {key[:12], whole, chain.ErrCorrupt, 0, ""},
		"another tag":             {append([]byte("k"), key[1:]...), whole, chain.ErrCorrupt, 0, ""},
		"the key of the next":     {keyspace.BatchKey(nil, 7, 6), whole, chain.ErrCorrupt, 0, ""},
		"empty":                   {key, nil, chain.ErrCorrupt, 0, ""},
		"another version":         {key, append([]byte{9}, whole[1:]...), chain.ErrVersion, 0, ""},
		"cut in the first entry":  {key, whole[:len(first)-1], chain.ErrCorrupt, 5, "read"},
		"cut in the second entry": {key, whole[:len(first)], chain.ErrCorrupt, 6, "read"},
		"cut in the third entry":  {key, whole[:len(whole)-1], chain.ErrCorrupt, 7, "read"},
		"the last body is none":   {key, undecodable, chain.ErrCorrupt, 7, "decode"},
		"a byte behind":           {key, append(slices.Clone(whole), 0), chain.ErrCorrupt, 7, "read"},
	} {
		head, at, err := keyspace.BatchEnd(tt.key, tt.value)
		require.ErrorIs(t, err, tt.want, name)
		assert.Zero(t, head, name)
		assert.Zero(t, at, name)
		broken, isBroken := errors.AsType[*chain.EntryError](err)
		assert.Equal(t, tt.seq != 0, isBroken, name)
		if isBroken {
			assert.Equal(t, tt.seq, broken.Seq, name)
			assert.Equal(t, tt.op, broken.Op, name)
		}
		if tt.seq == 0 {
			_, err = keyspace.OpenBatch(tt.key, tt.value)
			require.ErrorIs(t, err, tt.want, name)
		}
		if len(tt.key) == keyspace.BatchKeySize && tt.key[0] == keyspace.TagBatch { // the same through a store
			db := empty(t)
			put(t, db, tt.key, tt.value)
			_, _, err = keyspace.LastEntry(db, 7, chain.Genesis("a"))
			require.ErrorIs(t, err, tt.want, name)
			seq, _ := keyspace.BatchSeq(tt.key)
			if tt.op == "decode" || name == "a byte behind" {
				continue // the links can be read
			}
			_, err = keyspace.HashAt(t.Context(), db, 7, max(seq, tt.seq))
			require.ErrorIs(t, err, tt.want, name)
		}
	}
}

// An outcome has the bytes that its comment describes, and is confirmed only by the batch
// that it names, in each of its parts.
func TestOutcomes(t *testing.T) {
	db := empty(t)
	ends := written(t, db, 7, 1, 3, 2, 2)
	written(t, db, 8, 1)
	want := keyspace.KeyOutcome{First: 2, Head: ends[1]}
	stored := slices.Concat([]byte{0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4}, ends[1].Hash[:])
	assert.Equal(t, append([]byte("x"), stored...), keyspace.AppendOutcome([]byte("x"), 2, ends[1]))
	assert.Equal(t, want, keyspace.DecodeOutcome(stored))
	for _, bad := range [][]byte{nil, stored[:47], append(slices.Clone(stored), 0)} {
		assert.Equal(t, keyspace.KeyOutcome{Malformed: true}, keyspace.DecodeOutcome(bad))
	}
	got, found, err := keyspace.FindOutcome(db, 7, "k1")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, want, got)
	got, found, err = keyspace.FirstAppend(db, 7, "k1")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, want, got)
	for _, number := range []uint32{7, 8} {
		for _, find := range []func(pebble.Reader, uint32, string) (keyspace.KeyOutcome, bool, error){keyspace.FindOutcome, keyspace.FirstAppend} {
			got, found, err = find(db, number, "k2")
			require.NoError(t, err)
			assert.False(t, found)
			assert.Zero(t, got)
		}
	}

	cut := slices.Clone(must(t, db, keyspace.BatchKey(nil, 7, 2)))
	put(t, db, keyspace.BatchKey(nil, 7, 20), cut[:len(cut)-1]) // cannot be read
	malformed := want
	malformed.Malformed = true
	for name, o := range map[string]keyspace.KeyOutcome{
		"malformed":               malformed,
		"no first entry":          {First: 0, Head: ends[1]},
		"a batch without a key":   {First: 1, Head: ends[0]},
		"the middle of a batch":   {First: 3, Head: ends[1]},
		"another end":             {First: 2, Head: chain.Head{Seq: 3, Hash: ends[1].Hash}},
		"another hash":            {First: 2, Head: chain.Head{Seq: 4, Hash: ends[0].Hash}},
		"the batch of another":    {First: 7, Head: ends[3]},
		"no such batch":           {First: 9, Head: ends[1]},
		"a batch that is damaged": {First: 20, Head: ends[1]},
	} {
		holds, err := o.Holds(db, 7, []byte("k1"))
		require.NoError(t, err, name)
		assert.False(t, holds, name)
		if o.Malformed {
			continue
		}
		put(t, db, keyspace.OutcomeKey(7, "k1"), keyspace.AppendOutcome(nil, o.First, o.Head))
		_, found, err = keyspace.FirstAppend(db, 7, "k1")
		require.ErrorIs(t, err, chain.ErrCorrupt, name)
		assert.False(t, found, name)
	}
	holds, err := want.Holds(db, 7, []byte("k1"))
	require.NoError(t, err)
	assert.True(t, holds)

	put(t, db, keyspace.OutcomeKey(7, "k1"), stored)
	outcomes := map[string]string{}
	require.NoError(t, keyspace.EachOutcome(t.Context(), db, 7, func(key, outcome []byte) error {
		outcomes[string(key)] = string(outcome)
		return nil
	}))
	assert.Equal(t, map[string]string{"k1": string(stored), "k3": string(keyspace.AppendOutcome(nil, 7, ends[3]))}, outcomes)
	carried := map[string]keyspace.KeyOutcome{}
	require.NoError(t, keyspace.EachCarriedKey(t.Context(), db, 7, func(key []byte, o keyspace.KeyOutcome) error {
		carried[string(key)] = o
		return nil
	}))
	assert.Equal(t, map[string]keyspace.KeyOutcome{"k1": want, "k3": {First: 7, Head: ends[3]}}, carried)

	// The function's error ends the iteration; so does the context, after a while.
	calls, stop := 0, errors.New("stop")
	require.ErrorIs(t, keyspace.EachOutcome(t.Context(), db, 7, func(_, _ []byte) error { calls++; return stop }), stop)
	assert.Equal(t, 1, calls)
	for i := range 600 {
		put(t, db, keyspace.OutcomeKey(9, fmt.Sprintf("%03d", i)), stored)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	require.ErrorIs(t, keyspace.EachOutcome(ctx, db, 9, func(_, _ []byte) error {
		if calls++; calls == 300 {
			cancel()
		}
		return nil
	}), context.Canceled)
	assert.Equal(t, 511, calls, "it looks at the context every 256 values")
}

// must returns the value of a key.
func must(t *testing.T, db *pebble.DB, key []byte) []byte {
	t.Helper()
	v, closer, err := db.Get(key)
	require.NoError(t, err)
	v = slices.Clone(v)
	require.NoError(t, closer.Close())
	return v
}

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// The session records are listed by number and name, apart from the tombstones and from
// those that cannot be read, which keep the number that they name.
func TestRecords(t *testing.T) {
	db := empty(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 7, time.UTC)
	tomb := keyspace.Tombstone{Session: "gone", Number: 0x01020304, Head: chain.Head{Seq: 5, Hash: chain.Genesis("x")}, At: at}
	earlier := keyspace.Tombstone{Session: "older", Number: 9, Head: tomb.Head, At: at}
	twin := keyspace.Tombstone{Session: "fellow", Number: 9, Head: tomb.Head, At: at}
	stored := slices.Concat([]byte{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5}, tomb.Head.Hash[:], binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))
	assert.Equal(t, append([]byte("x"), stored...), keyspace.AppendTombstone([]byte("x"), &tomb))
	unnumbered, unheaded := tomb, tomb
	unnumbered.Number, unheaded.Head.Seq = 0, 0
	for name, value := range map[string][]byte{
		"z": be32(1), "b": be32(2), "c": be32(2), "a": be32(300), "y": be32(math.MaxUint32 - 1),
		"gone": stored, "older": keyspace.AppendTombstone(nil, &earlier), "fellow": keyspace.AppendTombstone(nil, &twin),
		"bad: three": {0, 0, 1}, "bad: five": {0, 0, 0, 1, 0}, "bad: zero": be32(0), "bad: last": be32(math.MaxUint32),
		"bad: longer": append(slices.Clone(stored), 0), "bad: no number": keyspace.AppendTombstone(nil, &unnumbered),
		"bad: no entries": keyspace.AppendTombstone(nil, &unheaded), "bad\nname": be32(4), "bad\ntomb": stored,
	} {
		put(t, db, keyspace.SessionKey(name), value)
	}
	for _, key := range []string{"r", "t", "k\x00\x00\x00\x01k"} { // no records
		put(t, db, []byte(key), be32(5))
	}
	sessions := []keyspace.SessionRecord{{Name: "z", Number: 1}, {Name: "b", Number: 2}, {Name: "c", Number: 2}, {Name: "a", Number: 300}, {Name: "y", Number: math.MaxUint32 - 1}}
	tombs := []keyspace.Tombstone{twin, earlier, tomb}
	r, err := keyspace.ReadRecords(db)
	require.NoError(t, err)
	assert.Equal(t, sessions, r.Sessions)
	assert.Equal(t, tombs, r.Tombstones)
	bad := map[string]uint32{}
	says := map[string]string{}
	for _, b := range r.Bad {
		bad[b.Name], says[b.Name] = b.Number, b.Err.Error()
	}
	assert.Equal(t, map[string]uint32{
		"bad: three": 0, "bad: five": 0, "bad: zero": 0, "bad: last": 0, "bad: longer": 0, "bad: no number": 0, "bad: no entries": 0,
		"bad\nname": 4, "bad\ntomb": 0x01020304,
	}, bad)
	assert.Equal(t, "it has 3 bytes, want 4", says["bad: three"])
	assert.Equal(t, "no session has the number 0", says["bad: zero"])
	assert.Equal(t, "no session has the number 4294967295", says["bad: last"])
	assert.Equal(t, "no session has the number 0", says["bad: no number"])
	assert.Equal(t, "a tombstone of a session without entries", says["bad: no entries"])
	assert.Contains(t, says["bad\nname"], "unprintable")

	listed, listedBad, err := keyspace.Sessions(db)
	require.NoError(t, err)
	assert.Equal(t, r.Sessions, listed)
	assert.Equal(t, r.Bad, listedBad)
	buried, err := keyspace.Tombstones(db)
	require.NoError(t, err)
	assert.Equal(t, tombs, buried)
	numbers, err := keyspace.DeletedNumbers(db)
	require.NoError(t, err)
	assert.Equal(t, map[uint32]bool{9: true, 0x01020304: true}, numbers)

	for _, s := range sessions {
		number, ok, err := keyspace.SessionNumber(db, s.Name)
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, s.Number, number)
	}
	for _, name := range []string{"gone", "nobody"} {
		number, ok, err := keyspace.SessionNumber(db, name)
		require.NoError(t, err)
		assert.False(t, ok)
		assert.Zero(t, number)
	}
	for _, name := range []string{"bad: three", "bad: five", "bad: zero", "bad: last", "bad: longer"} {
		number, ok, err := keyspace.SessionNumber(db, name)
		require.ErrorIs(t, err, chain.ErrCorrupt, name)
		assert.False(t, ok, name)
		assert.Zero(t, number, name)
	}
	found, ok, err := keyspace.FindTombstone(db, "gone")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, tomb, found)
	for _, name := range []string{"a", "nobody", "bad: three"} {
		_, ok, err = keyspace.FindTombstone(db, name)
		require.NoError(t, err, name)
		assert.False(t, ok, name)
	}
	for _, name := range []string{"bad: no number", "bad: no entries"} {
		_, ok, err = keyspace.FindTombstone(db, name)
		require.ErrorIs(t, err, chain.ErrCorrupt, name)
		require.ErrorContains(t, err, fmt.Sprintf("the record of session %q", name))
		assert.False(t, ok, name)
	}

	deleted := map[uint32]bool{9: true}
	for key, is := range map[string]bool{
		string(keyspace.BatchKey(nil, 9, 1)): true, string(keyspace.OutcomeKey(9, "k")): true, "e\x00\x00\x00\x09": true,
		string(keyspace.BatchKey(nil, 8, 1)): false, string(keyspace.OutcomeKey(8, "k")): false, "e\x00\x00\x00": false,
		"s\x00\x00\x00\x09": false, "x\x00\x00\x00\x09": false, "": false,
	} {
		assert.Equal(t, is, keyspace.IsOf(deleted, []byte(key)), "%q", key)
	}
}

// Of the records that cannot be read the first thousand are listed.
func TestManyBadRecords(t *testing.T) {
	db := empty(t)
	for i := range 1002 {
		put(t, db, keyspace.SessionKey(fmt.Sprintf("bad %04d", i)), []byte("?"))
	}
	put(t, db, keyspace.SessionKey("good"), be32(1))
	r, err := keyspace.ReadRecords(db)
	require.NoError(t, err)
	require.Len(t, r.Bad, 1000)
	assert.Equal(t, "bad 0999", r.Bad[999].Name)
	assert.Equal(t, []keyspace.SessionRecord{{Name: "good", Number: 1}}, r.Sessions)
}

// The last number of a tag is the greatest one of its keys, whatever stands behind them.
func TestLastNumber(t *testing.T) {
	db := empty(t)
	last := func(tag byte) uint32 {
		n, err := keyspace.LastNumber(db, tag)
		require.NoError(t, err)
		return n
	}
	put(t, db, []byte("d\x00\x00\x00\xff"), nil)
	put(t, db, []byte("f\x00\x00\x00\xff"), nil)
	assert.Zero(t, last('e'))
	put(t, db, []byte("e\xff\xff\xff"), nil) // too short for a number
	assert.Zero(t, last('e'))
	put(t, db, keyspace.BatchKey(nil, 3, 1), nil)
	put(t, db, keyspace.BatchKey(nil, 2, 9), nil)
	put(t, db, keyspace.OutcomeKey(300, ""), nil)
	assert.Equal(t, uint32(3), last('e'))
	assert.Equal(t, uint32(300), last('k'))
}

// A deletion removes the entries and outcomes of one session, puts the tombstone in the
// place of its record and changes the version; the rest stays as it is.
func TestAppendDeletion(t *testing.T) {
	db := empty(t)
	for i, name := range []string{"a", "b", "c"} {
		put(t, db, keyspace.SessionKey(name), be32(uint32(i+1)))
		written(t, db, uint32(i+1), 1, 2)
	}
	put(t, db, keyspace.FormatKey(), []byte{keyspace.FormatVersion})
	before := keysOf(t, db)
	tomb := keyspace.Tombstone{Session: "b", Number: 2, Head: chain.Head{Seq: 3}, At: time.Unix(7, 0).UTC()}
	batch := db.NewBatch()
	require.NoError(t, errors.Join(keyspace.AppendDeletion(batch, &tomb), batch.Commit(pebble.NoSync)))
	want := slices.DeleteFunc(before, func(key string) bool {
		n, ok := keyspace.Number([]byte(key))
		return ok && n == 2
	})
	assert.Equal(t, want, keysOf(t, db))
	assert.Equal(t, []byte{2}, must(t, db, keyspace.FormatKey()))
	got, ok, err := keyspace.FindTombstone(db, "b")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, tomb, got)
}

// failing is a store of which nothing can be read.
type failing struct {
	pebble.Reader
	err error
}

func (f failing) Get([]byte) ([]byte, io.Closer, error)                 { return nil, nil, f.err }
func (f failing) NewIter(*pebble.IterOptions) (*pebble.Iterator, error) { return nil, f.err }
func (f failing) NewIterWithContext(context.Context, *pebble.IterOptions) (*pebble.Iterator, error) {
	return nil, f.err
}

// Every way to read a store returns the error that reading met: as it is, if a call of
// the store failed, and as that of a damaged block, if Pebble cannot read one.
func TestReadErrors(t *testing.T) {
	fs := vfs.NewMem()
	db := database(t, fs)
	ends := written(t, db, 7, 1, 2)
	put(t, db, keyspace.SessionKey("a"), be32(7))
	require.NoError(t, errors.Join(db.Flush(), db.Close()))
	names, err := fs.List("db")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			f, err := fs.OpenReadWrite("db/"+name, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("damage"), 8) // in the only block of keys
			require.NoError(t, errors.Join(err, f.Close()))
		}
	}
	damaged := database(t, fs)
	defer func() { assert.NoError(t, damaged.Close()) }()
	disk := errors.New("the disk says no")
	never := func(_, _ []byte) error { return errors.New("called") }
	for name, read := range map[string]func(pebble.Reader) error{
		"SeekBatch":   func(r pebble.Reader) error { _, err := keyspace.SeekBatch(t.Context(), r, 7, 1); return err },
		"HasBatch":    func(r pebble.Reader) error { _, err := keyspace.HasBatch(r, 7); return err },
		"HashAt":      func(r pebble.Reader) error { _, err := keyspace.HashAt(t.Context(), r, 7, 1); return err },
		"LastEntry":   func(r pebble.Reader) error { _, _, err := keyspace.LastEntry(r, 7, chain.Hash{}); return err },
		"FindOutcome": func(r pebble.Reader) error { _, _, err := keyspace.FindOutcome(r, 7, "k1"); return err },
		"FirstAppend": func(r pebble.Reader) error { _, _, err := keyspace.FirstAppend(r, 7, "k1"); return err },
		"Holds": func(r pebble.Reader) error {
			_, err := keyspace.KeyOutcome{First: 2, Head: ends[1]}.Holds(r, 7, []byte("k1"))
			return err
		},
		"EachOutcome":    func(r pebble.Reader) error { return keyspace.EachOutcome(t.Context(), r, 7, never) },
		"EachCarriedKey": func(r pebble.Reader) error { return keyspace.EachCarriedKey(t.Context(), r, 7, nil) },
		"ReadRecords":    func(r pebble.Reader) error { _, err := keyspace.ReadRecords(r); return err },
		"Sessions":       func(r pebble.Reader) error { _, _, err := keyspace.Sessions(r); return err },
		"SessionNumber":  func(r pebble.Reader) error { _, _, err := keyspace.SessionNumber(r, "a"); return err },
		"LastNumber":     func(r pebble.Reader) error { _, err := keyspace.LastNumber(r, 'e'); return err },
		"FindTombstone":  func(r pebble.Reader) error { _, _, err := keyspace.FindTombstone(r, "a"); return err },
		"Tombstones":     func(r pebble.Reader) error { _, err := keyspace.Tombstones(r); return err },
		"DeletedNumbers": func(r pebble.Reader) error { _, err := keyspace.DeletedNumbers(r); return err },
	} {
		require.ErrorIs(t, read(failing{err: disk}), disk, name)
		err := read(damaged)
		require.Error(t, err, name)
		if name == "SeekBatch" || name == "HashAt" { // their callers have a text of their own
			assert.True(t, pebble.IsCorruptionError(err), "%s: %v", name, err)
			continue
		}
		require.ErrorIs(t, err, keyspace.ErrDamagedBlock, name)
		require.ErrorIs(t, err, chain.ErrCorrupt, name)
		assert.NotContains(t, err.Error(), "\n", name)
	}
	err = keyspace.ReadError("look", disk)
	require.EqualError(t, err, "eventlog: look: the disk says no")
	assert.NotErrorIs(t, err, chain.ErrCorrupt)
	assert.Equal(t, "first", keyspace.FirstLine(errors.New("first\nsecond")))
}
