package sajou_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
)

// Besides signals, a history has the choreographies and the scene come into
// force: what comes before is seen as impressions, on the scene that is there
// without one.
var drawStep = rapid.Custom(func(t *rapid.T) enginetest.Step {
	return enginetest.Step{
		Typ: rapid.SampledFrom([]string{
			"task_dispatch", "task_dispatch", "tool_call", "error", "thinking", "user.wave", "user.wave", "choreographies", "scene",
		}).Draw(t, "type"),
		Wait: rapid.SampledFrom([]int64{0, 0, 1, 40, 150, 333, 700, 5000}).Draw(t, "wait"),
		Task: rapid.IntRange(0, 2).Draw(t, "task"),
	}
})

// For any history, the state at every Seq is the same live, folded from the
// first entry, and folded from any snapshot.
func TestStateIsTheSameLiveAndReplayed(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		n++
		eng, ses := enginetest.Begin(rt, fmt.Sprintf("%s/%d", dir, n), sajou.Config{SnapshotEvery: 3})
		defer func() { _ = eng.Close() }()
		live := map[eventlog.Seq]string{}
		ms := int64(0)
		for i, s := range rapid.SliceOfN(drawStep, 1, 12).Draw(rt, "history") {
			ms += s.Wait
			if _, err := ses.Record(ctx, s.Record(t, i, ms)); err != nil {
				rt.Fatal(err)
			}
			f, err := ses.State(ctx)
			require.NoError(rt, err)
			live[f.Head().Seq] = enginetest.Digests(f)
		}
		log, err := eng.Log().Session("a")
		require.NoError(rt, err)
		genesis := replay.Open(log, session.Projections(session.ProjectionConfig{}), nil)
		for seq, want := range live {
			fromGenesis, err := genesis.At(ctx, replay.Moment{Seq: seq})
			require.NoError(rt, err)
			if got := enginetest.Digests(fromGenesis); got != want {
				rt.Fatalf("entry %d: from genesis %s, live %s", seq, got, want)
			}
			fromSnapshot, err := enginetest.ReplayedAt(ctx, eng, "a", seq)
			require.NoError(rt, err)
			if got := enginetest.Digests(fromSnapshot); got != want {
				rt.Fatalf("entry %d: from a snapshot %s, live %s", seq, got, want)
			}
		}
	})
}

// For any history and any way of looking at it in between, the state after
// it is the same: how time is cut makes no difference, nor that the state was
// written down on the way and restored.
func TestLookingChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		eng, ses := enginetest.Begin(rt, "store", sajou.Config{FS: vfs.NewMem()})
		defer func() { _ = eng.Close() }()
		ms := int64(0)
		for i, s := range rapid.SliceOfN(drawStep, 1, 12).Draw(rt, "history") {
			ms += s.Wait
			if _, err := ses.Record(ctx, s.Record(t, i, ms)); err != nil {
				rt.Fatal(err)
			}
		}
		plain := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis("a"))
		looked := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis("a"))
		for e, err := range ses.Entries(ctx, 1) {
			require.NoError(rt, err)
			if gap := e.At - looked.At(); gap > 0 {
				for _, part := range rapid.SliceOfN(rapid.Int64Range(0, int64(gap)), 0, 4).Draw(rt, "looks") {
					looked.Advance(looked.At() + min(time.Duration(part), e.At-looked.At()))
				}
			}
			require.NoError(rt, plain.Apply(&e))
			require.NoError(rt, looked.Apply(&e))
			if rapid.Bool().Draw(rt, "restored") {
				if looked, err = looked.Clone(); err != nil {
					rt.Fatal(err)
				}
			}
			if a, b := enginetest.Digests(plain), enginetest.Digests(looked); a != b {
				rt.Fatalf("entry %d: %s without looking, %s with", e.Seq, a, b)
			}
			if diff := cmp.Diff(session.StageOf(plain).Frame(), session.StageOf(looked).Frame(), cmpopts.IgnoreFields(stage.Frame{}, "Scene")); diff != "" {
				rt.Fatalf("entry %d: seen without looking (-) and with (+):\n%s", e.Seq, diff)
			}
		}
	})
}

// A crash at any write of a workload, with none, half or all of what was not
// synced on the disk, loses nothing that was acknowledged; the state is that of
// the entries that are there, and the session goes on.
func TestCrashAnywhereKeepsStates(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewCrashableMem()
	states := map[eventlog.Head]string{}
	var acknowledged eventlog.Seq
	type image struct {
		fs           *vfs.MemFS
		acknowledged eventlog.Seq
	}
	var images []image
	rng := rand.New(rand.NewPCG(7, 7))
	var mu sync.Mutex // Pebble writes its files from several goroutines
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			for _, percent := range []int{0, 50, 100} {
				images = append(images, image{
					mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), acknowledged,
				})
			}
		}
		return nil
	})
	fs := errorfs.Wrap(mem, watch)
	func() {
		eng, err := sajou.Open("store", sajou.Config{FS: fs})
		require.NoError(t, err)
		defer func() { _ = eng.Close() }()
		ses, err := eng.Session(ctx, "a")
		require.NoError(t, err)
		note := func() {
			f, err := ses.State(ctx)
			require.NoError(t, err)
			states[f.Head()] = enginetest.Digests(f)
			mu.Lock()
			defer mu.Unlock()
			acknowledged = f.Head().Seq
		}
		for i, typ := range []string{"thinking", "choreographies", "task_dispatch", "tool_call", "scene", "error", "task_dispatch", "user.wave", "tool_call"} {
			if _, err := ses.Record(ctx, enginetest.Step{Typ: typ, Task: i % 2}.Record(t, i, int64(i)*90)); err != nil {
				t.Fatal(err)
			}
			note()
		}
	}()
	if len(images) < 50 {
		t.Fatalf("only %d images were taken", len(images))
	}
	for i, img := range images {
		eng, err := sajou.Open("store", sajou.Config{FS: img.fs})
		require.NoErrorf(t, err, "image %d", i)
		ses, err := eng.Session(ctx, "a")
		require.NoErrorf(t, err, "image %d", i)
		if got := ses.Head().Seq; got < img.acknowledged {
			t.Fatalf("image %d: entries after %d are lost, %d were acknowledged", i, got, img.acknowledged)
		}
		if head := ses.Head(); head.Seq > 0 {
			f, err := ses.State(ctx)
			require.NoErrorf(t, err, "image %d", i)
			if got, want := enginetest.Digests(f), states[head]; got != want {
				t.Fatalf("image %d: state %s, want %s", i, got, want)
			}
			r, err := eng.Log().Verify(ctx, "a", verify.Options{})
			if err != nil || r.Fault != nil {
				t.Fatalf("image %d: verify: %v, %v", i, r.Fault, err)
			}
		}
		if _, err := ses.Signal(ctx, enginetest.Step{Typ: "error"}.Signal(99, 10_000)); err != nil {
			t.Fatalf("image %d: goes on: %v", i, err)
		}
		require.NoErrorf(t, eng.Close(), "image %d", i)
	}
}
