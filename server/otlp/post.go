package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	otlpformat "github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/otlp/spool"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// splitter divides an export into its parts.
type splitter func(text []byte, inJSON bool) ([]otlpformat.ExportPart, otlpformat.RefusedParts, error)

// retryFull is how long an exporter waits, in seconds, for room in the spool.
const retryFull = 5

// Routes returns the routes of the room.
func (rv *TraceReceiver) Routes() []route.Endpoint {
	content := func(schema string) []route.Content {
		return []route.Content{{Type: mediaProtobuf}, {Type: route.MediaJSON, Schema: schema}}
	}
	endpoint := func(path, summary, rejected string, split splitter) route.Endpoint {
		return route.Endpoint{
			Pattern: "POST " + path, Scope: access.ScopeRecord, MaxBody: rv.cfg.MaxBody, ErrorForm: status,
			Handler: func(w http.ResponseWriter, r *http.Request) error { return rv.post(w, r, split, rejected) },
			Doc: &route.Doc{
				Summary: summary, Reference: true,
				Text: "OTLP over HTTP. The answer is given when everything is on disk, in the encoding of the request; its partial success tells what was refused. " +
					"Errors are google.rpc.Status messages, also where the status here is another one: 503 when the disk is full.",
				Params: []route.Parameter{
					{Name: "session", Text: "the session; without it the one that the server records into"},
					{Name: route.SessionHeader, In: "header", Text: "the same"},
				},
				Body: content("otlp-request"), Success: []route.Success{{Status: http.StatusOK, Content: content("otlp-answer")}}, ErrorSchema: "otlp-status",
				Errors: []problem.ErrorCode{
					problem.BadRequest, problem.NotFound, problem.NoSession, problem.Deleted, problem.MediaUnsupported,
					problem.ReadOnly, problem.Stopping,
				},
			},
		}
	}
	return []route.Endpoint{
		endpoint("/v1/traces", "Records the spans of OpenTelemetry", "rejectedSpans", otlpformat.SplitSpans),
		endpoint("/v1/logs", "Records the log records of OpenTelemetry that tell of agents", "rejectedLogRecords", otlpformat.SplitLogs),
	}
}

// post takes an export. Rejected is the member of the answer that counts what was refused.
func (rv *TraceReceiver) post(w http.ResponseWriter, r *http.Request, split splitter, rejected string) error {
	inJSON, err := encodingOf(r)
	if err != nil {
		return err
	}
	if rv.spool == nil {
		return problem.New(problem.NotFound, "this server takes no traces, because it has no directory to hold them in")
	}
	if err := rv.health(); err != nil {
		return err
	}
	if err := rv.Err(); err != nil {
		return err
	}
	session, err := rv.sessionOf(r)
	if err != nil {
		return err
	}
	touched, refused, err := rv.hold(r, session, split, inJSON)
	if err != nil {
		return err
	}
	if err := rv.acknowledge(touched); err != nil {
		return unavailable(err)
	}
	media, body := success(refused, rejected, inJSON)
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(body)
	return nil
}

// hold reads the body of a request and writes its parts to the spool.
func (rv *TraceReceiver) hold(r *http.Request, session string, split splitter, inJSON bool) (touched []*heldTrace, refused otlpformat.RefusedParts, err error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, refused, err
	}
	// An expanded body takes much memory, but no time of the peer any more.
	select {
	case rv.reading <- struct{}{}:
		defer func() { <-rv.reading }()
	case <-r.Context().Done():
		return nil, refused, context.Cause(r.Context())
	}
	expanded := *r
	expanded.Body = io.NopCloser(bytes.NewReader(sent))
	body, err := limit.Expand(&expanded, rv.cfg.MaxExpanded)
	if err != nil {
		return nil, refused, err
	}
	text, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, refused, err
	}
	parts, refused, err := split(text, inJSON)
	if err != nil {
		return nil, refused, problem.New(problem.BadRequest, err.Error())
	}
	touched, err = rv.write(session, parts)
	switch {
	case errors.Is(err, spool.ErrFull):
		p := problem.New(problem.TooMany, "the spool is full of traces that are not complete; try again later, or raise --max-spool")
		p.RetryAfter = retryFull
		return nil, refused, p
	case errors.Is(err, spool.ErrTooLarge):
		return nil, refused, problem.New(problem.TooLarge, "the export is larger than the whole spool; send it in parts, or raise --max-spool")
	}
	return touched, refused, unavailable(err)
}

// retryUnavailable is how long an exporter waits, in seconds, for a spool that cannot be
// written.
const retryUnavailable = 60

// unavailable returns the problem of an error of the spool. An exporter that gets it sends
// its spans again.
func unavailable(err error) error {
	if err == nil || problem.Of(err).Code != problem.Internal {
		return err
	}
	return &problem.Details{
		Code: problem.ReadOnly, Detail: "the spool cannot be written; see the log of the server, then start it again", RetryAfter: retryUnavailable, Err: err,
	}
}

// Err returns why no traces are taken until the server is started again, or nil.
func (rv *TraceReceiver) Err() error {
	if rv.spool == nil {
		return nil
	}
	return unavailable(rv.spool.Err())
}

// encodingOf reports whether the body of a request is JSON, and not protobuf.
func encodingOf(r *http.Request) (inJSON bool, err error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return false, problem.New(problem.MediaUnsupported, fmt.Sprintf("Content-Type %.80q: %v; send %s or %s", r.Header.Get("Content-Type"), err, mediaProtobuf, route.MediaJSON))
	}
	switch media {
	case mediaProtobuf:
		return false, nil
	case route.MediaJSON:
		return true, nil
	}
	return false, problem.New(problem.MediaUnsupported, fmt.Sprintf("Content-Type %.80q is not supported; send %s or %s", media, mediaProtobuf, route.MediaJSON))
}

// sessionOf returns the session that a request names, or "". The caller may record into it,
// or into every session that can be chosen instead.
func (rv *TraceReceiver) sessionOf(r *http.Request) (string, error) {
	ctx := r.Context()
	name, err := route.NamedSession(r)
	if err != nil {
		return "", err
	}
	target := name
	if target == "" {
		if rv.cfg.Split != partition.SplitNone {
			return "", access.CheckParts(ctx, access.ScopeRecord, rv.cfg.Session+".")
		}
		target = rv.cfg.Session
	}
	if err := access.Check(ctx, access.ScopeRecord, target); err != nil {
		return "", err
	}
	return name, rv.store.usable(ctx, target)
}
