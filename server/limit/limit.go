// Package limit bounds what the clients of a server may use: requests a second, open
// connections, open streams, jobs, and memory for bodies. It also has the bounded
// reader of compressed bodies.
//
// [Limits] is the state of a server. The middleware of package server asks it about each
// request; a handler whose request costs more than one unit asks [Take] or [Job] with the
// request's context. Every refusal is an [OverLimitError], which package problem answers
// with the status 429 and a time to wait.
//
// A [Requester] of this machine has no bound of its own, only those of the whole server: the
// bounds protect a server from the network, and its own machine has other means to
// exhaust itself.
//
// docs/glossary.md has the nouns of all packages.
package limit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Config holds the bounds. Zero means the default of a field, and a negative number that
// there is no bound.
type Config struct {
	// Rate is how many requests a second the callers with one name may send, and Burst
	// how many at once after a pause. Zero means 2,000 and twice the Rate.
	Rate, Burst int

	// TenantRate and TenantBurst are the bounds of all callers of a tenant together.
	// Zero means 4 times the Rate and twice the TenantRate.
	TenantRate, TenantBurst int

	// UnknownRate bounds the requests of callers that are not recognized, by address.
	// Zero means 50 a second, and twice as many at once.
	UnknownRate int

	// Connections bounds the open connections of one address: an IPv4 address, or the 64
	// bits of an IPv6 address that a network has. AllConnections bounds those of all
	// addresses, this machine included. Zero means 256 and 16,384.
	Connections, AllConnections int

	// Streams bounds the open streams of the callers with one name, and AllStreams those
	// of all. Zero means 256 and 8,192.
	Streams, AllStreams int

	// Jobs bounds the jobs of the callers with one name that have not ended, and AllJobs
	// those of all. Zero means 4 and 16. Callers of this machine have the second bound only.
	Jobs, AllJobs int

	// Memory bounds the bytes of bodies in memory. Zero means 256 MiB.
	Memory int64

	// Names bounds the callers and addresses whose rate is known. The one that was heard
	// of the longest ago is forgotten, and begins with a full burst. Zero means 16,384.
	Names int

	// Refused, unless nil, is called for each connection that is refused.
	Refused func(peer netip.Addr, err error)

	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.Rate = cmp.Or(c.Rate, 2000)
	c.Burst = cmp.Or(c.Burst, 2*c.Rate)
	c.TenantRate = cmp.Or(c.TenantRate, 4*c.Rate)
	c.TenantBurst = cmp.Or(c.TenantBurst, 2*c.TenantRate)
	c.UnknownRate = cmp.Or(c.UnknownRate, 50)
	c.Connections = cmp.Or(c.Connections, 256)
	c.AllConnections = cmp.Or(c.AllConnections, 16_384)
	c.Streams = cmp.Or(c.Streams, 256)
	c.AllStreams = cmp.Or(c.AllStreams, 8192)
	c.Jobs = cmp.Or(c.Jobs, 4)
	c.AllJobs = cmp.Or(c.AllJobs, 16)
	c.Memory = cmp.Or(c.Memory, 256<<20)
	if c.Memory < 0 {
		c.Memory = math.MaxInt64
	}
	c.Names = cmp.Or(c.Names, 16_384)
	if c.Refused == nil {
		c.Refused = func(netip.Addr, error) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// OverLimitError is the refusal of something that goes beyond a bound.
type OverLimitError struct {
	Bound      string        // what is bounded, such as "requests of token:tap"
	RetryAfter time.Duration // when to try again
}

func (e *OverLimitError) Error() string {
	return fmt.Sprintf("too many %s; try again in %v", e.Bound, max(e.RetryAfter.Round(time.Millisecond), time.Millisecond))
}

// retryHeld is how long to wait for something that another request holds.
const retryHeld = time.Second

// Requester is the sender of a request, as far as bounds need it.
type Requester struct {
	Name   string // of the caller; empty if it is unknown
	Tenant string // empty if it has none
	Peer   netip.Addr
	Local  bool // the connection begins on this machine
}

// Limits are the bounds of a server and what is used of them. The methods may be called
// from many goroutines.
type Limits struct {
	cfg Config // immutable

	callers, tenants, unknown *rates
	connections               *counts[netip.Prefix]
	streams, jobs             *counts[string]
	memory                    atomic.Int64 // bytes in use
}

// New returns limits of which nothing is used.
func New(cfg Config) *Limits {
	cfg = cfg.withDefaults()
	return &Limits{
		cfg:         cfg,
		callers:     newRates(cfg.Rate, cfg.Burst, cfg.Names),
		tenants:     newRates(cfg.TenantRate, cfg.TenantBurst, cfg.Names),
		unknown:     newRates(cfg.UnknownRate, 2*cfg.UnknownRate, cfg.Names),
		connections: newCounts[netip.Prefix](cfg.Connections, cfg.AllConnections),
		streams:     newCounts[string](cfg.Streams, cfg.AllStreams),
		jobs:        newCounts[string](cfg.Jobs, cfg.AllJobs),
	}
}

// Take takes n units from the rates of a client: one for a request, and more for a request
// that does the work of several. The error is an [*OverLimitError].
func (l *Limits) Take(c Requester, n int) error {
	if c.Local {
		return nil
	}
	now := l.cfg.Now()
	if c.Name == "" {
		if wait := l.unknown.take(network(c.Peer).String(), n, now); wait > 0 {
			return &OverLimitError{"requests without a known caller from this address", wait}
		}
		return nil
	}
	if wait := l.callers.take(c.Name, n, now); wait > 0 {
		return &OverLimitError{"requests of " + c.Name, wait}
	}
	if c.Tenant != "" {
		if wait := l.tenants.take(c.Tenant, n, now); wait > 0 {
			return &OverLimitError{"requests of the tenant " + c.Tenant, wait}
		}
	}
	return nil
}

// Stream counts an open stream until release is called. The error is an [*OverLimitError].
func (l *Limits) Stream(c Requester) (release func(), err error) {
	return hold(l.streams, c, "open streams")
}

// Job counts a job that has not ended until release is called. The error is an
// [*OverLimitError].
func (l *Limits) Job(c Requester) (release func(), err error) {
	return hold(l.jobs, c, "unfinished jobs")
}

func hold(held *counts[string], c Requester, what string) (release func(), err error) {
	key := c.Name
	if key == "" {
		key = network(c.Peer).String()
	}
	release, all := held.hold(key, c.Local)
	switch {
	case release != nil:
		return release, nil
	case all:
		return nil, &OverLimitError{what + " of this server", retryHeld}
	}
	return nil, &OverLimitError{what + " of " + key, retryHeld}
}

// network returns the part of an address that one client has for itself.
func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero address has the zero prefix
	return p
}

// Body returns a body whose bytes count as memory from their reading until release is
// called. Beyond the bound its Read returns an [*OverLimitError]. It is for bodies that are
// read as a whole.
func (l *Limits) Body(body io.ReadCloser) (counted io.ReadCloser, release func()) {
	b := &countedBody{ReadCloser: body, limits: l}
	return b, b.release
}

// countedBody is a body that is being read by one goroutine.
type countedBody struct {
	io.ReadCloser
	limits *Limits

	mu   sync.Mutex // a handler may leave a reader behind
	held int64      // bytes; negative after the release
}

// released is the value of held after the release.
const released = math.MinInt64

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == released || n == 0 {
		return n, err
	}
	b.held += int64(n)
	if b.limits.memory.Add(int64(n)) > b.limits.cfg.Memory {
		return 0, &OverLimitError{"bytes of bodies in memory", retryHeld}
	}
	return n, err
}

