package access

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// ErrExposed is wrapped by the errors of [Exposure.Check].
var ErrExposed = errors.New("the server would be open to the network")

// Exposure says how a server can be reached, before it listens.
type Exposure struct {
	Addresses []string // as HOST:PORT

	TLS bool // the addresses speak TLS

	// InsecureHTTP allows an address of the network without TLS, for a server behind a
	// proxy that speaks TLS.
	InsecureHTTP bool

	// Tokens is the number of live access tokens; see [Tokens.Live].
	Tokens int

	// Certificates is whether client certificates are verified and have grants.
	Certificates bool
}

// Check returns what has to be said aloud in the log, or an error that wraps [ErrExposed]:
// an address that is not of this machine alone needs a proof of the caller, which is an
// access token or a client certificate, and TLS, so that the proof and what was recorded
// cannot be read on the way.
func (e Exposure) Check() (warnings []string, err error) {
	for _, address := range e.Addresses {
		if OfThisMachine(address) {
			continue
		}
		if e.Tokens == 0 && !e.Certificates {
			return nil, fmt.Errorf("%w: %s can be reached from other machines, and there is no access token; create one with: sajou-replay token create NAME --scope SCOPE", ErrExposed, address)
		}
		if !e.TLS && !e.InsecureHTTP {
			return nil, fmt.Errorf("%w: %s can be reached from other machines without TLS; name a certificate with --tls-cert and --tls-key, or use --insecure-http behind a proxy that speaks TLS", ErrExposed, address)
		}
		if !e.TLS {
			warnings = append(warnings, fmt.Sprintf("%s does not speak TLS (--insecure-http): access tokens and recordings pass the network in the clear, unless a proxy encrypts them", address))
		}
	}
	return warnings, nil
}

// OfThisMachine reports whether only this machine can connect to an address, HOST:PORT. A
// host that is a name is not, except "localhost": what it resolves to can change.
func OfThisMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if asciiLower(host) == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
