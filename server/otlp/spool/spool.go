// Package spool keeps records on disk until they are dropped. Records belong to groups; a
// group is dropped as a whole. It holds what a server has acknowledged but not processed
// yet.
//
// # Files
//
// The spool is a directory of segments, which are files "N.spool" (0600). A segment begins
// with eight bytes that name the format. Records follow:
//
//	4 bytes  length of the body, little endian
//	4 bytes  CRC-32C of the length and the body
//	body     the group as a uvarint, one byte for the kind, the data
//
// Records are appended to the newest segment. The oldest one is removed when all groups with a
// record in it are dropped, so that no segment disappears before an older one.
//
// # Durability
//
// Written records are durable when [Spool.Sync] returns; callers at the same time share one
// call of fsync. After a crash everything that was synced is there, in its order, and perhaps
// more; a record that is not whole ends its segment. A dropped group may come back after a
// crash, as a whole: what is done with a group has to be safe to do again.
//
// docs/glossary.md has the nouns of all packages.
package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Config holds the options of a [Spool].
type Config struct {
	// MaxBytes bounds the bytes that the records take, with [RecordOverhead] for each.
	// Zero means 256 MiB.
	MaxBytes int64

	// SegmentBytes is the size beyond which a new segment is begun. Zero means a
	// sixteenth of MaxBytes.
	SegmentBytes int64
}

// RecordOverhead is what a record counts beyond its data, in bytes. It is more than it
// takes in its file, and covers the memory that goes with it.
const RecordOverhead = 256

// ErrFull reports that records would exceed [Config.MaxBytes], and ErrTooLarge that they
// would exceed it if the spool held nothing else.
var (
	ErrFull     = errors.New("the spool is full")
	ErrTooLarge = errors.New("the records are larger than the spool")
)

// GroupRecord is a record of a group.
type GroupRecord struct {
	Group uint64
	Data  []byte
}

// RecordRef is the place of a record. It is valid until its group is dropped.
type RecordRef struct {
	segment *segment
	offset  int64
	size    int // of the whole record
}

// Size returns the size of the record in its file, in bytes.
func (r RecordRef) Size() int { return r.size }

// segment is one file.
type segment struct {
	number  uint64
	file    *os.File
	size    int64
	records int
	live    int  // groups with a record here that are not dropped
	damaged bool // it has bytes that cannot be read
}

// charge returns what a segment counts against the bound.
func (s *segment) charge() int64 { return s.size + int64(s.records)*RecordOverhead }

// Spool is an open spool. Its methods may be called from many goroutines.
type Spool struct {
	dir string
	cfg Config

	mu       sync.Mutex
	segments []*segment            // the oldest first; records are appended to the last one
	groups   map[uint64][]*segment // the segments of each group that is not dropped
	next     uint64                // the number of the next segment
	written  uint64                // counts the calls that have written
	synced   uint64                // the last of them that is durable
	syncing  bool
	idle     *sync.Cond // syncing has ended
	failed   error      // why nothing can be written any more
}

// Visit is called with each record that an earlier process has left, in the order in which they
// were written. Data is nil if the group was dropped there; it is valid until Visit returns.
type Visit func(group uint64, ref RecordRef, data []byte) error

// Damage tells of bytes of a segment that cannot be read, other than a last record that
// was being written. The segment is kept under another name when its groups are dropped.
type Damage struct {
	File   string
	Offset int64
}

// Open opens a spool, and creates nothing: the directory and its files appear with the first
// record. A last record that is not whole is removed.
func Open(dir string, cfg Config, visit Visit) (*Spool, []Damage, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 256<<20)
	cfg.SegmentBytes = cmp.Or(cfg.SegmentBytes, cfg.MaxBytes/16)
	s := &Spool{dir: dir, cfg: cfg, groups: map[uint64][]*segment{}, next: 1}
	s.idle = sync.NewCond(&s.mu)
	damages, err := s.load(visit)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, damages, nil
}

