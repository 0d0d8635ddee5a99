package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

// makeToken adds a token to a file and returns its text.
func makeToken(t require.TestingT, path, name string, grants ...access.Grant) string {
	text, token, err := access.NewToken(mathrand.New(mathrand.NewSource(int64(len(name))+int64(name[0])<<8)), name, grants, noon, time.Time{})
	require.NoError(t, err)
	require.NoError(t, access.ChangeTokens(path, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
		return access.AddToken(tokens, token, noon)
	}))
	return text
}

// unserved returns a server that has no listener.
func unserved(t testing.TB, cfg server.Config, routes ...route.Endpoint) *server.Server {
	t.Helper()
	engine, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, engine.Close()) })
	s, err := server.New(engine, cfg)
	require.NoError(t, err)
	for _, rt := range routes {
		s.Mount(rt)
	}
	return s
}

// call is a request that reaches a server without a connection.
type call struct {
	method, path, peer, token string
	header                    http.Header
	body                      io.Reader
}

func (c call) to(s *server.Server) *httptest.ResponseRecorder {
	if c.method == "" {
		c.method = http.MethodGet
	}
	r := httptest.NewRequest(c.method, "http://localhost"+c.path, c.body)
	r.RemoteAddr = c.peer
	if c.peer == "" {
		r.RemoteAddr = "10.0.0.1:99"
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// codeOf returns the code of a problem document.
func codeOf(t require.TestingT, w *httptest.ResponseRecorder) problem.ErrorCode {
	var doc struct{ Code problem.ErrorCode }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc), w.Body.String())
	return doc.Code
}

// room returns routes that answer with the name of the session, if it exists.
func room(exists func(string) bool) []route.Endpoint {
	answer := func(w http.ResponseWriter, r *http.Request) error {
		if name := route.Session(r); name != "" && !exists(name) {
			return fmt.Errorf("replay of %q: %w", name, fmt.Errorf("%w %q in the store", eventlog.ErrNoSession, name))
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w, "session", route.Session(r))
		return err
	}
	return []route.Endpoint{
		{Pattern: "GET /test/{session}", Scope: access.ScopeRead, Handler: answer},
		{Pattern: "POST /test/{session}", Scope: access.ScopeRecord, MaxBody: 1000, Handler: answer},
		{Pattern: "GET /test/{session}/tick", Scope: access.ScopeTick, Handler: answer},
		{Pattern: "GET /open", Handler: answer},
	}
}

// TestHiddenIsAbsent shows that a caller gets the same bytes about a session that it has
// no grant for, whether it exists or not, and about one that it could read if it existed.
func TestHiddenIsAbsent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	existing := map[string]bool{}
	s := unserved(t, server.Config{Access: access.Config{Tokens: path}, Now: atNoon, Limits: limit.Config{Rate: -1}}, room(func(name string) bool { return existing[name] })...)
	tokens := map[string][]string{}
	for i, patterns := range [][]string{{"a*"}, {"ab"}, {"b", "ab*"}, {"zzz"}} {
		token := makeToken(t, path, strings.Repeat("x", i+1), access.Grant{Scope: access.ScopeRead, Sessions: patterns}, access.Grant{Scope: access.ScopeRecord, Sessions: patterns})
		tokens[token] = patterns
	}
	matches := func(patterns []string, name string) bool {
		for _, p := range patterns {
			if p == name || strings.HasSuffix(p, "*") && strings.HasPrefix(name, p[:len(p)-1]) {
				return true
			}
		}
		return false
	}
	absent := call{path: "/test/ab", token: func() string {
		for token, patterns := range tokens {
			if matches(patterns, "ab") {
				return token
			}
		}
		return ""
	}()}.to(s)
	require.Equal(t, http.StatusNotFound, absent.Code)
	rapid.Check(t, func(t *rapid.T) {
		for _, name := range []string{"a", "ab", "abc", "b", "c", "zzz"} {
			existing[name] = rapid.Bool().Draw(t, name)
		}
		name := rapid.SampledFrom([]string{"a", "ab", "abc", "b", "c", "zzz", "аb", "a%2Fb", "%2e%2e"}).Draw(t, "asked")
		method := rapid.SampledFrom([]string{http.MethodGet, http.MethodPost}).Draw(t, "method")
		for token, patterns := range tokens {
			w := call{method: method, path: "/test/" + name, token: token}.to(s)
			plain := strings.NewReplacer("%2F", "/", "%2e", ".").Replace(name)
			if matches(patterns, plain) && existing[plain] {
				require.Equal(t, http.StatusOK, w.Code)
				continue
			}
			require.Equal(t, absent.Code, w.Code)
			require.Equal(t, absent.Header(), w.Header())
			require.Equal(t, absent.Body.String(), w.Body.String())
			if tick := (call{path: "/test/" + name + "/tick", token: token}).to(s); matches(patterns, plain) {
				require.Equal(t, problem.Forbidden, codeOf(t, tick)) // known by another grant
			} else {
				require.Equal(t, absent.Body.String(), tick.Body.String())
			}
		}
	})
}

