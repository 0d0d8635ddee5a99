package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// noon is the time of the deletions of these tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// requireDeleted checks that a log has the tombstone of a session and nothing else of
// it.
func requireDeleted(t *testing.T, l *eventlog.Log, want eventlog.Tombstone, where string) {
	t.Helper()
	tombs, err := l.Tombstones()
	require.NoError(t, err, where)
	require.Contains(t, tombs, want, where)
	infos, err := l.Sessions()
	require.NoError(t, err, where)
	require.NotContains(t, infos, eventlog.SessionInfo{Name: want.Session}, where)
	_, err = l.Session(want.Session)
	var deleted *eventlog.DeletedError
	require.ErrorAs(t, err, &deleted, where)
	require.Equal(t, want, deleted.Tombstone, where)
	require.ErrorIs(t, err, eventlog.ErrDeleted, where)
	require.ErrorIs(t, err, eventlog.ErrNoSession, where)
	_, err = l.Verify(context.Background(), want.Session, verify.Options{})
	require.ErrorIs(t, err, eventlog.ErrDeleted, where)
	require.NoError(t, l.Each(func(key, _ []byte) {
		number, ok := keyspace.Number(key)
		if ok && (key[0] == keyspace.TagBatch || key[0] == keyspace.TagOutcome) && number == want.Number {
			t.Errorf("%s: %s is still there", where, keyspace.KeyText(key))
		}
	}))
	faults, err := l.Survey(context.Background())
	require.NoError(t, err, where)
	require.Empty(t, faults, where)
	require.Nil(t, l.Loss(), where)
	require.Empty(t, l.Doubts(), where)
}

// A deleted session leaves its tombstone. Its name and its number are not used again,
// the other sessions stay, and so does all of this when the store is opened again, also
// after a power cut, and in a backup.
func TestDelete(t *testing.T) {
	ctx := t.Context()
	mem := vfs.NewCrashableMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	a, b := session(t, l, "a"), session(t, l, "b")
	must(t, a, eventlog.Batch{Drafts: drafts(1, 3)})
	must(t, b, eventlog.Batch{Drafts: drafts(1, 3), Key: "k"})
	head := must(t, b, eventlog.Batch{Drafts: drafts(4, 1)})

	tomb, err := l.Delete(ctx, "b", noon.In(time.FixedZone("", 3600)))
	require.NoError(t, err)
	require.Equal(t, eventlog.Tombstone{Session: "b", Number: 2, Head: head, At: noon}, tomb)
	requireDeleted(t, l, tomb, "at once")

	again, err := l.Delete(ctx, "b", noon.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, tomb, again, "deleting again changes nothing")
	_, err = l.Delete(ctx, "nobody", noon)
	require.ErrorIs(t, err, eventlog.ErrNoSession)
	require.NotErrorIs(t, err, eventlog.ErrDeleted)

	cut := powerCut(mem)
	left, err := eventlog.Open("store", eventlog.Config{FS: cut})
	require.NoError(t, err)
	requireDeleted(t, left, tomb, "after a power cut")
	require.NoError(t, left.Close())

	c := session(t, l, "c")
	must(t, c, eventlog.Batch{Drafts: drafts(1, 1)})
	reports, err := l.Backup(ctx, "copy")
	require.NoError(t, err)
	require.Len(t, reports, 2)
	require.NoError(t, l.Close())

	for _, dir := range []string{"store", "copy"} {
		for _, readOnly := range []bool{true, false} {
			l, err = eventlog.Open(dir, eventlog.Config{FS: mem, ReadOnly: readOnly})
			require.NoError(t, err)
			requireDeleted(t, l, tomb, dir)
			require.Equal(t, 3, count(t, session(t, l, "a")))
			require.NoError(t, l.Close())
		}
	}
	_, err = mem.Stat("copy/" + eventlog.HeadsFile)
	require.NoError(t, err)
	raw(t, mem, func(db *pebble.DB) {
		require.Equal(t, number(3), get(t, db, keyspace.SessionKey("c")), "the number 2 is not used again")
	})
}

