package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrGrant is wrapped by the errors about a grant that cannot be.
var ErrGrant = errors.New("invalid grant")

// maxPattern bounds a pattern of sessions and the name of an agent, in bytes.
const maxPattern = 1024

// Grant allows one scope.
type Grant struct {
	Scope Scope `json:"scope"`

	// Agent is the agent of [ScopeAct]; "*" means every agent. It is empty for the other scopes.
	Agent string `json:"agent,omitempty"`

	// Sessions are patterns of the names of sessions: a name, or a prefix followed by
	// "*". A grant without patterns allows no session, and the acts that concern none.
	//
	// Names are compared byte by byte. A name that only looks like another one, by
	// letters of another alphabet or another Unicode normalization, is another name.
	Sessions []string `json:"sessions"`
}

// covers reports whether a pattern of the grant matches a session's name.
func (g *Grant) covers(session string) bool {
	return slices.ContainsFunc(g.Sessions, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(session, prefix)
		}
		return pattern == session
	})
}

// Check returns an error that wraps [ErrGrant] if the grant cannot be given: an unknown
// scope, no agent for [ScopeAct] or one for another scope, a pattern that no session has.
func (g *Grant) Check() error {
	if !slices.Contains(Scopes(), g.Scope) {
		return fmt.Errorf("%w: %q is not a scope; use one of %s", ErrGrant, g.Scope, scopeList())
	}
	if (g.Scope == ScopeAct) != (g.Agent != "") {
		return fmt.Errorf("%w: an agent belongs to the scope %q, and to it alone", ErrGrant, ScopeAct)
	}
	if err := checkText(g.Agent); err != nil {
		return fmt.Errorf("%w: the agent %.80q %w", ErrGrant, g.Agent, err)
	}
	if len(g.Sessions) == 0 {
		return fmt.Errorf("%w: it has no session; \"*\" means all sessions", ErrGrant)
	}
	for _, p := range g.Sessions {
		if p == "" {
			return fmt.Errorf("%w: a pattern of sessions is empty; \"*\" means all sessions", ErrGrant)
		}
		if err := checkText(p); err != nil {
			return fmt.Errorf("%w: the pattern %.80q %w", ErrGrant, p, err)
		}
	}
	return nil
}

// checkNew returns an error that wraps [ErrGrant] if the grant cannot be given, or has a
// pattern with a "*" before its end. Such a pattern would match only the session of
// exactly this name, which is not what its author means. [Grant.Check] takes it, because
// files of tokens may have it.
func (g *Grant) checkNew() error {
	if err := g.Check(); err != nil {
		return err
	}
	for _, p := range g.Sessions {
		if i := strings.IndexByte(p, '*'); i >= 0 && i < len(p)-1 {
			return fmt.Errorf("%w: the pattern %.80q has a \"*\" before its end; a pattern is the name of a session, or the beginning of a name and \"*\"", ErrGrant, p)
		}
	}
	return nil
}

// checkText returns why a text cannot name a session or an agent, or nil.
func checkText(s string) error {
	switch {
	case len(s) > maxPattern:
		return fmt.Errorf("has more than %d bytes", maxPattern)
	case !utf8.ValidString(s):
		return errors.New("is not UTF-8")
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("has an unprintable character")
	}
	return nil
}

func scopeList() string {
	names := make([]string, 0, len(Scopes()))
	for _, s := range Scopes() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// String returns the grant as [ParseGrant] reads it, one for each pattern, separated by
// spaces.
func (g *Grant) String() string {
	act := string(g.Scope)
	if g.Agent != "" {
		act += ":" + g.Agent
	}
	texts := make([]string, len(g.Sessions))
	for i, p := range g.Sessions {
		texts[i] = act + "@" + p
	}
	return strings.Join(texts, " ")
}

// ParseGrant reads a grant as text: a scope, for [ScopeAct] ":" and the agent, and
// perhaps "@" and a pattern of sessions. Without a pattern it allows all sessions:
//
//	read
//	record@build-*
//	act:ann@story
//
// The first "@" ends the agent. A "*" is refused in a pattern unless it is its end. The
// error wraps [ErrGrant].
func ParseGrant(text string) (Grant, error) {
	act, pattern, found := strings.Cut(text, "@")
	if !found {
		pattern = "*"
	}
	scope, agent, _ := strings.Cut(act, ":")
	g := Grant{Scope: Scope(scope), Agent: agent, Sessions: []string{pattern}}
	return g, g.checkNew()
}
