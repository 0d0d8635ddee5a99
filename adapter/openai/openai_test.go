package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/generate"
)

// Generate and Complete read the answers of many kinds of server.
func TestAnswers(t *testing.T) {
	const event = `data: {"choices":[{"index":0,"delta":{"content":"a b"},"finish_reason":"stop"}]}`
	const object = `{"model": "m-1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "a b"}, "finish_reason": "stop"}],` +
		` "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}`
	for _, tc := range []struct {
		name, body string
		kind       string // the Content-Type; "" for that of a stream
		want       openai.Completion
	}{
		{name: "events", body: delta("a ") + delta("b") + end, want: openai.Completion{Text: "a b", Model: "m-1", FinishReason: "stop"}},
		{name: "CRLF", body: strings.ReplaceAll(delta("a ")+delta("b")+end, "\n", "\r\n"), want: openai.Completion{Text: "a b", Model: "m-1", FinishReason: "stop"}},
		{name: "CR", body: strings.ReplaceAll(delta("a b")+end, "\n", "\r"), want: openai.Completion{Text: "a b", Model: "m-1", FinishReason: "stop"}},
		{name: "no [DONE]", body: event + "\n\n", want: openai.Completion{Text: "a b", FinishReason: "stop"}},
		{name: "no last newlines", body: event, want: openai.Completion{Text: "a b", FinishReason: "stop"}},
		{name: "no finish_reason", body: delta("a b") + "data:[DONE]", want: openai.Completion{Text: "a b", Model: "m-1"}},
		{name: "keep-alives", body: "\n\n: one\n\n" + delta("a b") + ": two\n\nid: 7\nretry: 3\n\ndata:\n\nevent: ping\n\n" + end, want: openai.Completion{Text: "a b", Model: "m-1", FinishReason: "stop"}},
		{name: "data of many lines", body: "data: {\"choices\":\ndata: [{\"delta\":\ndata: {\"content\": \"a b\"}}]}\n\n" + end, want: openai.Completion{Text: "a b", FinishReason: "stop"}},
		{name: "a byte order mark", body: "\uFEFF" + event, want: openai.Completion{Text: "a b", FinishReason: "stop"}},
		{
			name: "events without content", body: `data: {"choices": []}` + "\n\n" + `data: {"choices": null, "error": null}` + "\n\n" +
				`data: {"choices": [{"delta": {"role": "assistant", "content": null}, "finish_reason": null}]}` + "\n\n" +
				`data: {"choices": [{"delta": {"reasoning_content": "hm"}, "finish_reason": ""}], "usage": null}` + "\n\n" + delta("a b") + end,
			want: openai.Completion{Text: "a b", Model: "m-1", FinishReason: "stop"},
		},
		{
			name: "other choices", body: `data: {"choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": "stop"}, {"delta": {"content": "a b"}}]}` + "\n\n" +
				`data: {"choices": [{"index": 2, "delta": {"content": "y"}}]}` + "\n\n" + end,
			want: openai.Completion{Text: "a b", FinishReason: "stop"},
		},
		{
			name: "usage at the end", body: delta("a b") + `data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n" +
				`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}` + "\n\ndata: [DONE]\n\n",
			want: openai.Completion{Text: "a b", Model: "m-1", FinishReason: "length", Usage: openai.Usage{Prompt: 3, Completion: 2, Total: 5}},
		},
		{name: "a malformed usage", body: strings.ReplaceAll(event, `data: {`, `data: {"usage": "much", `), want: openai.Completion{Text: "a b", FinishReason: "stop"}},
		{name: "an error after the end", body: event + "\n\ndata: {\"error\": \"late\"}\n\n", want: openai.Completion{Text: "a b", FinishReason: "stop"}},
		{name: "no token", body: end, want: openai.Completion{FinishReason: "stop"}},
		{
			name: "an object", body: object, kind: "application/json",
			want: openai.Completion{Text: "a b", Model: "m-1", FinishReason: "stop", Usage: openai.Usage{Prompt: 3, Completion: 2, Total: 5}},
		},
		{
			name: "an object with the type of a stream", body: " \n" + object,
			want: openai.Completion{Text: "a b", Model: "m-1", FinishReason: "stop", Usage: openai.Usage{Prompt: 3, Completion: 2, Total: 5}},
		},
		{name: "a stream with the type of HTML", body: event, kind: "text/html", want: openai.Completion{Text: "a b", FinishReason: "stop"}},
		{name: "an object of one long line", body: `{"choices": [{"message": {"content": "` + strings.Repeat("a", 200_000) + `"}}]}`, want: openai.Completion{Text: strings.Repeat("a", 200_000)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				if tc.kind == "" {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				send(w, "%s", tc.body)
			})
			got, err := p.Complete(t.Context(), openai.Request{Messages: prompt.Messages})
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("error %v, completion (-want +got):\n%s", err, diff)
			}
			tokens, err := tokensOf(t.Context(), p, prompt)
			if got := strings.Join(tokens, ""); err != nil || got != tc.want.Text || slices.Contains(tokens, "") {
				t.Errorf("error %v, tokens %.80q", err, tokens)
			}
			if n := p.conns.Load(); n != 1 {
				t.Errorf("%d connections for two requests", n)
			}
		})
	}
}

// The end of a stream is read, so that the connection is reused. No timer runs while
// the caller handles a token.
func TestEndIsRead(t *testing.T) {
	p := serve(t, nil, func(p *peer, n int, w http.ResponseWriter, _ *http.Request) {
		send(w, "%s", delta("a")+delta("b")+end)
		p.until(linger, 2*n) // after finish_reason and after [DONE]
	})
	for range 3 {
		for token, err := range p.Generate(t.Context(), prompt) {
			if n := p.running(); n != 0 || err != nil {
				t.Errorf("token %q, error %v: %d timers run", token, err, n)
			}
		}
	}
	if n := p.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// The request is the one of the package comment.
func TestRequest(t *testing.T) {
	zero, warm, seed, other := 0.0, 0.5, int64(7), int64(8)
	asked := make(chan string, 1) // each request is read before the next is made
	p := serve(t, func(c *openai.Config) {
		c.BaseURL += "/?api-version=1"
		c.Temperature, c.Seed = &warm, &seed
	}, func(_ *peer, _ int, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), body)
		send(w, "%s", delta("a")+end)
	})
	messages := []generate.ChatMessage{{Role: "system", Content: "Be."}, {Role: "user", Content: "\xff<é>"}}
	const head = "POST /v1/chat/completions?api-version=1 application/json Bearer " + secret + ` {"model":"m","messages":[{"role":"system","content":"Be."},` +
		`{"role":"user","content":"\ufffd\u003cé\u003e"}]`
	if _, err := tokensOf(t.Context(), p, generate.Prompt{Messages: messages, MaxTokens: 64}); err != nil {
		t.Fatal(err)
	}
	if got, want := <-asked, head+`,"max_tokens":64,"temperature":0.5,"seed":7,"stream":true}`; got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
	if _, err := p.Complete(t.Context(), openai.Request{Messages: messages, Temperature: &zero, Seed: &other}); err != nil {
		t.Fatal(err)
	}
	if got, want := <-asked, head+`,"temperature":0,"seed":8}`; got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
	nan := zero / zero
	for _, r := range []openai.Request{{MaxTokens: -1}, {Temperature: &nan}} {
		if _, err := p.Complete(t.Context(), r); !errors.Is(err, agents.ErrGenerationFailed) || p.calls.Load() != 2 {
			t.Errorf("%+v: error %v after %d requests", r, err, p.calls.Load())
		}
	}
	if _, err := tokensOf(t.Context(), p, generate.Prompt{MaxTokens: -1}); !errors.Is(err, agents.ErrGenerationFailed) {
		t.Errorf("error %v", err)
	}
}

// The client enforces the budget of tokens whatever the server sends. If the server
// keeps to it, the connection is reused.
func TestBudget(t *testing.T) {
	for _, tc := range []struct {
		name   string
		handle func(p *peer, w http.ResponseWriter, r *http.Request)
		conns  int32 // of two generations
	}{
		{"a server that keeps it", func(_ *peer, w http.ResponseWriter, _ *http.Request) { send(w, "%s", delta("a")+delta("b")+end) }, 1},
		{"one that sends more", func(_ *peer, w http.ResponseWriter, r *http.Request) {
			send(w, "%s", delta("a")+delta("b")+delta("c"))
			hang(r)
		}, 2},
		{"one that hangs", func(p *peer, w http.ResponseWriter, r *http.Request) {
			send(w, "%s", delta("a")+delta("b"))
			p.fire(linger, 0)
			hang(r)
		}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := serve(t, nil, func(p *peer, _ int, w http.ResponseWriter, r *http.Request) { tc.handle(p, w, r) })
			for range 2 {
				tokens, err := tokensOf(t.Context(), p, generate.Prompt{Messages: prompt.Messages, MaxTokens: 2})
				if err != nil || !slices.Equal(tokens, []string{"a", "b"}) {
					t.Errorf("tokens %q, error %v", tokens, err)
				}
			}
			if n := p.conns.Load(); n != tc.conns {
				t.Errorf("%d connections, want %d", n, tc.conns)
			}
		})
	}
}

// An answer that ended at its budget has the finish reason "length".
func TestBudgetOfCompletion(t *testing.T) {
	p := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
		send(w, "%s", delta("a")+delta("b")+end)
	})
	got, err := p.Complete(t.Context(), openai.Request{MaxTokens: 1})
	if want := (openai.Completion{Text: "a", Model: "m-1", FinishReason: "length"}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// When the caller stops the iteration, the stream is closed, and the breaker counts
// a success.
func TestCallerStops(t *testing.T) {
	p := serve(t, nil, func(_ *peer, n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		send(w, "%s", delta("a")+delta("b"))
		hang(r)
	})
	for token, err := range p.Generate(t.Context(), prompt) {
		if token != "a" || err != nil {
			t.Errorf("token %q, error %v", token, err)
		}
		break
	}
	if n := p.Failures(); n != 0 {
		t.Errorf("%d failures", n)
	}
	// A panic of the caller also releases everything, and the breaker does not count it.
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		for token, err := range p.Generate(t.Context(), prompt) {
			panic(fmt.Sprint("mine: ", token, err))
		}
	}()
}

// A temporary failure is retried, after the wait that the server asks for.
func TestRetryAfter(t *testing.T) {
	p := serve(t, nil, func(p *peer, n int, w http.ResponseWriter, _ *http.Request) {
		switch n {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		case 3:
			w.Header().Set("Retry-After", p.Now().Add(3*time.Second+time.Millisecond).Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			send(w, "%s", delta("a")+end)
		}
	})
	tokens, err := tokensOf(t.Context(), p, prompt)
	if err != nil || !slices.Equal(tokens, []string{"a"}) {
		t.Errorf("tokens %q, error %v", tokens, err)
	}
	waits := p.waits()
	if len(waits) != 3 || waits[0] != 100*time.Millisecond || waits[1] != 2*time.Second || waits[2] <= 2*time.Second || waits[2] > 3*time.Second {
		t.Errorf("waited %v", waits)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "1.5": 0, " 7 ": 7 * time.Second, "99999999999999999999": 0, "4000000000": 7 * 24 * time.Hour,
		"Fri, 02 Jan 2026 03:04:06 GMT": time.Second, "Fri, 02 Jan 2026 03:04:04 GMT": 0, "Sat, 02 Jan 9999 03:04:05 GMT": 7 * 24 * time.Hour,
	} {
		if got := openai.RetryAfter(value, now); got != want {
			t.Errorf("Retry-After %q: %v, want %v", value, got, want)
		}
	}
}

// A retry whose wait would exceed Timeout is not made.
func TestRetryWithinDeadline(t *testing.T) {
	p := serve(t, nil, func(p *peer, _ int, w http.ResponseWriter, _ *http.Request) {
		p.pass(whole - 10*time.Second)
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	_, err := tokensOf(t.Context(), p, prompt)
	e, ok := errors.AsType[*openai.Error](err)
	if !ok || e.Status != 503 || e.RetryAfter != 10*time.Second || p.calls.Load() != 1 || len(p.waits()) != 0 {
		t.Errorf("error %v after %d requests, waits %v", err, p.calls.Load(), p.waits())
	}
}

// The breaker opens when the service fails, admits probes after its recovery time,
// and closes when a probe succeeds. An abandoned probe admits another.
func TestBreaker(t *testing.T) {
	healthy := false // read and written between requests
	p := serve(t, func(c *openai.Config) {
		c.Breaker = flow.BreakerConfig{Failures: 3, Recovery: time.Minute, Probes: 1}
	}, func(_ *peer, n int, w http.ResponseWriter, _ *http.Request) {
		if !healthy {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		send(w, "%s", delta("a")+end)
	})
	ask := func(code error, calls int32, state flow.BreakerState) {
		t.Helper()
		_, err := tokensOf(t.Context(), p, prompt)
		if !errors.Is(err, code) || p.calls.Load() != calls || p.State() != state {
			t.Errorf("error %v after %d requests, %s; want %v, %d, %s", err, p.calls.Load(), p.State(), code, calls, state)
		}
		noKey(t, err)
	}
	ask(openai.ErrService, 3, flow.BreakerIsOpen) // and not a fourth time
	ask(agents.ErrBreakerOpen, 3, flow.BreakerIsOpen)
	p.pass(time.Minute + 1)
	ask(openai.ErrService, 4, flow.BreakerIsOpen) // one probe, and no further attempt
	ask(agents.ErrBreakerOpen, 4, flow.BreakerIsOpen)
	p.pass(time.Minute + 1)
	func() {
		defer func() { _ = recover() }()
		healthy = true
		for token, err := range p.Generate(t.Context(), prompt) {
			panic(fmt.Sprint("given up: ", token, err)) // not counted
		}
	}()
	if p.State() != flow.BreakerHalfOpen {
		t.Errorf("%s after an abandoned probe", p.State())
	}
	ask(nil, 6, flow.BreakerClosed)
}

// A client serves concurrent requests.
func TestManyAtOnce(t *testing.T) {
	p := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages []struct{ Content string } `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			panic(err)
		}
		for token := range strings.SplitSeq(q.Messages[0].Content, "") {
			send(w, "%s", delta(token))
		}
		send(w, "%s", end)
	})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 4 {
				text := fmt.Sprintf("agent %d asks %d", i, j)
				tokens, err := tokensOf(t.Context(), p, generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: text}}})
				if got := strings.Join(tokens, ""); err != nil || got != text {
					t.Errorf("%q, %v; want %q", got, err, text)
				}
			}
		})
	}
	wg.Wait()
}