// The deletion of the session with the greatest number does not free the number.
func TestDeletedNumberIsNotUsedAgain(t *testing.T) {
	mem := vfs.NewMem()
	for i, name := range []string{"a", "b", "c"} {
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		require.NoError(t, err)
		must(t, session(t, l, name), eventlog.Batch{Drafts: drafts(1, 1)})
		tomb, err := l.Delete(t.Context(), name, noon)
		require.NoError(t, err)
		require.Equal(t, uint32(i+1), tomb.Number)
		require.NoError(t, l.Close())
	}
}

// A store in which no session was deleted has the format version that earlier programs
// read; one with a tombstone has another, which they refuse.
func TestDeletionChangesTheFormatVersion(t *testing.T) {
	mem := vfs.NewMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 1)})
	version := func() (v []byte) {
		require.NoError(t, l.Get(keyspace.FormatKey(), &v))
		return v
	}
	_, err = l.Backup(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, []byte{1}, version())
	_, err = l.Delete(t.Context(), "a", noon)
	require.NoError(t, err)
	_, err = l.Backup(t.Context(), "two")
	require.NoError(t, err)
	require.Equal(t, []byte{2}, version())
	require.NoError(t, l.Close())
	for dir, want := range map[string]byte{"one": 1, "two": 2} {
		l, err = eventlog.Open(dir, eventlog.Config{FS: mem})
		require.NoError(t, err)
		require.Equal(t, []byte{want}, version())
		require.NoError(t, l.Close())
	}
}

// Handles from before a deletion refuse appends and reads, and those that wait are told.
func TestHandlesOfADeletedSession(t *testing.T) {
	ctx := t.Context()
	l := open(t, vfs.NewMem(), eventlog.Config{})
	s := session(t, l, "a")
	head := must(t, s, eventlog.Batch{Drafts: drafts(1, 2), Key: "k"})
	followed := make(chan error)
	started := make(chan struct{})
	go func() {
		for e, err := range s.Follow(ctx, 1) {
			if err != nil {
				followed <- err
				return
			}
			if e.Seq == 2 {
				close(started)
			}
		}
	}()
	<-started
	reading := 0
	for _, err := range s.Entries(ctx, 1) {
		require.NoError(t, err, "an iteration that has begun ends as it would have")
		if reading++; reading == 1 {
			_, err := l.Delete(ctx, "a", noon)
			require.NoError(t, err)
		}
	}
	require.Equal(t, 2, reading)
	within(t, "the follower", func() { require.ErrorIs(t, <-followed, eventlog.ErrDeleted) })
	require.False(t, s.Exists())
	require.Equal(t, head, s.Head())
	_, err := s.Append(ctx, eventlog.Batch{Drafts: drafts(3, 1)})
	require.ErrorIs(t, err, eventlog.ErrDeleted)
	_, err = s.Append(ctx, eventlog.Batch{Drafts: drafts(3, 1), Key: "k"})
	require.ErrorIs(t, err, eventlog.ErrDeleted)
	require.ErrorIs(t, s.WaitDurable(ctx, 1), eventlog.ErrDeleted)
	_, err = s.Entry(ctx, 1)
	require.ErrorIs(t, err, eventlog.ErrDeleted)
	for _, err := range s.Entries(ctx, 1) {
		require.ErrorIs(t, err, eventlog.ErrDeleted)
	}
	a, err := s.Claim()
	require.NoError(t, err)
	tomb, err := a.Delete(ctx, noon)
	require.NoError(t, err)
	require.Equal(t, head, tomb.Head)
}

