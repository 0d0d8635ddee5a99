package agentwire

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
)

// simulation is the connection that holds the authority over the time of a session: a
// game engine. A session has one. When it ends, time stands still and what waits for a
// tick goes on waiting; the next holder continues.
type simulation struct {
	link
	name    string
	ses     *sajou.Session
	world   *agentslive.Agents
	callers context.Context // of the caller, for the question as which agents it may act

	// These are guarded by link.mu.
	passed  eventlog.Seq  // the effects of all entries up to it are with the writer
	moved   chan struct{} // closed when passed grows
	pending int           // submissions that wait for their outcome
}

// maxPending bounds the submissions of a simulation that wait for their outcome.
const maxPending = 1 << 12

// hold takes the authority over a session's time, or reports that it is taken.
func (r *AgentDoor) hold(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.simulations[name] {
		return false
	}
	r.simulations[name] = true
	return true
}

func (r *AgentDoor) yield(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.simulations, name)
}

// simSocket serves a simulation over a WebSocket.
func (r *AgentDoor) simSocket(w http.ResponseWriter, req *http.Request) error {
	s, err := r.accept(w, req, SubprotocolSim)
	if s == nil {
		return err
	}
	defer context.AfterFunc(req.Context(), func() { _ = s.conn.CloseNow() })()
	name := route.Session(req)
	m, caller, refused := r.hello(req, s, simSocket)
	if refused != nil {
		s.Close(*refused)
		return nil
	}
	ctx, release := r.cfg.Guard(access.With(req.Context(), caller), caller)
	defer release()
	if err := access.Check(ctx, access.ScopeTick, name); err != nil {
		r.refuse(ctx, s, place{session: name}, err)
		return nil
	}
	ses, err := r.world(ctx, name)
	if err != nil {
		s.Close(closingOf(err))
		return nil
	}
	if !r.hold(name) {
		s.Close(closeHeld)
		return nil
	}
	defer r.yield(name)
	r.simulate(ctx, name, ses, m.Seq, s, route.Stopping(ctx))
	return nil
}

// simulate serves the holder of the authority until its connection ends.
func (r *AgentDoor) simulate(ctx context.Context, name string, ses *sajou.Session, since *uint64, tr transport, stopping <-chan struct{}) {
	s := &simulation{name: name, ses: ses, world: ses.Agents(), callers: ctx, moved: make(chan struct{})}
	s.start(ctx, r, tr)
	s.passed = ses.Head().Seq
	if since != nil {
		s.passed = min(s.passed, eventlog.Seq(*since))
	}
	begun, waiting, now := uint64(s.passed), s.world.Waiting(), s.world.Now().Seconds()
	s.send(welcome{
		Type: "welcome", Protocol: ProtocolVersion, Session: name, Time: string(ses.TimeAuthority()), SimTime: &now,
		Seq: &begun, Waiting: &waiting, HeartbeatMS: r.cfg.Heartbeat.Milliseconds(), MaxMessage: r.cfg.MaxMessage,
	})
	s.serve(simSocket, s.handle, func() {}, s.follow, stopping)
}

// handle does what a message asks for.
func (s *simulation) handle(m *incoming) {
	switch m.Type {
	case "tick":
		s.tick(m)
	case "draft":
		draft := agents.EffectDraft{Kind: m.Kind, Payload: m.Payload, SourceID: m.SourceID, SchemaVersion: cmp.Or(m.SchemaVersion, agentworld.SchemaVersion)}
		s.submit(m, agents.Submission{Draft: &draft, UUID: m.UUID, Priority: int(m.Priority)})
	case "intent":
		if err := access.CheckAct(s.callers, s.name, m.AgentID); err != nil {
			s.send(rejected(refusal(agents.ErrForbidden, m, "the caller may not act as this agent")))
			return
		}
		in, err := m.intent(m.AgentID)
		if err != nil {
			s.send(fault{Type: "error", Code: faultMessage, ReqID: m.ReqID, Detail: err.Error()})
			return
		}
		s.submit(m, agents.Submission{Intent: &in})
	}
}

// refusal returns a rejection of a message.
func refusal(code agents.Code, m *incoming, reason string) *agents.Rejection {
	failure, _ := code.Failure()
	return &agents.Rejection{Code: code, Recovery: failure.Recovery, AgentID: m.AgentID, ReqID: m.ReqID, Reason: reason}
}

