package access

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// SecurityKind is the kind of a security event.
type SecurityKind string

// The kinds of security events.
const (
	// AuthFailed is a request without a proof of its caller, or with a refused one.
	AuthFailed SecurityKind = "AUTH_FAILED"
	// ActForbidden is an act that the caller has no grant for.
	ActForbidden SecurityKind = "ACT_FORBIDDEN"
	// OriginRefused is a request of a web page, or under a host, that is not allowed.
	OriginRefused SecurityKind = "ORIGIN_REFUSED"
	// LimitExceeded is a request or a connection beyond a limit.
	LimitExceeded SecurityKind = "LIMIT_EXCEEDED"
	// TokenEnded is a stream that ended because its access token was revoked or expired.
	TokenEnded SecurityKind = "TOKEN_ENDED"
	// AgentQuarantined is an agent that was refused too often within a window.
	AgentQuarantined SecurityKind = "AGENT_QUARANTINED"
)

// SecurityKinds returns all kinds of security events, in the order of their declaration.
func SecurityKinds() []SecurityKind {
	return []SecurityKind{AuthFailed, ActForbidden, OriginRefused, LimitExceeded, TokenEnded, AgentQuarantined}
}

// SecurityEvent is something that a person who watches over the server wants to know. It
// holds no secret: no token, no header, no body.
type SecurityEvent struct {
	Number  uint64       `json:"number"` // counts the events of the process from 1
	At      time.Time    `json:"at"`
	Kind    SecurityKind `json:"kind"`
	Caller  string       `json:"caller,omitempty"` // [Caller.Name]; empty if it is unknown
	Peer    string       `json:"peer,omitempty"`   // the address of the other end of the connection
	Method  string       `json:"method,omitempty"`
	Path    string       `json:"path,omitempty"`
	Session string       `json:"session,omitempty"`
	Agent   string       `json:"agent,omitempty"`
	Detail  string       `json:"detail,omitempty"`
	// Unwritten is the number of events of this kind before this one that were counted
	// and kept in memory, but left out of the log and the file, because they came too fast.
	Unwritten uint64 `json:"unwritten,omitempty"`
}

// The bounds of the events.
const (
	keptEvents   = 256            // of a kind, in memory
	maxEventText = 256            // bytes of a text of an event
	writeEvery   = time.Second    // one event of a kind is written in this time,
	writeBurst   = 20             // after so many at once
	maxEventFile = int64(4 << 20) // bytes, before the file is put aside
)

// EventsConfig holds the options of [Events].
type EventsConfig struct {
	// File is the file to which the events are appended, one JSON object a line. It has
	// the mode 0600. Beyond MaxFile bytes it becomes FILE.1, in place of the one before.
	// Empty means that there is none.
	File string

	// MaxFile is the bound of File in bytes. Zero means 4 MiB.
	MaxFile int64

	// Logger receives a line for each event that is written. Nil discards it.
	Logger *slog.Logger

	// Now is the wall clock. Nil means [time.Now].
	Now func() time.Time
}

// Events counts, keeps and writes security events. A flood of events of one kind neither
// fills the disk nor hides the events of another kind: each kind has a ring of its own in
// memory, and a bound on how fast it is written to the log and the file. The methods may
// be called from many goroutines.
type Events struct {
	cfg EventsConfig // immutable

	mu     sync.Mutex
	number uint64 // of the last event
	kinds  map[SecurityKind]*eventKind
	file   eventFile
}

// eventKind are the events of a kind. They are guarded by the mutex of [Events].
type eventKind struct {
	count     uint64
	ring      []SecurityEvent // the newest, in order; at most twice keptEvents
	unwritten uint64
	full      time.Time // when the bucket of the writing is full again
}

