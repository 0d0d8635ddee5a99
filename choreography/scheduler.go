package choreography

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// Scheduler moves performances through session time. It is for one goroutine
// at a time.
type Scheduler struct {
	registry Registry
	sink     CommandSink
	now      int64

	// active holds every performance that has not ended, in creation order;
	// byCorrelation those that can be interrupted, in the same order, linked
	// through nextCorrelated; due is a heap of them all.
	first, last   *performance
	active        int
	created       uint64
	byCorrelation map[string]*correlated
	due           dueHeap

	spare []*performance // ended ones, to be used again
}

// correlated is the chain of active performances with one correlation id.
type correlated struct{ first, last *performance }

// maxSpare bounds how many ended performances are kept for use again.
const maxSpare = 64

// performance is one running definition, or one running handler.
type performance struct {
	seq     uint64 // of the signal that made it, the first half of its id
	index   uint32 // the second half, from 1
	slot    int32  // its definition in the registry
	handler bool
	def     *Definition
	cue     *cue  // what its references mean
	began   int64 // the instant of the signal that made it
	order   uint64
	due     int64 // when something happens next
	heapPos int
	id      string // built for the first command
	root    cursor

	prev, next                         *performance
	chain                              *correlated // nil: cannot be interrupted
	previousCorrelated, nextCorrelated *performance
}

// cue is what a performance needs of its signal: copied, so that the caller
// may use the signal's memory again, and shared by all performances of it.
type cue struct {
	seq           uint64
	resolver      Resolver
	correlationID string
	correlated    bool

	numbered bool // while a state is written
	number   uint32
}

// NewScheduler returns a scheduler without definitions at session time 0.
func NewScheduler() *Scheduler {
	return &Scheduler{byCorrelation: make(map[string]*correlated)}
}

// Define brings d into force, for signals from now on. What is no declaration
// of this package is ignored. The error says what d refers to that is not in
// force; nothing has changed then.
func (s *Scheduler) Define(d Declaration) error {
	if d, ok := d.(*Definition); ok {
		s.registry.Add(d)
	}
	return nil
}

// Catalog returns what is in force by name.
func (s *Scheduler) Catalog() *Catalog { return &Catalog{} }

// Observe has o told of every boundary from now on, and conditions ask w; both
// may be nil.
func (s *Scheduler) Observe(o Observer, w World) {}

// Registry returns the definitions in force. Use [Scheduler.Define] to add one.
func (s *Scheduler) Registry() *Registry { return &s.registry }

// SetSink has commands told to sink from now on. With nil, which is how a
// scheduler begins, no command is built at all.
func (s *Scheduler) SetSink(sink CommandSink) { s.sink = sink }

// Now returns the session time that was reached.
func (s *Scheduler) Now() time.Duration { return time.Duration(s.now) }

// Active returns how many performances have not ended.
func (s *Scheduler) Active() int { return s.active }

// Next returns the next instant at which a performance does something besides
// updates; false when none ever will. It is not before [Scheduler.Now].
func (s *Scheduler) Next() (at time.Duration, ok bool) {
	if len(s.due) == 0 {
		return 0, false
	}
	return time.Duration(s.due[0].due), true
}

// Signal hands over a signal at the present session time. Definitions that
// match make performances p-<seq>-1, p-<seq>-2, … in order; one that
// interrupts first ends the performances with the signal's correlation id, the
// only commands that are sent at once. Steps begin with the next
// [Scheduler.Advance], even one by no time at all.
//
// Nothing of sig is kept.
func (s *Scheduler) Signal(seq uint64, sig *signal.Signal) {
	slots := s.registry.byType[sig.Type]
	if len(slots) == 0 {
		return
	}
	var (
		resolver = Resolver{Type: sig.Type, Payload: sig.Payload}
		made     uint32
		own      *cue
	)
	for _, slot := range slots {
		d := s.registry.all[slot]
		if !d.when.matches(resolver) {
			continue
		}
		if d.interrupts && sig.CorrelationID != nil {
			made = s.interrupt(seq, made, *sig.CorrelationID, sig.Type)
		}
		if own == nil {
			own = s.newCue(seq, d.on, sig)
		}
		made++
		s.add(performance{seq: seq, index: made, slot: slot, cue: own, began: s.now, due: s.now}, d)
	}
}

// newCue copies what performances need of sig. Typ equals the signal's type, but
// belongs to the definition and so needs no copy.
func (s *Scheduler) newCue(seq uint64, typ string, sig *signal.Signal) *cue {
	c := &cue{seq: seq, resolver: Resolver{Type: typ}}
	if sig.Payload.Kind() == signal.KindObject {
		c.resolver.Payload = slices.Clone(sig.Payload)
	}
	if id := sig.CorrelationID; id != nil {
		c.correlated = true
		if chain := s.byCorrelation[*id]; chain != nil {
			c.correlationID = chain.first.cue.correlationID
		} else {
			c.correlationID = strings.Clone(*id)
		}
	}
	return c
}

