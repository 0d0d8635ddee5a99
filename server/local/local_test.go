package local_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/local"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// held is a store that a server holds.
type held struct {
	dir    string
	engine *sajou.Engine
	stop   func() // the server, and then the engine
	kill   func() // the connections and the socket, and leaves the files
}

// hold starts a server for the store in dir.
func hold(t *testing.T, dir string) *held {
	t.Helper()
	engine, err := sajou.Open(dir, sajou.Config{})
	require.NoError(t, err)
	s, err := server.New(engine, server.Config{})
	require.NoError(t, err)
	l, remove, err := local.Listen(dir)
	require.NoError(t, err)
	info, err := os.Stat(l.Addr().String())
	require.NoError(t, err)
	assert.Equal(t, fs.ModeSocket|0o600, info.Mode())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	h := &held{dir: dir, engine: engine}
	h.stop = func() {
		cancel()
		assert.NoError(t, <-done)
		assert.NoError(t, remove())
		assert.NoError(t, engine.Close())
		h.stop = func() {}
	}
	h.kill = func() {
		l.SetUnlinkOnClose(false)
		cancel()
		assert.NoError(t, <-done)
		assert.NoError(t, engine.Close())
		h.stop = func() {}
	}
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *held) record(t *testing.T, n int) eventlog.Head {
	t.Helper()
	ses, err := h.engine.Session(t.Context(), "talk")
	require.NoError(t, err)
	head, err := ses.Signal(t.Context(), &signal.Signal{ID: fmt.Sprint(n), Type: "user.wave", Source: "t", Timestamp: signal.Int(int64(n)), Payload: signal.NewObject(0).Value()})
	require.NoError(t, err)
	return head
}

// headIn returns the head of the session in a copy of the store.
func headIn(t *testing.T, dir string) eventlog.Head {
	t.Helper()
	e, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	s, err := e.Log().Session("talk")
	require.NoError(t, err)
	return s.Head()
}

// Two commands read checkpoints of a store in use, each that of its time, and each
// disappears with its command.
func TestCheckpointIsLent(t *testing.T) {
	for name, dir := range map[string]string{
		"a short path": filepath.Join(t.TempDir(), "store"),
		"a long path":  filepath.Join(t.TempDir(), strings.Repeat("long", 30), "store"),
	} {
		t.Run(name, func(t *testing.T) {
			h := hold(t, dir)
			first := h.record(t, 1)
			holder, err := local.Find(dir)
			require.NoError(t, err)
			assert.True(t, holder.Answers(t.Context()))
			a, err := holder.Checkpoint(t.Context())
			require.NoError(t, err)
			second := h.record(t, 2)
			b, err := holder.Checkpoint(t.Context())
			require.NoError(t, err)
			assert.Equal(t, first, headIn(t, a.Dir))
			assert.Equal(t, second, headIn(t, b.Dir))
			require.NoError(t, a.Close())
			assert.NoDirExists(t, a.Dir)
			assert.DirExists(t, b.Dir)
			require.NoError(t, b.Close())
			h.stop()
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, f := range left {
				assert.NotContains(t, []string{"server", eventlog.CheckpointsFolder}, f.Name())
			}
			_, err = local.Find(dir)
			assert.ErrorIs(t, err, local.ErrNoServer)
			_, err = holder.Checkpoint(t.Context())
			assert.ErrorIs(t, err, local.ErrNoServer)
		})
	}
}

// A command that is interrupted leaves nothing, and one that reads a checkpoint when the
// server stops goes on reading.
func TestCheckpointEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	h := hold(t, dir)
	head := h.record(t, 1)
	holder, err := local.Find(dir)
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	_, err = holder.Checkpoint(ctx)
	require.NoError(t, err)
	interrupt()
	// The server stops after the requests have ended, and with them their checkpoints.
	b, err := holder.Checkpoint(t.Context())
	require.NoError(t, err)
	reader, err := sajou.Open(b.Dir, sajou.Config{ReadOnly: true})
	require.NoError(t, err)
	h.stop()
	list, err := os.ReadDir(filepath.Join(dir, eventlog.CheckpointsFolder))
	require.NoError(t, err)
	assert.Len(t, list, 1)
	s, err := reader.Log().Session("talk")
	require.NoError(t, err)
	e, err := s.Entry(t.Context(), head.Seq)
	require.NoError(t, err)
	assert.Equal(t, head, e.Head())
	require.NoError(t, reader.Close())
	require.NoError(t, b.Close())
	assert.NoDirExists(t, filepath.Join(dir, eventlog.CheckpointsFolder))
}