// load reads the segments that are there.
func (s *Spool) load(visit Visit) (damages []Damage, err error) {
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var numbers []uint64
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), suffix)
		if !ok || !f.Type().IsRegular() {
			continue
		}
		if n, err := strconv.ParseUint(name, 10, 64); err == nil && fileName(n) == f.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		seg := &segment{number: n}
		if seg.file, err = os.OpenFile(filepath.Join(s.dir, fileName(n)), os.O_RDWR, 0); err != nil {
			return nil, err
		}
		s.segments, s.next = append(s.segments, seg), n+1
		length, err := s.read(seg, visit)
		if err != nil {
			return nil, err
		}
		switch {
		case length == seg.size:
		case i == len(numbers)-1:
			// The bytes behind the last whole record were never acknowledged.
			err = errors.Join(seg.file.Truncate(seg.size), seg.file.Sync())
		default:
			seg.damaged = true
			damages = append(damages, Damage{fileName(n), seg.size})
		}
		if err != nil {
			return nil, err
		}
	}
	return damages, s.reclaim()
}

// fileName returns the name of a segment.
func fileName(number uint64) string { return fmt.Sprintf("%012d%s", number, suffix) }

const suffix = ".spool"

// Write appends records, all or none, and returns their places. They are durable when a
// later [Spool.Sync] returns. The error is [ErrFull] or [ErrTooLarge], or that of the file
// system.
func (s *Spool) Write(records ...GroupRecord) ([]RecordRef, error) {
	return s.write(s.cfg.MaxBytes, records)
}

// WriteBeyond is [Spool.Write] for records that lead to the end of a group: the bound does
// not keep them from being written, because then the spool would stay full.
func (s *Spool) WriteBeyond(records ...GroupRecord) ([]RecordRef, error) {
	return s.write(math.MaxInt64, records)
}

func (s *Spool) write(most int64, records []GroupRecord) ([]RecordRef, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.failed
	}
	var text []byte
	refs := make([]RecordRef, len(records))
	for i, r := range records {
		from := len(text)
		text = appendRecord(text, r.Group, kindData, r.Data)
		refs[i] = RecordRef{offset: int64(from), size: len(text) - from}
	}
	charge := int64(len(text)) + int64(len(records))*RecordOverhead
	if charge > most-int64(len(magic)) {
		return nil, ErrTooLarge
	}
	if charge > most-s.used() {
		return nil, ErrFull
	}
	seg, from, err := s.append(text)
	if err != nil {
		return nil, err
	}
	seg.records += len(records)
	for i, r := range records {
		refs[i].segment, refs[i].offset = seg, refs[i].offset+from
		s.note(seg, r.Group)
	}
	return refs, nil
}

// append writes to the newest segment, and begins a new one if it has to.
func (s *Spool) append(text []byte) (seg *segment, from int64, err error) {
	if n := len(s.segments); n > 0 && s.segments[n-1].size+int64(len(text)) <= max(s.cfg.SegmentBytes, int64(len(magic)+len(text))) {
		seg = s.segments[n-1]
	} else if seg, err = s.begin(); err != nil {
		return nil, 0, err
	}
	from = seg.size
	if _, err := seg.file.WriteAt(text, from); err != nil {
		// A part of the records must not stay before later ones.
		if cut := seg.file.Truncate(from); cut != nil {
			s.failed = errors.Join(err, cut)
		}
		return nil, 0, err
	}
	seg.size += int64(len(text))
	s.written++
	return seg, from, nil
}

// begin begins a new segment. What the one before has is durable then.
func (s *Spool) begin() (*segment, error) {
	if n := len(s.segments); n > 0 {
		if err := s.segments[n-1].file.Sync(); err != nil {
			s.failed = err
			return nil, err
		}
		s.synced = s.written
	} else if err := s.makeDir(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(s.dir, fileName(s.next)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	seg := &segment{number: s.next, file: file, size: int64(len(magic))}
	s.next++
	if _, err = file.WriteAt([]byte(magic), 0); err == nil {
		err = errors.Join(file.Sync(), syncDir(s.dir))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	s.segments = append(s.segments, seg)
	return seg, nil
}

// makeDir makes the directory of the spool.
func (s *Spool) makeDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.dir))
}

