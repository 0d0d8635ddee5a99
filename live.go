package sajou

import (
	"context"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/stage"
)

// viewer is the loop of one attached sink: a fold of its own that follows the
// log, and what is drawn of it. Everything of it belongs to the sink's
// goroutine.
type viewer struct {
	session  *Session
	audience audience
	rate     int

	fold         *projection.Fold
	state        *sessionState
	performances *performances

	clock *Clock        // session time by the wall, or else time since the sink was attached
	wall  bool          // clock is session time
	free  time.Duration // by the clock: no frame before that
	dirty bool          // something has happened since the last frame
	since int           // entries since the last frame

	wake  chan struct{} // closed when the timer wakes; nil: none runs
	stop  func() bool   // takes the timer back
	alarm time.Duration // by the clock: when it wakes
}

// audience is a kind of sink. Draw is the only one of its methods that calls
// the sink at a frame; while the fold takes in entries, listeners are told of
// what is no update.
type audience interface {
	// begin prepares for the states of a fold.
	begin(v *viewer)
	// draw takes the fold to an instant, not before its own, and shows it.
	draw(f *projection.Fold, at time.Duration)
	// moving reports whether another frame would differ although nothing has
	// begun or ended.
	moving() bool
	// patient reports whether frames can be left out for as long as entries
	// come without a pause.
	patient() bool
}

// crowded is how many entries may come between two frames that are due, for an
// audience that sees nothing else.
const crowded = 1024

