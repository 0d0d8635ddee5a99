package director

import (
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/signal"
)

// Phases are those of pacing, in their order.
var Phases = []string{"establish", "develop", "escalate", "peak", "resolve"}

// Pacing returns the phase of turn n with a budget, or of an open episode if
// the budget is 0. It compares whole numbers: nothing is rounded.
func Pacing(n, budget int) string {
	bounds := [...]int{15, 40, 70, 90}
	open := [...]int{2, 5, 10, 15}
	for i := range bounds {
		if budget > 0 && int64(n)*100 < int64(bounds[i])*int64(budget) || budget <= 0 && n < open[i] {
			return Phases[i]
		}
	}
	return Phases[len(Phases)-1]
}

// Urgency says how much a beat presses.
type Urgency uint8

// The degrees of urgency.
const (
	NotDue Urgency = iota
	Suggested
	Required
	Overdue
)

var (
	urgencies = []string{"", "suggested", "required", "overdue"}
	labels    = []string{"", "OPPORTUNITY", "THIS TURN", "MUST HAPPEN NOW"}
)

// String returns "suggested", "required", "overdue", or "" if a beat is not due.
func (u Urgency) String() string { return urgencies[u] }

// Label returns what stands in the prompt for it.
func (u Urgency) Label() string { return labels[u] }

// Urgency returns how much the beat presses at turn n.
func (b *Beat) Urgency(n int) Urgency {
	switch {
	case n >= b.Deadline:
		return Overdue
	case n >= b.Target:
		return Required
	case n >= b.Target-1:
		return Suggested
	default:
		return NotDue
	}
}

// Directive tells the character which beat to work in.
type Directive struct {
	Beat        string
	Instruction string
	Urgency     Urgency
	Context     string // why now
}

// Guidance is what the director says before a turn.
type Guidance struct {
	Turn      int
	Pacing    string
	Anchor    string // what the scene is grounded in
	Genre     string
	Energy    string
	Context   []string // sentences that flags bring in
	Directive *Directive

	doctrine *Genre
}

// guidance is the director's only rule about a turn to come: a function of the
// fold, that asks no model.
func (s *State) guidance(c *core, n int) Guidance {
	e := s.episode
	g := Guidance{
		Turn: n, Pacing: Pacing(n, e.Budget), Anchor: anchor(e.Situation),
		Genre: e.Doctrine.ID, Energy: Energies[c.energy], doctrine: e.Doctrine,
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

func why(beat *Beat, u Urgency) string {
	switch u {
	case Overdue:
		return "This must happen now (deadline was turn " + itoa(beat.Deadline) + ")"
	case Required:
		return "This is the right moment for this beat"
	default:
		return "Look for a natural opening for this"
	}
}

// directed returns the beat of which turn n reminds the character, -1 if none.
func (s *State) directed(c *core, n int) (int, Urgency) {
	if c.failed || c.pendingChoice() >= 0 {
		return -1, NotDue
	}
	found, most := -1, NotDue
	for i := range s.episode.Beats {
		beat := &s.episode.Beats[i]
		u := beat.Urgency(n)
		// A beat that was heard and waits for its choice's turn needs no reminder.
		if u == NotDue || !s.eligible(c, i) || c.heldAt(i) >= 0 {
			continue
		}
		if !s.episode.Policy.Urgent {
			return i, u
		}
		if found < 0 || u > most || u == most && beat.before(&s.episode.Beats[found]) {
			found, most = i, u
		}
	}
	return found, most
}

// before orders beats of the same urgency; those that are equal keep the order
// of the list.
func (b *Beat) before(other *Beat) bool {
	if b.Deadline != other.Deadline {
		return b.Deadline < other.Deadline
	}
	return b.Target < other.Target
}

// eligible reports whether a beat could be directed or land, its time aside.
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

// wasEligible reports whether a beat was eligible when this turn was guided, and
// still is: what was released by this turn's response had no chance in it yet.
func (s *State) wasEligible(c, before *core, i int) bool {
	return s.eligible(c, i) && (before == nil || s.eligible(before, i))
}

// maxAnchor is how long an anchor may be, in code points.
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

const (
	banner = "═══════════════════════════════════════════════════════════════"
	rule   = "─────────────────────────────────────────────────────────────────"
)

// Section returns the guidance as a part of the character's prompt.
func (g Guidance) Section() string {
	var b strings.Builder
	line := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
		b.WriteByte('\n')
	}
	line(banner)
	line("DIRECTOR: ", strings.ToUpper(strings.ReplaceAll(g.Genre, "_", " ")))
	line(banner)
	line()
	if g.Anchor != "" {
		line("Ground in: ", g.Anchor)
		line()
	}
	line("Pacing: ", strings.ToUpper(g.Pacing))
	if g.doctrine != nil {
		line("This phase: ", g.doctrine.Pacing[g.Pacing])
		line("Energy: ", g.doctrine.Energy[g.Energy])
	}
	for _, sentence := range g.Context {
		line("Known: ", sentence)
	}
	if d := g.Directive; d != nil {
		line()
		line(rule)
		line("BEAT [", d.Urgency.Label(), "]: ", d.Instruction)
		line(rule)
		line(d.Context)
		line()
		line("Work this into your response naturally. Don't force it—find the organic moment.")
	}
	line()
	line("Remember: You are a person with your own desires, moods, and boundaries.")
	return b.String()
}

// record returns what guidanceIssued keeps of guidance. The texts follow from
// the episode and its doctrine, whose digests episodeStarted holds.
func (g Guidance) record() guidanceIssued {
	r := guidanceIssued{Turn: g.Turn, Pacing: g.Pacing, Energy: g.Energy, Genre: g.Genre}
	if d := g.Directive; d != nil {
		r.Directive = &directiveIssued{d.Beat, d.Urgency.String()}
	}
	return r
}

// CheckGuidance derives the guidance of a turn that has not been responded to
// anew, and compares it with what a guidanceIssued says that was issued. The
// error wraps [ErrRecord].
func (s *State) CheckGuidance(issued signal.Value) error {
	turn, ok := intOf(issued, "turn")
	if !ok || s.episode == nil || turn < s.core.turn {
		return recordError(GuidanceIssued, "its turn is over")
	}
	again, err := recordOf(GuidanceIssued, s.guidance(&s.core, turn).record())
	if err != nil {
		return err
	}
	if again.Value.String() != issued.String() {
		return recordError(GuidanceIssued, "derived anew it is "+again.Value.String())
	}
	return nil
}
