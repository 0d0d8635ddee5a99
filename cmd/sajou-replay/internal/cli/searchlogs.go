package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sajou-dev/sajou-go/internal/privatefile"
	"github.com/sajou-dev/sajou-go/replay/searchlog"
)

// SearchFile returns the file in the directory of the store that keeps the search of a
// session. The log of the store does not know it. Names of sessions can have characters
// that names of files cannot, so it is named by a hash.
func (a *App) SearchFile(session string) string {
	sum := sha256.Sum256([]byte(session))
	return filepath.Join(a.Store, "bisect-"+hex.EncodeToString(sum[:8])+".jsonl")
}

// errNoSearch says that no search of a session is kept.
var errNoSearch = Fail(ExitNotFound, "no search of this session was begun; begin one with: sajou-replay bisect start")

// SearchLog reads the search that is kept of a session.
func (a *App) SearchLog(session string) (*searchlog.SearchLog, error) {
	if err := a.refuseBeside("searches"); err != nil {
		return nil, err
	}
	name := a.SearchFile(session)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoSearch
	}
	if err != nil {
		return nil, Fail(ExitNo, "cannot read the search: %w", err)
	}
	defer f.Close()
	l, err := searchlog.Read(f)
	if err != nil {
		return nil, Fail(ExitNo, "the search in %s cannot be continued: %w; correct the file, or remove it with: sajou-replay bisect reset", name, err)
	}
	if l.Subject.Session != session {
		return nil, Fail(ExitNo, "the search in %s is of session %q, not of %q; remove it with: sajou-replay bisect reset", name, l.Subject.Session, session)
	}
	return l, nil
}

// BeginSearch keeps the text of a new search, completely or not at all.
func (a *App) BeginSearch(session string, text []byte) error {
	if err := a.refuseBeside("searches"); err != nil {
		return err
	}
	name := a.SearchFile(session)
	if _, err := os.Lstat(name); err == nil {
		return Fail(ExitNo, "a search of %q is under way; continue it, or remove it with: sajou-replay bisect reset", session)
	}
	if err := privatefile.Write(name, text); err != nil {
		return Fail(ExitLocked, "cannot write beside the store in %s: %w", a.Store, err)
	}
	return nil
}

// ExtendSearch appends lines to the search of a session, behind its last whole line.
func (a *App) ExtendSearch(l *searchlog.SearchLog, lines []byte) error {
	f, err := os.OpenFile(a.SearchFile(l.Subject.Session), os.O_WRONLY, 0)
	if err == nil {
		if l.Torn {
			err = f.Truncate(l.Size)
		}
		if err == nil {
			_, err = f.WriteAt(lines, l.Size)
		}
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return Fail(ExitLocked, "cannot write beside the store in %s: %w", a.Store, err)
	}
	l.Torn, l.Size = false, l.Size+int64(len(lines))
	return nil
}

// EndSearch removes the search of a session, and reports whether there was one.
func (a *App) EndSearch(session string) (bool, error) {
	if err := a.refuseBeside("searches"); err != nil {
		return false, err
	}
	err := os.Remove(a.SearchFile(session))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, Fail(ExitLocked, "cannot remove the search: %w", err)
	}
	return true, nil
}
