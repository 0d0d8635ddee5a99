package definition_test

import (
	"errors"
	"math"
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

// The cost of a pattern is that of the instructions that its text stands for, counted by
// hand: one for the whole, and then as the notes say.
func TestPatternCost(t *testing.T) {
	const most = 20_000
	for pattern, want := range map[string]int{
		``:                              1,
		`ab`:                            1 + 2,
		`a.`:                            1 + 1 + 6,
		`\d\.`:                          1 + 2 + 2,
		`a\sb`:                          1 + 1 + 24 + 1,
		`\S`:                            1 + 24,
		`\`:                             1 + 2,
		`a+`:                            1 + 1 + 1,
		`ab*c?`:                         1 + 1 + 2 + 2,
		`a+?b`:                          1 + 3 + 1,
		`[abc]d`:                        1 + 4 + 1,
		`[a\]b]d`:                       1 + 4 + 1,
		`[\da]`:                         1 + 3,
		`[\s]`:                          1 + 2 + 24,
		`[a\S-\s]`:                      1 + 5 + 24 + 24,
		`[ab`:                           1 + 3,
		`[a\`:                           1 + 3,
		`[\s`:                           1 + 2 + 24,
		`[a\S`:                          1 + 3 + 24,
		`[\]`:                           1 + 2,
		`(ab)c`:                         1 + 4 + 1,
		`x(ab)+c`:                       1 + 1 + 5 + 1,
		`(a(bc)d)e`:                     1 + (1 + 4 + 1 + 2) + 1,
		`(ab`:                           1 + 2,
		`a)b`:                           1 + 2,
		`a{3}b`:                         1 + 3 + 1,
		`ab{3}`:                         1 + 1 + 3,
		`a{12}b`:                        1 + 12 + 1,
		`a{2,5}b`:                       1 + 5 + 1,
		`a{5,2}b`:                       1 + 5 + 1,
		`a{4,}b`:                        1 + 4 + 1,
		`a{0}b`:                         1 + 1 + 1, // not less than the item itself
		`a{0,0}b`:                       1 + 1 + 1,
		`a{,3}`:                         1 + 5, // not a quantifier
		`a{2b`:                          1 + 4,
		`a{x}`:                          1 + 4,
		`a{2,x}`:                        1 + 6,
		`(ab){3}c`:                      1 + 3*4 + 1,
		`[abc]{2}`:                      1 + 2*4,
		`a{2}{3}b`:                      1 + 6 + 1,
		`a{19998}`:                      most - 1,
		`a{19999}`:                      most,
		`a{20000}`:                      most,
		`a{99999999999999999999}`:       most,
		`(a{9999}){9999}b`:              most,
		`a{9999}a{9999}a{9999}`:         most,
		strings.Repeat(`a`, 4096):       1 + 4096,
		strings.Repeat(`a`, 4097):       1, // it is not compiled
		`[` + strings.Repeat(`x`, 4095): 1 + 4096,
	} {
		v := new(signal.Object).Add("when", new(signal.Object).Add("a", new(signal.Object).Text("matches", pattern).Value()).Value()).Value()
		d, err := definition.Compile(v)
		require.NoError(t, err, pattern)
		assert.Equal(t, want, (d.Cost().Bytes-definition.BytesPerDeclaration-len(v)-192)/64, pattern)
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

// A definition that reaches a bound is compiled, and one that exceeds it by one is refused.
func TestBoundsOfADefinition(t *testing.T) {
	many := func(n int) string {
		return `{"steps":[` + strings.Repeat(`{"action":"a"},`, n-1) + `{"action":"a"}]}`
	}
	guarded := func(n int) string { return `{"guard":{"entity":[` + strings.Repeat(`"x",`, n-1) + `"x"]}}` }
	for name, c := range map[string]struct{ most, more, reason string }{
		"steps": {many(definition.MaxSteps), many(definition.MaxSteps + 1), definition.ErrInvalid.Error() + ": more than 100000 steps"},
		"names": {guarded(definition.MaxGuarded), guarded(definition.MaxGuarded + 1), definition.ErrInvalid.Error() + ": a guard of more than 16 names"},
	} {
		_, err := definition.Compile(parsed(t, c.most))
		require.NoError(t, err, name)
		_, err = definition.Compile(parsed(t, c.more))
		require.ErrorIs(t, err, definition.ErrInvalid, name)
		assert.Equal(t, name == "steps", errors.Is(err, definition.ErrBudget), name)
		assert.EqualError(t, err, c.reason, name)
	}
	require.NoError(t, definition.Cost{Steps: definition.MaxStepsInForce, Bytes: definition.MaxBytesInForce}.Check())
	require.ErrorIs(t, definition.Cost{Steps: definition.MaxStepsInForce + 1}.Check(), definition.ErrBudget)
	require.ErrorIs(t, definition.Cost{Bytes: definition.MaxBytesInForce + 1}.Check(), definition.ErrBudget)
	require.Equal(t, definition.Cost{Steps: 3, Bytes: 7}, definition.Cost{Steps: 5, Bytes: 9}.Minus(definition.Cost{Steps: 2, Bytes: 2}))
}

// Milliseconds are rounded to nanoseconds. NaN and numbers up to zero give zero, and numbers
// that do not fit give the greatest duration.
func TestNanoseconds(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1_000_000, "-1": 0, "5": 5_000_000, "2.5": 2_500_000, "-0.5": 0, "0.0": 0, "0.0000004": 0, "0.0000005": 1, "0.0000015": 2,
		"9223372036854": 9_223_372_036_854_000_000, "9223372036855": math.MaxInt64, "18446744073709551615": math.MaxInt64, "1e300": math.MaxInt64, "-1e300": 0, "9223372036854.775": math.MaxInt64,
		`"5"`: 0, "true": 0, "null": 0, "[5]": 0, "{}": 0,
	} {
		assert.Equal(t, want, definition.Nanoseconds(parsed(t, text)), text)
	}
	assert.Zero(t, definition.Nanoseconds(nil))
}

// Values convert to booleans as in JavaScript.
func TestTruthy(t *testing.T) {
	for text, want := range map[string]bool{
		"null": false, "true": true, "false": false, `""`: false, `"0"`: true, "0": false, "0.0": false, "1": true, "-1": true, "0.25": true, "18446744073709551615": true, "[]": true, "{}": true,
	} {
		assert.Equal(t, want, definition.Truthy(parsed(t, text)), text)
	}
	assert.False(t, definition.Truthy(nil))
}

// Progress is the share of the time that has passed. An animation beyond the end of time
// never reaches its end before that.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		node    definition.Node
		elapsed int64
		want    float64
	}{
		{definition.Node{Duration: 100}, 0, 0},
		{definition.Node{Duration: 100}, 25, 0.25},
		{definition.Node{Duration: 100}, 99, 0.99},
		{definition.Node{Duration: 100}, 100, 1},
		{definition.Node{Duration: 100}, 101, 1},
		{definition.Node{}, 0, 1},
		{definition.Node{Duration: math.MaxInt64, Written: 1e15}, 1e18, 1e-3},
		{definition.Node{Duration: math.MaxInt64, Written: 1e15}, math.MaxInt64, 1},
	} {
		assert.Equal(t, c.want, c.node.Progress(c.elapsed), "%d of %d", c.elapsed, c.node.Duration)
	}
}

// A condition that always holds leaves no node: the numbers of nodes are part of states.
func TestConditionsWithoutNodes(t *testing.T) {
	for when, nodes := range map[string]int{`{}`: 1, `[]`: 1, `[{}]`: 1, `[{"a":{"exists":true}},{}]`: 1, `"always"`: 1, `{"a":{"exists":true}}`: 2, `[{"a":{"exists":true}}]`: 2} {
		d, err := definition.Compile(parsed(t, `{"steps":[{"action":"a","when":`+when+`}]}`))
		require.NoError(t, err, when)
		assert.Len(t, d.Nodes(), nodes, when)
	}
}
