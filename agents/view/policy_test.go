package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/view"
)

// A negated policy shows no message that its agent receives from a distance. It depends on
// everything that the inner policy depends on, and receives nothing itself.
func TestNotReceivesNothing(t *testing.T) {
	for _, p := range []view.Policy{view.Conversation(), view.Distance(5, true), view.Allies("hp"), view.Any(view.Conversation(), view.Allies("hp"))} {
		of, not := p.Dependencies(), view.Not(p).Dependencies()
		require.True(t, not.Everything)
		require.Empty(t, not.Kinds)
		require.Equal(t, of.Graph, not.Graph)
		require.Equal(t, of.Mixed, not.Mixed)
		require.Equal(t, of.Fixed, not.Fixed)
		require.Equal(t, of.Fields, not.Fields)
	}
	require.NotEmpty(t, view.Conversation().Dependencies().Kinds)
}
