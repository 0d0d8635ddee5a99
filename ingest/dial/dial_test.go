package dial_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sajou-dev/sajou-go/ingest/dial"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"meta":"scenarios","available":[]}`)
		fmt.Fprintln(w, `{"id":"sig-0001","type":"note","timestamp":1000,"source":"adapter:emitter","payload":{"n":1}}`)
	}))
	defer source.Close()
	s, err := dial.New(dial.Config{URL: source.URL, Now: time.Now, After: time.After, Jitter: func() float64 { return 0 }, Client: source.Client()})
	if err == nil {
		err = s.Read(context.Background(), func(sig *signal.Signal) error {
			fmt.Println(sig.ID, sig.Type, sig.Payload)
			return nil
		})
	}
	fmt.Println(s.Counts().Meta, err)
	// Output:
	// sig-0001 note {"n":1}
	// 1 <nil>
}

// run is a reading of a source, whose waits end at once.
type run struct {
	source  *dial.SignalSource
	waits   []time.Duration
	notes   []string
	signals []*signal.Signal
}

func begin(t *testing.T, url string, change func(*dial.Config)) *run {
	t.Helper()
	r := &run{}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := dial.Config{
		URL: url, Now: func() time.Time { return time.UnixMilli(5000) }, Jitter: func() float64 { return 1 }, Client: &http.Client{Transport: transport},
		After: func(d time.Duration) <-chan time.Time {
			r.waits = append(r.waits, d)
			now := make(chan time.Time, 1)
			now <- time.Time{}
			return now
		},
		Note: func(err error, _ time.Duration) {
			if err != nil {
				r.notes = append(r.notes, err.Error())
			}
		},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	r.source, err = dial.New(cfg)
	require.NoError(t, err)
	return r
}

var errEnough = errors.New("enough")

// read reads until n signals came or the source ends.
func (r *run) read(t *testing.T, n int) error {
	t.Helper()
	return r.source.Read(t.Context(), func(sig *signal.Signal) error {
		r.signals = append(r.signals, sig)
		if len(r.signals) == n {
			return errEnough
		}
		return nil
	})
}

func (r *run) text() string {
	var b strings.Builder
	for _, s := range r.signals {
		fmt.Fprintf(&b, "%s %s %s %s %s\n", s.ID[:min(len(s.ID), 8)], s.Type, s.Timestamp, s.Source, s.Payload)
	}
	return b.String()
}

func note(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"note","timestamp":1,"source":"adapter:emitter","payload":{}}`, id)
}

func served(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// The emitter greets with a message about itself, and its ids repeat in each loop and each
// connection.
func TestEmitter(t *testing.T) {
	url := served(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		for _, text := range []string{`{"meta":"scenarios","available":["a"]}`, note("sig-0001"), note("sig-0002"), note("sig-0001")} {
			if conn.Write(r.Context(), websocket.MessageText, []byte(text)) != nil {
				return
			}
		}
		_ = conn.Close(websocket.StatusNormalClosure, "")
	})
	r := begin(t, "ws"+strings.TrimPrefix(url, "http"), nil)
	require.ErrorIs(t, r.read(t, 6), errEnough)
	assert.Equal(t, 6, strings.Count(r.text(), "note"))
	assert.Equal(t, 4, strings.Count(r.text(), "sig-0001"))
	assert.Equal(t, dial.SourceCounts{Messages: 8, Signals: 6, Meta: 2, Connections: 2}, r.source.Counts())
	assert.Equal(t, []time.Duration{dial.FirstWait}, r.waits)
}

// JSON that JavaScript writes but a value cannot hold is recorded, and marked.
func TestRepaired(t *testing.T) {
	r := begin(t, served(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"a","type":"note","source":"s","payload":{"text":"x\ud83d"}}`+"\n"+`{"big":123456789012345678901234567890}`+"\n"+`{"meta":1e999}`+"\n")
	}), nil)
	require.NoError(t, r.read(t, 9))
	require.Len(t, r.signals, 2)
	assert.Equal(t, `{"text":"x`+"\uFFFD"+`"}`, r.signals[0].Payload.String())
	assert.Equal(t, `{"big":"123456789012345678901234567890"}`, r.signals[1].Payload.String())
	for _, sig := range r.signals {
		assert.Equal(t, `{"repaired":true}`, sig.Metadata.String())
		assert.Empty(t, sig.Problem)
	}
	assert.Equal(t, dial.SourceCounts{Messages: 3, Signals: 2, Meta: 1, Connections: 1}, r.source.Counts())
}

