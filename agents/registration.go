package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/codec"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/internal/strictjson"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Registration is how an agent takes part. It creates no entity: a program creates the
// agent's entity, under the agent's id, with the world that it begins, by an
// EntityCreated effect, or by Join of package agents/message. An agent without an entity
// observes and acts, but its public messages are refused with [ErrInvalid].
type Registration struct {
	AgentID string
	// Policy is what [view.CompilePolicy] reads, and what of [Settings] differs from
	// the agent's class. Nil is the default policy.
	Policy signal.Value
	// Permissions are submit_intent and intent:KIND, the kind in lower case. Nil
	// means those for Move, Speak, Interact and Custom; intent:custom permits every
	// other kind too.
	Permissions []string
	Class       string // in the configuration; "" for none
}

// DefaultPermissions are those of an agent that is registered without any.
func DefaultPermissions() []string {
	return []string{"submit_intent", "intent:move", "intent:speak", "intent:interact", "intent:custom"}
}

// Register returns the record that registers an agent. One that is registered
// gets the new policy, and a whole view by it. Beyond max_agents the error is a
// [*Rejection] with [QuotaAgents].
func (c *Core) Register(r Registration) ([]signal.Record, error) {
	if r.Policy == nil {
		r.Policy = jsonvalue.Empty()
	}
	if r.Permissions == nil {
		r.Permissions = DefaultPermissions()
	}
	o := jsonvalue.Fields{
		{"agent_id", jsonvalue.Text(r.AgentID)},
		{"policy", r.Policy},
		{"permissions", jsonvalue.Names(r.Permissions)},
	}
	if r.Class != "" {
		o = append(o, jsonvalue.NamedValue{"class", jsonvalue.Text(r.Class)})
	}
	v := o.Value()
	if err := soundObject(v, world.MaxEntityDepth+8); err != nil {
		return nil, fmt.Errorf("agents: registration of %q: %w", r.AgentID, err)
	}
	if _, known := c.agents[r.AgentID]; !known && len(c.agents) >= c.config.MaxAgents {
		full := reject(&Intent{AgentID: r.AgentID}, ErrQuotaExceeded, "%d agents are registered, at most %d: see max_agents", len(c.agents), c.config.MaxAgents)
		full.Quota, full.Limit = QuotaAgents, int64(c.config.MaxAgents)
		return nil, full
	}
	if _, _, err := c.compileAgent(v); err != nil {
		return nil, err
	}
	return []signal.Record{{Word: WordAgent, Value: v}}, nil
}

// Leave returns the record that takes an agent out. Its entity stays, and the
// answers that it was given stand.
func (c *Core) Leave(agent string) ([]signal.Record, error) {
	if _, ok := c.agents[agent]; !ok {
		return nil, &Rejection{Code: ErrUnknownAgent, Recovery: Abort, AgentID: agent}
	}
	return []signal.Record{{Word: WordLeft, Value: jsonvalue.Fields{{"agent_id", jsonvalue.Text(agent)}}.Value()}}, nil
}

// CompilePolicy compiles the policy of a registration, see [Registration.Policy].
func CompilePolicy(policy signal.Value, options Options) (*view.CompiledPolicy, error) {
	c, err := NewCore(options)
	if err != nil {
		return nil, err
	}
	if _, err := c.Register(Registration{AgentID: "policy", Policy: policy}); err != nil {
		return nil, err
	}
	return view.CompilePolicy(policy, options.Customs, settingNames...)
}

// WithPolicy returns the value of a record of [Core.Register] with another policy for what
// the agent may see. What the record says of [Settings] stays, and what policy says of
// them is left out. The result is not compiled; see [CompilePolicy].
func WithPolicy(registered, policy signal.Value) signal.Value {
	before, _ := registered.Get("policy")
	now := signal.ObjectOf(policy)
	for _, name := range settingNames {
		now.Remove(name)
		if v, ok := before.Get(name); ok {
			now.Add(name, v)
		}
	}
	record := signal.ObjectOf(registered)
	return record.Set("policy", now.Value()).Value()
}

// compileAgent reads the value of an agent's record.
func (c *Core) compileAgent(v signal.Value) (*agentState, *view.CompiledPolicy, error) {
	a := &agentState{
		id: jsonvalue.TextOf(v, "agent_id"), class: jsonvalue.TextOf(v, "class"), value: slices.Clone(v),
		permissions: map[string]struct{}{}, tokens: map[string]*generation{},
	}
	if err := codec.CheckKey(a.id, world.MaxID); err != nil {
		return nil, nil, fmt.Errorf("agents: agent_id: %w", err)
	}
	if a.policy, _ = a.value.Get("policy"); a.policy == nil {
		a.policy = jsonvalue.Empty()
	}
	permissions := jsonvalue.NamesOf(v, "permissions")
	if len(permissions) > strictjson.MaxNames {
		return nil, nil, fmt.Errorf("agents: more than %d permissions", strictjson.MaxNames)
	}
	for _, p := range permissions {
		a.permissions[p] = struct{}{}
	}
	lens, err := view.CompilePolicy(a.policy, c.options.Customs, settingNames...)
	if err != nil {
		return nil, nil, err
	}
	reader := newConfigReader()
	if a.settings = reader.of(&c.config, a.class, a.policy); reader.Err != nil {
		return nil, nil, reader.Err
	}
	a.due.Agent, a.ends.Agent = a.id, a.id
	return a, lens, nil
}

// permits reports whether the agent may submit intents of a kind.
func (a *agentState) permits(kind string) bool {
	if _, ok := a.permissions["submit_intent"]; !ok {
		return false
	}
	_, ok := a.permissions["intent:"+strings.ToLower(kind)]
	if !ok && kind != world.KindMove && kind != world.KindSpeak && kind != world.KindInteract {
		_, ok = a.permissions["intent:custom"]
	}
	return ok
}
