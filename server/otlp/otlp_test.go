package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	otlpformat "github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/otlp"
	"github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	inProtobuf = "application/x-protobuf"
	inJSON     = "application/json"
)

// door is a server that takes traces.
type door struct {
	http.Handler
	t      *testing.T
	engine *sajou.Engine
	rv     *otlp.TraceReceiver
	clock  *otlp.Clock
}

// newDoor returns a server over a store in memory, with a spool in a directory.
func newDoor(t *testing.T, cfg server.Config) *door {
	t.Helper()
	d := &door{t: t, clock: otlp.NewClock()}
	var err error
	d.engine, err = sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: d.clock.Now, AfterFunc: d.clock.AfterFunc})
	require.NoError(t, err)
	cfg.Now, cfg.AfterFunc = d.clock.Now, d.clock.AfterFunc
	if cfg.Traces.Dir == "" {
		cfg.Traces.Dir = t.TempDir() + "/otlp"
	}
	s, err := server.New(d.engine, cfg)
	require.NoError(t, err)
	d.Handler, d.rv = s, s.Traces()
	t.Cleanup(func() {
		assert.NoError(t, d.rv.Close(context.WithoutCancel(t.Context())))
		assert.NoError(t, d.engine.Close())
	})
	return d
}

// recorded returns the recorded signals of a session.
func (d *door) recorded(name string) []*signal.Signal {
	d.t.Helper()
	otlp.Rest(d.rv)
	ses, err := d.engine.Session(d.t.Context(), name)
	require.NoError(d.t, err)
	var list []*signal.Signal
	for e, err := range ses.Entries(d.t.Context(), 1) {
		require.NoError(d.t, err)
		if e.Kind == eventlog.KindSignal {
			sig, err := session.SignalOf(&e)
			require.NoError(d.t, err)
			list = append(list, &sig)
		}
	}
	return list
}

// advance moves the clock when nothing is being mapped.
func (d *door) advance(by time.Duration) {
	otlp.Rest(d.rv)
	d.clock.Advance(by)
	otlp.Rest(d.rv)
}

// types returns the types of signals.
func types(list []*signal.Signal) []string {
	var names []string
	for _, s := range list {
		names = append(names, s.Type)
	}
	return names
}

// story returns a trace: an agent, a tool below it, and a request of transport between them. The
// spans stand in the order in which they end.
func story(trace byte) ptrace.Traces {
	all := ptrace.NewTraces()
	r := all.ResourceSpans().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "desk")
	list := r.ScopeSpans().AppendEmpty().Spans()
	for i, name := range []string{"execute_tool add", "GET /", "invoke_agent ann"} {
		s := list.AppendEmpty()
		s.SetTraceID([16]byte{trace})
		s.SetSpanID([8]byte{trace, 3 - byte(i)})
		if i < 2 {
			s.SetParentSpanID([8]byte{trace, 2 - byte(i)})
		}
		s.SetName(name)
		begin := otlp.Noon.Add(-10 * time.Second)
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(2-i) * time.Second)))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(4+i) * time.Second)))
		s.Attributes().PutStr("gen_ai.conversation.id", "talk/7")
	}
	return all
}

// spansOf returns traces with some of the spans of others.
func spansOf(all ptrace.Traces, which ...int) ptrace.Traces {
	part := ptrace.NewTraces()
	from := all.ResourceSpans().At(0)
	to := part.ResourceSpans().AppendEmpty()
	from.Resource().CopyTo(to.Resource())
	list := to.ScopeSpans().AppendEmpty().Spans()
	for _, i := range which {
		from.ScopeSpans().At(0).Spans().At(i).CopyTo(list.AppendEmpty())
	}
	return part
}

func packed(text []byte, coding string) []byte {
	var b bytes.Buffer
	switch coding {
	case "gzip":
		w := gzip.NewWriter(&b)
		_, _ = w.Write(text)
		_ = w.Close()
	case "zstd":
		w, _ := zstd.NewWriter(&b)
		_, _ = w.Write(text)
		_ = w.Close()
	default:
		return text
	}
	return b.Bytes()
}

// partial is the partial success of an answer.
type partial struct {
	rejected int
	message  string
}