// A message of any length does not take more than its bound.
func TestLongMessage(t *testing.T) {
	url := served(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		m, err := conn.Writer(r.Context(), websocket.MessageText)
		for block := strings.Repeat("x", 1<<16); err == nil; {
			_, err = io.WriteString(m, block)
		}
	})
	r := begin(t, "ws"+strings.TrimPrefix(url, "http"), nil)
	require.ErrorIs(t, r.read(t, 2), errEnough)
	assert.Contains(t, r.text(), `error 5000 dial {"message":"a message has more than 4 MiB and was left out","severity":"warning","code":"too-long"}`)
}

// Messages become signals, are skipped, or are reported as unreadable.
func TestMessages(t *testing.T) {
	r := begin(t, served(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "\xef\xbb\xbf"+strings.Join([]string{
			note("a"), "", " ", "[DONE]", ": heartbeat", "data: " + note("b"), note("c") + "\r",
			`{"type":"x"}`, `{"type":"tool_call","id":"bad","timestamp":"1700","payload":{}}`, `{"type":"y","id":"z","extra":1,"timestamp":2,"source":"s","payload":[1]}`,
			`{"n":1}`, `[1,2]`, `7`, "hello \xff", `{"meta":0,"type":"m","id":"m"}`, `{"meta":{}}`, strings.Repeat("y", 5<<20), `{"type":"z","id":"q"`,
		}, "\n"))
	}), nil)
	require.NoError(t, r.read(t, -1))
	ids := map[string]bool{}
	for _, s := range r.signals {
		assert.False(t, ids[s.ID], s.ID)
		ids[s.ID] = true
	}
	var types []string
	for _, s := range r.signals {
		types = append(types, fmt.Sprint(s.Type, " ", s.Timestamp, " ", s.Source, " ", s.Payload, " ", s.Problem))
	}
	assert.Equal(t, []string{
		"note 1 adapter:emitter {} ", "note 1 adapter:emitter {} ", "note 1 adapter:emitter {} ",
		"x 5000 unknown {} ", "tool_call 1700 unknown {} /payload/toolName: is required", "y 2 s null /extra: is not a field of a signal",
		`event 5000 unknown {"n":1} `, `event 5000 unknown {"value":[1,2]} `, `event 5000 unknown {"value":7} `,
	}, types[:9])
	assert.Contains(t, types[9], `error 5000 dial {"message":"a message is not JSON: `)
	assert.Equal(t, "hello \uFFFD", r.signals[9].Metadata.TextOf("text"))
	assert.Contains(t, types[10], "m 5000 unknown")
	assert.Contains(t, types[11], "too-long")
	assert.Contains(t, types[12], "not-json")
	assert.Len(t, types, 13)
	assert.Equal(t, 3, r.source.Counts().Unreadable)
	assert.Empty(t, r.waits, "lines that have ended are complete")
}

// A signal that does not fit an entry is cut; one whose envelope is irregular is left out.
func TestTooLarge(t *testing.T) {
	long := strings.Repeat("long ", 400_000)
	r := begin(t, served(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "{\"type\":\"x\",\"payload\":{\"text\":%q}}\n{\"type\":\"x\",\"extra\":%q}", long, long)
	}), nil)
	require.NoError(t, r.read(t, -1))
	require.Len(t, r.signals, 2)
	assert.Less(t, len(r.signals[0].Payload), 1<<20)
	assert.Equal(t, "x", r.signals[0].Type)
	assert.Equal(t, "error", r.signals[1].Type)
}

// Events go on where they ended; data of several lines is one message; the source says how
// long to wait.
func TestEvents(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	url := served(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		n := len(asked)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = fmt.Fprintf(w, ": connected\n\nretry: 2000\nid: e%d\nevent: signal\ndata: {\"type\":\"x\",\ndata: \"id\":\"i%d\"}\n\nid: late\ndata: {\"type\":\"cut\"}", n, n)
	})
	r := begin(t, url, nil)
	require.ErrorIs(t, r.read(t, 3), errEnough)
	assert.Equal(t, []string{"", "e1", "e2"}, asked)
	assert.Equal(t, []time.Duration{2 * time.Second, 2 * time.Second}, r.waits)
	assert.Equal(t, 3, strings.Count(r.text(), " x 5000"))
}