// interrupt ends the performances of a correlation id and makes their handlers'
// performances. It returns how many performances the signal has made.
func (s *Scheduler) interrupt(seq uint64, made uint32, correlationID, by string) uint32 {
	chain := s.byCorrelation[correlationID]
	if chain == nil {
		return made
	}
	for p := chain.first; p != nil; {
		// Handlers carry no correlation id, so the chain only shrinks here.
		next := p.nextCorrelated
		if s.sink != nil {
			s.sink.OnInterrupt(Interrupt{
				At: time.Duration(s.now), PerformanceID: p.ID(),
				CorrelationID: p.cue.correlationID, InterruptedBy: by,
			})
		}
		handler := performance{seq: seq, slot: p.slot, handler: true, cue: p.cue, began: s.now, due: s.now}
		def := p.def
		s.due.remove(p)
		s.remove(p)
		if def.handler.first < def.handler.end {
			made++
			handler.index = made
			s.add(handler, def)
		}
		p = next
	}
	return made
}

// add makes a performance like p the newest one.
func (s *Scheduler) add(like performance, d *Definition) {
	p := new(performance)
	if n := len(s.spare); n > 0 {
		p, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	kids := p.root.kids
	*p = like
	p.def = d
	main := d.main
	if p.handler {
		main = d.handler
	}
	p.root = cursor{node: main.first, end: main.end, kids: kids}
	s.enlist(p)
	s.due.push(p)
}

// enlist puts p at the end of the lists, but not on the heap.
func (s *Scheduler) enlist(p *performance) {
	s.created++
	p.order = s.created
	s.active++
	p.prev = s.last
	if s.last != nil {
		s.last.next = p
	} else {
		s.first = p
	}
	s.last = p
	if p.handler || !p.cue.correlated {
		return
	}
	chain := s.byCorrelation[p.cue.correlationID]
	if chain == nil {
		chain = new(correlated)
		s.byCorrelation[p.cue.correlationID] = chain
	}
	p.chain = chain
	p.previousCorrelated = chain.last
	if chain.last != nil {
		chain.last.nextCorrelated = p
	} else {
		chain.first = p
	}
	chain.last = p
}

// remove takes p, which is off the heap already, out of the lists.
func (s *Scheduler) remove(p *performance) {
	s.active--
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		s.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		s.last = p.prev
	}
	if c := p.chain; c != nil {
		if p.previousCorrelated != nil {
			p.previousCorrelated.nextCorrelated = p.nextCorrelated
		} else {
			c.first = p.nextCorrelated
		}
		if p.nextCorrelated != nil {
			p.nextCorrelated.previousCorrelated = p.previousCorrelated
		} else {
			c.last = p.previousCorrelated
		}
		if c.first == nil {
			delete(s.byCorrelation, p.cue.correlationID)
		}
	}
	kids := p.root.kids
	if cap(kids) > maxSpare {
		kids = nil
	}
	*p = performance{root: cursor{kids: kids}}
	if len(s.spare) < maxSpare {
		s.spare = append(s.spare, p)
	}
}

// Advance moves session time on to an instant and does everything that is due
// up to and including it, in time order. Then, if there is a sink, it sends one
// update for each animation that is still running. Session time never goes
// back: an earlier instant stands for the present one.
func (s *Scheduler) Advance(to time.Duration) {
	end := max(int64(to), s.now)
	for len(s.due) > 0 {
		p := s.due[0]
		if p.due > end || p.due == end && s.sink != nil {
			break
		}
		s.now = p.due
		if s.run(p, false) {
			s.due.remove(p)
			s.remove(p)
		} else {
			s.due.fix(p)
		}
	}
	s.now = end
	if s.sink == nil {
		return
	}
	// What is due at the end and the updates go together, performance by
	// performance, so that one's complete, start and update are not torn apart.
	for p := s.first; p != nil; {
		next := p.next
		before := p.due
		switch done := s.run(p, true); {
		case done:
			s.due.remove(p)
			s.remove(p)
		case p.due != before:
			s.due.fix(p)
		}
		p = next
	}
}

// saturate adds without going round.
func saturate[T ~int64](a, b T) T {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// dueHeap is a binary heap of performances: the earliest first, of equal ones
// the one made first.
type dueHeap []*performance

func (h dueHeap) less(i, j int) bool {
	a, b := h[i], h[j]
	return a.due < b.due || a.due == b.due && a.order < b.order
}

func (h dueHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapPos, h[j].heapPos = i, j
}

func (h *dueHeap) push(p *performance) {
	p.heapPos = len(*h)
	*h = append(*h, p)
	h.up(p.heapPos)
}

func (h *dueHeap) remove(p *performance) {
	i, n := p.heapPos, len(*h)-1
	if i != n {
		h.swap(i, n)
	}
	(*h)[n] = nil
	*h = (*h)[:n]
	if i != n {
		h.down(i)
		h.up(i)
	}
}

// fix restores the order after p.due changed.
func (h dueHeap) fix(p *performance) {
	h.down(p.heapPos)
	h.up(p.heapPos)
}

func (h dueHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h dueHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h.less(right, child) {
			child = right
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