// A session with an append that is not durable, or that a writer has claimed, is not
// deleted; nor is one of a log that cannot be written.
func TestDeleteRefuses(t *testing.T) {
	ctx := t.Context()
	mem := vfs.NewMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	s := session(t, l, "a")
	must(t, s, eventlog.Batch{Drafts: drafts(1, 1)})
	ticket, err := s.Stage(ctx, eventlog.Batch{Drafts: drafts(2, 1)})
	require.NoError(t, err)
	_, err = l.Delete(ctx, "a", noon)
	require.ErrorIs(t, err, eventlog.ErrInUse)
	_, err = ticket.Wait(ctx)
	require.NoError(t, err)
	a, err := s.Claim()
	require.NoError(t, err)
	_, err = l.Delete(ctx, "a", noon)
	require.ErrorIs(t, err, eventlog.ErrClaimed)
	ended, end := context.WithCancel(ctx)
	end()
	_, err = a.Delete(ended, noon)
	require.ErrorIs(t, err, context.Canceled)
	a.Release()
	require.Equal(t, 2, count(t, s))
	require.NoError(t, l.Close())
	_, err = l.Delete(ctx, "a", noon)
	require.ErrorIs(t, err, eventlog.ErrClosed)
	l, err = eventlog.Open("store", eventlog.Config{FS: mem, ReadOnly: true})
	require.NoError(t, err)
	_, err = l.Delete(ctx, "a", noon)
	require.ErrorIs(t, err, eventlog.ErrReadOnly)
	require.NoError(t, l.Close())
	raw(t, mem, func(db *pebble.DB) { remove(t, db, keyspace.BatchKey(nil, 1, 1)) })
	l = open(t, mem, eventlog.Config{})
	_, err = l.Delete(ctx, "a", noon)
	require.ErrorIs(t, err, eventlog.ErrCorrupt, "its entries do not begin with its genesis")
}

// holding returns the files of the store that hold a text.
func holding(t *testing.T, fs vfs.FS, text []byte) (names []string) {
	t.Helper()
	all, err := fs.List("store")
	require.NoError(t, err)
	for _, name := range all {
		f, err := fs.Open("store/" + name)
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, errors.Join(err, f.Close()))
		if bytes.Contains(b, text) {
			names = append(names, name)
		}
	}
	return names
}

// The tables do not have the bytes of a deleted session when Delete returns, whether they
// were in tables before or not, and no file has them after Close.
func TestDeleteRemovesTheBytes(t *testing.T) {
	ctx := t.Context()
	mem := vfs.NewMem()
	rng := rand.New(rand.NewPCG(3, 4))
	var secrets [][]byte
	write := func(l *eventlog.Log) {
		for _, name := range []string{"a", "b", "c"} {
			for range 20 {
				b := noise(rng, 4096)
				s := session(t, l, name)
				must(t, s, eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, At: s.At(), Data: b}}})
				if name == "b" {
					secrets = append(secrets, b[1000:1016])
				}
			}
		}
	}
	for range 2 {
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		require.NoError(t, err)
		write(l)
		require.NoError(t, l.Close())
	}
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	write(l)
	before, err := l.DiskSize(ctx, "b")
	require.NoError(t, err)
	require.Greater(t, before, uint64(150_000))
	for i := range secrets {
		require.NotEmpty(t, holding(t, mem, secrets[i]), "the test can find them")
	}
	_, err = l.Delete(ctx, "b", noon)
	require.NoError(t, err)
	after, err := l.DiskSize(ctx, "b")
	require.NoError(t, err)
	require.Zero(t, after)
	require.NoError(t, l.Close())
	for i := range secrets {
		require.Empty(t, holding(t, mem, secrets[i]), "secret %d", i)
	}
	l = open(t, mem, eventlog.Config{})
	require.Equal(t, 60, count(t, session(t, l, "a")))
	require.Equal(t, 60, count(t, session(t, l, "c")))
}

// deleteLife is the life of a store in which the session b is deleted: it has entries in
// tables and in the write-ahead log, as its neighbours have. begin is called in front of
// the deletion, and done with its results.
func deleteLife(t *testing.T, fs vfs.FS, begin func(), done func(eventlog.Tombstone, error)) (heads map[string]eventlog.Head, err error) {
	t.Helper()
	heads = map[string]eventlog.Head{}
	for range 2 {
		l, err := eventlog.Open("store", eventlog.Config{FS: fs})
		if err != nil {
			return heads, err
		}
		for i := range 9 {
			name := string("abc"[i%3])
			s := session(t, l, name)
			b := eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, 2), Key: fmt.Sprint("k", s.Head().Seq)}
			if i == 4 {
				b.Drafts[0].Data = text(strings.Repeat("x", 150<<10))
			}
			head, err := s.Append(context.Background(), b)
			if err != nil {
				return heads, errors.Join(err, l.Close())
			}
			heads[name] = head
		}
		if err := l.Close(); err != nil {
			return heads, err
		}
	}
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	if err != nil {
		return heads, err
	}
	for _, name := range []string{"b", "a"} { // b continues in the write-ahead log, behind its tables
		s := session(t, l, name)
		head, err := s.Append(context.Background(), eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, 3)})
		if err != nil {
			return heads, errors.Join(err, l.Close())
		}
		heads[name] = head
	}
	begin()
	tomb, err := l.Delete(context.Background(), "b", noon)
	done(tomb, err)
	if err == nil {
		var head eventlog.Head
		s := session(t, l, "c")
		if head, err = s.Append(context.Background(), eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, 1)}); err == nil {
			heads["c"] = head
		}
	}
	return heads, errors.Join(err, l.Close())
}

