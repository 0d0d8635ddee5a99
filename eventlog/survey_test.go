package eventlog_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// number is the value of a session record.
func number(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// begun returns a closed store with the sessions a, b and c, numbers 1 to 3, of
// two entries each, of which the second has a key.
func begun(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		must(t, session(t, l, name), eventlog.Batch{Drafts: drafts(1, 1)})
		must(t, session(t, l, name), eventlog.Batch{Drafts: drafts(2, 1), Key: "k"})
	}
	require.NoError(t, l.Close())
	// The tests must find faults without the notes, which would already reveal a
	// missing session.
	dir, err := fs.OpenDir("store")
	require.NoError(t, errors.Join(err, fs.Remove("store/"+eventlog.HeadsFile), dir.Sync(), dir.Close()))
	return fs
}

func removeSession(t *testing.T, db *pebble.DB, n uint32) {
	t.Helper()
	for seq := range eventlog.Seq(3) {
		remove(t, db, keyspace.BatchKey(nil, n, seq))
	}
}

// With any fault in one session's record, the log opens, the other sessions are listed
// and accept appends, a survey reports the fault, and a new session overwrites no
// existing key.
func TestSurvey(t *testing.T) {
	long := strings.Repeat("n", eventlog.MaxName+1)
	for _, tt := range []struct {
		name   string
		change func(db *pebble.DB)
		listed []string
		want   []verify.StoreFault
	}{
		{"nothing", func(*pebble.DB) {}, []string{"a", "b", "c"}, nil},
		{"a record of another length", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("bad"), []byte{1, 2, 3})
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreBadRecord, Session: "bad"}}},
		{"an empty record", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("bad"), nil)
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreBadRecord, Session: "bad"}}},
		{"number 0", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("bad"), number(0))
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreBadRecord, Session: "bad"}}},
		{"the last number", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("bad"), number(math.MaxUint32))
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreBadRecord, Session: "bad"}}},
		{"a name that is not UTF-8", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("\xff\xfe"), number(9))
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreBadRecord, Session: "\xff\xfe", Number: 9}}},
		{"a name with a line break", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("x\ny"), number(9))
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreBadRecord, Session: "x\ny", Number: 9}}},
		{"no name", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey(""), number(9))
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreBadRecord, Number: 9}}},
		{"a long name", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey(long), number(9))
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreBadRecord, Session: long, Number: 9}}},
		{"a session's record changed", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("b"), []byte("garbage"))
		}, []string{"a", "c"}, []verify.StoreFault{
			{Kind: verify.StoreBadRecord, Session: "b"},
			{Kind: verify.StoreOrphanedBatches, Number: 2},
			{Kind: verify.StoreOrphanedKeys, Number: 2},
		}},
		{"a session's record deleted", func(db *pebble.DB) {
			remove(t, db, keyspace.SessionKey("c"))
		}, []string{"a", "b"}, []verify.StoreFault{
			{Kind: verify.StoreOrphanedBatches, Number: 3},
			{Kind: verify.StoreOrphanedKeys, Number: 3},
		}},
		{"a session's record and entries deleted", func(db *pebble.DB) {
			remove(t, db, keyspace.SessionKey("c"))
			removeSession(t, db, 3)
		}, []string{"a", "b"}, []verify.StoreFault{{Kind: verify.StoreOrphanedKeys, Number: 3}}},
		{"a session's entries deleted", func(db *pebble.DB) {
			removeSession(t, db, 2)
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreEmptySession, Session: "b", Number: 2}}},
		{"a record that leads nowhere", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("d"), number(70))
		}, []string{"a", "b", "c", "d"}, []verify.StoreFault{{Kind: verify.StoreEmptySession, Session: "d", Number: 70}}},
		{"two records of one number", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("d"), number(2))
		}, []string{"a", "b", "d", "c"}, []verify.StoreFault{
			{Kind: verify.StoreSharedNumber, Session: "b", Number: 2}, {Kind: verify.StoreSharedNumber, Session: "d", Number: 2},
		}},
		{"an orphan under the last number", func(db *pebble.DB) {
			set(t, db, keyspace.BatchKey(nil, math.MaxUint32, 1), []byte("x"))
		}, []string{"a", "b", "c"}, []verify.StoreFault{{Kind: verify.StoreOrphanedBatches, Number: math.MaxUint32}}},
		{"malformed keys", func(db *pebble.DB) {
			set(t, db, []byte("e\xff"), []byte("x"))
			set(t, db, []byte("e\x00\x00\x00\x02"), []byte("x"))
			set(t, db, []byte("k"), []byte("x"))
		}, []string{"a", "b", "c"}, []verify.StoreFault{
			{Kind: verify.StoreBadKey, Number: 2}, {Kind: verify.StoreBadKey}, {Kind: verify.StoreBadKey},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := begun(t)
			raw(t, fs, tt.change)
			for _, readOnly := range []bool{true, false} {
				l := open(t, fs.CrashClone(vfs.CrashCloneCfg{}), eventlog.Config{ReadOnly: readOnly})
				infos, err := l.Sessions()
				require.NoError(t, err)
				var listed []string
				for _, info := range infos {
					listed = append(listed, info.Name)
				}
				if !slices.Equal(listed, tt.listed) {
					t.Errorf("listed %q, want %q", listed, tt.listed)
				}
				faults, err := l.Survey(t.Context())
				require.NoError(t, err)
				for i := range faults {
					if faults[i].Detail == "" {
						t.Errorf("%v tells nothing", faults[i])
					}
					faults[i].Detail = ""
				}
				if d := cmp.Diff(tt.want, faults); d != "" {
					t.Error(d)
				}
				if !readOnly {
					must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(3, 1)})
				}
				before := everything(t, l)
				s := session(t, l, "new")
				if _, err := s.Append(t.Context(), eventlog.Batch{Drafts: drafts(1, 1)}); err != nil && !readOnly && !strings.Contains(tt.name, "last number") {
					t.Errorf("a new session cannot begin: %v", err)
				}
				for k, v := range before {
					var now []byte
					if err := l.Get([]byte(k), &now); err != nil || string(now) != v {
						t.Errorf("key %q was changed by a new session", k)
					}
				}
			}
		})
	}
}

