package read

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

func (room *Library) agentRoutes() []route.Endpoint {
	const below = "GET /api/v1/sessions/{session}/agents"
	missing := []problem.ErrorCode{problem.NoSession, problem.NoAgent}
	at := append([]problem.ErrorCode{problem.NoMoment}, missing...)
	path := route.Parameter{Name: "path", Text: "a JSON Pointer into the view of the agent, such as /visible_entities/door/locked, or the id of an entity"}
	value := route.Parameter{Name: "value", Text: "a text that the agent was sent, instead of a path"}
	return []route.Endpoint{
		room.computed(below, access.ScopeRead, route.Doc{
			Summary: "The agents that are registered at a moment",
			Params:  []route.Parameter{atParam()},
			Success: []route.Success{{Status: 200, Content: route.JSON("agents")}},
			Errors:  []problem.ErrorCode{problem.NoSession, problem.NoMoment},
		}, (*request).agents),
		room.computed(below+"/{agent}/view", access.ScopePublic, route.Doc{
			Summary: "The view that was delivered to an agent",
			Text: "Needs the scope read, or act as this agent. Who may only act sees the present view and nothing that changes while the view does not: " +
				"at is refused, and the answers about hidden, absent and missing things are the same.",
			Params:  []route.Parameter{atParam()},
			Success: []route.Success{{Status: 200, Content: route.JSON("view")}},
			Errors:  append([]problem.ErrorCode{problem.Unauthenticated, problem.Forbidden, problem.Deleted}, at...),
		}, (*request).view),
		room.computed(below+"/{agent}/knows", access.ScopeRead, route.Doc{
			Summary: "What an agent knew at a moment",
			Text:    "Without path and value, its view. A path that the view does not have is searched in everything that the agent was sent by then.",
			Params:  []route.Parameter{atParam(), path, value, {Name: "pending", Type: "boolean", Text: "also list the deltas that were not delivered yet"}},
			Success: []route.Success{{Status: 200, Content: route.JSON("knowledge")}},
			Errors:  append([]problem.ErrorCode{problem.NotFound}, at...),
		}, (*request).knows),
		room.computed(below+"/{agent}/first-known", access.ScopeRead, route.Doc{
			Summary: "When an agent first knew something",
			Text:    "With path, the changes of that part of its view; with value, the first place where it was sent the text.",
			Params: []route.Parameter{
				path, value,
				{Name: "is", Text: "only changes to this JSON value"},
				{Name: "all", Type: "boolean", Text: "every change, not the first alone"},
				formatParam(),
			},
			Success: []route.Success{{Status: 200, Content: listed("changes", "change")}},
			Errors:  append([]problem.ErrorCode{problem.NotAcceptable}, missing...),
		}, (*request).firstKnown),
		room.computed(below+"/{agent}/leak", access.ScopeRead, route.Doc{
			Summary: "Whether an agent was ever sent something, with a proof if it was not",
			Params:  []route.Parameter{path, value},
			Success: []route.Success{{Status: 200, Content: route.JSON("proof")}},
			Errors:  append([]problem.ErrorCode{problem.NotFound}, missing...),
		}, (*request).leak),
		room.computed(below+"/{agent}/requests/{request}", access.ScopeRead, route.Doc{
			Summary: "Why a request of an agent was cancelled or refused",
			Text:    "Its generations with the deltas that they missed, and the recorded answer. Without one, the limits that applied at a moment are in the member admission.",
			Params:  []route.Parameter{{Name: "request", In: "path", Text: "the req_id"}, atParam()},
			Success: []route.Success{{Status: 200, Content: route.JSON("request")}},
			Errors:  at,
		}, (*request).why),
	}
}

// ask returns the history of the agents of the session in the path, and the version of an
// answer about all of it.
func (q *request) ask() (*recorded, *history.History, version, error) {
	s, err := q.session()
	if err != nil {
		return nil, nil, version{}, err
	}
	head := s.travel.Head()
	h, err := q.room.engine.AgentHistory(s.travel.Name())
	return s, h, headVersion(head), err
}

// settled withdraws the version of an answer if an entry came while it was made: it may
// have the entry already.
func (q *request) settled(s *recorded, v version) {
	if s.travel.Head().String() != v.tag {
		q.w.Header().Del("Etag")
		q.w.Header().Set("Cache-Control", "private, no-store")
	}
}

// agent is the agent in the path.
func (q *request) agent() string { return q.r.PathValue("agent") }

// otherRules separates the error of a session that was recorded under older rules, for
// which the answer by the present rules is still given, from other errors.
func otherRules(err error) (unproven string, other error) {
	if rules, ok := errors.AsType[*session.RulesError](err); ok && rules.Recorded < rules.Present {
		return answer.RulesText(rules), nil
	}
	return "", err
}