// TestAdmission follows callers through the checks, and the security events that remain
// of it.
func TestAdmission(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	s := unserved(t, server.Config{Access: access.Config{Tokens: path}, Now: atNoon}, room(func(string) bool { return true })...)
	tap := makeToken(t, path, "tap", access.Grant{Scope: access.ScopeRecord, Sessions: []string{"build-*"}})
	admin := makeToken(t, path, "admin", access.Grant{Scope: access.ScopeAdmin, Sessions: []string{"*"}})
	here := "127.0.0.1:1"
	for _, c := range []struct {
		what string
		call call
		code problem.ErrorCode // empty: 200
		kind access.SecurityKind
	}{
		{"a stranger at an open route", call{path: "/open"}, "", ""},
		{"a stranger", call{path: "/test/build-1"}, problem.Unauthenticated, access.AuthFailed},
		{"a wrong token", call{path: "/test/build-1", token: tap[:len(tap)-1] + "q", peer: here}, problem.Unauthenticated, access.AuthFailed},
		{"a wrong token at an open route", call{path: "/open", token: "x"}, problem.Unauthenticated, access.AuthFailed},
		{"this machine", call{path: "/test/x", peer: here}, "", ""},
		{"this machine records", call{method: "POST", path: "/test/x", peer: here}, "", ""},
		{"this machine ticks", call{path: "/test/x/tick", peer: here}, problem.Forbidden, access.ActForbidden},
		{"a proxy on this machine", call{path: "/test/x", peer: here, header: http.Header{"X-Forwarded-For": {"127.0.0.1"}}}, problem.Unauthenticated, access.AuthFailed},
		{"a token records", call{method: "POST", path: "/test/build-1", token: tap}, "", ""},
		{"a token reads", call{path: "/test/build-1", token: tap}, problem.Forbidden, access.ActForbidden},
		{"a token elsewhere", call{method: "POST", path: "/test/payroll", token: tap}, problem.NoSession, access.ActForbidden},
		{"a token elsewhere on this machine", call{method: "POST", path: "/test/payroll", token: tap, peer: here}, problem.NoSession, access.ActForbidden},
		{"an impossible name", call{path: "/test/a%00b", peer: here}, problem.Invalid, ""},
		{"an impossible name of a stranger", call{path: "/test/a%00b"}, problem.Unauthenticated, access.AuthFailed},
		{"too large", call{method: "POST", path: "/test/x", peer: here, body: strings.NewReader(strings.Repeat("x", 1001))}, problem.TooLarge, ""},
		{"a foreign page", call{path: "/open", header: http.Header{"Origin": {"https://attacker.example"}}}, problem.OriginRefused, access.OriginRefused},
		{"two origins", call{path: "/open", header: http.Header{"Origin": {"http://localhost:1", "https://attacker.example"}}}, problem.OriginRefused, access.OriginRefused},
		{"a foreign page opens a WebSocket", call{path: "/open", peer: here, header: http.Header{"Origin": {"https://attacker.example"}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"}}}, problem.OriginRefused, access.OriginRefused},
		{"a foreign page embeds", call{path: "/test/x", peer: here, header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}}, problem.OriginRefused, access.OriginRefused},
		{"events without the scope", call{path: "/api/v1/security/events", peer: here}, problem.Forbidden, access.ActForbidden},
	} {
		before := s.SecurityEvents().Counts()
		w := c.call.to(s)
		if c.code == "" {
			assert.Equal(t, http.StatusOK, w.Code, c.what)
		} else if assert.Equal(t, problem.ClassOf(c.code).Status, w.Code, c.what) {
			assert.Equal(t, c.code, codeOf(t, w), c.what)
		}
		if w.Code == http.StatusUnauthorized {
			assert.Equal(t, `Bearer realm="sajou"`, w.Header().Get("WWW-Authenticate"))
		}
		for kind, n := range s.SecurityEvents().Counts() {
			want := before[kind]
			if kind == c.kind {
				want++
			}
			assert.Equal(t, want, n, "%s: %s", c.what, kind)
		}
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		assert.Empty(t, w.Header().Get("Set-Cookie"))
	}

	w := call{path: "/api/v1/security/events?limit=2&kind=ACT_FORBIDDEN", token: admin}.to(s)
	require.Equal(t, http.StatusOK, w.Code)
	var answer server.SecurityReport
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Len(t, answer.Events, 2)
	assert.Equal(t, uint64(5), answer.Counts[access.ActForbidden])
	second := answer.Events[1]
	assert.Equal(t, access.SecurityEvent{
		Number: second.Number, At: noon, Kind: access.ActForbidden, Caller: "token:tap", Peer: "10.0.0.1", Method: "GET", Path: "/test/build-1", Session: "build-1",
		Detail: `not allowed: token:tap has no grant with the scope "read" for session "build-1"`,
	}, second)
	assert.Equal(t, second.Number, answer.Next)
	w = call{path: fmt.Sprintf("/api/v1/security/events?kind=ACT_FORBIDDEN&after=%d", answer.Next), token: admin}.to(s)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	assert.Len(t, answer.Events, 3)
	assert.NotContains(t, w.Body.String(), tap)
	for _, query := range []string{"after=-1", "limit=0", "limit=1001", "limit=x", "kind=OTHER"} {
		w := call{path: "/api/v1/security/events?" + query, token: admin}.to(s)
		assert.Equal(t, problem.BadRequest, codeOf(t, w), query)
	}
	w = call{path: "/api/v1/security/events?after=99999", token: admin}.to(s)
	assert.Contains(t, w.Body.String(), `"events":[],"next":99999`)
}

func TestLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	now := noon
	inside, leave := make(chan struct{}, 10), make(chan struct{})
	routes := append(room(func(string) bool { return true }),
		route.Endpoint{Pattern: "GET /stream", Scope: access.ScopeRead, Stream: true, Handler: func(http.ResponseWriter, *http.Request) error {
			inside <- struct{}{}
			<-leave
			return nil
		}},
		route.Endpoint{Pattern: "POST /costly", Scope: access.ScopeRead, MaxBody: -1, Handler: func(_ http.ResponseWriter, r *http.Request) error { return limit.Take(r.Context(), 100) }},
	)
	s := unserved(t, server.Config{
		Access: access.Config{Tokens: path},
		Limits: limit.Config{Rate: 1, Burst: 3, Streams: 1, UnknownRate: 1, Memory: 700},
		Now:    func() time.Time { return now },
	}, routes...)
	token := makeToken(t, path, "tap", access.Grant{Scope: access.ScopeRead, Sessions: []string{"*"}}, access.Grant{Scope: access.ScopeRecord, Sessions: []string{"*"}})
	for range 3 {
		assert.Equal(t, http.StatusOK, call{path: "/test/x", token: token}.to(s).Code)
	}
	w := call{path: "/test/x", token: token}.to(s)
	assert.Equal(t, problem.TooMany, codeOf(t, w))
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	for range 100 {
		assert.Equal(t, http.StatusOK, call{path: "/test/x", peer: "127.0.0.1:1"}.to(s).Code)
	}
	now = now.Add(time.Hour)
	assert.Equal(t, problem.TooMany, codeOf(t, call{method: "POST", path: "/costly", token: token}.to(s)), "a handler takes more")
	now = now.Add(time.Hour)

	done := make(chan int, 1)
	go func() { done <- call{path: "/stream", token: token}.to(s).Code }()
	<-inside
	w = call{path: "/stream", token: token}.to(s)
	assert.Equal(t, problem.TooMany, codeOf(t, w))
	assert.Contains(t, w.Body.String(), "open streams of token:tap")
	close(leave)
	<-done
	assert.Equal(t, http.StatusOK, call{path: "/stream", token: token}.to(s).Code)

	now = now.Add(time.Hour)
	w = call{method: "POST", path: "/test/x", token: token, body: strings.NewReader(strings.Repeat("x", 800))}.to(s)
	assert.Equal(t, problem.TooMany, codeOf(t, w), "bodies have too little memory")
	w = call{method: "POST", path: "/test/x", token: token, body: strings.NewReader(strings.Repeat("x", 600))}.to(s)
	assert.Equal(t, http.StatusOK, w.Code)
	for i := range 3 {
		w = call{path: "/test/x", token: "guess"}.to(s)
		assert.Equal(t, i == 2, w.Code == http.StatusTooManyRequests, "guessing tokens is bounded by address")
	}
	assert.Equal(t, limit.InUse{}, s.InUse())
}

// TestConnectionBeyondTheBound shows that a connection beyond the bound of all is refused
// and noted, while the one that was there goes on.
func TestConnectionBeyondTheBound(t *testing.T) {
	told := make(chan string, 1)
	s := serve(t, server.Config{Limits: limit.Config{AllConnections: 1, Refused: func(peer netip.Addr, _ error) { told <- peer.String() }}})
	first := s.dial(t)
	first.send(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	status, _ := first.answer(t)
	require.Equal(t, http.StatusOK, status)
	second := s.dial(t) // says nothing, so that its answer cannot be lost
	status, body := second.answer(t)
	assert.Equal(t, http.StatusTooManyRequests, status)
	want, err := problem.Of(&limit.OverLimitError{Bound: "connections to this server", RetryAfter: time.Second}).MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, string(want)+"\n", body, "the document of a request beyond a bound")
	second.closed(t)
	assert.Equal(t, "127.0.0.1", <-told)
	assert.Equal(t, uint64(1), s.SecurityEvents().Counts()[access.LimitExceeded])
	first.send(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	status, _ = first.answer(t)
	assert.Equal(t, http.StatusOK, status)
}

// TestStreamOfARevokedToken shows that an open stream ends with its token.
func TestStreamOfARevokedToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	token := makeToken(t, path, "tap", access.Grant{Scope: access.ScopeRead, Sessions: []string{"*"}})
	look := make(chan func(), 1)
	inside := make(chan struct{})
	s := unserved(t, server.Config{Now: atNoon, Access: access.Config{Tokens: path, Now: atNoon, AfterFunc: func(_ time.Duration, f func()) func() bool {
		look <- f
		return func() bool { return true }
	}}}, route.Endpoint{Pattern: "GET /stream", Scope: access.ScopeRead, Stream: true, Handler: func(_ http.ResponseWriter, r *http.Request) error {
		close(inside)
		<-r.Context().Done()
		return nil
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		call{path: "/stream", token: token}.to(s)
	}()
	<-inside
	require.NoError(t, access.ChangeTokens(path, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
		tokens, _, err := access.RevokeToken(tokens, "tap", noon)
		return tokens, err
	}))
	(<-look)()
	<-done
	assert.Equal(t, uint64(1), s.SecurityEvents().Counts()[access.TokenEnded])
	events := s.SecurityEvents().After(0, access.TokenEnded, 1)
	assert.Equal(t, "token:tap", events[0].Caller)
	assert.Equal(t, http.StatusUnauthorized, call{path: "/stream", token: token}.to(s).Code)
	assert.Equal(t, limit.InUse{}, s.InUse())
}

// authority is an authority of certificates that lives as long as a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{cert, key, pool}
}

// issue returns a certificate for a DNS name and 127.0.0.1, or for the name alone.
func (a *authority) issue(t *testing.T, name string, addresses ...net.IP) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}, IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestTLSBesideASocket shows that a server of a Unix socket and a TLS address speaks HTTP/2
// and HTTP/1.1 there, whichever of its listeners is served first.
func TestTLSBesideASocket(t *testing.T) {
	own := newAuthority(t)
	certificate := own.issue(t, "localhost", net.IPv4(127, 0, 0, 1))
	for range 3 { // the listeners are served in either order
		socket, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		require.NoError(t, err)
		s := serve(t, server.Config{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}, socket)
		for _, major := range []int{1, 2} {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: own.pool}, ForceAttemptHTTP2: major == 2}
			res, err := (&http.Client{Transport: transport}).Get(strings.Replace(s.url, "http:", "https:", 1) + "/healthz")
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, res.StatusCode)
			assert.Equal(t, major, res.ProtoMajor)
			require.NoError(t, res.Body.Close())
			transport.CloseIdleConnections()
		}
		require.NoError(t, s.stop())
	}
}

