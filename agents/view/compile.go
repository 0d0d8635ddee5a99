package view

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/internal/strictjson"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrPolicy is wrapped by the errors of [CompilePolicy].
var ErrPolicy = errors.New("malformed policy")

// PolicyError is the place and the reason of a malformed policy. It wraps
// [ErrPolicy].
type PolicyError struct {
	Path   string // JSON pointer
	Reason string
}

func (e *PolicyError) Error() string {
	return fmt.Sprintf("agents: policy %q: %s", e.Path, e.Reason)
}
func (e *PolicyError) Unwrap() error { return ErrPolicy }

// Bounds of a policy's JSON.
const (
	maxPolicies = 256 // in one compiled policy, nested policies included
	maxDepth    = 64  // of a walk along relations
	maxDistance = 1e15
)

// Custom is a policy that the program supplies. Policies name it together with its
// version, so that rules of another version never evaluate a recorded policy.
type Custom struct {
	Name    string
	Version int64
	// Compile returns the policy for the member config, which may be absent. A
	// panic in it counts as an error. A panic in a method of the policy denies
	// what the method was asked: it counts as false, or as [NotReceived].
	Compile func(config signal.Value) (Policy, error)
}

// CompilePolicy compiles a policy from its JSON. others are names of members of the
// outermost object that belong to the caller; any other unknown member is an error,
// a [*PolicyError].
//
// An object without the member policy, or with "policy":"default", is the default
// policy of the multi-agent design ("Observation Policy Interface"). All of its
// members are optional:
//
//	distance_limit       100; the visible distance, inclusive. From 100 on,
//	                     entities without a position are visible too
//	relationship_filter  []; if not empty, only entities are visible to which
//	                     relations of these types lead, by at most
//	                     relationship_depth (2) steps
//	field_visibility     {}; a field that is mapped to false is hidden
//
// The outermost object of every policy may also have:
//
//	max_patch_ops          50
//	include_spatial_index  true; entities are shown with their position
//	typed_relationships    false; relations are shown with type and strength
//	on_disappear           "remove", or "keep": as {"policy":"fog"} with 1000
//
// The policies, each an object with the member policy, are:
//
//	everything, self, conversation
//	distance       limit, unplaced (false)
//	relationships  types ([]), depth (1), direction ("out", "in", "both"), entities (type)
//	cone           range, angle
//	team           fields ([]: all)
//	channel        channels
//	fields         fields {name: bool}, types ([]), of ("all", "others", "allies", "rivals")
//	all, any       of: [policy…]
//	not            of: policy
//	fog            of: policy, capacity (1000); outermost only
//	custom         name, version, config
func CompilePolicy(v signal.Value, customs []Custom, others ...string) (*CompiledPolicy, error) {
	c := compiler{MemberReader: strictjson.NewMemberReader(newPolicyError), customs: customs}
	var config Options
	c.outermost(v, &config, others)
	p := c.policy(v, "", &config, append([]string{
		"max_patch_ops", "include_spatial_index", "typed_relationships", "on_disappear",
	}, others...))
	if c.Err != nil {
		return nil, c.Err
	}
	return NewCompiledPolicy(p, config), nil
}

// compiler reads policies. After the first error it reads on, but its results are
// discarded.
type compiler struct {
	*strictjson.MemberReader
	customs []Custom
	count   int
}

func newPolicyError(path, reason string) error { return &PolicyError{path, reason} }

func (c *compiler) outermost(v signal.Value, config *Options, others []string) {
	for _, name := range others {
		if name == "policy" || name == "of" {
			panic("agents: CompilePolicy: " + name + " cannot be another's member")
		}
	}
	config.MaxPatchOps = int(c.Number(v, "", "max_patch_ops", DefaultMaxPatchOps, 1, jsondoc.MaxPatchOps))
	config.HidePositions = !c.Bool(v, "", "include_spatial_index", true)
	config.TypedRelationships = c.Bool(v, "", "typed_relationships", false)
	switch c.Word(v, "", "on_disappear", "remove", "keep") {
	case "keep":
		config.Remember = defaultRemember
	default:
	}
}

const defaultRemember = 1000

// policy compiles one policy. config is nil for a nested policy. others are members
// that belong to the caller.
func (c *compiler) policy(v signal.Value, path string, config *Options, others []string) Policy {
	if c.count++; c.count > maxPolicies {
		c.Fail(path, "more than %d policies in one", maxPolicies)
	}
	if v.Kind() != signal.KindObject {
		c.Fail(path, "%v, want an object", v.Kind())
	}
	if c.Err != nil {
		return nothing{}
	}
	name := "default"
	if m, ok := v.Get("policy"); ok {
		if name, ok = m.Text(); !ok {
			c.Fail(path+"/policy", "%v, want a name", m.Kind())
			return nothing{}
		}
	}
	form, ok := forms[name]
	if !ok {
		c.Fail(path+"/policy", "unknown policy %q", name)
		return nothing{}
	}
	for m := range v.Members() {
		if m != "policy" && !slices.Contains(form.members, m) && !slices.Contains(others, m) {
			c.Fail(path+"/"+jsonpointer.Escape(m), "%s has no such member; it has %s", name, strings.Join(form.members, ", "))
		}
	}
	if name == "fog" {
		if config == nil {
			c.Fail(path, "fog stands outermost only")
			return nothing{}
		}
		config.Remember = int(c.Number(v, path, "capacity", defaultRemember, 1, MaxRemember))
	}
	if c.Err != nil {
		return nothing{}
	}
	return form.make(c, v, path)
}

// form is one kind of policy.
type form struct {
	members []string
	make    func(c *compiler, v signal.Value, path string) Policy
}

var forms map[string]form

