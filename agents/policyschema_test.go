package agents_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/schematest"
	"github.com/sajou-dev/sajou-go/signal"
)

// pet is a policy of a program, for policies that name one.
var pet = view.Custom{Name: "pet", Version: 1, Compile: func(signal.Value) (view.Policy, error) { return view.Self(), nil }}

func judgePolicy(t *testing.T, text string, want bool) {
	t.Helper()
	_, err := agents.CompilePolicy(parse(t, text), agents.Options{Customs: []view.Custom{pet}})
	assert.Equal(t, want, err == nil, "%s: CompilePolicy: %v", text, err)
	refused := schematest.Validate(agents.PolicySchema(), []byte(text))
	assert.Equal(t, want, refused == nil, "%s: the schema: %v", text, refused)
}

// The schema of policies and CompilePolicy agree.
func TestPolicySchema(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"policy":"default","distance_limit":0,"relationship_filter":null,"relationship_depth":64,"field_visibility":{"a":false}}`,
		`{"max_patch_ops":100000,"include_spatial_index":false,"typed_relationships":true,"on_disappear":"keep"}`,
		`{"policy":"everything"}`, `{"policy":"self"}`, `{"policy":"conversation"}`,
		`{"policy":"distance","limit":0.5,"unplaced":true}`,
		`{"policy":"relationships","types":["a"],"depth":2,"direction":"both","entities":"agent"}`,
		`{"policy":"cone","range":10,"angle":360}`,
		`{"policy":"team","fields":["hp"]}`, `{"policy":"team","fields":null}`,
		`{"policy":"channel","channels":["public","team","private"]}`,
		`{"policy":"fields","fields":{"plan":false},"types":["agent"],"of":"rivals"}`,
		`{"policy":"all","of":[{},{"policy":"not","of":{"policy":"self"}}]}`,
		`{"policy":"any","of":[{"policy":"distance","limit":1}],"max_patch_ops":1}`,
		`{"policy":"fog","of":{"policy":"self"},"capacity":10000,"on_disappear":"remove"}`,
		`{"policy":"custom","name":"pet","version":1,"config":[1]}`,
		`{"policy":"self","staleness_threshold":3,"interrupt":"only_conflict","debounce_ms":0.5,"deadline_ms":0,"token_budget":1,
			"quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"cooldowns":"off","max_queue_depth":1,"backpressure_policy":"drop_newest",
			"default_priority":-100,"weight":1000,"latency_model":{"model":"jitter","ms":1,"spread_ms":2,"seed":-1}}`,
	} {
		judgePolicy(t, text, true)
	}
	for _, text := range []string{
		`[]`, `null`, `{"policy":1}`, `{"policy":"god"}`, `{"colour":1}`,
		`{"limit":1}`, `{"policy":"everything","limit":1}`, `{"distance_limit":-1}`, `{"relationship_depth":0}`, `{"field_visibility":{"a":1}}`,
		`{"policy":"distance"}`, `{"policy":"distance","limit":"1"}`, `{"policy":"distance","limit":1,"unplaced":1}`,
		`{"policy":"relationships","direction":"up"}`, `{"policy":"relationships","depth":65}`, `{"policy":"relationships","entities":""}`, `{"policy":"relationships","types":[1]}`,
		`{"policy":"cone","range":10}`, `{"policy":"cone","angle":10}`, `{"policy":"cone","range":10,"angle":361}`,
		`{"policy":"team","fields":"hp"}`,
		`{"policy":"channel"}`, `{"policy":"channel","channels":["loud"]}`,
		`{"policy":"fields"}`, `{"policy":"fields","fields":[]}`, `{"policy":"fields","fields":{},"of":"none"}`,
		`{"policy":"all"}`, `{"policy":"all","of":[]}`, `{"policy":"any","of":{"policy":"self"}}`, `{"policy":"any","of":[{"policy":"god"}]}`,
		`{"policy":"not"}`, `{"policy":"not","of":[{}]}`, `{"policy":"not","of":{"weight":1}}`, `{"policy":"not","of":{"max_patch_ops":1}}`,
		`{"policy":"fog"}`, `{"policy":"fog","of":{},"capacity":0}`, `{"policy":"all","of":[{"policy":"fog","of":{}}]}`,
		`{"policy":"custom","name":"pet"}`, `{"policy":"custom","version":1}`, `{"policy":"custom","name":"pet","version":"1"}`,
		`{"max_patch_ops":0}`, `{"include_spatial_index":1}`, `{"typed_relationships":"yes"}`, `{"on_disappear":"forget"}`,
		`{"weight":0}`, `{"paused":true}`, `{"cooldowns":"on"}`, `{"latency_model":{"model":"slow"}}`,
	} {
		judgePolicy(t, text, false)
	}
}

// The settings have one form in configurations and in policies.
func TestPolicySettingsAreThoseOfConfigurations(t *testing.T) {
	var config, policy struct {
		Defs map[string]map[string]json.RawMessage `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(agents.ConfigSchema(), &config))
	require.NoError(t, json.Unmarshal(agents.PolicySchema(), &policy))
	assert.JSONEq(t, string(config.Defs["settings"]["properties"]), string(policy.Defs["settings"]["properties"]))
	assert.JSONEq(t, string(config.Defs["latency"]["anyOf"]), string(policy.Defs["latency"]["anyOf"]))
}

