package writer_test

import (
	"encoding/binary"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// counting is a projection whose state is the number of entries, and which counts how
// many entries were folded by this process.
type counting struct {
	store *store
	n     uint64
}

func (c *counting) Apply(*eventlog.Entry) {
	c.n++
	c.store.folded.Add(1)
	if during := c.store.during.Swap(nil); during != nil {
		(*during)()
	}
}
func (c *counting) Advance(time.Duration)    {}
func (c *counting) Append(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, c.n) }
func (c *counting) View() any                { return int64(c.n) }

// store is a log with snapshots of which a test opens one session again and again.
type store struct {
	t        *testing.T
	log      *eventlog.Log
	snaps    *snapshot.Store
	images   *snapshot.Writer
	folded   atomic.Int64
	during   atomic.Pointer[func()] // called once, while the next entry is folded
	interval int
	timers   []func() // that wait until a session is idle
	group    *writer.Group
	w        *writer.Writer
}

func newStore(t *testing.T, interval int) *store {
	t.Helper()
	log, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	snaps, err := snapshot.Open(filepath.Join(t.TempDir(), "snapshots.db"), snapshot.Config{Interval: interval})
	require.NoError(t, err)
	s := &store{t: t, log: log, snaps: snaps, interval: interval}
	t.Cleanup(func() {
		s.close()
		require.NoError(t, log.Close())
		require.NoError(t, snaps.Close())
	})
	return s
}

// open opens the session.
func (s *store) open(reactor writer.Reactor) {
	s.t.Helper()
	s.folded.Store(0)
	s.timers = nil
	s.images = snapshot.NewWriter(s.snaps, snapshot.WriterConfig{})
	s.group = writer.NewGroup(writer.Config{
		Log: s.log, Snapshots: s.snaps, Snapshotter: s.images, Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
		AfterFunc: func(_ time.Duration, f func()) { s.timers = append(s.timers, f) },
	})
	ses, err := s.log.Session("a")
	require.NoError(s.t, err)
	set := append(session.Projections(session.ProjectionConfig{}), projection.Projection{
		Name: "counting", Version: 1,
		New: func() projection.State { return &counting{store: s} },
		Restore: func(data []byte) (projection.State, error) {
			return &counting{s, binary.BigEndian.Uint64(data)}, nil
		},
	})
	s.w, err = s.group.Open(s.t.Context(), ses, session.TimeManual, session.NewReplay(&ses.SessionReader, set, s.snaps), reactor)
	require.NoError(s.t, err)
}

// settle waits for what is folded aside.
func (s *store) settle() {
	s.group.WaitFolded()
}

// stop ends the writer as a killed process does, without a note.
func (s *store) stop() {
	if s.group == nil {
		return
	}
	s.group.Stop()
	s.group.Wait()
	s.settle()
	s.images.Close()
	s.w.Release()
}

// close ends the writer as closing the engine does.
func (s *store) close() {
	if s.group != nil {
		s.group.Stop()
		s.group.Wait()
		s.settle()
		s.images.Close()
		s.group.NotePositions()
		s.w.Release()
		s.group = nil
	}
}

// entries returns how many entries the newest state has seen.
func (s *store) entries() (n int64) {
	s.w.Look(func(f *projection.Fold) { n = f.State("counting").View().(int64) })
	return n
}

// Opening a session that was closed folds nothing, and neither do the signals that
// follow. The first look folds all of it.
func TestOpenWithoutFold(t *testing.T) {
	s := newStore(t, 1000)
	s.open(nil)
	for i := range 20 {
		add(t, s.w, time.Duration(i)*time.Millisecond)
	}
	require.Zero(t, s.folded.Load())
	s.close()
	s.open(nil)
	add(t, s.w, 20*time.Millisecond)
	add(t, s.w, 21*time.Millisecond)
	s.settle()
	require.Zero(t, s.folded.Load())
	require.Empty(t, s.timers)
	require.Equal(t, session.TimeManual, s.w.Authority())
	require.Equal(t, int64(23), s.entries())
	require.Equal(t, int64(23), s.folded.Load())
	s.w.Look(func(f *projection.Fold) { require.Equal(t, 21*time.Millisecond, f.At()) })
	tick(t, s.w)
	require.Equal(t, int64(24), s.entries())
}