func (b *countedBody) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != released {
		b.limits.memory.Add(-b.held)
		b.held = released
	}
}

// InUse is what is used of the bounds of a server, or the bounds.
type InUse struct {
	Connections, Streams, Jobs int
	Memory                     int64 // bytes of bodies
}

// InUse returns what is used now.
func (l *Limits) InUse() InUse {
	return InUse{l.connections.all(), l.streams.all(), l.jobs.all(), l.memory.Load()}
}

// Bounds returns what all callers together may use. A negative number means that there is no
// bound.
func (l *Limits) Bounds() InUse {
	b := InUse{l.cfg.AllConnections, l.cfg.AllStreams, l.cfg.AllJobs, l.cfg.Memory}
	if b.Memory == math.MaxInt64 {
		b.Memory = -1
	}
	return b
}

type clientKey struct{}

// clientContext is the context of a client with the limits of its server.
type clientContext struct {
	context.Context
	limits *Limits
	client Requester
}

func (c *clientContext) Value(key any) any {
	if key == (clientKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// With returns a context for [Take] and [Job].
func With(ctx context.Context, l *Limits, c Requester) context.Context {
	return &clientContext{ctx, l, c}
}

// Take takes n units more from the rates of the client of ctx: a handler of a request
// that does the work of several calls it. Without [With] nothing is bounded. The error is
// an [*OverLimitError].
func Take(ctx context.Context, n int) error {
	if c, ok := ctx.Value(clientKey{}).(*clientContext); ok {
		return c.limits.Take(c.client, n)
	}
	return nil
}

// Job counts a job of the client of ctx that has not ended until release is called.
// Without [With] nothing is bounded. The error is an [*OverLimitError].
func Job(ctx context.Context) (release func(), err error) {
	if c, ok := ctx.Value(clientKey{}).(*clientContext); ok {
		return c.limits.Job(c.client)
	}
	return func() {}, nil
}
