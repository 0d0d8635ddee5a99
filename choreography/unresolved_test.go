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

// Of a guard's names and an action's entity and parameters those references are told that lead to nothing in
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
	define(t, s, compile(t, object{"id": "guarded", "on": "x", "guard": object{"entity": []any{"signal.given", "signal.free", "a"}}, "steps": []object{
		{"action": "flash", "target": "a", "duration": 5000},
		{"action": "onInterrupt", "steps": []object{{"action": "flash", "target": "signal.gone"}}},
	}}))
	define(t, s, compile(t, object{"on": "stop", "interrupts": true, "steps": []object{}}))
	id := "c"
	s.Signal(1, &signal.Signal{Type: "x", CorrelationID: &id, Payload: value(t, object{"given": "g", "lost": 7})})
	s.Advance(time.Second)
	s.Signal(2, &signal.Signal{Type: "stop", CorrelationID: &id})
	s.Advance(2 * time.Second)
	require.ElementsMatch(t, []string{
		"1 x move entity signal.who", "1 x move to signal.where", "1 x setAnimation state signal.lost.deeper", "2 named flash entity signal.gone",
		"3 guarded guard entity signal.free", "3 guarded flash entity signal.gone",
	}, func() (got []string) {
		for _, u := range l.list {
			got = append(got, fmt.Sprint(u.Slot, " ", u.Definition, " ", u.Action, " ", u.Member, " ", u.Reference))
		}
		return got
	}())
}
