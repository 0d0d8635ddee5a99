package choreography

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/statecodec"
	"github.com/sajou-dev/sajou-go/signal"
)

// RestoreScheduler returns a scheduler in the state that [Scheduler.AppendState]
// wrote, without a sink. It trusts nothing in b: a state that no scheduler can have
// written is refused with [ErrState], another version with [ErrStateVersion].
func RestoreScheduler(b []byte) (*Scheduler, error) {
	s, err := restore(b)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, ErrStateVersion):
		return nil, err
	default:
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
}

func restore(b []byte) (*Scheduler, error) {
	r := stateReader{statecodec.Reader{Rest: b}}
	fields := 7
	if n, _, err := msgp.ReadArrayHeaderBytes(b); err == nil && n == 9 {
		fields = 9
	}
	if r.Begin(stateVersion, fields, ErrStateVersion); r.Err != nil {
		return nil, r.Err
	}
	s := NewScheduler()
	s.now = r.Int()
	if s.now < 0 {
		r.Fail("session time before 0")
	}
	declared := r.catalog()
	for _, d := range r.definitions() {
		s.registry.add(d)
	}
	if r.Err == nil {
		if s.catalog, r.Err = language.RestoreCatalog(declared, s.registry.all); r.Err != nil {
			return nil, r.Err
		}
	}
	retired := r.definitions()
	for _, d := range retired {
		if _, replaced := s.registry.byID[d.Name()]; !replaced {
			r.Fail("nothing is in the place of a replaced definition")
		}
	}
	cues := r.cues()
	for range r.Array() {
		p := r.performance(s, retired, cues)
		if r.Err != nil {
			return nil, r.Err
		}
		s.enlist(p)
		if !p.waiting {
			s.due.push(p)
		}
	}
	for p := s.first; p != nil; p = p.next {
		if p.waiting && p.free() {
			r.Fail("a performance that waits for nothing")
		}
	}
	if fields == 9 {
		s.refused, s.skipped = r.Uint(), r.Uint()
	}
	if s.underWay > MaxUnderWay {
		r.Fail("more than %d under way", MaxUnderWay)
	}
	if r.Err == nil && s.retiredCost != (definition.Cost{}) {
		if err := s.catalog.Holds(s.retiredCost); err != nil {
			r.Fail("%w", err)
		}
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return s, statecodec.Canonical(b, s.AppendState)
}

// stateReader reads a state.
type stateReader struct {
	statecodec.Reader
}

func (r *stateReader) catalog() []language.Declaration {
	var all []language.Declaration
	for range r.Array() {
		if n := r.Array(); r.Err == nil && n != 2 {
			r.Fail("a declaration of %d fields", n)
		}
		word, _ := r.Value().Text()
		v := r.Value()
		if r.Err != nil {
			break
		}
		d, err := language.CompileDeclaration(word, v)
		if err != nil {
			r.Fail("%w", err)
			break
		}
		all = append(all, d)
	}
	return all
}

func (r *stateReader) definitions() []*definition.Definition {
	var all []*definition.Definition
	for range r.Array() {
		v := r.Value()
		if r.Err != nil {
			return nil
		}
		d, err := definition.Compile(v)
		if err != nil {
			r.Fail("%w", err)
			return nil
		}
		all = append(all, d)
	}
	return all
}

func (r *stateReader) cues() []*cue {
	var cues []*cue
	for range r.Array() {
		fields := r.Array()
		if r.Err == nil && fields != 3 && fields != 4 {
			r.Fail("a signal of %d fields", fields)
		}
		c := &cue{seq: r.Uint()}
		switch id := r.Value(); id.Kind() {
		case signal.KindNull:
		case signal.KindString:
			text, _ := id.Text()
			c.correlationID, c.correlated = string([]byte(text)), true
		default:
			r.Fail("correlation id is no string")
		}
		switch payload := r.Value(); payload.Kind() {
		case signal.KindNull:
		case signal.KindObject:
			c.resolver.Payload = slices.Clone(payload)
		default:
			r.Fail("payload is no object")
		}
		if fields == 4 {
			c.matching = r.Below(definition.MaxMatchingOfSignal+1, "matching")
		}
		if r.Err != nil {
			return nil
		}
		cues = append(cues, c)
	}
	return cues
}

// performance reads one performance. It adds p to the gates of its names; the caller
// adds it to the lists of s.
func (r *stateReader) performance(s *Scheduler, retired []*definition.Definition, cues []*cue) *performance {
	if n := r.Array(); r.Err == nil && n != 8 {
		r.Fail("a performance of %d fields", n)
	}
	p := &performance{seq: r.Uint()}
	index := r.Uint()
	if index == 0 || index > math.MaxUint32 {
		r.Fail("performance number %d", index)
	}
	p.index = uint32(index)
	place := r.Below(len(s.registry.all)+len(retired), "definition")
	number := r.Below(len(cues), "signal")
	p.handler = r.Bool()
	p.began = r.Int()
	p.waiting = r.Bool()
	if r.Err != nil {
		return nil
	}
	if p.cue = cues[number]; place < len(s.registry.all) {
		p.slot, p.def = int32(place), s.registry.all[place]
	} else {
		// Its slot is that of the definition that replaced it, as in a scheduler that
		// was never stored: UnresolvedReference reports it.
		p.def = retired[place-len(s.registry.all)]
		p.slot = s.registry.byID[p.def.Name()]
	}
	if p.cue.resolver.Type == "" {
		p.cue.resolver.Type = p.def.On()
	}
	if p.cue.resolver.Type != p.def.On() {
		r.Fail("one signal of two types")
	}
	if p.began < 0 || p.began > s.now {
		r.Fail("a performance of another time")
	}
	if last := s.last; last != nil {
		// Performances are made in the order of signals and of time.
		if p.began < last.began || p.seq < last.seq || p.seq == last.seq && p.index <= last.index {
			r.Fail("performances in another order")
		}
	}
	if !p.handler && p.seq != p.cue.seq || p.seq < p.cue.seq {
		r.Fail("a performance of another signal")
	}
	main := p.def.Main()
	if p.handler {
		main = p.def.Handler()
		if main.First == main.End {
			r.Fail("a handler without steps")
		}
	}
	pending := r.cursor(p, &p.root, main, s.now)
	r.guard(s, p)
	// A performance that waited for its guard may have begun at this very instant.
	now := p.began == s.now || p.waiting || len(p.claims) > 0 && p.def.Guard().Policy == definition.GuardQueue
	switch {
	case r.Err != nil:
	case pending && (!now || p.root.node != main.First):
		r.Fail("a performance that should have begun")
	case p.waiting && !pending:
		r.Fail("a performance that began too early")
	case pending:
		p.root.until = s.now
	}
	p.due = p.root.until
	return p
}

// guard makes p hold the names of its guard, or wait for them, as far as the
// performances before it allow.
func (r *stateReader) guard(s *Scheduler, p *performance) {
	if r.Err != nil {
		return
	}
	var names []string
	if !p.handler {
		names = p.def.Guard().AppendNames(nil, p.cue.resolver)
	}
	policy := p.def.Guard().Policy
	if p.waiting && (len(names) == 0 || policy != definition.GuardQueue) {
		r.Fail("a performance that has nothing to wait for")
		return
	}
	for _, name := range names {
		switch g := s.gates[name]; {
		case g == nil:
		case p.waiting && g.waiting >= definition.MaxWaiting:
			r.Fail("more than %d wait for one name", definition.MaxWaiting)
			return
		case !p.waiting && g.holder != nil:
			r.Fail("two performances hold one name")
			return
		case !p.waiting && g.first != nil && policy != definition.GuardPreempt:
			r.Fail("a performance that overtook another")
			return
		}
	}
	s.claim(p, names)
}

// cursor reads a cursor over a block into c. It reports whether the cursor is
// done or has not begun. It nests no deeper than the definition.
func (r *stateReader) cursor(p *performance, c *cursor, b definition.Block, now int64) (fresh bool) {
	fields := r.Array()
	node := r.Below(int(b.End)+1, "node")
	if r.Err != nil {
		return false
	}
	c.node, c.end = int32(node), b.End
	if c.node < b.First {
		r.Fail("node %d of another block", node)
		return false
	}
	if fields == 1 {
		return true
	}
	c.phase = phase(r.Below(int(phaseGroup)+1, "phase"))
	if c.phase != phaseGroup {
		c.since = r.Int()
	}
	switch {
	case r.Err != nil:
		return false
	case fields < 3 || c.phase == phaseFresh || c.node == c.end:
		r.Fail("a cursor of %d fields", fields)
		return false
	case c.phase != phaseGroup:
		n := &p.def.Nodes()[c.node]
		if fields != 3 || !c.phase.fits(n) || c.since < p.began || c.since > now {
			r.Fail("a cursor that its step does not allow")
			return false
		}
		length := n.Duration
		if c.phase == phaseDelayed {
			length = n.Delay
		}
		c.until = saturate(c.since, length)
		if c.until <= now {
			r.Fail("a step that should have ended")
		}
		return false
	}
	n := &p.def.Nodes()[c.node]
	if n.Kind != definition.NodeParallel || fields != 2+len(n.Children) {
		r.Fail("a group that its step does not allow")
		return false
	}
	c.kids = make([]cursor, len(n.Children))
	c.until = math.MaxInt64
	done := true
	for i, b := range n.Children {
		kid := &c.kids[i]
		fresh := r.cursor(p, kid, b, now)
		switch {
		case r.Err != nil:
			return false
		case fresh && kid.node != kid.end:
			r.Fail("a child that should have begun")
			return false
		case !fresh:
			done = false
			c.until = min(c.until, kid.until)
		}
	}
	if done {
		r.Fail("a group that should have ended")
	}
	return false
}

// fits reports whether a cursor can be in phase ph at n.
func (ph phase) fits(n *definition.Node) bool {
	switch ph {
	case phaseDelayed:
		return n.Delay > 0
	case phaseRunning:
		return n.Kind == definition.NodeAnimated
	case phaseWaiting:
		return n.Kind == definition.NodeWait
	default:
		return false
	}
}

// Errors of [RestoreScheduler].
var (
	// ErrState reports bytes that are not a state of a scheduler.
	ErrState = errors.New("choreography: corrupt state")
	// ErrStateVersion reports a state that was written under other rules.
	ErrStateVersion = errors.New("choreography: unknown state version")
)
