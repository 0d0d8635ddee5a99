package episode

// The phases and urgencies are those of the beat contract ("Pre-Guidance Phase").

var phases = []string{"establish", "develop", "escalate", "peak", "resolve"}

// Pacing returns the phase of turn n with a budget, or of an open episode if the budget
// is 0. It compares integers, so the result is the same on every machine.
func Pacing(n, budget int) string {
	bounds := [...]int{15, 40, 70, 90}
	open := [...]int{2, 5, 10, 15}
	for i := range bounds {
		if budget > 0 && int64(n)*100 < int64(bounds[i])*int64(budget) || budget <= 0 && n < open[i] {
			return phases[i]
		}
	}
	return phases[len(phases)-1]
}

// Urgency is the urgency of a beat in a turn.
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

// Label returns the urgency as the character's prompt has it.
func (u Urgency) Label() string { return labels[u] }

// Urgency returns the urgency of the beat at turn n. The turn of the deadline itself
// is overdue.
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
