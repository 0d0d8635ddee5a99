package view_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// scripted is a policy with given answers, and plain is one without those of a Viewer and a
// Listener.
type scripted struct {
	plain
	covers   bool
	receives view.Reception
}

type plain struct{ sees, shows bool }

func (p plain) Sees(*view.Viewpoint, string) bool                        { return p.sees }
func (p plain) Shows(*view.Viewpoint, string, string) bool               { return p.shows }
func (plain) Dependencies() view.Dependencies                            { return view.Opaque() }
func (s scripted) Covers(*view.Viewpoint, world.Position) bool           { return s.covers }
func (s scripted) Receives(*view.Viewpoint, world.Effect) view.Reception { return s.receives }

// Of up to three policies with any answers, All asks for the agreement of all and Any for that
// of one; what a policy does not decide, the general rule does.
func TestCombinedPolicies(t *testing.T) {
	truths := []bool{false, true}
	var each []view.Policy
	for _, sees := range truths {
		for _, shows := range truths {
			each = append(each, plain{sees, shows})
			for _, covers := range truths {
				for _, r := range []view.Reception{view.ByRule, view.Received, view.NotReceived} {
					each = append(each, scripted{plain{sees, shows}, covers, r})
				}
			}
		}
	}
	covers := func(p view.Policy) bool {
		s, ok := p.(scripted)
		return !ok || s.covers
	}
	receives := func(p view.Policy) view.Reception {
		if s, ok := p.(scripted); ok {
			return s.receives
		}
		return view.ByRule
	}
	count := func(list []view.Policy, f func(view.Policy) bool) (n int) {
		for _, p := range list {
			if f(p) {
				n++
			}
		}
		return n
	}
	vp := &view.Viewpoint{Agent: "me"}
	check := func(list ...view.Policy) {
		sees := func(p view.Policy) bool { return p.Sees(vp, "it") }
		shows := func(p view.Policy) bool { return p.Shows(vp, "it", "f") }
		both := func(p view.Policy) bool { return sees(p) && shows(p) }
		is := func(r view.Reception) int { return count(list, func(p view.Policy) bool { return receives(p) == r }) }
		every, one := view.All(list...), view.Any(list...)
		require.Equal(t, count(list, sees) == len(list), every.Sees(vp, "it"))
		require.Equal(t, count(list, shows) == len(list), every.Shows(vp, "it", "f"))
		require.Equal(t, count(list, covers) == len(list), every.(view.Viewer).Covers(vp, world.Position{}))
		require.Equal(t, count(list, sees) > 0, one.Sees(vp, "it"))
		require.Equal(t, count(list, both) > 0, one.Shows(vp, "it", "f"))
		require.Equal(t, count(list, shows) > 0, one.Shows(vp, "me", "f"), "its own entity needs no policy to see it")
		require.Equal(t, count(list, covers) > 0, one.(view.Viewer).Covers(vp, world.Position{}))
		strict, open := view.ByRule, view.NotReceived
		switch {
		case is(view.NotReceived) > 0:
			strict = view.NotReceived
		case is(view.Received) > 0:
			strict = view.Received
		}
		switch {
		case is(view.Received) > 0:
			open = view.Received
		case is(view.ByRule) > 0:
			open = view.ByRule
		}
		require.Equal(t, strict, every.(view.Listener).Receives(vp, world.Effect{}))
		require.Equal(t, open, one.(view.Listener).Receives(vp, world.Effect{}))
	}
	check()
	for _, a := range each {
		check(a)
		not := view.Not(a)
		require.Equal(t, !a.Sees(vp, "it"), not.Sees(vp, "it"))
		require.True(t, not.Shows(vp, "it", "f"))
		require.Equal(t, !covers(a), not.(view.Viewer).Covers(vp, world.Position{}))
		_, listens := not.(view.Listener)
		require.False(t, listens, "the general rule decides about effects")
		for _, b := range each {
			check(a, b)
			check(a, b, each[7])
			check(each[11], a, b)
		}
	}
}

// panicking is a policy of the program's own that panics.
type panicking struct{}

func (panicking) Sees(*view.Viewpoint, string) bool                     { panic("sees") }
func (panicking) Shows(*view.Viewpoint, string, string) bool            { panic("shows") }
func (panicking) Covers(*view.Viewpoint, world.Position) bool           { panic("covers") }
func (panicking) Receives(*view.Viewpoint, world.Effect) view.Reception { panic("receives") }
func (panicking) Dependencies() view.Dependencies                       { return view.Opaque() }

