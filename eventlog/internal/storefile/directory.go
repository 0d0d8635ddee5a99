// Package storefile is the directory of a store: the files in it, what they must
// hold, and the order in which they reach the disk.
//
// Pebble creates a store where its marker is missing, deletes files that look like
// its own and are not in the store, and treats a truncated file as complete. So the
// package examines a directory before Pebble opens it, and wraps the file system
// that Pebble writes to:
//
//   - [LookAt] and [Directory.Check] classify a directory by its names and by its
//     own files. They change nothing.
//   - SAJOU names the format, its version and the store ([parseFormatFile]). FILES
//     lists the files that must be there, with lengths and checksums
//     ([FileList], [Ledger]). HEADS notes how far each session is durable
//     ([HeadsFile]). Every table has the store's id as a property ([TableMark]).
//   - [CreateBeside] and [CreateInside] make a store, which appears complete or
//     not at all.
//   - [FreezeFS] is the file system that Pebble writes to. It keeps FILES and,
//     after the first failed write, leaves the disk as a crash at that moment could
//     have left it. [BlockFS], [ReadOnlyFS], [RegularFS] and [CutFS] are views for
//     reading.
//   - [ScanWAL] reads a file of the write-ahead log as it is on the disk, beyond the
//     place at which Pebble stops.
//
// The package knows the keys of a store only to name them in messages and to
// compare files with the store. It holds no session and decodes no entry.
package storefile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// FileKind is the role of a file, derived from its name.
type FileKind uint8

// The roles of files.
const (
	KindUnknown  FileKind = iota // a name that neither this program nor Pebble uses
	kindOurs                     // SAJOU, FILES, HEADS, and their temporary files
	kindLock                     // LOCK
	KindSnapshot                 // snapshots.db and its companion files
	kindCreating                 // the folder of an unfinished creation
	kindMarker                   // marker.*
	KindManifest                 // MANIFEST-000016
	kindOptions                  // OPTIONS-000018
	KindLog                      // 000017.log
	KindTable                    // 000019.sst
	kindBlob                     // 000019.blob
	kindTemp                     // 000020.dbtmp
	kindSystem                   // files that operating systems leave in any folder
)

// role returns the name of a kind of file that is synced, for metrics.
func (k FileKind) role() string {
	switch k {
	case KindLog:
		return "wal"
	case kindOurs:
		return "heads" // the others are not written through a FreezeFS
	case KindTable, kindBlob:
		return "table"
	case KindManifest:
		return "manifest"
	default:
		return "other"
	}
}

// Names of files.
const (
	LockName     = "LOCK"
	CreatingName = "SAJOU.creating"
	snapshotName = "snapshots.db"
)

// systemNames are files that operating systems leave in folders. They hold no user
// data, and a folder without other files counts as empty.
var systemNames = []string{"lost+found", ".DS_Store", "desktop.ini", "Thumbs.db"}

// KindOf returns the role of a file by its name.
func KindOf(name string) FileKind {
	switch name {
	case FormatFile, FilesName, "HEADS", "CURRENT":
		return kindOurs
	case LockName:
		return kindLock
	case CreatingName:
		return kindCreating
	}
	switch {
	case slices.Contains(systemNames, name):
		return kindSystem
	case strings.HasPrefix(name, FormatFile+"."), strings.HasPrefix(name, FilesName+"."), strings.HasPrefix(name, "HEADS."):
		return kindOurs
	case strings.HasPrefix(name, snapshotName):
		return KindSnapshot
	case strings.HasPrefix(name, "marker."):
		return kindMarker
	}
	if number, ok := strings.CutPrefix(name, "MANIFEST-"); ok && isNumber(number) {
		return KindManifest
	}
	if number, ok := strings.CutPrefix(name, "OPTIONS-"); ok && isNumber(number) {
		return kindOptions
	}
	base, extension, ok := strings.Cut(strings.TrimPrefix(name, "temporary."), ".")
	if !ok || !isNumber(base) {
		// A log of a Pebble store with a second directory: "000017-001.log".
		if first, second, cut := strings.Cut(base, "-"); !cut || !isNumber(first) || !isNumber(second) {
			return KindUnknown
		}
	}
	switch extension {
	case "log":
		return KindLog
	case "sst":
		return KindTable
	case "blob":
		return kindBlob
	case "dbtmp":
		return kindTemp
	}
	return KindUnknown
}

