package agents

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// Interrupt says what interrupts an agent's generation.
type Interrupt string

// The policies of interruption.
const (
	InterruptAlways   Interrupt = "always"        // anything new that the agent gets to see
	InterruptConflict Interrupt = "only_conflict" // only what conflicts with what the generation goes by
)

// Settings are the rules for one agent. They come in three layers, of which
// each names only what it says differently: the world's configuration, the
// agent's class in it, the agent's own policy.
type Settings struct {
	// Staleness is how many sequence numbers a context may be behind.
	Staleness   uint64
	Interrupt   Interrupt
	Debounce    time.Duration // between interruptions
	Deadline    time.Duration // of a generation
	TokenBudget int64         // of a generation
	// QuotaIntents and QuotaTokens bound what is asked in a minute; negative means not at all.
	QuotaIntents, QuotaTokens int64
	Cooldowns                 map[string]time.Duration // by kind
	QueueDepth                int                      // of intents that wait
	Pressure                  Backpressure             // when it is reached
	Priority                  int                      // of an intent that names none
	Weight                    int                      // turns in a round
	Latency                   Latency
}

// DefaultSettings are the document's.
func DefaultSettings() Settings {
	return Settings{
		Interrupt:    InterruptAlways,
		Debounce:     100 * time.Millisecond,
		Deadline:     5 * time.Second,
		TokenBudget:  1000,
		QuotaIntents: 60,
		QuotaTokens:  10_000,
		Cooldowns: map[string]time.Duration{
			KindSpeak: 500 * time.Millisecond, KindMove: 100 * time.Millisecond,
			KindInteract: 2 * time.Second, KindCustom: time.Second,
		},
		QueueDepth: 100,
		Pressure:   PressureDefer,
		Weight:     1,
	}
}

// Bounds of settings.
const (
	MaxQuota  = 100_000 // beyond it, none at all is meant
	MaxWeight = 1000
	maxDepthQ = 100_000
)

var settingNames = []string{
	"staleness_threshold", "interrupt", "debounce_ms", "deadline_ms", "token_budget", "quota_intents_per_minute",
	"quota_tokens_per_minute", "cooldowns", "max_queue_depth", "backpressure_policy", "default_priority", "weight", "latency_model",
}

// settings reads what v says differently from base.
func (c *compiler) settings(v signal.Value, path string, base Settings) Settings {
	s := base
	s.Staleness = uint64(c.number(v, path, "staleness_threshold", float64(base.Staleness), 0, 1<<53))
	if _, ok := v.Get("interrupt"); ok {
		s.Interrupt = Interrupt(c.word(v, path, "interrupt", string(InterruptAlways), string(InterruptConflict)))
	}
	s.Debounce = c.millis(v, path, "debounce_ms", base.Debounce)
	s.Deadline = c.millis(v, path, "deadline_ms", base.Deadline)
	s.TokenBudget = int64(c.number(v, path, "token_budget", float64(base.TokenBudget), 0, 1<<40))
	s.QuotaIntents = int64(c.number(v, path, "quota_intents_per_minute", float64(base.QuotaIntents), -1, MaxQuota))
	s.QuotaTokens = int64(c.number(v, path, "quota_tokens_per_minute", float64(base.QuotaTokens), -1, 1<<40))
	s.QueueDepth = int(c.number(v, path, "max_queue_depth", float64(base.QueueDepth), 1, maxDepthQ))
	if _, ok := v.Get("backpressure_policy"); ok {
		s.Pressure = Backpressure(c.word(v, path, "backpressure_policy", string(PressureDefer), string(PressureShed), string(PressureDrop)))
	}
	s.Priority = int(c.number(v, path, "default_priority", float64(base.Priority), -MaxPriority, MaxPriority))
	s.Weight = int(c.number(v, path, "weight", float64(base.Weight), 1, MaxWeight))
	if m, ok := v.Get("latency_model"); ok && m.Kind() != signal.KindNull {
		s.Latency = c.latency(m, path+"/latency_model")
	}
	if m, ok := v.Get("cooldowns"); ok {
		s.Cooldowns = c.cooldowns(m, path+"/cooldowns", base.Cooldowns)
	}
	return s
}

