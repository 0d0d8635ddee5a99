package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Screen shows the states that a [Player] passes.
type Screen interface {
	// Show shows the state at a moment. It may read the fold until it returns, and must
	// not change it. It reports whether the picture differs from the one before: the
	// pause that [PlayerConfig].Idle limits is counted from the last difference. The
	// call of the player that showed the state returns the error, and the player pauses.
	Show(f *projection.Fold, m Moment) (changed bool, err error)
}

// Seeker is an optional interface of the command sink of a [Player], for a sink that
// keeps more than the actions under way.
type Seeker interface {
	// OnSeek reports a jump to m. All actions that the sink has seen begin are over,
	// without a further command. Everything that actions have left behind, such as
	// positions, is in the state f, which may be read until OnSeek returns. The actions
	// under way at m follow as commands.
	OnSeek(f *projection.Fold, m Moment)
}

// Mover is an optional interface of a state that changes while time passes, although
// nothing begins or ends.
type Mover interface {
	// Moving reports whether the state changes after the present instant.
	Moving() bool
}

// PlayerConfig configures a [Player]. The zero value plays the whole session, and
// shows nothing.
type PlayerConfig struct {
	From Moment // where playing begins

	// To is where playing ends. The zero Moment stands for the moment after the last
	// entry at which all performances have ended; see [Replay.Rest].
	To Moment

	Rate float64       // session time for one unit of clock time; 0 means 1
	Idle time.Duration // longest clock time without a change; 0 means no limit, negative no pause
	Loop bool          // begin again at From after To

	// Frame is the session time between two frames of [Player.Next]. The frames are at
	// its multiples. 0 means that Next stops only at entries.
	Frame time.Duration

	Commands choreography.CommandSink // receives the commands; nil for none
	Screen   Screen                   // shows the states; nil for none
}

// MaxStill bounds the session time after an entry in which [Player.Next] stops at
// frames. Otherwise an endless animation would fill hours without entries with frames.
const MaxStill = 5 * time.Minute

// Player plays a range of a recorded session to a sink of commands, a [Screen], or
// both. It has a position, a rate, and it plays or pauses. A new player pauses at the
// beginning of its range, and has shown it.
//
// A player reads no clock and starts no goroutine. [Player.Tick] moves it by the time
// that has passed on the caller's clock, [Player.Run] does so at every frame of a
// [choreography.Clock], and [Player.Next] moves it from frame to frame without a clock.
//
// # Commands
//
// While the position moves forward, by playing or by [Player.Step], the sink receives
// the commands on the way, at their exact times, and at the end of each call one update
// for each action under way. After a jump ([Player.Seek], a step back, a loop) the sink
// is told what is under way: a sink that implements [Seeker] has OnSeek called, any
// other one receives an Interrupt, with an empty InterruptedBy, for each performance
// that had an action under way. Then both receive an ActionStart, with the time at which
// the action began, and an ActionUpdate for each action under way at the new position.
// So after any sequence of calls the sink knows of the same actions under way as after
// playing to the position without a jump. Instant actions before the position, and
// those at exactly the position of a jump, are not repeated.
//
// The methods may be called by several goroutines. A lock is held while the sink and
// the screen are called, so these must not call the player.
type Player struct {
	r   *Replay
	cfg PlayerConfig
	end time.Duration // session time of cfg.To

	mu      sync.Mutex
	cursor  *Cursor         // guarded by mu, as all fields below
	ahead   *eventlog.Entry // the entry after the cursor; nil if unread
	rate    float64         // positive
	playing bool            // the position moves with the clock
	resumed chan struct{}   // closed, and replaced, when playing becomes true
	clock   time.Duration   // clock time of the last tick
	ticked  bool            // clock is set
	part    float64         // of a nanosecond of session time that is not played yet
	quiet   time.Duration   // clock time since the last change
	sink    playerSink      // the sink while the position moves forward
}

// NewPlayer returns a player of a range of r, paused at its beginning. It shows the
// beginning before it returns. The error is [ErrNoAddress] if the session does not have
// the range, and [*RangeError] if the range runs backwards.
func NewPlayer(ctx context.Context, r *Replay, cfg PlayerConfig) (*Player, error) {
	if cfg.To.IsZero() {
		var err error
		if cfg.To, err = r.Rest(ctx, Moment{Seq: r.Head().Seq}); err != nil {
			return nil, err
		}
	}
	if cfg.From.Compare(cfg.To) > 0 {
		return nil, backwards(cfg.From.String()+".."+cfg.To.String(), cfg.From, cfg.To)
	}
	end, err := r.timeOf(ctx, cfg.To)
	if err != nil {
		return nil, err
	}
	p := &Player{r: r, cfg: cfg, end: end, cursor: r.Cursor(), rate: 1, resumed: make(chan struct{})}
	p.sink.CommandSink = cfg.Commands
	if cfg.Rate != 0 {
		if err := p.SetRate(cfg.Rate); err != nil {
			return nil, err
		}
	}
	if err := p.Seek(ctx, cfg.From); err != nil {
		return nil, err
	}
	return p, nil
}

