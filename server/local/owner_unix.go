//go:build unix

package local

import (
	"io/fs"
	"os"
	"syscall"
)

// sameOwner reports whether a file belongs to this user or to the owner of the store.
func sameOwner(file, store fs.FileInfo) bool {
	f, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	s, ok := store.Sys().(*syscall.Stat_t)
	return ok && (int(f.Uid) == os.Geteuid() || f.Uid == s.Uid)
}
