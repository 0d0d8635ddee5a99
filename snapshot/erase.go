package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// rewriteSuffix ends the name of the file that [Store.Rewrite] writes.
const rewriteSuffix = ".rewrite"

// Forget is [Store.DropAll] that is durable when it returns.
func (s *Store) Forget(session string) error {
	if _, err := s.DropAll(session); err != nil {
		return err
	}
	if err := s.use(func(db *bolt.DB) error { return db.Sync() }); err != nil {
		return fmt.Errorf("snapshot: forget %s: %w", session, err)
	}
	return nil
}

// Rewrite writes the file again without its free pages, which still have the bytes of
// dropped images, and returns when the new file is durable. Other calls wait meanwhile.
// After an error the store is what it was, or closed.
func (s *Store) Rewrite() error {
	if s.cfg.ReadOnly {
		return ErrReadOnly
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return ErrClosed
	}
	if err := s.brokenErr(); err != nil {
		return err
	}
	aside := s.path + rewriteSuffix
	err := guard(func() error { return copyUsed(aside, s.db) })
	if err != nil {
		return fmt.Errorf("snapshot: rewrite %s: %w", s.path, errors.Join(err, os.RemoveAll(aside)))
	}
	// The old file is closed first, so that no other file than the one under the path is
	// ever locked by this store.
	err = errors.Join(s.closeBolt(), os.Rename(aside, s.path))
	if opened := s.openBolt(false); opened != nil {
		err = errors.Join(err, opened)
	}
	if err == nil {
		err = syncDir(filepath.Dir(s.path))
	}
	if err != nil {
		return fmt.Errorf("snapshot: rewrite %s: %w", s.path, err)
	}
	return nil
}

// copyUsed writes the contents of a database to a new file, synced.
func copyUsed(path string, db *bolt.DB) error {
	if err := os.RemoveAll(path); err != nil { // of a rewrite that was killed
		return err
	}
	to, err := bolt.Open(path, 0o644, &bolt.Options{FreelistType: bolt.FreelistMapType, NoStatistics: true})
	if err != nil {
		return err
	}
	const perCommit = 4 << 20
	return errors.Join(bolt.Compact(to, db, perCommit), to.Close())
}

// syncDir makes a rename in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
