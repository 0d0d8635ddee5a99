package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/session"
)

// reports keeps what a world reports to metrics and to its log, in lines. Those of one step
// come from several goroutines, so take orders them.
type reports struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (r *reports) add(values ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintln(values...))
}

func (r *reports) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.lines)
	text := strings.Join(r.lines, "")
	r.lines = nil
	return text
}

func (r *reports) Write(p []byte) (int, error) {
	r.add(string(bytes.TrimSpace(p)))
	return len(p), nil
}

func (r *reports) WorldOpened(world string)            { r.add("opened", world) }
func (r *reports) WorldClosed(world string)            { r.add("closed", world) }
func (r *reports) AgentJoined(world, agent string)     { r.add("joined", world, agent) }
func (r *reports) AgentLeft(world, agent string)       { r.add("left", world, agent) }
func (r *reports) WorldReached(world string, n uint64) { r.add("reached", world, n) }
func (r *reports) IntentDecided(_ context.Context, d agentslive.DecidedIntent) {
	r.add("decided", fmt.Sprintf("%+v", d))
}
func (r *reports) IntentsWaiting(world, agent string, n int) { r.add("intents", world, agent, n) }
func (r *reports) Delivered(world, agent string, after time.Duration) {
	r.add("delivered", world, agent, after)
}

func (r *reports) Undelivered(world, agent string, why agentslive.DropReason, n int) {
	r.add("undelivered", world, agent, why, n)
}

func (r *reports) ObservationsWaiting(world, agent string, n int) {
	r.add("observations", world, agent, n)
}

func (r *reports) Cancelled(world, agent string, why agentslive.CancelKind) {
	r.add("cancelled", world, agent, why)
}

func (r *reports) Halted(world, agent string, after time.Duration) {
	r.add("halted", world, agent, after)
}

func (r *reports) StreamEnded(_ context.Context, s agentslive.EndedStream) {
	r.add("stream", fmt.Sprintf("%+v", s))
}

func (r *reports) BreakerChanged(world, agent string, to flow.BreakerState) {
	r.add("breaker", world, agent, to)
}

// stroller makes drawn calls of a world, and writes down their results.
type stroller struct {
	*golden.Dice
	t       *testing.T
	clock   *enginetest.StoppedClock
	world   *agentslive.Agents
	out     strings.Builder
	reports reports
	readers []*agentslive.Agent
	running []*agentslive.Generation
	async   []*agentslive.Submitted
	pending []*agentslive.PendingGeneration
	asked   int
	sim     float64
}

func (s *stroller) tell(values ...any) { fmt.Fprintln(&s.out, values...) }

func (s *stroller) ctx() context.Context { return s.t.Context() }

// within returns a context that has ended, now and then.
func (s *stroller) within() context.Context {
	ctx, cancel := context.WithCancel(s.t.Context())
	if s.t.Cleanup(cancel); s.Once(15) {
		cancel()
	}
	return ctx
}

func (s *stroller) id() string {
	return golden.Pick(s.Dice, "ann", "ann", "ann", "ann", "bob", "bob", "bob", "bob", "eve", "none")
}

func (s *stroller) reader() *agentslive.Agent {
	if len(s.readers) == 0 {
		return nil
	}
	return golden.Pick(s.Dice, s.readers...)
}

func (s *stroller) reqID() string {
	if s.asked == 0 || !s.Once(6) {
		s.asked++
	}
	return fmt.Sprint("r", s.asked)
}

func (s *stroller) intent() agents.Intent {
	kind, payload := "Speak", `{"text":"hi"}`
	switch s.N(6) {
	case 0:
		kind, payload = "Move", fmt.Sprintf(`{"to":[%d,%d]}`, s.N(5), s.N(5))
	case 1:
		kind, payload = "Move", `{"position":[1,1]}`
	case 2:
		kind, payload = "Interact", `{"target_id":"bob"}`
	case 3:
		kind, payload = "Dance", `{}`
	}
	in := agents.Intent{Kind: kind, Payload: enginetest.Value(s.t, payload), AgentID: s.id(), ReqID: s.reqID(), Priority: s.N(3), Unprioritized: s.Once(2), ContextSeq: uint64(s.N(20))}
	if n, ok := s.world.LatestViewSeq(in.AgentID); ok && !s.Once(4) {
		in.ContextSeq = n
	}
	in.SchemaVersion = golden.Pick(s.Dice, "", "", "", "1.0", "0.9", "bad")
	return in
}

