package live_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

const unlimited = `"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"staleness_threshold":1000000000`

// inTime runs f in a session of the wall's clock, which stands still until it
// is moved.
func inTime(t *testing.T, f func(*testing.T, *enginetest.StoppedClock, *sajou.Session)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
		eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: th.Read, AfterFunc: th.AfterFunc})
		require.NoError(t, err)
		ses, err := eng.Session(t.Context(), "world")
		require.NoError(t, err)
		f(t, th, ses)
		assert.NoError(t, eng.Close())
		synctest.Wait()
	})
}

// say has b say something that all see.
func say(t *testing.T, w *agentslive.Agents, text string) agents.Outcome {
	t.Helper()
	o, err := w.Broadcast(t.Context(), enginetest.Draft("MessageEmitted", "b", fmt.Sprintf(`{"text":%q}`, text)))
	require.NoError(t, err)
	return o
}

func cause(g *agentslive.Generation) string {
	if err := context.Cause(g.Context()); err != nil {
		return err.Error()
	}
	return "going on"
}

// What time alone brings about comes at its time, and is in the log.
func TestTimeInterrupts(t *testing.T) {
	inTime(t, func(t *testing.T, th *enginetest.StoppedClock, ses *sajou.Session) {
		world := ses.Agents()
		a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything","debounce_ms":100}`))
		enginetest.Register(t, world, "b", nil)
		begin := func(reqID string, deadline time.Duration) *agentslive.Generation {
			g, err := a.Begin(t.Context(), agents.TokenRequest{ReqID: reqID, Current: true, Deadline: deadline})
			require.NoError(t, err)
			return g
		}
		late := begin("late", time.Second)
		th.Pass(999 * time.Millisecond)
		if got := cause(late); got != "going on" {
			t.Errorf("before the deadline: %s", got)
		}
		th.Pass(time.Millisecond)
		assert.ErrorIs(t, context.Cause(late.Context()), agents.ErrTimeout, "at the deadline")
		if _, err := a.Submit(t.Context(), agents.Intent{Kind: "Custom", ReqID: "late"}); !errors.Is(err, agents.ErrTimeout) {
			t.Errorf("an answer after the deadline: %v, want %v", err, agents.ErrTimeout)
		}

		first := begin("first", 0)
		say(t, world, "one")
		synctest.Wait()
		if got := cause(first); !strings.Contains(got, "stale_due_to_seq_gap_1_threshold_0") {
			t.Errorf("news: %s", got)
		}
		second := begin("second", 0)
		th.Pass(40 * time.Millisecond)
		say(t, world, "two")
		synctest.Wait()
		if got := cause(second); got != "going on" {
			t.Errorf("within the debounce: %s", got)
		}
		before := ses.Head().Seq
		th.Pass(59 * time.Millisecond)
		if got := cause(second); got != "going on" {
			t.Errorf("within the debounce: %s", got)
		}
		th.Pass(time.Millisecond)
		if got := cause(second); !strings.Contains(got, "stale_due_to") {
			t.Errorf("after the debounce: %s", got)
		}
		if got := ses.Head().Seq; got != before+1 {
			t.Errorf("the interruption took %d entries, want a mark of the time", got-before)
		}
		th.Pass(time.Hour)
		if got := ses.Head().Seq; got != before+1 {
			t.Errorf("%d entries came of nothing", got-before-1)
		}
	})
}

// News takes its time, and comes in order.
func TestNewsTakesTime(t *testing.T) {
	inTime(t, func(t *testing.T, th *enginetest.StoppedClock, ses *sajou.Session) {
		world := ses.Agents()
		enginetest.Register(t, world, "b", nil)
		a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything","latency_model":{"ms":70}}`))
		th.Pass(time.Second)
		drain(t, a)
		told := make(chan agentslive.Observation, 1)
		go func() {
			o, err := a.NextObservation(t.Context())
			if err == nil {
				told <- o
			}
			close(told)
		}()
		before := a.ViewSeq()
		say(t, world, "hello")
		th.Pass(69 * time.Millisecond)
		if len(told) != 0 {
			t.Error("told too early")
		}
		th.Pass(time.Millisecond)
		if got := <-told; got.ViewSeq != before+1 {
			t.Errorf("told of %d, want %d", got.ViewSeq, before+1)
		}
	})
}

