package storefile

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// DiskUsage is the space that the files of a store take on the disk, in bytes as the
// file system allocates them, which can be more or less than their lengths.
type DiskUsage struct {
	Tables    uint64 // what was flushed
	Logs      uint64 // the write-ahead log; files that Pebble keeps to write them again are part of it
	Snapshots uint64 // the snapshot file of the engine and its companions
	Other     uint64 // everything else in the directory
}

// Total returns the sum.
func (u DiskUsage) Total() uint64 { return u.Tables + u.Logs + u.Snapshots + u.Other }

// MeasureUsage adds up the files in dir. A file that is deleted meanwhile takes no space.
func MeasureUsage(disk vfs.FS, dir string) (u DiskUsage, err error) {
	names, err := disk.List(dir)
	if err != nil {
		return u, fmt.Errorf("eventlog: measure %s: %w", dir, err)
	}
	for _, name := range names {
		info, err := disk.Stat(disk.PathJoin(dir, name))
		if IsMissing(err) {
			continue
		}
		if err != nil {
			return u, fmt.Errorf("eventlog: measure %s in %s: %w", name, dir, err)
		}
		size := allocated(info)
		switch KindOf(name) {
		case KindTable, kindBlob:
			u.Tables += size
		case KindLog:
			u.Logs += size
		case KindSnapshot:
			u.Snapshots += size
		default:
			u.Other += size
		}
	}
	return u, nil
}
