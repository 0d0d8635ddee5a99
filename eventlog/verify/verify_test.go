package verify_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// quiet drops the messages of Pebble.
type quiet struct{ pebble.Logger }

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}

// sealed returns a batch behind a head, with an entry at each time.
func sealed(after chain.Head, key string, at ...time.Duration) ([]byte, chain.Head) {
	var drafts []chain.Draft
	for _, at := range at {
		drafts = append(drafts, chain.Draft{Kind: chain.KindSignal, At: at, Data: []byte{0xc0}})
	}
	return chain.AppendBatch(nil, after, drafts, key)
}

// twoSessions returns a store with the sessions "a", number 7, and "b", number 8, of
// batches of 1, 3, 2 and 1 entries, of which the second and the last have the keys "k1" and
// "k3"; and the heads of the entries of "a".
func twoSessions(t *testing.T) (*pebble.DB, []chain.Head) {
	t.Helper()
	db, err := pebble.Open("db", &pebble.Options{FS: vfs.NewMem(), FormatMajorVersion: pebble.FormatWALSyncChunks, Logger: quiet{pebble.DefaultLogger}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	set := func(key, value []byte) { require.NoError(t, db.Set(key, value, pebble.NoSync)) }
	var heads []chain.Head
	for i, name := range []string{"a", "b"} {
		number := uint32(7 + i)
		set(keyspace.SessionKey(name), []byte{0, 0, 0, byte(number)})
		head := chain.Head{Hash: chain.Genesis(name)}
		for n, size := range []int{1, 3, 2, 1} {
			first, key := head.Seq+1, map[int]string{1: "k1", 3: "k3"}[n]
			var at []time.Duration
			for k := range size {
				at = append(at, time.Duration(int(first)+k)*time.Second)
				if _, h := sealed(head, key, at...); name == "a" {
					heads = append(heads, h)
				}
			}
			var b []byte
			b, head = sealed(head, key, at...)
			set(keyspace.BatchKey(nil, number, first), b)
			if key != "" {
				set(keyspace.OutcomeKey(number, key), keyspace.AppendOutcome(nil, first, head))
			}
		}
	}
	return db, heads
}

// checked verifies the session "a" with one worker and with several, which find the same.
func checked(t *testing.T, db *pebble.DB, opts verify.Options, lostEnd func(chain.Head) *verify.Fault) verify.SessionReport {
	t.Helper()
	if lostEnd == nil {
		lostEnd = func(chain.Head) *verify.Fault { return nil }
	}
	var reports []verify.SessionReport
	for _, workers := range []int{1, 3} {
		opts.Workers = workers
		r, err := verify.Session(t.Context(), verify.StoredSession{Reader: db, Name: "a", Number: 7, LostEnd: lostEnd}, opts)
		require.NoError(t, err)
		reports = append(reports, r)
	}
	require.Equal(t, reports[0], reports[1])
	return reports[0]
}

// Each change of a session's batches is named by the first entry that it concerns, its
// kind and its details, and the chain is whole in front of it.
func TestFaultOfAChain(t *testing.T) {
	key := func(seq chain.Seq) []byte { return keyspace.BatchKey(nil, 7, seq) }
	count := func(b []byte, n byte) []byte { b = bytes.Clone(b); b[2] = n; return b } // version, first, count
	for name, tt := range map[string]struct {
		change func(get func(number uint32, seq chain.Seq) []byte, set func(key, value []byte))
		want   verify.Fault
	}{
		"a batch is gone": {
			func(_ func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(2), nil) },
			verify.Fault{Seq: 2, Kind: verify.FaultMissing, Detail: "after entry 1 comes entry 5"},
		},
		"a batch at another place": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(5), get(7, 2)) },
			verify.Fault{Seq: 5, Kind: verify.FaultReordered, Detail: "the entry at its place was written as entry 2"},
		},
		"the batch of another session": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(5), get(8, 5)) },
			verify.Fault{Seq: 5, Kind: verify.FaultForeign, Detail: `the entry at its place was written as entry 5 of session "b"`},
		},
		"the first of another session": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(1), get(8, 1)) },
			verify.Fault{Seq: 1, Kind: verify.FaultForeign, Detail: `the entry at its place was written as entry 1 of session "b"`},
		},
		"another first number": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) {
				b := bytes.Clone(get(7, 5))
				b[1] = 6
				set(key(5), b)
			},
			verify.Fault{Seq: 5, Kind: verify.FaultAltered, Detail: "the batch at its place says that it begins with entry 6"},
		},
		"a hash": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) {
				b := bytes.Clone(get(7, 5))
				b[len(b)-1] ^= 1
				set(key(5), b)
			},
			verify.Fault{Seq: 6, Kind: verify.FaultAltered, Detail: "its bytes do not give its hash"},
		},
		"a byte behind": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) {
				set(key(2), append(bytes.Clone(get(7, 2)), 0))
			},
			verify.Fault{Seq: 4, Kind: verify.FaultTrailing, Detail: "1 bytes stand behind it"},
		},
		"a lower count": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(2), count(get(7, 2), 2)) },
			verify.Fault{Seq: 2, Kind: verify.FaultAltered, Detail: "the header of the batch that begins with it says 2 entries, and 3 stand in it"},
		},
		"a higher count": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(2), count(get(7, 2), 4)) },
			verify.Fault{Seq: 2, Kind: verify.FaultAltered, Detail: "the header of the batch that begins with it says 4 entries, and 3 stand in it"},
		},
		"a higher count at the end, with a key": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(7), count(get(7, 7), 2)) },
			verify.Fault{Seq: 7, Kind: verify.FaultAltered, Detail: "the header of the batch that begins with it says 2 entries, and 1 stand in it"},
		},
		"a higher count at the end": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) {
				set(key(7), nil)
				set(key(5), count(get(7, 5), 3))
			},
			verify.Fault{Seq: 7, Kind: verify.FaultMissing, Detail: "its batch ends before it"},
		},
		"an entry cut off": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) {
				b := get(7, 5)
				set(key(5), b[:len(b)-1])
			},
			verify.Fault{Seq: 6, Kind: verify.FaultAltered, Detail: "eventlog: corrupt: entry claims 13 bytes, the batch has 44 left"},
		},
		"another version": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) {
				b := bytes.Clone(get(7, 2))
				b[0] = 9
				set(key(2), b)
			},
			verify.Fault{Seq: 2, Kind: verify.FaultAltered, Detail: "eventlog: unknown format version: batch has version 9, this program reads 1"},
		},
		"no batch behind the end": {
			func(_ func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(8), []byte("x")) },
			verify.Fault{Seq: 7, Kind: verify.FaultTrailing, Detail: "the value behind it, at the place of entry 8, is not a batch: eventlog: unknown format version: batch has version 120, this program reads 1"},
		},
		"a batch within another": {
			func(get func(uint32, chain.Seq) []byte, set func(_, _ []byte)) {
				b, _ := sealed(chain.Head{Seq: 2}, "", 1)
				set(key(3), b)
			},
			verify.Fault{Seq: 3, Kind: verify.FaultReordered, Detail: "a second batch begins with it, behind entry 4"},
		},
		"a value in front": {
			func(_ func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(key(0), []byte("x")) },
			verify.Fault{Seq: 1, Kind: verify.FaultTrailing, Detail: "a value stands before the first entry"},
		},
		"a key of no form": {
			func(_ func(uint32, chain.Seq) []byte, set func(_, _ []byte)) { set(append(key(2), 5), []byte("x")) },
			verify.Fault{Seq: 4, Kind: verify.FaultTrailing, Detail: "key 6500000007000000000000000205 is not a batch's"},
		},
	} {
		db, heads := twoSessions(t)
		get := func(number uint32, seq chain.Seq) []byte {
			v, closer, err := db.Get(keyspace.BatchKey(nil, number, seq))
			require.NoError(t, err, name)
			v = slices.Clone(v)
			require.NoError(t, closer.Close())
			return v
		}
		tt.change(get, func(key, value []byte) {
			if value == nil {
				require.NoError(t, db.Delete(key, pebble.NoSync))
			} else {
				require.NoError(t, db.Set(key, value, pebble.NoSync))
			}
		})
		r := checked(t, db, verify.Options{}, nil)
		if !assert.NotNil(t, r.Fault, name) {
			continue
		}
		assert.Equal(t, tt.want, *r.Fault, name)
		want := chain.Head{Hash: chain.Genesis("a")}
		if tt.want.Seq > 1 {
			want = heads[tt.want.Seq-2]
		}
		assert.Equal(t, want, r.Head, name)
		assert.False(t, r.Whole(), name)
		assert.Equal(t, fmt.Sprintf("entry %d is %s: %s", tt.want.Seq, tt.want.Kind, tt.want.Detail), r.Fault.String(), name)
	}
}

