package picture_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/stage/picture"
)

// TestDeflate: the standard library reads back what was compressed, in whatever pieces and
// with whatever runs.
func TestDeflate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		var pieces [][]byte
		for range rapid.IntRange(0, 20).Draw(t, "pieces") {
			var p []byte
			for range rapid.IntRange(0, 8).Draw(t, "runs") {
				b := rapid.OneOf(rapid.Just(byte(0)), rapid.Byte()).Draw(t, "byte")
				// Lengths about those at which the codes change, and many blocks.
				n := rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(255, 265), rapid.SampledFrom([]int{34, 35, 130, 131, 514, 519, 3000, 80_000})).Draw(t, "n")
				p = append(p, bytes.Repeat([]byte{b}, n)...)
			}
			p = append(p, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")...)
			pieces, all = append(pieces, p), append(all, p...)
		}
		inflates(t, all, picture.Deflate(pieces...))
	})
}

// TestDeflateSkewed compresses bytes so unevenly frequent that the best codes would be
// longer than the format allows.
func TestDeflateSkewed(t *testing.T) {
	var all []byte
	for b, n, next := byte(1), 1, 1; n < 20_000; b, n, next = b+1, next, n+next {
		all = append(all, bytes.Repeat([]byte{b}, n)...)
	}
	packed := picture.Deflate(all)
	inflates(t, all, packed)
	require.Less(t, len(packed), len(all)/2)
	zeros := make([]byte, 1_000_000)
	packed = picture.Deflate(zeros)
	inflates(t, zeros, packed)
	require.Less(t, len(packed), 4000)
}

func inflates(t require.TestingT, want, packed []byte) {
	r, err := zlib.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	got, err := io.ReadAll(r) // checks the sum
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%d bytes came back as %d", len(want), len(got))
}
