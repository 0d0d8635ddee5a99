// Package episode is the format in which authors write episodes: beats, which are
// moments that must happen, choices, flags, objectives, props and rules.
//
// [Parse] reads an episode from a file and returns diagnostics for its author;
// [Compile] reads the value that a log recorded and accepts exactly the values that
// Parse accepts. [ParseSeries] checks episodes that are played one after another, and
// [Migrate] converts the choice cards of earlier episodes to beats.
//
// The format is that of the beat contract (ADR-009, "Data Model"); docs/episodes.md
// describes it for authors, and [Schema] is its JSON schema.
//
// # Invariants
//
//   - An [Episode] is immutable and safe for concurrent use. Its [ContentDigest]
//     identifies it.
//   - An episode is data: the director decides, this package plays nothing.
//   - The names of transitions are the words of the director's events and part of
//     the log format: see [Words].
//
// # Limits
//
// Word boundaries, case folding and normal forms are those of the Unicode version
// that the program was built with. The director records what a search found and
// never repeats a recorded search.
//
// The package is pure: no clock, no goroutine, no input or output.
package episode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
)

// Episode is one authored scene. Episodes are made by [Parse] and [Compile]
// and must not be changed.
type Episode struct {
	ID, Title        string
	Situation        string
	OpeningLine      string
	DramaticQuestion string
	// Objective, Obstacle and Tactic are the character's motivation. The character
	// learns them once, at the beginning: see [Episode.Briefing].
	Objective, Obstacle, Tactic string
	// Genre is the key as it was written, in lower snake case; Doctrine is the genre
	// of that name, or romantic_tension if the name is unknown.
	Genre    string
	Doctrine *Genre
	Energy   string // one of Energies
	// Budget is the number of turns for which the scene is paced; 0 means an open end.
	Budget      int
	UserHint    string
	NextEpisode string

	Beats      []Beat
	Choices    []ChoicePoint // those of beats in the order of the beats, then legacy ones
	Objectives []Objective
	Props      []Prop
	Contexts   []ContextRule
	Signals    []SignalRule
	FlagRules  []FlagRule
	Flags      []string // that other episodes of the series may have set
	Visuals    Visuals
	Policy     DirectingPolicy

	value   signal.Value
	digest  ContentDigest
	beats   map[string]int
	choice  map[string]int
	cues    map[string][]int   // indexes of Signals, by transition
	listens map[listened][]int // indexes of FlagRules, by event
}

// Value returns the episode as it was written. It must not be changed.
func (e *Episode) Value() signal.Value { return e.value }

// Word returns [Word], the word of an episode's declaration.
func (e *Episode) Word() string { return Word }

// Name returns the episode's id.
func (e *Episode) Name() string { return e.ID }

// Digest returns the digest of the episode's content.
func (e *Episode) Digest() ContentDigest { return e.digest }

// Beat is a moment that must happen.
type Beat struct {
	ID          string
	Description string // the moment, for judges and people
	Instruction string // for the character
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

	keywords []SearchedWord
}

// Detection is the way of finding out that a beat has landed.
type Detection uint8

// The ways of detection.
const (
	Semantic   Detection = iota // a judge decides
	Keyword                     // a keyword occurs in the response
	Automatic                   // assumed for a response that was directed to the beat
	Undetected                  // any other type: such a beat never lands
)

var detections = []string{"semantic", "keyword", "automatic", "undetected"}

func (d Detection) String() string { return detections[d] }

// OnMiss says what the director does with a beat that is overdue for too long.
type OnMiss uint8

// The values of OnMiss.
const (
	Keep  OnMiss = iota // it stays overdue
	Force               // the authored line is inserted in the scene
	Skip                // it is given up
	Fail                // it is given up, and the episode fails
)

var onMisses = []string{"keep", "force", "skip", "fail"}

func (m OnMiss) String() string { return onMisses[m] }

// Dependants says what the director does with the beats that require a beat that was
// given up.
type Dependants uint8

// The values of Dependants.
const (
	Drop    Dependants = iota // they are given up too
	Release                   // they no longer require it
)

var dependants = []string{"drop", "release"}

func (d Dependants) String() string { return dependants[d] }

// ChoicePoint is a choice that is offered to the user.
type ChoicePoint struct {
	ID      string
	Prompt  string // as written; see [ChoicePoint.PromptAfter]
	Options []Option
	Beat    int     // index of the beat whose landing offers it, -1 for a legacy one
	Trigger Trigger // of a legacy one
}

