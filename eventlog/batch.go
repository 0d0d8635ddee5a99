package eventlog

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// batchVersion is the first byte of every sealed batch.
const batchVersion = 1

// maxBatchOverhead is what a batch adds to the body of its only entry.
const maxBatchOverhead = 1 + 2*binary.MaxVarintLen64 + binary.MaxVarintLen64 + HashSize

// maxBodyOverhead bounds what a body adds to its key and data: the array's
// header, the kind, the time and the header of the key.
const maxBodyOverhead = 1 + 1 + 9 + 3

// Batch is what one append writes: one or more entries, all or none.
type Batch struct {
	// Drafts are the entries in order. At least one.
	Drafts []Draft

	// Expect, unless zero, is the Head the session must have for the append
	// to happen.
	Expect Head

	// Key, unless empty, makes the append idempotent: when the session has
	// seen the key before, nothing is written and the first outcome is the
	// answer, whatever the drafts and Expect say now. At most [MaxKey] bytes.
	Key string

	// Fresh says that [Round.Repeat] has been asked for the key since the round
	// began, by the same function, and knew nothing: it is not asked again.
	Fresh bool
}

// sealedSize bounds the length of a sealed batch.
func sealedSize(b *Batch) int {
	size := maxBatchOverhead + len(b.Key)
	for i := range b.Drafts {
		size += binary.MaxVarintLen32 + maxBodyOverhead + len(b.Drafts[i].Data) + HashSize
	}
	return size
}

// sealHeader appends the header of a batch of count entries from seq on.
func sealHeader(dst []byte, first Seq, count int) []byte {
	dst = append(dst, batchVersion)
	dst = binary.AppendUvarint(dst, uint64(first))
	return binary.AppendUvarint(dst, uint64(count))
}

// sealEntry appends one link: the stored bytes of an entry, and the hash that
// chains them to prev. inPlace says that prev stands right at the end of dst,
// as it does behind every link of a batch, so that nothing need be copied to
// hash it.
func sealEntry(dst []byte, d *Draft, key string, prev Hash, inPlace bool) ([]byte, Hash) {
	var scratch [maxBodyOverhead + MaxKey]byte
	head := appendBodyHead(scratch[:0], d, key)
	start := len(dst)
	dst = binary.AppendUvarint(dst, uint64(len(head)+len(d.Data)))
	dst = append(dst, head...)
	dst = append(dst, d.Data...)
	var h Hash
	if inPlace {
		h = linkInPlace(dst[start-HashSize:])
	} else {
		h = Link(prev, dst[start:])
	}
	return append(dst, h[:]...), h
}

// appendBodyHead appends the part of a body that stands before its data.
func appendBodyHead(dst []byte, d *Draft, key string) []byte {
	dst = msgp.AppendArrayHeader(dst, 4)
	dst = msgp.AppendUint8(dst, uint8(d.Kind))
	dst = msgp.AppendInt64(dst, int64(d.At))
	if key == "" {
		return msgp.AppendNil(dst)
	}
	return msgp.AppendString(dst, key)
}

// sealed reads a sealed batch. It trusts no length: every one is compared
// with the bytes that are there.
type sealed struct {
	first Seq
	count int
	rest  []byte // the links that have not been read
}

// openBatch reads the header of a sealed batch.
func openBatch(b []byte) (sealed, error) {
	if len(b) == 0 {
		return sealed{}, fmt.Errorf("%w: batch is empty", ErrCorrupt)
	}
	if b[0] != batchVersion {
		return sealed{}, fmt.Errorf("%w: batch has version %d, this program reads %d", ErrVersion, b[0], batchVersion)
	}
	b = b[1:]
	first, n := binary.Uvarint(b)
	if n <= 0 || first == 0 {
		return sealed{}, fmt.Errorf("%w: batch has no valid first Seq", ErrCorrupt)
	}
	b = b[n:]
	count, n := binary.Uvarint(b)
	if n <= 0 || count == 0 || count > MaxBatchEntries {
		return sealed{}, fmt.Errorf("%w: batch has no valid count", ErrCorrupt)
	}
	if first+count < first {
		return sealed{}, fmt.Errorf("%w: batch runs past the last Seq", ErrCorrupt)
	}
	return sealed{Seq(first), int(count), b[n:]}, nil
}

