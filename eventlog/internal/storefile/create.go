package storefile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// This file creates stores. A store appears in its place complete or not at all.
//
// Where the directory is absent, the store is built in a folder beside it,
// ".<name>.new-<16 hex digits>", and renamed. A kill before the rename leaves
// that folder, which the next creation of the same name deletes if no process
// holds its lock and every file in it has a name that a store uses.
//
// Where the directory exists (empty, a mount point, with lost+found), it stays: the
// store is built in its folder SAJOU.creating, which marks a creation in progress,
// and the files are copied up, SAJOU last. After a kill before SAJOU is built there,
// the next opening for writing starts over; after a later kill, it copies the rest.
// Until SAJOU is in its place, readers find no store.

// Builder makes a complete, empty store in dir, which exists and is empty. lock is
// the lock of dir.
type Builder func(dir string, lock *pebble.Lock) error

const (
	newInfix    = ".new-"
	newNameSize = 8 // random bytes of the name of a sibling
)

// CreateBeside builds a store beside dir, which is absent, and puts it there.
// If another process was faster, its directory stays. made are the directories
// above dir that were created.
func CreateBeside(disk vfs.FS, dir string, build Builder) (created bool, made []string, err error) {
	parent, base := disk.PathDir(dir), disk.PathBase(dir)
	if made, err = makeDirectory(disk, parent); err != nil {
		return false, made, err
	}
	sweepBeside(disk, parent, base)
	var random [newNameSize]byte
	if _, err := rand.Read(random[:]); err != nil {
		return false, made, err
	}
	sibling := disk.PathJoin(parent, "."+base+newInfix+hex.EncodeToString(random[:]))
	if err := disk.MkdirAll(sibling, 0o755); err != nil {
		return false, made, err
	}
	lock, err := pebble.LockDirectory(sibling, disk)
	if IsMissing(err) {
		return false, made, nil // another process swept the folder before it was locked: try again
	}
	if err != nil {
		return false, made, errors.Join(err, disk.Remove(sibling))
	}
	discard := func(err error) error {
		// What cannot be removed now is removed by the next creation.
		_ = ClearFolder(disk, sibling)
		_ = lock.Close()
		_ = disk.Remove(sibling)
		return err
	}
	// The directory entry of the lock reaches the disk before that of any other
	// file, so a power cut never leaves a folder with files and no lock.
	if err := SyncDirectory(disk, sibling); err != nil {
		return false, made, discard(err)
	}
	if err := build(sibling, lock); err != nil {
		return false, made, discard(err)
	}
	// Rename would replace an empty directory, and on some file systems any.
	if _, err := disk.Stat(dir); err == nil {
		return false, made, discard(nil)
	} else if !IsMissing(err) {
		return false, made, discard(err)
	}
	if err := disk.Rename(sibling, dir); err != nil {
		if _, exists := disk.Stat(dir); exists == nil {
			err = nil
		}
		return false, made, discard(err)
	}
	// From here on the store is in its place.
	return true, made, errors.Join(SyncDirectory(disk, parent), lock.Close())
}

// sweepBeside deletes the folders that killed creations of the same directory left.
// It deletes a folder only if its lock is free and a store uses every name in it.
func sweepBeside(disk vfs.FS, parent, base string) {
	names, err := disk.List(parent)
	if err != nil {
		return
	}
	for _, name := range names {
		random, ok := strings.CutPrefix(name, "."+base+newInfix)
		if b, err := hex.DecodeString(random); !ok || err != nil || len(b) != newNameSize {
			continue
		}
		folder := disk.PathJoin(parent, name)
		inside, err := disk.List(folder)
		if err != nil || slices.ContainsFunc(inside, func(n string) bool { return !removable(n) }) {
			continue
		}
		s := Directory{Names: inside}
		if len(inside) > 0 {
			// An empty LOCK that no process holds.
			if empty, err := s.emptyLock(disk, folder); !slices.Contains(inside, LockName) || err != nil || !empty {
				continue
			}
			lock, err := pebble.LockDirectory(folder, disk)
			if err != nil {
				continue
			}
			_ = ClearFolder(disk, folder)
			_ = lock.Close()
		}
		_ = disk.Remove(folder)
	}
}