// note notes that a group has a record in a segment.
func (s *Spool) note(seg *segment, group uint64) {
	if list := s.groups[group]; len(list) == 0 || list[len(list)-1] != seg {
		s.groups[group] = append(list, seg)
		seg.live++
	}
}

// Sync returns when everything that was written before is durable. After an error nothing
// can be written until the spool is opened again: the contents of the disk are unknown.
func (s *Spool) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	target := s.written
	for s.synced < target && s.failed == nil {
		if s.syncing {
			s.idle.Wait()
			continue
		}
		s.syncing = true
		upTo, file := s.written, s.segments[len(s.segments)-1].file
		s.mu.Unlock()
		err := file.Sync()
		s.mu.Lock()
		s.syncing = false
		s.idle.Broadcast()
		if err != nil {
			s.failed = err
		} else {
			s.synced = max(s.synced, upTo)
		}
	}
	if s.synced >= target {
		return nil
	}
	return s.failed
}

// Read returns the data of a record.
func (s *Spool) Read(ref RecordRef) ([]byte, error) {
	text := make([]byte, ref.size)
	if _, err := ref.segment.file.ReadAt(text, ref.offset); err != nil {
		return nil, err
	}
	body, err := checkRecord(text)
	if err != nil {
		return nil, fmt.Errorf("%s at byte %d: %w", fileName(ref.segment.number), ref.offset, err)
	}
	_, _, data, err := parseBody(body)
	return data, err
}

// Drop drops a group. After an error, which is that of the file system, the group may still
// be there.
func (s *Spool) Drop(group uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, known := s.groups[group]
	if !known {
		return nil
	}
	if s.failed != nil {
		return s.failed
	}
	// A single file disappears with all of its records at once.
	if len(s.groups) > 1 || len(s.segments) > 1 {
		seg, _, err := s.append(appendRecord(nil, group, kindDrop, nil))
		if err != nil {
			return err
		}
		seg.records++
	}
	for _, seg := range list {
		seg.live--
	}
	delete(s.groups, group)
	return s.reclaim()
}

// reclaim removes segments whose groups are dropped, the oldest first.
func (s *Spool) reclaim() error {
	for len(s.segments) > 0 && s.segments[0].live == 0 && s.failed == nil {
		if s.syncing { // the file is in use, and may get further records meanwhile
			s.idle.Wait()
			continue
		}
		if len(s.segments) > 1 {
			// Before a part of a group disappears, the end of the group is durable.
			if err := s.segments[len(s.segments)-1].file.Sync(); err != nil {
				s.failed = err
				return err
			}
		}
		s.synced = s.written
		seg := s.segments[0]
		s.segments = s.segments[1:]
		path := filepath.Join(s.dir, fileName(seg.number))
		err := seg.file.Close()
		if seg.damaged {
			err = errors.Join(err, os.Rename(path, path+".damaged"))
		} else {
			err = errors.Join(err, os.Remove(path))
		}
		if err = errors.Join(err, syncDir(s.dir)); err != nil {
			return err
		}
	}
	return nil
}

// used returns what counts against the bound.
func (s *Spool) used() (bytes int64) {
	for _, seg := range s.segments {
		bytes += seg.charge()
	}
	return bytes
}

// Used returns what counts against [Config.MaxBytes].
func (s *Spool) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used()
}

// Err returns why nothing can be written until the spool is opened again, or nil.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Crowded reports whether more than half of the bound is used.
func (s *Spool) Crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used() > s.cfg.MaxBytes/2
}

// Oldest returns the groups that keep the oldest segment from being removed.
func (s *Spool) Oldest() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) == 0 {
		return nil
	}
	var list []uint64
	for group, segments := range s.groups {
		if segments[0] == s.segments[0] {
			list = append(list, group)
		}
	}
	slices.Sort(list)
	return list
}

// Close closes the files. Nothing may be written or read afterwards.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = cmp.Or(s.failed, fs.ErrClosed)
	var err error
	for _, seg := range s.segments {
		if seg.file != nil {
			err = errors.Join(err, seg.file.Close())
		}
	}
	s.segments = nil
	return err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
