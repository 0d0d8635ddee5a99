package agents_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/schematest"
	"github.com/sajou-dev/sajou-go/signal"
)

// valid fails unless a schema accepts what v is as JSON, and v comes back from it.
func valid[T any](t testing.TB, schema []byte, v T) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	assert.NoError(t, schematest.Validate(schema, text), "%s", text)
	var back T
	require.NoError(t, json.Unmarshal(text, &back), "%s", text)
	again, err := json.Marshal(back)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again))
}

var (
	someText    = rapid.StringMatching(`[a-zA-Zé<&"/~ ]{0,8}`)
	somePayload = rapid.Map(rapid.MapOfN(someText, rapid.Int64(), 0, 3), func(m map[string]int64) signal.Value {
		v, _ := signal.Marshal(m)
		return v
	})
)

func someEffect(t *rapid.T) world.Effect {
	return world.Effect{
		UUID: someText.Draw(t, "uuid"), Kind: someText.Draw(t, "kind"), Payload: somePayload.Draw(t, "payload"),
		GlobalSeq: uint64(rapid.Int64Min(1).Draw(t, "seq")), SimTime: rapid.Float64().Draw(t, "time"),
		SourceID: someText.Draw(t, "source"), SchemaVersion: world.SchemaVersion, ReqID: someText.Draw(t, "req"),
	}
}

// Whatever an intent, an effect, an outcome, a delta or a view holds, its JSON is of the
// form that the schema tells, and reading it gives the same again.
func TestFormsRoundTrip(t *testing.T) {
	codes := []agents.Code{agents.ErrStaleContext, agents.ErrQuotaExceeded, agents.ErrInvalid}
	rapid.Check(t, func(r *rapid.T) {
		in := agents.Intent{
			Kind: someText.Draw(r, "kind"), ReqID: someText.Draw(r, "req"), AgentID: someText.Draw(r, "agent"),
			ContextSeq: uint64(rapid.Int64Min(0).Draw(r, "context")), Payload: somePayload.Draw(r, "payload"),
			Unprioritized: rapid.Bool().Draw(r, "default"), SchemaVersion: someText.Draw(r, "version"),
		}
		if !in.Unprioritized {
			in.Priority = rapid.IntRange(-100, 100).Draw(r, "priority")
		}
		valid(t, agents.IntentSchema(), in)
		back, err := agents.ParseIntent(in.Value())
		require.NoError(t, err)
		assert.Equal(t, in, back)

		e := someEffect(r)
		valid(t, world.EffectSchema(), e)
		accepted := agents.Outcome{Status: agents.Accepted, GlobalSeq: e.GlobalSeq, UUID: e.UUID, Number: rapid.Uint64Max(9).Draw(r, "number"), Effect: &e}
		valid(t, agents.OutcomeSchema(), accepted)
		rejection := agents.Rejection{
			Code: rapid.SampledFrom(codes).Draw(r, "code"), Recovery: agents.ModifyIntent, AgentID: in.AgentID, ReqID: in.ReqID,
			Reason: someText.Draw(r, "reason"), RetryAfter: time.Duration(rapid.Int64Range(0, 1e12).Draw(r, "after")),
		}
		switch rejection.Code {
		case agents.ErrStaleContext:
			rejection.ExpectedSeq, rejection.ActualSeq = rapid.Uint64Max(99).Draw(r, "expected"), rapid.Uint64Max(99).Draw(r, "actual")
		case agents.ErrQuotaExceeded:
			rejection.Quota, rejection.Limit = agents.QuotaTokens, rapid.Int64().Draw(r, "limit")
		default:
			rejection.Problems = []agents.Problem{{Path: "/payload", Reason: someText.Draw(r, "problem")}}
		}
		refused := agents.Outcome{Status: rapid.SampledFrom([]agents.Status{agents.Rejected, agents.Duplicate}).Draw(r, "status"), Rejection: &rejection}
		valid(t, agents.OutcomeSchema(), refused)
		again, err := agents.ParseOutcome(refused.Value())
		require.NoError(t, err)
		assert.Equal(t, refused, again)

		v := view.View{AgentID: in.AgentID, ViewSeq: rapid.Uint64Max(99).Draw(r, "view"), VisibleEntities: parse(t, `{"a":{"type":"b"}}`), VisibleRelationships: parse(t, `{"a":["b",{"to":"c","type":"d"}]}`)}
		v.ContextDigest = v.Digest()
		valid(t, view.ViewSchema(), v)
	})
}