// NewEvents returns events. The error is about the file.
func NewEvents(cfg EventsConfig) (*Events, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxFile == 0 {
		cfg.MaxFile = maxEventFile
	}
	e := &Events{cfg: cfg, kinds: map[SecurityKind]*eventKind{}, file: eventFile{path: cfg.File, max: cfg.MaxFile}}
	for _, k := range SecurityKinds() {
		e.kinds[k] = &eventKind{}
	}
	if cfg.File != "" {
		if err := e.file.open(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Close closes the file.
func (e *Events) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.file.close()
}

// Note counts an event, and keeps, logs and writes it. It sets the number and the time,
// and bounds the texts. An unknown kind is a fault of the program.
func (e *Events) Note(event SecurityEvent) {
	for _, text := range []*string{&event.Caller, &event.Peer, &event.Method, &event.Path, &event.Session, &event.Agent, &event.Detail} {
		*text = clipped(*text)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	kind, ok := e.kinds[event.Kind]
	if !ok {
		panic("access: unknown kind of security event " + string(event.Kind))
	}
	now := e.cfg.Now()
	e.number++
	event.Number, event.At = e.number, now.UTC()
	kind.count++
	write := kind.mayWrite(now)
	if write {
		event.Unwritten, kind.unwritten = kind.unwritten, 0
	} else {
		kind.unwritten++
	}
	if len(kind.ring) == 2*keptEvents { // moved seldom: a flood of events should cost little
		kind.ring = kind.ring[:copy(kind.ring, kind.ring[keptEvents:])]
	}
	kind.ring = append(kind.ring, event)
	if !write {
		return
	}
	e.cfg.Logger.Warn("security event", event.attributes()...)
	line, err := json.Marshal(event)
	if err == nil {
		err = e.file.write(append(line, '\n'))
	}
	if err != nil {
		e.cfg.Logger.Error("a security event was not written to its file", slog.Any("err", err))
	}
}

// mayWrite takes one from the bucket of the writing. A clock that went back fills the
// bucket.
func (k *eventKind) mayWrite(now time.Time) bool {
	if k.full.Before(now) || k.full.Sub(now) > writeBurst*writeEvery {
		k.full = now
	}
	if k.full.Sub(now) > (writeBurst-1)*writeEvery {
		return false
	}
	k.full = k.full.Add(writeEvery)
	return true
}

// attributes returns the event for the log.
func (event *SecurityEvent) attributes() []any {
	attributes := []any{slog.String("kind", string(event.Kind)), slog.Uint64("number", event.Number)}
	for _, a := range []struct{ name, value string }{
		{"caller", event.Caller},
		{"peer", event.Peer},
		{"method", event.Method},
		{"path", event.Path},
		{"session", event.Session},
		{"agent", event.Agent},
		{"detail", event.Detail},
	} {
		if a.value != "" {
			attributes = append(attributes, slog.String(a.name, a.value))
		}
	}
	if event.Unwritten > 0 {
		attributes = append(attributes, slog.Uint64("unwritten", event.Unwritten))
	}
	return attributes
}

// clipped returns a text of about maxEventText bytes at most, as valid UTF-8.
func clipped(s string) string {
	if len(s) > maxEventText {
		return strings.ToValidUTF8(s[:maxEventText], "") + "…" // the last character may be cut
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// Counts returns the number of events of each kind since the process began.
func (e *Events) Counts() map[SecurityKind]uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := make(map[SecurityKind]uint64, len(e.kinds))
	for k, events := range e.kinds {
		counts[k] = events.count
	}
	return counts
}

// After returns the kept events with a number above n, in their order: at most limit, of
// one kind unless kind is empty.
func (e *Events) After(n uint64, kind SecurityKind, limit int) []SecurityEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []SecurityEvent
	for k := range maps.Keys(e.kinds) {
		if kind == "" || k == kind {
			ring := e.kinds[k].ring
			ring = ring[max(0, len(ring)-keptEvents):]
			i, _ := slices.BinarySearchFunc(ring, n+1, func(event SecurityEvent, n uint64) int {
				if event.Number < n {
					return -1
				}
				return 1
			})
			found = append(found, ring[i:]...)
		}
	}
	slices.SortFunc(found, func(a, b SecurityEvent) int {
		if a.Number < b.Number {
			return -1
		}
		return 1
	})
	return found[:min(limit, len(found))]
}

// notes is a context with what [Note] needs of a request, and with its caller, if it is
// known already.
type notes struct {
	context.Context
	events     *Events
	request    *http.Request
	caller     *Caller
	identified bool // caller counts
}

type notesKey struct{}

func (n *notes) Value(key any) any {
	switch {
	case key == (notesKey{}):
		return n
	case n.identified && key == (callerKey{}):
		return n.caller
	}
	return n.Context.Value(key)
}

// WithEvents returns a context of a request whose security events [Note] notes.
func WithEvents(ctx context.Context, e *Events, r *http.Request) context.Context {
	return &notes{Context: ctx, events: e, request: r}
}

// WithRequest is [WithEvents] and [With] for a request whose caller is known.
func WithRequest(ctx context.Context, e *Events, r *http.Request, id *Caller) context.Context {
	return &notes{ctx, e, r, id, true}
}

// Note notes a security event of the request of ctx: it adds the caller, the address of
// the other end, the method and the path. Without [WithEvents] it does nothing.
func Note(ctx context.Context, event SecurityEvent) {
	n, ok := ctx.Value(notesKey{}).(*notes)
	if !ok {
		return
	}
	if id := From(ctx); id != nil && event.Caller == "" {
		event.Caller = id.Name
	}
	event.Method, event.Path = n.request.Method, n.request.URL.Path
	if addr, err := netip.ParseAddrPort(n.request.RemoteAddr); err == nil {
		event.Peer = addr.Addr().Unmap().String()
	}
	n.events.Note(event)
}

// RefusedName returns the name of the caller whose token was refused although its secret
// was right, because it was revoked or expired. It is for logs; "" means that no such
// token was sent.
func RefusedName(err error) string {
	if e, ok := errors.AsType[*refusedTokenError](err); ok {
		return e.name
	}
	return ""
}
