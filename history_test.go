package sajou_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// storyDefinitions have groups, continuations, handlers and interrupts.
var storyDefinitions = []string{
	`{"on":"task_dispatch","steps":[
		{"action":"spawn","entity":"pigeon"},
		{"action":"parallel","steps":[
			{"action":"fly","entity":"pigeon","to":"signal.to","duration":700,"easing":"arc"},
			{"action":"onArrive","steps":[{"action":"wait","duration":150},{"action":"pulse","entity":"signal.from","duration":300,"delay":40}]}]},
		{"action":"onArrive","steps":[{"action":"destroy","entity":"pigeon"}]},
		{"action":"onInterrupt","steps":[{"action":"flash","target":"signal.from","duration":200},{"action":"destroy","entity":"pigeon"}]}]}`,
	`{"on":"tool_call","steps":[{"action":"move","entity":"signal.agentId","to":"forge","duration":333.25,"easing":"easeInOut"},{"action":"wait","duration":5000}]}`,
	`{"on":"error","interrupts":true,"steps":[{"action":"flash","target":"signal.agentId","duration":120}]}`,
	`{"on":"user.wave","steps":[
		{"action":"parallel","steps":[
			{"action":"drawBeam","entity":"signal.agentId","to":"forge","duration":250},
			{"action":"typeText","entity":"signal.agentId","text":"h\u00e9llo","duration":333},
			{"action":"set","entity":"signal.agentId","property":"opacity","value":0.3,"duration":170.5,"easing":"easeInOut"},
			{"action":"move","entity":"signal.agentId","by":{"x":30,"y":-7.7},"duration":210,"easing":"easeOut"}]},
		{"action":"set","entity":"signal.agentId","property":"opacity","revert":true,"duration":90},
		{"action":"playSound","entity":"signal.agentId","sound":"bell"}]}`,
}

// storyScene is the scene that a history can bring into force.
const storyScene = `{"sajou":"scene","version":1,"name":"yard","size":{"width":640,"height":360},
	"slots":{"left":{"x":160,"y":220},"right":{"x":480.5,"y":220}},"waypoints":{"forge":{"x":320,"y":90},"desk":{"x":33,"y":41}},
	"entities":[{"id":"agent","at":"left"},{"id":"pigeon","at":"desk","hidden":true}]}`

// step is one thing that happens in a random history.
type step struct {
	typ  string
	wait int64 // ms after the step before
	task int
}

// Besides signals, a history has the choreographies and the scene come into
// force: what comes before is seen as impressions, on the scene that is there
// without one.
var drawStep = rapid.Custom(func(t *rapid.T) step {
	return step{
		typ: rapid.SampledFrom([]string{
			"task_dispatch", "task_dispatch", "tool_call", "error", "thinking", "user.wave", "user.wave", "choreographies", "scene",
		}).Draw(t, "type"),
		wait: rapid.SampledFrom([]int64{0, 0, 1, 40, 150, 333, 700, 5000}).Draw(t, "wait"),
		task: rapid.IntRange(0, 2).Draw(t, "task"),
	}
})

// record is what step n of a history records.
func (s step) record(t testing.TB, n int, ms int64) sajou.Record {
	switch s.typ {
	case "choreographies":
		return sajou.Record{Declarations: definitions(t, storyDefinitions...)}
	case "scene":
		sc, err := scene.Compile(value(t, storyScene))
		if err != nil {
			t.Fatal(err)
		}
		return sajou.Record{Declarations: []choreography.Declaration{sc}}
	}
	return sajou.Record{Signals: []*signal.Signal{s.signal(n, ms)}}
}

func (s step) signal(n int, ms int64) *signal.Signal {
	payload := map[string]string{
		"task_dispatch": `{"taskId":"t","from":"boss","to":"agent"}`,
		"tool_call":     `{"toolName":"x","agentId":"agent"}`,
		"error":         `{"message":"m","severity":"error","agentId":"agent"}`,
		"thinking":      `{"agentId":"agent","content":"hm"}`,
		"user.wave":     `{"agentId":"agent"}`,
	}[s.typ]
	line := fmt.Appendf(nil, `{"id":"s%d","type":%q,"timestamp":%d,"source":"test","correlationId":"task-%d","payload":%s}`,
		n, s.typ, 1_700_000_000_000+ms, s.task, payload)
	sig, err := signal.Parse(line)
	if err != nil {
		panic(err)
	}
	return sig
}

// digests shows where a state stands and what it is.
func digests(f *projection.Fold) string { return fmt.Sprint(f.Head(), f.Digests()) }