// The waits double up to a bound, half of each is random, and a message resets them.
func TestBackoff(t *testing.T) {
	n := 0
	r := begin(t, served(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n <= 8 || n == 10 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
	}), func(c *dial.Config) { c.Jitter = func() float64 { return 0 } })
	require.ErrorIs(t, r.read(t, 2), errEnough)
	var seconds []float64
	for _, w := range r.waits {
		seconds = append(seconds, w.Seconds())
	}
	assert.Equal(t, []float64{0.25, 0.5, 1, 2, 4, 8, 15, 15, 0.25, 0.5}, seconds)
}

// A source that refuses, or sends the caller elsewhere, is not asked again, and the token goes
// to no other host.
func TestRefused(t *testing.T) {
	elsewhere := 0
	other := served(t, func(http.ResponseWriter, *http.Request) { elsewhere++ })
	for _, scheme := range []string{"http", "ws"} {
		for _, code := range []int{301, 302, 307, 308, 400, 401, 403, 404, 410} {
			var token string
			url := served(t, func(w http.ResponseWriter, r *http.Request) {
				token = r.Header.Get("Authorization")
				w.Header().Set("Location", other)
				w.WriteHeader(code)
			})
			r := begin(t, scheme+strings.TrimPrefix(url, "http"), func(c *dial.Config) { c.Token = "secret" })
			err := r.read(t, 1)
			require.ErrorIs(t, err, dial.ErrRefused, "%s %d", scheme, code)
			assert.Equal(t, "Bearer secret", token)
			assert.NotContains(t, err.Error(), "secret")
			assert.Empty(t, r.waits)
		}
	}
	assert.Zero(t, elsewhere)
	for _, url := range []string{"", "localhost:9100", "ftp://x", "ws://", "http://u:p@x", "\x00", "http://example.com", "ws://10.0.0.1"} {
		_, err := dial.New(dial.Config{URL: url, Token: "secret"})
		require.Error(t, err, url)
	}
	done := begin(t, served(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), nil)
	require.NoError(t, done.read(t, 1))
}