func init() {
	inner := func(c *compiler, v signal.Value, path string) Policy {
		of, _ := v.Get("of")
		return c.policy(of, path+"/of", nil, nil)
	}
	forms = map[string]form{
		"default": {
			[]string{"distance_limit", "relationship_filter", "relationship_depth", "field_visibility"},
			(*compiler).defaultPolicy,
		},
		"everything":   {nil, func(*compiler, signal.Value, string) Policy { return Everything() }},
		"self":         {nil, func(*compiler, signal.Value, string) Policy { return Self() }},
		"conversation": {nil, func(*compiler, signal.Value, string) Policy { return Conversation() }},
		"distance": {[]string{"limit", "unplaced"}, func(c *compiler, v signal.Value, path string) Policy {
			c.Demand(v, path, "limit")
			return Distance(c.Number(v, path, "limit", 0, 0, maxDistance), c.Bool(v, path, "unplaced", false))
		}},
		"relationships": {[]string{"types", "depth", "direction", "entities"}, (*compiler).relationships},
		"cone": {[]string{"range", "angle"}, func(c *compiler, v signal.Value, path string) Policy {
			c.Demand(v, path, "range")
			c.Demand(v, path, "angle")
			return Cone(c.Number(v, path, "angle", 0, 0, 360), c.Number(v, path, "range", 0, 0, maxDistance))
		}},
		"team": {[]string{"fields"}, func(c *compiler, v signal.Value, path string) Policy {
			return Allies(c.Names(v, path, "fields")...)
		}},
		"channel": {[]string{"channels"}, func(c *compiler, v signal.Value, path string) Policy {
			c.Demand(v, path, "channels")
			channels := c.Names(v, path, "channels")
			for i, name := range channels {
				if name != world.ChannelPublic && name != world.ChannelTeam && name != world.ChannelPrivate {
					c.Fail(path+"/channels/"+strconv.Itoa(i), "%q, want public, team or private", name)
				}
			}
			return Channels(channels...)
		}},
		"fields": {[]string{"fields", "types", "of"}, func(c *compiler, v signal.Value, path string) Policy {
			c.Demand(v, path, "fields")
			of := slices.Index(ofWords, c.Word(v, path, "of", ofWords...))
			return Fields(FieldRule{c.Flags(v, path, "fields"), c.Names(v, path, "types"), Of(max(of, 0))})
		}},
		"all":    {[]string{"of"}, func(c *compiler, v signal.Value, path string) Policy { return All(c.policies(v, path)...) }},
		"any":    {[]string{"of"}, func(c *compiler, v signal.Value, path string) Policy { return Any(c.policies(v, path)...) }},
		"not":    {[]string{"of"}, func(c *compiler, v signal.Value, path string) Policy { return Not(inner(c, v, path)) }},
		"fog":    {[]string{"of", "capacity"}, inner},
		"custom": {[]string{"name", "version", "config"}, (*compiler).custom},
	}
}

// ofWords are the words for the values of [Of], in their order.
var ofWords = []string{"all", "others", "allies", "rivals"}

// unplacedFrom is the distance_limit from which on the default policy shows
// entities without a position.
const unplacedFrom = 100

func (c *compiler) defaultPolicy(v signal.Value, path string) Policy {
	limit := c.Number(v, path, "distance_limit", 100, 0, maxDistance)
	parts := []Policy{Distance(limit, limit >= unplacedFrom)}
	depth := c.Number(v, path, "relationship_depth", 2, 1, maxDepth)
	if types := c.Names(v, path, "relationship_filter"); len(types) > 0 {
		parts = append(parts, Relationships(RelationshipRule{Types: types, Depth: int(depth)}))
	}
	if fields := c.Flags(v, path, "field_visibility"); len(fields) > 0 {
		parts = append(parts, Fields(FieldRule{Fields: fields}))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return All(parts...)
}

func (c *compiler) relationships(v signal.Value, path string) Policy {
	words := []string{"out", "in", "both"}
	rule := RelationshipRule{
		Types:     c.Names(v, path, "types"),
		Depth:     int(c.Number(v, path, "depth", 1, 1, maxDepth)),
		Direction: Direction(max(slices.Index(words, c.Word(v, path, "direction", words...)), 0)),
	}
	if m, ok := v.Get("entities"); ok {
		if rule.Entities, ok = m.Text(); !ok || rule.Entities == "" {
			c.Fail(path+"/entities", "want a type of entity")
		}
	}
	return Relationships(rule)
}

func (c *compiler) policies(v signal.Value, path string) []Policy {
	c.Demand(v, path, "of")
	of, _ := v.Get("of")
	if c.Err == nil && of.Kind() != signal.KindArray {
		c.Fail(path+"/of", "%v, want an array of policies", of.Kind())
	}
	var list []Policy
	for e := range of.Elements() {
		if c.Err != nil {
			return nil
		}
		list = append(list, c.policy(e, path+"/of/"+strconv.Itoa(len(list)), nil, nil))
	}
	if c.Err == nil && len(list) == 0 {
		c.Fail(path+"/of", "no policy")
	}
	return list
}

func (c *compiler) custom(v signal.Value, path string) Policy {
	name, _ := jsonvalue.TextMember(v, "name")
	m, _ := v.Get("version")
	version, ok := m.Int64()
	if !ok {
		c.Fail(path+"/version", "want an integer")
		return nothing{}
	}
	for _, custom := range c.customs {
		if custom.Name != name || custom.Version != version {
			continue
		}
		config, _ := v.Get("config")
		p, err := guard(custom, config)
		if err != nil {
			c.Fail(path+"/config", "%v", err)
			return nothing{}
		}
		return p
	}
	c.Fail(path+"/name", "no policy %q of version %d is registered", name, version)
	return nothing{}
}
