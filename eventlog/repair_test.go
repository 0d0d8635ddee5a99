package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// Repair copies a store with one damaged file. It reports the copy as complete only if
// the copy has everything that was acknowledged. The source does not change.
func TestAttackRepair(t *testing.T) {
	ctx := context.Background()
	cuts := attack.Rounds(1, 40)
	for i, v := range victims(t) {
		if !attack.Long() && i%3 != 1 {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			counts := map[string]int{}
			for _, name := range slices.Sorted(maps.Keys(v.files)) {
				for what, b := range damages(t, v, name, cuts) {
					changed := v.files.with(name, b)
					fs := changed.onDisk(t)
					r, err := eventlog.Repair(ctx, "store", "copy", eventlog.Config{FS: fs})
					if after := directoryOf(t, fs); !after.equal(changed) {
						t.Errorf("%s %s: the source was changed", name, what)
					}
					if err != nil {
						if !errors.Is(err, eventlog.ErrForeign) && !errors.Is(err, eventlog.ErrVersion) {
							t.Errorf("%s %s: %v", name, what, err)
						}
						counts["refused"]++
						continue
					}
					outcome := "nothing"
					if len(r.Sessions) > 0 {
						l, err := eventlog.Open("copy", eventlog.Config{FS: fs})
						if err != nil {
							t.Errorf("%s %s: the copy: %v", name, what, err)
							continue
						}
						outcome = v.whole(t, l)
						assert.NoError(t, l.Close())
					}
					bounded := strings.HasSuffix(name, ".log") && (v.legacy || v.lags)
					if r.Whole() && outcome != "whole" && !bounded {
						t.Errorf("%s %s: called whole, and is %q; found was %v", name, what, outcome, r.Found)
					}
					if !strings.HasSuffix(name, ".log") && !strings.HasSuffix(name, ".sst") && outcome != "whole" {
						t.Errorf("%s %s: the copy is %q", name, what, outcome)
					}
					if r.Whole() {
						outcome += ", called whole"
					}
					counts[outcome]++
				}
			}
			t.Logf("%v", counts)
		})
	}
}

// The markers, SAJOU and FILES are rebuilt without loss, each alone and all together.
func TestRepairRebuilds(t *testing.T) {
	v := victimLife(t, "s", 2, 20, 0, byKill)
	for name := range v.files {
		if strings.HasPrefix(name, "marker.") || name == "SAJOU" || name == "FILES" || name == "LOCK" {
			delete(v.files, name)
		}
	}
	fs := v.files.onDisk(t)
	r, err := eventlog.Repair(context.Background(), "store", "copy", eventlog.Config{FS: fs})
	require.NoError(t, err)
	if !r.Whole() || r.Found == nil || len(r.Rebuilt) != 3 {
		t.Errorf("%+v", r)
	}
	l, err := eventlog.Open("copy", eventlog.Config{FS: fs})
	require.NoError(t, err)
	if got := v.whole(t, l); got != "whole" {
		t.Errorf("the copy is %q", got)
	}
	must(t, session(t, l, "s0"), eventlog.Batch{Drafts: drafts(10_000, 1)})
	require.NoError(t, l.Close())
}

// Each file that holds nothing of the sessions is made again, alone, and named: FILES only
// of a store that had it.
func TestRepairRebuildsOne(t *testing.T) {
	whole := victimLife(t, "s", 1, 5, 0, byClose).files
	format, err := storefile.ReadFormatFile(whole.onDisk(t), "store")
	require.NoError(t, err)
	for name := range whole {
		if name != "SAJOU" && name != "FILES" && !strings.HasPrefix(name, "marker.") {
			continue
		}
		for _, legacy := range []bool{false, true} {
			files := whole
			if legacy {
				files = files.with("SAJOU", storefile.FormatContents(format.ID, true))
			}
			r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: files.with(name, nil).onDisk(t)})
			require.NoError(t, err, name)
			assert.True(t, r.Whole(), "%s: %q", name, r.Doubts)
			if legacy && name == "FILES" {
				assert.Empty(t, r.Rebuilt)
				assert.NoError(t, r.Found)
				continue
			}
			require.Len(t, r.Rebuilt, 1, name)
			assert.Equal(t, strings.Split(name, ".0")[0], strings.Split(r.Rebuilt[0], ".0")[0])
			assert.Error(t, r.Found, name)
		}
	}
}

