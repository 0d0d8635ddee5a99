package storefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// HeadsFile is the name of the file in which a store notes how far its sessions are
// durable. It is in the store's directory and outside of Pebble, so it reveals losses
// inside Pebble. Its format, with integers in big-endian order:
//
//	header (256B)  "sajou.heads\n" | version (1B, =1) | zeroes
//	cell (256B)    one for each session, in the order of their first notes
//
// A cell, which no disk sector divides, is
//
//	CRC (4B) | session number (4B) | length of the name (1B) | name (at most 119B) | slot | slot
//
// with the CRC-32C over the 124 bytes behind it, and a slot
//
//	CRC (4B) | Seq (8B) | hash (32B) | zeroes (20B)
//
// with the CRC-32C over the session number and the 60 bytes behind it. A note
// overwrites the slot with the smaller Seq, so the other slot survives a torn write.
// A longer name is truncated. A cell of zeroes was lost to a power cut.
const HeadsFile = "HEADS"

// The layout of a file of noted heads.
const (
	headsMagic   = "sajou.heads\n"
	HeadsVersion = 1

	HeadsCellSize = 256 // also the size of the header
	HeadsSlotSize = 64
	HeadsSlotsAt  = 128 // offset of the first slot in a cell
	nameInCell    = HeadsSlotsAt - 9
)

// HeadsHeader returns the header of a file of noted heads.
func HeadsHeader() []byte {
	b := make([]byte, HeadsCellSize)
	b[copy(b, headsMagic)] = HeadsVersion
	return b
}

// AppendHeadsCell appends the cell of a session with a note in its first slot.
func AppendHeadsCell(dst []byte, number uint32, name string, head chain.Head) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, HeadsCellSize)...)
	b := dst[at:]
	binary.BigEndian.PutUint32(b[4:], number)
	b[8] = byte(len(name))
	copy(b[9:HeadsSlotsAt], name)
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:HeadsSlotsAt], castagnoli))
	PutHeadsSlot(b[HeadsSlotsAt:], number, head)
	return dst
}

// PutHeadsSlot writes a note into the slot at the beginning of b.
func PutHeadsSlot(b []byte, number uint32, head chain.Head) {
	b = b[:HeadsSlotSize]
	clear(b)
	binary.BigEndian.PutUint64(b[4:], uint64(head.Seq))
	copy(b[12:], head.Hash[:])
	binary.BigEndian.PutUint32(b, slotCRC(b, number))
}

func slotCRC(slot []byte, number uint32) uint32 {
	crc := crc32.Checksum(binary.BigEndian.AppendUint32(nil, number), castagnoli)
	return crc32.Update(crc, castagnoli, slot[4:HeadsSlotSize])
}

// readSlot reads a slot; ok is false when it is empty or damaged.
func readSlot(b []byte, number uint32) (head chain.Head, ok bool) {
	if binary.BigEndian.Uint32(b) != slotCRC(b, number) {
		return chain.Head{}, false
	}
	return chain.Head{Seq: chain.Seq(binary.BigEndian.Uint64(b[4:])), Hash: chain.Hash(b[12:44])}, true
}

// NotedHead is one cell of the file.
type NotedHead struct {
	Number uint32
	Name   string // perhaps truncated
	Head   chain.Head
	older  int // the slot to write next
}

// Named reports whether a session of that name can be the noted one.
func (n *NotedHead) Named(name string) bool {
	return name == n.Name || len(n.Name) == nameInCell && len(name) > nameInCell && name[:nameInCell] == n.Name
}

// IsWhole reports whether Name is certainly not truncated.
func (n *NotedHead) IsWhole() bool { return len(n.Name) < nameInCell }

// readCell reads a cell. damaged says that some of its bytes have changed since they
// were written; the cell may still hold a valid note.
func readCell(b []byte) (n NotedHead, ok, damaged bool) {
	if binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:HeadsSlotsAt], castagnoli) {
		return n, false, !zeroes(b)
	}
	n.Number = binary.BigEndian.Uint32(b[4:])
	n.Name = string(b[9:min(9+int(b[8]), HeadsSlotsAt)])
	for i := range 2 {
		slot := b[HeadsSlotsAt+i*HeadsSlotSize:][:HeadsSlotSize]
		head, valid := readSlot(slot, n.Number)
		damaged = damaged || !valid && !zeroes(slot)
		if valid && (!ok || head.Seq > n.Head.Seq) {
			n.Head, n.older, ok = head, 1-i, true
		}
	}
	return n, ok, damaged || !ok
}

// ReadHeads reads a file of noted heads and calls f for each of its cells, with the
// cell's index. damage describes the damage of the file, and is empty for an intact
// one. The error is an [fs.ErrNotExist] for a file that does not exist and a
// [chain.ErrVersion] for one of a newer version.
func ReadHeads(disk vfs.FS, path string, f func(index int, n NotedHead)) (damage string, err error) {
	file, err := disk.Open(path)
	if err != nil {
		return "", fmt.Errorf("eventlog: read the noted heads: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return decodeHeads(file, f)
}

// decodeHeads is [ReadHeads] for a reader.
func decodeHeads(r io.Reader, f func(index int, n NotedHead)) (damage string, err error) {
	var cell [HeadsCellSize]byte
	switch n, err := io.ReadFull(r, cell[:]); {
	case err == io.EOF:
		return "it is empty", nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return "", fmt.Errorf("eventlog: read the noted heads: %w", err)
	case n <= len(headsMagic) || string(cell[:len(headsMagic)]) != headsMagic:
		return "its header is not that of a file of noted heads", nil
	case cell[len(headsMagic)] != HeadsVersion:
		return "", fmt.Errorf("%w: the noted heads have version %d, this program reads %d", chain.ErrVersion, cell[len(headsMagic)], HeadsVersion)
	case n < HeadsCellSize || !zeroes(cell[len(headsMagic)+1:]):
		damage = "its header is damaged"
	}
	for index := 0; ; index++ {
		n, err := io.ReadFull(r, cell[:])
		switch {
		case err == io.EOF:
			return damage, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Sprintf("it ends within cell %d, after %d bytes of it", index+1, n), nil
		case err != nil:
			return damage, fmt.Errorf("eventlog: read the noted heads: %w", err)
		}
		noted, ok, damaged := readCell(cell[:])
		if damaged && damage == "" {
			damage = fmt.Sprintf("cell %d is damaged", index+1)
		}
		if ok {
			f(index, noted)
		}
	}
}