// A server takes the place of one that was killed, wherever that one's socket was.
func TestKilledServer(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, dir := range []string{
		filepath.Join(t.TempDir(), "store"),
		filepath.Join(t.TempDir(), strings.Repeat("long", 30), "store"),
	} {
		h := hold(t, dir)
		h.record(t, 1)
		h.kill()
		holder, err := local.Find(dir)
		require.NoError(t, err)
		assert.False(t, holder.Answers(t.Context()))
		_, err = holder.Checkpoint(t.Context())
		assert.ErrorIs(t, err, local.ErrNoServer)
		h = hold(t, dir)
		h.record(t, 2)
		holder, err = local.Find(dir)
		require.NoError(t, err)
		c, err := holder.Checkpoint(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Close())
		h.stop()
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Files beside the store that another program could have put there are not used, neither
// by a command nor by a server.
func TestHostileFiles(t *testing.T) {
	elsewhere := t.TempDir()
	socket := filepath.Join(elsewhere, "socket")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	address := func(path string, mode os.FileMode) func(folder string) error {
		return func(folder string) error {
			return errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "address"), fmt.Appendf(nil, `{"socket":%q}`, path), mode), os.Chmod(filepath.Join(folder, "address"), mode))
		}
	}
	for name, tt := range map[string]struct {
		plant func(folder string) error
		error string
	}{
		"a folder that leads elsewhere": {func(folder string) error { return os.Symlink(elsewhere, folder) }, "not a folder"},
		"a file for the folder":         {func(folder string) error { return os.WriteFile(folder, nil, 0o600) }, "not a folder"},
		"a folder that others write to": {func(folder string) error { return errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o722)) }, "other users can write"},
		"a file for the socket": {func(folder string) error {
			return errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "socket"), nil, 0o600))
		}, "not a socket"},
		"a link for the socket": {func(folder string) error {
			return errors.Join(os.Mkdir(folder, 0o700), os.Symlink(socket, filepath.Join(folder, "socket")))
		}, "not a socket"},
		"a pipe for the address": {func(folder string) error {
			return errors.Join(os.Mkdir(folder, 0o700), pipe(filepath.Join(folder, "address")))
		}, "not a small regular file"},
		"a link for the address": {func(folder string) error {
			return errors.Join(os.Mkdir(folder, 0o700), os.Symlink("/dev/zero", filepath.Join(folder, "address")))
		}, "not a small regular file"},
		"an address that others write":   {address(socket, 0o622), "other users can use it"},
		"an address without a socket":    {address("", 0o600), "does not name a socket"},
		"an address of a relative path":  {address("socket", 0o600), "does not name a socket"},
		"an address of a file":           {address(os.Args[0], 0o600), "not a socket"},
		"an address of a missing socket": {address(filepath.Join(elsewhere, "gone"), 0o600), local.ErrNoServer.Error()},
		"an address that is long": {func(folder string) error {
			return errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "address"), make([]byte, 5000), 0o600))
		}, "not a small regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			require.NoError(t, os.Mkdir(dir, 0o755))
			folder := filepath.Join(dir, "server")
			require.NoError(t, tt.plant(folder))
			_, err := local.Find(dir)
			require.ErrorContains(t, err, tt.error)
			if strings.Contains(name, "folder") {
				_, _, err := local.Listen(dir)
				require.ErrorContains(t, err, tt.error)
			}
			assert.FileExists(t, os.Args[0])
			assert.NoError(t, func() error { _, err := os.Lstat(socket); return err }())
		})
	}
	_, err = local.Find(filepath.Join(elsewhere, "no store"))
	assert.ErrorIs(t, err, local.ErrNoServer)
}

// A server that is not one of ours, or names another directory, is refused.
func TestHostileServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.Mkdir(dir, 0o755))
	foreign := filepath.Join(t.TempDir(), "checkpoints", "0123456789abcdef")
	require.NoError(t, os.MkdirAll(foreign, 0o700))
	l, remove, err := local.Listen(dir)
	require.NoError(t, err)
	defer func() { assert.NoError(t, remove()) }()
	var answer func(w http.ResponseWriter)
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) })}}
	srv.Start()
	defer srv.Close()
	holder, err := local.Find(dir)
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter)
		error  string
	}{
		"a foreign directory": {func(w http.ResponseWriter) { fmt.Fprintf(w, "{\"directory\":%q}\n", foreign) }, "which is not a checkpoint of the store"},
		"the store itself":    {func(w http.ResponseWriter) { fmt.Fprintf(w, "{\"directory\":%q}\n", dir) }, "which is not a checkpoint of the store"},
		"no JSON":             {func(w http.ResponseWriter) { fmt.Fprintln(w, "<html>") }, "not a checkpoint"},
		"an endless line":     {func(w http.ResponseWriter) { endless(w) }, "not a checkpoint"},
		"nothing":             {func(http.ResponseWriter) {}, "not a checkpoint"},
		"a redirect": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://example.com/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "status 307"},
		"a refusal": {func(w http.ResponseWriter) { w.WriteHeader(503); fmt.Fprint(w, `{"detail":"the store is read-only"}`) }, "the store is read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			answer = tt.answer
			_, err := holder.Checkpoint(t.Context())
			require.ErrorContains(t, err, tt.error)
		})
	}
	assert.DirExists(t, foreign)
}

func endless(w http.ResponseWriter) {
	for range 100 {
		if _, err := w.Write(make([]byte, 1<<12)); err != nil {
			return
		}
	}
}

// Checkpoints are lent on the socket alone, and not without end.
func TestCheckpointsAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	h := hold(t, dir)
	h.record(t, 1)
	s, err := server.New(h.engine, server.Config{})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/checkpoints", nil)
	r.RemoteAddr = "127.0.0.1:4000"
	s.ServeHTTP(w, r)
	assert.Equal(t, http.StatusForbidden, w.Code)

	holder, err := local.Find(dir)
	require.NoError(t, err)
	var all []*local.Checkpoint
	for range local.DefaultCheckpoints {
		c, err := holder.Checkpoint(t.Context())
		require.NoError(t, err)
		all = append(all, c)
	}
	_, err = holder.Checkpoint(t.Context())
	refusal, ok := errors.AsType[*local.RefusalError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, http.StatusTooManyRequests, refusal.Status)
	for _, c := range all {
		assert.NoError(t, c.Close())
	}
}
