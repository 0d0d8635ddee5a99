package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Rules is the number of the rules by which this program folds a new session and
// decides what each agent is sent. The session records it in its first entry. It grows
// with every change that alters a fold or a view:
//
//	0  sessions that recorded no number
//	1  the rules of the first sessions with a number
//	2  a tick that only moves time makes no context stale: see agents.KindTimeTick;
//	   the stage notes references of steps and guards that do not resolve
//
// The first entry of a fork records number 3, so that a program that does not know the label
// of forks refuses to fold it, and the number of its parent beside it; see [Fork]. No other
// session records 3.
//
// A session is folded by the rules under which it was recorded, from [FirstRules] on. One
// of lower rules is folded by those of FirstRules: its chain and its entries are what
// they were, but what its agents were really sent can no longer be proven, and such
// questions return [ErrRules]. A session with a higher number was recorded by a newer
// program; it can be verified, listed and exported here, but not folded.
const Rules = 2

// FirstRules is the number of the oldest rules that this program has; see [Rules].
const FirstRules = 1

// rulesUnresolved is the number of the rules from which on the stage notes references
// that do not resolve.
const rulesUnresolved = 2

// rulesForks is the number that the first entry of a fork records.
const rulesForks = 3

// ErrRules marks a session that was recorded under other rules than those of
// this program; see [RulesError].
var ErrRules = errors.New("sajou: recorded under other rules")

// RulesError says which rules a session was recorded under. It wraps
// [ErrRules].
type RulesError struct {
	Session           string
	Recorded, Present int // numbers of rules: the session's, 0 without one, and [Rules]
}

func (e *RulesError) Error() string {
	if e.Recorded > e.Present {
		return fmt.Sprintf("sajou: session %q was recorded under rules %d by a newer program, and this one knows rules up to %d: it can be verified and exported here, not folded",
			e.Session, e.Recorded, e.Present)
	}
	return fmt.Sprintf("sajou: session %q was recorded under rules %d, and this program has rules %d to %d: what its agents were sent then cannot be proven",
		e.Session, e.Recorded, FirstRules, e.Present)
}

func (e *RulesError) Unwrap() error { return ErrRules }

// RulesOf returns the number of the rules that a session's first entry records, for a
// fork that of its parent: 0 if it records none, or if e does not open a session.
func RulesOf(e *eventlog.Entry) int {
	if e.Kind != eventlog.KindSession {
		return 0
	}
	o, err := openedOf(e)
	if err != nil {
		return 0
	}
	return o.rules
}

// checkRules returns a [*RulesError] if a session was recorded under newer rules
// than this program's, and so cannot be folded. It reads the first entry.
func checkRules(ctx context.Context, log *eventlog.SessionReader) error {
	for e, err := range log.Entries(ctx, 1) {
		if n := RulesOf(&e); err == nil && n > Rules {
			err = &RulesError{log.Name(), n, Rules}
		}
		return err
	}
	return nil
}
