package chain_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// The header of a batch has a version, a first Seq and a count, each number in its shortest
// form; what differs is refused with the part that is wrong.
func TestOpenBatchRefuses(t *testing.T) {
	const version, first, count = "eventlog: unknown format version: batch has version %d, this program reads 1", "eventlog: corrupt: batch has no valid first Seq", "eventlog: corrupt: batch has no valid count"
	header := func(first, count uint64) []byte {
		return binary.AppendUvarint(binary.AppendUvarint([]byte{1}, first), count)
	}
	for _, tt := range []struct {
		b    []byte
		want string // "" for none
	}{
		{nil, "eventlog: corrupt: batch is empty"},
		{[]byte{0, 1, 1}, strings.Replace(version, "%d", "0", 1)},
		{[]byte{2, 1, 1}, strings.Replace(version, "%d", "2", 1)},
		{[]byte{1}, first},
		{[]byte{1, 0, 1}, first},
		{[]byte{1, 0x80}, first},
		{[]byte{1, 0x81, 0x00, 1}, first},
		{[]byte{1, 0x80, 0x80, 0x00, 1}, first},
		{append([]byte{1}, bytes.Repeat([]byte{0xff}, 11)...), first},
		{[]byte{1, 1}, count},
		{[]byte{1, 1, 0}, count},
		{[]byte{1, 1, 0x81}, count},
		{[]byte{1, 1, 0x81, 0x00}, count},
		{header(1, 1), ""},
		{header(127, 127), ""},
		{header(128, 128), ""},
		{header(1, chain.MaxBatchEntries), ""},
		{header(1, chain.MaxBatchEntries+1), count},
		{header(math.MaxUint64, 1), "eventlog: corrupt: batch runs past the last Seq"},
		{header(math.MaxUint64-1, 1), ""},
		{header(math.MaxUint64-5, 5), ""},
		{header(math.MaxUint64-5, 6), "eventlog: corrupt: batch runs past the last Seq"},
	} {
		s, err := chain.OpenBatch(append(bytes.Clone(tt.b), "rest"...)[:len(tt.b)])
		if tt.want != "" {
			require.EqualError(t, err, tt.want, "%x", tt.b)
			assert.Equal(t, chain.Sealed{}, s)
			continue
		}
		require.NoError(t, err, "%x", tt.b)
		assert.Equal(t, tt.b, header(uint64(s.First), uint64(s.Count)))
		assert.Empty(t, s.Rest)
	}
}

// A link has a length and as many bytes as that, and then a hash.
func TestNextRefuses(t *testing.T) {
	hash := bytes.Repeat([]byte{7}, chain.HashSize)
	for _, tt := range []struct {
		rest []byte
		want string
	}{
		{nil, "eventlog: corrupt: entry has no valid length"},
		{[]byte{0x80}, "eventlog: corrupt: entry has no valid length"},
		{append(bytes.Repeat([]byte{0xff}, 10), hash...), "eventlog: corrupt: entry has no valid length"},
		{[]byte{3}, "eventlog: corrupt: entry claims 3 bytes, the batch has 0 left"},
		{append([]byte{0}, hash[1:]...), "eventlog: corrupt: entry claims 0 bytes, the batch has 31 left"},
		{append([]byte{1}, hash...), "eventlog: corrupt: entry claims 1 bytes, the batch has 32 left"},
		{append([]byte{3, 'a', 'b'}, hash...), "eventlog: corrupt: entry claims 3 bytes, the batch has 34 left"},
		{append(binary.AppendUvarint(nil, math.MaxUint64), hash...), "eventlog: corrupt: entry claims 18446744073709551615 bytes, the batch has 32 left"},
		{append(append([]byte{0}, hash...), "more"...), ""},
		{append(append([]byte{2, 'a', 'b'}, hash...), "more"...), ""},
	} {
		s := chain.Sealed{First: 5, Count: 9, Rest: tt.rest}
		stored, body, h, err := s.Next()
		if tt.want != "" {
			require.EqualError(t, err, tt.want, "%x", tt.rest)
			assert.Equal(t, tt.rest, s.Rest, "nothing was taken")
			assert.Nil(t, stored)
			assert.Nil(t, body)
			assert.Nil(t, h)
			continue
		}
		require.NoError(t, err, "%x", tt.rest)
		n := int(tt.rest[0])
		assert.Equal(t, tt.rest[:1+n], stored)
		assert.Equal(t, tt.rest[1:1+n], body)
		assert.Equal(t, hash, h[:])
		assert.Equal(t, "more", string(s.Rest))
		assert.Equal(t, len(stored), cap(stored))
		assert.Equal(t, len(body), cap(body))
	}
}