// marshalTraces returns an export in the encoding of a media type.
func marshalTraces(t *testing.T, traces ptrace.Traces, media string) []byte {
	t.Helper()
	marshal := (&ptrace.ProtoMarshaler{}).MarshalTraces
	if media == inJSON {
		marshal = (&ptrace.JSONMarshaler{}).MarshalTraces
	}
	text, err := marshal(traces)
	require.NoError(t, err)
	return text
}

// send exports traces as an SDK does.
func (d *door) send(traces ptrace.Traces, media, coding string, header ...string) partial {
	d.t.Helper()
	w := d.post("/v1/traces", packed(marshalTraces(d.t, traces, media), coding), append(header, "Content-Type", media, "Content-Encoding", coding)...)
	require.Equal(d.t, http.StatusOK, w.Code, w.Body)
	require.Equal(d.t, media, w.Header().Get("Content-Type"))
	return readPartial(d.t, w, "rejectedSpans")
}

// readPartial reads an ExportTraceServiceResponse or an ExportLogsServiceResponse.
func readPartial(t *testing.T, w *httptest.ResponseRecorder, rejected string) (p partial) {
	t.Helper()
	if w.Header().Get("Content-Type") == inJSON {
		var answer struct {
			PartialSuccess map[string]string `json:"partialSuccess"`
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
		if answer.PartialSuccess == nil {
			return p
		}
		n, err := strconv.Atoi(answer.PartialSuccess[rejected])
		require.NoError(t, err)
		return partial{n, answer.PartialSuccess["errorMessage"]}
	}
	outer := fieldsOf(t, w.Body.Bytes())
	if outer.inner == nil {
		return p
	}
	inner := fieldsOf(t, outer.inner)
	return partial{inner.number, inner.text}
}

// protoFields are the fields of the small messages of the answers.
type protoFields struct {
	number int    // field 1, if it is a number
	inner  []byte // field 1, if it is a message
	text   string // field 2
}

func fieldsOf(t *testing.T, b []byte) (f protoFields) {
	t.Helper()
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		require.Positive(t, n)
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			require.EqualValues(t, 1, num)
			v, n := protowire.ConsumeVarint(b)
			require.Positive(t, n)
			f.number, b = int(v), b[n:]
		default:
			v, n := protowire.ConsumeBytes(b)
			require.Positive(t, n)
			if b = b[n:]; num == 1 {
				f.inner = v
			} else {
				f.text = string(v)
			}
		}
	}
	return f
}

func (d *door) post(path string, body []byte, header ...string) *httptest.ResponseRecorder {
	return servertest.Ask(d, http.MethodPost, path, string(body), header...)
}

// plain tells signals without their source.
func plain(t *testing.T, list []*signal.Signal) (text []string) {
	t.Helper()
	for _, s := range list {
		if s.Type != recording.TypeRecording && s.Type != recording.TypeRemark {
			c := *s
			c.Source = ""
			text = append(text, string(c.AppendJSON(nil)))
		}
	}
	return text
}

// A trace that an exporter sends gives what an import of a file with it gives, in every
// encoding and coding.
func TestSameAsImport(t *testing.T) {
	file, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(story(1))
	require.NoError(t, err)
	var imported []*signal.Signal
	for item, err := range otlpformat.Format().Open(fstest.MapFS{"f": {Data: file}}, "f", recording.Options{}).Items() {
		require.NoError(t, err)
		imported = append(imported, item.Signal)
	}
	want := plain(t, imported)
	require.Len(t, want, 8)
	for _, c := range [][2]string{{inProtobuf, ""}, {inProtobuf, "gzip"}, {inProtobuf, "zstd"}, {inJSON, ""}, {inJSON, "gzip"}} {
		d := newDoor(t, server.Config{})
		answer := d.send(story(1), c[0], c[1])
		assert.Zero(t, answer)
		got := d.recorded("live")
		assert.Equal(t, want, plain(t, got), c)
		assert.Equal(t, "otlp:desk", got[0].Source)
	}
}

