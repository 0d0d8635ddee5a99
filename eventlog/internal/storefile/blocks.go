package storefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// BlockFS is a file system whose tables are checked while they are read.
//
// When the checksum of a block is wrong, Pebble searches for a single flipped bit
// that would explain it: it computes the checksum up to 327,680 times at each read
// of the block, and no context cancels the search. For a batch of some megabytes
// that takes minutes. BlockFS therefore checks large blocks before Pebble sees them.
type BlockFS struct{ vfs.FS }

// Unwrap implements [vfs.FS].
func (b BlockFS) Unwrap() vfs.FS { return b.FS }

// Open implements [vfs.FS].
func (b BlockFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := b.FS.Open(name, opts...)
	base := b.PathBase(name)
	if err != nil || KindOf(base) != KindTable {
		return file, err
	}
	return &blockFile{file, base}, nil
}

// blockFile is a table.
type blockFile struct {
	vfs.File
	name string
}

// largeBlock is the size from which BlockFS checks a block. Pebble makes reads of
// that size only for blocks, and a smaller block has few bits to flip.
const largeBlock = 4 << 10

// ReadAt implements [vfs.File].
func (b *blockFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := b.File.ReadAt(p, offset)
	if err == nil && len(p) >= largeBlock && !wholeBlock(p) {
		return n, fmt.Errorf("%w: the block of %d bytes at byte %d of %s does not match its checksum", pebble.ErrCorruption, len(p), offset, b.name)
	}
	return n, err
}

// wholeBlock reports whether the last four bytes of a block are one of Pebble's
// checksums over the bytes before them.
func wholeBlock(p []byte) bool {
	const mask = 0xa282ead8
	content, sum := p[:len(p)-4], binary.LittleEndian.Uint32(p[len(p)-4:])
	c := crc32.Checksum(content, castagnoli)
	return sum == (c>>15|c<<17)+mask || sum == uint32(xxhash.Sum64(content))
}
