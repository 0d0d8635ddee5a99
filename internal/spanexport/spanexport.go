// Package spanexport sends the spans of a program to a receiver of OTLP over HTTP. The
// rest of the module makes spans by the API of OpenTelemetry; this package is the SDK that
// a program puts below it.
//
// The encoding is that of the receiver's protocol, by the same library that reads recorded
// traces, so that no exporter with a gRPC of its own is linked.
package spanexport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// ErrEndpoint is wrapped by the errors about the address of a receiver.
var ErrEndpoint = errors.New("no address of an OTLP/HTTP receiver")

// Endpoint returns the address to which spans are posted. An address without a path gets
// the usual one, /v1/traces.
func Endpoint(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("%w: %q; write it as http://127.0.0.1:4318", ErrEndpoint, text)
	case u.User != nil:
		return "", fmt.Errorf("%w: it must not contain a password", ErrEndpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// Config holds the options of [New].
type Config struct {
	// Endpoint is the address of the receiver, from [Endpoint].
	Endpoint string

	// Service and Version say which program the spans are of.
	Service, Version string

	// Failed is called when spans are lost because a request failed, with their number since
	// the last call and the last error: at most once a minute and at the shutdown. Nil
	// means that nothing is reported.
	Failed func(error)

	// Now is the clock of the minutes; it is required.
	Now func() time.Time

	// Timeout bounds one request. Zero means 10 s.
	Timeout time.Duration
}

// New returns a provider of tracers whose spans are sent in batches. It holds at most
// 2,048 spans and drops more. The caller shuts it down, which sends what it holds.
func New(cfg Config) *sdktrace.TracerProvider {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Failed == nil {
		cfg.Failed = func(error) {}
	}
	x := &exporter{cfg: cfg, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	of := resource.NewSchemaless(attribute.String("service.name", cfg.Service), attribute.String("service.version", cfg.Version))
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(x), sdktrace.WithResource(of))
}

// exporter posts spans. The SDK calls one method at a time.
type exporter struct {
	cfg    Config
	client *http.Client

	lost int // spans since the last call of Config.Failed
	last error
	told time.Time
}

// tellEvery is the time between two calls of Config.Failed: under load, a receiver that is
// down fails many times a second.
const tellEvery = time.Minute

// ExportSpans sends spans. An error is reported to Config.Failed alone: the SDK would write it
// to standard error.
func (x *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := x.send(ctx, spans); err != nil {
		x.lost, x.last = x.lost+len(spans), err
		if now := x.cfg.Now(); x.told.IsZero() || now.Sub(x.told) >= tellEvery {
			x.told = now
			x.tell()
		}
	}
	return nil
}

// Shutdown tells what has not been told, and closes the connection.
func (x *exporter) Shutdown(context.Context) error {
	x.tell()
	x.client.CloseIdleConnections()
	return nil
}

func (x *exporter) tell() {
	if x.lost > 0 {
		x.cfg.Failed(fmt.Errorf("%d spans are lost: %w", x.lost, x.last))
	}
	x.lost = 0
}

// maxAnswer bounds what is read of an answer, so that the connection can be used again.
const maxAnswer = 64 << 10

func (x *exporter) send(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, x.cfg.Timeout)
	defer cancel()
	var encoder ptrace.ProtoMarshaler
	body, err := encoder.MarshalTraces(traces(spans))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.cfg.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	res, err := x.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s", x.cfg.Endpoint, res.Status)
	}
	return nil
}

// traces returns spans, which are of one resource, in the form of the protocol.
func traces(spans []sdktrace.ReadOnlySpan) ptrace.Traces {
	all := ptrace.NewTraces()
	of := all.ResourceSpans().AppendEmpty()
	scopes := map[string]ptrace.ScopeSpans{}
	for i, s := range spans {
		if i == 0 {
			put(of.Resource().Attributes(), s.Resource().Attributes())
		}
		name := s.InstrumentationScope().Name
		scope, ok := scopes[name]
		if !ok {
			scope = of.ScopeSpans().AppendEmpty()
			scope.Scope().SetName(name)
			scopes[name] = scope
		}
		span := scope.Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID(s.SpanContext().TraceID()))
		span.SetSpanID(pcommon.SpanID(s.SpanContext().SpanID()))
		span.SetParentSpanID(pcommon.SpanID(s.Parent().SpanID()))
		span.SetName(s.Name())
		span.SetKind(ptrace.SpanKind(s.SpanKind())) // both count from 0 in the order of the protocol
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(s.StartTime()))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(s.EndTime()))
		if s.Status().Code == codes.Error {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
		put(span.Attributes(), s.Attributes())
	}
	return all
}

// put sets attributes: texts, whole numbers and booleans as they are, all others as texts.
func put(m pcommon.Map, list []attribute.KeyValue) {
	for _, a := range list {
		switch a.Value.Type() {
		case attribute.INT64:
			m.PutInt(string(a.Key), a.Value.AsInt64())
		case attribute.BOOL:
			m.PutBool(string(a.Key), a.Value.AsBool())
		default:
			m.PutStr(string(a.Key), a.Value.String())
		}
	}
}
