package access_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/server/access"
)

// grants draws grants over few names, so that they meet the questions.
func grants(t *rapid.T) []access.Grant {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) access.Grant {
		g := access.Grant{
			Scope:    rapid.SampledFrom(access.Scopes()).Draw(t, "scope"),
			Sessions: rapid.SliceOfN(rapid.SampledFrom([]string{"*", "a", "a*", "ab", "b*", "*a", "a*b*"}), 0, 2).Draw(t, "sessions"),
		}
		if g.Scope == access.ScopeAct {
			g.Agent = rapid.SampledFrom([]string{"*", "ann", "bob"}).Draw(t, "agent")
		}
		return g
	}), 0, 4).Draw(t, "grants")
}

var names = []string{"a", "ab", "abc", "b", "ba", "а" /* Cyrillic */, "*a", "a*bc"}

// TestGrantsAgreeWithTheirRule compares the questions with the rule, written again: some
// grant has the scope, a pattern of the session, and the agent.
func TestGrantsAgreeWithTheirRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := &access.Caller{Name: "x", Grants: grants(t)}
		session, scope := rapid.SampledFrom(names).Draw(t, "session"), rapid.SampledFrom(access.Scopes()).Draw(t, "scope")
		agent := rapid.SampledFrom([]string{"ann", "bob", "eve"}).Draw(t, "agent")
		may, act, knows := false, false, false
		for _, g := range id.Grants {
			for _, p := range g.Sessions {
				fits := p == session
				if p[len(p)-1] == '*' {
					fits = len(session) >= len(p)-1 && session[:len(p)-1] == p[:len(p)-1]
				}
				knows = knows || fits
				may = may || fits && g.Scope == scope
				act = act || fits && g.Scope == access.ScopeAct && (g.Agent == "*" || g.Agent == agent)
			}
		}
		assert.Equal(t, may, id.May(scope, session))
		assert.Equal(t, act, id.MayAct(session, agent))
		assert.Equal(t, knows, id.Knows(session))

		ctx := access.With(t.Context(), id)
		err := access.Check(ctx, scope, session)
		switch {
		case may:
			require.NoError(t, err)
		case knows:
			require.ErrorIs(t, err, access.ErrForbidden)
		default:
			require.ErrorIs(t, err, access.ErrHidden)
		}
		assert.ErrorIs(t, access.Check(t.Context(), scope, session), access.ErrUnauthenticated)
		assert.NoError(t, access.Check(t.Context(), access.ScopePublic, session))
		assert.Equal(t, act, access.CheckAct(ctx, session, agent) == nil)
	})
}

func TestGrantsOfNoSession(t *testing.T) {
	id := &access.Caller{Name: "x", Grants: []access.Grant{{Scope: access.ScopeAdmin}}}
	assert.True(t, id.May(access.ScopeAdmin, ""))
	assert.False(t, id.May(access.ScopeAdmin, "a"))
	assert.False(t, id.May(access.ScopeRead, ""))
	var unknown *access.Caller
	assert.False(t, unknown.May(access.ScopeRead, ""))
	assert.False(t, unknown.Knows("a"))
}

func TestParseGrant(t *testing.T) {
	for text, want := range map[string]access.Grant{
		"read":            {Scope: access.ScopeRead, Sessions: []string{"*"}},
		"record@build-*":  {Scope: access.ScopeRecord, Sessions: []string{"build-*"}},
		"act:ann@a@b":     {Scope: access.ScopeAct, Agent: "ann", Sessions: []string{"a@b"}},
		"act:a:b@night":   {Scope: access.ScopeAct, Agent: "a:b", Sessions: []string{"night"}},
		"admin@two words": {Scope: access.ScopeAdmin, Sessions: []string{"two words"}},
	} {
		got, err := access.ParseGrant(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "write", "act", "act@x", "read:ann", "read@", "read@a\nb", "read@\xff", ":x", "read@a*b", "read@**", "read@*a", "read@" + strings.Repeat("x", 2000)} {
		_, err := access.ParseGrant(text)
		assert.ErrorIs(t, err, access.ErrGrant, text)
	}
}

// FuzzGrant shows that a grant that was read is written as the text that makes it again.
func FuzzGrant(f *testing.F) {
	for _, s := range []string{"read", "record@build-*", "act:ann@a@b", "act:*@*", "define@", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := access.ParseGrant(text)
		if err != nil {
			require.ErrorIs(t, err, access.ErrGrant)
			return
		}
		again, err := access.ParseGrant(g.String())
		require.NoError(t, err)
		require.Equal(t, g, again)
	})
}
