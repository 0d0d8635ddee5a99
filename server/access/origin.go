package access

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// errHost is the error of splitHost and parseOrigin.
var errHost = errors.New("not a host")

// splitHost returns the host and the port of a header Host: a name in lower case without
// its final dot, or an address without brackets. Names have ASCII letters, digits, "-",
// "_" and "." only: a letter that only looks like one of them would be folded to it by
// other programs.
func splitHost(s string) (host, port string, err error) {
	host = s
	if rest, ok := strings.CutPrefix(s, "["); ok { // an IPv6 address
		if host, port, ok = strings.Cut(rest, "]"); !ok {
			return "", "", errHost
		}
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() {
			return "", "", errHost
		}
		if port, err = cutPort(port); err != nil {
			return "", "", err
		}
		return asciiLower(host), port, nil
	}
	if i := strings.IndexByte(s, ':'); i >= 0 {
		if host, port = s[:i], s[i:]; strings.Contains(port[1:], ":") {
			return "", "", errHost // an IPv6 address without brackets
		}
		if port, err = cutPort(port); err != nil {
			return "", "", err
		}
	}
	host = strings.TrimSuffix(asciiLower(host), ".")
	if host == "" || len(host) > 253 {
		return "", "", errHost
	}
	for i := range len(host) {
		if c := host[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return "", "", errHost
		}
	}
	return host, port, nil
}

// cutPort returns the port of ":PORT", "" of "".
func cutPort(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	digits, ok := strings.CutPrefix(s, ":")
	if !ok || len(digits) > 5 || strings.Trim(digits, "0123456789") != "" {
		return "", errHost
	}
	return digits, nil
}

// asciiLower is [strings.ToLower] for the letters A to Z alone. The functions for all of
// Unicode take some other letters for theirs, such as the sign for kelvin for a k.
func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// AllowsHost reports whether the server answers under the name in a request's Host
// header. Other names are refused: a page whose name was made to resolve to this machine
// would count as coming from here (DNS rebinding).
func (g *Gate) AllowsHost(header string) bool {
	host, _, err := splitHost(header)
	if err != nil {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true // an address cannot be rebound
	}
	return host == "localhost" || slices.ContainsFunc(g.cfg.Hosts, func(h string) bool { return asciiLower(h) == host })
}

// origin is the sender of a page, as browsers write it.
type origin struct{ scheme, host, port string }

// parseOrigin reads an origin: SCHEME://HOST or SCHEME://HOST:PORT, and nothing else.
func parseOrigin(s string) (origin, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" || strings.Trim(asciiLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return origin{}, errHost
	}
	host, port, err := splitHost(rest)
	if err != nil {
		return origin{}, err
	}
	return origin{asciiLower(scheme), host, port}, nil
}

// AllowsOrigin reports whether a page of an origin may use the server: pages of this
// machine and of the configured origins.
func (g *Gate) AllowsOrigin(header string) bool {
	if slices.Contains(g.cfg.Origins, header) {
		return true
	}
	o, err := parseOrigin(header)
	if err != nil || o.scheme != "http" && o.scheme != "https" {
		return false
	}
	if o.host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(o.host)
	return err == nil && addr.Unmap().IsLoopback()
}

// FromServer reports whether the origin of a request is the server itself, under a name
// that [Gate.AllowsHost] allows.
func (g *Gate) FromServer(r *http.Request) bool {
	o, err := parseOrigin(r.Header.Get("Origin"))
	if err != nil || o.scheme != "http" && o.scheme != "https" {
		return false
	}
	host, port, err := splitHost(r.Host)
	return err == nil && host == o.host && port == o.port && g.AllowsHost(r.Host)
}

// Embedded reports whether a browser says that a page of another site makes the request
// without asking first, to show the answer as an image or to run it as a script. Such a
// request has no Origin header; the page could not read the answer, but would learn its
// size and whether there is one.
func Embedded(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
