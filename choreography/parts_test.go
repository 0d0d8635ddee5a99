package choreography_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// inquirer is a stage that notes which performance asks it, and of which definition each act is.
type inquirer struct {
	*stage
	scheduler *choreography.Scheduler
	noted     []string
}

func (c *inquirer) Property(entity, property string, at time.Duration) (signal.Value, bool) {
	seq, index, ok := c.scheduler.Asking()
	c.noted = append(c.noted, fmt.Sprint("asked ", entity, ".", property, " by ", seq, " ", index, " ", ok))
	return c.stage.Property(entity, property, at)
}

func (c *inquirer) Started(a *choreography.Act) {
	c.noted = append(c.noted, "started "+a.Action+" of "+a.Definition().Name())
}

// A stage that is asked by a step can tell the performance, and one that is asked by the
// condition of a choreography cannot. An act knows its choreography.
func TestAskingPerformance(t *testing.T) {
	s := choreography.NewScheduler()
	c := &inquirer{stage: newStage(), scheduler: s}
	s.Observe(c, c)
	for _, d := range parsed(t,
		`{"id": "first", "on": "go", "steps": [{"action": "flash", "entity": "ann", "duration": 10, "when": {"stage:ann.x": {"exists": false}}}]}`,
		`{"id": "second", "on": "go", "steps": [{"action": "wait", "duration": 5}, {"action": "pulse", "entity": "bob", "duration": 10, "when": {"stage:bob.x": {"exists": false}}}]}`) {
		require.NoError(t, s.Define(d))
	}
	s.Signal(7, scriptSignal(t, "go {}"))
	s.Advance(10 * time.Millisecond)
	require.Equal(t, []string{"asked ann.x by 7 1 true", "started flash of first", "asked bob.x by 7 2 true", "started pulse of second"}, c.noted)
	_, _, ok := s.Asking()
	require.False(t, ok, "outside of a call")
}

// A loop over performances, their animations and their pauses may end at any of them.
func TestLoopsThatEnd(t *testing.T) {
	s := choreography.NewScheduler()
	for _, d := range parsed(t, `{"id": "all", "on": "go", "steps": [{"action": "parallel", "steps": [
		{"action": "a", "duration": 50}, {"action": "wait", "duration": 50}, {"action": "parallel", "steps": [{"action": "b", "duration": 50}, {"action": "c", "delay": 20, "duration": 50}]}, {"action": "d", "duration": 50}]}]}`) {
		require.NoError(t, s.Define(d))
	}
	for seq := range uint64(3) {
		s.Signal(seq+1, scriptSignal(t, "go {}"))
	}
	s.Advance(10 * time.Millisecond)
	for end := 1; end <= 4; end++ {
		var performances, animations, pauses []string
		for p := range s.Performances() {
			performances = append(performances, p.ID())
			if len(performances) == end {
				break
			}
		}
		require.Equal(t, []string{"p-1-1", "p-2-1", "p-3-1"}[:min(end, 3)], performances)
		for p := range s.Performances() {
			for a := range p.Animations() {
				animations = append(animations, a.Action)
				if len(animations) == end {
					break
				}
			}
			for w := range p.Pauses() {
				pauses = append(pauses, fmt.Sprint(w.Action, " ", w.Delay, " ", w.Since, " ", w.Until))
				if len(pauses) == end {
					break
				}
			}
			break
		}
		require.Equal(t, []string{"a", "b", "d"}[:min(end, 3)], animations)
		require.Equal(t, []string{"wait false 0s 50ms", "c true 0s 20ms"}[:min(end, 2)], pauses)
	}
}

// A command's times are read from any number of milliseconds, rounded to nanoseconds; those
// beyond all times are the ends of time.
func TestTimesOfCommands(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "-0.0000004": 0, "0.0000006": 1, "12.5": 12500 * time.Microsecond, "-3": -3 * time.Millisecond, "1e300": math.MaxInt64, "-1e300": math.MinInt64, "9223372036855": math.MaxInt64, "-9223372036855": math.MinInt64,
		"9007199254": 9_007_199_254_000_000, "-9007199254": -9_007_199_254_000_000,
	} {
		var c choreography.Command
		require.NoError(t, json.Unmarshal([]byte(`{"t": `+text+`, "kind": "update", "elapsed": `+text+`}`), &c), text)
		require.Equal(t, want, c.At, text)
		require.Equal(t, want, c.Elapsed, text)
	}
	var c choreography.Command
	require.ErrorContains(t, json.Unmarshal([]byte(`{"t": "soon"}`), &c), "choreography: command: ")
	require.NoError(t, json.Unmarshal([]byte(`{"t": 5, "kind": "start"}`), &c))
	require.Equal(t, choreography.Command{At: 5 * time.Millisecond, Kind: choreography.CommandStart}, c)
}

// Declarations say what they are for, and a catalog yields them up to the one that the reader
// wants.
func TestPartsOfDeclarations(t *testing.T) {
	declarations := parsed(t,
		`{"easing": "soft", "curve": "steps(3)"}`,
		`{"binding": "b", "targetEntityId": "ann", "property": "scale", "sourceType": "x", "sourceField": "n"}`,
		`{"sequence": "q", "steps": []}`, `{"id": "c", "on": "x", "steps": []}`)
	c := new(language.Catalog)
	var names []string
	for _, d := range declarations {
		var err error
		c, err = c.With(d)
		require.NoError(t, err)
		names = append(names, d.Word()+" "+d.Name())
		switch d := d.(type) {
		case *language.Easing:
			require.Equal(t, "steps(3)", d.Curve().String())
			require.Equal(t, 2.0/3, d.Curve().At(0.7))
		case *language.Binding:
			require.Equal(t, "ann", d.Entity())
			require.Equal(t, "scale", d.Property())
		}
		require.Equal(t, d.Value(), c.Get(d.Word(), d.Name()).Value())
	}
	require.Nil(t, c.Get("easing", "hard"))
	for end := 1; end <= 5; end++ {
		var got []string
		for d := range c.All() {
			got = append(got, d.Word()+" "+d.Name())
			if len(got) == end {
				break
			}
		}
		require.Equal(t, names[:min(end, 4)], got)
	}
	require.True(t, slices.Contains(names, "binding b"))
	bound, err := c.Bind(nil)
	require.NoError(t, err)
	require.Empty(t, bound)
	same, err := c.With(nil)
	require.NoError(t, err)
	require.Same(t, c, same)
	require.Equal(t, definition.Cost{}, new(language.Catalog).Used())
}
