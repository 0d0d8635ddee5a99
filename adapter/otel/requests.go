package otel

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// BeginRequest begins the span of a request to a server, a child of the span that the
// header "traceparent" names. The pattern is that of the route, which the span is named
// after; neither path nor query nor body are in a span. End takes the session of the
// request, empty if there is none or the caller may not use it, and the status of the
// answer. The method has the form of package server's RequestTracer.
func (t *Telemetry) BeginRequest(ctx context.Context, header http.Header, pattern string) (_ context.Context, end func(session string, status int)) {
	method, route, _ := strings.Cut(pattern, " ")
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header))
	ctx, span := t.tracer.Start(ctx, pattern, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(t.now()),
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route)))
	return ctx, func(session string, status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if session != "" {
			span.SetAttributes(attribute.String("sajou.session", session))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End(trace.WithTimestamp(t.now()))
	}
}
