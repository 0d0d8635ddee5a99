package agents_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/view"
)

// TestConfigNumbers shows the default, the bounds and the reading of each number of a
// configuration: both bounds are read, and one step beyond them is refused at its place.
func TestConfigNumbers(t *testing.T) {
	ms := func(d time.Duration) any { return float64(d) / 1e6 }
	for _, tt := range []struct {
		path                     string
		absent                   any
		least, most, lower, more string
		read                     func(agents.Config) any
	}{
		{"/staleness_threshold", 0.0, "0", "9007199254740992", "-1", "9007199254740994", func(c agents.Config) any { return float64(c.Settings.Staleness) }},
		{"/debounce_ms", 100.0, "0", "3600000", "-1", "3600001", func(c agents.Config) any { return ms(c.Settings.Debounce) }},
		{"/deadline_ms", 5000.0, "0", "3600000", "-1", "3600001", func(c agents.Config) any { return ms(c.Settings.Deadline) }},
		{"/token_budget", 1000.0, "0", "1099511627776", "-1", "1099511627777", func(c agents.Config) any { return float64(c.Settings.TokenBudget) }},
		{"/quota_intents_per_minute", 60.0, "-1", "100000", "-2", "100001", func(c agents.Config) any { return float64(c.Settings.QuotaIntents) }},
		{"/quota_tokens_per_minute", 10000.0, "-1", "1099511627776", "-2", "1099511627777", func(c agents.Config) any { return float64(c.Settings.QuotaTokens) }},
		{"/max_queue_depth", 100.0, "1", "100000", "0", "100001", func(c agents.Config) any { return float64(c.Settings.QueueDepth) }},
		{"/default_priority", 0.0, "-100", "100", "-101", "101", func(c agents.Config) any { return float64(c.Settings.Priority) }},
		{"/weight", 1.0, "1", "1000", "0", "1001", func(c agents.Config) any { return float64(c.Settings.Weight) }},
		{"/max_agents", 10000.0, "1", "100000", "0", "100001", func(c agents.Config) any { return float64(c.MaxAgents) }},
		{"/max_quantum", 1024.0, "1", "65536", "0", "65537", func(c agents.Config) any { return float64(c.MaxQuantum) }},
		{"/cooldowns/Speak", 500.0, "0", "3600000", "-1", "3600001", func(c agents.Config) any { return ms(c.Settings.Cooldowns["Speak"]) }},
		{"/rules/max_payload_bytes", 10000.0, "2", "1048576", "1", "1048577", func(c agents.Config) any { return float64(c.Rules.MaxPayload) }},
		{"/rules/max_text", 1000.0, "1", "1048576", "0", "1048577", func(c agents.Config) any { return float64(c.Rules.MaxText) }},
		{"/rules/max_move_distance", 0.0, "0", "4000000000000", "-1", "4000000000001", func(c agents.Config) any { return c.Rules.MaxMove }},
		{"/rules/min_separation", 0.0, "0", "4000000000000", "-1", "4000000000001", func(c agents.Config) any { return c.Rules.MinSeparation }},
		{"/rules/max_interact_distance", 0.0, "0", "4000000000000", "-1", "4000000000001", func(c agents.Config) any { return c.Rules.MaxInteract }},
		{"/latency_model/ms", 0.0, "0", "3600000", "-1", "3600001", func(c agents.Config) any { return ms(c.Settings.Latency.Base) }},
		{"/latency_model/base_ms", 0.0, "0", "3600000", "-1", "3600001", func(c agents.Config) any { return ms(c.Settings.Latency.Base) }},
		{"/latency_model/spread_ms", 0.0, "0", "3600000", "-1", "3600001", func(c agents.Config) any { return ms(c.Settings.Latency.Spread) }},
		{"/classes/guard/weight", 0.0, "1", "1000", "0", "1001", func(c agents.Config) any { return float64(c.Classes["guard"].Weight) }},
	} {
		config := func(number string) string {
			text := number
			for names := strings.Split(tt.path[1:], "/"); len(names) > 0; names = names[:len(names)-1] {
				text = fmt.Sprintf(`{"%s":%s}`, names[len(names)-1], text)
			}
			return text
		}
		c, err := agents.ParseConfig(nil)
		require.NoError(t, err)
		assert.Equal(t, tt.absent, tt.read(c), "%s: the default", tt.path)
		for _, number := range []string{tt.least, tt.most} {
			c, err := agents.ParseConfig(parse(t, config(number)))
			require.NoError(t, err, config(number))
			f, _ := parse(t, number).Float64()
			assert.Equal(t, f, tt.read(c), config(number))
		}
		for _, number := range []string{tt.lower, tt.more, `"1"`} {
			_, err := agents.ParseConfig(parse(t, config(number)))
			p, ok := errors.AsType[*view.PolicyError](err)
			if !ok || p.Path != tt.path {
				t.Errorf("%s: err = %v, want one at %s", config(number), err, tt.path)
			}
		}
	}
}

