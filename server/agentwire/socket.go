package agentwire

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/coder/websocket"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/route"
)

// socket is a WebSocket as a [transport].
type socket struct {
	conn *websocket.Conn
	room *AgentDoor
	end  func(websocket.StatusCode, string) // closes conn
}

// accept turns a request into a WebSocket with a subprotocol.
func (r *AgentDoor) accept(w http.ResponseWriter, req *http.Request, subprotocol string) (*socket, error) {
	if err := route.CheckUpgrade(req, subprotocol); err != nil {
		return nil, err
	}
	conn, err := websocket.Accept(w, req, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // the middleware has checked the origin
	})
	if err != nil {
		return nil, nil //nolint:nilerr // Accept has answered
	}
	conn.SetReadLimit(-1) // see route.ReadMessage
	return &socket{conn, r, route.SocketCloser(w, conn, r.cfg.AfterFunc)}, nil
}

// Read returns the next text message. It ends with Close alone: the library closes a
// connection whose context ends without saying why.
func (s *socket) Read() ([]byte, error) {
	var frame bytes.Buffer
	kind, err := route.ReadMessage(context.Background(), s.conn, &frame, s.room.cfg.MaxMessage)
	switch {
	case errors.Is(err, route.ErrLongMessage):
		return nil, errTooBig
	case route.FaultyFrame(err):
		return nil, errFrame
	case err != nil:
		return nil, err
	case kind != websocket.MessageText:
		return nil, errBinary
	}
	return frame.Bytes(), nil
}

func (s *socket) Write(frame []byte) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := s.room.cfg.AfterFunc(s.room.cfg.WriteTimeout, cancel)
	defer stop()
	return s.conn.Write(ctx, websocket.MessageText, frame)
}

func (s *socket) Ping(ctx context.Context) error { return s.conn.Ping(ctx) }

func (s *socket) Close(how closing) {
	if how == closeSlow {
		_ = s.conn.CloseNow()
		return
	}
	s.end(websocket.StatusCode(how.code), how.reason)
}

// hello reads the first message, and returns it with the caller of the connection. The
// error is a close of the protocol.
func (r *AgentDoor) hello(req *http.Request, s *socket, in channel) (*incoming, *access.Caller, *closing) {
	came := make(chan struct{})
	late := make(chan struct{})
	stop := r.cfg.AfterFunc(r.cfg.HelloTimeout, func() { close(late) })
	defer stop()
	early := make(chan *closing, 1)
	go func() {
		select {
		case <-late:
			s.Close(closeHello)
			early <- &closeHello
		case <-route.Stopping(req.Context()):
			s.Close(closeStopping)
			early <- &closeStopping
		case <-came:
			early <- nil
		}
	}()
	frame, err := s.Read()
	close(came)
	if how := <-early; how != nil {
		return nil, nil, how
	}
	switch {
	case errors.Is(err, errTooBig):
		return nil, nil, &closeTooBig
	case errors.Is(err, errBinary):
		return nil, nil, &closeBinary
	case errors.Is(err, errFrame):
		return nil, nil, &closeFrame
	case err != nil:
		return nil, nil, &closeNormal
	}
	m, err := decode(in, frame)
	if err != nil || m.Type != "hello" {
		return nil, nil, &closeProtocol
	}
	caller := access.From(req.Context())
	if m.Token != "" {
		if caller, err = r.cfg.Recognize(req, m.Token); err != nil {
			access.Note(req.Context(), access.SecurityEvent{Kind: access.AuthFailed, Caller: access.RefusedName(err), Detail: "the token of a first message"})
			return nil, nil, &closeToken
		}
	}
	return m, caller, nil
}

// refuse ends a socket whose caller may not use it.
func (r *AgentDoor) refuse(ctx context.Context, s *socket, p place, err error) {
	kind := access.ActForbidden
	if errors.Is(err, access.ErrUnauthenticated) {
		kind = access.AuthFailed
	}
	access.Note(ctx, access.SecurityEvent{Kind: kind, Session: p.session, Agent: p.agent})
	s.Close(closingOf(err))
}

// agentSocket serves an agent over a WebSocket.
func (r *AgentDoor) agentSocket(w http.ResponseWriter, req *http.Request) error {
	s, err := r.accept(w, req, SubprotocolAgent)
	if s == nil {
		return err
	}
	defer context.AfterFunc(req.Context(), func() { _ = s.conn.CloseNow() })()
	p := place{route.Session(req), req.PathValue("agent")}
	m, caller, refused := r.hello(req, s, agentSocket)
	if refused != nil {
		s.Close(*refused)
		return nil
	}
	ctx, release := r.cfg.Guard(access.With(req.Context(), caller), caller)
	defer release()
	if err := access.CheckAct(ctx, p.session, p.agent); err != nil {
		r.refuse(ctx, s, p, err)
		return nil
	}
	c, err := r.connect(ctx, p, m.ViewSeq, s, r.cfg.Window)
	if err != nil {
		s.Close(closingOf(err))
		return nil
	}
	c.run(m.ViewSeq, route.Stopping(ctx))
	return nil
}
