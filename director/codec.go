package director

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/statecodec"
)

// stateVersion is the first element of a state. It changes with the format, and with
// every change of a rule after which a restored state would decide differently.
const stateVersion = 2

// Errors of [Restore].
var (
	// ErrState says that bytes are not a state of a director.
	ErrState = errors.New("director: corrupt state")
	// ErrStateVersion says that a state was written by another version of the rules.
	ErrStateVersion = errors.New("director: unknown state version")
)

// AppendState appends the whole state to dst: canonical bytes, equal for equal
// histories. They are one msgpack array:
//
//	[version, declared or nil, episode or nil, core or nil, rollback or nil]
//
//	declared and episode  as their authors wrote them
//	core     [turn, attempt, phase, input, input digest, digest, tail, directive+1,
//	         answer, energy, visuals, suggested, failed, beats, choices,
//	         objectives, props, flags, held, awaiting, found, removed]
//	rollback the core before the response of this turn, nil if that response
//	         cannot be dropped
//
// The lists of beats, choices, objectives and props are as long as those of the
// episode.
func (s *State) AppendState(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 5)
	dst = msgp.AppendInt(dst, stateVersion)
	if s.declared == nil {
		dst = msgp.AppendNil(dst)
	} else {
		dst = append(dst, s.declared.Value()...)
	}
	if s.episode == nil {
		return msgp.AppendNil(msgp.AppendNil(msgp.AppendNil(dst)))
	}
	dst = append(dst, s.episode.Value()...)
	dst = s.core.append(dst)
	if s.rollback == nil {
		return msgp.AppendNil(dst)
	}
	return s.rollback.append(dst)
}

func (c *core) append(dst []byte) []byte {
	array := func(n int) { dst = msgp.AppendArrayHeader(dst, uint32(n)) }
	ints := func(list ...int) { dst = appendInts(dst, list...) }
	text := func(s string) { dst = msgp.AppendString(dst, s) }
	truth := func(b bool) { dst = msgp.AppendBool(dst, b) }
	array(22)
	ints(c.turn, c.attempt, int(c.phase), int(c.input))
	text(c.inputDigest)
	dst = msgp.AppendBytes(dst, c.digest[:])
	text(c.tail)
	ints(c.directive + 1)
	array(3)
	text(c.answer.Content)
	text(c.answer.ChoicePoint)
	text(c.answer.Choice)
	ints(c.energy, c.visuals)
	truth(c.suggested)
	truth(c.failed)
	array(c.beats.len())
	for i := range c.beats.len() {
		dst = c.beats.at(i).append(dst)
	}
	array(c.choices.len())
	for i := range c.choices.len() {
		dst = c.choices.at(i).append(dst)
	}
	array(len(c.objectives))
	for _, o := range c.objectives {
		dst = o.append(dst)
	}
	array(len(c.props))
	ints(c.props...)
	array(len(c.flags))
	for _, f := range c.flags {
		array(4)
		text(f.name)
		text(f.cause)
		ints(f.turn)
		truth(f.outside)
	}
	array(len(c.held))
	for _, h := range c.held {
		array(5)
		ints(h.beat, h.turn)
		text(h.method)
		ints(int(h.assurance))
		text(h.tail)
	}
	array(len(c.awaiting))
	for _, w := range c.awaiting {
		array(3)
		ints(int(w.kind), w.index, w.tries)
	}
	array(len(c.found))
	for _, h := range c.found {
		array(3)
		ints(int(h.kind), h.index, int(h.method))
	}
	array(4)
	dst = appendPast(dst, c.removed.beats, beatState.append)
	dst = appendPast(dst, c.removed.choices, choiceState.append)
	dst = appendPast(dst, c.removed.objectives, objectiveState.append)
	return appendPast(dst, c.removed.props, func(turn int, dst []byte) []byte { return msgp.AppendInt(dst, turn) })
}

// appendPast appends a list of removed parts, each as [id, state].
func appendPast[T comparable](dst []byte, list []past[T], state func(T, []byte) []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(list)))
	for _, p := range list {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, p.id)
		dst = state(p.at, dst)
	}
	return dst
}

func appendInts(dst []byte, list ...int) []byte {
	for _, i := range list {
		dst = msgp.AppendInt(dst, i)
	}
	return dst
}

// append appends [status, assurance, released, missed deadline, delivered at,
// heard at, landed at, overdue from].
func (b beatState) append(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 8)
	dst = appendInts(dst, int(b.status), int(b.assurance))
	dst = msgp.AppendBool(dst, b.released)
	dst = msgp.AppendBool(dst, b.missedDeadline)
	return appendInts(dst, b.deliveredAt, b.heardAt, b.landedAt, b.overdueFrom)
}

