package signal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
)

// engine compiles the schema file by a JSON Schema implementation of its own.
func engine(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(signal.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("signal.schema.json", doc))
	s, err := c.Compile("signal.schema.json")
	require.NoError(t, err)
	return s
}

// agree fails unless the schema engine and this package judge a text alike.
func agree(t rapid.TB, schema *jsonschema.Schema, text string) bool {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want := schema.Validate(doc)
	s, got := signal.Parse([]byte(text))
	if got != nil && !errors.Is(got, signal.ErrSchema) {
		t.Fatalf("%s: %v", text, got)
	}
	if (got == nil) != (want == nil) {
		t.Fatalf("%s:\nthis package: %v\nthe engine: %v", text, got, want)
	}
	if got == nil {
		if err := s.Validate(); err != nil {
			t.Fatalf("%s: parsed, but Validate: %v", text, err)
		}
		return true
	}
	if lenient, err := signal.ParseLenient([]byte(text)); err == nil {
		if err := lenient.Validate(); err == nil || err.Error() != got.Error() || lenient.Problem == "" {
			t.Fatalf("%s:\nParse: %v\nValidate: %v\nProblem: %s", text, got, err, lenient.Problem)
		}
	}
	return false
}

// genField draws the JSON of a field, right more often than not.
func genField(t *rapid.T, f signal.Field) string {
	if rapid.IntRange(0, 14).Draw(t, "wrong") == 0 {
		return rapid.SampledFrom([]string{
			`null`, `true`, `""`, `"idle"`, `"error"`, `0`, `-1`, `5.0`, `1e2`, `2.5`, `-0.0`, `-0`, `-1e-9`,
			`18446744073709551615`, `9007199254740993`, `1e300`, `[]`, `{}`, `{"x":1}`, `{"x":1,"y":2}`,
			`{"x":0,"y":0,"w":1,"h":-2}`, `{"x":0,"y":0,"w":1,"h":2,"d":3}`,
		}).Draw(t, "value")
	}
	switch f.Kind {
	case signal.FieldString:
		if f.Enum != nil {
			return fmt.Sprintf("%q", rapid.SampledFrom(f.Enum).Draw(t, "enum"))
		}
		return rapid.SampledFrom([]string{`""`, `"a-1"`, `"é"`}).Draw(t, "text")
	case signal.FieldBool:
		return rapid.SampledFrom([]string{`true`, `false`}).Draw(t, "bool")
	case signal.FieldInteger:
		return rapid.SampledFrom([]string{`0`, `0.0`, `7`, `5.0`, `1e2`, `18446744073709551615`, `1e300`}).Draw(t, "integer")
	case signal.FieldNumber:
		return rapid.SampledFrom([]string{`0`, `0.0`, `7`, `0.25`, `-0.0`, `1e2`}).Draw(t, "number")
	default:
		if f.Fields != nil {
			return genObject(t, f.Fields)
		}
		return rapid.SampledFrom([]string{`{}`, `{"free":[null]}`}).Draw(t, "object")
	}
}

func genObject(t *rapid.T, fields []signal.Field) string {
	var members []string
	for _, f := range fields {
		leave := 1
		if !f.Required {
			leave = 10
		}
		if rapid.IntRange(0, 19).Draw(t, "leave") >= leave {
			members = append(members, fmt.Sprintf("%q:%s", f.Name, genField(t, f)))
		}
	}
	if rapid.IntRange(0, 24).Draw(t, "extra") == 0 {
		members = append(members, `"extra/~":1`)
	}
	return "{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), ",") + "}"
}

// The check that every signal goes through gives the verdict of the schema.
func TestSchemaOracle(t *testing.T) {
	schema := engine(t)
	envelope := []signal.Field{
		{Name: "id", Kind: signal.FieldString, Required: true},
		{Name: "timestamp", Kind: signal.FieldNumber, Required: true},
		{Name: "source", Kind: signal.FieldString, Required: true},
		{Name: "correlationId", Kind: signal.FieldString},
		{Name: "metadata", Kind: signal.FieldObject},
	}
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(append(signal.WellKnownTypes(), "x", "", "Tool_call")).Draw(t, "type")
		fields, _ := signal.PayloadFields(typ)
		payload := genObject(t, fields)
		if rapid.IntRange(0, 29).Draw(t, "payload") == 0 {
			payload = rapid.SampledFrom([]string{`null`, `[]`, `"x"`, `{}`}).Draw(t, "odd payload")
		}
		text := fmt.Sprintf(`{"type":%q,"payload":%s`, typ, payload)
		if rest := genObject(t, envelope); rest != "{}" {
			text += "," + rest[1:]
		} else {
			text += "}"
		}
		verdicts[agree(t, schema, text)]++
	})
	if !testing.Short() && (verdicts[true] == 0 || verdicts[false] == 0) { // the short form draws too few to tell
		t.Errorf("the draws were one-sided: %v", verdicts)
	}
}

// Any JSON whatever is judged as the schema does.
func TestSchemaOracleOnAnyJSON(t *testing.T) {
	schema := engine(t)
	rapid.Check(t, func(t *rapid.T) { agree(t, schema, genJSON().Draw(t, "json")) })
}