// Option is one option of a choice point.
type Option struct {
	ID         string
	Label      string // what the user says by choosing it
	SetsFlag   string
	ClearsFlag string
}

// saidPlaceholder stands in a prompt for the character's words.
const saidPlaceholder = "{character_said}"

// PromptAfter returns the prompt of the choice after a response with this end: the
// placeholder {character_said} is replaced by it (ADR-009, "Choice-as-Message Flow": the
// prompt "can be overridden with actual dialogue").
func (c *ChoicePoint) PromptAfter(said string) string {
	return strings.ReplaceAll(c.Prompt, saidPlaceholder, said)
}

// OptionIndex returns the index of the option with that id, -1 if there is none.
func (c *ChoicePoint) OptionIndex(id string) int {
	for i := range c.Options {
		if c.Options[i].ID == id {
			return i
		}
	}
	return -1
}

// Trigger says when a legacy choice point is offered.
type Trigger struct {
	Turn      int // the first turn of at least this number; 0 if an objective triggers
	Objective int // index of the objective whose completion triggers, if Turn is 0
}

// Objective is a goal of the user.
type Objective struct {
	ID, Description      string
	Success, Failure     ObjectiveCondition
	OnSuccess, OnFailure ObjectiveEffect
}

// ObjectiveCondition is the condition under which an objective is completed or fails.
type ObjectiveCondition struct {
	Kind     ConditionKind
	Turn     int
	Flag     string
	Criteria string
	Keywords []string

	keywords []SearchedWord
}

// ConditionKind is a kind of [ObjectiveCondition].
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

// ObjectiveEffect is the effect of an objective that ended.
type ObjectiveEffect struct {
	SetFlag        string
	SuggestEpisode string
}

// Prop is an object with exact content that can be revealed once.
type Prop struct {
	ID, Name, Slug, Content string
	Automatic               bool // revealed at Turn; otherwise when a response names it
	Turn                    int
	Requires                int // index of a prop that must be revealed first, -1 if none

	keywords []SearchedWord // its names
}

// ContextRule is a sentence that the character is given while a flag is set.
type ContextRule struct{ Flag, Inject string }

// Visuals says at which turns pictures of the scene are triggered.
type Visuals struct {
	Mode   string // "none", "cinematic" or "minimal"
	Budget int    // pictures, if cinematic
}

// DirectingPolicy holds the author's choices where the director has a choice.
type DirectingPolicy struct {
	// Urgent takes the most urgent beat of those due, not the first.
	Urgent bool
	// Spontaneous lets eligible beats land that were not directed.
	Spontaneous bool
	// Free lets the user type while a choice is pending, which declines the choice.
	Free bool
	// Contains finds keywords inside words too.
	Contains bool
	// JudgeRetries bounds how often a question is asked again after an unclear verdict.
	JudgeRetries int
}

// BeatIndex returns the index of a beat in Beats.
func (e *Episode) BeatIndex(id string) (int, bool) {
	i, ok := e.beats[id]
	return i, ok
}

// ChoiceIndex returns the index of a choice point in Choices.
func (e *Episode) ChoiceIndex(id string) (int, bool) {
	i, ok := e.choice[id]
	return i, ok
}

// Briefing returns the situation and the character's motivation. The character is given
// them once, before the first turn (beat contract, "The Metaphor Gap").
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

// Compile returns the episode of a value. It accepts exactly the values that [Parse]
// accepts. The error is one that Parse would report and wraps [ErrEpisode] or
// [ErrVersion].
func Compile(v signal.Value) (*Episode, error) {
	b := builder{}
	e := b.episode(v)
	if b.version {
		return nil, ErrVersion
	}
	for _, r := range b.List() {
		if r.Severity == authored.SeverityError {
			return nil, fmt.Errorf("%w: %s: %s", ErrEpisode, r.Location.Pointer(), r.Message)
		}
	}
	if e == nil {
		return nil, errors.New("director: an episode without a reason")
	}
	return e, nil
}

// DetectionNamed returns the way of detection of that name; false if there is none by
// which a beat can land.
func DetectionNamed(name string) (Detection, bool) {
	i := slices.Index(detections[:Undetected], name)
	return Detection(max(i, 0)), i >= 0
}
