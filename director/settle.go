package director

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// settle evaluates a turn of which all verdicts are in. Its order is fixed, so
// that the order in which verdicts came makes no difference.
func (d *decision) settle() error {
	steps := []func() error{d.land, d.deadlines, d.objectives, d.legacy, d.visuals, d.suggest}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	c := &d.s.core
	if err := d.emit(TurnEvaluated, attempted{c.turn, c.attempt}); err != nil {
		return err
	}
	d.out.Turn, d.out.Attempt, d.out.Evaluated = c.turn, c.attempt, true
	return nil
}

// candidate is a beat that was heard.
type candidate struct {
	beat, turn int
	method     string
	assurance  uint8
	tail       string
}

// land lands the beats that were heard: those held from turns before, then the
// one that was directed, then others in their order.
func (d *decision) land() error {
	c := &d.s.core
	var list []candidate
	for _, h := range c.held {
		if d.s.eligible(c, h.beat) {
			list = append(list, candidate(h))
		}
	}
	waiting := len(list)
	for _, h := range c.heard {
		// What was heard outside since may have cleared the flag that it requires.
		if h.kind != AboutBeat || !d.s.wasEligible(c, d.s.kept, h.index) {
			continue
		}
		assurance := uint8(assuranceVerified)
		if h.method == Automatic {
			assurance = assuranceAssumed
		}
		list = append(list, candidate{h.index, c.turn, h.method.String(), assurance, c.tail})
	}
	slices.SortStableFunc(list[waiting:], func(a, b candidate) int {
		switch directed := c.directive; {
		case a.beat == b.beat:
			return 0
		case a.beat == directed:
			return -1
		case b.beat == directed:
			return 1
		default:
			return a.beat - b.beat
		}
	})
	for i, l := range list {
		if err := d.landOne(l, i < waiting); err != nil {
			return err
		}
	}
	return nil
}

// landOne lands a beat, or holds it if it has a choice and this turn has one.
func (d *decision) landOne(l candidate, isHeld bool) error {
	c := &d.s.core
	beat := &d.s.episode.Beats[l.beat]
	if c.beats.at(l.beat).status != statusPending {
		return nil
	}
	event := beatLanded{c.turn, beat.ID, l.method, assurances[l.assurance], l.turn, ""}
	if beat.Choice >= 0 && c.pendingChoice() >= 0 {
		if isHeld {
			return nil
		}
		event.Tail = l.tail
		return d.emit(BeatHeld, event)
	}
	if err := d.emit(BeatLanded, event); err != nil {
		return err
	}
	d.out.Landed = append(d.out.Landed, Landing{beat.ID, l.method, event.Assurance, l.turn})
	if beat.Choice < 0 || c.choices.at(beat.Choice).status != choiceClosed {
		return nil
	}
	point := &d.s.episode.Choices[beat.Choice]
	err := d.emit(ChoiceOffered, choiceOffered{c.turn, point.ID, ModeReplacement, beat.ID, l.tail})
	d.out.Choice = d.s.offer(beat.Choice)
	return err
}

