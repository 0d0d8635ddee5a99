package local

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// checkpointsPath is the path of the requests for checkpoints.
const checkpointsPath = "/api/v1/checkpoints"

// DefaultCheckpoints is the number of checkpoints that are lent at the same time.
const DefaultCheckpoints = 32

// removeWait is how long a checkpoint waits for the end of a process whose connection has
// ended: the system may close the socket of a process before it releases its locks.
const removeWait = time.Second

// Checkpoints lends checkpoints of an engine to the processes of the same user.
type Checkpoints struct {
	engine *sajou.Engine
	logger *slog.Logger
	lent   chan struct{} // holds a value for each checkpoint
}

// NewCheckpoints returns the room of an engine. It lends at most DefaultCheckpoints at the
// same time: each keeps the space of tables that the store has deleted. A nil logger
// discards.
func NewCheckpoints(engine *sajou.Engine, logger *slog.Logger) *Checkpoints {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Checkpoints{engine, logger, make(chan struct{}, DefaultCheckpoints)}
}

// Routes returns the routes of the room.
func (c *Checkpoints) Routes() []route.Endpoint {
	return []route.Endpoint{{
		Pattern: "POST " + checkpointsPath, Scope: access.ScopeAdmin, Stream: true, Handler: c.lend,
		Doc: &route.Doc{
			Summary: "Lend a checkpoint of the store to a command",
			Text:    "Answers on the Unix socket beside the store alone. The first line names the directory of the checkpoint, which is removed when the connection ends.",
			Success: []route.Success{{Status: http.StatusOK, Content: []route.Content{{Type: route.MediaNDJSON, Schema: "checkpoint"}}}},
			Errors:  []problem.ErrorCode{problem.DiskFull},
		},
	}}
}

// lent is the first line of an answer.
type lent struct {
	Directory string `json:"directory"`
}

// lend makes a checkpoint, answers with its directory, and removes it when the caller goes
// away. When the server stops, a caller that reads the checkpoint keeps it and removes it.
func (c *Checkpoints) lend(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if caller := access.From(ctx); caller == nil || caller.Name != access.SocketCaller().Name {
		return problem.New(problem.Forbidden, "checkpoints are lent on the socket beside the store alone")
	}
	select {
	case c.lent <- struct{}{}:
		defer func() { <-c.lent }()
	default:
		return &problem.Details{Code: problem.TooMany, Detail: "too many commands read checkpoints of the store; wait for one to end", RetryAfter: 1}
	}
	dir, err := c.engine.Checkpoint(ctx)
	if err != nil {
		return err
	}
	wait := removeWait
	defer func() {
		if err := eventlog.RemoveCheckpoint(dir, wait); err != nil && !errors.Is(err, eventlog.ErrLocked) {
			c.logger.Warn("a checkpoint stays until the store is opened next", slog.String("path", dir), slog.Any("err", err))
		}
	}()
	line, err := json.Marshal(lent{dir})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", route.MediaNDJSON)
	w.Header().Set("Cache-Control", "no-store")
	_, err = w.Write(append(line, '\n'))
	if err = errors.Join(err, http.NewResponseController(w).Flush()); err != nil {
		return nil // the caller has gone
	}
	select {
	case <-ctx.Done():
	case <-route.Stopping(ctx):
		wait = 0
	}
	return nil
}
