package route_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/route"
)

// A client whose message is too long reads the reason, and loses its connection although it
// never sends the rest of the message.
func TestSocketCloserDoesNotWaitForTheRest(t *testing.T) {
	ended := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			ended <- err
			return
		}
		conn.SetReadLimit(-1)
		end := route.SocketCloser(w, conn, func(_ time.Duration, f func()) func() bool {
			go f()
			return func() bool { return true }
		})
		var b bytes.Buffer
		_, err = route.ReadMessage(context.WithoutCancel(r.Context()), conn, &b, 10)
		end(websocket.StatusMessageTooBig, "at most 10 bytes")
		ended <- err
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	require.NoError(t, err)
	frame := binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, 1<<40)
	_, err = conn.Write(append(frame, "\x00\x00\x00\x00eleven byte"...))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.True(t, bytes.HasSuffix(answer, []byte("\x03\xf1at most 10 bytes")), "%q", answer)
	require.ErrorIs(t, <-ended, route.ErrLongMessage)
}

// A message of just the bound is read.
func TestReadMessage(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		conn.SetReadLimit(-1)
		var b bytes.Buffer
		kind, err := route.ReadMessage(r.Context(), conn, &b, 10)
		if err == nil {
			_ = conn.Write(r.Context(), kind, b.Bytes())
		}
		_ = conn.CloseNow()
	}))
	defer s.Close()
	conn, _, err := websocket.Dial(t.Context(), s.URL, nil)
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte("ten bytes.")))
	kind, text, err := conn.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, websocket.MessageText, kind)
	assert.Equal(t, "ten bytes.", string(text))
}
