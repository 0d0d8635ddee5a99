package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// disk is a disk in memory that can be slow or full.
type disk struct {
	vfs.FS
	mu   sync.Mutex
	gate chan struct{} // writes wait until it is closed; nil: they do not; guarded by mu
	full atomic.Bool   // writes fail
	deaf atomic.Bool   // reads fail
}

var (
	errFull = errors.New("no space left on device")
	errRead = errors.New("the disk cannot be read")
)

func newDisk() *disk {
	d := &disk{}
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && d.deaf.Load() {
			return errRead
		}
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpLock {
			return nil
		}
		d.mu.Lock()
		gate := d.gate
		d.mu.Unlock()
		if gate != nil {
			<-gate
		}
		if d.full.Load() {
			return errFull
		}
		return nil
	}))
	return d
}

// hold makes the disk slow, until the function is called.
func (d *disk) hold() (release func()) {
	gate := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = gate
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gate = nil
		close(gate)
	}
}

// onDisk runs f in a session of a disk of its own, in a bubble in which time
// stands still until it is moved. The log has what the engine has to complain of.
func onDisk(t *testing.T, authority sajou.TimeAuthority, f func(t *testing.T, th *stopped, d *disk, ses *sajou.Session, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th, d, log := &stopped{now: storyBegin}, newDisk(), &bytes.Buffer{}
		eng, err := sajou.Open("store", sajou.Config{
			FS: d, Now: th.read, AfterFunc: th.afterFunc, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := eng.Close(); err != nil {
				t.Error(err)
			}
			if n, _ := th.running(); n != 0 {
				t.Errorf("%d timers run after the end", n)
			}
			synctest.Wait()
		}()
		ses, err := eng.Begin(t.Context(), "world", authority)
		if err != nil {
			t.Fatal(err)
		}
		f(t, th, d, ses, log)
	})
}

// speechless is a generator that says nothing and heeds its context.
type speechless struct{}

func (speechless) Generate(ctx context.Context, _ sajou.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { <-ctx.Done(); yield("", ctx.Err()) }
}

