package choreography

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// MaxUnderWay bounds the work in progress in one session: one for each performance,
// and one for each child of the parallel groups that it can be in at once. A signal
// makes no performance that would exceed it. The number belongs to rules 1.
const MaxUnderWay = 1 << 20

// Scheduler moves performances through session time. It must not be used by several
// goroutines at once.
type Scheduler struct {
	catalog  *language.Catalog
	registry registry
	sink     CommandSink
	watcher  PerformanceSink // the sink, if it is one
	observer ActObserver
	blocked  BlockObserver // the observer, if it is one
	asking   *performance  // whose step asks the stage now
	stage    definition.StageView
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

	underWay int    // see [MaxUnderWay]
	skipped  uint64 // performances that were not made because of it
	refused  uint64 // declarations that were not brought into force, see [Scheduler.NoteRefused]

	// The replaced definitions that are still performed, with the number of their
	// performances; their cost counts for the budget too.
	retired     map[*definition.Definition]int
	retiredCost definition.Cost

	matching int // of the current signal, see [freeMatching]

	// Memory for reuse, without meaning between calls.
	spare   []*performance // ended ones
	act     Act            // passed to the observer
	asked   definition.Facts
	freed   []*gate // released, to be settled before the call returns
	names   []string
	holders []*performance
}

// correlated is the chain of active performances with one correlation id.
type correlated struct{ first, last *performance }

// maxSpare bounds how many ended performances are kept for reuse.
const maxSpare = 64

// performance is one running definition, or one running handler.
type performance struct {
	seq     uint64 // of the signal that made it, the first half of its id
	index   uint32 // the second half, from 1
	slot    int32  // its definition in the registry
	handler bool
	def     *definition.Definition
	cue     *cue  // what its references mean
	began   int64 // the instant of its signal
	order   uint64
	due     int64 // the next instant at which something happens
	round   int   // the round of the instant due in which it acts
	heapPos int
	id      string // built for the first command
	root    cursor

	claims  []claim // what its guard holds
	waiting bool    // for its guard: not on the heap

	prev, next                         *performance
	chain                              *correlated // nil: cannot be interrupted
	previousCorrelated, nextCorrelated *performance
}

// cue is the part of a signal that performances need. It is copied, so that the caller
// may reuse the signal's memory, and all performances of the signal share it.
type cue struct {
	seq           uint64
	resolver      definition.Resolver
	correlationID string
	correlated    bool
	matching      int // by steps of its performances, see [freeMatching]

	numbered bool // while a state is written
	number   uint32
}

// NewScheduler returns a scheduler without definitions at session time 0.
func NewScheduler() *Scheduler {
	return &Scheduler{
		catalog: new(language.Catalog), round: -1,
		byCorrelation: make(map[string]*correlated), gates: make(map[string]*gate),
	}
}

// Define brings d into force, for signals from now on; d replaces the definition in
// force with its id. A declaration that is not of package language is ignored. The
// error names a reference of d that is not in force, or wraps
// [definition.ErrBudget]; then nothing has changed.
func (s *Scheduler) Define(d language.Declaration) error {
	catalog, err := s.catalog.With(d)
	if err != nil {
		return err
	}
	bound, err := catalog.Bind(d)
	if err != nil {
		return err
	}
	for _, d := range bound {
		old, running := s.replacedBy(d.Name(), d.Value())
		retired := s.retiredCost
		if running > 0 {
			retired = retired.Plus(old.Cost())
		}
		if retired != (definition.Cost{}) {
			if err := catalog.Holds(retired); err != nil {
				return err
			}
		}
		s.registry.add(d)
		if running > 0 {
			s.retire(old, running)
		}
	}
	s.catalog = catalog
	return nil
}

// Unchanged reports of each of several declarations, which would come into force in
// their order, whether it would have no effect, see [language.Catalog.Unchanged]. Of
// those without an id, as many are unchanged as equal ones are in force.
func (s *Scheduler) Unchanged(all []language.Declaration) []bool {
	catalog, copies := s.catalog, map[string]int{}
	for _, d := range s.registry.all {
		if d.Name() == "" {
			copies[string(d.Value())]++
		}
	}
	unchanged := make([]bool, len(all))
	for i, d := range all {
		if unchanged[i] = catalog.Unchanged(d); unchanged[i] {
			continue
		}
		if bound, err := catalog.Bind(d); err == nil && d.Name() == "" && len(bound) > 0 && copies[string(bound[0].Value())] > 0 {
			copies[string(bound[0].Value())]--
			unchanged[i] = true
			continue
		}
		if next, err := catalog.With(d); err == nil { // otherwise Define refuses it
			catalog = next
		}
	}
	return unchanged
}