// A body is an array of a kind, a time, a key or nil, and data.
func TestDecodeBodyRefuses(t *testing.T) {
	const (
		array = "eventlog: corrupt: body is not an array of four"
		kind  = "eventlog: corrupt: body has no valid kind"
		time  = "eventlog: corrupt: body has no valid time"
		key   = "eventlog: corrupt: body has no valid key"
		data  = "eventlog: corrupt: body has no data"
	)
	long := func(n int) []byte {
		return append([]byte{0x94, 1, 0, 0xda, byte(n >> 8), byte(n)}, strings.Repeat("k", n)...)
	}
	for _, tt := range []struct {
		body []byte
		want string
	}{
		{nil, array},
		{[]byte{0x93, 1, 0, 0xc0, 0xc0}, array},
		{[]byte{0x95, 1, 0, 0xc0, 0xc0}, array},
		{[]byte{0x84, 1, 0, 0xc0, 0xc0}, array},
		{[]byte{0x94}, kind},
		{[]byte{0x94, 0, 0, 0xc0, 0xc0}, kind},
		{[]byte{0x94, 6, 0, 0xc0, 0xc0}, kind},
		{[]byte{0x94, 0xff, 0, 0xc0, 0xc0}, kind},
		{[]byte{0x94, 0xcd, 1, 1, 0, 0xc0, 0xc0}, kind},
		{[]byte{0x94, 1}, time},
		{[]byte{0x94, 1, 0xff, 0xc0, 0xc0}, time},
		{[]byte{0x94, 1, 0xc0, 0xc0, 0xc0}, time},
		{[]byte{0x94, 1, 0}, key},
		{[]byte{0x94, 1, 0, 7, 0xc0}, key},
		{[]byte{0x94, 1, 0, 0xa2, 'k'}, key},
		{append(long(256), 0xc0), key},
		{[]byte{0x94, 1, 0, 0xc0}, data},
		{[]byte{0x94, 1, 0, 0xa1, 'k'}, data},
		{[]byte{0x94, 1, 0, 0xc0, 0xc0}, ""},
		{[]byte{0x94, 5, 127, 0xa1, 'k', 1, 2}, ""},
		{append(long(255), 0xc0), ""},
	} {
		e := chain.Entry{Seq: 3, Key: "before"}
		err := chain.DecodeBody(&e, tt.body)
		if tt.want != "" {
			require.EqualError(t, err, tt.want, "%x", tt.body)
			continue
		}
		require.NoError(t, err, "%x", tt.body)
		assert.Equal(t, chain.Seq(3), e.Seq)
		assert.Equal(t, tt.body, e.Body)
		assert.Equal(t, chain.Kind(tt.body[1]), e.Kind)
		assert.Equal(t, int64(tt.body[2]), int64(e.At))
		assert.Equal(t, tt.body, append(append(bytes.Clone(tt.body[:3]), keyBytes(e.Key, tt.body[3])...), e.Data...))
	}
}

// keyBytes is a key as a body has it, after its first byte.
func keyBytes(key string, first byte) []byte {
	switch first {
	case 0xc0:
		return []byte{0xc0}
	case 0xda:
		return append([]byte{0xda, 0, byte(len(key))}, key...)
	default:
		return append([]byte{0xa0 | byte(len(key))}, key...)
	}
}

// A batch takes no more than the bounds that are counted before it is sealed, which are those
// of the greatest numbers.
func TestSealedBounds(t *testing.T) {
	assert.Equal(t, 1+3*10+32, chain.MaxBatchOverhead)
	assert.Equal(t, 14, chain.MaxBodyOverhead)
	d := chain.Draft{Kind: chain.KindSession, At: math.MaxInt64, Data: []byte{0xc0}}
	key := strings.Repeat("k", chain.MaxKey)
	assert.Len(t, chain.AppendBody(nil, &d, key), chain.MaxBodyOverhead+len(key)+1-1, "one byte less: the header of the longest key takes two")
	assert.Len(t, chain.AppendBody(nil, &d, ""), 1+1+9+1+1)
	for n := range 4 {
		drafts := make([]chain.Draft, n)
		for i := range drafts {
			drafts[i].Data = make([]byte, 10*i)
		}
		want := chain.MaxBatchOverhead + 3
		for i := range drafts {
			want += 5 + chain.MaxBodyOverhead + 10*i + chain.HashSize
		}
		assert.Equal(t, want, chain.SealedSize(drafts, "key"))
	}
}

// A name that no session can have is refused with the reason.
func TestCheckNameRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"":                       "eventlog: invalid: a session name must not be empty",
		strings.Repeat("é", 128): "eventlog: invalid: session name has 256 bytes, at most 255 are allowed",
		"a\xff":                  `eventlog: invalid: session name "a\xff" is not UTF-8`,
		"a\nb":                   `eventlog: invalid: session name "a\nb" holds the unprintable character U+000A`,
		"a\u00a0b":               `eventlog: invalid: session name "a\u00a0b" holds the unprintable character U+00A0`,
		"a b é 🎭":                "",
		strings.Repeat("n", 255): "",
	} {
		err := chain.CheckName(name)
		if want == "" {
			require.NoError(t, err, "%q", name)
		} else {
			require.EqualError(t, err, want)
			require.ErrorIs(t, err, chain.ErrInvalid)
		}
	}
}

// The hash of a link is that of the two parts in a row, however long they are.
func TestLinkLengths(t *testing.T) {
	prev := chain.Genesis("a")
	for _, n := range []int{0, 1, 990, 991, 992, 993, 994, 1023, 1024, 1025, 5000} {
		stored := bytes.Repeat([]byte{'x'}, n)
		assert.Equal(t, chain.LinkInPlace(append(prev[:], stored...)), chain.Link(prev, stored), "%d bytes", n)
	}
}