// deadlines records the deadlines that this turn missed, and does what the
// author wants of beats that are overdue for too long.
func (d *decision) deadlines() error {
	e, n := d.s.episode, d.s.core.turn
	if d.s.core.failed {
		return nil
	}
	forced := false
	for i := range e.Beats {
		beat := &e.Beats[i]
		at := d.s.core.beats.at(i)
		if at.status != statusPending || n < beat.Deadline || d.s.core.heldAt(i) >= 0 {
			continue
		}
		eligible := d.s.wasEligible(&d.s.core, d.s.kept, i)
		if !at.missedDeadline {
			if err := d.emit(DeadlineMissed, deadlineMissed{n, beat.ID, beat.Deadline, eligible}); err != nil {
				return err
			}
		}
		turns := 1
		if at.overdueFrom > 0 {
			turns = n - at.overdueFrom + 1
		}
		if !eligible || beat.MaxOverdue == 0 || turns < beat.MaxOverdue {
			continue
		}
		var err error
		switch beat.OnMiss {
		case Force:
			// One line a turn: two would speak over each other.
			if !forced {
				forced = true
				err = d.force(i)
			}
		case Skip:
			err = d.miss(i, "deadline")
		case Fail:
			err = d.fail(i)
		case Keep:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// force makes the authored line part of the scene, and with it the beat.
func (d *decision) force(i int) error {
	beat, n := &d.s.episode.Beats[i], d.s.core.turn
	if err := d.emit(BeatForced, beatForced{n, beat.ID, beat.ForcedLine}); err != nil {
		return err
	}
	d.out.Insertions = append(d.out.Insertions, Insertion{beat.ID, beat.ForcedLine})
	return d.landOne(candidate{i, n, "forced", assuranceForced, tailOf(beat.ForcedLine)}, false)
}

// miss gives a beat up, and those that wait for it if the author wants so.
func (d *decision) miss(i int, cause string) error {
	e := d.s.episode
	todo := []int{i}
	for len(todo) > 0 {
		i, todo = todo[0], todo[1:]
		beat := &e.Beats[i]
		if d.s.core.beats.at(i).status != statusPending {
			continue
		}
		if err := d.emit(BeatMissed, beatMissed{d.s.core.turn, beat.ID, cause, beat.Dependants.String()}); err != nil {
			return err
		}
		d.out.Missed = append(d.out.Missed, beat.ID)
		if beat.Dependants == Release {
			continue
		}
		for j := range e.Beats {
			if e.Beats[j].RequiresBeat == i {
				todo = append(todo, j)
			}
		}
		cause = "beat:" + beat.ID
	}
	return nil
}

// fail gives a beat up and the episode with it. The session can be played on:
// nothing ends by itself.
func (d *decision) fail(i int) error {
	cause := "beat:" + d.s.episode.Beats[i].ID
	if err := d.miss(i, "deadline"); err != nil {
		return err
	}
	for j := range d.s.episode.Objectives {
		if d.s.core.objectives[j].status < objectiveCompleted {
			if err := d.endObjective(j, false, cause); err != nil {
				return err
			}
		}
	}
	return d.emit(EpisodeFailed, episodeFailed{d.s.core.turn, cause})
}

// objectives ends those that are reached, and then those that are lost: to
// reach one in the turn in which it would be lost is to reach it.
func (d *decision) objectives() error {
	e := d.s.episode
	for i := range e.Objectives {
		o, c := &e.Objectives[i], &d.s.core
		if c.objectives[i].status >= objectiveCompleted {
			continue
		}
		isHeard := slices.ContainsFunc(c.heard, func(h heard) bool { return h.kind == AboutObjective && h.index == i })
		var err error
		switch {
		case isHeard || d.holds(&o.Success, false):
			err = d.endObjective(i, true, o.Success.cause())
		case d.holds(&o.Failure, true):
			err = d.endObjective(i, false, o.Failure.cause())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holds judges the conditions that need no verdict. A turn that succeeds is
// reached; one that fails is passed.
func (d *decision) holds(condition *Condition, failure bool) bool {
	n := d.s.core.turn
	switch condition.Kind {
	case ByTurn:
		return n > condition.Turn || n == condition.Turn && !failure
	case ByFlag:
		return d.s.core.hasFlag(condition.Flag)
	case ByBudget:
		return d.s.episode.Budget > 0 && n > d.s.episode.Budget
	default:
		return false
	}
}

func (c *Condition) cause() string {
	switch c.Kind {
	case BySemantic:
		return "semantic"
	case ByKeyword:
		return "keyword"
	case ByTurn:
		return "turn:" + itoa(c.Turn)
	case ByFlag:
		return "flag:" + c.Flag
	default:
		return causeBudget
	}
}

func (d *decision) endObjective(i int, completed bool, cause string) error {
	o := &d.s.episode.Objectives[i]
	word, effect := ObjectiveFailed, o.OnFailure
	if completed {
		word, effect = ObjectiveCompleted, o.OnSuccess
		d.out.Completed = append(d.out.Completed, o.ID)
	} else {
		d.out.Failed = append(d.out.Failed, o.ID)
	}
	if err := d.emit(word, objectiveEnded{d.s.core.turn, o.ID, cause}); err != nil {
		return err
	}
	by := "objective:" + o.ID
	if err := d.setFlag(effect.SetFlag, by); err != nil {
		return err
	}
	if effect.SuggestEpisode == "" {
		return nil
	}
	return d.suggestion(effect.SuggestEpisode, by)
}

func (d *decision) suggestion(episode, cause string) error {
	d.out.Suggested = append(d.out.Suggested, episode)
	return d.emit(SuggestionMade, suggestionMade{d.s.core.turn, episode, cause})
}

// legacy opens at most one legacy choice, and none in a turn that has a beat's.
// Those that are triggered as well wait for a free turn.
func (d *decision) legacy() error {
	e, c := d.s.episode, &d.s.core
	if c.pendingChoice() >= 0 {
		return nil
	}
	for i := range e.Choices {
		point := &e.Choices[i]
		if point.Beat >= 0 || c.choices.at(i).status != choiceClosed {
			continue
		}
		due := point.Trigger.Turn > 0 && c.turn >= point.Trigger.Turn
		if o := point.Trigger.Objective; o >= 0 {
			due = c.objectives[o].status == objectiveCompleted
		}
		if !due {
			continue
		}
		if err := d.emit(ChoiceOffered, choiceOffered{Turn: c.turn, Choice: point.ID, Mode: ModeFloating, Said: c.tail}); err != nil {
			return err
		}
		d.out.Choice = d.s.offer(i)
		return nil
	}
	return nil
}

// visuals triggers the pictures that are due: parts of the budget's turns, all
// alike, or one towards the end.
func (d *decision) visuals() error {
	e, c := d.s.episode, &d.s.core
	of, due := e.Visuals.Budget, false
	switch next := c.visuals + 1; {
	case e.Budget == 0:
	case e.Visuals.Mode == "cinematic":
		due = next <= of && int64(c.turn)*int64(of+1) >= int64(next)*int64(e.Budget)
	case e.Visuals.Mode == "minimal":
		of = 1
		due = next == 1 && int64(c.turn)*10 >= int64(e.Budget)*9
	}
	if !due {
		return nil
	}
	d.out.Visual = true
	return d.emit(VisualTriggered, visualTriggered{c.turn, c.visuals + 1, of})
}

// suggest says once, when the budget is used up, what could be played next.
func (d *decision) suggest() error {
	e, c := d.s.episode, &d.s.core
	if c.suggested || e.Budget == 0 || c.turn < e.Budget || e.NextEpisode == "" {
		return nil
	}
	return d.suggestion(e.NextEpisode, causeBudget)
}

// minPropWord is the length from which a single word of a prop's name stands
// for it, in code points.
const minPropWord = 4

// props brings to light what is due or named.
func (d *decision) props(text *searched, n int) error {
	for i := range d.s.episode.Props {
		p := &d.s.episode.Props[i]
		if d.s.core.props[i] > 0 || p.Requires >= 0 && d.s.core.props[p.Requires] == 0 {
			continue
		}
		cause := ""
		if p.Automatic {
			if n >= p.Turn {
				cause = "turn:" + itoa(p.Turn)
			}
		} else if name, ok := text.find(p.keywords); ok {
			cause = "mention:" + name
		}
		if cause == "" {
			continue
		}
		if err := d.emit(PropRevealed, propRevealed{n, p.ID, cause}); err != nil {
			return err
		}
		d.out.Revealed = append(d.out.Revealed, p.ID)
	}
	return nil
}

// names returns what a prop can be called: its name, its slug with blanks, and
// each longer word of its name.
func (p *Prop) names() []string {
	names := []string{p.Name}
	if slug := strings.TrimSpace(strings.NewReplacer("-", " ", "_", " ").Replace(p.Slug)); slug != "" {
		names = append(names, slug)
	}
	for word := range strings.FieldsSeq(p.Name) {
		if utf8.RuneCountInString(word) >= minPropWord {
			names = append(names, word)
		}
	}
	return names
}