// PlayerState describes a player.
type PlayerState struct {
	Moment  Moment
	At      time.Duration // session time of Moment
	Rate    float64
	Playing bool
	Ended   bool // Moment is the end of the range
}

// State returns the position of p and how it plays.
func (p *Player) State() PlayerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PlayerState{p.cursor.pos, p.at(), p.rate, p.playing, p.ended()}
}

// Play makes the position move with the clock. At the end of the range the next
// [Player.Tick] begins again at From.
func (p *Player) Play() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.playing {
		p.playing, p.quiet = true, 0
		close(p.resumed)
		p.resumed = make(chan struct{})
	}
}

// Pause stops the position where it is.
func (p *Player) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause()
}

// pause forgets the clock, since the time of a pause must not count when p plays again.
func (p *Player) pause() { p.playing, p.ticked = false, false }

// SetRate sets the session time that passes for one unit of clock time. It refuses a
// rate that is not positive and finite.
func (p *Player) SetRate(rate float64) error {
	if !(rate > 0) || math.IsInf(rate, 1) {
		return fmt.Errorf("replay: rate %v: must be positive and finite", rate)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate, p.part = rate, 0
	return nil
}

// Seek jumps to m. It neither pauses nor resumes. The error is [ErrNoAddress] if m is
// not in the range or the session does not have it; then p has not moved. After any
// other error p is paused, where it was or at the beginning of the session.
func (p *Player) Seek(ctx context.Context, m Moment) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped(p.seek(ctx, m))
}

// Step pauses, and moves by n entries, but not beyond the range. Forward, the sink
// receives the commands on the way. Back, from a moment between two entries, the first
// step leads to the earlier one.
func (p *Player) Step(ctx context.Context, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause()
	pos := p.cursor.pos
	if n > 0 {
		to := p.cfg.To
		if left := to.Seq - pos.Seq; uint64(n) > uint64(left) {
			return p.forward(ctx, p.end, to.Seq) // all entries, and the time after the last
		}
		return p.forward(ctx, 0, pos.Seq+eventlog.Seq(n))
	}
	back := eventlog.Seq(-(n + 1)) + 1 // -n, also for the least int
	if pos.Offset > 0 && back > 0 {
		back--
	}
	m := Moment{Seq: pos.Seq - min(back, pos.Seq)}
	if n == 0 {
		m = pos
	}
	if m.Compare(p.cfg.From) < 0 {
		m = p.cfg.From
	}
	return p.seek(ctx, m)
}

// Tick moves p by the time since the Tick before, on the caller's clock, and shows what
// is there. It only notes the time if p pauses, or has paused since the Tick before. A
// pause of the session that is longer than [PlayerConfig].Idle is cut short.
func (p *Player) Tick(ctx context.Context, now time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Duration(0)
	if p.ticked {
		elapsed = max(now-p.clock, 0)
	}
	p.clock, p.ticked = now, true
	if !p.playing {
		return nil
	}
	return p.stopped(p.tick(ctx, elapsed))
}

func (p *Player) tick(ctx context.Context, elapsed time.Duration) error {
	if p.ended() {
		p.quiet, p.part = 0, 0
		return p.seek(ctx, p.cfg.From)
	}
	to := p.end
	whole, part := math.Modf(float64(float64(elapsed)*p.rate) + p.part)
	if whole < float64(p.end-p.at()) {
		to, p.part = p.at()+time.Duration(whole), part
	}
	changed, err := p.show(ctx, to, p.cfg.To.Seq)
	if err != nil {
		return err
	}
	p.quiet += elapsed
	// The rest of a pause that has become too long is left out.
	for !changed && !p.ended() && p.cfg.Idle != 0 && p.quiet >= max(p.cfg.Idle, 0) && !moving(p.cursor.fold) {
		next, err := p.upcoming(ctx)
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if at, ok := nextBoundary(performers(p.cursor.fold)); ok && at > p.at() {
			next = min(next, at)
		}
		if changed, err = p.show(ctx, next, p.cfg.To.Seq); err != nil {
			return err
		}
		p.part = 0
	}
	if changed {
		p.quiet = 0
	}
	if p.ended() && !p.cfg.Loop {
		p.pause()
	}
	return nil
}

