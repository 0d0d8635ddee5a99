package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

var errDisk = errors.New("the disk says no")

// deadline is far longer than any step of these tests takes; it turns a hang into a
// failure with a name.
const deadline = 60 * time.Second

// within fails the test if f does not return within the deadline.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(deadline):
		t.Fatalf("%s: still not back after %v", what, deadline)
	}
}

// faults decides which operations on a disk fail.
type faults struct {
	vfs.FS
	count atomic.Int64                                  // write operations seen
	rule  atomic.Pointer[func(int64, errorfs.Op) error] // nil: no operation fails
}

func newFaults(fs vfs.FS) *faults {
	f := &faults{}
	f.FS = errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpLock {
			return nil
		}
		n := f.count.Add(1)
		if rule := f.rule.Load(); rule != nil {
			return (*rule)(n, op)
		}
		return nil
	}))
	return f
}

func (f *faults) set(rule func(n int64, op errorfs.Op) error) { f.rule.Store(&rule) }

// acknowledged holds the newest acknowledged Head of each session.
type acknowledged map[string]eventlog.Head

// work appends to three sessions, sometimes with keys. It checks the kind of each error
// and continues. Large entries make the store rotate its write-ahead log and flush.
func work(t *testing.T, l *eventlog.Log, acks acknowledged, rounds int, large int) (failed error) {
	t.Helper()
	ctx := context.Background()
	for i := range rounds {
		name := fmt.Sprintf("s%d", i%3)
		s, err := l.Session(name)
		require.NoErrorf(t, err, "round %d", i)
		if acks[name] == (eventlog.Head{}) {
			acks[name] = eventlog.Head{Hash: s.Genesis()}
		}
		b := eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, 1+i%4)}
		if large > 0 {
			b.Drafts[0].Data = text(strings.Repeat("x", large))
		}
		if i%3 == 1 {
			b.Key = fmt.Sprintf("key %d", i)
		}
		head, err := s.Append(ctx, b)
		switch {
		case err == nil && failed != nil:
			t.Fatalf("round %d: append succeeds after %v", i, failed)
		case err == nil:
			acks[name] = head
			continue
		case !errors.Is(err, eventlog.ErrReadOnly):
			t.Fatalf("round %d: %v, want ErrReadOnly", i, err)
		case !errors.Is(err, errDisk) && !errors.Is(err, syscall.ENOSPC):
			t.Fatalf("round %d: %v does not tell the cause", i, err)
		}
		failed = err
		if !errors.Is(l.Err(), eventlog.ErrReadOnly) {
			t.Fatalf("round %d: Err() = %v", i, l.Err())
		}
	}
	return failed
}

// holds checks that everything acknowledged is in the log, that chains are intact and
// that entries can be read to the Head.
func holds(t *testing.T, l *eventlog.Log, acks acknowledged, where string) {
	t.Helper()
	ctx := context.Background()
	for name, want := range acks {
		if want.Seq == 0 {
			continue
		}
		s, err := l.Session(name)
		require.NoErrorf(t, err, "%s", where)
		if s.Head().Seq < want.Seq {
			t.Fatalf("%s: %s stands at %v, acknowledged was %v", where, name, s.Head(), want)
		}
		r, err := l.Verify(ctx, name, verify.Options{Expect: want})
		if err != nil || r.Fault != nil {
			t.Fatalf("%s: verify %s: %+v, %v", where, name, r, err)
		}
		next := eventlog.Seq(1)
		for e, err := range s.Entries(ctx, 1) {
			require.NoErrorf(t, err, "%s: %s", where, name)
			if e.Seq != next {
				t.Fatalf("%s: %s: entry %d where %d belongs", where, name, e.Seq, next)
			}
			next++
		}
		if next != s.Head().Seq+1 {
			t.Fatalf("%s: %s: entries end before %d, the head is %v", where, name, next, s.Head())
		}
	}
}