// wholeOrDeleted opens a store that deleteLife left, and checks that b is whole, or
// deleted without a rest, and that the others are whole. It reports which.
func wholeOrDeleted(t *testing.T, fs vfs.FS, heads map[string]eventlog.Head, where string) (deleted bool) {
	t.Helper()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	require.NoError(t, err, where)
	tombs, err := l.Tombstones()
	require.NoError(t, err, where)
	if deleted = len(tombs) > 0; deleted {
		requireDeleted(t, l, eventlog.Tombstone{Session: "b", Number: 2, Head: heads["b"], At: noon}, where)
		_, err := l.Delete(context.Background(), "b", noon)
		require.NoError(t, err, where)
	}
	for name, head := range heads {
		if name == "b" && deleted {
			continue
		}
		report, err := l.Verify(context.Background(), name, verify.Options{Expect: head})
		require.NoError(t, err, where)
		require.True(t, report.Whole(), "%s: %s: %v", where, name, report.Fault)
	}
	require.NoError(t, l.Close(), where)
	l, err = eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: true})
	require.NoError(t, err, where)
	require.Empty(t, l.Doubts(), where)
	require.NoError(t, l.Close(), where)
	return deleted
}

// The machine stops before every write of a deletion, with all, half or none of the
// unsynced writes on the disk: the session is whole, or deleted as a whole; deleted, if
// Delete had returned.
func TestCrashInDelete(t *testing.T) {
	type left struct {
		fs    *vfs.MemFS
		where string
		told  bool
	}
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(5, 5))
	var mu sync.Mutex
	var images []left
	told, begun, ops := false, false, 0
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if begun {
			ops++
			for _, percent := range []int{0, 50, 100} {
				images = append(images, left{
					mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}),
					fmt.Sprintf("operation %d (%v of %s), %d %%", ops, op.Kind, op.Path, percent), told,
				})
			}
		}
		return nil
	}))
	l, err := eventlog.Open("store", eventlog.Config{FS: disk})
	require.NoError(t, err)
	heads := map[string]eventlog.Head{}
	add := func(name string, n int) {
		s := session(t, l, name)
		heads[name] = must(t, s, eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, n), Key: fmt.Sprint("k", s.Head().Seq)})
	}
	for _, name := range []string{"a", "b", "c"} {
		add(name, 20)
	}
	require.NoError(t, l.Close())
	l, err = eventlog.Open("store", eventlog.Config{FS: disk})
	require.NoError(t, err)
	add("b", 5)
	add("c", 1)
	begun = true
	_, err = l.Delete(t.Context(), "b", noon)
	require.NoError(t, err)
	mu.Lock()
	told = true
	mu.Unlock()
	require.NoError(t, l.Close())
	require.Greater(t, len(images), 60)
	whole := 0
	for _, im := range images {
		deleted := wholeOrDeleted(t, im.fs, heads, im.where)
		require.True(t, deleted || !im.told, im.where)
		if !deleted {
			whole++
		}
	}
	t.Logf("%d images, whole in %d", len(images), whole)
	require.NotZero(t, whole)
	require.Less(t, whole, len(images))
}

