package director

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Apply changes the state by one event. It is total: an event that cannot follow is
// refused with an error that wraps [ErrRecord] (or, for an episode,
// [episode.ErrEpisode]) and leaves the state as it was. Even for forged events it
// holds that no beat lands that was not eligible and no choice is made twice. Beyond
// that Apply checks that an event has a meaning in the state, and not that the
// director would decide it.
//
// The declaration of an episode is applied as by [State.Declare].
func (s *State) Apply(word string, v signal.Value) error {
	switch word {
	case episode.Word:
		return s.Declare(v)
	case episode.EpisodeStarted:
		return s.start(v)
	case episode.EpisodeRevised:
		return s.revise(v)
	}
	if s.episode == nil {
		return recordError(word, "no episode has started")
	}
	turn, ok := intOf(v, "turn")
	if !ok {
		return recordError(word, "no turn")
	}
	a := application{s: s, word: word, v: v, turn: turn, c: s.core, rollback: s.rollback}
	// Events concern the current turn, except for the opening of the next one and
	// for late verdicts, which change nothing.
	if word != episode.TurnOpened && turn != s.core.turn {
		if word == episode.VerdictRecorded && v.BoolOf("inactive") && turn < s.core.turn {
			return nil
		}
		return recordError(word, "its turn is "+strconv.Itoa(turn)+", and the current turn is "+strconv.Itoa(s.core.turn))
	}
	if reason := a.apply(); reason != "" {
		return recordError(word, reason)
	}
	s.core, s.rollback = a.c, a.rollback
	return nil
}

// start applies episodeStarted. The flags of an earlier episode are carried over.
func (s *State) start(v signal.Value) error {
	e, reason := s.declaredAs(v, "digest")
	if reason != "" {
		return recordError(episode.EpisodeStarted, reason)
	}
	c := newCore(e)
	energy := v.TextOf("energy")
	if c.energy = episode.EnergyLevel(energy); c.energy < 0 {
		return recordError(episode.EpisodeStarted, "no such energy")
	}
	for _, f := range s.core.flags {
		c.setFlag(flag{name: f.name, cause: f.cause})
	}
	given, _ := v.Get("flags")
	for f := range given.Elements() {
		name, ok := f.Text()
		if !ok || name == "" {
			return recordError(episode.EpisodeStarted, "a flag without a name")
		}
		c.setFlag(flag{name: strings.Clone(name), cause: causeStart})
	}
	s.episode, s.declared, s.core, s.rollback = e, nil, c, nil
	return nil
}

// application applies one event to a copy of the state's core, so that an event that
// is refused half way changes nothing.
type application struct {
	s        *State
	word     string
	v        signal.Value
	turn     int
	c        core
	rollback *core
}

