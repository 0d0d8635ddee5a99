package storefile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// This file makes and removes checkpoints: stores inside the folder [CheckpointsName] of
// the directory of an open store, whose tables are hard links to those of that store. So
// a checkpoint costs a copy of the write-ahead log and of the MANIFEST, whatever the size
// of the store, and a process can read it while the store is in use.
//
//	STORE/checkpoints/            0700
//	STORE/checkpoints/9f…e1/      a checkpoint: 16 hexadecimal digits
//
// A reader holds the lock of its checkpoint, as of any store. A checkpoint whose lock is
// free has no reader: [SweepCheckpoints] removes it when the store is opened for writing
// next, whichever process died.

// CheckpointsName is the name of the folder of the checkpoints of a store.
const CheckpointsName = "checkpoints"

const checkpointNameSize = 8 // random bytes

// NewCheckpointPath returns a path for a checkpoint of the store in dir, which is absent,
// in a folder that only its owner can read.
func NewCheckpointPath(disk vfs.FS, dir string) (string, error) {
	folder := disk.PathJoin(dir, CheckpointsName)
	if err := disk.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("eventlog: make a checkpoint: %w", err)
	}
	if err := ownFolder(disk, folder); err != nil {
		return "", err
	}
	var random [checkpointNameSize]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("eventlog: make a checkpoint: %w", err)
	}
	return disk.PathJoin(folder, hex.EncodeToString(random[:])), nil
}

// ownFolder refuses a folder that is a link to another place or that other users can
// write to.
func ownFolder(disk vfs.FS, folder string) error {
	if disk != vfs.Default {
		return nil
	}
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return fmt.Errorf("eventlog: checkpoints: %w", err)
	case !info.IsDir():
		return &DirectoryError{folder, "it is not a folder of checkpoints", "move it away", ErrForeign}
	case info.Mode().Perm()&0o022 != 0:
		return &DirectoryError{folder, fmt.Sprintf("its mode is %v, so that other users can write to it", info.Mode().Perm()), "remove it", ErrForeign}
	}
	return nil
}

// CompleteCheckpoint makes the copy of a store that Pebble has made in dir a store of the
// same id, with these noted heads. The copied write-ahead log ends where its records stop
// being whole: it was written to while it was copied.
func CompleteCheckpoint(disk vfs.FS, dir string, id StoreID, heads []byte) error {
	names, err := disk.List(dir)
	if err != nil {
		return err
	}
	files := NewFileList(id)
	marker, ok := NewestMarker(names, MarkerManifest)
	if !ok {
		return fmt.Errorf("%w: the copy has no marker of its MANIFEST", chain.ErrCorrupt)
	}
	files.Iteration, files.Current = marker.Iteration, marker.Value
	if files.Manifests[marker.Value], err = ExtentOf(disk, disk.PathJoin(dir, marker.Value), -1); err != nil {
		return err
	}
	newest := uint64(0)
	for _, name := range names {
		if number, ok := WALNumber(name); ok {
			newest = max(newest, number)
		}
	}
	for _, name := range names {
		number, ok := WALNumber(name)
		if !ok {
			continue
		}
		path := disk.PathJoin(dir, name)
		if number == newest {
			if err := cutTornEnd(disk, path, number); err != nil {
				return err
			}
		}
		whole, err := ExtentOf(disk, path, -1)
		if err != nil {
			return err
		}
		files.Logs[name] = ListedLog{Extent: whole, Must: true}
	}
	lock, err := disk.Create(disk.PathJoin(dir, LockName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err := lock.Close(); err != nil {
		return err
	}
	for _, own := range []struct {
		name     string
		contents []byte
	}{
		{FilesName, append(files.Header(), files.Line()...)},
		{HeadsFile, heads},
		{FormatFile, FormatContents(id, false)},
	} {
		if err := writeNew(disk, disk.PathJoin(dir, own.name), own.contents); err != nil {
			return err
		}
	}
	return nil
}

// cutTornEnd removes the bytes of a file of the write-ahead log behind its intact records.
// A file that Pebble has finished stays as it is. A copy of a file that Pebble writes for
// the second time can have newer records behind older ones: they were written while the
// copy passed, and a scan would take them for the proof of damage.
func cutTornEnd(disk vfs.FS, path string, number uint64) error {
	f, err := disk.Open(path)
	if err != nil {
		return err
	}
	scan, err := ScanWAL(f, number, func(_ int64, _ []byte, intact bool) bool { return intact })
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	info, err := disk.Stat(path)
	if err != nil || scan.Closed || info.Size() <= scan.End {
		return err
	}
	return CopyBeginning(disk, path, path+tempSuffix, scan.End)
}

// writeNew writes a file of a checkpoint. It is not synced: a checkpoint does not outlive
// its reader.
func writeNew(disk vfs.FS, path string, contents []byte) error {
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	return errors.Join(err, f.Close())
}

// IsCheckpoint reports whether a path is one that [NewCheckpointPath] can have returned.
func IsCheckpoint(disk vfs.FS, path string) bool {
	b, err := hex.DecodeString(disk.PathBase(path))
	return err == nil && len(b) == checkpointNameSize && disk.PathBase(disk.PathDir(path)) == CheckpointsName
}

// RemoveCheckpoint removes a checkpoint with everything in it, and then the folder of
// checkpoints if it is empty. It waits at most that long for a process that reads the
// checkpoint; then the error is [ErrLocked]. It is nil if the checkpoint is gone already.
func RemoveCheckpoint(disk vfs.FS, path string, wait time.Duration) error {
	if !IsCheckpoint(disk, path) {
		return fmt.Errorf("eventlog: remove %s: it is not the path of a checkpoint", path)
	}
	folder := disk.PathDir(path)
	if _, err := disk.Stat(path); IsMissing(err) {
		return nil
	}
	if err := ownFolder(disk, folder); err != nil {
		return err
	}
	lock, locked, err := LockDirectory(disk, path, []string{LockName}, LockOptions{Wait: wait})
	if IsMissing(err) {
		return nil
	}
	if err != nil || !locked {
		return err
	}
	if err := errors.Join(disk.RemoveAll(path), lock.Close()); err != nil {
		return fmt.Errorf("eventlog: remove the checkpoint %s: %w", path, err)
	}
	_ = disk.Remove(folder) // fails while there are others
	return nil
}

// SweepCheckpoints removes the checkpoints of the store in dir that no process reads. The
// caller holds the lock of the store, so none is being made. names are the files in dir.
func SweepCheckpoints(disk vfs.FS, dir string, names []string) error {
	if !slices.Contains(names, CheckpointsName) {
		return nil
	}
	folder := disk.PathJoin(dir, CheckpointsName)
	if err := ownFolder(disk, folder); err != nil {
		return err
	}
	inside, err := disk.List(folder)
	if err != nil {
		return err
	}
	var errs error
	for _, name := range inside {
		path := disk.PathJoin(folder, name)
		if !IsCheckpoint(disk, path) {
			continue
		}
		if err := RemoveCheckpoint(disk, path, 0); !errors.Is(err, ErrLocked) {
			errs = errors.Join(errs, err)
		}
	}
	_ = disk.Remove(folder) // fails while there are others
	return errs
}
