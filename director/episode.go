package director

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/signal"
)

// Episode is one authored scene. Episodes are made by [Parse] and [Compile]
// and must not be changed.
type Episode struct {
	ID, Title        string
	Situation        string
	OpeningLine      string
	DramaticQuestion string
	// Objective, Obstacle and Tactic are the character's motivation. They are
	// taken in once, at the beginning: see [Episode.Briefing].
	Objective, Obstacle, Tactic string
	// Genre is the key as it was written, in lower snake case; Doctrine is what
	// it stands for, that of romantic_tension if nothing is known by that name.
	Genre    string
	Doctrine *Genre
	Energy   string // one of Energies
	// Budget is the number of turns the scene is paced for; 0 leaves it open.
	Budget      int
	UserHint    string
	NextEpisode string

	Beats      []Beat
	Choices    []ChoicePoint // of beats first, in their order, then legacy ones
	Objectives []Objective
	Props      []Prop
	Contexts   []ContextRule
	Signals    []SignalRule
	FlagRules  []FlagRule
	Flags      []string // that other episodes of the series may have set
	Visuals    Visuals
	Policy     Policy

	value   signal.Value
	digest  Digest
	beats   map[string]int
	choice  map[string]int
	cues    map[string][]int   // places in Signals, by what they are on
	listens map[listened][]int // places in FlagRules
}

// Value returns the episode as it was written. It must not be changed.
func (e *Episode) Value() signal.Value { return e.value }

// Word returns "episode", as declarations say what they are.
func (e *Episode) Word() string { return Word }

// Name returns the episode's id.
func (e *Episode) Name() string { return e.ID }

// Digest names the episode by its content.
func (e *Episode) Digest() Digest { return e.digest }

// Beat is a moment that must happen.
type Beat struct {
	ID          string
	Description string // what must happen, for judges and people
	Instruction string // what the character is told
	// Target is the ideal turn, Deadline the one by which it must have landed.
	Target, Deadline int
	Detection        Detection
	Criteria         string   // as written
	Keywords         []string // of keyword detection, trimmed, none empty
	// RequiresBeat is the index of a beat that must be completed first, -1 if
	// there is none.
	RequiresBeat int
	RequiresFlag string
	Choice       int // index in Episode.Choices, -1 if landing opens none

	MaxOverdue int // overdue turns after which OnMiss applies; 0 means never
	OnMiss     OnMiss
	Dependants Dependants
	ForcedLine string

	keywords []keyword
}

// Detection says how one knows that a beat has landed.
type Detection uint8

// The ways of detection.
const (
	Semantic   Detection = iota // a judge is asked
	Keyword                     // one of some words occurs in the response
	Automatic                   // assumed of a response that was told to
	Undetected                  // of any other type: such a beat never lands
)

var detections = []string{"semantic", "keyword", "automatic", "undetected"}

func (d Detection) String() string { return detections[d] }

// OnMiss says what becomes of a beat that is overdue for too long.
type OnMiss uint8

// What can become of an overdue beat.
const (
	Keep  OnMiss = iota // it stays overdue
	Force               // the authored line is inserted in the scene
	Skip                // it is given up
	Fail                // it is given up, and the episode with it
)

var onMisses = []string{"keep", "force", "skip", "fail"}

func (m OnMiss) String() string { return onMisses[m] }

// Dependants says what becomes of beats that require one that was given up.
type Dependants uint8

// What can become of them.
const (
	Drop    Dependants = iota // they are given up as well
	Release                   // they need it no longer
)

var dependants = []string{"drop", "release"}

func (d Dependants) String() string { return dependants[d] }

// ChoicePoint is a question that is put before the user.
type ChoicePoint struct {
	ID      string
	Prompt  string
	Options []Option
	Beat    int     // whose landing opens it, -1 for a legacy one
	Trigger Trigger // of a legacy one
}

// Option is one answer.
type Option struct {
	ID         string
	Label      string // what the user says by choosing it
	SetsFlag   string
	ClearsFlag string
}

func (c *ChoicePoint) option(id string) int {
	for i := range c.Options {
		if c.Options[i].ID == id {
			return i
		}
	}
	return -1
}

// Trigger says when a legacy choice point opens.
type Trigger struct {
	Turn      int // at this turn or the first one evaluated after it; 0 if not by turn
	Objective int // when this objective is completed, if Turn is 0
}

// Objective is what the user is after.
type Objective struct {
	ID, Description      string
	Success, Failure     Condition
	OnSuccess, OnFailure Effect
}

// Condition is when an objective is reached or lost.
type Condition struct {
	Kind     ConditionKind
	Turn     int
	Flag     string
	Criteria string
	Keywords []string

	keywords []keyword
}

// ConditionKind is a kind of [Condition].
type ConditionKind uint8

// The kinds of condition.
const (
	Never ConditionKind = iota
	BySemantic
	ByKeyword
	ByTurn
	ByFlag
	ByBudget // the turn budget is exceeded
)

// Effect is what comes of an objective's end.
type Effect struct {
	SetFlag        string
	SuggestEpisode string
}

// Prop is an object with an exact content that can come to light once.
type Prop struct {
	ID, Name, Slug, Content string
	Automatic               bool // comes to light at Turn; otherwise when it is named
	Turn                    int
	Requires                int // a prop that must have come to light before, -1 if none

	keywords []keyword // what it can be called
}

// ContextRule is a sentence for the character that a flag brings in.
type ContextRule struct{ Flag, Inject string }

// Visuals says at which turns a picture of the scene is wanted.
type Visuals struct {
	Mode   string // "none", "cinematic" or "minimal"
	Budget int    // pictures, if cinematic
}

// Policy is how an author wants open questions decided.
type Policy struct {
	// Urgent takes the most urgent beat of those due, not the first.
	Urgent bool
	// Spontaneous lets eligible beats land that were not directed.
	Spontaneous bool
	// Free lets the user type while a choice is open, which declines it.
	Free bool
	// Contains looks for keywords inside words too.
	Contains bool
	// JudgeRetries is how often an unclear verdict is asked for again.
	JudgeRetries int
}

// BeatIndex returns the place of a beat in Beats.
func (e *Episode) BeatIndex(id string) (int, bool) {
	i, ok := e.beats[id]
	return i, ok
}

// ChoiceIndex returns the place of a choice point in Choices.
func (e *Episode) ChoiceIndex(id string) (int, bool) {
	i, ok := e.choice[id]
	return i, ok
}

// Briefing returns what the character takes in once, before the first turn:
// the situation and its own motivation. Nothing of it is made anew per turn.
func (e *Episode) Briefing() string {
	var s string
	add := func(head, text string) {
		if text != "" {
			s += head + text + "\n"
		}
	}
	add("Situation: ", e.Situation)
	add("At stake: ", e.DramaticQuestion)
	add("You want: ", e.Objective)
	add("In your way: ", e.Obstacle)
	add("How you go about it: ", e.Tactic)
	add("You open with: ", e.OpeningLine)
	return s
}

// Compile makes an episode of a value. It accepts exactly what [Parse] accepts;
// the error is the first that Parse would report and wraps [ErrEpisode] or
// [ErrVersion].
func Compile(v signal.Value) (*Episode, error) {
	b := builder{}
	e := b.episode(v)
	if b.version {
		return nil, ErrVersion
	}
	for _, f := range b.findings {
		if f.severity == Error {
			return nil, fmt.Errorf("%w: %s: %s", ErrEpisode, pointer(f.mark.Segments), f.message)
		}
	}
	if e == nil {
		return nil, errors.New("director: an episode without a reason")
	}
	return e, nil
}
