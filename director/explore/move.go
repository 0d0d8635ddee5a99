package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Move is one step of a play: a decision of the user, a response with its verdicts, or
// an external event.
type Move struct {
	Kind MoveKind
	Turn int // the turn of the move; 0 for MoveStart
	// ChoicePoint and Option are those of a MoveChoose.
	ChoicePoint, Option string
	// Yes holds the beats and objectives that the response of a MoveRespond
	// accomplishes, without automatic beats.
	Yes []episode.Subject
	// Flags are the flags at the start, of a MoveStart.
	Flags []string
	// Event is the external event of a MoveHear, as in "signal:door_opened".
	Event string

	start *episode.Episode
	rules []int // indexes of the FlagRules that the event fulfils
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

// String describes the move in a few words.
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
			if subject.Kind == episode.AboutObjective {
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

// startOf returns the move that begins a play of an episode.
func startOf(e *episode.Episode, flags ...string) Move {
	return Move{Kind: MoveStart, Flags: flags, start: e}
}

// play makes one move, applies its records and returns them. It makes up the response:
// the response contains a keyword of everything that it accomplishes, and judges answer
// YES to that and NO to everything else. The error is that of the decision that refused,
// and the state is then as it was.
func play(s *director.State, m Move) ([]signal.Record, error) {
	after := *s
	var all []signal.Record
	take := func(records []signal.Record, err error) error {
		for _, r := range records {
			if err == nil {
				err = after.Apply(r.Word, r.Value)
			}
		}
		all = append(all, records...)
		return err
	}
	var records []signal.Record
	var err error
	switch m.Kind {
	case MoveStart:
		if m.start == nil {
			return nil, errors.New("director: explore: a start without an episode")
		}
		err = take(after.Start(m.start, director.Opening{Flags: m.Flags}))
	case MoveChoose:
		_, records, err = after.Choose(m.ChoicePoint, m.Option)
		err = take(records, err)
	case MoveOpen:
		_, records, err = after.Guide(director.TurnInput{Turn: m.Turn})
		err = take(records, err)
	case MoveDecline:
		_, records, err = after.Guide(director.TurnInput{Turn: m.Turn, Text: "(something else)"})
		err = take(records, err)
	case MoveHear:
		err = take(after.ApplyRules(m.rules, m.Event))
	default:
		var out director.ResponseResult
		out, records, err = after.Respond(director.Response{Turn: m.Turn, Text: line(&after, m.Yes)})
		err = take(records, err)
		for _, q := range out.Questions {
			answer := director.No.String()
			if slices.Contains(m.Yes, q.Subject) {
				answer = director.Yes.String()
			}
			for err == nil && slices.Contains(after.Awaiting(), q.Subject) {
				_, records, err = after.Judge(director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Raw: answer})
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

// line makes up a response that contains a keyword of each given beat and objective. It
// prefers a keyword that contains none of the others' keywords.
func line(s *director.State, yes []episode.Subject) string {
	if s.Episode() == nil {
		return ""
	}
	var no [][]episode.SearchedWord
	for _, subject := range s.Undecided() {
		if words := s.Episode().Words(subject); words != nil && !slices.Contains(yes, subject) {
			no = append(no, words)
		}
	}
	var line []string
	for _, subject := range yes {
		words := s.Episode().Words(subject)
		if len(words) == 0 {
			continue
		}
		i := 0
		if len(no) > 0 {
			i = max(slices.IndexFunc(words, func(word episode.SearchedWord) bool {
				text := s.Episode().Search(word.String())
				return !slices.ContainsFunc(no, func(others []episode.SearchedWord) bool {
					_, found := text.Find(others)
					return found
				})
			}), 0)
		}
		line = append(line, words[i].String())
	}
	return strings.Join(line, ". ")
}
