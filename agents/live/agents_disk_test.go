package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// onDisk runs f in a session of a disk of its own, in a bubble in which time
// stands still until it is moved. The log has what the engine has to complain of.
func onDisk(t *testing.T, authority session.TimeAuthority, f func(t *testing.T, th *enginetest.StoppedClock, d *enginetest.Disk, ses *sajou.Session, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th, d, log := &enginetest.StoppedClock{Now: enginetest.StoryBegin}, enginetest.NewDisk(), &bytes.Buffer{}
		eng, err := sajou.Open("store", sajou.Config{
			FS: d, Now: th.Read, AfterFunc: th.AfterFunc, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		require.NoError(t, err)
		defer func() {
			assert.NoError(t, eng.Close())
			if n, _ := th.Running(); n != 0 {
				t.Errorf("%d timers run after the end", n)
			}
			synctest.Wait()
		}()
		ses, err := eng.Begin(t.Context(), "world", authority)
		require.NoError(t, err)
		f(t, th, d, ses, log)
	})
}

// speechless is a generator that says nothing and heeds its context.
type speechless struct{}

func (speechless) Generate(ctx context.Context, _ generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { <-ctx.Done(); yield("", ctx.Err()) }
}

// When the disk is full, whatever waits ends and says why, nothing runs on, and
// what is known can still be asked; what could not be recorded has not happened.
func TestAgentsOnAFullDisk(t *testing.T) {
	for _, authority := range []session.TimeAuthority{session.TimeWall, session.TimeSim} {
		t.Run(string(authority), func(t *testing.T) {
			onDisk(t, authority, func(t *testing.T, th *enginetest.StoppedClock, d *enginetest.Disk, ses *sajou.Session, log *bytes.Buffer) {
				ctx, world := t.Context(), ses.Agents()
				enginetest.Register(t, world, "b", nil)
				a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything","debounce_ms":0}`))
				drain(t, a)
				if authority == session.TimeSim {
					require.NoError(t, world.Configure(ctx, enginetest.Value(t, `{"authority":"sim",`+unlimited+`}`)))
				}
				gen, err := a.Begin(ctx, agents.TokenRequest{ReqID: "gen", Current: true, Deadline: time.Minute})
				require.NoError(t, err)
				errs := make(chan error)
				go func() { _, err := a.NextObservation(ctx); errs <- err }()
				go func() { _, err := a.NextObservation(ctx); errs <- err }()
				go func() {
					_, err := generate.Run(ctx, a, speechless{}, generate.Request{ReqID: "words", Prompt: func(view.View) generate.Prompt { return generate.Prompt{} }})
					errs <- err
				}()
				waits := 3
				synctest.Wait()
				d.Full.Store(true)
				if authority == session.TimeSim { // these wait for a tick; the one that asks for something else meets the disk
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
				if err := a.Leave(ctx); !errors.Is(err, eventlog.ErrReadOnly) || !errors.Is(err, enginetest.ErrFull) {
					t.Errorf("what meets the full disk ends with %v", err)
				}
				synctest.Wait()
				for range waits {
					assert.ErrorIs(t, <-errs, eventlog.ErrReadOnly, "what waited ends with")
				}
				assert.ErrorIs(t, context.Cause(gen.Context()), eventlog.ErrReadOnly, "the generation ends by")
				for name, f := range map[string]func() error{
					"submit": func() error {
						_, err := world.Submit(ctx, agents.Intent{AgentID: "b", Kind: "Custom", ReqID: "3", ContextSeq: 99})
						return err
					},
					"broadcast": func() error { _, err := world.Broadcast(ctx, enginetest.Draft("Ping", "b", `{}`)); return err },
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
				_, ever := th.Running()
				for range 20 {
					th.Pass(10 * time.Second)
				}
				if now, after := th.Running(); now != 0 || after > ever {
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
		ctx, fs, th := t.Context(), vfs.NewMem(), &enginetest.StoppedClock{Now: enginetest.StoryBegin}
		open := func(readOnly bool) (*sajou.Engine, *agentslive.Agents) {
			eng, err := sajou.Open("store", sajou.Config{FS: fs, Now: th.Read, AfterFunc: th.AfterFunc, ReadOnly: readOnly})
			require.NoError(t, err)
			ses, err := eng.Session(ctx, "world")
			require.NoError(t, err)
			return eng, ses.Agents()
		}
		eng, world := open(false)
		a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything"}`))
		in := agents.Intent{Kind: "Custom", ReqID: "1", AgentID: "a", ContextSeq: 99}
		first, err := world.Submit(ctx, in)
		require.NoError(t, err)
		if _, err := a.Begin(ctx, agents.TokenRequest{ReqID: "2", Current: true, Deadline: time.Second}); err != nil {
			t.Fatal(err)
		}
		want, err := world.View(ctx, "a")
		require.NoError(t, err)
		require.NoError(t, eng.Close())

		th.Ahead(time.Hour)
		_, ever := th.Running()
		eng, world = open(true)
		if got, err := world.View(ctx, "a"); err != nil || got.ContextDigest != want.ContextDigest {
			t.Errorf("the view is %v, %v", got, err)
		}
		if a, err = world.Agent(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if o, err := a.NextObservation(ctx); err != nil || o.ContextDigest() != want.ContextDigest {
			t.Errorf("a reader gets %v, %v", o, err)
		}
		if o, err := world.Submit(ctx, in); err != nil || o.Status != agents.Duplicate || o.GlobalSeq != first.GlobalSeq {
			t.Errorf("what was answered is answered %v, %v", o, err)
		}
		for name, f := range map[string]func() error{
			"observe":   func() error { _, err := a.NextObservation(ctx); return err },
			"submit":    func() error { in := in; in.ReqID = "3"; _, err := world.Submit(ctx, in); return err },
			"broadcast": func() error { _, err := world.Broadcast(ctx, enginetest.Draft("Ping", "b", `{}`)); return err },
			"configure": func() error { return world.Configure(ctx, enginetest.Value(t, `{}`)) },
			"begin":     func() error { _, err := a.Begin(ctx, agents.TokenRequest{ReqID: "3"}); return err },
			"cancel":    func() error { _, err := a.Cancel(ctx, "2"); return err },
			"leave":     func() error { return a.Leave(ctx) },
		} {
			if err := f(); !errors.Is(err, eventlog.ErrReadOnly) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if now, after := th.Running(); now != 0 || after != ever {
			t.Errorf("%d timers run, %d were begun", now, after-ever)
		}
		assert.NoError(t, eng.Close())
	})
}

// A request whose recorded answer cannot be read is neither decided again nor refused, alone
// and together with others. The requests beside it are answered.
func TestAnswerCannotBeRead(t *testing.T) {
	ctx, d := t.Context(), enginetest.NewDisk()
	open := func() (*sajou.Engine, *agentslive.Agents) { return manualWorld(t, d) }
	eng, world := open()
	require.NoError(t, world.Configure(ctx, enginetest.Value(t, `{`+unlimited+`}`)))
	enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"self","staleness_threshold":0}`))
	in := agents.Intent{Kind: "Custom", ReqID: "1", AgentID: "a", ContextSeq: 2}
	first, err := world.Submit(ctx, in)
	require.NoError(t, err)
	// So much that the store keeps no more of it in memory than what the fold reads.
	for range 24 {
		d := enginetest.Draft("Ping", "b", `{"text":"`+strings.Repeat("x", 900_000)+`"}`)
		if _, err := world.Broadcast(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	// The keys of requests stand behind the batches of all sessions. Another session
	// keeps them out of the block that the fold of this one reads last.
	other, err := eng.Begin(ctx, "other", session.TimeManual)
	require.NoError(t, err)
	if _, err := other.Agents().Broadcast(ctx, enginetest.Draft("Ping", "b", `{"text":"`+strings.Repeat("x", 900_000)+`"}`)); err != nil {
		t.Fatal(err)
	}
	in.ContextSeq = 1
	require.NoError(t, eng.Close())
	for name, f := range map[string]func() error{
		"submit": func() error { _, err := world.Submit(ctx, in); return err },
		"batch":  func() error { _, err := world.SubmitBatch(ctx, []agents.Intent{in}); return err },
		"quantum": func() error {
			d := enginetest.Draft("Ping", "b", `{}`)
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
		d.Deaf.Store(true)
		if err := f(); !errors.Is(err, enginetest.ErrRead) {
			t.Errorf("%s: %v", name, err)
		}
		d.Deaf.Store(false)
		if o, err := world.Submit(ctx, in); err != nil || o.Status != agents.Duplicate || o.GlobalSeq != first.GlobalSeq {
			t.Errorf("%s, when it can be read again: %v, %v", name, o, err)
		}
		assert.NoError(t, eng.Close())
	}
}

// Who comes back while the disk is slow is told nothing that was made for who it
// was before, and those who read before end when the leaving is durable.
func TestLeavesAndComesBack(t *testing.T) {
	onDisk(t, session.TimeManual, func(t *testing.T, _ *enginetest.StoppedClock, d *enginetest.Disk, ses *sajou.Session, _ *bytes.Buffer) {
		ctx, world := t.Context(), ses.Agents()
		enginetest.Register(t, world, "b", nil)
		old := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"everything"}`))
		for i := range 5 {
			say(t, world, fmt.Sprint(i))
		}
		require.NoError(t, world.Settle(ctx))
		drain(t, old)
		release := d.Hold()
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
		wg.Go(func() { _, _ = world.Broadcast(ctx, enginetest.Draft("MessageEmitted", "b", `{"text":"late"}`)) })
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
			g, err := world.Register(ctx, "a", enginetest.Value(t, `{"policy":"everything"}`))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := world.Broadcast(ctx, enginetest.Draft("MessageEmitted", "b", `{"text":"later"}`)); err != nil {
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
		assert.ErrorIs(t, <-ended, agentslive.ErrLeft, "who read before ends with")
		if v, err := world.View(ctx, "a"); err != nil || v.ContextDigest != c.digest {
			t.Errorf("the reader has %s, the agent %s, %v", c.digest, v.ContextDigest, err)
		}
	})
}

// What no entry has room for is refused as malformed, and nobody else's quantum
// fails by it. A quantum may be larger than a batch of the log.
func TestLargePayloads(t *testing.T) {
	onDisk(t, session.TimeSim, func(t *testing.T, _ *enginetest.StoppedClock, _ *enginetest.Disk, ses *sajou.Session, _ *bytes.Buffer) {
		ctx, world := t.Context(), ses.Agents()
		a := enginetest.Register(t, world, "a", enginetest.Value(t, `{"policy":"self"}`))
		payload := func(n int) signal.Value {
			return enginetest.Value(t, `{"text":"`+strings.Repeat("x", n)+`"}`)
		}
		for _, n := range []int{agentworld.MaxPayload - 1000, agentworld.MaxPayload + 1} {
			_, err := a.Submit(ctx, agents.Intent{Kind: "Custom", ReqID: "1", Payload: payload(n), ContextSeq: 99})
			assert.ErrorIsf(t, err, agents.ErrInvalidIntent, "an intent of %d bytes: %v", n, err)
			if _, err := world.Broadcast(ctx, agents.EffectDraft{Kind: "Ping", SourceID: "b", Payload: payload(n)}); !errors.Is(err, agents.ErrInvalidIntent) {
				t.Errorf("a draft of %d bytes: %v", n, err)
			}
		}
		require.NoError(t, world.Configure(ctx, enginetest.Value(t, `{"authority":"sim"}`)))
		var wg sync.WaitGroup
		for _, n := range []int{10, agentworld.MaxPayload - 1000, agentworld.MaxPayload - 10_000} {
			wg.Go(func() {
				_, err := world.Broadcast(ctx, agents.EffectDraft{Kind: "Ping", SourceID: "b", Payload: payload(n)})
				if large := n > agentworld.MaxPayload-2000; large != errors.Is(err, agents.ErrInvalidIntent) || !large && err != nil {
					t.Errorf("with %d bytes: %v", n, err)
				}
			})
		}
		synctest.Wait()
		if _, err := world.Tick(ctx, agentslive.Tick{SimTime: 1}); err != nil {
			t.Error(err)
		}
		wg.Wait()
		before := ses.Head().Seq
		subs := make([]agents.Submission, 24)
		for i := range subs {
			subs[i].Draft = &agents.EffectDraft{Kind: "Ping", SourceID: "b", Payload: payload(1 << 19 << (i % 2) * 7 / 8)}
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