// Entries that fit their hashes are still no log's if their times go back.
func TestFaultOfTimes(t *testing.T) {
	db, heads := twoSessions(t)
	for name, at := range map[string][]time.Duration{"entry 8": {6 * time.Second}, "entry 9": {7 * time.Second, 7*time.Second - 1}} {
		b, _ := sealed(heads[6], "", at...)
		require.NoError(t, db.Set(keyspace.BatchKey(nil, 7, 8), b, pebble.NoSync))
		r := checked(t, db, verify.Options{}, nil)
		require.NotNil(t, r.Fault, name)
		assert.Equal(t, verify.FaultInvalid, r.Fault.Kind, name)
		assert.Equal(t, name, fmt.Sprint("entry ", r.Fault.Seq))
		assert.Equal(t, fmt.Sprintf("its session time %v is before that of the entry before it, 7s", at[len(at)-1]), r.Fault.Detail)
	}
	b, head := sealed(heads[6], "", 7*time.Second)
	require.NoError(t, db.Set(keyspace.BatchKey(nil, 7, 8), b, pebble.NoSync))
	r := checked(t, db, verify.Options{}, nil)
	assert.True(t, r.Whole(), "the same time: %v", r.Fault)
	assert.Equal(t, head, r.Head)
}

// A whole chain contains the heads of its entries and no other; a loss behind its end is
// reported; progress comes to the end.
func TestExpectedHeads(t *testing.T) {
	db, heads := twoSessions(t)
	last := heads[6]
	for _, h := range heads {
		r := checked(t, db, verify.Options{Expect: h}, nil)
		assert.True(t, r.Whole(), "%v: %v", h, r.Fault)
		assert.Equal(t, last, r.Head)
	}
	other := chain.Genesis("other")
	r := checked(t, db, verify.Options{Expect: chain.Head{Seq: 5, Hash: other}}, nil)
	assert.Equal(t, &verify.Fault{Seq: 5, Kind: verify.FaultAltered, Detail: "the chain is whole, but its hash here is not the " + other.String() + " kept elsewhere: the history up to here was rewritten"}, r.Fault)
	assert.Equal(t, heads[3], r.Head)
	r = checked(t, db, verify.Options{Expect: chain.Head{Seq: 8, Hash: other}}, nil)
	assert.Equal(t, &verify.Fault{Seq: 8, Kind: verify.FaultMissing, Detail: "the log ends with entry 7, the head kept elsewhere is 8:" + other.String()}, r.Fault)
	assert.Equal(t, last, r.Head)
	_, err := verify.Session(t.Context(), verify.StoredSession{Reader: db, Name: "a", Number: 7}, verify.Options{Expect: chain.Head{Hash: other}})
	require.ErrorIs(t, err, chain.ErrInvalid)

	lost := &verify.Fault{Seq: 8, Kind: verify.FaultMissing, Detail: "it was noted"}
	r = checked(t, db, verify.Options{}, func(end chain.Head) *verify.Fault {
		assert.Equal(t, last, end)
		return lost
	})
	assert.Equal(t, lost, r.Fault)
	assert.Equal(t, last, r.Head)

	var done, total chain.Seq
	checked(t, db, verify.Options{Progress: func(d, n chain.Seq) { done, total = d, n }}, nil)
	assert.Equal(t, chain.Seq(7), done)
	assert.Equal(t, chain.Seq(7), total)

	for _, seq := range []chain.Seq{1, 2, 5, 7} {
		require.NoError(t, db.Delete(keyspace.BatchKey(nil, 7, seq), pebble.NoSync))
	}
	r = checked(t, db, verify.Options{}, nil)
	assert.Equal(t, &verify.Fault{Seq: 1, Kind: verify.FaultMissing, Detail: "the session has a record, but no entries"}, r.Fault)
	assert.Equal(t, chain.Head{Hash: chain.Genesis("a")}, r.Head)
}