// apply returns the reason why the event cannot follow, "" if it can.
func (a *application) apply() string {
	switch a.word {
	case episode.TurnOpened:
		return a.opened()
	case episode.ResponseRecorded:
		return a.responded()
	case episode.GuidanceIssued:
		return a.guided()
	case episode.AttemptDropped:
		if a.rollback == nil {
			return "there is no response to drop"
		}
		dropped := a.c
		a.c, a.rollback = *a.rollback, nil
		a.c.attempt, a.c.flags = dropped.attempt, dropped.flagsWithout(&a.c)
		return ""
	case episode.JudgementAsked, episode.VerdictRecorded:
		return a.judged()
	case episode.BeatHeld, episode.BeatLanded, episode.BeatMissed, episode.DeadlineMissed, episode.BeatForced:
		return a.beat()
	case episode.ChoiceOffered, episode.ChoiceSelected, episode.ChoiceDeclined:
		return a.choice()
	case episode.FlagSet, episode.FlagCleared:
		name := ownText(a.v, "flag")
		if name == "" {
			return "no flag"
		}
		if a.word == episode.FlagCleared {
			a.c.clearFlag(name)
			return ""
		}
		cause := ownText(a.v, "cause")
		f := flag{name, cause, a.turn, a.v.BoolOf("outside")}
		if f.outside && a.c.fleeting(name, a.rollback) {
			a.c.clearFlag(name)
		}
		a.c.setFlag(f)
		return ""
	case episode.ObjectiveCompleted, episode.ObjectiveFailed:
		_, i, ok := a.s.episode.SubjectOf(a.v)
		if _, beat := a.v.Member("beat").Text(); !ok || beat {
			return "no such objective"
		}
		a.c.objectives = slices.Clone(a.c.objectives)
		o := &a.c.objectives[i]
		if o.at, o.status = a.turn, objectiveCompleted; a.word == episode.ObjectiveFailed {
			o.status = objectiveFailed
		}
		return ""
	case episode.PropRevealed:
		id := a.v.TextOf("prop")
		i := slices.IndexFunc(a.s.episode.Props, func(p episode.Prop) bool { return p.ID == id })
		if i < 0 || a.turn == 0 {
			return "no such prop"
		}
		a.c.props = slices.Clone(a.c.props)
		a.c.props[i] = a.turn
		return ""
	case episode.EpisodeFailed:
		a.c.failed = true
		return ""
	case episode.VisualTriggered:
		i, ok := intOf(a.v, "index")
		if !ok || i != a.c.visuals+1 {
			return "not the index of the next picture"
		}
		a.c.visuals = i
		return ""
	case episode.SuggestionMade:
		if a.v.TextOf("cause") == causeBudget {
			a.c.suggested = true
		}
		return ""
	case episode.TurnEvaluated:
		if a.c.phase != phaseResponded || len(a.c.awaiting) > 0 {
			return "the turn is not ready for it"
		}
		a.c.phase, a.c.found = phaseEvaluated, nil
		a.c.overdue(a.s, a.rollback)
		return ""
	default:
		return "an unknown word"
	}
}

func (a *application) opened() string {
	c := &a.c
	if a.turn == 0 || a.turn < c.turn || a.turn == c.turn && c.phase != phaseOpened {
		return "the turn is not after turn " + strconv.Itoa(c.turn)
	}
	input := a.v.TextOf("input")
	i := slices.Index(inputs, input)
	if i < 0 {
		return "an unknown kind of input"
	}
	c.input = inputKind(i)
	c.turn, c.phase, c.attempt, c.directive, c.answer = a.turn, phaseOpened, 0, -1, ChoiceLine{}
	c.digest, c.tail, c.found, c.awaiting = episode.ContentDigest{}, "", nil, nil
	d := ownText(a.v, "digest")
	c.inputDigest = d
	if len(d) > 2*len(episode.ContentDigest{}) {
		return "a digest that is too long"
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
	a.rollback = nil
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
	id := d.TextOf("beat")
	i, known := a.s.episode.BeatIndex(id)
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
		return "the turn does not expect the response"
	}
	before := a.c
	a.rollback = &before
	d := a.v.TextOf("digest")
	if c.digest, ok = episode.ParseDigest(d); !ok {
		return "no digest"
	}
	tail := ownText(a.v, "tail")
	c.phase, c.attempt, c.tail = phaseResponded, attempt, tailOf(tail)
	if i := c.directive; i >= 0 && c.beats.at(i).deliveredAt == 0 {
		c.beats.edit(i).deliveredAt = a.turn
	}
	return ""
}

func (a *application) judged() string {
	c := &a.c
	if a.v.BoolOf("inactive") {
		return ""
	}
	subject, i, ok := a.s.episode.SubjectOf(a.v)
	if attempt, _ := intOf(a.v, "attempt"); !ok || c.phase != phaseResponded || attempt != c.attempt {
		return "the verdict is not about the current response"
	}
	at := slices.IndexFunc(c.awaiting, func(w awaited) bool { return w.kind == subject.Kind && w.index == i })
	if a.word == episode.JudgementAsked {
		if at >= 0 {
			return "the question was asked before"
		}
		c.awaiting = append(slices.Clone(c.awaiting), awaited{kind: subject.Kind, index: i})
		return ""
	}
	name := a.v.TextOf("method")
	method, known := episode.DetectionNamed(name)
	verdict := a.v.TextOf("verdict")
	if !known || !slices.Contains(findings, verdict) {
		return "an unknown method or verdict"
	}
	if method == episode.Semantic {
		if at < 0 {
			return "the question was not asked"
		}
		c.awaiting = slices.Clone(c.awaiting)
		if a.v.BoolOf("again") {
			c.awaiting[at].tries++
			return ""
		}
		c.awaiting = slices.Delete(c.awaiting, at, at+1)
	}
	if verdict == "yes" {
		c.found = append(slices.Clone(c.found), found{subject.Kind, i, method})
	}
	return ""
}

