package director

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// Apply changes the state by one event. It is total: an event that cannot
// follow is refused with an error that wraps [ErrRecord] (or, for an episode,
// [ErrEpisode]) and leaves the state as it was. Whoever wrote the events, no
// beat lands that was not eligible, and no choice is made twice. Beyond that
// Apply makes sure that an event means something here, and not that it was wise:
// that was decided before.
//
// The declaration of an episode is taken too, as [State.Declare] does.
func (s *State) Apply(word string, v signal.Value) error {
	switch word {
	case Word:
		return s.Declare(v)
	case EpisodeStarted:
		return s.start(v)
	case EpisodeRevised:
		return s.revise(v)
	}
	if s.episode == nil {
		return recordError(word, "no episode has started")
	}
	turn, ok := intOf(v, "turn")
	if !ok {
		return recordError(word, "no turn")
	}
	a := application{s: s, word: word, v: v, turn: turn, c: s.core, kept: s.kept}
	// The turn in hand is the only one that events are about, save for its
	// opening and for late verdicts, which change nothing.
	if word != TurnOpened && turn != s.core.turn {
		if word == VerdictRecorded && boolOf(v, "inactive") && turn < s.core.turn {
			return nil
		}
		return recordError(word, "it is about turn "+itoa(turn)+", and this is turn "+itoa(s.core.turn))
	}
	if reason := a.apply(); reason != "" {
		return recordError(word, reason)
	}
	s.core, s.kept = a.c, a.kept
	return nil
}

// start applies episodeStarted. Flags of an episode before are carried over.
func (s *State) start(v signal.Value) error {
	e, reason := s.declaredAs(v, "digest")
	if reason != "" {
		return recordError(EpisodeStarted, reason)
	}
	c := newCore(e)
	energy, _ := textOf(v, "energy")
	if c.energy = slices.Index(Energies, energy); c.energy < 0 {
		return recordError(EpisodeStarted, "no such energy")
	}
	for _, f := range s.core.flags {
		c.setFlag(flag{name: f.name, cause: f.cause})
	}
	given, _ := v.Get("flags")
	for f := range given.Elements() {
		name, ok := f.Text()
		if !ok || name == "" {
			return recordError(EpisodeStarted, "a flag without a name")
		}
		c.setFlag(flag{name: strings.Clone(name), cause: "start"})
	}
	s.episode, s.declared, s.core, s.kept = e, nil, c, nil
	return nil
}

// application is one event being applied, to a copy.
type application struct {
	s    *State
	word string
	v    signal.Value
	turn int
	c    core
	kept *core
}

// apply returns why the event cannot follow, "" if it can.
func (a *application) apply() string {
	switch a.word {
	case TurnOpened:
		return a.opened()
	case ResponseRecorded:
		return a.responded()
	case GuidanceIssued:
		return a.guided()
	case AttemptDropped:
		if a.kept == nil {
			return "there is no response to drop"
		}
		dropped := a.c
		a.c, a.kept = *a.kept, nil
		a.c.attempt, a.c.flags = dropped.attempt, dropped.flagsWithout(&a.c)
		return ""
	case JudgementAsked, VerdictRecorded:
		return a.judged()
	case BeatHeld, BeatLanded, BeatMissed, DeadlineMissed, BeatForced:
		return a.beat()
	case ChoiceOffered, ChoiceSelected, ChoiceDeclined:
		return a.choice()
	case FlagSet, FlagCleared:
		name, ok := ownText(a.v, "flag")
		if !ok || name == "" {
			return "no flag"
		}
		if a.word == FlagCleared {
			a.c.clearFlag(name)
			return ""
		}
		cause, _ := ownText(a.v, "cause")
		f := flag{name, cause, a.turn, boolOf(a.v, "outside")}
		if f.outside && a.c.fleeting(name, a.kept) {
			a.c.clearFlag(name)
		}
		a.c.setFlag(f)
		return ""
	case ObjectiveCompleted, ObjectiveFailed:
		_, i, ok := a.s.episode.subjectOf(a.v)
		if _, beat := textOf(a.v, "beat"); !ok || beat {
			return "no such objective"
		}
		a.c.objectives = slices.Clone(a.c.objectives)
		o := &a.c.objectives[i]
		if o.at, o.status = a.turn, objectiveCompleted; a.word == ObjectiveFailed {
			o.status = objectiveFailed
		}
		return ""
	case PropRevealed:
		id, _ := textOf(a.v, "prop")
		i := slices.IndexFunc(a.s.episode.Props, func(p Prop) bool { return p.ID == id })
		if i < 0 || a.turn == 0 {
			return "no such prop"
		}
		a.c.props = slices.Clone(a.c.props)
		a.c.props[i] = a.turn
		return ""
	case EpisodeFailed:
		a.c.failed = true
		return ""
	case VisualTriggered:
		i, ok := intOf(a.v, "index")
		if !ok || i != a.c.visuals+1 {
			return "pictures are counted one by one"
		}
		a.c.visuals = i
		return ""
	case SuggestionMade:
		if cause, _ := textOf(a.v, "cause"); cause == causeBudget {
			a.c.suggested = true
		}
		return ""
	case TurnEvaluated:
		if a.c.phase != phaseResponded || len(a.c.awaiting) > 0 {
			return "the turn is not ready for it"
		}
		a.c.phase, a.c.heard = phaseEvaluated, nil
		a.c.overdue(a.s, a.kept)
		return ""
	default:
		return "an unknown word"
	}
}