// However slow a reader is, what it has in the end is the view, and nobody
// waits for it; how it gets there goes by the agent's backpressure policy.
func TestSlowReader(t *testing.T) {
	for policy, want := range map[string][]uint64{
		// Of ten pieces of news with room for three: view_seq of what is told.
		"defer":       {1, 2, 3, 10},
		"shed_oldest": {10},
		"drop_newest": {1, 2, 3, 11},
	} {
		t.Run(policy, func(t *testing.T) {
			world := enginetest.BeginWorld(t, session.TimeManual).Agents()
			enginetest.Register(t, world, "b", nil)
			a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything","max_queue_depth":3,"backpressure_policy":"`+policy+`"}`))
			require.NoError(t, world.Settle(t.Context()))
			r := &enginetest.ViewReader{Agent: a, View: enginetest.Value(t, `{"visible_entities":{},"visible_relationships":{}}`)}
			r.Read(t.Context(), t, world.Now())
			for i := range 10 {
				say(t, world, fmt.Sprint(i))
			}
			require.NoError(t, world.Settle(t.Context()))
			var got []uint64
			for range want {
				if len(got) == 3 && policy == "drop_newest" {
					say(t, world, "once more")
				}
				o, err := a.NextObservation(t.Context())
				require.NoError(t, err)
				if r.View, err = jsondoc.ApplyPatch(r.View, o.Patches); err != nil {
					t.Fatal(err)
				}
				got = append(got, o.ViewSeq)
			}
			if !slices.Equal(got, want) {
				t.Errorf("told of %v, want %v", got, want)
			}
			v, err := world.View(t.Context(), "a")
			require.NoError(t, err)
			entities, _ := r.View.Get("visible_entities")
			if string(entities) != string(v.VisibleEntities) {
				t.Errorf("the reader has %v, want %v", entities, v.VisibleEntities)
			}
		})
	}
}

// A client that comes back gets what it missed; one that was away for too long,
// or never was there, gets a whole view.
func TestResume(t *testing.T) {
	world := enginetest.BeginWorld(t, session.TimeManual).Agents()
	enginetest.Register(t, world, "b", nil)
	a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything"}`))
	var seqs []uint64
	for i := range 5 {
		say(t, world, fmt.Sprint(i))
		seqs = append(seqs, a.ViewSeq()+uint64(i)+1)
	}
	require.NoError(t, world.Settle(t.Context()))
	for name, test := range map[string]struct {
		from uint64
		want []uint64
	}{
		"missed three": {seqs[1], seqs[2:]},
		"missed none":  {seqs[4], nil},
		"was never":    {seqs[4] + 7, seqs[4:]},
	} {
		g, err := world.Resume(t.Context(), "a", test.from)
		require.NoError(t, err)
		var got []uint64
		for _, o := range drain(t, g) {
			got = append(got, o.ViewSeq)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: told of %v, want %v", name, got, test.want)
		}
		g.Close()
		if _, err := g.NextObservation(t.Context()); !errors.Is(err, agentslive.ErrLeft) {
			t.Errorf("%s: a closed reader says %v", name, err)
		}
	}
	if got := len(drain(t, a)); got != 6 {
		t.Errorf("the first reader was told %d times, want 6: readers take nothing from each other", got)
	}
}

// Where ticks have the authority what is asked waits for its tick, and the order
// in which it came makes no difference.
func TestTick(t *testing.T) { synctest.Test(t, tick) }

