package agents

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// ErrPolicy is wrapped by the errors of [CompileLens].
var ErrPolicy = errors.New("malformed policy")

// PolicyError says where a policy is wrong.
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
	maxPolicies = 256 // in one lens, combined in any way
	maxNames    = 1024
	maxDepth    = 64 // of a path of relations
	maxDistance = 1e15
)

// Custom is a policy that the program brings along. Policies name it with its
// version, so that a recorded one is never read by other rules.
type Custom struct {
	Name    string
	Version int64
	// Compile makes the policy from the member config, which may be absent. If it
	// panics it has refused. If the policy panics, what it was asked about is neither
	// seen, shown, covered nor heard.
	Compile func(config signal.Value) (Policy, error)
}

// CompileLens makes a lens of its JSON. others are names of members of the
// outermost object that the caller reads; any other unknown member is an error,
// as a [*PolicyError].
//
// An object without the member policy, or with "policy":"default", is the
// document's policy, whose members are all optional:
//
//	distance_limit       100; how far one sees, inclusive. From 100 on one also
//	                     sees what has no position
//	relationship_filter  []; if not empty, one sees those only to whom relations of
//	                     these types lead, by at most relationship_depth (2) steps
//	field_visibility     {}; a field that is mapped to false is hidden
//
// Every outermost object may have, whatever its policy:
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
func CompileLens(v signal.Value, customs []Custom, others ...string) (*Lens, error) {
	c := compiler{customs: customs}
	var config LensConfig
	c.outermost(v, &config, others)
	p := c.policy(v, "", &config, append([]string{
		"max_patch_ops", "include_spatial_index", "typed_relationships", "on_disappear",
	}, others...))
	if c.err != nil {
		return nil, c.err
	}
	return NewLens(p, config), nil
}

// compiler reads policies. After the first error it reads on to no effect.
type compiler struct {
	customs []Custom
	count   int
	err     error
}

func (c *compiler) fail(path, format string, args ...any) {
	if c.err == nil {
		c.err = &PolicyError{path, fmt.Sprintf(format, args...)}
	}
}

func (c *compiler) outermost(v signal.Value, config *LensConfig, others []string) {
	for _, name := range others {
		if name == "policy" || name == "of" {
			panic("agents: CompileLens: " + name + " cannot be another's member")
		}
	}
	config.MaxPatchOps = int(c.number(v, "", "max_patch_ops", DefaultMaxPatchOps, 1, MaxPatchOps))
	config.HidePositions = !c.bool(v, "", "include_spatial_index", true)
	config.TypedRelationships = c.bool(v, "", "typed_relationships", false)
	switch c.word(v, "", "on_disappear", "remove", "keep") {
	case "keep":
		config.Remember = defaultRemember
	default:
	}
}

const defaultRemember = 1000

// policy reads one policy. config is nil for one inside another. others are
// members that it need not know.
func (c *compiler) policy(v signal.Value, path string, config *LensConfig, others []string) Policy {
	if c.count++; c.count > maxPolicies {
		c.fail(path, "more than %d policies in one", maxPolicies)
	}
	if v.Kind() != signal.KindObject {
		c.fail(path, "%v, want an object", v.Kind())
	}
	if c.err != nil {
		return nothing{}
	}
	name := "default"
	if m, ok := v.Get("policy"); ok {
		if name, ok = m.Text(); !ok {
			c.fail(path+"/policy", "%v, want a name", m.Kind())
			return nothing{}
		}
	}
	form, ok := forms[name]
	if !ok {
		c.fail(path+"/policy", "unknown policy %q", name)
		return nothing{}
	}
	for m := range v.Members() {
		if m != "policy" && !slices.Contains(form.members, m) && !slices.Contains(others, m) {
			c.fail(path+"/"+escape(m), "%s has no such member; it has %s", name, strings.Join(form.members, ", "))
		}
	}
	if name == "fog" {
		if config == nil {
			c.fail(path, "fog stands outermost only")
			return nothing{}
		}
		config.Remember = int(c.number(v, path, "capacity", defaultRemember, 1, MaxRemember))
	}
	if c.err != nil {
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
			c.demand(v, path, "limit")
			return Distance(c.number(v, path, "limit", 0, 0, maxDistance), c.bool(v, path, "unplaced", false))
		}},
		"relationships": {[]string{"types", "depth", "direction", "entities"}, (*compiler).relationships},
		"cone": {[]string{"range", "angle"}, func(c *compiler, v signal.Value, path string) Policy {
			c.demand(v, path, "range")
			c.demand(v, path, "angle")
			return Sight(c.number(v, path, "angle", 0, 0, 360), c.number(v, path, "range", 0, 0, maxDistance))
		}},
		"team": {[]string{"fields"}, func(c *compiler, v signal.Value, path string) Policy {
			return Allies(c.names(v, path, "fields")...)
		}},
		"channel": {[]string{"channels"}, func(c *compiler, v signal.Value, path string) Policy {
			c.demand(v, path, "channels")
			channels := c.names(v, path, "channels")
			for i, name := range channels {
				if name != ChannelPublic && name != ChannelTeam && name != ChannelPrivate {
					c.fail(path+"/channels/"+strconv.Itoa(i), "%q, want public, team or private", name)
				}
			}
			return Channels(channels...)
		}},
		"fields": {[]string{"fields", "types", "of"}, func(c *compiler, v signal.Value, path string) Policy {
			c.demand(v, path, "fields")
			of := slices.Index(ofWords, c.word(v, path, "of", ofWords...))
			return Fields(FieldRule{c.flags(v, path, "fields"), c.names(v, path, "types"), Of(max(of, 0))})
		}},
		"all":    {[]string{"of"}, func(c *compiler, v signal.Value, path string) Policy { return All(c.policies(v, path)...) }},
		"any":    {[]string{"of"}, func(c *compiler, v signal.Value, path string) Policy { return Any(c.policies(v, path)...) }},
		"not":    {[]string{"of"}, func(c *compiler, v signal.Value, path string) Policy { return Not(inner(c, v, path)) }},
		"fog":    {[]string{"of", "capacity"}, inner},
		"custom": {[]string{"name", "version", "config"}, (*compiler).custom},
	}
}

