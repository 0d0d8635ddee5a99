package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/server/agentwire"
	"github.com/sajou-dev/sajou-go/server/record"
)

// clients runs all clients for a time, and until each kind has completed an act.
func (s *soak) clients(ctx context.Context, eng *sajou.Engine, length time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(length+slowest, cancel).Stop()
	kinds := []struct {
		name  string
		count int
		act   func(*client) error
	}{
		{"record", 4, (*client).record},
		{"record lines", 2, (*client).recordLines},
		{"flood", 2, (*client).flood},
		{"watch", 8, (*client).watch},
		{"vanish", 2, (*client).vanish},
		{"stall", 4, (*client).stall},
		{"lie", 2, (*client).lie},
		{"act", 1, (*client).actAsNear},
	}
	begun := time.Now()
	completed := func(kind string) {
		if acted := s.act(kind); acted == len(kinds) && time.Since(begun) >= length {
			cancel()
		}
	}
	var all sync.WaitGroup
	for _, kind := range kinds {
		for i := range kind.count {
			all.Go(func() {
				c := s.client(ctx, fmt.Sprint(kind.name, " ", i))
				defer c.http.CloseIdleConnections()
				for ctx.Err() == nil {
					err := kind.act(c)
					switch {
					case ctx.Err() != nil:
					case err != nil:
						s.fault(fmt.Errorf("%s: %w", c.name, err))
						c.wait(100 * time.Millisecond)
					default:
						completed(kind.name)
					}
				}
			})
		}
	}
	all.Go(func() {
		if err := hide(ctx, eng); err != nil && ctx.Err() == nil {
			s.fault(err)
		}
	})
	all.Wait()
}

// lasting returns a context that ends after a time. It has no deadline: a connection
// whose deadline has passed fails before its context ends, and that looks like a fault.
func lasting(ctx context.Context, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(d, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// hide does what most clients may not learn of, until ctx ends.
func hide(ctx context.Context, eng *sajou.Engine) error {
	hidden, err := eng.Session(ctx, hiddenSession)
	if err != nil {
		return err
	}
	ses, err := eng.Session(ctx, worldSession)
	if err != nil {
		return err
	}
	far, err := ses.Agents().Register(ctx, "far", value(`{"distance_limit":50}`))
	if err != nil {
		return err
	}
	defer far.Close()
	for n := 0; ; n++ {
		if _, err := hidden.Signal(ctx, note(secret, true)); err != nil {
			return err
		}
		payload := value(fmt.Sprintf(`{"text":%q}`, secret))
		if _, err := far.Submit(ctx, agents.Intent{Kind: agentworld.KindSpeak, Payload: payload, ReqID: fmt.Sprint(time.Now().UnixNano(), n)}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// client is one client. Its acts follow each other.
type client struct {
	*soak
	ctx    context.Context
	name   string
	http   *http.Client
	chance *rand.Rand // its own: each run has the same clients
	acts   int
	next   uint64 // the entry behind the last one that it saw; 0 before the first
}

func (s *soak) client(ctx context.Context, name string) *client {
	seed := crc32.ChecksumIEEE([]byte(name))
	c := &client{soak: s, ctx: ctx, name: name, chance: rand.New(rand.NewPCG(uint64(seed), 0))}
	c.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) }}}
	return c
}

// wait waits, or until the clients end.
func (c *client) wait(d time.Duration) {
	select {
	case <-c.ctx.Done():
	case <-time.After(d):
	}
}

// dial opens a connection that looks for the secret in what it receives.
func (s *soak) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: conn, soak: s}, nil
}

// wire is a connection that may not receive the secret.
type wire struct {
	net.Conn
	soak *soak
	tail []byte // the end of what was received before
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.tail = append(w.tail, p[:n]...)
	if bytes.Contains(w.tail, []byte(secret)) {
		w.soak.fault(errors.New("a connection received what is hidden from it"))
	}
	w.tail = append(w.tail[:0], w.tail[max(0, len(w.tail)-len(secret)+1):]...)
	return n, err
}

