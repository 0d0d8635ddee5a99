//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package storefile

import (
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// allocated returns the bytes that the file system has allocated for a file. A file
// system in memory tells none: then it is the length.
func allocated(info vfs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Blocks) * 512 // the unit of st_blocks, whatever the size of a block
	}
	return uint64(info.Size())
}