// The parent arrives last. Nothing is recorded before, and everything in its order then;
// exports that are sent again add nothing.
func TestParentsArriveLast(t *testing.T) {
	d := newDoor(t, server.Config{})
	all := story(1)
	d.send(spansOf(all, 0), inProtobuf, "")
	d.send(spansOf(all, 1), inJSON, "")
	assert.Empty(t, d.recorded("live"))
	d.send(spansOf(all, 2), inProtobuf, "gzip")
	want := []string{"task_dispatch", "agent_state_change", "tool_call", "agent_state_change", "tool_result", "agent_state_change", "completion", "agent_state_change"}
	assert.Equal(t, want, types(d.recorded("live")))
	d.send(spansOf(all, 2), inProtobuf, "")
	d.send(all, inProtobuf, "")
	d.advance(time.Hour)
	assert.Equal(t, want, types(d.recorded("live")))
	// The receiver has forgotten the trace, and the log has not.
	d.send(all, inProtobuf, "")
	assert.Equal(t, want, types(d.recorded("live")))
	d.advance(time.Hour)
	d.send(all, inJSON, "")
	assert.Equal(t, want, types(d.recorded("live")))
}

// A trace whose root does not arrive is recorded after the wait; what arrives then is
// recorded too, in its place below its agent.
func TestWait(t *testing.T) {
	d := newDoor(t, server.Config{Traces: otlp.Config{Wait: 10 * time.Second}})
	all := story(1)
	d.send(spansOf(all, 0, 1), inProtobuf, "")
	d.advance(9 * time.Second)
	assert.Empty(t, d.recorded("live"))
	d.advance(time.Second)
	list := d.recorded("live")
	assert.Contains(t, types(list), "tool_call")
	assert.NotContains(t, types(list), "completion")
	d.send(spansOf(all, 2), inProtobuf, "")
	list = d.recorded("live")
	assert.Equal(t, 1, strings.Count(strings.Join(types(list), " "), "tool_call"))
	assert.Contains(t, types(list), "completion")

	// A late tool finds its agent.
	other := story(2)
	d.send(spansOf(other, 1, 2), inProtobuf, "")
	d.send(spansOf(other, 0), inProtobuf, "")
	for _, s := range d.recorded("live")[len(list):] {
		if s.Type == "tool_call" {
			assert.Equal(t, "ann", s.Payload.TextOf("agentId"))
			assert.Equal(t, "0201000000000000", *s.CorrelationID)
		}
	}
}

// A receiver records the spans that the one before it acknowledged.
func TestNextStart(t *testing.T) {
	dir := t.TempDir() + "/otlp"
	clock := otlp.NewClock()
	engine, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: clock.Now, AfterFunc: clock.AfterFunc})
	require.NoError(t, err)
	d := &door{t: t, engine: engine, clock: clock}
	start := func() {
		s, err := server.New(engine, server.Config{Traces: otlp.Config{Dir: dir}, Now: clock.Now, AfterFunc: clock.AfterFunc})
		require.NoError(t, err)
		d.Handler, d.rv = s, s.Traces()
	}
	start()
	all := story(1)
	d.send(spansOf(all, 0), inProtobuf, "")
	require.NoError(t, d.rv.Close(t.Context()))
	w := d.post("/v1/traces", nil, "Content-Type", inProtobuf)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, "a receiver that is closed")
	start()
	d.send(spansOf(all, 1, 2), inProtobuf, "")
	assert.Len(t, d.recorded("live"), 8)
	require.NoError(t, d.rv.Close(t.Context()))
	start()
	d.send(all, inProtobuf, "")
	assert.Len(t, d.recorded("live"), 8)
	require.NoError(t, d.rv.Close(t.Context()))
	require.NoError(t, engine.Close())
}

func TestWhichSession(t *testing.T) {
	d := newDoor(t, server.Config{})
	d.send(story(1), inProtobuf, "", record.SessionHeader, "chosen")
	assert.Len(t, d.recorded("chosen"), 8)
	assert.Empty(t, d.recorded("live"))
	for split, name := range map[partition.Split]string{
		partition.SplitNative: "run.talk_7", partition.SplitSource: "run.otlp_desk", partition.SplitDay: "run.2026-03-01",
	} {
		d := newDoor(t, server.Config{Record: record.Config{Session: "run", Split: split}})
		d.send(story(1), inProtobuf, "")
		assert.Len(t, d.recorded(name), 8, split)
	}
}

