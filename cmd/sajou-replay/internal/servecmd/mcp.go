package servecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/mcp"
)

// MCP returns the command "mcp". The version is that of the program.
func MCP(a *cli.App, version string) *cobra.Command {
	cfg := mcp.Config{Version: version}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let an agent debug recorded sessions, over MCP",
		Long: `Mcp speaks the Model Context Protocol on stdin and stdout, so that an agent
can list and inspect sessions, compute states, search, find causes, see
pictures, and ask what an agent knew. A client starts it; its configuration is

  { "mcpServers": { "sajou": {
      "command": "sajou-replay", "args": ["-C", "/path/to/store", "mcp"] } } }

or, for Claude Code,

  claude mcp add sajou -- sajou-replay -C /path/to/store mcp

docs/mcp.md lists the tools. The prompt debug_recording begins a hunt. The store
is open only while a tool runs, so other commands can use it between the calls.

The tools read. --allow-record adds those that record: emit_signal, define and
fork. --session names the session of calls that name none.

What was recorded reaches the agent in marked places only, and is named data
and never instructions there. A recording can still contain such text; give
the agent no other tools than it needs while it reads recordings that you do
not trust.

The exit code is 0 when the client has closed its end, 1 if it does not speak
the protocol, and 2 if a flag is refused.`,
		Example: `  sajou-replay mcp
  sajou-replay mcp --allow-record --session debugging
  sajou-replay mcp --max-bytes 8000 --timeout 10s`,
		Args: cli.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cfg.MaxBytes < minAnswer || cfg.MaxBytes > maxAnswer:
				return cli.Misuse("--max-bytes %d: must be from %d to %d", cfg.MaxBytes, minAnswer, maxAnswer)
			case cfg.Timeout < time.Second || cfg.Timeout > time.Hour:
				return cli.Misuse("--timeout %v: must be from 1s to 1h", cfg.Timeout)
			}
			return runMCP(cmd.Context(), a, cfg)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&cfg.AllowRecord, "allow-record", false, "add the tools that record")
	flags.IntVar(&cfg.MaxBytes, "max-bytes", mcp.DefaultMaxBytes, "send at most `N` bytes of data in an answer")
	flags.DurationVar(&cfg.Timeout, "timeout", mcp.DefaultTimeout, "end a call after `DURATION`")
	return cmd
}

// The bounds of --max-bytes.
const (
	minAnswer = 1000
	maxAnswer = 10_000_000
)

func runMCP(ctx context.Context, a *cli.App, cfg mcp.Config) error {
	l := &lender{app: a}
	cfg.Lend = l.lend
	cfg.Session = a.Session
	cfg.Bookmarks = a.SharedAnchors
	cfg.Logger = slog.New(slog.NewTextHandler(a.Stderr, nil))
	var in io.Reader = strings.NewReader("")
	if a.Stdin != nil {
		in = a.Stdin
	}
	err := mcp.New(cfg).Serve(ctx, io.NopCloser(in), notClosed{a.Stdout})
	if err != nil && ctx.Err() == nil {
		return cli.Fail(cli.ExitNo, "the client does not speak the protocol: %w", err)
	}
	return ctx.Err()
}

// notClosed is a writer that the protocol does not close.
type notClosed struct{ io.Writer }

func (notClosed) Close() error { return nil }

// lender opens the store for the calls of tools, and closes it when no call runs. Calls
// that read share the store; a call that records has it alone.
type lender struct {
	app  *cli.App
	gate sync.RWMutex // held while the store is open; for writing by a call that records

	mu      sync.Mutex // guards the fields below, and those of app that opening changes
	engine  *sajou.Engine
	readers int
}

func (l *lender) lend(_ context.Context, write bool) (*sajou.Engine, func() error, error) {
	if write {
		l.gate.Lock()
		engine, err := l.open(l.app.OpenWriting)
		if err != nil {
			l.gate.Unlock()
			return nil, nil, err
		}
		return engine, func() error {
			defer l.gate.Unlock()
			return engine.Close()
		}, nil
	}
	l.gate.RLock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers == 0 {
		engine, err := opened(l.app.OpenReading)
		if err != nil {
			l.gate.RUnlock()
			return nil, nil, err
		}
		l.engine = engine
	}
	l.readers++
	return l.engine, l.release, nil
}

// release ends a call that reads.
func (l *lender) release() (err error) {
	defer l.gate.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers--; l.readers == 0 {
		err = l.engine.Close()
		l.engine = nil
	}
	return err
}

func (l *lender) open(open func() (*sajou.Engine, error)) (*sajou.Engine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return opened(open)
}

// opened opens the store. The errors wrap those of the log that say what the caller of a
// tool can do.
func opened(open func() (*sajou.Engine, error)) (*sajou.Engine, error) {
	engine, err := open()
	exit, ok := errors.AsType[*cli.ExitError](err)
	switch {
	case !ok:
		return engine, err
	case exit.Code == cli.ExitNotFound:
		return nil, fmt.Errorf("%w: %w", eventlog.ErrNoStore, err)
	case exit.Code == cli.ExitLocked && !errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%w: %w", eventlog.ErrLocked, err)
	case exit.Code == cli.ExitNo:
		return nil, fmt.Errorf("%w: %w", eventlog.ErrCorrupt, err)
	}
	return nil, err
}
