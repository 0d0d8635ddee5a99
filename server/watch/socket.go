package watch

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// socketWatcher sends events as messages. It pings while nothing else is sent.
type socketWatcher struct {
	fs   *Feeds
	ctx  context.Context
	conn *websocket.Conn

	mu   sync.Mutex
	stop func() bool // of the next ping; guarded by mu
	end  bool        // guarded by mu
}

// event is a message of a WebSocket.
type event struct {
	ID   string          `json:"id"`
	Data json.RawMessage `json:"data,omitempty"` // absent in a position
}

// Position sends a message that has an id alone.
func (s *socketWatcher) Position(id string) error { return s.Event(id, nil) }

// Event sends a message. A peer that takes nothing for Config.Stall loses its connection.
func (s *socketWatcher) Event(id string, data []byte) error {
	text, err := json.Marshal(event{id, data})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer s.fs.cfg.AfterFunc(s.fs.cfg.Stall, cancel)()
	return s.conn.Write(ctx, websocket.MessageText, text)
}

// Flush does nothing: messages are sent at once.
func (*socketWatcher) Flush() error { return nil }

// ping sends a ping and waits for the answer, again and again until the socket is closed.
func (s *socketWatcher) ping() {
	ctx, cancel := context.WithCancel(s.ctx)
	stop := s.fs.cfg.AfterFunc(s.fs.cfg.Stall, cancel)
	err := s.conn.Ping(ctx)
	stop()
	cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.end && err == nil {
		s.stop = s.fs.cfg.AfterFunc(s.fs.cfg.Heartbeat, s.ping)
	}
}

func (s *socketWatcher) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = true
	s.stop()
}

// socket answers with a feed over a WebSocket.
func (fs *Feeds) socket(rw http.ResponseWriter, r *http.Request) error {
	if err := route.CheckUpgrade(r, ""); err != nil {
		return err
	}
	w, err := fs.wish(r, r.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	// The middleware has checked the origin.
	conn, err := websocket.Accept(rw, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	end := route.SocketCloser(rw, conn, fs.cfg.AfterFunc)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go listen(ctx, conn, end, cancel)
	out := &socketWatcher{fs: fs, ctx: ctx, conn: conn}
	out.stop = fs.cfg.AfterFunc(fs.cfg.Heartbeat, out.ping)
	defer out.close()
	err = fs.feed(ctx, &w, out)
	switch {
	case err != nil:
		end(websocket.StatusInternalError, errtext.CloseReason(problem.Of(err).Detail))
	case isClosed(route.Stopping(r.Context())):
		end(websocket.StatusGoingAway, "the server is stopping; continue behind the last id")
	default:
		end(websocket.StatusNormalClosure, "")
	}
	return nil
}

// listen reads from a watcher, so that its pings are answered, and calls gone when the
// connection ends. A watcher has nothing to say, and one that speaks is refused. The method
// CloseRead of the library would hold the connection of such a watcher for 15 s.
func listen(ctx context.Context, conn *websocket.Conn, end func(websocket.StatusCode, string), gone func()) {
	defer gone()
	_, _, err := conn.Reader(ctx)
	switch {
	case err == nil:
		end(websocket.StatusPolicyViolation, "a watcher sends no messages")
	case route.FaultyFrame(err):
		end(websocket.StatusProtocolError, route.FaultOfFrames)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
