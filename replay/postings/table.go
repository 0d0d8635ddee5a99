package postings

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Table is an open table. It is safe for concurrent use.
type Table struct {
	file     io.ReaderAt
	closer   io.Closer
	size     int64
	segments []segment

	mu  sync.Mutex    // guards dec
	dec *zstd.Decoder // made when the first chunk is read
}

// segment is the directory of one segment.
type segment struct {
	after  eventlog.Seq  // the last entry of the segment before
	head   eventlog.Head // the last entry
	offset int64         // of the segment
	end    int64
	pages  []item
	chunks []item
	full   bool // so large that it stays when the table is continued
}

// item is a page or a chunk.
type item struct {
	of     uint64 // the first key, or the last entry
	offset int64
	length uint32
	sum    uint64
}

// Open opens the table in a file. The error wraps [ErrDamaged] for anything that is not a
// whole table of that identity, or is that of reading.
func Open(path string, id Identity) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("postings: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("postings: %w", closeAfter(f, err))
	}
	if !info.Mode().IsRegular() {
		return nil, closeAfter(f, fmt.Errorf("%w: %s is not a regular file", ErrDamaged, path))
	}
	t, err := openReader(f, info.Size(), id)
	if err != nil {
		return nil, closeAfter(f, fmt.Errorf("%s: %w", path, err))
	}
	t.closer = f
	return t, nil
}

func closeAfter(c io.Closer, err error) error {
	_ = c.Close() // it was only read
	return err
}

func openReader(file io.ReaderAt, size int64, id Identity) (*Table, error) {
	t := &Table{file: file, size: size}
	want := header(id)
	have, err := t.read(0, len(want))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(have, want) {
		return nil, fmt.Errorf("%w: it is of something else", ErrDamaged)
	}
	after := eventlog.Seq(0)
	for offset := int64(len(want)); offset < size; {
		s, err := t.segment(offset, after)
		if err != nil {
			return nil, err
		}
		t.segments = append(t.segments, s)
		offset, after = s.end, s.head.Seq
	}
	return t, nil
}

// read returns bytes of the file. The length is checked against the size of the file
// before anything is allocated.
func (t *Table) read(offset int64, n int) ([]byte, error) {
	if offset < 0 || n < 0 || int64(n) > t.size-offset {
		return nil, fmt.Errorf("%w: it ends before byte %d", ErrDamaged, offset+int64(n))
	}
	b := make([]byte, n)
	if _, err := t.file.ReadAt(b, offset); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return b, nil
}

// segment reads the directory of a segment.
func (t *Table) segment(offset int64, after eventlog.Seq) (segment, error) {
	bad := func(what string) (segment, error) {
		return segment{}, fmt.Errorf("%w: segment at byte %d: %s", ErrDamaged, offset, what)
	}
	head, err := t.read(offset, segmentHeader)
	if err != nil {
		return segment{}, err
	}
	s := segment{offset: offset, after: eventlog.Seq(binary.BigEndian.Uint64(head))}
	s.head.Seq = eventlog.Seq(binary.BigEndian.Uint64(head[8:]))
	copy(s.head.Hash[:], head[16:])
	counts := head[16+eventlog.HashSize:]
	pages, chunks := int64(binary.BigEndian.Uint32(counts)), int64(binary.BigEndian.Uint32(counts[4:]))
	if s.after != after || s.head.Seq <= after {
		return bad("it does not follow the one before")
	}
	length := (pages + chunks) * int64(directoryItem)
	if length > t.size-offset {
		return bad("its directory is longer than the file")
	}
	directory, err := t.read(offset+int64(segmentHeader), int(length))
	if err != nil {
		return segment{}, err
	}
	if sumOf(head[:segmentHeader-8], directory) != binary.BigEndian.Uint64(head[segmentHeader-8:]) {
		return bad("its checksum is wrong")
	}
	s.end = offset + int64(segmentHeader) + length
	bodies := 0
	for i := range pages + chunks {
		b := directory[i*int64(directoryItem):]
		one := item{of: binary.BigEndian.Uint64(b), offset: s.end, length: binary.BigEndian.Uint32(b[8:]), sum: binary.BigEndian.Uint64(b[12:])}
		if s.end += int64(one.length); s.end > t.size {
			return bad("it ends behind the file")
		}
		list, most := &s.pages, uint32(maxPage)
		if i >= pages {
			list, most = &s.chunks, maxChunk
			bodies += int(one.length)
		}
		if one.length > most || len(*list) > 0 && one.of < (*list)[len(*list)-1].of {
			return bad("its directory is wrong")
		}
		*list = append(*list, one)
	}
	s.full = s.head.Seq-after >= segmentEntries || s.end-offset-int64(bodies) >= int64(segmentPostings) || bodies >= segmentBytes
	return s, nil
}