// view runs until ctx ends, which is no error.
func (v *viewer) view(ctx context.Context, head eventlog.Head) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, failed, err := v.begin(ctx, head)
	if err == nil {
		v.fold.Advance(v.fold.At()) // what the entries so far made due is not news
		v.audience.begin(v)
		defer v.disarm()
		err = v.run(ctx, entries, failed)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begin folds up to head and has a reader follow the log from there. The reader
// is a goroutine of its own, so that a sink that never returns does not keep
// the log from being closed. The channel holds a few entries only so that the
// reader runs on while the sink works; the log is the real buffer.
func (v *viewer) begin(ctx context.Context, head eventlog.Head) (<-chan eventlog.Entry, <-chan error, error) {
	e := v.session.engine
	defer e.readers.Done()
	fold, err := e.replayOf(v.session.log).Fold(ctx, head.Seq)
	if err != nil {
		return nil, nil, err
	}
	v.fold = fold
	var isSession, isPerformances bool
	v.state, isSession = fold.State(ProjectionSession).(*sessionState)
	v.performances, isPerformances = fold.State(ProjectionPerformances).(*performances)
	if !isSession || !isPerformances {
		return nil, nil, errState
	}
	v.clock = &Clock{begin: e.cfg.Now(), frame: time.Second / time.Duration(v.rate), now: e.cfg.Now, after: e.cfg.AfterFunc}
	entries := make(chan eventlog.Entry, 64)
	failed := make(chan error, 1) // one error, written once, before entries is closed
	e.readers.Go(func() {
		for e, err := range v.session.log.Follow(ctx, head.Seq+1) {
			if err != nil {
				failed <- err
				close(entries)
				return
			}
			select {
			case entries <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	return entries, failed, nil
}

func (v *viewer) run(ctx context.Context, entries <-chan eventlog.Entry, failed <-chan error) error {
	// take applies an entry, or ends with what has come when there will be no
	// more.
	take := func(e eventlog.Entry, ok bool) error {
		if !ok {
			v.fold.Advance(v.fold.At())
			return <-failed
		}
		return v.apply(e)
	}
	for {
		for more := true; more; {
			select {
			case e, ok := <-entries:
				if err := take(e, ok); err != nil {
					return err
				}
				more = v.since%crowded != 0
			default:
				more = false
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if v.frame() {
			continue
		}
		select {
		case <-ctx.Done():
		case e, ok := <-entries:
			if err := take(e, ok); err != nil {
				return err
			}
		case <-v.wake:
			v.wake = nil
		}
	}
}

func (v *viewer) apply(e eventlog.Entry) error {
	e.At = max(e.At, v.fold.At()) // a time already drawn cannot be undone; see Attach
	if err := v.fold.Apply(&e); err != nil {
		return err
	}
	v.dirty = true
	v.since++
	if !v.wall && v.state.time.hasOrigin {
		v.clock.begin, v.wall = time.Unix(0, v.state.time.origin), true
	}
	return nil
}

// frame draws if it is time to, and otherwise sets the timer for when it will
// be.
func (v *viewer) frame() (drawn bool) {
	// Entries that are durable already come first: to go on to the present
	// would have them happen later than they did.
	behind := v.fold.Head().Seq < v.session.Head().Seq
	if behind && (v.audience.patient() || v.since < crowded) {
		return false
	}
	if v.dirty {
		v.fold.Advance(v.fold.At()) // what has come shows at once, if there are commands of it
	}
	now := v.clock.Now()
	v.free = min(v.free, v.clock.next(now)) // the wall's clock may have been set back
	at, ok := v.next()
	switch {
	case !ok:
		v.disarm()
		return false
	case at > now:
		v.arm(at)
		return false
	}
	v.audience.draw(v.fold, v.instant(now, behind))
	v.dirty, v.since = false, 0
	v.free = v.clock.next(now)
	return true
}

// next returns when the next frame is to be drawn, by the clock.
func (v *viewer) next() (time.Duration, bool) {
	if v.dirty {
		return v.free, true
	}
	if !v.wall {
		return 0, false
	}
	if v.audience.moving() {
		return max(v.free, v.clock.next(v.fold.At())), true
	}
	boundary, ok := v.performances.NextBoundary()
	return max(v.free, boundary), ok
}

// instant returns the session time that a frame shows: where the fold stands,
// unless something goes on by itself.
func (v *viewer) instant(now time.Duration, behind bool) time.Duration {
	at := v.fold.At()
	if !v.wall || behind || now < at {
		return at
	}
	boundary, ok := v.performances.NextBoundary()
	due := ok && boundary <= now
	if due {
		at = max(at, boundary)
	}
	if due || v.audience.moving() {
		at = max(at, v.clock.last(now))
	}
	return at
}

func (v *viewer) arm(at time.Duration) {
	if v.wake != nil && v.alarm == at {
		return
	}
	v.disarm()
	wake := make(chan struct{})
	v.wake, v.alarm = wake, at
	v.stop = v.clock.wake(at, func() { close(wake) })
}

func (v *viewer) disarm() {
	if v.wake != nil {
		v.stop()
		v.wake = nil
	}
}

// listener is an audience of commands.
type listener struct {
	gate
	performances *performances
}

func (l *listener) begin(v *viewer) {
	l.performances = v.performances
	l.performances.Perform(&l.gate)
}

func (l *listener) draw(f *projection.Fold, at time.Duration) {
	l.updates = true
	f.Advance(at)
	l.updates = false
}

func (l *listener) moving() bool  { return l.performances.animating() }
func (l *listener) patient() bool { return true }

// gate lets the commands through to a sink: updates only at frames, and nothing
// once the sink is to be detached.
type gate struct {
	sink    choreography.CommandSink
	live    *Live
	updates bool
}

func (g *gate) OnActionStart(c choreography.ActionStart) {
	if g.live.enter("OnActionStart", c.At) {
		g.sink.OnActionStart(c)
		g.live.leave()
	}
}

func (g *gate) OnActionUpdate(c choreography.ActionUpdate) {
	if g.updates && g.live.enter("OnActionUpdate", c.At) {
		g.sink.OnActionUpdate(c)
		g.live.leave()
	}
}

func (g *gate) OnActionComplete(c choreography.ActionComplete) {
	if g.live.enter("OnActionComplete", c.At) {
		g.sink.OnActionComplete(c)
		g.live.leave()
	}
}

func (g *gate) OnActionExecute(c choreography.ActionExecute) {
	if g.live.enter("OnActionExecute", c.At) {
		g.sink.OnActionExecute(c)
		g.live.leave()
	}
}

func (g *gate) OnInterrupt(c choreography.Interrupt) {
	if g.live.enter("OnInterrupt", c.At) {
		g.sink.OnInterrupt(c)
		g.live.leave()
	}
}

// spectator is an audience of frames.
type spectator struct {
	sink  FrameSink
	live  *Live
	stage *stage.Stage
}

func (s *spectator) begin(v *viewer) {
	if st, ok := v.fold.State(ProjectionStage).(*stageState); ok {
		s.stage = st.Stage
	}
	v.dirty = true // what is seen now is the first frame
}

func (s *spectator) draw(f *projection.Fold, at time.Duration) {
	f.Advance(at)
	if s.live.enter("Frame", at) {
		s.sink.Frame(s.stage.Frame())
		s.live.leave()
	}
}

func (s *spectator) moving() bool  { return s.stage.Moving() }
func (s *spectator) patient() bool { return false }
