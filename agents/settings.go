package agents

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/internal/strictjson"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// InterruptCause says what interrupts an agent's generation.
type InterruptCause string

// The policies of interruption.
const (
	InterruptAlways   InterruptCause = "always"        // every delta that the agent is sent
	InterruptConflict InterruptCause = "only_conflict" // only a delta that conflicts with the context of the generation
)

// Settings are the rules for one agent. Each of three layers overrides members of the
// one before it: the world's configuration, the agent's class in it, the agent's own
// policy.
type Settings struct {
	// Staleness is how many of the view_seqs that the agent was sent a context may be
	// behind; from [MaxSent] on any number.
	Staleness   uint64
	Interrupt   InterruptCause
	Debounce    time.Duration // between interruptions
	Deadline    time.Duration // of a generation
	TokenBudget int64         // of a generation
	// QuotaIntents and QuotaTokens bound the requests of a minute; negative means no bound.
	QuotaIntents, QuotaTokens int64
	Cooldowns                 map[string]time.Duration // by kind
	QueueDepth                int                      // of intents that wait
	Pressure                  flow.Backpressure        // when it is reached
	Priority                  int                      // of an intent that names none
	Weight                    int                      // turns in a round
	Latency                   flow.Latency
}

// defaultSettings returns those of the multi-agent design, "Configuration Protocols".
func defaultSettings() Settings {
	return Settings{
		Interrupt:    InterruptAlways,
		Debounce:     100 * time.Millisecond,
		Deadline:     5 * time.Second,
		TokenBudget:  1000,
		QuotaIntents: 60,
		QuotaTokens:  10_000,
		Cooldowns: map[string]time.Duration{
			world.KindSpeak: 500 * time.Millisecond, world.KindMove: 100 * time.Millisecond,
			world.KindInteract: 2 * time.Second, KindCustom: time.Second,
		},
		QueueDepth: 100,
		Pressure:   flow.PressureDefer,
		Weight:     1,
	}
}

// Bounds of settings.
const (
	MaxQuota  = 100_000 // beyond it, none at all is meant
	maxWeight = 1000
	maxDepthQ = 100_000
)

var settingNames = []string{
	"staleness_threshold", "interrupt", "debounce_ms", "deadline_ms", "token_budget", "quota_intents_per_minute",
	"quota_tokens_per_minute", "cooldowns", "max_queue_depth", "backpressure_policy", "default_priority", "weight", "latency_model",
}

// configReader reads configurations, and the settings in policies.
type configReader struct{ *strictjson.MemberReader }

func newConfigReader() configReader {
	return configReader{strictjson.NewMemberReader(func(path, reason string) error { return &view.PolicyError{Path: path, Reason: reason} })}
}

// settings reads what v says differently from base.
func (c configReader) settings(v signal.Value, path string, base Settings) Settings {
	s := base
	s.Staleness = uint64(c.Number(v, path, "staleness_threshold", float64(base.Staleness), 0, 1<<53))
	if _, ok := v.Get("interrupt"); ok {
		s.Interrupt = InterruptCause(c.Word(v, path, "interrupt", string(InterruptAlways), string(InterruptConflict)))
	}
	s.Debounce = c.Millis(v, path, "debounce_ms", base.Debounce, flow.MaxLatency)
	s.Deadline = c.Millis(v, path, "deadline_ms", base.Deadline, flow.MaxLatency)
	s.TokenBudget = int64(c.Number(v, path, "token_budget", float64(base.TokenBudget), 0, 1<<40))
	s.QuotaIntents = int64(c.Number(v, path, "quota_intents_per_minute", float64(base.QuotaIntents), -1, MaxQuota))
	s.QuotaTokens = int64(c.Number(v, path, "quota_tokens_per_minute", float64(base.QuotaTokens), -1, 1<<40))
	s.QueueDepth = int(c.Number(v, path, "max_queue_depth", float64(base.QueueDepth), 1, maxDepthQ))
	if _, ok := v.Get("backpressure_policy"); ok {
		s.Pressure = flow.Backpressure(c.Word(v, path, "backpressure_policy", string(flow.PressureDefer), string(flow.PressureShed), string(flow.PressureDrop)))
	}
	s.Priority = int(c.Number(v, path, "default_priority", float64(base.Priority), -MaxPriority, MaxPriority))
	s.Weight = int(c.Number(v, path, "weight", float64(base.Weight), 1, maxWeight))
	if m, ok := v.Get("latency_model"); ok && m.Kind() != signal.KindNull {
		s.Latency = c.latency(m, path+"/latency_model")
	}
	if m, ok := v.Get("cooldowns"); ok {
		s.Cooldowns = c.cooldowns(m, path+"/cooldowns", base.Cooldowns)
	}
	return s
}

