package sajou_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// A checkpoint of an engine in use gives the same states, from the same snapshots, as the
// store does after it is closed, and finds what the indexes find.
func TestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	cfg := sajou.Config{SnapshotEvery: 10, IndexFrom: 1}
	eng, err := sajou.Open(dir, cfg)
	require.NoError(t, err)
	ses, err := eng.Session(t.Context(), "talk")
	require.NoError(t, err)
	for n := range 35 {
		call := fmt.Sprintf("c-%d", n)
		_, err := ses.Signal(t.Context(), &signal.Signal{ID: fmt.Sprint(n), Type: "user.wave", Source: "t", Timestamp: signal.Int(int64(1000 + n)), CorrelationID: &call, Payload: signal.NewObject(0).Value()})
		require.NoError(t, err)
	}
	address, err := replay.ParseAddress("corr:c-7")
	require.NoError(t, err)
	past, err := eng.Replay("talk")
	require.NoError(t, err)
	want, err := past.Resolve(t.Context(), address) // builds the index
	require.NoError(t, err)

	copied, err := eng.Checkpoint(t.Context())
	require.NoError(t, err)
	c, err := sajou.Open(copied, sajou.Config{ReadOnly: true, IndexFrom: 1, OnIndex: func(string, eventlog.Seq, eventlog.Seq) { t.Error("the index is built again") }})
	require.NoError(t, err)
	again, err := c.Replay("talk")
	require.NoError(t, err)
	assert.Equal(t, past.Head(), again.Head())
	got, err := again.Resolve(t.Context(), address)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	for seq := range past.Head().Seq {
		a, err := past.At(t.Context(), replay.Moment{Seq: seq})
		require.NoError(t, err)
		b, err := again.At(t.Context(), replay.Moment{Seq: seq})
		require.NoError(t, err)
		require.Equal(t, a.Digests(), b.Digests())
	}
	require.NotNil(t, c.Snapshots())
	require.NoError(t, c.Close())
	require.NoError(t, eventlog.RemoveCheckpoint(copied, 0))
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range list {
		assert.False(t, strings.HasPrefix(f.Name(), eventlog.CheckpointsFolder))
	}
	require.NoError(t, eng.Close())
}