// Repair copies only to an absent or empty directory outside of the source.
func TestRepairRefuses(t *testing.T) {
	ctx := context.Background()
	v := victimLife(t, "s", 1, 3, 0, byClose)
	fs := v.files.onDisk(t)
	require.NoError(t, errors.Join(fs.MkdirAll("full", 0o755), fs.MkdirAll("empty", 0o755)))
	writeFile(t, fs, "full/notes.txt", []byte("precious"))
	for _, tt := range []struct {
		from, to string
		want     error
	}{
		{"store", "store", eventlog.ErrInvalid},
		{"store", "store/copy", eventlog.ErrInvalid},
		{"store", "full", eventlog.ErrForeign},
		{"full", "copy", eventlog.ErrForeign},
		{"nowhere", "copy", eventlog.ErrNoStore},
		{"empty", "copy", eventlog.ErrNoStore},
	} {
		before := filesOf(t, fs, "")
		if _, err := eventlog.Repair(ctx, tt.from, tt.to, eventlog.Config{FS: fs}); !errors.Is(err, tt.want) {
			t.Errorf("from %s to %s: %v, want %v", tt.from, tt.to, err, tt.want)
		}
		if after := filesOf(t, fs, ""); !maps.Equal(before, after) {
			t.Errorf("from %s to %s: changed", tt.from, tt.to)
		}
	}
	locked, err := eventlog.Open("store", eventlog.Config{FS: fs})
	require.NoError(t, err)
	if _, err := eventlog.Repair(ctx, "store", "copy", eventlog.Config{FS: fs}); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("a store in use: %v, want ErrLocked", err)
	}
	require.NoError(t, locked.Close())
}

// threeSessions returns the disk of a store that was closed, and the heads of its sessions
// by name: "a" has three entries in batches of one, "b" was deleted at its second, and the
// name of the last is longer than a note can hold.
func threeSessions(t *testing.T) (*vfs.MemFS, map[string]eventlog.Head) {
	t.Helper()
	fs := vfs.NewMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	require.NoError(t, err)
	heads := map[string]eventlog.Head{}
	for i := range 3 {
		heads["a"] = must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(i+1, 1)})
		if i == 0 {
			heads["a, first"] = heads["a"]
		}
	}
	heads["b"] = must(t, session(t, l, "b"), eventlog.Batch{Drafts: drafts(1, 2)})
	heads[longName] = must(t, session(t, l, longName), eventlog.Batch{Drafts: drafts(1, 1)})
	_, err = l.Delete(t.Context(), "b", noon)
	require.NoError(t, errors.Join(err, l.Close()))
	return fs, heads
}

var longName = strings.Repeat("n", 130)

// noteOf is the cell of one noted head.
type noteOf struct {
	number uint32
	name   string
	head   eventlog.Head
}

// notes replaces the noted heads of a store.
func notes(t *testing.T, fs vfs.FS, cells ...noteOf) {
	t.Helper()
	b := storefile.HeadsHeader()
	for _, c := range cells {
		b = storefile.AppendHeadsCell(b, c.number, c.name, c.head)
	}
	writeFile(t, fs, "store/"+eventlog.HeadsFile, b)
}

