package mcp

import (
	"context"
	"errors"
	"strconv"

	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/server/problem"
)

type blameArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Path    string `json:"path" jsonschema:"the value, such as stage.entities.smith.strength"`
	At      string `json:"at,omitempty" jsonschema:"the address of the moment; default end"`
	All     bool   `json:"all,omitempty" jsonschema:"list all settings up to the moment, oldest first, not only the last"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

type whyArgs struct {
	Session  string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Path     string `json:"path,omitempty" jsonschema:"the value of the stage, such as stage.entities.smith.strength; default the whole stage"`
	At       string `json:"at,omitempty" jsonschema:"the address of the moment; default end"`
	Minimize bool   `json:"minimize,omitempty" jsonschema:"find signals of which none can be left out, so that the value stays the same"`
	Where    string `json:"where,omitempty" jsonschema:"with minimize, keep this expression true instead of the value"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"the cursor of the part before"`
}

func causeTools() []*tool {
	return []*tool{
		newTool("blame", "What set a value last",
			"Name what last set a value of the state: the moment and the entry, and for a value of the stage the choreography, the step and the action that set it, with the values before and after.",
			blame),
		newTool("why", "What a value depends on",
			"Return the causal slice of a value: of the stage the acts that set it, the performances with the signals that began and ended them, guards, conditions and declarations; of the world the effects, intents and views; of the director its events; as nodes and edges. The signals of a value of the stage were checked by a replay with them alone. With minimize, find a smallest set of signals that still gives the value.",
			why),
	}
}

func blame(ctx context.Context, c *call, args blameArgs) (*reply, error) {
	path, err := provenance.ParsePath(args.Path)
	if err != nil {
		return nil, err
	}
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	m, err := s.moment(ctx, args.At)
	if err != nil {
		return nil, err
	}
	if !args.All {
		b, err := provenance.Blame(ctx, s.travel, path, m)
		if err != nil {
			return nil, err
		}
		return c.whole(answer.ViewBlamed(&b), args.Cursor)
	}
	first, err := c.number(args.Cursor, 0)
	if err != nil {
		return nil, err
	}
	list := items{c: c}
	n := uint64(0)
	for setting, err := range provenance.History(ctx, s.travel, path, m) {
		if err != nil {
			return nil, err
		}
		if n++; n <= first {
			continue
		}
		if ok, err := list.add(answer.ViewSetting(&setting), answer.ViewMoment(setting.Moment)); err != nil || !ok {
			return list.reply(strconv.FormatUint(n-1, 10)), err
		}
	}
	return list.reply(""), nil
}

// maxHeld bounds the entries that why holds in memory.
const maxHeld = 200_000

func why(ctx context.Context, c *call, args whyArgs) (*reply, error) {
	if args.Where != "" && !args.Minimize {
		return nil, badArgument(errWhere)
	}
	if args.Path == "" {
		args.Path = "stage.entities"
	}
	path, err := provenance.ParsePath(args.Path)
	if err != nil {
		return nil, err
	}
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	m, err := s.moment(ctx, args.At)
	if err != nil {
		return nil, err
	}
	if m.Seq > maxHeld {
		return nil, refuse(problem.OverBudget, "Use blame, which has no such bound.", "why takes moments up to entry %d", maxHeld)
	}
	if args.Minimize {
		return s.minimal(ctx, args, path, m)
	}
	slice, err := provenance.Why(ctx, s.travel, path, m)
	if err != nil {
		return nil, err
	}
	return c.whole(answer.ViewSlice(slice), args.Cursor)
}

var errWhere = refuse(problem.BadRequest, "Set minimize to true, or omit where.", "where needs minimize")

// minimal finds a minimal set of signals.
func (s *opened) minimal(ctx context.Context, args whyArgs, path provenance.StatePath, m replay.Moment) (*reply, error) {
	holds, err := s.condition(ctx, args.Where, path, m)
	if err != nil {
		return nil, err
	}
	least, err := answer.Minimize(ctx, s.travel, m, path, holds)
	if err != nil {
		return nil, err
	}
	return s.c.whole(answer.ViewMinimal(&least), args.Cursor)
}

// condition returns what minimize keeps: the expression, or without one the value.
func (s *opened) condition(ctx context.Context, expr string, path provenance.StatePath, m replay.Moment) (provenance.Criterion, error) {
	if expr == "" {
		return provenance.Same(ctx, s.travel, path, m)
	}
	p, err := answer.Compile(expr)
	if err != nil {
		return nil, err
	}
	if err := s.readFor(&p.Expression); err != nil {
		return nil, err
	}
	holds, err := answer.Holding(ctx, s.travel, m, p)
	if errors.Is(err, answer.ErrReadsPrev) {
		return nil, refuse(problem.BadRequest, "Write the expression over state alone.", "%v", err)
	}
	return holds, err
}
