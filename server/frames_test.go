package server_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// frame returns a masked frame of a WebSocket.
func frame(first byte, payload string) []byte {
	b := []byte{first}
	if n := len(payload); n < 126 {
		b = append(b, 0x80|byte(n))
	} else {
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	}
	b = append(b, 1, 2, 3, 4)
	for i := range len(payload) {
		b = append(b, payload[i]^byte(i%4+1))
	}
	return b
}

// upgraded opens a WebSocket by hand.
func upgraded(t *testing.T, address, target, subprotocol string) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	c := &raw{conn, bufio.NewReader(conn)}
	lines := []string{"GET " + target + " HTTP/1.1", "Host: localhost"}
	for header := upgrade(subprotocol); len(header) > 0; header = header[2:] {
		if header[1] != "" {
			lines = append(lines, header[0]+": "+header[1])
		}
	}
	c.send(t, strings.Join(lines, "\r\n")+"\r\n\r\n")
	res, err := http.ReadResponse(c.in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	return c
}

// closeCode reads frames of the server until it closes, and returns its code: 1005 for a close
// without one, and 1006 without a close frame.
func (c *raw) closeCode(t *testing.T) int {
	t.Helper()
	for {
		var head [2]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return 1006
		}
		n := uint64(head[1])
		switch n {
		case 126:
			var l uint16
			require.NoError(t, binary.Read(c.in, binary.BigEndian, &l))
			n = uint64(l)
		case 127:
			require.NoError(t, binary.Read(c.in, binary.BigEndian, &n))
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(c.in, payload); err != nil {
			return 1006
		}
		if head[0]&0xf == 8 {
			if len(payload) < 2 {
				return 1005
			}
			return int(binary.BigEndian.Uint16(payload))
		}
	}
}

// faults are invalid frames (RFC 6455) that a client may send.
var faults = map[string][]byte{
	"a frame without a mask":           {0x81, 2, '{', '}'},
	"a compressed message":             frame(0xc1, "{}"),
	"a reserved bit":                   frame(0xa1, "{}"),
	"an unknown kind":                  frame(0x83, "{}"),
	"an unknown kind of control":       frame(0x8b, "{}"),
	"a ping in parts":                  frame(0x09, ""),
	"a long ping":                      frame(0x89, strings.Repeat("x", 126)),
	"the end of nothing":               frame(0x80, "{}"),
	"a negative length":                append([]byte{0x81, 0xff, 0x80}, make([]byte, 11)...),
	"half a close code":                frame(0x88, "x"),
	"a close code of the library":      frame(0x88, "\x03\xed"),
	"a close code that does not exist": frame(0x88, "\xff\xff"),
	"another protocol":                 []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
}

// talking opens a WebSocket of the contract and says what its client says first, if the server
// waits for that.
func talking(t *testing.T, live *httptest.Server, e *route.Endpoint) *raw {
	t.Helper()
	talk := streams[e.Pattern][0]
	c := upgraded(t, strings.TrimPrefix(live.URL, "http://"), talk.target, e.Doc.Socket.Subprotocol)
	if len(talk.say) > 0 && strings.Contains(talk.say[0], `"hello"`) {
		c.send(t, string(frame(0x81, talk.say[0])))
	}
	return c
}

// TestAttackFrames sends bytes that are not frames, messages that the protocols do not have, and
// half connections to every WebSocket. Each connection ends with its documented code, and
// holds nothing of the server afterwards.
func TestAttackFrames(t *testing.T) {
	c := newContract(t, nil)
	live := httptest.NewServer(c)
	defer live.Close()
	released := func(what string) {
		require.Eventually(t, func() bool { return c.InUse() == limit.InUse{} }, 4*time.Second, time.Millisecond, what)
	}
	for _, e := range c.Routes() {
		if e.Doc.Socket == nil {
			continue
		}
		for name, fault := range faults {
			k := talking(t, live, &e)
			_, _ = k.Write(fault) // the server may close before all is sent
			assert.Equal(t, 1002, k.closeCode(t), "%s: %s", e.Pattern, name)
			require.NoError(t, k.Close())
			released(name)
		}
		nested, binary, long := 1002, 1003, 1009
		if e.Doc.Socket.Client == "" { // its client says nothing
			nested, binary, long = 1008, 1008, 1008
		}
		for name, way := range map[string]struct {
			bytes []byte
			code  int
		}{
			"a message in a message": {append(frame(0x01, "{"), frame(0x81, "}")...), nested},
			"binary":                 {frame(0x82, "{}"), binary},
			"a long message":         {append([]byte{0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4}, make([]byte, 2<<20)...), long},
			"a close":                {frame(0x88, "\x03\xe8"), 1000},
			"a bare close":           {frame(0x88, ""), 1005},
		} {
			k := talking(t, live, &e)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = k.Write(way.bytes)
			}()
			assert.Equal(t, way.code, k.closeCode(t), "%s: %s", e.Pattern, name)
			require.NoError(t, k.Close())
			<-sent
			released(name)
		}
		for name, part := range map[string][]byte{
			"nothing": nil, "half a header": {0x81}, "half a frame": frame(0x81, "{}")[:5], "half a message": frame(0x01, "{}"), "pings": bytes.Repeat(frame(0x89, "x"), 50),
			"empty parts": append(frame(0x01, ""), bytes.Repeat(frame(0x00, ""), 1000)...),
		} {
			k := talking(t, live, &e)
			k.send(t, string(part))
			require.NoError(t, k.Conn.(*net.TCPConn).CloseWrite())
			k.closeCode(t)
			k.closed(t)
			require.NoError(t, k.Close())
			released(name)
		}
	}
}

// TestAttackSubprotocols offers each WebSocket another subprotocol than its own.
func TestAttackSubprotocols(t *testing.T) {
	c := newContract(t, nil)
	live := httptest.NewServer(c)
	defer live.Close()
	for _, e := range c.Routes() {
		if e.Doc.Socket == nil || e.Doc.Socket.Subprotocol == "" {
			continue
		}
		own := e.Doc.Socket.Subprotocol
		for _, offered := range []string{"", "mqtt", strings.ToUpper(own), own[:len(own)-1] + "2", own + "x", "sajou", strings.Replace(own, "a", "\u0430", 1)} {
			if e.Pattern == "GET /api/v1/sessions/{session}/signals/ws" {
				k := upgraded(t, strings.TrimPrefix(live.URL, "http://"), streams[e.Pattern][0].target, offered)
				assert.Equal(t, 1008, k.closeCode(t), offered)
				require.NoError(t, k.Close())
				continue
			}
			w := c.ask(http.MethodGet, asked{target: streams[e.Pattern][0].target, header: upgrade(offered)})
			isProblem(t, &e, problem.BadRequest, w)
			assert.Contains(t, w.Body.String(), own)
		}
	}
}
