package live

import (
	"iter"
	"slices"
	"sync"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// subscribers holds the readers of each agent.
type subscribers struct {
	mu      sync.Mutex
	byAgent map[string]*subscription // by agent; guarded by mu
}

// subscription holds the readers of one agent, and its newest deltas for readers
// that resume. The lock of subscribers guards it.
type subscription struct {
	queues []*observationQueue
	recent []delivery // the newest last
	bytes  int        // approximate size of recent
}

// Bounds of the deltas of one agent that are kept for readers that resume.
const (
	maxRecent      = 64
	maxRecentBytes = 64 << 10
)

func newSubscribers() subscribers { return subscribers{byAgent: map[string]*subscription{}} }

// subscription returns the subscription of an agent. The caller holds mu.
func (r *subscribers) subscription(id string) *subscription {
	p, ok := r.byAgent[id]
	if !ok {
		p = &subscription{}
		r.byAgent[id] = p
	}
	return p
}

// join adds a reader of the deltas of entries after begun.
func (r *subscribers) join(id string, begun eventlog.Seq, s agents.Settings) *observationQueue {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := newObservationQueue(id, begun, s)
	p := r.subscription(id)
	p.queues = append(p.queues, f)
	return f
}

// resume adds a reader after the delta with the view_seq. It returns nil if the
// deltas since are not all kept, or have no room.
func (r *subscribers) resume(id string, viewSeq uint64, s agents.Settings) *observationQueue {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.byAgent[id]
	if !ok {
		return nil
	}
	i := slices.IndexFunc(p.recent, func(n delivery) bool { return n.Delta.ViewSeq == viewSeq })
	if i < 0 {
		return nil
	}
	begun, missed := p.recent[i].seq, p.recent[i+1:]
	if viewSeq == 0 { // the client has the first view or none; the first view replaces both
		begun, missed = begun-1, p.recent[i:]
	}
	if len(missed) > s.QueueDepth {
		return nil
	}
	f := newObservationQueue(id, begun, s)
	f.viewSeq = viewSeq
	for _, n := range missed {
		f.put(n)
	}
	p.queues = append(p.queues, f)
	return f
}

// deliver puts a delta into the queues of the agent's readers. metrics may be nil.
func (r *subscribers) deliver(world string, n delivery, metrics ObservationMetrics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.subscription(n.Agent)
	for _, f := range p.queues {
		waits, lost, reason := f.put(n)
		if metrics == nil {
			continue
		}
		if lost > 0 {
			metrics.Undelivered(world, n.Agent, reason, lost)
		}
		metrics.ObservationsWaiting(world, n.Agent, waits)
	}
	p.recent = append(p.recent, n)
	p.bytes += sizeOf(n.Delta)
	for len(p.recent) > 1 && (len(p.recent) > maxRecent || p.bytes > maxRecentBytes) {
		p.bytes -= sizeOf(p.recent[0].Delta)
		p.recent[0] = delivery{}
		p.recent = p.recent[1:]
	}
}

func sizeOf(d view.Delta) int {
	n := 128
	for _, op := range d.Patches {
		n += len(op.Op) + len(op.Path) + len(op.Value) + 32
	}
	return n
}

// part closes one reader.
func (r *subscribers) part(f *observationQueue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.close()
	if p, ok := r.byAgent[f.agent]; ok {
		p.queues = slices.DeleteFunc(p.queues, func(other *observationQueue) bool { return other == f })
	}
}

// gone closes the readers that an agent had when it left by an entry. A reader that
// began later belongs to a new registration.
func (r *subscribers) gone(id string, seq eventlog.Seq) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.byAgent[id]
	if !ok {
		return
	}
	p.recent, p.bytes = nil, 0
	p.queues = slices.DeleteFunc(p.queues, func(f *observationQueue) bool {
		if f.begun >= seq {
			return false
		}
		f.close()
		return true
	})
	if len(p.queues) == 0 {
		delete(r.byAgent, id)
	}
}

// limit sets the queue bounds of the readers of some agents to their present
// settings.
func (r *subscribers) limit(core *agents.Core, ids iter.Seq[string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range ids {
		p, ok := r.byAgent[id]
		if !ok {
			continue
		}
		s, _ := core.Settings(id)
		for _, f := range p.queues {
			f.limit(s)
		}
	}
}