// A caller needs the scope for each session into which its spans can go.
func TestGrants(t *testing.T) {
	grant := func(session string, split partition.Split) *door {
		file := t.TempDir() + "/tokens"
		g, err := access.ParseGrant("record@" + session)
		require.NoError(t, err)
		secret, token, err := access.NewToken(bytes.NewReader(make([]byte, 64)), "otel", []access.Grant{g}, otlp.Noon, time.Time{})
		require.NoError(t, err)
		require.NoError(t, access.ChangeTokens(file, func(list []access.AccessToken) ([]access.AccessToken, error) {
			return access.AddToken(list, token, otlp.Noon)
		}))
		d := newDoor(t, server.Config{Access: access.Config{Tokens: file, Loopback: []access.Scope{}}, Record: record.Config{Session: "run", Split: split}})
		inner := d.Handler
		d.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+secret)
			inner.ServeHTTP(w, r)
		})
		return d
	}
	text := marshalTraces(t, story(1), inProtobuf)
	for _, c := range []struct {
		pattern string
		split   partition.Split
		named   string
		status  int
	}{
		{"run", partition.SplitNone, "", 200},
		{"run", partition.SplitNone, "other", 404},
		{"run*", partition.SplitNative, "", 200},
		{"run.*", partition.SplitNative, "", 200},
		{"run.a*", partition.SplitNative, "", 404},
		{"run", partition.SplitNative, "", 404},
		{"run.*", partition.SplitNative, "run.x", 200},
	} {
		w := grant(c.pattern, c.split).post("/v1/traces", text, "Content-Type", inProtobuf, record.SessionHeader, c.named)
		assert.Equal(t, c.status, w.Code, "%+v: %s", c, w.Body)
	}
}

func TestPartialSuccess(t *testing.T) {
	d := newDoor(t, server.Config{})
	all := story(1)
	all.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1).SetSpanID([8]byte{})
	want := partial{1, "1 refused; the first one is /resources/0/scopes/0/records/1: the span id is not 8 bytes other than zero"}
	assert.Equal(t, want, d.send(all, inProtobuf, ""))
	want.message = "1 refused; the first one is /resourceSpans/0/scopeSpans/0/spans/1: the span id is not 8 bytes other than zero"
	assert.Equal(t, want, d.send(all, inJSON, "gzip"))
	d.advance(time.Minute)
	assert.Contains(t, types(d.recorded("live")), "completion")
}

// Log records of Claude Code are recorded at once, and find their prompt. What tells of no
// agent is taken and left out.
func TestLogs(t *testing.T) {
	d := newDoor(t, server.Config{Record: record.Config{Split: partition.SplitNative}})
	export := func(event string, at int64, media string) {
		logs := plog.NewLogs()
		r := logs.ResourceLogs().AppendEmpty()
		r.Resource().Attributes().PutStr("service.name", "claude-code")
		l := r.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		l.SetEventName(event)
		l.SetTimestamp(pcommon.NewTimestampFromTime(otlp.Noon.Add(time.Duration(at) * time.Second)))
		l.Attributes().PutStr("session.id", "s1")
		l.Attributes().PutStr("prompt.id", "p1")
		l.Attributes().PutStr("tool_name", "Bash")
		l.Attributes().PutStr("success", "true")
		marshal := (&plog.ProtoMarshaler{}).MarshalLogs
		if media == inJSON {
			marshal = (&plog.JSONMarshaler{}).MarshalLogs
		}
		text, err := marshal(logs)
		require.NoError(t, err)
		w := d.post("/v1/logs", text, "Content-Type", media)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.Zero(t, readPartial(t, w, "rejectedLogRecords"))
	}
	export("claude_code.user_prompt", 0, inProtobuf)
	assert.Equal(t, []string{"task_dispatch", "agent_state_change"}, types(d.recorded("live.s1")))
	export("heartbeat", 1, inJSON)
	export("claude_code.tool_result", 2, inJSON)
	list := d.recorded("live.s1")
	assert.Contains(t, types(list), "tool_result")
	for _, s := range list {
		assert.Equal(t, "p1", *s.CorrelationID)
		assert.Equal(t, "otlp:claude-code", s.Source)
	}
	n := len(list)
	export("claude_code.tool_result", 2, inJSON)
	assert.Len(t, d.recorded("live.s1"), n, "sent again")
}

