// Package servecmd has the commands of the server: serve and config.
package servecmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/otel"
	"github.com/sajou-dev/sajou-go/adapter/prometheus"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/spanexport"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/local"
	"github.com/sajou-dev/sajou-go/server/settings"
)

// Serve returns the command "serve" of a program with a version.
func Serve(a *cli.App, version string) *cobra.Command {
	var given settingFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Hold the store and let others record, watch and act",
		Long: `Serve opens the store once and answers requests about it over HTTP, until it
is interrupted: recorders send signals, viewers read and follow sessions,
agents act. docs/server.md describes the interface. The store is created if
there is none.

By default it listens on this machine only, at port 5175, where Sajou's tap
looks by itself, and lets callers of this machine record and read without a
token.

Other commands go on reading the store meanwhile: the server lends them a copy,
which they find through a socket beside the store.

Interrupted, it accepts nothing new, finishes what was begun, tells streams
where to continue, and closes the store. What it had acknowledged is on disk.
A second interrupt ends it at once, with the same promise.

Every setting is a flag, a variable of the environment and a member of a YAML
file (--config FILE, or SAJOU_CONFIG). A flag counts more than a variable, and a
variable more than the file:
  --stop-timeout 30s     SAJOU_STOP_TIMEOUT=30s     stop-timeout: 30s
  --listen A --listen B  SAJOU_LISTEN=A,B           listen: [A, B]
"sajou-replay config check" shows the value of each and where it was given.

The exit code is 0 after an interrupt, 1 if an address cannot be used or the
server failed, 2 if a setting is refused, and 6 if another process has the
store.`,
		Example: `  sajou-replay serve
  sajou-replay serve -C work --listen 127.0.0.1:8175
  sajou-replay serve --config serve.yaml --log-format json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, values, err := given.resolve(cmd)
			if err != nil {
				return err
			}
			restrict(s, values)
			s.Server.Version = version
			return serve(cmd.Context(), a, s)
		},
	}
	given.register(cmd)
	return cmd
}

// spareThread lets one goroutine more run at a time than there are processors, unless the
// environment says how many. A sync of the log keeps its place until the runtime notices that
// it waits for the disk, and of two places that is half. It sets the whole process, once.
var spareThread = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
})

func serve(ctx context.Context, a *cli.App, s *settings.ServerSettings) error {
	spareThread()
	logger := newLogger(a, s)
	s.Server.Logger, s.Server.Dir = logger, a.Store
	var err error
	if s.Server.TLS, err = readTLS(s); err != nil {
		return err
	}
	listeners, err := listen(ctx, s.Listen, logger)
	if err != nil {
		return err
	}
	defer func() { // Serve closes them too
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	if err := checkExposure(a, s, listening(listeners), logger); err != nil { // no connection has been accepted yet
		return err
	}
	if s.AllowHooks {
		s.Server.Record.Hooks = connectTap(scheme(s) + listeners[0].Addr().String())
	}
	collector := prometheus.New(prometheus.Config{})
	s.Server.Requests, s.Server.Traces.Metrics = collector, collector
	s.Server.Exposition = collector.Handler()
	endTraces, err := traceRequests(s, logger)
	if err != nil {
		return err
	}
	defer endTraces()
	engine, err := a.Open(sajou.Config{LockWait: a.Wait, Logger: logger, Metrics: collector.Metrics()})
	if err != nil {
		return err
	}
	events, err := securityEvents(a, s, logger)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	s.Server.Access.Events = events
	srv, err := server.New(engine, s.Server)
	if err != nil {
		return errors.Join(cli.Misuse("%w", err), events.Close(), engine.Close())
	}
	var addresses []string
	var bound []net.Addr
	for _, l := range listeners {
		bound = append(bound, l.Addr())
		addresses = append(addresses, scheme(s)+l.Addr().String())
	}
	fmt.Fprintf(a.Stderr, "sajou-replay: serving %s at %s; end with Ctrl-C\n", termtext.Printable(a.Store), strings.Join(addresses, " and "))
	socket, remove, err := local.Listen(a.Store)
	if err != nil {
		// Without it, commands on this machine find the store in use.
		logger.Warn("no socket beside the store", slog.Any("err", err))
	} else {
		listeners = append(listeners, socket)
	}
	delivering, stop := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	if s.Server.TLS == nil {
		waiting.Go(func() { deliverWaiting(delivering, bound, logger) })
	}
	err = srv.Serve(ctx, listeners...)
	stop()
	waiting.Wait()
	if remove != nil { // before another server can have the store
		err = errors.Join(err, remove())
	}
	return errors.Join(err, events.Close(), engine.Close())
}

// traceTimeout bounds the sending of the last spans.
const traceTimeout = 2 * time.Second

// traceRequests has the spans of requests sent where the settings say. The caller calls end
// when there are no more.
func traceRequests(s *settings.ServerSettings, logger *slog.Logger) (end func(), err error) {
	if s.OTLP == "" {
		return func() {}, nil
	}
	provider := spanexport.New(spanexport.Config{
		Endpoint: s.OTLP, Service: "sajou-replay", Version: s.Server.Version, Now: time.Now,
		Failed: func(err error) { logger.Warn("traces cannot be sent", slog.Any("err", err)) },
	})
	telemetry, err := otel.New(otel.Config{TracerProvider: provider})
	if err != nil {
		return nil, err
	}
	s.Server.Tracer = telemetry
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), traceTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Warn("the last traces cannot be sent", slog.Any("err", err))
		}
	}, nil
}

func scheme(s *settings.ServerSettings) string {
	if s.Server.TLS != nil {
		return "https://"
	}
	return "http://"
}

// newLogger returns the log of the server, on standard error.
func newLogger(a *cli.App, s *settings.ServerSettings) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(a.Stderr, options))
}

// readTLS reads the certificate and its key.
func readTLS(s *settings.ServerSettings) (*tls.Config, error) {
	if s.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
	if err != nil {
		return nil, cli.Misuse("the certificate cannot be used: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return config, verifyClients(config, s)
}

// listening returns the addresses of listeners.
func listening(listeners []net.Listener) []string {
	addresses := make([]string, len(listeners))
	for i, l := range listeners {
		addresses[i] = l.Addr().String()
	}
	return addresses
}

// listen opens the addresses. An IPv6 address that this machine does not have is left out
// if another can be used, because the default names both families.
func listen(ctx context.Context, addresses []string, logger *slog.Logger) ([]net.Listener, error) {
	var listeners []net.Listener
	var missing error
	for _, address := range addresses {
		var config net.ListenConfig
		l, err := config.Listen(ctx, "tcp", address)
		switch {
		case err == nil:
			listeners = append(listeners, l)
		case errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT):
			logger.Warn("this machine does not have the address", slog.String("address", address))
			missing = errors.Join(missing, err)
		default:
			for _, open := range listeners {
				_ = open.Close()
			}
			if errors.Is(err, syscall.EADDRINUSE) {
				return nil, cli.Fail(cli.ExitNo, "%s is in use, perhaps by another server; end that process, or use another address with --listen", address)
			}
			return nil, cli.Fail(cli.ExitNo, "cannot listen at %s: %w", address, listenCause(err))
		}
	}
	if len(listeners) == 0 {
		return nil, cli.Fail(cli.ExitNo, "cannot listen: %w", missing)
	}
	return listeners, nil
}

// listenCause returns the cause of an error about an address that the message names.
func listenCause(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		if s, ok := errors.AsType[*os.SyscallError](e.Err); ok {
			return s.Err
		}
		return e.Err
	}
	return err
}
