package eventlog

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// turns is the queue of the writers of a session. One goroutine of the log at a time
// leads: it takes the queue, runs the functions of the turns one after the other, and
// hands their batches to the store as one round. The goroutines of writers only wait.
//
// A round that some writer waits for is in flight until it is durable and its writers
// have had the chance to append again. Until then the queue gathers, because a round
// shares one sync and many small rounds cost more processor time than one: only a full
// round begins while one is in flight, and none while maxInFlight rounds are. A turn that
// does not wait for the disk is never held back by it.
type turns struct {
	mu       sync.Mutex
	waiting  []*turn // guarded by mu; bounded by the number of callers
	hasty    int     // of waiting: those that do not wait for the disk; guarded by mu
	running  int     // turns that the leader has taken; guarded by mu
	leading  bool    // a goroutine leads, or was told to; guarded by mu
	inFlight int     // guarded by mu

	// joined, unless nil, is called with the number of running and waiting turns when a
	// turn has joined them. Tests set it, to know when writers wait. Guarded by mu.
	joined func(waiting int)
}

// A round is bounded, so that its write is: it ends after maxRound turns, or behind
// the turn that takes it over maxRoundBytes. Of two rounds in flight one is synced, and
// the other is queued in the store behind it.
const (
	maxRound      = 256
	maxRoundBytes = 1 << 20
	maxInFlight   = 2
)

// turn is the place of one caller in the queue. The leader owns it from the state
// running on, and the caller from wake on.
type turn struct {
	f     func(*Round) (*Ticket, error) // nil: batch is staged
	batch Batch
	sync  bool // the caller waits until its round is durable

	state atomic.Int32
	over  atomic.Pointer[chan struct{}] // of a caller that left, closed when f has run
	wake  chan struct{}                 // 1: the turn is over, and its outcome is in the fields below

	ticket   *Ticket
	refused  error // of f
	err      error // of the round
	panicked any
	exited   bool // f ended the goroutine it ran on
}

// The states of a turn. Leader and caller move it on by compare-and-swap, so that a
// function runs or its caller has left, never both.
const (
	turnWaits  = iota
	turnRuns   // the leader runs its function
	turnRan    // and has run it
	turnOver   // the caller is woken, or will be at once
	turnIsLeft // the caller has left: before the function ran, which then never does, or after
)

// newTurn returns a turn that is to be recycled.
func (l *Log) newTurn() *turn {
	if t, ok := l.idleTurns.Get().(*turn); ok {
		return t
	}
	return &turn{wake: make(chan struct{}, 1)}
}

// recycle makes a turn ready for another caller.
func (l *Log) recycle(t *turn) {
	t.f, t.batch, t.sync, t.ticket, t.refused, t.err, t.panicked, t.exited = nil, Batch{}, false, nil, nil, nil, nil, false
	t.state.Store(turnWaits)
	t.over.Store(nil)
	l.idleTurns.Put(t)
}

// inRound runs f in a round, or stages b where f is nil. With sync it returns when the
// round is durable, otherwise when the store has it; in any case when ctx ends, see
// [Appender.Write]. Its caller keeps the log open.
func (s *Session) inRound(ctx context.Context, f func(*Round) (*Ticket, error), b Batch, sync bool) (*Ticket, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := s.log.newTurn()
	t.f, t.batch, t.sync = f, b, sync
	if s.turns.join(t) {
		s.log.lead(s)
	}
	if end := ctx.Done(); end == nil {
		<-t.wake
	} else {
		select {
		case <-t.wake:
		case <-end:
			if !s.leave(t) {
				return nil, ctx.Err()
			}
		}
	}
	ticket, refused, err, panicked, exited := t.ticket, t.refused, t.err, t.panicked, t.exited
	s.log.recycle(t)
	switch {
	case panicked != nil:
		panic(panicked)
	case exited:
		runtime.Goexit()
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, err
	}
	return ticket, nil
}

// leave gives up the wait for a turn. It returns true if the turn is over, so that its
// outcome counts; otherwise the turn belongs to the leader from now on, and its function
// has run or never will.
func (s *Session) leave(t *turn) (over bool) {
	if t.state.CompareAndSwap(turnWaits, turnIsLeft) {
		s.turns.remove(t)
		return false
	}
	ran := make(chan struct{})
	t.over.Store(&ran)
	if t.state.Load() == turnRuns {
		<-ran // f does not block
	}
	if t.state.CompareAndSwap(turnRan, turnIsLeft) {
		return false
	}
	<-t.wake
	return true
}

// join adds a turn to the queue. It reports whether the caller has to have a round led.
func (q *turns) join(t *turn) (lead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, t)
	q.count(t, 1)
	if q.joined != nil {
		q.joined(q.running + len(q.waiting))
	}
	return q.claim()
}

// claim takes the lead if a round is to begin. Called with mu held.
func (q *turns) claim() bool {
	full := len(q.waiting) >= maxRound && q.inFlight < maxInFlight
	if q.leading || len(q.waiting) == 0 || q.inFlight > 0 && q.hasty == 0 && !full {
		return false
	}
	q.leading = true
	return true
}

// remove takes a turn whose caller has left out of the queue, unless the leader has it.
func (q *turns) remove(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.count(t, -1)
	}
}

// count moves the number of hasty turns by n if t is one. Called with mu held.
func (q *turns) count(t *turn, n int) {
	if !t.sync {
		q.hasty += n
	}
}

// take moves the turns of the next round from the queue to round.
func (q *turns) take(round []*turn) []*turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(round, q.waiting)
	q.waiting = slices.Delete(q.waiting, 0, n)
	for _, t := range round[:n] {
		q.count(t, -1)
	}
	q.running = n
	return round[:n]
}

