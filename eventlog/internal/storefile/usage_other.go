//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package storefile

import "github.com/cockroachdb/pebble/v2/vfs"

// allocated returns the length of a file: these systems do not tell what it takes.
func allocated(info vfs.FileInfo) uint64 { return uint64(info.Size()) }
