package sajou_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// However many sessions are kept ready, the same calls give the same heads and states,
// through handles that are kept and through those that are asked for again.
func TestIdleSessionsAreTheSame(t *testing.T) {
	const sessions, calls = 7, 400
	run := func(seed uint64, bound int) string {
		eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), IdleSessions: bound, SnapshotEvery: 20})
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		rnd := rand.New(rand.NewPCG(seed, 0))
		var kept [sessions]*sajou.Session
		var now [sessions]int64
		for i := range calls {
			n := rnd.IntN(sessions)
			ses := kept[n]
			if ses == nil || rnd.IntN(2) == 0 {
				ses, err = eng.Begin(t.Context(), fmt.Sprint("s", n), session.TimeManual)
				require.NoError(t, err)
				kept[n] = ses
			}
			if rnd.IntN(50) == 0 {
				kept[n] = nil
				runtime.GC()
			}
			now[n] += rnd.Int64N(500)
			switch rnd.IntN(10) {
			case 0:
				_, err = ses.Define(t.Context(), enginetest.Definitions(t, strings.Replace(brief, "20", fmt.Sprint(20+i), 1))...)
			case 1:
				_, err = ses.State(t.Context())
			case 2:
				if d := ses.Director(); rnd.IntN(3) == 0 {
					_ = d.Start(t.Context(), enginetest.Authored(t, enginetest.Joined), director.Opening{}) // refused the second time
				}
			default:
				_, err = ses.Signal(t.Context(), enginetest.TaskSignal(i, now[n]))
			}
			require.NoError(t, err, "call %d", i)
		}
		var all []string
		for n := range sessions {
			ses, err := eng.Session(t.Context(), fmt.Sprint("s", n))
			require.NoError(t, err)
			state, err := ses.State(t.Context())
			require.NoError(t, err)
			all = append(all, enginetest.Digests(state))
		}
		return strings.Join(all, "\n")
	}
	for seed := range uint64(3) {
		require.Equal(t, run(seed, 1000), run(seed, 2), "seed %d", seed)
	}
}

// A session that the program no longer refers to is freed beyond the bound, and keeps
// what it has recorded.
func TestUnusedSessionsAreFreed(t *testing.T) {
	const sessions, bound = 100, 5
	eng, err := sajou.Open(t.TempDir(), sajou.Config{IdleSessions: bound})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	var freed atomic.Int64
	for i := range sessions {
		ses, err := eng.Session(t.Context(), fmt.Sprint("s", i))
		require.NoError(t, err)
		runtime.AddCleanup(ses, func(int) { freed.Add(1) }, 0)
		_, err = ses.Signal(t.Context(), enginetest.TaskSignal(i, int64(i)))
		require.NoError(t, err)
		_, err = ses.State(t.Context())
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return freed.Load() >= sessions-bound-1
	}, time.Minute, time.Millisecond)
	for i := range sessions {
		ses, err := eng.Session(t.Context(), fmt.Sprint("s", i))
		require.NoError(t, err)
		require.EqualValues(t, 2, ses.Head().Seq)
	}
}

// A session with agents, or with a sink, is not idle: both go on.
func TestSessionsInUseAreKept(t *testing.T) {
	ctx := t.Context()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), IdleSessions: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	acts := func(name string) *agentslive.Agent {
		ses, err := eng.Begin(ctx, name, session.TimeManual)
		require.NoError(t, err)
		world := ses.Agents()
		require.NoError(t, world.Begin(ctx, enginetest.Value(t, `{"entities":{"ada":{},"lock":{}}}`)))
		ada, err := world.Register(ctx, "ada", nil)
		require.NoError(t, err)
		_, err = ada.Submit(ctx, enginetest.Interact("lock"))
		require.NoError(t, err)
		return ada
	}
	ada := acts("agents")
	sink := &enginetest.ChannelSink{Commands: make(chan choreography.Command, 10)}
	shown, err := eng.Begin(ctx, "sink", session.TimeManual)
	require.NoError(t, err)
	_, err = shown.Define(ctx, enginetest.Definitions(t, brief)...)
	require.NoError(t, err)
	live := shown.Attach(ctx, sink, 0)
	shown = nil
	for i := range 10 {
		ses, err := eng.Session(ctx, fmt.Sprint("s", i))
		require.NoError(t, err)
		_, err = ses.Signal(ctx, enginetest.TaskSignal(i, int64(i)))
		require.NoError(t, err)
		runtime.GC()
	}
	_, err = ada.Submit(ctx, enginetest.Interact("lock"))
	require.NoError(t, err)
	again, err := eng.Session(ctx, "agents")
	require.NoError(t, err)
	state, err := again.State(ctx)
	require.NoError(t, err)
	replayed, err := enginetest.ReplayedAt(ctx, eng, "agents", again.Head().Seq)
	require.NoError(t, err)
	require.Equal(t, enginetest.Digests(replayed), enginetest.Digests(state))
	shown, err = eng.Session(ctx, "sink")
	require.NoError(t, err)
	_, err = shown.Signal(ctx, enginetest.TaskSignal(1, 5))
	require.NoError(t, err)
	promptly(t, "the sink", func() { <-sink.Commands })
	require.NoError(t, live.Err())
}

// BenchmarkIdleSession tells the heap that a session takes which is used once: kept
// ready, let go with its handle kept, and let go altogether.
func BenchmarkIdleSession(b *testing.B) {
	for name, c := range map[string]struct {
		bound int
		keep  bool
	}{"ready": {1 << 20, false}, "handle": {1, true}, "none": {1, false}} {
		b.Run(name, func(b *testing.B) {
			eng, err := sajou.Open(b.TempDir(), sajou.Config{IdleSessions: c.bound})
			require.NoError(b, err)
			ctx := context.Background()
			var kept []*sajou.Session
			heap := func() uint64 {
				for range 3 {
					runtime.GC()
				}
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			for i := range b.N {
				ses, err := eng.Session(ctx, fmt.Sprint("s", i))
				if err == nil {
					_, err = ses.Signal(ctx, enginetest.TaskSignal(i, int64(i)))
				}
				if err == nil {
					_, err = ses.State(ctx)
				}
				require.NoError(b, err)
				if c.keep {
					kept = append(kept, ses)
				}
			}
			b.ReportMetric(float64(heap()-before)/float64(b.N), "heap-B/session")
			runtime.KeepAlive(kept)
			require.NoError(b, eng.Close())
		})
	}
}