// append appends [status, option, offered at, made at, said].
func (p choiceState) append(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 5)
	dst = msgp.AppendInt(dst, int(p.status))
	dst = msgp.AppendString(dst, p.option)
	dst = appendInts(dst, p.offeredAt, p.madeAt)
	return msgp.AppendString(dst, p.said)
}

// append appends [status, at].
func (o objectiveState) append(dst []byte) []byte {
	return appendInts(msgp.AppendArrayHeader(dst, 2), int(o.status), o.at)
}

// Restore returns the state that [State.AppendState] wrote. It believes nothing
// of b: what no state could have written is refused with [ErrState], or
// [ErrStateVersion] for another version.
func Restore(b []byte) (*State, error) {
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

func restore(b []byte) (*State, error) {
	r := stateReader{statecodec.Reader{Rest: b}}
	if r.Begin(stateVersion, 5, ErrStateVersion); r.Err != nil {
		return nil, r.Err
	}
	s := new(State)
	s.declared, s.episode = r.episode(), r.episode()
	if r.Err != nil {
		return nil, r.Err
	}
	if s.episode != nil {
		s.core = r.core(s.episode)
		if !r.None() {
			kept := r.core(s.episode)
			s.rollback = &kept
			if kept.turn != s.core.turn || kept.phase != phaseOpened || s.core.phase < phaseResponded {
				r.Fail("the rollback is not of this turn")
			}
		}
	} else {
		core, kept := r.None(), r.None()
		if !core || !kept {
			r.Fail("a core without an episode")
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

// episode reads an episode as it was written, nil if there is none.
func (r *stateReader) episode() *episode.Episode {
	if r.None() {
		return nil
	}
	v := r.Value()
	if r.Err != nil {
		return nil
	}
	e, err := episode.Compile(slices.Clone(v))
	if err != nil {
		r.Fail("%w", err)
	}
	return e
}

func (r *stateReader) turn() int { return r.Below(episode.MaxTurn+1, "turn") }

func (r *stateReader) tail() string {
	s := r.Text()
	if r.Err == nil && utf8.RuneCountInString(s) > tailLength {
		r.Fail("a tail that is too long")
	}
	return s
}

func (r *stateReader) digest() (d episode.ContentDigest) {
	if b := r.Bytes(); copy(d[:], b) != len(b) || len(b) != len(d) {
		r.Fail("a digest of another length")
	}
	return d
}

func (r *stateReader) core(e *episode.Episode) core {
	c := newCore(e)
	r.Fields(22, "the core")
	c.turn, c.attempt = r.turn(), r.turn()
	c.phase, c.input = phase(r.Below(len(phases), "phase")), inputKind(r.Below(len(inputs), "input"))
	if c.inputDigest = r.Text(); r.Err == nil && len(c.inputDigest) > 2*len(episode.ContentDigest{}) {
		r.Fail("a digest that is too long")
	}
	c.digest, c.tail = r.digest(), r.tail()
	c.directive = r.Below(len(e.Beats)+1, "beat") - 1
	r.Fields(3, "a part")
	c.answer = ChoiceLine{r.Text(), r.Text(), r.Text()}
	if r.Err == nil && (c.answer.ChoicePoint == "") != (c.answer == ChoiceLine{}) {
		r.Fail("an answer without a choice point")
	}
	c.energy, c.visuals = r.Below(len(episode.Energies()), "energy"), r.turn()
	c.suggested, c.failed = r.Bool(), r.Bool()
	r.Fields(len(e.Beats), "a part")
	beats := make([]beatState, len(e.Beats))
	for i := range beats {
		beats[i] = r.beat()
		if r.Err == nil && beats[i].status == statusDetected && e.Beats[i].Choice < 0 {
			r.Fail("a beat without a choice waits for its choice")
		}
	}
	r.Fields(len(e.Choices), "a part")
	choices := make([]choiceState, len(e.Choices))
	for i := range choices {
		choices[i] = r.choice()
		if b := e.Choices[i].Beat; r.Err == nil && b >= 0 && choices[i].status == choiceOpen && beats[b].status != statusDetected {
			r.Fail("a choice is open whose beat has not landed")
		}
	}
	c.beats, c.choices = tableOf(beats), tableOf(choices)
	r.Fields(len(c.objectives), "a part")
	for i := range c.objectives {
		c.objectives[i] = r.objective()
	}
	r.Fields(len(c.props), "a part")
	for i := range c.props {
		c.props[i] = r.turn()
	}
	for range r.Array() {
		r.Fields(4, "a part")
		f := flag{r.Text(), r.Text(), r.turn(), r.Bool()}
		if n := len(c.flags); r.Err == nil && (f.name == "" || n > 0 && c.flags[n-1].name >= f.name) {
			r.Fail("flags are not in order")
		}
		if r.Err != nil {
			return c
		}
		c.flags = append(c.flags, f)
	}
	for range r.Array() {
		r.Fields(5, "a part")
		h := held{r.Below(len(e.Beats), "beat"), r.turn(), r.Text(), uint8(r.Below(len(assurances), "assurance")), r.tail()}
		if r.Err == nil && (c.heldAt(h.beat) >= 0 || beats[h.beat].status != statusPending) {
			r.Fail("a held beat is not pending")
		}
		if r.Err != nil {
			return c
		}
		c.held = append(c.held, h)
	}
	for range r.Array() {
		r.Fields(3, "a part")
		kind := r.subject()
		w := awaited{kind, r.Below(c.subjects(kind), "subject"), r.turn()}
		if r.Err != nil || slices.ContainsFunc(c.awaiting, func(o awaited) bool { return o.kind == w.kind && o.index == w.index }) {
			r.Fail("a question is awaited twice")
			return c
		}
		c.awaiting = append(c.awaiting, w)
	}
	for range r.Array() {
		r.Fields(3, "a part")
		kind := r.subject()
		h := found{kind, r.Below(c.subjects(kind), "subject"), episode.Detection(r.Below(int(episode.Undetected), "detection"))}
		if r.Err != nil {
			return c
		}
		c.found = append(c.found, h)
	}
	r.Fields(4, "a part")
	c.removed.beats = readPast(r, r.beat, func(id string) bool { _, ok := e.BeatIndex(id); return ok })
	c.removed.choices = readPast(r, r.choice, func(id string) bool { _, ok := e.ChoiceIndex(id); return ok })
	c.removed.objectives = readPast(r, r.objective, func(id string) bool { return e.Has(episode.Subject{Kind: episode.AboutObjective, ID: id}) })
	c.removed.props = readPast(r, r.turn, func(id string) bool {
		return slices.ContainsFunc(e.Props, func(p episode.Prop) bool { return p.ID == id })
	})
	for _, b := range c.removed.beats {
		if b.at.status == statusDetected {
			r.Fail("a removed beat waits for its choice")
		}
	}
	for _, p := range c.removed.choices {
		if p.at.status == choiceOpen {
			r.Fail("a removed choice is open")
		}
	}
	return c
}

// readPast reads a list of removed parts. Each must have progress, and the episode
// must not have it.
func readPast[T comparable](r *stateReader, state func() T, there func(id string) bool) []past[T] {
	var list []past[T]
	var nothing T
	n := r.Array()
	if n > episode.MaxItems {
		r.Fail("%d removed parts", n)
	}
	for range n {
		r.Fields(2, "a part")
		p := past[T]{r.Text(), state()}
		if r.Err == nil && (p.at == nothing || there(p.id) || len(list) > 0 && list[len(list)-1].id >= p.id) {
			r.Fail("a removed part without progress, that is not removed, or out of order")
		}
		if r.Err != nil {
			return nil
		}
		list = append(list, p)
	}
	return list
}

func (r *stateReader) beat() (b beatState) {
	r.Fields(8, "a part")
	b.status, b.assurance = status(r.Below(len(statuses), "status")), uint8(r.Below(len(assurances), "assurance"))
	b.released, b.missedDeadline = r.Bool(), r.Bool()
	b.deliveredAt, b.heardAt, b.landedAt, b.overdueFrom = r.turn(), r.turn(), r.turn(), r.turn()
	return b
}

func (r *stateReader) choice() (p choiceState) {
	r.Fields(5, "a part")
	p.status, p.option = choiceStatus(r.Below(len(choiceStatuses), "status")), r.Text()
	p.offeredAt, p.madeAt, p.said = r.turn(), r.turn(), r.tail()
	if r.Err == nil && ((p.status == choiceSelected) != (p.option != "") || len(p.option) > episode.MaxID) {
		r.Fail("an option without a selection")
	}
	return p
}

func (r *stateReader) objective() objectiveState {
	r.Fields(2, "a part")
	return objectiveState{objectiveStatus(r.Below(len(objectiveStatuses), "status")), r.turn()}
}

func (r *stateReader) subject() episode.SubjectKind {
	return episode.SubjectKind(r.Below(int(episode.AboutObjective)+1, "subject"))
}

func (c *core) subjects(k episode.SubjectKind) int {
	if k == episode.AboutObjective {
		return len(c.objectives)
	}
	return c.beats.len()
}
