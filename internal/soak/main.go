// Soak runs a server on the loopback interface under clients that vanish, stall, flood,
// reconnect and lie, for a time, and then checks that
//
//   - goroutines, open files and the heap return to what they were;
//   - every entry that was acknowledged is in the log, whose chain verifies;
//   - no connection received a byte sequence that is hidden from it;
//   - every watcher got every entry once and in order, also over reconnections.
//
// Clients and server are one process, so that a client that leaks is noticed too.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	length := flag.Duration("for", 10*time.Minute, "how long the clients run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	r, err := run(ctx, *length)
	stop()
	_, _ = fmt.Fprintln(os.Stdout, r)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
