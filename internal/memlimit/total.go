package memlimit

import (
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Total returns the memory available to the process: the minimum of the machine's
// memory and the limits of the control groups of the process. root is the root of the
// file system, os.DirFS("/"). If no source gives a value, Total returns [Unknown].
func Total(root fs.FS) uint64 {
	total := uint64(Unknown)
	if machine, ok := machineTotal(read(root, "proc/meminfo")); ok {
		total = machine
	}
	for _, limit := range groupLimits(root) {
		total = min(total, limit)
	}
	return total
}

// machineTotal reads /proc/meminfo.
func machineTotal(text string) (uint64, bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			n, err := strconv.ParseUint(fields[1], 10, 44)
			return n << 10, err == nil && n > 0
		}
	}
	return 0, false
}

// groupLimits returns the limits of the control groups of the process and of all their
// parents. A group's limit also binds the groups below it, which may have none.
func groupLimits(root fs.FS) (limits []uint64) {
	for line := range strings.Lines(read(root, "proc/self/cgroup")) {
		// hierarchy:controllers:path; version 2 has hierarchy 0 and no controllers.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mounts, file := []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}, "memory.max"
		if parts[0] != "0" || parts[1] != "" {
			if !hasController(parts[1], "memory") {
				continue
			}
			mounts, file = []string{"sys/fs/cgroup/memory"}, "memory.limit_in_bytes"
		}
		for _, mount := range mounts {
			// In a container the group's path may be that of the host, while the
			// mounted directory is the group itself: then only its root exists.
			for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
				text := strings.TrimSpace(read(root, path.Join(mount, dir, file)))
				// "max" means no limit; so does a number close to 2^63 in version 1.
				if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 && n < 1<<60 {
					limits = append(limits, n)
				}
				if dir == "/" {
					break
				}
			}
		}
	}
	return limits
}

func hasController(list, name string) bool {
	for c := range strings.SplitSeq(list, ",") {
		if c == name {
			return true
		}
	}
	return false
}

// read returns the beginning of a small file, or "" on an error.
func read(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // open for reading only
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return ""
	}
	return string(text)
}
