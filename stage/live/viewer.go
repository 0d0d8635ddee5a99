package live

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
)

// viewer is the loop of one attached sink, with a fold of its own that follows the log.
// Everything but the reader belongs to the sink's goroutine.
type viewer struct {
	cfg      *Config
	writer   *writer.Writer
	renderer renderer
	rate     int
	from     *replay.Moment // where the viewer begins; nil for the present

	begun   chan begun          // holds one: the fold at which the reader begins
	entries chan eventlog.Entry // closed by the reader after an error
	failed  chan error          // holds one: that error, written before entries is closed
	close   context.CancelFunc  // ends the reader

	applied atomic.Uint64 // the newest entry of fold; read by other goroutines

	fold         *projection.Fold
	state        *session.State
	performances *session.Performances

	attached time.Time     // by the wall clock: when the sink was attached
	present  time.Duration // the session time of that instant

	clock *FrameClock   // session time by the wall clock, or else time since the sink was attached
	wall  bool          // clock is session time
	free  time.Duration // by the clock: the earliest instant of the next frame, by the rate
	dirty bool          // something has happened since the last frame
	since int           // entries since the last frame

	wake   chan struct{} // closed when the timer fires; nil while none runs
	stop   func() bool   // stops the timer
	wakeAt time.Duration // by the clock: when it fires
}

// begun is the fold that a viewer begins with, or the error of making it.
type begun struct {
	fold *projection.Fold
	err  error
}

// renderer is a kind of sink. Only draw calls the sink at a frame. Between frames, while
// the fold applies entries, a command sink gets all commands but updates.
type renderer interface {
	// begin prepares for the states of a fold.
	begin(v *viewer)
	// draw advances the fold to an instant, not before its own, and shows it.
	draw(f *projection.Fold, at time.Duration)
	// moving reports whether another frame would differ although nothing has
	// begun or ended.
	moving() bool
	// canSkipFrames reports whether frames can be left out for as long as entries
	// come without a pause.
	canSkipFrames() bool
}

// maxPendingEntries bounds the entries between two frames that are due, for a renderer
// that shows only frames: without a bound a steady stream of entries would starve it.
const maxPendingEntries = 1024

// view runs until ctx or the engine ends, which is not an error, or the session is deleted.
func (v *viewer) view(ctx context.Context) error {
	defer v.close()
	err := v.begin(ctx)
	if err == nil {
		v.fold.Advance(v.present) // the boundaries up to here are past and not sent
		v.renderer.begin(v)
		defer v.disarm()
		err = v.run(ctx)
	}
	if ctx.Err() != nil || v.writer.Context().Err() != nil {
		return v.writer.Deleted()
	}
	return err
}

// follow begins to read the log from its present head on, in the reader's goroutine.
// Closing the engine waits for the reader and not for the sink, so that a sink that never
// returns does not keep the log open. It returns false if the engine has closed. The
// channel of entries is short, because the log is the buffer: it only lets the reader
// work while the sink does.
func (v *viewer) follow(ctx context.Context) bool {
	v.begun, v.entries, v.failed = make(chan begun, 1), make(chan eventlog.Entry, 64), make(chan error, 1)
	ctx, v.close = context.WithCancel(ctx)
	v.attached = v.cfg.Now()
	begin := replay.Moment{Seq: v.writer.Head().Seq} // read before the goroutine starts: the viewer begins here
	if v.from != nil {
		begin = *v.from
	}
	v.applied.Store(uint64(begin.Seq))
	return v.writer.Go(func(live context.Context) {
		defer context.AfterFunc(live, v.close)()
		fold, err := v.foldAt(ctx, begin)
		if v.begun <- (begun{fold, err}); err != nil {
			return
		}
		for e, err := range v.writer.Follow(ctx, begin.Seq+1) {
			if err != nil {
				v.failed <- err
				close(v.entries)
				return
			}
			select {
			case v.entries <- e:
			case <-ctx.Done():
				return
			}
		}
	})
}

// foldAt returns the fold to begin with. That of the present is not advanced: its time is
// that of the newest entry.
func (v *viewer) foldAt(ctx context.Context, m replay.Moment) (*projection.Fold, error) {
	if v.from == nil {
		return v.writer.Replay().Fold(ctx, m.Seq)
	}
	return v.writer.Replay().At(ctx, m)
}