// scenario runs one life of a log on a disk with faults, and a second one
// after the disk was repaired.
func scenario(t *testing.T, disk *faults, mem vfs.FS, where string, rounds, large int) {
	t.Helper()
	acks := acknowledged{}
	within(t, where, func() {
		l, err := eventlog.Open("store", eventlog.Config{FS: disk})
		if err != nil {
			if !errors.Is(err, errDisk) && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: open: %v does not tell the cause", where, err)
			}
			return
		}
		_ = work(t, l, acks, rounds, large) // the disk fails; only the acknowledgements count
		if l.Err() != nil {
			holds(t, l, acks, where+": while read-only")
		}
		if err := l.Close(); err != nil && !errors.Is(err, errDisk) && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: close: %v", where, err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	within(t, where, func() {
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		if err != nil {
			t.Errorf("%s: open on the repaired disk: %v", where, err)
			return
		}
		holds(t, l, acks, where+": on the repaired disk")
		assert.NoErrorf(t, work(t, l, acks, 3, 0), "%s: append on the repaired disk", where)
		holds(t, l, acks, where+": gone on")
		assert.NoErrorf(t, l.Close(), "%s: close on the repaired disk", where)
	})
	if t.Failed() {
		t.FailNow()
	}
}

// Each write operation of a workload fails in turn: alone, so that later operations
// succeed, or with all later ones.
func TestEveryWriteFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const rounds, large = 9, 90 << 10
	disk := newFaults(vfs.NewMem())
	scenario(t, disk, disk, "no fault", rounds, large)
	total := disk.count.Load()
	if total < 60 {
		t.Fatalf("the workload has only %d write operations", total)
	}
	t.Run("each", func(t *testing.T) {
		for at := int64(1); at <= total; at += int64(stride(11)) {
			for _, sticky := range []bool{false, true} {
				where := fmt.Sprintf("operation %d of %d fails, sticky %v", at, total, sticky)
				t.Run(where, func(t *testing.T) {
					t.Parallel()
					mem := vfs.NewMem()
					disk := newFaults(mem)
					disk.set(failAt(at, sticky))
					scenario(t, disk, mem, where, rounds, large)
				})
			}
		}
	})
}

// failAt fails the operation of that number, and with sticky all after it.
func failAt(at int64, sticky bool) func(int64, errorfs.Op) error {
	return func(n int64, _ errorfs.Op) error {
		if n == at || sticky && n > at {
			return errDisk
		}
		return nil
	}
}

// A store that was left with an unflushed write-ahead log is opened again
// while its disk fails.
func TestEveryWriteFailsInOpen(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	base := vfs.NewCrashableMem()
	acks := acknowledged{}
	l, err := eventlog.Open("store", eventlog.Config{FS: base})
	require.NoError(t, err)
	require.NoError(t, work(t, l, acks, 12, 50<<10))
	left := base.CrashClone(vfs.CrashCloneCfg{}) // all of it is synced
	require.NoError(t, l.Close())
	for at := int64(1); ; at += int64(stride(5)) {
		for _, sticky := range []bool{false, true} {
			mem := left.CrashClone(vfs.CrashCloneCfg{})
			disk := newFaults(mem)
			disk.set(failAt(at, sticky))
			where := fmt.Sprintf("operation %d fails, sticky %v", at, sticky)
			reached := true
			within(t, where, func() {
				l, err := eventlog.Open("store", eventlog.Config{FS: disk})
				reached = disk.count.Load() >= at
				if err != nil {
					assert.ErrorIsf(t, err, errDisk, "%s: open: %v does not tell the cause", where, err)
					return
				}
				holds(t, l, acks, where)
				if err := l.Close(); err != nil && !errors.Is(err, errDisk) {
					t.Errorf("%s: close: %v", where, err)
				}
			})
			l, err := eventlog.Open("store", eventlog.Config{FS: mem})
			require.NoErrorf(t, err, "%s: open on the repaired disk", where)
			holds(t, l, acks, where+": repaired")
			require.NoError(t, l.Close())
			if !reached {
				return
			}
		}
	}
}

// The disk is full after a number of writes, for each kind of file.
func TestDiskFull(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, suffix := range []string{"", ".log", ".sst", "MANIFEST"} {
		for at := int64(1); at < 60; at += 7 * int64(stride(4)) {
			mem := vfs.NewMem()
			disk := newFaults(mem)
			var hits atomic.Int64
			disk.set(func(n int64, op errorfs.Op) error {
				switch op.Kind {
				case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpReuseForWrite:
				default:
					return nil
				}
				if !strings.Contains(op.Path, suffix) || hits.Add(1) < at {
					return nil
				}
				return fmt.Errorf("write %s: %w", op.Path, syscall.ENOSPC)
			})
			scenario(t, disk, mem, fmt.Sprintf("disk full after %d writes to *%s", at, suffix), 10, 300<<10)
		}
	}
}

