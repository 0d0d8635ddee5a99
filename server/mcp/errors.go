package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// refusal is an error with the code and the remedy that the model is sent. The remedy is
// fixed text; the error may repeat recorded text.
type refusal struct {
	code problem.ErrorCode
	do   string
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

func refuse(code problem.ErrorCode, do, format string, args ...any) error {
	return &refusal{code, do, fmt.Errorf(format, args...)}
}

var (
	errTimeout = errors.New("the call took too long")
	errSteps   = errors.New("the call would read too many entries")
	errPanic   = errors.New("the tool failed")
)

const (
	addressHelp = `An address is the number of an entry (36), end, end-10, a number and a time (36+350ms), session time (t:1.5s), a performance (perf:p-36-1), a correlation id (corr:c-7), a beat (beat:NAME), a turn (turn:3) or a bookmark (@NAME). A range is A..B; A.. and ..B are open.`
	exprHelp    = `An expression is CEL over entry (seq, at, kind, type, source, payload), state and prev (session, performances, stage, world, director, workspace), such as: entry.type == "tool_result" && !entry.payload.success. Read the members of a state with the tool state.`
	pathHelp    = `Read the path above it with the tool state: its answer has the members. A path has dots (stage.entities.smith.x), or is a JSON Pointer (/stage/entities/agent.v2/x) where a name has a dot.`
)

// remedies has the code and the remedy of each error that is the caller's to mend. The
// first that matches counts.
var remedies = []struct {
	err  error
	code problem.ErrorCode
	do   string
}{
	{errTimeout, problem.Timeout, "Ask for less: a shorter range, an earlier moment, or a cheaper expression."},
	{errSteps, problem.OverBudget, "Ask for less: give a range or ends that are nearer to each other."},
	{errPanic, problem.Internal, "This is a fault of the program. Try another tool, and report it."},
	{context.Canceled, problem.Stopping, "The call was cancelled."},
	{eventlog.ErrDeleted, problem.Deleted, "The session was deleted. list_sessions lists those that are there."},
	{eventlog.ErrNoSession, problem.NoSession, "list_sessions lists the sessions that you can read."},
	{eventlog.ErrLocked, problem.InUse, "Another program has the store open. If it is a server, the user can connect this client to its /mcp; else try again later."},
	{eventlog.ErrNoStore, problem.NoSession, "There is no store at the place that the program was given. The user has to name one, or record a session first."},
	{eventlog.ErrReadOnly, problem.ReadOnly, "The store takes no entries. The user has to look at it."},
	{eventlog.ErrCorrupt, problem.Damaged, "The recording is damaged. The tool verify names the entry; ask about moments before it."},
	{eventlog.ErrTooLarge, problem.TooLarge, "Record less in one entry."},
	{replay.ErrSyntax, problem.BadRequest, addressHelp},
	{where.ErrBudget, problem.OverBudget, "The expression costs too much at one entry. Simplify it."},
	{where.ErrExpression, problem.Invalid, exprHelp},
	{provenance.ErrPath, problem.BadRequest, pathHelp},
	{provenance.ErrNever, problem.NoMoment, "No entry has set the value. " + pathHelp},
	{provenance.ErrNoSlice, problem.Invalid, "why follows values of the stage, the world and the director, such as stage.entities.smith.x. For another value use blame."},
	{provenance.ErrUnmet, problem.Invalid, "The condition does not hold at that moment. Find a moment at which it does with scan."},
	{bisect.ErrEndpoint, problem.Invalid, "An end of the range is not what it was given as. Give another good or bad, or find: all."},
	{bisect.ErrAlike, problem.Invalid, "Both ends look the same to the expression. Give other ends, or find: all."},
	{agents.ErrUnknownAgent, problem.NoAgent, "The state world.agents of the session has the ids of its agents."},
	{history.ErrNoThing, problem.NoMoment, "Neither the world nor the view of any agent ever had it. Check the spelling."},
	{jsondoc.ErrPointer, problem.BadRequest, "A path into a view is a JSON Pointer such as /visible_entities/door/locked, or the id of an entity."},
	{variant.ErrChange, problem.Invalid, "The change is not possible; nothing was recorded."},
	{session.ErrRules, problem.Invalid, "A newer program recorded the session, so it cannot be folded here. list_entries, inspect_entry and verify work."},
	{definition.ErrBudget, problem.OverBudget, "The declarations cost too much; nothing was recorded."},
	{definition.ErrInvalid, problem.Invalid, "Correct the declarations; the tool lint says what is wrong and where. Nothing was recorded."},
	{signal.ErrSchema, problem.Invalid, "Correct the signal; nothing was recorded."},
	{signal.ErrSyntax, problem.BadRequest, "Correct the JSON; nothing was recorded."},
	{session.ErrTime, problem.Invalid, "The time of the session does not take the signal; nothing was recorded."},
	{eventlog.ErrInvalid, problem.Invalid, "Choose another name; nothing was recorded."},
}

// noMember is the remedy for a path that a state does not have; a NoMemberError is a
// [replay.ErrNoAddress] too.
const noAddress = "The session has no such moment. end is its last entry. " + addressHelp

// refusalOf returns an error as a refusal. An error that is not the caller's has a text
// that is not sent, because it may name files.
func (b *Toolbox) refusalOf(t *tool, err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if _, ok := errors.AsType[*answer.NoMemberError](err); ok {
		return &refusal{problem.NoMoment, pathHelp, err}
	}
	if _, ok := errors.AsType[*where.EvalError](err); ok && !errors.Is(err, where.ErrBudget) {
		return &refusal{problem.Invalid, "The expression fails at an entry. Guard it with has(…) or a test of the type. " + exprHelp, err}
	}
	if _, ok := errors.AsType[*film.BoundError](err); ok {
		return &refusal{problem.TooLarge, "Choose a smaller width.", err}
	}
	if _, ok := errors.AsType[*authored.DiagnosticsError](err); ok {
		return &refusal{problem.Invalid, "Correct the declarations; the tool lint says what is wrong and where. Nothing was recorded.", err}
	}
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return &refusal{r.code, r.do, err}
		}
	}
	if errors.Is(err, replay.ErrNoAddress) {
		return &refusal{problem.NoMoment, noAddress, err}
	}
	b.cfg.Logger.Error("a tool failed", slog.String("tool", t.name), slog.Any("err", err))
	return &refusal{problem.Internal, "This is a fault of the program or of its disk, and not of the call; its log has the reason.", errors.New("the tool failed")}
}

// failed returns the result of a call that failed. The text of the error is in the marked
// data, because it can repeat recorded text; the remedy is not.
func (b *Toolbox) failed(t *tool, err error) *sdk.CallToolResult {
	r := b.refusalOf(t, err)
	message, e := answer.Marshal(struct {
		Message string `json:"message"`
	}{clip(errtext.OneLine(r.Error()), maxMessage)})
	if e != nil {
		message = nil // a string always has JSON
	}
	out := &reply{data: message, failure: &failureView{r.code, r.do}}
	res := out.result()
	res.IsError = true
	return res
}

// maxMessage bounds the text of an error, in bytes.
const maxMessage = 2000

// clip cuts a text at a rune.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:runeStart(text, most)] + "…"
}