// cooldowns reads milliseconds by kind, over those of base; "off" is none.
func (c *compiler) cooldowns(v signal.Value, path string, base map[string]time.Duration) map[string]time.Duration {
	if text, ok := v.Text(); ok && text == "off" {
		return nil
	}
	if v.Kind() != signal.KindObject || v.Len() > maxNames {
		c.fail(path, `want "off" or an object of milliseconds by kind`)
		return nil
	}
	all := maps.Clone(base)
	if all == nil {
		all = map[string]time.Duration{}
	}
	for kind := range v.Members() {
		all[strings.Clone(kind)] = c.millis(v, path, kind, 0)
	}
	return all
}

// Authority says whose time sim_time is.
type Authority string

// The authorities.
const (
	TimeWall   Authority = "wall"   // session time, in seconds; the default
	TimeSim    Authority = "sim"    // an adapter's ticks, which also close quanta
	TimeManual Authority = "manual" // whoever hands in the effects
)

// Config is the configuration of a world: its settings, and what is one for all.
type Config struct {
	Settings  Settings
	Classes   map[string]Settings // over Settings
	Authority Authority
	// TickEffects makes each tick that closes a quantum an effect too, of kind
	// [KindTimeTick].
	TickEffects bool
	Paused      bool
	MaxAgents   int
	MaxQuantum  int      // intents and drafts that a tick takes at once; the others wait for the next
	Kinds       []string // of intent, beside those that are always there
	Rules       Rules

	classValues map[string]signal.Value
}

// KindTimeTick is the kind of effect of a tick.
const KindTimeTick = "TimeTick"

// MaxAgents bounds [Config.MaxAgents].
const MaxAgents = 100_000

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
// max_quantum 1024, intent_kinds [], and rules, see [Rules].
func ParseConfig(v signal.Value) (Config, error) {
	c := compiler{}
	config := Config{Classes: map[string]Settings{}, classValues: map[string]signal.Value{}}
	if v == nil {
		v = emptyObject()
	}
	if v.Kind() != signal.KindObject {
		return config, &PolicyError{"", "a configuration is an object"}
	}
	c.only(v, "", append([]string{
		"classes", "authority", "tick_effects", "paused", "max_agents", "max_quantum", "intent_kinds", "rules",
	}, settingNames...)...)
	config.Settings = c.settings(v, "", DefaultSettings())
	if m, ok := v.Get("classes"); ok {
		if m.Kind() != signal.KindObject || m.Len() > maxNames {
			c.fail("/classes", "want an object of at most %d settings", maxNames)
		}
		for name, s := range m.Members() {
			path := "/classes/" + escape(name)
			if s.Kind() != signal.KindObject {
				c.fail(path, "%v, want an object", s.Kind())
				break
			}
			c.only(s, path, settingNames...)
			name = strings.Clone(name)
			config.Classes[name] = c.settings(s, path, config.Settings)
			config.classValues[name] = slices.Clone(s)
		}
	}
	config.Authority = Authority(c.word(v, "", "authority", string(TimeWall), string(TimeSim), string(TimeManual)))
	config.TickEffects = c.bool(v, "", "tick_effects", false)
	config.Paused = c.bool(v, "", "paused", false)
	config.MaxAgents = int(c.number(v, "", "max_agents", 10_000, 1, MaxAgents))
	config.MaxQuantum = int(c.number(v, "", "max_quantum", 1024, 1, 1<<16))
	config.Kinds = c.names(v, "", "intent_kinds")
	rules, _ := v.Get("rules")
	config.Rules = c.rules(rules, "/rules")
	if c.err != nil {
		return Config{}, c.err
	}
	return config, nil
}

// of returns the settings of an agent of a class with a policy.
func (c *compiler) of(config *Config, class string, policy signal.Value) Settings {
	base := config.Settings
	if class != "" {
		s, ok := config.Classes[class]
		if !ok {
			c.fail("/class", "no class %q", class)
		}
		base = s
	}
	return c.settings(policy, "/policy", base)
}

var errNotPristine = errors.New("the world has begun")
