package storefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// crcOf is the CRC-32C of some bytes, as the formats store it.
func crcOf(order binary.AppendByteOrder, parts ...[]byte) []byte {
	return order.AppendUint32(nil, crc32.Checksum(slices.Concat(parts...), crc32.MakeTable(crc32.Castagnoli)))
}

// slotBytes is a slot, written from the comment of the format alone.
func slotBytes(number uint32, head chain.Head) []byte {
	rest := slices.Concat(binary.BigEndian.AppendUint64(nil, uint64(head.Seq)), head.Hash[:], make([]byte, 20))
	return append(crcOf(binary.BigEndian, binary.BigEndian.AppendUint32(nil, number), rest), rest...)
}

// cellBytes is a cell, written from the comment of the format alone.
func cellBytes(number uint32, name string, first, second []byte) []byte {
	front := binary.BigEndian.AppendUint32(nil, number)
	front = append(front, byte(len(name)))
	front = append(front, name[:min(len(name), 119)]...)
	front = append(front, make([]byte, 124-len(front))...)
	return slices.Concat(crcOf(binary.BigEndian, front), front, first, second)
}

// The file has the bytes that its comment describes.
func TestHeadsLayout(t *testing.T) {
	header := append([]byte("sajou.heads\n\x01"), make([]byte, 256-13)...)
	assert.Equal(t, header, HeadsHeader())
	head := chain.Head{Seq: 0x0102030405060708, Hash: chain.Genesis("a")}
	for _, name := range []string{"", "a", strings.Repeat("n", 119), strings.Repeat("n", 120), strings.Repeat("n", 255)} {
		want := cellBytes(0x0a0b0c0d, name, slotBytes(0x0a0b0c0d, head), make([]byte, 64))
		assert.Equal(t, append([]byte("x"), want...), AppendHeadsCell([]byte("x"), 0x0a0b0c0d, name, head))
	}
	slot := bytes.Repeat([]byte{0xff}, 65)
	PutHeadsSlot(slot, 7, head)
	assert.Equal(t, append(slotBytes(7, head), 0xff), slot)
}

// Of the two notes of a cell the later one counts, in whichever slot it is, and the next
// one goes to the other slot. A damaged slot leaves the other one.
func TestHeadsSlots(t *testing.T) {
	older, newer := chain.Head{Seq: 4, Hash: chain.Genesis("a")}, chain.Head{Seq: 5, Hash: chain.Genesis("b")}
	none, torn := make([]byte, 64), slotBytes(7, newer)
	torn[30] ^= 1
	foreign := slotBytes(8, newer)
	const damaged = "cell 1 is damaged"
	for name, tt := range map[string]struct {
		first, second []byte
		head          chain.Head // zero: no note
		next          int        // the slot to write next
		damage        string
	}{
		"the first alone":            {slotBytes(7, older), none, older, 1, ""},
		"the second alone":           {none, slotBytes(7, older), older, 0, ""},
		"the later is the first":     {slotBytes(7, newer), slotBytes(7, older), newer, 1, ""},
		"the later is the second":    {slotBytes(7, older), slotBytes(7, newer), newer, 0, ""},
		"twice the same":             {slotBytes(7, newer), slotBytes(7, newer), newer, 1, ""},
		"the second is torn":         {slotBytes(7, older), torn, older, 1, damaged},
		"the first is torn":          {torn, slotBytes(7, older), older, 0, damaged},
		"both are torn":              {torn, torn, chain.Head{}, 0, damaged},
		"none":                       {none, none, chain.Head{}, 0, damaged},
		"that of another is no note": {slotBytes(7, older), foreign, older, 1, damaged},
	} {
		var got []NotedHead
		file := append(HeadsHeader(), cellBytes(7, "name", tt.first, tt.second)...)
		damage, err := decodeHeads(bytes.NewReader(file), func(index int, n NotedHead) {
			assert.Zero(t, index, name)
			got = append(got, n)
		})
		require.NoError(t, err, name)
		assert.Equal(t, tt.damage, damage, name)
		if tt.head == (chain.Head{}) {
			assert.Empty(t, got, name)
			continue
		}
		assert.Equal(t, []NotedHead{{Number: 7, Name: "name", Head: tt.head, older: tt.next}}, got, name)
	}
}

