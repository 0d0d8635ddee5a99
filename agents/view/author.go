package view

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/signal"
)

// CustomPolicy is the policy that the program registered under a name and version with a
// [Custom]. It stands for that policy in [MarshalPolicy], where config becomes the member
// config; absent means none. By itself, before [CompilePolicy] has read it, it sees
// nothing.
func CustomPolicy(name string, version int64, config signal.Value) Policy {
	return customPolicy{name: name, version: version, config: config}
}

type customPolicy struct {
	nothing
	name    string
	version int64
	config  signal.Value
}

// MarshalPolicy returns a policy of this package's functions in the form that
// [CompilePolicy] reads and that is recorded with an agent, so a program writes
//
//	policy, err := view.MarshalPolicy(view.Any(view.Distance(10, false), view.Allies("name")), view.Options{})
//
// in place of JSON. The form is judged by CompilePolicy alone: a distance below 0 is
// refused there, with its JSON pointer. A policy of another package has no form; the
// error is a [*PolicyError] with the place where it stands. Use [CustomPolicy] for it.
//
// Options that are zero have no member. A nil policy is [Everything].
func MarshalPolicy(p Policy, options Options) (signal.Value, error) {
	if p == nil {
		p = Everything()
	}
	o, err := formOf(p, "", options.Remember > 0)
	if err != nil {
		return nil, err
	}
	if options.Remember > 0 {
		inner := o.Value()
		o = jsonvalue.Fields{{"policy", jsonvalue.Text("fog")}, {"of", inner}, {"capacity", jsonvalue.Int(int64(options.Remember))}}
	}
	if options.MaxPatchOps != 0 {
		o = append(o, member("max_patch_ops", jsonvalue.Int(int64(options.MaxPatchOps))))
	}
	if options.HidePositions {
		o = append(o, member("include_spatial_index", signal.Bool(false)))
	}
	if options.TypedRelationships {
		o = append(o, member("typed_relationships", signal.Bool(true)))
	}
	v, rest, err := signal.CheckValue(o.Value())
	if err != nil || len(rest) > 0 {
		return nil, &PolicyError{"", "a name that is not UTF-8, or a config that is no value"}
	}
	return v, nil
}

func member(name string, v signal.Value) jsonvalue.NamedValue { return jsonvalue.NamedValue{name, v} }

// formOf returns the members of the form of a policy at a JSON pointer.
func formOf(p Policy, path string, within bool) (jsonvalue.Fields, error) {
	if within {
		path += "/of"
	}
	named := func(name string, members ...jsonvalue.NamedValue) (jsonvalue.Fields, error) {
		return append(jsonvalue.Fields{member("policy", jsonvalue.Text(name))}, members...), nil
	}
	list := func(name string, of []Policy) (jsonvalue.Fields, error) {
		values := make([]signal.Value, len(of))
		for i, p := range of {
			o, err := formOf(p, fmt.Sprintf("%s/of/%d", path, i), false)
			if err != nil {
				return nil, err
			}
			values[i] = o.Value()
		}
		return named(name, member("of", jsonvalue.Array(values)))
	}
	names := func(name string, list []string) jsonvalue.NamedValue { return member(name, jsonvalue.Names(list)) }
	switch p := p.(type) {
	case open:
		return named("everything")
	case nothing:
		return named("self")
	case all:
		if len(p) == 0 {
			return named("everything")
		}
		return list("all", p)
	case anyOf:
		if len(p) == 0 {
			return named("self")
		}
		return list("any", p)
	case not:
		inner, err := formOf(p.p, path, true)
		if err != nil {
			return nil, err
		}
		return named("not", member("of", inner.Value()))
	case distancePolicy:
		return named("distance", member("limit", jsonvalue.Float(p.limit)), member("unplaced", signal.Bool(p.unplaced)))
	case conePolicy:
		return named("cone", member("range", jsonvalue.Float(p.radius)), member("angle", jsonvalue.Float(p.angle)))
	case allyPolicy:
		return named("team", names("fields", p.fields))
	case channelPolicy:
		return named("channel", names("channels", p.channels))
	case *relationshipPolicy:
		members := []jsonvalue.NamedValue{
			names("types", p.rule.Types), member("depth", jsonvalue.Int(int64(p.rule.Depth))),
			member("direction", jsonvalue.Text([...]string{"out", "in", "both"}[min(p.rule.Direction, EitherWay)])),
		}
		if p.rule.Entities != "" {
			members = append(members, member("entities", jsonvalue.Text(p.rule.Entities)))
		}
		return named("relationships", members...)
	case fieldPolicy:
		if len(p.rules) == 1 {
			return named("fields", p.rules[0].form()...)
		}
		each := make([]Policy, len(p.rules))
		for i, rule := range p.rules {
			each[i] = Fields(rule)
		}
		return formOf(All(each...), path, false)
	case *conversationPolicy:
		return named("conversation")
	case customPolicy:
		members := []jsonvalue.NamedValue{member("name", jsonvalue.Text(p.name)), member("version", jsonvalue.Int(p.version))}
		if p.config != nil {
			members = append(members, member("config", p.config))
		}
		return named("custom", members...)
	default:
		return nil, &PolicyError{path, fmt.Sprintf("a %T has no form; register it as a Custom, and name it with CustomPolicy", p)}
	}
}

// form returns the members of the policy fields.
func (r FieldRule) form() []jsonvalue.NamedValue {
	flags := make(jsonvalue.Fields, 0, len(r.Fields))
	for name, shown := range r.Fields {
		flags = append(flags, member(name, signal.Bool(shown)))
	}
	return []jsonvalue.NamedValue{
		member("fields", flags.Sorted()), member("types", jsonvalue.Names(r.Types)), member("of", jsonvalue.Text(ofWords[min(int(r.Of), len(ofWords)-1)])),
	}
}