func (s *stroller) draft() agents.EffectDraft {
	return golden.Pick(s.Dice,
		enginetest.Draft("EntityUpdated", "world", fmt.Sprintf(`{"entity_id":%q,"fields":{"hp":%d}}`, golden.Pick(s.Dice, "ann", "bob", "door"), s.N(5))),
		enginetest.Draft("MessageEmitted", golden.Pick(s.Dice, "ann", "bob"), `{"text":"hello"}`),
		enginetest.Draft("EntityCreated", "world", fmt.Sprintf(`{"entity_id":"new%d","entity_data":{"type":"thing"}}`, s.N(9))),
		enginetest.Draft("Move", "bob", fmt.Sprintf(`{"to":[%d,0]}`, s.N(5))),
		agents.EffectDraft{Kind: "Noted", SourceID: "world"},
	)
}

func (s *stroller) submission() agents.Submission {
	if s.Once(3) {
		d := s.draft()
		return agents.Submission{Draft: &d}
	}
	in := s.intent()
	return agents.Submission{Intent: &in}
}

func (s *stroller) outcome(o agents.Outcome, err error) {
	s.tell(o.Status, o.GlobalSeq, o.UUID, o.Number, o.Effect != nil, o.OK(), err)
	if o.Effect != nil {
		s.tell(fmt.Sprintf("%+v", *o.Effect))
	}
	if r, ok := errors.AsType[*agents.Rejection](err); ok {
		s.tell(fmt.Sprintf("%+v", *r))
	}
}

func (s *stroller) observe(o agentslive.Observation, ok bool, err error) {
	if !ok || err != nil {
		s.tell("none", ok, err)
		return
	}
	s.tell("observed", o.AgentID, o.At, o.Number, o.ViewSeq, o.IsFullView(), jsondoc.PatchValue(o.Patches), o.ContextDigest())
}

// tellGenerations tells how the generations stand.
func (s *stroller) generations() {
	for i, g := range s.running {
		s.tell("generation", i, fmt.Sprintf("%+v", g.Token()), g.Context().Err(), context.Cause(g.Context()))
	}
	for i, p := range s.pending {
		s.tell("pending", i, p.Dropped())
	}
	for i, p := range s.async {
		select {
		case <-p.Done():
			s.tell("submitted", i, "decided")
		default:
			s.tell("submitted", i, "waits")
		}
	}
}

