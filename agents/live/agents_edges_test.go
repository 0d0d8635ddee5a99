package live_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	agentview "github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// client is what a client keeps: a view, and the view_seq it resumes by.
type client struct {
	view    signal.Value
	viewSeq uint64
	digest  string
}

func newClient(t testing.TB) *client {
	return &client{view: enginetest.Value(t, `{"visible_entities":{},"visible_relationships":{}}`)}
}

func (c *client) take(o agentslive.Observation) error {
	view, err := jsondoc.ApplyPatch(c.view, o.Patches)
	if err != nil {
		return err
	}
	c.view, c.viewSeq, c.digest = view, o.ViewSeq, o.ContextDigest()
	entities, _ := view.Get("visible_entities")
	relations, _ := view.Get("visible_relationships")
	v := agentview.View{AgentID: o.AgentID, VisibleEntities: entities, VisibleRelationships: relations}
	if got := v.Digest(); got != o.ContextDigest() {
		return fmt.Errorf("the client's view has the digest %s, the delta of %d says %s", got, o.ViewSeq, o.ContextDigest())
	}
	return nil
}

// Whatever happens while a client is away (news, another policy, a leaving and a
// coming back), what it is told when it resumes fits what it has, and leads to
// the agent's view.
func TestResumeFits(t *testing.T) {
	policies := []string{
		`{"policy":"everything"}`, `{"policy":"self"}`, `{"policy":"everything","max_queue_depth":2}`,
		`{"policy":"fields","fields":{"last_message":false}}`, `{"policy":"everything","latency_model":{"ms":30}}`,
		`{"policy":"everything","max_queue_depth":1,"backpressure_policy":"shed_oldest"}`,
	}
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
		require.NoError(rt, err)
		defer func() { _ = eng.Close() }()
		ses, err := eng.Begin(ctx, "world", session.TimeManual)
		require.NoError(rt, err)
		world := ses.Agents()
		require.NoError(rt, world.Begin(ctx, enginetest.Value(t, `{"entities":{"a":{},"b":{}}}`)))
		registerAs := func() *agentslive.Agent {
			g, err := world.Register(ctx, "a", enginetest.Value(t, rapid.SampledFrom(policies).Draw(rt, "policy")))
			require.NoError(rt, err)
			return g
		}
		g, c := registerAs(), newClient(t)
		read := func(most int) {
			for range most {
				o, ok, err := g.Poll(ctx)
				if errors.Is(err, agentslive.ErrLeft) {
					g, err = world.Resume(ctx, "a", c.viewSeq)
					ok = false
				}
				require.NoError(rt, err)
				if !ok {
					return
				}
				require.NoError(rt, c.take(o))
			}
		}
		for i := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 8).Draw(rt, "step") {
			case 0, 1, 2:
				if _, err := world.Broadcast(ctx, enginetest.Draft("MessageEmitted", "b", fmt.Sprintf(`{"text":"%d"}`, i))); err != nil {
					rt.Fatal(err)
				}
			case 3:
				registerAs().Close()
			case 4:
				require.NoError(rt, g.Leave(ctx))
				registerAs().Close()
			case 5:
				require.NoError(rt, world.Advance(ctx, world.Now()+20*time.Millisecond))
			case 6:
				read(rapid.IntRange(1, 3).Draw(rt, "many"))
			default:
				g.Close()
				if g, err = world.Resume(ctx, "a", c.viewSeq); err != nil {
					rt.Fatal(err)
				}
			}
		}
		read(1) // if it had left, it resumes
		require.NoError(rt, world.Advance(ctx, world.Now()+time.Second))
		read(math.MaxInt)
		if v, err := world.View(ctx, "a"); err != nil || v.ContextDigest != c.digest {
			rt.Fatalf("the client has %s of %d, the agent %s of %d, %v", c.digest, c.viewSeq, v.ContextDigest, v.ViewSeq, err)
		}
	})
}

