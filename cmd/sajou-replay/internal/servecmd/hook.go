package servecmd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
)

// Hook returns the command "hook".
func Hook(a *cli.App) *cobra.Command {
	cfg := hookConfig()
	cmd := &cobra.Command{
		Use:   "hook",
		Short: "Send one hook object of an agent to the server",
		Long: `Hook reads the JSON object that Claude Code (and in the same form Codex) hands
to a hook on stdin, maps it to signals, and sends these to the server of
"sajou-replay serve". "sajou-replay hooks install" makes Claude Code run it.

It prints nothing and always exits with 0, because another code would block the
tool that the agent is about to use, and output would reach the model. It gives
up after 300 ms of delivery. What it could not deliver waits in a file, the
spool, and is sent by the next hook, before its own object. Failures are in
hook.log beside the spool; "sajou-replay hooks status" shows both.

Each session of the agent becomes a session named after the agent and its id,
such as claude.3f2a9c1e. --session records into one session, which --split
divides.

SAJOU_SERVER is the address of the server, SAJOU_TOKEN or the file of
SAJOU_TOKEN_FILE the token. SAJOU_HOOK_DIR is the directory of the spool and the
log. The small program sajou-hook does the same and starts faster.`,
		Example: `  echo '{"session_id":"s","hook_event_name":"Stop"}' | sajou-replay hook`,
		Args:    cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			cfg.Session = a.Session
			forward.Run(a.Stdin, *cfg, func() { os.Exit(0) }) //nolint:forbidigo // a disk that does not answer must not keep the agent waiting
			return nil
		},
	}
	flags := flag.NewFlagSet("hook", flag.ContinueOnError)
	forward.Flags(flags, cfg)
	flags.VisitAll(func(f *flag.Flag) {
		if f.Name != "session" { // a flag of all commands
			cmd.Flags().AddGoFlag(f)
		}
	})
	return cmd
}

// RunHook is the command "hook" with its arguments, without the rest of the program.
func RunHook(args []string, stdin io.Reader) {
	forward.Main(args, stdin, *hookConfig(), func() { os.Exit(0) }) //nolint:forbidigo // a disk that does not answer must not keep the agent waiting
}

// hookConfig returns what a hook needs of the outside.
func hookConfig() *forward.Config {
	return &forward.Config{
		Now:    time.Now,
		Random: func(b []byte) { _, _ = rand.Read(b) }, // never fails
		Dial: func(ctx context.Context, network, address string) (io.ReadWriteCloser, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		DialTLS: func(ctx context.Context, network, address string) (io.ReadWriteCloser, error) {
			return new(tls.Dialer).DialContext(ctx, network, address)
		},
	}
}

// deliverWaiting delivers what hooks have left in the spool for a server at one of the
// addresses, while the server runs.
func deliverWaiting(ctx context.Context, addresses []net.Addr, logger *slog.Logger) {
	token, err := forward.Token()
	if err != nil {
		logger.Warn("hooks that waited are not delivered", slog.Any("error", err))
		return
	}
	for _, server := range hookServers(addresses) {
		cfg := *hookConfig()
		cfg.Server, cfg.Token, cfg.Dir = server, token, forward.DefaultDir()
		n, err := forward.Drain(ctx, cfg)
		if n > 0 {
			logger.Info("hooks that waited are delivered", slog.Int("objects", n))
		}
		if err != nil && ctx.Err() == nil {
			logger.Warn("hooks wait", slog.Any("error", err))
		}
	}
}

// hookServers returns the addresses that a hook may have for a server.
func hookServers(addresses []net.Addr) []string {
	var list []string
	for _, a := range addresses {
		if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
			list = append(list, "http://"+a.String(), fmt.Sprintf("http://localhost:%d", tcp.Port))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