// For any history, the state at every Seq is the same live, folded from the
// first entry, and folded from any snapshot.
func TestStateIsTheSameLiveAndReplayed(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		n++
		eng, ses := begin(rt, fmt.Sprintf("%s/%d", dir, n), sajou.Config{SnapshotEvery: 3})
		defer func() { _ = eng.Close() }()
		live := map[eventlog.Seq]string{}
		ms := int64(0)
		for i, s := range rapid.SliceOfN(drawStep, 1, 12).Draw(rt, "history") {
			ms += s.wait
			if _, err := ses.Record(ctx, s.record(t, i, ms)); err != nil {
				rt.Fatal(err)
			}
			f, err := ses.State(ctx)
			if err != nil {
				rt.Fatal(err)
			}
			live[f.Head().Seq] = digests(f)
		}
		log, err := eng.Log().Session("a")
		if err != nil {
			rt.Fatal(err)
		}
		genesis := replay.Open(log, sajou.Projections(), nil)
		for seq, want := range live {
			fromGenesis, err := genesis.At(ctx, replay.Moment{Seq: seq})
			if err != nil {
				rt.Fatal(err)
			}
			if got := digests(fromGenesis); got != want {
				rt.Fatalf("entry %d: from genesis %s, live %s", seq, got, want)
			}
			fromSnapshot, err := eng.Replay("a").At(ctx, seq)
			if err != nil {
				rt.Fatal(err)
			}
			if got := digests(fromSnapshot); got != want {
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
		eng, ses := begin(rt, "store", sajou.Config{FS: vfs.NewMem()})
		defer func() { _ = eng.Close() }()
		ms := int64(0)
		for i, s := range rapid.SliceOfN(drawStep, 1, 12).Draw(rt, "history") {
			ms += s.wait
			if _, err := ses.Record(ctx, s.record(t, i, ms)); err != nil {
				rt.Fatal(err)
			}
		}
		plain := projection.NewFold(sajou.Projections(), eventlog.Genesis("a"))
		looked := projection.NewFold(sajou.Projections(), eventlog.Genesis("a"))
		for e, err := range ses.Entries(ctx, 1) {
			if err != nil {
				rt.Fatal(err)
			}
			if gap := e.At - looked.At(); gap > 0 {
				for _, part := range rapid.SliceOfN(rapid.Int64Range(0, int64(gap)), 0, 4).Draw(rt, "looks") {
					looked.Advance(looked.At() + min(time.Duration(part), e.At-looked.At()))
				}
			}
			if err := plain.Apply(&e); err != nil {
				rt.Fatal(err)
			}
			if err := looked.Apply(&e); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "restored") {
				if looked, err = looked.Clone(); err != nil {
					rt.Fatal(err)
				}
			}
			if a, b := digests(plain), digests(looked); a != b {
				rt.Fatalf("entry %d: %s without looking, %s with", e.Seq, a, b)
			}
			if diff := cmp.Diff(sajou.FrameOf(plain), sajou.FrameOf(looked), cmpopts.IgnoreFields(stage.Frame{}, "Scene")); diff != "" {
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
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
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
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = eng.Close() }()
		ses, err := eng.Session(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		note := func() {
			f, err := ses.State(ctx)
			if err != nil {
				t.Fatal(err)
			}
			states[f.Head()] = digests(f)
			acknowledged = f.Head().Seq
		}
		for i, typ := range []string{"thinking", "choreographies", "task_dispatch", "tool_call", "scene", "error", "task_dispatch", "user.wave", "tool_call"} {
			if _, err := ses.Record(ctx, step{typ: typ, task: i % 2}.record(t, i, int64(i)*90)); err != nil {
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
		if err != nil {
			t.Fatalf("image %d: %v", i, err)
		}
		ses, err := eng.Session(ctx, "a")
		if err != nil {
			t.Fatalf("image %d: %v", i, err)
		}
		if got := ses.Head().Seq; got < img.acknowledged {
			t.Fatalf("image %d: entries after %d are lost, %d were acknowledged", i, got, img.acknowledged)
		}
		if head := ses.Head(); head.Seq > 0 {
			f, err := ses.State(ctx)
			if err != nil {
				t.Fatalf("image %d: %v", i, err)
			}
			if got, want := digests(f), states[head]; got != want {
				t.Fatalf("image %d: state %s, want %s", i, got, want)
			}
			r, err := eng.Log().Verify(ctx, "a", eventlog.VerifyOptions{})
			if err != nil || r.Fault != nil {
				t.Fatalf("image %d: verify: %v, %v", i, r.Fault, err)
			}
		}
		if _, err := ses.Signal(ctx, step{typ: "error"}.signal(99, 10_000)); err != nil {
			t.Fatalf("image %d: goes on: %v", i, err)
		}
		if err := eng.Close(); err != nil {
			t.Fatalf("image %d: %v", i, err)
		}
	}
}
