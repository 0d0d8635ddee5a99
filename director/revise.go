package director

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrRevision says that an episode is no other version of the one in play.
var ErrRevision = errors.New("director: not a version of the episode in play")

// Declare changes the state by the declaration of an episode: an entry of kind
// define. The newest one is kept until it begins; another one takes its place.
// The error wraps [ErrEpisode] or [ErrVersion], and the state is as it was.
func (s *State) Declare(v signal.Value) error {
	if s.declared != nil && string(s.declared.value) == string(v) {
		return nil
	}
	e, err := Compile(slices.Clone(v)) // v may belong to an entry
	if err != nil {
		return err
	}
	s.declared = e
	return nil
}

// Declared returns the episode that was declared and has not begun, nil if there
// is none.
func (s *State) Declared() *Episode { return s.declared }

// Declares reports whether r is the declaration of an episode, which is an entry
// of kind define, and not an event.
func (r Record) Declares() bool { return r.Word == Word }

// declare makes sure that an episode is declared.
func (d *decision) declare(e *Episode) {
	if d.s.declared == nil || d.s.declared.digest != e.digest {
		d.s.declared = e // what Declare would compile
		d.records = append(d.records, Record{Word, e.value})
	}
}

// declaredAs returns the declared episode if an event names it.
func (s *State) declaredAs(v signal.Value, name string) (*Episode, string) {
	id, _ := textOf(v, "episode")
	digest, _ := textOf(v, name)
	switch e := s.declared; {
	case e == nil:
		return nil, "no episode is declared"
	case e.ID != id || e.digest.String() != digest:
		return nil, "the episode that is declared is another one"
	default:
		return e, ""
	}
}

// causeRevised is why a choice was declined that a revision has taken away.
const causeRevised = "revised"

// Revise goes on with another version of the episode in play. Whatever both
// versions know by the same id is as it was, wherever it stands in its list; what
// is new has not happened. What is gone, and had happened, is kept as history: a
// later version that has it again goes on from there. Flags stay. A choice that
// is open and gone is declined. A turn that waits for its response is guided
// anew, and a response to the guidance before is judged by the new one; a turn
// that was evaluated cannot be responded to anew.
//
// The version in play changes nothing: there are no records. Another id is an
// [ErrRevision], verdicts that are awaited an [ErrAwaiting].
func (s *State) Revise(e *Episode) ([]Record, error) {
	switch {
	case s.episode == nil:
		return nil, fmt.Errorf("%w: none is", ErrRevision)
	case s.episode.ID != e.ID:
		return nil, fmt.Errorf("%w: %s is another one than %s", ErrRevision, wording.Quoted(e.ID), wording.Quoted(s.episode.ID))
	case s.core.phase == phaseResponded:
		return nil, ErrAwaiting
	case s.episode.digest == e.digest:
		return nil, nil
	}
	d := decision{s: *s}
	if err := d.revise(e); err != nil {
		return nil, err
	}
	return d.records, nil
}

func (d *decision) revise(e *Episode) error {
	old, turn := d.s.episode, d.s.core.turn
	d.declare(e)
	for i := range old.Choices {
		if d.s.core.choices.at(i).status != choiceOpen || old.keepsChoice(i, e) {
			continue
		}
		declined := choiceMade{Turn: turn, Choice: old.Choices[i].ID, Cause: causeRevised}
		if b := old.Choices[i].Beat; b >= 0 {
			declined.Beat = old.Beats[b].ID
		}
		if err := d.emit(ChoiceDeclined, declined); err != nil {
			return err
		}
	}
	if err := d.emit(EpisodeRevised, episodeRevised{turn, e.ID, old.digest.String(), e.digest.String(), e.Doctrine.digest.String(), old.without(e)}); err != nil {
		return err
	}
	if d.s.core.phase != phaseOpened {
		return nil
	}
	return d.emit(GuidanceIssued, d.s.guidance(&d.s.core, turn).record())
}

// dropped lists by id what a version has no longer, in the order of the one
// before.
type dropped struct {
	Beats        []string `json:"beats,omitempty"`
	ChoicePoints []string `json:"choice_points,omitempty"`
	Objectives   []string `json:"objectives,omitempty"`
	Props        []string `json:"props,omitempty"`
}

// without returns what e has and the other version has not.
func (e *Episode) without(other *Episode) dropped {
	var d dropped
	d.Beats = missing(len(e.Beats), e.beatID, len(other.Beats), other.beatID)
	d.ChoicePoints = missing(len(e.Choices), e.choiceID, len(other.Choices), other.choiceID)
	d.Objectives = missing(len(e.Objectives), e.objectiveID, len(other.Objectives), other.objectiveID)
	d.Props = missing(len(e.Props), e.propID, len(other.Props), other.propID)
	return d
}

func missing(n int, id func(int) string, others int, other func(int) string) (ids []string) {
	there := make(map[string]bool, others)
	for i := range others {
		there[other(i)] = true
	}
	for i := range n {
		if !there[id(i)] {
			ids = append(ids, id(i))
		}
	}
	return ids
}

