package eventlog

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// turns is the queue of the writers of a session.
type turns struct {
	mu      sync.Mutex
	waiting []*turn // guarded by mu; bounded by the number of callers
	leading bool    // a writer runs a round, or was told to; guarded by mu
	idle    []*turn // to be used again, at most maxRound; guarded by mu

	// joined, unless nil, is called with the length of the queue when a turn has
	// joined it. Tests set it, to know when writers wait. Guarded by mu.
	joined func(waiting int)
}

// turn is the place of one caller in the queue.
type turn struct {
	f        func(*Round)
	sync     bool      // the caller waits until its round is durable
	wake     chan bool // 1: true tells the caller to lead, false that its round was run
	commit   *commit   // of its round; nil when nothing was staged in it
	err      error     // of its round
	panicked any
	exited   bool // f ended the goroutine it ran on

	// taken says that a round will run f, withdrawn that no round may; at most one
	// of them is set. Guarded by the mu of the queue.
	taken, withdrawn bool

	// ran is set when f has run. A caller that left before waits for over, which
	// is closed then.
	ran  atomic.Bool
	over atomic.Pointer[chan struct{}]
}

// A round is bounded, so that its write is: it ends after maxRound turns, or behind
// the turn that takes it over maxRoundBytes.
const (
	maxRound      = 64
	maxRoundBytes = 1 << 20
)

// inRound runs f in a round. With sync it returns when the round is durable,
// otherwise when the store has it; in any case when ctx ends, see [Appender.Write].
// Its caller keeps the log open.
func (s *Session) inRound(ctx context.Context, f func(*Round), sync bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.turns.mu.Lock()
	var t *turn
	if n := len(s.turns.idle); n > 0 {
		t, s.turns.idle = s.turns.idle[n-1], s.turns.idle[:n-1]
	} else {
		t = &turn{wake: make(chan bool, 1)}
	}
	t.f, t.sync = f, sync
	s.turns.waiting = append(s.turns.waiting, t)
	if s.turns.joined != nil {
		s.turns.joined(len(s.turns.waiting))
	}
	lead := !s.turns.leading
	s.turns.leading = true
	s.turns.mu.Unlock()
	if ctx.Done() != nil {
		if !s.attend(ctx, t, lead) {
			return ctx.Err()
		}
	} else if lead || <-t.wake {
		s.lead()
	}
	err, c, panicked, exited := t.err, t.commit, t.panicked, t.exited
	s.turns.mu.Lock()
	if len(s.turns.idle) < maxRound {
		t.reset()
		s.turns.idle = append(s.turns.idle, t)
	}
	s.turns.mu.Unlock()
	if err == nil && sync && c != nil {
		err = c.wait(ctx, true)
	}
	switch {
	case panicked != nil:
		panic(panicked)
	case exited:
		runtime.Goexit()
	}
	return err
}

// reset makes a turn ready for another caller.
func (t *turn) reset() {
	t.f, t.sync, t.commit, t.err, t.panicked, t.exited, t.taken, t.withdrawn = nil, false, nil, nil, nil, false, false, false
	t.ran.Store(false)
	t.over.Store(nil)
}

// attend waits until the round of a turn was run, or until ctx ends: then it
// returns false, and f has run or never will. Leading can take as long as the disk
// takes, so it runs on a goroutine of its own.
func (s *Session) attend(ctx context.Context, t *turn, lead bool) bool {
	if !lead {
		select {
		case lead = <-t.wake:
			if !lead {
				return true
			}
		case <-ctx.Done():
			s.leave(t, nil)
			return false
		}
	}
	led := make(chan struct{})
	s.log.keepOpen(func() {
		defer close(led)
		s.lead()
	})
	select {
	case <-led:
		return true
	case <-ctx.Done():
		s.leave(t, led)
		return false
	}
}

