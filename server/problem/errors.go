package problem

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// retryReadOnly is how long a caller waits, in seconds, before it tries a store again
// that refuses to write. An operator has to act first.
const retryReadOnly = 60

// noSession is the text about a session that the caller cannot use, for whatever reason.
const noSession = "no session of this name exists, or the caller has no grant for it; GET /api/v1/sessions lists those that it may read"

// ErrStopping is the cause of the end of a request's context when the server stops
// before the request is answered.
var ErrStopping = errors.New("the server is stopping")

// sentinels has the code of each error that needs nothing but its text. The first that
// matches counts.
var sentinels = []struct {
	err  error
	code ErrorCode
}{
	{access.ErrUnauthenticated, Unauthenticated},
	{access.ErrForbidden, Forbidden},
	{limit.ErrCoding, MediaUnsupported},
	{limit.ErrDamaged, BadRequest},
	{limit.ErrIncomplete, BadRequest},
	{limit.ErrExpands, TooLarge},
	{eventlog.ErrDeleted, Deleted},
	{eventlog.ErrClaimed, InUse},
	{eventlog.ErrInUse, InUse},
	{eventlog.ErrTooLarge, TooLarge},
	{eventlog.ErrCorrupt, Damaged},
	{eventlog.ErrLost, Damaged},
	{eventlog.ErrClosed, Stopping},
	{eventlog.ErrInvalid, Invalid},
	{agentslive.ErrLeft, NoAgent},
	{history.ErrNoThing, NotFound},
	{jsondoc.ErrPointer, BadRequest},
	{view.ErrPolicy, Invalid},
	{provenance.ErrPath, BadRequest},
	{provenance.ErrNever, NotFound},
	{provenance.ErrNoSlice, NotFound},
	{bookmark.ErrMalformed, Invalid},
	{variant.ErrChange, Invalid},
	{replay.ErrSyntax, BadRequest},
	{replay.ErrNoAddress, NoMoment},
	{where.ErrBudget, OverBudget},
	{where.ErrExpression, Invalid},
	{definition.ErrBudget, OverBudget},
	{definition.ErrInvalid, Invalid},
	{session.ErrRules, Invalid},
	{signal.ErrSyntax, BadRequest},
	{director.ErrNotFound, NotFound},
	{director.ErrTurn, InUse},
	{director.ErrAwaiting, InUse},
	{director.ErrChoicePending, InUse},
	{director.ErrNotOpen, InUse},
	{director.ErrConflict, InUse},
	{ErrStopping, Stopping},
}

// Of returns the problem of an error. An error that it does not know is [Internal], and
// its text is not sent: it may name files of the server. The detail names no Go package.
func Of(err error) *Details {
	p := classify(err)
	if plain := errtext.Plain(p.Detail); plain != p.Detail {
		q := *p // p may be shared
		q.Detail = plain
		return &q
	}
	return p
}

// classify is [Of] with the text of the error as it is.
func classify(err error) *Details {
	if p, ok := errors.AsType[*Details](err); ok {
		return p
	}
	// One path for a session that does not exist and for one that the caller may not
	// know of: the text names neither the session nor the reason.
	// A deleted session matches ErrNoSession too, and has a code of its own.
	if errors.Is(err, access.ErrHidden) || errors.Is(err, eventlog.ErrNoSession) && !errors.Is(err, eventlog.ErrDeleted) {
		return &Details{Code: NoSession, Detail: noSession, Err: err}
	}
	if e, ok := errors.AsType[*limit.OverLimitError](err); ok {
		return &Details{Code: TooMany, Detail: e.Error(), RetryAfter: int((e.RetryAfter + time.Second - 1) / time.Second), Err: err}
	}
	if e, ok := errors.AsType[*eventlog.ConflictError](err); ok {
		return &Details{Code: Conflict, Detail: e.Error(), Head: &e.Head, Err: err}
	}
	// A full disk is one of the causes of a read-only log.
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &Details{Code: DiskFull, Detail: "the disk is full; free space and start the server again; reading goes on", RetryAfter: retryReadOnly, Err: err}
	}
	if errors.Is(err, eventlog.ErrReadOnly) {
		return &Details{Code: ReadOnly, Detail: "the store takes no entries since a write failed; see the log of the server; reading goes on", RetryAfter: retryReadOnly, Err: err}
	}
	if e, ok := errors.AsType[*signal.FieldError](err); ok {
		return (&Details{Code: Invalid, Detail: err.Error(), Err: err}).At(e.Path)
	}
	if errors.Is(err, session.ErrTime) {
		return (&Details{Code: Invalid, Detail: err.Error(), Err: err}).At("/timestamp")
	}
	if e, ok := errors.AsType[*authored.DiagnosticsError](err); ok && len(e.Diagnostics) > 0 {
		return (&Details{Code: Invalid, Detail: err.Error(), Err: err}).At(e.Diagnostics[0].Pointer)
	}
	if e, ok := errors.AsType[*history.NoAgentError](err); ok {
		return &Details{Code: NoAgent, Detail: e.Error(), Err: err}
	}
	if e, ok := errors.AsType[*film.BoundError](err); ok {
		return &Details{Code: OverBudget, Detail: e.Error(), Err: err}
	}
	if e, ok := errors.AsType[*film.NoStageError](err); ok {
		return &Details{Code: NotFound, Detail: e.Error(), Err: err}
	}
	if e, ok := errors.AsType[*where.EvalError](err); ok && !errors.Is(err, where.ErrBudget) {
		return &Details{Code: Invalid, Detail: e.Error(), Err: err}
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Details{Code: TooLarge, Detail: "the body has more than " + strconv.FormatInt(e.Limit, 10) + " bytes; send it in parts", Err: err}
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return &Details{Code: s.code, Detail: err.Error(), Err: err}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return &Details{Code: Timeout, Detail: "the request was not complete in time", Err: err}
	}
	return &Details{Code: Internal, Detail: "the server failed; its log has the reason", Err: err}
}
