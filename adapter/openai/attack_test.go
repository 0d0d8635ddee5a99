package openai_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// wire is a server on raw TCP. It reads the header of one request on each
// connection, and then calls play. It ends with its test.
type wire struct {
	address string
	reached chan struct{} // closed at the first call of at
	once    sync.Once
}

// at signals that play has reached the point at which it holds its client.
func (s *wire) at() { s.once.Do(func() { close(s.reached) }) }

func listen(t *testing.T, play func(s *wire, conn net.Conn, header string)) *wire {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &wire{address: l.Addr().String(), reached: make(chan struct{})}
	var conns sync.WaitGroup
	over := make(chan struct{})
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				go func() {
					<-over
					_ = conn.Close()
				}()
				var header strings.Builder
				for r := bufio.NewReader(conn); ; {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					if header.WriteString(line); line == "\r\n" {
						break
					}
				}
				defer s.at()
				play(s, conn, header.String())
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		close(over)
		conns.Wait()
	})
	return s
}

// hold keeps the connection until the client closes it or the test ends.
func hold(s *wire, conn net.Conn) {
	s.at()
	_, _ = io.Copy(io.Discard, conn)
}

// drip writes a text repeatedly, as long as the client reads it.
func drip(s *wire, conn net.Conn, text string) {
	for n := 0; ; n++ {
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
		if n == 3 {
			s.at()
		}
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

// attacks are servers that hold or flood their client. ends means that a limit of
// the client ends the request.
var attacks = map[string]struct {
	play func(s *wire, conn net.Conn)
	ends bool
}{
	"101 and silence": {func(s *wire, conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		hold(s, conn)
	}, true},
	"101 and words": {func(s *wire, conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		drip(s, conn, delta("a"))
	}, true},
	"101 without an upgrade": {func(s *wire, conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Whatever\r\nContent-Length: 5\r\n\r\n")
		hold(s, conn)
	}, true},
	"silence":               {hold, false},
	"a status and silence":  {says("HTTP/1.1 200 OK\r\n"), false},
	"headers and silence":   {says(ok + "Content-Length: 100\r\n\r\n"), false},
	"100 and silence":       {says("HTTP/1.1 100 Continue\r\n\r\n"), false},
	"a token and silence":   {says(ok + "\r\n" + delta("a")), false},
	"a refusal and silence": {says("HTTP/1.1 401 Unauthorized\r\nContent-Length: 100\r\n\r\nno"), false},
	"half an object":        {says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"choices\":"), false},
	"half a chunk":          {says(ok + "Transfer-Encoding: chunked\r\n\r\nff\r\ndata: "), false},
	"an unfinished trailer": {says(ok + "Transfer-Encoding: chunked\r\n\r\n1\r\n:\r\n0\r\nX-Trailer: a"), false},
	"a flood of 1xx":        {floods("", "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"), true},
	"a flood of headers":    {floods("HTTP/1.1 200 OK\r\n", "X-Header: value\r\n"), true},
	"a header without end":  {floods("HTTP/1.1 200 OK\r\nX-Header: ", strings.Repeat("x", 1000)), true},
	"a status without end":  {floods("HTTP/1.1 200 ", strings.Repeat("x", 1000)), true},
	"a line without end":    {floods(ok+"\r\ndata: ", strings.Repeat("x", 1000)), true},
	"an event without end":  {floods(ok+"\r\n", "data: "+strings.Repeat("x", 1000)+"\n"), true},
	"comments":              {floods(ok+"\r\n", ": wait\n\n"), true},
	"empty deltas":          {floods(ok+"\r\n", delta("")), true},
	"tokens":                {floods(ok+"\r\n", delta("a")), true},
	"an object without end": {floods("HTTP/1.1 200 OK\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"", strings.Repeat("x", 1000)), true},
	"white space":           {floods("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat(" ", 1000)), true},
	"trailers":              {floods(ok+"Transfer-Encoding: chunked\r\n\r\n1\r\n:\r\n0\r\n", "X-Trailer: a\r\n"), true},
	"extensions of a chunk": {floods(ok+"Transfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("x", 1000)), true},
	"a refusal without end": {floods("HTTP/1.1 401 Unauthorized\r\n\r\n", strings.Repeat("x", 1000)), true},
	"a gzip bomb":           {floods("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", bomb()), true},
	"a body that is short":  {closes("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"choices\":[]}"), true},
	"two lengths":           {closes("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\n{}"), true},
	"a negative length":     {closes("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}"), true},
	"a huge length":         {closes("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n{}"), true},
	"a redirect to itself":  {closes("HTTP/1.1 307 Temporary Redirect\r\nLocation: /v1/chat/completions\r\nContent-Length: 0\r\n\r\n"), true},
	"status 999":            {closes("HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"), true},
	"HTTP/2":                {closes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), true},
	"nothing":               {closes(""), true},
}

func says(text string) func(*wire, net.Conn) {
	return func(s *wire, conn net.Conn) {
		_, _ = io.WriteString(conn, text)
		hold(s, conn)
	}
}

func floods(head, text string) func(*wire, net.Conn) {
	return func(s *wire, conn net.Conn) {
		_, _ = io.WriteString(conn, head)
		drip(s, conn, text)
	}
}

func closes(text string) func(*wire, net.Conn) {
	return func(s *wire, conn net.Conn) {
		_, _ = io.WriteString(conn, text)
		s.at()
	}
}

func bomb() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	return b.String()
}

// foreign is a transport that ignores contexts until its connection ends.
type foreign struct{ inner http.RoundTripper }

func (f foreign) RoundTrip(r *http.Request) (*http.Response, error) {
	return f.inner.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
}

// Generate and Complete return for every attack: at a limit, at the end of the
// context, or at Timeout; also over a transport that ignores contexts.
func TestAttackServers(t *testing.T) {
	const patience = 20 * time.Second // for a busy machine
	for name, a := range attacks {
		for _, end := range []string{"cancel", "timeout"} {
			for _, call := range []string{"generate", "complete", "foreign"} {
				t.Run(name+"/"+end+"/"+call, func(t *testing.T) {
					s := listen(t, func(s *wire, conn net.Conn, _ string) { a.play(s, conn) })
					clk := newClock()
					cfg := openai.Config{
						BaseURL: "http://" + s.address + "/v1", Model: "m", APIKey: openai.NewKey(secret), MaxBytes: 1 << 18, MaxTokens: 100,
						FirstByte: firstByte, Idle: idle, Timeout: whole, Now: clk.Now, AfterFunc: clk.AfterFunc,
					}
					if call == "foreign" {
						inner := &http.Transport{MaxResponseHeaderBytes: 64 << 10}
						defer inner.CloseIdleConnections()
						cfg.Transport = foreign{inner}
					}
					client, err := openai.New(cfg)
					require.NoError(t, err)
					defer client.Close()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					done := make(chan error, 1)
					go func() {
						var err error
						if call == "complete" {
							_, err = client.Complete(ctx, openai.Request{Messages: prompt.Messages})
						} else {
							_, err = tokensOf(ctx, client, prompt)
						}
						done <- err
					}()
					<-s.reached
					late := time.After(patience)
					if !a.ends {
						if end == "cancel" {
							cancel()
						} else {
							clk.fire(whole, 1)
						}
					}
					select {
					case err := <-done:
						noKey(t, err)
						want := agents.ErrGenerationTimeout
						if end == "cancel" {
							want = agents.ErrCancelled
						}
						if err == nil || !a.ends && !errors.Is(err, want) && name != "a refusal and silence" {
							t.Errorf("it returned %v", err)
						}
					case <-late:
						t.Errorf("it has not returned")
					}
				})
			}
		}
	}
}

// An upgrade is its own error, is not retried, and the error has nothing of the
// bytes after it.
func TestUpgrade(t *testing.T) {
	s := listen(t, func(s *wire, conn net.Conn, _ string) { attacks["101 and words"].play(s, conn) })
	client, err := openai.New(openai.Config{BaseURL: "http://" + s.address, Model: "m"})
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Complete(t.Context(), openai.Request{Messages: prompt.Messages})
	e, isError := errors.AsType[*openai.Error](err)
	if !isError || !errors.Is(err, openai.ErrUpgrade) || e.Status != 101 || e.Attempts != 1 || e.Recovery != agents.Abort || e.Body != "" {
		t.Errorf("error %+v", err)
	}
}

// echoes are the encodings in which a server may repeat the key.
func echoes() map[string]string {
	return map[string]string{
		"plain": secret, "path": url.PathEscape(secret), "query": url.QueryEscape(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)), "URL base64": base64.RawURLEncoding.EncodeToString([]byte("u:" + secret)),
		"hex": fmt.Sprintf("%x", secret), "slashes": strings.ReplaceAll(secret, "/", `\/`),
	}
}

// leaks checks that a text does not contain the key in any encoding.
func leaks(t *testing.T, what, text string) {
	t.Helper()
	for form, echo := range echoes() {
		if strings.Contains(text, echo) || strings.Contains(form, "base64") && strings.Contains(text, echo[8:len(echo)-8]) {
			t.Errorf("%s: the key, %s, is in %q", what, form, text)
		}
	}
}

// A key that a server repeats as content, in one piece or split anywhere, reaches
// neither a caller nor a completion; the text around it stays.
func TestAttackEchoes(t *testing.T) {
	event := func(token string) string { return delta(token) }
	for form, echo := range echoes() {
		for size := 1; size <= len(echo); size += attack.Rounds(7, 1) {
			var stream strings.Builder
			text := "Your key is " + echo + ", is it not? s"
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				stream.WriteString(event(rest[:n]))
				rest = rest[n:]
			}
			stream.WriteString(end)
			p := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) { send(w, "%s", stream.String()) })
			tokens, err := tokensOf(t.Context(), p, prompt)
			require.NoError(t, err)
			said := strings.Join(tokens, "")
			leaks(t, fmt.Sprintf("%s in pieces of %d", form, size), said)
			if !strings.HasPrefix(said, "Your key is ") || !strings.HasSuffix(said, ", is it not? s") || !strings.Contains(said, "[redacted]") {
				t.Errorf("%s in pieces of %d: the words are %q", form, size, said)
			}
			done, err := p.Complete(t.Context(), openai.Request{Messages: prompt.Messages})
			if err != nil || done.Text != said {
				t.Errorf("%s: complete %q, %v; streamed %q", form, done.Text, err, said)
			}
		}
	}
}

// The last token of a budget is not held back. A stream that breaks off within the
// key yields no part of it. The key is redacted as the name of a model, and a short
// key, which may be a word, is not.
func TestEchoAtTheEnd(t *testing.T) {
	p := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
		send(w, "%s", delta("this")+delta(" s")+end)
	})
	last := prompt
	last.MaxTokens = 2
	if tokens, err := tokensOf(t.Context(), p, last); err != nil || strings.Join(tokens, "") != "this s" || len(tokens) > 2 {
		t.Errorf("%q, %v", tokens, err)
	}
	p = serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
		send(w, "%s", delta("the key: "+secret[:len(secret)-1]))
	})
	if tokens, _ := tokensOf(t.Context(), p, prompt); strings.Join(tokens, "") != "the key: [redacted]" {
		t.Errorf("%q", tokens)
	}
	p = serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
		send(w, `{"model":%q,"choices":[{"index":0,"finish_reason":%q,"message":{"content":"Hi"}}]}`, secret, "x"+secret)
	})
	if done, err := p.Complete(t.Context(), openai.Request{Messages: prompt.Messages}); err != nil || done.Model != "[redacted]" || done.FinishReason != "x[redacted]" {
		t.Errorf("%+v, %v", done, err)
	}
	p = serve(t, func(c *openai.Config) { c.APIKey = openai.NewKey("none") }, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
		send(w, "%s", delta("none at all")+end)
	})
	if tokens, err := tokensOf(t.Context(), p, prompt); err != nil || strings.Join(tokens, "") != "none at all" {
		t.Errorf("%q, %v", tokens, err)
	}
}
