package director

import "github.com/sajou-dev/sajou-go/director/episode"

// Undecided returns the beats and objectives that the response to the open turn can
// accomplish or not. Automatic beats and conditions on turns and flags are not among
// them: the state decides these.
func (s *State) Undecided() []episode.Subject {
	e, c := s.episode, &s.core
	if e == nil {
		return nil
	}
	var list []episode.Subject
	if c.pendingChoice() < 0 && !c.failed {
		for i := range e.Beats {
			beat := &e.Beats[i]
			if i != c.directive && !e.Policy.Spontaneous || beat.Detection != episode.Keyword && beat.Detection != episode.Semantic {
				continue
			}
			if c.heldAt(i) < 0 && s.eligible(c, i) {
				list = append(list, episode.Subject{Kind: episode.AboutBeat, ID: beat.ID})
			}
		}
	}
	for i := range e.Objectives {
		o := &e.Objectives[i]
		if c.objectives[i].status < objectiveCompleted && (o.Success.Kind == episode.ByKeyword || o.Success.Kind == episode.BySemantic) {
			list = append(list, episode.Subject{Kind: episode.AboutObjective, ID: o.ID})
		}
	}
	return list
}

// BeatSummary is the progress of a beat in a play.
type BeatSummary struct {
	Assurance   string // "" until it has landed
	Missed      bool   // it was given up
	DeliveredAt int    // the first turn whose response was directed to it, 0 if none was
	LandedAt    int    // the turn in which it landed or was given up
}

// BeatAt returns the progress of a beat, given as an index of
// [episode.Episode.Beats].
func (s *State) BeatAt(i int) BeatSummary {
	b := s.core.beats.at(i)
	return BeatSummary{assurances[b.assurance], b.status == statusMissed, b.deliveredAt, b.landedAt}
}

// ChoiceSummary is the progress of a choice point in a play.
type ChoiceSummary struct {
	Offered  bool   // it was offered to the user
	Open     bool   // the user can choose
	Declined bool   // the user typed instead
	Option   string // the id of the selected option, "" if none was selected
}

// ChoiceAt returns the progress of a choice point, given as an index of
// [episode.Episode.Choices].
func (s *State) ChoiceAt(i int) ChoiceSummary {
	c := s.core.choices.at(i)
	return ChoiceSummary{c.status != choiceClosed, c.status == choiceOpen, c.status == choiceDeclined, c.option}
}

// AwaitsResponse reports whether a turn is open and has no response yet.
func (s *State) AwaitsResponse() bool { return s.core.phase == phaseOpened }

// ChoicePending reports whether a choice replaces the user's input.
func (s *State) ChoicePending() bool { return s.core.pendingChoice() >= 0 }

// Directed returns the index of the beat that the current turn directs the character
// to; false if it directs to none.
func (s *State) Directed() (beat int, ok bool) { return s.core.directive, s.core.directive >= 0 }

// Eligible reports whether a beat could be directed or land, regardless of its target
// turn and of a pending choice.
func (s *State) Eligible(i int) bool { return s.eligible(&s.core, i) }

// Horizon says which differences of states [State.AppendFuture] keeps.
type Horizon struct {
	Settled int             // from this turn on no rule of the episode depends on the turn
	Delay   int             // turns after which a directed beat cannot land; 0 sets no bound, -1 allows none
	Flags   map[string]bool // the flags that a rule, a beat or an objective depends on
}

// AppendFuture appends the part of a state on which future decisions depend, in the
// form in which [State.AppendState] writes a core. Everything else is zero: texts,
// past turns, and flags that are not in the horizon. Two states with equal bytes go
// on alike.
func (s *State) AppendFuture(dst []byte, h Horizon) []byte {
	from := &s.core
	c := core{turn: min(from.turn, h.Settled), phase: from.phase, directive: -1, failed: from.failed}
	if from.phase == phaseOpened {
		c.directive = from.directive
	}
	beats := make([]beatState, from.beats.len())
	for i := range beats {
		b, to, beat := from.beats.at(i), &beats[i], &s.episode.Beats[i]
		to.status, to.released, to.missedDeadline = b.status, b.released, b.missedDeadline
		if b.status != statusPending {
			continue
		}
		if b.overdueFrom > 0 && beat.MaxOverdue > 0 && beat.OnMiss != episode.Keep {
			to.overdueFrom = 1 + min(from.turn-b.overdueFrom, beat.MaxOverdue)
		}
		if b.deliveredAt > 0 && h.Delay != 0 {
			to.deliveredAt = 1 + min(from.turn-b.deliveredAt, max(h.Delay, 0)+1)
		}
	}
	choices := make([]choiceState, from.choices.len())
	for i := range choices {
		choices[i].status = from.choices.at(i).status
	}
	c.beats, c.choices = tableOf(beats), tableOf(choices)
	c.objectives = make([]objectiveState, len(from.objectives))
	for i := range from.objectives {
		c.objectives[i].status = from.objectives[i].status
	}
	for _, f := range from.flags {
		if h.Flags[f.name] {
			c.flags = append(c.flags, flag{name: f.name})
		}
	}
	for _, h := range from.held {
		c.held = append(c.held, held{beat: h.beat})
	}
	return c.append(dst)
}
