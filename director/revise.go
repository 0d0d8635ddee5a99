package director

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrRevision says that an episode is not another version of the one in play.
var ErrRevision = errors.New("director: not a version of the episode in play")

// Declare changes the state by the declaration of an episode: an entry of kind
// define. The state keeps the newest declaration until its episode begins. The error
// wraps [episode.ErrEpisode] or [episode.ErrVersion], and the state is as it was.
func (s *State) Declare(v signal.Value) error {
	if s.declared != nil && string(s.declared.Value()) == string(v) {
		return nil
	}
	e, err := episode.Compile(slices.Clone(v)) // v may belong to an entry
	if err != nil {
		return err
	}
	s.declared = e
	return nil
}

// Declared returns the newest episode that was declared and has not begun, nil if
// there is none.
func (s *State) Declared() *episode.Episode { return s.declared }

// Declares reports whether r is the declaration of an episode, which is an entry
// of kind define, and not an event.
func Declares(r signal.Record) bool { return r.Word == episode.Word }

// declare records the declaration of an episode, unless it is the newest one.
func (d *decision) declare(e *episode.Episode) {
	if d.s.declared == nil || d.s.declared.Digest() != e.Digest() {
		d.s.declared = e // as Declare would compile it
		d.records = append(d.records, signal.Record{Word: episode.Word, Value: e.Value()})
	}
}

// declaredAs returns the declared episode if an event names it.
func (s *State) declaredAs(v signal.Value, name string) (*episode.Episode, string) {
	id := v.TextOf("episode")
	digest := v.TextOf(name)
	switch e := s.declared; {
	case e == nil:
		return nil, "no episode is declared"
	case e.ID != id || e.Digest().String() != digest:
		return nil, "another episode is declared"
	default:
		return e, ""
	}
}

// Revise continues with another version of the episode in play. A beat, choice,
// objective or prop that both versions have, by its id, keeps its progress, even if
// its place in the list changed; a new one has none. The progress of one that the
// version removes is kept, and a later version that has it again continues from
// there. Flags stay. An open choice that is removed is declined. A turn that waits
// for its response is guided again, and the response is judged by the new version; a
// turn that was evaluated allows no other attempt.
//
// Revising to the version in play records nothing. An episode of another id is an
// [ErrRevision]; while verdicts are awaited the error is [ErrAwaiting].
func (s *State) Revise(e *episode.Episode) ([]signal.Record, error) {
	switch {
	case s.episode == nil:
		return nil, fmt.Errorf("%w: no episode is in play", ErrRevision)
	case s.episode.ID != e.ID:
		return nil, fmt.Errorf("%w: %s is not %s", ErrRevision, wording.Quoted(e.ID), wording.Quoted(s.episode.ID))
	case s.core.phase == phaseResponded:
		return nil, ErrAwaiting
	case s.episode.Digest() == e.Digest():
		return nil, nil
	}
	d := decision{s: *s}
	if err := d.revise(e); err != nil {
		return nil, err
	}
	return d.records, nil
}

func (d *decision) revise(e *episode.Episode) error {
	old, turn := d.s.episode, d.s.core.turn
	d.declare(e)
	for i := range old.Choices {
		if d.s.core.choices.at(i).status != choiceOpen || old.KeepsChoice(i, e) {
			continue
		}
		declined := choiceMade{Turn: turn, Choice: old.Choices[i].ID, Cause: causeRevised}
		if b := old.Choices[i].Beat; b >= 0 {
			declined.Beat = old.Beats[b].ID
		}
		if err := d.emit(episode.ChoiceDeclined, declined); err != nil {
			return err
		}
	}
	if err := d.emit(episode.EpisodeRevised, episodeRevised{turn, e.ID, old.Digest().String(), e.Digest().String(), e.Doctrine.Digest().String(), old.Without(e)}); err != nil {
		return err
	}
	if d.s.core.phase != phaseOpened {
		return nil
	}
	return d.emit(episode.GuidanceIssued, d.s.guidance(&d.s.core, turn).record())
}

