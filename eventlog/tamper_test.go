package eventlog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

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

// raw changes the store beneath a closed log.
func raw(t *testing.T, fs vfs.FS, change func(db *pebble.DB)) {
	t.Helper()
	rawIn(t, fs, pebble.FormatWALSyncChunks, change)
}

// rawIn is raw in a format of Pebble.
func rawIn(t *testing.T, fs vfs.FS, format pebble.FormatMajorVersion, change func(db *pebble.DB)) {
	t.Helper()
	db, err := pebble.Open("store", &pebble.Options{FS: fs, FormatMajorVersion: format, Logger: quiet{t}})
	require.NoError(t, err)
	change(db)
	require.NoError(t, db.Close())
}

type quiet struct{ t *testing.T }

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (q quiet) Fatalf(f string, args ...any) { q.t.Errorf(f, args...) }

func get(t *testing.T, db *pebble.DB, key []byte) []byte {
	t.Helper()
	v, closer, err := db.Get(key)
	require.NoErrorf(t, err, "key %x", key)
	v = slices.Clone(v)
	require.NoError(t, closer.Close())
	return v
}

func set(t *testing.T, db *pebble.DB, key, value []byte) {
	t.Helper()
	require.NoError(t, db.Set(key, value, pebble.Sync))
}

func remove(t *testing.T, db *pebble.DB, key []byte) {
	t.Helper()
	require.NoError(t, db.Delete(key, pebble.Sync))
}

// A newest batch that can be read and is wrong ends its session, wherever the store keeps what
// the batch was before: an append would stand behind entries that cannot be read.
func TestNewestBatchIsCut(t *testing.T) {
	places := []string{"log", "table", "table of another program"}
	for i := range 2 * len(places) {
		where, format := places[i/2], []pebble.FormatMajorVersion{pebble.FormatWALSyncChunks, pebble.FormatNewest}[i%2]
		t.Run(fmt.Sprint(where, " in format ", uint64(format)), func(t *testing.T) {
			fs := vfs.NewMem()
			cfg := eventlog.Config{FS: fs}
			l, err := eventlog.Open("store", cfg)
			require.NoError(t, err)
			ses, err := l.Session("a")
			require.NoError(t, err)
			for i := range 2 {
				_, err := ses.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, At: time.Duration(i), Data: []byte{0x80}}}})
				require.NoError(t, err)
			}
			require.NoError(t, l.Close())
			key := keyspace.BatchKey(nil, 1, 2)
			if where == "table of another program" { // its tables have no mark
				rawIn(t, fs, format, func(db *pebble.DB) {
					set(t, db, key, get(t, db, key))
					require.NoError(t, db.Flush())
					require.NoError(t, db.Compact(t.Context(), []byte{0}, []byte{0xff}, false))
				})
			}
			rawIn(t, fs, format, func(db *pebble.DB) {
				batch := get(t, db, key)
				set(t, db, key, batch[:len(batch)/2])
				if where == "table" {
					require.NoError(t, db.Flush())
				}
			})
			for range 3 {
				l, err := eventlog.Open("store", cfg)
				require.NoError(t, err)
				_, err = l.Session("a")
				require.ErrorIs(t, err, eventlog.ErrCorrupt)
				r, err := l.Verify(t.Context(), "a", verify.Options{})
				require.NoError(t, err)
				require.NotNil(t, r.Fault)
				require.NoError(t, l.Close())
			}
		})
	}
}

// cut splits a sealed batch into its parts, by the package comment alone.
func cut(t *testing.T, sealed []byte) (header []byte, links [][]byte) {
	t.Helper()
	b := sealed[1:]
	_, n := binary.Uvarint(b)
	b = b[n:]
	count, n := binary.Uvarint(b)
	b = b[n:]
	header = sealed[:len(sealed)-len(b)]
	for range count {
		size, n := binary.Uvarint(b)
		end := n + int(size) + eventlog.HashSize
		links, b = append(links, b[:end]), b[end:]
	}
	if len(b) != 0 {
		t.Fatalf("%d bytes behind the batch", len(b))
	}
	return header, links
}

