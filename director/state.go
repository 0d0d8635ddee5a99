package director

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// State is the result of the director's events of one session. The zero State has no
// episode yet. Its size is bounded by the episodes, not by the number of turns.
//
// A State may be copied by assignment: changes replace what its fields refer to and
// never write to it. One goroutine at a time may change a State.
type State struct {
	episode  *episode.Episode // nil before the first; immutable
	declared *episode.Episode // the newest that has not begun, nil if there is none
	core     core
	// rollback is the core before the response of this turn, to which another attempt
	// returns; nil if the response cannot be dropped.
	rollback *core
}

// Episode returns the episode being played, nil if none is.
func (s *State) Episode() *episode.Episode { return s.episode }

// Turn returns the number of the latest turn that was opened, 0 before.
func (s *State) Turn() int { return s.core.turn }

type phase uint8

const (
	phaseIdle      phase = iota // no turn was opened yet
	phaseOpened                 // the response is awaited
	phaseResponded              // verdicts are awaited
	phaseEvaluated              // the turn is over
)

var phases = []string{"idle", "opened", "responded", "evaluated"}

type inputKind uint8

const (
	inputNone inputKind = iota
	inputText
	inputChoice
)

var inputs = []string{inputNameNone, inputNameText, inputNameChoice}

// ChoiceLine is the user's next line, which a choice has made.
type ChoiceLine struct {
	Content     string // the label of the option
	ChoicePoint string
	Choice      string
}

// core is the state without its episode. Copies share their slices: a slice is cloned
// before one of its elements is changed.
type core struct {
	turn, attempt int
	phase         phase
	input         inputKind
	inputDigest   string                // of the user's text
	digest        episode.ContentDigest // of the response
	tail          string                // the end of the response
	directive     int                   // the beat directed this turn, -1 if none
	answer        ChoiceLine            // the next input, without a choice point if none
	energy        int                   // index in Energies
	visuals       int                   // pictures triggered
	suggested     bool                  // the budget's suggestion was made
	failed        bool
	beats         table[beatState]
	choices       table[choiceState]
	objectives    []objectiveState
	props         []int // the turn in which each was revealed, 0 if it was not
	flags         []flag
	held          []held
	awaiting      []awaited
	found         []found
	removed       removedParts
}

type status uint8

const (
	statusPending status = iota
	statusDetected
	statusCompleted
	statusMissed
)

var statuses = []string{"pending", "detected", "completed", "missed"}

// Indexes of assurances.
const (
	assuranceVerified = 1
	assuranceAssumed  = 2
	assuranceForced   = 3
)

var assurances = []string{"", Verified, Assumed, Forced}

type beatState struct {
	status         status
	assurance      uint8
	released       bool // the beat was missed, and beats that require it may go on
	missedDeadline bool // deadlineMissed was recorded
	deliveredAt    int  // the first turn that directed it and had a response, 0 if none
	heardAt        int  // the turn whose response accomplished it
	landedAt       int  // the turn in which it landed or was given up
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

// flag is a flag that is set. A core's flags are sorted by name.
type flag struct {
	name, cause string
	turn        int
	outside     bool // set by an external event, so not undone with a response
}

// held is a beat that was found while another choice was pending. It lands in the
// next turn that has no pending choice.
type held struct {
	beat, turn int
	method     string
	assurance  uint8
	tail       string
}

// awaited is a question whose verdict the turn waits for.
type awaited struct {
	kind  episode.SubjectKind
	index int
	tries int // unclear answers so far
}

// found is a positive verdict. It takes effect when the turn is evaluated.
type found struct {
	kind   episode.SubjectKind
	index  int
	method episode.Detection
}

func newCore(e *episode.Episode) core {
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

// setFlag sets a flag. A flag that is set keeps its first cause.
func (c *core) setFlag(f flag) {
	if i, ok := c.findFlag(f.name); !ok {
		c.flags = slices.Insert(slices.Clone(c.flags), i, f)
	}
}

// fleeting reports whether dropping the current response would clear a flag.
func (c *core) fleeting(name string, before *core) bool {
	i, ok := c.findFlag(name)
	return ok && before != nil && !c.flags[i].outside && !before.hasFlag(name)
}

// flagsWithout returns the flags after a response is dropped, where before is the core
// before it. Flags that the response set are removed; the effects of external events
// since then stay.
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

// pendingChoice returns the index of the beat whose choice replaces the user's input,
// -1 if there is none.
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

// drop removes a beat from the held ones.
func (c *core) drop(beat int) {
	if i := c.heldAt(beat); i >= 0 {
		c.held = slices.Delete(slices.Clone(c.held), i, i+1)
		if len(c.held) == 0 {
			c.held = nil
		}
	}
}

// overdue records in the core which beats this turn leaves overdue for the first
// time.
func (c *core) overdue(s *State, before *core) {
	for i := range c.beats.len() {
		if c.beats.at(i).overdueFrom == 0 && c.turn >= s.episode.Beats[i].Deadline && s.wasEligible(c, before, i) {
			c.beats.edit(i).overdueFrom = c.turn
		}
	}
}

// tailLength bounds the end of a response that a choice shows, in code points.
const tailLength = 200

// tailOf returns the end of a text. It splits no code point.
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
