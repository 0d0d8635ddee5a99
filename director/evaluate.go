package director

import (
	"slices"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// evaluate ends a turn whose verdicts are all recorded. The order of its steps is
// fixed, so that the order in which the verdicts came makes no difference. Beats land
// before deadlines are judged: a beat that lands in its deadline's turn is in time
// for OnMiss. Objectives see the flags and the turn, choices the objectives.
func (d *decision) evaluate() error {
	steps := []func() error{d.land, d.deadlines, d.objectives, d.legacy, d.visuals, d.suggest}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	c := &d.s.core
	if err := d.emit(episode.TurnEvaluated, attempted{c.turn, c.attempt}); err != nil {
		return err
	}
	d.out.Turn, d.out.Attempt, d.out.Evaluated = c.turn, c.attempt, true
	return nil
}

// candidate is a beat that was found in a response and may land.
type candidate struct {
	beat, turn int
	method     string
	assurance  uint8
	tail       string
}

// land lands the beats that were found: those held from earlier turns, then the
// directed one, then the others in the order of the episode.
func (d *decision) land() error {
	c := &d.s.core
	var list []candidate
	for _, h := range c.held {
		if d.s.eligible(c, h.beat) {
			list = append(list, candidate(h))
		}
	}
	waiting := len(list)
	for _, h := range c.found {
		// An external event may have cleared the flag that the beat requires.
		if h.kind != episode.AboutBeat || !d.s.wasEligible(c, d.s.rollback, h.index) {
			continue
		}
		assurance := uint8(assuranceVerified)
		if h.method == episode.Automatic {
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

// landOne lands a beat. A beat with a choice is held for a later turn while another
// choice is pending, because a turn has one input.
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
		return d.emit(episode.BeatHeld, event)
	}
	if err := d.emit(episode.BeatLanded, event); err != nil {
		return err
	}
	d.out.Landed = append(d.out.Landed, Landing{beat.ID, l.method, event.Assurance, l.turn})
	if beat.Choice < 0 || c.choices.at(beat.Choice).status != choiceClosed {
		return nil
	}
	point := &d.s.episode.Choices[beat.Choice]
	err := d.emit(episode.ChoiceOffered, choiceOffered{c.turn, point.ID, ModeReplacement, beat.ID, l.tail})
	d.out.Choice = d.s.offer(beat.Choice)
	return err
}

// deadlines records the deadlines that this turn missed, and applies OnMiss to the
// beats that were overdue for MaxOverdue turns.
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
		eligible := d.s.wasEligible(&d.s.core, d.s.rollback, i)
		if !at.missedDeadline {
			if err := d.emit(episode.DeadlineMissed, deadlineMissed{n, beat.ID, beat.Deadline, eligible}); err != nil {
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
		case episode.Force:
			// At most one authored line is inserted in a turn: two would not fit together.
			if !forced {
				forced = true
				err = d.force(i)
			}
		case episode.Skip:
			err = d.miss(i, causeDeadline)
		case episode.Fail:
			err = d.fail(i)
		case episode.Keep:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// force makes the authored line part of the scene, which lands the beat.
func (d *decision) force(i int) error {
	beat, n := &d.s.episode.Beats[i], d.s.core.turn
	if err := d.emit(episode.BeatForced, beatForced{n, beat.ID, beat.ForcedLine}); err != nil {
		return err
	}
	d.out.Insertions = append(d.out.Insertions, Insertion{beat.ID, beat.ForcedLine})
	return d.landOne(candidate{i, n, methodForced, assuranceForced, tailOf(beat.ForcedLine)}, false)
}

// miss gives a beat up, and with it the beats that require it unless the author
// releases them. A missed beat lets its dependants go on only if it was released.
func (d *decision) miss(i int, cause string) error {
	e := d.s.episode
	todo := []int{i}
	for len(todo) > 0 {
		i, todo = todo[0], todo[1:]
		beat := &e.Beats[i]
		if d.s.core.beats.at(i).status != statusPending {
			continue
		}
		if err := d.emit(episode.BeatMissed, beatMissed{d.s.core.turn, beat.ID, cause, beat.Dependants.String()}); err != nil {
			return err
		}
		d.out.Missed = append(d.out.Missed, beat.ID)
		if beat.Dependants == episode.Release {
			continue
		}
		for j := range e.Beats {
			if e.Beats[j].RequiresBeat == i {
				todo = append(todo, j)
			}
		}
		cause = causeBeat + beat.ID
	}
	return nil
}

// fail gives a beat up and fails the episode. The session can be played on: only the
// user ends a session.
func (d *decision) fail(i int) error {
	cause := causeBeat + d.s.episode.Beats[i].ID
	if err := d.miss(i, causeDeadline); err != nil {
		return err
	}
	for j := range d.s.episode.Objectives {
		if d.s.core.objectives[j].status < objectiveCompleted {
			if err := d.endObjective(j, false, cause); err != nil {
				return err
			}
		}
	}
	return d.emit(episode.EpisodeFailed, episodeFailed{d.s.core.turn, cause})
}

// objectives completes the objectives whose success condition holds and fails those
// whose failure condition does. Success wins if both hold in the same turn.
func (d *decision) objectives() error {
	e := d.s.episode
	for i := range e.Objectives {
		o, c := &e.Objectives[i], &d.s.core
		if c.objectives[i].status >= objectiveCompleted {
			continue
		}
		isFound := slices.ContainsFunc(c.found, func(f found) bool { return f.kind == episode.AboutObjective && f.index == i })
		var err error
		switch {
		case isFound || d.holds(&o.Success, false):
			err = d.endObjective(i, true, causeOf(&o.Success))
		case d.holds(&o.Failure, true):
			err = d.endObjective(i, false, causeOf(&o.Failure))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holds evaluates the conditions that need no verdict. The turn of a success
// condition has to be reached, that of a failure condition to be over.
func (d *decision) holds(condition *episode.ObjectiveCondition, failure bool) bool {
	n := d.s.core.turn
	switch condition.Kind {
	case episode.ByTurn:
		return n > condition.Turn || n == condition.Turn && !failure
	case episode.ByFlag:
		return d.s.core.hasFlag(condition.Flag)
	case episode.ByBudget:
		return d.s.episode.Budget > 0 && n > d.s.episode.Budget
	default:
		return false
	}
}

// causeOf returns the cause of an objective's end, as events hold it.
func causeOf(c *episode.ObjectiveCondition) string {
	switch c.Kind {
	case episode.BySemantic:
		return causeSemantic
	case episode.ByKeyword:
		return causeKeyword
	case episode.ByTurn:
		return turnCause(c.Turn)
	case episode.ByFlag:
		return causeFlag + c.Flag
	default:
		return causeBudget
	}
}

func (d *decision) endObjective(i int, completed bool, cause string) error {
	o := &d.s.episode.Objectives[i]
	word, effect := episode.ObjectiveFailed, o.OnFailure
	if completed {
		word, effect = episode.ObjectiveCompleted, o.OnSuccess
		d.out.Completed = append(d.out.Completed, o.ID)
	} else {
		d.out.Failed = append(d.out.Failed, o.ID)
	}
	if err := d.emit(word, objectiveEnded{d.s.core.turn, o.ID, cause}); err != nil {
		return err
	}
	by := causeObjective + o.ID
	if err := d.setFlag(effect.SetFlag, by); err != nil {
		return err
	}
	if effect.SuggestEpisode == "" {
		return nil
	}
	return d.suggestion(effect.SuggestEpisode, by)
}

func (d *decision) suggestion(next, cause string) error {
	d.out.Suggested = append(d.out.Suggested, next)
	return d.emit(episode.SuggestionMade, suggestionMade{d.s.core.turn, next, cause})
}

// legacy offers at most one legacy choice, and none in a turn that offers a beat's.
// Other legacy choices that are due wait for a later turn.
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
		if err := d.emit(episode.ChoiceOffered, choiceOffered{Turn: c.turn, Choice: point.ID, Mode: ModeFloating, Said: c.tail}); err != nil {
			return err
		}
		d.out.Choice = d.s.offer(i)
		return nil
	}
	return nil
}

// visuals triggers the pictures that are due: in mode "cinematic" at equal parts of
// the budget's turns, in mode "minimal" one after nine tenths of them.
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
	return d.emit(episode.VisualTriggered, visualTriggered{c.turn, c.visuals + 1, of})
}

// suggest suggests the next episode once, when the budget is used up.
func (d *decision) suggest() error {
	e, c := d.s.episode, &d.s.core
	if c.suggested || e.Budget == 0 || c.turn < e.Budget || e.NextEpisode == "" {
		return nil
	}
	return d.suggestion(e.NextEpisode, causeBudget)
}

// props reveals the props that are due or that the response mentions.
func (d *decision) props(text *episode.SearchText, n int) error {
	for i := range d.s.episode.Props {
		p := &d.s.episode.Props[i]
		if d.s.core.props[i] > 0 || p.Requires >= 0 && d.s.core.props[p.Requires] == 0 {
			continue
		}
		cause := ""
		if p.Automatic {
			if n >= p.Turn {
				cause = turnCause(p.Turn)
			}
		} else if name, ok := p.FoundIn(text); ok {
			cause = causeMention + name
		}
		if cause == "" {
			continue
		}
		if err := d.emit(episode.PropRevealed, propRevealed{n, p.ID, cause}); err != nil {
			return err
		}
		d.out.Revealed = append(d.out.Revealed, p.ID)
	}
	return nil
}
