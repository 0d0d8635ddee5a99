package choreography_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// busy returns a scheduler in the middle of everything: a group, a delay, a
// wait, a handler, and something that has not begun.
func busy(t testing.TB) *choreography.Scheduler {
	t.Helper()
	s := choreography.NewScheduler()
	for _, d := range []string{
		`{"on":"x","steps":[{"action":"parallel","steps":[{"action":"spawn","entity":"a"},{"action":"move","entity":"signal.who","duration":100},{"action":"onArrive","steps":[{"action":"wait","duration":5},{"action":"move","delay":50,"duration":1}]}]},{"action":"onInterrupt","steps":[{"action":"wait","duration":70}]}]}`,
		`{"on":"stop","interrupts":true,"when":{"signal.really":{"equals":true}},"steps":[{"action":"parallel","steps":[{"action":"parallel","steps":[{"action":"wait","duration":30.5}]}]}]}`,
		`{"on":"x","steps":[]}`,
		`{"on":"work","id":"w","guard":{"entity":["signal.who","b"]},"steps":[{"action":"wait","duration":40,"when":{"signal.n":{"gt":1}}},{"action":"onInterrupt","steps":[{"action":"wave","duration":9}]}]}`,
		`{"on":"now","guard":{"entity":"b","policy":"preempt"},"steps":[{"action":"move","duration":35}]}`,
	} {
		v, err := signal.ParseValue([]byte(d))
		require.NoError(t, err)
		definition, err := definition.Compile(v)
		require.NoError(t, err)
		define(t, s, definition)
	}
	id, other := "c", ""
	who := value(t, object{"who": "ann", "n": 1.5})
	s.Signal(1, &signal.Signal{Type: "x", CorrelationID: &id, Payload: who})
	s.Advance(10 * time.Millisecond)
	s.Signal(2, &signal.Signal{Type: "x", CorrelationID: &other, Payload: who})
	s.Signal(3, &signal.Signal{Type: "stop", CorrelationID: &id, Payload: value(t, object{"really": true})})
	s.Advance(20 * time.Millisecond)
	s.Signal(4, &signal.Signal{Type: "x", Payload: who})
	s.Signal(5, &signal.Signal{Type: "work", CorrelationID: &id, Payload: who}) // holds
	s.Signal(6, &signal.Signal{Type: "work", Payload: who})                     // waits
	s.Signal(7, &signal.Signal{Type: "now"})                                    // takes b from the first
	define(t, s, compile(t, object{"on": "work", "id": "w", "guard": object{"entity": "ann"}, "steps": []object{}}))
	s.Signal(8, &signal.Signal{Type: "work"}) // waits behind the one that waits
	return s
}

// TestStateTruncated shows that no beginning of a state is taken for a state.
func TestStateTruncated(t *testing.T) {
	whole := busy(t).AppendState(nil)
	if _, err := choreography.RestoreScheduler(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := choreography.RestoreScheduler(whole[:n]); !errors.Is(err, choreography.ErrState) {
			t.Errorf("%d of %d bytes: err = %v, want ErrState", n, len(whole), err)
		}
	}
	if _, err := choreography.RestoreScheduler(append(bytes.Clone(whole), 0xc0)); !errors.Is(err, choreography.ErrState) {
		t.Errorf("a byte too many: err = %v, want ErrState", err)
	}
}

// TestStateFlipped flips every bit of a state. What is still taken must be a
// state in its canonical form, and must run to its end in time order.
func TestStateFlipped(t *testing.T) {
	whole := busy(t).AppendState(nil)
	for i := range whole {
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << bit
			soundIfTaken(t, flipped)
		}
	}
}

