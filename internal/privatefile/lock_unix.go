//go:build unix

package privatefile

import (
	"errors"
	"os"
	"syscall"
)

// Open opens a file for reading and writing, and creates it for its owner. It does not ask
// whether the file can be polled, as os.OpenFile does: a short program saves the poller.
func Open(name string) (*os.File, error) {
	for {
		fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case !errors.Is(err, syscall.EINTR):
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// Lock takes the exclusive lock of a file. It ends with the file or its process.
func Lock(f *os.File) error { return flock(f, syscall.LOCK_EX) }

// TryLock takes the exclusive lock of a file, and reports whether it was free.
func TryLock(f *os.File) (bool, error) {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Unlock gives the lock of a file back.
func Unlock(f *os.File) { _ = flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
