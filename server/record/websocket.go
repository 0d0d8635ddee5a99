package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// isUpgrade reports whether a request asks for a WebSocket.
func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// maxUnsettled bounds the bytes of the messages of one WebSocket that are not durable.
const maxUnsettled = 8 << 20

// message is one message of a WebSocket that was read, or refused.
type message struct {
	number   uint64 // of the sender
	size     int
	ses      *sajou.Session
	addition sajou.Addition // of one signal
	err      error          // why the message is refused; nil if ses and addition are set
}

// socket is a WebSocket over which signals are recorded. One goroutine reads messages; a
// second records those that have arrived, together, and answers them; a third
// ends the connection when the server stops. At most window messages are between the first
// two, so that a sender that floods waits in its own connection.
type socket struct {
	rv   *Receiver
	conn *websocket.Conn
	end  func(websocket.StatusCode, string) // closes conn

	// take reads a message. An error ends the connection.
	take func(ctx context.Context, text []byte) (message, error)

	// settle answers messages that became durable or were refused; nil answers nothing.
	settle func(ctx context.Context, settled []settledMessage) error

	queue    chan message // as long as the window
	draining atomic.Bool  // the server stops: nothing more is recorded
	fatal    atomic.Bool  // the log takes nothing more

	mu    sync.Mutex
	space sync.Cond // signalled when bytes shrinks; uses mu
	bytes int       // of the messages in the queue; guarded by mu
}

// settledMessage is a message with its outcome.
type settledMessage struct {
	message
	receipt sajou.Receipt
}

// accept makes a WebSocket of a request. It answers a request that is none itself.
func (rv *Receiver) accept(w http.ResponseWriter, r *http.Request, protocols ...string) (*websocket.Conn, error) {
	// The middleware has checked the origin.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: protocols})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1) // see route.ReadMessage
	return conn, nil
}

// run records the messages of a connection until it ends.
func (s *socket) run(r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	// The end of the context closes the connection. Each read and write would else have to
	// wait for it too.
	endless := context.WithoutCancel(ctx)
	unbind := context.AfterFunc(ctx, func() { _ = s.conn.CloseNow() })
	s.space.L = &s.mu
	s.queue = make(chan message, s.rv.cfg.Window)
	settled, done := make(chan struct{}), make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		defer close(settled)
		s.settleAll(endless)
	})
	others.Go(func() {
		select {
		case <-route.Stopping(r.Context()):
			s.draining.Store(true)
			s.idle()
			s.end(websocket.StatusGoingAway, "the server is stopping; send what is not acknowledged again")
		case <-done:
		}
	})
	others.Go(func() { s.rv.ping(ctx, s.conn, done) })
	err := s.read(endless)
	close(s.queue)
	<-settled
	s.close(err)
	close(done)
	unbind() // a closing handshake may be under way
	cancel()
	others.Wait()
	_ = s.conn.CloseNow()
}

// read reads messages until the connection ends.
func (s *socket) read(ctx context.Context) error {
	for {
		b := buffers.Get().(*bytes.Buffer)
		b.Reset()
		kind, err := route.ReadMessage(ctx, s.conn, b, s.rv.cfg.MaxBody)
		if err == nil && kind != websocket.MessageText {
			err = websocket.CloseError{Code: websocket.StatusUnsupportedData, Reason: "messages are text"}
		}
		if err == nil && !s.draining.Load() {
			err = s.put(ctx, b.Bytes())
		}
		if b.Cap() <= maxKept {
			buffers.Put(b)
		}
		if err != nil {
			return err
		}
	}
}

// put reads a message and queues it.
func (s *socket) put(ctx context.Context, text []byte) error {
	s.mu.Lock()
	for s.bytes > 0 && s.bytes+len(text) > maxUnsettled {
		s.space.Wait()
	}
	s.bytes += len(text)
	s.mu.Unlock()
	m, err := s.take(ctx, text)
	if err != nil {
		s.release(len(text))
		return err
	}
	m.size = len(text)
	s.queue <- m // settleAll reads until it is closed
	if s.fatal.Load() {
		return websocket.CloseError{Code: websocket.StatusTryAgainLater, Reason: "the log takes no entries"}
	}
	return nil
}

func (s *socket) release(n int) {
	s.mu.Lock()
	s.bytes -= n
	s.mu.Unlock()
	s.space.Broadcast()
}

// idle waits until no message waits for its answer.
func (s *socket) idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.bytes > 0 {
		s.space.Wait()
	}
}

// maxSettled is the number of messages that are recorded and answered together.
const maxSettled = 64

// settleAll records the messages of the queue, in order, and answers them. After an
// error it goes on without answers, so that the reader does not wait for room in the queue.
func (s *socket) settleAll(ctx context.Context) {
	failed := false
	batch := make([]settledMessage, 0, maxSettled)
	for m := range s.queue {
		batch = append(batch, settledMessage{message: m})
		if len(s.queue) > 0 && len(batch) < maxSettled {
			continue
		}
		s.record(ctx, batch)
		if s.settle != nil && !failed {
			failed = s.settle(ctx, batch) != nil
		}
		n := 0
		for i := range batch {
			n += batch[i].size
		}
		clear(batch)
		batch = batch[:0]
		s.release(n)
		if s.fatal.Load() {
			// The reader may be waiting for a message.
			go s.end(websocket.StatusTryAgainLater, "the log takes no entries")
		}
	}
}

