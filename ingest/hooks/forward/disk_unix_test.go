//go:build unix

package forward_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
)

// limitFiles makes files take no byte behind an offset, as a full disk does. The returned
// function removes the limit.
func limitFiles(t *testing.T, most int64) (remove func()) {
	t.Helper()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	full := before
	full.Cur = uint64(most)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full))
	return func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }
}

// A hook on a full disk returns as always and says in the log why. What waited before is
// delivered in its order, and what the disk did not take leaves nothing of it behind.
func TestFullDisk(t *testing.T) {
	s := newRecorder(t)
	c := newClient(t, s.URL)
	t.Setenv("SAJOU_HOOK_DIR", c.Dir)
	t.Setenv("SAJOU_SERVER", s.URL)
	hook := func(text string) {
		forward.Main([]string{"--session", "s"}, prompt(text), forward.Config{Now: c.Now, Random: c.Random, Dial: dial}, func() { t.Error("it ended the process") })
	}
	s.set(status(503))
	hook("one")
	hook("two")
	spool := spoolFile(t, c.Dir)
	before, err := os.ReadFile(spool)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filepath.Join(c.Dir, forward.LogFile), 0))

	remove := limitFiles(t, int64(len(before))+10) // a part of the next object fits
	hook("three")
	remove()
	after, err := os.ReadFile(spool)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
	log, err := os.ReadFile(filepath.Join(c.Dir, forward.LogFile))
	require.NoError(t, err)
	assert.Contains(t, string(log), "file too large")
	assert.Equal(t, 1, strings.Count(string(log), "\n"), string(log))

	// The server takes what the disk does not, and what waited keeps its order.
	s.set(nil)
	remove = limitFiles(t, int64(len(before))+10)
	hook("four")
	remove()
	hook("five")
	assert.Equal(t, []string{"s four", "s one", "s two", "s five"}, s.list())

	// A disk that takes nothing, not even a line of the log.
	s.set(status(503))
	log, err = os.ReadFile(filepath.Join(c.Dir, forward.LogFile))
	require.NoError(t, err)
	remove = limitFiles(t, 0)
	hook("six")
	remove()
	now, err := os.ReadFile(filepath.Join(c.Dir, forward.LogFile))
	require.NoError(t, err)
	assert.Equal(t, string(log), string(now))
	s.set(nil)
	hook("seven")
	assert.Equal(t, []string{"s four", "s one", "s two", "s five", "s seven"}, s.list())
}