func (a *application) opened() string {
	c := &a.c
	if a.turn == 0 || a.turn < c.turn || a.turn == c.turn && c.phase != phaseOpened {
		return "turn " + itoa(c.turn) + " has come already"
	}
	input, _ := textOf(a.v, "input")
	i := slices.Index(inputs, input)
	if i < 0 {
		return "an input of no kind"
	}
	c.input = inputKind(i)
	c.turn, c.phase, c.attempt, c.directive, c.answer = a.turn, phaseOpened, 0, -1, Answer{}
	c.digest, c.tail, c.heard, c.awaiting = Digest{}, "", nil, nil
	d, _ := ownText(a.v, "digest")
	c.said = d
	if len(d) > 2*len(Digest{}) {
		return "a digest that is none"
	}
	for i := range c.objectives {
		if c.objectives[i].status == objectivePending {
			c.objectives = slices.Clone(c.objectives)
			for j := range c.objectives {
				c.objectives[j].status = max(c.objectives[j].status, objectiveInProgress)
			}
			break
		}
	}
	a.kept = nil
	return ""
}

func (a *application) guided() string {
	if a.c.phase != phaseOpened {
		return "the turn is not open"
	}
	a.c.directive = -1
	d, ok := a.v.Get("directive")
	if !ok {
		return ""
	}
	id, _ := textOf(d, "beat")
	i, known := a.s.episode.beats[id]
	if !known {
		return "no such beat"
	}
	a.c.directive = i
	return ""
}

func (a *application) responded() string {
	c := &a.c
	attempt, ok := intOf(a.v, "attempt")
	if c.phase != phaseOpened || !ok || attempt <= c.attempt {
		return "the turn waits for no such response"
	}
	before := a.c
	a.kept = &before
	d, _ := textOf(a.v, "digest")
	if c.digest, ok = parseDigest(d); !ok {
		return "no digest"
	}
	tail, _ := ownText(a.v, "tail")
	c.phase, c.attempt, c.tail = phaseResponded, attempt, tailOf(tail)
	if i := c.directive; i >= 0 && c.beats.at(i).deliveredAt == 0 {
		c.beats.edit(i).deliveredAt = a.turn
	}
	return ""
}

func (a *application) judged() string {
	c := &a.c
	if boolOf(a.v, "inactive") {
		return ""
	}
	subject, i, ok := a.s.episode.subjectOf(a.v)
	if attempt, _ := intOf(a.v, "attempt"); !ok || c.phase != phaseResponded || attempt != c.attempt {
		return "nothing like it is judged"
	}
	at := slices.IndexFunc(c.awaiting, func(w awaited) bool { return w.kind == subject.Kind && w.index == i })
	if a.word == JudgementAsked {
		if at >= 0 {
			return "it is asked already"
		}
		c.awaiting = append(slices.Clone(c.awaiting), awaited{kind: subject.Kind, index: i})
		return ""
	}
	name, _ := textOf(a.v, "method")
	method := slices.Index(detections[:Undetected], name)
	verdict, _ := textOf(a.v, "verdict")
	if method < 0 || !slices.Contains(findings, verdict) {
		return "it says nothing"
	}
	if Detection(method) == Semantic {
		if at < 0 {
			return "nobody has asked"
		}
		c.awaiting = slices.Clone(c.awaiting)
		if boolOf(a.v, "again") {
			c.awaiting[at].tries++
			return ""
		}
		c.awaiting = slices.Delete(c.awaiting, at, at+1)
	}
	if verdict == "yes" {
		c.heard = append(slices.Clone(c.heard), heard{subject.Kind, i, Detection(method)})
	}
	return ""
}

