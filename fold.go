package sajou

import (
	"errors"
	"fmt"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// This file adapts log entries to the pure packages, which never see one.
// Live running and replay both go through it.

// The names of the projections.
const (
	// ProjectionSession is what is known of the session itself: its time,
	// and how many entries of each kind it has.
	ProjectionSession = "session"

	// ProjectionPerformances is the choreographer: the definitions in force
	// and the performances that are under way.
	ProjectionPerformances = "performances"
)

// Projections returns the projections of every session, in the order in which
// they advance.
func Projections() projection.Set { return ProjectionsWith(ProjectionConfig{}) }

// ProjectionConfig says in what a set of projections differs from that of
// [Projections]. The zero value is that one.
type ProjectionConfig struct {
	// Actions are custom actions of the stage, by name.
	Actions map[string]stage.Action

	// World is what the program adds to the agents' world.
	World agents.Options

	// Scene, unless nil, is the scene of the stage from the beginning, and
	// scenes that the log brings into force are passed over: a session seen
	// in another scene.
	Scene *scene.Scene
}

// ProjectionsWith is [Projections] with another stage. Images made with one
// configuration are not taken for those of another.
func ProjectionsWith(cfg ProjectionConfig) projection.Set {
	return projection.Set{
		{
			Name:    ProjectionSession,
			Version: 1,
			New:     func() projection.State { return &sessionState{} },
			Restore: restoreSessionState,
		},
		{
			Name:    ProjectionPerformances,
			Version: 2,
			New:     func() projection.State { return &performances{scheduler: choreography.NewScheduler()} },
			Restore: func(data []byte) (projection.State, error) {
				s, err := choreography.RestoreScheduler(data)
				if err != nil {
					return nil, err
				}
				return &performances{scheduler: s}, nil
			},
		},
		stageProjection(cfg),
		worldProjection(cfg.World),
		directorProjection(),
	}
}

// performances is the choreographer as a state.
type performances struct {
	scheduler *choreography.Scheduler

	// byID has the active performances by id, made when an expression asks for
	// one and good until the scheduler is next told something.
	byID map[string]choreography.Performance

	// signal is that of entry seq, the last that could be decoded. It points
	// into the entry, and is there for the stage, which applies the same one.
	signal signal.Signal
	seq    eventlog.Seq
}

func (p *performances) Apply(e *eventlog.Entry) {
	p.byID = nil
	switch e.Kind {
	case eventlog.KindSignal:
		var err error
		if p.signal, err = signal.Decode(e.Data); err == nil {
			p.seq = e.Seq
			p.scheduler.Signal(uint64(e.Seq), &p.signal)
		}
	case eventlog.KindDefine:
		if d, err := DeclarationOf(e); err == nil {
			// What was refused when it was to be recorded is not in the log; in
			// a log of another program's it changes nothing.
			_ = p.scheduler.Define(d)
		}
	default:
	}
}

func (p *performances) Advance(at time.Duration) {
	p.byID = nil
	p.scheduler.Advance(at)
}

func (p *performances) Append(dst []byte) []byte           { return p.scheduler.AppendState(dst) }
func (p *performances) Scheduler() *choreography.Scheduler { return p.scheduler }

// Perform makes the state send its commands to sink from now on, or to nobody
// when sink is nil. It implements [replay.Performer].
func (p *performances) Perform(sink choreography.CommandSink) { p.scheduler.SetSink(sink) }

// NextBoundary returns the instant at which the next step begins or ends. It
// implements [replay.Performer].
func (p *performances) NextBoundary() (time.Duration, bool) { return p.scheduler.Next() }

// animating reports whether an animation is running.
func (p *performances) animating() bool {
	for perf := range p.scheduler.Performances() {
		for range perf.Animations() {
			return true
		}
	}
	return false
}

// Len, Names and Member let expressions read one performance without making
// the view of all. They implement Members of package replay/where.

// Len returns the number of active performances.
func (p *performances) Len() int { return p.scheduler.Active() }

// Names returns the ids of the active performances in the order they were made.
func (p *performances) Names() []string {
	names := make([]string, 0, p.scheduler.Active())
	for perf := range p.scheduler.Performances() {
		names = append(names, perf.ID())
	}
	return names
}

// Member returns the view of one performance.
func (p *performances) Member(id string) (any, bool) {
	if p.byID == nil {
		p.byID = make(map[string]choreography.Performance, p.scheduler.Active())
		for perf := range p.scheduler.Performances() {
			p.byID[perf.ID()] = perf
		}
	}
	perf, ok := p.byID[id]
	if !ok {
		return nil, false
	}
	return PerformanceView(perf, p.scheduler.Now()), true
}

// View shows the active performances by id.
func (p *performances) View() any {
	view := make(map[string]any, p.scheduler.Active())
	for perf := range p.scheduler.Performances() {
		view[perf.ID()] = PerformanceView(perf, p.scheduler.Now())
	}
	return view
}

// PerformanceView shows one performance at session time now, for people and
// expressions: on, signal, handler, began, running, waiting, and correlationId
// if it has one. A name that it waits for is listed in waiting as an entity.
// Times are milliseconds of session time.
func PerformanceView(p choreography.Performance, now time.Duration) map[string]any {
	running, waiting := []any{}, []any{}
	for a := range p.Animations() {
		raw, eased := a.Progress(now)
		running = append(running, map[string]any{
			"action":   a.Action,
			"entity":   a.Entity,
			"params":   a.Params(),
			"easing":   a.Easing,
			"start":    projection.Millis(a.Start),
			"duration": projection.Millis(a.Duration),
			"elapsed":  projection.Millis(min(now-a.Start, a.Duration)),
			"raw":      raw,
			"progress": eased,
		})
	}
	for w := range p.Pauses() {
		kind := "wait"
		if w.Delay {
			kind = "delay"
		}
		waiting = append(waiting, map[string]any{
			"kind":   kind,
			"action": w.Action,
			"since":  projection.Millis(w.Since),
			"until":  projection.Millis(w.Until),
		})
	}
	if p.Queued {
		for name := range p.Guard() {
			waiting = append(waiting, map[string]any{
				"kind":   "guard",
				"entity": name,
				"since":  projection.Millis(p.Began),
			})
		}
	}
	view := map[string]any{
		"on":      p.On,
		"signal":  int64(p.Signal),
		"handler": p.Handler,
		"began":   projection.Millis(p.Began),
		"running": running,
		"waiting": waiting,
	}
	if p.Correlated {
		view["correlationId"] = p.CorrelationID
	}
	return view
}

// TimeAuthority says where a session's time comes from. It is recorded in the
// session's first entry.
type TimeAuthority string

// The time authorities.
const (
	// TimeWall takes the signals' own timestamps, made non-decreasing; session
	// time zero is the first signal's timestamp.
	TimeWall TimeAuthority = "wall"

	// TimeManual takes timestamps as milliseconds of session time. One that
	// goes back is refused. Time passes by entries and by [Agents.Advance]. It is
	// for tests and scenarios.
	TimeManual TimeAuthority = "manual"

	// TimeSim is [TimeManual] for a game engine: time passes by its ticks, see
	// [Agents.Tick].
	TimeSim TimeAuthority = "sim"
)

func (a TimeAuthority) valid() bool { return a == TimeWall || a == TimeManual || a == TimeSim }

// sessionTime is how a session's time runs.
type sessionTime struct {
	authority TimeAuthority // empty before the session is opened
	origin    int64         // Unix time at session time zero, ns
	hasOrigin bool
}

// sessionState is what is known of the session itself.
type sessionState struct {
	time    sessionTime
	counts  [eventlog.KindSession + 1]uint64
	flagged uint64 // signals recorded although the schema refuses them
}

func (s *sessionState) Advance(time.Duration) {}

func (s *sessionState) Apply(e *eventlog.Entry) {
	if e.Kind.Valid() {
		s.counts[e.Kind]++
	}
	switch e.Kind {
	case eventlog.KindSession:
		if authority, err := openedOf(e); err == nil && s.time.authority == "" {
			s.time.authority = authority
		} else if origin, ok := clockOf(e); ok && s.time.wantsOrigin() {
			s.time.origin, s.time.hasOrigin = origin, true
		}
	case eventlog.KindSignal:
		if regular, err := signalArity(e.Data); err != nil || !regular {
			s.flagged++
		}
		if s.time.wantsOrigin() {
			if sig, err := signal.Decode(e.Data); err == nil {
				s.time.note(&sig, e.At)
			}
		}
	default:
	}
}

// wantsOrigin reports whether the next signal with a timestamp tells when
// session time began.
func (t *sessionTime) wantsOrigin() bool { return !t.hasOrigin && t.authority == TimeWall }

// note derives when session time began from the first signal that carries a
// time.
func (t *sessionTime) note(sig *signal.Signal, at time.Duration) {
	ns, ok := sig.Timestamp.Nanos()
	if !ok || !sig.Timestamp.IsSet() || !t.wantsOrigin() {
		return
	}
	if origin := ns - int64(at); origin <= ns {
		t.origin, t.hasOrigin = origin, true
	}
}

// signalArity reports whether a signal's data has the form of one that the
// schema accepted; see package signal.
func signalArity(data []byte) (regular bool, err error) {
	n, _, err := msgp.ReadArrayHeaderBytes(data)
	return n == 7, err
}

func (s *sessionState) Append(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 4+uint32(len(s.counts)))
	dst = msgp.AppendString(dst, string(s.time.authority))
	dst = msgp.AppendBool(dst, s.time.hasOrigin)
	dst = msgp.AppendInt64(dst, s.time.origin)
	dst = msgp.AppendUint64(dst, s.flagged)
	for _, n := range s.counts {
		dst = msgp.AppendUint64(dst, n)
	}
	return dst
}

