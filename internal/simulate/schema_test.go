package simulate_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/simulate"
	"github.com/sajou-dev/sajou-go/signal"
)

// engine compiles the schema by a JSON Schema implementation of its own.
func engine(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(simulate.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("simulation.schema.json", doc))
	s, err := c.Compile("simulation.schema.json")
	require.NoError(t, err)
	return s
}

func accepts(t *testing.T, schema *jsonschema.Schema, text string) bool {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return schema.Validate(doc) == nil
}

// The schema accepts every example.
func TestSchemaExamples(t *testing.T) {
	schema := engine(t)
	for file, text := range examples(t) {
		if !accepts(t, schema, text) {
			t.Errorf("%s: refused", file)
		}
	}
}

// Texts that are right but for one thing are judged by the schema as by Parse.
func TestSchemaTable(t *testing.T) {
	schema := engine(t)
	agent := func(members string) string { return `,"agents":[{"id":"A"` + members + `}]` }
	script := func(members string) string { return agent(`,"script":[{"at":1,` + members + `}]`) }
	on := func(members string) string { return agent(`,"on":[{` + members + `}]`) }
	expect := func(members string) string { return agent("") + `,"expect":[{` + members + `}]` }
	do := `"do":{"leave":true}`
	for _, c := range []struct {
		members string
		want    bool
	}{
		{``, true},
		{`,"title":"t","note":"n","$schema":"s","config":{},"world":{},"agents":[],"events":[],"until":1.5,"limits":{},"expect":[]`, true},
		{`,"title":1`, false},
		{`,"note":1`, false},
		{`,"until":-1`, false},
		{`,"until":86400001`, false},
		{`,"config":[]`, false},
		{`,"agents":{}`, false},
		{`,"agents":[{}]`, false},
		{`,"limits":{"steps":0}`, false},
		{`,"limits":{"steps":1000000,"effects":100000,"reactions":100000}`, true},
		{`,"limits":{"effects":100001}`, false},
		{`,"events":[{"at":1,"draft":{"kind":"K","source_id":"","payload":{},"schema_version":"1.0.0"}}]`, true},
		{`,"events":[{"at":1,"draft":{"kind":""}}]`, false},
		{`,"events":[{"draft":{"kind":"K"}}]`, false},
		{`,"events":[{"at":1}]`, false},
		{`,"events":[{"at":1,"draft":{"kind":"K","payload":[]}}]`, false},
		{agent(`,"permissions":[],"joins":5,"reads_every":10,"policy":{"policy":"self"},"note":"n"`), true},
		{agent(`,"permissions":[""]`), false},
		{agent(`,"other":1`), false},
		{script(`"leave":true`), true},
		{script(`"leave":false`), false},
		{script(`"cancel":"r"`), true},
		{script(`"cancel":""`), false},
		{script(`"cancel":"r","leave":true`), false},
		{script(`"note":"nothing"`), false},
		{script(`"submit":{"kind":"Speak","payload":{},"req_id":"r","context_seq":0,"priority":-100,"schema_version":"1.0.0"}`), true},
		{script(`"submit":{"kind":"Speak","priority":101}`), false},
		{script(`"submit":{"kind":"Speak","context_seq":-1}`), false},
		{script(`"submit":{}`), false},
		{script(`"generate":{"words":"a b"}`), true},
		{script(`"generate":{"words":["a","b"],"ms_per_token":0,"stall":{"after":1,"ms":5},"reads":["/a"],"classes":["c"],"deadline_ms":1,"token_budget":1,"intent":{"kind":"K","payload":{},"priority":1},"req_id":"r","interrupted":{"regenerate":1,"after":2,"words":"c"}}`), true},
		{script(`"generate":{"words":5}`), false},
		{script(`"generate":{}`), false},
		{script(`"generate":{"words":"a","token_budget":0}`), false},
		{script(`"generate":{"words":"a","intent":{"kind":"K","req_id":"r"}}`), false},
		{script(`"generate":{"words":"a","interrupted":{"times":1}}`), false},
		{on(`"path":"/visible_entities/B","exists":true,` + do), true},
		{on(`"path":"/visible_relationships","equals":null,"after":1,"times":10000,` + do), true},
		{on(`"path":"/visible","changed":true,` + do), false},
		{on(`"path":"/visible_entities","changed":false,` + do), false},
		{on(`"path":"/visible_entities","exists":true,"changed":true,` + do), false},
		{on(`"path":"/visible_entities",` + do), false},
		{on(`"path":"/visible_entities","exists":true`), false},
		{on(`"path":"/visible_entities","exists":true,"do":{}`), false},
		{expect(`"accepted":{}`), true},
		{expect(`"accepted":{"agent":"A","req_id":"r","kind":"K","count":0}`), true},
		{expect(`"rejected":{"code":"TIMEOUT","reason":"d"}`), true},
		{expect(`"cancelled":{"count":-1}`), false},
		{expect(`"generations":{"kind":"K"}`), false},
		{expect(`"effects":{"source":"s","kind":"K","count":1}`), true},
		{expect(`"effects":{"agent":"A"}`), false},
		{expect(`"sees":{"agent":"A","path":"/visible_entities","equals":{},"at":5}`), true},
		{expect(`"sees_not":{"agent":"A"}`), false},
		{expect(`"told":{"agent":"A","texts":["a"]}`), true},
		{expect(`"told":{"agent":"A","texts":[]}`), false},
		{expect(`"never_told":{"agent":"A","text":"a"}`), true},
		{expect(`"never_told":{"agent":"A","text":""}`), false},
		{expect(`"accepted":{},"rejected":{}`), false},
		{expect(``), false},
	} {
		text := `{"sajou":"simulation","version":1,"name":"a"` + c.members + `}`
		s, diagnostics := simulate.Parse("a", []byte(text))
		if got := accepts(t, schema, text); got != c.want || (s != nil) != c.want {
			t.Errorf("the schema accepts: %t, the parser says %v, want %t\n%s", got, diagnostics, c.want, text)
		}
	}
}

// The engine accepts every suggested name.
func TestNamesAreKnown(t *testing.T) {
	for _, code := range simulate.Codes() {
		if _, ok := agents.Code(code).Failure(); !ok {
			t.Errorf("no code %s", code)
		}
	}
	for _, name := range simulate.PolicyNames() {
		_, err := view.CompilePolicy(value(t, `{"policy":"`+name+`"}`), nil)
		if err != nil && strings.Contains(err.Error(), "unknown policy") {
			t.Error(err)
		}
	}
	for _, name := range simulate.ConfigNames() {
		_, err := agents.ParseConfig(value(t, `{"`+name+`":null}`))
		if err != nil && strings.Contains(err.Error(), "unknown member") {
			t.Error(err)
		}
	}
}

func value(t *testing.T, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	return v
}
