package storefile

import (
	"errors"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

// The checksum of a file covers the bytes passed to the write, even if the file
// changes the buffer afterwards, as [vfs.MemFS] does in builds with the race
// detector; after a short write it covers the part that was written.
func TestSummedReadsBeforeTheWrite(t *testing.T) {
	s := newSummed()
	short := errors.New("short")
	for _, test := range []struct {
		text string
		most int
		err  error
	}{{"first ", 6, nil}, {"second", 3, short}} {
		err := s.write([]byte(test.text), func(p []byte) (int, error) {
			if test.err == nil {
				for i := range p {
					p[i] ^= 0xff
				}
			}
			return test.most, test.err
		})
		require.ErrorIs(t, err, test.err)
	}
	written := []byte("first sec")
	want := Extent{int64(len(written)), crc32.Checksum(written, castagnoli)}
	if got, known := s.extent(); !known || got != want {
		t.Errorf("%+v, %v; want %+v", got, known, want)
	}
}