// A repair compares the copy with the noted heads of the source: each session that ends
// earlier, or otherwise, is a doubt, unless its tombstone explains it.
func TestRepairComparesNotes(t *testing.T) {
	disk, heads := threeSessions(t)
	a, b, n := heads["a"], heads["b"], heads[longName]
	begin := heads["a, first"]
	other := func(h eventlog.Head) eventlog.Head { return eventlog.Head{Seq: h.Seq, Hash: eventlog.Genesis("other")} }
	later := func(h eventlog.Head) eventlog.Head { return eventlog.Head{Seq: h.Seq + 1, Hash: h.Hash} }
	for name, tt := range map[string]struct {
		cells []noteOf
		want  []string
	}{
		"as they are":             {[]noteOf{{1, "a", a}, {2, "b", b}, {3, longName, n}}, nil},
		"none":                    {nil, nil},
		"an earlier one":          {[]noteOf{{1, "a", begin}}, nil},
		"another earlier one":     {[]noteOf{{1, "a", other(begin)}}, []string{`entry 1 of session "a" is not the one that was noted`}},
		"a later one":             {[]noteOf{{1, "a", later(a)}}, []string{`session "a" ends at entry 3, and had 4 entries`}},
		"another one":             {[]noteOf{{1, "a", other(a)}}, []string{`entry 3 of session "a" is not the one that was noted`}},
		"of no session":           {[]noteOf{{9, "gone", later(b)}}, []string{`session "gone" is missing; it had 3 entries`}},
		"of no entry":             {[]noteOf{{9, "gone", eventlog.Head{}}}, nil},
		"before the deletion":     {[]noteOf{{2, "b", eventlog.Head{Seq: 1}}}, nil},
		"behind the deletion":     {[]noteOf{{2, "b", later(b)}}, []string{`session "b" is missing; it had 3 entries`}},
		"not that of a tombstone": {[]noteOf{{2, "b", other(b)}}, []string{`session "b" is missing; it had 2 entries`}},
		"a long name":             {[]noteOf{{3, longName, later(n)}}, []string{`session "` + longName + `" ends at entry 1, and had 2 entries`}},
		"several":                 {[]noteOf{{9, "gone", a}, {1, "a", later(a)}, {2, "b", b}}, []string{`session "gone" is missing; it had 3 entries`, `session "a" ends at entry 3, and had 4 entries`}},
	} {
		fs := directoryOf(t, disk).onDisk(t)
		notes(t, fs, tt.cells...)
		r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
		require.NoError(t, err, name)
		assert.Equal(t, tt.want, r.Doubts, name)
		assert.Equal(t, len(tt.want) == 0, r.Whole(), name)
		assert.Len(t, r.Sessions, 2, name)
		assert.Len(t, r.Tombstones, 1, name)
		assert.Empty(t, r.Rebuilt, name)
		assert.NoError(t, r.Found, name)
	}

	const which = "HEADS, which notes how far each session went, "
	newer := storefile.HeadsHeader()
	newer[len("sajou.heads\n")] = 2
	for want, contents := range map[string][]byte{
		which + "is missing":              nil,
		which + "is damaged: it is empty": {},
		which + "cannot be read: eventlog: unknown format version: the noted heads have version 2, this program reads 1": newer,
	} {
		fs := directoryOf(t, disk).with(eventlog.HeadsFile, contents).onDisk(t)
		r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
		require.NoError(t, err)
		assert.Equal(t, []string{want}, r.Doubts)
		assert.False(t, r.Whole())
	}

	// The chain of a session breaks in front of its noted head.
	fs := directoryOf(t, disk).onDisk(t)
	raw(t, fs, func(db *pebble.DB) {
		second := get(t, db, keyspace.BatchKey(nil, 1, 2))
		second[len(second)-1] ^= 1
		set(t, db, keyspace.BatchKey(nil, 1, 2), second)
	})
	r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
	require.NoError(t, err)
	assert.Contains(t, r.Doubts, `the chain of session "a" is whole up to entry 1, and it had 3 entries`)
	assert.False(t, r.Whole())
	i := slices.IndexFunc(r.Sessions, func(s verify.SessionReport) bool { return s.Session == "a" })
	first := r.Sessions[i].Head
	require.Equal(t, eventlog.Seq(1), first.Seq)
	notes(t, fs, noteOf{1, "a", first}, noteOf{3, longName, n})
	r, err = eventlog.Repair(t.Context(), "store", "another copy", eventlog.Config{FS: fs})
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(r.Doubts, "; "), "the chain of session", "what was noted is whole")
	assert.False(t, r.Whole())
}

