package record

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/coder/websocket"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Subprotocol is the WebSocket subprotocol in which each signal is acknowledged:
//
//	server  {"type":"ready","session":"live","head":{"seq":0,"hash":"…"},"window":256}
//	client  {"n":1,"signal":{…}}
//	server  {"type":"ack","acks":[{"n":1,"seq":2,"hash":"…"}]}
//	server  {"type":"refused","n":2,"problem":{…}}
//
// The client numbers its messages as it likes, with integers from 0 to 2^53-1. Each is
// answered once, in the order of the messages: acknowledged when its signal is durable, or refused with
// a problem document. The server reads at most window messages ahead of its answers.
//
// A client that loses the connection sends again what was not answered. If it names
// itself, with client=NAME in the query of the first and of each later connection, a
// message that was recorded is not recorded again: its number and the name are its
// idempotency key, and the answer is the first one. Close codes are those of RFC 6455:
// 1001 the server stops, 1003 a message is binary, 1009 it is too long, 1013 the
// log takes no entries; and [CloseUnreadable].
const Subprotocol = "sajou.signals.v1"

// CloseUnreadable is the code with which the server closes a connection after a message
// that is not JSON, or that has no number to answer to.
const CloseUnreadable websocket.StatusCode = 4400

// maxClient bounds the name of a client, in bytes.
const maxClient = 128

// maxNumber is the largest number of a message: JavaScript has it exactly.
const maxNumber = 1<<53 - 1

// acknowledged records signals over WebSocket and acknowledges each.
func (rv *Receiver) acknowledged(w http.ResponseWriter, r *http.Request) error {
	if err := route.CheckUpgrade(r, ""); err != nil {
		return err
	}
	in, err := rv.intakeOf(r, "client", "lenient")
	if err != nil {
		return err
	}
	client := r.URL.Query().Get("client")
	if len(client) > maxClient {
		return problem.New(problem.BadRequest, fmt.Sprintf("the name of the client has %d bytes; %d are allowed", len(client), maxClient))
	}
	conn, err := rv.accept(w, r, Subprotocol)
	if err != nil {
		return nil // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	if conn.Subprotocol() != Subprotocol {
		_ = conn.Close(websocket.StatusPolicyViolation, "the client has to offer the subprotocol "+Subprotocol)
		return nil
	}
	head := in.ses.Head()
	ready := signal.NewObject(4).Text("type", "ready").Text("session", in.ses.Name()).
		Add("head", signal.NewObject(2).Uint("seq", uint64(head.Seq)).Text("hash", head.Hash.String()).Value()).
		Int("window", int64(rv.cfg.Window)).Value()
	if err := write(r.Context(), conn, ready.AppendJSON(nil)); err != nil {
		return nil // the peer is gone
	}
	s := &socket{rv: rv, conn: conn, end: route.SocketCloser(w, conn, rv.cfg.AfterFunc)}
	s.take = func(_ context.Context, text []byte) (message, error) { return in.message(client, text) }
	var out []byte // of the goroutine that answers
	s.settle = func(ctx context.Context, settled []settledMessage) error {
		for len(settled) > 0 {
			n := 0
			for n < len(settled) && settled[n].err == nil {
				n++
			}
			if n == 0 {
				out = appendRefusal(out[:0], &settled[0])
				n = 1
			} else {
				out = appendAcks(out[:0], settled[:n])
			}
			if err := write(ctx, conn, out); err != nil {
				return err
			}
			settled = settled[n:]
		}
		return nil
	}
	s.run(r)
	return nil
}

// message reads a message of the subprotocol. The error is about a message that cannot be
// answered.
func (in *intake) message(client string, text []byte) (message, error) {
	m := message{ses: in.ses}
	v, err := signal.ParseValue(text)
	if err != nil {
		return m, unreadable(err.Error())
	}
	n, ok := v.Member("n").Int64()
	if !ok || n < 0 || n > maxNumber {
		return m, unreadable("n has to be an integer from 0 to 2^53-1")
	}
	m.number = uint64(n)
	content, has := v.Get("signal")
	if !has {
		m.err = &signal.FieldError{Path: "/signal", Reason: "is required"}
		return m, nil
	}
	sig, err := in.read(content)
	if err != nil {
		if f, ok := errors.AsType[*signal.FieldError](err); ok {
			err = &signal.FieldError{Path: "/signal" + f.Path, Reason: f.Reason}
		}
		m.err = err
		return m, nil
	}
	m.addition = sajou.Addition{Signals: []*signal.Signal{sig}, Lenient: in.lenient}
	if client != "" {
		m.addition.Key = "ws/" + client + "/" + strconv.FormatUint(m.number, 10)
	}
	return m, nil
}

// unreadable is the end of a connection after a message that cannot be answered.
func unreadable(reason string) error {
	return websocket.CloseError{Code: CloseUnreadable, Reason: errtext.CloseReason(reason)}
}

// appendAcks appends the acknowledgement of messages.
func appendAcks(dst []byte, settled []settledMessage) []byte {
	dst = append(dst, `{"type":"ack","acks":[`...)
	for i := range settled {
		if i > 0 {
			dst = append(dst, ',')
		}
		m := &settled[i]
		dst = appendHead(strconv.AppendUint(append(dst, `{"n":`...), m.number, 10), m.receipt.Head)
	}
	return append(dst, `]}`...)
}

func appendHead(dst []byte, head eventlog.Head) []byte {
	dst = strconv.AppendUint(append(dst, `,"seq":`...), uint64(head.Seq), 10)
	dst = hex.AppendEncode(append(dst, `,"hash":"`...), head.Hash[:])
	return append(dst, `"}`...)
}

// appendRefusal appends the refusal of a message.
func appendRefusal(dst []byte, m *settledMessage) []byte {
	p := problem.Of(m.err)
	if errors.Is(m.err, session.ErrTime) { // the engine knows the signal, not the message
		p = p.At("/signal/timestamp")
	}
	doc, _ := p.MarshalJSON() // no member of a problem can fail
	dst = strconv.AppendUint(append(dst, `{"type":"refused","n":`...), m.number, 10)
	return append(append(append(dst, `,"problem":`...), doc...), '}')
}
