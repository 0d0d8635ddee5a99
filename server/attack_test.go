package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// raw sends bytes over a connection of its own and returns what comes back until the
// server closes it, or until the read side has waited longer than any bound of the server.
type raw struct {
	net.Conn
	in *bufio.Reader
}

func (s *serving) dial(t *testing.T) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return &raw{conn, bufio.NewReader(conn)}
}

func (c *raw) send(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

// answer reads one answer with its body.
func (c *raw) answer(t *testing.T) (status int, body string) {
	t.Helper()
	res, err := http.ReadResponse(c.in, nil)
	require.NoError(t, err)
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(data)
}

// closed reads until the server closes the connection.
func (c *raw) closed(t *testing.T) {
	t.Helper()
	_, err := io.Copy(io.Discard, c.in)
	if timeout, ok := errors.AsType[net.Error](err); ok {
		require.False(t, timeout.Timeout(), "the server kept the connection")
	}
}

// statuses returns the statuses of all answers until the server closes the connection.
func (c *raw) statuses() (list []int) {
	for {
		res, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return list
		}
		list = append(list, res.StatusCode)
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return list
		}
	}
}

// attacked returns a server with short bounds. Its route counts the bytes of a body; at
// the end of the test it still answers.
func attacked(t *testing.T) *serving {
	t.Helper()
	s := serve(t, server.Config{HeaderTimeout: 150 * time.Millisecond, BodyTimeout: 300 * time.Millisecond, IdleTimeout: 300 * time.Millisecond})
	s.Mount(route.Endpoint{Pattern: "POST /count/{session}", Scope: "record", MaxBody: 1 << 20, Handler: func(w http.ResponseWriter, r *http.Request) error {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		_, err = fmt.Fprint(w, n)
		return err
	}})
	s.Mount(route.Endpoint{Pattern: "GET /count/{session}", Scope: "read", Handler: func(w http.ResponseWriter, r *http.Request) error {
		_, err := fmt.Fprintf(w, "%q", route.Session(r))
		return err
	}})
	t.Cleanup(func() {
		res, err := http.Get(s.url + "/healthz") // the context of the test has ended
		require.NoError(t, err, "the server does not answer any more")
		assert.Equal(t, http.StatusOK, res.StatusCode)
		require.NoError(t, res.Body.Close())
		assert.Zero(t, s.InUse().Memory)
	})
	return s
}

const post = "POST /count/x HTTP/1.1\r\nHost: localhost\r\n"

// TestAttackSlow shows that a request that does not arrive ends by a time.
func TestAttackSlow(t *testing.T) {
	s := attacked(t)
	t.Run("header", func(t *testing.T) {
		t.Parallel() // each waits for a bound
		c := s.dial(t)
		c.send(t, post+"X-A: b\r\n")
		c.closed(t)
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel() // each waits for a bound
		s.dial(t).closed(t)
	})
	t.Run("between requests", func(t *testing.T) {
		t.Parallel() // each waits for a bound
		c := s.dial(t)
		c.send(t, post+"Content-Length: 1\r\n\r\nx")
		status, body := c.answer(t)
		assert.Equal(t, 200, status)
		assert.Equal(t, "1", body)
		c.closed(t)
	})
	for name, rest := range map[string]string{"body": "Content-Length: 100\r\n\r\nx", "chunked body": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a bound
			c := s.dial(t)
			c.send(t, post+rest)
			status, body := c.answer(t)
			assert.Equal(t, http.StatusRequestTimeout, status)
			assert.Contains(t, body, problem.Timeout)
			c.closed(t)
		})
	}
}