// replacedBy returns the definition that d would replace, and the number of its
// performances. Nothing is replaced if no definition has the id, or if the values
// are equal byte for byte.
func (s *Scheduler) replacedBy(id string, value signal.Value) (old *definition.Definition, running int) {
	slot, ok := s.registry.byID[id]
	if id == "" || !ok {
		return nil, 0
	}
	if old = s.registry.all[slot]; bytes.Equal(old.Value(), value) {
		return nil, 0
	}
	for p := s.first; p != nil; p = p.next {
		if p.def == old {
			running++
		}
	}
	return old, running
}

// retire notes that so many performances continue with a definition that is no
// longer in force.
func (s *Scheduler) retire(d *definition.Definition, performances int) {
	if s.retired == nil {
		s.retired = make(map[*definition.Definition]int)
	}
	if s.retired[d] == 0 {
		s.retiredCost = s.retiredCost.Plus(d.Cost())
	}
	s.retired[d] += performances
}

// leave notes that a performance of a definition has ended.
func (s *Scheduler) leave(d *definition.Definition) {
	s.underWay -= d.Width()
	n, ok := s.retired[d]
	switch {
	case !ok:
	case n > 1:
		s.retired[d] = n - 1
	default:
		delete(s.retired, d)
		s.retiredCost = s.retiredCost.Minus(d.Cost())
	}
}

// Retained returns the cost of the replaced definitions that are still performed,
// assuming that the given declarations have come into force. It counts for the budget
// beside the declarations in force. Before session time advances it is an upper bound.
func (s *Scheduler) Retained(declarations ...language.Declaration) definition.Cost {
	total, seen := s.retiredCost, map[string]bool{}
	for _, d := range declarations {
		id, performs := language.PerformedAs(d)
		if !performs || seen[id] {
			continue
		}
		seen[id] = true
		if old, running := s.replacedBy(id, nil); running > 0 {
			total = total.Plus(old.Cost())
		}
	}
	return total
}

// NoteRefused counts a declaration of a log that the budget kept out of force.
func (s *Scheduler) NoteRefused() { s.refused++ }

// Refused returns how many declarations of a log the budget has kept out of force,
// and how many performances were not made because of [MaxUnderWay].
func (s *Scheduler) Refused() (declarations, performances uint64) { return s.refused, s.skipped }

// Catalog returns the declarations in force by name.
func (s *Scheduler) Catalog() *language.Catalog { return s.catalog }

// Definitions returns the definitions in force, in the order in which they came
// into force.
func (s *Scheduler) Definitions() []*definition.Definition { return slices.Clone(s.registry.all) }

// Observe makes the scheduler call o from now on and ask stage in conditions; both
// may be nil. An observer costs no allocation: the scheduler reuses one [Act].
func (s *Scheduler) Observe(o ActObserver, stage definition.StageView) {
	s.observer, s.stage = o, stage
	s.blocked, _ = o.(BlockObserver)
}

// Asking returns the performance of which a step asks the stage, during a call of the
// [definition.StageView]. It returns false while the condition of a choreography asks,
// about a signal that has no performance yet.
func (s *Scheduler) Asking() (seq uint64, index uint32, ok bool) {
	if s.asking == nil {
		return 0, 0, false
	}
	return s.asking.seq, s.asking.index, true
}

// Performing reports whether any definition is in force.
func (s *Scheduler) Performing() bool { return len(s.registry.all) > 0 }

// SetSink makes the scheduler send commands to sink from now on, and if it is a
// [PerformanceSink] the beginnings and ends of performances. With nil, the initial
// state, no command is built.
func (s *Scheduler) SetSink(sink CommandSink) {
	s.sink = sink
	s.watcher, _ = sink.(PerformanceSink)
}

// UnderWay sends sink an [ActionStart] and an [ActionUpdate] for each running animation,
// performance by performance in the order they were made. The start has the time at which
// the animation began, the update that of the present instant. A sink that joins in the
// middle, or after a jump, learns from them what the commands to come continue.
func (s *Scheduler) UnderWay(sink CommandSink) {
	for p := s.first; p != nil; p = p.next {
		p.root.walk(p.def, func(c *cursor, n *definition.Node) bool {
			if c.phase == phaseRunning {
				c.sendStart(sink, p, n)
				c.sendUpdate(sink, s.now, p, n)
			}
			return true
		})
	}
}

// Now returns the present session time.
func (s *Scheduler) Now() time.Duration { return time.Duration(s.now) }

// Active returns how many performances have not ended.
func (s *Scheduler) Active() int { return s.active }

// Next returns the next instant at which a performance does something besides
// updates; false if there is none. A performance that waits for a guard does nothing
// before another one ends. The instant is not before [Scheduler.Now].
func (s *Scheduler) Next() (at time.Duration, ok bool) {
	if len(s.due) == 0 {
		return 0, false
	}
	return time.Duration(s.due[0].due), true
}

