// Command sajou-hook is "sajou-replay hook" as a small program that starts fast. It reads one
// object of a hook on stdin and delivers it to a server. It prints nothing and always
// exits with 0; package [forward] describes what it does.
//
// It has neither TLS nor, on Linux, package net: it delivers to addresses of this machine and
// to others that are numbers, over http. For everything else there is sajou-replay hook.
//
// [forward]: https://pkg.go.dev/github.com/sajou-dev/sajou-go/ingest/hooks/forward
package main

import (
	"math/rand/v2"
	"os"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
)

func main() {
	reserve()
	forward.Main(os.Args[1:], os.Stdin, forward.Config{Now: time.Now, Random: random, Dial: dial}, func() { os.Exit(0) })
}

// reserve grows the stack at once to what the program needs. It would be copied several
// times else, from deep calls.
//
//go:noinline
func reserve() byte {
	var space [24 << 10]byte
	return space[len(os.Args)%len(space)]
}

// random names objects. The generator is seeded by the system; package crypto/rand would
// take a call of the system for each object and longer to start.
func random(b []byte) {
	for i := range b {
		b[i] = byte(rand.Uint32()) //nolint:forbidigo,gosec // a name, not a secret, and never repeated
	}
}
