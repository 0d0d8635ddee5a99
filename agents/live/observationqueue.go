package live

import (
	"errors"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// ErrLeft is returned to a reader that was closed, or whose agent has left the
// world.
var ErrLeft = errors.New("sajou: the agent has left")

// delivery is a delta for one agent, with the entry that caused it.
type delivery struct {
	agents.Delivery              // in the agent's numbers
	seq             eventlog.Seq // of the entry
}

// observationQueue holds the deltas that wait for one reader. Each delta in queue
// patches the view that the one before it led to; the first one patches the view
// that the reader has, or that first gives it.
type observationQueue struct {
	agent string       // immutable
	begun eventlog.Seq // the reader gets the deltas of later entries; immutable

	mu      sync.Mutex
	queue   flow.Queue[delivery] // guarded by mu
	first   *delivery            // a full view, delivered before queue; guarded by mu
	passed  eventlog.Seq         // deltas of entries up to here are delivered, or in first; guarded by mu
	viewSeq uint64               // of the last delta that was handed out; guarded by mu
	lag     lag                  // guarded by mu
	held    bool                 // a goroutine is fetching a full view for the reader; guarded by mu
	closed  bool                 // guarded by mu

	wake broadcast // sent when next may return something else
}

// lag is the state of a reader whose queue had no room.
type lag uint8

const (
	upToDate lag = iota
	missing      // deltas are skipped until the reader has a full view
	waiting      // as missing, but the reader gets the full view only after another delta
	due          // the reader gets a full view now
)

// nextUp says what a reader waits for when nothing can be delivered now.
type nextUp struct {
	at    time.Duration
	timed bool // a delta in flight is due at that time
	whole bool // the caller must fetch a full view and call replace and release
	wake  <-chan struct{}
}

func newObservationQueue(agent string, begun eventlog.Seq, s agents.Settings) *observationQueue {
	f := &observationQueue{agent: agent, begun: begun, passed: begun}
	f.limit(s)
	return f
}

// next removes and returns the delta to deliver now, or says what to wait for.
func (f *observationQueue) next(now time.Duration) (d agents.Delivery, ok bool, up nextUp, err error) {
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
		if up.at, up.timed = f.queue.Next(); !up.timed && (f.lag == missing || f.lag == due) {
			f.held, up.whole = true, true
		}
	}
	up.wake = f.wake.wait()
	return d, false, up, nil
}

// handOut notes the delta that the reader gets. The caller holds mu.
func (f *observationQueue) handOut(n delivery) agents.Delivery {
	f.passed, f.viewSeq = max(f.passed, n.seq), n.Delta.ViewSeq
	return n.Delivery
}

// put adds a delta, or records that the queue is full. It returns the number of deltas
// that wait, and the number of those that were lost, with the reason.
func (f *observationQueue) put(n delivery) (waits, lost int, reason DropReason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case n.seq <= f.passed || f.closed:
		return f.queue.Len(), 0, 0
	case f.lag == waiting && f.queue.Len() == 0:
		f.lag = due
		f.wake.send()
		return 0, 1, DeltaReplaced
	case f.lag != upToDate:
		return f.queue.Len(), 1, DeltaReplaced // the full view will include it
	}
	switch verdict, _, _ := f.queue.Put(n.At, n); verdict {
	case flow.Queued:
	case flow.Shed:
		lost, reason = f.queue.Len()+1, DeltaShed
		f.queue.Clear() // the other deltas patch a view that the reader will not have
		f.lag = missing
	case flow.Deferred:
		lost, reason = 1, DeltaDeferred
		f.lag = missing
	case flow.Dropped:
		lost, reason = 1, DeltaDropped
		f.lag = waiting
	}
	f.wake.send()
	return f.queue.Len(), lost, reason
}

// replace puts a full view before all deltas.
func (f *observationQueue) replace(n delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first, f.passed, f.lag = &n, n.seq, upToDate
}

// release ends the fetching of a full view. If it failed, the deltas since are
// dropped: they patch that view.
func (f *observationQueue) release(whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = false
	if !whole {
		f.first, f.lag = nil, missing
		f.queue.Clear()
	}
	f.wake.send()
}

// nextAt returns the time at which the next delta in flight is due.
func (f *observationQueue) nextAt() (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first != nil {
		return f.first.At, true
	}
	return f.queue.Next()
}

// waits returns the number of deltas that wait.
func (f *observationQueue) waits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue.Len()
}

func (f *observationQueue) limit(s agents.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue.Depth, f.queue.Pressure = s.QueueDepth, s.Pressure
}

func (f *observationQueue) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.queue.Clear()
	f.first = nil
	f.wake.send()
}