func (s *stroller) step() {
	w, ctx := s.world, s.ctx()
	switch s.N(28) {
	case 0, 1:
		policy := golden.Pick(s.Dice, `{}`, `{"policy":"everything"}`, `{"policy":"self"}`, `{"policy":"everything","max_queue_depth":2}`, `{"policy":"everything","latency_model":{"model":"fixed","ms":30}}`,
			`{"policy":"everything","max_queue_depth":1,"backpressure_policy":"shed_oldest"}`, `{"policy":"everything","max_queue_depth":2,"backpressure_policy":"drop_newest"}`, `{"policy":"no such"}`)
		id := golden.Pick(s.Dice, "ann", "ann", "bob", "bob", "eve", "")
		g, err := w.Register(s.within(), id, enginetest.Value(s.t, policy))
		if s.tell("register", id, policy, err); err == nil {
			s.tell(g.ID(), g.Resumed(), g.ViewSeq())
			s.readers = append(s.readers, g)
		}
	case 2, 3, 4:
		in := s.intent()
		p, err := w.SubmitAsync(s.within(), agents.Submission{Intent: &in})
		if s.tell("submit", in.AgentID, in.ReqID, in.Kind, err); err == nil {
			s.async = append(s.async, p)
		}
	case 5:
		p, err := w.SubmitAsync(ctx, s.submission())
		if s.tell("submit", err); err == nil {
			s.async = append(s.async, p)
		}
	case 6:
		for i, p := range s.async {
			select {
			case <-p.Done():
				s.tell("wait", i)
				s.outcome(p.Wait(ctx))
			default:
				if ended, cancel := context.WithCancel(ctx); s.Once(2) {
					cancel()
					s.tell("withdraw", i)
					s.outcome(p.Wait(ended))
				} else {
					cancel()
				}
			}
		}
		s.async = nil
	case 7:
		outcomes, err := w.SubmitBatch(s.within(), []agents.Intent{s.intent(), s.intent()}[:1+s.N(2)])
		s.tell("batch", len(outcomes), err)
		for _, o := range outcomes {
			s.outcome(o, o.Err())
		}
	case 8:
		outcomes, err := w.Quantum(s.within(), []agents.Submission{s.submission(), s.submission(), s.submission()}[:s.N(4)]...)
		s.tell("quantum", len(outcomes), err)
		for _, o := range outcomes {
			s.outcome(o, o.Err())
		}
	case 9, 10:
		s.sim += float64(s.N(4)) / 4
		tick := agentslive.Tick{SimTime: s.sim, DeltaTime: 0.25, FrameNumber: uint64(s.N(9)), SourceID: "clock"}
		switch s.N(12) {
		case 0:
			tick.SimTime = golden.Pick(s.Dice, -1, 1e10, 9223372036.9)
		case 1:
			tick.SimTime /= 2
		}
		n, err := w.Tick(s.within(), tick)
		s.tell("tick", tick.SimTime, n, err, w.Now(), w.Waiting())
	case 11:
		to := w.Now() + time.Duration(s.N(300)-20)*time.Millisecond
		err := w.Advance(s.within(), to)
		s.tell("advance", to, err, w.Now())
	case 12, 13:
		s.clock.Pass(time.Duration(s.N(300)) * time.Millisecond)
		s.tell("pass", w.Now())
	case 14, 15, 16:
		if g := s.reader(); g != nil {
			for range 1 + s.N(3) {
				o, ok, err := g.Poll(s.within())
				s.observe(o, ok, err)
			}
			at, ok := g.NextAt()
			s.tell("next", at, ok, g.ViewSeq())
		}
	case 17:
		if g := s.reader(); g != nil {
			if at, ok := g.NextAt(); ok && at <= w.Now() {
				o, err := g.NextObservation(s.within())
				s.observe(o, err == nil, err)
			}
		}
	case 18:
		var g *agentslive.Agent
		var err error
		id, n := s.id(), uint64(s.N(12))
		if s.Once(2) {
			g, err = w.Agent(s.within(), id)
		} else {
			g, err = w.Resume(s.within(), id, n)
		}
		if s.tell("reader", id, n, err); err == nil {
			s.tell(g.Resumed(), g.ViewSeq())
			s.readers = append(s.readers, g)
		}
	case 19:
		if g := s.reader(); g != nil && s.Once(2) {
			if s.Once(2) {
				g.Close()
				s.tell("close", g.ID())
			} else {
				s.tell("leave", g.ID(), g.Leave(s.within()))
			}
		}
	case 20, 21:
		if g := s.reader(); g != nil {
			gen, err := g.Begin(s.within(), agents.TokenRequest{ReqID: s.reqID(), ContextSeq: uint64(s.N(12)), Current: s.Once(2), Deadline: time.Duration(s.N(4)) * 100 * time.Millisecond, Budget: int64(s.N(3))})
			if s.tell("begin", err); err == nil {
				s.running = append(s.running, gen)
			}
		}
	case 22:
		if len(s.running) > 0 {
			gen := golden.Pick(s.Dice, s.running...)
			switch s.N(3) {
			case 0:
				s.tell("answer", gen.Answer(s.within(), enginetest.Value(s.t, `{"text":"so"}`)))
			case 1:
				s.tell("end", gen.End(s.within(), golden.Pick(s.Dice, agentslive.ReasonCompleted, agentslive.ReasonFailed, agentslive.ReasonGivenUp, agents.ReasonUser)))
			case 2:
				d := s.reader().Driver()
				held, err := d.Keep(s.within(), gen, enginetest.Value(s.t, `{"text":"kept"}`), s.Once(2))
				s.tell("keep", held, err)
				d.Overdue(ctx, gen)
				why, at := d.Interruption(gen)
				s.tell(why, at.UTC())
			}
		}
	case 23:
		if g := s.reader(); g != nil {
			req := fmt.Sprint("r", max(1, s.asked-s.N(4)))
			found, err := g.Cancel(s.within(), req)
			s.tell("cancel", g.ID(), req, found, err)
		}
	case 24:
		if g := s.reader(); g != nil {
			if len(s.pending) > 0 && s.Once(2) {
				i := s.N(len(s.pending))
				s.pending[i].Done()
				s.pending = slices.Delete(s.pending, i, i+1)
			} else {
				s.pending = append(s.pending, g.Driver().Pend(fmt.Sprint("r", s.asked)))
			}
			prompted, err := g.Driver().Begin(s.within(), agents.TokenRequest{ReqID: s.reqID()})
			s.tell("driver", prompted.Basis, prompted.View.ViewSeq, prompted.Outcome != nil, err)
			if prompted.Generation != nil {
				s.running = append(s.running, prompted.Generation)
			}
			o, ok, err := g.Driver().Answered(s.within(), fmt.Sprint("r", s.asked))
			s.tell("answered", ok, err)
			s.outcome(o, o.Err())
		}
	case 25:
		id, req := s.id(), fmt.Sprint("r", s.asked)
		n, ok, err := w.GlobalSeq(s.within(), id, req)
		latest, known := w.LatestViewSeq(id)
		s.tell("seq", id, req, n, ok, err, latest, known)
		v, err := w.View(s.within(), id)
		s.tell("view", v.ViewSeq, v.ContextDigest, err)
		v, err = w.Known(s.within(), id)
		s.tell("known", v.ViewSeq, v.ContextDigest, err)
		at, ok := w.Next()
		s.tell("next", at, ok, w.Waiting())
	case 26:
		err := w.Configure(s.within(), enginetest.Value(s.t, golden.Pick(s.Dice, `{"cooldowns":"off","quota_intents_per_minute":-1,"staleness_threshold":1000}`, `{"cooldowns":"off","quota_intents_per_minute":-1}`, `{"staleness_threshold":1}`, `{"quota_intents_per_minute":3}`, `{"max_quantum":2}`, `{"max_quantum":100,"staleness_threshold":5}`, `{"no":"such"}`)))
		s.tell("configure", err)
	case 27:
		if o, err := w.Quantum(ctx, agents.Submission{Draft: new(s.draft())}); err == nil {
			s.outcome(o[0], o[0].Err())
		}
	}
}

