package access_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/access"
)

func newGate(t testing.TB, cfg access.Config) *access.Gate {
	t.Helper()
	g, err := access.NewGate(cfg)
	require.NoError(t, err)
	return g
}

func from(peer string, header http.Header) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/x", nil)
	r.RemoteAddr = peer
	for name, values := range header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	return r
}

// TestCallersWithoutToken shows who is anonymous, and that tokens change nothing about it.
func TestCallersWithoutToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.tokens")
	for _, tokens := range []int{0, 1} {
		if tokens == 1 {
			put(t, path, 1, "first", time.Time{})
		}
		for _, c := range []struct {
			loopback []access.Scope
			peer     string
			header   string
			may      []access.Scope
		}{
			{nil, "127.0.0.1:1", "", []access.Scope{access.ScopeRecord, access.ScopeRead}},
			{nil, "127.8.9.1:1", "", []access.Scope{access.ScopeRecord, access.ScopeRead}},
			{nil, "[::1]:1", "", []access.Scope{access.ScopeRecord, access.ScopeRead}},
			{nil, "[::ffff:127.0.0.1]:1", "", []access.Scope{access.ScopeRecord, access.ScopeRead}},
			{[]access.Scope{}, "127.0.0.1:1", "", nil},
			{[]access.Scope{access.ScopeRead}, "127.0.0.1:1", "", []access.Scope{access.ScopeRead}},
			{nil, "127.0.0.1:1", "Forwarded", nil},
			{nil, "127.0.0.1:1", "X-Forwarded-For", nil},
			{nil, "127.0.0.1:1", "X-Forwarded-Proto", nil},
			{nil, "[::1]:1", "X-Real-IP", nil},
			{nil, "127.0.0.1:1", "Via", nil},
			{nil, "10.0.0.1:1", "", nil},
			{nil, "[fe80::1%eth0]:1", "", nil},
			{nil, "128.0.0.1:1", "", nil},
			{nil, "", "", nil},
			{nil, "@", "", nil},
		} {
			g := newGate(t, access.Config{Loopback: c.loopback, Tokens: path, Now: (&clock{noon}).read})
			header := http.Header{}
			if c.header != "" {
				header.Set(c.header, "") // the name alone is enough
			}
			id, err := g.Identify(from(c.peer, header))
			require.NoError(t, err)
			var may []access.Scope
			for _, s := range access.Scopes() {
				if id.May(s, "any") {
					may = append(may, s)
				}
			}
			assert.Equal(t, c.may, may, "%+v", c)
		}
	}
}

func TestCallersWithToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.tokens")
	text := put(t, path, 1, "tap", time.Time{}, access.Grant{Scope: access.ScopeTick, Sessions: []string{"a*"}})
	g := newGate(t, access.Config{Tokens: path, Now: (&clock{noon}).read})
	for _, value := range []string{"Bearer " + text, "bearer " + text, "BEARER   " + text} {
		for peer, local := range map[string]bool{"10.0.0.1:1": false, "127.0.0.1:1": true} {
			id, err := g.Identify(from(peer, http.Header{"Authorization": {value}}))
			require.NoError(t, err)
			assert.Equal(t, local, id.Local)
			assert.True(t, id.May(access.ScopeTick, "ab"))
			assert.False(t, id.May(access.ScopeRecord, "ab"), "a token counts alone, from this machine too")
		}
	}
	for _, values := range [][]string{{""}, {text}, {"Bearer"}, {"Bearer "}, {"Basic " + text}, {"Bearer " + text + " "}, {"Bearer\t" + text}, {"Bearer " + text, "Bearer " + text}, {"Вearer " + text}} {
		_, err := g.Identify(from("127.0.0.1:1", http.Header{"Authorization": values}))
		assert.ErrorIs(t, err, access.ErrUnauthenticated, "a refused proof is not followed by another: %q", values)
	}
	r := from("10.0.0.1:1", http.Header{"Cookie": {"Authorization=Bearer " + text}})
	r.URL.RawQuery = url.Values{"access_token": {text}}.Encode()
	id, err := g.Identify(r)
	require.NoError(t, err)
	assert.Nil(t, id)
}

