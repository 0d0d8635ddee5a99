package eventlog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// raw changes the store beneath a closed log.
func raw(t *testing.T, fs vfs.FS, change func(db *pebble.DB)) {
	t.Helper()
	db, err := pebble.Open("store", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatWALSyncChunks, Logger: quiet{t}})
	if err != nil {
		t.Fatal(err)
	}
	change(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

type quiet struct{ t *testing.T }

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (q quiet) Fatalf(f string, args ...any) { q.t.Errorf(f, args...) }

func get(t *testing.T, db *pebble.DB, key []byte) []byte {
	t.Helper()
	v, closer, err := db.Get(key)
	if err != nil {
		t.Fatalf("key %x: %v", key, err)
	}
	v = slices.Clone(v)
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	return v
}

func set(t *testing.T, db *pebble.DB, key, value []byte) {
	t.Helper()
	if err := db.Set(key, value, pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, db *pebble.DB, key []byte) {
	t.Helper()
	if err := db.Delete(key, pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

// cut takes a sealed batch apart, by nothing but the package comment.
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

// join builds a sealed batch from links.
func join(first eventlog.Seq, count int, links ...[]byte) []byte {
	return append(eventlog.SealHeader(first, count), slices.Concat(links...)...)
}

// The batches of the session "a" that the tests tamper with; "b" has the same
// borders. There are enough entries around them for several stretches, and
// the border of one (entry 1025) lies inside.
var borders = []eventlog.Seq{1, 1021, 1022, 1025, 1026, 1030, 2100, 2103}

const last = 2105 // the last batch has three entries

// record fills a store with sessions, and returns their heads.
func record(t *testing.T, fs vfs.FS, salt string, borders []eventlog.Seq, last eventlog.Seq, names ...string) map[string]eventlog.Head {
	t.Helper()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return heads
}

// verify verifies with one worker and with several, compares the answers, and
// reads the session in the other ways, which may fail but not panic.
func verify(t *testing.T, l *eventlog.Log, name string, expect eventlog.Head) eventlog.Report {
	t.Helper()
	ctx := context.Background()
	one, err1 := l.Verify(ctx, name, eventlog.VerifyOptions{Workers: 1, Expect: expect})
	many, err2 := l.Verify(ctx, name, eventlog.VerifyOptions{Workers: 4, Expect: expect})
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

// Each way of tampering with a store is found, at its exact Seq and with its
// kind; the first session's neighbour stays whole.
func TestTampering(t *testing.T) {
	const number = 1 // of session a; b has 2
	a := func(seq eventlog.Seq) []byte { return eventlog.BatchKey(number, seq) }
	b := func(seq eventlog.Seq) []byte { return eventlog.BatchKey(number+1, seq) }
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
		kind   eventlog.FaultKind // "" for none
	}{
		{"nothing", func(*pebble.DB) {}, heads["a"], 0, ""},
		{"the first batch removed", func(db *pebble.DB) { remove(t, db, a(1)) }, eventlog.Head{}, 1, eventlog.FaultMissing},
		{"a single entry removed", func(db *pebble.DB) { remove(t, db, a(1021)) }, eventlog.Head{}, 1021, eventlog.FaultMissing},
		{"a batch removed", func(db *pebble.DB) { remove(t, db, a(1022)) }, eventlog.Head{}, 1022, eventlog.FaultMissing},
		{"an entry removed from within a batch, its count left", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[0], ls[2]))
		}, eventlog.Head{}, 1023, eventlog.FaultMissing},
		{"an entry removed from within a batch, its count made to fit", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), join(1022, 2, ls[0], ls[2]))
		}, eventlog.Head{}, 1023, eventlog.FaultMissing},
		{"the first entry removed from a batch, its count left", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[1], ls[2]))
		}, eventlog.Head{}, 1022, eventlog.FaultMissing},
		{"the last entry removed from a batch, its count left", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[0], ls[1]))
		}, eventlog.Head{}, 1024, eventlog.FaultMissing},
		{"the last entry removed from a batch, its count made to fit", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), join(1022, 2, ls[0], ls[1]))
		}, eventlog.Head{}, 1024, eventlog.FaultMissing},
		{"an entry removed, those after it moved up", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			next := get(t, db, a(1025))
			_, single := cut(t, next)
			set(t, db, a(1022), join(1022, 3, ls[0], ls[2], single[0]))
			remove(t, db, a(1025))
		}, eventlog.Head{}, 1023, eventlog.FaultMissing},
		{"an entry of the last batch removed, its count left", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(2103)))
			set(t, db, a(2103), slices.Concat(header, ls[0], ls[2]))
		}, eventlog.Head{}, 2104, eventlog.FaultMissing},
		{"batches swapped", func(db *pebble.DB) {
			v, w := get(t, db, a(1021)), get(t, db, a(1025))
			set(t, db, a(1021), w)
			set(t, db, a(1025), v)
		}, eventlog.Head{}, 1021, eventlog.FaultReordered},
		{"batches swapped, their Seqs made to fit", func(db *pebble.DB) {
			_, v := cut(t, get(t, db, a(1021)))
			_, w := cut(t, get(t, db, a(1025)))
			set(t, db, a(1021), join(1021, 1, w...))
			set(t, db, a(1025), join(1025, 1, v...))
		}, eventlog.Head{}, 1021, eventlog.FaultReordered},
		{"links swapped within a batch", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[0], ls[2], ls[1]))
		}, eventlog.Head{}, 1023, eventlog.FaultReordered},
		{"the first two links of the log swapped", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1)))
			ls[0], ls[1] = ls[1], ls[0]
			set(t, db, a(1), slices.Concat(append([][]byte{header}, ls...)...))
		}, eventlog.Head{}, 1, eventlog.FaultReordered},
		{"an old batch appended again", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(last+1), join(last+1, 3, ls...))
		}, eventlog.Head{}, last + 1, eventlog.FaultReordered},
		{"an old batch appended again with its old Seq", func(db *pebble.DB) {
			set(t, db, a(last+1), get(t, db, a(1022)))
		}, eventlog.Head{}, last + 1, eventlog.FaultReordered},
		{"a second batch begins inside a batch", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1023), join(1023, 1, ls[1]))
		}, eventlog.Head{}, 1023, eventlog.FaultReordered},
		{"a batch replayed from another session", func(db *pebble.DB) {
			set(t, db, a(1022), get(t, db, b(1022)))
		}, eventlog.Head{}, 1022, eventlog.FaultForeign},
		{"the first batch of another session", func(db *pebble.DB) {
			set(t, db, a(1), get(t, db, b(1)))
		}, eventlog.Head{}, 1, eventlog.FaultForeign},
		{"an entry of another session within a batch", func(db *pebble.DB) {
			header, ls := cut(t, get(t, db, a(1022)))
			_, other := cut(t, get(t, db, b(1022)))
			set(t, db, a(1022), slices.Concat(header, ls[0], other[1], ls[2]))
		}, eventlog.Head{}, 1023, eventlog.FaultForeign},
		{"a batch of another session appended", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, b(1022)))
			set(t, db, a(last+1), join(last+1, 3, ls...))
		}, eventlog.Head{}, last + 1, eventlog.FaultForeign},
		{"the session's record points to another session", func(db *pebble.DB) {
			set(t, db, eventlog.SessionKey("a"), get(t, db, eventlog.SessionKey("b")))
		}, eventlog.Head{}, 1, eventlog.FaultForeign},
		// What stands in no session of this store cannot be told from what was
		// changed.
		{"a batch from another store", func(db *pebble.DB) {
			set(t, db, a(1022), fromStore(foreign, 1022))
		}, eventlog.Head{}, 1022, eventlog.FaultAltered},
		{"garbage behind the links of a batch", func(db *pebble.DB) {
			set(t, db, a(1022), append(get(t, db, a(1022)), 0))
		}, eventlog.Head{}, 1024, eventlog.FaultTrailing},
		{"a whole link behind the links of a batch", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(1022)))
			set(t, db, a(1022), append(get(t, db, a(1022)), ls[2]...))
		}, eventlog.Head{}, 1024, eventlog.FaultTrailing},
		{"garbage behind the links of the last batch", func(db *pebble.DB) {
			set(t, db, a(2103), append(get(t, db, a(2103)), "garbage"...))
		}, eventlog.Head{}, last, eventlog.FaultTrailing},
		{"a garbage value at the next key", func(db *pebble.DB) {
			set(t, db, a(last+1), []byte("garbage"))
		}, eventlog.Head{}, last, eventlog.FaultTrailing},
		{"an empty value at the next key", func(db *pebble.DB) {
			set(t, db, a(last+1), nil)
		}, eventlog.Head{}, last, eventlog.FaultTrailing},
		{"a garbage value far behind", func(db *pebble.DB) {
			set(t, db, a(1<<40), []byte("garbage"))
		}, eventlog.Head{}, last + 1, eventlog.FaultMissing},
		{"a garbage value at the last key there is", func(db *pebble.DB) {
			set(t, db, a(1<<64-1), []byte("garbage"))
		}, eventlog.Head{}, last + 1, eventlog.FaultMissing},
		{"a garbage value at the key before", func(db *pebble.DB) {
			set(t, db, a(1<<64-2), []byte("garbage"))
		}, eventlog.Head{}, last + 1, eventlog.FaultMissing},
		{"a key of the wrong length", func(db *pebble.DB) {
			set(t, db, append(a(1022), 7), []byte("garbage"))
		}, eventlog.Head{}, 1024, eventlog.FaultTrailing},
		{"a batch at Seq 0", func(db *pebble.DB) {
			set(t, db, a(0), get(t, db, a(1021)))
		}, eventlog.Head{}, 1, eventlog.FaultTrailing},
		{"a newer version", func(db *pebble.DB) {
			v := get(t, db, a(1022))
			v[0]++
			set(t, db, a(1022), v)
		}, eventlog.Head{}, 1022, eventlog.FaultAltered},
		{"an empty value in the middle", func(db *pebble.DB) {
			set(t, db, a(1022), nil)
		}, eventlog.Head{}, 1022, eventlog.FaultAltered},
		{"the tail cut, no head kept", func(db *pebble.DB) { remove(t, db, a(2103)) }, eventlog.Head{}, 0, ""},
		{"the tail cut", func(db *pebble.DB) { remove(t, db, a(2103)) }, heads["a"], 2103, eventlog.FaultMissing},
		{"the tail cut within a batch", func(db *pebble.DB) {
			_, ls := cut(t, get(t, db, a(2103)))
			set(t, db, a(2103), join(2103, 2, ls[0], ls[1]))
		}, heads["a"], last, eventlog.FaultMissing},
		{"all of it cut", func(db *pebble.DB) {
			for _, first := range borders {
				remove(t, db, a(first))
			}
		}, heads["a"], 1, eventlog.FaultMissing},
		{"the history rewritten, no head kept", func(db *pebble.DB) {
			for _, first := range borders {
				set(t, db, a(first), fromStore(rewritten, first))
			}
		}, eventlog.Head{}, 0, ""},
		{"the history rewritten", func(db *pebble.DB) {
			for _, first := range borders {
				set(t, db, a(first), fromStore(rewritten, first))
			}
		}, heads["a"], last, eventlog.FaultAltered},
		{"another session's head kept", func(*pebble.DB) {}, heads["b"], last, eventlog.FaultAltered},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := base.CrashClone(vfs.CrashCloneCfg{})
			raw(t, fs, tt.change)
			l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			r := verify(t, l, "a", tt.expect)
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
			if r := verify(t, l, "b", heads["b"]); r.Fault != nil {
				t.Errorf("session b: %v", r.Fault)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every single bit of single-entry and multi-entry batches is flipped, of the
// last batch, too. The fault is at the entry that the bit belongs to; in the
// count it is at the entry that it takes away or adds.
func TestEveryBitFlipped(t *testing.T) {
	fs := vfs.NewMem()
	borders := []eventlog.Seq{1, 4, 5, 8, 11}
	heads := record(t, fs, "", borders, 11, "a")
	l := open(t, fs, eventlog.Config{})
	for _, first := range borders {
		key := eventlog.BatchKey(1, first)
		var whole []byte
		if err := l.Get(key, &whole); err != nil {
			t.Fatal(err)
		}
		header, links := cut(t, whole)
		// owner[i] is the entry that byte i belongs to.
		owner := slices.Repeat([]eventlog.Seq{first}, len(header))
		for i, link := range links {
			owner = append(owner, slices.Repeat([]eventlog.Seq{first + eventlog.Seq(i)}, len(link))...)
		}
		for bit := range 8 * len(whole) {
			flipped := bytes.Clone(whole)
			flipped[bit/8] ^= 1 << (bit % 8)
			if err := l.Put(key, flipped); err != nil {
				t.Fatal(err)
			}
			seq, kind := owner[bit/8], eventlog.FaultAltered
			if bit/8 == len(header)-1 && bit%8 != 7 {
				switch count := int(flipped[bit/8]); {
				case count > len(links):
					seq, kind = first+eventlog.Seq(len(links)), eventlog.FaultMissing
				case count > 0:
					seq, kind = first+eventlog.Seq(count)-1, eventlog.FaultTrailing
				}
			}
			r := verify(t, l, "a", eventlog.Head{})
			if r.Fault == nil {
				t.Errorf("batch %d, bit %d of byte %d of %x: no fault", first, bit%8, bit/8, whole)
			} else if r.Fault.Seq != seq || r.Fault.Kind != kind {
				t.Errorf("batch %d, bit %d of byte %d of %x: %v; want entry %d %s", first, bit%8, bit/8, whole, r.Fault, seq, kind)
			}
		}
		if err := l.Put(key, whole); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, l, "a", heads["a"]); r.Fault != nil {
			t.Errorf("restored: %v", r.Fault)
		}
	}
}
