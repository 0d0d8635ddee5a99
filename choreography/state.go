package choreography

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/statebytes"
	"github.com/sajou-dev/sajou-go/signal"
)

// stateVersion is the first element of a state. It changes with the format and
// with every change of rules after which old bytes would go on differently.
const stateVersion = 2

// Errors of [RestoreScheduler].
var (
	// ErrState says that bytes are no state of a scheduler.
	ErrState = errors.New("choreography: corrupt state")
	// ErrStateVersion says that a state was written under other rules.
	ErrStateVersion = errors.New("choreography: unknown state version")
)

// AppendState appends the whole state of s to dst: canonical bytes, equal for
// equal histories however time was cut. They are one msgpack array:
//
//	[version, now, catalog, definitions, retired, cues, performances]
//
//	now           session time in ns
//	catalog       [[word, value]…], what is in force by name, in the order of
//	              [Catalog.All]
//	definitions   [definition…] in force, in order, with all that they refer
//	              to by name put in its place
//	retired       [definition…] that were replaced and are performed still, in
//	              order of their first use
//	cues          [[seq, correlationId or nil, payload]…], the signals of
//	              active performances in order of their first use
//	performances  [[seq, index, definition, cue, handler, began, waiting,
//	              cursor]…] in creation order; definition and cue count from
//	              0, retired definitions after those in force
//	waiting       whether it waits for the names of its guard. If not, it
//	              holds them, unless it is a handler. What the names are
//	              follows from definition and cue, and who waits for whom from
//	              creation order
//	cursor        [node] done or not begun; [node, phase, since] inside an
//	              action or wait; [node, phase, cursor…] in a group
//
// Sink, observer and world are no part of it.
func (s *Scheduler) AppendState(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 7)
	dst = msgp.AppendInt(dst, stateVersion)
	dst = msgp.AppendInt64(dst, s.now)
	var declared uint32
	for range s.catalog.All() {
		declared++
	}
	dst = msgp.AppendArrayHeader(dst, declared)
	for d := range s.catalog.All() {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, d.Word())
		dst = append(dst, d.Value()...)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.registry.all)))
	for _, d := range s.registry.all {
		dst = append(dst, d.value...)
	}

	// Cues and retired definitions get their numbers at their first use.
	var (
		cues    []*cue
		retired []*Definition
		numbers map[*Definition]uint32
	)
	for p := s.first; p != nil; p = p.next {
		if !p.cue.numbered {
			p.cue.numbered, p.cue.number = true, uint32(len(cues))
			cues = append(cues, p.cue)
		}
		if s.registry.has(p.def, p.slot) {
			continue
		}
		if _, numbered := numbers[p.def]; !numbered {
			if numbers == nil {
				numbers = make(map[*Definition]uint32)
			}
			numbers[p.def] = uint32(len(s.registry.all) + len(retired))
			retired = append(retired, p.def)
		}
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(retired)))
	for _, d := range retired {
		dst = append(dst, d.value...)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(cues)))
	for _, c := range cues {
		dst = msgp.AppendArrayHeader(dst, 3)
		dst = msgp.AppendUint64(dst, c.seq)
		if c.correlated {
			dst = msgp.AppendString(dst, c.correlationID)
		} else {
			dst = msgp.AppendNil(dst)
		}
		if len(c.resolver.Payload) > 0 {
			dst = append(dst, c.resolver.Payload...)
		} else {
			dst = msgp.AppendNil(dst)
		}
	}

	dst = msgp.AppendArrayHeader(dst, uint32(s.active))
	for p := s.first; p != nil; p = p.next {
		definition := uint32(p.slot)
		if retired != nil && !s.registry.has(p.def, p.slot) {
			definition = numbers[p.def]
		}
		dst = msgp.AppendArrayHeader(dst, 8)
		dst = msgp.AppendUint64(dst, p.seq)
		dst = msgp.AppendUint32(dst, p.index)
		dst = msgp.AppendUint32(dst, definition)
		dst = msgp.AppendUint32(dst, p.cue.number)
		dst = msgp.AppendBool(dst, p.handler)
		dst = msgp.AppendInt64(dst, p.began)
		dst = msgp.AppendBool(dst, p.waiting)
		dst = p.root.append(dst)
	}
	for _, c := range cues {
		c.numbered = false
	}
	return dst
}

func (c *cursor) append(dst []byte) []byte {
	switch {
	case c.phase == phaseFresh:
		dst = msgp.AppendArrayHeader(dst, 1)
		return msgp.AppendInt32(dst, c.node)
	case c.phase != phaseGroup:
		dst = msgp.AppendArrayHeader(dst, 3)
	default:
		dst = msgp.AppendArrayHeader(dst, uint32(2+len(c.kids)))
	}
	dst = msgp.AppendInt32(dst, c.node)
	dst = msgp.AppendUint8(dst, uint8(c.phase))
	if c.phase != phaseGroup {
		return msgp.AppendInt64(dst, c.since)
	}
	for i := range c.kids {
		dst = c.kids[i].append(dst)
	}
	return dst
}