// Signal processes a signal at the present session time. Definitions that
// match make performances p-<seq>-1, p-<seq>-2, … in order. A definition that
// interrupts first ends the performances with the signal's correlation id, and
// one whose guard preempts ends those that hold its names: only these commands
// are sent at once. Steps begin with the next [Scheduler.Advance], even if that
// advances by 0. Names that become free pass to the performances that wait for
// them after the last performance of the signal is made.
//
// Signal keeps nothing of sig.
func (s *Scheduler) Signal(seq uint64, sig *signal.Signal) {
	slots := s.registry.byType[sig.Type]
	if len(slots) == 0 {
		return
	}
	var (
		resolver = definition.Resolver{Type: sig.Type, Payload: sig.Payload}
		made     uint32
		own      *cue
	)
	s.matching = 0
	for _, slot := range slots {
		d := s.registry.all[slot]
		if !d.When().Matches(s.facts(resolver, &s.matching)) {
			continue
		}
		if d.Interrupts() && sig.CorrelationID != nil {
			made = s.interrupt(seq, made, *sig.CorrelationID, sig.Type)
		}
		names := d.Guard().AppendNames(s.names[:0], resolver.OfObject())
		s.names = names
		admitted := s.admit(names, d.Guard().Policy)
		if s.blocked != nil && admitted != admittedAtOnce {
			s.reportBlocked(seq, names, admitted == refused)
		}
		if admitted == refused {
			continue
		}
		if d.Guard().Policy == definition.GuardPreempt {
			made = s.preempt(seq, made, names, sig.Type)
		}
		if s.underWay+d.Width() > MaxUnderWay {
			s.skipped++
			continue
		}
		if own == nil {
			own = s.newCue(seq, d.On(), sig)
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
	// The names and the facts lie in the signal's memory.
	clear(s.names[:cap(s.names)])
	s.asked = definition.Facts{}
}

// facts returns the facts for a condition at the present instant. They are valid until
// the next call.
func (s *Scheduler) facts(r definition.Resolver, matching *int) *definition.Facts {
	s.asked = definition.Facts{Signal: r, Stage: s.stage, At: time.Duration(s.now), Matching: matching}
	return &s.asked
}

// newCue copies the part of sig that performances need. Typ equals the signal's type,
// but belongs to the definition and so needs no copy.
func (s *Scheduler) newCue(seq uint64, typ string, sig *signal.Signal) *cue {
	c := &cue{seq: seq, resolver: definition.Resolver{Type: typ}}
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
		// Handlers carry no correlation id, so the chain only gets shorter here.
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
	if def.Handler().First < def.Handler().End {
		made++
		handler.index = made
		s.due.push(s.add(handler, def))
	}
	return made
}

// add makes a copy of p the newest performance, due now but not on the heap.
func (s *Scheduler) add(like performance, d *definition.Definition) *performance {
	var p *performance
	if n := len(s.spare); n > 0 {
		p, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		p = new(performance)
	}
	kids, claims := p.root.kids, p.claims
	*p = like
	p.def, p.claims, p.due = d, claims, s.now
	main := d.Main()
	if p.handler {
		main = d.Handler()
	}
	p.root = cursor{node: main.First, end: main.End, kids: kids}
	s.enlist(p)
	if s.watcher != nil {
		s.watcher.OnPerformance(s.view(p))
	}
	return p
}

// enlist appends p to the lists, but not to the heap.
func (s *Scheduler) enlist(p *performance) {
	s.created++
	p.order = s.created
	s.active++
	s.underWay += p.def.Width()
	if !s.registry.has(p.def, p.slot) {
		s.retire(p.def, 1)
	}
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

// remove takes p, which must be off the heap, out of the lists. The caller settles
// the names of its guard.
func (s *Scheduler) remove(p *performance) {
	if s.watcher != nil {
		s.watcher.OnPerformanceEnd(time.Duration(s.now), p.ID())
	}
	s.release(p)
	s.active--
	s.leave(p.def)
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

// Advance moves session time to an instant and performs everything that is due
// up to and including it, in time order. Then, if there is a sink, it sends one
// update for each animation that is still running. Session time never decreases:
// an earlier instant counts as the present one.
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
	s.round, s.asked = -1, definition.Facts{}
}

// finish performs what is due at the present instant, and sends updates. It goes
// performance by performance, so that the complete, start and update of one stay
// together.
func (s *Scheduler) finish() {
	s.round = 0
	for p := s.first; p != nil; {
		next := p.next
		if !p.waiting && p.round == 0 {
			s.turn(p, true)
		}
		p = next
	}
	// The performances that guards have let begin meanwhile.
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

// saturate adds and returns the largest int64 instead of overflowing.
func saturate[T ~int64](a, b T) T {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
