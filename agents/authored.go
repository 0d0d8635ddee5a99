package agents

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// AuthoredSettings are the [Settings] that one layer overrides, as Go values: those of a
// configuration, of a class, or of an agent's policy. A nil member is that of the layer
// below.
//
//	agents.AuthoredSettings{Staleness: new(uint64(2)), Debounce: new(50 * time.Millisecond)}
type AuthoredSettings struct {
	Staleness    *uint64
	Interrupt    InterruptCause // "" for that of the layer below
	Debounce     *time.Duration
	Deadline     *time.Duration
	TokenBudget  *int64
	QuotaIntents *int64 // negative means no bound
	QuotaTokens  *int64 // negative means no bound
	Cooldowns    map[string]time.Duration
	NoCooldowns  bool // turns off those of the layer below; Cooldowns is then ignored
	QueueDepth   *int
	Pressure     flow.Backpressure // "" for that of the layer below
	Priority     *int
	Weight       *int
	Latency      *flow.Latency
}

// AuthoredConfig is the configuration of a world as Go values. [AuthoredConfig.Value]
// returns it in the form that [ParseConfig] reads and Configure of a session's agents
// takes, so there is one set of rules: what ParseConfig refuses, it refuses with the same
// JSON pointer. Members that are zero have the default of ParseConfig.
type AuthoredConfig struct {
	Settings    AuthoredSettings
	Classes     map[string]AuthoredSettings
	Authority   Authority
	TickEffects bool
	Paused      bool
	MaxAgents   int
	MaxQuantum  int
	// Kinds are those of intent beside the ones that are always there. A kind in
	// Touches need not be among them.
	Kinds   []string
	Touches map[string]Touch
	Rules   Rules
}

// AuthoredPolicy is what an agent may see and its settings, as Go values:
// [AuthoredPolicy.Value] returns it in the form of [Registration.Policy].
type AuthoredPolicy struct {
	Sight    view.Policy // nil means the default policy; see [view.MarshalPolicy]
	Options  view.Options
	Settings AuthoredSettings
}

// Value returns the configuration in the form that [ParseConfig] reads. The error says
// that a text is not UTF-8; everything else is left to ParseConfig.
func (c AuthoredConfig) Value() (signal.Value, error) {
	o := c.Settings.form()
	add := func(name string, v signal.Value) { o = append(o, jsonvalue.NamedValue{name, v}) }
	if len(c.Classes) > 0 {
		var classes jsonvalue.Fields
		for name, s := range c.Classes {
			classes = append(classes, jsonvalue.NamedValue{name, s.form().Value()})
		}
		add("classes", classes.Sorted())
	}
	if c.Authority != "" {
		add("authority", jsonvalue.Text(string(c.Authority)))
	}
	if c.TickEffects {
		add("tick_effects", signal.Bool(true))
	}
	if c.Paused {
		add("paused", signal.Bool(true))
	}
	if c.MaxAgents != 0 {
		add("max_agents", jsonvalue.Int(int64(c.MaxAgents)))
	}
	if c.MaxQuantum != 0 {
		add("max_quantum", jsonvalue.Int(int64(c.MaxQuantum)))
	}
	if kinds := c.kinds(); len(kinds) > 0 {
		add("intent_kinds", jsonvalue.Array(kinds))
	}
	if rules := c.Rules.form(); len(rules) > 0 {
		add("rules", rules.Value())
	}
	return checked(o)
}

// MarshalJSON returns [AuthoredConfig.Value] as JSON.
func (c AuthoredConfig) MarshalJSON() ([]byte, error) { return marshaled(c.Value()) }

// Value returns the policy in the form of [Registration.Policy]. The error is that of
// [view.MarshalPolicy].
func (p AuthoredPolicy) Value() (signal.Value, error) {
	o := jsonvalue.Fields{}
	if p.Sight != nil || p.Options != (view.Options{}) {
		sight := p.Sight
		if sight == nil {
			sight = view.Distance(100, true) // the default policy
		}
		v, err := view.MarshalPolicy(sight, p.Options)
		if err != nil {
			return nil, err
		}
		o = jsonvalue.FieldsOf(v)
	}
	return checked(append(o, p.Settings.form()...))
}

// MarshalJSON returns [AuthoredPolicy.Value] as JSON.
func (p AuthoredPolicy) MarshalJSON() ([]byte, error) { return marshaled(p.Value()) }

func marshaled(v signal.Value, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return v.MarshalJSON()
}

// checked returns an object of texts that a program made.
func checked(o jsonvalue.Fields) (signal.Value, error) {
	v, rest, err := signal.CheckValue(o.Value())
	if err != nil || len(rest) > 0 {
		return nil, errors.New("agents: a text that is not UTF-8")
	}
	return v, nil
}

