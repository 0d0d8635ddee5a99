// Package settings has the settings of a server: what each is called, what it means, and
// how its value is found. A setting is a flag of "sajou-replay serve", a variable of the
// environment and a member of a YAML file, all with one name. A flag counts more than the
// environment, the environment more than the file, and the file more than the default.
//
// docs/glossary.md has the nouns of all packages.
package settings

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/internal/spanexport"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
)

// ServerSettings are the values of all settings.
type ServerSettings struct {
	// Server is the configuration of the server, without its TLS, logger and clock.
	Server server.Config

	Listen          []string // addresses, as HOST:PORT
	TLSCert, TLSKey string   // files
	ClientCA        string   // file of the authorities of client certificates; empty: there are none
	AllowHooks      bool     // /api/tap/connect installs hooks
	InsecureHTTP    bool     // the network is accepted without TLS
	SecurityLog     string   // file of the security events; empty: beside the store
	OTLP            string   // where the spans of requests are posted; empty: nowhere
	LogLevel        slog.Level
	LogFormat       string // "text" or "json"
}

// Form is the form of the values of a setting.
type Form int

// The forms.
const (
	FormText Form = iota
	FormList      // several values: a repeated flag, commas in the environment, a list in the file
	FormBool
	FormDuration // such as 500ms or 10s
	FormNumber
)

// ServerSetting describes one setting.
type ServerSetting struct {
	Name    string // of the flag, and of the member of the file
	Operand string // the word for its value in the help; empty for FormBool
	Default string // as it would be written; several values with commas
	Form    Form
	Usage   string

	set func(*ServerSettings, []string) error
}

// Variable returns the name of the setting's variable of the environment.
func (s ServerSetting) Variable() string {
	return "SAJOU_" + strings.ReplaceAll(strings.ToUpper(s.Name), "-", "_")
}

// All returns all settings in the order of the help.
func All() []ServerSetting { return slices.Clone(all) }

