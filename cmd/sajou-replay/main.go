// Command sajou-replay opens recorded sessions and travels in time through
// them: it imports and exports recordings, shows entries and states, plays
// choreographies, verifies the chain, and finds the entry where something
// went wrong.
//
//	sajou-replay import session.jsonl --define choreographies.json
//	sajou-replay play
//	sajou-replay scan --where 'entry.type == "error"' --first
//	sajou-replay help
//
// Results go to stdout, everything else to stderr. The exit codes:
//
//	0    yes, same, verified
//	1    no, differs, failed
//	2    misuse: a bad flag, expression or address
//	3    done, but with loss
//	4    no such store, session or address
//	5    inconclusive
//	6    the store is locked or read-only
//	7    the predicate's program could not run
//	125  an end of the bisection cannot be tested
//	130  interrupted
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(realMain()) }

// realMain connects the world to run, and returns the exit code.
func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A reader of our output that goes away shall be an error of the write,
	// so that stores are closed; programs that we start do not inherit this.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return exitCode(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr), os.Stderr)
}