// A session whose record is lost is saved under the name that was noted with its head, if
// that name can be its own.
func TestRepairNamesSessions(t *testing.T) {
	disk, heads := threeSessions(t)
	raw(t, disk, func(db *pebble.DB) { remove(t, db, keyspace.SessionKey("a")) })
	// Of the files before the removal, which a repair would read, none has the record.
	raw(t, disk, func(db *pebble.DB) { require.NoError(t, db.Flush()) })
	raw(t, disk, func(db *pebble.DB) { require.NoError(t, db.Compact(t.Context(), []byte{0}, []byte{0xff}, false)) })
	a := heads["a"]
	cut := strings.Repeat("m", 119)
	for name, tt := range map[string]struct {
		note  noteOf
		named bool
	}{
		"its note":                   {noteOf{1, "a", a}, true},
		"an earlier note":            {noteOf{1, "a", eventlog.Head{Seq: 1}}, true},
		"a note of no entry":         {noteOf{1, "a", eventlog.Head{}}, false},
		"a number without entries":   {noteOf{7, "a", a}, false},
		"the number of a deleted":    {noteOf{2, "a", a}, false},
		"the number of another":      {noteOf{3, "a", a}, false},
		"the name of another":        {noteOf{1, longName[:119], a}, false},
		"the name of a deleted":      {noteOf{1, "b", a}, false},
		"a name that no session has": {noteOf{1, "a\nb", a}, false},
		"a name that may be longer":  {noteOf{1, cut, a}, false},
		"a name just short enough":   {noteOf{1, cut[1:], a}, true},
	} {
		fs := directoryOf(t, disk).onDisk(t)
		notes(t, fs, tt.note)
		r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
		require.NoError(t, err, name)
		doubt := fmt.Sprintf("the record of session %q cannot be read; its name is that of its note in HEADS", tt.note.name)
		i := slices.IndexFunc(r.Sessions, func(s verify.SessionReport) bool { return s.Session == tt.note.name })
		if !tt.named {
			assert.Negative(t, i, name)
			assert.NotContains(t, r.Doubts, doubt, name)
			continue
		}
		require.GreaterOrEqual(t, i, 0, name)
		assert.Contains(t, r.Doubts, doubt, name)
		if tt.note.name == "a" {
			assert.Equal(t, a, r.Sessions[i].Head, name)
			assert.True(t, r.Sessions[i].Whole(), name)
		} else {
			assert.NotNil(t, r.Sessions[i].Fault, "the genesis of the chain is that of another name")
		}
	}
}