func TestCallersWithCertificate(t *testing.T) {
	ann, err := access.ParseCertificate("ann.example=act:ann@night")
	require.NoError(t, err)
	more, err := access.ParseCertificate("ann.example=read")
	require.NoError(t, err)
	common, err := access.ParseCertificate("old=record")
	require.NoError(t, err)
	mesh, err := access.ParseCertificate("spiffe://mesh/ci=record@build-*")
	require.NoError(t, err)
	g := newGate(t, access.Config{Certificates: []access.CertificateGrants{ann, more, common, mesh}})
	spiffe, err := url.Parse("spiffe://mesh/ci")
	require.NoError(t, err)
	for _, c := range []struct {
		what     string
		cert     x509.Certificate
		verified bool
		name     string // empty: refused
		may      access.Scope
	}{
		{"a DNS name", x509.Certificate{DNSNames: []string{"x", "ann.example"}}, true, "cert:ann.example", access.ScopeRead},
		{"a URI", x509.Certificate{URIs: []*url.URL{spiffe}}, true, "cert:spiffe://mesh/ci", access.ScopeRecord},
		{"a common name", x509.Certificate{Subject: pkix.Name{CommonName: "old"}}, true, "cert:old", access.ScopeRecord},
		{"a common name beside others", x509.Certificate{Subject: pkix.Name{CommonName: "old"}, IPAddresses: []net.IP{{1, 2, 3, 4}}}, true, "", ""},
		{"a wildcard", x509.Certificate{DNSNames: []string{"*.example"}}, true, "", ""},
		{"other letters", x509.Certificate{DNSNames: []string{"ANN.example"}}, true, "", ""},
		{"no name", x509.Certificate{}, true, "", ""},
	} {
		r := from("127.0.0.1:1", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{&c.cert}}
		id, err := g.Identify(r)
		require.NoError(t, err)
		assert.Equal(t, "loopback", id.Name, "%s that was not verified is none", c.what)
		r.TLS.VerifiedChains = [][]*x509.Certificate{{&c.cert}}
		id, err = g.Identify(r)
		if c.name == "" {
			require.ErrorIs(t, err, access.ErrUnauthenticated, c.what)
			continue
		}
		require.NoError(t, err, c.what)
		assert.Equal(t, c.name, id.Name)
		assert.True(t, id.May(c.may, "build-night"), c.what)
	}
	for _, text := range []string{"", "x", "=read", "x=", "x=write"} {
		_, err := access.ParseCertificate(text)
		assert.ErrorIs(t, err, access.ErrGrant, text)
	}
}

func TestHosts(t *testing.T) {
	g := newGate(t, access.Config{Hosts: []string{"Sajou.example"}})
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:5175": true, "localhost.": true, "127.0.0.1:5175": true, "[::1]:5175": true, "[::1]": true, "10.0.0.7": true,
		"sajou.example:443": true, "SAJOU.EXAMPLE": true,
		"": false, "attacker.example": false, "localhost.attacker.example": false, "::1": false, "[localhost]": false, "localhost:": true, "localhost:x": false,
		"localhost:80:80": false, "ſajou.example": false, "loca\u006chost\u0000": false, "localhoſt": false, "[::1": false, "[1.2.3.4]": false, "localhost/": false,
		"user@localhost": false, "localhost, attacker.example": false, " localhost": false,
	} {
		assert.Equal(t, want, g.AllowsHost(host), "%q", host)
	}
}