// pass ends the lead. The turns that the round did not reach go back to the head of the
// queue. flies says that the round is in flight now. It reports whether the caller has
// to have the next round led.
func (q *turns) pass(rest []*turn, flies bool) (lead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest = slices.DeleteFunc(rest, func(t *turn) bool { return t.state.Load() == turnIsLeft })
	for _, t := range rest {
		q.count(t, 1)
	}
	q.waiting = slices.Insert(q.waiting, 0, rest...)
	q.running, q.leading = 0, false
	if flies {
		q.inFlight++
	}
	return q.claim()
}

// gather lets the writers that a round has woken reach the queue before the round
// counts as landed, so that those that append again share the next round. It yields to
// the goroutines that can run, until as many turns have joined as were woken or a yield
// has brought none: no time is waited for writers that do something else.
func (q *turns) gather(woken int) {
	n := q.queued()
	for most := min(n+woken, maxRound); n < most; {
		runtime.Gosched()
		before := n
		if n = q.queued(); n <= before {
			return
		}
	}
}

func (q *turns) queued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// land ends the flight of a round. It reports whether the caller has to lead the next
// one.
func (q *turns) land() (lead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	return q.claim()
}

// keepOpen runs f on a goroutine that Close waits for. Its caller keeps the log open
// as well.
func (l *Log) keepOpen(f func()) { l.readers.Go(f) }

// maxIdleLeaders bounds the goroutines that wait for a round to lead.
const maxIdleLeaders = 16

// lead has a goroutine of the log lead the next round of s. Its caller has claimed the
// lead and keeps the log open. The goroutines are kept, because a new one would grow its
// stack in each round.
func (l *Log) lead(s *Session) {
	l.readers.Add(1)
	select {
	case l.rounds <- s:
	default:
		l.leaders.Go(func() {
			for ok := true; ok; {
				l.leadAll(s)
				s = nil // an idle leader keeps no session alive
				s, ok = l.nextRound()
			}
		})
	}
}

// leadAll leads rounds of s as long as it has to.
func (l *Log) leadAll(s *Session) {
	defer l.readers.Done()
	for s.lead() {
	}
}

// nextRound waits for a session that needs a leader. It returns false when there are
// enough goroutines that do, or when the log closes.
func (l *Log) nextRound() (*Session, bool) {
	defer l.idleLeaders.Add(-1)
	if l.idleLeaders.Add(1) > maxIdleLeaders {
		return nil, false
	}
	select {
	case s := <-l.rounds:
		return s, true
	case <-l.done:
		return nil, false
	}
}

// lead runs one round, waits for the disk where a writer of the round does, and wakes
// the writers. It reports whether its caller has to lead another one.
func (s *Session) lead() (more bool) {
	var places [maxRound]*turn
	r := Round{session: s}
	s.mu.Lock()
	round := s.turns.take(places[:])
	ran := 0
	// Deferred, so that a function that ends the goroutine leaves no writer waiting.
	// The turns behind it take the next round.
	defer func() {
		if r.flies && s.turns.land() {
			if more = !r.exited; !more {
				s.log.lead(s) // this goroutine ends
			}
		}
	}()
	defer func() { r.end(round[:ran], round[ran:]) }()
	for ran < len(round) && (ran == 0 || r.bytes < maxRoundBytes) {
		ran++
		r.run(round[ran-1])
	}
	return false
}

// end hands the round to the store, passes the lead on, and wakes the writers of the
// round. The next round may begin before this one is on the disk.
func (r *Round) end(ran, rest []*turn) {
	s := r.session
	err := r.apply()
	if err == nil && r.commit != nil {
		r.flies = slices.ContainsFunc(ran, func(t *turn) bool { return t.sync })
	}
	s.mu.Unlock()
	if s.turns.pass(rest, r.flies) {
		s.log.lead(s)
	}
	defer r.wake(ran, err)
	for _, a := range r.then {
		if err == nil {
			r.guard(a.turn, a.f)
		}
	}
}

// wake wakes the writers of a round: those that do not wait for the disk at once, the
// others when the round is durable.
func (r *Round) wake(ran []*turn, err error) {
	abandoned := false
	late := ran[:0]
	for _, t := range ran {
		if t.sync && r.flies {
			late = append(late, t)
		} else if !r.finish(t, err) {
			abandoned = true
		}
	}
	if err == nil && r.commit != nil && (r.flies || abandoned) {
		r.commit.sync()
		<-r.commit.done
		err = r.commit.err
	}
	for _, t := range late {
		r.finish(t, err)
	}
	if r.flies {
		r.session.turns.gather(len(late))
	}
}

// finish gives a turn back to its caller. It returns false if the caller has left.
func (r *Round) finish(t *turn, err error) bool {
	t.err = err
	if t.state.CompareAndSwap(turnRan, turnOver) {
		t.wake <- struct{}{}
		return true
	}
	if t.panicked != nil {
		r.session.log.cfg.Logger.Error("a writer that had left the session panicked", slog.String("session", r.session.name), slog.Any("panic", t.panicked))
	}
	return false
}

// run runs the function of a turn, unless its caller has left.
func (r *Round) run(t *turn) {
	if !t.state.CompareAndSwap(turnWaits, turnRuns) {
		return
	}
	r.running = t
	defer func() {
		t.state.Store(turnRan)
		if over := t.over.Load(); over != nil {
			close(*over)
		}
	}()
	if t.f == nil {
		t.ticket, t.refused = r.Stage(t.batch)
		return
	}
	r.guard(t, func() { t.ticket, t.refused = t.f(r) })
}

// guard keeps a panic for the goroutine of the turn's caller.
func (r *Round) guard(t *turn, f func()) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			t.panicked = p
		} else if !returned {
			t.exited, r.exited = true, true
		}
	}()
	f()
	returned = true
}
