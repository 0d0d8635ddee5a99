package conformance

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// people sets up a world with the agents of a scenario, including those that only
// steps name.
func people(name string, input *node) (*sim, error) {
	w, err := newSim(name)
	if err != nil {
		return nil, err
	}
	if err := w.keep(w.core.Configure(configured(input.get("config")))); err != nil {
		return nil, err
	}
	if world := input.get("world"); world.given() {
		if err := w.keep(w.core.Begin(worldDocument(world, input.get("typed_relationships")))); err != nil {
			return nil, err
		}
	}
	agentsOf := input.get("agents")
	for id, a := range agentsOf.members() {
		if _, there := w.core.World().Entity(id); there && !a.get("position").given() {
			continue
		}
		if err := w.create(id, a); err != nil {
			return nil, err
		}
	}
	env := input.get("env_entity", "env_entities")
	if env.given() && env.kind() != signal.KindArray {
		if err := w.create(env.get("id", "entity_id").text(), env); err != nil {
			return nil, err
		}
	}
	for e := range env.elements() {
		if err := w.create(e.get("id", "entity_id").text(), e); err != nil {
			return nil, err
		}
	}
	for id, a := range agentsOf.members() {
		policy, err := readPolicy(a)
		if err != nil {
			return nil, err
		}
		var permissions []string
		if p := a.get("permissions"); p.given() {
			permissions = append([]string{}, p.texts()...)
		}
		if err := w.register(id, policy, permissions); err != nil {
			return nil, err
		}
	}
	if !agentsOf.given() {
		var known []string
		for step := range input.get("steps").elements() {
			id := step.get("submit").get("agent_id").text()
			if id == "" || slices.Contains(known, id) {
				continue
			}
			known = append(known, id)
			if err := errors.Join(w.create(id, nil), w.register(id, made(document{"distance_limit": 1000.0}), nil)); err != nil {
				return nil, err
			}
		}
	}
	w.settled()
	return w, nil
}

// create makes an entity, an agent unless it says otherwise.
func (w *sim) create(id string, n *node) error {
	data := document{"type": "agent", "name": id}
	for _, name := range []string{"type", "name", "team"} {
		if v := n.get(name); v.given() {
			data[name] = v.all()
		}
	}
	for name, v := range n.get("entity", "entity_data").members() {
		data[name] = v.all()
	}
	payload := document{"entity_id": id, "entity_data": data}
	if at := n.get("position"); at.given() {
		payload["position"] = at.all()
	}
	return w.broadcast(agents.Submission{Draft: &agents.EffectDraft{
		Kind: world.KindEntityCreated, SourceID: "set-up", SchemaVersion: world.SchemaVersion, Payload: made(payload),
	}})
}

// intent reads an intent whose numbers count from the state after set-up; 1.0
// is 1.
func (w *sim) intent(n *node) (agents.Intent, error) {
	o := document{}
	for name, m := range n.members() {
		o[name] = m.all()
		if (name == "context_seq" || name == "priority") && m.kind() == signal.KindFloat && m.number() == math.Trunc(m.number()) {
			o[name] = m.integer()
		}
	}
	in, err := agents.ParseIntent(made(o))
	in.ContextSeq += w.base
	return in, err
}

// step does one step and returns how it ended, in the words of a scenario; none
// if it is one that only lets time pass.
func (w *sim) step(n *node, line *agents.Intake) ([]string, error) {
	w.refused = append(w.refused, nil)
	var err error
	at, wait := n.get("at_ms", "t_ms"), n.get("advance_ms", "wait_ms")
	if at.given() {
		err = w.at(at.millis())
	}
	if wait.given() {
		err = errors.Join(err, w.at(w.now+wait.millis()))
	}
	if err != nil {
		return nil, err
	}
	if d := n.get("broadcast", "emit"); d.given() {
		o, records := w.decide(readDraft(d))
		if !o.OK() {
			return said(o), nil
		}
		return []string{"BROADCAST"}, w.keep(records, nil)
	}
	submit := n.get("submit")
	switch {
	case submit.given():
	case at.given() || wait.given():
		return nil, nil
	default:
		return nil, inapplicable("a step that the harness does not know: %v", n)
	}
	in, err := w.intent(submit)
	if err != nil {
		return []string{"INVALID"}, nil //nolint:nilerr // that it cannot be read is the outcome
	}
	if line != nil {
		return w.wait(line, in), nil
	}
	o, records := w.core.Submit(w.now, in)
	if w.door != nil {
		if err := w.door.submit(agents.Submission{Intent: &in}, w.core.Number(in.AgentID, in.ContextSeq), o); err != nil {
			return nil, err
		}
	}
	if err := w.keep(records, nil); err != nil {
		return nil, err
	}
	w.refused[len(w.refused)-1] = o.Rejection
	key := [2]string{in.AgentID, in.ReqID}
	switch first := w.first[key]; {
	case o.Status == agents.Accepted:
		w.first[key] = o
	case o.Status == agents.Duplicate && (o.GlobalSeq != first.GlobalSeq || o.UUID != first.UUID):
		return nil, fmt.Errorf("the duplicate of %q has the outcome %d, the first had %d", in.ReqID, o.GlobalSeq, first.GlobalSeq)
	}
	return said(o), nil
}