// TestConfigMembers shows how the members of a configuration that are no plain numbers are
// read, and what is refused where.
func TestConfigMembers(t *testing.T) {
	for _, tt := range []struct {
		config string
		read   func(agents.Config) any
		want   any // or the text of an error
	}{
		{`{}`, func(c agents.Config) any { return c.Settings.Interrupt }, agents.InterruptAlways},
		{`{"interrupt":"only_conflict"}`, func(c agents.Config) any { return c.Settings.Interrupt }, agents.InterruptConflict},
		{`{"interrupt":"only_conflict","classes":{"x":{}}}`, func(c agents.Config) any { return c.Classes["x"].Interrupt }, agents.InterruptConflict},
		{`{"interrupt":"only_conflict","classes":{"x":{"interrupt":"always"}}}`, func(c agents.Config) any { return c.Classes["x"].Interrupt }, agents.InterruptAlways},
		{`{}`, func(c agents.Config) any { return c.Settings.Pressure }, flow.PressureDefer},
		{`{"backpressure_policy":"shed_oldest","classes":{"x":{"weight":2}}}`, func(c agents.Config) any { return c.Classes["x"].Pressure }, flow.PressureShed},
		{`{"backpressure_policy":"drop_newest"}`, func(c agents.Config) any { return c.Settings.Pressure }, flow.PressureDrop},
		{`{}`, func(c agents.Config) any { return c.Settings.Cooldowns }, map[string]time.Duration{"Speak": 500 * time.Millisecond, "Move": 100 * time.Millisecond, "Interact": 2 * time.Second, "Custom": time.Second}},
		{`{"cooldowns":"off"}`, func(c agents.Config) any { return len(c.Settings.Cooldowns) }, 0},
		{`{"cooldowns":{"Speak":1.5,"Wave":7}}`, func(c agents.Config) any { return c.Settings.Cooldowns }, map[string]time.Duration{"Speak": 1500 * time.Microsecond, "Move": 100 * time.Millisecond, "Interact": 2 * time.Second, "Custom": time.Second, "Wave": 7 * time.Millisecond}},
		{`{"cooldowns":"off","classes":{"x":{"cooldowns":{"Speak":3}}}}`, func(c agents.Config) any { return c.Classes["x"].Cooldowns }, map[string]time.Duration{"Speak": 3 * time.Millisecond}},
		{`{"classes":{"x":{"cooldowns":{"Speak":3}}}}`, func(c agents.Config) any { return c.Settings.Cooldowns["Speak"] }, 500 * time.Millisecond},
		{`{"cooldowns":"on"}`, nil, `"/cooldowns": want "off" or an object of milliseconds by kind`},
		{`{"cooldowns":["Speak"]}`, nil, `"/cooldowns": want "off"`},
		{`{}`, func(c agents.Config) any { return c.Authority }, agents.TimeWall},
		{`{"authority":"sim"}`, func(c agents.Config) any { return c.Authority }, agents.TimeSim},
		{`{"authority":"manual"}`, func(c agents.Config) any { return c.Authority }, agents.TimeManual},
		{`{"authority":"the clock"}`, nil, `"/authority": string, want one of wall, sim, manual`},
		{`{}`, func(c agents.Config) any { return c.TickEffects || c.Paused }, false},
		{`{"tick_effects":true}`, func(c agents.Config) any { return c.TickEffects && !c.Paused }, true},
		{`{"paused":true}`, func(c agents.Config) any { return c.Paused && !c.TickEffects }, true},
		{`{"paused":1}`, nil, `"/paused": integer, want true or false`},
		{`[]`, nil, `"": a configuration is an object`},
		{`{"weigth":1}`, nil, `"/weigth": unknown member`},
		{`{"classes":[]}`, nil, `"/classes": want an object of at most 1024 settings`},
		{`{"classes":{"a/b":7}}`, nil, `"/classes/a~1b": integer, want an object`},
		{`{"classes":{"x":{"paused":true}}}`, nil, `"/classes/x/paused": unknown member`},
		{`{"rules":[]}`, nil, `"/rules": array, want an object`},
		{`{"rules":{"max":1}}`, nil, `"/rules/max": unknown member`},
		{`{"rules":{"refused_words":["a"],"interaction_types":["b","c"]}}`, func(c agents.Config) any { return append(c.Rules.RefusedWords, c.Rules.InteractionTypes...) }, []string{"a", "b", "c"}},
		{`{"latency_model":null}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{}},
		{`{"latency_model":25}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{Base: 25 * time.Millisecond}},
		{`{"latency_model":0.5}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{Base: 500 * time.Microsecond}},
		{`{"latency_model":{"model":"none","ms":25,"spread_ms":3}}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{}},
		{`{"latency_model":{"model":"fixed","ms":25,"base_ms":26}}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{Base: 25 * time.Millisecond}},
		{`{"latency_model":{"model":"distance"}}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{Base: 10 * time.Millisecond, PerUnit: time.Millisecond}},
		{`{"latency_model":{"model":"distance","base_ms":0,"per_unit_ms":2}}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{PerUnit: 2 * time.Millisecond}},
		{`{"latency_model":{"model":"distance","base_ms":3,"spread_ms":4}}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{Base: 3 * time.Millisecond, PerUnit: time.Millisecond, Spread: 4 * time.Millisecond}},
		{`{"latency_model":{"model":"jitter","ms":5,"spread_ms":6,"seed":-1}}`, func(c agents.Config) any { return c.Settings.Latency }, flow.Latency{Base: 5 * time.Millisecond, Spread: 6 * time.Millisecond, Seed: 1<<64 - 1}},
		{`{"latency_model":{"model":"jitter","seed":0.5}}`, nil, `"/latency_model/seed": want an integer`},
		{`{"latency_model":{"model":"slow"}}`, nil, `"/latency_model/model": string, want one of fixed, none, distance, jitter`},
		{`{"latency_model":{"delay":1}}`, nil, `"/latency_model/delay": unknown member`},
		{`{"latency_model":{"model":"distance","per_unit_ms":3600001}}`, nil, `"/latency_model/per_unit_ms": want a number from 0 to 3.6e+06`},
		{`{"latency_model":"slow"}`, nil, `"/latency_model": string, want an object`},
		{`{"intent_kinds":null}`, func(c agents.Config) any { return len(c.Kinds) + len(c.Touches) }, 0},
		{`{"intent_kinds":{}}`, nil, `"/intent_kinds": want an array of at most 1024 kinds`},
		{`{"intent_kinds":["A",7]}`, nil, `"/intent_kinds/1": integer, want a kind or an object that names one`},
		{`{"intent_kinds":[{"kind":""}]}`, nil, `"/intent_kinds/0/kind": want a kind`},
		{`{"intent_kinds":[{"place":true}]}`, nil, `"/intent_kinds/0/kind": want a kind`},
		{`{"intent_kinds":[{"kind":"A","writes":[]}]}`, nil, `"/intent_kinds/0/writes": unknown member`},
		{`{"intent_kinds":["B",{"kind":"A","remove":["own","all"]}]}`, nil, `"/intent_kinds/1/remove/1": "all", want own or others`},
		{
			`{"intent_kinds":["B",{"kind":"A","own":["x"],"others":["y"],"place":true,"create":["{agent}/"],"remove":["own","others"]},{"kind":"C","relate":true}]}`,
			func(c agents.Config) any { return fmt.Sprint(c.Kinds, c.Touches) },
			`[B A C] map[A:{[x] [y] true false [{agent}/] [own others]} C:{[] [] false true [] []}]`,
		},
	} {
		c, err := agents.ParseConfig(parse(t, tt.config))
		if tt.read == nil {
			require.ErrorIs(t, err, view.ErrPolicy, tt.config)
			assert.ErrorContains(t, err, tt.want.(string), tt.config)
			continue
		}
		require.NoError(t, err, tt.config)
		assert.Equal(t, tt.want, tt.read(c), tt.config)
	}
}