// Close closes the file.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dec != nil {
		t.dec.Close()
		t.dec = nil
	}
	if t.closer == nil {
		return nil
	}
	return t.closer.Close()
}

// Head returns the last entry that the table is about: Seq 0 if there is none.
func (t *Table) Head() eventlog.Head {
	if len(t.segments) == 0 {
		return eventlog.Head{}
	}
	return t.segments[len(t.segments)-1].head
}

// Seqs returns the entries at which a key occurs, up to the Head of the table, in order.
// A different key may have the same hash, so some of them can be wrong; none is missing.
func (t *Table) Seqs(key string) ([]eventlog.Seq, error) {
	var all []eventlog.Seq
	for i := range t.segments {
		var err error
		if all, err = t.seqs(all, &t.segments[i], keyOf(key)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Last returns the last entries up to one at which a key occurs, in order: most of them, or
// fewer if there are not so many. As those of [Table.Seqs], some can be wrong. It reads the
// segments from that entry backwards, and no more than it needs.
func (t *Table) Last(key string, upTo eventlog.Seq, most int) ([]eventlog.Seq, error) {
	var list []eventlog.Seq
	for i := range slices.Backward(t.segments) {
		if len(list) >= most {
			break
		}
		s := &t.segments[i]
		if s.after >= upTo {
			continue
		}
		here, err := t.seqs(nil, s, keyOf(key))
		if err != nil {
			return nil, err
		}
		if n, found := slices.BinarySearch(here, upTo); found {
			here = here[:n+1]
		} else {
			here = here[:n]
		}
		list = slices.Concat(here, list)
	}
	return list[max(0, len(list)-most):], nil
}

// seqs appends the entries of a key in a segment.
func (t *Table) seqs(all []eventlog.Seq, s *segment, key uint64) ([]eventlog.Seq, error) {
	// The key may begin at the end of the page before the first that begins with it.
	first := max(0, sort.Search(len(s.pages), func(i int) bool { return s.pages[i].of >= key })-1)
	for _, p := range s.pages[first:] {
		if p.of > key {
			break
		}
		page, err := t.item(p)
		if err != nil {
			return nil, err
		}
		if all, err = s.find(all, page, key); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// item reads a page or a chunk.
func (t *Table) item(of item) ([]byte, error) {
	b, err := t.read(of.offset, int(of.length))
	if err == nil && xxhash.Sum64(b) != of.sum {
		err = fmt.Errorf("%w: the checksum at byte %d is wrong", ErrDamaged, of.offset)
	}
	return b, err
}

// find appends the entries of a key in a page.
func (s *segment) find(all []eventlog.Seq, page []byte, key uint64) ([]eventlog.Seq, error) {
	bad := fmt.Errorf("%w: a page has no such form", ErrDamaged)
	for len(page) > 0 {
		if len(page) < 8 {
			return nil, bad
		}
		k := binary.BigEndian.Uint64(page)
		page = page[8:]
		count, n := binary.Uvarint(page)
		if n <= 0 || count > groupEntries {
			return nil, bad
		}
		page = page[n:]
		seq := s.after
		for range count {
			more, n := binary.Uvarint(page)
			if n <= 0 || more > uint64(s.head.Seq-seq) {
				return nil, bad
			}
			page, seq = page[n:], seq+eventlog.Seq(more)
			if k == key {
				all = append(all, seq)
			}
		}
		if k > key {
			break
		}
	}
	return all, nil
}

// ChunkBefore returns the chunk that ends last at or before an entry, with the entries
// that it is about: those behind after, up to to. It returns nil if there is none.
func (t *Table) ChunkBefore(seq eventlog.Seq) (data []byte, after, to eventlog.Seq, err error) {
	for i := range slices.Backward(t.segments) {
		s := &t.segments[i]
		n := sort.Search(len(s.chunks), func(i int) bool { return eventlog.Seq(s.chunks[i].of) > seq })
		if n == 0 {
			continue
		}
		after = s.after
		if n > 1 {
			after = eventlog.Seq(s.chunks[n-2].of)
		}
		to = eventlog.Seq(s.chunks[n-1].of)
		data, err = t.chunk(s.chunks[n-1])
		return data, after, to, err
	}
	return nil, 0, 0, nil
}

func (t *Table) chunk(of item) ([]byte, error) {
	b, err := t.item(of)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dec == nil {
		// One goroutine at a time decodes, in its own goroutine.
		if t.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxChunk)); err != nil {
			return nil, fmt.Errorf("postings: %w", err)
		}
	}
	data, err := t.dec.DecodeAll(b, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: chunk at byte %d: %w", ErrDamaged, of.offset, err)
	}
	return data, nil
}