// batchHeader returns the header of a sealed batch.
func batchHeader(first eventlog.Seq, count int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint([]byte{1}, uint64(first)), uint64(count))
}

// join builds a sealed batch from links.
func join(first eventlog.Seq, count int, links ...[]byte) []byte {
	return append(batchHeader(first, count), slices.Concat(links...)...)
}

// The first Seqs of the batches of session "a" that the tests tamper with; "b" has the
// same borders. The entries around them span several stretches of verification, and
// one stretch begins inside (entry 1025).
var borders = []eventlog.Seq{1, 1021, 1022, 1025, 1026, 1030, 2100, 2103}

const last = 2105 // the last batch has three entries

// record fills a store with sessions, and returns their heads.
func record(t *testing.T, fs vfs.FS, salt string, borders []eventlog.Seq, last eventlog.Seq, names ...string) map[string]eventlog.Head {
	t.Helper()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	require.NoError(t, err)
	heads := map[string]eventlog.Head{}
	for _, name := range names {
		s := session(t, l, name)
		for i, first := range borders {
			end := last + 1
			if i+1 < len(borders) {
				end = borders[i+1]
			}
			ds := drafts(int(first), int(end-first))
			for j := range ds {
				ds[j].Data = text(fmt.Sprintf("%s%s%d", salt, name, int(first)+j))
			}
			if heads[name], err = s.Append(context.Background(), eventlog.Batch{Drafts: ds, Key: fmt.Sprint("k", i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	require.NoError(t, l.Close())
	return heads
}

// verified verifies with one worker and with several, compares the reports, and reads
// the session in the other ways, which may fail but must not panic.
func verified(t *testing.T, l *eventlog.Log, name string, expect eventlog.Head) verify.SessionReport {
	t.Helper()
	ctx := context.Background()
	one, err1 := l.Verify(ctx, name, verify.Options{Workers: 1, Expect: expect})
	many, err2 := l.Verify(ctx, name, verify.Options{Workers: 4, Expect: expect})
	if err1 != nil || err2 != nil {
		t.Fatalf("verify: %v, %v", err1, err2)
	}
	if d := cmp.Diff(one, many); d != "" {
		t.Errorf("one worker and four disagree (-one +four):\n%s", d)
	}
	s, err := l.Session(name)
	if err != nil {
		return one // a broken tail; the session cannot be begun
	}
	good := eventlog.Seq(0)
	for e, err := range s.Entries(ctx, 1) {
		if err != nil {
			break
		}
		if e.Seq != good+1 {
			t.Errorf("entry %d is handed out after %d", e.Seq, good)
		}
		good = e.Seq
	}
	for _, seq := range []eventlog.Seq{1, 1023, 1025, last, last + 1} {
		_, _ = s.Entry(ctx, seq)
	}
	return one
}

// Each way of tampering with a store is found at its exact Seq and with its kind; the
// other session stays intact.
func TestTampering(t *testing.T) {
	const number = 1 // of session a; b has 2
	a := func(seq eventlog.Seq) []byte { return keyspace.BatchKey(nil, number, seq) }
	b := func(seq eventlog.Seq) []byte { return keyspace.BatchKey(nil, number+1, seq) }
	base := vfs.NewCrashableMem()
	heads := record(t, base, "", borders, last, "a", "b")
	foreign := vfs.NewMem()
	record(t, foreign, "", borders, last, "c")
	rewritten := vfs.NewMem()
	record(t, rewritten, "other ", borders, last, "a")
	fromStore := func(fs vfs.FS, seq eventlog.Seq) (v []byte) {
		raw(t, fs, func(db *pebble.DB) { v = get(t, db, a(seq)) })
		return v
	}

	for _, tt := range []struct {
		name   string
		change func(db *pebble.DB)
		expect eventlog.Head // kept elsewhere
		seq    eventlog.Seq
		kind   verify.FaultKind // "" for none
	}{
		{"nothing", func(*pebble.DB) {}, heads["a"], 0, ""},
		{"the first batch removed", func(db *pebble.DB) { remove(t, db, a(1)) }, eventlog.Head{}, 1, verify.FaultMissing},
		{"a single entry removed", func(db *pebble.DB) { remove(t, db, a(1021)) }, eventlog.Head{}, 1021, verify.FaultMissing},
		{"a batch removed", func(db *pebble.DB) { remove(t, db, a(1022)) }, eventlog.Head{}, 1022, verify.FaultMissing},
		{"an entry removed from within a batch, its count left", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[0], ls[2]))
		}, eventlog.Head{}, 1023, verify.FaultMissing},
		{"an entry removed from within a batch, its count made to fit", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), join(1022, 2, ls[0], ls[2]))
		}, eventlog.Head{}, 1023, verify.FaultMissing},
		{"the first entry removed from a batch, its count left", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[1], ls[2]))
		}, eventlog.Head{}, 1022, verify.FaultMissing},
		{"the last entry removed from a batch, its count left", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[0], ls[1]))
		}, eventlog.Head{}, 1024, verify.FaultMissing},
		{"the last entry removed from a batch, its count made to fit", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), join(1022, 2, ls[0], ls[1]))
		}, eventlog.Head{}, 1024, verify.FaultMissing},
		{"an entry removed, those after it moved up", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			next := get(t, db, a(1025))
			_, single := cut(t, next)
			set(t, db, a(1022), join(1022, 3, ls[0], ls[2], single[0]))
			remove(t, db, a(1025))
		}, eventlog.Head{}, 1023, verify.FaultMissing},
		{"an entry of the last batch removed, its count left", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(2103)))
			set(t, db, a(2103), slices.Concat(header, ls[0], ls[2]))
		}, eventlog.Head{}, 2104, verify.FaultMissing},
		{"batches swapped", func(db *pebble.DB) {
			v, w := get(t, db, a(1021)), get(t, db, a(1025))
			set(t, db, a(1021), w)
			set(t, db, a(1025), v)
		}, eventlog.Head{}, 1021, verify.FaultReordered},
		{"batches swapped, their Seqs made to fit", func(db *pebble.DB) {
			_, v := cut(t, get(t, db, a(1021)))
			_, w := cut(t, get(t, db, a(1025)))
			set(t, db, a(1021), join(1021, 1, w...))
			set(t, db, a(1025), join(1025, 1, v...))
		}, eventlog.Head{}, 1021, verify.FaultReordered},
		{"links swapped within a batch", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[0], ls[2], ls[1]))
		}, eventlog.Head{}, 1023, verify.FaultReordered},
		{"the first two links of the log swapped", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1)))
			ls[0], ls[1] = ls[1], ls[0]
			set(t, db, a(1), slices.Concat(append([][]byte{header}, ls...)...))
		}, eventlog.Head{}, 1, verify.FaultReordered},
		{"an old batch appended again", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(last+1), join(last+1, 3, ls...))
		}, eventlog.Head{}, last + 1, verify.FaultReordered},
		{"an old batch appended again with its old Seq", func(db *pebble.DB) {
			set(t, db, a(last+1), get(t, db, a(1022)))
		}, eventlog.Head{}, last + 1, verify.FaultReordered},
		{"a second batch begins inside a batch", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1023), join(1023, 1, ls[1]))
		}, eventlog.Head{}, 1023, verify.FaultReordered},
		{"a batch replayed from another session", func(db *pebble.DB) {
			set(t, db, a(1022), get(t, db, b(1022)))
		}, eventlog.Head{}, 1022, verify.FaultForeign},
		{"the first batch of another session", func(db *pebble.DB) {
			set(t, db, a(1), get(t, db, b(1)))
		}, eventlog.Head{}, 1, verify.FaultForeign},
		{"an entry of another session within a batch", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			_, other := cut(t, get(t, db, b(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[0], other[1], ls[2]))
		}, eventlog.Head{}, 1023, verify.FaultForeign},
		{"a batch of another session appended", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, b(1022)))
			set(t, db, a(last+1), join(last+1, 3, ls...))
		}, eventlog.Head{}, last + 1, verify.FaultForeign},
		{"the session's record points to another session", func(db *pebble.DB) {
			set(t, db, keyspace.SessionKey("a"), get(t, db, keyspace.SessionKey("b")))
		}, eventlog.Head{}, 1, verify.FaultForeign},
		// A batch of another store cannot be distinguished from a changed one.
		{"a batch from another store", func(db *pebble.DB) {
			set(t, db, a(1022), fromStore(foreign, 1022))
		}, eventlog.Head{}, 1022, verify.FaultAltered},
		{"garbage behind the links of a batch", func(db *pebble.DB) {
			set(t, db, a(1022), append(get(t, db, a(1022)), 0))
		}, eventlog.Head{}, 1024, verify.FaultTrailing},
		{"a whole link behind the links of a batch", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), append(get(t, db, a(1022)), ls[2]...))
		}, eventlog.Head{}, 1024, verify.FaultTrailing},
		{"garbage behind the links of the last batch", func(db *pebble.DB) {
			set(t, db, a(2103), append(get(t, db, a(2103)), "garbage"...))
		}, eventlog.Head{}, last, verify.FaultTrailing},
		{"a garbage value at the next key", func(db *pebble.DB) {
			set(t, db, a(last+1), []byte("garbage"))
		}, eventlog.Head{}, last, verify.FaultTrailing},
		{"an empty value at the next key", func(db *pebble.DB) {
			set(t, db, a(last+1), nil)
		}, eventlog.Head{}, last, verify.FaultTrailing},
		{"a garbage value far behind", func(db *pebble.DB) {
			set(t, db, a(1<<40), []byte("garbage"))
		}, eventlog.Head{}, last + 1, verify.FaultMissing},
		{"a garbage value at the last key there is", func(db *pebble.DB) {
			set(t, db, a(1<<64-1), []byte("garbage"))
		}, eventlog.Head{}, last + 1, verify.FaultMissing},
		{"a garbage value at the key before", func(db *pebble.DB) {
			set(t, db, a(1<<64-2), []byte("garbage"))
		}, eventlog.Head{}, last + 1, verify.FaultMissing},
		{"a key of the wrong length", func(db *pebble.DB) {
			set(t, db, append(a(1022), 7), []byte("garbage"))
		}, eventlog.Head{}, 1024, verify.FaultTrailing},
		{"a batch at Seq 0", func(db *pebble.DB) {
			set(t, db, a(0), get(t, db, a(1021)))
		}, eventlog.Head{}, 1, verify.FaultTrailing},
		{"a newer version", func(db *pebble.DB) {
			v := get(t, db, a(1022))
			v[0]++
			set(t, db, a(1022), v)
		}, eventlog.Head{}, 1022, verify.FaultAltered},
		{"an empty value in the middle", func(db *pebble.DB) {
			set(t, db, a(1022), nil)
		}, eventlog.Head{}, 1022, verify.FaultAltered},
		{"the tail cut, found by the noted head", func(db *pebble.DB) { remove(t, db, a(2103)) }, eventlog.Head{}, 2103, verify.FaultMissing},
		{"the tail cut", func(db *pebble.DB) { remove(t, db, a(2103)) }, heads["a"], 2103, verify.FaultMissing},
		{"the tail cut within a batch", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(2103)))
			set(t, db, a(2103), join(2103, 2, ls[0], ls[1]))
		}, heads["a"], last, verify.FaultMissing},
		{"all of it cut", func(db *pebble.DB) {
			for _, first := range borders {
				remove(t, db, a(first))
			}
		}, heads["a"], 1, verify.FaultMissing},
		{"the history rewritten, found by the noted head", func(db *pebble.DB) {
			for _, first := range borders {
				set(t, db, a(first), fromStore(rewritten, first))
			}
		}, eventlog.Head{}, last, verify.FaultAltered},
		{"the history rewritten", func(db *pebble.DB) {
			for _, first := range borders {
				set(t, db, a(first), fromStore(rewritten, first))
			}
		}, heads["a"], last, verify.FaultAltered},
		{"another session's head kept", func(*pebble.DB) {}, heads["b"], last, verify.FaultAltered},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := base.CrashClone(vfs.CrashCloneCfg{})
			raw(t, fs, tt.change)
			l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: true})
			require.NoError(t, err)
			r := verified(t, l, "a", tt.expect)
			switch {
			case tt.kind == "" && r.Fault != nil:
				t.Errorf("fault: %v", r.Fault)
			case tt.kind != "" && r.Fault == nil:
				t.Errorf("no fault, want entry %d %s", tt.seq, tt.kind)
			case r.Fault != nil && (r.Fault.Seq != tt.seq || r.Fault.Kind != tt.kind):
				t.Errorf("%v; want entry %d %s", r.Fault, tt.seq, tt.kind)
			case r.Fault != nil && r.Head.Seq != r.Fault.Seq-1:
				t.Errorf("the last good place is %v, the fault is at %d", r.Head, r.Fault.Seq)
			}
			if r := verified(t, l, "b", heads["b"]); r.Fault != nil {
				t.Errorf("session b: %v", r.Fault)
			}
			assert.NoError(t, l.Close())
		})
	}
}