// agents lists the registered agents.
func (q *request) agents() error {
	return q.atMoment("", func(s *recorded, m replay.Moment) error {
		fold, err := s.travel.At(q.ctx, m)
		if err != nil {
			return err
		}
		names := []string{}
		if world := session.WorldOf(fold); world != nil {
			for name := range world.Agents() {
				names = append(names, name)
			}
		}
		return q.one(answer.AgentsView{Moment: m.String(), Agents: names})
	})
}

// view answers with the view of an agent.
func (q *request) view() error {
	name := route.Session(q.r)
	if access.From(q.ctx).May(access.ScopeRead, name) {
		return q.anyView()
	}
	if !access.From(q.ctx).MayAct(name, q.agent()) {
		return access.Check(q.ctx, access.ScopeRead, name)
	}
	return q.ownView()
}

// anyView answers a caller that may read the session.
func (q *request) anyView() error {
	s, h, _, err := q.ask()
	if err != nil {
		return err
	}
	m, v, err := q.resolve(s, "at")
	if err != nil {
		return err
	}
	if q.known(v) {
		return nil
	}
	k, err := h.ViewAt(q.ctx, q.agent(), m)
	if _, err = otherRules(err); err != nil {
		return err
	}
	return q.one(answer.CanonicalJSON(k.View.Value()))
}

// ownView answers a caller that may only act as the agent. The answer, its header and the
// errors are made of the delivered view alone: an entry that does not change the view
// changes no byte of them.
func (q *request) ownView() error {
	if q.has("at") {
		return fmt.Errorf("%w: an address of a moment needs the scope read", access.ErrForbidden)
	}
	unknown := problem.New(problem.NoAgent, "the session has no agent of this name")
	s, h, _, err := q.ask()
	switch {
	case errors.Is(err, eventlog.ErrNoSession), errors.Is(err, eventlog.ErrDeleted):
		return unknown
	case err != nil:
		if problem.Of(err).Code == problem.NoSession {
			return unknown
		}
		return err
	}
	k, err := h.ViewAt(q.ctx, q.agent(), replay.Moment{Seq: s.travel.Head().Seq})
	if _, ok := errors.AsType[*history.NoAgentError](err); ok {
		return unknown
	}
	if _, err = otherRules(err); err != nil {
		return err
	}
	if k.Presence != query.Registered {
		return unknown
	}
	if q.known(version{tag: fmt.Sprintf("%d:%s", k.View.ViewSeq, k.View.ContextDigest)}) {
		return nil
	}
	return q.one(answer.CanonicalJSON(k.View.Value()))
}

// subject reads what a search is about: a path or a text.
func (q *request) subject() (query.LeakQuery, error) {
	switch {
	case q.has("value") == q.has("path"):
		return query.LeakQuery{}, badRequest("give path or value, one of them")
	case q.has("path"):
		return answer.PathQuery(q.get("path"))
	case q.get("value") == "":
		return query.LeakQuery{}, badRequest("value is empty; every text contains the empty text")
	}
	return query.LeakQuery{Text: q.get("value")}, nil
}

// knows answers what an agent knew.
func (q *request) knows() error {
	pending, err := q.flag("pending")
	if err != nil {
		return err
	}
	if q.has("value") && (q.has("path") || pending) {
		return badRequest("value excludes path and pending")
	}
	s, h, _, err := q.ask()
	if err != nil {
		return err
	}
	m, v, err := q.resolve(s, "at")
	if err != nil {
		return err
	}
	if q.known(v) {
		return nil
	}
	if q.has("value") {
		return q.sent(h, query.LeakQuery{Text: q.get("value")}, &m)
	}
	k, err := h.ViewAt(q.ctx, q.agent(), m)
	unproven, err := otherRules(err)
	if err != nil {
		return err
	}
	out := answer.UnprovenKnowledgeView{KnowledgeView: answer.ViewKnowledge(k, m, pending), Unproven: unproven}
	if !q.has("path") {
		out.Entities, out.Relations = answer.CanonicalJSON(k.View.VisibleEntities), answer.CanonicalJSON(k.View.VisibleRelationships)
		return q.one(out)
	}
	pointer, err := view.ParseViewPath(q.get("path"))
	if err != nil {
		return err
	}
	at, known := pointer.String(), true
	out.Path, out.Known = &at, &known
	if value, ok := pointer.In(k.View.Value()); ok && k.Presence != query.Absent {
		out.Value = answer.CanonicalJSON(value)
		return q.one(out)
	}
	return q.unseen(h, k, m, out)
}

