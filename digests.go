package sajou

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sajou-dev/sajou-go/replay/sentinel"
)

// DigestFile is the name of the file beside the snapshots that keeps digests of the
// projections, in the format of package replay/sentinel. It is derived: the engine never
// reads it to compute a state, and it can be deleted, or copied elsewhere, at any time.
const DigestFile = SnapshotFile + ".digests"

// BuiltDigests is the number of entries of a session at which [Engine.BuildSnapshots]
// keeps digests: of a session with fewer entries, at each.
const BuiltDigests = 1000

// KeptDigests returns the digests that [DigestFile] keeps of a session, nil if none are
// kept. [sentinel.Check] compares them with the session: where they differ although the
// entry's hash is the same, this program folds otherwise than the one that kept them.
// A file that is not a document of digests is [sentinel.ErrDocument].
func (e *Engine) KeptDigests(name string) (*sentinel.KeptDigests, error) {
	d, err := e.readDigests()
	if err != nil {
		return nil, err
	}
	return d.Of(name), nil
}

// readDigests reads the file; a missing one is an empty document.
func (e *Engine) readDigests() (*sentinel.DigestDocument, error) {
	if e.snapsPath == "" {
		return &sentinel.DigestDocument{}, nil
	}
	path := e.digestPath()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &sentinel.DigestDocument{}, nil
	}
	if err == nil && info.Size() > sentinel.MaxDocument {
		err = fmt.Errorf("%w: %s has %d bytes", sentinel.ErrDocument, DigestFile, info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("sajou: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("sajou: %w", err)
	}
	d, err := sentinel.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("sajou: %s: %w; delete the file, which is made again by: snapshot build", DigestFile, err)
	}
	return d, nil
}

func (e *Engine) digestPath() string { return e.snapsPath + ".digests" }

// changeDigests changes the file as a whole, if change says that it has changed
// anything. A file that cannot be read is replaced: all in it can be computed again.
func (e *Engine) changeDigests(change func(*sentinel.DigestDocument) bool) error {
	e.digestMu.Lock()
	defer e.digestMu.Unlock()
	d, err := e.readDigests()
	if errors.Is(err, sentinel.ErrDocument) {
		d, err = &sentinel.DigestDocument{}, os.Remove(e.digestPath())
	}
	if err != nil || !change(d) {
		return err
	}
	if len(d.Sessions) == 0 {
		return os.Remove(e.digestPath())
	}
	temporary := e.digestPath() + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("sajou: keep digests: %w", err)
	}
	_, err = f.Write(d.Text())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(temporary, e.digestPath())
	}
	if err != nil {
		return fmt.Errorf("sajou: keep digests: %w", errors.Join(err, os.Remove(temporary)))
	}
	return nil
}

// forgetDigests drops the digests of a session.
func (e *Engine) forgetDigests(name string) error {
	if e.snapsPath == "" {
		return nil
	}
	return e.changeDigests(func(d *sentinel.DigestDocument) bool { return d.Drop(name) })
}
