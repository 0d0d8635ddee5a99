package director

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Directive tells the character which beat to work in.
type Directive struct {
	Beat        string
	Instruction string
	Urgency     episode.Urgency
	Context     string // the reason for the urgency
}

// Guidance is the director's message to the character before a turn.
type Guidance struct {
	Turn      int
	Pacing    string
	Anchor    string // the first sentence of the situation
	Genre     string
	Energy    string
	Context   []string // sentences of the rules whose flags are set
	Directive *Directive

	doctrine *episode.Genre
}

// guidance returns the guidance of turn n. It is a function of the fold and asks no
// model (beat contract, "Pre-Guidance Phase"), so that a replay can check it.
func (s *State) guidance(c *core, n int) Guidance {
	e := s.episode
	g := Guidance{
		Turn: n, Pacing: episode.Pacing(n, e.Budget), Anchor: anchor(e.Situation),
		Genre: e.Doctrine.ID, Energy: episode.EnergyName(c.energy), doctrine: e.Doctrine,
	}
	for _, rule := range e.Contexts {
		if c.hasFlag(rule.Flag) {
			g.Context = append(g.Context, rule.Inject)
		}
	}
	if i, urgency := s.directed(c, n); i >= 0 {
		beat := &e.Beats[i]
		g.Directive = &Directive{beat.ID, beat.Instruction, urgency, why(beat, urgency)}
	}
	return g
}

func why(beat *episode.Beat, u episode.Urgency) string {
	switch u {
	case episode.Overdue:
		return fmt.Sprintf(whyOverdue, beat.Deadline)
	case episode.Required:
		return whyRequired
	default:
		return whySuggested
	}
}

// directed returns the beat that turn n directs the character to, -1 if none. It is
// the first due beat in the order of the episode, or the most urgent one if the
// episode's policy says so.
func (s *State) directed(c *core, n int) (int, episode.Urgency) {
	if c.failed || c.pendingChoice() >= 0 {
		return -1, episode.NotDue
	}
	found, most := -1, episode.NotDue
	for i := range s.episode.Beats {
		beat := &s.episode.Beats[i]
		u := beat.Urgency(n)
		// A held beat was played already and waits for the turn of its choice.
		if u == episode.NotDue || !s.eligible(c, i) || c.heldAt(i) >= 0 {
			continue
		}
		if !s.episode.Policy.Urgent {
			return i, u
		}
		if found < 0 || u > most || u == most && before(beat, &s.episode.Beats[found]) {
			found, most = i, u
		}
	}
	return found, most
}

// before orders beats of the same urgency. Equal beats keep the order of the episode.
func before(b, other *episode.Beat) bool {
	if b.Deadline != other.Deadline {
		return b.Deadline < other.Deadline
	}
	return b.Target < other.Target
}

// eligible reports whether a beat could be directed or land, regardless of its turns:
// it is pending, the beat it requires is completed, or was missed and released it,
// and the flag it requires is set.
func (s *State) eligible(c *core, i int) bool {
	beat := &s.episode.Beats[i]
	if c.beats.at(i).status != statusPending {
		return false
	}
	if j := beat.RequiresBeat; j >= 0 {
		switch other := c.beats.at(j); {
		case other.status == statusCompleted:
		case other.status == statusMissed && other.released:
		default:
			return false
		}
	}
	return beat.RequiresFlag == "" || c.hasFlag(beat.RequiresFlag)
}

// wasEligible reports whether a beat was eligible when this turn was guided, and still
// is. A beat that this turn's response released could not be played in it.
func (s *State) wasEligible(c, before *core, i int) bool {
	return s.eligible(c, i) && (before == nil || s.eligible(before, i))
}

// maxAnchor bounds an anchor, in code points.
const maxAnchor = 100

// anchor returns the first sentence of a situation.
func anchor(situation string) string {
	text := strings.Join(strings.Fields(situation), " ")
	for i, r := range text {
		if !strings.ContainsRune(".!?…。！？", r) {
			continue
		}
		end := i + utf8.RuneLen(r)
		if end == len(text) || text[end] == ' ' || strings.ContainsRune("。！？", r) {
			text = strings.TrimRight(text[:i], ".")
			break
		}
	}
	n := 0
	for i := range text {
		if n == maxAnchor {
			return strings.TrimRight(text[:i], " ")
		}
		n++
	}
	return text
}

// Section returns the guidance as a part of the character's prompt (beat contract,
// "Prompt Injection").
func (g Guidance) Section() string {
	var b strings.Builder
	line := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
		b.WriteByte('\n')
	}
	line(sectionBanner)
	line(sectionDirector, strings.ToUpper(strings.ReplaceAll(g.Genre, "_", " ")))
	line(sectionBanner)
	line()
	if g.Anchor != "" {
		line(sectionAnchor, g.Anchor)
		line()
	}
	line(sectionPacing, strings.ToUpper(g.Pacing))
	if g.doctrine != nil {
		line(sectionPhase, g.doctrine.Pacing[g.Pacing])
		line(sectionEnergy, g.doctrine.Energy[g.Energy])
	}
	for _, sentence := range g.Context {
		line(sectionContext, sentence)
	}
	if d := g.Directive; d != nil {
		line()
		line(sectionRule)
		line("BEAT [", d.Urgency.Label(), "]: ", d.Instruction)
		line(sectionRule)
		line(d.Context)
		line()
		line(sectionBeat)
	}
	line()
	line(sectionReminder)
	return b.String()
}

// record returns the event of guidance. It omits the texts: they follow from the
// episode and its doctrine, whose digests episodeStarted holds.
func (g Guidance) record() guidanceIssued {
	r := guidanceIssued{Turn: g.Turn, Pacing: g.Pacing, Energy: g.Energy, Genre: g.Genre}
	if d := g.Directive; d != nil {
		r.Directive = &directiveIssued{d.Beat, d.Urgency.String()}
	}
	return r
}

// CheckGuidance derives the guidance of a turn that has no response yet and compares
// it with a recorded guidanceIssued. The error wraps [ErrRecord].
func (s *State) CheckGuidance(issued signal.Value) error {
	turn, ok := intOf(issued, "turn")
	if !ok || s.episode == nil || turn < s.core.turn {
		return recordError(episode.GuidanceIssued, "its turn is over")
	}
	again, err := recordOf(episode.GuidanceIssued, s.guidance(&s.core, turn).record())
	if err != nil {
		return err
	}
	if again.Value.String() != issued.String() {
		return recordError(episode.GuidanceIssued, "the state gives "+again.Value.String())
	}
	return nil
}