// errState answers bytes that are no session state.
var errState = errors.New("sajou: corrupt session state")

func restoreSessionState(data []byte) (projection.State, error) {
	s := &sessionState{}
	n, b, err := msgp.ReadArrayHeaderBytes(data)
	if err != nil || n != 4+uint32(len(s.counts)) {
		return nil, errState
	}
	authority, b, err := msgp.ReadStringZC(b)
	if err != nil || len(authority) > len(TimeManual) {
		return nil, errState
	}
	s.time.authority = TimeAuthority(authority)
	var errs [3]error
	s.time.hasOrigin, b, errs[0] = msgp.ReadBoolBytes(b)
	s.time.origin, b, errs[1] = msgp.ReadInt64Bytes(b)
	s.flagged, b, errs[2] = msgp.ReadUint64Bytes(b)
	if errors.Join(errs[:]...) != nil {
		return nil, errState
	}
	for i := range s.counts {
		if s.counts[i], b, err = msgp.ReadUint64Bytes(b); err != nil {
			return nil, errState
		}
	}
	if len(b) != 0 {
		return nil, errState
	}
	return s, nil
}

func (s *sessionState) View() any {
	entries := make(map[string]any, len(s.counts))
	for k := eventlog.KindSignal; k.Valid(); k++ {
		entries[k.String()] = int64(s.counts[k])
	}
	view := map[string]any{
		"time":    string(s.time.authority),
		"entries": entries,
		"flagged": int64(s.flagged),
	}
	if s.time.hasOrigin {
		// In two parts, since nanoseconds of Unix time are too many for a
		// float64, and milliseconds are not.
		const ms = int64(time.Millisecond)
		view["origin"] = float64(s.time.origin/ms) + float64(s.time.origin%ms)/float64(ms)
	}
	return view
}

// at returns the session time at which a signal takes effect, not before
// last.
func (t *sessionTime) at(sig *signal.Signal, last time.Duration) (time.Duration, error) {
	ns, ok := sig.Timestamp.Nanos()
	if !sig.Timestamp.IsSet() {
		return last, nil // only a signal recorded leniently lacks it
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("%w: timestamp %v is outside the years 1678 to 2262", ErrTime, sig.Timestamp)
	case t.authority != TimeWall:
		if ns < int64(last) {
			return 0, fmt.Errorf("%w: timestamp %v ms is before the session's %v", ErrTime, sig.Timestamp, last)
		}
		return time.Duration(ns), nil
	case !t.hasOrigin:
		return last, nil // it is the origin
	case ns > t.origin && ns-t.origin < 0:
		return 0, fmt.Errorf("%w: timestamp %v is more than 292 years after the session began", ErrTime, sig.Timestamp)
	}
	return max(last, time.Duration(ns-t.origin)), nil
}
