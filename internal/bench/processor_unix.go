//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime returns the processor time that this process has taken, user and
// system, on all processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("getrusage: " + err.Error()) // it fails only on arguments that are wrong
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