// soundIfTaken restores b and, if it is taken, runs it and checks it.
func soundIfTaken(t *testing.T, b []byte) {
	t.Helper()
	s, err := choreography.RestoreScheduler(b)
	if err != nil {
		if !errors.Is(err, choreography.ErrState) && !errors.Is(err, choreography.ErrStateVersion) {
			t.Errorf("err = %v, want ErrState or ErrStateVersion", err)
		}
		return
	}
	if again := s.AppendState(nil); !bytes.Equal(again, b) {
		t.Errorf("state %x comes back as %x", b, again)
	}
	var sink choreography.RecordingSink
	s.SetSink(&sink)
	at := s.Now()
	id := "c"
	s.Signal(9, &signal.Signal{Type: "stop", CorrelationID: &id})
	s.Advance(s.Now())
	s.Advance(math.MaxInt64)
	for _, c := range sink.Commands {
		if c.At < at {
			t.Errorf("a command at %v after one at %v", c.At, at)
		}
		at = c.At
	}
	if s.Active() != 0 {
		t.Errorf("%d performances at the end of time", s.Active())
	}
}

// TestStateVersion shows that another version has an error of its own, before
// anything else of the state is judged.
func TestStateVersion(t *testing.T) {
	b := msgp.AppendInt(msgp.AppendArrayHeader(nil, 5), 1)
	if _, err := choreography.RestoreScheduler(b); !errors.Is(err, choreography.ErrStateVersion) || errors.Is(err, choreography.ErrState) {
		t.Errorf("err = %v, want ErrStateVersion alone", err)
	}
}

func FuzzRestoreScheduler(f *testing.F) {
	f.Add(busy(f).AppendState(nil))
	f.Add(choreography.NewScheduler().AppendState(nil))
	f.Fuzz(func(t *testing.T, b []byte) { soundIfTaken(t, b) })
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"on":"x","when":{"signal.a":{"matches":"\\u00e9"}},"steps":[{"action":"move","to":"signal.b","duration":5}]}`))
	f.Add([]byte(`{"on":"x","id":"i","guard":{"entity":["a","signal.b"],"policy":"preempt"},"steps":[{"action":"onArrive","when":{"stage:signal.a.b":{"exists":false}},"steps":[{"action":"wait","duration":5}]}]}`))
	f.Add([]byte(`[{"on":"error","interrupts":true,"steps":[{"action":"parallel","steps":[{"action":"onInterrupt"}]}]}]`))
	f.Add([]byte(`[{"sequence":"s","params":{"a":1},"steps":[{"action":"repeat","times":"param.a","steps":[{"action":"wait","duration":"param.a"}]}]},
		{"id":"i","on":"x","steps":[{"action":"stagger","every":5,"each":["a"],"steps":[{"action":"include","sequence":"s","with":{"a":2},"when":{"stage:each.item.x":{"equals":"each.index"}}}]}]},
		{"extends":"i","after":[{"action":"move","duration":5,"easing":"e"}],"guard":{"entity":"a"}},{"easing":"e","curve":"spring(1,100,10)"}]`))
	f.Add([]byte(`[{"id":"b","entity":"e","property":"scale","on":"x","mapping":{"fn":"step","inputRange":[0,1],"outputRange":[2,3]}},
		{"id":"c","entity":"e","property":"scale","on":"x","transition":{"targetValue":1,"durationMs":5,"easing":"arc","revert":true,"revertDelayMs":3}}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		definitions, diagnostics := language.Parse("f", text)
		if diagnostics.Refused() && definitions != nil {
			t.Error("definitions in spite of errors")
		}
		lines := bytes.Count(text, []byte("\n")) + 1
		for _, d := range diagnostics {
			if d.Line < 1 || d.Line > lines || d.Column < 1 || d.Column > len(text)+1 {
				t.Errorf("%v is outside of the text", d)
			}
		}
		s := choreography.NewScheduler()
		for _, d := range definitions {
			define(t, s, d)
		}
		seq := uint64(0)
		for _, d := range s.Definitions() {
			if seq++; seq > 20 {
				break // what performs is not what is fuzzed
			}
			s.Signal(seq, &signal.Signal{Type: d.On()})
			s.Advance(0)
		}
		if definitions != nil {
			soundIfTaken(t, s.AppendState(nil))
		}
		v, err := signal.ParseValue(text)
		if err == nil {
			if _, err := definition.Compile(v); err != nil && !errors.Is(err, definition.ErrInvalid) {
				t.Errorf("err = %v, want definition.ErrInvalid", err)
			}
		}
	})
}

