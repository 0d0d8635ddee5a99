// Package agentwire is the room of the server for agents and simulations that run in
// other processes: a WebSocket for each agent, the same messages over server-sent events
// and POST requests where WebSockets are blocked, a WebSocket for the holder of the
// authority over time, and requests that set up a world and drive the director.
//
// docs/protocol.md describes the protocol; it is enough to write a client.
//
// # Parts
//
// message.go is the codec. A connection is the state machine of one agent; it knows its
// transport as an interface and is tested without sockets. A simulation is the same for
// the holder of the authority. Everything about the world itself is done by package
// agents/live: a connection is a reader of its agent's observations there, and its
// generations are tokens there.
//
// # Goroutines
//
// A connection reads on the goroutine of its request and answers a message before it
// reads the next, apart from waiting for outcomes, so that a client that floods is slowed
// by its own socket. One goroutine writes, control messages before observations. One
// takes observations from the agent's queue in the world, whose bound and policy decide
// about a slow client. Each generation and each waiting intent has one; both are bounded.
// All end with the connection.
//
// docs/glossary.md has the nouns of all packages.
package agentwire

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
)

// Config holds the options of a room. Recognize, Guard, Now and Logger must be set; the
// other fields have defaults.
type Config struct {
	// Recognize returns the holder of a token that came in the first message of a socket,
	// and Guard a context that ends when the token does; see [access.Gate].
	Recognize func(r *http.Request, token string) (*access.Caller, error)
	Guard     func(ctx context.Context, id *access.Caller) (guarded context.Context, release func())

	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	Logger    *slog.Logger

	// HelloTimeout bounds the wait for the first message. Heartbeat is the time between
	// heartbeats; a connection whose peer has not answered one before the next is closed.
	// WriteTimeout bounds the write of one message. Zero means 10 s, 15 s and 5 s.
	HelloTimeout, Heartbeat, WriteTimeout time.Duration

	// MaxMessage bounds a message of a client, in bytes. Zero means 1 MiB.
	MaxMessage int64

	// Window is how many observations a client may leave unacknowledged before no more
	// are sent. MaxIntents and MaxGenerations bound the intents that wait for their
	// outcome and the generations of one connection. Zero means 64, 64 and 16.
	Window, MaxIntents, MaxGenerations int

	// Quarantine says when an agent is in quarantine.
	Quarantine Quarantine
}

func (c Config) withDefaults() Config {
	if c.AfterFunc == nil {
		c.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	c.HelloTimeout = cmp.Or(c.HelloTimeout, 10*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 5*time.Second)
	c.MaxMessage = cmp.Or(c.MaxMessage, 1<<20)
	c.Window = cmp.Or(c.Window, 64)
	c.MaxIntents = cmp.Or(c.MaxIntents, 64)
	c.MaxGenerations = cmp.Or(c.MaxGenerations, 16)
	c.Quarantine = c.Quarantine.withDefaults()
	return c
}

// AgentDoor answers the requests of agents, simulations and directors.
type AgentDoor struct {
	engine  *sajou.Engine
	cfg     Config // immutable
	suspect quarantines

	mu          sync.Mutex
	connections map[place]*connection // the one of each agent; guarded by mu
	simulations map[string]bool       // sessions whose authority over time is held; guarded by mu
}

// place names an agent.
type place struct{ session, agent string }

// New returns the room of an engine.
func New(engine *sajou.Engine, cfg Config) *AgentDoor {
	cfg = cfg.withDefaults()
	return &AgentDoor{
		engine: engine, cfg: cfg, suspect: newQuarantines(cfg.Quarantine),
		connections: map[place]*connection{}, simulations: map[string]bool{},
	}
}

// errAbsent is the only answer to a caller that may act as an agent, or hold the
// authority over time, where there is no such session or no such agent. It does not say
// which.
var errAbsent = problem.New(problem.NoAgent, "the session has no such agent, or there is no such session; register the agent first")

// world returns the agents of a session that exists.
func (r *AgentDoor) world(ctx context.Context, name string) (*sajou.Session, error) {
	log, err := r.engine.Log().Session(name)
	if errors.Is(err, eventlog.ErrClosed) {
		return nil, err
	}
	if err != nil || !log.Exists() {
		// A name that no session can have is as absent as any other.
		return nil, errAbsent
	}
	return r.engine.Session(ctx, name)
}

// defined is [AgentDoor.world] for callers who may define, not for agents: it tells that a
// session was deleted.
func (r *AgentDoor) defined(ctx context.Context, name string) (*sajou.Session, error) {
	if _, err := r.engine.Log().Session(name); errors.Is(err, eventlog.ErrDeleted) {
		return nil, err
	}
	return r.world(ctx, name)
}

// absent turns the errors about missing sessions and agents into the one answer.
func absent(err error) error {
	if isUnknownAgent(err) || errors.Is(err, eventlog.ErrNoSession) || errors.Is(err, eventlog.ErrDeleted) || errors.Is(err, agentslive.ErrLeft) {
		return errAbsent
	}
	return err
}

// take makes c the connection of its agent. The one before it ends.
func (r *AgentDoor) take(c *connection) {
	r.mu.Lock()
	old := r.connections[c.place]
	r.connections[c.place] = c
	r.mu.Unlock()
	if old != nil {
		old.end(closeReplaced)
	}
}

// release removes c, unless another connection has taken its place.
func (r *AgentDoor) release(c *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connections[c.place] == c {
		delete(r.connections, c.place)
	}
}

// connection returns the connection of an agent, or nil.
func (r *AgentDoor) connection(p place) *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connections[p]
}