// TestDelays shows the arithmetic of a latency: base and distance, the longest delay, and
// a spread of which every value occurs.
func TestDelays(t *testing.T) {
	distance := flow.Latency{Base: 10, PerUnit: 3}
	for units, want := range map[float64]time.Duration{0: 10, 1: 13, 2.5: 17, 1e6: 3_000_010, 1e30: flow.MaxLatency} {
		assert.Equal(t, want, distance.Delay("a", 1, units), "%v units", units)
	}
	spread := flow.Latency{Base: 10, Spread: 3, Seed: 7}
	seen := map[time.Duration]int{}
	for n := range uint64(400) {
		seen[spread.Delay("a", n, 0)]++
		assert.Equal(t, spread.Delay("a", n, 0), spread.Delay("a", n, 0))
	}
	require.Len(t, seen, 4)
	for d := time.Duration(10); d <= 13; d++ {
		assert.Greater(t, seen[d], 50, "%v", d)
	}
	// Recorded logs depend on these.
	var got []time.Duration
	for n := range uint64(6) {
		got = append(got, flow.Latency{Spread: time.Millisecond, Seed: 1}.Delay("ada", n, 0))
	}
	assert.Equal(t, []time.Duration{84986, 645126, 888962, 550836, 733669, 348668}, got)
	assert.Equal(t, flow.MaxLatency, flow.Latency{Base: flow.MaxLatency, Spread: 1000}.Delay("a", 3, 0))
}