// A note counts only for the head that it names: after a kill, or an append past the
// writer, the session is folded when it is opened.
func TestNoteOfAnotherHead(t *testing.T) {
	s := newStore(t, 1000)
	s.open(nil)
	add(t, s.w, 0)
	s.close()
	s.open(nil)
	add(t, s.w, time.Second)
	s.stop() // killed
	s.open(nil)
	require.Equal(t, int64(3), s.folded.Load())
	var at time.Duration
	require.NoError(t, s.w.Decide(t.Context(), func(turn *writer.Turn) error {
		at = turn.Frontier().At
		return nil
	}))
	require.Equal(t, time.Second, at)
	s.close()

	// A note that is cut, of another layout or of another chain counts for nothing.
	note, err := s.snaps.Note("a")
	require.NoError(t, err)
	require.NotEmpty(t, note)
	bad := [][]byte{append(note[:len(note):len(note)], 0)}
	for i := range note[:60] { // up to and including part of the hash
		bad = append(bad, note[:i])
		changed := append([]byte{}, note...)
		changed[i] ^= 1
		bad = append(bad, changed)
	}
	for i, b := range bad {
		require.NoError(t, s.snaps.PutNotes(map[string][]byte{"a": b}))
		s.open(nil)
		assert.Equal(t, int64(3), s.folded.Load(), "bad note %d", i)
		s.stop()
	}
}

// A session whose fold is in use is folded again when it is idle, and not before.
func TestFoldsWhenIdle(t *testing.T) {
	s := newStore(t, 1000)
	s.open(nil)
	require.Zero(t, s.entries())
	add(t, s.w, 0) // with the first entry
	add(t, s.w, 1)
	require.Zero(t, s.folded.Load())
	require.Len(t, s.timers, 1) // one timer waits, however many signals come
	add(t, s.w, 2)
	s.timers[0]()
	s.settle()
	require.Zero(t, s.folded.Load()) // a signal came meanwhile
	require.Len(t, s.timers, 2)
	s.timers[1]()
	s.settle()
	require.Equal(t, int64(4), s.folded.Load())
	add(t, s.w, 3)
	require.Len(t, s.timers, 3)
	s.group.Stop()
	s.timers[2]()
	s.settle()
	require.Equal(t, int64(4), s.folded.Load()) // a closed engine begins nothing
}

// Entries that are recorded while a session is folded aside are folded when the session is
// idle again: a timer waits for that, as after any record.
func TestFoldsWhatCameWhileFolding(t *testing.T) {
	s := newStore(t, 1000)
	s.open(nil)
	require.Zero(t, s.entries())
	add(t, s.w, 0)
	require.Len(t, s.timers, 1)
	recorded := func() { add(t, s.w, 1) }
	s.during.Store(&recorded)
	s.timers[0]()
	s.settle()
	require.Equal(t, int64(2), s.folded.Load())
	require.Equal(t, 1, s.w.Behind())
	require.Len(t, s.timers, 2)
	s.timers[1]()
	s.settle()
	require.Equal(t, int64(3), s.folded.Load())
	require.Zero(t, s.w.Behind())
	require.Len(t, s.timers, 2)
}

// The fold is never farther behind than a bound, and an image is taken when it is due,
// without a look.
func TestBacklogIsBounded(t *testing.T) {
	const interval = 100
	s := newStore(t, interval)
	s.open(nil)
	for i := range interval - 2 {
		add(t, s.w, time.Duration(i))
	}
	s.settle()
	require.Zero(t, s.folded.Load())
	add(t, s.w, interval)
	s.settle()
	require.Equal(t, int64(interval), s.folded.Load())
	s.images.Close()
	list, err := s.snaps.List("a")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, eventlog.Seq(interval), list[0].Seq)

	s = newStore(t, 1_000_000) // no image is due
	s.open(nil)
	const bound = 1024
	for i := range bound - 2 {
		add(t, s.w, time.Duration(i))
	}
	s.settle()
	require.Zero(t, s.folded.Load())
	add(t, s.w, bound)
	s.settle()
	require.Equal(t, int64(bound), s.folded.Load())
}

// After KeepCurrent each batch is folded before its record returns.
func TestKeepCurrent(t *testing.T) {
	s := newStore(t, 1000)
	s.open(nil)
	add(t, s.w, 0)
	s.w.KeepCurrent()
	require.Equal(t, int64(2), s.folded.Load())
	add(t, s.w, 1)
	require.Equal(t, int64(3), s.folded.Load())
}

// A session whose reactor has to extend batches does so when it is opened again,
// although nobody has looked at it.
func TestNoteOfReactions(t *testing.T) {
	s := newStore(t, 1000)
	s.open(&echo{})
	tick(t, s.w)
	s.close()
	s.open(&echo{})
	require.Zero(t, s.folded.Load())
	add(t, s.w, 0)
	require.Equal(t, []string{"opened", "tick", "signal", "tick"}, words(t, s.w))
}
