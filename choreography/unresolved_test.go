package choreography_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
)

// lost collects the references of started actions that lead to nothing.
type lost struct {
	list []choreography.UnresolvedReference
}

func (l *lost) Started(a *choreography.Act)               { l.list = a.AppendUnresolved(l.list) }
func (l *lost) Completed(*choreography.Act)               {}
func (l *lost) Executed(a *choreography.Act)              { l.list = a.AppendUnresolved(l.list) }
func (l *lost) Interrupted(time.Duration, uint64, uint32) {}

// Of an action's entity and parameters those references are told that lead to nothing in
// the signal, with the definition by its id, or else by its signal.
func TestUnresolvedReferences(t *testing.T) {
	s := choreography.NewScheduler()
	var l lost
	s.Observe(&l, nil)
	define(t, s, compile(t, object{"on": "other", "steps": []object{{"action": "flash", "target": "a"}}}))
	define(t, s, compile(t, object{"on": "x", "steps": []object{
		{"action": "move", "entity": "signal.who", "to": "signal.where", "speed": "signal.given", "duration": 10},
		{"action": "setAnimation", "entity": "signal.given", "state": "signal.lost.deeper"},
		{"action": "flash", "target": "a", "color": "red"},
	}}))
	define(t, s, compile(t, object{"id": "named", "on": "x", "steps": []object{{"action": "flash", "target": "signal.gone"}}}))
	s.Signal(1, &signal.Signal{Type: "x", Payload: value(t, object{"given": "g", "lost": 7})})
	s.Advance(time.Second)
	require.ElementsMatch(t, []string{
		"1 x entity signal.who", "1 x to signal.where", "1 x state signal.lost.deeper", "2 named entity signal.gone",
	}, func() (got []string) {
		for _, u := range l.list {
			got = append(got, fmt.Sprint(u.Slot, " ", u.Definition, " ", u.Member, " ", u.Reference))
		}
		return got
	}())
}
