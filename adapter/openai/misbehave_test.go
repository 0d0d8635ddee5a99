package openai_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/session"
)

// hang holds a request until its client closes the connection.
func hang(r *http.Request) { <-r.Context().Done() }

// hijack takes the connection from the server.
func hijack(w http.ResponseWriter) *net.TCPConn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	return conn.(*net.TCPConn)
}

// flood writes a text until the client closes the connection, and fails the test if
// it has written more than any limit allows.
func flood(t *testing.T, w http.ResponseWriter, text string) {
	const far = 64 << 20
	for n := 0; n < far; n += len(text) {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
	t.Error("the client took it all")
}

// Each misbehavior has a defined result: the tokens, the error, the number of
// requests, and the failures that the breaker counts.
func TestMisbehaviour(t *testing.T) {
	bomb := func() []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(make([]byte, 1<<20))
		_ = z.Close()
		return b.Bytes()
	}()
	type handler = func(t *testing.T, p *peer, n int, w http.ResponseWriter, r *http.Request)
	for _, tc := range []struct {
		name     string
		handle   handler
		tokens   string
		code     agents.Code
		err      error // wrapped beside the code; nil for none
		recovery agents.Recovery
		status   int
		attempts int
		reason   string // a part of it
		body     string // a part of it
		failures int    // the breaker's, after the call; it opens at 5
	}{
		{
			name: "hangs before the headers",
			handle: func(_ *testing.T, p *peer, _ int, _ http.ResponseWriter, r *http.Request) {
				p.fire(firstByte, 0)
				hang(r)
			},
			code: agents.ErrGenerationTimeout, recovery: agents.RetryWithDelay, attempts: 2, reason: "no answer after 31s", failures: 2,
		},
		{
			name: "hangs behind the headers",
			handle: func(_ *testing.T, p *peer, _ int, w http.ResponseWriter, r *http.Request) {
				send(w, ": wait\n\n")
				p.fire(firstByte, 0)
				hang(r)
			},
			code: agents.ErrGenerationTimeout, recovery: agents.RetryWithDelay, attempts: 2, reason: "no answer after 31s", failures: 2,
		},
		{
			name: "hangs in the stream",
			handle: func(_ *testing.T, p *peer, _ int, w http.ResponseWriter, r *http.Request) {
				send(w, "%s%s%s", delta("a"), delta("b"), `data: {"choices":[{"del`)
				p.fire(idle, 2)
				hang(r)
			},
			tokens: "a b", code: agents.ErrGenerationTimeout, recovery: agents.RetryWithDelay, attempts: 1, reason: "no further event after 17s", failures: 1,
		},
		{
			name: "drips",
			handle: func(_ *testing.T, p *peer, _ int, w http.ResponseWriter, r *http.Request) {
				send(w, "%s", delta("a"))
				for _, b := range []byte(": keep-alive\n\n: keep-alive\n\ndata: {") {
					send(w, "%c", b)
				}
				p.fire(idle, 1)
				hang(r)
			},
			tokens: "a", code: agents.ErrGenerationTimeout, recovery: agents.RetryWithDelay, attempts: 1, reason: "no further event", failures: 1,
		},
		{
			name: "drips an object",
			handle: func(_ *testing.T, p *peer, _ int, w http.ResponseWriter, r *http.Request) {
				send(w, `{"choices": `)
				p.fire(whole, 0)
				hang(r)
			},
			code: agents.ErrGenerationTimeout, recovery: agents.RetryWithDelay, attempts: 1, reason: "the whole request after 1m1s", failures: 1,
		},
		{
			name: "endless tokens",
			handle: func(t *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				flood(t, w, delta("a"))
			},
			tokens: strings.TrimSpace(strings.Repeat("a ", 100)),
			code:   agents.ErrGenerationFailed, err: openai.ErrLimit, recovery: agents.Abort, attempts: 1, reason: "more than 100 tokens", failures: 1,
		},
		{
			name: "endless line",
			handle: func(t *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "data: ")
				flood(t, w, strings.Repeat("x", 1024))
			},
			code: agents.ErrGenerationFailed, err: openai.ErrLimit, recovery: agents.Abort, attempts: 1, reason: "a line of more than 65536 bytes", failures: 1,
		},
		{
			name: "endless event",
			handle: func(t *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				flood(t, w, "data: "+strings.Repeat("x", 1024)+"\n")
			},
			code: agents.ErrGenerationFailed, err: openai.ErrLimit, recovery: agents.Abort, attempts: 1, reason: "an event of more than 262144 bytes", failures: 1,
		},
		{
			name: "endless comments",
			handle: func(t *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				flood(t, w, ": still here\n\n")
			},
			code: agents.ErrGenerationFailed, err: openai.ErrLimit, recovery: agents.Abort, attempts: 1, reason: "more than 1048576 bytes", failures: 1,
		},
		{
			name: "endless white space",
			handle: func(t *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				flood(t, w, strings.Repeat(" \n", 512))
			},
			code: agents.ErrGenerationFailed, err: openai.ErrLimit, recovery: agents.Abort, attempts: 1, reason: "more than 1048576 bytes", failures: 1,
		},
		{
			name: "endless object",
			handle: func(t *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "{")
				flood(t, w, strings.Repeat(`"a":[],`, 512))
			},
			code: agents.ErrGenerationFailed, err: openai.ErrLimit, recovery: agents.Abort, attempts: 1, reason: "more than 1048576 bytes", failures: 1,
		},
		{
			name: "endless nesting",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "data: %s\n\n", strings.Repeat(`{"choices":[`, 5001)) // the deepest nesting in one line is too deep for the decoder
			},
			code: agents.ErrGenerationFailed, err: openai.ErrMalformed, recovery: agents.Abort, attempts: 1, reason: "exceeded max depth", failures: 1,
		},
		{
			name: "gzip bomb",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Accept-Encoding"); got != "identity" {
					panic(got)
				}
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(bomb)
			},
			code: agents.ErrGenerationFailed, err: openai.ErrMalformed, recovery: agents.Abort, attempts: 1, reason: "compressed", failures: 1,
		},
		{
			name: "500 for ever",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "out of memory", http.StatusInternalServerError)
			},
			code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.Retry, status: 500, attempts: 4, body: "out of memory", failures: 4,
		},
		{
			name: "500, and the text hangs",
			handle: func(_ *testing.T, p *peer, _ int, w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusNotImplemented)
				send(w, "out of")
				p.fire(linger, 0)
				hang(r)
			},
			code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.Retry, status: 501, attempts: 4, failures: 4,
		},
		{
			name: "504",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusGatewayTimeout)
			},
			code: agents.ErrGenerationTimeout, err: openai.ErrService, recovery: agents.RetryWithDelay, status: 504, attempts: 4, failures: 4,
		},
		{
			name: "429 for long",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "21")
				w.WriteHeader(http.StatusTooManyRequests)
			},
			code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.RetryWithDelay, status: 429, attempts: 1, failures: 1,
		},
		{
			name: "401",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				http.Error(w, `{"error": {"message": "who are you?"}}`, http.StatusUnauthorized)
			},
			code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.Abort, status: 401, attempts: 1, body: "who are you?",
		},
		{
			name: "HTML",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				send(w, "\n<!doctype html><title>Sign in to the network</title>")
			},
			code: agents.ErrGenerationFailed, err: openai.ErrMalformed, recovery: agents.Abort, attempts: 1, reason: "neither events nor an object", body: "Sign in", failures: 1,
		},
		{
			name: "HTML that hangs",
			handle: func(_ *testing.T, p *peer, _ int, w http.ResponseWriter, r *http.Request) {
				send(w, "<p>")
				p.fire(linger, 0)
				hang(r)
			},
			code: agents.ErrGenerationFailed, err: openai.ErrMalformed, recovery: agents.Abort, attempts: 1, reason: "neither events nor an object", failures: 1,
		},
		{
			name:   "nothing",
			handle: func(*testing.T, *peer, int, http.ResponseWriter, *http.Request) {},
			code:   agents.ErrGenerationFailed, err: openai.ErrTruncated, recovery: agents.Retry, attempts: 4, failures: 4,
		},
		{
			name: "no choice",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "data: [DONE]\n\n")
			},
			code: agents.ErrGenerationFailed, err: openai.ErrMalformed, recovery: agents.Abort, attempts: 1, reason: "no choice", failures: 1,
		},
		{
			name: "truncated JSON",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, `{"choices": [{"message": {"content": "a`)
			},
			code: agents.ErrGenerationFailed, err: openai.ErrTruncated, recovery: agents.Retry, attempts: 4, failures: 4,
		},
		{
			name: "truncated event",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "%s", delta("a")+`data: {"choices": [{"delta": {"conte`)
			},
			tokens: "a", code: agents.ErrGenerationFailed, err: openai.ErrTruncated, recovery: agents.Retry, attempts: 1, failures: 1,
		},
		{
			name: "stops in the middle",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "%s", delta("a"))
			},
			tokens: "a", code: agents.ErrGenerationFailed, err: openai.ErrTruncated, recovery: agents.Retry, attempts: 1, failures: 1,
		},
		{
			name: "no JSON",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "%sdata: <oops>\n\n", delta("a"))
			},
			tokens: "a", code: agents.ErrGenerationFailed, err: openai.ErrMalformed, recovery: agents.Abort, attempts: 1, reason: "invalid character", failures: 1,
		},
		{
			name: "reset in the stream",
			handle: func(_ *testing.T, p *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "%s", delta("a"))
				p.until(idle, 1) // the token was read
				conn := hijack(w)
				_ = conn.SetLinger(0) // so that closing resets
				_ = conn.Close()
			},
			tokens: "a", code: agents.ErrGenerationFailed, err: openai.ErrTruncated, recovery: agents.Retry, attempts: 1, failures: 1,
		},
		{
			name: "closes without an answer",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				_ = hijack(w).Close()
			},
			code: agents.ErrGenerationFailed, err: openai.ErrUnreachable, recovery: agents.Retry, attempts: 4, failures: 4,
		},
		{
			name: "no HTTP",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				conn := hijack(w)
				_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH "+secret+"\r\n")
				_ = conn.Close()
			},
			code: agents.ErrGenerationFailed, err: openai.ErrUnreachable, recovery: agents.Retry, attempts: 4, reason: "[redacted]", failures: 4,
		},
		{
			name: "an error in the stream",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "%s", delta("a")+`data: {"error": {"message": "compute error"}}`+"\n\n"+end)
			},
			tokens: "a", code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.Retry, attempts: 1, body: "compute error", failures: 1,
		},
		{
			name: "an error with a status in the stream",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "%s", `data: {"error": {"message": "slow down", "code": "429"}, "choices": null}`+"\n\n")
			},
			code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.RetryWithDelay, status: 429, attempts: 4, body: "slow down", failures: 4,
		},
		{
			name: "an invalid request, refused in the stream",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "%s", `data: {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}, "choices": "none"}`+"\n\n")
			},
			code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.Abort, status: 400, attempts: 1, body: "too long",
		},
		{
			name: "an event that is an error",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, "event: error\ndata: {\"code\": 400, \"message\": \"bad role\"}\n\n")
			},
			code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.Abort, status: 400, attempts: 1, body: "bad role",
		},
		{
			name: "an object that is an error",
			handle: func(_ *testing.T, _ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				send(w, `{"error": "model not loaded"}`)
			},
			code: agents.ErrGenerationFailed, err: openai.ErrService, recovery: agents.Retry, attempts: 4, body: "model not loaded", failures: 4,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, func(c *openai.Config) {
				c.MaxTokens, c.MaxBytes = 100, 1<<20
			}, func(p *peer, n int, w http.ResponseWriter, r *http.Request) { tc.handle(t, p, n, w, r) })
			tokens, err := tokensOf(t.Context(), p, prompt)
			if got := strings.Join(tokens, " "); got != tc.tokens {
				t.Errorf("tokens %q, want %q", got, tc.tokens)
			}
			e, ok := errors.AsType[*openai.Error](err)
			if !ok {
				t.Fatalf("error %v of type %[1]T, want *openai.Error", err)
			}
			if e.Code != tc.code || !errors.Is(err, tc.code) || e.Recovery != tc.recovery || e.Status != tc.status || e.Attempts != tc.attempts {
				t.Errorf("%v\ncode %s, recovery %s, status %d, attempts %d; want %s, %s, %d, %d",
					err, e.Code, e.Recovery, e.Status, e.Attempts, tc.code, tc.recovery, tc.status, tc.attempts)
			}
			if !errors.Is(e.Err, tc.err) || !strings.Contains(e.Reason, tc.reason) || !strings.Contains(e.Body, tc.body) {
				t.Errorf("err %v, reason %q, body %q; want %v, %q, %q", e.Err, e.Reason, e.Body, tc.err, tc.reason, tc.body)
			}
			noKey(t, err)
			if got := int(p.calls.Load()); got != tc.attempts {
				t.Errorf("%d requests, want %d", got, tc.attempts)
			}
			if got := p.Failures(); got != tc.failures {
				t.Errorf("the breaker counts %d failures, want %d", got, tc.failures)
			}
			delays := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
			if got := p.waits(); !slices.Equal(got, delays[:tc.attempts-1]) {
				t.Errorf("waited %v between %d attempts", got, tc.attempts)
			}
		})
	}
}

