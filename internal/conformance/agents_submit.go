package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// configured makes a configuration of a scenario's: limits that it does not
// name are set so high that they do not matter.
func configured(v signal.Value) signal.Value {
	parts := []string{}
	say := func(name string, value any) { parts = append(parts, fmt.Sprintf("%q:%v", name, value)) }
	given := func(name string, otherwise any) {
		if m := get(v, name); m != nil {
			say(name, m)
		} else if otherwise != nil {
			say(name, otherwise)
		}
	}
	given("staleness_threshold", nil)
	given("debounce_ms", nil)
	given("deadline_ms", nil)
	given("token_budget", nil)
	given("default_priority", nil)
	given("backpressure_policy", nil)
	given("max_queue_depth", 10_000)
	given("quota_intents_per_minute", -1)
	given("quota_tokens_per_minute", -1)
	if cooldowns := get(v, "cooldowns"); cooldowns.Kind() == signal.KindObject {
		say("cooldowns", cooldowns)
	} else {
		say("cooldowns", `"off"`)
	}
	return made("{%s}", strings.Join(parts, ","))
}

// people sets up a world with the agents of a scenario in it.
func people(name string, input signal.Value) (*sim, error) {
	w, err := newSim(name)
	if err != nil {
		return nil, err
	}
	if err := w.keep(w.core.Configure(configured(get(input, "config")))); err != nil {
		return nil, err
	}
	create := func(id string, position signal.Value) error {
		at := ""
		if position != nil {
			at = `,"position":` + position.String()
		}
		return w.broadcast(agents.Draft{
			Kind: agents.KindEntityCreated, SourceID: "set-up", SchemaVersion: agents.SchemaVersion,
			Payload: made(`{"entity_id":%v,"entity_data":{"type":"agent","name":%[1]v}%s}`, quoted(id), at),
		})
	}
	for id, a := range get(input, "agents").Members() {
		if err := create(id, get(a, "position")); err != nil {
			return nil, err
		}
	}
	if env := get(input, "env_entity"); env != nil {
		if err := create(textAt(env, "id"), get(env, "position")); err != nil {
			return nil, err
		}
	}
	for id, a := range get(input, "agents").Members() {
		var permissions []string
		if get(a, "permissions") != nil {
			permissions = append([]string{}, names(a, "permissions")...)
		}
		if err := w.register(id, get(a, "policy"), permissions); err != nil {
			return nil, err
		}
	}
	w.base = w.core.Seq()
	w.log, w.gone = nil, nil
	clear(w.deltas)
	return w, nil
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// intent reads an intent whose numbers count from the state after set-up.
func (s *sim) intent(v signal.Value) (agents.Intent, error) {
	in, err := agents.ParseIntent(v)
	in.ContextSeq += s.base
	return in, err
}

// step does one step and says how it ended.
func (s *sim) step(v signal.Value) (string, error) {
	switch {
	case get(v, "at_ms") != nil:
		s.at(millis(v, "at_ms"))
	case get(v, "advance_ms", "wait_ms") != nil:
		s.at(s.now + max(millis(v, "advance_ms"), millis(v, "wait_ms")))
	}
	if d := get(v, "broadcast"); d != nil {
		return "broadcast", s.broadcast(readDraft(d))
	}
	submit := get(v, "submit")
	if submit == nil {
		return "", fmt.Errorf("a step that the harness does not know: %v", v)
	}
	in, err := s.intent(submit)
	if err != nil {
		return "invalid", nil //nolint:nilerr // that it cannot be read is the outcome
	}
	o, records := s.core.Submit(s.now, in)
	if err := s.keep(records, nil); err != nil {
		return "", err
	}
	if o.Status == agents.Duplicate && o.OK() {
		first, ok := s.core.Answered(in.AgentID, in.ReqID)
		if !ok || first.GlobalSeq != o.GlobalSeq {
			return "", errors.New("a duplicate with another outcome than the first")
		}
	}
	return said(o), nil
}

// said is the word of a scenario for an outcome.
func said(o agents.Outcome) string {
	switch {
	case o.Status == agents.Duplicate:
		return "duplicate"
	case o.OK():
		return "accepted"
	case o.Rejection.Code == agents.Forbidden:
		return "denied"
	case o.Rejection.Code == agents.Invalid || o.Rejection.Code == agents.InvalidIntent:
		return "invalid"
	default:
		return string(o.Rejection.Code)
	}
}

func judgeSubmit(s agentScenario) error {
	w, err := people("conformance", s.input)
	if err != nil {
		return err
	}
	var results []string
	i := 0
	for step := range get(s.input, "steps").Elements() {
		r, err := w.step(step)
		if err != nil {
			return fmt.Errorf("/steps/%d: %w", i, err)
		}
		results = append(results, r)
		i++
	}
	for name, want := range s.expected.Members() {
		switch name {
		case "step_results":
			err = sameList(name, results, names(s.expected, name))
		case "effect_count":
			err = sameCount(name, len(w.log), want)
		case "global_seq":
			err = sameCount(name, int(w.core.Seq()-w.base), want)
		case "log_integrity":
			err = w.integrity(want)
		default:
			err = w.extra(name, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// extra judges what single scenarios ask beside the rest.
func (s *sim) extra(name string, want signal.Value) error {
	switch name {
	case "positions":
		for id, v := range want.Members() {
			at, ok := s.core.World().Position(id)
			if !ok || !same(at.Value(), v) {
				return fmt.Errorf("positions of %q: %v, want %v", id, at, v)
			}
		}
		return nil
	case "effect_kinds":
		var kinds []string
		for _, e := range s.log {
			kinds = append(kinds, textAt(e, "kind"))
		}
		return sameList(name, kinds, elements(want))
	case "effect_sources":
		var sources []string
		for _, e := range s.log {
			sources = append(sources, textAt(e, "source_id"))
		}
		return sameList(name, sources, elements(want))
	default:
		return fmt.Errorf("the harness does not know what %q means", name)
	}
}

func elements(v signal.Value) []string {
	var list []string
	for e := range v.Elements() {
		s, _ := e.Text()
		list = append(list, s)
	}
	return list
}

// integrity checks the chain of the effects, from the first of all on.
func (s *sim) integrity(want signal.Value) error {
	var entries []agents.ChainEntry
	prev := ""
	for i, e := range s.log {
		// The set-up's effects are not in the list, so the numbers are made to begin at 1.
		seq := integer(e, "global_seq") - int64(s.base)
		if seq != int64(i)+1 {
			return fmt.Errorf("effect %d has the number %d", i, seq)
		}
		patched, err := agents.ApplyPatch(e, []agents.Operation{{Op: "replace", Path: "/global_seq", Value: made("%d", seq)}})
		if err != nil {
			return err
		}
		prev = agents.Checksum(prev, patched)
		entries = append(entries, agents.ChainEntry{Effect: patched, Checksum: prev})
	}
	if b, _ := want.Bool(); agents.Verify("conformance", entries).Valid != b {
		return fmt.Errorf("log_integrity: %v", agents.Verify("conformance", entries))
	}
	return nil
}

func sameList(what string, got, want []string) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: %q, want %q", what, got, want)
	}
	return nil
}

func sameCount(what string, got int, want signal.Value) error {
	if n, _ := want.Int64(); int64(got) != n {
		return fmt.Errorf("%s: %d, want %v", what, got, want)
	}
	return nil
}

func judgeWorlds(s agentScenario) error {
	worlds := map[string]*sim{}
	for _, name := range names(s.input, "worlds") {
		w, err := people(name, s.input)
		if err != nil {
			return err
		}
		worlds[name] = w
	}
	var results []string
	for step := range get(s.input, "steps").Elements() {
		w, ok := worlds[textAt(step, "world")]
		if !ok {
			return fmt.Errorf("no world %q", textAt(step, "world"))
		}
		r, err := w.step(step)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := sameList("step_results", results, names(s.expected, "step_results")); err != nil {
		return err
	}
	for name, want := range get(s.expected, "effect_count").Members() {
		if err := sameCount("effect_count/"+name, len(worlds[name].log), want); err != nil {
			return err
		}
	}
	return nil
}

// happening is one thing of a scenario about interruption, at its time.
type happening struct {
	at    time.Duration
	order int // of what happens at one time: issues first, then events, then cancels
	do    func() error
}

func judgeInterruption(s agentScenario) error {
	w, err := newSim("conformance")
	if err != nil {
		return err
	}
	if err := w.keep(w.core.Configure(configured(get(s.input, "config")))); err != nil {
		return err
	}
	for id, a := range get(s.input, "agents").Members() {
		policy := made(`{"policy":"everything","interrupt":%s}`, quoted(cmp.Or(textAt(a, "interrupt"), "always")))
		if threshold := get(a, "staleness_threshold"); threshold != nil {
			policy = made(`{"policy":"everything","interrupt":%s,"staleness_threshold":%v}`, quoted(cmp.Or(textAt(a, "interrupt"), "always")), threshold)
		}
		if err := w.register(id, policy, nil); err != nil {
			return err
		}
	}
	w.base = w.core.Seq()
	events := 0
	atEvent := map[[2]string]int{}
	reasons := map[[2]string]string{}
	note := func() {
		for _, c := range w.gone {
			key := [2]string{c.Agent, c.ReqID}
			if _, ok := atEvent[key]; !ok {
				atEvent[key], reasons[key] = events, c.Reason
			}
		}
		w.gone = nil
	}
	var all []happening
	add := func(list signal.Value, when string, order int, do func(v signal.Value) error) {
		for v := range list.Elements() {
			all = append(all, happening{millis(v, when), order, func() error { return do(v) }})
		}
	}
	add(get(s.input, "tokens"), "issue_at_ms", 0, func(v signal.Value) error {
		_, records, err := w.core.Issue(w.now, agents.TokenRequest{
			AgentID: textAt(v, "agent_id"), ReqID: textAt(v, "req_id"), ContextSeq: uint64(integer(v, "context_seq")) + w.base,
			Classes: []string{textAt(v, "req_id"), textAt(v, "agent_id")},
		})
		return w.keep(records, err)
	})
	add(get(s.input, "events"), "at_ms", 1, func(v signal.Value) error {
		events++
		// Whom it conflicts with is injected: an event is of the classes of those.
		payload := made(`{}`)
		if with := get(v, "conflicts_with"); with.Kind() == signal.KindString || with.Kind() == signal.KindArray {
			payload = made(`{"conflict_class":%v}`, with)
		}
		return w.broadcast(agents.Draft{Kind: "MessageEmitted", Payload: payload, SourceID: textAt(v, "source_id"), SchemaVersion: agents.SchemaVersion})
	})
	add(get(s.input, "user_cancels", "cancels"), "at_ms", 2, func(v signal.Value) error {
		records, _ := w.core.Cancel(textAt(v, "agent_id"), textAt(v, "req_id"), agents.ReasonUser)
		return w.keep(records, nil)
	})
	slices.SortStableFunc(all, func(a, b happening) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	for _, h := range all {
		w.at(h.at)
		note() // what time alone did, before the next event
		if err := h.do(); err != nil {
			return err
		}
		note()
	}
	if end := get(s.input, "end_at_ms", "until_ms"); end != nil {
		f, _ := end.Float64()
		w.at(seconds(f / 1e3))
		note()
	}
	for want := range get(s.expected, "tokens").Elements() {
		agent := textAt(want, "agent_id")
		for token := range get(s.input, "tokens").Elements() {
			if agent == "" && textAt(token, "req_id") == textAt(want, "req_id") {
				agent = textAt(token, "agent_id")
			}
		}
		key := [2]string{agent, textAt(want, "req_id")}
		event, cancelled := atEvent[key]
		if cancelled != truth(want, "cancelled") {
			return fmt.Errorf("%q: cancelled %v (%s), want %v", key[1], cancelled, reasons[key], want)
		}
		if v := get(want, "at_event"); v != nil && v.Kind() != signal.KindNull && int64(event) != integer(want, "at_event") {
			return fmt.Errorf("%q: cancelled at event %d, want %v", key[1], event, v)
		}
		if !strings.HasPrefix(reasons[key], textAt(want, "reason_prefix")) {
			return fmt.Errorf("%q: reason %q, want %v", key[1], reasons[key], want)
		}
	}
	return nil
}

func judgePipeline(s agentScenario) error {
	input := s.input
	if get(input, "agents") == nil {
		input = made(`{"config":%v,"agents":{"a":{"policy":{"distance_limit":1000.0},"position":[0,0,0]}}}`, orEmpty(get(input, "config")))
	}
	w, err := people("conformance", input)
	if err != nil {
		return err
	}
	var intake agents.Intake
	var results []string
	for step := range get(s.input, "steps").Elements() {
		if d := get(step, "broadcast"); d != nil {
			results = append(results, "broadcast")
			if err := w.broadcast(readDraft(d)); err != nil {
				return err
			}
			continue
		}
		in, err := w.intent(get(step, "submit"))
		if err != nil {
			results = append(results, "invalid")
			continue
		}
		o := intake.Offer(w.core, w.now, agents.Submission{Intent: &in})
		switch {
		case o.Joined:
			results = append(results, "duplicate")
		case o.Ticket != 0:
			results = append(results, "accepted") // into the line
		default:
			results = append(results, said(o.Outcome))
		}
	}
	return sameList("step_results", results, names(s.expected, "step_results"))
}