// The end of the context ends a source that says nothing, and one that never stops.
func TestEnds(t *testing.T) {
	for _, handler := range []http.HandlerFunc{
		func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "xxxxxxxxxxxxxxxxxxxxxxxxx")
			}
		},
		func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err == nil {
				_, _, _ = conn.Read(r.Context())
			}
		},
	} {
		url := served(t, handler)
		for _, scheme := range []string{"http", "ws"} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			r := begin(t, scheme+strings.TrimPrefix(url, "http"), func(c *dial.Config) { c.After = time.After })
			err := r.source.Read(ctx, func(*signal.Signal) error { return nil })
			if !errors.Is(err, dial.ErrRefused) {
				require.NoError(t, err)
			}
			cancel()
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("id: 1\nretry: 5\ndata: {\"type\":\"x\"}\n\n"), true)
	f.Add([]byte("data:{\"a\":1}\r\n\r\n:\n[DONE]\n{\"meta\":1}"), false)
	f.Fuzz(func(t *testing.T, text []byte, events bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		media := map[bool]string{true: "text/event-stream", false: "application/x-ndjson"}[events]
		source, err := dial.New(dial.Config{
			URL: "http://127.0.0.1/", Now: func() time.Time { return time.UnixMilli(5000) }, Jitter: func() float64 { return 1 },
			After: func(time.Duration) <-chan time.Time {
				cancel() // once is enough
				return nil
			},
			Client: &http.Client{Transport: roundTrip(func(*http.Request) *http.Response {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(bytes.NewReader(text))}
			})},
		})
		require.NoError(t, err)
		err = source.Read(ctx, func(sig *signal.Signal) error {
			if sig.Problem == "" {
				return sig.Validate()
			}
			return nil
		})
		require.NoError(t, err)
	})
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// Every end of a connection is reported in one line that names the source.
func TestReasons(t *testing.T) {
	hijacked := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}
	socket := func(then func(context.Context, *websocket.Conn)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			then(r.Context(), conn)
			_ = conn.CloseNow()
		}
	}
	closing := func(code websocket.StatusCode, reason string) http.HandlerFunc {
		return socket(func(_ context.Context, conn *websocket.Conn) { _ = conn.Close(code, reason) })
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		scheme, want string
		handler      http.HandlerFunc // nil for a source that is not there
	}{
		{"ws", "nothing listens at HOST; start it, or correct the URL", nil},
		{"http", "nothing listens at HOST; start it, or correct the URL", nil},
		{"ws", "HOST closed the connection with the code 1000", closing(websocket.StatusNormalClosure, "")},
		{"ws", "HOST closed the connection with the code 1001: restart", closing(websocket.StatusGoingAway, "restart")},
		{"ws", "HOST closed the connection", closing(websocket.StatusNoStatusRcvd, "")},
		{"ws", "HOST ended the connection", socket(func(context.Context, *websocket.Conn) {})},
		{"ws", "HOST ended the connection", hijacked("")},
		{"http", "HOST ended the connection", hijacked("")},
		{"http", "HOST broke the connection off", hijacked("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Type: text/event-stream\r\n\r\nda")},
		{"http", "HOST ended the connection", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") }},
		{"http", `the connection to HOST failed: malformed HTTP response "hello"`, hijacked("hello\r\n\r\n")},
		{"ws", `the connection to HOST failed: malformed HTTP response "hello"`, hijacked("hello\r\n\r\n")},
		{"wss", "HOST does not speak TLS; use http:// or ws://", hijacked("HTTP/1.0 400 Bad Request\r\n\r\n")},
		{"https", "HOST does not speak TLS; use http:// or ws://", hijacked("HTTP/1.0 400 Bad Request\r\n\r\n")},
		{"ws", "HOST sent a message of more than 4 MiB; let it send smaller ones", socket(func(ctx context.Context, conn *websocket.Conn) {
			_ = conn.Write(ctx, websocket.MessageText, make([]byte, 5<<20))
		})},
		{"ws", "HOST answered 503 Service Unavailable", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }},
		{"ws", "HOST answered 200 OK, which is no WebSocket; use http:// for a stream or lines", func(http.ResponseWriter, *http.Request) {}},
		{"http", `HOST answered 302 Found to "/there", which is not followed; name that address`, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) }},
	} {
		url := gone.URL
		if c.handler != nil {
			url = served(t, c.handler)
		}
		host := strings.TrimPrefix(url, "http://")
		ctx, cancel := context.WithCancel(t.Context())
		var got error
		r := begin(t, c.scheme+"://"+host, func(cfg *dial.Config) {
			cfg.Note = func(err error, _ time.Duration) {
				if got = err; err != nil {
					cancel()
				}
			}
		})
		if err := r.source.Read(ctx, func(*signal.Signal) error { return nil }); err != nil {
			require.ErrorIs(t, err, dial.ErrRefused)
			got = err
		}
		cancel()
		require.Error(t, got, c.want)
		assert.Equal(t, c.want, strings.ReplaceAll(got.Error(), host, "HOST"))
	}
}

// The texts of ends that a test cannot cause.
func TestConnectionError(t *testing.T) {
	for want, err := range map[string]error{
		`the host "far.example" has no address; correct the URL`:                              &net.OpError{Op: "dial", Err: &net.DNSError{Name: "far.example", Err: "no such host", IsNotFound: true}},
		`the address of the host "far.example" cannot be found out: server misbehaving`:       &net.OpError{Op: "dial", Err: &net.DNSError{Name: "far.example", Err: "server misbehaving"}},
		"the certificate of HOST is not valid: x509: certificate signed by unknown authority": fmt.Errorf("failed: %w", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
		"HOST did not answer in time":                                                         fmt.Errorf("failed: %w", os.ErrDeadlineExceeded),
		"HOST broke the connection off":                                                       fmt.Errorf("failed: %w", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
		"the connection to HOST failed: no route to host":                                     fmt.Errorf("failed: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}),
	} {
		assert.Equal(t, want, (&dial.ConnectionError{Host: "HOST", Err: err}).Error())
	}
}
