// Command sajou-replay records sessions of AI agents and travels in time through
// them: it imports and exports recordings, shows entries and states, plays
// choreographies, verifies the hash chain, and finds the entry where a state or a
// picture went wrong.
//
//	sajou-replay import session.jsonl --define choreographies.json
//	sajou-replay play
//	sajou-replay scan --where 'entry.type == "error"' --first
//	sajou-replay help
//
// The package has the command tree, the demo, and the commands version and man.
// The other commands are in internal, one package a family: logcmd, statecmd,
// stagecmd, agentscmd and episodecmd. They share package cli and have flags, text
// and exit codes; the work is done by packages that other programs can use.
//
// Results go to stdout, everything else to stderr. The exit codes are described by
// the help of the program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/servecmd"
)

// endTimeout is the time that an interrupted command has to end.
const endTimeout = 5 * time.Second

func main() { os.Exit(realMain()) }

// realMain connects the world to run, and returns the exit code.
func realMain() int {
	if len(os.Args) > 1 && os.Args[1] == "hook" && !slices.Contains(os.Args, "--help") && !slices.Contains(os.Args, "-h") {
		// It must not print, and must not lose time, whatever its arguments are.
		servecmd.RunHook(os.Args[2:], os.Stdin)
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// An interrupted command ends by itself. If it cannot, because a disk or the
	// reader of a pipe does not answer, a second signal or the timeout ends the
	// process. Durable entries stay intact.
	context.AfterFunc(ctx, func() {
		stop()
		time.AfterFunc(endTimeout, func() {
			fmt.Fprintln(os.Stderr, "sajou-replay: interrupted; the command did not end within 5 seconds and was stopped")
			os.Exit(cli.ExitInterrupted)
		})
	})
	// With SIGPIPE caught, a closed pipe is an error of the write, so that the
	// command still closes its store. Programs that bisect starts do not inherit it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	a := &cli.App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if cache, err := os.UserCacheDir(); err == nil {
		a.Recent = filepath.Join(cache, "sajou-replay", "recent.jsonl")
	}
	a.Memory.End = func(err error) { os.Exit(cli.ExitCode(err, os.Stderr)) }
	return cli.ExitCode(execute(ctx, a, os.Args[1:]), os.Stderr)
}