// TestAttackLong shows that a request without an end is refused after the bound.
func TestAttackLong(t *testing.T) {
	s := attacked(t)
	flood := func(c *raw, text string, times int) {
		// The server answers and closes before all is sent, so an error is expected.
		for range times {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
	for name, header := range map[string]string{"a million headers": "X-A: b\r\n", "one long header": strings.Repeat("a", 100)} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.send(t, post+"X-B: ")
			done := make(chan struct{})
			go func() {
				defer close(done)
				flood(c, header, 1_000_000)
			}()
			assert.LessOrEqual(t, len(c.statuses()), 1)
			_ = c.Close()
			<-done
		})
	}
	t.Run("the status of a large header", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, post+strings.Repeat("X-A: b\r\n", 8200)+"\r\n")
		status, body := c.answer(t)
		assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, status)
		assert.Contains(t, body, problem.HeadersTooLarge)
		c.closed(t)
	})
	t.Run("the status of a larger header", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, post+strings.Repeat("X-A: b\r\n", 16900)) // twice the bound and 4 KiB of slack
		assert.Equal(t, []int{http.StatusRequestHeaderFieldsTooLarge}, c.statuses())
	})
	t.Run("a long path", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, "GET /count/"+strings.Repeat("a", 3000)+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		assert.Equal(t, []int{http.StatusUnprocessableEntity}, c.statuses())
	})
	t.Run("an announced body", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, post+"Content-Length: 9000000000000000000\r\n\r\n")
		done := make(chan struct{})
		go func() {
			defer close(done)
			flood(c, strings.Repeat("x", 64<<10), 1000)
		}()
		status, body := c.answer(t)
		assert.Equal(t, http.StatusRequestEntityTooLarge, status)
		assert.Contains(t, body, problem.TooLarge)
		_ = c.Close()
		<-done
	})
	t.Run("an endless body", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, post+"Transfer-Encoding: chunked\r\n\r\n")
		done := make(chan struct{})
		go func() {
			defer close(done)
			flood(c, "10000\r\n"+strings.Repeat("x", 0x10000)+"\r\n", 1000)
		}()
		status, _ := c.answer(t)
		assert.Equal(t, http.StatusRequestEntityTooLarge, status)
		_ = c.Close()
		<-done
	})
	t.Run("endless chunk extensions", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, post+"Transfer-Encoding: chunked\r\n\r\n")
		done := make(chan struct{})
		go func() {
			defer close(done)
			flood(c, "1;"+strings.Repeat("e", 1000)+"\r\nx\r\n", 2000)
		}()
		status, _ := c.answer(t)
		assert.Equal(t, http.StatusBadRequest, status)
		_ = c.Close()
		<-done
	})
	t.Run("a body where none is taken", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, "GET /count/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabcGET /count/y HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		for _, status := range c.statuses() {
			assert.Equal(t, http.StatusOK, status)
		}
	})
}

// TestAttackHalves shows what becomes of connections of which one half is closed.
func TestAttackHalves(t *testing.T) {
	s := attacked(t)
	half := func(t *testing.T, c *raw) {
		t.Helper()
		require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
	}
	t.Run("after a request", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, post+"Content-Length: 3\r\n\r\nabc")
		half(t, c)
		status, body := c.answer(t)
		assert.Equal(t, 200, status)
		assert.Equal(t, "3", body)
		c.closed(t)
	})
	for name, rest := range map[string]string{"in a body": "Content-Length: 10\r\n\r\nabc", "in a chunk": "Transfer-Encoding: chunked\r\n\r\n5\r\nab", "in a size": "Transfer-Encoding: chunked\r\n\r\n5"} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.send(t, post+rest)
			half(t, c)
			status, body := c.answer(t)
			assert.Equal(t, http.StatusBadRequest, status)
			assert.Contains(t, body, problem.BadRequest)
			c.closed(t)
		})
	}
	t.Run("in a header", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, "POST /count/x HT")
		half(t, c)
		c.closed(t)
	})
}

