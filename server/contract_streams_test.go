package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server/route"
)

// conversation is what a client does on an answer without an end.
type conversation struct {
	asked
	say    []string // over a WebSocket
	take   int      // how many events, lines or messages come
	record string   // is recorded into the session night, again and again, until they came
	socket bool     // on the Unix socket of the server
}

type conversations []conversation

// requests returns the requests that begin the conversations.
func (list conversations) requests() (all []asked) {
	for i := range list {
		a := list[i].asked
		if len(list[i].say) > 0 || strings.Contains(a.target, "/ws") {
			a.header = append(slices.Clone(a.header), upgrade(list[i].subprotocol())...)
		}
		all = append(all, a)
	}
	return all
}

func (c *conversation) subprotocol() string {
	if i := slices.Index(c.header, "Sec-WebSocket-Protocol"); i >= 0 {
		return c.header[i+1]
	}
	return ""
}

func speaking(subprotocol string) []string { return []string{"Sec-WebSocket-Protocol", subprotocol} }

// streams has conversations with the routes that are streams, by the pattern of the route.
var streams = map[string]conversations{
	"GET /api/signal": {{asked: asked{target: "/api/signal?ack=true"}, say: []string{`{"hello":"world"}`, `{`}, take: 2}},
	"GET /{$}":        {{asked: asked{target: "/?ack=true"}, say: []string{`7`}, take: 1}},
	"GET /ws":         {{asked: asked{target: "/ws?ack=true"}, say: []string{note(11)}, take: 1}},

	"GET /__signals__/stream":  {{asked: asked{target: "/__signals__/stream?session=night", header: []string{"Last-Event-ID", "0"}}, take: 45}},
	"GET /__signals__/plain":   {{asked: asked{target: "/__signals__/plain?session=night", header: []string{"Last-Event-ID", "0"}}, take: 45}},
	"GET /__commands__/stream": {{asked: asked{target: "/__commands__/stream?session=night"}, record: `{"type":"tool_call","payload":{"toolName":"grind","agentId":"smith","callId":"c"}}`, take: 1}},
	"POST /api/v1/checkpoints": {{asked: asked{target: "/api/v1/checkpoints"}, socket: true, take: 1}},
	"GET /api/v1/sessions/{session}/log": {
		{asked: asked{target: sessions + "conversation/log?from=1"}, take: 2},
		{asked: asked{target: sessions + "night/log?follow=true"}, take: 55},
	},
	"GET /api/v1/sessions/{session}/live": {
		{asked: asked{target: sessions + "night/live?from=1"}, take: 54},
		{asked: asked{target: sessions + "night/live?feed=commands&from=0"}, take: 20},
		{asked: asked{target: sessions + "night/live?feed=frames"}, take: 1},
		{asked: asked{target: sessions + "dinner/live?feed=board"}, take: 1},
	},
	"GET /api/v1/sessions/{session}/live/ws": {
		{asked: asked{target: sessions + "dinner/live/ws?from=1"}, take: 20},
		{asked: asked{target: sessions + "night/live/ws?feed=commands&from=0"}, take: 20},
	},
	"GET /api/v1/sessions/{session}/signals/ws": {{
		asked: asked{target: sessions + "run/signals/ws", header: speaking("sajou.signals.v1")},
		say:   []string{`{"n":1,"signal":` + note(12) + `}`, `{"n":2,"signal":{}}`}, take: 3,
	}},
	"GET /api/v1/sessions/{session}/agents/{agent}/events": {{asked: asked{target: sessions + "hall/agents/alice/events"}, take: 2}},
	"GET /api/v1/sessions/{session}/agents/{agent}/ws": {{
		asked: asked{target: sessions + "hall/agents/alice/ws", header: speaking("sajou.agent.v1")},
		say:   []string{`{"type":"hello"}`, `{"type":"resync"}`, `{"type":"begin","req_id":"w"}`, `{"type":"cancel","req_id":"w"}`}, take: 4,
	}},
	"GET /api/v1/sessions/{session}/sim/ws": {{
		asked: asked{target: sessions + "clock/sim/ws", header: speaking("sajou.sim.v1")},
		say:   []string{`{"type":"hello"}`, `{"type":"tick","sim_time":1.5}`}, take: 2,
	}},
}

