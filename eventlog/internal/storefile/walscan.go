package storefile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// This file reads the files of Pebble's write-ahead log as they are on the disk.
// Pebble stops at the first chunk that it cannot read and assumes that the bytes
// behind it were never synced, unless a later block proves the opposite. This scan
// examines every byte behind that place.
//
// A file is a run of blocks of 32 KiB. A block holds chunks, and a record is one
// chunk or several:
//
//	| CRC (4B) | length (2B) | type (1B) | log number (4B) | synced (8B) | payload |
//
// The oldest format has neither log number nor synced, the second has no synced.
// Integers are little-endian; the CRC covers everything behind the length.
// synced is the offset up to which the file had been synced when the chunk was
// written: a valid chunk proves that all bytes before its synced were durable.

const (
	walBlock = 32 << 10

	// walRecordLimit bounds the bytes kept of one record. A longer record is checked,
	// and its payload is not passed to the visitor.
	walRecordLimit = 64 << 20

	// walSearchLimit bounds the bytes of one block that the search behind a broken
	// place hashes, so that crafted bytes cannot slow it down. Chunks that Pebble
	// wrote need one block.
	walSearchLimit = 32 * walBlock
)

// walCRC is the checksum of a chunk: a CRC-32C, rotated as LevelDB does.
func walCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// WALScan is the result of scanning one file of the write-ahead log.
type WALScan struct {
	End    int64 // offset behind the last record of the intact beginning
	Closed bool  // the mark that Pebble writes at the end of a finished file is at End

	Hole bool // the visitor refused the record behind End

	Behind   int64 // offset of the first valid chunk behind End that does not continue it; -1: none
	Promised int64 // the greatest synced of the valid chunks behind End
}

// Rotten reports whether bytes that had been synced cannot be read.
func (s *WALScan) Rotten() bool { return s.Promised > s.End }

// WALVisit receives a record: where it begins and its payload, nil when that is
// longer than walRecordLimit. The payload is valid during the call. intact says
// that the record belongs to the intact beginning; false ends that beginning in
// front of the record.
type WALVisit func(offset int64, payload []byte, intact bool) bool

// chunk is one chunk of a block.
type chunk struct {
	size        int // with its header
	payload     []byte
	first, last bool
	synced      int64 // 0 for the formats without it
	hashed      int   // bytes hashed to check the chunk
}

// chunkAt reads the chunk at the beginning of b. With strict, it rejects chunks of
// the oldest format, which carry no log number.
func chunkAt(b []byte, number uint32, strict bool) (c chunk, ok bool) {
	if len(b) < 7 {
		return c, false
	}
	header, kind := 7, int(b[6])
	switch {
	case kind >= 1 && kind <= 4 && !strict:
	case kind >= 5 && kind <= 8:
		header = 11
	case kind >= 9 && kind <= 12:
		header = 19
	default:
		return c, false
	}
	c.size = header + int(binary.LittleEndian.Uint16(b[4:]))
	if c.size > len(b) || header > 7 && binary.LittleEndian.Uint32(b[7:]) != number {
		return c, false
	}
	c.hashed = c.size
	if binary.LittleEndian.Uint32(b) != walCRC(b[6:c.size]) {
		return c, false
	}
	if header == 19 {
		c.synced = int64(min(binary.LittleEndian.Uint64(b[11:]), 1<<62))
	}
	switch (kind - 1) % 4 {
	case 0:
		c.first, c.last = true, true
	case 1:
		c.first = true
	case 3:
		c.last = true
	}
	c.payload = b[header:c.size]
	return c, true
}

// walMark reports whether b begins with the mark of a finished file: a header
// without payload, of the log number behind this one.
func walMark(b []byte, number uint32) bool {
	return len(b) >= 11 && binary.LittleEndian.Uint32(b) == 0 && binary.LittleEndian.Uint16(b[4:]) == 0 &&
		b[6] == 5 && binary.LittleEndian.Uint32(b[7:]) == number+1
}

// zeroes reports whether every byte of b is zero.
func zeroes(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// walScanner is the state of one scan.
type walScanner struct {
	number uint32
	visit  WALVisit
	scan   WALScan
	broken bool // behind the intact beginning

	record []byte // payload so far of the record being read
	start  int64  // offset of that record
	inside bool   // a record is being read
	long   bool   // that record exceeds walRecordLimit
}

// ScanWAL reads one file of the write-ahead log. Errors are those of r.
func ScanWAL(r io.Reader, number uint64, visit WALVisit) (WALScan, error) {
	s := &walScanner{number: uint32(number), visit: visit, scan: WALScan{Behind: -1}}
	block := make([]byte, walBlock)
	for base := int64(0); ; base += walBlock {
		n, err := io.ReadFull(r, block)
		if n > 0 {
			s.block(block[:n], base)
		}
		switch {
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return s.scan, nil
		case err != nil:
			return s.scan, err
		}
	}
}

func (s *walScanner) block(b []byte, base int64) {
	search := walSearchLimit
	for pos := 0; len(b)-pos >= 7; {
		rest, at := b[pos:], base+int64(pos)
		c, ok := chunkAt(rest, s.number, s.broken)
		switch {
		case ok:
			s.take(c, at)
			pos += c.size
		case s.broken:
			if search -= c.hashed; search < 0 {
				return
			}
			pos++
		case len(rest) < 19 && zeroes(rest):
			return // no chunk fits into the rest of the block
		default:
			s.scan.Closed = !s.inside && walMark(rest, s.number)
			s.breakOff()
			if s.scan.Closed {
				pos += 11
			}
		}
	}
}

// breakOff ends the intact beginning.
func (s *walScanner) breakOff() { s.broken, s.inside = true, false }

// take processes a valid chunk.
func (s *walScanner) take(c chunk, at int64) {
	if c.first == s.inside {
		// The chunk does not continue the one before it.
		s.breakOff()
	}
	if s.broken {
		if s.scan.Behind < 0 {
			s.scan.Behind = at
		}
		s.scan.Promised = max(s.scan.Promised, c.synced)
		if !c.first && !s.inside {
			return // the rest of a record whose beginning is lost
		}
	}
	if c.first {
		s.record, s.start, s.long = s.record[:0], at, false
	}
	if s.inside = !c.last; len(s.record)+len(c.payload) > walRecordLimit {
		s.long = true
	} else if !s.long {
		s.record = append(s.record, c.payload...)
	}
	if !c.last {
		return
	}
	payload := s.record
	if s.long {
		payload = nil
	}
	if !s.visit(s.start, payload, !s.broken) && !s.broken {
		s.breakOff()
		s.scan.Behind, s.scan.Hole = s.start, true
	}
	if !s.broken {
		s.scan.End = at + int64(c.size)
	}
}
