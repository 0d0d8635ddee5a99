package eventlog_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// logMetrics keeps the reports of a log.
type logMetrics struct {
	mu     sync.Mutex
	rounds []eventlog.CommittedRound // guarded by mu
	synced map[string]int            // by role; guarded by mu
	bad    int                       // syncs that failed; guarded by mu
	failed []error                   // guarded by mu
}

func (m *logMetrics) Committed(r eventlog.CommittedRound) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rounds = append(m.rounds, r)
}

func (m *logMetrics) FileSynced(role string, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.synced == nil {
		m.synced = map[string]int{}
	}
	if m.synced[role]++; err != nil || took < time.Millisecond {
		m.bad++
	}
}

func (m *logMetrics) LogFailed(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = append(m.failed, cause)
}

// ticking returns a clock that moves by a millisecond whenever it is read.
func ticking() func() time.Time {
	var mu sync.Mutex
	now := time.Unix(1_700_000_000, 0)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}
}

// A round is reported once, before its appends return, with what it holds. Repeats of a
// key and refused batches are no rounds. Each file that is synced is reported.
func TestLogMetrics(t *testing.T) {
	var m logMetrics
	l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem(), Metrics: &m, Now: ticking()})
	require.NoError(t, err)
	s := session(t, l, "a")
	size := 0
	for i, n := range []int{1, 3} {
		b := eventlog.Batch{Drafts: drafts(i, n), Key: "k"}
		if i > 0 {
			b.Key = ""
		}
		_, err := s.Append(t.Context(), b)
		require.NoError(t, err)
		m.mu.Lock()
		require.Len(t, m.rounds, i+1, "after append %d", i+1)
		r := m.rounds[i]
		m.mu.Unlock()
		assert.Positive(t, r.Took)
		assert.Positive(t, r.Bytes)
		size += r.Bytes
		assert.Equal(t, eventlog.CommittedRound{Session: "a", Batches: 1, Entries: n, Bytes: r.Bytes, Took: r.Took}, r)
	}
	_, err = s.Append(t.Context(), eventlog.Batch{Drafts: drafts(0, 1), Key: "k"})
	require.NoError(t, err)
	_, err = s.Append(t.Context(), eventlog.Batch{})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	a, err := s.Claim()
	require.NoError(t, err)
	var tickets [2]*eventlog.Ticket
	require.NoError(t, a.Write(t.Context(), func(r *eventlog.Round) {
		for i := range tickets {
			tickets[i], err = r.Stage(eventlog.Batch{Drafts: drafts(10+i, 2)})
		}
	}))
	require.NoError(t, err)
	require.Len(t, m.rounds, 3)
	if r := m.rounds[2]; r.Batches != 2 || r.Entries != 4 || r.Bytes != tickets[0].Size()+tickets[1].Size() || r.Err != nil {
		t.Errorf("a round of two batches: %+v", r)
	}
	require.NoError(t, l.Close())
	for _, role := range []string{"wal", "heads", "table", "manifest"} {
		if m.synced[role] == 0 {
			t.Errorf("no sync of %s is reported: %v", role, m.synced)
		}
	}
	if m.bad > 0 || len(m.failed) > 0 || size == 0 {
		t.Errorf("%d bad syncs, failures %v", m.bad, m.failed)
	}
}

// A round whose write fails is reported with the error, and the failure of the log once.
func TestLogMetricsOfFailure(t *testing.T) {
	var m logMetrics
	disk := newFaults(vfs.NewMem())
	l, err := eventlog.Open("store", eventlog.Config{FS: disk, Metrics: &m, Now: ticking()})
	require.NoError(t, err)
	s := session(t, l, "a")
	_, err = s.Append(t.Context(), eventlog.Batch{Drafts: drafts(1, 1)})
	require.NoError(t, err)
	full := errors.New("no space left")
	disk.set(func(int64, errorfs.Op) error { return full })
	for range 2 {
		_, err = s.Append(t.Context(), eventlog.Batch{Drafts: drafts(2, 1)})
		require.ErrorIs(t, err, eventlog.ErrReadOnly)
	}
	require.NoError(t, l.Close())
	require.Len(t, m.failed, 1)
	require.ErrorIs(t, m.failed[0], full)
	lost := slices.DeleteFunc(m.rounds, func(r eventlog.CommittedRound) bool { return r.Err == nil })
	require.Len(t, lost, 1, "the second append is refused before it is a round")
	require.ErrorIs(t, lost[0].Err, full)
}

// Without metrics the clock is never read; metrics without a clock are refused.
func TestNoLogMetrics(t *testing.T) {
	l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem(), Now: func() time.Time {
		t.Error("the clock was read")
		return time.Time{}
	}})
	require.NoError(t, err)
	_, err = session(t, l, "a").Append(t.Context(), eventlog.Batch{Drafts: drafts(1, 1)})
	require.NoError(t, err)
	require.NoError(t, l.Close())

	_, err = eventlog.Open("store", eventlog.Config{FS: vfs.NewMem(), Metrics: &logMetrics{}})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.ErrorContains(t, err, "Config.Now")
}

type discardLogMetrics struct{}

func (discardLogMetrics) Committed(eventlog.CommittedRound)       {}
func (discardLogMetrics) FileSynced(string, time.Duration, error) {}
func (discardLogMetrics) LogFailed(error)                         {}

// BenchmarkAppendMeasured shows what metrics cost an append: allocations and time.
func BenchmarkAppendMeasured(b *testing.B) {
	for name, m := range map[string]eventlog.LogMetrics{"nil": nil, "discard": discardLogMetrics{}} {
		b.Run(name, func(b *testing.B) {
			l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem(), Metrics: m, Now: time.Now})
			require.NoError(b, err)
			defer l.Close()
			s, err := l.Session("a")
			require.NoError(b, err)
			ctx, batch := b.Context(), eventlog.Batch{Drafts: drafts(1, 1)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Append(ctx, batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
