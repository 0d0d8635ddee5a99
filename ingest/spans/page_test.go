package spans_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/spans"
)

// The page about imports has all names, and each name has one place in the table.
func TestAttributeNames(t *testing.T) {
	page, err := os.ReadFile("../../docs/import.md")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, n := range spans.AttributeNames() {
		assert.False(t, seen[n.Name], "%s stands twice", n.Name)
		seen[n.Name] = true
		assert.NotEmpty(t, n.Meaning, n.Name)
		assert.Contains(t, string(page), "`"+n.Name+"`")
	}
}
