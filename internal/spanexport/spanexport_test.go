package spanexport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/sajou-dev/sajou-go/internal/spanexport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:4318":              "http://127.0.0.1:4318/v1/traces",
		"https://collector.example/":         "https://collector.example/v1/traces",
		"https://collector.example/in/otlp":  "https://collector.example/in/otlp",
		"127.0.0.1:4318":                     "",
		"":                                   "",
		"ftp://collector.example":            "",
		"http://":                            "",
		"http://user:pass@collector.example": "",
		"http://collector.example/?a=b":      "",
	} {
		got, err := spanexport.Endpoint(text)
		assert.Equal(t, want, got, text)
		if want == "" {
			require.ErrorIs(t, err, spanexport.ErrEndpoint, text)
			assert.NotContains(t, err.Error(), "pass@")
		} else {
			require.NoError(t, err, text)
		}
	}
}

// A receiver gets the spans when the provider is shut down.
func TestSpansArrive(t *testing.T) {
	var got ptrace.Traces
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "application/x-protobuf", r.Header.Get("Content-Type"))
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		var decoder ptrace.ProtoUnmarshaler
		got, err = decoder.UnmarshalTraces(body)
		assert.NoError(t, err)
	}))
	defer receiver.Close()
	provider := spanexport.New(spanexport.Config{Endpoint: receiver.URL, Now: time.Now, Service: "test", Version: "v1", Failed: func(err error) { assert.NoError(t, err) }})
	tracer := provider.Tracer("scope")
	begin := time.Unix(1_800_000_000, 5)
	ctx, parent := tracer.Start(t.Context(), "parent", trace.WithTimestamp(begin), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("text", "a"), attribute.Int("number", 7), attribute.Bool("truth", true)))
	_, child := tracer.Start(ctx, "child")
	child.SetStatus(codes.Error, "not told")
	child.End()
	parent.End(trace.WithTimestamp(begin.Add(time.Second)))
	require.NoError(t, provider.Shutdown(t.Context()))

	require.Equal(t, 2, got.SpanCount())
	of := got.ResourceSpans().At(0)
	assert.Equal(t, map[string]any{"service.name": "test", "service.version": "v1"}, of.Resource().Attributes().AsRaw())
	require.Equal(t, 1, of.ScopeSpans().Len())
	assert.Equal(t, "scope", of.ScopeSpans().At(0).Scope().Name())
	first, second := of.ScopeSpans().At(0).Spans().At(0), of.ScopeSpans().At(0).Spans().At(1)
	assert.Equal(t, "child", first.Name())
	assert.Equal(t, ptrace.StatusCodeError, first.Status().Code())
	assert.Equal(t, second.SpanID(), first.ParentSpanID())
	assert.Equal(t, second.TraceID(), first.TraceID())
	assert.Equal(t, ptrace.SpanKindServer, second.Kind())
	assert.Equal(t, ptrace.SpanKindInternal, first.Kind())
	assert.Equal(t, begin.UnixNano(), int64(second.StartTimestamp()))
	assert.Equal(t, begin.Add(time.Second).UnixNano(), int64(second.EndTimestamp()))
	assert.Equal(t, map[string]any{"text": "a", "number": int64(7), "truth": true}, second.Attributes().AsRaw())
	assert.True(t, second.ParentSpanID().IsEmpty())
}

// A receiver that refuses, redirects or is not there costs its spans and nothing else.
func TestFailuresAreTold(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	defer refuses.Close()
	redirects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, refuses.URL, http.StatusFound) }))
	defer redirects.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for endpoint, want := range map[string]string{refuses.URL: "418", redirects.URL: "302", gone.URL: "refused"} {
		failed := errors.New("nothing was told")
		provider := spanexport.New(spanexport.Config{Endpoint: endpoint, Now: time.Now, Failed: func(err error) { failed = err }})
		_, span := provider.Tracer("scope").Start(t.Context(), "lost")
		span.End()
		require.NoError(t, provider.Shutdown(t.Context()))
		assert.ErrorContains(t, failed, "1 spans are lost")
		assert.ErrorContains(t, failed, want)
	}
}

// A receiver that stays down is reported once a minute, with what was lost meanwhile.
func TestFailuresAreCounted(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var told []string
	now := time.Unix(1_800_000_000, 0)
	provider := spanexport.New(spanexport.Config{
		Endpoint: gone.URL, Now: func() time.Time { return now },
		Failed: func(err error) { told = append(told, strings.SplitAfter(err.Error(), " lost")[0]) },
	})
	for _, later := range []time.Duration{0, 20 * time.Second, 39 * time.Second, time.Second, 59 * time.Second} {
		now = now.Add(later)
		_, span := provider.Tracer("scope").Start(t.Context(), "lost")
		span.End()
		require.NoError(t, provider.ForceFlush(t.Context()))
	}
	require.NoError(t, provider.Shutdown(t.Context()))
	assert.Equal(t, []string{"1 spans are lost", "3 spans are lost", "1 spans are lost"}, told)
}

// A receiver that does not answer delays a shutdown until its context ends.
func TestShutdownIsBounded(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	defer stuck.Close()
	provider := spanexport.New(spanexport.Config{Endpoint: stuck.URL, Now: time.Now})
	_, span := provider.Tracer("scope").Start(t.Context(), "lost")
	span.End()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	require.ErrorIs(t, provider.Shutdown(ctx), context.Canceled)
	close(release)
}