func (a *application) beat() string {
	id, _ := textOf(a.v, "beat")
	i, ok := a.s.episode.beats[id]
	if !ok {
		return "no such beat"
	}
	c := &a.c
	if c.beats.at(i).status != statusPending {
		return "the beat is not pending"
	}
	if a.word == BeatForced {
		line, _ := ownText(a.v, "line")
		c.tail = tailOf(line)
		return ""
	}
	assured, _ := textOf(a.v, "assurance")
	assurance := slices.Index(assurances, assured)
	said, ok := intOf(a.v, "heard_at_turn")
	landing := a.word == BeatLanded || a.word == BeatHeld
	if landing && (assurance <= 0 || !ok || said == 0 || said > a.turn) {
		return "it does not say how, or when"
	}
	if landing && (c.phase != phaseResponded || !a.s.wasEligible(c, a.kept, i)) {
		return "the beat was not eligible in this turn"
	}
	if a.word == BeatLanded && a.s.episode.Beats[i].Choice >= 0 && c.pendingChoice() >= 0 {
		return "another choice is pending"
	}
	if a.word == BeatHeld {
		if c.heldAt(i) >= 0 {
			return "it is held already"
		}
		method, _ := ownText(a.v, "method")
		tail, _ := ownText(a.v, "tail")
		if len(method) > maxID {
			return "a method without end"
		}
		c.held = append(slices.Clone(c.held), held{i, said, method, uint8(assurance), tailOf(tail)})
		return ""
	}
	b := c.beats.edit(i)
	switch a.word {
	case DeadlineMissed:
		b.missedDeadline = true
	case BeatMissed:
		b.status, b.landedAt = statusMissed, a.turn
		d, _ := textOf(a.v, "dependants")
		b.released = d == Release.String()
		c.drop(i)
	default: // landed
		b.status, b.landedAt, b.heardAt, b.assurance = statusCompleted, a.turn, said, uint8(assurance)
		// What was answered before a revision moved it here is not asked again.
		if j := a.s.episode.Beats[i].Choice; j >= 0 && c.choices.at(j).status == choiceClosed {
			b.status = statusDetected
		}
		c.drop(i)
	}
	return ""
}

func (a *application) choice() string {
	id, _ := textOf(a.v, "choice_point")
	i, ok := a.s.episode.choice[id]
	if !ok {
		return "no such choice point"
	}
	point := &a.s.episode.Choices[i]
	c := &a.c
	if point.Beat >= 0 && c.beats.at(point.Beat).status != statusDetected {
		return "its beat has not landed, or is over"
	}
	p := c.choices.edit(i)
	if a.word == ChoiceOffered {
		if p.status != choiceClosed {
			return "it was offered before"
		}
		said, _ := ownText(a.v, "character_said")
		p.status, p.offeredAt, p.said = choiceOpen, a.turn, tailOf(said)
		return ""
	}
	if p.status != choiceOpen {
		return "it is not open"
	}
	p.madeAt = a.turn
	if a.word == ChoiceDeclined {
		p.status = choiceDeclined
	} else {
		name, _ := textOf(a.v, "choice")
		option := point.option(name)
		if option < 0 {
			return "no such choice"
		}
		p.status, p.option = choiceSelected, point.Options[option].ID
		if point.Beat >= 0 {
			c.answer = Answer{point.Options[option].Label, point.ID, p.option}
		}
		// What was answered cannot be said anew.
		a.kept = nil
	}
	if b := point.Beat; b >= 0 {
		c.beats.edit(b).status = statusCompleted
	}
	return ""
}