var all = []ServerSetting{
	{"listen", "ADDRESS", "127.0.0.1:5175,[::1]:5175", FormList, "accept connections at `ADDRESS`, as HOST:PORT", func(s *ServerSettings, v []string) error {
		s.Listen = v
		return each(v, checkAddress)
	}},
	{"loopback-anonymous", "SCOPES", "record,read", FormList, "allow callers of this machine without a token `SCOPES`:\nnone, record, read", setLoopback},
	{"allow-origin", "ORIGIN", "", FormList, "let web pages of `ORIGIN` use the server", func(s *ServerSettings, v []string) error {
		s.Server.Access.Origins = v
		return each(v, access.CheckOrigin)
	}},
	{"host", "NAME", "", FormList, "answer requests for the host `NAME`, beside localhost\nand addresses", func(s *ServerSettings, v []string) error {
		s.Server.Access.Hosts = v
		return each(v, access.CheckHost)
	}},
	{"session", "NAME", "live", FormText, "record what names no session into the session `NAME`", text(func(s *ServerSettings) *string { return &s.Server.Record.Session })},
	{"split", "BY", "none", FormText, "divide that session into parts: none, native-session,\nsource, day", func(s *ServerSettings, v []string) error {
		by := partition.Split(v[0])
		if by == "none" {
			by = partition.SplitNone
		} else if !slices.Contains(partition.Splits(), by) {
			return fmt.Errorf("%q is not none, native-session, source or day", v[0])
		}
		s.Server.Record.Split = by
		return nil
	}},
	{"trace-wait", "DURATION", "1m", FormDuration, "record a trace of OpenTelemetry that is not complete\n`DURATION` after its last span", duration(func(s *ServerSettings) *time.Duration { return &s.Server.Traces.Wait })},
	{"max-spool", "MIB", "256", FormNumber, "hold traces of at most `MIB` megabytes together", megabytes(func(s *ServerSettings) *int64 { return &s.Server.Traces.MaxSpool }, 128)},
	{"tls-cert", "FILE", "", FormText, "speak TLS with the certificate in `FILE`", text(func(s *ServerSettings) *string { return &s.TLSCert })},
	{"tls-key", "FILE", "", FormText, "the key of the certificate, in `FILE`", text(func(s *ServerSettings) *string { return &s.TLSKey })},
	{"allow-hooks", "", "false", FormBool, "let callers of /api/tap/connect install the hooks of\nClaude Code in the directory of the server", flag(func(s *ServerSettings) *bool { return &s.AllowHooks })},
	{"mcp-allow-record", "", "false", FormBool, "give the tools of /mcp those that record", flag(func(s *ServerSettings) *bool { return &s.Server.AllowMCPRecord })},
	{"insecure-http", "", "false", FormBool, "accept the network without TLS, behind a proxy that speaks\nit; loopback-anonymous is then none unless it is given", flag(func(s *ServerSettings) *bool { return &s.InsecureHTTP })},
	{"tokens", "FILE", "", FormText, "read access tokens from `FILE`, not from STORE.tokens", text(func(s *ServerSettings) *string { return &s.Server.Access.Tokens })},
	{"client-ca", "FILE", "", FormText, "verify client certificates against the authorities in\n`FILE`", text(func(s *ServerSettings) *string { return &s.ClientCA })},
	{"client-cert", "GRANT", "", FormList, "what a client certificate may do, as\nNAME=SCOPE or NAME=SCOPE@SESSIONS", setCertificates},
	{"security-log", "FILE", "", FormText, "append security events to `FILE`, not to\nSTORE.security.jsonl", text(func(s *ServerSettings) *string { return &s.SecurityLog })},
	{"max-rate", "N", "2000", FormNumber, "let an access token send `N` requests a second; callers\nof this machine have no such bound", number(func(s *ServerSettings) *int { return &s.Server.Limits.Rate }, 1, 1_000_000)},
	{"max-tenant-rate", "N", "8000", FormNumber, "let all tokens of a tenant send `N` requests a second", number(func(s *ServerSettings) *int { return &s.Server.Limits.TenantRate }, 1, 1_000_000)},
	{"max-connections", "N", "256", FormNumber, "accept `N` connections from one address of the network", number(func(s *ServerSettings) *int { return &s.Server.Limits.Connections }, 1, 1_000_000)},
	{"max-streams", "N", "256", FormNumber, "let an access token have `N` open streams", number(func(s *ServerSettings) *int { return &s.Server.Limits.Streams }, 1, 1_000_000)},
	{"max-jobs", "N", "4", FormNumber, "let an access token have `N` running jobs", number(func(s *ServerSettings) *int { return &s.Server.Limits.Jobs }, 1, 1000)},
	{"max-body-memory", "MIB", "256", FormNumber, "hold bodies of at most `MIB` megabytes together", megabytes(func(s *ServerSettings) *int64 { return &s.Server.Limits.Memory }, 1)},
	{"stop-timeout", "DURATION", "10s", FormDuration, "at the end, wait `DURATION` for open requests", duration(func(s *ServerSettings) *time.Duration { return &s.Server.StopTimeout })},
	{"header-timeout", "DURATION", "5s", FormDuration, "wait `DURATION` for the header of a request", duration(func(s *ServerSettings) *time.Duration { return &s.Server.HeaderTimeout })},
	{"body-timeout", "DURATION", "30s", FormDuration, "wait `DURATION` for the body of a request", duration(func(s *ServerSettings) *time.Duration { return &s.Server.BodyTimeout })},
	{"answer-timeout", "DURATION", "5m", FormDuration, "end an answer that is not a stream after `DURATION`", duration(func(s *ServerSettings) *time.Duration { return &s.Server.AnswerTimeout })},
	{"idle-timeout", "DURATION", "2m", FormDuration, "close a connection without requests after `DURATION`", duration(func(s *ServerSettings) *time.Duration { return &s.Server.IdleTimeout })},
	{"max-header", "BYTES", "65536", FormNumber, "refuse headers of more than `BYTES`", number(func(s *ServerSettings) *int { return &s.Server.MaxHeader }, 1024, 1<<20)},
	{"otlp", "URL", "", FormText, "send spans of requests, without what is in them, to the\nOTLP/HTTP receiver at `URL`, such as\nhttp://127.0.0.1:4318", func(s *ServerSettings, v []string) (err error) {
		s.OTLP, err = spanexport.Endpoint(v[0])
		return err
	}},
	{"log-level", "LEVEL", "info", FormText, "log what is at least `LEVEL`: debug, info, warn, error", func(s *ServerSettings, v []string) error {
		if err := s.LogLevel.UnmarshalText([]byte(v[0])); err != nil {
			return fmt.Errorf("%q is not a level; use debug, info, warn or error", v[0])
		}
		return nil
	}},
	{"log-format", "FORMAT", "text", FormText, "log lines as `FORMAT`: text or json", func(s *ServerSettings, v []string) error {
		if v[0] != "text" && v[0] != "json" {
			return fmt.Errorf("%q is not a format of the log; use text or json", v[0])
		}
		s.LogFormat = v[0]
		return nil
	}},
}