// cooldowns reads milliseconds by kind, over those of base; "off" is none.
func (c configReader) cooldowns(v signal.Value, path string, base map[string]time.Duration) map[string]time.Duration {
	if text, ok := v.Text(); ok && text == "off" {
		return nil
	}
	if v.Kind() != signal.KindObject || v.Len() > strictjson.MaxNames {
		c.Fail(path, `want "off" or an object of milliseconds by kind`)
		return nil
	}
	all := maps.Clone(base)
	if all == nil {
		all = map[string]time.Duration{}
	}
	for kind := range v.Members() {
		all[strings.Clone(kind)] = c.Millis(v, path, kind, 0, flow.MaxLatency)
	}
	return all
}

// Authority says whose time sim_time is.
type Authority string

// The authorities.
const (
	TimeWall   Authority = "wall"   // session time, in seconds; the default
	TimeSim    Authority = "sim"    // an adapter's ticks, which also close quanta: submissions and broadcasts wait for one
	TimeManual Authority = "manual" // the program that submits the effects
)

// Config is the configuration of a world: its settings, and what is one for all.
type Config struct {
	Settings  Settings
	Classes   map[string]Settings // over Settings
	Authority Authority
	// TickEffects makes each tick an effect too, of kind [KindTimeTick], with the tick's
	// sim_time.
	TickEffects bool
	Paused      bool
	MaxAgents   int
	MaxQuantum  int      // intents and drafts that a tick takes at once; the others wait for the next
	Kinds       []string // of intent, beside those that are always there
	// Touches says of some kinds what their effects may write when an agent asks for
	// them. Of the others the world's own rules say so, or a handler; a kind of intent
	// that is none of these writes nothing.
	Touches map[string]Touch
	Rules   Rules

	classValues map[string]signal.Value
}

// KindTimeTick is the kind of effect of a tick. An agent that observes it is sent it. It
// makes no context stale and interrupts no generation, under any policy, unless a handler
// makes it change the agent's view.
const KindTimeTick = "TimeTick"

// maxAgents bounds [Config.MaxAgents].
const maxAgents = 100_000

