package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// settingWords are the settings of an engine, a world or an agent, with the
// other words that a scenario may have for them.
var settingWords = map[string][]string{
	"staleness_threshold":      nil,
	"interrupt":                {"interrupt_policy", "interruption_policy", "interruption"},
	"debounce_ms":              nil,
	"deadline_ms":              nil,
	"token_budget":             nil,
	"default_priority":         nil,
	"backpressure_policy":      {"backpressure"},
	"weight":                   nil,
	"max_queue_depth":          {"queue_depth"},
	"quota_intents_per_minute": {"intents_per_minute"},
	"quota_tokens_per_minute":  {"tokens_per_minute"},
	"cooldowns":                nil,
	"latency_model":            nil,
}

// most is beyond what a setting may be, and means that it is unlimited.
var most = map[string]float64{"quota_intents_per_minute": agents.MaxQuota, "max_queue_depth": 100_000}

// setting reads the settings that n has into o.
func settings(n *node, o document) {
	for _, name := range slices.Sorted(maps.Keys(settingWords)) {
		v := n.get(append([]string{name}, settingWords[name]...)...)
		switch {
		case !v.given():
		case name == "latency_model":
			o[name] = latencyModel(v)
		case v.kind().IsNumber() && most[name] > 0 && v.number() > most[name]:
			delete(o, name)
			if name == "max_queue_depth" {
				o[name] = most[name]
			} else {
				o[name] = -1
			}
		default:
			o[name] = v.all()
		}
	}
}

// configured makes a configuration of a scenario's: limits that it does not
// name are set so high that they do not matter.
func configured(n *node) signal.Value {
	o := document{
		"max_queue_depth": 10_000, "quota_intents_per_minute": -1, "quota_tokens_per_minute": -1, "cooldowns": "off",
		"debounce_ms": 0, "deadline_ms": 0, "rules": document{"max_payload_bytes": 1 << 20, "max_text": 1 << 20},
	}
	settings(n, o)
	for _, name := range []string{"max_agents", "authority", "rules", "classes", "intent_kinds"} {
		if v := n.get(name); v.given() {
			o[name] = v.all()
		}
	}
	v := made(o)
	if _, err := agents.ParseConfig(v); err == nil {
		mustValidate(agents.ConfigSchema(), v)
	}
	return v
}

// agentWords are what a scenario says of an agent beside its policy.
var agentWords = []string{"position", "permissions", "type", "name", "team", "entity", "entity_data"}

// latencyModel takes other words than the engine's for its members.
func latencyModel(v *node) any {
	if v.kind() == signal.KindString {
		return document{"model": v.text()}
	}
	if v.kind() != signal.KindObject {
		return v.all()
	}
	o := document{}
	for name, m := range v.members() {
		switch name {
		case "type", "kind":
			o["model"] = m.all()
		case "delay_ms", "fixed_ms":
			o["ms"] = m.all()
		default:
			o[name] = m.all()
		}
	}
	return o
}

// policyWords are what policies are called elsewhere. The document's own has
// no name; it is the one with a distance limit.
var policyWords = map[string]string{
	"distance": "default", "distance_policy": "default", "observation": "default",
	"default": "default", "conversation": "conversation", "conversation_policy": "conversation",
}

// readPolicy reads a policy that stands alone, or as the member policy of an
// agent among its settings; or only its name. What the engine has no such policy
// for is not applicable.
func readPolicy(n *node) (signal.Value, error) {
	o := document{}
	inner := n
	if n.kind() == signal.KindString {
		o["policy"] = n.text()
	}
	if p := n.get("policy"); p.kind() == signal.KindObject {
		settings(n, o)
		inner = p
	}
	settings(inner, o)
	if inner.kind() == signal.KindObject {
		for i, name := range inner.names {
			m := inner.parts[i]
			switch {
			case isSetting(name) || slices.Contains(agentWords, name) || !m.given():
			case name == "typed_relationships" && m.kind() == signal.KindArray: // a part of the world, see typedRelationships
			case name == "policy" && m.kind() == signal.KindString:
				o[name] = m.text()
			default:
				o[name] = m.all()
			}
		}
	}
	if typ := inner.get("type"); typ.kind() == signal.KindString && o["policy"] == nil && policyWords[typ.text()] != "" {
		o["policy"] = typ.text()
	}
	if name, ok := o["policy"].(string); ok && policyWords[name] != "" && o["limit"] == nil {
		o["policy"] = policyWords[name]
	}
	v := made(o)
	if _, err := view.CompilePolicy(v, nil, slices.Sorted(maps.Keys(settingWords))...); err != nil {
		if errors.Is(err, view.ErrPolicy) {
			return nil, inapplicable("%v", err)
		}
		return nil, fmt.Errorf("policy: %w", err)
	}
	return v, nil
}

func isSetting(word string) bool {
	for name, others := range settingWords {
		if word == name || slices.Contains(others, word) {
			return true
		}
	}
	return false
}
