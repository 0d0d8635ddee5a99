package director

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/statebytes"
)

// stateVersion is the first element of a state. It changes with the format and
// with every change of rules after which old bytes would go on differently.
const stateVersion = 1

// Errors of [Restore].
var (
	// ErrState says that bytes are no state of a director.
	ErrState = errors.New("director: corrupt state")
	// ErrStateVersion says that a state was written under other rules.
	ErrStateVersion = errors.New("director: unknown state version")
)

// State is what the events of one session add up to. The zero State has no
// episode yet. Its size is bounded by the episode, not by the turns played.
//
// A State may be copied: what it holds is replaced, never written to.
type State struct {
	episode *Episode // nil before the first; immutable
	core    core
	// kept is the core as the response of this turn found it, so that the
	// response can be generated anew; nil if it cannot.
	kept *core
}

// Episode returns the episode being played, nil if none is.
func (s *State) Episode() *Episode { return s.episode }

// Turn returns the number of the latest turn that was opened, 0 before.
func (s *State) Turn() int { return s.core.turn }

type phase uint8

const (
	phaseIdle      phase = iota // no turn was opened yet
	phaseOpened                 // the character is to respond
	phaseResponded              // verdicts are awaited
	phaseEvaluated              // all is known
)

var phases = []string{"idle", "opened", "responded", "evaluated"}

type inputKind uint8

const (
	inputNone inputKind = iota
	inputText
	inputChoice
)

var inputs = []string{"none", "text", "choice"}

// core is the state without its episode. Copies share their slices: whoever
// changes an element clones the slice before.
type core struct {
	turn, attempt int
	phase         phase
	input         inputKind
	said          string // digest of the user's text
	digest        Digest // of the response
	tail          string // its end
	directive     int    // the beat directed this turn, -1 if none
	answer        int    // the choice point whose answer is the next input, -1 if none
	energy        int    // index in Energies
	visuals       int    // pictures triggered
	suggested     bool   // the budget's suggestion was made
	failed        bool
	beats         []beatState
	choices       []choiceState
	objectives    []objectiveState
	props         []int // the turn each came to light, 0 if it has not
	flags         []flag
	held          []held
	awaiting      []awaited
	heard         []heard
}

type status uint8

const (
	statusPending status = iota
	statusDetected
	statusCompleted
	statusMissed
)

var statuses = []string{"pending", "detected", "completed", "missed"}

// The assurances: how sure it is that a beat was played.
const (
	assuranceVerified = 1 // it was looked for and found
	assuranceAssumed  = 2 // it was told, and nobody looked
	assuranceForced   = 3 // the authored line was inserted
)

var assurances = []string{"", "verified", "assumed", "forced"}

type beatState struct {
	status         status
	assurance      uint8
	released       bool // was missed, and those that require it go on
	missedDeadline bool // the event was recorded
	deliveredAt    int  // the first turn whose response was told to, 0 if none
	heardAt        int  // the turn whose response it was found in
	landedAt       int  // when it landed or was given up
	overdueFrom    int  // the first turn that ended with it overdue
}

type choiceStatus uint8

const (
	choiceClosed choiceStatus = iota
	choiceOpen
	choiceSelected
	choiceDeclined
)

var choiceStatuses = []string{"closed", "open", "selected", "declined"}

type choiceState struct {
	status            choiceStatus
	option            int
	offeredAt, madeAt int
	said              string
}

type objectiveStatus uint8

const (
	objectivePending objectiveStatus = iota
	objectiveInProgress
	objectiveCompleted
	objectiveFailed
)

var objectiveStatuses = []string{"pending", "in_progress", "completed", "failed"}

type objectiveState struct {
	status objectiveStatus
	at     int
}

// flag is set; those that are not are not there. They are sorted by name.
type flag struct {
	name, cause string
	turn        int
}

// held is a beat that was heard in a turn that had a choice already.
type held struct {
	beat, turn int
	method     string
	assurance  uint8
	tail       string
}

// awaited is a question whose answer the turn waits for.
type awaited struct {
	kind  SubjectKind
	index int
	tries int // unclear answers so far
}

// heard is a verdict YES that waits for the turn's end.
type heard struct {
	kind   SubjectKind
	index  int
	method Detection
}

func newCore(e *Episode) core {
	return core{
		directive: -1, answer: -1,
		beats: make([]beatState, len(e.Beats)), choices: make([]choiceState, len(e.Choices)),
		objectives: make([]objectiveState, len(e.Objectives)), props: make([]int, len(e.Props)),
	}
}

func (c *core) findFlag(name string) (int, bool) {
	return slices.BinarySearchFunc(c.flags, name, func(f flag, name string) int { return strings.Compare(f.name, name) })
}

