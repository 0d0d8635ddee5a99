package director

import (
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// State is what the events of one session add up to. The zero State has no
// episode yet. Its size is bounded by the episodes, not by the turns played.
//
// A State may be copied: what it holds is replaced, never written to.
type State struct {
	episode  *Episode // nil before the first; immutable
	declared *Episode // the newest that has not begun, nil if there is none
	core     core
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
	answer        Answer // the next input, without a choice point if none
	energy        int    // index in Energies
	visuals       int    // pictures triggered
	suggested     bool   // the budget's suggestion was made
	failed        bool
	beats         table[beatState]
	choices       table[choiceState]
	objectives    []objectiveState
	props         []int // the turn each came to light, 0 if it has not
	flags         []flag
	held          []held
	awaiting      []awaited
	heard         []heard
	gone          history
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
	option            string // the id of the option selected, "" if none
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
	outside     bool // not of a response, and so not undone with one
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
		directive: -1,
		beats:     newTable[beatState](len(e.Beats)), choices: newTable[choiceState](len(e.Choices)),
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
func (c *core) setFlag(f flag) {
	if i, ok := c.findFlag(f.name); !ok {
		c.flags = slices.Insert(slices.Clone(c.flags), i, f)
	}
}

// fleeting reports whether a flag would go with the response in hand.
func (c *core) fleeting(name string, before *core) bool {
	i, ok := c.findFlag(name)
	return ok && before != nil && !c.flags[i].outside && !before.hasFlag(name)
}

// flagsWithout returns the flags less those that came of a response that is
// dropped. Only what was heard meanwhile stays, and what it cleared is cleared.
func (c *core) flagsWithout(before *core) []flag {
	if slices.Equal(c.flags, before.flags) {
		return before.flags
	}
	var flags []flag
	for _, f := range c.flags {
		i, had := before.findFlag(f.name)
		if f.outside || had && before.flags[i] == f {
			flags = append(flags, f)
		}
	}
	return flags
}

func (c *core) clearFlag(name string) {
	if i, ok := c.findFlag(name); ok {
		c.flags = slices.Delete(slices.Clone(c.flags), i, i+1)
	}
}

// pendingChoice returns the choice that replaces the user's input, -1 if none.
func (c *core) pendingChoice() int {
	for i := range c.beats.len() {
		if c.beats.at(i).status == statusDetected {
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
	for i := range c.beats.len() {
		if c.beats.at(i).overdueFrom == 0 && c.turn >= s.episode.Beats[i].Deadline && s.wasEligible(c, before, i) {
			c.beats.edit(i).overdueFrom = c.turn
		}
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
