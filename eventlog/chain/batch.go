package chain

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// batchVersion is the first byte of every sealed batch.
const batchVersion = 1

// MaxBatchOverhead bounds the bytes that a batch of one entry adds to its body.
const MaxBatchOverhead = 1 + 2*binary.MaxVarintLen64 + binary.MaxVarintLen64 + HashSize

// MaxBodyOverhead bounds the bytes that a body adds to its key and data: the
// array's header, the kind, the time and the header of the key.
const MaxBodyOverhead = 1 + 1 + 9 + 3

// SealedSize bounds the length of the batch that [AppendBatch] appends.
func SealedSize(drafts []Draft, key string) int {
	size := MaxBatchOverhead + len(key)
	for i := range drafts {
		size += binary.MaxVarintLen32 + MaxBodyOverhead + len(drafts[i].Data) + HashSize
	}
	return size
}

// AppendBatch appends the sealed batch of drafts, which follow the entry at
// after, and returns the Head behind its last entry. The key stands on the first
// entry. The caller has checked the bounds; see [MaxKey] and [MaxBatchEntries].
func AppendBatch(dst []byte, after Head, drafts []Draft, key string) ([]byte, Head) {
	dst = append(dst, batchVersion)
	dst = binary.AppendUvarint(dst, uint64(after.Seq+1))
	dst = binary.AppendUvarint(dst, uint64(len(drafts)))
	for i := range drafts {
		dst, after.Hash = appendLink(dst, &drafts[i], key, after.Hash, i > 0)
		key = ""
	}
	after.Seq += Seq(len(drafts))
	return dst, after
}

// appendLink appends one link: the stored bytes of an entry, and the hash that
// chains them to prev. If inPlace is set, prev is the last hash of dst, as it is
// for every link of a batch but the first, and is not copied to be hashed.
func appendLink(dst []byte, d *Draft, key string, prev Hash, inPlace bool) ([]byte, Hash) {
	var scratch [MaxBodyOverhead + MaxKey]byte
	head := appendBodyHead(scratch[:0], d, key)
	start := len(dst)
	dst = binary.AppendUvarint(dst, uint64(len(head)+len(d.Data)))
	dst = append(dst, head...)
	dst = append(dst, d.Data...)
	var h Hash
	if inPlace {
		h = LinkInPlace(dst[start-HashSize:])
	} else {
		h = Link(prev, dst[start:])
	}
	return append(dst, h[:]...), h
}

// AppendBody appends the body of an entry, as [DecodeBody] reads it. The key is that of
// the batch if the entry is its first one, else empty; see [MaxKey].
func AppendBody(dst []byte, d *Draft, key string) []byte {
	return append(appendBodyHead(dst, d, key), d.Data...)
}

// appendBodyHead appends the part of a body in front of its data.
func appendBodyHead(dst []byte, d *Draft, key string) []byte {
	dst = msgp.AppendArrayHeader(dst, 4)
	dst = msgp.AppendUint8(dst, uint8(d.Kind))
	dst = msgp.AppendInt64(dst, int64(d.At))
	if key == "" {
		return msgp.AppendNil(dst)
	}
	return msgp.AppendString(dst, key)
}

// Sealed reads a sealed batch. It compares every length with the bytes that are
// present before it uses it.
type Sealed struct {
	First Seq    // of its first entry
	Count int    // of its entries, as the header says
	Rest  []byte // the links that [Sealed.Next] has not read yet
}

// uvarint is [binary.Uvarint] restricted to numbers in their shortest form. The
// header of a batch is not hashed, so it must have exactly one form.
func uvarint(b []byte) (uint64, int) {
	v, n := binary.Uvarint(b)
	if n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// OpenBatch reads the header of a sealed batch. Errors match [ErrVersion] or
// [ErrCorrupt].
func OpenBatch(b []byte) (Sealed, error) {
	if len(b) == 0 {
		return Sealed{}, fmt.Errorf("%w: batch is empty", ErrCorrupt)
	}
	if b[0] != batchVersion {
		return Sealed{}, fmt.Errorf("%w: batch has version %d, this program reads %d", ErrVersion, b[0], batchVersion)
	}
	b = b[1:]
	first, n := uvarint(b)
	if n <= 0 || first == 0 {
		return Sealed{}, fmt.Errorf("%w: batch has no valid first Seq", ErrCorrupt)
	}
	b = b[n:]
	count, n := uvarint(b)
	if n <= 0 || count == 0 || count > MaxBatchEntries {
		return Sealed{}, fmt.Errorf("%w: batch has no valid count", ErrCorrupt)
	}
	if first+count < first {
		return Sealed{}, fmt.Errorf("%w: batch runs past the last Seq", ErrCorrupt)
	}
	return Sealed{Seq(first), int(count), b[n:]}, nil
}

// Next takes the next link off the batch. stored is the hashed bytes, length and
// body; body is stored without the length. The slices are views of the batch.
func (s *Sealed) Next() (stored, body []byte, hash *Hash, err error) {
	size, n := binary.Uvarint(s.Rest)
	if n <= 0 {
		return nil, nil, nil, fmt.Errorf("%w: entry has no valid length", ErrCorrupt)
	}
	have := uint64(len(s.Rest) - n)
	if have < HashSize || size > have-HashSize {
		return nil, nil, nil, fmt.Errorf("%w: entry claims %d bytes, the batch has %d left", ErrCorrupt, size, have)
	}
	end := n + int(size)
	stored, body = s.Rest[:end:end], s.Rest[n:end:end]
	hash = (*Hash)(s.Rest[end : end+HashSize])
	s.Rest = s.Rest[end+HashSize:]
	return stored, body, hash, nil
}

// DecodeBody fills e's Kind, At, Key, Data and Body from the body of a link.
// The slices of e point into body.
func DecodeBody(e *Entry, body []byte) error {
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
