package route

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// ErrLongMessage says that a message of a WebSocket is longer than the handler allows.
var ErrLongMessage = errors.New("the message is too long")

// ReadMessage reads the next message of a WebSocket, of at most most bytes, into b. The limit
// of the library has to be off: beyond it the library closes the connection itself, with a
// reason that names its function.
func ReadMessage(ctx context.Context, conn *websocket.Conn, b *bytes.Buffer, most int64) (websocket.MessageType, error) {
	kind, r, err := conn.Reader(ctx)
	if err != nil {
		return 0, err
	}
	n, err := b.ReadFrom(io.LimitReader(r, most+1))
	if err == nil && n > most {
		err = ErrLongMessage
	}
	return kind, err
}

// closeTime is how long a client has to answer a close frame.
const closeTime = 5 * time.Second

// SocketCloser returns a function that closes a WebSocket with a code and a reason. W is the
// writer from which the connection was hijacked. A client that does not answer in time loses
// the connection: the library alone would wait as long as a client sends the rest of a
// message, byte by byte.
func SocketCloser(w http.ResponseWriter, conn *websocket.Conn, afterFunc func(time.Duration, func()) func() bool) func(websocket.StatusCode, string) {
	rc := http.NewResponseController(w)
	return func(code websocket.StatusCode, reason string) {
		stop := afterFunc(closeTime, func() { _ = rc.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
		_ = conn.Close(code, reason) // the client may be gone
	}
}
