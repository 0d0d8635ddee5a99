package sajou_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay/sentinel"
)

// BuildSnapshots keeps digests, which the deletion of the session removes. The log does
// not depend on them, and neither does a session on a file of them that is damaged.
func TestKeptDigests(t *testing.T) {
	dir := t.TempDir()
	eng, err := sajou.Open(dir, sajou.Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, eng.Close()) }()
	for _, name := range []string{"a", "b"} {
		ses, err := eng.Session(t.Context(), name)
		require.NoError(t, err)
		for n := range 5 {
			_, err := ses.Signal(t.Context(), enginetest.TaskSignal(n, 1000+int64(n)))
			require.NoError(t, err)
		}
		none, err := eng.KeptDigests(name)
		require.NoError(t, err)
		require.Nil(t, none)
		_, err = eng.BuildSnapshots(t.Context(), name, nil)
		require.NoError(t, err)
	}
	path := filepath.Join(dir, sajou.DigestFile)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())

	kept, err := eng.KeptDigests("a")
	require.NoError(t, err)
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	require.Len(t, kept.Points, int(log.Head().Seq), "a short session has a point at each entry")
	travel := enginetest.Replay(t, eng, "a")
	for _, p := range kept.Points {
		f, err := enginetest.ReplayedAt(t.Context(), eng, "a", p.Head.Seq)
		require.NoError(t, err)
		for i, d := range f.Digests() {
			assert.Equal(t, d.Sum, p.Sums[i], "%s at %d", d.Name, p.Head.Seq)
		}
	}
	c, err := sentinel.Check(t.Context(), log, eng.Projections(), kept)
	require.NoError(t, err)
	assert.Nil(t, c.Diverge)
	assert.Equal(t, kept.Points[len(kept.Points)-1].Head, travel.Head())

	_, err = eng.Delete(t.Context(), "a")
	require.NoError(t, err)
	gone, err := eng.KeptDigests("a")
	require.NoError(t, err)
	assert.Nil(t, gone)
	still, err := eng.KeptDigests("b")
	require.NoError(t, err)
	assert.NotNil(t, still)

	require.NoError(t, os.WriteFile(path, []byte("torn"), 0o600))
	_, err = eng.KeptDigests("b")
	require.ErrorIs(t, err, sentinel.ErrDocument)
	_, err = eng.BuildSnapshots(t.Context(), "b", nil)
	require.NoError(t, err, "a damaged file is replaced")
	again, err := eng.KeptDigests("b")
	require.NoError(t, err)
	assert.Equal(t, still, again)
	_, err = eng.Delete(t.Context(), "b")
	require.NoError(t, err)
	assert.NoFileExists(t, path, "nothing is left of the last session")
}
