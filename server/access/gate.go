package access

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config holds the options of a [Gate]. The zero value lets loopback record and read.
type Config struct {
	// Loopback is what a caller without a token may do that connects from this machine,
	// on all sessions. Nil means [ScopeRecord] and [ScopeRead]; empty means nothing. It
	// does not depend on tokens: a recorder of this machine that knows of none goes on
	// when the first token is made.
	Loopback []Scope

	// Tokens is the file of the access tokens; see [ReadTokens]. Empty means none.
	Tokens string

	// Certificates say what the holders of client certificates may do. The server's TLS
	// configuration has to verify the certificates. Several entries may have one name.
	Certificates []CertificateGrants

	// Origins are the origins of web pages that may use the server, such as
	// "https://app.example", beside those of this machine.
	Origins []string

	// Hosts are the names under which the server is reached, without ports, beside
	// those of this machine and its addresses.
	Hosts []string

	// Events takes the security events. Nil means that they are only counted, by events
	// of the gate's own.
	Events *Events

	// Logger receives a line when the file of the tokens cannot be used. Nil discards it.
	Logger *slog.Logger

	// Now is the wall clock. Nil means [time.Now].
	Now func() time.Time

	// AfterFunc calls f once, d from now, unless stop is called first. A program that
	// sets Now must set AfterFunc too. Nil means [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

func (c Config) withDefaults() Config {
	if c.Loopback == nil {
		c.Loopback = []Scope{ScopeRecord, ScopeRead}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.AfterFunc == nil {
		c.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Events == nil {
		c.Events, _ = NewEvents(EventsConfig{Now: c.Now}) // nothing of it can fail
	}
	return c
}

// Gate finds out the caller of a request and whether a web page may have sent it. Its
// methods may be called from many goroutines.
type Gate struct {
	cfg          Config             // immutable
	local        *Caller            // of this machine, without another proof; nil if it may do nothing
	certificates map[string][]Grant // by name; immutable
	tokens       *Tokens

	mu      sync.Mutex
	guarded map[*guard]struct{}
	disarm  func() bool // stops the next check of the guarded; nil without one
}

// NewGate returns a gate. The error is about a scope, a grant, an origin or a host of cfg.
func NewGate(cfg Config) (*Gate, error) {
	cfg = cfg.withDefaults()
	g := &Gate{cfg: cfg, certificates: map[string][]Grant{}, tokens: NewTokens(cfg.Tokens, cfg.Now), guarded: map[*guard]struct{}{}}
	for _, s := range cfg.Loopback {
		if !slices.Contains(Scopes(), s) {
			return nil, fmt.Errorf("access: %q is not a scope", s)
		}
	}
	if len(cfg.Loopback) > 0 {
		g.local = &Caller{Name: "loopback", Local: true}
		for _, s := range cfg.Loopback {
			grant := Grant{Scope: s, Sessions: []string{"*"}}
			if s == ScopeAct {
				grant.Agent = "*"
			}
			g.local.Grants = append(g.local.Grants, grant)
		}
	}
	for _, c := range cfg.Certificates {
		for i := range c.Grants {
			if err := c.Grants[i].Check(); err != nil {
				return nil, fmt.Errorf("access: certificate %q: %w", c.Name, err)
			}
		}
		g.certificates[c.Name] = append(g.certificates[c.Name], c.Grants...)
	}
	for _, o := range cfg.Origins {
		if err := CheckOrigin(o); err != nil {
			return nil, fmt.Errorf("access: %w", err)
		}
	}
	for _, h := range cfg.Hosts {
		if err := CheckHost(h); err != nil {
			return nil, fmt.Errorf("access: %w", err)
		}
	}
	return g, nil
}

// CheckOrigin refuses a text that is not the origin of a web page.
func CheckOrigin(text string) error {
	if _, err := parseOrigin(text); err != nil {
		return fmt.Errorf("%q is not an origin; write it as https://app.example:8443", text)
	}
	return nil
}

// CheckHost refuses a text that is not the name of a host.
func CheckHost(text string) error {
	if name, port, err := splitHost(text); err != nil || port != "" || name != asciiLower(text) {
		return fmt.Errorf("%q is not a host; write it as app.example, without a port", text)
	}
	return nil
}

// Events returns the security events of the gate.
func (g *Gate) Events() *Events { return g.cfg.Events }

// Tokens returns the access tokens of the gate.
func (g *Gate) Tokens() *Tokens { return g.tokens }

// SocketCaller returns the caller on the server's Unix socket. The
// mode of the socket lets only the user who started the server connect, so that every act
// is allowed.
func SocketCaller() *Caller { return socketCaller }

var socketCaller = func() *Caller {
	id := &Caller{Name: "socket", Local: true}
	for _, s := range Scopes() {
		id.Grants = append(id.Grants, Grant{Scope: s, Sessions: []string{"*"}, Agent: "*"})
	}
	return id
}()

// Identify returns the caller of a request, nil if it is unknown, or an error that wraps
// [ErrUnauthenticated] if its proof is refused. The first of these proofs counts:
//
//  1. an access token in the header Authorization, as "Bearer TOKEN";
//  2. a verified client certificate, see [CertificateGrants];
//  3. a connection that begins on this machine, see [Config].
//
// A refused proof is not followed by the next one. Query parameters and cookies are never
// read: they reach logs and other pages.
func (g *Gate) Identify(r *http.Request) (*Caller, error) {
	return g.IdentifyFrom(r, FromThisMachine(r))
}

// IdentifyFrom is [Gate.Identify] for a request of which the caller has asked
// [FromThisMachine] already.
func (g *Gate) IdentifyFrom(r *http.Request, local bool) (*Caller, error) {
	if values := r.Header["Authorization"]; len(values) > 0 {
		text, err := bearer(values)
		if err != nil {
			return nil, err
		}
		return g.Recognize(r, text)
	}
	if id, err := g.byCertificate(r); id != nil || err != nil {
		return id, err
	}
	if local {
		return g.local, nil
	}
	return nil, nil
}

// Recognize returns the holder of an access token that came with a request in another way
// than the header, such as in the first message of a connection. Its errors are those of
// [Tokens.Caller].
func (g *Gate) Recognize(r *http.Request, token string) (*Caller, error) {
	id, err := g.tokens.Caller(token)
	if err != nil {
		return nil, err
	}
	if FromThisMachine(r) {
		at := *id
		at.Local = true
		return &at, nil
	}
	return id, nil
}

// bearer returns the token of the values of the header Authorization.
func bearer(values []string) (string, error) {
	if len(values) > 1 {
		return "", fmt.Errorf("%w: the request has more than one header Authorization", ErrUnauthenticated)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if asciiLower(scheme) != "bearer" {
		return "", fmt.Errorf("%w: the header Authorization is not \"Bearer TOKEN\"", ErrUnauthenticated)
	}
	return strings.TrimLeft(token, " "), nil
}

// forwardHeaders are the headers by which a proxy says that it forwards a request.
// "X-Forwarded-" is a prefix of more of them.
var forwardHeaders = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "Cf-Connecting-Ip", "True-Client-Ip", "Fastly-Client-Ip"}

// FromThisMachine reports whether a request comes from this machine, as far as its
// connection tells. A proxy on this machine forwards the requests of others; what it
// forwards has a header that says so, if the proxy is set up to add it.
//
// Where it is not, a request through it cannot be told from one of this machine: such a
// server needs an empty [Config.Loopback].
func FromThisMachine(r *http.Request) bool {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !addr.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range forwardHeaders {
		if _, ok := r.Header[name]; ok {
			return false
		}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	return true
}

// checkEvery is how often the tokens of open streams are looked at again.
const checkEvery = time.Second

// guard is an open stream whose caller holds an access token.
type guard struct {
	caller *Caller
	end    context.CancelCauseFunc
}

// Guard returns a context that ends within a second after the access token of the caller
// has been revoked or has expired; the cause wraps [ErrUnauthenticated]. It is for
// answers without an end: other requests are recognized each. The caller of Guard calls
// release when the answer is done.
func (g *Gate) Guard(ctx context.Context, id *Caller) (guarded context.Context, release func()) {
	if id == nil || id.token == nil {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	one := &guard{id, end}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guarded[one] = struct{}{}
	if g.disarm == nil {
		g.disarm = g.cfg.AfterFunc(checkEvery, g.check)
	}
	return ctx, func() {
		end(nil)
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.guarded, one)
		if len(g.guarded) == 0 && g.disarm != nil {
			g.disarm()
			g.disarm = nil
		}
	}
}

// check ends the streams of tokens that are not valid any more.
func (g *Gate) check() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.disarm = nil
	known := map[string]error{} // by the id of the token
	for one := range g.guarded {
		id := one.caller.token.ID
		err, ok := known[id]
		if !ok {
			err = g.tokens.still(one.caller)
			known[id] = err
		}
		if err != nil {
			one.end(err)
			delete(g.guarded, one)
		}
	}
	if len(g.guarded) > 0 {
		g.disarm = g.cfg.AfterFunc(checkEvery, g.check)
	}
}
