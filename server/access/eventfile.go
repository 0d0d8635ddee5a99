package access

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// EventsPath returns the file of the security events of a store: the directory's name
// followed by ".security.jsonl", beside the directory.
func EventsPath(store string) string { return filepath.Clean(store) + ".security.jsonl" }

// eventFile is a file of lines with a bound. It is guarded by the mutex of [Events].
type eventFile struct {
	path string // empty: there is none
	max  int64
	f    *os.File
	size int64
}

// open opens the file for appending, and creates it with mode 0600.
func (e *eventFile) open() error {
	if info, err := os.Stat(e.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("access: %s is not a regular file; name another one for the security events", e.path)
	}
	f, err := os.OpenFile(e.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("access: the file of security events: %w", err)
	}
	info, err := f.Stat()
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600) // a file that was there
	}
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("access: the file of security events: %w", err)
	}
	e.f, e.size = f, info.Size()
	return nil
}

// write appends a line. Beyond the bound the file is put aside first, in place of the one
// that was put aside before; so there are at most two of the bound, and a line.
func (e *eventFile) write(line []byte) error {
	if e.path == "" {
		return nil
	}
	if e.f != nil && e.size > 0 && e.size+int64(len(line)) > e.max {
		if err := e.close(); err != nil {
			return err
		}
		if err := os.Rename(e.path, e.path+".1"); err != nil {
			return err
		}
	}
	if e.f == nil {
		if err := e.open(); err != nil {
			return err
		}
	}
	n, err := e.f.Write(line)
	e.size += int64(n)
	return err
}

func (e *eventFile) close() error {
	if e.f == nil {
		return nil
	}
	f := e.f
	e.f = nil
	return f.Close()
}
