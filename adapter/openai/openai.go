// Package openai is a client of the chat completions API of OpenAI, which many other
// servers offer too. It uses net/http alone.
//
// A [Client] has two uses. [Client.Generate] streams the tokens of an agent: a Client
// is a [generate.Generator]. [Client.Complete] returns a whole answer, and
// [Client.Judge] uses it for the questions of a director.
//
// # On the wire
//
// A question is one request, without the members that are not set:
//
//	POST {base}/chat/completions
//	{"model": "m", "messages": [{"role": "user", "content": "Hi"}],
//	 "max_tokens": 64, "temperature": 0.5, "seed": 7, "stream": true}
//
// The answer is a stream of events, or one JSON object with a message in place
// of the deltas:
//
//	data: {"model": "m", "choices": [{"index": 0, "delta": {"content": "Hel"}}]}
//
//	data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
//
//	data: [DONE]
//
// The first byte of an answer decides which of the two it is. Neither the request
// nor the Content-Type does, because servers are wrong about both. The client reads
// only the content of the choice with index 0. An answer is complete at its
// finish_reason or at [DONE]; if it ends earlier, that is an error. Errors after that
// point are ignored, and the client waits only briefly for the end of the stream, so
// that the connection can be reused.
//
// # Tokens
//
// Each delta with content counts as one token, because servers stream one token a
// delta. A server that puts several tokens into a delta, or sends a whole object,
// gives more tokens than are counted here; then only the server can enforce
// max_tokens.
//
// # Failures
//
// Every failure is an [Error]. Temporary failures are retried, with the delays of
// [agents.Recovery.Delay] and as long as the caller has not seen a token: a connection
// that fails or breaks, a time limit, and the status 408, 409, 425, 429 and 5xx. Each
// attempt counts with the Client's circuit breaker ([flow.Breaker]). It counts as
// failures the temporary ones, and malformed or endless answers. Any other status
// counts as a success, since the service is there. An attempt that the caller gave up
// does not count.
//
// # Limits
//
// The client speaks HTTP/1. It follows no redirects, because it would send the key
// along. It refuses upgrades to another protocol (status 101) without reading from
// the connection. Headers, 1xx ones included, may have 64 KiB. The client requests
// uncompressed answers and refuses others, so an answer cannot expand beyond the bytes
// that were sent. The delays between attempts have no jitter.
//
// The end of the context and each time limit of the [Config] end an attempt in every
// phase: while the connection is made, before and within the headers, and within the
// body. With a Transport that ignores the context of a request, the call still
// returns, and the request is left to the Transport.
//
// # Secrets
//
// The client redacts its secrets where a server repeats them: the key, and the values
// of the query of BaseURL whose names look like those of keys. In errors it redacts
// all of them. In the text of an answer and the name of its model, it redacts those
// of 8 or more bytes, also if they are split over several deltas. It finds secrets in
// plain form, escaped as in URLs, JSON, HTML and C, in hexadecimal, and in base64 at
// each alignment. It does not find other encodings, or a part of a secret, except for
// most of one at the end of an answer. Text that may be the beginning of a secret is
// held back until the next delta decides.
package openai

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/generate"
)

