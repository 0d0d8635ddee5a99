package choreography_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// A condition by itself holds where a choreography with that "when" matches, and
// is judged with the same words; only the stage cannot be asked.
func TestCondition(t *testing.T) {
	payload, err := signal.ParseValue([]byte(`{"toolName": "Read", "n": 3}`))
	require.NoError(t, err)
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
		require.NoError(t, err)
		got := definition.CompileCondition(v).Holds(definition.Resolver{Type: "x", Payload: payload})
		want := compiled(t, `{"on": "x", "steps": [], "when": `+when+`}`).Matches(&signal.Signal{Type: "x", Payload: payload})
		if got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		var said []string
		language.CheckCondition("x", v, func(f authored.Remark) {
			said = append(said, fmt.Sprint(f.Severity, f.Location.Segments(), f.Location.IsKey()))
		})
		if !slices.Equal(said, remarks) {
			t.Errorf("%s: %q, want %q", when, said, remarks)
		}
	}
	v, _ := signal.ParseValue([]byte(`{"signal.tool": {"exists": true}}`))
	said := 0
	language.CheckCondition("tool_call", v, func(authored.Remark) { said++ })
	if said != 1 {
		t.Errorf("%d remarks about a field that the type has not", said)
	}
}
