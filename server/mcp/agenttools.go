package mcp

import (
	"context"
	"errors"
	"strconv"

	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

type agentKnewArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Agent   string `json:"agent" jsonschema:"the id of the agent"`
	At      string `json:"at,omitempty" jsonschema:"the address of the moment; default end"`
	Pending bool   `json:"pending,omitempty" jsonschema:"also list the changes that were made but not delivered yet"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the part before"`
}

type agentFirstArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Agent   string `json:"agent" jsonschema:"the id of the agent"`
	Path    string `json:"path,omitempty" jsonschema:"a JSON Pointer into the view, such as /visible_entities/B/last_message, or the id of an entity"`
	Value   string `json:"value,omitempty" jsonschema:"instead of path: a text to look for in everything that the agent was sent"`
	Is      string `json:"is,omitempty" jsonschema:"with path: the JSON value that it had"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the part before"`
}

type agentSentArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Agent   string `json:"agent" jsonschema:"the id of the agent"`
	Path    string `json:"path,omitempty" jsonschema:"a JSON Pointer into the view, or the id of an entity"`
	Value   string `json:"value,omitempty" jsonschema:"instead of path: a text, such as a secret"`
	All     bool   `json:"all,omitempty" jsonschema:"list every place, not only the first"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

type agentRequestArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Agent   string `json:"agent" jsonschema:"the id of the agent"`
	ReqID   string `json:"req_id" jsonschema:"the id of the request"`
	At      string `json:"at,omitempty" jsonschema:"if no answer is recorded: the moment whose limits are returned; default end"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the part before"`
}

func agentTools() []*tool {
	return []*tool{
		newTool("agent_knew", "What an agent knew",
			"Return the view that had been delivered to an agent by a moment: all that it could know of the world then.",
			agentKnew),
		newTool("agent_first_knew", "When an agent first knew",
			"Find the delta that first brought something into the view of an agent, with the effect that caused it; or, if its view never had it, the first place by any other route at which it was sent.",
			agentFirstKnew),
		newTool("agent_was_sent", "Whether an agent was ever sent something",
			"Search everything that the engine sent to an agent. leaked says whether it was found and where; proven says that it was never sent; uncovered lists what could not be searched.",
			agentWasSent),
		newTool("agent_request", "The fate of a request",
			"Explain a request of an agent: its generations with the deltas that made them stale, and its answer with the reason of a refusal. If no answer is recorded, return the limits that applied.",
			agentRequest),
	}
}

// history returns the history of the agents of the session, whose passes end when they have
// read too many entries.
func (s *opened) history() (*history.History, error) {
	return s.c.engine.AgentHistory(s.name)
}

// tolerated returns an error unless it only says that the session was recorded under other
// rules, and then the note about that.
func tolerated(err error) ([]string, error) {
	if rules, ok := errors.AsType[*session.RulesError](err); ok && rules.Recorded < rules.Present {
		return []string{"The session was recorded under older rules: the answer follows the present ones and proves nothing."}, nil
	}
	return nil, err
}

func agentKnew(ctx context.Context, c *call, args agentKnewArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	m, err := s.moment(ctx, args.At)
	if err != nil {
		return nil, err
	}
	h, err := s.history()
	if err != nil {
		return nil, err
	}
	k, err := h.ViewAt(ctx, args.Agent, m)
	notes, err := tolerated(err)
	if err != nil {
		return nil, err
	}
	v := answer.ViewKnowledge(k, m, args.Pending)
	v.Entities, v.Relations = answer.CanonicalJSON(k.View.VisibleEntities), answer.CanonicalJSON(k.View.VisibleRelationships)
	r, err := c.whole(v, args.Cursor)
	if err == nil {
		r.notes = append(r.notes, notes...)
	}
	return r, err
}

