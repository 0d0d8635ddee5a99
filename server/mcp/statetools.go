package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/workspace"
)

type stateArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	At      string `json:"at,omitempty" jsonschema:"the address of the moment, such as 36, 36+350ms, t:1.5s or end; default end"`
	Path    string `json:"path,omitempty" jsonschema:"a part of the state, such as stage.entities.smith or /workspace/main.go; default all. With as_agent a JSON Pointer into the view, such as /visible_entities/door"`
	AsAgent string `json:"as_agent,omitempty" jsonschema:"the id of an agent: return only the view that had been delivered to it by then"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the part before"`
}

type diffArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	From    string `json:"from" jsonschema:"the address of the first moment"`
	To      string `json:"to" jsonschema:"the address of the second moment"`
	Path    string `json:"path,omitempty" jsonschema:"compare only this part of the state"`
	AsAgent string `json:"as_agent,omitempty" jsonschema:"the id of an agent: compare only what had been delivered to it"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

func stateTools() []*tool {
	return []*tool{
		newTool("state", "State at a moment",
			"Compute the state of a session at a moment, or a part of it: session (its time), performances (choreographies under way), stage (what a viewer sees: stage.entities has each figure with x, y, visible, state, text, tint, strength), world (agents and entities), director. Ask for a path where you can: whole states are large.",
			stateAt),
		newTool("diff", "Compare two moments",
			"Compare the states at two moments. The answer is a list of the operations of a JSON Patch that lead from the first to the second; it is empty if nothing differs.",
			diffStates),
	}
}

// agentView returns the view that had been delivered to an agent, as a value.
func (s *opened) agentView(ctx context.Context, agent, address, path string) (signal.Value, error) {
	pointer := jsondoc.Pointer(nil)
	if path != "" {
		var err error
		if pointer, err = view.ParseViewPath(path); err != nil {
			return nil, err
		}
	}
	if address != "" && address != "end" && !s.c.rights.MayRead(s.name) {
		// Whether an address exists tells of entries that the agent does not see.
		return nil, refuse(problem.Forbidden, "Omit at: with the right to act as an agent alone you can ask about the end.", "the address of a moment needs the right to read the session")
	}
	m, err := s.moment(ctx, address)
	if err != nil {
		return nil, err
	}
	h, err := s.c.engine.AgentHistory(s.name)
	if err != nil {
		return nil, err
	}
	k, err := h.ViewAt(ctx, agent, m)
	if _, ok := errors.AsType[*session.RulesError](err); ok {
		err = nil
	}
	if errors.Is(err, agents.ErrUnknownAgent) || err == nil && k.Presence == query.Absent {
		return nil, refuse(problem.NoAgent, "The agent was not registered by then.", "the agent has no view")
	}
	if err != nil {
		return nil, err
	}
	whole := k.View.Value()
	if pointer == nil {
		return whole, nil
	}
	part, ok := pointer.In(whole)
	if !ok {
		return nil, refuse(problem.NoMoment, "The view of the agent does not have it: whether it was hidden or absent, the agent could not tell.", "the view has no %v", pointer)
	}
	return part, nil
}

func stateAt(ctx context.Context, c *call, args stateArgs) (*reply, error) {
	if args.AsAgent != "" {
		s, err := c.openAs(args.Session, args.AsAgent)
		if err != nil {
			return nil, err
		}
		v, err := s.agentView(ctx, args.AsAgent, args.At, args.Path)
		if err != nil {
			return nil, err
		}
		return c.whole(answer.CanonicalJSON(v), args.Cursor)
	}
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	if err := s.readWorkspace(args.Path); err != nil {
		return nil, err
	}
	fold, m, err := s.fold(ctx, args.At)
	if err != nil {
		return nil, err
	}
	v, left, err := answer.State(fold, m, args.Path, answer.ShownLimits())
	if err != nil {
		return nil, err
	}
	r, err := c.whole(v, args.Cursor)
	if err == nil && len(left) > 0 {
		r.notes = append(r.notes, "Lists of more than 1000 members were cut; a longer path has the rest.")
	}
	return r, err
}

// readWorkspace makes the states of the session have the files of the workspace, if a path
// names them.
func (s *opened) readWorkspace(path string) error {
	if first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first != workspace.Name && !strings.HasPrefix(first, workspace.Name+".") {
		return nil
	}
	x, err := answer.CompileValue("state." + workspace.Name)
	if err != nil {
		return err
	}
	return s.readFor(x)
}

func diffStates(ctx context.Context, c *call, args diffArgs) (*reply, error) {
	first, err := c.number(args.Cursor, 0)
	if err != nil {
		return nil, err
	}
	var s *opened
	if args.AsAgent != "" {
		s, err = c.openAs(args.Session, args.AsAgent)
	} else if s, err = c.open(args.Session); err == nil {
		err = s.readWorkspace(args.Path)
	}
	if err != nil {
		return nil, err
	}
	var views [2]any
	for i, address := range []string{args.From, args.To} {
		if args.AsAgent != "" {
			v, err := s.agentView(ctx, args.AsAgent, address, args.Path)
			if err != nil {
				return nil, err
			}
			views[i] = verbatim(answer.CanonicalJSON(v))
			continue
		}
		fold, m, err := s.fold(ctx, address)
		if err != nil {
			return nil, err
		}
		var left []string
		if views[i], left, err = answer.State(fold, m, args.Path, answer.ComparedLimits()); err != nil {
			return nil, err
		}
		if len(left) > 0 {
			return nil, refuse(problem.TooLarge, "Give a path, so that a smaller part is compared.", "the state at %v is too large to compare", m)
		}
		if whole, ok := views[i].(map[string]any); ok && args.Path == "" {
			delete(whole, "seq")
			delete(whole, "at")
		}
	}
	patch, err := replay.Diff(views[0], views[1])
	if err != nil {
		return nil, err
	}
	var ops []json.RawMessage
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, err
	}
	list := items{c: c}
	for n, op := range ops {
		if uint64(n) < first {
			continue
		}
		if ok, err := list.add(op, operationOf(op)); err != nil || !ok {
			return list.reply(strconv.Itoa(n)), err
		}
	}
	return list.reply(""), nil
}

// operationOf is what a list tells of an operation whose value is too large for it.
func operationOf(op json.RawMessage) any {
	var brief struct {
		Op   string `json:"op"`
		Path string `json:"path"`
	}
	if err := json.Unmarshal(op, &brief); err != nil || len(brief.Path) > maxMessage {
		return nil
	}
	return brief
}
