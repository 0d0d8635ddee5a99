package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// happening is one action of a scenario about interruption, at its time.
type happening struct {
	at    time.Duration
	order int // of what happens at one time: issues first, then events, then cancels
	do    func() error
}

// generation is the outcome of one token of a scenario.
type generation struct {
	agent, req string
	cancelled  bool
	reason     string
	event      int  // the last one before it was cancelled
	alone      bool // time alone did it, after that event
	at         time.Duration
}

// interruption is the run of a scenario about it.
type interruption struct {
	*sim
	tokens []*generation
	live   map[[2]string]*generation
	events int

	unknown int // cancels of requests that do not exist, none of which had an effect
}

// anything is the class of an event that conflicts with every generation.
const anything = "*"

func judgeInterruption(s *agentScenario) error {
	w, err := s.generating()
	if err != nil {
		return err
	}
	var all []happening
	add := func(list *node, when []string, order int, do func(v *node) error) {
		for v := range list.elements() {
			all = append(all, happening{v.get(when...).millis(), order, func() error { return do(v) }})
		}
	}
	tokens := s.input.get("tokens")
	for v := range tokens.elements() {
		w.tokens = append(w.tokens, &generation{agent: v.get("agent_id").text(), req: v.get("req_id").text()})
	}
	issued := 0
	add(tokens, []string{"issue_at_ms", "at_ms"}, 0, func(v *node) error {
		// The order of time is not that of the file, so a token is found by its place.
		for i, e := range tokens.parts {
			if e == v {
				issued = i
			}
		}
		return w.issue(w.tokens[issued], v)
	})
	add(s.input.get("events"), []string{"at_ms"}, 1, func(v *node) error {
		if c := v.get("user_cancel", "cancel"); c.given() {
			return w.cancel(c)
		}
		return w.event(v)
	})
	add(s.input.get("user_cancels", "cancels", "user_cancel"), []string{"at_ms", "cancel_at_ms"}, 2, w.cancel)
	for v := range tokens.elements() {
		if at := v.get("user_cancel_at_ms", "cancel_at_ms"); at.given() {
			all = append(all, happening{at.millis(), 2, func() error { return w.cancel(v) }})
		}
	}
	slices.SortStableFunc(all, func(a, b happening) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	for _, h := range all {
		if err := w.at(h.at); err != nil {
			return err
		}
		w.note(true)
		if err := h.do(); err != nil {
			return err
		}
		w.note(false)
	}
	if end := s.input.get("end_at_ms", "until_ms", "end_ms"); end.given() {
		if err := w.at(end.millis()); err != nil {
			return err
		}
		w.note(true)
	}
	s.sameGenerations(w)
	return nil
}

// generating sets up agents that see everything.
func (s *agentScenario) generating() (*interruption, error) {
	core, err := newSim("conformance")
	if err != nil {
		return nil, err
	}
	w := &interruption{sim: core, live: map[[2]string]*generation{}}
	if err := w.keep(w.core.Configure(configured(s.input.get("config")))); err != nil {
		return nil, err
	}
	people := document{}
	for _, list := range []*node{s.input.get("agents"), s.input.get("policies")} {
		for _, id := range append([]string{}, textsOf(list)...) {
			people[id] = document{"policy": "everything"}
		}
		for id, a := range list.members() {
			o, ok := people[id].(document)
			if !ok {
				o = document{"policy": "everything"}
			}
			if a.kind() == signal.KindString {
				o["interrupt"] = a.all()
			} else {
				settings(a, o)
				if p := a.get("policy"); p.kind() == signal.KindString {
					o["interrupt"] = p.all()
				}
			}
			people[id] = o
		}
	}
	for _, list := range []*node{s.input.get("tokens"), s.input.get("events")} {
		for v := range list.elements() {
			if id := v.get("agent_id").text(); id != "" && people[id] == nil {
				people[id] = document{"policy": "everything"}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(people)) {
		if err := w.register(id, made(people[id]), nil); err != nil {
			return nil, err
		}
	}
	w.settled()
	return w, nil
}

func textsOf(n *node) []string {
	if n.kind() != signal.KindArray {
		return nil
	}
	return n.texts()
}

func (w *interruption) issue(g *generation, v *node) error {
	request := agents.TokenRequest{
		AgentID: g.agent, ReqID: g.req, ContextSeq: uint64(max(v.get("context_seq").integer(), 0)) + w.base,
		Current: !v.get("context_seq").given(), Classes: []string{g.req, g.agent, anything},
		Deadline: v.get("deadline_ms").millis(),
	}
	token, records, err := w.core.Issue(w.now, request)
	if w.door != nil {
		if err := w.door.issue(request, w.core.Number(g.agent, request.ContextSeq), token, err); err != nil {
			return err
		}
	}
	if err := w.keep(records, err); err != nil {
		return err
	}
	key := [2]string{g.agent, g.req}
	old := w.live[key]
	if i := slices.IndexFunc(w.gone, func(c agents.Cancellation) bool { return c.Reason == agents.ReasonReplaced }); i >= 0 && old != nil {
		w.stop(old, w.gone[i], false)
		w.gone = slices.Delete(w.gone, i, i+1)
	}
	w.live[key] = g
	return nil
}

// event submits an event. The conflicts are injected: the event has the classes of
// the generations that it conflicts with.
func (w *interruption) event(v *node) error {
	w.events++
	payload := document{}
	for name, m := range v.get("payload").members() {
		payload[name] = m.all()
	}
	with := v.get("conflicts_with", "conflicts")
	switch {
	case with.kind() == signal.KindBool && with.truth():
		payload["conflict_class"] = anything
	case with.kind() == signal.KindArray, with.kind() == signal.KindString:
		payload["conflict_class"] = with.all()
	default:
	}
	v.get("global_seq").all() // events are numbered in their order
	return w.broadcast(agents.Submission{Draft: &agents.EffectDraft{
		Kind: cmp.Or(v.get("kind").text(), world.KindMessageEmitted), Payload: made(payload),
		SourceID: v.get("source_id", "agent_id").text(), SchemaVersion: world.SchemaVersion,
	}})
}

// cancel performs a cancel of the user. Without an agent it means the agent that has
// the request; a plain string names the request.
func (w *interruption) cancel(v *node) error {
	agent, req := v.get("agent_id").text(), v.get("req_id").text()
	if v.kind() == signal.KindString {
		req = v.text()
	}
	reason := cmp.Or(v.get("reason").text(), agents.ReasonUser)
	for _, g := range w.tokens {
		if g.req == req && (agent == "" || g.agent == agent) && !g.cancelled && w.live[[2]string{g.agent, req}] == g {
			records, found := w.core.Cancel(g.agent, req, reason)
			if w.door != nil {
				if err := w.door.cancel(g.agent, req, found); err != nil {
					return err
				}
			}
			return w.keep(records, nil)
		}
	}
	if records, found := w.core.Cancel(agent, req, reason); found || len(records) > 0 {
		return fmt.Errorf("a cancel of %q of %q, which was never asked for, found a generation", req, agent)
	}
	w.unknown++
	return nil
}

// note records the cancelled generations; alone says that time alone cancelled them.
func (w *interruption) note(alone bool) {
	for _, c := range w.gone {
		if g := w.live[[2]string{c.Agent, c.ReqID}]; g != nil && !g.cancelled {
			w.stop(g, c, alone)
		}
	}
	w.gone = nil
}

func (w *interruption) stop(g *generation, c agents.Cancellation, alone bool) {
	g.cancelled, g.reason, g.at, g.event, g.alone = true, c.Reason, c.At, w.events, alone
}

func (s *agentScenario) sameGenerations(w *interruption) {
	s.sameTruth("unknown_req_is_no_error", w.unknown > 0, s.expected.get("unknown_req_is_no_error"))
	wants := s.expected.get("tokens")
	taken := map[*generation]bool{}
	i := 0
	for want := range wants.elements() {
		req, agent := want.get("req_id").text(), want.get("agent_id").text()
		at := slices.IndexFunc(w.tokens, func(g *generation) bool {
			return g.req == req && (agent == "" || g.agent == agent) && !taken[g]
		})
		if at < 0 {
			s.compare(fmt.Sprintf("/tokens/%d", i), false, "no such token", want)
			continue
		}
		g := w.tokens[at]
		taken[g] = true
		s.sameGeneration(fmt.Sprintf("tokens/%d", i), g, want, w.events)
		i++
	}
}

// sameGeneration compares the outcome of a token. Between two events time alone
// may cancel one, when a debounce is over: it is found cancelled at the next event,
// and the one before it is the cause, so either may be named.
func (s *agentScenario) sameGeneration(what string, g *generation, want *node, events int) {
	s.sameTruth(what+"/cancelled", g.cancelled, want.get("cancelled"))
	if at := want.get("at_event"); at.given() {
		ok := false
		allowed := []*node{at}
		if at.kind() == signal.KindArray {
			allowed = slices.Collect(at.elements())
		}
		for _, e := range allowed {
			n := int(e.integer())
			ok = ok || g.cancelled && (n == g.event || g.alone && n == g.event+1 && n <= events)
		}
		s.compare("/"+what+"/at_event", ok, g.event, at)
	}
	if at := want.get("not_cancelled_at_event"); at.given() {
		caused := g.cancelled && !g.alone && g.event == int(at.integer())
		s.compare("/"+what+"/not_cancelled_at_event", !caused, g.event, at)
	}
	s.sameTruth(what+"/cancelled_by_end", g.cancelled, want.get("cancelled_by_end"))
	if at := want.get("at_ms", "cancelled_at_ms"); at.given() {
		s.compare("/"+what+"/at_ms", g.cancelled && g.at == at.millis(), g.at, at)
	}
	if reason := want.get("reason"); reason.given() {
		s.compare("/"+what+"/reason", slices.Contains(reason.texts(), g.reason), g.reason, reason)
	}
	if prefix := want.get("reason_prefix", "reason_starts_with"); prefix.given() {
		ok := slices.ContainsFunc(prefix.texts(), func(p string) bool { return g.cancelled && strings.HasPrefix(g.reason, p) })
		s.compare("/"+what+"/reason_prefix", ok, g.reason, prefix)
	}
}
