package spool

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// magic begins a segment.
const magic = "sajouSP1"

// frameHead is the length of what stands before the body of a record.
const frameHead = 8

// The kinds of records.
const (
	kindData = 1
	kindDrop = 2 // the group is dropped
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errTorn    = errors.New("the record is not whole")
	errVersion = errors.New("the file is not a segment of a spool, or one of another version of the program")
)

// appendRecord appends a record.
func appendRecord(dst []byte, group uint64, kind byte, data []byte) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, frameHead)...)
	dst = append(binary.AppendUvarint(dst, group), kind)
	dst = append(dst, data...)
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(dst)-from-frameHead))
	binary.LittleEndian.PutUint32(dst[from+4:], checksum(dst[from:]))
	return dst
}

// checksum returns the checksum of a record.
func checksum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:4], castagnoli), castagnoli, record[frameHead:])
}

// checkRecord returns the body of a record.
func checkRecord(text []byte) ([]byte, error) {
	if len(text) < frameHead || uint64(binary.LittleEndian.Uint32(text)) != uint64(len(text)-frameHead) || binary.LittleEndian.Uint32(text[4:]) != checksum(text) {
		return nil, errTorn
	}
	return text[frameHead:], nil
}

// parseBody returns the parts of a body.
func parseBody(body []byte) (group uint64, kind byte, data []byte, err error) {
	group, n := binary.Uvarint(body)
	if n <= 0 || len(body) == n {
		return 0, 0, nil, errTorn
	}
	if kind = body[n]; kind != kindData && kind != kindDrop {
		return 0, 0, nil, errVersion
	}
	return group, kind, body[n+1:], nil
}

// read reads a segment up to the first record that is not whole. It returns the length of the
// file.
func (s *Spool) read(seg *segment, visit Visit) (length int64, err error) {
	info, err := seg.file.Stat()
	if err != nil {
		return 0, err
	}
	length = info.Size()
	in := bufio.NewReaderSize(seg.file, 256<<10)
	var head [len(magic)]byte
	n, err := io.ReadFull(in, head[:])
	switch {
	case err == nil && string(head[:]) == magic:
		seg.size = int64(len(magic))
	case err == nil && head != [len(magic)]byte{}:
		return 0, fmt.Errorf("%s: %w", seg.file.Name(), errVersion)
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return 0, err
	default:
		// The process ended before the first record was acknowledged.
		if _, err := seg.file.WriteAt([]byte(magic), 0); err != nil {
			return 0, err
		}
		seg.size = int64(len(magic))
		return max(length, int64(n)+1), nil
	}
	var text []byte
	for {
		text, err = nextRecord(in, text[:0], length-seg.size)
		if errors.Is(err, errTorn) {
			return length, nil
		}
		if err != nil || text == nil {
			return length, err
		}
		group, kind, data, err := parseBody(text[frameHead:])
		if err != nil {
			return length, fmt.Errorf("%s at byte %d: %w", seg.file.Name(), seg.size, err)
		}
		if kind == kindDrop {
			for _, other := range s.groups[group] {
				other.live--
			}
			delete(s.groups, group)
			err = visit(group, RecordRef{}, nil)
		} else {
			s.note(seg, group)
			err = visit(group, RecordRef{seg, seg.size, len(text)}, data)
		}
		if err != nil {
			return length, err
		}
		seg.size += int64(len(text))
		seg.records++
	}
}

// nextRecord reads a record of at most left bytes into dst. It returns nil at the end.
func nextRecord(in *bufio.Reader, dst []byte, left int64) ([]byte, error) {
	if left == 0 {
		return nil, nil
	}
	if left < frameHead {
		return nil, errTorn
	}
	dst = append(dst, make([]byte, frameHead)...)
	if _, err := io.ReadFull(in, dst); err != nil {
		return nil, torn(err)
	}
	size := int64(binary.LittleEndian.Uint32(dst))
	if size > left-frameHead {
		return nil, errTorn
	}
	dst = append(dst, make([]byte, size)...)
	if _, err := io.ReadFull(in, dst[frameHead:]); err != nil {
		return nil, torn(err)
	}
	if _, err := checkRecord(dst); err != nil {
		return nil, err
	}
	return dst, nil
}

// torn returns errTorn for the end of a file.
func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}
