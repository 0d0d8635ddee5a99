package choreography_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
)

// params brings a binding into force and returns the parameters of the one
// command that a payload sets off.
func params(t *testing.T, binding, payload string) string {
	t.Helper()
	s := choreography.NewScheduler()
	var sink choreography.RecordingSink
	s.SetSink(&sink)
	for _, d := range parsed(t, binding) {
		require.NoError(t, s.Define(d))
	}
	v, err := signal.ParseValue([]byte(payload))
	require.NoError(t, err)
	s.Signal(1, &signal.Signal{Type: "x", Payload: v})
	s.Advance(0)
	if len(sink.Commands) != 1 {
		t.Fatalf("%s on %s gave %d commands", binding, payload, len(sink.Commands))
	}
	b, err := json.Marshal(sink.Commands[0].Params)
	require.NoError(t, err)
	return string(b)
}

// Where the number of a binding comes from, in this order: the field named, the
// last part of the property's name, value, the first number there is.
func TestBindingTakesItsNumber(t *testing.T) {
	for _, c := range []struct{ field, payload, want string }{
		{"v", `{"v": 3, "x": 4, "value": 5}`, `3`},
		{"v", `{"v": "3", "x": 4, "value": 5}`, `4`},
		{"a.b", `{"a": {"b": 2.5}, "x": 4}`, `2.5`},
		{"a.b", `{"a": {"b": 1}, "a.b": 6}`, `6`},
		{"", `{"first": 1, "value": 5, "x": 4}`, `4`},
		{"", `{"first": 1, "value": 5, "x": true}`, `5`},
		{"", `{"none": null, "text": "7", "inner": {"n": 8}, "first": 1, "second": 2}`, `1`},
		{"", `{"big": 9007199254740993}`, `9007199254740993`},
	} {
		field := ""
		if c.field != "" {
			field = fmt.Sprintf(`"sourceField": %q, `, c.field)
		}
		got := params(t, `{"id": "b", "entity": "e", "property": "position.x", `+field+`"on": "x"}`, c.payload)
		if want := `{"property":"position.x","value":` + c.want + `}`; got != want {
			t.Errorf("field %q of %s: got %s, want %s", c.field, c.payload, got, want)
		}
	}
	if got := params(t, `{"id": "b", "entity": "e", "property": "scale", "on": "x"}`, `{"text": "no number"}`); got != `{"property":"scale"}` {
		t.Errorf("without a number: %s", got)
	}
}

// Where the text of a binding comes from.
func TestBindingTakesItsText(t *testing.T) {
	for _, c := range []struct{ field, payload, want string }{
		{"v", `{"v": "mine", "content": "c"}`, `"mine"`},
		{"v", `{"v": 3, "content": "c"}`, `"c"`},
		{"", `{"message": "m", "text": "t", "content": "c"}`, `"c"`},
		{"", `{"message": "m", "text": "t", "content": ""}`, `"t"`},
		{"", `{"first": "f", "message": "m"}`, `"m"`},
		{"", `{"n": 1, "empty": "", "first": "f", "second": "s"}`, `"f"`},
	} {
		field := ""
		if c.field != "" {
			field = fmt.Sprintf(`"sourceField": %q, `, c.field)
		}
		got := params(t, `{"id": "b", "entity": "e", "property": "speech", `+field+`"on": "x"}`, c.payload)
		if want := `{"text":` + c.want + `}`; got != want {
			t.Errorf("field %q of %s: got %s, want %s", c.field, c.payload, got, want)
		}
	}
}

func TestMappings(t *testing.T) {
	for _, c := range []struct {
		mapping string
		raw     string
		want    string
	}{
		{`"fn": "lerp", "inputRange": [0, 10], "outputRange": [100, 200]`, "5", "150"},
		{`"fn": "lerp", "inputRange": [0, 10], "outputRange": [100, 200]`, "-5", "100"},
		{`"fn": "lerp", "inputRange": [0, 10], "outputRange": [100, 200]`, "50", "200"},
		{`"fn": "lerp", "inputRange": [10, 0], "outputRange": [0, 1]`, "2.5", "0.75"},
		{`"fn": "lerp", "inputRange": [0, 10], "outputRange": [1, 0]`, "2", "0.8"},
		{`"inputRange": [0, 10], "outputRange": [100, 200]`, "1", "110"},
		{`"fn": "clamp", "inputRange": [0, 10], "outputRange": [2, 4]`, "3.5", "3.5"},
		{`"fn": "clamp", "inputRange": [0, 10], "outputRange": [2, 4]`, "9", "4"},
		{`"fn": "clamp", "inputRange": [0, 10], "outputRange": [2, 4]`, "1", "2"},
		{`"fn": "step", "inputRange": [0, 10], "outputRange": [2, 4]`, "4.9", "2"},
		{`"fn": "step", "inputRange": [0, 10], "outputRange": [2, 4]`, "5", "4"},
		{`"fn": "smoothstep", "inputRange": [0, 1], "outputRange": [0, 100]`, "0.5", "50"},
		{`"fn": "smoothstep", "inputRange": [0, 1], "outputRange": [0, 100]`, "0.25", "15.625"},
		{`"fn": "smoothstep", "inputRange": [0, 1], "outputRange": [0, 100]`, "7", "100"},
		{`"fn": "lerp", "inputRange": [3, 3], "outputRange": [7, 9]`, "100", "7"},
		{`"fn": "clamp", "inputRange": [3, 3], "outputRange": [7, 9]`, "8", "7"},
		{`"fn": "lerp", "inputRange": [-1e308, 1e308], "outputRange": [0, 1]`, "1e308", "1"},
		{`"fn": "lerp", "inputRange": [-1e308, 1e308], "outputRange": [0, 1]`, "0", "0.5"},
		{`"fn": "lerp", "inputRange": [0, 10], "outputRange": [-1e308, 1e308]`, "0", "-1e+308"},
		{`"fn": "lerp", "inputRange": [0, 10], "outputRange": [-1e308, 1e308]`, "7.5", "5e+307"},
	} {
		binding := `{"id": "b", "entity": "e", "property": "scale", "on": "x", "mapping": {` + c.mapping + `}}`
		if want, got := `{"property":"scale","value":`+c.want+`}`, params(t, binding, `{"v": `+c.raw+`}`); got != want {
			t.Errorf("%s of %s: got %s, want %s", c.mapping, c.raw, got, want)
		}
	}
}