// New refuses an unusable configuration, and its errors do not contain secrets.
func TestConfig(t *testing.T) {
	good := openai.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "m"}
	nan := 0.0
	nan /= nan
	for name, tune := range map[string]func(*openai.Config){
		"no BaseURL":   func(c *openai.Config) { c.BaseURL = "" },
		"no host":      func(c *openai.Config) { c.BaseURL = "http:///v1" },
		"no scheme":    func(c *openai.Config) { c.BaseURL = "localhost:8080" },
		"bad URL":      func(c *openai.Config) { c.BaseURL = "http://" + secret + ":%zz@h/" },
		"a password":   func(c *openai.Config) { c.BaseURL = "https://user:" + secret + "@h/" },
		"a fragment":   func(c *openai.Config) { c.BaseURL = "https://h/#" + secret },
		"no Model":     func(c *openai.Config) { c.Model = "" },
		"newline":      func(c *openai.Config) { c.APIKey = openai.NewKey(secret + "\r\nX: y") },
		"temperature":  func(c *openai.Config) { c.Temperature = &nan },
		"negative":     func(c *openai.Config) { c.Idle = -1 },
		"negative too": func(c *openai.Config) { c.MaxBytes = -1 },
	} {
		cfg := good
		tune(&cfg)
		_, err := openai.New(cfg)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		noKey(t, err)
	}
	c, err := openai.New(good)
	require.NoError(t, err)
	c.Close()
	if c.State() != flow.BreakerClosed {
		t.Errorf("a new breaker is %s", c.State())
	}
}
