package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/privatefile"
	"github.com/sajou-dev/sajou-go/server/local"
	"github.com/sajou-dev/sajou-go/server/mirror"
)

// This file reads the sessions of a server elsewhere: it copies them into a store of the
// command's own, with their chains verified, and removes the store at the end.

// ServerFlags adds --server and --token-file to the program.
func (a *App) ServerFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&a.Server, "server", "", "read from the server at `URL`, not from a store; SAJOU_SERVER sets the default")
	flags.StringVar(&a.TokenFile, "token-file", "", "send the token in `FILE`, which others must not be able to read, to the server; SAJOU_TOKEN_FILE sets the default, SAJOU_TOKEN holds the token itself")
}

// ChooseServer decides between a store and a server: a flag counts more than a variable of
// the environment, and the variable of a server more than that of a store.
func (a *App) ChooseServer(cmd *cobra.Command) error {
	store := cmd.Flags().Lookup("store")
	switch {
	case a.Server != "" && store != nil && store.Changed:
		return Misuse("--server and -C name two places to read from; omit one")
	case a.Server == "" && (store == nil || !store.Changed):
		a.Server = os.Getenv("SAJOU_SERVER")
	}
	return nil
}

// Place names the store or the server, for people.
func (a *App) Place() string {
	if a.Server != "" {
		return a.Server
	}
	return a.Store
}

// mirrored is a store with copies of a server's sessions.
type mirrored struct {
	remote *mirror.Remote
	dir    string
	listed []mirror.RemoteSession
}

// remote returns the server of --server.
func (a *App) remote() (*mirror.Remote, error) {
	token, err := privatefile.Token(a.TokenFile)
	if err != nil {
		return nil, Misuse("%w", err)
	}
	remote, err := mirror.NewRemote(a.Server, token, nil)
	if err != nil {
		return nil, Misuse("--server: %w", err)
	}
	return remote, nil
}

// openRemote opens a store for the sessions of --server.
func (a *App) openRemote() (*sajou.Engine, error) {
	remote, err := a.remote()
	if err != nil {
		return nil, err
	}
	return a.openMirror(remote)
}

// openMirror opens a store for the sessions of a server, which only this user can read.
func (a *App) openMirror(remote *mirror.Remote) (*sajou.Engine, error) {
	a.GiveBack()
	listed, err := remote.Sessions(a.ctx())
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sajou-mirror-") // its mode is 0700
	if err != nil {
		return nil, err
	}
	a.mirrored = &mirrored{remote, dir, listed}
	return sajou.Open(filepath.Join(dir, "store"), sajou.Config{NoSnapshots: a.NoSnapshots})
}

// copyOf copies a session up to the head that was listed, if the server has it. One that
// was followed has grown behind that head.
func (m *mirrored) copyOf(ctx context.Context, engine *sajou.Engine, name string) error {
	i := slices.IndexFunc(m.listed, func(s mirror.RemoteSession) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	log, err := engine.Log().Session(name)
	if err != nil || log.Head().Seq >= m.listed[i].Head.Seq {
		return err
	}
	return m.remote.Copy(ctx, engine, m.listed[i])
}

func (m *mirrored) copyAll(ctx context.Context, engine *sajou.Engine) error {
	for _, s := range m.listed {
		if err := m.copyOf(ctx, engine, s.Name); err != nil {
			return err
		}
	}
	return nil
}

// names returns the names of the sessions of the server, or of the store.
func (a *App) names(engine *sajou.Engine) ([]string, error) {
	if a.mirrored == nil {
		return engine.Sessions()
	}
	var names []string
	for _, s := range a.mirrored.listed {
		names = append(names, s.Name)
	}
	return names, nil
}

// remoteError gives an error of a server its exit code and place.
func (a *App) remoteError(err error) error {
	if err == nil || IsA[*ExitError](err) || a.ctx().Err() != nil {
		return err
	}
	status, told := errors.AsType[*mirror.StatusError](err)
	switch {
	case told && status.Status == http.StatusUnauthorized:
		return Fail(ExitLocked, "%s: %w; give a token with SAJOU_TOKEN or --token-file", a.Place(), err)
	case told && (status.Status == http.StatusNotFound || status.Status == http.StatusGone):
		return Fail(ExitNotFound, "%s: %w", a.Place(), err)
	case told:
		return Fail(ExitLocked, "%s: %w", a.Place(), err)
	case errors.Is(err, mirror.ErrRemote), errors.Is(err, eventlog.ErrCorrupt), errors.Is(err, eventlog.ErrInvalid):
		return Fail(ExitNo, "%s: %w", a.Place(), err)
	}
	return Fail(ExitNotFound, "cannot read from the server at %s: %w", a.Place(), err)
}

// IsUnavailable reports whether a server did not answer a request, or will answer it later.
func IsUnavailable(err error) bool {
	status, told := errors.AsType[*mirror.StatusError](err)
	return IsA[net.Error](err) || told && (status.Status == http.StatusServiceUnavailable || status.Status == http.StatusTooManyRequests)
}

// refuseBeside refuses to read or write a file beside the store while the command reads from a
// server elsewhere.
func (a *App) refuseBeside(what string) error {
	if a.Server == "" {
		return nil
	}
	return Fail(ExitLocked, "%s are kept beside a store, and the command reads from the server at %s; name a store with -C", what, a.Server)
}

// Follow shows a session of a server while the server records into it: it calls show at the
// beginning and after each arrival, until ctx ends or the server ends the stream. It
// reports whether there is a server: of --server, or one that holds the store.
func (a *App) Follow(ctx context.Context, name string, show func(*OpenedSession) error) (followed bool, err error) {
	engine, remote, err := a.openFollowed()
	if errors.Is(err, local.ErrNoServer) {
		return false, nil
	}
	if err != nil {
		return true, a.remoteError(err)
	}
	defer func() {
		err = errors.Join(err, engine.Close())
		a.GiveBack()
	}()
	t, err := a.OpenSessionIn(engine, name)
	if err != nil {
		return true, err
	}
	arrived := func() error {
		t, err := a.OpenSessionIn(engine, t.Name)
		if err != nil {
			return err
		}
		return show(t)
	}
	if err := show(t); err != nil {
		return true, err
	}
	var shown error
	err = remote.Follow(ctx, engine, t.Name, func() error {
		shown = arrived()
		return shown
	})
	if err == nil || shown != nil {
		return true, shown
	}
	return true, a.remoteError(err)
}

// openFollowed opens a copy of the sessions of a server that can grow, with the server.
func (a *App) openFollowed() (*sajou.Engine, *mirror.Remote, error) {
	if a.Server != "" {
		engine, err := a.openRemote()
		if err != nil {
			return nil, nil, err
		}
		return engine, a.mirrored.remote, nil
	}
	holder, err := local.Find(a.Store)
	if err != nil {
		return nil, nil, err
	}
	remote, err := mirror.NewRemote("http://localhost", "", holder.Client())
	if err != nil {
		return nil, nil, err
	}
	a.GiveBack()
	c, err := holder.Checkpoint(a.ctx())
	if IsA[*local.RefusalError](err) {
		engine, err := a.openMirror(remote)
		return engine, remote, err
	}
	if err != nil {
		return nil, nil, err
	}
	a.borrowed = c
	// The links of the checkpoint are its own, so it can grow apart from the store.
	engine, err := sajou.Open(c.Dir, sajou.Config{NoSnapshots: a.NoSnapshots})
	if err != nil {
		return nil, nil, fmt.Errorf("the checkpoint cannot be opened: %w", err)
	}
	return engine, remote, nil
}
