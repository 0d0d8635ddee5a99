package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// MaxMessage bounds one message of a client, in bytes.
const MaxMessage = 4 << 20

// everything allows all: the caller who started the program on its own streams.
type everything struct{}

func (everything) MayRead(string) bool           { return true }
func (everything) MayReadAs(string, string) bool { return true }
func (everything) MayRecord(string) bool         { return true }
func (everything) MayDefine(string) bool         { return true }

// Serve speaks the protocol over a pair of streams, one message a line, until the client
// closes its end or ctx ends, and closes both. The client may do everything that the
// [Config] allows. A line that is not a message, or larger than [MaxMessage], is answered with
// an error of the protocol.
func (b *Toolbox) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := newLines(ctx, in, out, 2*b.cfg.Timeout)
	err := b.server(ctx, everything{}).Run(ctx, &sdk.IOTransport{Reader: input{l}, Writer: output{l}, MaxLineLength: 2 * MaxMessage})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// caller gives the rights of a caller of the server.
type caller struct{ *access.Caller }

func (c caller) MayRead(session string) bool { return c.May(access.ScopeRead, session) }

func (c caller) MayReadAs(session, agent string) bool { return c.MayAct(session, agent) }

func (c caller) MayRecord(session string) bool { return c.May(access.ScopeRecord, session) }

func (c caller) MayDefine(session string) bool { return c.May(access.ScopeDefine, session) }

// Routes returns the route of the server: POST /mcp, the streamable HTTP transport of the
// protocol without sessions. Each request has one message, and its answer is JSON, so a
// client holds nothing between requests.
func (b *Toolbox) Routes() []route.Endpoint {
	return []route.Endpoint{{
		Pattern: "POST /mcp", Scope: access.ScopePublic, MaxBody: MaxMessage, Handler: b.post,
		Doc: &route.Doc{
			Summary: "A message of the Model Context Protocol",
			Text:    "The streamable HTTP transport of the protocol without sessions: one JSON-RPC message a request, answered with JSON. A caller needs the scope read, or act, on a session to see it.",
			Body:    route.JSON("mcp-request"),
			Success: []route.Success{{Status: http.StatusOK, Content: route.JSON("mcp-response")}, {Status: http.StatusAccepted, Text: "The message was a notification."}},
			Errors:  []problem.ErrorCode{problem.BadRequest, problem.Unauthenticated, problem.NotAcceptable, problem.MediaUnsupported},
		},
	}}
}

// post answers one message.
func (b *Toolbox) post(w http.ResponseWriter, r *http.Request) error {
	id := access.From(r.Context())
	if id == nil {
		return access.Check(r.Context(), access.ScopeRead, "")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if message := bytes.TrimSpace(body); len(message) == 0 || message[0] != '{' || !json.Valid(message) {
		return problem.New(problem.BadRequest, "the body must be one JSON-RPC message; batches are not part of the protocol any more")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	rights := caller{id}
	h := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server { return b.server(r.Context(), rights) }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: MaxMessage, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // package server checks the host
	})
	answer := &refusals{ResponseWriter: w}
	h.ServeHTTP(answer, r)
	return answer.problem()
}

// refusals passes on an answer that is not an error. An error of the library is a plain text;
// it is kept, to become a problem document.
type refusals struct {
	http.ResponseWriter
	status int // of the error; 0 if there is none
	text   []byte
}

func (w *refusals) WriteHeader(status int) {
	if status >= http.StatusBadRequest && !strings.HasPrefix(w.Header().Get("Content-Type"), route.MediaJSON) {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusals) Write(p []byte) (int, error) {
	if w.status == 0 {
		return w.ResponseWriter.Write(p)
	}
	w.text = append(w.text, p...)
	return len(p), nil
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *refusals) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// problem returns the error, or nil.
func (w *refusals) problem() error {
	code := problem.BadRequest
	switch text := strings.TrimSpace(string(w.text)); {
	case w.status == 0:
		return nil
	case w.status == http.StatusUnsupportedMediaType:
		code = problem.MediaUnsupported
	case w.status == http.StatusBadRequest && strings.HasPrefix(text, "Accept "):
		code = problem.NotAcceptable
	case w.status >= http.StatusInternalServerError:
		return fmt.Errorf("mcp: %d: %s", w.status, text)
	}
	return problem.New(code, strings.TrimSpace(string(w.text)))
}

func quoted(text string) string { return strconv.Quote(clip(text, maxMessage)) }