// TestClientCertificates shows over TLS that a certificate of the authority counts by its
// name, and one of another authority not at all.
func TestClientCertificates(t *testing.T) {
	own, foreign := newAuthority(t), newAuthority(t)
	ci, err := access.ParseCertificate("ci.example=tick@build-*")
	require.NoError(t, err)
	s := serve(t, server.Config{
		Access: access.Config{Loopback: []access.Scope{}, Certificates: []access.CertificateGrants{ci}},
		TLS: &tls.Config{
			Certificates: []tls.Certificate{own.issue(t, "localhost", net.IPv4(127, 0, 0, 1))},
			ClientCAs:    own.pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12,
		},
	})
	for _, rt := range room(func(string) bool { return true }) {
		s.Mount(rt)
	}
	ask := func(path string, certs ...tls.Certificate) (int, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: own.pool, Certificates: certs}}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport}).Get(strings.Replace(s.url, "http:", "https:", 1) + path)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	for _, c := range []struct {
		path   string
		certs  []tls.Certificate
		status int
	}{
		{"/test/build-1/tick", []tls.Certificate{own.issue(t, "ci.example")}, http.StatusOK},
		{"/test/other/tick", []tls.Certificate{own.issue(t, "ci.example")}, http.StatusNotFound},
		{"/test/build-1", []tls.Certificate{own.issue(t, "ci.example")}, http.StatusForbidden},
		{"/test/build-1/tick", []tls.Certificate{own.issue(t, "other.example")}, http.StatusUnauthorized},
		{"/test/build-1/tick", nil, http.StatusUnauthorized},
	} {
		status, err := ask(c.path, c.certs...)
		require.NoError(t, err)
		assert.Equal(t, c.status, status, c.path)
	}
	// A client does not send a certificate of an authority that the server does not
	// name, unless it is made to.
	forged := foreign.issue(t, "ci.example")
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "http://"), &tls.Config{RootCAs: own.pool, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &forged, nil }})
	if err == nil { // in TLS 1.3 the refusal comes with the first bytes
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, errors.Is(err, io.EOF))
}