// Complete retries an answer that broke off, since its caller has seen no part of
// it.
func TestCompleteAgain(t *testing.T) {
	p := serve(t, nil, func(_ *peer, n int, w http.ResponseWriter, _ *http.Request) {
		send(w, "%s", delta("YE"))
		if n > 1 {
			send(w, "%s%s", delta("S"), end)
		}
	})
	got, err := p.Complete(t.Context(), openai.Request{Messages: prompt.Messages})
	want := openai.Completion{Text: "YES", Model: "m-1", FinishReason: "stop"}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if n := p.Failures(); n != 0 {
		t.Errorf("the breaker counts %d failures after a success", n)
	}
}

// A redirect is not followed, so the key reaches no other host.
func TestRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		elsewhere := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) { send(w, "%s", delta("a")+end) })
		p := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.server.URL+"/v1/chat/completions?key="+secret, status)
		})
		_, err := tokensOf(t.Context(), p, prompt)
		e, ok := errors.AsType[*openai.Error](err)
		if !ok || !errors.Is(err, openai.ErrRedirect) || e.Status != status || e.Recovery != agents.Abort || p.calls.Load() != 1 {
			t.Errorf("%d: error %v after %d requests", status, err, p.calls.Load())
		}
		noKey(t, err)
		if n := elsewhere.calls.Load(); n != 0 {
			t.Errorf("%d: %d requests to the other host", status, n)
		}
	}
}

