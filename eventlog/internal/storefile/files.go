package storefile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// This file keeps FILES, the store's own list of the files that Pebble trusts.
//
// Pebble trusts its directory: it takes a missing write-ahead log for one that never
// existed and a MANIFEST that ends early for a complete one, and deletes a table
// that the MANIFEST does not list. FILES says which files must be present.
// [FreezeFS], between Pebble and the disk, has it written so that
//
//   - a write-ahead log or table is announced before it is created;
//   - the length and checksum of a MANIFEST are noted at each of its syncs,
//     before Pebble deletes anything that the new part replaces;
//   - the length and checksum of a write-ahead log are noted at the first sync
//     that has entries, before they are acknowledged, and again whenever the
//     synced length has doubled;
//   - a write-ahead log is noted as dispensable before it is deleted or reused.
//
// So every file that FILES requires is on the disk at every moment, whatever a crash
// leaves.
//
//	sajou files 1 5f0c8d1e0a7b4c3d9e2f1a0b8c7d6e5f
//	9a3c1f07 marker 3 MANIFEST-000016 manifest MANIFEST-000016 161 6b0d93ce log 000017.log 2386 00c1a2b3 table 000019.sst
//
// The first line names the format and the store. Every other line is a whole
// state and replaces the one before; its first word is the CRC-32C of the rest.
// A log without length ("- -") may be missing. Lines are appended and synced. A
// crash can tear the last one, which is then ignored. The file is written again
// when the store is opened for writing, and when it has grown to 256 KiB.

// FilesName is the name of the list of files.
const FilesName = "FILES"

const (
	filesMagic      = "sajou files 1 "
	maxFilesSize    = 256 << 10 // size at which the list is written again
	maxFilesRead    = 4 << 20   // bounds reading
	maxNotedFiles   = 1 << 14   // bounds one line
	maxNotedPathLen = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Extent is the part of a file that is known to be on the disk.
type Extent struct {
	length int64
	sum    uint32
}

// ListedLog is a write-ahead log. Without extent it may be missing.
type ListedLog struct {
	Extent
	Must bool
	// removed says that the file was deleted, perhaps not yet durably.
	removed bool
}

// FileList is one state of FILES.
type FileList struct {
	ID        StoreID
	Iteration uint64 // of the marker that names the current MANIFEST
	Current   string // the MANIFEST that the marker names
	Manifests map[string]Extent
	Logs      map[string]ListedLog
	Tables    map[string]bool // announced, perhaps incomplete; true once deleted, perhaps not durably
}

// NewFileList returns the list of a store without files.
func NewFileList(id StoreID) FileList {
	return FileList{ID: id, Manifests: map[string]Extent{}, Logs: map[string]ListedLog{}, Tables: map[string]bool{}}
}

// Line returns the state as one line, with its line feed.
func (n *FileList) Line() []byte {
	var b bytes.Buffer
	if n.Current != "" {
		fmt.Fprintf(&b, " marker %d %s", n.Iteration, n.Current)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Manifests)) {
		fmt.Fprintf(&b, " manifest %s %d %08x", name, n.Manifests[name].length, n.Manifests[name].sum)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Logs)) {
		if l := n.Logs[name]; l.Must {
			fmt.Fprintf(&b, " log %s %d %08x", name, l.length, l.sum)
		} else {
			fmt.Fprintf(&b, " log %s - -", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Tables)) {
		fmt.Fprintf(&b, " table %s", name)
	}
	return fmt.Appendf(nil, "%08x%s\n", crc32.Checksum(b.Bytes(), castagnoli), b.Bytes())
}

// Header returns the first line of FILES.
func (n *FileList) Header() []byte { return fmt.Appendf(nil, "%s%s\n", filesMagic, n.ID) }

// parseFileList reads a whole FILES. The error matches [chain.ErrCorrupt] or, for a
// file of a later format, [chain.ErrVersion].
func parseFileList(b []byte) (FileList, error) {
	bad := func(format string, args ...any) (FileList, error) {
		return FileList{}, fmt.Errorf("%w: %s", chain.ErrCorrupt, fmt.Sprintf(format, args...))
	}
	header, rest, ok := bytes.Cut(b, []byte("\n"))
	named, ours := strings.CutPrefix(string(header), filesMagic)
	if later, isNote := strings.CutPrefix(string(header), "sajou files "); isNote && !ours {
		if number, _, _ := strings.Cut(later, " "); number != "" {
			if v, err := strconv.ParseUint(number, 10, 32); err == nil && v > 1 {
				return FileList{}, fmt.Errorf("%w: %s has version %d, this program reads version 1", chain.ErrVersion, FilesName, v)
			}
		}
	}
	id, valid := parseStoreID(named)
	if !ok || !ours || !valid {
		return bad("its first line is not that of a store's note of files")
	}
	var last FileList
	have := false
	for len(rest) > 0 {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		n, err := parseNotedLine(id, line)
		switch {
		case err == nil && whole:
			last, have = n, true
		case len(after) > 0:
			return bad("a line in the middle is damaged")
		}
		rest = after
	}
	if !have {
		return bad("it has no complete line")
	}
	return last, nil
}