// ask sends a request and returns the status and the body of the answer.
func (c *client) ask(method, path, token, body string, header ...string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(c.ctx, method, "http://"+c.address+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, text, err
}

// answered is the part of a receipt that is compared.
type answered struct {
	Head struct {
		Seq  uint64 `json:"seq"`
		Hash string `json:"hash"`
	} `json:"head"`
	Repeat bool `json:"repeat"`
}

const signalsPath = "/api/v1/sessions/" + openSession + "/signals"

// signal returns the text of a signal.
func (c *client) signal() string {
	c.acts++
	return fmt.Sprintf(`{"id":"%s %d","type":"note","timestamp":%d,"source":"soak","payload":{"text":"hello"}}`, c.name, c.acts, time.Now().UnixMilli())
}

// post records a body and keeps the receipt.
func (c *client) post(body string, header ...string) (a answered, err error) {
	status, text, err := c.ask(http.MethodPost, signalsPath, c.token, body, header...)
	if err != nil {
		return a, err
	}
	if status != http.StatusOK {
		return a, fmt.Errorf("%d: %s", status, text)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, err
	}
	c.keep(openSession, a.Head.Seq, a.Head.Hash)
	return a, nil
}

// record records a signal under a key, sometimes twice.
func (c *client) record() error {
	key := fmt.Sprint(c.name, " ", time.Now().UnixNano())
	first, err := c.post(c.signal(), "Idempotency-Key", key)
	if err != nil {
		return err
	}
	c.wait(time.Millisecond)
	if c.acts%7 != 0 {
		return nil
	}
	again, err := c.post(c.signal(), "Idempotency-Key", key)
	if err == nil && (!again.Repeat || again.Head != first.Head) {
		err = fmt.Errorf("a repeat of %v gives %v", first, again)
	}
	return err
}

// recordLines records a stream of lines.
func (c *client) recordLines() error {
	var body strings.Builder
	for range 50 {
		body.WriteString(c.signal() + "\n")
	}
	_, err := c.post(body.String(), "Content-Type", "application/x-ndjson")
	c.wait(50 * time.Millisecond)
	return err
}

// socket opens a WebSocket. The caller closes it.
func (c *client) socket(path, protocol string) (*websocket.Conn, error) {
	conn, res, err := websocket.Dial(c.ctx, "ws://"+c.address+path, &websocket.DialOptions{
		HTTPClient: c.http, Subprotocols: []string{protocol}, HTTPHeader: http.Header{"Authorization": {"Bearer " + c.token}},
	})
	if res != nil && res.Body != nil && err != nil {
		_ = res.Body.Close()
	}
	if err == nil {
		conn.SetReadLimit(1 << 20)
	}
	return conn, err
}

// flood sends many messages before it reads an acknowledgement, and sometimes goes away
// before it has read them all.
func (c *client) flood() error {
	conn, err := c.socket(signalsPath+"/ws", record.Subprotocol)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	const messages = 400
	for n := range messages {
		if err := conn.Write(c.ctx, websocket.MessageText, fmt.Appendf(nil, `{"n":%d,"signal":%s}`, n, c.signal())); err != nil {
			return err
		}
	}
	most := messages
	if c.chance.IntN(3) == 0 {
		most = c.chance.IntN(messages)
	}
	for n := 0; n < most; {
		_, text, err := conn.Read(c.ctx)
		if err != nil {
			return err
		}
		var m struct {
			Type string
			Acks []struct {
				N    int
				Seq  uint64
				Hash string
			}
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		if m.Type == "refused" {
			return fmt.Errorf("%s", text)
		}
		for _, a := range m.Acks {
			if a.N != n {
				return fmt.Errorf("message %d is acknowledged in place of %d", a.N, n)
			}
			n++
			c.keep(openSession, a.Seq, a.Hash)
		}
	}
	c.wait(200 * time.Millisecond)
	return nil
}

// watch watches for a while, from where it was before.
func (c *client) watch() error {
	ctx, cancel := lasting(c.ctx, time.Duration(c.chance.Int64N(int64(2*time.Second))))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address+"/api/v1/sessions/"+openSession+"/live", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if c.next > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(c.next-1, 10))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return ignore(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	events := bufio.NewScanner(res.Body)
	events.Buffer(nil, 1<<20)
	id, data := uint64(0), false
	for events.Scan() {
		switch line := events.Text(); {
		case strings.HasPrefix(line, "id: "):
			if id, err = strconv.ParseUint(line[len("id: "):], 10, 64); err != nil {
				return ignore(ctx, err) // the end of ctx may have cut the line
			}
		case strings.HasPrefix(line, "data: "):
			data = true
		case line == "" && id > 0: // the event is whole
			want := c.next
			if !data {
				want-- // where the stream begins or ends
			}
			if c.next > 0 && id != want {
				return fmt.Errorf("entry %d comes after entry %d", id, c.next-1)
			}
			c.next, id, data = id+1, 0, false
		}
	}
	return ignore(ctx, events.Err())
}

// ignore returns nil for an error that the end of ctx explains.
func ignore(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// vanish goes away in the middle of a request.
func (c *client) vanish() error {
	conn, err := c.dial(c.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	head := "POST " + signalsPath + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + c.token + "\r\nContent-Length: 1000\r\n\r\n"
	text := head + `{"id":"never`
	if c.chance.IntN(2) == 0 {
		text = strings.Replace(head, "POST", "GET", 1) // of the WebSocket
		text = strings.Replace(text, "signals HTTP", "signals/ws HTTP", 1)
		text = strings.Replace(text, "Content-Length: 1000", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: "+record.Subprotocol, 1)
		text += "\x81\xfe\x01"
	}
	_, err = io.WriteString(conn, text[:len(text)-c.chance.IntN(len(text))])
	c.wait(5 * time.Millisecond)
	return err
}

// stall sends a part of a request, or reads nothing of a stream, until the server ends the
// connection or patience does.
func (c *client) stall() error {
	conn, err := c.dial(c.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if c.chance.IntN(2) == 0 {
		_, err = fmt.Fprintf(conn, "GET /api/v1/sessions/%s/live?from=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", openSession, c.token)
		c.wait(3 * time.Second)
		return err
	}
	if _, err = io.WriteString(conn, "POST "+signalsPath+" HTTP/1.1\r\nHost: local"); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	defer context.AfterFunc(c.ctx, func() { _ = conn.Close() })()
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("the server waits for a header for ever")
	}
	return nil
}

// lie asks for what it may not have, and in forms that are none.
func (c *client) lie() error {
	for _, q := range []struct {
		method, path, token, body string
		want                      int // 0: any refusal of the client
	}{
		{"GET", "/api/v1/sessions/" + hiddenSession + "/entries", c.token, "", http.StatusNotFound},
		{"GET", "/api/v1/sessions/" + hiddenSession + "/state", c.token, "", http.StatusNotFound},
		{"GET", "/api/v1/sessions/" + hiddenSession + "/live", c.token, "", http.StatusNotFound},
		{"POST", "/api/v1/sessions/" + hiddenSession + "/signals", c.token, c.signal(), http.StatusNotFound},
		{"GET", "/api/v1/sessions/" + worldSession + "/entries", c.token, "", 0},
		{"GET", "/api/v1/sessions/" + worldSession + "/agents/far/ws", c.token, "", 0},
		{"GET", "/api/v1/sessions/" + openSession + "/entries", c.token[:len(c.token)-1] + "0", "", http.StatusUnauthorized},
		{"GET", "/api/v1/sessions/" + openSession + "/../" + hiddenSession + "/entries", c.token, "", 0},
		{"GET", "/api/v1/sessions/%2e%2e/entries", c.token, "", 0},
		{"GET", "/metrics", c.token, "", 0},
		{"POST", signalsPath, c.token, `{"id":`, 0},
		{"POST", signalsPath, c.token, `[]`, 0},
		{"POST", signalsPath + "?expect=1:" + strings.Repeat("0", 64), c.token, c.signal(), http.StatusConflict},
		{"POST", signalsPath, "", c.signal(), http.StatusUnauthorized},
	} {
		status, text, err := c.ask(q.method, q.path, q.token, q.body)
		switch {
		case err != nil:
			return err
		case q.want != 0 && status != q.want, status < 400, status >= 500:
			return fmt.Errorf("%s %s: %d: %.200s", q.method, q.path, status, text)
		}
	}
	c.wait(20 * time.Millisecond)
	return nil
}

// actAsNear acts as the agent near for a few intents, and goes away.
func (c *client) actAsNear() error {
	conn, err := c.socket("/api/v1/sessions/"+worldSession+"/agents/near/ws", agentwire.SubprotocolAgent)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	say := func(m map[string]any) error {
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		return conn.Write(c.ctx, websocket.MessageText, text)
	}
	if err := say(map[string]any{"type": "hello"}); err != nil {
		return err
	}
	for outcomes, seq := 0, uint64(0); outcomes < 5; {
		_, text, err := conn.Read(c.ctx)
		if err != nil {
			return err
		}
		var m struct {
			Type    string
			ViewSeq uint64 `json:"view_seq"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		switch m.Type {
		case "observation":
			first := seq == 0
			seq = m.ViewSeq
			if err := say(map[string]any{"type": "ack", "view_seq": seq}); err != nil {
				return err
			}
			if !first {
				continue
			}
		case "outcome":
			outcomes++
		default:
			continue
		}
		c.acts++
		intent := map[string]any{"type": "intent", "req_id": fmt.Sprint(time.Now().UnixNano()), "kind": "Speak", "payload": map[string]any{"text": "hello"}, "context_seq": seq}
		if err := say(intent); err != nil {
			return err
		}
	}
	c.wait(20 * time.Millisecond)
	return nil
}
