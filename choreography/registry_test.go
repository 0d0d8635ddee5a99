package choreography_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestRegistry shows the order of definitions and that one added twice is
// performed twice.
func TestRegistry(t *testing.T) {
	s := choreography.NewScheduler()
	x := definition(t, `{"on":"x","interrupts":1,"steps":[]}`)
	y := definition(t, `{"on":"y"}`)
	for _, d := range []*choreography.Definition{x, y, x} {
		define(t, s, d)
	}
	r := s.Registry()
	if got := slices.Collect(r.All()); !slices.Equal(got, []*choreography.Definition{x, y, x}) || r.Len() != 3 {
		t.Errorf("all = %v", got)
	}
	if got := slices.Collect(r.For("x")); !slices.Equal(got, []*choreography.Definition{x, x}) {
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
		d := definition(t, text)
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
	for _, text := range []string{`[]`, `null`, `"x"`, `{"on":"x","steps":[` + strings.Repeat(`{"action":"a"},`, choreography.MaxSteps) + `{"action":"a"}]}`} {
		v, err := signal.ParseValue([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := choreography.Compile(v); !errors.Is(err, choreography.ErrDefinition) {
			t.Errorf("%.20s: err = %v, want ErrDefinition", text, err)
		}
	}
	if _, err := choreography.Compile(nil); !errors.Is(err, choreography.ErrDefinition) {
		t.Error("nothing at all is taken for a definition")
	}
}

// TestDiagnosticsAsErrors shows what a caller can ask of diagnostics.
func TestDiagnosticsAsErrors(t *testing.T) {
	_, diagnostics := choreography.Parse("f.json", []byte(`{"on":"x","a/b~c\n":1,"steps":[]}`))
	err := diagnostics.Err()
	if !errors.Is(err, choreography.ErrDefinition) {
		t.Errorf("err = %v, want ErrDefinition", err)
	}
	if got := diagnostics.Only(choreography.Error)[0]; got.Pointer != "/a~1b~0c\n" || got.Line != 1 || got.Column != 11 {
		t.Errorf("%+v is at the wrong place", got)
	}
	if got := diagnostics.Only(choreography.Warning); len(got) != 1 || got.Err() != nil {
		t.Errorf("warnings %v", got)
	}
	for _, text := range []string{``, `7`, `{`, "\xff", `{"on":"x","on":"y"}`} {
		if definitions, diagnostics := choreography.Parse("f", []byte(text)); definitions != nil || diagnostics.Err() == nil {
			t.Errorf("%q is not refused", text)
		}
	}
	if _, diagnostics := choreography.Parse("f", []byte(`[]`)); len(diagnostics) != 1 || diagnostics.Err() != nil {
		t.Errorf("an empty list: %v, want a warning", diagnostics)
	}
}
