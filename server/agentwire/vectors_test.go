package agentwire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
)

// TestVectorsOfClients compares the data that the clients are tested with, canonical JSON,
// digests and patches, with the code of the server.
func TestVectorsOfClients(t *testing.T) {
	text, err := os.ReadFile("../../clients/testdata/vectors.json")
	require.NoError(t, err)
	var vectors struct {
		Canonical []struct{ Text, Canonical string }
		Digests   []struct{ Agent, View, Digest string }
		Patches   []struct {
			Value, Patch string
			Result       *string // null if the patch does not apply
		}
	}
	require.NoError(t, json.Unmarshal(text, &vectors))
	canonical := func(text string) string { return string(jsondoc.AppendCanonical(nil, parsed(text))) }
	for _, v := range vectors.Canonical {
		assert.Equal(t, v.Canonical, canonical(v.Text), v.Text)
	}
	for _, v := range vectors.Digests {
		digest := sha256.Sum256([]byte(canonical(`{"agent_id":` + encoded(v.Agent) + `,` + v.View[1:])))
		assert.Equal(t, v.Digest, hex.EncodeToString(digest[:]), v.View)
	}
	for _, v := range vectors.Patches {
		ops, err := jsondoc.ParsePatch(parsed(v.Patch))
		value := parsed(v.Value)
		if err == nil {
			value, err = jsondoc.ApplyPatch(value, ops)
		}
		if v.Result == nil {
			assert.ErrorIs(t, err, jsondoc.ErrPatch, v.Patch)
			continue
		}
		require.NoError(t, err, v.Patch)
		assert.Equal(t, *v.Result, string(jsondoc.AppendCanonical(nil, value)), v.Patch)
	}
	assert.Greater(t, min(len(vectors.Canonical), len(vectors.Patches)), 20)
}