// The notes of a file in which something is wrong are those of the cells that are whole,
// with their places, and the damage is the first.
func TestHeadsDamage(t *testing.T) {
	head := chain.Head{Seq: 7, Hash: chain.Genesis("a")}
	whole := encodeHeads([]string{"a", "b", "c"}, []chain.Head{head, head, head})
	flipped := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 1
		return b
	}
	lost := bytes.Clone(whole)
	clear(lost[512:768])
	stray := bytes.Clone(lost)
	stray[700] = 1
	for name, tt := range map[string]struct {
		file   []byte
		cells  []int
		damage string
		err    error
	}{
		"whole":                     {whole, []int{0, 1, 2}, "", nil},
		"empty":                     {nil, nil, "it is empty", nil},
		"the beginning of a header": {whole[:12], nil, "its header is not that of a file of noted heads", nil},
		"a header of 13 bytes":      {whole[:13], nil, "its header is damaged", nil},
		"a header of 255 bytes":     {whole[:255], nil, "its header is damaged", nil},
		"a header alone":            {whole[:256], nil, "", nil},
		"another file":              {flipped(3), nil, "its header is not that of a file of noted heads", nil},
		"a later version":           {slices.Concat(whole[:12], []byte{2}, whole[13:]), nil, "", chain.ErrVersion},
		"the end of the header":     {flipped(255), []int{0, 1, 2}, "its header is damaged", nil},
		"behind the version":        {flipped(13), []int{0, 1, 2}, "its header is damaged", nil},
		"the name of a cell":        {flipped(512 + 9), []int{0, 2}, "cell 2 is damaged", nil},
		"a cell that was lost":      {lost, []int{0, 2}, "", nil},
		"a byte of a lost cell":     {stray, []int{0, 2}, "cell 2 is damaged", nil},
		"two cells":                 {slices.Concat(flipped(300)[:512], flipped(530)[512:]), []int{2}, "cell 1 is damaged", nil},
		"a header and a cell":       {slices.Concat(flipped(255)[:512], flipped(530)[512:]), []int{0, 2}, "its header is damaged", nil},
		"cut in the first cell":     {whole[:257], nil, "it ends within cell 1, after 1 bytes of it", nil},
		"cut in the last cell":      {whole[:1023], []int{0, 1}, "it ends within cell 3, after 255 bytes of it", nil},
		"without the last cell":     {whole[:768], []int{0, 1}, "", nil},
	} {
		var cells []int
		damage, err := decodeHeads(bytes.NewReader(tt.file), func(index int, n NotedHead) {
			assert.Equal(t, NotedHead{Number: uint32(index + 1), Name: string("abc"[index]), Head: head, older: 1}, n, name)
			cells = append(cells, index)
		})
		assert.Equal(t, tt.cells, cells, name)
		assert.Equal(t, tt.damage, damage, name)
		require.ErrorIs(t, err, tt.err, name)
	}

	// An error of the disk is not damage.
	disk := errors.New("the disk says no")
	for _, n := range []int{0, 100, 256, 300, 512} {
		_, err := decodeHeads(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(disk)), func(int, NotedHead) {})
		require.ErrorIs(t, err, disk, "%d bytes", n)
		require.ErrorContains(t, err, "eventlog: read the noted heads: ")
	}
	_, err := ReadHeads(vfs.NewMem(), "HEADS", func(int, NotedHead) { t.Error("called") })
	assert.True(t, IsMissing(err), "%v", err)
}

// A name that a cell does not hold as a whole is that of every session that begins with
// it and is longer.
func TestNamed(t *testing.T) {
	n := func(k int) string { return strings.Repeat("n", k) }
	for _, tt := range []struct {
		noted, name string
		named       bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a", "ab", false},
		{"ab", "a", false},
		{n(118), n(118), true},
		{n(118), n(119), false},
		{n(118), n(120), false},
		{n(119), n(119), true},
		{n(120), n(120), true},
		{n(120), n(121), true},
		{n(120), n(118), false},
		{n(120), n(119) + "x", true},
		{n(120), n(118) + "xx", false},
		{n(119), "x" + n(119), false},
	} {
		file := AppendHeadsCell(HeadsHeader(), 1, tt.noted, chain.Head{Seq: 1})
		called := 0
		damage, err := decodeHeads(bytes.NewReader(file), func(_ int, noted NotedHead) {
			called++
			assert.Equal(t, tt.named, noted.Named(tt.name), "%d bytes noted, %d of the session", len(tt.noted), len(tt.name))
			assert.Equal(t, len(tt.noted) < 119, noted.IsWhole(), fmt.Sprint(len(tt.noted)))
		})
		require.NoError(t, err)
		assert.Empty(t, damage)
		assert.Equal(t, 1, called)
	}
}
