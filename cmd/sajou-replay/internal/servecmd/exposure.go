package servecmd

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/settings"
)

// restrict lets callers of this machine do nothing without a token if the server is behind
// a proxy, unless the settings say what they may do: what a proxy on this machine forwards
// may look like a request of this machine.
func restrict(s *settings.ServerSettings, values []settings.ResolvedSetting) {
	for _, v := range values {
		if v.Setting.Name == "loopback-anonymous" && v.Source == "default" && s.InsecureHTTP {
			s.Server.Access.Loopback = []access.Scope{}
		}
	}
}

// tokensPath returns the file of the access tokens.
func tokensPath(a *cli.App, file string) string {
	if file != "" {
		return file
	}
	return access.TokensPath(a.Store)
}

// checkExposure refuses addresses of the network without a proof of the caller, and
// without TLS.
func checkExposure(a *cli.App, s *settings.ServerSettings, addresses []string, logger *slog.Logger) error {
	s.Server.Access.Tokens = tokensPath(a, s.Server.Access.Tokens)
	tokens, err := access.NewTokens(s.Server.Access.Tokens, a.Clock()).Live()
	if err != nil {
		return cli.Fail(cli.ExitNo, "%w", err)
	}
	e := access.Exposure{Addresses: addresses, TLS: s.Server.TLS != nil, InsecureHTTP: s.InsecureHTTP, Tokens: tokens, Certificates: s.ClientCA != "" && len(s.Server.Access.Certificates) > 0}
	warnings, err := e.Check()
	if err != nil {
		return cli.Misuse("%w", err)
	}
	for _, w := range warnings {
		logger.Warn("the server is open to the network without TLS", slog.String("reason", w))
	}
	return nil
}

// verifyClients makes TLS ask for client certificates. A client without one goes on and
// needs another proof.
func verifyClients(config *tls.Config, s *settings.ServerSettings) error {
	if s.ClientCA == "" {
		return nil
	}
	authorities, err := os.ReadFile(s.ClientCA)
	if err != nil {
		return cli.Misuse("client-ca: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return cli.Misuse("client-ca: %s has no certificate in PEM", s.ClientCA)
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return nil
}

// securityEvents opens the file of the security events.
func securityEvents(a *cli.App, s *settings.ServerSettings, logger *slog.Logger) (*access.Events, error) {
	file := s.SecurityLog
	if file == "" {
		file = access.EventsPath(a.Store)
	}
	events, err := access.NewEvents(access.EventsConfig{File: file, Logger: logger, Now: a.Clock()})
	if err != nil {
		return nil, cli.Fail(cli.ExitNo, "%w; name another file with --security-log", err)
	}
	return events, nil
}