// Next moves p to its next entry or frame, whichever is first, and shows it. Frames
// are at the multiples of [PlayerConfig].Frame at which something moves, begins or has
// ended, up to [MaxStill] after an entry or the beginning. Next does not wait, and does
// not need p to play. It returns false at the end of the range, and has then done
// nothing.
func (p *Player) Next(ctx context.Context) (moved bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended() {
		return false, nil
	}
	to, err := p.upcoming(ctx)
	if err != nil {
		return false, p.stopped(err)
	}
	if at, ok := p.nextFrame(); ok && at < to {
		// The cursor passes no entry before to.
		_, err = p.show(ctx, at, p.cursor.pos.Seq)
		return true, p.stopped(err)
	}
	last := min(p.cursor.pos.Seq+1, p.cfg.To.Seq)
	_, err = p.show(ctx, to, last)
	return true, p.stopped(err)
}

// Run plays p on a clock: it calls [Player.Tick] at each frame of the clock while p
// plays, and waits while p pauses. It returns nil when p reaches the end of its range
// and does not loop, and otherwise the error of ctx, of a read or of the screen.
func (p *Player) Run(ctx context.Context, clock choreography.Clock) error {
	for {
		p.mu.Lock()
		playing, resumed := p.playing, p.resumed
		p.mu.Unlock()
		if !playing {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-resumed:
			}
			p.mu.Lock()
			p.ticked = false // the clock has gone on
			p.mu.Unlock()
		}
		frame := make(chan time.Duration, 1)
		cancel := clock.RequestFrame(func(now time.Duration) { frame <- now })
		select {
		case <-ctx.Done():
			cancel()
			return ctx.Err()
		case now := <-frame:
			if err := p.Tick(ctx, now); err != nil {
				return err
			}
		}
		if s := p.State(); s.Ended && !s.Playing {
			return nil
		}
	}
}

func (p *Player) at() time.Duration { return p.cursor.base + p.cursor.pos.Offset }
func (p *Player) ended() bool       { return p.cursor.pos.Compare(p.cfg.To) >= 0 }

// stopped pauses after an error.
func (p *Player) stopped(err error) error {
	if err != nil {
		p.pause()
	}
	return err
}

// upcoming returns the session time of the next entry of the range, or of the end.
func (p *Player) upcoming(ctx context.Context) (time.Duration, error) {
	pos := p.cursor.pos
	if pos.Seq >= p.cfg.To.Seq {
		return p.end, nil
	}
	if p.ahead == nil || p.ahead.Seq != pos.Seq+1 {
		e, err := p.r.Entry(ctx, pos.Seq+1)
		if err != nil {
			return 0, err
		}
		p.ahead = &e
	}
	return p.ahead.At, nil
}

// nextFrame returns the next instant at which a frame can differ: the next multiple of
// a frame's length if something moves, otherwise the first one after a boundary.
func (p *Player) nextFrame() (time.Duration, bool) {
	step, after := p.cfg.Frame, p.at()
	if step <= 0 {
		return 0, false
	}
	if f := p.cursor.fold; !moving(f) {
		at, ok := nextBoundary(performers(f))
		if !ok {
			return 0, false
		}
		after = max(after, at-1)
	}
	since := p.cursor.base
	if from := p.cfg.From; p.cursor.pos.Seq == from.Seq {
		since += from.Offset
	}
	n := after/step + 1
	if n > math.MaxInt64/step || n*step-since > MaxStill {
		return 0, false
	}
	return n * step, true
}

// show moves forward as [Player.move] does, shows the state if it can differ, and
// reports whether anything changed.
func (p *Player) show(ctx context.Context, to time.Duration, last eventlog.Seq) (changed bool, err error) {
	p.sink.sent = 0
	before, since := p.cursor.pos.Seq, p.at()
	was := moving(p.cursor.fold)
	boundary, ok := nextBoundary(performers(p.cursor.fold))
	if err := p.move(ctx, to, last); err != nil {
		return false, err
	}
	changed = p.sink.sent > 0
	if p.cfg.Screen != nil && (was && p.at() > since || p.cursor.pos.Seq > before || ok && boundary <= p.at()) {
		differs, err := p.cfg.Screen.Show(p.cursor.fold, p.cursor.pos)
		return changed || differs, err
	}
	return changed, nil
}

