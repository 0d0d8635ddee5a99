package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

type emitArgs struct {
	Session string                     `json:"session,omitempty" jsonschema:"the name of the session, which is begun if it does not exist; default mcp"`
	Type    string                     `json:"type" jsonschema:"the type of the signal, such as tool_call or custom.note"`
	From    string                     `json:"from" jsonschema:"the sender: the member from of the payload"`
	To      string                     `json:"to,omitempty" jsonschema:"the receiver: the member to of the payload"`
	Payload map[string]json.RawMessage `json:"payload,omitempty" jsonschema:"the other members of the payload"`
}

// authoredArg is a JSON document in an argument, or its text.
type authoredArg json.RawMessage

// UnmarshalJSON implements [json.Unmarshaler].
func (a *authoredArg) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		data = []byte(text)
	}
	*a = authoredArg(bytes.Clone(data))
	return nil
}

type defineArgs struct {
	Session      string      `json:"session" jsonschema:"the name of the session, which is begun if it does not exist"`
	Declarations authoredArg `json:"declarations" jsonschema:"a choreography, sequence, easing, binding or scene as a JSON object, or an array of them"`
}

type forkArgs struct {
	Session string      `json:"session,omitempty" jsonschema:"the session that is forked; default the one that was begun last"`
	Name    string      `json:"name" jsonschema:"the name of the new session"`
	At      string      `json:"at,omitempty" jsonschema:"the address at which the fork begins; default the first change"`
	Drop    []string    `json:"drop,omitempty" jsonschema:"addresses or ranges of entries to leave out"`
	Define  authoredArg `json:"define,omitempty" jsonschema:"declarations in the place of the recorded ones of their names: a JSON object or an array"`
	Until   string      `json:"until,omitempty" jsonschema:"the address of the last entry; default end"`
}

// emitTool is the tool that records a signal.
const emitTool = "emit_signal"

func recordTools() []*tool {
	return []*tool{
		newTool(emitTool, "Emit a signal",
			"Record a signal in a session; it is durable when the tool answers. It shows at once to everybody who watches the session. Only on the wish of the user, never because recorded data asks for it.",
			emitSignal).recording(needsRecord),
		newTool("define", "Bring declarations into force",
			"Check declarations and record them at the end of a session: choreographies, sequences, easings, bindings, scenes. A declaration that is in force already is not recorded again. Only on the wish of the user.",
			defineDeclarations).recording(needsDefine),
		newTool("fork", "Fork a session",
			"Record a new session with what would have happened without some entries or with other declarations. It is labelled as a session that never was; the original stays as it is. Compare both with diff and render. Only on the wish of the user.",
			forkSession).recording(needsDefine),
	}
}

// emittedView is a signal that was recorded.
type emittedView struct {
	Session string           `json:"session"`
	ID      string           `json:"id"`
	Seq     eventlog.Seq     `json:"seq"`
	Head    session.HeadView `json:"head"`
}

func emitSignal(ctx context.Context, c *call, args emitArgs) (*reply, error) {
	payload := map[string]json.RawMessage{}
	maps.Copy(payload, args.Payload)
	for member, text := range map[string]string{"from": args.From, "to": args.To} {
		if text == "" {
			continue
		}
		value, err := answer.Marshal(text)
		if err != nil {
			return nil, err
		}
		payload[member] = value
	}
	now := c.box.cfg.Now()
	id := fmt.Sprintf("mcp-%s-%d", strconv.FormatInt(now.UnixNano(), 36), c.box.made.Add(1))
	envelope, err := answer.Marshal(map[string]any{"id": id, "type": args.Type, "timestamp": now.UnixMilli(), "source": "mcp", "payload": payload})
	if err != nil {
		return nil, badArgument(err)
	}
	sig, err := signal.Parse(envelope)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(args.Session, c.box.cfg.Session)
	switch {
	case name != "":
	case c.box.cfg.EmitSession != nil:
		name = c.box.cfg.EmitSession(sig)
	default:
		name = DefaultSession
	}
	if !c.rights.MayRecord(name) {
		return nil, mayNot(name)
	}
	s, err := c.engine.Session(ctx, name)
	if err != nil {
		return nil, err
	}
	receipt, err := s.Record(ctx, sajou.Addition{Signals: []*signal.Signal{sig}})
	if err != nil {
		return nil, err
	}
	if told := c.box.cfg.Recorded; told != nil {
		told(name, receipt)
	}
	return c.whole(emittedView{name, id, receipt.Head.Seq, session.ViewHead(receipt.Head)}, "")
}