func parseNotedLine(id StoreID, line []byte) (FileList, error) {
	errLine := fmt.Errorf("%w: damaged line", chain.ErrCorrupt)
	if len(line) < 8 {
		return FileList{}, errLine
	}
	sum, err := strconv.ParseUint(string(line[:8]), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(line[8:], castagnoli) {
		return FileList{}, errLine
	}
	n := NewFileList(id)
	words := strings.Fields(string(line[8:]))
	if len(words) > 4*maxNotedFiles {
		return FileList{}, errLine
	}
	take := func(k int) []string {
		if len(words) < k {
			return nil
		}
		taken := words[:k]
		words = words[k:]
		return taken
	}
	for len(words) > 0 {
		switch kind := take(1)[0]; kind {
		case "marker":
			w := take(2)
			if w == nil {
				return FileList{}, errLine
			}
			if n.Iteration, err = strconv.ParseUint(w[0], 10, 64); err != nil || KindOf(w[1]) != KindManifest {
				return FileList{}, errLine
			}
			n.Current = w[1]
		case "manifest", "log":
			w := take(3)
			if w == nil || len(w[0]) > maxNotedPathLen {
				return FileList{}, errLine
			}
			if kind == "log" && w[1] == "-" && w[2] == "-" && KindOf(w[0]) == KindLog {
				n.Logs[w[0]] = ListedLog{}
				continue
			}
			length, err1 := strconv.ParseInt(w[1], 10, 64)
			sum, err2 := strconv.ParseUint(w[2], 16, 32)
			if err1 != nil || err2 != nil || length < 0 {
				return FileList{}, errLine
			}
			e := Extent{length, uint32(sum)}
			switch {
			case kind == "log" && KindOf(w[0]) == KindLog:
				n.Logs[w[0]] = ListedLog{Extent: e, Must: true}
			case kind == "manifest" && KindOf(w[0]) == KindManifest:
				n.Manifests[w[0]] = e
			default:
				return FileList{}, errLine
			}
		case "table":
			w := take(1)
			if w == nil || KindOf(w[0]) != KindTable || len(w[0]) > maxNotedPathLen {
				return FileList{}, errLine
			}
			n.Tables[w[0]] = false
		default:
			return FileList{}, errLine
		}
	}
	return n, nil
}

// ReadFileList reads FILES in dir. A missing file is an [fs.ErrNotExist].
func ReadFileList(disk vfs.FS, dir string) (FileList, error) {
	b, err := readSmall(disk, disk.PathJoin(dir, FilesName), maxFilesRead)
	if err != nil {
		return FileList{}, err
	}
	return parseFileList(b)
}

// ExtentOf reads the first length bytes of a file, or all of it for a length
// below zero. A shorter file gives a shorter extent.
func ExtentOf(disk vfs.FS, path string, length int64) (Extent, error) {
	f, err := disk.Open(path)
	if err != nil {
		return Extent{}, err
	}
	in := io.Reader(f)
	if length >= 0 {
		in = io.LimitReader(f, length)
	}
	h := crc32.New(castagnoli)
	n, err := io.Copy(h, in)
	return Extent{n, h.Sum32()}, errors.Join(err, f.Close())
}

// Ledger writes FILES while a store is open for writing.
type Ledger struct {
	disk vfs.FS
	dir  string

	mu     sync.Mutex
	state  FileList // guarded by mu
	marker Marker   // the newest one created; guarded by mu
	file   vfs.File // guarded by mu; nil after close
	size   int64    // guarded by mu
}

// OpenLedger writes FILES from the given state and returns its ledger.
func OpenLedger(disk vfs.FS, dir string, state FileList) (*Ledger, error) {
	l := &Ledger{disk: disk, dir: dir, state: state}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.rewrite(); err != nil {
		return nil, fmt.Errorf("eventlog: write %s in %s: %w", FilesName, dir, err)
	}
	return l, nil
}

// rewrite replaces the file by one that has only the present state. The caller
// holds mu.
func (l *Ledger) rewrite() error {
	path := l.disk.PathJoin(l.dir, FilesName)
	contents := append(l.state.Header(), l.state.Line()...)
	f, err := l.disk.Create(path+tempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = l.disk.Rename(path+tempSuffix, path)
	}
	if err == nil {
		err = SyncDirectory(l.disk, l.dir)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	old := l.file
	l.file, l.size = f, int64(len(contents))
	if old != nil {
		return old.Close()
	}
	return nil
}

// note changes the state and makes it durable. When change returns false there
// is nothing to write.
func (l *Ledger) note(change func(*FileList) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !change(&l.state) || l.file == nil {
		return nil
	}
	line := l.state.Line()
	if l.size+int64(len(line)) > maxFilesSize {
		return l.rewrite()
	}
	if _, err := l.file.Write(line); err != nil {
		return err
	}
	l.size += int64(len(line))
	return l.file.Sync()
}

// announce notes a file that is about to be created.
func (l *Ledger) announce(name string) error {
	return l.note(func(n *FileList) bool {
		switch KindOf(name) {
		case KindLog:
			n.Logs[name] = ListedLog{}
		case KindTable:
			n.Tables[name] = false
		default:
			return false
		}
		return true
	})
}

// HasLog reports whether a file of the write-ahead log is one that the store wrote.
func (l *Ledger) HasLog(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.state.Logs[name]
	return ok
}

// moved records that a marker file was created. The marker counts from the next sync
// of the directory, which comes before any deletion.
func (l *Ledger) moved(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m, ok := parseMarker(name); ok && m.Name == MarkerManifest {
		l.marker = m
	}
}

// synced records the part of a file that has reached the disk.
func (l *Ledger) synced(name string, e Extent) error {
	return l.note(func(n *FileList) bool {
		switch KindOf(name) {
		case KindManifest:
			n.Manifests[name] = e
			return true
		case KindLog:
			old := n.Logs[name]
			if e.length == 0 || old.Must && e.length < 2*old.length {
				return false
			}
			n.Logs[name] = ListedLog{Extent: e, Must: true}
			return true
		case KindTable:
			delete(n.Tables, name) // complete from now on: its own checksums prove it
		default:
		}
		return false
	})
}

// dispensable notes that a write-ahead log is about to be deleted, or to be
// reused under the other name.
func (l *Ledger) dispensable(name, reusedAs string) error {
	return l.note(func(n *FileList) bool {
		old, known := n.Logs[name]
		n.Logs[name] = ListedLog{}
		if reusedAs != "" {
			n.Logs[reusedAs] = ListedLog{}
		}
		return reusedAs != "" || !known || old.Must
	})
}

// removed records that a file was deleted from the directory, perhaps not yet
// durably.
func (l *Ledger) removed(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch KindOf(name) {
	case KindLog:
		if old, ok := l.state.Logs[name]; ok {
			old.removed = true
			l.state.Logs[name] = old
		}
	case KindTable:
		if _, ok := l.state.Tables[name]; ok {
			l.state.Tables[name] = true
		}
	default:
	}
}

// directorySync holds the changes that the next sync of the directory makes durable.
type directorySync struct {
	marker  Marker
	removed []string
}

func (l *Ledger) beforeDirectorySync() directorySync {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := directorySync{marker: l.marker}
	for name, n := range l.state.Logs {
		if n.removed {
			d.removed = append(d.removed, name)
		}
	}
	for name, removed := range l.state.Tables {
		if removed {
			d.removed = append(d.removed, name)
		}
	}
	return d
}

// afterDirectorySync records the changes that are durable now. The next note writes
// them.
func (l *Ledger) afterDirectorySync(d directorySync) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.marker.Iteration > l.state.Iteration {
		l.state.Iteration, l.state.Current = d.marker.Iteration, d.marker.Value
		maps.DeleteFunc(l.state.Manifests, func(name string, _ Extent) bool { return name != d.marker.Value })
	}
	for _, name := range d.removed {
		if l.state.Logs[name].removed {
			delete(l.state.Logs, name)
		}
		if l.state.Tables[name] {
			delete(l.state.Tables, name)
		}
	}
}

// Close closes FILES. Later changes are not written.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.file
	l.file = nil
	if f == nil {
		return nil
	}
	return f.Close()
}

// summed is the checksum of the bytes written to a file in sequence.
type summed struct {
	mu      sync.Mutex
	now     Extent // guarded by mu
	unknown bool   // guarded by mu; written at an offset
}

func newSummed() *summed { return &summed{} }

// write passes p to a function that writes it, and adds the bytes that were written.
// It reads p first, because [vfs.MemFS] changes p in builds with the race detector.
// The caller serializes the writes to one file.
func (s *summed) write(p []byte, write func([]byte) (int, error)) error {
	before, _ := s.extent()
	sum := crc32.Update(before.sum, castagnoli, p)
	n, err := write(p)
	if n < len(p) {
		n = max(n, 0)
		sum = crc32.Update(before.sum, castagnoli, p[:n])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = Extent{before.length + int64(n), sum}
	return err
}

func (s *summed) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = true
}

func (s *summed) extent() (Extent, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, !s.unknown
}
