package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/schematest"
	"github.com/sajou-dev/sajou-go/signal"
)

// sim runs one world as an engine would: it folds what is decided, at a clock
// that the scenario sets.
type sim struct {
	core    *agents.Core
	now     time.Duration
	base    uint64 // the world's sequence number after set-up
	deltas  map[string][]view.Delta
	records []signal.Value // of the effects, as kept
	log     []signal.Value // the effects, as recorded
	gone    []agents.Cancellation
	first   map[[2]string]agents.Outcome // of each accepted request
	refused []*agents.Rejection          // by step; nil for one that was not

	permissions map[string][]string // of each agent, as registered

	door *door // nil, or repeats everything through sockets
}

func newSim(world string) (*sim, error) {
	core, err := agents.NewCore(agents.Options{})
	if err != nil {
		return nil, err
	}
	core.Bind(world, nil)
	w := &sim{
		core: core, deltas: map[string][]view.Delta{}, first: map[[2]string]agents.Outcome{}, permissions: map[string][]string{},
	}
	if doorOf != nil {
		w.door, err = doorOf(world)
	}
	return w, err
}

// keep folds records.
func (w *sim) keep(records []signal.Record, err error) error {
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
		if w.door != nil {
			if err := w.door.setUp(r); err != nil {
				return err
			}
		}
	}
	return w.settleDoor()
}

// settleDoor compares the deltas and cancellations with those through the door, unless a
// submission is still to be repeated there.
func (w *sim) settleDoor() error {
	if w.door == nil {
		return nil
	}
	return w.door.settle(w.now)
}

func (w *sim) take(out agents.Applied) {
	for _, d := range out.Deliveries {
		mustValidate(view.DeltaSchema(), d.Delta.Value())
		w.deltas[d.Agent] = append(w.deltas[d.Agent], d.Delta)
	}
	w.gone = append(w.gone, out.Cancellations...)
	if w.door != nil {
		w.door.deltas = append(w.door.deltas, out.Deliveries...)
		w.door.stops = append(w.door.stops, out.Cancellations...)
	}
	if out.Effect != nil {
		mustValidate(agentworld.EffectSchema(), out.Effect.WithRequest())
		w.log = append(w.log, out.Effect.Value())
	}
}

// at lets time pass, to the deadlines of generations and over them.
func (w *sim) at(now time.Duration) error {
	w.now = max(w.now, now)
	w.take(w.core.Advance(w.now))
	if w.door != nil {
		if err := w.door.world.Advance(context.Background(), w.now); err != nil {
			return err
		}
	}
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
func (w *sim) decide(s agents.Submission) (agents.Outcome, []signal.Record) {
	d := w.core.Decide(w.now, agents.Quantum{}, []agents.Submission{s})
	for _, o := range d.Outcomes {
		mustValidate(agents.OutcomeSchema(), o.Value())
	}
	if w.door != nil {
		if err := w.door.submit(s, 0, d.Outcomes[0]); err != nil {
			panic(err)
		}
	}
	return d.Outcomes[0], d.Records
}

func (w *sim) register(id string, policy signal.Value, permissions []string) error {
	records, err := w.core.Register(agents.Registration{AgentID: id, Policy: policy, Permissions: permissions})
	for _, r := range records {
		granted, _ := r.Value.Get("permissions")
		for p := range granted.Elements() {
			name, _ := p.Text()
			w.permissions[id] = append(w.permissions[id], name)
		}
	}
	return w.keep(records, err)
}

// settled forgets what set-up did: the scenario counts from here.
func (w *sim) settled() {
	w.base = w.core.Seq()
	w.log, w.gone, w.records = nil, nil, nil
	clear(w.deltas)
}

// worldDocument reads a world; relations with types may stand beside it. They
// say no more than the plain ones, so an unreadable form of them is left out.
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
	_, err := agentworld.ParseWorld(world)
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
	draft := agents.EffectDraft{
		Kind: v.get("kind").text(), Payload: v.get("payload").all(), SourceID: v.get("source_id").text(),
		SchemaVersion: v.get("schema_version").text(),
	}
	return agents.Submission{
		Draft: &draft, UUID: v.get("uuid").text(), Priority: int(v.get("priority").integer()),
		SimTime: v.get("sim_time").number(), Timed: v.get("sim_time").given(),
	}
}

// mustValidate panics unless a schema accepts a value: every value that the scenarios of
// the suite make the core read or return is one of the forms that it exports.
func mustValidate(schema []byte, v signal.Value) {
	if err := schematest.Validate(schema, v.AppendJSON(nil)); err != nil {
		panic(fmt.Sprintf("%v: %v", v, err))
	}
}
