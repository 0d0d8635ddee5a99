//go:build !unix

package main

import "time"

// processorTime returns 0: package syscall has no getrusage on these systems.
func processorTime() time.Duration { return 0 }
