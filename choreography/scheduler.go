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
	catalog  *Catalog
	registry Registry
	sink     CommandSink
	observer Observer
	world    World
	now      int64
	round    int // of what is being done at this instant; -1 outside Advance

	// active holds every performance that has not ended, in creation order;
	// byCorrelation those that can be interrupted, in the same order, linked
	// through nextCorrelated; due is a heap of all that do not wait for a guard.
	first, last   *performance
	active        int
	created       uint64
	byCorrelation map[string]*correlated
	due           dueHeap
	gates         map[string]*gate

	// Memory to be used again, none of it with a meaning between calls.
	spare   []*performance // ended ones
	act     Act            // what the observer is lent
	asked   facts
	freed   []*gate // released, and to be settled before the call ends
	names   []string
	holders []*performance
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
	round   int   // the round of the instant due in which it has its turn
	heapPos int
	id      string // built for the first command
	root    cursor

	claims  []claim // what its guard holds
	waiting bool    // for its guard: not on the heap

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
	return &Scheduler{
		catalog: new(Catalog), round: -1,
		byCorrelation: make(map[string]*correlated), gates: make(map[string]*gate),
	}
}

// Define brings d into force, for signals from now on; one with the id of a
// definition in force replaces that. What is no declaration of this package is
// ignored. The error says what d refers to that is not in force; nothing has
// changed then.
func (s *Scheduler) Define(d Declaration) error {
	catalog, err := s.catalog.With(d)
	if err != nil {
		return err
	}
	bound, err := catalog.Bind(d)
	if err != nil {
		return err
	}
	s.catalog = catalog
	for _, d := range bound {
		s.registry.Add(d)
	}
	return nil
}

// Catalog returns what is in force by name.
func (s *Scheduler) Catalog() *Catalog { return s.catalog }

// Observe has o told of every boundary from now on, and conditions ask w; both
// may be nil. It costs no memory: what o is told is lent to it.
func (s *Scheduler) Observe(o Observer, w World) { s.observer, s.world = o, w }

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
// updates; false when none ever will. What waits for a guard does nothing before
// another performance ends. It is not before [Scheduler.Now].
func (s *Scheduler) Next() (at time.Duration, ok bool) {
	if len(s.due) == 0 {
		return 0, false
	}
	return time.Duration(s.due[0].due), true
}

// Signal hands over a signal at the present session time. Definitions that
// match make performances p-<seq>-1, p-<seq>-2, … in order; one that
// interrupts first ends the performances with the signal's correlation id, and
// one whose guard preempts ends those that hold its names: the only commands
// that are sent at once. Steps begin with the next [Scheduler.Advance], even one
// by no time at all. Names that all this leaves free go to those who wait for
// them when the last performance of the signal is made.
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
		if !d.when.matches(s.facts(resolver)) {
			continue
		}
		if d.interrupts && sig.CorrelationID != nil {
			made = s.interrupt(seq, made, *sig.CorrelationID, sig.Type)
		}
		names := d.guard.appendNames(s.names[:0], resolver.ofObject())
		s.names = names
		admitted := s.admit(names, d.guard.policy)
		if admitted == refused {
			continue
		}
		if d.guard.policy == policyPreempt {
			made = s.preempt(seq, made, names, sig.Type)
		}
		if own == nil {
			own = s.newCue(seq, d.on, sig)
		}
		made++
		p := s.add(performance{seq: seq, index: made, slot: slot, cue: own, began: s.now}, d)
		p.waiting = admitted == admittedLater
		s.claim(p, names)
		if !p.waiting {
			s.due.push(p)
		}
	}
	s.settle()
	// The names and what was asked lie in the signal's memory.
	clear(s.names[:cap(s.names)])
	s.asked = facts{}
}

// facts is what a condition asks at the present instant. It is good until the
// next call.
func (s *Scheduler) facts(r Resolver) *facts {
	s.asked = facts{signal: r, world: s.world, at: time.Duration(s.now)}
	return &s.asked
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
		made = s.stop(p, seq, made, by)
		p = next
	}
	return made
}

// stop interrupts one performance and makes its handler's. It returns how many
// performances the signal has made.
func (s *Scheduler) stop(p *performance, seq uint64, made uint32, by string) uint32 {
	if s.observer != nil {
		s.observer.Interrupted(time.Duration(s.now), p.seq, p.index)
	}
	if s.sink != nil {
		s.sink.OnInterrupt(Interrupt{
			At: time.Duration(s.now), PerformanceID: p.ID(),
			CorrelationID: p.cue.correlationID, InterruptedBy: by,
		})
	}
	handler := performance{seq: seq, slot: p.slot, handler: true, cue: p.cue, began: s.now}
	def := p.def
	if !p.waiting {
		s.due.remove(p)
	}
	s.remove(p)
	if def.handler.first < def.handler.end {
		made++
		handler.index = made
		s.due.push(s.add(handler, def))
	}
	return made
}

// add makes a performance like p the newest one, due now but not on the heap.
func (s *Scheduler) add(like performance, d *Definition) *performance {
	var p *performance
	if n := len(s.spare); n > 0 {
		p, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		p = new(performance)
	}
	kids, claims := p.root.kids, p.claims
	*p = like
	p.def, p.claims, p.due = d, claims, s.now
	main := d.main
	if p.handler {
		main = d.handler
	}
	p.root = cursor{node: main.first, end: main.end, kids: kids}
	s.enlist(p)
	return p
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

// remove takes p, which is off the heap already, out of the lists. What its
// guard held is to be settled.
func (s *Scheduler) remove(p *performance) {
	s.release(p)
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
	*p = performance{root: cursor{kids: kids}, claims: p.claims}
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
		s.now, s.round = p.due, p.round
		s.turn(p, false)
	}
	s.now = end
	if s.sink != nil {
		s.finish()
	}
	s.round, s.asked = -1, facts{}
}

// finish does what is due at the present instant, with updates. They go together,
// performance by performance, so that one's complete, start and update are not
// torn apart.
func (s *Scheduler) finish() {
	s.round = 0
	for p := s.first; p != nil; {
		next := p.next
		if !p.waiting && p.round == 0 {
			s.turn(p, true)
		}
		p = next
	}
	// What guards have let begin meanwhile.
	for len(s.due) > 0 && s.due[0].due == s.now {
		p := s.due[0]
		s.round = p.round
		s.turn(p, true)
	}
}

// turn runs p at the present instant and puts it where it then belongs.
func (s *Scheduler) turn(p *performance, updates bool) {
	before := p.due
	p.round = 0
	switch done := s.run(p, updates); {
	case done:
		s.due.remove(p)
		s.remove(p)
		s.settle()
	case p.due != before:
		s.due.fix(p)
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
// that of the earlier round, then the one made first.
type dueHeap []*performance

func (h dueHeap) less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.due != b.due:
		return a.due < b.due
	case a.round != b.round:
		return a.round < b.round
	default:
		return a.order < b.order
	}
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
