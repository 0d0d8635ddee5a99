package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// The bounds of an answer to a request for a checkpoint.
const (
	dialTimeout   = 5 * time.Second
	maxFirstLine  = 64 << 10 // bytes
	maxErrorBytes = 4 << 10
)

// Client returns a client whose requests go to the server's socket, whatever host they
// name. It follows no redirect.
func (h *Holder) Client() *http.Client {
	dialer := net.Dialer{Timeout: dialTimeout}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", h.socket)
			},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Answers reports whether a server listens on the socket.
func (h *Holder) Answers(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: dialTimeout}
	c, err := dialer.DialContext(ctx, "unix", h.socket)
	return err == nil && c.Close() == nil
}

// Checkpoint is a copy of a store that a server lends while it holds the store.
type Checkpoint struct {
	// Dir is the directory of the copy, a store to be opened for reading.
	Dir string

	body io.Closer
	end  context.CancelFunc
}

// Checkpoint borrows a checkpoint. The error is [ErrNoServer] if no server listens on the
// socket, that of ctx, or the refusal of the server.
func (h *Holder) Checkpoint(ctx context.Context) (*Checkpoint, error) {
	// The request outlives this call, but ends with ctx.
	ctx, end := context.WithCancel(ctx)
	c, err := h.borrow(ctx)
	if err != nil {
		end()
		return nil, err
	}
	c.end = end
	return c, nil
}

func (h *Holder) borrow(ctx context.Context) (*Checkpoint, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+checkpointsPath, nil)
	if err != nil {
		return nil, err
	}
	res, err := h.Client().Do(req)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && ctx.Err() == nil {
			return nil, fmt.Errorf("%w: %w", ErrNoServer, op)
		}
		return nil, err
	}
	c := &Checkpoint{body: res.Body}
	if c.Dir, err = firstLine(res); err != nil {
		return nil, errors.Join(err, res.Body.Close())
	}
	folder, err := folderOf(h.dir)
	if err == nil && !eventlog.IsCheckpointOf(filepath.Dir(folder), c.Dir) {
		err = fmt.Errorf("local: the server names %q, which is not a checkpoint of the store in %s", c.Dir, h.dir)
	}
	if err != nil {
		return nil, errors.Join(err, res.Body.Close())
	}
	return c, nil
}

// firstLine returns the directory that an answer names.
func firstLine(res *http.Response) (string, error) {
	if res.StatusCode != http.StatusOK {
		var refusal struct {
			Detail string `json:"detail"`
		}
		data, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
		if err == nil {
			_ = json.Unmarshal(data, &refusal) // an answer without a reason has its status
		}
		return "", &RefusalError{res.StatusCode, refusal.Detail}
	}
	line, err := bufio.NewReader(io.LimitReader(res.Body, maxFirstLine)).ReadBytes('\n')
	var answer lent
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	if err != nil {
		return "", fmt.Errorf("local: the answer of the server is not a checkpoint: %w", err)
	}
	return answer.Directory, nil
}

// RefusalError is the answer of a server that does not lend a checkpoint.
type RefusalError struct {
	Status int    // of HTTP
	Detail string // the reason, perhaps empty
}

func (e *RefusalError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("the server answers with status %d", e.Status)
	}
	return e.Detail
}

// Close removes the checkpoint. The store in it must be closed. If it is not, the server
// removes the checkpoint when it is.
func (c *Checkpoint) Close() error {
	err := eventlog.RemoveCheckpoint(c.Dir, 0)
	c.end()
	return errors.Join(err, c.body.Close())
}
