package limit

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Listener returns a listener that accepts connections within the bounds. A connection
// beyond them is closed; where it does not speak TLS it is first sent an answer of HTTP
// with the status 429 and a problem document, as far as that is possible without waiting.
func (l *Limits) Listener(inner net.Listener, tls bool) net.Listener {
	return &listener{inner, l, tls}
}

type listener struct {
	net.Listener
	limits *Limits
	tls    bool
}

// refusal returns the whole answer to a connection beyond the bounds: the problem document
// that package problem, which is above this one, gives the error in an answer to a request.
func refusal(e *OverLimitError) []byte {
	body := fmt.Sprintf(`{"type":"urn:sajou:problem:too-many","title":"There are too many requests","status":429,"code":"too-many","detail":%q}`+"\n", e.Error())
	return fmt.Appendf(nil, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: %d\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		int(retryHeld/time.Second), len(body), body)
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var peer netip.Addr
		if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			peer = a.AddrPort().Addr().Unmap()
		}
		release, all := l.limits.connections.hold(network(peer), peer.IsLoopback())
		if release != nil {
			return &countedConn{conn, release}, nil
		}
		what := "connections from this address"
		if all {
			what = "connections to this server"
		}
		beyond := &OverLimitError{what, retryHeld}
		l.limits.cfg.Refused(peer, beyond)
		if !l.tls {
			// The answer fits into the empty buffer of the connection. The deadline is
			// past for a peer that makes even this wait.
			_ = conn.SetWriteDeadline(l.limits.cfg.Now().Add(10 * time.Millisecond))
			_, _ = conn.Write(refusal(beyond))
		}
		_ = conn.Close()
	}
}

// countedConn is a connection that counts until it is closed.
type countedConn struct {
	net.Conn
	release func()
}

func (c *countedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite closes the half of the connection that this side writes. Package net/http
// uses it to let the other side read the last answer.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
