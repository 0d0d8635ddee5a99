package otel_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

func TestRequestSpans(t *testing.T) {
	tel, _, spans := telemetry(t)
	const pattern = "GET /api/v1/sessions/{session}/state"
	header := http.Header{"Traceparent": {"00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"}}
	ctx, done := tel.BeginRequest(t.Context(), header, pattern)
	done("night", http.StatusOK)
	_, failed := tel.BeginRequest(t.Context(), http.Header{"Traceparent": {"nonsense"}}, pattern)
	failed("", http.StatusInternalServerError)
	require.Len(t, spans.Ended(), 2)
	first, second := spans.Ended()[0], spans.Ended()[1]
	assert.Equal(t, pattern, first.Name())
	assert.Equal(t, trace.SpanKindServer, first.SpanKind())
	assert.Equal(t, "0123456789abcdef0123456789abcdef", first.SpanContext().TraceID().String())
	assert.Equal(t, "0123456789abcdef", first.Parent().SpanID().String())
	assert.Equal(t, first.SpanContext(), trace.SpanContextFromContext(ctx))
	assert.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("http.request.method", "GET"), attribute.String("http.route", "/api/v1/sessions/{session}/state"),
		attribute.Int("http.response.status_code", 200), attribute.String("sajou.session", "night"),
	}, first.Attributes())
	assert.Equal(t, codes.Unset, first.Status().Code)
	assert.False(t, second.Parent().IsValid())
	assert.Equal(t, codes.Error, second.Status().Code)
	assert.Len(t, second.Attributes(), 3)
	assert.Equal(t, end, first.EndTime())
}