func (c *core) hasFlag(name string) bool {
	_, ok := c.findFlag(name)
	return ok
}

// setFlag keeps the first cause of a flag.
func (c *core) setFlag(name, cause string, turn int) {
	if i, ok := c.findFlag(name); !ok {
		c.flags = slices.Insert(slices.Clone(c.flags), i, flag{name, cause, turn})
	}
}

func (c *core) clearFlag(name string) {
	if i, ok := c.findFlag(name); ok {
		c.flags = slices.Delete(slices.Clone(c.flags), i, i+1)
	}
}

// pendingChoice returns the choice that replaces the user's input, -1 if none.
func (c *core) pendingChoice() int {
	for i := range c.beats {
		if c.beats[i].status == statusDetected {
			return i
		}
	}
	return -1
}

func (c *core) heldAt(beat int) int {
	return slices.IndexFunc(c.held, func(h held) bool { return h.beat == beat })
}

// drop forgets that a beat was held.
func (c *core) drop(beat int) {
	if i := c.heldAt(beat); i >= 0 {
		c.held = slices.Delete(slices.Clone(c.held), i, i+1)
		if len(c.held) == 0 {
			c.held = nil
		}
	}
}

// overdue notes the beats that this turn leaves overdue for the first time.
func (c *core) overdue(s *State, before *core) {
	cloned := false
	for i := range c.beats {
		if c.beats[i].overdueFrom > 0 || c.turn < s.episode.Beats[i].Deadline || !s.wasEligible(c, before, i) {
			continue
		}
		if !cloned {
			c.beats, cloned = slices.Clone(c.beats), true
		}
		c.beats[i].overdueFrom = c.turn
	}
}

// tailLength is how much of a response a choice shows, in code points.
const tailLength = 200