// Of several who wait on one handle, each can go without taking the news with it.
func TestManyWaitOnOneHandle(t *testing.T) {
	inTime(t, func(t *testing.T, th *enginetest.StoppedClock, ses *sajou.Session) {
		world := ses.Agents()
		enginetest.Register(t, world, "b", nil)
		a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything","latency_model":{"ms":70}}`))
		th.Pass(time.Second)
		drain(t, a)
		told := make(chan uint64, 3)
		var cancels []context.CancelFunc
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() {
				if o, err := a.NextObservation(ctx); err == nil {
					told <- o.ViewSeq
				}
			}()
			synctest.Wait()
		}
		before := a.ViewSeq()
		say(t, world, "hello")
		synctest.Wait()
		cancels[0]()
		cancels[1]()
		th.Pass(70 * time.Millisecond)
		if len(told) != 1 || <-told != before+1 {
			t.Errorf("%d were told", len(told))
		}
		cancels[2]()
	})
}

// A generation that goes by what is out of date already is told so at once; one
// that takes another's place is not ended with it.
func TestStaleFromTheBeginning(t *testing.T) {
	world := enginetest.BeginWorld(t, session.TimeManual).Agents()
	enginetest.Register(t, world, "b", nil)
	a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything","debounce_ms":0}`))
	begin := func(r agents.TokenRequest) *agentslive.Generation {
		g, err := a.Begin(t.Context(), r)
		require.NoError(t, err)
		require.NoError(t, world.Settle(t.Context()))
		return g
	}
	say(t, world, "one")
	say(t, world, "two")
	if got := cause(begin(agents.TokenRequest{ReqID: "old"})); !strings.Contains(got, "stale_due_to_seq_gap_2_threshold_0") {
		t.Errorf("of an old context: %s", got)
	}
	first := begin(agents.TokenRequest{ReqID: "1", Current: true})
	second := begin(agents.TokenRequest{ReqID: "1", Current: true})
	if got := cause(first); !strings.Contains(got, agents.ReasonReplaced) {
		t.Errorf("the first: %s", got)
	}
	if got := cause(second); got != "going on" {
		t.Errorf("the second: %s", got)
	}
	third := begin(agents.TokenRequest{ReqID: "1"})
	if got := cause(second) + cause(third); !strings.Contains(got, agents.ReasonReplaced) || !strings.Contains(got, "stale_due_to") {
		t.Errorf("the second and the third: %s", got)
	}
}

// In a session whose time does not run, signals let it pass for the agents too:
// for those who wait, and for those who ask.
func TestSignalsMoveTheAgentsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ses := enginetest.BeginWorld(t, session.TimeManual)
		world := ses.Agents()
		enginetest.Register(t, world, "b", nil)
		a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything","latency_model":{"ms":70}}`))
		drain(t, a) // its first view takes no time
		say(t, world, "hello")
		done := make(chan error, 2)
		go func() { _, err := a.NextObservation(t.Context()); done <- err }()
		go func() { done <- world.WaitUntil(t.Context(), 70*time.Millisecond) }()
		for i, at := range []int64{69, 70} {
			synctest.Wait()
			if len(done) != 0 {
				t.Errorf("told before %d ms", at)
			}
			if _, err := ses.Signal(t.Context(), wave(i, at)); err != nil {
				t.Fatal(err)
			}
			if got := world.Now(); got != time.Duration(at)*time.Millisecond {
				t.Errorf("it is %v after a signal of %d ms", got, at)
			}
		}
		for range 2 {
			assert.NoError(t, <-done)
		}
	})
}

// Signals from the future take the session's time along, which then stands until
// the wall's clock has come as far. Meanwhile nobody asks for the time all the time.
func TestSignalsFromTheFuture(t *testing.T) {
	inTime(t, func(t *testing.T, th *enginetest.StoppedClock, ses *sajou.Session) {
		world := ses.Agents()
		a := enginetest.Register(t, world, "a", nil)
		if _, err := ses.Signal(t.Context(), wave(1, enginetest.StoryBegin.Add(time.Hour).UnixMilli())); err != nil {
			t.Fatal(err)
		}
		gen, err := a.Begin(t.Context(), agents.TokenRequest{ReqID: "1", Current: true, Deadline: 10 * time.Millisecond})
		require.NoError(t, err)
		_, ever := th.Running()
		for range 100 {
			th.Pass(10 * time.Millisecond)
		}
		if _, after := th.Running(); after-ever > 1 {
			t.Errorf("%d timers in a second", after-ever)
		}
		for range 59 {
			th.Pass(time.Minute)
		}
		if got := cause(gen); got != "going on" {
			t.Errorf("before its time: %s", got)
		}
		th.Pass(time.Minute)
		th.Pass(10 * time.Millisecond)
		assert.ErrorIs(t, context.Cause(gen.Context()), agents.ErrTimeout, "at its deadline")
	})
}