// begin waits for the fold to begin with.
func (v *viewer) begin(ctx context.Context) error {
	var b begun
	select {
	case b = <-v.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.err != nil {
		return b.err
	}
	v.fold = b.fold
	var isSession, isPerformances bool
	v.state, isSession = v.fold.State(session.ProjectionSession).(*session.State)
	v.performances, isPerformances = v.fold.State(session.ProjectionPerformances).(*session.Performances)
	if !isSession || !isPerformances {
		return errors.New("sajou: the projections lack the session or its performances")
	}
	v.clock = &FrameClock{begin: v.cfg.Now(), frame: time.Second / time.Duration(v.rate), now: v.cfg.Now, after: v.cfg.AfterFunc}
	v.readOrigin()
	v.present = v.fold.At()
	if v.wall && v.from == nil {
		// Entries that follow the head of the fold are of this time or later.
		v.present = max(v.present, v.attached.Sub(v.clock.begin))
	}
	return nil
}

func (v *viewer) run(ctx context.Context) error {
	// take applies an entry. After the last one it brings the fold up to date and
	// returns the reader's error.
	take := func(e eventlog.Entry, ok bool) error {
		if !ok {
			v.fold.Advance(v.fold.At())
			return <-v.failed
		}
		return v.apply(e)
	}
	for {
		for more := true; more; {
			select {
			case e, ok := <-v.entries:
				if err := take(e, ok); err != nil {
					return err
				}
				more = v.since%maxPendingEntries != 0
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
		case e, ok := <-v.entries:
			if err := take(e, ok); err != nil {
				return err
			}
		case <-v.wake:
			v.wake = nil
		}
	}
}

func (v *viewer) apply(e eventlog.Entry) error {
	e.At = max(e.At, v.fold.At()) // a time already drawn cannot be undone; see [Attachments.Attach]
	if err := v.fold.Apply(&e); err != nil {
		return err
	}
	v.applied.Store(uint64(e.Seq))
	v.dirty = true
	v.since++
	v.readOrigin()
	return nil
}

// readOrigin makes the clock that of the session, once its first signal has set
// where session time begins.
func (v *viewer) readOrigin() {
	if t := v.state.Time(); !v.wall && t.HasOrigin {
		v.clock.begin, v.wall = time.Unix(0, t.Origin), true
	}
}

// frame draws if a frame is due, and otherwise sets the timer for the next one.
func (v *viewer) frame() (drawn bool) {
	// Entries that are already durable come first: advancing to the present would make
	// them happen later than they did.
	behind := v.fold.Head().Seq < v.writer.Head().Seq
	if behind && (v.renderer.canSkipFrames() || v.since < maxPendingEntries) {
		return false
	}
	if v.dirty {
		v.fold.Advance(v.fold.At()) // commands of the new entries are sent at once
	}
	now := v.clock.Now()
	v.free = min(v.free, v.clock.next(now)) // the wall clock may have been set back
	at, ok := v.next()
	switch {
	case !ok:
		v.disarm()
		return false
	case at > now:
		v.arm(at)
		return false
	}
	v.renderer.draw(v.fold, v.instant(now, behind))
	v.dirty, v.since = false, 0
	v.free = v.clock.next(now)
	return true
}

// next returns the instant of the next frame by the clock; false if none is due without
// a further entry.
func (v *viewer) next() (time.Duration, bool) {
	if v.dirty {
		return v.free, true
	}
	if !v.wall {
		return 0, false
	}
	if v.renderer.moving() {
		return max(v.free, v.clock.next(v.fold.At())), true
	}
	boundary, ok := v.performances.NextBoundary()
	return max(v.free, boundary), ok
}

// instant returns the session time that a frame shows: that of the fold, or the present
// if something moves without a further entry.
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
	if due || v.renderer.moving() {
		at = max(at, v.clock.last(now))
	}
	return at
}

func (v *viewer) arm(at time.Duration) {
	if v.wake != nil && v.wakeAt == at {
		return
	}
	v.disarm()
	wake := make(chan struct{})
	v.wake, v.wakeAt = wake, at
	v.stop = v.clock.wake(at, func() { close(wake) })
}

func (v *viewer) disarm() {
	if v.wake != nil {
		v.stop()
		v.wake = nil
	}
}

// commandRenderer sends commands.
type commandRenderer struct {
	commandFilter
	performances *session.Performances
}

func (l *commandRenderer) begin(v *viewer) {
	l.performances = v.performances
	l.updates = true
	l.performances.UnderWay(&l.commandFilter)
	l.updates = false
	l.performances.Perform(&l.commandFilter)
}

func (l *commandRenderer) draw(f *projection.Fold, at time.Duration) {
	l.updates = true
	f.Advance(at)
	l.updates = false
}

func (l *commandRenderer) moving() bool        { return l.performances.Moving() }
func (l *commandRenderer) canSkipFrames() bool { return true }

// commandFilter passes commands on to a sink: updates only at frames, and no command
// once the sink is to be detached.
type commandFilter struct {
	sink       choreography.CommandSink
	attachment *Attachment
	updates    bool
}

func (g *commandFilter) OnActionStart(c choreography.ActionStart) {
	if g.attachment.enter("OnActionStart", c.At) {
		g.sink.OnActionStart(c)
		g.attachment.leave()
	}
}

func (g *commandFilter) OnActionUpdate(c choreography.ActionUpdate) {
	if g.updates && g.attachment.enter("OnActionUpdate", c.At) {
		g.sink.OnActionUpdate(c)
		g.attachment.leave()
	}
}

func (g *commandFilter) OnActionComplete(c choreography.ActionComplete) {
	if g.attachment.enter("OnActionComplete", c.At) {
		g.sink.OnActionComplete(c)
		g.attachment.leave()
	}
}

func (g *commandFilter) OnActionExecute(c choreography.ActionExecute) {
	if g.attachment.enter("OnActionExecute", c.At) {
		g.sink.OnActionExecute(c)
		g.attachment.leave()
	}
}

func (g *commandFilter) OnInterrupt(c choreography.Interrupt) {
	if g.attachment.enter("OnInterrupt", c.At) {
		g.sink.OnInterrupt(c)
		g.attachment.leave()
	}
}

// frameRenderer sends frames.
type frameRenderer struct {
	sink       FrameSink
	attachment *Attachment
	stage      *stage.Stage
}

func (s *frameRenderer) begin(v *viewer) {
	s.stage = session.StageOf(v.fold)
	v.dirty = true // the present is the first frame
}

func (s *frameRenderer) draw(f *projection.Fold, at time.Duration) {
	f.Advance(at)
	if s.attachment.enter("Frame", at) {
		s.sink.Frame(s.stage.Frame())
		s.attachment.leave()
	}
}

func (s *frameRenderer) moving() bool        { return s.stage.Moving() }
func (s *frameRenderer) canSkipFrames() bool { return false }