// Every single bit of single-entry and multi-entry batches is flipped, also of the last
// batch. The fault is at the entry that the bit belongs to; the bits of a header belong
// to the first entry of its batch.
func TestEveryBitFlipped(t *testing.T) {
	fs := vfs.NewMem()
	borders := []eventlog.Seq{1, 4, 5, 8, 11}
	heads := record(t, fs, "", borders, 11, "a")
	l := open(t, fs, eventlog.Config{})
	for _, first := range borders {
		key := keyspace.BatchKey(nil, 1, first)
		var whole []byte
		require.NoError(t, l.Get(key, &whole))
		header, links := cut(t, whole)
		// owner[i] is the entry that byte i belongs to.
		owner := slices.Repeat([]eventlog.Seq{first}, len(header))
		for i, link := range links {
			owner = append(owner, slices.Repeat([]eventlog.Seq{first + eventlog.Seq(i)}, len(link))...)
		}
		for bit := 0; bit < 8*len(whole); bit += stride(13) {
			flipped := bytes.Clone(whole)
			flipped[bit/8] ^= 1 << (bit % 8)
			require.NoError(t, l.Put(key, flipped))
			seq, kind := owner[bit/8], verify.FaultAltered
			r := verified(t, l, "a", eventlog.Head{})
			if r.Fault == nil {
				t.Errorf("batch %d, bit %d of byte %d of %x: no fault", first, bit%8, bit/8, whole)
			} else if r.Fault.Seq != seq || r.Fault.Kind != kind {
				t.Errorf("batch %d, bit %d of byte %d of %x: %v; want entry %d %s", first, bit%8, bit/8, whole, r.Fault, seq, kind)
			}
		}
		require.NoError(t, l.Put(key, whole))
		if r := verified(t, l, "a", heads["a"]); r.Fault != nil {
			t.Errorf("restored: %v", r.Fault)
		}
	}
}

