//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// allocated returns the bytes that the file system has allocated for a file.
func allocated(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}
