package history_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// villagers are agents with policies, latencies, quotas and patience of every kind.
var villagers = map[string]string{
	"ada": `{"distance_limit":8,"quota_intents_per_minute":3}`,
	"bob": `{"policy":"everything","latency_model":{"ms":70},"debounce_ms":200}`,
	"c/d": `{"policy":"conversation","interrupt":"only_conflict","staleness_threshold":1,"cooldowns":{"Speak":90}}`,
	"eve": `{"policy":"fog","of":{"policy":"distance","limit":5},"capacity":2,"latency_model":{"model":"jitter","ms":10,"spread_ms":40,"seed":3}}`,
}

var villagerNames = []string{"ada", "bob", "c/d", "eve", "stranger"}

const village = `{
	"entities": {"ada":{"type":"agent","team":"red"}, "bob":{"type":"agent","team":"red"}, "c/d":{"type":"agent"}, "eve":{"type":"agent"}, "box":{"locked":true}},
	"relationships": {"c/d":["ada","bob"], "ada":["c/d"]},
	"spatial_index": {"ada":[0,0], "bob":[3,0], "c/d":[6,0], "eve":[9,0], "box":[4,4]}
}`

// villageDeed is one thing that somebody does in the village.
type villageDeed struct {
	do    string
	agent string
	reqID string
	value string
	seq   uint64 // context_seq
	ms    int64
}

// newestContext stands for the newest context_seq in a deed that begins a generation.
const newestContext = 999

var drawVillageDeed = rapid.Custom(func(t *rapid.T) villageDeed {
	return villageDeed{
		do: rapid.SampledFrom([]string{
			"submit", "submit", "submit", "broadcast", "begin", "cancel", "advance", "advance", "batch", "quantum", "leave", "register", "pause", "signal",
		}).Draw(t, "do"),
		agent: rapid.SampledFrom(villagerNames).Draw(t, "agent"),
		reqID: rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "req"),
		value: rapid.SampledFrom([]string{
			`Move {"to":[1,1]}`, `Move {"to":[30,0]}`, `Move {"to":"nowhere"}`, `Speak {"text":"hello"}`,
			`Speak {"text":"psst","channel":"private","target_id":"bob"}`, `Interact {"target_id":"box","type":"use"}`,
			`Interact {"target_id":"nobody"}`, `Custom {}`, `Fly {}`,
		}).Draw(t, "what"),
		seq: rapid.Uint64Range(0, 30).Draw(t, "seq"),
		ms:  rapid.Int64Range(0, 250).Draw(t, "ms"),
	}
})

func (d villageDeed) intent(t testing.TB) agents.Intent {
	var kind, payload string
	if _, err := fmt.Sscanf(d.value, "%s", &kind); err != nil {
		t.Fatal(err)
	}
	payload = d.value[len(kind)+1:]
	return agents.Intent{Kind: kind, Payload: enginetest.Value(t, payload), ReqID: d.reqID, AgentID: d.agent, ContextSeq: d.seq}
}

// done is what a villageDeed came to, and whose it was: an outcome by request.
type done map[[2]string]agents.Outcome