// A store that cannot be read is an error, and no fault.
func TestReaderFails(t *testing.T) {
	disk := errors.New("the disk says no")
	_, err := verify.Session(t.Context(), verify.StoredSession{Reader: failing{err: disk}, Name: "a", Number: 7}, verify.Options{})
	require.ErrorIs(t, err, disk)
	_, err = verify.Store(t.Context(), failing{err: disk})
	require.ErrorIs(t, err, disk)
}

type failing struct {
	pebble.Reader
	err error
}

func (f failing) NewIter(*pebble.IterOptions) (*pebble.Iterator, error) { return nil, f.err }

// Behind a fault nothing is checked: with one worker the progress ends at the stretch in front
// of it. Without a fault it comes to the end, in stretches.
func TestProgress(t *testing.T) {
	db, _ := twoSessions(t)
	head := chain.Head{Hash: chain.Genesis("c")}
	const batches, size = 60, 100
	firsts := []chain.Seq{}
	for range batches {
		b, next := sealed(head, "", make([]time.Duration, size)...)
		require.NoError(t, db.Set(keyspace.BatchKey(nil, 9, head.Seq+1), b, pebble.NoSync))
		firsts, head = append(firsts, head.Seq+1), next
	}
	progress := func() (done []chain.Seq, r verify.SessionReport) {
		r, err := verify.Session(t.Context(), verify.StoredSession{Reader: db, Name: "c", Number: 9, LostEnd: func(chain.Head) *verify.Fault { return nil }}, verify.Options{
			Workers: 1, Progress: func(n, total chain.Seq) {
				assert.Equal(t, chain.Seq(batches*size), total)
				done = append(done, n)
			},
		})
		require.NoError(t, err)
		return done, r
	}
	done, r := progress()
	assert.True(t, r.Whole(), "%v", r.Fault)
	// A stretch has 1024 entries and begins with the first batch that begins in it.
	assert.Equal(t, []chain.Seq{1100, 2100, 3100, 4100, 5200, 6000}, done)

	for _, i := range []int{35, 12, 3} { // from the end on: the first fault counts
		key := keyspace.BatchKey(nil, 9, firsts[i])
		v, closer, err := db.Get(key)
		require.NoError(t, err)
		v = bytes.Clone(v)
		require.NoError(t, closer.Close())
		v[len(v)-1] ^= 1
		require.NoError(t, db.Set(key, v, pebble.NoSync))
		got, r := progress()
		require.NotNil(t, r.Fault)
		assert.Equal(t, firsts[i]+size-1, r.Fault.Seq)
		var want []chain.Seq
		for _, n := range done {
			if n < firsts[i] {
				want = append(want, n)
			}
		}
		assert.Equal(t, want, got)
	}
}