// removable reports whether a file of that name, in a folder that this package made
// for a new store, belongs to the store.
func removable(name string) bool {
	switch KindOf(name) {
	case KindUnknown, kindSystem, KindSnapshot, kindCreating:
		return false
	default:
		return true
	}
}

// ClearFolder deletes the files of a new store, the lock last. Other files stay.
func ClearFolder(disk vfs.FS, folder string) error {
	names, err := disk.List(folder)
	if err != nil {
		return err
	}
	var errs error
	for _, name := range names {
		if removable(name) && name != LockName {
			errs = errors.Join(errs, disk.Remove(disk.PathJoin(folder, name)))
		}
	}
	if errs == nil && slices.Contains(names, LockName) {
		errs = disk.Remove(disk.PathJoin(folder, LockName))
	}
	return errs
}

// CreateInside creates a store in dir, which exists and is empty, or continues an
// unfinished creation. The caller holds the lock of dir.
func CreateInside(disk vfs.FS, dir string, build Builder) error {
	inner := disk.PathJoin(dir, CreatingName)
	if _, err := ReadFormatFile(disk, inner); err != nil {
		// Nothing of it has been copied yet: SAJOU is the last file built.
		if err := ClearFolder(disk, inner); err != nil && !IsMissing(err) {
			return err
		}
		if err := disk.MkdirAll(inner, 0o755); err != nil {
			return err
		}
		if err := SyncDirectory(disk, dir); err != nil {
			return err
		}
		lock, err := pebble.LockDirectory(inner, disk)
		if err != nil {
			return err
		}
		if err := errors.Join(build(inner, lock), lock.Close()); err != nil {
			return err
		}
	}
	names, err := disk.List(inner)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if name == LockName || name == FormatFile || !removable(name) {
			continue
		}
		if err := copyUp(disk, inner, dir, name); err != nil {
			return err
		}
	}
	if err := SyncDirectory(disk, dir); err != nil {
		return err
	}
	format, err := readSmall(disk, disk.PathJoin(inner, FormatFile), maxFormatFile)
	if err != nil {
		return err
	}
	// With this the store is there.
	if err := WriteAtomically(disk, dir, FormatFile, format); err != nil {
		return err
	}
	return RemoveCreating(disk, dir)
}

// copyUp copies one small file of a new store. It replaces an existing file only if
// that file is a beginning of the same one.
func copyUp(disk vfs.FS, from, to, name string) error {
	const maxNewFile = 1 << 20
	contents, err := readSmall(disk, disk.PathJoin(from, name), maxNewFile)
	if err != nil {
		return err
	}
	target := disk.PathJoin(to, name)
	if info, err := disk.Stat(target); err == nil {
		have, err := readSmall(disk, target, maxNewFile)
		if err != nil || !info.Mode().IsRegular() || !beginning(contents, have) {
			return &DirectoryError{to, fmt.Sprintf("%q is in the place of a file of the new store", name), "move it away", ErrForeign}
		}
	} else if !IsMissing(err) {
		return err
	}
	f, err := disk.Create(target, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// beginning reports whether a crash during the writing of whole can leave have: a
// prefix of whole, or whole with zeros in place of blocks.
func beginning(whole, have []byte) bool {
	if len(have) > len(whole) {
		return false
	}
	for i, b := range have {
		if b != whole[i] && b != 0 {
			return false
		}
	}
	return true
}

// RemoveCreating deletes the folder of a finished creation.
func RemoveCreating(disk vfs.FS, dir string) error {
	inner := disk.PathJoin(dir, CreatingName)
	if err := ClearFolder(disk, inner); err != nil {
		return err
	}
	if err := disk.Remove(inner); err != nil {
		return err
	}
	return SyncDirectory(disk, dir)
}
