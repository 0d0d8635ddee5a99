package dial

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/coder/websocket"
)

// ConnectionError reports that a connection failed or ended. Its text is one line of the fact,
// the place, and the remedy if there is one: errors of libraries name each of their own
// steps, and their text is left out where it adds no fact.
type ConnectionError struct {
	Host string
	Err  error
}

func (e *ConnectionError) Unwrap() error { return e.Err }

func (e *ConnectionError) Error() string {
	host, err := e.Host, e.Err
	closed, isClose := errors.AsType[websocket.CloseError](err)
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, isRecord := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case isClose && closed.Code == websocket.StatusNoStatusRcvd:
		return host + " closed the connection"
	case isClose && closed.Reason == "":
		return fmt.Sprintf("%s closed the connection with the code %d", host, closed.Code)
	case isClose:
		return fmt.Sprintf("%s closed the connection with the code %d: %s", host, closed.Code, closed.Reason)
	case errors.Is(err, websocket.ErrMessageTooBig):
		return fmt.Sprintf("%s sent a message of more than %d MiB; let it send smaller ones", host, MaxMessage>>20)
	case isLookup && lookup.IsNotFound:
		return fmt.Sprintf("the host %q has no address; correct the URL", lookup.Name)
	case isLookup:
		return fmt.Sprintf("the address of the host %q cannot be found out: %s", lookup.Name, lookup.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s; start it, or correct the URL", host)
	case isCertificate:
		return fmt.Sprintf("the certificate of %s is not valid: %v", host, innermost(err))
	case isRecord, errors.Is(err, http.ErrSchemeMismatch):
		return host + " does not speak TLS; use http:// or ws://"
	case isNet && timeout.Timeout():
		return host + " did not answer in time"
	case errors.Is(err, io.EOF):
		return host + " ended the connection"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return host + " broke the connection off"
	}
	return fmt.Sprintf("the connection to %s failed: %v", host, innermost(err))
}

// innermost returns the cause under all errors that only say in which step it happened.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
