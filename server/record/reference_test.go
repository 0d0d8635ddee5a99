package record_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/signal"
)

// raw sends bytes over a connection of its own and returns the head and the body of the
// answer.
func (d *door) raw(request string) (head, body string) {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.addr)
	require.NoError(d.t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n"))
	require.NoError(d.t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(d.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(d.t, err)
	return res.Status + " " + res.Header.Get("Content-Type"), string(text)
}

// The request of the tap as it stands on the wire, and its answer.
func TestTapOverHTTP(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	envelope := `{"id":"tap-5f0c8a86-2b1c-4f04-9c1e-1b1f1c1d1e1f","type":"tool_call","timestamp":1772366399000,"source":"adapter:tap","correlationId":"sess-1","payload":{"toolName":"Read","agentId":"claude","callId":"toolu_01","input":{"file_path":"/tmp/a"}}}`
	head, body := d.raw("POST /api/signal HTTP/1.1\nhost: localhost:5175\nconnection: keep-alive\nContent-Type: application/json\naccept: */*\naccept-language: *\nsec-fetch-mode: cors\nuser-agent: node\naccept-encoding: gzip, deflate\ncontent-length: " +
		itoa(len(envelope)) + "\n\n" + envelope)
	assert.Equal(t, "200 OK application/json; charset=utf-8", head)
	assert.Equal(t, `{"ok":true,"id":"tap-5f0c8a86-2b1c-4f04-9c1e-1b1f1c1d1e1f","clients":0}`, body)
	assert.Equal(t, []string{envelope}, d.signals("live"))
}

// Signals are filled and wrapped as the reference server does. The engine refuses none of them.
func TestReferenceEnvelope(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	for _, c := range []struct{ name, body, answer, recorded, problem string }{
		{"a type alone", `{"type":"user.hello"}`, `"id-1"`, `{"id":"id-1","type":"user.hello","timestamp":1772366400000,"source":"http","payload":{}}`, ""},
		{"all falsy", `{"id":"","type":"x","timestamp":0,"source":null,"payload":false}`, `"id-2"`, `{"id":"id-2","type":"x","timestamp":1772366400000,"source":"http","payload":{}}`, ""},
		{"no type", `{"hello":"world"}`, `"id-3"`, `{"id":"id-3","type":"event","timestamp":1772366400000,"source":"http","payload":{"hello":"world"}}`, ""},
		{"a type that is no text", `{"type":5}`, `"id-4"`, `{"id":"id-4","type":"event","timestamp":1772366400000,"source":"http","payload":{"type":5}}`, ""},
		{"an array", `[1,{"type":"x"}]`, `"id-5"`, `{"type":"event","payload":[1,{"type":"x"}],"id":"id-5","timestamp":1772366400000,"source":"http"}`, "/payload: must be an object, not an array"},
		{"a text", `"hello"`, `"id-6"`, `{"type":"event","payload":"hello","id":"id-6","timestamp":1772366400000,"source":"http"}`, "/payload: must be an object, not a string"},
		{"null", `null`, `"id-7"`, `{"id":"id-7","type":"event","timestamp":1772366400000,"source":"http","payload":{}}`, ""},
		{"further members", `{"id":"a","type":"x","timestamp":1,"source":"s","payload":{},"metadata":{"raw":1},"extra":true}`, `"a"`, `{"id":"a","type":"x","timestamp":1,"source":"s","payload":{},"metadata":{"raw":1},"extra":true}`, "/extra: is not a field of a signal"},
		{"an id that is a number", `{"id":5,"type":"x","timestamp":1,"source":"s","payload":{}}`, `5`, `{"id":5,"type":"x","timestamp":1,"source":"s","payload":{}}`, "/id: must be a string, not an integer"},
		{"a payload that the schema refuses", `{"id":"b","type":"tool_call","timestamp":1,"source":"s","payload":{}}`, `"b"`, `{"id":"b","type":"tool_call","timestamp":1,"source":"s","payload":{}}`, "/payload/toolName: is required"},
		{"a time far ahead", `{"id":"c","type":"x","timestamp":4000000000000,"source":"s","payload":{}}`, `"c"`, `{"id":"c","type":"x","timestamp":4000000000000,"source":"s","payload":{}}`, "timestamp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, body := d.do("POST", "/api/signal", c.body)
			assert.Equal(t, 200, status, body)
			assert.Equal(t, `{"ok":true,"id":`+c.answer+`,"clients":0}`, body)
			all := d.signals("live")
			assert.Equal(t, c.recorded, all[len(all)-1])
			problems := d.problems("live")
			if c.problem == "" {
				assert.Empty(t, problems[len(problems)-1])
			} else {
				assert.Contains(t, problems[len(problems)-1], c.problem)
			}
		})
	}
	status, _, body := d.do("POST", "/api/signal", `{"type":`)
	assert.Equal(t, 400, status)
	assert.Equal(t, "bad-request", member(t, body, "code"))
}

// JSON that JavaScript writes but a value cannot hold is mended and marked, over HTTP and over
// WebSocket. The routes of this server refuse it.
func TestReferenceRepairs(t *testing.T) {
	with := func(payload string) string {
		return `{"id":"a","type":"x","timestamp":1,"source":"s","payload":` + payload + `}`
	}
	want := func(payload string) string {
		return strings.TrimSuffix(with(payload), "}") + `,"metadata":{"repaired":true}}`
	}
	d := open(t, sajou.Config{}, record.Config{})
	conn := d.dial("/")
	for i, c := range []struct{ name, body, recorded string }{
		{"a lone surrogate", with(`{"text":"x\ud83d"}`), want(`{"text":"x` + "\uFFFD" + `"}`)},
		{"bytes that are not UTF-8", with(`{"text":"x` + "\xff" + `"}`), want(`{"text":"x` + "\uFFFD" + `"}`)},
		{"an integer of more than 64 bits", with(`{"n":123456789012345678901234567890}`), want(`{"n":"123456789012345678901234567890"}`)},
		{"a number beyond a double", with(`{"n":1e999}`), want(`{"n":"1e999"}`)},
		{"equal keys", with(`{"b":1,"a":2,"b":3}`), want(`{"a":2,"b":3}`)},
		{"metadata", `{"id":"a","type":"x","timestamp":1,"source":"s","metadata":{"m":1},"payload":{"n":1e999}}`, `{"id":"a","type":"x","timestamp":1,"source":"s","metadata":{"m":1,"repaired":true},"payload":{"n":"1e999"}}`},
		{"metadata that is no object", `{"id":"a","type":"x","timestamp":1,"source":"s","metadata":1e999}`, `{"id":"a","type":"x","timestamp":1,"source":"s","metadata":"1e999","payload":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, body := d.do("POST", "/api/signal", c.body)
			require.Equal(t, 200, status, body)
			send(t, conn, c.body)
			all := d.wait("live", 2*i+2)
			for _, got := range all[2*i:] {
				assert.JSONEq(t, c.recorded, got)
			}
			status, _, body = d.do("POST", signalsPath, c.body)
			assert.Equal(t, 400, status, body)
		})
	}
	for _, body := range []string{`{"type":"x","payload":{"n":1e999}`, `{"type":"x"} {}`, `{"n":1e999}` + strings.Repeat("[", 1<<20)} {
		status, _, _ := d.do("POST", "/api/signal", body)
		assert.Equal(t, 400, status)
	}
	status, _, body := d.do("POST", "/api/signal", `[1e999]`)
	assert.Equal(t, 200, status, body)
	all := d.signals("live")
	assert.Equal(t, []any{"1e999"}, member(t, all[len(all)-1], "payload"))
	assert.Equal(t, true, member(t, all[len(all)-1], "metadata", "repaired"))
	status, _, body = d.do("POST", "/api/state/push", `{"label":"\ud83d"}`)
	assert.Equal(t, 200, status, body)
}

// The clients of the reference server do not read a refusal. The log says that the session was
// deleted, when the server starts, and names each signal that is refused.
func TestDeletedSessionIsLogged(t *testing.T) {
	engine, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	ses, err := engine.Session(t.Context(), "live")
	require.NoError(t, err)
	sig, err := signal.Parse([]byte(toolCall("old")))
	require.NoError(t, err)
	_, err = ses.Record(t.Context(), sajou.Addition{Signals: []*signal.Signal{sig}})
	require.NoError(t, err)
	_, err = engine.Delete(t.Context(), "live")
	require.NoError(t, err)
	for split, warned := range map[partition.Split]bool{partition.SplitNone: true, partition.SplitDay: false} {
		var log bytes.Buffer
		s, err := server.New(engine, server.Config{Record: record.Config{Split: split}, Now: func() time.Time { return noon }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		assert.Equal(t, warned, strings.Contains(log.String(), "level=WARN msg=\"the session of the server was deleted"), log.String())
		log.Reset()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/api/signal", strings.NewReader(toolCall("a")))
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		assert.Equal(t, map[bool]int{true: 410, false: 200}[warned], w.Code)
		assert.Equal(t, warned, strings.Contains(log.String(), "level=WARN msg=\"a signal was not recorded\" err=\"eventlog: the session was deleted"), log.String())
	}
}

// A text that no entry can hold is cut, as by an import: the sender does not read the
// answer, and the rest of the signal is worth keeping.
func TestLongSignalsAreCut(t *testing.T) {
	d := open(t, sajou.Config{}, record.Config{})
	status, _, body := d.do("POST", "/api/signal", `{"id":"long","type":"x","payload":{"a":"kept","text":"`+strings.Repeat("x", 3<<20)+`"}}`)
	require.Equal(t, 200, status, body)
	all := d.signals("live")
	require.Len(t, all, 1)
	assert.Less(t, len(all[0]), 1<<20)
	assert.Equal(t, "kept", member(t, all[0], "payload", "a"))
	assert.NotNil(t, member(t, all[0], "metadata", "cutBytes"))

	status, _, body = d.do("POST", "/api/signal", `"`+strings.Repeat("x", 11<<20)+`"`)
	assert.Equal(t, 413, status, body)
}

// Which session a signal goes to. A sender chooses among the parts of one session only.
func TestWhichSession(t *testing.T) {
	hostile := `{"type":"x","source":"../../payroll","correlationId":"a/../b\u0000é","payload":{}}`
	for _, c := range []struct {
		split  partition.Split
		body   string
		header []string
		want   string
	}{
		{partition.SplitNone, toolCall("a"), nil, "tap"},
		{partition.SplitNative, toolCall("a"), nil, "tap.c-1"},
		{partition.SplitSource, toolCall("a"), nil, "tap.adapter_tap"},
		{partition.SplitDay, toolCall("a"), nil, "tap.2026-03-01"},
		{partition.SplitNative, `{"type":"x"}`, nil, "tap.unknown"},
		{partition.SplitNative, hostile, nil, "tap.a____b___"},
		{partition.SplitSource, hostile, nil, "tap.______payroll"},
		{partition.SplitNative, `{"type":"x","metadata":{"sessionId":"s-9"},"correlationId":"c"}`, nil, "tap.s-9"},
		{partition.SplitDay, toolCall("a"), []string{record.SessionHeader, "own"}, "own"},
	} {
		d := open(t, sajou.Config{}, record.Config{Session: "tap", Split: c.split})
		status, _, body := d.do("POST", "/api/signal", c.body, c.header...)
		require.Equal(t, 200, status, body)
		names, err := d.engine.Sessions()
		require.NoError(t, err)
		assert.Equal(t, []string{c.want}, names, c.body)
	}
	d := open(t, sajou.Config{}, record.Config{})
	status, _, _ := d.do("POST", "/api/signal", toolCall("a"), record.SessionHeader, strings.Repeat("x", 300))
	assert.Equal(t, 400, status)
}

func TestConfigIsChecked(t *testing.T) {
	engine, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	defer engine.Close()
	_, err = record.New(engine, record.Config{Split: "color"})
	require.ErrorContains(t, err, `no split "color"`)
	_, err = record.New(engine, record.Config{Session: strings.Repeat("x", 200), Split: partition.SplitDay})
	require.ErrorContains(t, err, "cannot be the name")
}

// The answers of the other routes of the reference server.
func TestReferenceAnswers(t *testing.T) {
	allowed := make(chan bool, 2)
	d := open(t, sajou.Config{}, record.Config{})
	status, _, body := d.do("GET", "/api/state/full", "")
	assert.Equal(t, 200, status)
	assert.JSONEq(t, `{"ok":true,"lastPushAt":null,"data":null}`, body)

	status, _, body = d.do("GET", "/api/scene/state", "")
	assert.Equal(t, 200, status, body)
	assert.Nil(t, member(t, body, "lastPushAt"))
	for _, name := range []string{"dimensions", "background", "layers", "entities", "positions", "routes"} {
		assert.NotNil(t, member(t, body, "data", name), name)
	}

	status, _, body = d.do("POST", "/api/state/push", `{"entities":[{"id":"smith"}],"mode":"edit"}`)
	assert.Equal(t, 200, status)
	assert.JSONEq(t, `{"ok":true,"receivedAt":1772366400000}`, body)
	_, _, body = d.do("GET", "/api/state/full", "")
	assert.JSONEq(t, `{"ok":true,"lastPushAt":1772366400000,"data":{"entities":[{"id":"smith"}],"mode":"edit"}}`, body)
	_, _, body = d.do("GET", "/api/scene/state", "")
	assert.Equal(t, "edit", member(t, body, "data", "mode"))
	assert.Equal(t, []any{map[string]any{"id": "smith"}}, member(t, body, "data", "entities"))

	status, _, body = d.do("POST", "/api/tap/connect", `{}`)
	assert.Equal(t, 403, status)
	assert.Equal(t, false, member(t, body, "ok"))

	_, _, body = d.do("GET", "/api/discover/local", "")
	services := member(t, body, "services").([]any)
	assert.Len(t, services, 5)
	assert.Equal(t, map[string]any{"id": "local:claude-code", "label": "Claude Code", "protocol": "sse", "url": "/__signals__/stream", "available": true, "models": []any{}}, services[0])

	_, _, body = d.do("GET", "/api/choreographies", "")
	assert.JSONEq(t, `{"ok":true,"choreographies":[]}`, body)

	d = open(t, sajou.Config{}, record.Config{Hooks: func(_ context.Context, install bool) error {
		allowed <- install
		if !install {
			return errors.New("no settings")
		}
		return nil
	}})
	status, _, body = d.do("POST", "/api/tap/connect", ``)
	assert.Equal(t, 200, status)
	assert.Equal(t, `{"ok":true}`, body)
	assert.True(t, <-allowed)
	status, _, body = d.do("POST", "/api/tap/disconnect", ``)
	assert.Equal(t, 500, status)
	assert.Equal(t, `{"ok":false,"error":"no settings"}`, body)
}