// When the disk is full, whatever waits ends and says why, nothing runs on, and
// what is known can still be asked; what could not be recorded has not happened.
func TestAgentsOnAFullDisk(t *testing.T) {
	for _, authority := range []sajou.TimeAuthority{sajou.TimeWall, sajou.TimeSim} {
		t.Run(string(authority), func(t *testing.T) {
			onDisk(t, authority, func(t *testing.T, th *stopped, d *disk, ses *sajou.Session, log *bytes.Buffer) {
				ctx, world := t.Context(), ses.Agents()
				register(t, world, "b", nil)
				a := register(t, world, "a", value(t, `{"policy":"everything","debounce_ms":0}`))
				drain(t, a)
				if authority == sajou.TimeSim {
					if err := world.Configure(ctx, value(t, `{"authority":"sim",`+unlimited+`}`)); err != nil {
						t.Fatal(err)
					}
				}
				gen, err := a.Begin(ctx, agents.TokenRequest{ReqID: "gen", Current: true, Deadline: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				errs := make(chan error)
				go func() { _, err := a.NextObservation(ctx); errs <- err }()
				go func() { _, err := a.NextObservation(ctx); errs <- err }()
				go func() {
					_, err := a.Generate(ctx, speechless{}, sajou.GenerateRequest{ReqID: "words", Prompt: func(agents.View) sajou.Prompt { return sajou.Prompt{} }})
					errs <- err
				}()
				waits := 3
				synctest.Wait()
				d.full.Store(true)
				if authority == sajou.TimeSim { // these wait for a tick; the one that asks for something else meets the disk
					for _, reqID := range []string{"1", "1", "2"} {
						go func() {
							_, err := a.Submit(ctx, agents.Intent{Kind: "Custom", ReqID: reqID, ContextSeq: 99})
							errs <- err
						}()
					}
					waits += 3
					synctest.Wait()
					if world.Waiting() != 2 {
						t.Errorf("%d wait for a tick", world.Waiting())
					}
				}
				if err := a.Leave(ctx); !errors.Is(err, eventlog.ErrReadOnly) || !errors.Is(err, errFull) {
					t.Errorf("what meets the full disk ends with %v", err)
				}
				synctest.Wait()
				for range waits {
					if err := <-errs; !errors.Is(err, eventlog.ErrReadOnly) {
						t.Errorf("what waited ends with %v", err)
					}
				}
				if err := context.Cause(gen.Context()); !errors.Is(err, eventlog.ErrReadOnly) {
					t.Errorf("the generation ends by %v", err)
				}
				for name, f := range map[string]func() error{
					"submit": func() error {
						_, err := world.Submit(ctx, agents.Intent{AgentID: "b", Kind: "Custom", ReqID: "3", ContextSeq: 99})
						return err
					},
					"broadcast": func() error { _, err := world.Broadcast(ctx, draft("Ping", "b", `{}`)); return err },
					"batch": func() error {
						_, err := world.SubmitBatch(ctx, []agents.Intent{{AgentID: "b", Kind: "Custom", ReqID: "4", ContextSeq: 99}})
						return err
					},
					"register": func() error { _, err := world.Register(ctx, "c", nil); return err },
					"begin":    func() error { _, err := a.Begin(ctx, agents.TokenRequest{ReqID: "5"}); return err },
					"observe":  func() error { _, err := a.NextObservation(ctx); return err },
				} {
					if err := f(); !errors.Is(err, eventlog.ErrReadOnly) {
						t.Errorf("%s: %v", name, err)
					}
				}
				_, ever := th.running()
				for range 20 {
					th.pass(10 * time.Second)
				}
				if now, after := th.running(); now != 0 || after > ever {
					t.Errorf("%d timers run, %d were begun since nothing can be recorded", now, after-ever)
				}
				if n := strings.Count(log.String(), "stands still"); n > 1 {
					t.Errorf("the log says %d times that time stands still", n)
				}
			})
		})
	}
}

// An engine that was opened read-only answers questions about agents and refuses
// to decide anything; that deadlines have passed troubles nobody.
func TestAgentsReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, fs, th := t.Context(), vfs.NewMem(), &stopped{now: storyBegin}
		open := func(readOnly bool) (*sajou.Engine, *sajou.Agents) {
			eng, err := sajou.Open("store", sajou.Config{FS: fs, Now: th.read, AfterFunc: th.afterFunc, ReadOnly: readOnly})
			if err != nil {
				t.Fatal(err)
			}
			ses, err := eng.Session(ctx, "world")
			if err != nil {
				t.Fatal(err)
			}
			return eng, ses.Agents()
		}
		eng, world := open(false)
		a := register(t, world, "a", value(t, `{"policy":"everything"}`))
		in := agents.Intent{Kind: "Custom", ReqID: "1", AgentID: "a", ContextSeq: 99}
		first, err := world.Submit(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Begin(ctx, agents.TokenRequest{ReqID: "2", Current: true, Deadline: time.Second}); err != nil {
			t.Fatal(err)
		}
		want, err := world.View(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}

		th.ahead(time.Hour)
		_, ever := th.running()
		eng, world = open(true)
		if got, err := world.View(ctx, "a"); err != nil || got.ContextDigest != want.ContextDigest {
			t.Errorf("the view is %v, %v", got, err)
		}
		if a, err = world.Agent(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if o, err := a.NextObservation(ctx); err != nil || o.ContextDigest != want.ContextDigest {
			t.Errorf("a reader gets %v, %v", o, err)
		}
		if o, err := world.Submit(ctx, in); err != nil || o.Status != agents.Duplicate || o.GlobalSeq != first.GlobalSeq {
			t.Errorf("what was answered is answered %v, %v", o, err)
		}
		for name, f := range map[string]func() error{
			"observe":   func() error { _, err := a.NextObservation(ctx); return err },
			"submit":    func() error { in := in; in.ReqID = "3"; _, err := world.Submit(ctx, in); return err },
			"broadcast": func() error { _, err := world.Broadcast(ctx, draft("Ping", "b", `{}`)); return err },
			"configure": func() error { return world.Configure(ctx, value(t, `{}`)) },
			"begin":     func() error { _, err := a.Begin(ctx, agents.TokenRequest{ReqID: "3"}); return err },
			"cancel":    func() error { _, err := a.Cancel(ctx, "2"); return err },
			"leave":     func() error { return a.Leave(ctx) },
		} {
			if err := f(); !errors.Is(err, eventlog.ErrReadOnly) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if now, after := th.running(); now != 0 || after != ever {
			t.Errorf("%d timers run, %d were begun", now, after-ever)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
}

// If it cannot be read what a request was answered, it is neither decided anew nor
// refused, whoever asks with whom; and it is no fault of the others.
func TestAnswerCannotBeRead(t *testing.T) {
	ctx, d := t.Context(), newDisk()
	open := func() (*sajou.Engine, *sajou.Agents) {
		eng, err := sajou.Open("store", sajou.Config{FS: d})
		if err != nil {
			t.Fatal(err)
		}
		ses, err := eng.Begin(ctx, "world", sajou.TimeManual)
		if err != nil {
			t.Fatal(err)
		}
		return eng, ses.Agents()
	}
	eng, world := open()
	if err := world.Configure(ctx, value(t, `{`+unlimited+`}`)); err != nil {
		t.Fatal(err)
	}
	register(t, world, "a", value(t, `{"policy":"self","staleness_threshold":0}`))
	in := agents.Intent{Kind: "Custom", ReqID: "1", AgentID: "a", ContextSeq: 2}
	first, err := world.Submit(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	// So much that the store keeps no more of it in memory than what the fold reads.
	for range 24 {
		d := draft("Ping", "b", `{"text":"`+strings.Repeat("x", 900_000)+`"}`)
		if _, err := world.Broadcast(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	in.ContextSeq = 1
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"submit": func() error { _, err := world.Submit(ctx, in); return err },
		"batch":  func() error { _, err := world.SubmitBatch(ctx, []agents.Intent{in}); return err },
		"quantum": func() error {
			d := draft("Ping", "b", `{}`)
			_, err := world.Quantum(ctx, agents.Submission{Draft: &d}, agents.Submission{Intent: &in})
			return err
		},
		"begin": func() error {
			g, err := world.Agent(ctx, "a")
			if err != nil {
				return err
			}
			defer g.Close()
			_, err = g.Begin(ctx, agents.TokenRequest{ReqID: in.ReqID})
			return err
		},
	} {
		eng, world = open()
		d.deaf.Store(true)
		if err := f(); !errors.Is(err, errRead) {
			t.Errorf("%s: %v", name, err)
		}
		d.deaf.Store(false)
		if o, err := world.Submit(ctx, in); err != nil || o.Status != agents.Duplicate || o.GlobalSeq != first.GlobalSeq {
			t.Errorf("%s, when it can be read again: %v, %v", name, o, err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}

// client is what a client keeps: a view, and the view_seq it resumes by.
type client struct {
	view    signal.Value
	viewSeq uint64
	digest  string
}

func newClient(t testing.TB) *client {
	return &client{view: value(t, `{"visible_entities":{},"visible_relationships":{}}`)}
}

func (c *client) take(o sajou.Observation) error {
	view, err := agents.ApplyPatch(c.view, o.Patches)
	if err != nil {
		return err
	}
	c.view, c.viewSeq, c.digest = view, o.ViewSeq, o.ContextDigest
	entities, _ := view.Get("visible_entities")
	relations, _ := view.Get("visible_relationships")
	v := agents.View{AgentID: o.AgentID, VisibleEntities: entities, VisibleRelationships: relations}
	if got := v.Digest(); got != o.ContextDigest {
		return fmt.Errorf("the client's view has the digest %s, the delta of %d says %s", got, o.ViewSeq, o.ContextDigest)
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
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = eng.Close() }()
		ses, err := eng.Begin(ctx, "world", sajou.TimeManual)
		if err != nil {
			rt.Fatal(err)
		}
		world := ses.Agents()
		if err := world.Begin(ctx, value(t, `{"entities":{"a":{},"b":{}}}`)); err != nil {
			rt.Fatal(err)
		}
		registerAs := func() *sajou.Agent {
			g, err := world.Register(ctx, "a", value(t, rapid.SampledFrom(policies).Draw(rt, "policy")))
			if err != nil {
				rt.Fatal(err)
			}
			return g
		}
		g, c := registerAs(), newClient(t)
		read := func(most int) {
			for range most {
				o, ok, err := g.Poll(ctx)
				if errors.Is(err, sajou.ErrLeft) {
					g, err = world.Resume(ctx, "a", c.viewSeq)
					ok = false
				}
				if err != nil {
					rt.Fatal(err)
				}
				if !ok {
					return
				}
				if err := c.take(o); err != nil {
					rt.Fatal(err)
				}
			}
		}
		for i := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 8).Draw(rt, "step") {
			case 0, 1, 2:
				if _, err := world.Broadcast(ctx, draft("MessageEmitted", "b", fmt.Sprintf(`{"text":"%d"}`, i))); err != nil {
					rt.Fatal(err)
				}
			case 3:
				registerAs().Close()
			case 4:
				if err := g.Leave(ctx); err != nil {
					rt.Fatal(err)
				}
				registerAs().Close()
			case 5:
				if err := world.Advance(ctx, world.Now()+20*time.Millisecond); err != nil {
					rt.Fatal(err)
				}
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
		if err := world.Advance(ctx, world.Now()+time.Second); err != nil {
			rt.Fatal(err)
		}
		read(math.MaxInt)
		if v, err := world.View(ctx, "a"); err != nil || v.ContextDigest != c.digest {
			rt.Fatalf("the client has %s of %d, the agent %s of %d, %v", c.digest, c.viewSeq, v.ContextDigest, v.ViewSeq, err)
		}
	})
}

// Who comes back while the disk is slow is told nothing that was made for who it
// was before, and those who read before end when the leaving is durable.
func TestLeavesAndComesBack(t *testing.T) {
	onDisk(t, sajou.TimeManual, func(t *testing.T, _ *stopped, d *disk, ses *sajou.Session, _ *bytes.Buffer) {
		ctx, world := t.Context(), ses.Agents()
		register(t, world, "b", nil)
		old := register(t, world, "a", value(t, `{"policy":"everything"}`))
		for i := range 5 {
			say(t, world, fmt.Sprint(i))
		}
		if err := world.Settle(ctx); err != nil {
			t.Fatal(err)
		}
		drain(t, old)
		release := d.hold()
		var wg sync.WaitGroup
		c, ended := newClient(t), make(chan error, 1)
		wg.Go(func() {
			for {
				if _, err := old.NextObservation(ctx); err != nil {
					ended <- err
					return
				}
			}
		})
		wg.Go(func() { _, _ = world.Broadcast(ctx, draft("MessageEmitted", "b", `{"text":"late"}`)) })
		synctest.Wait()
		wg.Go(func() {
			if err := old.Leave(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if len(ended) != 0 {
			t.Error("a reader knows of the leaving before it is durable")
		}
		wg.Go(func() {
			g, err := world.Register(ctx, "a", value(t, `{"policy":"everything"}`))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := world.Broadcast(ctx, draft("MessageEmitted", "b", `{"text":"later"}`)); err != nil {
				t.Error(err)
			}
			if err := world.Settle(ctx); err != nil {
				t.Error(err)
			}
			for {
				o, ok, err := g.Poll(ctx)
				if err != nil {
					t.Error(err)
				}
				if !ok {
					return
				}
				if err := c.take(o); err != nil {
					t.Error(err)
				}
			}
		})
		synctest.Wait()
		release()
		wg.Wait()
		if err := <-ended; !errors.Is(err, sajou.ErrLeft) {
			t.Errorf("who read before ends with %v", err)
		}
		if v, err := world.View(ctx, "a"); err != nil || v.ContextDigest != c.digest {
			t.Errorf("the reader has %s, the agent %s, %v", c.digest, v.ContextDigest, err)
		}
	})
}

// Of several who wait on one handle, each can go without taking the news with it.
func TestManyWaitOnOneHandle(t *testing.T) {
	inTime(t, func(t *testing.T, th *stopped, ses *sajou.Session) {
		world := ses.Agents()
		register(t, world, "b", nil)
		a := register(t, world, "a", value(t, `{"policy":"everything","latency_model":{"ms":70}}`))
		th.pass(time.Second)
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
		o := say(t, world, "hello")
		synctest.Wait()
		cancels[0]()
		cancels[1]()
		th.pass(70 * time.Millisecond)
		if len(told) != 1 || <-told != o.GlobalSeq {
			t.Errorf("%d were told", len(told))
		}
		cancels[2]()
	})
}

// A generation that goes by what is out of date already is told so at once; one
// that takes another's place is not ended with it.
func TestStaleFromTheBeginning(t *testing.T) {
	world := beginWorld(t, sajou.TimeManual).Agents()
	register(t, world, "b", nil)
	a := register(t, world, "a", value(t, `{"policy":"everything","debounce_ms":0}`))
	begin := func(r agents.TokenRequest) *sajou.Generation {
		g, err := a.Begin(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if err := world.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		return g
	}
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
		ses := beginWorld(t, sajou.TimeManual)
		world := ses.Agents()
		register(t, world, "b", nil)
		a := register(t, world, "a", value(t, `{"policy":"everything","latency_model":{"ms":70}}`))
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
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// Signals from the future take the session's time along, which then stands until
// the wall's clock has come as far. Meanwhile nobody asks for the time all the time.
func TestSignalsFromTheFuture(t *testing.T) {
	inTime(t, func(t *testing.T, th *stopped, ses *sajou.Session) {
		world := ses.Agents()
		a := register(t, world, "a", nil)
		if _, err := ses.Signal(t.Context(), wave(1, storyBegin.Add(time.Hour).UnixMilli())); err != nil {
			t.Fatal(err)
		}
		gen, err := a.Begin(t.Context(), agents.TokenRequest{ReqID: "1", Current: true, Deadline: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		_, ever := th.running()
		for range 100 {
			th.pass(10 * time.Millisecond)
		}
		if _, after := th.running(); after-ever > 1 {
			t.Errorf("%d timers in a second", after-ever)
		}
		for range 59 {
			th.pass(time.Minute)
		}
		if got := cause(gen); got != "going on" {
			t.Errorf("before its time: %s", got)
		}
		th.pass(time.Minute)
		th.pass(10 * time.Millisecond)
		if err := context.Cause(gen.Context()); !errors.Is(err, agents.Timeout) {
			t.Errorf("at its deadline: %v", err)
		}
	})
}

// The time of a session of the wall's clock is nobody's to move, also before it
// has begun.
func TestNobodyMovesTheWall(t *testing.T) {
	inTime(t, func(t *testing.T, th *stopped, ses *sajou.Session) {
		world := ses.Agents()
		for range 2 {
			if err := world.Advance(t.Context(), time.Hour); !errors.Is(err, sajou.ErrTime) {
				t.Errorf("moved: %v", err)
			}
			if got := world.Now(); got != 0 {
				t.Errorf("it is %v", got)
			}
			register(t, world, "a", nil)
		}
	})
}

// What no entry has room for is refused as malformed, and nobody else's quantum
// fails by it. A quantum may be larger than a batch of the log.
func TestLargePayloads(t *testing.T) {
	onDisk(t, sajou.TimeSim, func(t *testing.T, _ *stopped, _ *disk, ses *sajou.Session, _ *bytes.Buffer) {
		ctx, world := t.Context(), ses.Agents()
		a := register(t, world, "a", value(t, `{"policy":"self"}`))
		payload := func(n int) signal.Value {
			return value(t, `{"text":"`+strings.Repeat("x", n)+`"}`)
		}
		for _, n := range []int{agents.MaxPayload - 1000, agents.MaxPayload + 1} {
			_, err := a.Submit(ctx, agents.Intent{Kind: "Custom", ReqID: "1", Payload: payload(n), ContextSeq: 99})
			if !errors.Is(err, agents.InvalidIntent) {
				t.Errorf("an intent of %d bytes: %v", n, err)
			}
			if _, err := world.Broadcast(ctx, agents.Draft{Kind: "Ping", SourceID: "b", Payload: payload(n)}); !errors.Is(err, agents.InvalidIntent) {
				t.Errorf("a draft of %d bytes: %v", n, err)
			}
		}
		if err := world.Configure(ctx, value(t, `{"authority":"sim"}`)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, n := range []int{10, agents.MaxPayload - 1000, agents.MaxPayload - 10_000} {
			wg.Go(func() {
				_, err := world.Broadcast(ctx, agents.Draft{Kind: "Ping", SourceID: "b", Payload: payload(n)})
				if large := n > agents.MaxPayload-2000; large != errors.Is(err, agents.InvalidIntent) || !large && err != nil {
					t.Errorf("with %d bytes: %v", n, err)
				}
			})
		}
		synctest.Wait()
		if _, err := world.Tick(ctx, sajou.Tick{SimTime: 1}); err != nil {
			t.Error(err)
		}
		wg.Wait()
		before := ses.Head().Seq
		subs := make([]agents.Submission, 24)
		for i := range subs {
			subs[i].Draft = &agents.Draft{Kind: "Ping", SourceID: "b", Payload: payload(1 << 19 << (i % 2) * 7 / 8)}
		}
		outcomes, err := world.Quantum(ctx, subs...)
		if err != nil || ses.Head().Seq != before+1+eventlog.Seq(len(subs)) {
			t.Errorf("a large quantum made %d entries, %v", ses.Head().Seq-before, err)
		}
		for i, o := range outcomes {
			if !o.OK() {
				t.Errorf("%d of it: %v", i, o.Err())
			}
		}
	})
}

// What is asked for no time at all is refused, in whatever session.
func TestAskedForNoTime(t *testing.T) {
	world := beginWorld(t, sajou.TimeManual).Agents()
	for _, config := range []string{`{}`, `{"authority":"sim"}`} {
		if err := world.Configure(t.Context(), value(t, config)); err != nil {
			t.Fatal(err)
		}
		d := draft("Ping", "b", `{}`)
		s, err := world.Ask(t.Context(), agents.Submission{Draft: &d, Timed: true, SimTime: math.NaN()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Wait(t.Context()); !errors.Is(err, agents.InvalidIntent) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// What is cancelled while it waits for its tick is answered so for ever, and to
// all who ask for it; those who give up themselves leave the others alone.
func TestCancelledInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := beginWorld(t, sajou.TimeSim).Agents()
		a := register(t, world, "a", nil)
		if err := world.Configure(t.Context(), value(t, `{"authority":"sim",`+unlimited+`}`)); err != nil {
			t.Fatal(err)
		}
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
			if err := <-errs; !errors.Is(err, agents.Cancelled) {
				t.Errorf("who waited got %v", err)
			}
		}
		if !<-found {
			t.Error("it was not found")
		}
		if o, err := a.Submit(t.Context(), in); !errors.Is(err, agents.Cancelled) || o.Status != agents.Duplicate {
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
		world := beginWorld(t, sajou.TimeSim).Agents()
		a := register(t, world, "a", nil)
		if err := world.Configure(t.Context(), value(t, `{"authority":"sim"}`)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := a.Submit(t.Context(), agents.Intent{Kind: "Custom", ReqID: "1", ContextSeq: 9})
			done <- err
		}()
		synctest.Wait()
		if err := world.Configure(t.Context(), value(t, `{}`)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(done) != 1 || <-done != nil {
			t.Errorf("it is not decided, %d wait", world.Waiting())
		}
	})
}

// grudging is a policy of the program's own that panics when it is asked about b.
type grudging struct{}

func (grudging) Sees(_ *agents.Eye, id string) bool {
	if id == "b" {
		panic("not that one")
	}
	return true
}
func (grudging) Shows(*agents.Eye, string, string) bool { return true }
func (grudging) Reach() agents.Reach                    { return agents.Opaque() }

// A policy that panics harms nobody: not the host, and not what is recorded.
func TestPolicyPanicsLive(t *testing.T) {
	fs := vfs.NewMem()
	cfg := sajou.Config{FS: fs, World: agents.Options{Customs: []agents.Custom{{
		Name: "grudging", Version: 1, Compile: func(signal.Value) (agents.Policy, error) { return grudging{}, nil },
	}}}}
	for n := range 2 {
		eng, err := sajou.Open("store", cfg)
		if err != nil {
			t.Fatal(err)
		}
		ses, err := eng.Begin(t.Context(), "world", sajou.TimeManual)
		if err != nil {
			t.Fatal(err)
		}
		world := ses.Agents()
		register(t, world, "b", nil)
		a := register(t, world, fmt.Sprint("a", n), value(t, `{"policy":"custom","name":"grudging","version":1}`))
		say(t, world, "hello")
		if o, err := a.NextObservation(t.Context()); err != nil || strings.Contains(o.Value().String(), `"b"`) {
			t.Errorf("it is told %v, %v", o.Value(), err)
		}
		if err := once(t.Context(), ses); err != nil {
			t.Error(err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Agents act in a session while it is imported into and while somebody looks on;
// what comes of that is what a replay says.
func TestAgentsDuringAnImport(t *testing.T) {
	eng, err := sajou.Open(t.TempDir(), sajou.Config{SnapshotEvery: 50})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = eng.Close() }()
	ses, err := eng.Session(t.Context(), "world")
	if err != nil {
		t.Fatal(err)
	}
	world := ses.Agents()
	if err := world.Configure(t.Context(), value(t, `{`+unlimited+`}`)); err != nil {
		t.Fatal(err)
	}
	a := register(t, world, "a", value(t, `{"policy":"everything"}`))
	register(t, world, "b", nil)
	live := ses.Show(t.Context(), blind{}, 60)
	begun := time.Now().UnixMilli()
	var wg sync.WaitGroup
	wg.Go(func() {
		var pending []*sajou.Pending
		for i := range 400 {
			p, err := ses.Stage(t.Context(), sajou.Record{Signals: []*signal.Signal{wave(i, begun+int64(i))}})
			if err != nil {
				t.Error(err)
				return
			}
			pending = append(pending, p)
		}
		for _, p := range pending {
			if _, err := p.Wait(); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for i := range 40 {
			if _, err := a.Submit(t.Context(), agents.Intent{Kind: "Speak", Payload: value(t, `{"text":"hello"}`), ReqID: fmt.Sprint(i), ContextSeq: 1 << 40}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if err := world.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := newClient(t)
	for {
		o, ok, err := a.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if err := c.take(o); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := world.View(t.Context(), "a"); err != nil || v.ContextDigest != c.digest {
		t.Errorf("the reader has %s, the agent %s, %v", c.digest, v.ContextDigest, err)
	}
	if err := live.Close(); err != nil {
		t.Error(err)
	}
	f, err := ses.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g, err := eng.Replay("world").At(t.Context(), f.Head().Seq)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.Digest(sajou.ProjectionWorld), f.Digest(sajou.ProjectionWorld); got != want {
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
