package eventlog

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A round begins at once when none is in flight. Beside one in flight only a full round
// begins, or one with a turn that does not wait for the disk.
func TestRoundBegins(t *testing.T) {
	for name, c := range map[string]struct {
		waiting, hasty, inFlight int
		leading, want            bool
	}{
		"nothing waits":                    {},
		"one waits":                        {waiting: 1, want: true},
		"another leads":                    {waiting: 1, leading: true},
		"a round is in flight":             {waiting: maxRound - 1, inFlight: 1},
		"a full round beside it":           {waiting: maxRound, inFlight: 1, want: true},
		"a full round beside two":          {waiting: maxRound, inFlight: maxInFlight},
		"a turn that is not held back":     {waiting: 1, hasty: 1, inFlight: 1, want: true},
		"the same beside two":              {waiting: 1, hasty: 1, inFlight: maxInFlight, want: true},
		"the same while another one leads": {waiting: 1, hasty: 1, leading: true},
	} {
		q := turns{waiting: make([]*turn, c.waiting), hasty: c.hasty, inFlight: c.inFlight, leading: c.leading}
		assert.Equal(t, c.want, q.claim(), name)
		assert.Equal(t, c.want || c.leading, q.leading, name)
	}
}

// gather waits for no writer that does not come, and for none behind a full round.
func TestGatherEnds(t *testing.T) {
	var q turns
	q.gather(8)
	q.waiting = make([]*turn, maxRound)
	q.gather(8)
	assert.Len(t, q.waiting, maxRound)
}

// The queue knows how many of its turns do not wait for the disk, wherever turns come from
// and go to: what a round did not reach goes back to the head, without those who left.
func TestQueueOfTurns(t *testing.T) {
	waits, hasty, left := &turn{sync: true}, &turn{}, &turn{}
	left.state.Store(turnIsLeft)
	var q turns
	holds := func(hasty, running, inFlight int, want ...*turn) {
		t.Helper()
		assert.Equal(t, want, append([]*turn(nil), q.waiting...))
		assert.Equal(t, []int{hasty, running, inFlight}, []int{q.hasty, q.running, q.inFlight})
	}
	assert.True(t, q.join(waits))
	assert.False(t, q.join(hasty), "a goroutine leads")
	holds(1, 0, 0, waits, hasty)
	assert.Equal(t, []*turn{waits}, q.take(make([]*turn, 1)))
	holds(1, 1, 0, hasty)
	assert.True(t, q.pass([]*turn{waits, left}, true), "beside the round in flight a hasty turn begins another")
	holds(1, 0, 1, waits, hasty)
	assert.Equal(t, []*turn{waits, hasty}, q.take(make([]*turn, 8)))
	holds(0, 2, 1)
	assert.True(t, q.pass([]*turn{hasty}, false))
	holds(1, 0, 1, hasty)
	q.leading = false
	q.remove(hasty)
	q.remove(hasty)
	holds(0, 0, 1)
	assert.False(t, q.join(waits), "it shares the next round")
	assert.Equal(t, 1, q.queued())
	assert.True(t, q.land())
	holds(0, 0, 0, waits)
}

// A bounded number of goroutines waits for rounds to lead, and each that goes on is one
// less.
func TestIdleLeaders(t *testing.T) {
	l := newLog(Config{})
	s := &Session{}
	for range 40 {
		go func() { l.rounds <- s }()
		got, ok := l.nextRound()
		assert.True(t, ok)
		assert.Same(t, s, got)
		assert.Zero(t, l.idleLeaders.Load())
	}
	l.idleLeaders.Store(maxIdleLeaders - 1)
	go func() { l.rounds <- s }()
	_, ok := l.nextRound()
	assert.True(t, ok)
	l.idleLeaders.Store(maxIdleLeaders)
	_, ok = l.nextRound()
	assert.False(t, ok, "enough wait")
	assert.Equal(t, int32(maxIdleLeaders), l.idleLeaders.Load())
	close(l.done)
	l.idleLeaders.Store(0)
	_, ok = l.nextRound()
	assert.False(t, ok, "the log closes")
	assert.Zero(t, l.idleLeaders.Load())
}
