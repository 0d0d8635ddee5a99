package choreography_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestRegistry shows the order of definitions and that one added twice is
// performed twice.
func TestRegistry(t *testing.T) {
	s := choreography.NewScheduler()
	x := compiled(t, `{"on":"x","interrupts":1,"steps":[]}`)
	y := compiled(t, `{"on":"y"}`)
	for _, d := range []*definition.Definition{x, y, x} {
		define(t, s, d)
	}
	if got := s.Definitions(); !slices.Equal(got, []*definition.Definition{x, y, x}) {
		t.Errorf("all = %v", got)
	}
	if got := s.Answering("x"); !slices.Equal(got, []*definition.Definition{x, x}) {
		t.Errorf("for x = %v", got)
	}
	if !x.Interrupts() || y.Interrupts() || y.Value().String() != `{"on":"y"}` {
		t.Error("a definition does not say what it is")
	}
	s.Signal(1, &signal.Signal{Type: "x"})
	s = restored(t, s)
	var slots []int
	for p := range s.Performances() {
		slots = append(slots, p.Slot)
		if p.Definition().On() != "x" {
			t.Errorf("a performance of %s", p.Definition().On())
		}
	}
	if !slices.Equal(slots, []int{0, 2}) {
		t.Errorf("performances of %v, want 0 and 2", slots)
	}
}

// TestCompileForgives shows what Compile takes where Parse would refuse, and the
// little that it refuses.
func TestCompileForgives(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"on":5,"when":7,"steps":{}}`, `{"on":"x","steps":[null,7,{},{"action":5},{"action":"parallel"},{"action":"onArrive","steps":7},
			{"action":"onInterrupt"},{"action":"parallel","steps":[{"action":"onInterrupt","steps":[{"action":"spawn"}]},{"action":"wait","duration":"x"}]}]}`,
	} {
		d := compiled(t, text)
		s := choreography.NewScheduler()
		var sink choreography.RecordingSink
		s.SetSink(&sink)
		define(t, s, d)
		s.Signal(1, &signal.Signal{Type: d.On()})
		s.Advance(0)
		if len(sink.Commands) != 0 || s.Active() != 0 {
			t.Errorf("%s: commands %v, %d active, want nothing", text, sink.Commands, s.Active())
		}
	}
	for _, text := range []string{`[]`, `null`, `"x"`, `{"on":"x","steps":[` + strings.Repeat(`{"action":"a"},`, definition.MaxSteps) + `{"action":"a"}]}`} {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		if _, err := definition.Compile(v); !errors.Is(err, definition.ErrInvalid) {
			t.Errorf("%.20s: err = %v, want definition.ErrInvalid", text, err)
		}
	}
	if _, err := definition.Compile(nil); !errors.Is(err, definition.ErrInvalid) {
		t.Error("nothing at all is taken for a definition")
	}
}

// TestDiagnosticsAsErrors shows what a caller can ask of diagnostics.
func TestDiagnosticsAsErrors(t *testing.T) {
	_, diagnostics := language.Parse("f.json", []byte(`{"on":"x","a/b~c\n":1,"steps":[]}`))
	err := diagnostics.Err(definition.ErrInvalid)
	assert.ErrorIs(t, err, definition.ErrInvalid)
	if got := diagnostics.Only(authored.SeverityError)[0]; got.Pointer != "/a~1b~0c\n" || got.Line != 1 || got.Column != 11 {
		t.Errorf("%+v is at the wrong place", got)
	}
	if got := diagnostics.Only(authored.SeverityWarning); len(got) != 1 || got.Refused() {
		t.Errorf("warnings %v", got)
	}
	for _, text := range []string{``, `7`, `{`, "\xff", `{"on":"x","on":"y"}`} {
		if definitions, diagnostics := language.Parse("f", []byte(text)); definitions != nil || !diagnostics.Refused() {
			t.Errorf("%q is not refused", text)
		}
	}
	if _, diagnostics := language.Parse("f", []byte(`[]`)); len(diagnostics) != 1 || diagnostics.Refused() {
		t.Errorf("an empty list: %v, want a warning", diagnostics)
	}
}

// TestUnchanged shows which declarations would have an effect if they came into force
// again: those that differ, those that refer to one that differs from the one to which
// they were bound, and a choreography without an id beyond the copies in force.
func TestUnchanged(t *testing.T) {
	const (
		greet = `{"sequence": "greet", "steps": [{"action": "wait", "duration": 3}]}`
		slow  = `{"sequence": "greet", "steps": [{"action": "wait", "duration": 30}]}`
		soft  = `{"easing": "soft", "curve": "steps(3)"}`
		hello = `{"id": "hello", "on": "hello", "steps": [{"action": "include", "sequence": "greet"}]}`
		bye   = `{"id": "bye", "on": "bye", "extends": "hello"}`
		lamp  = `{"id": "lamp", "targetEntityId": "lamp", "property": "opacity", "sourceType": "hello", "transition": {"targetValue": 1, "durationMs": 5, "easing": "soft"}}`
		plain = `{"on": "x", "steps": [{"action": "include", "sequence": "greet"}]}`
	)
	s := choreography.NewScheduler()
	unchanged := func(texts ...string) []bool {
		t.Helper()
		var all []language.Declaration
		for _, text := range texts {
			d, err := language.CompileDeclaration(language.WordFor(value(t, json.RawMessage(text))), value(t, json.RawMessage(text)))
			require.NoError(t, err)
			all = append(all, d)
		}
		first := s.Unchanged(all)
		require.Equal(t, first, restored(t, s).Unchanged(all))
		return first
	}
	assert.Equal(t, make([]bool, 6), unchanged(greet, soft, hello, bye, lamp, plain))
	for _, text := range []string{greet, soft, hello, bye, lamp, plain} {
		v := value(t, json.RawMessage(text))
		d, err := language.CompileDeclaration(language.WordFor(v), v)
		require.NoError(t, err)
		require.NoError(t, s.Define(d))
	}
	assert.Equal(t, []bool{true, true, true, true, true, true}, unchanged(greet, soft, hello, bye, lamp, plain))
	assert.Equal(t, []bool{true, false}, unchanged(plain, plain))
	// What comes into force before counts, and so does what it changes.
	assert.Equal(t, []bool{false, false, false, false, true, true}, unchanged(slow, hello, bye, plain, lamp, soft))
	assert.Equal(t, []bool{false, false, true}, unchanged(slow, greet, hello))
	assert.Equal(t, []bool{false, false}, unchanged(strings.Replace(soft, "3", "4", 1), lamp))
	// Nothing has come into force by the question.
	assert.Equal(t, []bool{true, true}, unchanged(hello, plain))
}