// Each write of a deletion, and of what follows it, fails in turn, alone or with all later
// ones. Delete returns, and on the repaired disk the session is whole or deleted;
// deleted, if Delete had succeeded.
func TestFaultInDelete(t *testing.T) {
	outcomes := map[string]int{}
	reached := true
	// The operations are counted from the beginning of the deletion: how many come before it
	// depends on when Pebble deletes files that it no longer needs.
	for at := int64(1); reached; at += int64(stride(3)) {
		for _, sticky := range []bool{false, true} {
			where := fmt.Sprintf("operation %d of the deletion fails, sticky %v", at, sticky)
			mem := vfs.NewMem()
			disk := newFaults(mem)
			before := int64(0)
			outcome := "not reached"
			var heads map[string]eventlog.Head
			within(t, where, func() {
				heads, _ = deleteLife(t, disk, func() {
					before = disk.count.Load()
					disk.set(failAt(before+at, sticky))
				}, func(tomb eventlog.Tombstone, err error) {
					switch {
					case err == nil:
						outcome = "deleted"
					case tomb.Number != 0:
						outcome = "deleted, not compacted"
						assert.ErrorIs(t, err, eventlog.ErrReadOnly, where)
					default:
						outcome = "unknown"
						assert.ErrorIs(t, err, eventlog.ErrReadOnly, where)
					}
				})
			})
			reached = disk.count.Load() >= before+at
			require.NotEqual(t, "not reached", outcome, where)
			outcomes[outcome]++
			deleted := wholeOrDeleted(t, mem, heads, where)
			if strings.HasPrefix(outcome, "deleted") {
				require.True(t, deleted, where)
			}
		}
	}
	t.Logf("%v", outcomes)
	require.NotZero(t, outcomes["unknown"])
	require.NotZero(t, outcomes["deleted, not compacted"])
}

// Tables from before a deletion that come back, as an undelete of the file system brings
// them, neither stop the store from opening nor bring the session back, also not by a
// repair.
func TestTablesFromBeforeADeletion(t *testing.T) {
	ctx := t.Context()
	mem := vfs.NewMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		must(t, session(t, l, name), eventlog.Batch{Drafts: drafts(1, 50), Key: "k"})
	}
	require.NoError(t, l.Close())
	before := directoryOf(t, mem)
	l, err = eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	tomb, err := l.Delete(ctx, "b", noon)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	back := 0
	for name, contents := range before {
		if _, err := mem.Stat("store/" + name); strings.HasSuffix(name, ".sst") && err != nil {
			writeFile(t, mem, "store/"+name, contents)
			back++
		}
	}
	require.NotZero(t, back)
	l, err = eventlog.Open("store", eventlog.Config{FS: mem, ReadOnly: true})
	require.NoError(t, err)
	requireDeleted(t, l, tomb, "beside an old table")
	require.NoError(t, l.Close())

	r, err := eventlog.Repair(ctx, "store", "copy", eventlog.Config{FS: mem})
	require.NoError(t, err)
	require.True(t, r.Whole(), "%+v", r)
	require.Equal(t, []eventlog.Tombstone{tomb}, r.Tombstones)
	require.Len(t, r.Sessions, 1)
	l, err = eventlog.Open("copy", eventlog.Config{FS: mem})
	require.NoError(t, err)
	requireDeleted(t, l, tomb, "in the repaired copy")
	require.Equal(t, 50, count(t, session(t, l, "a")))
	require.NoError(t, l.Close())
	l, err = eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	requireDeleted(t, l, tomb, "opened for writing")
	require.NoError(t, l.Close())
}

// A noted head that the tombstone does not explain is a loss, and so is that of a session
// whose tombstone is gone.
func TestTombstoneExplainsOnlyItsHead(t *testing.T) {
	for name, change := range map[string]func(tomb eventlog.Tombstone, db *pebble.DB){
		"an earlier end": func(tomb eventlog.Tombstone, db *pebble.DB) {
			tomb.Head.Seq--
			set(t, db, keyspace.SessionKey("b"), keyspace.AppendTombstone(nil, &tomb))
		},
		"another end": func(tomb eventlog.Tombstone, db *pebble.DB) {
			tomb.Head.Hash[0] ^= 1
			set(t, db, keyspace.SessionKey("b"), keyspace.AppendTombstone(nil, &tomb))
		},
		"none": func(_ eventlog.Tombstone, db *pebble.DB) { remove(t, db, keyspace.SessionKey("b")) },
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			l, err := eventlog.Open("store", eventlog.Config{FS: mem})
			require.NoError(t, err)
			must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 1)})
			must(t, session(t, l, "b"), eventlog.Batch{Drafts: drafts(1, 3)})
			tomb, err := l.Delete(t.Context(), "b", noon)
			require.NoError(t, err)
			require.NoError(t, l.Close())
			raw(t, mem, func(db *pebble.DB) { change(tomb, db) })
			_, err = eventlog.Open("store", eventlog.Config{FS: mem})
			require.ErrorIs(t, err, eventlog.ErrLost)
		})
	}
}