// FileNumber returns the number in the name of one of Pebble's files.
func FileNumber(name string) uint64 {
	digits := strings.TrimLeft(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")
	digits, _, _ = strings.Cut(digits, ".")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func isNumber(s string) bool {
	if s == "" {
		return false
	}
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && s[0] != '+'
}

// Marker is a file of Pebble that holds one value in its name.
type Marker struct {
	Name      string
	Iteration uint64
	Value     string
}

// The markers that this package reads.
const (
	MarkerManifest = "manifest"
	MarkerVersion  = "format-version"
)

// FileName returns the name of the marker's file.
func (m Marker) FileName() string {
	return fmt.Sprintf("marker.%s.%06d.%s", m.Name, m.Iteration, m.Value)
}

func parseMarker(file string) (Marker, bool) {
	rest, ok := strings.CutPrefix(file, "marker.")
	name, rest, ok2 := strings.Cut(rest, ".")
	number, value, ok3 := strings.Cut(rest, ".")
	iteration, err := strconv.ParseUint(number, 10, 64)
	return Marker{name, iteration, value}, ok && ok2 && ok3 && err == nil
}

// NewestMarker returns the marker that Pebble reads.
func NewestMarker(names []string, name string) (newest Marker, ok bool) {
	for _, file := range names {
		if m, is := parseMarker(file); is && m.Name == name && (!ok || m.Iteration > newest.Iteration) {
			newest, ok = m, true
		}
	}
	return newest, ok
}

// DirState is the class of a directory.
type DirState uint8

// The classes of directories.
const (
	StateAbsent   DirState = iota // no such directory
	StateEmpty                    // empty except for system files and an empty LOCK
	StateCreating                 // an unfinished creation, and nothing else
	StateStore                    // a store with its format file
	StateLegacy                   // Pebble files with a marker and no format file
	stateDamaged                  // parts of a store
	StateForeign                  // something else
)

// Directory is the result of examining a directory.
type Directory struct {
	State  DirState
	Names  []string
	Format FormatRecord // of a store that has one
	Files  FileList     // of a store that has one
	// outside says that Pebble wrote to the store without this package: the store
	// has a MANIFEST newer than those in FILES. FILES then proves nothing.
	outside bool
	Err     error // the refusal; nil if the directory is accepted
	Short   error // how the write-ahead log is shorter than FILES says; nil if it is not
}

// Unnoted reports whether FILES proves nothing about the store.
func (s Directory) Unnoted() bool { return s.State == StateLegacy || s.outside }

// The classes of refusal that package eventlog returns.
var (
	ErrNoStore = errors.New("eventlog: no store")
	ErrForeign = fmt.Errorf("%w: the directory holds something else", ErrNoStore)
)

// errLockContents is [ErrForeign] for a store whose LOCK another program wrote.
var errLockContents error = lockContentsError{}

type lockContentsError struct{}

func (lockContentsError) Error() string { return "eventlog: the store cannot be locked" }
func (lockContentsError) Unwrap() error { return ErrForeign }

// DirectoryError explains why a directory is not opened. It matches [ErrForeign]
// for a directory that holds something else, [fs.ErrExist] for one that is to be made and
// exists, and [chain.ErrCorrupt] or [chain.ErrVersion] for a store.
type DirectoryError struct {
	Dir   string
	Found string // the fact: the contents that are wrong or missing
	Do    string // the remedy; "" where it is eventlog.Repair
	Err   error  // the class
}

func (e *DirectoryError) Error() string {
	s := fmt.Sprintf("%v: store %s: %s", e.Err, e.Dir, e.Found)
	switch {
	case errors.Is(e.Err, fs.ErrExist):
		s = fmt.Sprintf("eventlog: %s: %s", e.Dir, e.Found)
	case errors.Is(e.Err, ErrForeign):
		s = fmt.Sprintf("%v in %s: %s", ErrNoStore, e.Dir, e.Found)
	}
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

func (e *DirectoryError) Unwrap() error { return e.Err }

// Damaged returns the [DirectoryError] of a damaged store.
func Damaged(dir, format string, args ...any) error {
	return &DirectoryError{Dir: dir, Found: fmt.Sprintf(format, args...), Err: chain.ErrCorrupt}
}

// LookAt classifies dir by the names of its files. It opens no file and changes
// nothing.
func LookAt(disk vfs.FS, dir string) (Directory, error) {
	info, err := disk.Stat(dir)
	switch {
	case IsMissing(err):
		return Directory{State: StateAbsent}, nil
	case err != nil:
		return Directory{}, fmt.Errorf("eventlog: open %s: %w", dir, err)
	case !info.IsDir():
		return Directory{State: StateForeign, Err: &DirectoryError{dir, "it is a file, not a directory", "name another directory", ErrForeign}}, nil
	}
	names, err := disk.List(dir)
	if err != nil {
		return Directory{}, fmt.Errorf("eventlog: open %s: %w", dir, err)
	}
	slices.Sort(names)
	s := Directory{Names: names}
	have := map[FileKind][]string{}
	for _, name := range names {
		have[KindOf(name)] = append(have[KindOf(name)], name)
	}
	_, marked := NewestMarker(names, MarkerManifest)
	empty, err := s.emptyLock(disk, dir)
	if err != nil {
		return Directory{}, fmt.Errorf("eventlog: open %s: %w", dir, err)
	}
	if !empty {
		class := ErrForeign
		if marked || slices.Contains(names, FormatFile) {
			class = errLockContents
		}
		s.State, s.Err = StateForeign, &DirectoryError{dir, "it holds a file " + LockName + " with contents, which no store has and which locking would delete", "move it away", class}
		return s, nil
	}
	if slices.Contains(names, FormatFile) {
		s.State = StateStore
		return s, nil
	}
	pebbled := marked || len(have[KindManifest]) > 0 || len(have[kindOptions]) > 0 || len(have[kindMarker]) > 0
	ours := slices.Contains(names, FilesName) || slices.Contains(names, "HEADS")
	others := 0
	for k, of := range have {
		if k != kindSystem && k != kindLock {
			others += len(of)
		}
	}
	switch {
	case len(have[kindCreating]) > 0:
		// copyUp finds the files that are in the way of the creation.
		s.State = StateCreating
	case ours:
		s.State, s.Err = stateDamaged, Damaged(dir, "the file %s, which names the store, is missing", FormatFile)
	case marked:
		s.State = StateLegacy
	case pebbled:
		s.State, s.Err = stateDamaged, Damaged(dir, "the file marker.manifest.*, which names the current MANIFEST, is missing; tools that skip empty files lose it")
	case others == 0:
		s.State = StateEmpty
	case others > 0 && others == len(have[KindSnapshot]):
		s.State, s.Err = stateDamaged, &DirectoryError{dir, "it holds snapshots of sessions and no log", "restore the log from a backup, or delete " + snapshotName, chain.ErrCorrupt}
	default:
		s.State, s.Err = StateForeign, &DirectoryError{dir, "it holds files that are not of a store: " + some(names), "name a directory that is absent or empty", ErrForeign}
	}
	return s, nil
}

// emptyLock reports whether LOCK, if present, is an empty file. A LOCK with contents
// is from another program, and locking would truncate it.
func (s *Directory) emptyLock(disk vfs.FS, dir string) (bool, error) {
	if !slices.Contains(s.Names, LockName) {
		return true, nil
	}
	info, err := disk.Stat(disk.PathJoin(dir, LockName))
	if IsMissing(err) {
		return true, nil // removed meanwhile
	}
	if err != nil {
		return false, err
	}
	return info.Mode().IsRegular() && info.Size() == 0, nil
}

// Check checks a store or a legacy store by its own files and by the files that
// Pebble needs. It reads SAJOU, FILES, the MANIFEST and the write-ahead logs. The
// caller holds the lock, without which a writer could change them meanwhile.
func (s *Directory) Check(disk vfs.FS, dir string) {
	if s.Err = checkRegular(disk, dir, s.Names); s.Err != nil {
		s.State = stateDamaged
		return
	}
	if s.State == StateLegacy {
		s.lookAtPebble(disk, dir)
		return
	}
	fail := func(name string, err error) {
		s.State, s.Err = stateDamaged, Damaged(dir, "%s is damaged: %s", name, strings.TrimPrefix(err.Error(), chain.ErrCorrupt.Error()+": "))
		if errors.Is(err, chain.ErrVersion) {
			s.Err = &DirectoryError{dir, strings.TrimPrefix(err.Error(), chain.ErrVersion.Error()+": "), "use the version of the program that wrote it", chain.ErrVersion}
		}
	}
	var err error
	if s.Format, err = ReadFormatFile(disk, dir); err != nil {
		fail(FormatFile, err)
		return
	}
	if s.Format.NoFiles {
		s.State = StateLegacy
		s.lookAtPebble(disk, dir)
		return
	}
	s.Files, err = ReadFileList(disk, dir)
	switch {
	case IsMissing(err):
		s.State, s.Err = stateDamaged, Damaged(dir, "the file %s, which lists the files of the store, is missing", FilesName)
		return
	case err != nil:
		fail(FilesName, err)
		return
	case s.Files.ID != s.Format.ID:
		s.State, s.Err = stateDamaged, Damaged(dir, "%s is of store %s, and %s of store %s", FormatFile, s.Format.ID, FilesName, s.Files.ID)
		return
	}
	if s.lookAtPebble(disk, dir); s.Err == nil {
		m, _ := NewestMarker(s.Names, MarkerManifest)
		if _, known := s.Files.Manifests[m.Value]; !known && m.Iteration > s.Files.Iteration {
			s.outside, s.Files = true, NewFileList(s.Format.ID)
			return
		}
		if s.Err = checkListed(disk, dir, s.Names, s.Files); s.Err != nil {
			s.State = stateDamaged
			return
		}
		s.Short = checkListedLogs(disk, dir, s.Names, s.Files)
	}
}

// checkRegular refuses a store in which a file that is read is neither a regular file
// nor a link to one. Reading a named pipe would wait for its writer, and a device has
// no end.
func checkRegular(disk vfs.FS, dir string, names []string) error {
	for _, name := range names {
		switch KindOf(name) {
		case kindOurs, KindManifest, kindOptions, KindLog, KindTable, kindBlob, kindTemp:
		default:
			continue
		}
		info, err := disk.Stat(disk.PathJoin(dir, name))
		if err == nil && !info.Mode().IsRegular() {
			return Damaged(dir, "%s is not a regular file", name)
		}
	}
	return nil
}

// RegularFS is a file system on which only regular files and directories can be
// opened.
type RegularFS struct{ vfs.FS }

// Open implements [vfs.FS].
func (r RegularFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if info, err := r.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a regular file", chain.ErrCorrupt, r.PathBase(name))
	}
	return r.FS.Open(name, opts...)
}

// Unwrap implements [vfs.FS].
func (r RegularFS) Unwrap() vfs.FS { return r.FS }

// lookAtPebble checks that the files that Pebble reads first are present.
func (s *Directory) lookAtPebble(disk vfs.FS, dir string) {
	refuse := func(format string, args ...any) { s.State, s.Err = stateDamaged, Damaged(dir, format, args...) }
	for _, name := range s.Names {
		if _, ok := parseMarker(name); KindOf(name) == kindMarker && !ok {
			s.Err = &DirectoryError{dir, fmt.Sprintf("%q is not a marker of the store", name), "move it away", chain.ErrCorrupt}
			s.State = stateDamaged
			return
		}
	}
	m, ok := NewestMarker(s.Names, MarkerManifest)
	if !ok {
		refuse("the file marker.manifest.*, which names the current MANIFEST, is missing; tools that skip empty files lose it")
		return
	}
	if _, ok := NewestMarker(s.Names, MarkerVersion); !ok {
		refuse("the file marker.format-version.* is missing; tools that skip empty files lose it")
		return
	}
	info, err := disk.Stat(disk.PathJoin(dir, m.Value))
	switch {
	case KindOf(m.Value) != KindManifest:
		refuse("%s names no MANIFEST", m.FileName())
	case IsMissing(err):
		refuse("%s is missing, and %s names it", m.Value, m.FileName())
	case err != nil:
		refuse("%s cannot be read: %v", m.Value, err)
	case info.Size() == 0:
		refuse("%s is empty", m.Value)
	}
}

// checkListed compares a directory with its FILES.
func checkListed(disk vfs.FS, dir string, names []string, files FileList) error {
	m, _ := NewestMarker(names, MarkerManifest)
	if m.Iteration < files.Iteration {
		return Damaged(dir, "%s is older than the marker %d that the store noted", m.FileName(), files.Iteration)
	}
	want, known := files.Manifests[m.Value]
	if !known {
		return Damaged(dir, "the store did not note %s: it is of another store or another time", m.Value)
	}
	if err := CheckExtent(disk, dir, m.Value, want); err != nil {
		return err
	}
	for _, name := range names {
		unknown := false
		switch KindOf(name) {
		case KindLog:
			_, announced := files.Logs[name]
			unknown = !announced
		case kindBlob:
			unknown = true
		default:
		}
		if unknown {
			return &DirectoryError{dir, fmt.Sprintf("%s has the name of a file of the store, which did not write it", name), "move it away", chain.ErrCorrupt}
		}
	}
	return nil
}

// checkListedLogs reports a write-ahead log that is shorter than FILES says. An
// examination of the log then determines the loss.
func checkListedLogs(disk vfs.FS, dir string, names []string, files FileList) error {
	for _, name := range slices.Sorted(maps.Keys(files.Logs)) {
		l := files.Logs[name]
		if !l.Must {
			continue
		}
		if !slices.Contains(names, name) {
			return Damaged(dir, "the write-ahead log %s is missing; it holds acknowledged entries", name)
		}
		if err := CheckExtent(disk, dir, name, l.Extent); err != nil {
			return err
		}
	}
	return nil
}

// CheckExtent reports a file whose beginning differs from the noted extent.
func CheckExtent(disk vfs.FS, dir, name string, want Extent) error {
	have, err := ExtentOf(disk, disk.PathJoin(dir, name), want.length)
	switch {
	case err != nil:
		return fmt.Errorf("eventlog: read %s in %s: %w", name, dir, err)
	case have.length < want.length:
		return Damaged(dir, "%s has %d bytes, and %d were written", name, have.length, want.length)
	case have.sum != want.sum:
		return Damaged(dir, "the first %d bytes of %s are not those that were written", want.length, name)
	}
	return nil
}

// some lists the first few names.
func some(names []string) string {
	const most = 5
	quoted := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	s := strings.Join(quoted, ", ")
	if len(names) > most {
		s += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return s
}

// makeDirectory creates dir and its missing parents and syncs them: a store is only
// as durable as the path to it. It returns the directories it made, the outermost
// first.
func makeDirectory(disk vfs.FS, dir string) (made []string, err error) {
	for path := dir; ; {
		if _, err := disk.Stat(path); err == nil {
			break
		}
		made = append(made, path)
		parent := disk.PathDir(path)
		if parent == path {
			break
		}
		path = parent
	}
	slices.Reverse(made)
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for i := len(made) - 1; i >= 0; i-- {
		if err := SyncDirectory(disk, disk.PathDir(made[i])); err != nil {
			return made, err
		}
	}
	return made, nil
}

// SyncDirectory brings the entries of a directory to stable storage.
func SyncDirectory(disk vfs.FS, path string) error {
	d, err := disk.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Canonical returns the one canonical path of a directory on the disk, which may be
// absent. Pebble's lock excludes other processes whatever path they use, but this
// process only from a path with the same spelling.
func Canonical(dir string) (string, error) {
	const maxLinks = 40
	path, err := filepath.Abs(dir)
	for range maxLinks {
		if err != nil {
			break
		}
		var resolved string
		if resolved, err = filepath.EvalSymlinks(path); err == nil {
			return resolved, nil
		}
		if !IsMissing(err) {
			break
		}
		// The last element is absent, or a link to an absent file.
		var target string
		if target, err = os.Readlink(path); err == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			path = target
			continue
		}
		parent := filepath.Dir(path)
		if parent == path {
			break
		}
		var above string
		if above, err = Canonical(parent); err == nil {
			return filepath.Join(above, filepath.Base(path)), nil
		}
	}
	if err == nil {
		err = errors.New("too many symbolic links")
	}
	return "", fmt.Errorf("eventlog: open %s: %w", dir, err)
}