// Keys of other forms are left out and named. Of two values of a key the later one is
// taken, which is a doubt; a tombstone stays, whatever stands behind it.
func TestRepairKeys(t *testing.T) {
	disk, heads := threeSessions(t)
	tomb := eventlog.Tombstone{Session: "b", Number: 2, Head: heads["b"], At: noon}
	batch := keyspace.BatchKey(nil, 1, 2)
	var first, second []byte
	raw(t, disk, func(db *pebble.DB) { first, second = get(t, db, keyspace.BatchKey(nil, 1, 1)), get(t, db, batch) })
	for name, tt := range map[string]struct {
		key, value []byte
		doubt      string // part of the first doubt; "" for none
		broken     bool   // the chain of "a"
		err        error
	}{
		"the same value":                {batch, second, "", false, nil},
		"another value":                 {batch, first, ".log holds another the batch of entry 2 of session number 1 than the files before it; the later one was taken", true, nil},
		"another outcome":               {keyspace.OutcomeKey(1, "k"), []byte("x"), "", true, nil},
		"a record behind a tombstone":   {keyspace.SessionKey("b"), number(2), "", false, nil},
		"another number of a session":   {keyspace.SessionKey("a"), number(3), ".log holds another session record \"a\" than the files before it; the later one was taken", true, nil},
		"a key of the store":            {[]byte("d"), []byte{1}, "", false, nil},
		"an unknown key of one byte":    {[]byte("z"), []byte{1}, "", false, nil},
		"no key":                        {nil, []byte{1}, ".log holds a key that is not of a store", false, nil},
		"a key of no form":              {[]byte("zz"), []byte{1}, ".log holds a key that is not of a store", false, nil},
		"a format of one deletion":      {keyspace.FormatKey(), []byte{2}, "", false, nil},
		"a format before deletions":     {keyspace.FormatKey(), []byte{1}, "", false, nil},
		"a later format":                {keyspace.FormatKey(), []byte{3}, "", false, eventlog.ErrVersion},
		"a format of two bytes":         {keyspace.FormatKey(), []byte{1, 1}, "", false, eventlog.ErrVersion},
		"a format of no byte":           {keyspace.FormatKey(), nil, "", false, eventlog.ErrVersion},
		"an entry of the deleted one":   {keyspace.BatchKey(nil, 2, 1), first, "", false, nil},
		"an outcome of the deleted one": {keyspace.OutcomeKey(2, "k"), []byte("x"), "", false, nil},
	} {
		fs := directoryOf(t, disk).onDisk(t)
		raw(t, fs, func(db *pebble.DB) { set(t, db, tt.key, tt.value) })
		r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
		if tt.err != nil {
			require.ErrorIs(t, err, tt.err, name)
			continue
		}
		require.NoError(t, err, name)
		if tt.doubt == "" {
			assert.Empty(t, r.Doubts, name)
		} else {
			require.NotEmpty(t, r.Doubts, name)
			assert.Contains(t, r.Doubts[0], tt.doubt, name)
			assert.True(t, tt.broken || len(r.Doubts) == 1, "%s: %q", name, r.Doubts)
		}
		assert.Equal(t, !tt.broken && tt.doubt == "", r.Whole(), name)
		assert.Equal(t, []eventlog.Tombstone{tomb}, r.Tombstones, name)
		l, err := eventlog.Open("copy", eventlog.Config{FS: fs, ReadOnly: true})
		require.NoError(t, err, name)
		kept := everything(t, l)
		require.NoError(t, l.Close())
		assert.Equal(t, "\x02", kept["f"], name)
		for key := range kept {
			n, numbered := keyspace.Number([]byte(key))
			assert.False(t, numbered && n == 2 && key[0] != keyspace.TagSession, "%s: %q", name, key)
		}
		if tt.broken {
			assert.Equal(t, string(tt.value), kept[string(tt.key)], name)
		}
	}
}

// A record that cannot be read keeps its name from a note, and a session under the number
// of a tombstone keeps its entries: verification names both.
func TestRepairKeepsDamage(t *testing.T) {
	disk, heads := threeSessions(t)
	var first []byte
	raw(t, disk, func(db *pebble.DB) { first = get(t, db, keyspace.BatchKey(nil, 1, 1)) })
	fs := directoryOf(t, disk).onDisk(t)
	raw(t, fs, func(db *pebble.DB) {
		set(t, db, keyspace.SessionKey("x"), number(2))
		set(t, db, keyspace.BatchKey(nil, 2, 1), first)
		set(t, db, keyspace.SessionKey("a"), []byte("bad"))
	})
	notes(t, fs, noteOf{1, "a", heads["a"]})
	r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
	require.NoError(t, err)
	assert.False(t, r.Whole())
	assert.NotContains(t, strings.Join(r.Doubts, "; "), "its name is that of its note")
	l, err := eventlog.Open("copy", eventlog.Config{FS: fs, ReadOnly: true})
	require.NoError(t, err)
	kept := everything(t, l)
	require.NoError(t, l.Close())
	assert.Equal(t, string(first), kept[string(keyspace.BatchKey(nil, 2, 1))])
	assert.Equal(t, "bad", kept["sa"])
}