// forward moves to an instant, or to entry last if that is later.
func (p *Player) forward(ctx context.Context, to time.Duration, last eventlog.Seq) error {
	if last > p.cursor.pos.Seq {
		e, err := p.r.Entry(ctx, last)
		if err != nil {
			return err
		}
		to = max(to, e.At)
	}
	_, err := p.show(ctx, to, last)
	return err
}

// move moves the cursor forward to an instant, and sends the commands on the way. It
// applies the entries up to that instant, but none after last.
func (p *Player) move(ctx context.Context, to time.Duration, last eventlog.Seq) error {
	c := p.cursor
	at, err := p.upcoming(ctx)
	if err != nil {
		return err
	}
	if p.cfg.Commands != nil {
		ps := performers(c.fold)
		perform(ps, &p.sink)
		defer perform(ps, nil)
	}
	if c.pos.Seq < last && at <= to {
		for e, err := range p.r.src.Entries(ctx, c.pos.Seq+1) {
			if err != nil {
				return fmt.Errorf("replay: read after entry %d: %w", c.pos.Seq, err)
			}
			if e.At > to || e.Seq > last {
				p.ahead = &e
				break
			}
			if err := p.r.apply(c.fold, &e, c.saw); err != nil {
				return err
			}
			c.pos, c.base = Moment{Seq: e.Seq}, e.At
		}
	}
	p.sink.updates = true
	c.fold.Advance(to)
	p.sink.updates = false
	c.pos.Offset = c.fold.At() - c.base
	return nil
}

// seek jumps to m, tells the sink what is under way there, and shows it.
func (p *Player) seek(ctx context.Context, m Moment) error {
	if m.Compare(p.cfg.From) < 0 || m.Compare(p.cfg.To) > 0 {
		return noAddress(m.String(), "the player plays from %v to %v", p.cfg.From, p.cfg.To)
	}
	var ended interrupter
	if p.cfg.Commands != nil {
		ended.at = p.at()
		underWay(p.cursor.fold, &ended)
	}
	before := p.cursor.fold
	failed := p.cursor.Seek(ctx, m)
	f := p.cursor.fold
	if failed != nil && f == before {
		return failed // the cursor has not moved
	}
	p.part, m = 0, p.cursor.pos
	if sink := p.cfg.Commands; sink != nil {
		if seeker, ok := sink.(Seeker); ok {
			seeker.OnSeek(f, m)
		} else {
			ended.send(sink)
		}
		underWay(f, sink)
	}
	if failed != nil || p.cfg.Screen == nil {
		return failed
	}
	_, err := p.cfg.Screen.Show(f, m)
	return err
}

// underWay sends sink the actions under way where a fold stands.
func underWay(f *projection.Fold, sink choreography.CommandSink) {
	for _, p := range performers(f) {
		p.UnderWay(sink)
	}
}

// moving reports whether a state of f changes although nothing begins or ends.
func moving(f *projection.Fold) bool {
	for _, st := range f.States() {
		if m, ok := st.(Mover); ok && m.Moving() {
			return true
		}
	}
	return false
}

// playerSink passes commands on and counts them. It drops the updates that a fold
// sends at entries: those of the position follow.
type playerSink struct {
	choreography.CommandSink

	updates bool
	sent    int
}

func (s *playerSink) OnActionStart(c choreography.ActionStart) {
	s.sent++
	s.CommandSink.OnActionStart(c)
}

func (s *playerSink) OnActionUpdate(c choreography.ActionUpdate) {
	if s.updates {
		s.sent++
		s.CommandSink.OnActionUpdate(c)
	}
}

func (s *playerSink) OnActionComplete(c choreography.ActionComplete) {
	s.sent++
	s.CommandSink.OnActionComplete(c)
}

func (s *playerSink) OnActionExecute(c choreography.ActionExecute) {
	s.sent++
	s.CommandSink.OnActionExecute(c)
}

func (s *playerSink) OnInterrupt(c choreography.Interrupt) {
	s.sent++
	s.CommandSink.OnInterrupt(c)
}

// interrupter collects the performances with actions under way, in order.
type interrupter struct {
	commandCounter

	at   time.Duration
	list []string
	seen map[string]bool
}

func (s *interrupter) OnActionStart(c choreography.ActionStart) {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if !s.seen[c.PerformanceID] {
		s.seen[c.PerformanceID] = true
		s.list = append(s.list, c.PerformanceID)
	}
}

// send ends the collected performances for a sink.
func (s *interrupter) send(sink choreography.CommandSink) {
	for _, id := range s.list {
		sink.OnInterrupt(choreography.Interrupt{At: s.at, PerformanceID: id})
	}
}