// TestAttackSmuggling sends requests that two programs could split differently. Each is
// refused, or is one request; the second one, that it hides, is never answered as one of
// its own before the first.
func TestAttackSmuggling(t *testing.T) {
	hidden := "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Hidden: 1\r\n\r\n"
	s := attacked(t)
	for name, c := range map[string]struct {
		text   string
		status []int
	}{
		"two lengths":               {post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc" + hidden, []int{400}},
		"two equal lengths":         {post + "Content-Length: 3\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", []int{200}},
		"a list of lengths":         {post + "Content-Length: 3, 4\r\n\r\nabc" + hidden, []int{400}},
		"a length with a sign":      {post + "Content-Length: +3\r\n\r\nabc" + hidden, []int{400}},
		"a negative length":         {post + "Content-Length: -3\r\n\r\nabc" + hidden, []int{400}},
		"a hexadecimal length":      {post + "Content-Length: 0x3\r\n\r\nabc" + hidden, []int{400}},
		"a space before the colon":  {post + "Content-Length : 3\r\n\r\nabc" + hidden, []int{400}},
		"another coding":            {post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden, []int{501}},
		"two codings":               {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden, []int{501}},
		"two headers of codings":    {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden, []int{501}},
		"a vertical tab":            {post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + hidden, []int{400}},
		"an odd chunk size":         {post + "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n" + hidden, []int{400}},
		"a huge chunk size":         {post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n" + hidden, []int{400}},
		"a chunk that is too long":  {post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n" + hidden, []int{400}},
		"a NUL in a header":         {post + "X-A: \x00\r\n\r\n" + hidden, []int{400}},
		"two hosts":                 {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n" + hidden, []int{400}},
		"no host":                   {"GET /healthz HTTP/1.1\r\n\r\n" + hidden, []int{400}},
		"a host with a path":        {"GET /healthz HTTP/1.1\r\nHost: localhost/attacker\r\nConnection: close\r\n\r\n", []int{400}},
		"a foreign absolute target": {"GET http://attacker.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", []int{403}},
		"no version":                {"GET /healthz\r\n\r\n" + hidden, []int{400}},
		"version 3":                 {"GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n" + hidden, []int{505}},
		"HTTP/1.0 without a host":   {"GET /healthz HTTP/1.0\r\n\r\n", []int{403}},
		"a space in the target":     {"GET /heal thz HTTP/1.1\r\nHost: localhost\r\n\r\n" + hidden, []int{400}},
		"not HTTP":                  {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t)
			conn.send(t, c.text)
			assert.Equal(t, c.status, conn.statuses())
		})
	}
	// A length beside a coding: the coding counts, as the standard has it, and the
	// connection carries on with what follows the chunks.
	conn := s.dial(t)
	conn.send(t, post+"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
	status, body := conn.answer(t)
	assert.Equal(t, []any{200, "1"}, []any{status, body})
}

func TestAttackMethods(t *testing.T) {
	s := attacked(t)
	for method, status := range map[string]int{
		"DELETE": 405, "PUT": 405, "PATCH": 405, "TRACE": 405, "PROPFIND": 405, "post": 405, "CONNECT": 405, "HEAD": 200, "OPTIONS": 204, "G\u00cbT": 400,
	} {
		c := s.dial(t)
		c.send(t, method+" /count/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		if method == "HEAD" {
			res, err := http.ReadResponse(c.in, &http.Request{Method: "HEAD"})
			require.NoError(t, err)
			assert.Equal(t, status, res.StatusCode)
			require.NoError(t, res.Body.Close())
			continue
		}
		assert.Equal(t, []int{status}, c.statuses(), method)
	}
}

// TestAttackPaths shows that a path names one session or none, and never leads elsewhere.
func TestAttackPaths(t *testing.T) {
	s := attacked(t)
	for path, want := range map[string]string{
		"/count/x":               `"x"`,
		"/count/a%2Fb":           `"a/b"`,
		"/count/%2e%2e":          `".."`,
		"/count/..%2f..%2fetc":   `"../../etc"`,
		"/count/%2525":           `"%25"`,
		"/count/a;b=c":           `"a;b=c"`,
		"/count/%D0%B0":          `"а"`, // a Cyrillic letter is a name of its own
		"/count/x?session=other": `"x"`,
		"/count/../healthz":      "404",
		"/count/./x":             "404",
		"/count//x":              "404",
		"//count/x":              "404",
		"/count/x/":              "404",
		"/count/":                "404",
		"/count/x/..":            "404",
		"/COUNT/x":               "404",
		"/count/a%00":            "422",
		"/count/a%0Ab":           "422",
		"/count/%E2%80%AE":       "422", // reverses what follows
		"/count/%FF":             "422",
		"/count/%zz":             "400",
		"/count/%":               "400",
		"/\\count\\x":            "404",
	} {
		c := s.dial(t)
		c.send(t, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(c.in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		got := fmt.Sprint(res.StatusCode)
		if res.StatusCode == http.StatusOK {
			got = string(body)
		}
		assert.Equal(t, want, got, path)
		assert.Empty(t, res.Header.Get("Location"), path)
	}
}

// FuzzRequest sends any bytes as a request. The server answers or closes, and answers the
// next client.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{post + "Content-Length: 1\r\n\r\nx", "GET /count/%2e HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nAuthorization: Bearer x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		f.Add([]byte(s))
	}
	s := unserved(f, server.Config{}, room(func(string) bool { return true })...)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return
		}
		r.RemoteAddr = "127.0.0.1:1"
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r.WithContext(ctx))
		require.Less(t, w.Code, 500)
		require.Empty(t, w.Header().Get("Location"))
		if w.Code >= 400 && r.Method != http.MethodHead {
			require.Equal(t, problem.MediaType, w.Header().Get("Content-Type"))
			codeOf(t, w)
		}
	})
}