// ofWords are the words for [Of], in its order.
var ofWords = []string{"all", "others", "allies", "rivals"}

// unplacedFrom is the limit from which on the document's policy sees what has
// no position.
const unplacedFrom = 100

func (c *compiler) defaultPolicy(v signal.Value, path string) Policy {
	limit := c.number(v, path, "distance_limit", 100, 0, maxDistance)
	parts := []Policy{Distance(limit, limit >= unplacedFrom)}
	depth := c.number(v, path, "relationship_depth", 2, 1, maxDepth)
	if types := c.names(v, path, "relationship_filter"); len(types) > 0 {
		parts = append(parts, Relationships(RelationshipRule{Types: types, Depth: int(depth)}))
	}
	if fields := c.flags(v, path, "field_visibility"); len(fields) > 0 {
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
		Types:     c.names(v, path, "types"),
		Depth:     int(c.number(v, path, "depth", 1, 1, maxDepth)),
		Direction: Direction(max(slices.Index(words, c.word(v, path, "direction", words...)), 0)),
	}
	if m, ok := v.Get("entities"); ok {
		if rule.Entities, ok = m.Text(); !ok || rule.Entities == "" {
			c.fail(path+"/entities", "want a type of entity")
		}
	}
	return Relationships(rule)
}

func (c *compiler) policies(v signal.Value, path string) []Policy {
	c.demand(v, path, "of")
	of, _ := v.Get("of")
	if c.err == nil && of.Kind() != signal.KindArray {
		c.fail(path+"/of", "%v, want an array of policies", of.Kind())
	}
	var list []Policy
	for e := range of.Elements() {
		if c.err != nil {
			return nil
		}
		list = append(list, c.policy(e, path+"/of/"+strconv.Itoa(len(list)), nil, nil))
	}
	if c.err == nil && len(list) == 0 {
		c.fail(path+"/of", "no policy")
	}
	return list
}

func (c *compiler) custom(v signal.Value, path string) Policy {
	name, _ := textMember(v, "name")
	m, _ := v.Get("version")
	version, ok := m.Int64()
	if !ok {
		c.fail(path+"/version", "want an integer")
		return nothing{}
	}
	for _, custom := range c.customs {
		if custom.Name != name || custom.Version != version {
			continue
		}
		config, _ := v.Get("config")
		p, err := guard(custom, config)
		if err != nil {
			c.fail(path+"/config", "%v", err)
			return nothing{}
		}
		return p
	}
	c.fail(path+"/name", "no policy %q of version %d is registered", name, version)
	return nothing{}
}

func (c *compiler) demand(v signal.Value, path, name string) {
	if _, ok := v.Get(name); !ok {
		c.fail(path+"/"+name, "missing")
	}
}

func (c *compiler) number(v signal.Value, path, name string, absent, least, most float64) float64 {
	m, ok := v.Get(name)
	if !ok {
		return absent
	}
	f, ok := m.Float64()
	if !ok || f < least || f > most {
		c.fail(path+"/"+name, "want a number from %g to %g", least, most)
		return absent
	}
	return f
}

func (c *compiler) bool(v signal.Value, path, name string, absent bool) bool {
	m, ok := v.Get(name)
	if !ok {
		return absent
	}
	b, ok := m.Bool()
	if !ok {
		c.fail(path+"/"+name, "%v, want true or false", m.Kind())
	}
	return b
}

// word reads one of some words; the first is meant if it is absent.
func (c *compiler) word(v signal.Value, path, name string, words ...string) string {
	m, ok := v.Get(name)
	if !ok {
		return words[0]
	}
	s, _ := m.Text()
	if !slices.Contains(words, s) {
		c.fail(path+"/"+name, "%v, want one of %s", m.Kind(), strings.Join(words, ", "))
		return words[0]
	}
	return s
}

func (c *compiler) names(v signal.Value, path, name string) []string {
	m, ok := v.Get(name)
	if !ok || m.Kind() == signal.KindNull {
		return nil
	}
	if m.Kind() != signal.KindArray || m.Len() > maxNames {
		c.fail(path+"/"+name, "want an array of at most %d names", maxNames)
		return nil
	}
	var list []string
	for e := range m.Elements() {
		s, ok := e.Text()
		if !ok {
			c.fail(path+"/"+name+"/"+strconv.Itoa(len(list)), "%v, want a name", e.Kind())
			return nil
		}
		list = append(list, strings.Clone(s))
	}
	return list
}

func (c *compiler) flags(v signal.Value, path, name string) map[string]bool {
	m, ok := v.Get(name)
	if !ok || m.Kind() == signal.KindNull {
		return nil
	}
	if m.Kind() != signal.KindObject || m.Len() > maxNames {
		c.fail(path+"/"+name, "want an object of at most %d truths", maxNames)
		return nil
	}
	flags := make(map[string]bool, min(m.Len(), len(m)))
	for field, e := range m.Members() {
		b, ok := e.Bool()
		if !ok {
			c.fail(path+"/"+name+"/"+escape(field), "%v, want true or false", e.Kind())
		}
		flags[strings.Clone(field)] = b
	}
	return flags
}