func tick(t *testing.T) {
	var heads []string
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		ses := enginetest.BeginWorld(t, session.TimeSim)
		world := ses.Agents()
		require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{"authority":"sim",`+unlimited+`,"rules":{"min_separation":1}}`)))
		require.NoError(t, world.Begin(t.Context(), enginetest.Value(t, `{"entities":{"a":{},"b":{},"c":{}},"spatial_index":{"a":[0,0],"b":[10,0],"c":[20,0]}}`)))
		var list []*agentslive.Agent
		for _, id := range []string{"a", "b", "c"} {
			g, err := world.Register(t.Context(), id, nil)
			require.NoError(t, err)
			list = append(list, g)
		}
		outcomes := make([]agents.Outcome, len(list))
		var wg sync.WaitGroup
		for n, i := range order {
			wg.Go(func() {
				// All want the same place; b is the most urgent.
				in := agents.Intent{Kind: "Move", Payload: enginetest.Value(t, `{"to":[5,5]}`), ReqID: "1", Priority: i % 2 * 5}
				outcomes[i], _ = list[i].Submit(t.Context(), in)
			})
			if synctest.Wait(); world.Waiting() != n+1 {
				t.Fatalf("%d wait, want %d", world.Waiting(), n+1)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := list[0].Submit(ctx, agents.Intent{Kind: "Custom", ReqID: "2"}); !errors.Is(err, context.Canceled) {
			t.Errorf("withdrawn: %v", err)
		}
		if n, err := world.Tick(t.Context(), agentslive.Tick{SimTime: 0.5, DeltaTime: 0.5, FrameNumber: 1, SourceID: "engine"}); n != 3 || err != nil {
			t.Errorf("the tick decided %d, %v", n, err)
		}
		wg.Wait()
		if !outcomes[1].OK() || outcomes[0].Rejection == nil || outcomes[0].Rejection.Code != agents.ErrIntentConflict || outcomes[2].OK() {
			t.Errorf("asked in the order %v: %v", order, outcomes)
		}
		if at := world.Now(); at != 500*time.Millisecond {
			t.Errorf("session time is %v after a tick at 0.5", at)
		}
		heads = append(heads, ses.Head().String())
	}
	if heads[0] != heads[1] || heads[1] != heads[2] {
		t.Errorf("the order of arrival shows: %v", heads)
	}
}

// A generation of 600 ms comes to its end though the game ticks each 50 ms and the ticks
// are effects, because the passing of time makes no context stale.
func TestGenerationOutlastsTicks(t *testing.T) {
	ses := enginetest.BeginWorld(t, session.TimeSim)
	world := ses.Agents()
	a := enginetest.Register(t, world, "a", nil)
	require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{"authority":"sim","tick_effects":true}`)))
	tick := func(n int) {
		_, err := world.Tick(t.Context(), agentslive.Tick{SimTime: float64(n) * 0.05, DeltaTime: 0.05, FrameNumber: uint64(n), SourceID: "game"})
		require.NoError(t, err)
	}
	tick(1)
	g, err := a.Begin(t.Context(), agents.TokenRequest{ReqID: "r", Current: true})
	require.NoError(t, err)
	seq := a.ViewSeq()
	for n := 2; n <= 13; n++ {
		tick(n)
		require.Equal(t, "going on", cause(g))
	}
	for n := range uint64(14) { // all the same it is sent each of them, after the first view
		o, err := a.NextObservation(t.Context())
		require.NoError(t, err)
		require.Equal(t, n, o.ViewSeq)
		require.Equal(t, n == 0, len(o.Patches) > 0)
	}
	in := agents.Intent{Kind: "Speak", Payload: enginetest.Value(t, `{"text":"done"}`), ReqID: "r", AgentID: "a", ContextSeq: seq}
	p, err := world.SubmitAsync(t.Context(), agents.Submission{Intent: &in})
	require.NoError(t, err)
	tick(14)
	_, err = p.Wait(t.Context())
	require.NoError(t, err)
}

// A request is remembered whatever its name and its agent's look like, also
// where both together are too long for a key of the log.
func TestAnyNameIsRemembered(t *testing.T) {
	world := enginetest.BeginWorld(t, session.TimeManual).Agents()
	require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{`+unlimited+`}`)))
	effects := map[string]string{}
	for _, id := range []string{"a", "a/b", "a~1b", strings.Repeat("ü", agentworld.MaxID/2)} {
		g := enginetest.Register(t, world, id, nil)
		for _, reqID := range []string{"1", "b/1", strings.Repeat("x", agents.MaxReqID)} {
			in := agents.Intent{Kind: "Speak", Payload: enginetest.Value(t, `{"text":"hello"}`), ReqID: reqID}
			first, err := g.Submit(t.Context(), in)
			require.NoError(t, err)
			if other, ok := effects[first.UUID]; ok {
				t.Errorf("%s/%s has the effect of %s", id, reqID, other)
			}
			effects[first.UUID] = id + " " + reqID
			if again, err := g.Submit(t.Context(), in); err != nil || again.Status != agents.Duplicate || again.GlobalSeq != first.GlobalSeq {
				t.Errorf("%s/%s asked again: %v, %v", id, reqID, again, err)
			}
		}
	}
}

// Close ends whatever waits.
func TestCloseEndsAgents(t *testing.T) { synctest.Test(t, closeEnds) }

func closeEnds(t *testing.T) {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	ses, err := eng.Begin(t.Context(), "world", session.TimeSim)
	require.NoError(t, err)
	world := ses.Agents()
	a := enginetest.Register(t, world, "a", nil)
	drain(t, a)
	gen, err := a.Begin(t.Context(), agents.TokenRequest{ReqID: "1", Current: true})
	require.NoError(t, err)
	require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{"authority":"sim"}`)))
	errs := make(chan error, 2)
	go func() {
		for {
			if _, err := a.NextObservation(t.Context()); err != nil {
				errs <- err
				return
			}
		}
	}()
	go func() {
		_, err := a.Submit(t.Context(), agents.Intent{Kind: "Custom", ReqID: "2", ContextSeq: 9})
		errs <- err
	}()
	if synctest.Wait(); world.Waiting() != 1 {
		t.Fatalf("%d wait", world.Waiting())
	}
	require.NoError(t, eng.Close())
	for range 2 {
		assert.ErrorIs(t, <-errs, eventlog.ErrClosed, "ended by")
	}
	assert.ErrorIs(t, context.Cause(gen.Context()), eventlog.ErrClosed, "the generation ended by")
	if _, err := a.Submit(t.Context(), agents.Intent{Kind: "Custom", ReqID: "3"}); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

