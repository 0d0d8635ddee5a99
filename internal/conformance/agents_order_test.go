package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// quantum hands drafts in, in an order of arrival, and returns the effects in
// the order of their numbers.
func quantum(drafts *node, arrival []int) ([]signal.Value, error) {
	w, err := newSim("conformance")
	if err != nil {
		return nil, err
	}
	var all []agents.Submission
	for d := range drafts.elements() {
		all = append(all, readDraft(d))
	}
	if arrival == nil {
		for i := range all {
			arrival = append(arrival, i)
		}
	}
	if len(arrival) != len(all) {
		return nil, fmt.Errorf("%d drafts arrive of %d", len(arrival), len(all))
	}
	var intake agents.Intake
	for _, i := range arrival {
		if i < 0 || i >= len(all) {
			return nil, fmt.Errorf("no draft %d", i)
		}
		if o := intake.Offer(w.core, w.now, all[i]); o.Ticket == 0 {
			return nil, o.Outcome.Err()
		}
	}
	list := agents.Submissions(intake.Take(w.core, 0, math.Inf(1)))
	decision := w.core.Decide(w.now, agents.Quantum{By: agents.CloseFlush}, list)
	err = w.keepAll(decision)
	return w.log, err
}

// keepAll folds a decision of which nothing may have been refused.
func (w *sim) keepAll(d agents.Decision) error {
	for _, o := range d.Outcomes {
		if err := o.Err(); err != nil {
			return err
		}
	}
	return w.keep(d.Records, nil)
}

func (s *agentScenario) sameOrder(what string, effects []signal.Value) {
	var uuids []string
	consecutive := true
	for i, e := range effects {
		uuids = append(uuids, e.TextOf("uuid"))
		seq, _ := e.Get("global_seq")
		n, ok := seq.Int64()
		consecutive = consecutive && ok && n == int64(i)+1
	}
	if want := s.expected.get("uuid_order"); want.given() {
		s.sameList(what, uuids, want.texts())
	}
	if want := s.expected.get("source_order"); want.given() {
		var sources []string
		for _, e := range effects {
			sources = append(sources, e.TextOf("source_id"))
		}
		s.sameList("source_order", sources, want.texts())
	}
	s.sameTruth("global_seq_consecutive", consecutive, s.expected.get("global_seq_consecutive"))
	if !consecutive {
		s.compare("/global_seq", false, "gaps", fmt.Sprint("1 to ", len(effects)))
	}
}

func judgeOrdering(s *agentScenario) error {
	got, err := quantum(s.input.get("same_quantum_drafts", "drafts"), nil)
	if err != nil {
		return err
	}
	s.sameOrder("uuid_order", got)
	return nil
}

func judgePermutations(s *agentScenario) error {
	drafts := s.input.get("drafts", "same_quantum_drafts")
	var first []signal.Value
	alike := true
	n := 0
	for order := range s.input.get("arrival_orders", "permutations").elements() {
		var arrival []int
		for e := range order.elements() {
			arrival = append(arrival, int(e.integer()))
		}
		got, err := quantum(drafts, arrival)
		if err != nil {
			return err
		}
		if n == 0 {
			first = got
		}
		n++
		alike = alike && slices.EqualFunc(first, got, func(a, b signal.Value) bool { return canonical(a) == canonical(b) })
		s.sameOrder(fmt.Sprintf("uuid_order, arrival %v", arrival), got)
	}
	if n == 0 {
		return inapplicable("no order of arrival")
	}
	s.sameTruth("same_for_every_arrival_order", alike, s.expected.get("same_for_every_arrival_order"))
	return nil
}

func judgeMove(s *agentScenario) error {
	w, err := looking(made(document{
		"entities":      document{"a": document{"type": "agent"}},
		"spatial_index": document{"a": []int{0, 0, 0}},
	}), map[string]signal.Value{"a": made(document{})})
	if err != nil {
		return err
	}
	payload := s.input.get("payload")
	if payload == nil {
		intent := s.input.get("intent")
		payload = intent.get("payload")
		intent.all()
	}
	s.input.get("agent_id").all()
	o, records := w.core.Submit(0, agents.Intent{Kind: world.KindMove, Payload: payload.all(), ReqID: "r", AgentID: "a"})
	if want := s.expected.get("valid"); want.given() {
		s.compare("/valid", o.OK() == want.truth(), fmt.Sprint(o.OK(), " ", o.Err()), want)
	}
	if want := s.expected.get("position", "to"); want.given() {
		if err := w.keep(records, o.Err()); err != nil {
			return err
		}
		at, _ := w.core.World().Position("a")
		s.compare("/position", equalValues(at.Value(), want.all()), at.Value(), want)
	}
	return nil
}