// perform does a villageDeed. Rejections and refusals are part of life.
func (d villageDeed) perform(ctx context.Context, t testing.TB, ses *sajou.Session, all done) error {
	world := ses.Agents()
	note := func(agent, reqID string, o agents.Outcome) {
		if o.GlobalSeq == 0 && (o.Rejection == nil || !o.Rejection.Code.Final()) {
			return
		}
		o.Status, o.Effect = 0, nil
		if first, ok := all[[2]string{agent, reqID}]; ok {
			if first.GlobalSeq != o.GlobalSeq || first.UUID != o.UUID || o.GlobalSeq == 0 && first.Rejection.Code != o.Rejection.Code {
				t.Errorf("request %s of %s was answered %v, and then %v", reqID, agent, first, o)
			}
		}
		all[[2]string{agent, reqID}] = o
	}
	var err error
	switch d.do {
	case "submit":
		var o agents.Outcome
		o, err = world.Submit(ctx, d.intent(t))
		note(d.agent, d.reqID, o)
	case "broadcast":
		in := d.intent(t)
		_, err = world.Broadcast(ctx, agents.EffectDraft{Kind: in.Kind, Payload: in.Payload, SourceID: d.agent})
	case "batch", "quantum":
		list := []agents.Intent{d.intent(t), d.intent(t)}
		list[1].AgentID, list[1].ReqID = "bob", d.reqID+"b"
		var outcomes []agents.Outcome
		if d.do == "batch" {
			outcomes, err = world.SubmitBatch(ctx, list)
		} else {
			outcomes, err = world.Quantum(ctx, agents.Submission{Intent: &list[0]}, agents.Submission{Intent: &list[1]})
		}
		for i, o := range outcomes {
			note(list[i].AgentID, list[i].ReqID, o)
		}
	case "advance":
		err = world.Advance(ctx, world.Now()+time.Duration(d.ms)*time.Millisecond)
	case "register":
		var g *agentslive.Agent
		if g, err = world.Register(ctx, d.agent, enginetest.Value(t, villagers[villagerNames[int(d.seq)%4]])); err == nil {
			g.Close()
		}
	case "pause":
		err = world.Configure(ctx, enginetest.Value(t, fmt.Sprintf(`{"paused":%v}`, d.seq%2 == 1)))
	case "configure":
		err = world.Configure(ctx, enginetest.Value(t, fmt.Sprintf(`{"deadline_ms":%d,"debounce_ms":%d}`, 1000+d.ms, 200+d.ms)))
	case "signal":
		_, err = ses.Signal(ctx, enginetest.Step{Typ: "error"}.Signal(int(d.seq), int64(world.Now()/time.Millisecond)))
	default:
		var g *agentslive.Agent
		if g, err = world.Agent(ctx, d.agent); err != nil {
			break
		}
		defer g.Close()
		switch d.do {
		case "begin":
			_, err = g.Begin(ctx, agents.TokenRequest{ReqID: d.reqID, ContextSeq: d.seq, Current: d.seq == newestContext, Deadline: time.Duration(d.ms) * time.Millisecond})
		case "cancel":
			_, err = g.Cancel(ctx, d.reqID)
		case "leave":
			err = g.Leave(ctx)
		}
	}
	if _, ok := errors.AsType[*agents.Rejection](err); ok {
		return nil
	}
	return err
}

// found makes the village in a new session.
func found(ctx context.Context, t testing.TB, ses *sajou.Session) error {
	world := ses.Agents()
	if ses.Head().Seq > 0 {
		// A crash may have come in the middle; what is there is not made again.
		if f, err := ses.State(ctx); err != nil || session.WorldOf(f).World().Len() > 0 {
			return errors.Join(err, people(ctx, t, world))
		}
	}
	if err := world.Begin(ctx, enginetest.Value(t, village)); err != nil {
		return err
	}
	return people(ctx, t, world)
}

func people(ctx context.Context, t testing.TB, world *agentslive.Agents) error {
	for _, id := range villagerNames[:4] {
		if _, err := world.View(ctx, id); err == nil {
			continue
		}
		g, err := world.Register(ctx, id, enginetest.Value(t, villagers[id]))
		if err != nil {
			return err
		}
		g.Close()
	}
	return nil
}

