package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
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