// unseen searches a part that the view of an agent does not have in everything else that
// the agent was sent.
func (q *request) unseen(h *history.History, k history.Knowledge, m replay.Moment, out answer.UnprovenKnowledgeView) error {
	what, err := answer.PathQuery(q.get("path"))
	if err != nil {
		return err
	}
	first, found, proof, err := h.FirstSent(q.ctx, q.agent(), what, &m)
	if err != nil {
		return err
	}
	if err := proof.Err(); errors.Is(err, history.ErrNoThing) {
		return err
	}
	if found && first.Route == query.RouteView && k.Presence == query.Registered {
		found, proof.Unsearched = false, nil // the view had it and lost it
	}
	*out.Known, out.Uncovered = found, answer.ViewGaps(&proof)
	if found {
		leak := answer.ViewLeak(first)
		out.Sent = &leak
	}
	return q.one(out)
}

// sent answers where an agent was first sent something.
func (q *request) sent(h *history.History, what query.LeakQuery, until *replay.Moment) error {
	first, found, proof, err := h.FirstSent(q.ctx, q.agent(), what, until)
	if err != nil {
		return err
	}
	if err := proof.Err(); errors.Is(err, history.ErrNoThing) {
		return err
	}
	return q.one(answer.ViewSent(q.agent(), what, first, found, &proof))
}

// firstKnown answers when an agent first knew something.
func (q *request) firstKnown() error {
	what, err := q.subject()
	if err != nil {
		return err
	}
	all, err := q.flag("all")
	if err != nil {
		return err
	}
	var is signal.Value
	if q.has("is") {
		if is, err = signal.ParseValue([]byte(q.get("is"))); err != nil {
			return badRequest("is=%.80s: want a JSON value, such as 3, true or %q: %v", q.get("is"), "text", err)
		}
	}
	if what.Text != "" && (is != nil || all) {
		return badRequest("is and all need a path")
	}
	l, err := q.newList()
	if err != nil {
		return err
	}
	s, h, v, err := q.ask()
	if err != nil {
		return err
	}
	if l.lines {
		v = v.in("lines")
	}
	if q.known(v) {
		return nil
	}
	defer q.settled(s, headVersion(s.travel.Head()))
	if what.Text != "" {
		first, found, proof, err := h.FirstSent(q.ctx, q.agent(), what, nil)
		if err != nil {
			return err
		}
		if err := l.add(answer.ViewSent(q.agent(), what, first, found, &proof)); err != nil {
			return err
		}
		return l.send()
	}
	path := what.Path
	if what.Entity != "" {
		path = view.EntityPath(what.Entity)
	}
	return q.changes(h, path, is, all, l)
}

// changes lists the changes of a path of an agent's view.
func (q *request) changes(h *history.History, path jsondoc.Pointer, is signal.Value, all bool, l *list) error {
	for c, err := range h.ValueChanges(q.ctx, q.agent(), path, is) {
		if _, err = otherRules(err); err != nil {
			return err
		}
		if c.Delivery.Number == 0 && c.Value == nil && c.Before == nil || c.Value == nil && !all {
			continue
		}
		if err := l.add(answer.ViewChange(q.agent(), path, c)); err != nil {
			return err
		}
		if !all {
			break
		}
	}
	return l.send()
}

// leak answers whether an agent was sent something.
func (q *request) leak() error {
	what, err := q.subject()
	if err != nil {
		return err
	}
	s, h, v, err := q.ask()
	if err != nil {
		return err
	}
	if q.known(v) {
		return nil
	}
	var first *query.Leak
	proof, err := h.Leak(q.ctx, q.agent(), what, func(l query.Leak) error {
		if first == nil {
			first = &l
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := proof.Err(); errors.Is(err, history.ErrNoThing) {
		return err
	}
	q.settled(s, v)
	return q.one(answer.ViewProof(q.agent(), what, first, &proof))
}

// why answers what became of a request.
func (q *request) why() error {
	s, h, v, err := q.ask()
	if err != nil {
		return err
	}
	m, at, err := q.resolve(s, "at")
	if err != nil {
		return err
	}
	if q.known(version{tag: v.tag + ";" + at.tag}) {
		return nil
	}
	report, err := h.Request(q.ctx, q.agent(), q.r.PathValue("request"))
	unproven, err := otherRules(err)
	if err != nil {
		return err
	}
	out := answer.UnprovenRequestView{RequestView: answer.ViewRequest(&report), Unproven: unproven}
	if out.Generations == nil {
		out.Generations = []answer.GenerationView{}
	}
	if report.Ruling == nil {
		status, err := h.AdmissionAt(q.ctx, report.AgentID, m)
		if _, err = otherRules(err); err != nil {
			return err
		}
		admission := answer.ViewAdmission(&report, m, &status)
		out.Admission = &admission
	}
	q.settled(s, v)
	return q.one(out)
}