func each(texts []string, check func(string) error) error {
	for _, text := range texts {
		if err := check(text); err != nil {
			return err
		}
	}
	return nil
}

// checkAddress refuses an address at which nothing can listen.
func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address; write it as 127.0.0.1:5175 or [::1]:5175", text)
	}
	return nil
}

// check refuses settings that do not fit each other.
func (s *ServerSettings) check() error {
	switch {
	case len(s.Listen) == 0:
		return fmt.Errorf("%w: listen has no address; give one, such as 127.0.0.1:5175", ErrSettings)
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return fmt.Errorf("%w: tls-cert and tls-key belong together; give both", ErrSettings)
	case s.ClientCA != "" && s.TLSCert == "":
		return fmt.Errorf("%w: client-ca needs TLS; give tls-cert and tls-key too", ErrSettings)
	case s.ClientCA == "" && len(s.Server.Access.Certificates) > 0:
		return fmt.Errorf("%w: client-cert grants nothing while no client certificate is verified; give client-ca too", ErrSettings)
	}
	if err := s.Server.Record.Split.Check(s.Server.Record.Session); err != nil {
		return fmt.Errorf("%w: session: %w", ErrSettings, err)
	}
	return nil
}

// setLoopback sets what callers of this machine may do.
func setLoopback(s *ServerSettings, v []string) error {
	scopes := []access.Scope{}
	for _, name := range v {
		switch name {
		case "none":
			if len(v) > 1 {
				return fmt.Errorf("none cannot be combined with other scopes")
			}
		case "record", "read":
			scopes = append(scopes, access.Scope(name))
		default:
			return fmt.Errorf("%q is not none, record or read", name)
		}
	}
	s.Server.Access.Loopback = scopes
	return nil
}

// setCertificates sets what the holders of client certificates may do.
func setCertificates(s *ServerSettings, v []string) error {
	s.Server.Access.Certificates = nil
	for _, text := range v {
		c, err := access.ParseCertificate(text)
		if err != nil {
			return err
		}
		s.Server.Access.Certificates = append(s.Server.Access.Certificates, c)
	}
	return nil
}

// megabytes sets a bound in bytes, which is given in megabytes.
func megabytes(field func(*ServerSettings) *int64, least int) func(*ServerSettings, []string) error {
	return func(s *ServerSettings, v []string) error {
		var n int
		if err := number(func(*ServerSettings) *int { return &n }, least, 1<<20)(s, v); err != nil {
			return err
		}
		*field(s) = int64(n) << 20
		return nil
	}
}

func flag(field func(*ServerSettings) *bool) func(*ServerSettings, []string) error {
	return func(s *ServerSettings, v []string) error {
		b, err := strconv.ParseBool(v[0])
		if err != nil {
			return fmt.Errorf("%q is not true or false", v[0])
		}
		*field(s) = b
		return nil
	}
}

func text(field func(*ServerSettings) *string) func(*ServerSettings, []string) error {
	return func(s *ServerSettings, v []string) error {
		*field(s) = v[0]
		return nil
	}
}

func duration(field func(*ServerSettings) *time.Duration) func(*ServerSettings, []string) error {
	return func(s *ServerSettings, v []string) error {
		d, err := time.ParseDuration(v[0])
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a duration such as 500ms or 2s", v[0])
		}
		*field(s) = d
		return nil
	}
}

func number(field func(*ServerSettings) *int, least, most int) func(*ServerSettings, []string) error {
	return func(s *ServerSettings, v []string) error {
		n, err := strconv.Atoi(v[0])
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is not a whole number from %d to %d", v[0], least, most)
		}
		*field(s) = n
		return nil
	}
}
