package director

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Move is one thing that happens in a play, as users, characters and judges
// make it happen.
type Move struct {
	Kind MoveKind
	Turn int // that it belongs to; 0 for MoveStart
	// ChoicePoint and Option are what a MoveChoose chooses.
	ChoicePoint, Option string
	// Yes lists what the response of a MoveRespond accomplishes. Beats that are
	// automatic are not named.
	Yes []Subject
	// Flags are those that a MoveStart begins with.
	Flags []string
	// Event is what a MoveHear hears, as "signal:door_opened".
	Event string

	start *Episode
	rules []int // places in FlagRules that what is heard fulfils
}

// MoveKind is a kind of [Move].
type MoveKind uint8

// The kinds of move.
const (
	MoveStart   MoveKind = iota // the episode begins
	MoveChoose                  // the user makes a choice
	MoveOpen                    // a turn begins
	MoveDecline                 // a turn begins, and the user types instead of choosing
	MoveRespond                 // the character responds, and it is judged
	MoveHear                    // something happens outside the play
)

var moveKinds = []string{"start", "choose", "open", "decline", "respond", "hear"}

// String returns "start", "choose", "open", "decline", "respond" or "hear".
func (k MoveKind) String() string { return moveKinds[k] }

// String tells the move in a few words.
func (m Move) String() string {
	switch m.Kind {
	case MoveStart:
		if len(m.Flags) == 0 {
			return "start"
		}
		return "start with " + strings.Join(m.Flags, ", ")
	case MoveChoose:
		return fmt.Sprintf("turn %d: choose %s/%s", m.Turn, m.ChoicePoint, m.Option)
	case MoveRespond:
		if len(m.Yes) == 0 {
			return fmt.Sprintf("turn %d: nothing", m.Turn)
		}
		names := make([]string, len(m.Yes))
		for i, subject := range m.Yes {
			names[i] = subject.ID
			if subject.Kind == AboutObjective {
				names[i] = "objective " + subject.ID
			}
		}
		return fmt.Sprintf("turn %d: %s", m.Turn, strings.Join(names, ", "))
	case MoveHear:
		return fmt.Sprintf("turn %d: hear %s", m.Turn, m.Event)
	case MoveDecline:
		return fmt.Sprintf("turn %d begins, the choice is declined", m.Turn)
	default:
		return fmt.Sprintf("turn %d begins", m.Turn)
	}
}

// StartOf returns the move with which a play of an episode begins.
func StartOf(e *Episode, flags ...string) Move {
	return Move{Kind: MoveStart, Flags: flags, start: e}
}

// Play makes one move, applies what it records and returns that. A response is
// made up: it says a keyword of whatever it is to accomplish; judges say YES to
// that and NO to all else. The error is that of the decision that refused, and
// the state is then as it was.
func (s *State) Play(m Move) ([]Record, error) {
	after := *s
	var all []Record
	take := func(records []Record, err error) error {
		for _, r := range records {
			if err == nil {
				err = after.Apply(r.Word, r.Value)
			}
		}
		all = append(all, records...)
		return err
	}
	var records []Record
	var err error
	switch m.Kind {
	case MoveStart:
		if m.start == nil {
			return nil, errors.New("director: a start of no episode")
		}
		err = take(after.Start(m.start, Opening{Flags: m.Flags}))
	case MoveChoose:
		_, records, err = after.Choose(m.ChoicePoint, m.Option)
		err = take(records, err)
	case MoveOpen:
		_, records, err = after.Guide(Input{Turn: m.Turn})
		err = take(records, err)
	case MoveDecline:
		_, records, err = after.Guide(Input{Turn: m.Turn, Text: "(something else)"})
		err = take(records, err)
	case MoveHear:
		err = take(after.hear(m.rules, m.Event))
	default:
		var out Outcome
		out, records, err = after.Respond(Response{Turn: m.Turn, Text: after.line(m.Yes)})
		err = take(records, err)
		for _, q := range out.Questions {
			answer := No.String()
			if slices.Contains(m.Yes, q.Subject) {
				answer = Yes.String()
			}
			for err == nil && slices.Contains(after.Awaiting(), q.Subject) {
				_, records, err = after.Judge(Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Raw: answer})
				err = take(records, err)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	*s = after
	return all, nil
}

// undecided lists what the response of the open turn is looked at for, of which
// it depends on others whether it comes about.
func (s *State) undecided() []Subject {
	e, c := s.episode, &s.core
	if e == nil {
		return nil
	}
	var list []Subject
	if c.pendingChoice() < 0 && !c.failed {
		for i := range e.Beats {
			beat := &e.Beats[i]
			if i != c.directive && !e.Policy.Spontaneous || beat.Detection != Keyword && beat.Detection != Semantic {
				continue
			}
			if c.heldAt(i) < 0 && s.eligible(c, i) {
				list = append(list, Subject{AboutBeat, beat.ID})
			}
		}
	}
	for i := range e.Objectives {
		o := &e.Objectives[i]
		if c.objectives[i].status < objectiveCompleted && (o.Success.Kind == ByKeyword || o.Success.Kind == BySemantic) {
			list = append(list, Subject{AboutObjective, o.ID})
		}
	}
	return list
}

// keywords returns the words by which something is found; none if it is by
// others.
func (e *Episode) keywords(subject Subject) []keyword {
	if subject.Kind == AboutBeat {
		if i, ok := e.beats[subject.ID]; ok {
			return e.Beats[i].keywords
		}
		return nil
	}
	for i := range e.Objectives {
		if e.Objectives[i].ID == subject.ID {
			return e.Objectives[i].Success.keywords
		}
	}
	return nil
}

// line makes up a response in which some things are found by their keywords. Of
// the keywords of each it takes one by which nothing else is found, if it has
// one.
func (s *State) line(yes []Subject) string {
	if s.episode == nil {
		return ""
	}
	var no [][]keyword
	for _, subject := range s.undecided() {
		if words := s.episode.keywords(subject); words != nil && !slices.Contains(yes, subject) {
			no = append(no, words)
		}
	}
	var line []string
	for _, subject := range yes {
		words := s.episode.keywords(subject)
		if len(words) == 0 {
			continue
		}
		i := 0
		if len(no) > 0 {
			i = max(slices.IndexFunc(words, func(word keyword) bool {
				text := search(word.written, s.episode.Policy.Contains)
				return !slices.ContainsFunc(no, func(others []keyword) bool {
					_, found := text.find(others)
					return found
				})
			}), 0)
		}
		line = append(line, words[i].written)
	}
	return strings.Join(line, ". ")
}
