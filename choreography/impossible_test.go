package choreography_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/signal"
)

// A state that is well formed, and that no signals and no time lead to, is
// refused, each for its own reason.
func TestImpossibleStates(t *testing.T) {
	whole := busy(t).AppendState(nil)
	const performances = 6
	// The first performance is a group under way: [seq, index, definition, cue,
	// handler, began, waiting, cursor], and its cursor [node, phase, cursor…].
	number := func(n int64) []byte { return msgp.AppendInt64(nil, n) }
	now := busy(t).Now()
	for name, data := range map[string][]byte{
		"a performance that is to begin":     msgptest.Set(whole, number(int64(now)+1), performances, 0, 5),
		"a performance before all time":      msgptest.Set(whole, number(-1), performances, 0, 5),
		"a session before all time":          msgptest.Set(whole, number(-1), 1),
		"a session far behind its steps":     msgptest.Set(whole, number(0), 1),
		"a session far beyond its steps":     msgptest.Set(whole, number(1<<60), 1),
		"a session just beyond its steps":    msgptest.Set(whole, number(100e6), 1),
		"a performance without a number":     msgptest.Set(whole, number(0), performances, 0, 1),
		"a performance of no definition":     msgptest.Set(whole, number(90), performances, 0, 2),
		"a performance of no signal":         msgptest.Set(whole, number(90), performances, 0, 3),
		"a performance of another signal":    msgptest.Set(whole, number(0), performances, 0, 0),
		"one that waits where nothing is":    msgptest.Set(whole, []byte{0xc3}, performances, 0, 6),
		"a cursor of another block":          msgptest.Set(whole, number(100), performances, 0, 7, 0),
		"a definition that is not in force":  msgptest.Set(whole, []byte{0x90}, 3),
		"signals that are gone":              msgptest.Set(whole, []byte{0x90}, 5),
		"performances in another order":      msgptest.Swap(whole, 0, 1, performances),
		"two performances of one id":         msgptest.Set(whole, msgptest.Get(whole, performances, 0), performances, 1),
		"signals in another order":           msgptest.Swap(whole, 0, 1, 5),
		"a payload that is no object":        msgptest.Set(whole, []byte{0x90}, 5, 0, 2),
		"a correlation id that is no string": msgptest.Set(whole, number(7), 5, 0, 1),
		"a payload with a key twice":         msgptest.Set(whole, []byte{0x82, 0xa1, 'a', 1, 0xa1, 'a', 2}, 5, 0, 2),
	} {
		if _, err := choreography.RestoreScheduler(data); !errors.Is(err, choreography.ErrState) {
			t.Errorf("%s: err = %v, want ErrState", name, err)
		}
	}
}

// The instant at which a step ends is no longer part of it: a state that stands
// there with the step under way is one that time has passed.
func TestStepsThatShouldHaveEnded(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, compile(t, object{"on": "x", "steps": []object{{"action": "move", "entity": "a", "duration": 100}}}))
	s.Signal(1, &signal.Signal{Type: "x"})
	s.Advance(40e6)
	whole := s.AppendState(nil)
	for _, tt := range []struct {
		now int64
		ok  bool
	}{{39e6, true}, {100e6 - 1, true}, {100e6, false}, {100e6 + 1, false}} {
		_, err := choreography.RestoreScheduler(msgptest.Set(whole, msgp.AppendInt64(nil, tt.now), 1))
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, choreography.ErrState) {
			t.Errorf("at %d ns: err = %v", tt.now, err)
		}
	}
}

// Each check of a cursor and of a definition refuses a state for its own reason.
func TestImpossibleStatesHaveReasons(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, compile(t, object{"on": "x", "steps": []object{{"action": "parallel", "steps": []object{
		{"action": "wait", "duration": 100}, {"action": "wait", "duration": 10},
	}}}}))
	define(t, s, compile(t, object{"on": "y", "steps": []object{{"action": "wait", "duration": 100}}}))
	s.Signal(1, &signal.Signal{Type: "x"})
	s.Signal(2, &signal.Signal{Type: "y"})
	s.Advance(20e6)
	whole := s.AppendState(nil)
	_, err := choreography.RestoreScheduler(whole)
	require.NoError(t, err)

	// The first performance stands in the group, node 2: its first child waits at
	// node 0, and its second child has ended.
	const performances, first, cursor, child = 6, 0, 7, 2
	array := func(elements ...byte) []byte { return append([]byte{0x90 | byte(len(elements))}, elements...) }
	const running, waiting, group = 2, 3, 4
	require.Equal(t, []byte{0x94, 2, group, 0x93, 0, waiting, 0, 0x91, 2}, msgptest.Get(whole, performances, first, cursor)[:9])
	retired := append([]byte{0x91}, value(t, object{"id": "gone", "on": "x"})...)
	for want, data := range map[string][]byte{
		"a group that its step does not allow":             msgptest.Set(whole, []byte{0x93, 2, group, 0x93, 0, waiting, 0}, performances, first, cursor),
		"a child that should have begun":                   msgptest.Set(whole, array(0), performances, first, cursor, child),
		"a group that should have ended":                   msgptest.Set(whole, array(1), performances, first, cursor, child),
		"a cursor that its step does not allow":            msgptest.Set(whole, array(0, running, 0), performances, first, cursor, child),
		"nothing is in the place of a replaced definition": msgptest.Set(whole, retired, 4),
		"a handler without steps":                          msgptest.Set(whole, []byte{0xc3}, performances, first, 4),
		"one signal of two types":                          msgptest.Set(whole, []byte{0}, performances, 1, 3),
		"node 4 of 4":                                      msgptest.Set(whole, array(4, waiting, 0), performances, first, cursor),
		"node 2 of 2":                                      msgptest.Set(whole, array(2), performances, first, cursor, child),
	} {
		_, err := choreography.RestoreScheduler(data)
		require.ErrorIs(t, err, choreography.ErrState, want)
		assert.ErrorContains(t, err, want)
	}
}

// The definitions that were replaced and are still performed count for the budget: a state
// in which they exceed it beside those in force is refused.
func TestStateOverTheBudget(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, declared(t, repeating("a", 60_000)))
	s.Signal(1, &signal.Signal{Type: "x"})
	s.Advance(0)
	define(t, s, declared(t, repeating("a", 30_000)))
	whole := s.AppendState(nil)
	_, err := choreography.RestoreScheduler(whole)
	require.NoError(t, err)

	larger := choreography.NewScheduler()
	define(t, larger, declared(t, repeating("a", 60_000)))
	other := larger.AppendState(nil)
	for _, part := range []int{2, 3} { // the declarations and the definitions
		whole = msgptest.Set(whole, msgptest.Get(other, part), part)
	}
	_, err = choreography.RestoreScheduler(whole)
	require.ErrorIs(t, err, choreography.ErrState)
	require.ErrorIs(t, err, definition.ErrBudget)
}