// For any life of the village: the state at every entry is the same live,
// folded from the first entry and from snapshots; what each agent is told leads
// to the very view whose digest it carries; after a restart every request that was
// answered is answered the same.
func TestAgentsLiveAndReplayed(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		n++
		cfg := sajou.Config{SnapshotEvery: 4}
		open := func() (*sajou.Engine, *sajou.Session) {
			eng, err := sajou.Open(fmt.Sprintf("%s/%d", dir, n), cfg)
			require.NoError(rt, err)
			ses, err := eng.Begin(ctx, "village", session.TimeManual)
			require.NoError(rt, err)
			return eng, ses
		}
		eng, ses := open()
		defer func() { _ = eng.Close() }()
		require.NoError(rt, found(ctx, t, ses))
		var readers []*enginetest.ViewReader
		for _, id := range villagerNames[:4] {
			g, err := ses.Agents().Agent(ctx, id)
			require.NoError(rt, err)
			readers = append(readers, &enginetest.ViewReader{Agent: g, View: enginetest.Value(t, `{"visible_entities":{},"visible_relationships":{}}`)})
		}
		live, all := map[eventlog.Seq]string{}, done{}
		for _, d := range rapid.SliceOfN(drawVillageDeed, 1, 20).Draw(rt, "deeds") {
			require.NoError(rt, d.perform(ctx, t, ses, all))
			require.NoError(rt, ses.Agents().Settle(ctx))
			for _, r := range readers {
				r.Read(ctx, t, ses.Agents().Now())
			}
			f, err := ses.State(ctx)
			require.NoError(rt, err)
			live[f.Head().Seq] = enginetest.Digests(f)
		}
		log, err := eng.Log().Session("village")
		require.NoError(rt, err)
		genesis := replay.Open(log, session.Projections(session.ProjectionConfig{}), nil)
		for seq, want := range live {
			for how, at := range map[string]func() (string, error){
				"the first entry": func() (string, error) {
					f, err := genesis.At(ctx, replay.Moment{Seq: seq})
					if err != nil {
						return "", err
					}
					return enginetest.Digests(f), nil
				},
				"a snapshot": func() (string, error) {
					f, err := enginetest.ReplayedAt(ctx, eng, "village", seq)
					if err != nil {
						return "", err
					}
					return enginetest.Digests(f), nil
				},
			} {
				if got, err := at(); err != nil || got != want {
					rt.Fatalf("entry %d from %s: %s, live %s (%v)", seq, how, got, want, err)
				}
			}
		}
		_ = eng.Close()
		eng, ses = open()
		for key := range all {
			again := villageDeed{do: "submit", agent: key[0], reqID: key[1], value: "Speak {}"}
			require.NoError(rt, again.perform(ctx, t, ses, all))
		}
	})
}

// A crash at any write, with none, half or all of what was not synced on the
// disk: whoever starts again and asks everything once more, with the same req_ids, gets
// one outcome for each request, and the same one where it had been told already.
func TestCrashAnywhereAnswersOnce(t *testing.T) {
	ctx := context.Background()
	deeds := []villageDeed{
		{do: "submit", agent: "ada", reqID: "1", value: `Move {"to":[1,1]}`},
		{do: "submit", agent: "bob", reqID: "1", value: `Interact {"target_id":"nobody"}`},
		{do: "begin", agent: "bob", reqID: "2", seq: 1, ms: 120},
		{do: "quantum", agent: "c/d", reqID: "3", value: `Speak {"text":"hello"}`, seq: 9},
		{do: "advance", ms: 500},
		{do: "submit", agent: "bob", reqID: "2", value: `Speak {"text":"too late"}`, seq: 9},
		{do: "batch", agent: "ada", reqID: "4", value: `Speak {"text":"all or none"}`, seq: 20},
		{do: "begin", agent: "ada", reqID: "5", seq: 20, ms: 200},
		{do: "cancel", agent: "ada", reqID: "5"},
		{do: "submit", agent: "ada", reqID: "1", value: `Move {"to":[9,9]}`},
	}
	mem := vfs.NewCrashableMem()
	type image struct {
		fs   *vfs.MemFS
		told done
	}
	// The store writes from goroutines of its own too: mu guards images, answered
	// and rng, and answered changes only between two deeds.
	var mu sync.Mutex
	var images []image
	answered, all := done{}, done{}
	rng := rand.New(rand.NewPCG(5, 5))
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			for _, percent := range []int{0, 50, 100} {
				images = append(images, image{mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), maps.Clone(answered)})
			}
		}
		return nil
	}))
	live := func(fs vfs.FS, all done) error {
		eng, err := sajou.Open("store", sajou.Config{FS: fs})
		if err != nil {
			return err
		}
		ses, err := eng.Begin(ctx, "village", session.TimeManual)
		if err == nil {
			err = found(ctx, t, ses)
		}
		for _, d := range deeds {
			if err == nil {
				err = d.perform(ctx, t, ses, all)
				mu.Lock()
				maps.Copy(answered, all)
				mu.Unlock()
			}
		}
		if err == nil {
			err = enginetest.Once(ctx, ses)
		}
		return errors.Join(err, eng.Close())
	}
	require.NoError(t, live(fs, all))
	mu.Lock()
	taken := images
	mu.Unlock()
	if len(all) < 5 || len(taken) < 50 {
		t.Fatalf("%d requests were answered, %d images taken", len(all), len(taken))
	}
	for i, img := range taken {
		require.NoErrorf(t, live(img.fs, img.told), "image %d", i)
		if t.Failed() {
			t.Fatalf("image %d", i)
		}
	}
}