// The disk fails while writers of several sessions are running. Each writer gets an
// error, also from a late wait for a ticket, and so does each following reader.
func TestDiskFailsUnderConcurrentWriters(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for round := range int64(12) {
		mem := vfs.NewMem()
		disk := newFaults(mem)
		l, err := eventlog.Open("store", eventlog.Config{FS: disk})
		require.NoError(t, err)
		limit := disk.count.Load() + 5 + 9*round
		disk.set(func(n int64, _ errorfs.Op) error {
			if n >= limit {
				return errDisk
			}
			return nil
		})
		var mu sync.Mutex
		acks := acknowledged{}
		within(t, fmt.Sprintf("round %d", round), func() {
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() {
					name := fmt.Sprintf("s%d", w%3)
					s, err := l.Session(name)
					if err != nil {
						t.Error(err)
						return
					}
					for {
						b := eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: text(strings.Repeat("y", 60<<10))}}}
						head, err := s.Append(context.Background(), b)
						if err != nil {
							if !errors.Is(err, eventlog.ErrReadOnly) || !errors.Is(err, errDisk) {
								t.Errorf("append: %v", err)
							}
							return
						}
						mu.Lock()
						if head.Seq > acks[name].Seq {
							acks[name] = head
						}
						mu.Unlock()
					}
				})
			}
			for i := range 3 {
				wg.Go(func() {
					s, err := l.Session(fmt.Sprintf("s%d", i))
					if err != nil {
						t.Error(err)
						return
					}
					var last error
					for _, err := range s.Follow(context.Background(), 1) {
						last = err
					}
					if !errors.Is(last, eventlog.ErrReadOnly) || !errors.Is(last, errDisk) {
						t.Errorf("follow ends with %v", last)
					}
				})
			}
			wg.Wait()
			holds(t, l, acks, "read-only")
			assert.NoError(t, l.Close(), "close")
			l, err := eventlog.Open("store", eventlog.Config{FS: mem})
			if err != nil {
				t.Errorf("reopen: %v", err)
				return
			}
			holds(t, l, acks, "repaired")
			assert.NoError(t, l.Close())
		})
		if t.Failed() {
			return
		}
	}
}

// Tickets that were staged before the failure and are waited for long after it return
// the error too; readers see none of their entries.
func TestStagedTicketsWhenTheDiskFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	disk := newFaults(vfs.NewMem())
	l, err := eventlog.Open("store", eventlog.Config{FS: disk})
	require.NoError(t, err)
	s := session(t, l, "a")
	disk.set(func(int64, errorfs.Op) error { return errDisk })
	var tickets []*eventlog.Ticket
	within(t, "stage and wait", func() {
		for range 200 {
			// Large enough to fill blocks and memtables of the store, so that the store
			// meets the failure while it accepts later writes.
			ticket, err := s.Stage(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: text(strings.Repeat("z", 300<<10))}}})
			if err != nil {
				if !errors.Is(err, eventlog.ErrReadOnly) || !errors.Is(err, errDisk) {
					t.Errorf("stage: %v", err)
				}
				break
			}
			tickets = append(tickets, ticket)
		}
		for i, ticket := range tickets {
			if _, err := ticket.Wait(t.Context()); !errors.Is(err, eventlog.ErrReadOnly) || !errors.Is(err, errDisk) {
				t.Errorf("ticket %d: %v", i, err)
			}
		}
		if s.Exists() {
			t.Errorf("readers see %v", s.Head())
		}
		assert.NoError(t, l.Close())
	})
}

// Close returns the error of the last sync of the notes, of which no caller has learned.
func TestCloseTellsWhatNobodyElseDoes(t *testing.T) {
	disk := newFaults(vfs.NewMem())
	l, err := eventlog.Open("store", eventlog.Config{FS: disk})
	require.NoError(t, err)
	_, err = session(t, l, "a").Append(t.Context(), eventlog.Batch{Drafts: drafts(1, 1)})
	require.NoError(t, err)
	disk.set(func(_ int64, op errorfs.Op) error {
		if strings.HasSuffix(op.Path, eventlog.HeadsFile) {
			return errDisk
		}
		return nil
	})
	require.ErrorIs(t, l.Close(), errDisk)
}
