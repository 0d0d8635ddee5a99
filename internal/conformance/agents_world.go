package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// sim runs one world as an engine would: it folds what is decided, at a clock
// that the scenario sets.
type sim struct {
	core    *agents.Core
	now     time.Duration
	base    uint64 // the world's sequence number after set-up
	deltas  map[string][]agents.Delta
	records []signal.Value // of the effects, as kept
	log     []signal.Value // the effects, as recorded
	gone    []agents.Cancellation
	first   map[[2]string]agents.Outcome // of each accepted request
}

func newSim(world string) (*sim, error) {
	core, err := agents.NewCore(agents.Options{})
	if err != nil {
		return nil, err
	}
	core.Bind(world, nil)
	return &sim{core: core, deltas: map[string][]agents.Delta{}, first: map[[2]string]agents.Outcome{}}, nil
}

// keep folds records.
func (w *sim) keep(records []agents.Record, err error) error {
	if err != nil {
		return err
	}
	for _, r := range records {
		out := w.core.Apply(w.now, r)
		if out.Err != nil {
			return out.Err
		}
		if r.Word == agents.WordEffect {
			w.records = append(w.records, r.Value)
		}
		w.take(out)
	}
	return nil
}

func (w *sim) take(out agents.Applied) {
	for _, d := range out.Deliveries {
		w.deltas[d.Agent] = append(w.deltas[d.Agent], d.Delta)
	}
	w.gone = append(w.gone, out.Cancellations...)
	if out.Effect != nil {
		w.log = append(w.log, out.Effect.Value())
	}
}

// at lets time pass, to the deadlines of generations and over them.
func (w *sim) at(now time.Duration) error {
	w.now = max(w.now, now)
	w.take(w.core.Advance(w.now))
	expired := w.core.Expire(w.now)
	for _, r := range expired {
		agent, _ := r.Value.Get("agent_id")
		req, _ := r.Value.Get("req_id")
		a, _ := agent.Text()
		id, _ := req.Text()
		w.gone = append(w.gone, agents.Cancellation{Agent: a, ReqID: id, Reason: agents.ReasonTimeout, At: w.now})
	}
	return w.keep(expired, nil)
}

func (w *sim) broadcast(s agents.Submission) error {
	o, records := w.decide(s)
	if err := o.Err(); err != nil {
		return err
	}
	return w.keep(records, nil)
}

// decide decides a lone submission.
func (w *sim) decide(s agents.Submission) (agents.Outcome, []agents.Record) {
	d := w.core.Decide(w.now, agents.Quantum{}, []agents.Submission{s})
	return d.Outcomes[0], d.Records
}

func (w *sim) register(id string, policy signal.Value, permissions []string) error {
	return w.keep(w.core.Register(agents.Registration{AgentID: id, Policy: policy, Permissions: permissions}))
}

// settled forgets what set-up did: the scenario counts from here.
func (w *sim) settled() {
	w.base = w.core.Seq()
	w.log, w.gone, w.records = nil, nil, nil
	clear(w.deltas)
}

// worldDocument reads a world; relations with types may stand beside it. They
// say no more than the plain ones, so a form of them that nobody can read is left out.
func worldDocument(world, typed *node) signal.Value {
	doc := document{}
	for name, m := range world.members() {
		switch {
		case name == "typed_relationships" && m.given():
			typed = m
		case m.given():
			doc[name] = m.all()
		}
	}
	plain := made(doc)
	if !typed.given() {
		return plain
	}
	doc["typed_relationships"] = typedRelations(typed, world.get("entities"))
	if v := made(doc); readable(v) {
		return v
	}
	return plain
}

func readable(world signal.Value) bool {
	_, err := agents.ParseWorld(world)
	return err == nil
}

// The words for the parts of a typed relation.
var (
	fromWords = []string{"from", "from_entity", "from_id", "source", "source_id"}
	toWords   = []string{"to", "to_entity", "to_id", "target", "target_id"}
	typeWords = []string{"type", "relationship_type", "relation", "kind"}
)