// A canceled request returns at once in every phase, and the breaker does not count
// it.
func TestCancel(t *testing.T) {
	for name, begin := range map[string]string{
		"before the headers": "", "behind the headers": ": wait\n\n", "in the stream": delta("a"),
		"in a line": delta("a") + "data: {\"cho", "in an object": "{",
	} {
		t.Run(name, func(t *testing.T) {
			why := errors.New("the view is stale")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			p := serve(t, nil, func(p *peer, _ int, w http.ResponseWriter, r *http.Request) {
				if begin != "" {
					send(w, "%s", begin)
				}
				if strings.HasPrefix(begin, "data") || begin == "{" {
					p.until(idle, 1) // it was read
				}
				cancel(why)
				hang(r)
			})
			_, err := tokensOf(ctx, p, prompt)
			if !errors.Is(err, agents.ErrCancelled) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), why.Error()) {
				t.Errorf("error %v", err)
			}
			if n := p.Failures(); n != 0 || p.calls.Load() != 1 {
				t.Errorf("the breaker counts %d failures, after %d requests", n, p.calls.Load())
			}
			if waits := p.waits(); len(waits) != 0 {
				t.Errorf("waited %v after the cancellation", waits)
			}
		})
	}
}

// A canceled request returns at once while the server holds the TLS handshake.
// net/http continues with the connection; Close ends it.
func TestNoHandshake(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	clk := newClock()
	client, err := openai.New(openai.Config{
		BaseURL: "https://" + l.Addr().String(), Model: "m", APIKey: openai.NewKey(secret),
		FirstByte: firstByte, Idle: idle, Timeout: firstByte, Now: clk.Now, AfterFunc: clk.AfterFunc,
	})
	require.NoError(t, err)
	running := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = conn.Read(make([]byte, 1)) // the handshake has begun
		cancel()
		_, _ = io.Copy(io.Discard, conn) // until the client closes the connection
		_ = conn.Close()
	}()
	if _, err := tokensOf(ctx, client, prompt); !errors.Is(err, agents.ErrCancelled) {
		t.Errorf("error %v", err)
	}
	client.Close()
	goleak.VerifyNone(t, running)
}

