package agentwire

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/session"
)

// call sends a request with a token, and returns the status and the body of the answer.
func (h *house) call(method, path, token, body string) (int, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	require.NoError(h.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(h.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(h.t, err)
	return res.StatusCode, string(text)
}

// stream is an open stream of events.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	body  io.Closer
}

func (h *house) stream(agent, lastID string) *stream {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+"/api/v1/sessions/play/agents/"+agent+"/events", nil)
	require.NoError(h.t, err)
	req.Header.Set("Authorization", "Bearer "+agent)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(h.t, err)
	require.Equal(h.t, http.StatusOK, res.StatusCode)
	h.t.Cleanup(func() { _ = res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{h.t, lines, res.Body}
}

// next returns the fields of the next event.
func (s *stream) next() map[string]string {
	s.t.Helper()
	fields := map[string]string{}
	for s.lines.Scan() {
		name, value, ok := strings.Cut(s.lines.Text(), ": ")
		if !ok {
			break
		}
		fields[name] = value
	}
	require.NotEmpty(s.t, fields, "the stream ended: %v", s.lines.Err())
	if fields["event"] != "close" {
		require.NoError(s.t, validate("server_to_agent", []byte(fields["data"])), fields["data"])
	}
	return fields
}

func (s *stream) await(event string) map[string]string {
	s.t.Helper()
	for {
		if f := s.next(); f["event"] == event {
			return f
		}
	}
}

func TestEventsAndPosts(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	h.join("alice", "[0,0]")
	h.join("bob", "[1,0]")
	const path = "/api/v1/sessions/play/agents/alice"
	status, answer := h.call("POST", path+"/tokens", "alice", `{"type":"begin","req_id":"g"}`)
	assert.Equal(t, http.StatusConflict, status, answer)

	s := h.stream("alice", "")
	assert.Equal(t, "welcome", s.next()["event"])
	first := s.await("observation")
	status, answer = h.call("POST", path+"/intents", "alice", `{"type":"intent","req_id":"r","kind":"Speak","payload":{"text":"hi"},"context_seq":`+first["id"]+`}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, answer, `"accepted"`)
	second := s.await("observation")

	status, answer = h.call("POST", path+"/tokens", "alice", `{"type":"begin","req_id":"g"}`+"\n"+`{"type":"tokens","req_id":"g","text":"Well"}`+"\n")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, answer, `"begun"`)
	h.bobSays("wait")
	assert.Contains(t, s.await("stop")["data"], "stale_due_to")
	_, answer = h.call("POST", path+"/tokens", "alice", `{"type":"begin","req_id":"g"}`+"\n"+`{"type":"tokens","req_id":"g","text":"Yes"}`+"\n"+`{"type":"end","req_id":"g"}`)
	assert.Contains(t, answer, `"finish":"stop"`)
	_, answer = h.call("POST", path+"/tokens", "alice", `{"type":"hello"}`)
	assert.Contains(t, answer, "bad_message")
	_, answer = h.call("POST", path+"/cancel", "alice", `{"type":"cancel","req_id":"none"}`)
	assert.JSONEq(t, `{"type":"cancelled","req_id":"none","found":false}`, answer)

	again := h.stream("alice", second["id"])
	assert.Contains(t, s.await("close")["data"], `"code":4005`)
	assert.Contains(t, again.next()["data"], `"resumed":true`)
	assert.Contains(t, again.await("observation")["data"], "wait")
	again = h.stream("alice", "4711")
	assert.Contains(t, again.next()["data"], `"resumed":false`)
	assert.Contains(t, again.await("observation")["data"], `"full":true`)

	for _, c := range []struct {
		method, path, token, body string
		status                    int
	}{
		{"POST", path + "/intents", "bob", `{}`, http.StatusForbidden},
		{"POST", path + "/intents", "alice", `{`, http.StatusBadRequest},
		{"POST", path + "/intents", "alice", `{"type":"cancel","req_id":"r"}`, http.StatusBadRequest},
		{"GET", "/api/v1/sessions/play/agents/carol/events", "carol", "", http.StatusNotFound},
	} {
		status, answer := h.call(c.method, c.path, c.token, c.body)
		assert.Equal(t, c.status, status, answer)
	}
	_, absent := h.call("POST", "/api/v1/sessions/none/agents/carol/intents", "carol", `{"type":"intent","req_id":"r","kind":"Speak","context_seq":0}`)
	_, unregistered := h.call("POST", "/api/v1/sessions/play/agents/carol/intents", "carol", `{"type":"intent","req_id":"r","kind":"Speak","context_seq":0}`)
	assert.Equal(t, absent, unregistered, "a session that is not there, and an agent that is not there")
	close(h.stopping)
	assert.Contains(t, again.await("close")["data"], `"code":1001`)
}

func TestWorldOverTheWire(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	status, answer := h.call("PUT", "/api/v1/sessions/new/world", "define",
		`{"time":"sim","config":{"authority":"sim"},"world":{"entities":{"alice":{"type":"agent"}},"relationships":{},"spatial_index":{"alice":[0,0,0]}}}`)
	require.Equal(t, http.StatusOK, status, answer)
	assert.Contains(t, answer, `"time":"sim"`)
	status, answer = h.call("PUT", "/api/v1/sessions/new/agents/alice", "define", `{"policy":{"distance_limit":5},"permissions":["submit_intent"]}`)
	require.Equal(t, http.StatusOK, status, answer)
	for _, c := range []struct {
		method, path, body, want string
		status                   int
	}{
		{"PUT", "/api/v1/sessions/new/world", `{"time":"wall"}`, "/time", http.StatusConflict},
		{"PUT", "/api/v1/sessions/new/world", `{"world":{}}`, `"pointer":"/world"`, http.StatusConflict},
		{"PUT", "/api/v1/sessions/new/world", `{"time":"noon"}`, "/time", http.StatusUnprocessableEntity},
		{"PUT", "/api/v1/sessions/new/world", `{"config":{"authority":"moon"}}`, "/config/authority", http.StatusUnprocessableEntity},
		{"PUT", "/api/v1/sessions/new/world", `{"moon":1}`, "/moon", http.StatusUnprocessableEntity},
		{"PUT", "/api/v1/sessions/new/world", `[]`, "object", http.StatusBadRequest},
		{"PUT", "/api/v1/sessions/new/agents/bob", `{"policy":{"distance_limit":"far"}}`, "/policy/distance_limit", http.StatusUnprocessableEntity},
		{"PUT", "/api/v1/sessions/none/agents/bob", `{}`, "no-agent", http.StatusNotFound},
		{"DELETE", "/api/v1/sessions/new/agents/bob", ``, "no-agent", http.StatusNotFound},
		{"DELETE", "/api/v1/sessions/new/agents/alice", ``, "alice", http.StatusOK},
	} {
		status, answer := h.call(c.method, c.path, "define", c.body)
		assert.Equal(t, c.status, status, "%s %s: %s", c.path, c.body, answer)
		assert.Contains(t, answer, c.want)
	}
	status, _ = h.call("PUT", "/api/v1/sessions/new/world", "alice", `{}`)
	assert.Equal(t, http.StatusForbidden, status)
}

// The field position of an entity does not place it, so the answer to a world with such
// entities says how to place them.
func TestHintAtEntitiesWithoutPlace(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	for i, c := range []struct{ world, want string }{
		{`{"entities":{"a":{"position":[0,0,0]},"b/c":{"position":[1,0,0]},"d":{"position":[2,0]}},"spatial_index":{"a":[0,0,0]}}`, "2 of the entities have a field position and no place, the first at /world/entities/b~1c/position"},
		{`{"entities":{"a":{"position":[0,0,0]}},"spatial_index":{"a":[0,0,0]}}`, ""},
		{`{"entities":{"a":{"position":"standing"},"b":{}}}`, ""},
		{`{}`, ""},
	} {
		status, answer := h.call("PUT", fmt.Sprintf("/api/v1/sessions/hint-%d/world", i), "define", `{"world":`+c.world+`}`)
		require.Equal(t, http.StatusOK, status, answer)
		if c.want == "" {
			assert.NotContains(t, answer, "hint")
			continue
		}
		assert.Contains(t, answer, `"hint":"`+c.want)
		assert.Contains(t, answer, "/world/spatial_index")
	}
}

const scene = `{"director":1,"id":"door","title":"The door","situation":"A closed door. Rain.","genre":"mystery","turn_budget":10,
	"beats":[{"id":"knock","description":"somebody knocks","character_instruction":"Knock.","target_turn":1,"deadline_turn":3,"detection_type":"keyword","detection_criteria":"knock",
	"choice_point":{"id":"open","prompt":"Open?","choices":[{"id":"yes","label":"I open it.","sets_flag":"opened"},{"id":"no","label":"I wait."}]}}]}`

func TestDirectorOverTheWire(t *testing.T) {
	h := newHouse(t, session.TimeManual, everything, nil)
	path := "/api/v1/sessions/play/director/"
	status, answer := h.call("POST", path+"start", "define", `{"episode":`+scene+`}`)
	require.Equal(t, http.StatusOK, status, answer)
	assert.Contains(t, answer, `"episode":"door"`)
	for range 2 { // a repeat has the first answer
		status, answer = h.call("POST", path+"guide", "define", `{"turn":1,"text":"Hello?"}`)
		require.Equal(t, http.StatusOK, status, answer)
		assert.Contains(t, answer, `"beat_id":"knock"`)
	}
	status, answer = h.call("POST", path+"respond", "define", `{"turn":1,"text":"A knock at the door.","before":[{"role":"user","text":"Hello?"}]}`)
	require.Equal(t, http.StatusOK, status, answer)
	assert.Contains(t, answer, `"choices":[{"id":"yes","label":"I open it."}`)
	status, _ = h.call("POST", path+"guide", "define", `{"turn":2,"text":"typed"}`)
	assert.Equal(t, http.StatusConflict, status, "a choice is pending")
	status, answer = h.call("POST", path+"choose", "define", `{"choice_point":"open","choice":"yes"}`)
	require.Equal(t, http.StatusOK, status, answer)
	assert.Contains(t, answer, `"message":{"role":"user","content":"I open it.","metadata":{"is_choice":true,"choice_point_id":"open","choice_id":"yes"}}`)
	status, answer = h.call("POST", path+"guide", "define", `{"turn":2}`)
	require.Equal(t, http.StatusOK, status, answer)

	for _, c := range []struct {
		path, body string
		status     int
	}{
		{path + "choose", `{"choice_point":"open","choice":"no"}`, http.StatusConflict},
		{path + "choose", `{"choice_point":"none","choice":"no"}`, http.StatusNotFound},
		{path + "guide", `{"turn":0}`, http.StatusUnprocessableEntity},
		{path + "start", `{"episode":7}`, http.StatusUnprocessableEntity},
		{path + "start", `{"episode":` + scene + `,"energy":7}`, http.StatusUnprocessableEntity},
		{path + "start", `{"episode":` + scene + `,"flags":"late"}`, http.StatusUnprocessableEntity},
		{path + "guide", `{"turn":3,"text":7}`, http.StatusUnprocessableEntity},
		{path + "guide", `{"turn":3,"txt":"x"}`, http.StatusUnprocessableEntity},
		{path + "respond", `{"turn":2,"text":null}`, http.StatusUnprocessableEntity},
		{path + "respond", `{"turn":2,"text":"x","attempt":"1"}`, http.StatusUnprocessableEntity},
		{path + "respond", `{"turn":2,"text":"x","before":["Hello?"]}`, http.StatusUnprocessableEntity},
		{path + "respond", `{"turn":2,"text":"x","before":"Hello?"}`, http.StatusUnprocessableEntity},
		{path + "choose", `{"choice_point":"open","choice":7}`, http.StatusUnprocessableEntity},
		{"/api/v1/sessions/play/world", `{"time":7}`, http.StatusUnprocessableEntity},
		{"/api/v1/sessions/play/agents/alice", `{"class":7}`, http.StatusUnprocessableEntity},
		{"/api/v1/sessions/none/director/guide", `{"turn":1}`, http.StatusNotFound},
	} {
		method := http.MethodPost
		if !strings.Contains(c.path, "/director/") {
			method = http.MethodPut
		}
		status, answer := h.call(method, c.path, "define", c.body)
		assert.Equal(t, c.status, status, "%s: %s", c.body, answer)
	}
	_, answer = h.call("POST", path+"guide", "define", `{"turn":3,"t/t":"x"}`)
	assert.Contains(t, answer, `"pointer":"/t~1t"`)
	assert.Contains(t, answer, `the body takes turn, text"`)
}