// Every message of a stream is as the description of its route says, and every stream has
// a conversation here.
func TestStreamsAreAsDescribed(t *testing.T) {
	c := newContract(t, nil)
	get := compiled(t)
	client, stop := overSocket(t, c.Server)
	defer stop()
	live := httptest.NewServer(c)
	defer live.Close()
	for _, e := range c.Routes() {
		if !e.Stream {
			assert.Empty(t, streams[e.Pattern], e.Pattern)
			continue
		}
		require.NotNil(t, e.Doc, "%s: describe it", e.Pattern)
		require.NotEmpty(t, streams[e.Pattern], "%s: add a conversation to streams", e.Pattern)
		for _, talk := range streams[e.Pattern] {
			t.Run(e.Pattern+" "+talk.target, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var others sync.WaitGroup
				defer others.Wait()
				defer cancel()
				if talk.record != "" {
					others.Go(func() {
						for ctx.Err() == nil {
							servertest.Ask(c, http.MethodPost, "/api/signal?session=night", talk.record)
						}
					})
				}
				if e.Doc.Socket != nil {
					for _, text := range talk.over(ctx, t, live.URL, e.Doc.Socket) {
						valid(t, get(e.Doc.Socket.Server), text, talk.target)
					}
					return
				}
				h := live.Client()
				if talk.socket {
					h = client
				}
				content, texts := talk.read(ctx, t, h, live.URL, &e)
				for _, text := range texts {
					valid(t, get(content.Schema), text, talk.target)
				}
			})
		}
	}
	for pattern := range streams {
		assert.True(t, slices.ContainsFunc(c.Routes(), func(e route.Endpoint) bool { return e.Pattern == pattern }), "there is no route %s", pattern)
	}
}

// over has the conversation over a WebSocket, and returns the messages that came.
func (c *conversation) over(ctx context.Context, t *testing.T, base string, m *route.SocketMessages) (texts [][]byte) {
	t.Helper()
	require.Equal(t, m.Subprotocol, c.subprotocol())
	opts := &websocket.DialOptions{}
	if m.Subprotocol != "" {
		opts.Subprotocols = []string{m.Subprotocol}
	}
	conn, res, err := websocket.Dial(ctx, base+c.target, opts)
	require.NoError(t, err)
	if res.Body != nil {
		_ = res.Body.Close()
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 24)
	for _, text := range c.say {
		require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte(text)))
	}
	for range c.take {
		kind, text, err := conn.Read(ctx)
		require.NoError(t, err)
		require.Equal(t, websocket.MessageText, kind)
		texts = append(texts, text)
	}
	return texts
}

// read reads the data of events, or lines, and returns them with their description.
func (c *conversation) read(ctx context.Context, t *testing.T, client *http.Client, base string, e *route.Endpoint) (content *route.Content, texts [][]byte) {
	t.Helper()
	if c.socket {
		base = "http://localhost"
	}
	req, err := http.NewRequestWithContext(ctx, method(e), base+c.target, http.NoBody)
	require.NoError(t, err)
	for i := 0; i+1 < len(c.header); i += 2 {
		req.Header.Set(c.header[i], c.header[i+1])
	}
	res, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 400 {
		text, _ := io.ReadAll(res.Body)
		require.Fail(t, "refused", "%s", text)
	}
	content, _ = contentOf(t, e, res.StatusCode, res.Header, "", fmt.Sprint(c.target))
	require.NotNil(t, content)
	require.NotEmpty(t, content.Schema)
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<24)
	for len(texts) < c.take && lines.Scan() {
		text := lines.Text()
		if content.Type == "text/event-stream" {
			var ok bool
			if text, ok = strings.CutPrefix(text, "data: "); !ok {
				continue
			}
		}
		if text != "" {
			texts = append(texts, []byte(text))
		}
	}
	require.Len(t, texts, c.take, "%v", lines.Err())
	return content, texts
}