func (a *application) beat() string {
	id := a.v.TextOf("beat")
	i, ok := a.s.episode.BeatIndex(id)
	if !ok {
		return "no such beat"
	}
	c := &a.c
	if c.beats.at(i).status != statusPending {
		return "the beat is not pending"
	}
	if a.word == episode.BeatForced {
		line := ownText(a.v, "line")
		c.tail = tailOf(line)
		return ""
	}
	assured := a.v.TextOf("assurance")
	assurance := slices.Index(assurances, assured)
	said, ok := intOf(a.v, "heard_at_turn")
	landing := a.word == episode.BeatLanded || a.word == episode.BeatHeld
	if landing && (assurance <= 0 || !ok || said == 0 || said > a.turn) {
		return "no assurance or turn"
	}
	if landing && (c.phase != phaseResponded || !a.s.wasEligible(c, a.rollback, i)) {
		return "the beat was not eligible in this turn"
	}
	if a.word == episode.BeatLanded && a.s.episode.Beats[i].Choice >= 0 && c.pendingChoice() >= 0 {
		return "another choice is pending"
	}
	if a.word == episode.BeatHeld {
		if c.heldAt(i) >= 0 {
			return "the beat is held already"
		}
		method := ownText(a.v, "method")
		tail := ownText(a.v, "tail")
		if len(method) > episode.MaxID {
			return "a method that is too long"
		}
		c.held = append(slices.Clone(c.held), held{i, said, method, uint8(assurance), tailOf(tail)})
		return ""
	}
	b := c.beats.edit(i)
	switch a.word {
	case episode.DeadlineMissed:
		b.missedDeadline = true
	case episode.BeatMissed:
		b.status, b.landedAt = statusMissed, a.turn
		d := a.v.TextOf("dependants")
		b.released = d == episode.Release.String()
		c.drop(i)
	default: // landed
		b.status, b.landedAt, b.heardAt, b.assurance = statusCompleted, a.turn, said, uint8(assurance)
		// A choice that was made before a revision moved it to this beat is not
		// offered again.
		if j := a.s.episode.Beats[i].Choice; j >= 0 && c.choices.at(j).status == choiceClosed {
			b.status = statusDetected
		}
		c.drop(i)
	}
	return ""
}

func (a *application) choice() string {
	id := a.v.TextOf("choice_point")
	i, ok := a.s.episode.ChoiceIndex(id)
	if !ok {
		return "no such choice point"
	}
	point := &a.s.episode.Choices[i]
	c := &a.c
	if point.Beat >= 0 && c.beats.at(point.Beat).status != statusDetected {
		return "the beat of the choice has not landed, or is over"
	}
	p := c.choices.edit(i)
	if a.word == episode.ChoiceOffered {
		if p.status != choiceClosed {
			return "the choice was offered before"
		}
		said := ownText(a.v, "character_said")
		p.status, p.offeredAt, p.said = choiceOpen, a.turn, tailOf(said)
		return ""
	}
	if p.status != choiceOpen {
		return "the choice is not open"
	}
	p.madeAt = a.turn
	if a.word == episode.ChoiceDeclined {
		p.status = choiceDeclined
	} else {
		name := a.v.TextOf("choice")
		option := point.OptionIndex(name)
		if option < 0 {
			return "no such choice"
		}
		p.status, p.option = choiceSelected, point.Options[option].ID
		if point.Beat >= 0 {
			c.answer = ChoiceLine{point.Options[option].Label, point.ID, p.option}
		}
		// The response to which a choice belongs cannot be dropped any more.
		a.rollback = nil
	}
	if b := point.Beat; b >= 0 {
		c.beats.edit(b).status = statusCompleted
	}
	return ""
}

// ownText returns a member that the state keeps. It copies the text, because the
// event may be a view of an entry's bytes.
func ownText(v signal.Value, name string) string { return strings.Clone(v.TextOf(name)) }