// RestoreScheduler returns a scheduler in the state that [Scheduler.AppendState]
// wrote, without a sink. It believes nothing of b: what no scheduler could have
// written is refused with [ErrState], or [ErrStateVersion] for another version.
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
	r := stateReader{statebytes.Reader{Rest: b}}
	if r.Begin(stateVersion, 7, ErrStateVersion); r.Err != nil {
		return nil, r.Err
	}
	s := NewScheduler()
	s.now = r.Int()
	if s.now < 0 {
		r.Fail("session time before 0")
	}
	s.catalog = r.catalog()
	for _, d := range r.definitions() {
		s.registry.Add(d)
	}
	retired := r.definitions()
	for _, d := range retired {
		if _, replaced := s.registry.byID[d.id]; !replaced {
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
	if err := r.End(); err != nil {
		return nil, err
	}
	return s, statebytes.Canonical(b, s.AppendState)
}

// stateReader reads a state.
type stateReader struct {
	statebytes.Reader
}

func (r *stateReader) catalog() *Catalog {
	var all []Declaration
	for range r.Array() {
		if n := r.Array(); r.Err == nil && n != 2 {
			r.Fail("a declaration of %d fields", n)
		}
		word, _ := r.Value().Text()
		v := r.Value()
		if r.Err != nil {
			break
		}
		d, err := CompileDeclaration(word, v)
		if err != nil {
			r.Fail("%w", err)
			break
		}
		all = append(all, d)
	}
	return restoreCatalog(all)
}

func (r *stateReader) definitions() []*Definition {
	var all []*Definition
	for range r.Array() {
		v := r.Value()
		if r.Err != nil {
			return nil
		}
		d, err := Compile(v)
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
		if n := r.Array(); r.Err == nil && n != 3 {
			r.Fail("a signal of %d fields", n)
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
		if r.Err != nil {
			return nil
		}
		cues = append(cues, c)
	}
	return cues
}

// performance reads one performance, not yet in the lists of s but at the gates
// of its names.
func (r *stateReader) performance(s *Scheduler, retired []*Definition, cues []*cue) *performance {
	if n := r.Array(); r.Err == nil && n != 8 {
		r.Fail("a performance of %d fields", n)
	}
	p := &performance{seq: r.Uint()}
	index := r.Uint()
	if index == 0 || index > math.MaxUint32 {
		r.Fail("performance number %d", index)
	}
	p.index = uint32(index)
	definition := r.Below(s.registry.Len()+len(retired), "definition")
	number := r.Below(len(cues), "signal")
	p.handler = r.Bool()
	p.began = r.Int()
	p.waiting = r.Bool()
	if r.Err != nil {
		return nil
	}
	if p.cue = cues[number]; definition < s.registry.Len() {
		p.slot, p.def = int32(definition), s.registry.all[definition]
	} else {
		p.slot, p.def = -1, retired[definition-s.registry.Len()]
	}
	if p.cue.resolver.Type == "" {
		p.cue.resolver.Type = p.def.on
	}
	if p.cue.resolver.Type != p.def.on {
		r.Fail("one signal of two types")
	}
	if p.began < 0 || p.began > s.now {
		r.Fail("a performance of another time")
	}
	main := p.def.main
	if p.handler {
		main = p.def.handler
		if main.first == main.end {
			r.Fail("a handler without steps")
		}
	}
	pending := r.cursor(p, &p.root, main, s.now)
	r.guard(s, p)
	// What waited for its guard may have been let begin right now.
	now := p.began == s.now || p.waiting || len(p.claims) > 0 && p.def.guard.policy == policyQueue
	switch {
	case r.Err != nil:
	case pending && (!now || p.root.node != main.first):
		r.Fail("a performance that should have begun")
	case p.waiting && !pending:
		r.Fail("a performance that began too early")
	case pending:
		p.root.until = s.now
	}
	p.due = p.root.until
	return p
}

// guard has p hold the names of its guard, or wait for them, as the performances
// before it allow.
func (r *stateReader) guard(s *Scheduler, p *performance) {
	if r.Err != nil {
		return
	}
	var names []string
	if !p.handler {
		names = p.def.guard.appendNames(nil, p.cue.resolver)
	}
	policy := p.def.guard.policy
	if p.waiting && (len(names) == 0 || policy != policyQueue) {
		r.Fail("a performance that has nothing to wait for")
		return
	}
	for _, name := range names {
		switch g := s.gates[name]; {
		case g == nil:
		case p.waiting && g.waiting >= MaxWaiting:
			r.Fail("more than %d wait for one name", MaxWaiting)
			return
		case !p.waiting && g.holder != nil:
			r.Fail("two performances hold one name")
			return
		case !p.waiting && g.first != nil && policy != policyPreempt:
			r.Fail("a performance that overtook another")
			return
		}
	}
	s.claim(p, names)
}

// cursor reads a cursor over a block into c. It reports whether the cursor is
// done or has not begun, and nests no deeper than the definition does.
func (r *stateReader) cursor(p *performance, c *cursor, b block, now int64) (fresh bool) {
	fields := r.Array()
	node := r.Below(int(b.end)+1, "node")
	if r.Err != nil {
		return false
	}
	c.node, c.end = int32(node), b.end
	if c.node < b.first {
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
		n := &p.def.nodes[c.node]
		if fields != 3 || !c.phase.fits(n) || c.since < p.began || c.since > now {
			r.Fail("a cursor that its step does not allow")
			return false
		}
		length := n.duration
		if c.phase == phaseDelayed {
			length = n.delay
		}
		c.until = saturate(c.since, length)
		if c.until <= now {
			r.Fail("a step that should have ended")
		}
		return false
	}
	n := &p.def.nodes[c.node]
	if n.kind != nodeParallel || fields != 2+len(n.children) {
		r.Fail("a group that its step does not allow")
		return false
	}
	c.kids = make([]cursor, len(n.children))
	c.until = math.MaxInt64
	done := true
	for i, b := range n.children {
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
func (ph phase) fits(n *node) bool {
	switch ph {
	case phaseDelayed:
		return n.delay > 0
	case phaseRunning:
		return n.kind == nodeAnimated
	case phaseWaiting:
		return n.kind == nodeWait
	default:
		return false
	}
}
