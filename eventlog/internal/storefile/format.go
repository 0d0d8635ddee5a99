package storefile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// This file reads and writes SAJOU, the file that names a directory as a store.
// It is read before Pebble opens anything.
//
//	sajou store
//	version 1
//	id 5f0c8d1e0a7b4c3d9e2f1a0b8c7d6e5f
//	sum 6c1f…
//
// Each line ends with a line feed. The sum is the SHA-256, in hexadecimal, of
// all bytes before its line. Lines between version and sum are "name value";
// a reader ignores names that it does not know. "files none" says that the store
// is from before FILES and has none yet. The version is read before the sum is
// checked, so that a newer store is reported as newer.

// FormatFile is the name of the file that names a directory as a store.
const FormatFile = "SAJOU"

const (
	formatMagic = "sajou store"
	// maxFormatFile bounds the file before it is read.
	maxFormatFile = 4 << 10
	idBytes       = 16
	noFilesLine   = "files none\n"
)

// StoreID names one store. Copies of a directory share it.
type StoreID string

// NewStoreID draws the id of a new store.
func NewStoreID() (StoreID, error) {
	var b [idBytes]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("eventlog: make a store id: %w", err)
	}
	return StoreID(hex.EncodeToString(b[:])), nil
}

func parseStoreID(s string) (StoreID, bool) {
	b, err := hex.DecodeString(s)
	return StoreID(s), err == nil && len(b) == idBytes && strings.ToLower(s) == s
}

// FormatRecord is the content of a [FormatFile].
type FormatRecord struct {
	ID      StoreID
	NoFiles bool // a store from before FILES, which has none yet
}

// FormatContents returns the contents of [FormatFile].
func FormatContents(id StoreID, noFiles bool) []byte {
	b := fmt.Appendf(nil, "%s\nversion %d\nid %s\n", formatMagic, keyspace.FormatVersion, id)
	if noFiles {
		b = append(b, noFilesLine...)
	}
	return fmt.Appendf(b, "sum %x\n", sha256.Sum256(b))
}

// parseFormatFile reads the contents of [FormatFile]. The error matches
// [chain.ErrVersion] or [chain.ErrCorrupt].
func parseFormatFile(b []byte) (FormatRecord, error) {
	bad := func(format string, args ...any) (FormatRecord, error) {
		return FormatRecord{}, fmt.Errorf("%w: %s", chain.ErrCorrupt, fmt.Sprintf(format, args...))
	}
	lines := strings.SplitAfter(string(b), "\n")
	if len(lines) < 2 || lines[0] != formatMagic+"\n" {
		return bad("it does not begin with %q", formatMagic)
	}
	number, ok := strings.CutPrefix(lines[1], "version ")
	version, err := strconv.ParseUint(strings.TrimSuffix(number, "\n"), 10, 32)
	switch {
	case !ok || err != nil || version == 0 || !strings.HasSuffix(number, "\n"):
		return bad("its second line is not a version")
	case version > keyspace.FormatVersion:
		return FormatRecord{}, fmt.Errorf("%w: the store has version %d, this program reads version %d", chain.ErrVersion, version, keyspace.FormatVersion)
	}
	if len(lines) < 4 || lines[len(lines)-1] != "" {
		return bad("it is cut off")
	}
	last := lines[len(lines)-2]
	signed := b[:len(b)-len(last)]
	if last != fmt.Sprintf("sum %x\n", sha256.Sum256(signed)) {
		return bad("its checksum differs")
	}
	var r FormatRecord
	for _, line := range lines[2 : len(lines)-2] {
		if value, found := strings.CutPrefix(line, "id "); found && r.ID == "" {
			if r.ID, ok = parseStoreID(strings.TrimSuffix(value, "\n")); !ok {
				return bad("its id is malformed")
			}
		}
		r.NoFiles = r.NoFiles || line == noFilesLine
	}
	if r.ID == "" {
		return bad("it has no id")
	}
	return r, nil
}

// ReadFormatFile reads SAJOU in dir. A missing file is an [fs.ErrNotExist].
func ReadFormatFile(disk vfs.FS, dir string) (FormatRecord, error) {
	b, err := readSmall(disk, disk.PathJoin(dir, FormatFile), maxFormatFile)
	if err != nil {
		return FormatRecord{}, err
	}
	return parseFormatFile(b)
}

// readSmall reads a file of at most limit bytes.
func readSmall(disk vfs.FS, path string, limit int64) ([]byte, error) {
	info, err := disk.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", chain.ErrCorrupt, disk.PathBase(path))
	}
	f, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", chain.ErrCorrupt, disk.PathBase(path), limit)
	}
	return b, nil
}

// WriteAtomically replaces dir/name by contents. After a crash the file is either the
// old one or the new one. A temporary file of an earlier attempt is overwritten.
func WriteAtomically(disk vfs.FS, dir, name string, contents []byte) error {
	path := disk.PathJoin(dir, name)
	temp := path + tempSuffix
	f, err := disk.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := disk.Rename(temp, path); err != nil {
		return err
	}
	return SyncDirectory(disk, dir)
}

// tempSuffix marks an unfinished file of this package.
const tempSuffix = ".tmp"

// IsMissing reports whether err says that a file does not exist.
func IsMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