// ParseConfig reads a configuration. All members are optional; besides those of
// [Settings], which are called
//
//	staleness_threshold 0, interrupt "always" or "only_conflict", debounce_ms 100, deadline_ms 5000,
//	token_budget 1000, quota_intents_per_minute 60, quota_tokens_per_minute 10000 (-1: none),
//	cooldowns {"Speak":500,"Move":100,"Interact":2000,"Custom":1000} or "off", max_queue_depth 100,
//	backpressure_policy "defer", "shed_oldest" or "drop_newest", default_priority 0, weight 1,
//	latency_model {"model":"none"|"fixed"|"distance"|"jitter", ms, base_ms, per_unit_ms, spread_ms, seed}
//
// they are classes {name: settings}, authority, tick_effects, paused, max_agents 10000,
// max_quantum 1024, intent_kinds [], and rules, see [Rules]. An element of
// intent_kinds is the name of a kind, or an object that says what an intent of the
// kind may write, with the members of [Touch]:
//
//	{"kind":"EntityUpdated", "own":["mood"], "others":[], "place":false, "relate":false,
//	 "create":["{agent}/"], "remove":["own","others"]}
//
// A kind that the world knows by itself and that is only named (EntityCreated,
// EntityRemoved, EntityUpdated, RelationshipAdded, RelationshipRemoved) may write
// nothing; SpeakResponse and MessageEmitted write what Speak does.
func ParseConfig(v signal.Value) (Config, error) {
	c := newConfigReader()
	config := Config{Classes: map[string]Settings{}, classValues: map[string]signal.Value{}}
	if v == nil {
		v = jsonvalue.Empty()
	}
	if v.Kind() != signal.KindObject {
		return config, &view.PolicyError{Reason: "a configuration is an object"}
	}
	c.Only(v, "", append([]string{
		"classes", "authority", "tick_effects", "paused", "max_agents", "max_quantum", "intent_kinds", "rules",
	}, settingNames...)...)
	config.Settings = c.settings(v, "", defaultSettings())
	if m, ok := v.Get("classes"); ok {
		if m.Kind() != signal.KindObject || m.Len() > strictjson.MaxNames {
			c.Fail("/classes", "want an object of at most %d settings", strictjson.MaxNames)
		}
		for name, s := range m.Members() {
			path := "/classes/" + jsonpointer.Escape(name)
			if s.Kind() != signal.KindObject {
				c.Fail(path, "%v, want an object", s.Kind())
				break
			}
			c.Only(s, path, settingNames...)
			name = strings.Clone(name)
			config.Classes[name] = c.settings(s, path, config.Settings)
			config.classValues[name] = slices.Clone(s)
		}
	}
	config.Authority = Authority(c.Word(v, "", "authority", string(TimeWall), string(TimeSim), string(TimeManual)))
	config.TickEffects = c.Bool(v, "", "tick_effects", false)
	config.Paused = c.Bool(v, "", "paused", false)
	config.MaxAgents = int(c.Number(v, "", "max_agents", 10_000, 1, maxAgents))
	config.MaxQuantum = int(c.Number(v, "", "max_quantum", 1024, 1, 1<<16))
	config.Kinds, config.Touches = c.kinds(v)
	rules, _ := v.Get("rules")
	config.Rules = c.rules(rules, "/rules")
	if c.Err != nil {
		return Config{}, c.Err
	}
	return config, nil
}

// of returns the settings of an agent of a class with a policy.
func (c configReader) of(config *Config, class string, policy signal.Value) Settings {
	base := config.Settings
	if class != "" {
		s, ok := config.Classes[class]
		if !ok {
			c.Fail("/class", "no class %q", class)
		}
		base = s
	}
	return c.settings(policy, "/policy", base)
}

// ErrBegun is wrapped by the errors about a world that has begun, and so cannot be given
// another state to begin with.
var ErrBegun = errors.New("the world has begun")

// latency reads a model: an object with model ("none", "fixed", "distance" or
// "jitter"), ms, base_ms, per_unit_ms, spread_ms and seed; or a number of
// milliseconds. spread_ms adds jitter to every model but none.
func (c configReader) latency(v signal.Value, path string) flow.Latency {
	var l flow.Latency
	if v.Kind().IsNumber() {
		v = jsonvalue.Fields{{"ms", v}}.Value()
	}
	if v.Kind() != signal.KindObject {
		c.Fail(path, "%v, want an object", v.Kind())
		return l
	}
	c.Only(v, path, "model", "ms", "base_ms", "per_unit_ms", "spread_ms", "seed")
	model := c.Word(v, path, "model", "fixed", "none", "distance", "jitter")
	if model == "none" {
		return l
	}
	l.Base = c.Millis(v, path, "base_ms", 0, flow.MaxLatency)
	switch model {
	case "distance":
		if _, ok := v.Get("base_ms"); !ok {
			l.Base = 10 * time.Millisecond
		}
		l.PerUnit = c.Millis(v, path, "per_unit_ms", time.Millisecond, flow.MaxLatency)
	default:
		l.Base = c.Millis(v, path, "ms", l.Base, flow.MaxLatency)
	}
	l.Spread = c.Millis(v, path, "spread_ms", 0, flow.MaxLatency)
	if m, ok := v.Get("seed"); ok {
		seed, ok := m.Int64()
		if !ok {
			c.Fail(path+"/seed", "want an integer")
		}
		l.Seed = uint64(seed)
	}
	return l
}
