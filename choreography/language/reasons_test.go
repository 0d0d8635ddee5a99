package language_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// refusal declares texts one after the other and returns the first error.
func refusal(t *testing.T, texts ...string) error {
	t.Helper()
	c := new(language.Catalog)
	for _, text := range texts {
		v, err := signal.ParseValue([]byte(text))
		require.NoErrorf(t, err, "%.80s", text)
		d, err := language.CompileDeclaration(language.WordFor(v), v)
		if err == nil {
			c, err = c.With(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The reason of a refusal is part of the format of define entries. There is a case for
// each that an input can lead to; no expected text may change.
func TestReasonsAreFormat(t *testing.T) {
	bind := func(more string) string {
		return `{"binding":"b","targetEntityId":"e","sourceType":"s",` + more + `}`
	}
	steps := func(more string) string { return `{"id":"c","on":"s","steps":[` + more + `]}` }
	seq := func(more string) string { return `{"sequence":"q",` + more + `}` }
	deep := func(n int) string {
		return strings.Repeat(`{"action":"repeat","times":1,"steps":[`, n) + `{"action":"flash"}` + strings.Repeat(`]}`, n)
	}
	deepChain := []string{`{"sequence":"q0","steps":[` + deep(200) + `]}`}
	for i := range 20 {
		deepChain = append(deepChain, fmt.Sprintf(`{"sequence":"q%d","steps":[%s]}`, i+1, strings.Replace(deep(200), `{"action":"flash"}`, fmt.Sprintf(`{"action":"include","sequence":"q%d"}`, i), 1)))
	}
	deepChain = append(deepChain, `{"id":"c","on":"s","steps":[{"action":"include","sequence":"q20"}],"x":"`+strings.Repeat("x", 40_000)+`"}`)
	chain := []string{`{"sequence":"q0","steps":[{"action":"flash"}]}`}
	for i := range 1001 {
		chain = append(chain, fmt.Sprintf(`{"sequence":"q%d","steps":[{"action":"include","sequence":"q%d"}]}`, i+1, i))
	}
	chain = append(chain, `{"id":"c","on":"s","steps":[{"action":"include","sequence":"q1001"}]}`)
	long := strings.Repeat("n", 201)
	repeated := func(element string, n int) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	numbered := func(n int) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"p%d":%d`, i, i))
		}
		return strings.Join(members, ",")
	}
	require.NoError(t, refusal(t, seq(`"params":{`+numbered(100)+`},"steps":[]`)))
	for _, c := range []struct {
		want         string
		declarations []string
	}{
		{`want an object`, []string{`[]`}},
		{`extends must be the id of a choreography, not an integer`, []string{`{"extends":7}`}},
		{`choreography "c" extends itself`, []string{`{"id":"c","extends":"c"}`}},
		{`there is no choreography "d" to extend`, []string{`{"id":"c","extends":"d"}`}},
		{`an id must not begin with binding:`, []string{`{"id":"binding:c","on":"s","steps":[]}`}},
		{`written out, it is nested too deeply or asks one thing twice`, []string{steps(`{"action":"stagger","every":1,"each":["a"],"steps":[{"action":"flash","when":{"stage:a.x":{"exists":true},"stage:each.item.x":{}}}]}`)}},
		{`steps stand inside each other deeper than 4000`, deepChain},
		{`sequences include each other deeper than 1000`, chain},
		{`a guard of more than 16 names`, []string{`{"on":"s","guard":{"entity":[` + repeated(`"n"`, 17) + `]},"steps":[]}`}},
		{`written out, there are more than 100000 steps`, []string{steps(`{"action":"repeat","times":100001,"steps":[{"action":"flash"}]}`)}},
		{`with it, more than 100000 steps would be in force; replace a choreography that is in force, or repeat less`, []string{`{"id":"d","on":"s","steps":[{"action":"flash"}]}`, steps(`{"action":"repeat","times":100000,"steps":[{"action":"flash"}]}`)}},
		{`written out, the steps take more than 8388608 bytes`, []string{steps(`{"action":"repeat","times":90000,"steps":[{"action":"flash","x":"` + strings.Repeat("x", 100) + `"}]}`)}},
		{`more than 100000 steps`, []string{`{"on":"s","steps":[` + repeated(`{"action":"a"}`, 100_001) + `]}`}},
		{`compiled, it takes more than 64 MiB`, []string{`{"on":"s","steps":[],"when":[` + repeated(`{"a":{}}`, 400_000) + `]}`}},
		{`with it, more than 64 MiB of declarations would be in force; replace one that is in force, or shorten this one`, []string{`{"id":"a","on":"s","steps":[],"when":[` + repeated(`{"a":{}}`, 200_000) + `]}`, `{"id":"b","on":"s","steps":[],"when":[` + repeated(`{"a":{}}`, 200_000) + `]}`}},
		{`the id of the binding is missing`, []string{`{"binding":""}`}},
		{`the id of the binding is longer than 200 bytes`, []string{`{"binding":"` + long + `"}`}},
		{`the id of the binding must not begin with param.`, []string{`{"binding":"param.x"}`}},
		{`the id of the binding must not begin with signal.`, []string{`{"binding":"signal.x"}`}},
		{`the id of the binding must not begin with each.`, []string{`{"binding":"each.x"}`}},
		{`the id of the binding must not begin with binding.`, []string{`{"binding":"binding.x"}`}},
		{`binding "b": the entity it is for is missing: write targetEntityId`, []string{`{"binding":"b"}`}},
		{`binding "b": the entity must be named, not taken from the signal`, []string{`{"binding":"b","targetEntityId":"signal.x"}`}},
		{`binding "b": "color" cannot be bound: there are opacity, rotation, scale, position.x, position.y, visible, animation.state, teleportTo, moveTo, followRoute, speech`, []string{bind(`"property":"color"`)}},
		{`binding "b": it has no signals: write sourceType, or sourceChoreographyId`, []string{`{"binding":"b","targetEntityId":"e","property":"scale"}`}},
		{`binding "b": mapping must be an object, not an integer`, []string{bind(`"property":"scale","mapping":7`)}},
		{`binding "b": inputRange must be an array of two numbers`, []string{bind(`"property":"scale","mapping":{"inputRange":[0]}`)}},
		{`binding "b": outputRange must be an array of two numbers`, []string{bind(`"property":"scale","mapping":{"inputRange":[0,1],"outputRange":[0,"1"]}`)}},
		{`binding "b": animation.state needs an action with animationDuring`, []string{bind(`"property":"animation.state"`)}},
		{`binding "b": moveTo needs an action with waypoint`, []string{bind(`"property":"moveTo"`)}},
		{`binding "b": followRoute needs an action with route`, []string{bind(`"property":"followRoute"`)}},
		{`binding "b": targetValue must be a number, not nothing`, []string{bind(`"property":"scale","transition":{}`)}},
		{`binding "b": durationMs must be a number of milliseconds from 0, not nothing`, []string{bind(`"property":"scale","transition":{"targetValue":1}`)}},
		{`binding "b": durationMs must be a number of milliseconds from 0, not -1`, []string{bind(`"property":"scale","transition":{"targetValue":1,"durationMs":-1}`)}},
		{`binding "b": revertDelayMs must be a number of milliseconds from 0, not "x"`, []string{bind(`"property":"scale","transition":{"targetValue":1,"durationMs":1,"revertDelayMs":"x"}`)}},
		{`binding "b": there is no choreography "c"`, []string{bind(`"property":"scale","sourceChoreographyId":"c"`)}},
		{`binding "b": it is for "s", but choreography "c" answers to "other"`, []string{`{"id":"c","on":"other","steps":[]}`, bind(`"property":"scale","sourceChoreographyId":"c"`)}},
		{`sequence "q": there is no sequence "r" to include`, []string{seq(`"steps":[{"action":"include","sequence":"r"}]`)}},
		{`sequences include each other without end: q → q`, []string{seq(`"steps":[{"action":"include","sequence":"q"}]`)}},
		{`the name of the easing is missing`, []string{`{"easing":"","curve":"linear"}`}},
		{`"linear" is a curve already: choose another name`, []string{`{"easing":"linear","curve":"linear"}`}},
		{`easing "e" has no curve`, []string{`{"easing":"e","curve":7}`}},
		{`easing "e": no curve is called "nope": it is one of linear, easeIn, easeOut, easeInOut, arc, or cubic-bezier(x1, y1, x2, y2), steps(n), spring(mass, stiffness, damping)`, []string{`{"easing":"e","curve":"nope"}`}},
		{`easing "e": no curve is called "nope": there are cubic-bezier(x1, y1, x2, y2), steps(n), spring(mass, stiffness, damping)`, []string{`{"easing":"e","curve":"nope(1)"}`}},
		{`easing "e": the curve does not end with )`, []string{`{"easing":"e","curve":"steps(1"}`}},
		{`easing "e": a curve of more than 200 characters`, []string{`{"easing":"e","curve":"` + long + `"}`}},
		{`easing "e": x1 and x2 of a cubic-bezier must be between 0 and 1`, []string{`{"easing":"e","curve":"cubic-bezier(2,0,0,0)"}`}},
		{`easing "e": y1 and y2 of a cubic-bezier must be between -1000 and 1000`, []string{`{"easing":"e","curve":"cubic-bezier(0,1001,0,0)"}`}},
		{`easing "e": steps jump at end, start, none, both, not at "middle"`, []string{`{"easing":"e","curve":"steps(1,middle)"}`}},
		{`easing "e": the number of steps must be a whole number from 2 to 1048576`, []string{`{"easing":"e","curve":"steps(1,none)"}`}},
		{`easing "e": the number of steps must be a whole number from 1 to 1048576`, []string{`{"easing":"e","curve":"steps(0)"}`}},
		{`easing "e": the mass of a spring must be between 1e-06 and 1e+06`, []string{`{"easing":"e","curve":"spring(0,1,1)"}`}},
		{`easing "e": the spring swings for too long: its damping must be at least 0.1`, []string{`{"easing":"e","curve":"spring(1,100,0.01)"}`}},
		{`easing "e": the spring hardly moves: its damping must be at most 2`, []string{`{"easing":"e","curve":"spring(1,0.000001,1000)"}`}},
		{`easing "e": spring takes 3 numbers, not 1`, []string{`{"easing":"e","curve":"spring(1)"}`}},
		{`easing "e": "x" is no number of at most 30 characters`, []string{`{"easing":"e","curve":"steps(x)"}`}},
		{`easing "e": "1e999" is no number`, []string{`{"easing":"e","curve":"steps(1e999)"}`}},
		{`there is no sequence "q"`, []string{steps(`{"action":"include","sequence":"q"}`)}},
		{`times of repeat must be a whole number from 0, not -1`, []string{steps(`{"action":"repeat","times":-1,"steps":[]}`)}},
		{`times of repeat must be a whole number from 0, not "x"`, []string{steps(`{"action":"repeat","times":"x","steps":[]}`)}},
		{`every of stagger must be a number of milliseconds from 0, not -1`, []string{steps(`{"action":"stagger","every":-1,"steps":[]}`)}},
		{`each of stagger must be an array, not 7`, []string{steps(`{"action":"stagger","every":1,"each":7,"steps":[]}`)}},
		{`sequence "q" uses param.p, but has no such parameter`, []string{seq(`"steps":[{"action":"flash","entity":"param.p"}]`), steps(`{"action":"include","sequence":"q"}`)}},
		{`each.item must be the name of an entity, but is an integer`, []string{steps(`{"action":"stagger","every":1,"each":[7],"steps":[{"action":"flash","when":{"stage:each.item.x":{"exists":true}}}]}`)}},
		{`the name of the sequence is missing`, []string{`{"sequence":""}`}},
		{`sequence "q" has no steps`, []string{`{"sequence":"q"}`}},
		{`sequence "q": params must be an array of names, or an object of names and defaults, not an integer`, []string{seq(`"params":7`)}},
		{`sequence "q": a parameter cannot be called "a b": use letters, digits, _ and -`, []string{seq(`"params":["a b"]`)}},
		{`sequence "q": two parameters are called "a"`, []string{seq(`"params":["a","a"]`)}},
		{`sequence "q": more than 100 parameters`, []string{seq(`"params":[` + repeated(`"n"`, 101) + `]`)}},
		{`sequence "q": more than 100 parameters`, []string{seq(`"params":{` + numbered(101) + `}`)}},
		{`with must be an object of arguments, not an integer`, []string{seq(`"steps":[]`), steps(`{"action":"include","sequence":"q","with":7}`)}},
		{`sequence "q" has no parameter "a"; it takes none`, []string{seq(`"steps":[]`), steps(`{"action":"include","sequence":"q","with":{"a":1}}`)}},
		{`sequence "q" has no parameter "c"; it takes a, b`, []string{seq(`"params":["a","b"],"steps":[]`), steps(`{"action":"include","sequence":"q","with":{"c":1}}`)}},
		{`sequence "q" needs an argument "a": write it in with`, []string{seq(`"params":["a","b"],"steps":[]`), steps(`{"action":"include","sequence":"q","with":{"b":1}}`)}},
		{`to be written out, too many bytes have to be gone through that write nothing`, []string{seq(`"steps":[{"action":"onInterrupt","x":"` + strings.Repeat("x", 70000) + `"}]`), steps(repeated(`{"action":"include","sequence":"q"}`, 300))}},
		{`so many bytes must not be nested so deeply: write the steps in fewer groups`, []string{`{"id":"c","on":"s","steps":[],"x":` + strings.Repeat(`[`, 500) + `"` + strings.Repeat("x", 100000) + `"` + strings.Repeat(`]`, 500) + `}`}},
	} {
		err := refusal(t, c.declarations...)
		require.ErrorIs(t, err, definition.ErrInvalid, c.want)
		assert.Equal(t, "choreography: not a definition: "+c.want, err.Error())
	}

	_, err := language.CompileDeclaration("mood", signal.Value{0x80})
	require.EqualError(t, err, `choreography: not a definition: unknown word "mood"`)
	for word, want := range map[string]string{
		"sequence": `the name of the sequence is missing`,
		"easing":   `the name of the easing is missing`,
		"binding":  `the id of the binding is missing`,
	} {
		_, err := language.CompileDeclaration(word, signal.Value{0x80})
		require.EqualError(t, err, "choreography: not a definition: "+want)
	}
}

// A length of time may be zero.
func TestLengthsFromZero(t *testing.T) {
	for _, transition := range []string{
		`{"targetValue":1,"durationMs":0}`, `{"targetValue":1,"durationMs":0,"revert":true,"revertDelayMs":0}`, `{"targetValue":0,"durationMs":0.5,"revertDelayMs":0.5}`,
	} {
		text := `{"binding":"b","targetEntityId":"e","sourceType":"s","property":"scale","transition":` + transition + `}`
		if _, diagnostics := language.Parse("f", []byte("["+text+"]")); diagnostics.Refused() {
			t.Errorf("%s: %v", transition, diagnostics)
		}
	}
}

// An error about a circle lists up to twenty names, and of a longer circle the first and the
// last ten. The first name is also the last.
func TestLongCircles(t *testing.T) {
	for n, shown := range map[int]int{1: 2, 18: 19, 19: 20, 20: 20, 50: 20} {
		var sequences, names []string
		for i := range n {
			sequences = append(sequences, fmt.Sprintf(`{"sequence":"s%d","steps":[{"action":"include","sequence":"s%d"}]}`, i, (i+1)%n))
			names = append(names, fmt.Sprintf("s%d", i))
		}
		names = append(names, "s0")
		if len(names) > shown {
			names = append(append(slices.Clone(names[:10]), "…"), names[len(names)-10:]...)
		}
		_, diagnostics := language.Parse("circle.json", []byte("["+strings.Join(sequences, ",")+"]"))
		if want := "sequences include each other without end: " + strings.Join(names, " → "); len(diagnostics) != 1 || diagnostics[0].Message != want {
			t.Errorf("a circle of %d: %v, want %q", n, diagnostics, want)
		}
	}
}