var soak = flag.Duration("agents.soak", 500*time.Millisecond, "how long a hundred agents live at once")

// A hundred agents submit, observe, begin, cancel, leave and come back at once,
// some of them without ever reading; nothing is lost, and nothing is left behind.
func TestHundredAgents(t *testing.T) {
	const n = 100
	eng, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	ses, err := eng.Session(t.Context(), "world")
	require.NoError(t, err)
	world := ses.Agents()
	require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{`+unlimited+`,"max_queue_depth":20}`)))
	ctx, cancel := context.WithTimeout(t.Context(), *soak)
	defer cancel()
	var accepted, told, interrupted atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		id := fmt.Sprint("agent-", i)
		if _, err := world.Broadcast(t.Context(), enginetest.Draft("EntityCreated", "world", fmt.Sprintf(`{"entity_id":%q,"position":[%d,%d]}`, id, i/10*50, i%10))); err != nil {
			t.Fatal(err)
		}
		pressure := []string{"defer", "shed_oldest", "drop_newest"}[i%3]
		policy := enginetest.Value(t, `{"distance_limit":20,"staleness_threshold":0,"debounce_ms":5,"backpressure_policy":"`+pressure+`"}`)
		g, err := world.Register(t.Context(), id, policy)
		require.NoError(t, err)
		if i%10 != 0 { // the others never read
			wg.Go(func() {
				r := &enginetest.ViewReader{Agent: g, View: enginetest.Value(t, `{"visible_entities":{},"visible_relationships":{}}`)}
				for o, err := range g.Observations(ctx) {
					if err != nil {
						t.Error(err)
						return
					}
					if r.View, err = jsondoc.ApplyPatch(r.View, o.Patches); err != nil {
						t.Error(err)
						return
					}
					told.Add(1)
				}
			})
		}
		wg.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				reqID := fmt.Sprint(k)
				switch k % 5 {
				case 0, 1, 2:
					_, err = g.Submit(ctx, agents.Intent{Kind: "Speak", Payload: enginetest.Value(t, `{"text":"hello"}`), ReqID: reqID, ContextSeq: 1 << 40})
					if err == nil {
						accepted.Add(1)
					}
				case 3:
					var gen *agentslive.Generation
					if gen, err = g.Begin(ctx, agents.TokenRequest{ReqID: reqID, Current: true, Deadline: 20 * time.Millisecond}); err == nil {
						<-gen.Context().Done()
						interrupted.Add(1)
					}
				case 4:
					_, err = g.Cancel(ctx, reqID)
				}
				if _, rejected := errors.AsType[*agents.Rejection](err); err != nil && !rejected && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if accepted.Load() == 0 || told.Load() == 0 || interrupted.Load() == 0 {
		t.Errorf("%d intents accepted, %d observations, %d generations ended", accepted.Load(), told.Load(), interrupted.Load())
	}
	f, err := ses.State(t.Context())
	require.NoError(t, err)
	live := f.Digest(session.ProjectionWorld)
	g, err := enginetest.ReplayedAt(t.Context(), eng, "world", f.Head().Seq)
	require.NoError(t, err)
	if got := g.Digest(session.ProjectionWorld); got != live {
		t.Errorf("the world is %016x replayed, %016x live", got, live)
	}
	assert.NoError(t, enginetest.Once(t.Context(), ses))
	assert.NoError(t, eng.Close())
	t.Logf("%d intents accepted, %d observations, %d generations ended", accepted.Load(), told.Load(), interrupted.Load())
}

// An intent of another major version is refused with what is spoken here, unless
// the program knows how to bring it over.
func TestSchemaVersion(t *testing.T) {
	old := agents.Intent{Kind: "Say", Payload: enginetest.Value(t, `{"words":"hello"}`), ReqID: "1", SchemaVersion: "0.3.0"}
	world := enginetest.BeginWorld(t, session.TimeManual).Agents()
	g := enginetest.Register(t, world, "a", nil)
	_, err := g.Submit(t.Context(), old)
	if !errors.Is(err, agents.ErrVersionMismatch) || !strings.Contains(err.Error(), `"0.3.0"`) || !strings.Contains(err.Error(), agentworld.SchemaVersion) {
		t.Errorf("an old intent: %v", err)
	}
	old.SchemaVersion = "1.7.0"
	if _, err := g.Submit(t.Context(), old); errors.Is(err, agents.ErrVersionMismatch) {
		t.Errorf("another minor version: %v", err)
	}

	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Migrate: func(in agents.Intent) (agents.Intent, error) {
		words, ok := in.Payload.Get("words")
		text, _ := words.Text()
		if !ok || in.SchemaVersion != "0.3.0" {
			return in, fmt.Errorf("version %s is not known", in.SchemaVersion)
		}
		return agents.Intent{Kind: "Speak", Payload: enginetest.Value(t, fmt.Sprintf(`{"text":%q}`, text)), ContextSeq: in.ContextSeq, AgentID: "mallory"}, nil
	}})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	ses, err := eng.Begin(t.Context(), "world", session.TimeManual)
	require.NoError(t, err)
	g = enginetest.Register(t, ses.Agents(), "a", nil)
	old.SchemaVersion, old.ContextSeq = "0.3.0", 9
	if o, err := g.Submit(t.Context(), old); err != nil || o.Effect.Kind != "Speak" || o.Effect.SourceID != "a" || o.Effect.ReqID != "1" {
		t.Errorf("an old intent that is brought over: %+v, %v", o, err)
	}
	old.ReqID, old.SchemaVersion = "2", "0.1.0"
	if _, err := g.Submit(t.Context(), old); err == nil || !strings.Contains(err.Error(), "0.1.0 is not known") {
		t.Errorf("an older intent: %v", err)
	}
}

// most is what metrics tell of readers that do not read.
type most struct {
	mu      sync.Mutex
	waiting int // the most of one agent; guarded by mu
	lost    int // guarded by mu
}

func (m *most) ObservationsWaiting(_, _ string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = max(m.waiting, n)
}

func (m *most) Delivered(string, string, time.Duration) {}

func (m *most) Undelivered(_, _ string, _ agentslive.DropReason, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost += n
}

// However long a reader does not read, no more waits for it than it has room for.
func TestStalledReaderHoldsLittle(t *testing.T) {
	var metrics most
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Metrics: sajou.Metrics{Agents: agentslive.AgentMetrics{Observations: &metrics}}})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	ses, err := eng.Begin(t.Context(), "world", session.TimeManual)
	require.NoError(t, err)
	world := ses.Agents()
	enginetest.Register(t, world, "b", nil)
	for _, pressure := range []string{"defer", "shed_oldest", "drop_newest"} {
		enginetest.Register(t, world, pressure, enginetest.Value(t, `{"policy":"everything","max_queue_depth":5,"backpressure_policy":"`+pressure+`"}`))
	}
	const n = 500
	for i := range n {
		say(t, world, fmt.Sprint(i))
	}
	require.NoError(t, world.Settle(t.Context()))
	metrics.mu.Lock()
	defer metrics.mu.Unlock()
	// b has the room of the defaults, 100.
	if metrics.waiting != 100 || metrics.lost < 3*(n-5)+n-100 {
		t.Errorf("at most %d waited, %d were not handed over", metrics.waiting, metrics.lost)
	}
}

// A broadcast in a world of ticks ends with its context if no tick comes, and has no
// effect then.
func TestBroadcastWithoutTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ses := enginetest.BeginWorld(t, session.TimeSim)
		world := ses.Agents()
		require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{"authority":"sim"}`)))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			_, err := world.Broadcast(ctx, enginetest.Draft("Note", "b", `{}`))
			done <- err
		}()
		synctest.Wait()
		require.Equal(t, 1, world.Waiting())
		cancel(errors.New("enough"))
		require.ErrorIs(t, <-done, context.Canceled)
		require.Zero(t, world.Waiting())
		before := ses.Head()
		decided, err := world.Tick(t.Context(), agentslive.Tick{SimTime: 1})
		require.NoError(t, err)
		require.Zero(t, decided)
		require.Equal(t, before, ses.Head())
	})
}