// Config names the model and the bounds of its use. BaseURL and Model must be set.
type Config struct {
	// BaseURL is the URL to which /chat/completions is appended: http or https,
	// without user information or fragment. A query is kept.
	BaseURL string
	// Model is the name of the model.
	Model string
	// APIKey is sent in the header Authorization. The zero Key sends no header.
	APIKey Key

	// Temperature and Seed are the defaults of every request.
	// Nil leaves them to the server.
	Temperature *float64
	Seed        *int64

	// FirstByte bounds the wait for the first event of an answer, or the first byte
	// of its object. Headers and keep-alives do not count. Zero means 30 s.
	FirstByte time.Duration
	// Idle bounds the wait for the next event, or the next bytes of an object.
	// Keep-alives do not count. Zero means 30 s.
	Idle time.Duration
	// Timeout bounds a whole request, with its retries, the waits between them and
	// the time that the caller takes for each token: no attempt begins after it, and
	// one that waits for the server is ended. If it expires while the caller handles
	// a token, the error follows when the caller asks for the next. Zero means 2 min.
	Timeout time.Duration
	// RetryAfter is the longest wait that a server may ask for. If it asks for more,
	// the request fails without a retry. Zero means 20 s.
	RetryAfter time.Duration

	// MaxBytes bounds the bytes of one answer on the wire. Zero means 4 MiB.
	MaxBytes int64
	// MaxTokens bounds the tokens of one answer, whatever a prompt allows. An answer
	// with more fails with ErrLimit. Zero means 65536.
	MaxTokens int64

	// Breaker configures the client's circuit breaker.
	Breaker flow.BreakerConfig

	// Transport sends the requests. Nil means a transport of the client's own, whose
	// connections Close closes.
	Transport http.RoundTripper

	// Now is the clock of the breaker and of Timeout. Nil means [time.Now].
	Now func() time.Time
	// AfterFunc calls f once, after d, on a goroutine of its own; stop cancels the
	// call. Nil means [time.AfterFunc]. A program that sets Now must set it too.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// check sets the defaults, and returns the URL of the requests.
func (c *Config) check() (*url.URL, error) {
	endpoint, err := url.Parse(c.BaseURL)
	// The error of Parse repeats the URL, which may contain a password.
	if err != nil || endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.Host == "" ||
		endpoint.User != nil || endpoint.Fragment != "" {
		return nil, errors.New("openai: BaseURL must be an http or https URL without user information and fragment")
	}
	if c.Model == "" {
		return nil, errors.New("openai: Model is empty")
	}
	if !c.APIKey.sendable() {
		return nil, errors.New("openai: APIKey has characters other than visible ASCII")
	}
	if c.Temperature != nil && (math.IsNaN(*c.Temperature) || math.IsInf(*c.Temperature, 0)) {
		return nil, errors.New("openai: Temperature is not a finite number")
	}
	for _, f := range []struct {
		name string
		d    *time.Duration
		zero time.Duration
	}{
		{"FirstByte", &c.FirstByte, 30 * time.Second},
		{"Idle", &c.Idle, 30 * time.Second},
		{"Timeout", &c.Timeout, 2 * time.Minute},
		{"RetryAfter", &c.RetryAfter, 20 * time.Second},
	} {
		if *f.d < 0 {
			return nil, fmt.Errorf("openai: %s is negative", f.name)
		}
		if *f.d == 0 {
			*f.d = f.zero
		}
	}
	if c.MaxBytes < 0 || c.MaxTokens < 0 {
		return nil, errors.New("openai: MaxBytes or MaxTokens is negative")
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 4 << 20
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = 1 << 16
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.AfterFunc == nil {
		c.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return endpoint.JoinPath("chat", "completions"), nil
}

// Client calls one model of one server. It is safe for concurrent use.
type Client struct {
	cfg      Config // all fields but the breaker are immutable after New
	endpoint string
	http     *http.Client
	secrets  secrets
	begin    time.Time // the zero of the breaker's clock
	breaker  breaker
	own      *http.Transport // nil if Config.Transport is set
}

var _ generate.Generator = (*Client)(nil)

// New returns a client. It sends no request.
func New(cfg Config) (*Client, error) {
	endpoint, err := cfg.check()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, endpoint: endpoint.String(), secrets: newSecrets(cfg.APIKey, endpoint), begin: cfg.Now()}
	c.breaker.Config = cfg.Breaker
	if cfg.Transport == nil {
		c.own = ownTransport()
		c.cfg.Transport = c.own
	}
	c.http = &http.Client{
		Transport:     c.cfg.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// ownTransport returns the default transport, for many agents that all use one host.
func ownTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.MaxIdleConnsPerHost = 64
	t.MaxResponseHeaderBytes = 64 << 10 // of all headers of a response, 1xx included
	// HTTP/1 has one request at a time on a connection: closing it ends that request
	// alone, and a server's fault in one request affects no other.
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	return t
}

// Close closes the idle connections of the client's own transport, and those that
// are still being made for a request that was given up: net/http continues with such
// a connection for up to 30 s, for the next request. Close does not end running
// requests; their contexts do.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// State returns the state of the circuit breaker.
func (c *Client) State() flow.BreakerState { return c.breaker.state() }

// Request is a question of [Client.Complete].
type Request struct {
	Messages []generate.ChatMessage
	// MaxTokens is the maximum number of tokens of the answer; 0 leaves it to the
	// server.
	MaxTokens int64
	// Temperature and Seed override those of the Config. Nil means those.
	Temperature *float64
	Seed        *int64
}

// Completion is a complete answer.
type Completion struct {
	Text string
	// Model and FinishReason are the server's, "" if it sends none. A FinishReason is
	// stop, length, content_filter…
	Model        string
	FinishReason string
	Usage        Usage
}

// Usage is the server's count of tokens, zero if it sends none.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// Generate implements [generate.Generator]. Every range over the sequence is a
// generation of its own. An error is an [Error]; tokens before it remain valid.
func (c *Client) Generate(ctx context.Context, p generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		q, err := c.question(Request{Messages: p.Messages, MaxTokens: p.MaxTokens}, true)
		if err == nil {
			q.yield = func(token string) bool { return yield(token, nil) }
			_, err = c.ask(ctx, q)
		}
		if err != nil {
			yield("", err)
		}
	}
}

// Complete asks for one answer and returns it when it is complete. An error is an
// [Error]. An answer that broke off is retried like one that did not begin, since the
// caller has seen no part of it.
func (c *Client) Complete(ctx context.Context, r Request) (Completion, error) {
	q, err := c.question(r, false)
	if err != nil {
		return Completion{}, err
	}
	return c.ask(ctx, q)
}

// question is the body of a request, and the receiver of its answer.
type question struct {
	body []byte
	most int64 // tokens; 0 for no limit
	// yield receives each token as it arrives, and returns false to stop. Nil
	// collects them into the text of the Completion.
	yield func(string) bool
}

func (c *Client) question(r Request, stream bool) (question, error) {
	if r.MaxTokens < 0 {
		return question{}, c.fault(nil, "MaxTokens is negative")
	}
	w := wireRequest{
		Model: c.cfg.Model, Messages: make([]wireMessage, len(r.Messages)), MaxTokens: r.MaxTokens,
		Temperature: r.Temperature, Seed: r.Seed, Stream: stream,
	}
	for i, m := range r.Messages {
		w.Messages[i] = wireMessage(m)
	}
	if w.Temperature == nil {
		w.Temperature = c.cfg.Temperature
	}
	if w.Seed == nil {
		w.Seed = c.cfg.Seed
	}
	body, err := json.Marshal(w)
	if err != nil { // the temperature is NaN or infinite
		return question{}, c.fault(nil, err.Error())
	}
	return question{body: body, most: r.MaxTokens}, nil
}

type wireRequest struct {
	Model       string        `json:"model"`
	Messages    []wireMessage `json:"messages"`
	MaxTokens   int64         `json:"max_tokens,omitempty"`
	Temperature *float64      `json:"temperature,omitempty"`
	Seed        *int64        `json:"seed,omitempty"`
	Stream      bool          `json:"stream,omitempty"`
}

type wireMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}
