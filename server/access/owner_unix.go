//go:build unix

package access

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a file that the superuser has created for path to the owner of the file
// there, or else of its directory. A server of another user could not read it otherwise.
func keepOwner(f *os.File, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	uid, gid, ok := ownerOf(info)
	if !ok || uid == 0 {
		return nil
	}
	return f.Chown(uid, gid)
}

func ownerOf(info fs.FileInfo) (uid, gid int, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(s.Uid), int(s.Gid), true
}