// record records messages. Those that follow each other into one session share one turn.
func (s *socket) record(ctx context.Context, batch []settledMessage) {
	additions := make([]sajou.Addition, 0, len(batch))
	for len(batch) > 0 {
		if batch[0].err != nil {
			batch = batch[1:]
			continue
		}
		ses, n := batch[0].ses, 0
		additions = additions[:0]
		for ; n < len(batch) && batch[n].err == nil && batch[n].ses == ses; n++ {
			additions = append(additions, batch[n].addition)
		}
		for i, r := range recordEach(ctx, ses, additions) {
			m := &batch[i]
			m.receipt, m.err = r.Receipt, r.Err
			if r.Err == nil {
				s.rv.feed.add(ses.Name(), r.Receipt)
			} else if errors.Is(r.Err, eventlog.ErrReadOnly) || errors.Is(r.Err, eventlog.ErrClosed) {
				s.fatal.Store(true)
			}
		}
		batch = batch[n:]
	}
}

// recordEach is [sajou.Session.RecordEach] with less work for one addition.
func recordEach(ctx context.Context, ses *sajou.Session, additions []sajou.Addition) []sajou.AdditionResult {
	if len(additions) > 1 {
		return ses.RecordEach(ctx, additions)
	}
	receipt, err := ses.Record(ctx, additions[0])
	return []sajou.AdditionResult{{Receipt: receipt, Err: err}}
}

// close ends the connection with the code that an error stands for.
func (s *socket) close(err error) {
	var c websocket.CloseError
	switch {
	case s.draining.Load(), s.fatal.Load():
		return // it is being closed, or is about to be
	case errors.As(err, &c):
		s.end(c.Code, c.Reason)
	case errors.Is(err, route.ErrLongMessage):
		s.end(websocket.StatusMessageTooBig, fmt.Sprintf("a message has more than %d bytes; send it in parts", s.rv.cfg.MaxBody))
	case route.FaultyFrame(err):
		s.end(websocket.StatusProtocolError, route.FaultOfFrames)
	default:
		_ = s.conn.CloseNow()
	}
}

// ping notices a peer that is gone without a word.
func (rv *Receiver) ping(ctx context.Context, conn *websocket.Conn, done <-chan struct{}) {
	for {
		due := make(chan struct{})
		stop := rv.cfg.AfterFunc(rv.cfg.Heartbeat, func() { close(due) })
		select {
		case <-due:
		case <-done:
			stop()
			return
		}
		patience, cancel := context.WithCancel(ctx)
		stop = rv.cfg.AfterFunc(rv.cfg.Stall, cancel)
		err := conn.Ping(patience)
		stop()
		cancel()
		if err != nil {
			_ = conn.CloseNow()
			return
		}
	}
}

// frames records the text frames of a WebSocket, one envelope each, as the tap of Sajou
// sends them. Nothing is answered unless the query has ack=true: then each frame has the
// answer of POST /api/signal, in order.
func (rv *Receiver) frames(w http.ResponseWriter, r *http.Request) error {
	if !isUpgrade(r) {
		if r.URL.Path == "/api/signal" {
			w.Header().Set("Allow", "POST")
			return problem.New(problem.MethodNotAllowed, `"/api/signal" takes POST, and WebSocket`)
		}
		return problem.New(problem.NotFound, fmt.Sprintf("%q is a WebSocket; GET /api/v1/openapi.json lists the paths", r.URL.Path))
	}
	if err := route.CheckUpgrade(r, ""); err != nil {
		return err
	}
	answers, err := flag(r.URL.Query().Get("ack"))
	if err != nil {
		return problem.New(problem.BadRequest, fmt.Sprintf("ack: %v", err))
	}
	conn, err := rv.accept(w, r)
	if err != nil {
		return nil //nolint:nilerr // Accept has answered
	}
	s := &socket{rv: rv, conn: conn, end: route.SocketCloser(w, conn, rv.cfg.AfterFunc)}
	s.take = func(ctx context.Context, text []byte) (message, error) {
		var m message
		m.err = rv.read(ctx, r, text, &m)
		return m, nil
	}
	s.settle = func(ctx context.Context, settled []settledMessage) error {
		for i := range settled {
			m := &settled[i]
			if m.err != nil && !answers {
				rv.cfg.Logger.Warn("a frame was not recorded", slog.Any("err", m.err))
			}
			if !answers {
				continue
			}
			text := rv.refusal(m.err)
			if m.err == nil {
				text = rv.accepted(nil, m.addition.Signals[0])
			}
			if err := write(ctx, conn, text); err != nil {
				return err
			}
		}
		return nil
	}
	s.run(r)
	return nil
}

// read reads the envelope of a frame.
func (rv *Receiver) read(ctx context.Context, r *http.Request, text []byte, m *message) error {
	sig, err := Envelope(text, rv.cfg.Now(), rv.cfg.NewID)
	if err != nil {
		return err
	}
	name, err := rv.sessionFor(r, sig)
	if err != nil {
		return err
	}
	m.addition = reference(sig)
	m.ses, err = rv.open(ctx, access.ScopeRecord, name)
	return err
}

// refusal returns the answer to a frame that was not recorded.
func (rv *Receiver) refusal(err error) []byte {
	if err == nil {
		return nil
	}
	doc, _ := problem.Of(err).MarshalJSON() // no member of a problem can fail
	return append(append([]byte(`{"ok":false,"error":`), doc...), '}')
}

// write sends a message. For a peer that takes nothing, the ping of its connection is not
// answered in time, which ends the write too.
func write(ctx context.Context, conn *websocket.Conn, text []byte) error {
	return conn.Write(ctx, websocket.MessageText, text)
}