// The name of a session whose record is missing can be used again; its earlier entries
// stay unchanged.
func TestNumbersAreNotUsedAgain(t *testing.T) {
	fs := begun(t)
	raw(t, fs, func(db *pebble.DB) { remove(t, db, keyspace.SessionKey("c")) })
	l := open(t, fs, eventlog.Config{})
	before := everything(t, l)
	must(t, session(t, l, "c"), eventlog.Batch{Drafts: drafts(1, 2), Key: "k"})
	for k, v := range before {
		var now []byte
		if err := l.Get([]byte(k), &now); err != nil || string(now) != v {
			t.Errorf("key %q was written over", k)
		}
	}
	if r := verified(t, l, "c", eventlog.Head{}); !r.Whole() || r.Head.Seq != 2 {
		t.Errorf("the new session: %+v", r)
	}
}

// A record that leads to another session's entries cannot be used to append to them;
// nor can a record whose entries are missing or have another beginning.
func TestMisfitAppendsNothing(t *testing.T) {
	for name, change := range map[string]func(db *pebble.DB){
		"the number of another session": func(db *pebble.DB) { set(t, db, keyspace.SessionKey("d"), number(2)) },
		"the number of a session that was lost": func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("d"), number(2))
			remove(t, db, keyspace.SessionKey("b"))
		},
		"no entries": func(db *pebble.DB) { set(t, db, keyspace.SessionKey("d"), number(70)) },
	} {
		t.Run(name, func(t *testing.T) {
			fs := begun(t)
			raw(t, fs, change)
			l := open(t, fs, eventlog.Config{})
			before := everything(t, l)
			s, err := l.Session("d")
			if err == nil {
				_, err = s.Append(t.Context(), eventlog.Batch{Drafts: drafts(10, 1)})
			}
			assert.ErrorIs(t, err, eventlog.ErrCorrupt)
			if d := cmp.Diff(before, everything(t, l)); d != "" {
				t.Error(d)
			}
			r, err := l.Verify(t.Context(), "d", verify.Options{})
			if err != nil || r.Fault == nil || r.Fault.Seq != 1 {
				t.Errorf("verify: %+v, %v", r, err)
			}
		})
	}
}

// everything returns every key and value of the store beneath a log.
func everything(t *testing.T, l *eventlog.Log) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, l.Each(func(k, v []byte) { all[string(k)] = string(v) }))
	return all
}

// TestAttackRecords writes and deletes keys of all kinds at random. The log opens,
// lists and verifies the intact sessions, and beginning a session changes no existing
// key.
func TestAttackRecords(t *testing.T) {
	whole := begun(t)
	var batch []byte
	raw(t, whole, func(db *pebble.DB) { batch = get(t, db, keyspace.BatchKey(nil, 2, 1)) })
	for seed := range attack.Rounds(30, 3000) {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		fs := whole.CrashClone(vfs.CrashCloneCfg{})
		raw(t, fs, func(db *pebble.DB) {
			for range 1 + rng.IntN(6) {
				name, n := byte('a'+rng.IntN(5)), uint32(rng.IntN(6))
				if rng.IntN(8) == 0 {
					n = math.MaxUint32 - uint32(rng.IntN(2))
				}
				value := make([]byte, rng.IntN(60))
				for i := range value {
					value[i] = byte(rng.Uint32())
				}
				key := [][]byte{
					keyspace.SessionKey(string(name)), keyspace.SessionKey(string(value)),
					keyspace.BatchKey(nil, n, eventlog.Seq(rng.IntN(4))), keyspace.OutcomeKey(n, "k"),
					slices.Concat([]byte{"esk"[rng.IntN(3)]}, value),
				}[rng.IntN(5)]
				switch rng.IntN(4) {
				case 0:
					remove(t, db, key)
				case 1:
					set(t, db, key, number(n))
				case 2:
					set(t, db, key, value)
				case 3:
					set(t, db, key, batch)
				}
			}
		})
		l := open(t, fs, eventlog.Config{})
		infos, err := l.Sessions()
		require.NoErrorf(t, err, "seed %d", seed)
		faults, err := l.Survey(t.Context())
		require.NoErrorf(t, err, "seed %d", seed)
		clean := len(faults) == 0
		for _, info := range infos {
			r, err := l.Verify(t.Context(), info.Name, verify.Options{})
			assert.NoErrorf(t, err, "seed %d: %s", seed, info.Name)
			clean = clean && r.Whole()
		}
		before := everything(t, l)
		if s, err := l.Session("new"); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		} else if _, err := s.Append(t.Context(), eventlog.Batch{Drafts: drafts(1, 1), Key: "k"}); err != nil && clean {
			t.Errorf("seed %d: nothing is wrong, and no session can begin: %v", seed, err)
		}
		for k, v := range before {
			var now []byte
			if err := l.Get([]byte(k), &now); err != nil || string(now) != v {
				t.Errorf("seed %d: key %q was changed by a new session", seed, k)
			}
		}
	}
}
