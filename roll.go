package sajou

import (
	"iter"
	"slices"
	"sync"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// roll is who listens.
type roll struct {
	mu     sync.Mutex
	places map[string]*place // by agent; guarded by mu
}

// place is one agent's readers, and what they were told last.
type place struct {
	feeds  []*feed
	recent []news // the newest last
	bytes  int    // of recent, about
}

// What is kept of an agent for those who resume.
const (
	maxRecent      = 64
	maxRecentBytes = 64 << 10
)

func newRoll() roll { return roll{places: map[string]*place{}} }

// place returns the place of an agent. Called with mu held.
func (r *roll) place(id string) *place {
	p, ok := r.places[id]
	if !ok {
		p = &place{}
		r.places[id] = p
	}
	return p
}

// join adds a reader that is told what comes after an entry.
func (r *roll) join(id string, begun eventlog.Seq, s agents.Settings) *feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := newFeed(id, begun, s)
	p := r.place(id)
	p.feeds = append(p.feeds, f)
	return f
}

// resume adds a reader behind what has the view_seq, if all that came since is at
// hand and has room.
//
// An agent that is registered anew, without an effect in between, has another view
// with the same view_seq. Which of them a client has it does not say, so it goes
// on behind the first; and if that is a view that a registration began, with that
// view itself, which fits whoever gets it.
func (r *roll) resume(id string, viewSeq uint64, s agents.Settings) *feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.places[id]
	if !ok {
		return nil
	}
	i := slices.IndexFunc(p.recent, func(n news) bool { return n.Delta.ViewSeq == viewSeq })
	if i < 0 {
		return nil
	}
	begun, missed := p.recent[i].seq, p.recent[i+1:]
	if p.recent[i].anew {
		begun, missed = begun-1, p.recent[i:]
	}
	if len(missed) > s.QueueDepth {
		return nil
	}
	f := newFeed(id, begun, s)
	f.viewSeq = viewSeq
	for _, n := range missed {
		f.put(n)
	}
	p.feeds = append(p.feeds, f)
	return f
}

// tell hands news to the agent's readers.
func (r *roll) tell(world string, n news, metrics Metrics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.place(n.Agent)
	for _, f := range p.feeds {
		waits, lost, fate := f.put(n)
		if lost > 0 {
			metrics.Undelivered(world, n.Agent, fate, lost)
		}
		metrics.ObservationsWaiting(world, n.Agent, waits)
	}
	p.recent = append(p.recent, n)
	p.bytes += sizeOf(n.Delta)
	for len(p.recent) > 1 && (len(p.recent) > maxRecent || p.bytes > maxRecentBytes) {
		p.bytes -= sizeOf(p.recent[0].Delta)
		p.recent[0] = news{}
		p.recent = p.recent[1:]
	}
}

func sizeOf(d agents.Delta) int {
	n := 128
	for _, op := range d.Patches {
		n += len(op.Op) + len(op.Path) + len(op.Value) + 32
	}
	return n
}

// part ends one reader.
func (r *roll) part(f *feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.close()
	if p, ok := r.places[f.agent]; ok {
		p.feeds = slices.DeleteFunc(p.feeds, func(other *feed) bool { return other == f })
	}
}

// gone ends the readers that an agent had when it left by an entry. Those that
// begin later are of one who was registered since.
func (r *roll) gone(id string, seq eventlog.Seq) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.places[id]
	if !ok {
		return
	}
	p.recent, p.bytes = nil, 0
	p.feeds = slices.DeleteFunc(p.feeds, func(f *feed) bool {
		if f.begun >= seq {
			return false
		}
		f.close()
		return true
	})
	if len(p.feeds) == 0 {
		delete(r.places, id)
	}
}

// limit gives the readers of some agents the bounds that the settings say.
func (r *roll) limit(core *agents.Core, ids iter.Seq[string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range ids {
		p, ok := r.places[id]
		if !ok {
			continue
		}
		s, _ := core.Settings(id)
		for _, f := range p.feeds {
			f.limit(s)
		}
	}
}
