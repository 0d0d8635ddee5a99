package storefile

import (
	"bytes"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noWriteAt is a file system whose files refuse writes at an offset.
type noWriteAt struct {
	vfs.FS
	asked int
}

type noWriteAtFile struct {
	vfs.File
	fs *noWriteAt
}

func (f *noWriteAt) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	return &noWriteAtFile{file, f}, err
}

func (f *noWriteAtFile) WriteAt([]byte, int64) (int, error) {
	f.fs.asked++
	return 0, io.ErrShortWrite
}

func contentOf(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return b
}

// A write-ahead log ends in zeros that its records replace: none is lost, and what is kept ahead is bounded.
func TestLogHasZerosBehind(t *testing.T) {
	mem := vfs.NewMem()
	disk := NewFreezeFS(mem, func(err error) { t.Error(err) })
	f, err := disk.Create("000002.log", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	var want []byte
	grown, size := 0, 0
	for i := range 700 {
		p := bytes.Repeat([]byte{byte(i) | 1}, 1+i*3)
		want = append(want, p...)
		n, err := f.Write(p)
		require.NoError(t, err)
		require.Equal(t, 1+i*3, n)
		got := contentOf(t, mem, "000002.log")
		require.True(t, bytes.HasPrefix(got, want), "write %d", i)
		ahead := got[len(want):]
		require.Empty(t, bytes.Trim(ahead, "\x00"))
		require.LessOrEqual(t, len(ahead), min(max(len(want), minZeros), maxZeros))
		if len(got) != size {
			grown, size = grown+1, len(got)
		}
	}
	assert.GreaterOrEqual(t, len(want), 2*maxZeros)
	// 32, 64 and 128 KiB more, then 256 KiB each time.
	assert.LessOrEqual(t, grown, 4+len(want)/maxZeros)
	require.NoError(t, f.Close())
	assert.False(t, disk.Frozen.Load())
}

// Other files hold what was written to them and nothing else.
func TestOnlyLogsHaveZeros(t *testing.T) {
	mem := vfs.NewMem()
	disk := NewFreezeFS(mem, func(err error) { t.Error(err) })
	for _, name := range []string{"000004.sst", "MANIFEST-000001", "OPTIONS-000003", "notes"} {
		f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write([]byte("content"))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		assert.Equal(t, "content", string(contentOf(t, mem, name)), name)
	}
}

// A log that is used again has bytes to replace already.
func TestReusedLogGetsNoZeros(t *testing.T) {
	mem := vfs.NewMem()
	disk := NewFreezeFS(mem, func(err error) { t.Error(err) })
	f, err := disk.Create("000002.log", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(bytes.Repeat([]byte("old"), 10_000))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	before := contentOf(t, mem, "000002.log")
	f, err = disk.ReuseForWrite("000002.log", "000005.log", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write([]byte("new"))
	require.NoError(t, err)
	assert.Equal(t, append([]byte("new"), before[3:]...), contentOf(t, mem, "000005.log"))
	_, err = f.Write(before)
	require.NoError(t, err)
	assert.Greater(t, len(contentOf(t, mem, "000005.log")), len(before)+3, "zeros behind its old end")
	require.NoError(t, f.Close())
}

// A write-ahead log that cannot be filled with zeros is written without them, and no error is
// reported.
func TestLogWithoutZeros(t *testing.T) {
	mem := &noWriteAt{FS: vfs.NewMem()}
	disk := NewFreezeFS(mem, func(err error) { t.Error(err) })
	f, err := disk.Create("000002.log", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	for range 100_000 {
		_, err = f.Write([]byte("record"))
		require.NoError(t, err)
	}
	assert.Equal(t, 1, mem.asked)
	assert.False(t, disk.Frozen.Load())
	assert.Equal(t, bytes.Repeat([]byte("record"), 100_000), contentOf(t, mem.FS, "000002.log"))
}