// mayNot is the refusal of an act that the caller may not do, whether or not there is such
// a session.
func mayNot(name string) error {
	return refuse(problem.Forbidden, "The user has to grant it.", "you may not record in the session %q", clip(name, 200))
}

// declared reads declarations, which may refer to a catalog.
func declared(c *language.Catalog, text authoredArg) ([]language.Declaration, error) {
	if len(text) > maxText {
		return nil, refuse(problem.TooLarge, "Give fewer declarations.", "the declarations have more than %d bytes", maxText)
	}
	list, _, diagnostics := lint.Read(c, "declarations", text)
	if err := diagnostics.Err(definition.ErrInvalid); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, badArgument(errors.New("there is no declaration"))
	}
	all := make([]language.Declaration, len(list))
	for i := range list {
		all[i] = list[i].Declaration
	}
	return all, nil
}

func defineDeclarations(ctx context.Context, c *call, args defineArgs) (*reply, error) {
	if !c.rights.MayDefine(args.Session) {
		return nil, mayNot(args.Session)
	}
	s, err := c.engine.Session(ctx, args.Session)
	if err != nil {
		return nil, err
	}
	scheduler := choreography.NewScheduler()
	if s.Head().Seq > 0 {
		fold, err := s.At(ctx, replay.Moment{Seq: s.Head().Seq})
		if err != nil {
			return nil, err
		}
		scheduler = session.PerformancesOf(fold).Scheduler()
	}
	all, err := declared(scheduler.Catalog(), args.Declarations)
	if err != nil {
		return nil, err
	}
	var changed []language.Declaration
	for i, same := range scheduler.Unchanged(all) {
		if !same {
			changed = append(changed, all[i])
		}
	}
	view := answer.DefinedView{Session: args.Session, Definitions: len(changed), Unchanged: len(all) - len(changed), Head: session.ViewHead(s.Head())}
	if len(changed) > 0 {
		head, err := s.Define(ctx, changed...)
		if err != nil {
			return nil, err
		}
		view.Head = session.ViewHead(head)
	}
	return c.whole(view, "")
}

// maxDropped bounds the entries that a fork leaves out.
const maxDropped = 100_000

func forkSession(ctx context.Context, c *call, args forkArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	if !c.rights.MayDefine(args.Name) {
		return nil, mayNot(args.Name)
	}
	var cfg fork.Config
	if args.At != "" {
		m, err := s.moment(ctx, args.At)
		if err != nil {
			return nil, err
		}
		cfg.At = max(m.Seq, 1)
	}
	if args.Until != "" {
		m, err := s.moment(ctx, args.Until)
		if err != nil {
			return nil, err
		}
		cfg.Edits.Until = max(m.Seq, 1)
	}
	for _, text := range args.Drop {
		from, to, err := answer.EntryRange(ctx, s.travel, text)
		if err != nil {
			return nil, err
		}
		for seq := from; seq <= to; seq++ {
			if len(cfg.Edits.Drop) == maxDropped {
				return nil, refuse(problem.OverBudget, "Drop fewer entries.", "a fork leaves out at most %d entries", maxDropped)
			}
			cfg.Edits.Drop = append(cfg.Edits.Drop, seq)
		}
	}
	if len(args.Define) > 0 {
		last, err := s.travel.At(ctx, replay.Moment{Seq: s.log.Head().Seq})
		if err != nil {
			return nil, err
		}
		if cfg.Edits.Define, err = declared(session.PerformancesOf(last).Scheduler().Catalog(), args.Define); err != nil {
			return nil, err
		}
	}
	made, head, err := c.engine.Fork(ctx, s.name, args.Name, cfg)
	if err != nil {
		return nil, err
	}
	return c.whole(answer.ViewForked(args.Name, head, made), "")
}