// revise applies episodeRevised.
func (s *State) revise(v signal.Value) error {
	e, reason := s.declaredAs(v, "to")
	from := v.TextOf("from")
	turn, ok := intOf(v, "turn")
	switch old := s.episode; {
	case reason != "":
	case old == nil || old.ID != e.ID || old.Digest().String() != from || old.Digest() == e.Digest():
		reason = "not another version of the episode in play"
	case !ok || turn != s.core.turn || s.core.phase == phaseResponded:
		reason = "the current turn does not allow a revision"
	}
	if reason != "" {
		return recordError(episode.EpisodeRevised, reason)
	}
	for i := range s.episode.Choices {
		if s.core.choices.at(i).status == choiceOpen && !s.episode.KeepsChoice(i, e) {
			return recordError(episode.EpisodeRevised, "it removes an open choice")
		}
	}
	c, ok := s.core.revised(s.episode, e)
	if !ok {
		return recordError(episode.EpisodeRevised, "too many removed parts have progress")
	}
	// A response to the guidance of the version before cannot be dropped any more.
	s.episode, s.declared, s.core, s.rollback = e, nil, c, nil
	return nil
}

// past is the progress of a part that a revision removed.
type past[T comparable] struct {
	id string
	at T
}

// removedParts holds the progress of the parts that revisions removed, each list
// sorted by id. A part without progress is not kept.
type removedParts struct {
	beats      []past[beatState]
	choices    []past[choiceState]
	objectives []past[objectiveState]
	props      []past[int]
}

// carry returns the states of the n parts of a new version and of the parts that it
// removes. Each part takes the state of its id, from the version before or from the
// parts removed earlier. A state that is left over is kept unless it is zero.
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

// revised returns the core for another version of its episode, which must keep the
// open choices; false if too many removed parts have progress. It is total: a state
// that only forged events lead to becomes one that can be played on.
func (c *core) revised(from, to *episode.Episode) (core, bool) {
	r, gone := *c, &c.removed
	landed := c.beats.list()
	for i := range landed {
		if landed[i].status == statusDetected && c.choices.at(from.Beats[i].Choice).status != choiceOpen {
			landed[i].status = statusCompleted
		}
	}
	var beats []beatState
	var choices []choiceState
	beats, r.removed.beats = carry(landed, from.BeatID, gone.beats, len(to.Beats), to.BeatID)
	choices, r.removed.choices = carry(c.choices.list(), from.ChoiceID, gone.choices, len(to.Choices), to.ChoiceID)
	// An objective in progress has not ended: it is not worth keeping.
	ended := slices.Clone(c.objectives)
	for i := range ended {
		if ended[i].status == objectiveInProgress {
			ended[i] = objectiveState{}
		}
	}
	r.objectives, r.removed.objectives = carry(ended, from.ObjectiveID, gone.objectives, len(to.Objectives), to.ObjectiveID)
	r.props, r.removed.props = carry(c.props, from.PropID, gone.props, len(to.Props), to.PropID)
	for i := range r.objectives {
		if c.turn > 0 && r.objectives[i].status == objectivePending {
			r.objectives[i].status = objectiveInProgress
		}
	}
	for i := range beats {
		// A beat whose deadline moved beyond this turn is not overdue any more.
		j, ok := from.BeatIndex(to.Beats[i].ID)
		if deadline := to.Beats[i].Deadline; ok && deadline != from.Beats[j].Deadline && deadline > c.turn {
			beats[i].overdueFrom, beats[i].missedDeadline = 0, false
		}
	}
	r.beats, r.choices = tableOf(beats), tableOf(choices)
	r.directive = to.SameBeat(from, c.directive)
	r.held, r.found, r.awaiting = nil, nil, nil
	for _, h := range c.held {
		if h.beat = to.SameBeat(from, h.beat); h.beat >= 0 {
			r.held = append(r.held, h)
		}
	}
	most := max(len(r.removed.beats), len(r.removed.choices), len(r.removed.objectives), len(r.removed.props))
	return r, most <= episode.MaxItems
}
