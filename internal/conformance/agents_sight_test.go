package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// looking sets up a world with agents that look at it.
func looking(world signal.Value, policies map[string]signal.Value) (*sim, error) {
	w, err := newSim("conformance")
	if err != nil {
		return nil, err
	}
	if err := w.keep(w.core.Begin(world)); err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(policies)) {
		if err := w.register(id, policies[id], nil); err != nil {
			return nil, err
		}
	}
	w.settled()
	return w, nil
}

func (s *agentScenario) world() signal.Value {
	return worldDocument(s.input.get("world"), s.typedRelationships())
}

// typedRelationships returns the relations of the world that have types. They
// stand beside the world, or, as a list, in the policy, where the same word with a
// boolean means how relations are shown.
func (s *agentScenario) typedRelationships() *node {
	if typed := s.input.get("typed_relationships", "relationship_types"); typed.given() {
		return typed
	}
	if typed := s.input.get("policy").get("typed_relationships"); typed.kind() == signal.KindArray {
		return typed
	}
	return nil
}

// observers reads the observing agents: one agent with a policy, policies by agent,
// or several agents of one policy.
func (s *agentScenario) observers() (map[string]signal.Value, error) {
	policies := map[string]signal.Value{}
	var err error
	for id, p := range s.input.get("policies", "agents").members() {
		if policies[id], err = readPolicy(p); err != nil {
			return nil, err
		}
	}
	for _, id := range append(textsOf(s.input.get("agents")), textsOf(s.input.get("observers"))...) {
		if policies[id], err = readPolicy(s.input.get("policy")); err != nil {
			return nil, err
		}
	}
	if agent := s.observer(); agent != "" && policies[agent] == nil {
		policies[agent], err = readPolicy(s.input.get("policy"))
	}
	return policies, err
}

func (s *agentScenario) observer() string {
	return s.input.get("agent_id", "agent", "observer", "observer_id").text()
}

func visible(w *sim, agent string, excluding bool) []string {
	view, _ := w.core.View(agent)
	ids := []string{}
	for id := range view.VisibleEntities.Members() {
		ids = append(ids, id)
	}
	return without(ids, agent, excluding)
}

func without(ids []string, agent string, excluding bool) []string {
	if excluding {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == agent })
	}
	return ids
}

// sameVisible compares what an agent sees with ids, or what several see with
// ids by agent.
func (s *agentScenario) sameVisible(what string, w *sim, want *node) {
	excluding := s.expected.get("excluding_self").truth()
	if want.kind() == signal.KindObject {
		for agent, ids := range want.members() {
			s.sameSet(what+"/"+agent, visible(w, agent, excluding), without(ids.texts(), agent, excluding))
		}
		return
	}
	agent := s.observer()
	s.sameSet(what, visible(w, agent, excluding), without(want.texts(), agent, excluding))
}

func judgeVisibility(s *agentScenario) error {
	policies, err := s.observers()
	if err != nil {
		return err
	}
	w, err := looking(s.world(), policies)
	if err != nil {
		return err
	}
	if want := s.expected.get("visible_entities", "visible"); want.given() {
		s.sameVisible("visible_entities", w, want)
	}
	agent := s.observer()
	excluding := s.expected.get("excluding_self").truth()
	seen := visible(w, agent, excluding)
	for _, id := range s.expected.get("visible_includes").texts() {
		s.compare("/visible_includes/"+id, slices.Contains(seen, id), seen, id)
	}
	for _, id := range s.expected.get("not_visible", "hidden", "invisible").texts() {
		s.compare("/not_visible/"+id, !slices.Contains(seen, id), seen, "not "+id)
	}
	if want := s.expected.get("visible_relationships"); want.given() {
		view, _ := w.core.View(agent)
		s.compare("/visible_relationships", equalValues(view.VisibleRelationships, want.all()), view.VisibleRelationships, want)
	}
	return nil
}

func judgeFields(s *agentScenario) error {
	policies, err := s.observers()
	if err != nil {
		return err
	}
	entity := s.input.get("entity_id", "entity", "target_id").text()
	world := s.world()
	w, err := looking(world, policies)
	if err != nil {
		return err
	}
	view, _ := w.core.View(s.observer())
	shown, ok := view.VisibleEntities.Get(entity)
	if !ok {
		return fmt.Errorf("%q is not visible", entity)
	}
	if want := s.expected.get("fields"); want.given() {
		for name, v := range want.members() {
			got, _ := shown.Get(name)
			s.compare("/fields/"+name, equalValues(got, v.all()), got, v)
		}
		entities, _ := world.Get("entities")
		all, _ := entities.Get(entity)
		for name := range all.Members() {
			if want.get(name) == nil {
				_, there := shown.Get(name)
				s.compare("/fields/"+name, !there, "shown", "hidden")
			}
		}
	}
	for _, name := range s.expected.get("hidden_fields", "absent_fields", "hidden").texts() {
		_, there := shown.Get(name)
		s.compare("/hidden_fields/"+name, !there, "shown", "hidden")
	}
	return nil
}