// tailOf returns the end of a text and never a part of a code point.
func tailOf(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	i := len(s)
	for range tailLength {
		if i == 0 {
			break
		}
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

func parseDigest(s string) (d Digest, ok bool) {
	if len(s) != 2*len(d) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err == nil && d.String() == s
}

// AppendState appends the whole state to dst: canonical bytes, equal for equal
// histories. They are one msgpack array:
//
//	[version, episode or nil, core or nil, kept or nil]
//
//	episode  as it was written
//	core     [turn, attempt, phase, input, said, digest, tail, directive+1,
//	         answer+1, energy, visuals, suggested, failed, beats, choices,
//	         objectives, props, flags, held, awaiting, heard]
//	kept     the core that the response of this turn found, nil if that
//	         response cannot be dropped any more
//
// The lists of beats, choices, objectives and props are as long as those of the
// episode.
func (s *State) AppendState(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 4)
	dst = msgp.AppendInt(dst, stateVersion)
	if s.episode == nil {
		return msgp.AppendNil(msgp.AppendNil(msgp.AppendNil(dst)))
	}
	dst = append(dst, s.episode.value...)
	dst = s.core.append(dst)
	if s.kept == nil {
		return msgp.AppendNil(dst)
	}
	return s.kept.append(dst)
}

func (c *core) append(dst []byte) []byte {
	array := func(n int) { dst = msgp.AppendArrayHeader(dst, uint32(n)) }
	ints := func(list ...int) {
		for _, i := range list {
			dst = msgp.AppendInt(dst, i)
		}
	}
	text := func(s string) { dst = msgp.AppendString(dst, s) }
	truth := func(b bool) { dst = msgp.AppendBool(dst, b) }
	array(21)
	ints(c.turn, c.attempt, int(c.phase), int(c.input))
	text(c.said)
	dst = msgp.AppendBytes(dst, c.digest[:])
	text(c.tail)
	ints(c.directive+1, c.answer+1, c.energy, c.visuals)
	truth(c.suggested)
	truth(c.failed)
	array(len(c.beats))
	for _, b := range c.beats {
		array(8)
		ints(int(b.status), int(b.assurance))
		truth(b.released)
		truth(b.missedDeadline)
		ints(b.deliveredAt, b.heardAt, b.landedAt, b.overdueFrom)
	}
	array(len(c.choices))
	for _, p := range c.choices {
		array(5)
		ints(int(p.status), p.option, p.offeredAt, p.madeAt)
		text(p.said)
	}
	array(len(c.objectives))
	for _, o := range c.objectives {
		array(2)
		ints(int(o.status), o.at)
	}
	array(len(c.props))
	ints(c.props...)
	array(len(c.flags))
	for _, f := range c.flags {
		array(3)
		text(f.name)
		text(f.cause)
		ints(f.turn)
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
	array(len(c.heard))
	for _, h := range c.heard {
		array(3)
		ints(int(h.kind), h.index, int(h.method))
	}
	return dst
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
	r := stateReader{statebytes.Reader{Rest: b}}
	if r.Begin(stateVersion, 4, ErrStateVersion); r.Err != nil {
		return nil, r.Err
	}
	s := new(State)
	if !r.None() {
		v := r.Value()
		if r.Err != nil {
			return nil, r.Err
		}
		var err error
		if s.episode, err = Compile(slices.Clone(v)); err != nil {
			return nil, err
		}
		s.core = r.core(s.episode)
		if !r.None() {
			kept := r.core(s.episode)
			s.kept = &kept
			if kept.turn != s.core.turn || kept.phase != phaseOpened || s.core.phase < phaseResponded {
				r.Fail("what was kept is not of this turn")
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
	return s, statebytes.Canonical(b, s.AppendState)
}

// stateReader reads a state.
type stateReader struct {
	statebytes.Reader
}

func (r *stateReader) turn() int { return r.Below(maxTurn+1, "turn") }

func (r *stateReader) tail() string {
	s := r.Text()
	if r.Err == nil && utf8.RuneCountInString(s) > tailLength {
		r.Fail("a tail that is too long")
	}
	return s
}

func (r *stateReader) digest() (d Digest) {
	if b := r.Bytes(); copy(d[:], b) != len(b) || len(b) != len(d) {
		r.Fail("a digest that is none")
	}
	return d
}

func (r *stateReader) core(e *Episode) core {
	c := newCore(e)
	r.Fields(21, "a part")
	c.turn, c.attempt = r.turn(), r.turn()
	c.phase, c.input = phase(r.Below(len(phases), "phase")), inputKind(r.Below(len(inputs), "input"))
	if c.said = r.Text(); r.Err == nil && len(c.said) > 2*len(Digest{}) {
		r.Fail("a digest that is none")
	}
	c.digest, c.tail = r.digest(), r.tail()
	c.directive = r.Below(len(e.Beats)+1, "beat") - 1
	c.answer = r.Below(len(e.Choices)+1, "choice") - 1
	c.energy, c.visuals = r.Below(len(Energies), "energy"), r.turn()
	c.suggested, c.failed = r.Bool(), r.Bool()
	r.Fields(len(c.beats), "a part")
	for i := range c.beats {
		r.Fields(8, "a part")
		b := &c.beats[i]
		b.status, b.assurance = status(r.Below(len(statuses), "status")), uint8(r.Below(len(assurances), "assurance"))
		b.released, b.missedDeadline = r.Bool(), r.Bool()
		b.deliveredAt, b.heardAt, b.landedAt, b.overdueFrom = r.turn(), r.turn(), r.turn(), r.turn()
		if r.Err == nil && b.status == statusDetected && e.Beats[i].Choice < 0 {
			r.Fail("a beat without a choice waits for one")
		}
	}
	r.Fields(len(c.choices), "a part")
	for i := range c.choices {
		r.Fields(5, "a part")
		p := &c.choices[i]
		p.status = choiceStatus(r.Below(len(choiceStatuses), "status"))
		p.option = r.Below(len(e.Choices[i].Options), "option")
		p.offeredAt, p.madeAt, p.said = r.turn(), r.turn(), r.tail()
		if b := e.Choices[i].Beat; r.Err == nil && b >= 0 && p.status == choiceOpen && c.beats[b].status != statusDetected {
			r.Fail("a choice is open whose beat has not landed")
		}
	}
	r.Fields(len(c.objectives), "a part")
	for i := range c.objectives {
		r.Fields(2, "a part")
		c.objectives[i] = objectiveState{objectiveStatus(r.Below(len(objectiveStatuses), "status")), r.turn()}
	}
	r.Fields(len(c.props), "a part")
	for i := range c.props {
		c.props[i] = r.turn()
	}
	for range r.Array() {
		r.Fields(3, "a part")
		f := flag{r.Text(), r.Text(), r.turn()}
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
		if r.Err == nil && (c.heldAt(h.beat) >= 0 || c.beats[h.beat].status != statusPending) {
			r.Fail("a beat is held that is not to come")
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
			r.Fail("something is asked twice")
			return c
		}
		c.awaiting = append(c.awaiting, w)
	}
	for range r.Array() {
		r.Fields(3, "a part")
		kind := r.subject()
		h := heard{kind, r.Below(c.subjects(kind), "subject"), Detection(r.Below(int(Undetected), "detection"))}
		if r.Err != nil {
			return c
		}
		c.heard = append(c.heard, h)
	}
	return c
}

func (r *stateReader) subject() SubjectKind {
	return SubjectKind(r.Below(len(subjectKinds), "subject"))
}

func (c *core) subjects(k SubjectKind) int {
	if k == AboutObjective {
		return len(c.objectives)
	}
	return len(c.beats)
}