// The time of a session of the wall's clock is nobody's to move, also before it
// has begun.
func TestNobodyMovesTheWall(t *testing.T) {
	inTime(t, func(t *testing.T, th *enginetest.StoppedClock, ses *sajou.Session) {
		world := ses.Agents()
		for range 2 {
			assert.ErrorIs(t, world.Advance(t.Context(), time.Hour), session.ErrTime, "moved")
			if got := world.Now(); got != 0 {
				t.Errorf("it is %v", got)
			}
			enginetest.Register(t, world, "a", nil)
		}
	})
}

// What is asked for no time at all is refused, in whatever session.
func TestAskedForNoTime(t *testing.T) {
	world := enginetest.BeginWorld(t, session.TimeManual).Agents()
	for _, config := range []string{`{}`, `{"authority":"sim"}`} {
		require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, config)))
		d := enginetest.Draft("Ping", "b", `{}`)
		s, err := world.SubmitAsync(t.Context(), agents.Submission{Draft: &d, Timed: true, SimTime: math.NaN()})
		require.NoError(t, err)
		if _, err := s.Wait(t.Context()); !errors.Is(err, agents.ErrInvalidIntent) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// What is cancelled while it waits for its tick is answered so for ever, and to
// all who ask for it; those who give up themselves leave the others alone.
func TestCancelledInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := enginetest.BeginWorld(t, session.TimeSim).Agents()
		a := enginetest.Register(t, world, "a", nil)
		require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{"authority":"sim",`+unlimited+`}`)))
		in := agents.Intent{Kind: "Custom", ReqID: "1"}
		errs := make(chan error)
		gone, give := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{gone, t.Context(), t.Context()} {
			go func() { _, err := a.Submit(ctx, in); errs <- err }()
			synctest.Wait()
		}
		give()
		if err := <-errs; !errors.Is(err, context.Canceled) || world.Waiting() != 1 {
			t.Errorf("one gave up: %v, and %d wait", err, world.Waiting())
		}
		found := make(chan bool)
		go func() {
			ok, err := a.Cancel(t.Context(), "1")
			if err != nil {
				t.Error(err)
			}
			found <- ok
		}()
		for range 2 {
			assert.ErrorIs(t, <-errs, agents.ErrCancelled)
		}
		if !<-found {
			t.Error("it was not found")
		}
		if o, err := a.Submit(t.Context(), in); !errors.Is(err, agents.ErrCancelled) || o.Status != agents.Duplicate {
			t.Errorf("asked again: %v, %v", o.Status, err)
		}
		if ok, err := a.Cancel(t.Context(), "1"); ok || err != nil {
			t.Errorf("cancelled again: %v, %v", ok, err)
		}
	})
}

// Who waits for a tick when ticks lose the authority waits no longer.
func TestTicksLoseTheAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := enginetest.BeginWorld(t, session.TimeSim).Agents()
		a := enginetest.Register(t, world, "a", nil)
		require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{"authority":"sim"}`)))
		done := make(chan error, 1)
		go func() {
			_, err := a.Submit(t.Context(), agents.Intent{Kind: "Custom", ReqID: "1", ContextSeq: 9})
			done <- err
		}()
		synctest.Wait()
		require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{}`)))
		synctest.Wait()
		if len(done) != 1 || <-done != nil {
			t.Errorf("it is not decided, %d wait", world.Waiting())
		}
	})
}

// grudging is a policy of the program's own that panics when it is asked about b.
type grudging struct{}

func (grudging) Sees(_ *agentview.Viewpoint, id string) bool {
	if id == "b" {
		panic("not that one")
	}
	return true
}

func (grudging) Shows(*agentview.Viewpoint, string, string) bool { return true }

func (grudging) Dependencies() agentview.Dependencies { return agentview.Opaque() }

// A policy that panics harms nobody: not the host, and not what is recorded.
func TestPolicyPanicsLive(t *testing.T) {
	fs := vfs.NewMem()
	cfg := sajou.Config{FS: fs, World: agents.Options{Customs: []agentview.Custom{{
		Name: "grudging", Version: 1, Compile: func(signal.Value) (agentview.Policy, error) { return grudging{}, nil },
	}}}}
	for n := range 2 {
		eng, err := sajou.Open("store", cfg)
		require.NoError(t, err)
		ses, err := eng.Begin(t.Context(), "world", session.TimeManual)
		require.NoError(t, err)
		world := ses.Agents()
		enginetest.Register(t, world, "b", nil)
		a := enginetest.Register(t, world, fmt.Sprint("a", n), enginetest.Value(t, `{"policy":"custom","name":"grudging","version":1}`))
		say(t, world, "hello")
		if o, err := a.NextObservation(t.Context()); err != nil || strings.Contains(o.Value().String(), `"b"`) {
			t.Errorf("it is told %v, %v", o.Value(), err)
		}
		assert.NoError(t, enginetest.Once(t.Context(), ses))
		assert.NoError(t, eng.Close())
	}
}

// Agents act in a session while it is imported into and while somebody looks on;
// what comes of that is what a replay says.
func TestAgentsDuringAnImport(t *testing.T) {
	eng, err := sajou.Open(t.TempDir(), sajou.Config{SnapshotEvery: 50})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	ses, err := eng.Session(t.Context(), "world")
	require.NoError(t, err)
	world := ses.Agents()
	require.NoError(t, world.Configure(t.Context(), enginetest.Value(t, `{`+unlimited+`}`)))
	a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything"}`))
	enginetest.Register(t, world, "b", nil)
	live := ses.Show(t.Context(), blind{}, 60)
	begun := time.Now().UnixMilli()
	var wg sync.WaitGroup
	wg.Go(func() {
		var pending []*sajou.Pending
		for i := range 400 {
			p, err := ses.RecordAsync(t.Context(), sajou.Addition{Signals: []*signal.Signal{wave(i, begun+int64(i))}})
			if err != nil {
				t.Error(err)
				return
			}
			pending = append(pending, p)
		}
		for _, p := range pending {
			if _, err := p.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for i := range 40 {
			if _, err := a.Submit(t.Context(), agents.Intent{Kind: "Speak", Payload: enginetest.Value(t, `{"text":"hello"}`), ReqID: fmt.Sprint(i), ContextSeq: 1 << 40}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	require.NoError(t, world.Settle(t.Context()))
	c := newClient(t)
	for {
		o, ok, err := a.Poll(t.Context())
		require.NoError(t, err)
		if !ok {
			break
		}
		require.NoError(t, c.take(o))
	}
	if v, err := world.View(t.Context(), "a"); err != nil || v.ContextDigest != c.digest {
		t.Errorf("the reader has %s, the agent %s, %v", c.digest, v.ContextDigest, err)
	}
	assert.NoError(t, live.Close())
	f, err := ses.State(t.Context())
	require.NoError(t, err)
	g, err := enginetest.ReplayedAt(t.Context(), eng, "world", f.Head().Seq)
	require.NoError(t, err)
	if got, want := g.Digest(session.ProjectionWorld), f.Digest(session.ProjectionWorld); got != want {
		t.Errorf("the world is %016x replayed, %016x live", got, want)
	}
}

// wave is a signal of a time in milliseconds.
func wave(n int, ms int64) *signal.Signal {
	sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"s%d","type":"user.wave","timestamp":%d,"source":"test","payload":{}}`, n, ms))
	if err != nil {
		panic(err)
	}
	return sig
}

// blind sees no frame.
type blind struct{}

func (blind) Frame(*stage.Frame) {}