func (e *Episode) beatID(i int) string      { return e.Beats[i].ID }
func (e *Episode) choiceID(i int) string    { return e.Choices[i].ID }
func (e *Episode) objectiveID(i int) string { return e.Objectives[i].ID }
func (e *Episode) propID(i int) string      { return e.Props[i].ID }

// keepsChoice reports whether another version opens choice i at the same beat.
func (e *Episode) keepsChoice(i int, other *Episode) bool {
	j, ok := other.choice[e.Choices[i].ID]
	if !ok {
		return false
	}
	b, c := e.Choices[i].Beat, other.Choices[j].Beat
	if b < 0 || c < 0 {
		return b < 0 && c < 0
	}
	return e.Beats[b].ID == other.Beats[c].ID
}

// revise applies episodeRevised.
func (s *State) revise(v signal.Value) error {
	e, reason := s.declaredAs(v, "to")
	from, _ := textOf(v, "from")
	turn, ok := intOf(v, "turn")
	switch old := s.episode; {
	case reason != "":
	case old == nil || old.ID != e.ID || old.digest.String() != from || old.digest == e.digest:
		reason = "it is no other version of the episode in play"
	case !ok || turn != s.core.turn || s.core.phase == phaseResponded:
		reason = "this is not the turn for it"
	}
	if reason != "" {
		return recordError(EpisodeRevised, reason)
	}
	for i := range s.episode.Choices {
		if s.core.choices.at(i).status == choiceOpen && !s.episode.keepsChoice(i, e) {
			return recordError(EpisodeRevised, "a choice is open that is not in it")
		}
	}
	c, ok := s.core.revised(s.episode, e)
	if !ok {
		return recordError(EpisodeRevised, "more has happened than can be remembered")
	}
	// What was said by the guidance of the version before cannot be said anew.
	s.episode, s.declared, s.core, s.kept = e, nil, c, nil
	return nil
}

// past is what had become of something that the episode no longer has.
type past[T comparable] struct {
	id string
	at T
}

// history is all that happened and is gone, each list sorted by id.
type history struct {
	beats      []past[beatState]
	choices    []past[choiceState]
	objectives []past[objectiveState]
	props      []past[int]
}

// carry gives each of n things the state that has its id, among those of before
// and those that are history; what is left, and had happened, is history.
func carry[T comparable](have []T, had func(int) string, gone []past[T], n int, id func(int) string) ([]T, []past[T]) {
	known := make(map[string]T, len(have)+len(gone))
	for _, p := range gone {
		known[p.id] = p.at
	}
	for i, at := range have {
		known[had(i)] = at
	}
	out := make([]T, n)
	for i := range out {
		out[i] = known[id(i)]
		delete(known, id(i))
	}
	var left []past[T]
	var nothing T
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if known[id] != nothing {
			left = append(left, past[T]{id, known[id]})
		}
	}
	return out, left
}

// revised returns the core for another version of its episode, which keeps the
// choices that are open; false if too much would be history. It is total: what
// only a forged state could hold becomes something that can be played on.
func (c *core) revised(from, to *Episode) (core, bool) {
	r, gone := *c, &c.gone
	landed := c.beats.list()
	for i := range landed {
		if landed[i].status == statusDetected && c.choices.at(from.Beats[i].Choice).status != choiceOpen {
			landed[i].status = statusCompleted
		}
	}
	var beats []beatState
	var choices []choiceState
	beats, r.gone.beats = carry(landed, from.beatID, gone.beats, len(to.Beats), to.beatID)
	choices, r.gone.choices = carry(c.choices.list(), from.choiceID, gone.choices, len(to.Choices), to.choiceID)
	// What is in progress has not happened.
	ended := slices.Clone(c.objectives)
	for i := range ended {
		if ended[i].status == objectiveInProgress {
			ended[i] = objectiveState{}
		}
	}
	r.objectives, r.gone.objectives = carry(ended, from.objectiveID, gone.objectives, len(to.Objectives), to.objectiveID)
	r.props, r.gone.props = carry(c.props, from.propID, gone.props, len(to.Props), to.propID)
	for i := range r.objectives {
		if c.turn > 0 && r.objectives[i].status == objectivePending {
			r.objectives[i].status = objectiveInProgress
		}
	}
	for i := range beats {
		// With a later deadline it is not overdue any more.
		j, ok := from.beats[to.Beats[i].ID]
		if deadline := to.Beats[i].Deadline; ok && deadline != from.Beats[j].Deadline && deadline > c.turn {
			beats[i].overdueFrom, beats[i].missedDeadline = 0, false
		}
	}
	r.beats, r.choices = tableOf(beats), tableOf(choices)
	r.directive = to.same(from, c.directive)
	r.held, r.heard, r.awaiting = nil, nil, nil
	for _, h := range c.held {
		if h.beat = to.same(from, h.beat); h.beat >= 0 {
			r.held = append(r.held, h)
		}
	}
	most := max(len(r.gone.beats), len(r.gone.choices), len(r.gone.objectives), len(r.gone.props))
	return r, most <= maxItems
}

// same returns the place of a beat of another version, -1 if it is gone.
func (e *Episode) same(from *Episode, beat int) int {
	if beat < 0 {
		return -1
	}
	if i, ok := e.beats[from.Beats[beat].ID]; ok {
		return i
	}
	return -1
}
