package snapshot_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/snapshot"
)

// failingReader fails its read number at, counted from 0, and serves the others.
type failingReader struct {
	io.ReaderAt
	reads, at int
}

var errRead = errors.New("the disk says no")

func (r *failingReader) ReadAt(p []byte, off int64) (int, error) {
	r.reads++
	if r.reads-1 == r.at {
		return 0, errRead
	}
	return r.ReaderAt.ReadAt(p, off)
}

// Each read of the check of a file fails in turn: the check fails, with that error once
// both meta pages are read.
func TestEveryReadOfTheCheckFails(t *testing.T) {
	counted := header(2, freePage, 0xFFFF, 0) + string(order.AppendUint64(nil, 1)) + string(order.AppendUint64(nil, 5))
	for name, file := range map[string]string{
		"a tree": fileOf(free(2, 6), branch(element{key: "a", child: 4}, element{key: "b", child: 5}),
			leaf(4, element{flags: 1, key: "a", value: inline(element{key: "k", value: "v"})}, element{key: "b"}), leaf(5, element{key: "b"}), ""),
		"a counted free list": fileOf(counted, leaf(3, element{flags: 1, key: "a", value: at(4)}), leaf(4), ""),
	} {
		t.Run(name, func(t *testing.T) {
			check := func(at int) (int, error) {
				r := &failingReader{bytes.NewReader([]byte(file)), 0, at}
				err := snapshot.CheckReader(r, uint64(len(file)))
				return r.reads, err
			}
			total, err := check(-1)
			require.NoError(t, err)
			require.Greater(t, total, 6)
			for at := range total {
				reads, err := check(at)
				require.Equal(t, at+1, reads, "the check ends at the first error")
				if at < 2 {
					require.ErrorContains(t, err, "meta page is damaged")
				} else {
					require.ErrorContains(t, err, errRead.Error(), "read %d", at)
				}
			}
		})
	}
}

// Reading images makes no decoder for each: the decoders are used again.
func TestReadingUsesDecodersAgain(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	put(t, s, "a", image(10, 20))
	const reads = 200
	cost := allocated(func() {
		for range reads {
			_, err := s.Get("a", 10)
			require.NoError(t, err)
		}
	})
	require.Less(t, cost/reads, uint64(4<<10), "bytes a read")
}
