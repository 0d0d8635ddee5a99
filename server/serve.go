package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"

	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

type socketKey struct{}

// overSocket reports whether a request came over a Unix socket.
func overSocket(ctx context.Context) bool {
	over, _ := ctx.Value(socketKey{}).(bool)
	return over
}

// Serve answers requests on the listeners until ctx ends or a listener fails, and then
// stops in this order:
//
//  1. No connection is accepted, and streams end: each sends the entries
//     that are acknowledged and tells where to continue.
//  2. Requests that are being answered finish, and what they record becomes durable, for
//     at most [Config.StopTimeout]. Then their contexts end.
//  3. The rooms end their work.
//
// Serve closes the listeners. With a [Config.TLS] the TCP listeners speak TLS. It returns
// nil if ctx ended it and every request was answered. A server serves once.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	base, giveUp := context.WithCancelCause(route.WithStopping(context.Background(), s.stopping))
	defer giveUp(nil)
	srv := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       markSocket,
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		ReadTimeout:       s.cfg.BodyTimeout,
		WriteTimeout:      s.cfg.AnswerTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    2 * s.cfg.MaxHeader, // beyond it the answer is not a problem document
		TLSConfig:         withHTTP2(s.cfg.TLS),
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		s.cfg.Logger.Info("listening", slog.String("network", l.Addr().Network()), slog.String("address", l.Addr().String()))
		go func() { ended <- s.listen(srv, l) }()
	}
	var failed error
	running := len(listeners)
	select {
	case <-ctx.Done():
	case failed = <-ended:
		running--
	}
	s.stop.Do(func() { close(s.stopping) })
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StopTimeout)
	defer cancel()
	err := srv.Shutdown(stopCtx) // closes the listeners first
	for range running {
		failed = errors.Join(failed, <-ended)
	}
	if !s.drained(stopCtx) {
		giveUp(problem.ErrStopping)
		err = errors.Join(err, srv.Close())
		s.requests.Wait() // every handler ends with its context
	}
	for _, r := range s.rooms {
		if c, ok := r.(closer); ok {
			err = errors.Join(err, c.Close(stopCtx))
		}
	}
	if err = errors.Join(failed, err); err != nil {
		s.cfg.Logger.Error("stopped", slog.Any("err", err))
	} else {
		s.cfg.Logger.Info("stopped")
	}
	return err
}

// withHTTP2 returns a TLS configuration that names HTTP/2. Package net/http prepares
// HTTP/2 once, for the listener that is served first. If that one is a Unix socket, it does
// so only for a configuration that names it; but a TLS listener offers HTTP/2 in any case,
// and would drop the connections that choose it.
func withHTTP2(config *tls.Config) *tls.Config {
	if config == nil || slices.Contains(config.NextProtos, "h2") {
		return config
	}
	config = config.Clone()
	config.NextProtos = append([]string{"h2"}, config.NextProtos...)
	return config
}

// listen serves one listener until it is closed.
func (s *Server) listen(srv *http.Server, l net.Listener) error {
	_, unix := l.(*net.UnixListener)
	secure := s.cfg.TLS != nil && !unix
	if !unix {
		l = s.limits.Listener(l, secure)
	}
	serve := func() error { return srv.Serve(l) }
	if secure {
		serve = func() error { return srv.ServeTLS(l, "", "") }
	}
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// drained waits until no request is being answered, those of connections that were taken
// over included. It reports whether this was so before ctx ended.
func (s *Server) drained(ctx context.Context) bool {
	done := make(chan struct{})
	go func() {
		s.requests.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// markSocket marks the connections of Unix sockets.
func markSocket(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*net.UnixConn); ok {
		return context.WithValue(ctx, socketKey{}, true)
	}
	return ctx
}
