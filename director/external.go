package director

import (
	"strings"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Listens reports whether a rule of the episode concerns events of that kind and
// name. It allocates nothing, because it is called for every signal of a session.
func (s *State) Listens(kind episode.EventKind, name string) bool {
	return s.episode != nil && len(s.episode.FlagRulesFor(kind, name)) > 0
}

// maxCause bounds the recorded cause of a flag, in bytes.
const maxCause = 200

// ExternalEvent sets and clears flags by the rules about an event outside the play, in
// the order of the rules. Cause names the event, as in "signal:812". A flag that has
// the wanted state already is not recorded again. The effects of an external event
// stay if the current response is dropped.
func (s *State) ExternalEvent(kind episode.EventKind, name string, payload signal.Value, cause string) ([]signal.Record, error) {
	if !s.Listens(kind, name) {
		return nil, nil
	}
	var rules []int
	for _, i := range s.episode.FlagRulesFor(kind, name) {
		if s.episode.FlagRules[i].Holds(payload) {
			rules = append(rules, i)
		}
	}
	return s.ApplyRules(rules, cause)
}

// ApplyRules sets and clears flags by rules of the episode, given as indexes of
// [episode.Episode.FlagRules], as if their conditions held. Cause names the event.
func (s *State) ApplyRules(rules []int, cause string) ([]signal.Record, error) {
	cause = strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "")
	d := decision{s: *s}
	for _, i := range rules {
		rule := &s.episode.FlagRules[i]
		c := &d.s.core
		event := flagged{Turn: c.turn, Flag: rule.Set, Cause: cause, Outside: true}
		var err error
		switch {
		case rule.Set != "" && (!c.hasFlag(rule.Set) || c.fleeting(rule.Set, d.s.rollback)):
			err = d.emit(episode.FlagSet, event)
		case rule.Clear != "" && c.hasFlag(rule.Clear):
			event.Flag = rule.Clear
			err = d.emit(episode.FlagCleared, event)
		}
		if err != nil {
			return nil, err
		}
	}
	return d.records, nil
}