// TestLongAndDeep runs the longest and the deepest definitions: neither costs
// stack per step, and one more step or level is refused.
func TestLongAndDeep(t *testing.T) {
	long := func(n int) string {
		return `{"on":"x","steps":[` + strings.Repeat(`{"action":"spawn"},`, n-1) + `{"action":"spawn"}]}`
	}
	definitions, diagnostics := language.Parse("long", []byte(long(definition.MaxSteps)))
	require.NoError(t, diagnostics.Err(definition.ErrInvalid))
	s := choreography.NewScheduler()
	define(t, s, definitions[0])
	var sink choreography.RecordingSink
	s.SetSink(&sink)
	s.Signal(1, &signal.Signal{Type: "x"})
	s.Advance(0)
	if len(sink.Commands) != definition.MaxSteps || s.Active() != 0 {
		t.Errorf("%d commands, %d active, want %d and 0", len(sink.Commands), s.Active(), definition.MaxSteps)
	}
	if _, diagnostics := language.Parse("long", []byte(long(definition.MaxSteps+1))); !diagnostics.Refused() {
		t.Error("one step more is not refused")
	}

	deep := func(n int) string {
		return `{"on":"x","steps":` + strings.Repeat(`[{"action":"parallel","steps":`, n) + `[{"action":"move","duration":1}]` + strings.Repeat(`}]`, n) + `}`
	}
	const levels = signal.MaxDepth/2 - 2
	definitions, diagnostics = language.Parse("deep", []byte(deep(levels)))
	require.NoError(t, diagnostics.Err(definition.ErrInvalid))
	s = choreography.NewScheduler()
	define(t, s, definitions[0])
	s.Signal(1, &signal.Signal{Type: "x"})
	s.Advance(0)
	s = restored(t, s)
	s.Advance(time.Millisecond)
	if s.Active() != 0 {
		t.Error("the deepest definition did not end")
	}
	if _, diagnostics := language.Parse("deep", []byte(deep(signal.MaxDepth))); !diagnostics.Refused() {
		t.Error("deeper than a value can be is not refused")
	}
}

// TestManyDiagnostics shows that what is said about a file is bounded.
func TestManyDiagnostics(t *testing.T) {
	text := `{"on":"x","steps":[` + strings.Repeat("7,\n", 5000) + `7]}`
	_, diagnostics := language.Parse("many", []byte(text))
	if n := len(diagnostics); n != 101 {
		t.Errorf("%d diagnostics, want 100 and one that says there are more", n)
	}
}

// TestEndOfTime shows that lengths beyond the end of session time neither go
// round nor hang.
func TestEndOfTime(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, compile(t, object{"on": "x", "steps": []object{
		{"action": "move", "duration": 1e300},
		{"action": "wait", "duration": 1e300},
		{"action": "move", "duration": 5, "delay": 1e18},
		{"action": "spawn"},
	}}))
	var sink choreography.RecordingSink
	s.SetSink(&sink)
	s.Advance(time.Hour)
	s.Signal(1, &signal.Signal{Type: "x"})
	s.Advance(1000 * time.Hour)
	if at, ok := s.Next(); !ok || at != math.MaxInt64 {
		t.Errorf("next = %v, %v, want the end of time", at, ok)
	}
	s.Advance(math.MaxInt64)
	var got []string
	for _, c := range sink.Commands {
		got = append(got, fmt.Sprint(c.Kind))
	}
	if want := "start update complete start complete execute"; strings.Join(got, " ") != want {
		t.Errorf("commands %v, want %s", got, want)
	}
	s.Advance(0)
	if s.Now() != math.MaxInt64 {
		t.Error("time went back")
	}
}