// wait puts an intent into the queue of a paused consumer and returns the answer. An
// admitted intent is accepted, unless the engine would refuse it now. Validation
// comes after the queue, so both words are right for an intent that only validation
// would refuse.
func (w *sim) wait(line *agents.Intake, in agents.Intent) []string {
	o := line.Offer(w.core, w.now, agents.Submission{Intent: &in})
	switch {
	case o.Joined:
		return []string{"DUPLICATE"}
	case o.Ticket == 0:
		return said(o.Outcome)
	}
	turn, _ := w.core.Submit(w.now, in)
	switch {
	case turn.OK():
		return []string{"ACCEPTED"}
	case turn.Rejection.Code == agents.ErrInvalid:
		return append(said(turn), "ACCEPTED")
	default:
		return said(turn)
	}
}

// said returns the words of a scenario for an outcome. A duplicate of an intent that
// was finally refused has both words: its answer is the first outcome.
func said(o agents.Outcome) []string {
	var words []string
	if o.Status == agents.Duplicate {
		words = append(words, "DUPLICATE")
	}
	switch {
	case o.OK():
		if o.Status == agents.Accepted {
			words = append(words, "ACCEPTED")
		}
	case o.Rejection.Code == agents.ErrForbidden:
		words = append(words, "DENIED")
	case o.Rejection.Code == agents.ErrInvalid || o.Rejection.Code == agents.ErrInvalidIntent:
		words = append(words, "INVALID")
	default:
		words = append(words, string(o.Rejection.Code))
	}
	return words
}

// resultWords are other words for those of said.
var resultWords = map[string]string{
	"OK": "ACCEPTED", "STALE": "STALE_CONTEXT", "QUOTA": "QUOTA_EXCEEDED",
	"BACKPRESSURE": "QUEUE_FULL", "BACKPRESSURE_EXCEEDED": "QUEUE_FULL", "DEFERRED": "QUEUE_FULL",
	"FORBIDDEN": "DENIED", "PERMISSION_DENIED": "DENIED",
	"INTENT_VALIDATION_FAILED": "INVALID", "INVALID_INTENT": "INVALID", "VALIDATION_FAILED": "INVALID",
	"COOLDOWN": "COOLDOWN_ACTIVE", "UNKNOWN_AGENT": "INVALID_AGENT_ID",
}

// sameResults compares how steps ended; of a list each word is allowed.
func (s *agentScenario) sameResults(got [][]string, want *node) {
	if want.len() != len(got) {
		s.compare("/step_results", false, fmt.Sprint(len(got), " results"), want)
		return
	}
	i := 0
	for e := range want.elements() {
		ok := false
		for _, word := range e.texts() {
			word = canon(word)
			if other, known := resultWords[word]; known {
				word = other
			}
			ok = ok || slices.Contains(got[i], word)
		}
		s.compare(fmt.Sprintf("/step_results/%d", i), ok, got[i], e)
		i++
	}
}

// judgeSubmit runs steps in one world or in several. With processing paused
// no intent is taken from the queue.
func judgeSubmit(s *agentScenario) error {
	s.input.get("drain_observations_after_each_step").truth() // delivered observations count, fetched or not
	worlds := map[string]*sim{}
	names := s.input.get("worlds")
	single := !names.given()
	var err error
	switch {
	case single:
		worlds[""], err = people("conformance", s.input)
	case names.kind() == signal.KindObject:
		for name, input := range names.members() {
			if input.get("config") == nil && s.input.get("config") != nil {
				return inapplicable("worlds without a configuration of their own")
			}
			if worlds[name], err = people(name, input); err != nil {
				return err
			}
		}
	default:
		for _, name := range names.texts() {
			if worlds[name], err = people(name, s.input); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	lines := map[string]*agents.Intake{}
	if processing := s.input.get("processing"); processing.given() {
		if processing.text() != "paused" {
			return inapplicable("processing %v", processing)
		}
		for name := range worlds {
			lines[name] = &agents.Intake{}
		}
	}
	var results [][]string
	i := 0
	for step := range s.input.get("steps").elements() {
		name := ""
		if !single {
			name = step.get("world", "world_id").text()
		}
		w, ok := worlds[name]
		if !ok {
			return fmt.Errorf("/steps/%d: no world %q", i, name)
		}
		words, err := w.step(step, lines[name])
		if err != nil {
			return fmt.Errorf("/steps/%d: %w", i, err)
		}
		if words != nil {
			results = append(results, words)
		}
		i++
	}
	for name, want := range s.expected.members() {
		switch {
		case name == "step_results":
			s.sameResults(results, want)
		case single:
			s.sameEnd(name, worlds[""], want)
		default:
			s.sameEnds(name, worlds, want)
		}
	}
	return nil
}

// sameEnds compares how worlds ended: each by its name, or all alike.
func (s *agentScenario) sameEnds(name string, worlds map[string]*sim, want *node) {
	byWorld := want.kind() == signal.KindObject && !slices.ContainsFunc(want.names, func(n string) bool { return worlds[n] == nil })
	for _, world := range slices.Sorted(maps.Keys(worlds)) {
		of := want
		if byWorld {
			if of = want.get(world); of == nil {
				continue
			}
		}
		alike := s.differs == nil
		if s.sameEnd(name, worlds[world], of); alike && s.differs != nil {
			s.differs = fmt.Errorf("world %q: %w", world, s.differs)
		}
	}
}
