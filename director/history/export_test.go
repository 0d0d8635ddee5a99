package history

import (
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/session"
)

// CompareTurns is what [Differences] does with two turns.
func CompareTurns(was, now *PlayedTurn) []Difference { return compareTurns(was, now) }

// The bounds of a turn.
const (
	MaxTurnEvents = maxTurnEvents
	MaxTurnBytes  = maxTurnBytes
)

// Add adds an event to a turn, within its bounds.
func (t *PlayedTurn) Add(b session.DirectorEvent) { t.add(b) }

// Add adds a turn to a list.
func (t *TurnList) Add(n int) { t.add(n) }

// Dialogue holds the messages that judges may have seen.
type Dialogue struct{ lines dialogue }

// DialogueOf returns a dialogue that begins with the character's line.
func DialogueOf(opening string) *Dialogue { return &Dialogue{dialogue{opening: opening}} }

// Say adds a message.
func (d *Dialogue) Say(turn int, role, text string) { d.lines.say(turn, role, text) }

// Force adds a forced line.
func (d *Dialogue) Force(turn int, text string) { d.lines.force(turn, text) }

// Before returns the messages before the response of a turn.
func (d *Dialogue) Before(turn int, opened, forced bool) []director.TranscriptLine {
	return d.lines.before(turn, opened, forced)
}

// SeenUnasked returns the messages before a response about which no question was asked.
func (d *Dialogue) SeenUnasked(turn int) ([]director.TranscriptLine, bool) {
	return d.lines.seenBy(&input{turn: turn})
}