// link takes the next link off the batch. stored is length and body, as
// hashed; body is the rest of stored behind the length.
func (s *sealed) link() (stored, body []byte, hash *Hash, err error) {
	size, n := binary.Uvarint(s.rest)
	if n <= 0 {
		return nil, nil, nil, fmt.Errorf("%w: entry has no valid length", ErrCorrupt)
	}
	have := uint64(len(s.rest) - n)
	if have < HashSize || size > have-HashSize {
		return nil, nil, nil, fmt.Errorf("%w: entry claims %d bytes, the batch has %d left", ErrCorrupt, size, have)
	}
	end := n + int(size)
	stored, body = s.rest[:end:end], s.rest[n:end:end]
	hash = (*Hash)(s.rest[end : end+HashSize])
	s.rest = s.rest[end+HashSize:]
	return stored, body, hash, nil
}

// decodeBody fills e's Kind, At, Key, Data and Body from the body of a link.
// The slices of e point into body.
func decodeBody(e *Entry, body []byte) error {
	// The fields stand in a fixed order, so each is read where it must be.
	n, b, err := msgp.ReadArrayHeaderBytes(body)
	if err != nil || n != 4 {
		return fmt.Errorf("%w: body is not an array of four", ErrCorrupt)
	}
	kind, b, err := msgp.ReadUint8Bytes(b)
	if err != nil || !Kind(kind).Valid() {
		return fmt.Errorf("%w: body has no valid kind", ErrCorrupt)
	}
	at, b, err := msgp.ReadInt64Bytes(b)
	if err != nil || at < 0 {
		return fmt.Errorf("%w: body has no valid time", ErrCorrupt)
	}
	e.Key = ""
	if msgp.IsNil(b) {
		b = b[1:]
	} else {
		var key []byte
		key, b, err = msgp.ReadStringZC(b)
		if err != nil || len(key) > MaxKey {
			return fmt.Errorf("%w: body has no valid key", ErrCorrupt)
		}
		e.Key = string(key)
	}
	if len(b) == 0 {
		return fmt.Errorf("%w: body has no data", ErrCorrupt)
	}
	e.Kind, e.At, e.Data, e.Body = Kind(kind), time.Duration(at), b, body
	return nil
}

// checkDrafts refuses what must never get into a log, before it is sealed.
func checkDrafts(b *Batch, cfg *Config, last time.Duration) error {
	if len(b.Drafts) == 0 {
		return fmt.Errorf("%w: a batch needs at least one entry", ErrInvalid)
	}
	if len(b.Drafts) > MaxBatchEntries {
		return fmt.Errorf("%w: batch has %d entries, at most %d are allowed", ErrTooLarge, len(b.Drafts), MaxBatchEntries)
	}
	if len(b.Key) > MaxKey {
		return fmt.Errorf("%w: idempotency key has %d bytes, at most %d are allowed", ErrTooLarge, len(b.Key), MaxKey)
	}
	total := 0
	for i := range b.Drafts {
		d := &b.Drafts[i]
		if !d.Kind.Valid() {
			return fmt.Errorf("%w: entry %d of the batch has no valid kind (%d)", ErrInvalid, i+1, d.Kind)
		}
		if d.At < last {
			return fmt.Errorf("%w: entry %d of the batch goes back in session time, from %v to %v", ErrInvalid, i+1, last, d.At)
		}
		last = d.At
		if rest, err := msgp.Skip(d.Data); err != nil || len(rest) != 0 {
			return fmt.Errorf("%w: entry %d of the batch does not hold one whole msgpack value", ErrInvalid, i+1)
		}
		if size := len(d.Data) + maxBodyOverhead + len(b.Key); size > cfg.MaxEntry {
			return fmt.Errorf("%w: entry %d of the batch takes %d bytes, at most %d are allowed", ErrTooLarge, i+1, size, cfg.MaxEntry)
		}
		total += len(d.Data) + maxBatchOverhead
	}
	if total > cfg.MaxBatch {
		return fmt.Errorf("%w: batch takes %d bytes, at most %d are allowed", ErrTooLarge, total, cfg.MaxBatch)
	}
	return nil
}