// sought reads the subject of a question: a path, or a text.
func sought(path, value string) (query.LeakQuery, error) {
	if (path == "") == (value == "") {
		return query.LeakQuery{}, badArgument(errors.New("give a path or a value, and not both"))
	}
	if value != "" {
		return query.LeakQuery{Text: value}, nil
	}
	return answer.PathQuery(path)
}

func agentFirstKnew(ctx context.Context, c *call, args agentFirstArgs) (*reply, error) {
	q, err := sought(args.Path, args.Value)
	if err != nil {
		return nil, err
	}
	var is signal.Value
	if args.Is != "" {
		if q.Text != "" {
			return nil, badArgument(errors.New("is needs a path"))
		}
		if is, err = signal.ParseValue([]byte(args.Is)); err != nil {
			return nil, err
		}
	}
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	h, err := s.history()
	if err != nil {
		return nil, err
	}
	var notes []string
	if q.Text == "" {
		path := q.Path
		if q.Entity != "" {
			path = view.EntityPath(q.Entity)
		}
		change, found, err := h.FirstKnown(ctx, args.Agent, path, is)
		if notes, err = tolerated(err); err != nil {
			return nil, err
		}
		if found || is != nil {
			v := answer.ChangeView{Agent: args.Agent, Path: path.String()}
			if found {
				v = answer.ViewChange(args.Agent, path, change)
			}
			r, err := c.whole(v, args.Cursor)
			if err == nil {
				r.notes = append(r.notes, notes...)
			}
			return r, err
		}
	}
	first, found, proof, err := h.FirstSent(ctx, args.Agent, q, nil)
	if err != nil {
		return nil, err
	}
	if outcome := proof.Err(); errors.Is(outcome, history.ErrNoThing) {
		return nil, outcome
	}
	r, err := c.whole(answer.ViewSent(args.Agent, q, first, found, &proof), args.Cursor)
	if err == nil {
		r.notes = append(r.notes, notes...)
	}
	return r, err
}

func agentWasSent(ctx context.Context, c *call, args agentSentArgs) (*reply, error) {
	q, err := sought(args.Path, args.Value)
	if err != nil {
		return nil, err
	}
	from, err := c.number(args.Cursor, 0)
	if err != nil {
		return nil, err
	}
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	h, err := s.history()
	if err != nil {
		return nil, err
	}
	list := items{c: c}
	var first *query.Leak
	n, place := uint64(0), ""
	proof, err := h.Leak(ctx, args.Agent, q, func(l query.Leak) error {
		if first == nil {
			first = &l
		}
		if n++; !args.All || n <= from || place != "" {
			return nil
		}
		ok, err := list.add(answer.ViewLeak(l), nil)
		if !ok {
			place = strconv.FormatUint(n-1, 10)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if outcome := proof.Err(); errors.Is(outcome, history.ErrNoThing) {
		return nil, outcome
	}
	if args.All {
		return list.reply(place), nil
	}
	return c.whole(answer.ViewProof(args.Agent, q, first, &proof), "")
}

func agentRequest(ctx context.Context, c *call, args agentRequestArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	h, err := s.history()
	if err != nil {
		return nil, err
	}
	report, err := h.Request(ctx, args.Agent, args.ReqID)
	notes, err := tolerated(err)
	if err != nil {
		return nil, err
	}
	if report.Ruling != nil || len(report.Generations) > 0 && args.At == "" {
		r, err := c.whole(answer.ViewRequest(&report), args.Cursor)
		if err == nil {
			r.notes = append(r.notes, notes...)
		}
		return r, err
	}
	m, err := s.moment(ctx, args.At)
	if err != nil {
		return nil, err
	}
	status, err := h.AdmissionAt(ctx, report.AgentID, m)
	if _, err = tolerated(err); err != nil {
		return nil, err
	}
	r, err := c.whole(answer.ViewAdmission(&report, m, &status), args.Cursor)
	if err == nil {
		r.notes = append(r.notes, append(notes, "No answer is recorded: the request was never submitted, or refused for a passing reason. These are the limits that applied.")...)
	}
	return r, err
}