// The schema accepts the policies that programs make.
func TestSchemaOfAuthoredPolicies(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v, err := signal.Marshal(agents.AuthoredPolicy{Sight: view.Any(view.Distance(3, true), view.Allies("hp")), Settings: someSettings(r)})
		require.NoError(r, err)
		assert.NoError(r, schematest.Validate(agents.PolicySchema(), v.AppendJSON(nil)), "%v", v)
	})
}

// The schema accepts the policies of the simulations and of the tests of clients.
func TestSchemaOfRecordedPolicies(t *testing.T) {
	files, err := filepath.Glob("../docs/examples/agents/*.json")
	require.NoError(t, err)
	more, err := filepath.Glob("../clients/testdata/scenarios/*.json")
	require.NoError(t, err)
	policies := 0
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var play struct {
			Agents json.RawMessage
			Config json.RawMessage
		}
		require.NoError(t, json.Unmarshal(text, &play), file)
		var list []struct{ Policy json.RawMessage }
		if play.Agents[0] == '{' {
			var named map[string]struct{ Policy json.RawMessage }
			require.NoError(t, json.Unmarshal(play.Agents, &named), file)
			for _, a := range named {
				list = append(list, a)
			}
		} else {
			require.NoError(t, json.Unmarshal(play.Agents, &list), file)
		}
		for _, a := range list {
			if a.Policy != nil {
				policies++
				judgePolicy(t, string(a.Policy), true)
			}
		}
		if play.Config != nil {
			assert.NoError(t, schematest.Validate(agents.ConfigSchema(), play.Config), file)
		}
	}
	assert.Greater(t, policies, 10)
}

// The page about policies has every member of the schemas, and its examples are valid.
func TestPolicyPage(t *testing.T) {
	text, err := os.ReadFile("../docs/policies.md")
	require.NoError(t, err)
	page := string(text)
	examples := map[string]int{}
	for _, m := range regexp.MustCompile("(?s)```(policy|config)\n(.*?)```").FindAllStringSubmatch(page, -1) {
		examples[m[1]]++
		if m[1] == "policy" {
			judgePolicy(t, m[2], true)
			continue
		}
		_, err := agents.ParseConfig(parse(t, m[2]))
		assert.NoError(t, err, m[2])
		assert.NoError(t, schematest.Validate(agents.ConfigSchema(), []byte(m[2])), m[2])
	}
	assert.GreaterOrEqual(t, examples["policy"], 2)
	assert.GreaterOrEqual(t, examples["config"], 1)
	for _, schema := range [][]byte{agents.ConfigSchema(), agents.PolicySchema()} {
		var doc any
		require.NoError(t, json.Unmarshal(schema, &doc))
		for name := range membersIn(doc) {
			assert.Regexp(t, "`[^`]*\\b"+regexp.QuoteMeta(name)+"\\b", page, "the page has no member %s", name)
		}
	}
}

// membersIn returns the names of all properties of a schema, and the names of policies.
func membersIn(doc any) map[string]bool {
	names := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if members, ok := v["properties"].(map[string]any); ok {
				for name := range members {
					names[name] = true
				}
			}
			if name, ok := v["const"].(string); ok {
				names[name] = true
			}
			for _, part := range v {
				walk(part)
			}
		case []any:
			for _, part := range v {
				walk(part)
			}
		}
	}
	walk(doc)
	return names
}
