// Package access decides what a caller of the server may do. A [Caller] is the sender of a
// request; it holds grants, and each [Grant] allows one [Scope] on the
// sessions whose names match its patterns.
//
// The middleware of package server recognizes the caller of each request once and puts
// the caller into the request's context. A route names the scope that it needs; see
// package route. A handler that learns the session from the body asks [Check] itself.
//
// docs/glossary.md has the nouns of all packages.
package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnauthenticated is wrapped by the errors about requests without a usable proof of
// their caller.
var ErrUnauthenticated = errors.New("not authenticated")

// ErrForbidden is wrapped by the errors about requests that their caller may not make.
var ErrForbidden = errors.New("not allowed")

// ErrHidden is wrapped by the errors about sessions that no grant of the caller concerns.
// Package problem answers it with the bytes for a session that does not exist.
var ErrHidden = errors.New("hidden from the caller")

// Scope is one kind of act.
type Scope string

// The scopes. None includes another.
const (
	// ScopePublic needs no grant: health and the description of the interface.
	ScopePublic Scope = ""
	// ScopeRecord appends signals.
	ScopeRecord Scope = "record"
	// ScopeRead reads entries, states, pictures and streams, and starts searches.
	ScopeRead Scope = "read"
	// ScopeAct submits intents as one agent and sees what this agent sees.
	ScopeAct Scope = "act"
	// ScopeTick moves the time of a session whose authority is a simulation, and
	// appends its drafts.
	ScopeTick Scope = "tick"
	// ScopeDefine brings declarations, policies and episodes into force, and drives the
	// director.
	ScopeDefine Scope = "define"
	// ScopeAdmin reads the server's own state: metrics, security events, tokens.
	ScopeAdmin Scope = "admin"
)

// Scopes returns all scopes that a grant can have, in the order of their declaration.
func Scopes() []Scope {
	return []Scope{ScopeRecord, ScopeRead, ScopeAct, ScopeTick, ScopeDefine, ScopeAdmin}
}

// Caller is the caller of a request. It must not be changed once it is in a context.
type Caller struct {
	// Name says where the caller was recognized, for logs and limits, such as
	// "token:tap", "cert:build.example", "loopback" or "socket". It holds no secret.
	Name string

	// Tenant names the callers that share one bound of requests; empty means none.
	Tenant string

	// Local is true for a caller whose connection begins on this machine. The limits
	// that protect a server from the network do not apply to it.
	Local bool

	Grants []Grant

	token *AccessToken // how the caller was recognized; nil for other proofs
}

// May reports whether the caller may act in a scope on a session. An empty session
// stands for acts that concern no session.
func (id *Caller) May(s Scope, session string) bool { return id.may(s, session, "") }

// MayEvery reports whether the caller may act in a scope on every session.
func (id *Caller) MayEvery(s Scope) bool {
	return id != nil && slices.ContainsFunc(id.Grants, func(g Grant) bool { return g.Scope == s && slices.Contains(g.Sessions, "*") })
}

// MayParts reports whether the caller may act in a scope on every session whose name
// begins with a text.
func (id *Caller) MayParts(s Scope, prefix string) bool {
	return id != nil && slices.ContainsFunc(id.Grants, func(g Grant) bool {
		return g.Scope == s && slices.ContainsFunc(g.Sessions, func(pattern string) bool {
			most, open := strings.CutSuffix(pattern, "*")
			return open && strings.HasPrefix(prefix, most)
		})
	})
}

// MayAct reports whether the caller may act as an agent of a session.
func (id *Caller) MayAct(session, agent string) bool { return id.may(ScopeAct, session, agent) }

func (id *Caller) may(s Scope, session, agent string) bool {
	if s == ScopePublic {
		return true
	}
	if id == nil {
		return false
	}
	return slices.ContainsFunc(id.Grants, func(g Grant) bool {
		return g.Scope == s &&
			(session == "" || g.covers(session)) &&
			(agent == "" || g.Agent == "*" || g.Agent == agent)
	})
}

// Knows reports whether a grant of any scope concerns the session. To other callers the
// session does not exist.
func (id *Caller) Knows(session string) bool {
	return id != nil && slices.ContainsFunc(id.Grants, func(g Grant) bool { return g.covers(session) })
}

type callerKey struct{}

// With returns a context with the caller.
func With(ctx context.Context, id *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, id)
}

// From returns the caller, or nil: such a caller may do nothing that
// needs a grant.
func From(ctx context.Context) *Caller {
	id, _ := ctx.Value(callerKey{}).(*Caller)
	return id
}

// Check returns nil if the caller of ctx may act in a scope on a session. Otherwise the
// error wraps
//
//   - [ErrUnauthenticated] where the caller is unknown,
//   - [ErrHidden] where no grant of the caller concerns the session,
//   - [ErrForbidden] where the caller has other scopes on the session only.
//
// Check looks at the name of the session and the grants alone. Its result is the same for
// a session that exists and one that does not.
func Check(ctx context.Context, s Scope, session string) error {
	id := From(ctx)
	if id.May(s, session) {
		return nil
	}
	return refusal(id, s, session)
}

// CheckParts is [Check] for every session whose name begins with a text, where it is not
// known yet which of them the request concerns.
func CheckParts(ctx context.Context, s Scope, prefix string) error {
	id := From(ctx)
	if id.MayParts(s, prefix) {
		return nil
	}
	return refusal(id, s, prefix)
}

// CheckAct is [Check] for acts as an agent.
func CheckAct(ctx context.Context, session, agent string) error {
	id := From(ctx)
	if id.MayAct(session, agent) {
		return nil
	}
	return refusal(id, ScopeAct, session)
}

func refusal(id *Caller, s Scope, session string) error {
	switch {
	case id == nil:
		return fmt.Errorf("%w: send a token with the scope %q as \"Authorization: Bearer TOKEN\"", ErrUnauthenticated, s)
	case session == "":
		return fmt.Errorf("%w: %s has no grant with the scope %q", ErrForbidden, id.Name, s)
	case !id.Knows(session):
		return fmt.Errorf("%w: %s has no grant for session %q", ErrHidden, id.Name, session)
	case s == ScopeAct:
		return fmt.Errorf("%w: %s has no grant to act as this agent of session %q", ErrForbidden, id.Name, session)
	}
	return fmt.Errorf("%w: %s has no grant with the scope %q for session %q", ErrForbidden, id.Name, s, session)
}