// The schemas refuse what is not of the form, each text for one fault.
func TestSchemasRefuse(t *testing.T) {
	digest := strings.Repeat("0", 64)
	rejected := `{"status":"rejected","rejection":{"code":"TIMEOUT","recovery":"retry"`
	for _, c := range []struct {
		schema []byte
		good   string
		bad    []string
	}{
		{agents.IntentSchema(), `{"kind":"Speak","payload":{},"context_seq":0,"req_id":"r","agent_id":"a","priority":null}`, []string{
			`[]`, `{"kind":1}`, `{"payload":[]}`, `{"context_seq":-1}`, `{"context_seq":1.5}`, `{"priority":101}`, `{"req_id":null}`,
		}},
		{world.EffectSchema(), `{"uuid":"u","kind":"Move","payload":{},"global_seq":1,"sim_time":0.5,"source_id":"a","schema_version":"1.0.0","number":1}`, []string{
			`{}`, `{"uuid":"u","kind":"Move","payload":null,"global_seq":1,"sim_time":0.5,"source_id":"a","schema_version":"1.0.0"}`,
			`{"uuid":"u","kind":"Move","payload":{},"global_seq":-1,"sim_time":0.5,"source_id":"a","schema_version":"1.0.0"}`,
		}},
		{agents.OutcomeSchema(), rejected + `}}`, []string{
			`{"status":"rejected"}`, `{"status":"accepted"}`, `{"status":"lost","global_seq":1,"uuid":"u"}`, `{"status":"rejected","global_seq":1,"uuid":"u"}`,
			rejected + `,"other":1}}`, rejected + `},"global_seq":1,"uuid":"u"}`, `{"status":"accepted","global_seq":0,"uuid":"u"}`,
			`{"status":"rejected","rejection":{"code":"TIMEOUT","recovery":"hope"}}`, rejected + `,"problems":[{"path":"/a"}]}}`,
		}},
		{view.DeltaSchema(), `{"view_seq":1,"patches":[{"op":"add","path":"/visible_entities/a","value":{}},{"op":"remove","path":"/b"}],"context_digest":"` + digest + `","schema_version":"1.0.0"}`, []string{
			`{}`, `{"view_seq":1,"patches":[{"op":"add","path":"/a"}],"context_digest":"` + digest + `","schema_version":"1.0.0"}`,
			`{"view_seq":1,"patches":[{"op":"drop","path":"/a"}],"context_digest":"` + digest + `","schema_version":"1.0.0"}`,
			`{"view_seq":1,"patches":[],"context_digest":"0","schema_version":"1.0.0"}`,
		}},
		{view.ViewSchema(), `{"agent_id":"a","view_seq":0,"visible_entities":{},"visible_relationships":{"a":["b"]},"context_digest":"` + digest + `"}`, []string{
			`{}`, `{"agent_id":"a","view_seq":0,"visible_entities":{"a":1},"visible_relationships":{},"context_digest":"` + digest + `"}`,
			`{"agent_id":"a","view_seq":0,"visible_entities":{},"visible_relationships":{"a":[1]},"context_digest":"` + digest + `"}`,
		}},
	} {
		assert.NoError(t, schematest.Validate(c.schema, []byte(c.good)), c.good)
		for _, text := range c.bad {
			assert.Error(t, schematest.Validate(c.schema, []byte(text)), text)
		}
	}
}

// The schema of configurations and ParseConfig agree.
func TestConfigSchema(t *testing.T) {
	judge := func(text string, want bool) {
		_, err := agents.ParseConfig(parse(t, text))
		assert.Equal(t, want, err == nil, "%s: ParseConfig: %v", text, err)
		refused := schematest.Validate(agents.ConfigSchema(), []byte(text))
		assert.Equal(t, want, refused == nil, "%s: the schema: %v", text, refused)
	}
	for _, text := range []string{
		`{}`,
		`{"staleness_threshold":3,"interrupt":"only_conflict","debounce_ms":0.5,"deadline_ms":5000,"token_budget":0,"quota_intents_per_minute":-1,"quota_tokens_per_minute":-1}`,
		`{"cooldowns":"off","max_queue_depth":1,"backpressure_policy":"shed_oldest","default_priority":-100,"weight":1000}`,
		`{"cooldowns":{"Speak":0},"latency_model":5}`,
		`{"latency_model":{"model":"jitter","ms":1,"spread_ms":2,"seed":-1}}`,
		`{"latency_model":{"model":"distance","base_ms":1,"per_unit_ms":2}}`,
		`{"latency_model":null,"intent_kinds":null}`,
		`{"classes":{"npc":{"weight":2}},"authority":"sim","tick_effects":true,"paused":true}`,
		`{"max_agents":1,"max_quantum":65536,"intent_kinds":["Sing",{"kind":"Dig","own":["a"],"remove":["own"]}]}`,
		`{"rules":{"max_payload_bytes":2,"max_text":1,"max_move_distance":0,"min_separation":1,"max_interact_distance":2,"interaction_types":[],"refused_words":["x"]}}`,
	} {
		judge(text, true)
	}
	for _, text := range []string{
		`[]`,
		`{"interrupt":"never"}`,
		`{"weight":0}`,
		`{"cooldowns":"on"}`,
		`{"cooldowns":{"Speak":-1}}`,
		`{"latency_model":{"model":"slow"}}`,
		`{"latency_model":{"mss":1}}`,
		`{"latency_model":"5"}`,
		`{"latency_model":{"seed":0.5}}`,
		`{"classes":{"npc":{"paused":true}}}`,
		`{"classes":[]}`,
		`{"authority":"god"}`,
		`{"tick_effects":1}`,
		`{"max_agents":0}`,
		`{"max_quantum":65537}`,
		`{"intent_kinds":[{"own":[]}]}`,
		`{"intent_kinds":[{"kind":"K","remove":["all"]}]}`,
		`{"rules":{"max_text":0}}`,
		`{"rules":{"colour":1}}`,
		`{"wait":1}`,
		`{"debounce_ms":"5"}`,
		`{"deadline_ms":3600001}`,
		`{"backpressure_policy":"block"}`,
		`{"default_priority":101}`,
		`{"staleness_threshold":-1}`,
		`{"token_budget":-1}`,
		`{"quota_tokens_per_minute":-2}`,
		`{"quota_intents_per_minute":100001}`,
		`{"max_queue_depth":100001}`,
		`{"rules":{"refused_words":[1]}}`,
	} {
		judge(text, false)
	}
}