// Each refusal has the status of the protocol, and a google.rpc.Status in the encoding of the
// request.
func TestRefusals(t *testing.T) {
	d := newDoor(t, server.Config{Traces: otlp.Config{MaxBody: 4096, MaxExpanded: 8192}})
	tiny := newDoor(t, server.Config{Traces: otlp.Config{MaxSpool: 300}})
	small := newDoor(t, server.Config{Traces: otlp.Config{MaxSpool: 2000}})
	small.send(spansOf(story(2), 0), inProtobuf, "")
	text := marshalTraces(t, story(1), inProtobuf)
	for _, c := range []struct {
		name   string
		door   *door
		body   []byte
		header []string
		status int
		code   int
	}{
		{"no media type", d, text, nil, 415, 3},
		{"another media type", d, text, []string{"Content-Type", "text/plain"}, 415, 3},
		{"another coding", d, text, []string{"Content-Type", inProtobuf, "Content-Encoding", "br"}, 415, 3},
		{"no protobuf", d, []byte("\x0a\xff"), []string{"Content-Type", inProtobuf}, 400, 3},
		{"no JSON", d, []byte("{"), []string{"Content-Type", inJSON}, 400, 3},
		{"no gzip", d, text, []string{"Content-Type", inProtobuf, "Content-Encoding", "gzip"}, 400, 3},
		{"a long body", d, make([]byte, 5000), []string{"Content-Type", inProtobuf}, 413, 3},
		{"a bomb", d, packed(make([]byte, 1<<20), "gzip"), []string{"Content-Type", inProtobuf, "Content-Encoding", "gzip"}, 413, 3},
		{"a session that cannot be", d, text, []string{"Content-Type", inProtobuf, record.SessionHeader, "a/../b\x00"}, 400, 3},
		{"no room", small, text, []string{"Content-Type", inProtobuf}, 429, 8},
		{"never room", tiny, text, []string{"Content-Type", inProtobuf}, 413, 3},
	} {
		w := c.door.post("/v1/traces", c.body, c.header...)
		assert.Equal(t, c.status, w.Code, "%s: %s", c.name, w.Body)
		code, message := readStatus(t, w)
		assert.Equal(t, c.code, code, c.name)
		assert.NotEmpty(t, message, c.name)
		if c.status == 429 {
			assert.Equal(t, "5", w.Header().Get("Retry-After"))
		}
	}
	assert.Empty(t, d.recorded("live"))

	// Spans for a deleted session are not held.
	d.send(story(3), inProtobuf, "", record.SessionHeader, "gone")
	require.Len(t, d.recorded("gone"), 8)
	_, err := d.engine.Delete(t.Context(), "gone")
	require.NoError(t, err)
	w := d.post("/v1/traces", text, "Content-Type", inProtobuf, record.SessionHeader, "gone")
	assert.Equal(t, http.StatusGone, w.Code, w.Body)
	code, _ := readStatus(t, w)
	assert.Equal(t, 5, code)
}

// readStatus reads a google.rpc.Status.
func readStatus(t *testing.T, w *httptest.ResponseRecorder) (code int, message string) {
	t.Helper()
	b := w.Body.Bytes()
	if w.Header().Get("Content-Type") == inJSON {
		var status struct {
			Code    int
			Message string
		}
		require.NoError(t, json.Unmarshal(b, &status))
		return status.Code, status.Message
	}
	require.Equal(t, inProtobuf, w.Header().Get("Content-Type"))
	f := fieldsOf(t, b)
	return f.number, f.text
}

// When the disk has failed below the spool, exporters keep their spans, and the server is not
// ready until it is started again.
func TestBrokenSpool(t *testing.T) {
	d := newDoor(t, server.Config{})
	d.send(story(1), inProtobuf, "")
	assert.Equal(t, http.StatusOK, servertest.Ask(d, http.MethodGet, "/readyz", "").Code)
	otlp.Rest(d.rv)
	require.NoError(t, otlp.BreakSpool(d.rv))
	w := d.post("/v1/traces", marshalTraces(t, story(2), inProtobuf), "Content-Type", inProtobuf)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
	assert.Equal(t, "60", w.Header().Get("Retry-After"))
	code, message := readStatus(t, w)
	assert.Equal(t, 14, code)
	assert.Contains(t, message, "start it again")
	w = servertest.Ask(d, http.MethodGet, "/readyz", "")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), "start it again")
	assert.Len(t, d.recorded("live"), 8)
}

// A server without a directory says so.
func TestWithoutDirectory(t *testing.T) {
	engine := servertest.Store(t, "../..", sajou.Config{})
	s, err := server.New(engine, server.Config{})
	require.NoError(t, err)
	w := servertest.Ask(s, http.MethodPost, "/v1/traces", "{}", "Content-Type", inJSON)
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Contains(t, w.Body.String(), "no directory")
}