// A survey finds entries and outcomes under the number of a deleted session, a tombstone
// with the number of a session, and one that cannot be read.
func TestSurveyOfTombstones(t *testing.T) {
	mem := begun(t)
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	require.NoError(t, err)
	tomb, err := l.Delete(t.Context(), "b", noon)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	shared := tomb
	shared.Session, shared.Number = "d", 3
	raw(t, mem, func(db *pebble.DB) {
		set(t, db, keyspace.BatchKey(nil, 2, 1), get(t, db, keyspace.BatchKey(nil, 1, 1)))
		set(t, db, keyspace.OutcomeKey(2, "k"), []byte("x"))
		set(t, db, keyspace.SessionKey("d"), keyspace.AppendTombstone(nil, &shared))
		set(t, db, keyspace.SessionKey("e"), keyspace.AppendTombstone(nil, &eventlog.Tombstone{Number: 9, At: noon}))
	})
	l = open(t, mem, eventlog.Config{})
	faults, err := l.Survey(t.Context())
	require.NoError(t, err)
	var kinds []verify.StoreFaultKind
	for _, f := range faults {
		kinds = append(kinds, f.Kind)
		if f.Number == 2 {
			require.Contains(t, f.Detail, `the deleted session "b"`)
		}
	}
	require.Equal(t, []verify.StoreFaultKind{verify.StoreBadRecord, verify.StoreSharedNumber, verify.StoreOrphanedBatches, verify.StoreOrphanedKeys}, kinds)
	infos, err := l.Sessions()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	require.True(t, slices.ContainsFunc(infos, func(i eventlog.SessionInfo) bool { return i.Name == "c" }))
}

// On a handle from before the deletion, each call about the session is refused with the
// tombstone, whichever entry it asks for.
func TestCallsOfADeletedSession(t *testing.T) {
	l := open(t, vfs.NewMem(), eventlog.Config{})
	s := session(t, l, "a")
	head := must(t, s, eventlog.Batch{Drafts: drafts(1, 3)})
	tomb, err := l.Delete(t.Context(), "a", noon)
	require.NoError(t, err)
	want := (&eventlog.DeletedError{Tombstone: tomb}).Error()
	for seq := range head.Seq + 3 {
		for _, entries := range []iter.Seq2[eventlog.Entry, error]{s.Entries(t.Context(), seq), s.Follow(t.Context(), seq)} {
			n := 0
			for e, err := range entries {
				n++
				require.EqualError(t, err, want, "from %d", seq)
				assert.Zero(t, e)
			}
			assert.Equal(t, 1, n, "from %d", seq)
		}
		require.EqualError(t, s.WaitDurable(t.Context(), seq), want)
		_, _, err := s.Readable(t.Context(), seq)
		require.EqualError(t, err, want)
		if _, err := s.Entry(t.Context(), seq); seq == 0 {
			require.EqualError(t, err, `eventlog: invalid: session "a" has no entry 0, its last is 3`)
		} else {
			require.EqualError(t, err, want)
		}
	}
	assert.False(t, s.Exists())
	assert.Equal(t, head, s.Head())
	_, err = s.Append(t.Context(), eventlog.Batch{Drafts: drafts(4, 1)})
	require.EqualError(t, err, want)
	require.NoError(t, s.Write(t.Context(), func(r *eventlog.Round) {
		_, err := r.Repeat("k")
		require.EqualError(t, err, want)
		_, err = r.Stage(eventlog.Batch{Drafts: drafts(4, 1)})
		require.EqualError(t, err, want)
	}))
	_, err = l.Session("a")
	require.EqualError(t, err, want)
	_, err = l.Verify(t.Context(), "a", verify.Options{})
	require.EqualError(t, err, want)
	_, err = l.RebuildKeys(t.Context(), "a", verify.Options{})
	require.EqualError(t, err, want)
	size, err := l.DiskSize(t.Context(), "a")
	require.NoError(t, err)
	assert.Zero(t, size)
	again, err := l.Delete(t.Context(), "a", noon.Add(1))
	require.NoError(t, err)
	assert.Equal(t, tomb, again)
}
