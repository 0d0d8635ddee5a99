package snapshot_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// After Rewrite the file has no bytes of images that were dropped, and the others as they
// were, also when it is opened again.
func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images")
	s := open(t, path, snapshot.Config{})
	kept, dropped := image(1, 50_000), image(2, 50_000)
	require.NoError(t, s.Put("a", kept))
	require.NoError(t, s.Put("b", dropped))
	require.NoError(t, s.Put(snapshot.ApartName("b", "mine", 1), dropped))
	require.NoError(t, s.PutNotes(map[string][]byte{"a": []byte("note a"), "b": []byte("note b")}))
	holds := func(b []byte) bool {
		t.Helper()
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		return bytes.Contains(file, b)
	}
	secret := dropped.Parts[0].Data[20_000:20_032]
	require.NoError(t, s.Forget("b"))
	require.True(t, holds(secret), "a free page has it")
	require.NoError(t, os.WriteFile(path+".rewrite", []byte("of a rewrite that was killed"), 0o600))
	require.NoError(t, s.Rewrite())
	require.False(t, holds(secret))
	require.False(t, holds([]byte("note b")))
	require.NoFileExists(t, path+".rewrite")
	for range 2 {
		img, err := s.Get("a", 1)
		require.NoError(t, err)
		require.Equal(t, kept, img)
		note, err := s.Note("a")
		require.NoError(t, err)
		require.Equal(t, "note a", string(note))
		names, err := s.Sessions()
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, names)
		require.NoError(t, s.Put("c", image(3, 10)))
		require.NoError(t, s.Close())
		s = open(t, path, snapshot.Config{})
		_, err = s.Get("c", 3)
		require.NoError(t, err)
		_, err = s.Drop("c", 3)
		require.NoError(t, err)
		require.NoError(t, s.Forget("c"))
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Rewrite(), snapshot.ErrClosed)
	read := open(t, path, snapshot.Config{ReadOnly: true})
	require.ErrorIs(t, read.Rewrite(), snapshot.ErrReadOnly)
	require.ErrorIs(t, read.Forget("a"), snapshot.ErrReadOnly)
}

// The files of a store are not executable, and other users may not change them.
func TestModeOfFiles(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "images"), filepath.Join(dir, "copy")
	mode := func(path string) string {
		t.Helper()
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Mode().String()
	}
	probe := filepath.Join(dir, "probe")
	require.NoError(t, os.WriteFile(probe, nil, 0o644)) //nolint:gosec // it shows what the umask leaves of this mode
	s := open(t, path, snapshot.Config{})
	require.Equal(t, mode(probe), mode(path))
	require.NoError(t, s.Copy(copied))
	require.Equal(t, mode(probe), mode(copied))
	require.NoError(t, s.Rewrite())
	require.Equal(t, mode(probe), mode(path))
}

// A rewrite that fails leaves the store as it was.
func TestRewriteFails(t *testing.T) {
	long := filepath.Join(t.TempDir(), string(bytes.Repeat([]byte("n"), 250))) // too long with the suffix
	other := open(t, long, snapshot.Config{})
	require.NoError(t, other.Put("a", image(1, 10)))
	err := other.Rewrite()
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	require.NotErrorIs(t, err, snapshot.ErrUnusable)
	_, err = other.Get("a", 1)
	require.NoError(t, err)
}

// A rewrite whose file cannot take its place tells both why and that the store is closed.
func TestRewriteWithoutItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images")
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(1, 10))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	err := s.Rewrite()
	require.ErrorContains(t, err, "snapshot: rewrite "+path)
	require.ErrorContains(t, err, "rename")
	require.ErrorIs(t, err, snapshot.ErrUnusable, "nor can what is there be opened")
	_, err = s.Get("a", 1)
	require.ErrorIs(t, err, snapshot.ErrClosed)
	require.ErrorIs(t, s.Rewrite(), snapshot.ErrClosed)
}

// A full queue drops its oldest image, and tells which.
func TestWriterDropsTheOldest(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "images"), snapshot.Config{})
	metrics := &heldMetrics{began: make(chan struct{}), release: make(chan struct{})}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := snapshot.NewWriter(s, snapshot.WriterConfig{Metrics: metrics, Now: metrics.now, Logger: logger})
	w.Offer("first", 0, image(1, 10))
	<-metrics.began // the writer has taken it
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for i, name := range names {
		w.Offer(name, 0, image(eventlog.Seq(i+10), 10))
	}
	require.Equal(t, 8, w.Queued())
	close(metrics.release)
	w.Close()
	require.Equal(t, []string{"a", "b"}, metrics.dropped)
	for i, name := range metrics.dropped {
		require.Contains(t, log.String(), fmt.Sprintf("session=%s seq=%d", name, i+10))
	}
	stored, err := s.Sessions()
	require.NoError(t, err)
	require.ElementsMatch(t, append(names[2:], "first"), stored)
}

// Discard drops the queued images of one session; what is stored afterwards stays.
func TestWriterDiscards(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "images"), snapshot.Config{})
	began, release := make(chan struct{}), make(chan struct{})
	metrics := &heldMetrics{began: began, release: release}
	w := snapshot.NewWriter(s, snapshot.WriterConfig{Metrics: metrics, Now: metrics.now})
	w.Offer("a", 0, image(1, 10))
	<-began // the writer is about to store it
	w.Offer("b", 0, image(2, 10))
	w.Offer("a", 0, image(3, 10))
	w.Offer("b", 0, image(4, 10), projection.Image{Head: image(4, 10).Head, Parts: []projection.Part{{Name: "mine", Version: 1}}})
	w.Discard("b") // it does not wait for the image of another session
	discarded := make(chan error)
	go func() {
		w.Discard("a")
		_, err := s.Get("a", 1)
		discarded <- err
	}()
	require.Eventually(t, func() bool { return w.Queued() == 0 }, time.Minute, time.Millisecond, "the images of a leave the queue first")
	close(release)
	require.NoError(t, <-discarded, "it has waited for the image that was being stored")
	w.Offer("b", 0, image(5, 10))
	w.Close()
	for session, want := range map[string]int{"a": 1, "b": 1} {
		list, err := s.List(session)
		require.NoError(t, err)
		require.Len(t, list, want, session)
	}
}

// heldMetrics holds the writer up in front of its first image.
type heldMetrics struct {
	once           sync.Once
	began, release chan struct{}
	dropped        []string
}

func (m *heldMetrics) now() time.Time {
	m.once.Do(func() {
		close(m.began)
		<-m.release
	})
	return time.Time{}
}

func (*heldMetrics) ImageStored(string, int, time.Duration, error) {}
func (m *heldMetrics) ImageDropped(session string)                 { m.dropped = append(m.dropped, session) }
