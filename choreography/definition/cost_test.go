package definition_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
)

func parsed(t *testing.T, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	return v
}

// Costs decide which declarations of a log are in force, so each count is pinned. Bytes
// are those beside the text and the declaration itself.
func TestCost(t *testing.T) {
	for text, want := range map[string]definition.Cost{
		`{}`:                               {Steps: 0, Bytes: 0},
		`{"steps":[{"action":"a","x":1}]}`: {Steps: 1, Bytes: 256 + 2*48},
		`{"steps":[{"x":1},7]}`:            {Steps: 0, Bytes: 0},
		// A handler counts at the top only, where it runs.
		`{"steps":[{"action":"onInterrupt","steps":[{"action":"a"}]}]}`:                                 {Steps: 2, Bytes: 2*256 + 3*48},
		`{"steps":[{"action":"onArrive","steps":[{"action":"onInterrupt","steps":[{"action":"a"}]}]}]}`: {Steps: 2, Bytes: 2*256 + 4*48},
		`{"when":[{"a":{"equals":1},"b":{}}]}`:                                                          {Steps: 0, Bytes: 48 + 2*192},
		// Equal patterns count once: ab is 3 instructions long, [\s.] is 28.
		`{"when":{"a":{"matches":"ab"},"b":{"not":{"matches":"ab"}}}}`: {Steps: 0, Bytes: 2*192 + 3*64},
		`{"when":{"a":{"matches":"[\\s.]"}}}`:                          {Steps: 0, Bytes: 192 + 28*64},
	} {
		v := parsed(t, text)
		d, err := definition.Compile(v)
		require.NoError(t, err, text)
		want.Bytes += definition.BytesPerDeclaration + len(v)
		assert.Equal(t, want, d.Cost(), text)
	}
}

// A performance counts for the children of the groups that it can be in at once, in
// its steps or in its handler.
func TestWidth(t *testing.T) {
	const group = `{"action":"parallel","steps":[{"action":"a"},{"action":"b"},{"action":"parallel","steps":[{"action":"c"},{"action":"d"}]}]}`
	for text, want := range map[string]int{
		`{"steps":[]}`:                                                 1,
		`{"steps":[` + group + `]}`:                                    6,
		`{"steps":[` + group + `,` + group + `]}`:                      6,
		`{"steps":[{"action":"onInterrupt","steps":[` + group + `]}]}`: 6,
	} {
		d, err := definition.Compile(parsed(t, text))
		require.NoError(t, err, text)
		assert.Equal(t, want, d.Width(), text)
	}
}

// Matching a text with a pattern of size 3 (the pattern "a+" counts 2 more than its
// characters) is free up to 1<<14, refused above 1<<24, and limited in sum between.
func TestMatchingCost(t *testing.T) {
	const size = 3 // of the pattern "a+"
	holds := func(when string, length, before int) (ok bool, after int) {
		c := definition.CompileCondition(parsed(t, when))
		payload := new(signal.Object).Text("s", strings.Repeat("a", length)).Value()
		ok = c.Matches(&definition.Facts{Signal: definition.Resolver{Payload: payload}, Matching: &before})
		return ok, before
	}
	const when, negated = `{"s":{"matches":"a+"}}`, `{"s":{"not":{"matches":"b+"}}}`
	const free, most, sum = 1 << 14 / size, 1 << 24 / size, definition.MaxMatchingOfSignal
	for _, c := range []struct {
		length, before int
		ok             bool
		cost           int
	}{
		{free, 0, true, 0},
		{free, sum, true, 0},
		{free + 1, 0, true, (free + 1) * size},
		{free + 1, sum - (free+1)*size, true, (free + 1) * size},
		{free + 1, sum - (free+1)*size + 1, false, 0},
		{most, 0, true, most * size},
		{most + 1, 0, false, 0},
	} {
		for _, when := range []string{when, negated} {
			ok, after := holds(when, c.length, c.before)
			assert.Equal(t, c.ok, ok, "%s, %d bytes after %d", when, c.length, c.before)
			assert.Equal(t, c.before+c.cost, after, "%s, %d bytes after %d", when, c.length, c.before)
		}
	}
	// The bound of what is free is inclusive: 1<<14 bytes times a size of 4.
	ok, after := holds(`{"s":{"matches":"aa+"}}`, 1<<14/4, 0)
	assert.True(t, ok)
	assert.Zero(t, after)
}

// An alternative without tests holds, and so does the condition.
func TestEmptyAlternative(t *testing.T) {
	for text, want := range map[string]bool{
		`[{"a":{"exists":true}}]`:    false,
		`[{"a":{"exists":true}},{}]`: true,
		`[{},{"a":{"exists":true}}]`: true,
		`[{"a":{"exists":true}},7]`:  true,
		`[]`:                         true,
	} {
		c := definition.CompileCondition(parsed(t, text))
		assert.Equal(t, want, c.Holds(definition.Resolver{}), text)
	}
}