func TestOrigins(t *testing.T) {
	g := newGate(t, access.Config{Origins: []string{"https://app.example:8443", "chrome-extension://abc"}, Hosts: []string{"sajou.example"}})
	for origin, want := range map[string]bool{
		"http://localhost:5173": true, "https://localhost": true, "http://127.0.0.1:3000": true, "http://[::1]:3000": true, "http://127.1.2.3": true,
		"https://app.example:8443": true, "chrome-extension://abc": true,
		"": false, "null": false, "https://app.example": false, "http://app.example:8443": false, "https://APP.example:8443": false, "http://10.0.0.1": false,
		"http://localhost.attacker.example": false, "http://localhost@attacker.example": false, "http://attacker.example#localhost": false,
		"http://localhost:5173/": false, "http://localhost:5173?x": false, "file://localhost": false, "http://localhoſt": false, "http://": false,
		"http://sajou.example": false, "http://localhost http://attacker.example": false, "http:localhost": false, "//localhost": false,
	} {
		assert.Equal(t, want, g.AllowsOrigin(origin), "%q", origin)
	}
	for _, c := range []struct {
		host, origin string
		want         bool
	}{
		{"sajou.example", "https://sajou.example", true},
		{"sajou.example:8443", "https://sajou.example:8443", true},
		{"sajou.example", "https://sajou.example:8443", false},
		{"attacker.example", "https://attacker.example", false}, // a name that was made to resolve to the server
		{"10.0.0.1:5175", "http://10.0.0.1:5175", true},
		{"sajou.example", "", false},
	} {
		r := from("10.0.0.1:1", http.Header{"Origin": {c.origin}})
		r.Host = c.host
		assert.Equal(t, c.want, g.FromServer(r), "%+v", c)
	}
	for _, bad := range []string{"https://app.example/", "app.example", "https://", "https://app.example/x", "*", "https://*", "https://ä.example"} {
		_, err := access.NewGate(access.Config{Origins: []string{bad}})
		assert.Error(t, err, bad)
	}
	for _, bad := range []string{"app.example:80", "", "https://app.example", "*", "ä.example", "[::1]", "app example"} {
		_, err := access.NewGate(access.Config{Hosts: []string{bad}})
		assert.Error(t, err, bad)
	}
	_, err := access.NewGate(access.Config{Loopback: []access.Scope{"write"}})
	assert.Error(t, err)
	_, err = access.NewGate(access.Config{Certificates: []access.CertificateGrants{{Name: "x", Grants: []access.Grant{{Scope: "write"}}}}})
	assert.Error(t, err)
}

func TestEmbedded(t *testing.T) {
	for _, c := range []struct {
		site, mode, origin string
		want               bool
	}{
		{"", "", "", false},
		{"cross-site", "no-cors", "", true},
		{"cross-site", "", "", true},
		{"cross-site", "navigate", "", false},
		{"cross-site", "cors", "http://localhost:1", false}, // the origin decides
		{"same-site", "no-cors", "", false},
		{"none", "navigate", "", false},
	} {
		header := http.Header{}
		for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Origin": c.origin} {
			if value != "" {
				header.Set(name, value)
			}
		}
		assert.Equal(t, c.want, access.Embedded(from("127.0.0.1:1", header)), "%+v", c)
	}
}

// FuzzOrigin shows that an allowed origin is of this machine for the parser of URLs too,
// and that a host is one.
func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"http://localhost:5173", "http://[::1]", "https://127.0.0.1", "http://localhost@x", "null", "http://localhost\t", "localhost:80", "[::1]:80", "http://localhoſt"} {
		f.Add(s)
	}
	g := newGate(f, access.Config{})
	f.Fuzz(func(t *testing.T, text string) {
		if g.AllowsOrigin(text) {
			u, err := url.Parse(text)
			require.NoError(t, err)
			addr, err := netip.ParseAddr(u.Hostname())
			name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
			require.True(t, name == "localhost" || err == nil && addr.Unmap().IsLoopback(), "%q", text)
			require.Empty(t, u.User.String()+u.Path+u.RawQuery+u.Fragment)
		}
		if g.AllowsHost(text) {
			u, err := url.Parse("http://" + text)
			require.NoError(t, err)
			_, err = netip.ParseAddr(u.Hostname())
			require.True(t, strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), "localhost") || err == nil, "%q", text)
		}
	})
}

// FuzzAuthorization shows that a header of any bytes is refused or names a token, and that
// no refusal repeats it.
func FuzzAuthorization(f *testing.F) {
	path := filepath.Join(f.TempDir(), "store.tokens")
	text, token, err := access.NewToken(chance(1), "tap", []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"*"}}}, noon, time.Time{})
	require.NoError(f, err)
	require.NoError(f, access.ChangeTokens(path, func([]access.AccessToken) ([]access.AccessToken, error) {
		return []access.AccessToken{*token}, nil
	}))
	for _, s := range []string{"Bearer " + text, "bearer  " + text, "Basic YTpi", "", "Bearer", "Bearer " + text + text} {
		f.Add(s)
	}
	g := newGate(f, access.Config{Tokens: path, Now: (&clock{noon}).read})
	f.Fuzz(func(t *testing.T, value string) {
		id, err := g.Identify(from("127.0.0.1:1", http.Header{"Authorization": {value}}))
		if err == nil {
			require.Equal(t, "token:tap", id.Name)
			require.True(t, strings.HasSuffix(value, " "+text))
			return
		}
		require.ErrorIs(t, err, access.ErrUnauthenticated)
		require.NotContains(t, err.Error(), text[15:])
	})
}