// A policy of the program's own is asked as it is; one that cannot be made is refused, and one
// that panics denies what it was asked.
func TestCustomPolicies(t *testing.T) {
	customs := []view.Custom{
		{Name: "none", Compile: func(signal.Value) (view.Policy, error) { return nil, nil }},
		{Name: "fails", Compile: func(signal.Value) (view.Policy, error) { return plain{}, errors.New("no such thing") }},
		{Name: "panics", Compile: func(signal.Value) (view.Policy, error) { panic("unmade") }},
		{Name: "made", Version: 2, Compile: func(config signal.Value) (view.Policy, error) {
			return scripted{plain{config.BoolOf("sees"), config.BoolOf("shows")}, config.BoolOf("covers"), view.Received}, nil
		}},
		{Name: "panicking", Compile: func(signal.Value) (view.Policy, error) { return panicking{}, nil }},
	}
	for text, want := range map[string]string{
		`{"policy":"custom","name":"none","version":0}`:   "the method Compile returned no policy",
		`{"policy":"custom","name":"fails","version":0}`:  "no such thing",
		`{"policy":"custom","name":"panics","version":0}`: "the policy panicked: unmade",
		`{"policy":"custom","name":"made","version":1}`:   "made",
		`{"policy":"custom","name":"other","version":0}`:  "other",
	} {
		_, err := view.CompilePolicy(parse(t, text), customs)
		require.ErrorIs(t, err, view.ErrPolicy)
		require.ErrorContains(t, err, want)
	}
	w, err := world.ParseWorld(parse(t, `{"entities":{"me":{"f":1},"it":{"f":1}}}`))
	require.NoError(t, err)
	observer := func(policy string) *view.Observer {
		compiled, err := view.CompilePolicy(parse(t, policy), customs)
		require.NoError(t, err)
		o := view.NewObserver("me", compiled, 0)
		o.Begin(w.ReadOnly, 0)
		return o
	}
	for policy, want := range map[string]string{
		`{"policy":"custom","name":"made","version":2,"config":{"sees":true,"shows":true}}`: `{"it":{"f":1},"me":{"f":1}}`,
		`{"policy":"custom","name":"made","version":2,"config":{"sees":true}}`:              `{"it":{},"me":{}}`,
		`{"policy":"custom","name":"made","version":2,"config":{"shows":true}}`:             `{"me":{"f":1}}`,
		`{"policy":"custom","name":"panicking","version":0}`:                                `{"me":{}}`,
	} {
		require.Equal(t, want, observer(policy).View().VisibleEntities.String(), policy)
	}
	// What happens at a place is observed if the place is covered, or if the policy says so.
	e := world.Effect{Kind: "Flash", SourceID: "elsewhere", Payload: parse(t, `{"position":[1,2]}`)}
	require.True(t, observer(`{"policy":"custom","name":"made","version":2}`).Observes(w.ReadOnly, e))
	require.False(t, observer(`{"policy":"custom","name":"panicking","version":0}`).Observes(w.ReadOnly, e))
	require.False(t, observer(`{"policy":"any","of":[{"policy":"custom","name":"panicking","version":0}]}`).Observes(w.ReadOnly, e))
	require.True(t, observer(`{"policy":"any","of":[{"policy":"custom","name":"panicking","version":0},{"policy":"custom","name":"made","version":2}]}`).Observes(w.ReadOnly, e))
	require.PanicsWithValue(t, "agents: CompilePolicy: of cannot be another's member", func() { _, _ = view.CompilePolicy(parse(t, `{}`), nil, "latency_model", "of") })
	require.PanicsWithValue(t, "agents: CompilePolicy: policy cannot be another's member", func() { _, _ = view.CompilePolicy(parse(t, `{}`), nil, "policy") })
	_, err = view.CompilePolicy(parse(t, `{"latency_model":7}`), nil, "latency_model")
	require.NoError(t, err)
	whole := view.NewObserver("me", view.NewCompiledPolicy(nil, view.Options{}), 0)
	whole.Begin(w.ReadOnly, 0)
	require.Equal(t, `{"it":{"f":1},"me":{"f":1}}`, whole.View().VisibleEntities.String(), "without a policy everything is visible")
}
