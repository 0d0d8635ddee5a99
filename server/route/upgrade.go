package route

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"github.com/sajou-dev/sajou-go/server/problem"
)

// CheckUpgrade returns the problem of a request that does not begin a WebSocket as RFC 6455
// has it, or does not offer a subprotocol, unless that is empty. A handler calls it before
// it accepts a WebSocket, so that every refusal is a problem document.
func CheckUpgrade(r *http.Request, subprotocol string) error {
	refuse := func(why string) error {
		return problem.New(problem.BadRequest, "the path is a WebSocket; "+why)
	}
	h := r.Header
	switch {
	case !r.ProtoAtLeast(1, 1) || r.ProtoMajor > 1:
		return refuse("use HTTP/1.1")
	case r.Method != http.MethodGet, !offers(h, "Connection", "upgrade"), !offers(h, "Upgrade", "websocket"):
		return refuse("the request does not ask for one")
	case h.Get("Sec-Websocket-Version") != "13":
		return refuse("its version is 13")
	case len(h.Values("Sec-Websocket-Key")) != 1:
		return refuse("the request needs one header Sec-WebSocket-Key")
	}
	if key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(h.Get("Sec-Websocket-Key"))); err != nil || len(key) != 16 {
		return refuse("the header Sec-WebSocket-Key has to be 16 bytes in base64")
	}
	if subprotocol != "" && !slices.Contains(elements(h, "Sec-Websocket-Protocol"), subprotocol) {
		return refuse("the request has to offer the subprotocol " + subprotocol)
	}
	return nil
}

// FaultyFrame reports whether the reading of a WebSocket failed because of what the peer sent,
// and not because the peer is gone, has closed it, or sent too much. A handler then closes it
// with the code 1002. The library does so by itself for most faults.
func FaultyFrame(err error) bool {
	var gone net.Error // ended contexts of a deadline too
	return err != nil && websocket.CloseStatus(err) < 0 && !errors.As(err, &gone) && !errors.Is(err, ErrLongMessage) && !errors.Is(err, context.Canceled) &&
		!errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed)
}

// FaultOfFrames is the reason of a close with the code 1002.
const FaultOfFrames = "the client sent an invalid frame (RFC 6455)"

// offers reports whether a header that is a list has an element, whatever its case.
func offers(h http.Header, name, element string) bool {
	return slices.ContainsFunc(elements(h, name), func(e string) bool { return strings.EqualFold(e, element) })
}

// elements returns the elements of a header that is a list.
func elements(h http.Header, name string) []string {
	return strings.FieldsFunc(strings.Join(h.Values(name), ","), func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })
}