// varint returns a number as a uvarint of size bytes, or of the fewest bytes if size
// is 0.
func varint(v uint64, size int) []byte {
	b := binary.AppendUvarint(nil, v)
	for len(b) < size {
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	return b
}

// TestAttackHeaders puts every count, many first Seqs, other versions and longer forms
// of the same numbers into the headers of batches, with unchanged links, and changes
// the lengths of links. A change of a header is reported at the batch's first entry, a
// change of a length at the entry of the link.
func TestAttackHeaders(t *testing.T) {
	borders := []eventlog.Seq{1, 4, 5, 8, 11}
	ends := append(slices.Clone(borders[1:]), 13)
	for _, keyed := range []bool{true, false} {
		fs := vfs.NewMem()
		l := open(t, fs, eventlog.Config{})
		s := session(t, l, "a")
		for i, first := range borders {
			b := eventlog.Batch{Drafts: drafts(int(first), int(ends[i]-first))}
			if keyed {
				b.Key = fmt.Sprint("k", i)
			}
			must(t, s, b)
		}
		try := func(what string, first eventlog.Seq, value []byte, seq eventlog.Seq, kind verify.FaultKind) {
			t.Helper()
			require.NoError(t, l.Put(keyspace.BatchKey(nil, 1, first), value))
			r := verified(t, l, "a", eventlog.Head{})
			if r.Fault == nil || r.Fault.Seq != seq || r.Fault.Kind != kind || r.Head.Seq != seq-1 {
				t.Errorf("keys %v, batch %d, %s: %v, whole up to %d; want entry %d %s", keyed, first, what, r.Fault, r.Head.Seq, seq, kind)
			}
		}
		for i, first := range borders {
			var whole []byte
			require.NoError(t, l.Get(keyspace.BatchKey(nil, 1, first), &whole))
			header, links := cut(t, whole)
			body := whole[len(header):]
			n := uint64(ends[i] - first)
			for count := range uint64(attack.Rounds(16, 70_000)) {
				if count == n {
					continue
				}
				seq, kind := first, verify.FaultAltered
				if count > n && count <= eventlog.MaxBatchEntries && i == len(borders)-1 && !keyed {
					seq, kind = first+eventlog.Seq(n), verify.FaultMissing // as if entries had been cut off
				}
				try(fmt.Sprint("count ", count), first, slices.Concat([]byte{1}, varint(uint64(first), 0), varint(count, 0), body), seq, kind)
			}
			for _, other := range []uint64{0, 1, 2, 4, 5, 7, 12, 13, 14, 300, 1 << 32, 1<<64 - 1, 1<<64 - 2} {
				if other != uint64(first) {
					try(fmt.Sprint("first ", other), first, slices.Concat([]byte{1}, varint(other, 0), varint(n, 0), body), first, verify.FaultAltered)
				}
			}
			for size := 2; size < 12; size++ {
				try("a long first", first, slices.Concat([]byte{1}, varint(uint64(first), size), varint(n, 0), body), first, verify.FaultAltered)
				try("a long count", first, slices.Concat([]byte{1}, varint(uint64(first), 0), varint(n, size), body), first, verify.FaultAltered)
			}
			for version := range 256 {
				if version != 1 && version%attack.Rounds(31, 1) == 0 {
					try(fmt.Sprint("version ", version), first, append([]byte{byte(version)}, whole[1:]...), first, verify.FaultAltered)
				}
			}
			for j := range links {
				at := len(header) + len(slices.Concat(links[:j]...))
				for length := range 128 {
					if byte(length) == whole[at] || length%attack.Rounds(5, 1) != 0 && length < 60 {
						continue
					}
					changed := bytes.Clone(whole)
					changed[at] = byte(length)
					try(fmt.Sprintf("link %d of length %d", j, length), first, changed, first+eventlog.Seq(j), verify.FaultAltered)
				}
			}
			require.NoError(t, l.Put(keyspace.BatchKey(nil, 1, first), whole))
		}
		if r := verified(t, l, "a", eventlog.Head{}); !r.Whole() {
			t.Errorf("restored: %+v", r)
		}
	}
}