// kinds returns the elements of intent_kinds.
func (c AuthoredConfig) kinds() []signal.Value {
	var kinds []signal.Value
	for _, kind := range c.Kinds {
		if _, ok := c.Touches[kind]; !ok {
			kinds = append(kinds, jsonvalue.Text(kind))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Touches)) {
		t := c.Touches[kind]
		o := jsonvalue.Fields{{"kind", jsonvalue.Text(kind)}}
		for _, m := range []struct {
			name string
			list []string
		}{{"own", t.Own}, {"others", t.Others}, {"create", t.Create}, {"remove", t.Remove}} {
			if len(m.list) > 0 {
				o = append(o, jsonvalue.NamedValue{m.name, jsonvalue.Names(m.list)})
			}
		}
		o = append(o, jsonvalue.NamedValue{"place", signal.Bool(t.Place)}, jsonvalue.NamedValue{"relate", signal.Bool(t.Relate)})
		kinds = append(kinds, o.Value())
	}
	return kinds
}

// form returns the members of the rules that are not zero.
func (r Rules) form() jsonvalue.Fields {
	var o jsonvalue.Fields
	add := func(name string, set bool, v signal.Value) {
		if set {
			o = append(o, jsonvalue.NamedValue{name, v})
		}
	}
	add("max_payload_bytes", r.MaxPayload != 0, jsonvalue.Int(int64(r.MaxPayload)))
	add("max_text", r.MaxText != 0, jsonvalue.Int(int64(r.MaxText)))
	add("max_move_distance", r.MaxMove != 0, jsonvalue.Float(r.MaxMove))
	add("min_separation", r.MinSeparation != 0, jsonvalue.Float(r.MinSeparation))
	add("max_interact_distance", r.MaxInteract != 0, jsonvalue.Float(r.MaxInteract))
	add("interaction_types", len(r.InteractionTypes) > 0, jsonvalue.Names(r.InteractionTypes))
	add("refused_words", len(r.RefusedWords) > 0, jsonvalue.Names(r.RefusedWords))
	return o
}

// form returns the members of the settings that are set.
func (s AuthoredSettings) form() jsonvalue.Fields {
	var o jsonvalue.Fields
	add := func(name string, v signal.Value) { o = append(o, jsonvalue.NamedValue{name, v}) }
	millis := func(name string, d *time.Duration) {
		if d != nil {
			add(name, millisValue(*d))
		}
	}
	if s.Staleness != nil {
		add("staleness_threshold", jsonvalue.Uint(*s.Staleness))
	}
	if s.Interrupt != "" {
		add("interrupt", jsonvalue.Text(string(s.Interrupt)))
	}
	millis("debounce_ms", s.Debounce)
	millis("deadline_ms", s.Deadline)
	for _, m := range []struct {
		name string
		n    *int64
	}{{"token_budget", s.TokenBudget}, {"quota_intents_per_minute", unbounded(s.QuotaIntents)}, {"quota_tokens_per_minute", unbounded(s.QuotaTokens)}} {
		if m.n != nil {
			add(m.name, jsonvalue.Int(*m.n))
		}
	}
	switch {
	case s.NoCooldowns:
		add("cooldowns", jsonvalue.Text("off"))
	case s.Cooldowns != nil:
		var cooldowns jsonvalue.Fields
		for kind, d := range s.Cooldowns {
			cooldowns = append(cooldowns, jsonvalue.NamedValue{kind, millisValue(d)})
		}
		add("cooldowns", cooldowns.Sorted())
	}
	if s.Pressure != "" {
		add("backpressure_policy", jsonvalue.Text(string(s.Pressure)))
	}
	for _, m := range []struct {
		name string
		n    *int
	}{{"max_queue_depth", s.QueueDepth}, {"default_priority", s.Priority}, {"weight", s.Weight}} {
		if m.n != nil {
			add(m.name, jsonvalue.Int(int64(*m.n)))
		}
	}
	if s.Latency != nil {
		add("latency_model", latencyForm(*s.Latency))
	}
	return o
}

// unbounded returns -1 for every negative bound.
func unbounded(n *int64) *int64 {
	if n != nil && *n < 0 {
		return new(int64(-1))
	}
	return n
}

func latencyForm(l flow.Latency) signal.Value {
	if l == (flow.Latency{}) {
		return jsonvalue.Fields{{"model", jsonvalue.Text("none")}}.Value()
	}
	return jsonvalue.Fields{
		{"model", jsonvalue.Text("distance")},
		{"base_ms", millisValue(l.Base)},
		{"per_unit_ms", millisValue(l.PerUnit)},
		{"spread_ms", millisValue(l.Spread)},
		{"seed", jsonvalue.Int(int64(l.Seed))},
	}.Value()
}

// millisValue returns a duration as milliseconds, a whole number as an integer.
func millisValue(d time.Duration) signal.Value {
	if d%time.Millisecond == 0 {
		return jsonvalue.Int(int64(d / time.Millisecond))
	}
	return jsonvalue.Float(float64(d) / 1e6)
}