// Tokens that were read ahead are not yielded after the end of the context, and a
// call with an ended context sends no request.
func TestCancelBetweenTokens(t *testing.T) {
	p := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
		send(w, "%s", delta("a")+delta("b")+delta("c")+end)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tokens []string
	var last error
	for token, err := range p.Generate(ctx, prompt) {
		if err != nil {
			last = err
			continue
		}
		tokens = append(tokens, token)
		cancel()
	}
	if len(tokens) != 1 || !errors.Is(last, agents.ErrCancelled) {
		t.Errorf("tokens %q, error %v", tokens, last)
	}
	if _, err := tokensOf(ctx, p, prompt); !errors.Is(err, agents.ErrCancelled) || p.calls.Load() != 1 {
		t.Errorf("error %v after %d requests", err, p.calls.Load())
	}
}

// The caller's deadline is a timeout, but the breaker does not count it as a failure
// of the service: the deadline may have been short.
func TestCallersDeadline(t *testing.T) {
	p := serve(t, nil, func(_ *peer, _ int, _ http.ResponseWriter, r *http.Request) { hang(r) })
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(20*time.Millisecond))
	defer cancel()
	_, err := tokensOf(ctx, p, prompt)
	if !errors.Is(err, agents.ErrGenerationTimeout) || !errors.Is(err, context.DeadlineExceeded) || p.Failures() != 0 {
		t.Errorf("error %v, %d failures", err, p.Failures())
	}
}