// typedRelations takes many forms for the engine's list of [from, to, type]:
// that list, objects with the parts, by source and target {"a":{"b":"friend"}}, by
// source and type {"a":{"friend":["b"]}}, by type {"friend":[["a","b"]]}, and
// lists of objects by source.
func typedRelations(v, entities *node) any {
	known := func(id string) bool { return entities.get(id) != nil }
	var list [][]string
	add := func(from, to, typ string) { list = append(list, []string{from, to, typ}) }
	one := func(from string, n *node) {
		switch parts := textsOf(n); {
		case len(parts) == 3 && known(parts[2]) && !known(parts[1]):
			add(parts[0], parts[2], parts[1])
		case len(parts) == 3:
			add(parts[0], parts[1], parts[2])
		case len(parts) == 2 && known(parts[0]) && known(parts[1]):
			add(parts[0], parts[1], from)
		case len(parts) == 2:
			add(from, parts[0], parts[1])
		case n.kind() == signal.KindObject:
			if f := n.get(fromWords...); f.given() {
				from = f.text()
			}
			add(from, n.get(toWords...).text(), n.get(typeWords...).text())
		}
	}
	for e := range v.elements() {
		one("", e)
	}
	for from, m := range v.members() {
		for e := range m.elements() {
			one(from, e)
		}
		for name, e := range m.members() {
			for _, word := range e.texts() {
				if known(name) {
					add(from, name, word)
				} else {
					add(from, word, name)
				}
			}
		}
	}
	v.all()
	return list
}

// readDraft reads a draft, and what an order may go by.
func readDraft(v *node) agents.Submission {
	draft := agents.Draft{
		Kind: v.get("kind").text(), Payload: v.get("payload").all(), SourceID: v.get("source_id").text(),
		SchemaVersion: v.get("schema_version").text(),
	}
	return agents.Submission{
		Draft: &draft, UUID: v.get("uuid").text(), Priority: int(v.get("priority").integer()),
		SimTime: v.get("sim_time").number(), Timed: v.get("sim_time").given(),
	}
}

// looking sets up a world with agents that look at it.
func looking(world signal.Value, policies map[string]signal.Value) (*sim, error) {
	w, err := newSim("conformance")
	if err != nil {
		return nil, err
	}
	if err := w.keep(w.core.Begin(world)); err != nil {
		return nil, err
	}
	for _, id := range sortedKeys(policies) {
		if err := w.register(id, policies[id], nil); err != nil {
			return nil, err
		}
	}
	w.settled()
	return w, nil
}

func (s *agentScenario) world() signal.Value {
	return worldDocument(s.input.get("world"), s.input.get("typed_relationships", "relationship_types"))
}

// observers reads who looks: one agent with a policy, policies by agent, or
// several agents of one policy.
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

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
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
		s.compare("/visible_relationships", same(view.VisibleRelationships, want.all()), view.VisibleRelationships, want)
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
			s.compare("/fields/"+name, same(got, v.all()), got, v)
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

// judgeEvents looks at a world, lets a draft happen and looks again; or it
// looks at one world and then at another, as if something had made it so.
func judgeEvents(s *agentScenario) error {
	policies, err := s.observers()
	if err != nil {
		return err
	}
	before := s.input.get("world", "world_before", "before", "old_world")
	after := s.input.get("world_after", "after", "new_world")
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
	typed := s.input.get("typed_relationships")
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
			return len(agents.Diff(viewDocument(old), viewDocument(now), 0)) > 0
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

func viewDocument(v agents.View) signal.Value {
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
		agent = sortedKeys(policies)[0]
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
		s.compare("/view_seqs", same(made(seqs), want.all()), seqs, want)
	}
	s.sameCount("last_view_seq", int64(last-w.base), s.expected.get("last_view_seq"))
	s.sameCount("global_seq", int64(w.core.Seq()-w.base), s.expected.get("global_seq"))
	s.sameCount("observation_count", int64(len(seqs)), s.expected.get("observation_count", "observations", "count"))
	return nil
}
