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