// Drawn calls of live worlds have the results, the metrics and the lines of the log that were
// recorded, whatever lets their time pass.
func TestRecordedWorlds(t *testing.T) {
	golden.Trace(t, "testdata/worlds.txt", func(step func(name, text string)) {
		for seed := range 24 {
			authority := []session.TimeAuthority{session.TimeWall, session.TimeManual, session.TimeSim}[seed%3]
			type part struct{ name, text string }
			var parts []part
			synctest.Test(t, func(t *testing.T) {
				s := &stroller{Dice: golden.NewDice(uint64(seed)), t: t, clock: &enginetest.StoppedClock{Now: enginetest.StoryBegin}}
				level := slog.LevelDebug
				if seed%4 == 3 {
					level = slog.LevelInfo
				}
				log := slog.NewTextHandler(&s.reports, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				}})
				told := agentslive.AgentMetrics{Worlds: &s.reports, Intents: &s.reports, Observations: &s.reports, Generations: &s.reports}
				if seed%5 == 4 {
					told = agentslive.AgentMetrics{}
				}
				eng, err := sajou.Open("store", sajou.Config{
					FS: vfs.NewMem(), Now: s.clock.Read, AfterFunc: s.clock.AfterFunc, Logger: slog.New(log), Metrics: sajou.Metrics{Agents: told},
					Migrate: func(in agents.Intent) (agents.Intent, error) {
						if in.SchemaVersion == "bad" {
							return in, errors.New("no such version")
						}
						return agents.Intent{Kind: "Speak", Payload: in.Payload, AgentID: "other", ReqID: "other", ContextSeq: in.ContextSeq}, nil
					},
				})
				require.NoError(t, err)
				ses, err := eng.Begin(t.Context(), "world", authority)
				require.NoError(t, err)
				s.world = ses.Agents()
				if authority == session.TimeSim {
					require.NoError(t, s.world.Configure(t.Context(), enginetest.Value(t, `{"authority":"sim"}`)))
				}
				require.NoError(t, s.world.Begin(t.Context(), enginetest.Value(t, `{"entities":{"ann":{},"bob":{},"door":{}},"spatial_index":{"ann":[0,0],"bob":[1,0]}}`)))
				for _, id := range []string{"ann", "bob"} {
					g, err := s.world.Register(t.Context(), id, enginetest.Value(t, `{"policy":"everything"}`))
					require.NoError(t, err)
					s.readers = append(s.readers, g)
				}
				for i := range 120 {
					s.step()
					synctest.Wait()
					s.generations()
					s.out.WriteString(s.reports.take())
					if i%10 == 9 {
						parts = append(parts, part{fmt.Sprint(seed, " ", i), s.out.String()})
						s.out.Reset()
					}
				}
				require.NoError(t, eng.Close())
				synctest.Wait()
				s.generations()
				parts = append(parts, part{fmt.Sprint(seed, " end"), s.out.String() + s.reports.take()})
			})
			for _, p := range parts {
				step(p.name, p.text)
			}
		}
	})
}
