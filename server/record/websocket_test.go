package record_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/record"
)

// wait reads the signals of a session until there are n.
func (d *door) wait(name string, n int) []string {
	d.t.Helper()
	ses, err := d.engine.Session(d.t.Context(), name)
	require.NoError(d.t, err)
	for e, err := range ses.Subscribe(d.t.Context(), 1) {
		require.NoError(d.t, err)
		if int(e.Seq) > n { // the first entry opens the session
			break
		}
	}
	return d.signals(name)
}

// frame returns a masked text frame, as a client sends it.
func frame(text string) []byte {
	b := []byte{0x81}
	switch {
	case len(text) < 126:
		b = append(b, 0x80|byte(len(text)))
	default:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(len(text)))
	}
	mask := []byte{1, 2, 3, 4}
	b = append(b, mask...)
	for i := range len(text) {
		b = append(b, text[i]^mask[i%4])
	}
	return b
}

// The handshake and the frames of the tap as they stand on the wire, for each path that its
// URL may have. The extension that it offers is declined.
func TestTapOverWebSocket(t *testing.T) {
	for _, path := range []string{"/", "/api/signal", "/ws"} {
		d := open(t, sajou.Config{}, record.Config{})
		conn, err := net.Dial("tcp", d.addr)
		require.NoError(t, err)
		_, err = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nHost: localhost:5175\r\n\r\n")
		require.NoError(t, err)
		answer := bufio.NewReader(conn)
		head := ""
		for !strings.HasSuffix(head, "\r\n\r\n") {
			line, err := answer.ReadString('\n')
			require.NoError(t, err)
			head += line
		}
		assert.True(t, strings.HasPrefix(head, "HTTP/1.1 101 Switching Protocols\r\n"), head)
		assert.Contains(t, head, "Sec-Websocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n")
		assert.NotContains(t, strings.ToLower(head), "extensions")
		_, err = conn.Write(append(frame(toolCall("a")), frame(`{"type":"user.hello"}`)...))
		require.NoError(t, err)
		_, err = conn.Write(append(frame(`{not JSON`), frame(toolCall("b"))...))
		require.NoError(t, err)
		assert.Equal(t, []string{toolCall("a"), `{"id":"id-1","type":"user.hello","timestamp":1772366400000,"source":"http","payload":{}}`, toolCall("b")}, d.wait("live", 3))
		require.NoError(t, conn.Close()) // without a word, as a process that was killed
	}
}

func (d *door) dial(path string, protocols ...string) *websocket.Conn {
	d.t.Helper()
	conn, res, err := websocket.Dial(d.t.Context(), "ws://"+d.addr+path, &websocket.DialOptions{Subprotocols: protocols})
	require.NoError(d.t, err)
	if res.Body != nil {
		res.Body.Close()
	}
	d.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func send(t *testing.T, conn *websocket.Conn, text string) {
	t.Helper()
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(text)))
}

func receive(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	_, text, err := conn.Read(t.Context())
	require.NoError(t, err)
	return string(text)
}

func TestFramesAreAnsweredIfAsked(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	conn := d.dial("/?ack=1")
	send(t, conn, toolCall("a"))
	assert.Equal(t, `{"ok":true,"id":"a","clients":0}`, receive(t, conn))
	send(t, conn, `{`)
	text := receive(t, conn)
	assert.Equal(t, false, member(t, text, "ok"))
	assert.Equal(t, "bad-request", member(t, text, "error", "code"))
	require.NoError(t, conn.Close(websocket.StatusNormalClosure, ""))
	for _, path := range []string{"/", "/ws"} {
		status, _, _ := d.do("GET", path, "")
		assert.Equal(t, 404, status)
	}
	status, header, _ := d.do("GET", "/api/signal", "")
	assert.Equal(t, 405, status)
	assert.Equal(t, "POST", header.Get("Allow"))
}

const wsPath = "/api/v1/sessions/run-7/signals/ws"

// numbered is a message of the subprotocol.
func numbered(n int, sig string) string { return fmt.Sprintf(`{"n":%d,"signal":%s}`, n, sig) }