// Each exported field of the Go types has a member in the schema: the one of this table.
func TestSchemaFields(t *testing.T) {
	members := func(schema []byte, def string) []string { return schematest.Members(schema, def) }
	for _, c := range []struct {
		of     any
		schema []string
		names  map[string]string // of members that are not the field's name in snake case; "" for none
	}{
		{agents.Intent{}, members(agents.IntentSchema(), ""), map[string]string{"Unprioritized": ""}},
		{world.Effect{}, members(world.EffectSchema(), ""), nil},
		{world.Effect{}, members(agents.OutcomeSchema(), "effect"), nil},
		{agents.Outcome{}, members(agents.OutcomeSchema(), ""), nil},
		{agents.Rejection{}, members(agents.OutcomeSchema(), "rejection"), map[string]string{"RetryAfter": "retry_after_ms"}},
		{agents.Problem{}, members(agents.OutcomeSchema(), "problem"), nil},
		{view.Delta{}, append(members(view.DeltaSchema(), ""), "-"), nil},
		{jsondoc.Operation{}, members(view.DeltaSchema(), "operation"), nil},
		{view.View{}, members(view.ViewSchema(), ""), nil},
		{agents.Config{}, members(agents.ConfigSchema(), ""), map[string]string{"Settings": "", "Kinds": "intent_kinds", "Touches": "intent_kinds"}},
		{agents.Settings{}, members(agents.ConfigSchema(), "settings"), settingMembers},
		{agents.Settings{}, members(agents.ConfigSchema(), ""), settingMembers},
		{agents.Rules{}, members(agents.ConfigSchema(), "rules"), map[string]string{"MaxPayload": "max_payload_bytes", "MaxMove": "max_move_distance", "MaxInteract": "max_interact_distance"}},
		{agents.Touch{}, members(agents.ConfigSchema(), "kind"), nil},
	} {
		typ := reflect.TypeOf(c.of)
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, other := c.names[f.Name]
			if !other {
				name = snake(f.Name)
			}
			if f.IsExported() && name != "" && !slices.Contains(c.schema, name) {
				t.Errorf("the schema of %v has no member %s", typ, name)
			}
		}
	}
}

var settingMembers = map[string]string{
	"Staleness": "staleness_threshold", "Debounce": "debounce_ms", "Deadline": "deadline_ms", "QuotaIntents": "quota_intents_per_minute",
	"QuotaTokens": "quota_tokens_per_minute", "QueueDepth": "max_queue_depth", "Pressure": "backpressure_policy", "Priority": "default_priority", "Latency": "latency_model",
}

// snake returns a name of Go in snake case, with UUID and ID as one word.
func snake(name string) string {
	name = strings.NewReplacer("UUID", "Uuid", "ID", "Id").Replace(name)
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// What is not of the form is refused, and says why.
func TestParseForms(t *testing.T) {
	for text, want := range map[string]string{
		`{"status":"lost"}`:                               "status is none of",
		`{"status":"rejected"}`:                           "neither an effect nor a rejection",
		`{"status":"rejected","global_seq":1}`:            "neither an effect nor a rejection",
		`{"status":"rejected","rejection":1}`:             "rejection is no object",
		`{"status":"accepted","global_seq":1,"effect":1}`: "an effect is an object",
		`{`: "the text ends",
	} {
		var o agents.Outcome
		err := o.UnmarshalJSON([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
	_, err := view.ParseDelta(parse(t, `{"patches":[]}`))
	assert.ErrorContains(t, err, "no view_seq")
	_, err = view.ParseDelta(parse(t, `{"view_seq":1,"patches":[{"op":"x"}]}`))
	assert.ErrorIs(t, err, jsondoc.ErrPatch)
	_, err = view.ParseView(parse(t, `{"visible_entities":{}}`))
	assert.ErrorContains(t, err, "are objects")
	v, err := view.ParseView(parse(t, `{"visible_entities":{"a":{"lit":true}},"visible_relationships":{}}`))
	require.NoError(t, err)
	lamp, err := signal.Unmarshal[struct{ Lit bool }](v.Entity("a"))
	require.NoError(t, err)
	assert.True(t, lamp.Lit)
	assert.Nil(t, v.Entity("b"))
}
