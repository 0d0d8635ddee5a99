// Package openai asks a language model behind the chat completions API of
// OpenAI, which many other servers speak too. It is plain net/http.
//
// A [Client] serves two. [Client.Generate] streams the words of an agent: a
// Client is a [sajou.Generator]. [Client.Complete] asks for one whole answer,
// as a judge wants it.
//
// # What goes over the wire
//
// A question is one request, in which what is not set is left out:
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
// Which of the two it is, its first byte says, not what was asked for and not
// its Content-Type: servers are wrong about both. Only the choice of index 0
// is read, and of it only the content. An answer is whole when it gave a
// finish_reason or [DONE]; one that ends before is an error. What goes wrong
// behind that is of no interest, and the end of the stream is awaited only for
// a moment, so that the connection can be used again.
//
// # What it counts as a token
//
// Every delta that has content, since that is how servers stream. One that
// puts several tokens into a delta, or sends no stream, gives more tokens than
// are counted here; it keeps to max_tokens by itself or not at all.
//
// # Failures
//
// Every failure is an [Error]. What may pass by itself is tried again, as
// [agents.Recovery.Delay] says and as long as the caller has not seen a token:
// when no connection comes about or it breaks, when a time runs out, and at
// status 408, 409, 425, 429 and 5xx. Each attempt is one call to a breaker
// ([agents.Breaker]), of which each Client has one. It takes for a failure
// what is above, and answers that are none or never end. Any other status
// shows that the service is there. That the caller gave up says nothing.
//
// # Limits
//
// Redirects are not followed, to no host: the key would go with them. Answers
// are asked for uncompressed and refused otherwise, so nothing unpacks to more
// than was sent. The delays between attempts have no jitter. A key is kept out
// of errors also where a server repeats it, unless it repeats only a part or
// encodes it in a way of its own.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
)

// Config says which model is asked, and how. BaseURL and Model must be set.
type Config struct {
	// BaseURL is what /chat/completions is put behind: http or https, without
	// user information or fragment. A query is kept.
	BaseURL string
	// Model is the name of the model.
	Model string
	// APIKey goes into the header Authorization. The zero Key sends none.
	APIKey Key

	// Temperature and Seed go with every request that does not say otherwise.
	// Nil leaves them to the server.
	Temperature *float64
	Seed        *int64

	// FirstByte is how long an answer may take to begin, with its first event or
	// the first byte of its object. Headers and keep-alives are no beginning.
	// Zero means 30 s.
	FirstByte time.Duration
	// Idle is how long the next event may take to come, or the next bytes of
	// an object. Keep-alives do not count. Zero means 30 s.
	Idle time.Duration
	// Timeout is how long all may take, with every further attempt and with
	// what the caller does between tokens. Zero means 2 min.
	Timeout time.Duration
	// RetryAfter is how long a wait may be that a server asks for; when it wants
	// more, it is not asked again. Zero means 20 s.
	RetryAfter time.Duration

	// MaxBytes bounds one answer as it comes over the wire. Zero means 4 MiB.
	MaxBytes int64
	// MaxTokens bounds the tokens of one answer, whatever a prompt allows. It is
	// an error to pass it. Zero means 65536.
	MaxTokens int64

	// Breaker says when the service is left alone, and for how long.
	Breaker agents.BreakerConfig

	// Transport sends the requests. Nil means one of the client's own, which
	// Close closes.
	Transport http.RoundTripper

	// Now is the clock that the breaker and the deadline go by. Nil means
	// time.Now.
	Now func() time.Time
	// AfterFunc waits: it calls f once, d from now, on a goroutine of its own,
	// and stop takes that back. Nil means [time.AfterFunc]. Whoever sets Now
	// sets it too.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// check fills in what is not set, and returns where requests go.
func (c *Config) check() (*url.URL, error) {
	endpoint, err := url.Parse(c.BaseURL)
	// The error of Parse repeats the URL, which may have a password in it.
	if err != nil || endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.Host == "" ||
		endpoint.User != nil || endpoint.Fragment != "" {
		return nil, errors.New("openai: BaseURL is no http or https URL, or has user information or a fragment")
	}
	if c.Model == "" {
		return nil, errors.New("openai: no Model")
	}
	if !c.APIKey.sendable() {
		return nil, errors.New("openai: APIKey has characters that a header cannot have")
	}
	if c.Temperature != nil && (math.IsNaN(*c.Temperature) || math.IsInf(*c.Temperature, 0)) {
		return nil, errors.New("openai: Temperature is no number")
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

// Client asks one model of one server. It may be used by many goroutines at
// once.
type Client struct {
	cfg      Config // immutable after New, as all but the breaker is
	endpoint string
	http     *http.Client
	key      Key
	begin    time.Time // what the breaker's time counts from
	breaker  breaker
	own      *http.Transport // nil if the transport is another's
}

var _ sajou.Generator = (*Client)(nil)

// New returns a client. It sends nothing yet.
func New(cfg Config) (*Client, error) {
	endpoint, err := cfg.check()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, endpoint: endpoint.String(), key: cfg.APIKey, begin: cfg.Now()}
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

// ownTransport is the default one for agents that all talk to one host.
func ownTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.MaxIdleConnsPerHost = 64
	t.MaxResponseHeaderBytes = 64 << 10
	return t
}

// Close closes the connections that wait to be used again, if the transport is
// the client's own, and those that are being made for nobody: when a request is
// given up before it has one, net/http goes on with it for the next, up to 30 s.
// Generations that go on are ended by their contexts.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// State returns how the breaker stands.
func (c *Client) State() agents.BreakerState { return c.breaker.state() }

// Request asks for one whole answer.
type Request struct {
	Messages []sajou.Message
	// MaxTokens is how many tokens are wanted at most; 0 leaves it to the
	// server.
	MaxTokens int64
	// Temperature and Seed stand in for those of the Config. Nil means these.
	Temperature *float64
	Seed        *int64
}

// Completion is one whole answer.
type Completion struct {
	Text string
	// Model and FinishReason are as the server names them, "" if it does not:
	// stop, length, content_filter…
	Model        string
	FinishReason string
	Usage        Usage
}

// Usage is what a server counted, in tokens. It is zero if it did not.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// Generate implements [sajou.Generator]. Every range over the sequence is a
// generation of its own. An error is an [Error]; tokens that came before it
// stand.
func (c *Client) Generate(ctx context.Context, p sajou.Prompt) iter.Seq2[string, error] {
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

// Complete asks for one answer and returns it when it is whole. An error is an
// [Error]. Nobody has seen a part of an answer that broke off, so it is tried
// again like one that did not begin.
func (c *Client) Complete(ctx context.Context, r Request) (Completion, error) {
	q, err := c.question(r, false)
	if err != nil {
		return Completion{}, err
	}
	return c.ask(ctx, q)
}

// question is what one request asks, and where the words of its answer go.
type question struct {
	body []byte
	most int64 // tokens; 0 for as many as come
	// yield takes each token as it comes and returns false when it wants no
	// more. Nil gathers them.
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
	if err != nil { // a temperature that is no number
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