// Tables that are missing or of another size, and a MANIFEST that is not the one that was
// written, are doubts by their names. Settings that no log has are refused.
func TestRepairNamesFiles(t *testing.T) {
	v := victimLife(t, "s", 2, 20, 200, byClose)
	marker, ok := storefile.NewestMarker(slices.Collect(maps.Keys(v.files)), storefile.MarkerManifest)
	require.True(t, ok)
	for name, b := range v.files {
		half := b[:len(b)/2]
		for _, tt := range []struct {
			contents []byte
			doubt    string
		}{
			{nil, "a table is missing: "},
			{half, "table " + name + " is missing or has another size"},
			{append(slices.Clone(b), 0), "table " + name + " is missing or has another size"},
			{nil, name + ", which lists the tables, is missing, cut or changed"},
			{half, name + ", which lists the tables, is missing, cut or changed"},
		} {
			if strings.HasSuffix(name, ".sst") != strings.Contains(tt.doubt, "table ") || name != marker.Value && !strings.HasSuffix(name, ".sst") {
				continue
			}
			r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: v.files.with(name, tt.contents).onDisk(t)})
			require.NoError(t, err, name)
			assert.True(t, slices.ContainsFunc(r.Doubts, func(d string) bool { return strings.HasPrefix(d, tt.doubt) }), "%s: %q", tt.doubt, r.Doubts)
			assert.Error(t, r.Found)
			assert.False(t, r.Whole())
		}
	}
	files := maps.Clone(v.files)
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.Contains(name, "MANIFEST") })
	r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: files.onDisk(t)})
	require.NoError(t, err)
	assert.False(t, r.Whole())
	assert.Len(t, r.Sessions, 3)
	assert.Empty(t, r.Rebuilt, "no marker is made of no MANIFEST")
	_, err = eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: v.files.onDisk(t), MaxEntry: -1})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}

// A place at which a file of the write-ahead log cannot be read is a doubt for all but the
// last file, of which a kill of the process may have torn the end.
func TestRepairBrokenLogs(t *testing.T) {
	disk, _ := severalLogs(t)
	names := logs(t, disk)
	for _, i := range []int{0, len(names) - 2, len(names) - 1} {
		name := names[i]
		b := readFile(t, disk, "store/"+name)
		broken := slices.Clone(b)
		broken[filled(b)/2] ^= 1
		fs := directoryOf(t, disk).with(name, broken).onDisk(t)
		r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
		require.NoError(t, err)
		var ends []string
		for _, d := range r.Doubts {
			if strings.Contains(d, " cannot be read to its end: ") {
				ends = append(ends, strings.Fields(d)[0])
			}
		}
		if i < len(names)-1 {
			assert.Equal(t, []string{name}, ends)
		} else {
			assert.Empty(t, ends)
		}
		assert.False(t, r.Whole(), name)
	}
}

// A repair copies a store that is larger than one write of the copy, of which the settings
// of a reader are ignored, and ends with its context. A store of which nothing can be
// saved leaves no copy.
func TestRepairInPieces(t *testing.T) {
	fs := vfs.NewMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	require.NoError(t, err)
	large := text(strings.Repeat("x", 900<<10))
	for i := range 14 {
		must(t, session(t, l, string("ab"[i%2])), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: large}}})
	}
	want := everything(t, l)
	require.NoError(t, l.Close())
	r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs, ReadOnly: true, RemoveUnused: true})
	require.NoError(t, err)
	assert.True(t, r.Whole(), "%+v", r)
	assert.Len(t, r.Sessions, 2)
	l, err = eventlog.Open("copy", eventlog.Config{FS: fs, ReadOnly: true})
	require.NoError(t, err)
	got := everything(t, l)
	require.NoError(t, l.Close())
	delete(want, "d") // each store has its own
	delete(got, "d")
	assert.True(t, maps.Equal(want, got))

	ended, end := context.WithCancel(t.Context())
	end()
	_, err = eventlog.Repair(ended, "store", "copy 2", eventlog.Config{FS: fs})
	require.ErrorIs(t, err, context.Canceled)

	nothing := directoryOf(t, fs)
	for name := range nothing {
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") {
			delete(nothing, name)
		}
	}
	fs = nothing.onDisk(t)
	r, err = eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
	require.NoError(t, err)
	assert.Contains(t, r.Doubts, "no session could be saved")
	assert.Error(t, r.Found)
	_, err = fs.Stat("copy")
	assert.ErrorIs(t, err, iofs.ErrNotExist)
}