// judgeEvents observes a world before and after a draft, or two worlds one after the
// other, as if a change had led from the first to the second.
func judgeEvents(s *agentScenario) error {
	policies, err := s.observers()
	if err != nil {
		return err
	}
	before := s.input.get("world", "world_before", "before", "old_world", "first_world", "world_1", "world_a")
	after := s.input.get("world_after", "after", "new_world", "second_world", "world_2", "world_b")
	if worlds := s.input.get("worlds"); worlds.given() {
		before, after = worlds.get("before", "old", "world_before"), worlds.get("after", "new", "world_after")
		if worlds.kind() == signal.KindArray && worlds.len() == 2 {
			worlds.asked = true
			before, after = worlds.parts[0], worlds.parts[1]
		}
		if !before.given() || !after.given() {
			return inapplicable("worlds of which none is before and none after")
		}
	}
	typed := s.typedRelationships()
	w, err := looking(worldDocument(before, typed), policies)
	if err != nil {
		return err
	}
	for _, name := range []string{"visible_before", "before"} {
		if want := s.expected.get(name); want.given() {
			s.sameVisible(name, w, want)
		}
	}
	received := func(id string) bool { return len(w.deltas[id]) > 0 }
	then := w
	if after.given() {
		if then, err = looking(worldDocument(after, typed), policies); err != nil {
			return err
		}
		received = func(id string) bool {
			old, _ := w.core.View(id)
			now, _ := then.core.View(id)
			return len(view.Diff(viewDocument(old), viewDocument(now), 0)) > 0
		}
	}
	for _, d := range append(slices.Collect(s.input.get("drafts").elements()), s.input.get("draft")) {
		if !d.given() {
			continue
		}
		if err := then.broadcast(readDraft(d)); err != nil {
			return err
		}
	}
	for _, name := range []string{"visible_after", "after"} {
		if want := s.expected.get(name); want.given() {
			s.sameVisible(name, then, want)
		}
	}
	for _, id := range slices.Concat(s.expected.get("receives").texts(), s.expected.get("does_not_receive").texts()) {
		if policies[id] == nil {
			return inapplicable("%q looks by no policy", id)
		}
	}
	for _, id := range s.expected.get("receives").texts() {
		s.compare("/receives/"+id, received(id), "nothing", "a delta")
	}
	for _, id := range s.expected.get("does_not_receive").texts() {
		s.compare("/does_not_receive/"+id, !received(id), "a delta", "nothing")
	}
	s.expected.get("excluding_self").truth()
	return nil
}

func viewDocument(v view.View) signal.Value {
	return made(document{"visible_entities": v.VisibleEntities, "visible_relationships": v.VisibleRelationships})
}

func judgeViewSeq(s *agentScenario) error {
	policies, err := s.observers()
	if err != nil {
		return err
	}
	w, err := looking(s.world(), policies)
	if err != nil {
		return err
	}
	agent := s.expected.get("observations_for", "agent_id").text()
	if agent == "" && len(policies) == 1 {
		agent = slices.Sorted(maps.Keys(policies))[0]
	}
	var seqs []int64
	increasing, bounded := true, true
	last := w.base
	for d := range s.input.get("drafts").elements() {
		if err := w.broadcast(readDraft(d)); err != nil {
			return err
		}
		for _, delta := range w.deltas[agent][len(seqs):] {
			increasing = increasing && delta.ViewSeq > last
			bounded = bounded && delta.ViewSeq <= w.core.Seq()
			last = delta.ViewSeq
			seqs = append(seqs, int64(delta.ViewSeq-w.base))
		}
	}
	for _, c := range []struct {
		name string
		got  bool
	}{
		{"strictly_increasing", increasing},
		{"each_at_most_global_seq", bounded},
		{"last_view_seq_equals_global_seq", last == w.core.Seq()},
	} {
		s.sameTruth(c.name, c.got, s.expected.get(c.name))
	}
	if want := s.expected.get("view_seqs"); want.given() {
		s.compare("/view_seqs", equalValues(made(seqs), want.all()), seqs, want)
	}
	s.sameCount("last_view_seq", int64(last-w.base), s.expected.get("last_view_seq"))
	s.sameCount("global_seq", int64(w.core.Seq()-w.base), s.expected.get("global_seq"))
	s.sameCount("observation_count", int64(len(seqs)), s.expected.get("observation_count", "observations", "count"))
	return nil
}