// leave gives up the wait for a turn. A goroutine does what the turn owes to other
// writers: led is closed when the turn has led its round, and nil if it was not yet
// told to lead.
func (s *Session) leave(t *turn, led <-chan struct{}) {
	s.turns.mu.Lock()
	t.withdrawn = !t.taken
	if i := slices.Index(s.turns.waiting, t); led == nil && t.withdrawn && i > 0 {
		s.turns.waiting = slices.Delete(s.turns.waiting, i, i+1) // behind the leader, or the next one
		s.turns.mu.Unlock()
		return
	}
	s.turns.mu.Unlock()
	if !t.withdrawn {
		over := make(chan struct{})
		t.over.Store(&over)
		if !t.ran.Load() {
			<-over // f does not block
		}
	}
	s.log.keepOpen(func() {
		if led != nil {
			<-led
		} else if <-t.wake {
			s.lead()
		}
		if t.panicked != nil {
			s.log.cfg.Logger.Error("a writer that had left the session panicked", slog.String("session", s.name), slog.Any("panic", t.panicked))
		}
		if t.err == nil && t.commit != nil {
			<-t.commit.handed
			t.commit.sync()
		}
	})
}

// keepOpen runs f on a goroutine that Close waits for. Its caller keeps the log open
// as well.
func (l *Log) keepOpen(f func()) { l.readers.Go(f) }

// lead runs one round. Its caller's turn is the first of the round, because a leader
// was alone or at the head of the queue.
func (s *Session) lead() {
	var round [maxRound]*turn
	r := Round{session: s}
	ran := 0
	s.mu.Lock()
	s.turns.mu.Lock()
	n := copy(round[:], s.turns.waiting)
	for _, t := range round[:n] {
		t.taken = !t.withdrawn
	}
	s.turns.mu.Unlock()
	// Deferred, so that a function that ends the goroutine leaves no writer
	// waiting. The turns behind it take the next round.
	defer func() { r.end(round[:ran]) }()
	for ran < n && (ran == 0 || r.bytes < maxRoundBytes) {
		ran++
		round[ran-1].run(&r)
	}
}

// end hands the round to the store, passes the lead on, and wakes the writers of the
// round. The next round begins before this one is on the disk, so that rounds
// gather while the disk works and do not wait for it.
func (r *Round) end(ran []*turn) {
	s := r.session
	err := r.apply()
	s.mu.Unlock()
	s.turns.pass(len(ran))
	defer r.wake(ran, err)
	for _, a := range r.then {
		if err == nil {
			a.turn.guard(a.f)
		}
	}
}

// pass removes the turns of a round from the queue, and lets the next one lead.
func (q *turns) pass(ran int) {
	q.mu.Lock()
	rest := copy(q.waiting, q.waiting[ran:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	for _, t := range q.waiting[:min(rest, maxRound)] {
		t.taken = false // the round was full before its turn
	}
	var next *turn
	if rest > 0 {
		next = q.waiting[0]
	} else {
		q.leading = false
	}
	q.mu.Unlock()
	if next != nil {
		next.wake <- true
	}
}

// wake wakes the writers of a round, whose first turn is the leader's. A writer that
// waits for the disk is woken once, when the round is durable, and not for each of
// the two waits. A turn that was woken belongs to its caller again.
func (r *Round) wake(ran []*turn, err error) {
	leader := ran[0]
	leader.err, leader.commit = err, r.commit
	late := ran[:0]
	for _, t := range ran[1:] {
		t.err, t.commit = err, r.commit
		if t.sync {
			late = append(late, t)
		} else {
			t.wake <- false
		}
	}
	if leader.sync && err == nil && r.commit != nil {
		r.commit.sync()
		<-r.commit.done
	}
	for _, t := range late {
		t.wake <- false
	}
}

func (t *turn) run(r *Round) {
	if !t.taken {
		return // its caller gave up
	}
	r.running = t
	t.guard(func() { t.f(r) })
	t.ran.Store(true)
	if over := t.over.Load(); over != nil {
		close(*over)
	}
}

// guard keeps a panic for the goroutine of the turn's caller.
func (t *turn) guard(f func()) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			t.panicked = p
		} else if !returned {
			t.exited = true
		}
	}()
	f()
	returned = true
}