// submit queues a submission behind all earlier ones. Its outcome comes when it is
// decided: with the next tick, where ticks close the quanta.
func (s *simulation) submit(m *incoming, sub agents.Submission) {
	if m.SimTime != nil {
		sub.SimTime, sub.Timed = *m.SimTime, true
	}
	s.mu.Lock()
	full := s.pending >= maxPending
	if !full {
		s.pending++
	}
	s.mu.Unlock()
	if full {
		s.send(rejected(refusal(agents.ErrQueueFull, m, "too many submissions wait for a tick")))
		return
	}
	wait, refused := s.room.submit(s.ctx, s.world, place{s.name, m.AgentID}, m.ReqID, sub)
	task := func() {
		a := refused
		if a == nil {
			a = wait()
		}
		s.mu.Lock()
		s.pending--
		s.mu.Unlock()
		s.send(a)
	}
	if !s.spawn(task) {
		task()
	}
}

// maxSimTime bounds sim_time, in seconds.
const maxSimTime = float64(math.MaxInt64/int64(time.Second)) - 1

// tick lets time pass and closes the quantum. Its answer follows the effects.
func (s *simulation) tick(m *incoming) {
	tick := agentslive.Tick{SimTime: *m.SimTime, DeltaTime: m.DeltaTime, FrameNumber: m.FrameNumber, SourceID: cmp.Or(m.SourceID, "simulation")}
	if tick.SimTime > maxSimTime {
		s.send(fault{Type: "error", Code: faultTick, Detail: "/sim_time: is beyond the time that a session can have, 292 years"})
		return
	}
	var err error
	if s.ses.TimeAuthority() == session.TimeManual {
		// A tick alone moves the time of a session whose authority is a simulation.
		err = s.world.Advance(s.ctx, time.Duration(tick.SimTime*float64(time.Second)))
	}
	decided := 0
	if err == nil {
		decided, err = s.world.Tick(s.ctx, tick)
	}
	switch {
	case errors.Is(err, session.ErrTime):
		s.send(fault{Type: "error", Code: faultTick, Detail: err.Error()})
		return
	case err != nil:
		s.send(fault{Type: "error", Code: faultUnavailable, Detail: "the tick is not recorded: the store takes no entries, or the server stops"})
		return
	}
	at := tick.SimTime
	if now := s.world.Now(); s.ses.TimeAuthority() != session.TimeWall && now > time.Duration(at*float64(time.Second)) {
		at = now.Seconds() // the tick was earlier than one before it
	}
	head := s.ses.Head().Seq
	if s.reached(head) {
		s.send(ticked{Type: "ticked", SimTime: at, Decided: decided, Waiting: s.world.Waiting(), Seq: uint64(head)})
	}
}

// reached waits until the effects of all entries up to one are written. It returns false
// if the connection ended before.
func (s *simulation) reached(seq eventlog.Seq) bool {
	for {
		s.mu.Lock()
		passed, moved := s.passed, s.moved
		s.mu.Unlock()
		if passed >= seq {
			return true
		}
		select {
		case <-moved:
		case <-s.ctx.Done():
			return false
		}
	}
}

// follow sends the effects of the log. The log itself is the buffer of a slow client.
func (s *simulation) follow() {
	for e, err := range s.ses.Subscribe(s.ctx, s.passed+1) {
		if s.ctx.Err() != nil {
			return
		}
		if err != nil {
			s.end(closingOf(err))
			return
		}
		if frame, ok := effectFrame(&e); ok {
			select {
			case s.bulk <- frame:
			case <-s.ctx.Done():
				return
			}
		}
		s.mu.Lock()
		s.passed = e.Seq
		close(s.moved)
		s.moved = make(chan struct{})
		s.mu.Unlock()
	}
}

// effectFrame encodes the effect of an entry, if it has one.
func effectFrame(e *eventlog.Entry) ([]byte, bool) {
	if e.Kind != eventlog.KindEffect {
		return nil, false
	}
	r, err := session.WorldRecordOf(e)
	if err != nil || r.Word != agents.WordEffect {
		return nil, false
	}
	parsed, err := agentworld.ParseEffect(r.Value)
	if err != nil {
		return nil, false
	}
	return encode(effect{Type: "effect", Seq: uint64(e.Seq), AtMS: projection.Millis(e.At), Effect: parsed.WithRequest()}), true
}
