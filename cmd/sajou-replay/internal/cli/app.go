// Package cli is shared by the families of commands. It has the global flags of
// one invocation ([App]), exit codes ([ExitError]), results as text or JSON
// ([Output]), progress, the reading and writing of files, and the opening of
// stores and sessions ([OpenedSession]).
//
// Results go to the App's Stdout and remarks to its Stderr, never to those of
// the process. [ExitCode] finds the exit code of an error and prints it in one
// line, which states the fact, the place and the remedy. A family imports this
// package and no other family. Only package main imports several.
package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/local"
)

// CommandLine returns a command as the reader types it: with go run if the
// program was started so.
func (a *App) CommandLine(line string) string {
	program := "sajou-replay"
	if strings.Contains(os.Args[0], "go-build") {
		program = "go run ./cmd/sajou-replay"
	}
	if a.Store != DefaultStore {
		program += " -C " + a.Store
	}
	return "    " + program + " " + line
}

// DefaultStore is the store when neither -C nor SAJOU_STORE names one.
const DefaultStore = "./sajou-data"

// App is one invocation: the streams and the global flags.
type App struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	Store       string
	Server      string // --server: the URL of a server to read from; empty means the store
	TokenFile   string // --token-file
	Format      string
	Session     string // --session; empty means the session that was begun last
	Wait        time.Duration
	NoSnapshots bool // --no-snapshots

	// Ticks makes --watch look at its files. Nil means a clock.
	Ticks <-chan time.Time

	// Now is the clock of the commands about access tokens, and Random their source of
	// secrets. Nil means [time.Now] and [rand.Reader].
	Now    func() time.Time
	Random io.Reader

	Memory MemoryLimit // --max-memory

	// Recent is the file of the addresses that the commands before used last. Empty
	// means that none is kept.
	Recent string
	used   *recentAddress // by this command; nil for none

	// Context ends when the command is interrupted. Nil means that it never is.
	Context context.Context

	borrowed *local.Checkpoint // of the store, while a server holds it; nil for none
	mirrored *mirrored         // sessions of a server; nil for none

	Running bool   // the command line was understood and a command has begun
	Opened  string // the session that was opened last; empty before
	Lost    error  // the entries that the opened store lost; nil if none
}

// Clock returns the clock of the commands about access tokens.
func (a *App) Clock() func() time.Time {
	if a.Now != nil {
		return a.Now
	}
	return time.Now
}

// Secrets returns the source of the secrets of access tokens.
func (a *App) Secrets() io.Reader {
	if a.Random != nil {
		return a.Random
	}
	return rand.Reader
}

// PointToVerify adds to an error about damaged bytes the command that locates the
// damage.
func (a *App) PointToVerify(err error) error {
	if a.Opened == "" || !errors.Is(err, eventlog.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w; locate the damage with: sajou-replay verify -s %s", err, ShellWord(a.Opened))
}

// ReportLoss adds the loss of the opened store to the outcome of a command. The
// command has read the entries that are left, so its result is incomplete.
func (a *App) ReportLoss(err error) error {
	switch {
	case a.Lost == nil:
		return err
	case err == nil:
		return &ExitError{ExitLoss, a.Lost}
	case errors.Is(err, AnswerNo):
		return &ExitError{ExitNo, a.Lost}
	}
	fmt.Fprintf(a.Stderr, "sajou-replay: %s\n", OneLine(a.Lost.Error()))
	return err
}

// lossError names the loss of a store and the remedy.
func (a *App) lossError(lost *eventlog.LossError) error {
	return fmt.Errorf("the store in %s lost entries: %w; check the remaining ones with verify --all, and copy them with repair --to NEWDIR", a.Store, lost)
}