func TestExposure(t *testing.T) {
	local := []string{"127.0.0.1:5175", "[::1]:5175", "localhost:0", "127.9.9.9:1"}
	for _, c := range []struct {
		addresses []string
		exposure  access.Exposure
		warnings  int
		refused   string // a word of the error
	}{
		{local, access.Exposure{}, 0, ""},
		{[]string{"0.0.0.0:5175"}, access.Exposure{}, 0, "no access token"},
		{[]string{":5175"}, access.Exposure{TLS: true}, 0, "no access token"},
		{[]string{"[::]:5175"}, access.Exposure{InsecureHTTP: true}, 0, "no access token"},
		{[]string{"10.0.0.1:5175"}, access.Exposure{Tokens: 1}, 0, "--tls-cert"},
		{[]string{"sajou.example:5175"}, access.Exposure{Tokens: 1}, 0, "--insecure-http"},
		{[]string{"localhoſt:5175"}, access.Exposure{Tokens: 1}, 0, "--insecure-http"},
		{[]string{"nonsense"}, access.Exposure{Tokens: 1}, 0, "--insecure-http"},
		{append(local, "[fe80::1%eth0]:1"), access.Exposure{Tokens: 1}, 0, "fe80"},
		{append(local, "10.0.0.1:5175"), access.Exposure{Tokens: 1, TLS: true}, 0, ""},
		{append(local, "10.0.0.1:5175"), access.Exposure{Certificates: true, TLS: true}, 0, ""},
		{append(local, "10.0.0.1:5175", ":1"), access.Exposure{Tokens: 1, InsecureHTTP: true}, 2, ""},
	} {
		c.exposure.Addresses = c.addresses
		warnings, err := c.exposure.Check()
		if c.refused == "" {
			require.NoError(t, err)
			assert.Len(t, warnings, c.warnings)
			continue
		}
		require.ErrorIs(t, err, access.ErrExposed)
		assert.ErrorContains(t, err, c.refused)
	}
}

// TestStreamsEndWithTheirToken shows that an open stream outlives its token by the time
// between two looks at the file, and that nothing is left behind.
func TestStreamsEndWithTheirToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.tokens")
	short := put(t, path, 1, "short", noon.Add(time.Minute))
	long := put(t, path, 2, "long", time.Time{})
	at := &clock{noon}
	var timers []func()
	g := newGate(t, access.Config{Tokens: path, Now: at.read, AfterFunc: func(_ time.Duration, f func()) func() bool {
		i := len(timers)
		timers = append(timers, f)
		return func() bool { timers[i] = nil; return true }
	}})
	pass := func(d time.Duration) {
		at.now = at.now.Add(d)
		due := timers
		timers = nil
		for _, f := range due {
			if f != nil {
				f()
			}
		}
	}
	guard := func(text string) (context.Context, func()) {
		id, err := g.Identify(from("10.0.0.1:1", http.Header{"Authorization": {"Bearer " + text}}))
		require.NoError(t, err)
		return g.Guard(t.Context(), id)
	}
	first, releaseFirst := guard(short)
	second, releaseSecond := guard(long)
	third, releaseThird := guard(long)
	releaseThird()
	require.Error(t, third.Err())
	require.NotErrorIs(t, context.Cause(third), access.ErrUnauthenticated)
	pass(time.Second)
	require.NoError(t, first.Err())
	pass(time.Minute)
	require.ErrorIs(t, context.Cause(first), access.ErrUnauthenticated)
	require.NoError(t, second.Err())
	releaseFirst()
	revoke(t, path, "long", at.now)
	pass(time.Second)
	require.ErrorIs(t, context.Cause(second), access.ErrUnauthenticated)
	releaseSecond()
	assert.Empty(t, timers)

	anonymous, release := g.Guard(t.Context(), access.SocketCaller())
	assert.Equal(t, t.Context(), anonymous)
	release()
}