// An error names the offending field by its path.
func TestFieldErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{}`, `signal: /id: is required`},
		{`[]`, `signal: must be an object, not an array`},
		{envelope("tool_call", `{"agentId":"a"}`), `signal: /payload/toolName: is required`},
		{envelope("tool_call", `{"toolName":"x","agentId":"a","extra":1}`), `signal: /payload/extra: is not a field of tool_call`},
		{envelope("tool_call", `{"toolName":"x","agentId":"a","a/b~":1}`), `signal: /payload/a~1b~0: is not a field of tool_call`},
		{envelope("tool_call", `{"toolName":null,"agentId":"a"}`), `signal: /payload/toolName: must be a string, not null`},
		{envelope("token_usage", `{"agentId":"a","promptTokens":1.5,"completionTokens":0}`), `signal: /payload/promptTokens: must be an integer, not 1.5`},
		{envelope("token_usage", `{"agentId":"a","promptTokens":1,"completionTokens":0,"cost":-0.5}`), `signal: /payload/cost: must be at least 0, not -0.5`},
		{envelope("error", `{"message":"m","severity":"fatal"}`), `signal: /payload/severity: "fatal" is none of warning, error, critical`},
		{envelope("user.point", `{"position":{"x":1}}`), `signal: /payload/position/y: is required`},
		{envelope("user.point", `{"position":{"x":1,"y":"2"}}`), `signal: /payload/position/y: must be a number, not a string`},
		{envelope("user.point", `{"position":{"x":1,"y":2,"z":3}}`), `signal: /payload/position/z: is not a field of position`},
		{envelope("x", `{},"parentId":"p"`), `signal: /parentId: is not a field of a signal`},
		{envelope("x", `{},"correlationId":null`), `signal: /correlationId: must be a string, not null`},
		{envelope("x", `[]`), `signal: /payload: must be an object, not an array`},
	} {
		_, err := signal.Parse([]byte(c.in))
		if err == nil || err.Error() != c.want || !errors.Is(err, signal.ErrSchema) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
	// A long name does not make a long message.
	_, err := signal.Parse([]byte(envelope("error", `{"message":"","severity":"error","`+strings.Repeat("é", 9999)+`":1}`)))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("got an error of %d bytes", len(fmt.Sprint(err)))
	}
}

func envelope(typ, payload string) string {
	return fmt.Sprintf(`{"id":"s-1","type":%q,"timestamp":1738900000000,"source":"adapter:test","payload":%s}`, typ, payload)
}

// A signal made by hand is checked in every field before it is recorded.
func TestValidateByHand(t *testing.T) {
	good := func() *signal.Signal {
		return &signal.Signal{ID: "s", Type: "x", Source: "a", Timestamp: signal.Int(1), Payload: parsed(t, `{"n":1}`)}
	}
	require.NoError(t, good().Validate())
	bad := "\xff"
	deep := bytes.Repeat([]byte{0x81, 0xa0}, signal.MaxDepth-1)
	for name, spoil := range map[string]func(*signal.Signal){
		"/id: is not UTF-8":                         func(s *signal.Signal) { s.ID = bad },
		"/type: is not UTF-8":                       func(s *signal.Signal) { s.Type = bad },
		"/source: is not UTF-8":                     func(s *signal.Signal) { s.Source = bad },
		"/correlationId: is not UTF-8":              func(s *signal.Signal) { s.CorrelationID = &bad },
		"/timestamp: is required":                   func(s *signal.Signal) { s.Timestamp = signal.Float(math.Inf(1)) },
		"/payload: is required":                     func(s *signal.Signal) { s.Payload = nil },
		"/payload: must be an object, not an array": func(s *signal.Signal) { s.Payload = parsed(t, `[]`) },
		"/payload: is more than one value":          func(s *signal.Signal) { s.Payload = signal.Value{0x80, 0x80} },
		"/payload: is malformed: ":                  func(s *signal.Signal) { s.Payload = signal.Value{0x81} },
		"/payload/agentId: is required":             func(s *signal.Signal) { s.Type = "thinking"; s.Payload = parsed(t, `{"content":""}`) },
		"/metadata: must be an object, not null":    func(s *signal.Signal) { s.Metadata = parsed(t, `null`) },
		"/metadata: is malformed: signal: byte 1022: nested too deep": func(s *signal.Signal) {
			s.Metadata = append(append(deep, 0x81, 0xa0), 0x80)
		},
		"/id: is required":        func(s *signal.Signal) { s.Raw = parsed(t, `{}`) },
		"is malformed: ":          func(s *signal.Signal) { s.Raw = signal.Value{} },
		"must be an object, not ": func(s *signal.Signal) { s.Raw = parsed(t, `5`) },
	} {
		s := good()
		spoil(s)
		if err := s.Validate(); !errors.Is(err, signal.ErrSchema) || !strings.HasPrefix(err.Error(), "signal: "+name) {
			t.Errorf("got  %v\nwant signal: %s", err, name)
		}
	}
}

func TestPayloadFields(t *testing.T) {
	if n := len(signal.WellKnownTypes()); n != 14 {
		t.Errorf("%d well-known types, want 14", n)
	}
	number := func(name string) signal.Field {
		return signal.Field{Name: name, Kind: signal.FieldNumber, Required: true}
	}
	got, ok := signal.PayloadFields("user.click")
	want := []signal.Field{
		{Name: "target", Kind: signal.FieldString, Required: true},
		{Name: "position", Kind: signal.FieldObject, Fields: []signal.Field{number("x"), number("y")}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("user.click: %t (-want +got)\n%s", ok, diff)
	}
	if got, _ := signal.PayloadFields("tool_call"); got[3].Kind != signal.FieldObject || got[3].Fields != nil {
		t.Errorf("tool_call's input is not a free object: %+v", got[3])
	}
	if got, _ := signal.PayloadFields("error"); len(got[1].Enum) != 3 {
		t.Errorf("error's severity has not three values: %+v", got[1])
	}
	if _, ok := signal.PayloadFields("x"); ok {
		t.Error("x is a well-known type")
	}
}

// The schema file describes itself in its JSON.
func TestSchemaFile(t *testing.T) {
	var doc map[string]any
	require.NoError(t, json.Unmarshal(signal.Schema(), &doc))
	if doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("$schema is %v", doc["$schema"])
	}
}
