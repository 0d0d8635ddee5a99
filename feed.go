package sajou

import (
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// news is what an entry has to tell an agent.
type news struct {
	agents.Delivery
	seq  eventlog.Seq // of the entry
	anew bool         // it begins the agent's view anew: the agent was registered
}

// feed is what waits for one reader. What its queue holds are patches, each
// against what the one before led to, and the first against what the reader has, or
// what is in first.
type feed struct {
	agent string       // immutable
	begun eventlog.Seq // it is told what comes after this entry; immutable

	mu      sync.Mutex
	queue   agents.Queue[news] // guarded by mu
	first   *news              // a whole view, before everything in queue; guarded by mu
	passed  eventlog.Seq       // what came of entries up to here is told, or in first; guarded by mu
	viewSeq uint64             // of what was handed out last; guarded by mu
	behind  behind             // guarded by mu
	held    bool               // somebody gets a whole view for it; guarded by mu
	closed  bool               // guarded by mu

	wake bell // somebody should look again
}

// behind says what is with a reader for whose news there was no room.
type behind uint8

const (
	abreast behind = iota
	missing        // what comes is passed over until the reader has a whole view
	waiting        // it gets one when something else happens
	due            // it gets one now
)

// nextUp says what a reader for whom there is nothing yet has to wait for.
type nextUp struct {
	at    time.Duration
	timed bool // something is on its way, for that time
	whole bool // the reader is to be given a whole view, by who was told this: see replace
	wake  <-chan struct{}
}

func newFeed(agent string, begun eventlog.Seq, s agents.Settings) *feed {
	f := &feed{agent: agent, begun: begun, passed: begun}
	f.limit(s)
	return f
}

// next takes out what is to be told now, or says what to wait for.
func (f *feed) next(now time.Duration) (d agents.Delivery, ok bool, up nextUp, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return d, false, up, ErrLeft
	}
	switch {
	case f.held:
	case f.first != nil && f.first.At <= now:
		n := *f.first
		f.first = nil
		return f.handOut(n), true, up, nil
	case f.first != nil:
		up.at, up.timed = f.first.At, true
	default:
		if n, ok := f.queue.Get(now); ok {
			return f.handOut(n), true, up, nil
		}
		if up.at, up.timed = f.queue.Next(); !up.timed && (f.behind == missing || f.behind == due) {
			f.held, up.whole = true, true
		}
	}
	up.wake = f.wake.next()
	return d, false, up, nil
}

// handOut notes what the reader has now. Called with mu held.
func (f *feed) handOut(n news) agents.Delivery {
	f.passed, f.viewSeq = max(f.passed, n.seq), n.Delta.ViewSeq
	return n.Delivery
}

// put adds news, or notes that there is no room. It returns what waits then, and
// how many are lost in what way.
func (f *feed) put(n news) (waits, lost int, fate DeltaFate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case n.seq <= f.passed || f.closed:
		return f.queue.Len(), 0, 0
	case f.behind == waiting && f.queue.Len() == 0:
		f.behind = due
		f.wake.ring()
		return 0, 1, DeltaReplaced
	case f.behind != abreast:
		return f.queue.Len(), 1, DeltaReplaced // it will be in the whole view
	}
	switch verdict, _, _ := f.queue.Put(n.At, n); verdict {
	case agents.Queued:
	case agents.Shed:
		lost, fate = f.queue.Len()+1, DeltaShed
		f.queue.Clear() // the rest is of no use without what is gone
		f.behind = missing
	case agents.Deferred:
		lost, fate = 1, DeltaDeferred
		f.behind = missing
	case agents.Dropped:
		lost, fate = 1, DeltaDropped
		f.behind = waiting
	}
	f.wake.ring()
	return f.queue.Len(), lost, fate
}

// replace puts a whole view before everything that comes.
func (f *feed) replace(n news) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first, f.passed, f.behind = &n, n.seq, abreast
}

// release ends that somebody gets a whole view. If there is none after all, what
// has come meanwhile is of no use: it is against that view.
func (f *feed) release(whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = false
	if !whole {
		f.first, f.behind = nil, missing
		f.queue.Clear()
	}
	f.wake.ring()
}

// nextAt returns when what is on its way comes.
func (f *feed) nextAt() (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first != nil {
		return f.first.At, true
	}
	return f.queue.Next()
}

// waits returns how much waits.
func (f *feed) waits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue.Len()
}

func (f *feed) limit(s agents.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue.Depth, f.queue.Pressure = s.QueueDepth, s.Pressure
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.queue.Clear()
	f.first = nil
	f.wake.ring()
}
