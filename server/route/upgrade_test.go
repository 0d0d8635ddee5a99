package route_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/server/route"
)

func TestCheckUpgrade(t *testing.T) {
	request := func() *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/ws", nil)
		for name, value := range map[string]string{
			"Connection": "keep-alive, Upgrade", "Upgrade": "WebSocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "other, mine",
		} {
			r.Header.Set(name, value)
		}
		return r
	}
	assert.NoError(t, route.CheckUpgrade(request(), ""))
	assert.NoError(t, route.CheckUpgrade(request(), "mine"))
	assert.ErrorContains(t, route.CheckUpgrade(request(), "min"), "the subprotocol min")
	assert.ErrorContains(t, route.CheckUpgrade(request(), "MINE"), "the subprotocol MINE")
	for name, change := range map[string]func(*http.Request){
		"HTTP/1.1":           func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0 },
		"HTTP/1":             func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0 },
		"does not ask":       func(r *http.Request) { r.Header.Set("Connection", "keep-alive") },
		"not ask":            func(r *http.Request) { r.Header.Set("Upgrade", "h2c") },
		"for one":            func(r *http.Request) { r.Method = http.MethodPost },
		"version is 13":      func(r *http.Request) { r.Header.Set("Sec-WebSocket-Version", "8") },
		"one header":         func(r *http.Request) { r.Header.Add("Sec-WebSocket-Key", "x") },
		"header Sec":         func(r *http.Request) { r.Header.Del("Sec-WebSocket-Key") },
		"16 bytes":           func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "AAAA") },
		"16 bytes in base64": func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "%%%") },
	} {
		r := request()
		change(r)
		assert.ErrorContains(t, route.CheckUpgrade(r, "mine"), name)
	}
}

func TestFaultyFrame(t *testing.T) {
	for _, err := range []error{errors.New("received unmasked frame"), fmt.Errorf("read: %w", errors.New("rsv1"))} {
		assert.True(t, route.FaultyFrame(err), err)
	}
	for _, err := range []error{
		nil, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.Canceled, context.DeadlineExceeded, &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		route.ErrLongMessage,
		websocket.CloseError{Code: websocket.StatusNormalClosure},
	} {
		assert.False(t, route.FaultyFrame(err), err)
		if err != nil {
			assert.False(t, route.FaultyFrame(fmt.Errorf("read: %w", err)), err)
		}
	}
}