// failing is a generator that fails with an error of this package.
type failing struct{ err *openai.Error }

func (f failing) Generate(context.Context, generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", f.err) }
}

// generate.Run follows the Recovery and RetryAfter of an error: it does not retry a
// permanent failure, or one that asks for too long a wait.
func TestAgentHeedsErrors(t *testing.T) {
	for _, e := range []*openai.Error{
		{Code: agents.ErrGenerationFailed, Recovery: agents.Abort, Status: 401, Err: openai.ErrService},
		{Code: agents.ErrGenerationFailed, Recovery: agents.RetryWithDelay, Status: 429, RetryAfter: time.Minute, Err: openai.ErrService},
	} {
		eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
		require.NoError(t, err)
		ses, err := eng.Begin(t.Context(), "world", session.TimeManual)
		require.NoError(t, err)
		a, err := ses.Agents().Register(t.Context(), "a", nil)
		require.NoError(t, err)
		out, err := generate.Run(t.Context(), a, failing{e}, generate.Request{
			ReqID: "1", Prompt: func(view.View) generate.Prompt { return generate.Prompt{} },
		})
		got, ok := errors.AsType[*generate.GeneratorError](err)
		if !ok || !errors.Is(err, openai.ErrService) || !errors.Is(err, agents.ErrGenerationFailed) {
			t.Errorf("%v: ends with %v", e, err)
		} else if got.Recovery != e.Recovery || got.RetryAfter != e.RetryAfter || len(out.Attempts) != 1 {
			t.Errorf("%v: %d attempts, %s, again after %v", e, len(out.Attempts), got.Recovery, got.RetryAfter)
		}
		assert.NoError(t, eng.Close())
	}
}
