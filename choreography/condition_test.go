package choreography_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
)

// A condition by itself holds where a choreography with that "when" matches, and
// is judged with the same words; only the stage cannot be asked.
func TestCondition(t *testing.T) {
	payload, err := signal.ParseValue([]byte(`{"toolName": "Read", "n": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	for when, remarks := range map[string][]string{
		`{}`: nil,
		`{"signal.toolName": {"equals": "Read"}, "type": {"equals": "x"}}`: nil,
		`{"n": {"gt": 3}}`: nil,
		`[{"n": {"gt": 3}}, {"n": {"not": {"exists": false}}}]`: nil,
		`{"n": {"matches": "("}}`:                               {"error [n matches] false"},
		`[{}, 7]`:                                               {"error [1] false"},
		`{"n": {"equals": []}}`:                                 {"warning [n equals] false"},
		`{"stage:lamp.on": {"equals": true}}`:                   {"error [stage:lamp.on] true"},
	} {
		v, err := signal.ParseValue([]byte(when))
		if err != nil {
			t.Fatal(err)
		}
		got := choreography.CompileCondition(v).Holds(choreography.Resolver{Type: "x", Payload: payload})
		want := definition(t, `{"on": "x", "steps": [], "when": `+when+`}`).Matches(&signal.Signal{Type: "x", Payload: payload})
		if got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		var said []string
		choreography.CheckCondition("x", v, func(s choreography.Severity, segments []string, atName bool, _ string) {
			said = append(said, fmt.Sprint(s, segments, atName))
		})
		if !slices.Equal(said, remarks) {
			t.Errorf("%s: %q, want %q", when, said, remarks)
		}
	}
	v, _ := signal.ParseValue([]byte(`{"signal.tool": {"exists": true}}`))
	said := 0
	choreography.CheckCondition("tool_call", v, func(choreography.Severity, []string, bool, string) { said++ })
	if said != 1 {
		t.Errorf("%d remarks about a field that the type has not", said)
	}
}
