package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/server/local"
)

// OpenReading opens the store without changing it. While a server holds the store it opens
// a checkpoint that the server lends, which [App.GiveBack] returns.
func (a *App) OpenReading() (*sajou.Engine, error) {
	engine, err := a.openReading()
	if err == nil && a.mirrored != nil {
		if err := a.mirrored.copyAll(a.ctx(), engine); err != nil {
			return nil, errors.Join(a.remoteError(err), engine.Close())
		}
	}
	return engine, err
}

// openReading is [App.OpenReading]. Of a server on another machine it opens a store without
// sessions, which [App.OpenSessionIn] copies.
func (a *App) openReading() (*sajou.Engine, error) {
	if a.Server != "" {
		engine, err := a.openRemote()
		return engine, a.remoteError(err)
	}
	engine, err := a.open(a.Store, sajou.Config{ReadOnly: true})
	if errors.Is(err, eventlog.ErrLocked) {
		engine, err = a.openHeld()
	}
	return a.opened(engine, err, true)
}

// OpenWriting opens the store, and creates a missing one. A created store without an
// entry is removed when it is closed.
func (a *App) OpenWriting() (*sajou.Engine, error) {
	if a.Server != "" {
		return nil, Fail(ExitLocked, "commands only read from the server at %s; name a store to write to with -C", a.Server)
	}
	return a.Open(sajou.Config{LockWait: a.Wait})
}

// Open opens the store of --store for writing.
func (a *App) Open(cfg sajou.Config) (*sajou.Engine, error) {
	engine, err := a.open(a.Store, cfg)
	if errors.Is(err, eventlog.ErrLocked) {
		if holder, found := local.Find(a.Store); found == nil && holder.Answers(a.ctx()) {
			return nil, Fail(ExitLocked, "the store in %s is in use by another process, a server, and this command writes to it; stop the server first, or record through it with --server", a.Store)
		}
	}
	return a.opened(engine, err, cfg.ReadOnly)
}

// open opens the store in dir, which is that of --store or a checkpoint of it.
func (a *App) open(dir string, cfg sajou.Config) (*sajou.Engine, error) {
	if a.Store == "" {
		return nil, Misuse("--store is empty; name a directory")
	}
	if info, err := os.Stat(a.Store); err == nil && !info.IsDir() {
		return nil, Fail(ExitNotFound, "%s is a file, not a store; name a directory with -C", a.Store)
	}
	cfg.NoSnapshots = a.NoSnapshots
	cfg.RemoveUnused = true
	m := NewProgress(a.Stderr)
	cfg.OnIndex = func(session string, done, total eventlog.Seq) {
		if m.Show(fmt.Sprintf("building the index of %s: %d of %d entries", termtext.Printable(session), done, total)); done >= total {
			m.Clear()
		}
	}
	return sajou.Open(dir, cfg)
}

// opened gives the outcome of opening a store its exit code, and notes what the store
// lost.
func (a *App) opened(engine *sajou.Engine, err error, reading bool) (*sajou.Engine, error) {
	if lost, ok := errors.AsType[*eventlog.LossError](err); ok {
		return nil, &ExitError{ExitNo, a.lossError(lost)}
	}
	if _, done := errors.AsType[*ExitError](err); done {
		return nil, err
	}
	if err != nil {
		return nil, a.OpenError(err, reading)
	}
	if lost := engine.Log().Loss(); lost != nil {
		a.Lost = a.lossError(lost)
	}
	return engine, nil
}

// OpenError gives the error of opening a store its exit code, place and remedy.
func (a *App) OpenError(err error, reading bool) error {
	about, found := errors.AsType[*eventlog.DirectoryError](err)
	remedy := ""
	if found && about.Do != "" {
		remedy = "; " + about.Do
	}
	switch {
	case found && errors.Is(err, eventlog.ErrForeign):
		if reading {
			return Fail(ExitNotFound, "there is no store in %s: %s; name a store with -C", a.Store, OneLine(about.Found))
		}
		return Fail(ExitNo, "there is no store in %s, and none can be created there: %s%s", a.Store, OneLine(about.Found), remedy)
	case errors.Is(err, eventlog.ErrCorrupt):
		// The other lines repeat the first.
		reason, _, _ := strings.Cut(err.Error(), "\n")
		if found {
			reason = about.Found
		}
		if remedy == "" {
			remedy = fmt.Sprintf("; nothing was changed; copy the readable entries with: sajou-replay repair -C %s --to NEWDIR", ShellWord(a.Store))
		}
		return Fail(ExitNo, "the store in %s is damaged and cannot be opened: %s%s", a.Store, OneLine(reason), remedy)
	case errors.Is(err, eventlog.ErrNoStore):
		if _, err := os.ReadDir(a.Store); errors.Is(err, os.ErrPermission) {
			return Fail(ExitLocked, "cannot read the store in %s: %v", a.Store, cause(err))
		}
		return Fail(ExitNotFound, "there is no store in %s; name one with -C, or create one with: sajou-replay import FILE", a.Store)
	case errors.Is(err, eventlog.ErrLocked):
		return Fail(ExitLocked, "the store in %s is in use by another process; end that process, or wait for it with --wait 1m", a.Store)
	case errors.Is(err, eventlog.ErrVersion):
		return Fail(ExitNo, "the store in %s cannot be read by this version of the program: %w", a.Store, err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return Fail(ExitLocked, "the store in %s cannot be opened: %w", a.Store, err)
	}
	return err
}

// cause returns the cause of an error about a path that the message names.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