// acks reads acknowledgements until n messages are acknowledged, and returns their Seqs by
// the number of the message.
func acks(t *testing.T, conn *websocket.Conn, n int) map[int]int {
	t.Helper()
	all := map[int]int{}
	for len(all) < n {
		text := receive(t, conn)
		require.Equal(t, "ack", member(t, text, "type"), text)
		for _, a := range member(t, text, "acks").([]any) {
			m := a.(map[string]any)
			require.Len(t, m["hash"], 64)
			all[int(m["n"].(float64))] = int(m["seq"].(float64))
		}
	}
	return all
}

// Each message is acknowledged with its place, more of them than the window, and what was
// not acknowledged before the connection broke is sent again and recorded once.
func TestAcknowledgedMessages(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{Window: 8})
	conn := d.dial(wsPath+"?client=probe", record.Subprotocol)
	ready := receive(t, conn)
	assert.Equal(t, "ready", member(t, ready, "type"))
	assert.InDelta(t, 8, member(t, ready, "window"), 0)
	assert.InDelta(t, 0, member(t, ready, "head", "seq"), 0)
	for n := range 100 {
		send(t, conn, numbered(n, toolCall(itoa(n))))
	}
	seqs := acks(t, conn, 100)
	for n := range 100 {
		assert.Equal(t, n+2, seqs[n])
	}
	send(t, conn, numbered(100, `{"id":"x","type":"tool_call","timestamp":1,"source":"s","payload":{}}`))
	text := receive(t, conn)
	assert.Equal(t, "refused", member(t, text, "type"))
	assert.InDelta(t, 100, member(t, text, "n"), 0)
	assert.Equal(t, "/signal/payload/toolName", member(t, text, "problem", "pointer"))
	require.NoError(t, conn.CloseNow())

	conn = d.dial(wsPath+"?client=probe", record.Subprotocol)
	assert.InDelta(t, 101, member(t, receive(t, conn), "head", "seq"), 0)
	for n := 95; n < 110; n++ {
		send(t, conn, numbered(n, toolCall(itoa(n))))
	}
	again := acks(t, conn, 15)
	assert.Equal(t, seqs[97], again[97])
	assert.Equal(t, 111, again[109])
	assert.Len(t, d.signals("run-7"), 110)
}

// How connections end.
func TestCloseCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(*testing.T, *websocket.Conn, *door)
		code websocket.StatusCode
	}{
		{"no JSON", func(t *testing.T, c *websocket.Conn, _ *door) { send(t, c, "{") }, record.CloseUnreadable},
		{"no number", func(t *testing.T, c *websocket.Conn, _ *door) { send(t, c, `{"signal":{}}`) }, record.CloseUnreadable},
		{"binary", func(t *testing.T, c *websocket.Conn, _ *door) {
			require.NoError(t, c.Write(t.Context(), websocket.MessageBinary, []byte("{}")))
		}, websocket.StatusUnsupportedData},
		{"too long", func(t *testing.T, c *websocket.Conn, _ *door) { send(t, c, strings.Repeat(" ", 5000)) }, websocket.StatusMessageTooBig},
		{"the server stops", func(t *testing.T, c *websocket.Conn, d *door) {
			send(t, c, numbered(1, toolCall("a")))
			acks(t, c, 1)
			go d.stop()
		}, websocket.StatusGoingAway},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, sajou.Config{}, record.Config{MaxBody: 4096})
			conn := d.dial(wsPath, record.Subprotocol)
			receive(t, conn)
			c.send(t, conn, d)
			_, _, err := conn.Read(t.Context())
			assert.Equal(t, c.code, websocket.CloseStatus(err), "%v", err)
		})
	}
	d := open(t, sajou.Config{}, record.Config{})
	conn := d.dial(wsPath, "another")
	_, _, err := conn.Read(t.Context())
	assert.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err))
	status, _, _ := d.do("GET", wsPath, "")
	assert.Equal(t, 400, status)
}

// A web page of another origin may neither post nor open a WebSocket.
func TestForeignOrigins(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	status, _, _ := d.do("POST", "/api/signal", toolCall("a"), "Origin", "https://attacker.example")
	assert.Equal(t, 403, status)
	_, res, err := websocket.Dial(context.Background(), "ws://"+d.addr+"/", &websocket.DialOptions{HTTPHeader: map[string][]string{"Origin": {"https://attacker.example"}}})
	require.Error(t, err)
	assert.Equal(t, 403, res.StatusCode)
	assert.Empty(t, d.signals("live"))
}
