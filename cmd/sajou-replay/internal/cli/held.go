package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/local"
	"github.com/sajou-dev/sajou-go/server/mirror"
)

// This file reads a store that another process holds. If that is a server, it lends a
// checkpoint: a copy of the store, from which a command gives the same answers. What
// commands keep beside the store stays beside the store itself.

// ctx returns the context of the command.
func (a *App) ctx() context.Context {
	if a.Context == nil {
		return context.Background()
	}
	return a.Context
}

// openHeld opens a checkpoint of the store, or, if no server holds the store, waits for
// the store itself.
func (a *App) openHeld() (*sajou.Engine, error) {
	engine, err := a.openCheckpoint()
	// A server that stops meanwhile takes back what it has lent, and gives up the store.
	if errors.Is(err, local.ErrNoServer) || errors.Is(err, eventlog.ErrNoStore) {
		return a.open(a.Store, sajou.Config{ReadOnly: true, LockWait: a.Wait})
	}
	return engine, err
}

// openCheckpoint borrows a checkpoint and opens it. A checkpoint that was borrowed before is
// given back.
func (a *App) openCheckpoint() (*sajou.Engine, error) {
	a.GiveBack()
	holder, err := local.Find(a.Store)
	switch {
	case errors.Is(err, local.ErrNoServer):
		return nil, err
	case err != nil:
		return nil, Fail(ExitLocked, "the store in %s is in use by another process: %w", a.Store, err)
	}
	c, err := holder.Checkpoint(a.ctx())
	switch {
	case errors.Is(err, local.ErrNoServer), a.ctx().Err() != nil:
		return nil, err
	case err != nil:
		// A log that has failed, or a full disk: the server still reads.
		fmt.Fprintf(a.Stderr, "sajou-replay: the server lends no checkpoint of the store: %s; its sessions are copied instead\n", OneLine(err.Error()))
		remote, err := mirror.NewRemote("http://localhost", "", holder.Client())
		if err != nil {
			return nil, err
		}
		engine, err := a.openMirror(remote)
		return engine, a.remoteError(err)
	}
	a.borrowed = c
	return a.open(c.Dir, sajou.Config{ReadOnly: true})
}

// GiveBack returns the checkpoint that a command has borrowed, and removes the sessions that
// it has copied. It is called when the command
// has closed the store; if it has not, the server removes the checkpoint later.
func (a *App) GiveBack() {
	if a.borrowed != nil {
		_ = a.borrowed.Close() // the server removes what could not be removed
		a.borrowed = nil
	}
	if a.mirrored != nil {
		_ = os.RemoveAll(a.mirrored.dir) // in the folder for temporary files
		a.mirrored = nil
	}
}
