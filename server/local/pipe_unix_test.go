//go:build unix

package local_test

import "syscall"

// pipe makes a named pipe, which no process writes to.
func pipe(path string) error { return syscall.Mkfifo(path, 0o600) }
