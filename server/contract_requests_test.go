package server_test

import (
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/server/problem"
)

// asked is a request of the tests of the contract.
type asked struct {
	target string // the path, with the wildcards filled in
	body   string
	header []string // pairs of a name and a value
	during string   // a stream of events that is open meanwhile
	hooks  hooks    // what the server may do to the settings of Claude Code
}

// hooks says whether the hooks of Claude Code can be installed.
type hooks int

const (
	hooksWork hooks = iota
	hooksFail
	hooksForbidden
)

func tapped(target string) []asked {
	return []asked{{target: target, body: "{}"}, {target: target, hooks: hooksFail}, {target: target, hooks: hooksForbidden}}
}

// exported returns requests with exports of OpenTelemetry, and one in protobuf.
func exported(target string, bodies ...string) (list []asked) {
	for _, body := range bodies {
		list = append(list, asked{target: target, body: body, header: []string{"Content-Type", "application/json"}})
	}
	return append(list, asked{target: target, header: []string{"Content-Type", "application/x-protobuf"}})
}

func unexported(target string) map[problem.ErrorCode]asked {
	header := []string{"Content-Type", "application/json"}
	return map[problem.ErrorCode]asked{
		problem.BadRequest:       {target: target, body: "{", header: header},
		problem.MediaUnsupported: {target: target, body: "{}"},
		problem.Deleted:          {target: target + "?session=gone", body: "{}", header: header},
		problem.NotFound:         {target: target, body: "{}", header: header, hooks: hooksForbidden}, // a server without a directory
	}
}

// of returns the requests for the errors of a route that takes a session as a parameter.
func of(target string) map[problem.ErrorCode]asked {
	return map[problem.ErrorCode]asked{
		problem.Deleted:    {target: target + "?session=gone"},
		problem.BadRequest: {target: target + "?session=%00"},
	}
}

// upgrade is the header of a request for a WebSocket with a subprotocol.
func upgrade(subprotocol string) []string {
	return []string{
		"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol", subprotocol,
	}
}

// wrote has the signals of a tool call that wrote a file.
const wrote = `[{"id":"w1","type":"tool_call","timestamp":1000,"source":"contract","payload":{"toolName":"Write","agentId":"smith","callId":"w","input":{"file_path":"/w/main.go","content":"package main\n"}}},
{"id":"w2","type":"tool_result","timestamp":1000,"source":"contract","payload":{"toolName":"Write","agentId":"smith","callId":"w","success":true}}]`

var mcpHeader = []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}

// note returns a signal.
func note(n int) string {
	return fmt.Sprintf(`{"id":"n%d","type":"tool_call","timestamp":%d,"source":"contract","payload":{"toolName":"grind","agentId":"smith","callId":"c%d"}}`, n, 1000+n, n)
}

const (
	world = `{"time":"manual","config":{"cooldowns":"off"},"world":{"entities":{"alice":{"type":"agent"},"bob":{"type":"agent"}},"relationships":{},"spatial_index":{"alice":[0,0,0],"bob":[1,0,0]}}}`

	start   = `{"episode":` + episode + `}`
	guide   = `{"turn":1,"text":"Hello?"}`
	respond = `{"turn":1,"text":"A knock at the door.","before":[{"role":"user","text":"Hello?"}]}`
	episode = `{"director":1,"id":"door","title":"The door","situation":"A closed door. Rain.","genre":"mystery","turn_budget":10,
		"beats":[{"id":"knock","description":"somebody knocks","character_instruction":"Knock.","target_turn":1,"deadline_turn":3,"detection_type":"keyword","detection_criteria":"knock",
		"choice_point":{"id":"open","prompt":"Open?","choices":[{"id":"yes","label":"I open it.","sets_flag":"opened"},{"id":"no","label":"I wait."}]}}]}`
)

const sessions = "/api/v1/sessions/"

// answered has requests that succeed, by the pattern of the route. A room adds its own
// here.
var answered = map[string][]asked{
	"GET /healthz":               {{target: "/healthz"}},
	"GET /readyz":                {{target: "/readyz"}},
	"GET /metrics":               {{target: "/metrics"}},
	"GET /api/v1/openapi.json":   {{target: "/api/v1/openapi.json"}},
	"GET /api/v1/schemas":        {{target: "/api/v1/schemas"}},
	"GET /api/v1/schemas/{name}": {{target: "/api/v1/schemas/signal"}},

	"GET /api/v1/sessions":                             {{target: "/api/v1/sessions"}, {target: "/api/v1/sessions?deleted=true&format=ndjson"}},
	"GET /api/v1/sessions/{session}":                   {{target: sessions + "night"}, {target: sessions + "dinner?short=true"}},
	"GET /api/v1/sessions/{session}/entries":           {{target: sessions + "night/entries?limit=5"}, {target: sessions + "conversation/entries?format=ndjson"}, {target: sessions + "dinner/entries?kind=beat"}},
	"GET /api/v1/sessions/{session}/entries/{address}": {{target: sessions + "night/entries/36"}},
	"GET /api/v1/sessions/{session}/state":             {{target: sessions + "night/state?at=36%2B50ms"}, {target: sessions + "night/state?path=workspace"}},
	"GET /api/v1/sessions/{session}/digests":           {{target: sessions + "night/digests"}},
	"GET /api/v1/sessions/{session}/diff":              {{target: sessions + "night/diff?from=35&to=36"}},
	"GET /api/v1/sessions/{session}/performances":      {{target: sessions + "night/performances?at=36"}},
	"GET /api/v1/sessions/{session}/frame":             {{target: sessions + "night/frame?at=36%2B50ms"}, {target: sessions + "dinner/frame"}},
	"GET /api/v1/sessions/{session}/picture":           {{target: sessions + "night/picture?width=64"}, {target: sessions + "night/picture?width=64&format=png"}},
	"GET /api/v1/sessions/{session}/board":             {{target: sessions + "dinner/board?verdicts=true"}, {target: sessions + "dinner/board?format=ndjson"}},

	"GET /api/v1/sessions/{session}/agents":                            {{target: sessions + "conversation/agents"}},
	"GET /api/v1/sessions/{session}/agents/{agent}/view":               {{target: sessions + "conversation/agents/A/view?at=9"}},
	"GET /api/v1/sessions/{session}/agents/{agent}/knows":              {{target: sessions + "conversation/agents/C/knows?pending=true"}, {target: sessions + "conversation/agents/C/knows?at=9%2B20ms&path=/visible_entities/B/last_message"}, {target: sessions + "conversation/agents/A/knows?value=Wait"}},
	"GET /api/v1/sessions/{session}/agents/{agent}/first-known":        {{target: sessions + "conversation/agents/A/first-known?path=B&all=true"}, {target: sessions + "conversation/agents/A/first-known?value=Wait&format=ndjson"}},
	"GET /api/v1/sessions/{session}/agents/{agent}/leak":               {{target: sessions + "conversation/agents/A/leak?value=light+is+out"}, {target: sessions + "conversation/agents/A/leak?path=B"}},
	"GET /api/v1/sessions/{session}/agents/{agent}/requests/{request}": {{target: sessions + "conversation/agents/A/requests/story"}, {target: sessions + "conversation/agents/B/requests/none"}},

	"GET /api/v1/sessions/{session}/blame":         {{target: sessions + "night/blame?path=stage.entities.smith.strength&at=38"}},
	"GET /api/v1/sessions/{session}/blame/history": {{target: sessions + "night/blame/history?path=stage.entities.smoke"}, {target: sessions + "night/blame/history?path=stage.entities.smoke&format=ndjson"}},
	"GET /api/v1/sessions/{session}/blame/file":    {{target: sessions + "night/blame/file?file=main.go"}, {target: sessions + "night/blame/file?file=main.go&line=1&format=ndjson"}},
	"GET /api/v1/sessions/{session}/why":           {{target: sessions + "night/why?at=38&path=stage.entities.smith.strength"}, {target: sessions + "night/why?at=38&format=dot"}, {target: sessions + "night/why?at=38&format=svg"}},
	"GET /api/v1/sessions/{session}/definitions":   {{target: sessions + "night/definitions"}, {target: sessions + "night/definitions?format=ndjson"}},
	"POST /api/v1/sessions/{session}/definitions":  {{target: sessions + "night/definitions", body: `{"on":"contract","steps":[{"action":"wait","duration":3}]}`}},
	"PUT /api/v1/sessions/{session}/marks/{name}":  {{target: sessions + "night/marks/glow", body: `{"at":"36+50ms","note":"still gold"}`}},
	"GET /api/v1/sessions/{session}/marks":         {{target: sessions + "night/marks"}, {target: sessions + "night/marks?format=ndjson"}},
	"GET /api/v1/sessions/{session}/export": {
		{target: sessions + "night/export"},
		{target: sessions + "night/export?format=entries"},
		{target: sessions + "night/export?format=raw"},
		{target: sessions + "night/export?format=otlp-json"},
		{target: sessions + "night/export?format=otlp"},
		{target: sessions + "night/export?format=perfetto"},
		{target: sessions + "night/export?format=asciicast&range=30..32"},
		{target: sessions + "night/export?format=html&range=30..32"},
		{target: sessions + "night/export?format=mcap"},
	},
	"POST /api/v1/sessions/{session}/jobs": {
		{target: sessions + "night/jobs", body: `{"kind":"verify"}`},
		{target: sessions + "night/jobs", body: `{"kind":"scan","where":"entry.type == \"tool_call\""}`},
		{target: sessions + "night/jobs", body: `{"kind":"scan","where":"state.performances.size()","mode":"changes","moments":true,"range":"30..36"}`},
		{target: sessions + "night/jobs", body: `{"kind":"bisect","where":"state.stage.entities.smoke.visible"}`},
		{target: sessions + "night/jobs", body: `{"kind":"minimize","at":"38","path":"stage.entities.smith.strength"}`},
		{target: sessions + "night/jobs", body: `{"kind":"policy-diff","policy":{"policy":"everything"}}`},
	},
	"GET /api/v1/sessions/{session}/jobs":              {{target: sessions + "night/jobs"}},
	"GET /api/v1/sessions/{session}/jobs/{job}":        {{target: sessions + "night/jobs/JOB"}},
	"GET /api/v1/sessions/{session}/jobs/{job}/result": {{target: sessions + "night/jobs/JOB/result"}},

	"POST /api/signal":         {{target: "/api/signal", body: `{"hello":"world"}`}, {target: "/api/signal?session=night", body: note(1)}},
	"GET /api/discover/local":  {{target: "/api/discover/local"}},
	"POST /api/tap/connect":    tapped("/api/tap/connect"),
	"POST /api/tap/disconnect": tapped("/api/tap/disconnect"),
	"GET /api/state/full":      {{target: "/api/state/full"}},
	"POST /api/state/push":     {{target: "/api/state/push", body: `{"scene":{"entities":[]}}`}},
	"GET /api/scene/state":     {{target: "/api/scene/state?session=night"}},
	"GET /api/choreographies":  {{target: "/api/choreographies?session=night"}},
	"POST /api/v1/sessions/{session}/signals": {
		{target: sessions + "run/signals", body: note(1)},
		{target: sessions + "run/signals", body: "[" + note(2) + "," + note(3) + "]", header: []string{"Idempotency-Key", "k"}},
		{target: sessions + "run/signals", body: note(4) + "\n" + note(5), header: []string{"Content-Type", "application/x-ndjson"}},
		{target: sessions + "run/signals?lenient=true", body: `{"type":5}`},
	},
	"POST /v1/traces":             exported("/v1/traces", `{"resourceSpans":[]}`, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}`),
	"POST /v1/logs":               exported("/v1/logs", `{"resourceLogs":[]}`),
	"GET /api/v1/logs":            {{target: "/api/v1/logs"}},
	"GET /api/v1/security/events": {{target: "/api/v1/security/events"}, {target: "/api/v1/security/events?kind=AUTH_FAILED&limit=1"}},
	"POST /mcp": {
		{target: "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header: mcpHeader},
		{target: "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_recordings","arguments":{}}}`, header: mcpHeader},
		{target: "/mcp", body: `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"none"}}`, header: mcpHeader},
		{target: "/mcp", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header: mcpHeader},
	},

	"PUT /api/v1/sessions/{session}/world": {{target: sessions + "village/world", body: world}},
	"PUT /api/v1/sessions/{session}/agents/{agent}": {
		{target: sessions + "hall/agents/carol", body: `{"policy":{"distance_limit":50},"permissions":["Speak"]}`},
	},
	"POST /api/v1/sessions/{session}/agents/{agent}/intents": {
		{target: sessions + "hall/agents/alice/intents", body: `{"type":"intent","req_id":"i1","kind":"Speak","payload":{"text":"hi"},"context_seq":0}`},
		{target: sessions + "hall/agents/alice/intents", body: `{"type":"intent","req_id":"i2","kind":"Nonsense","payload":{},"context_seq":0}`},
	},
	"POST /api/v1/sessions/{session}/agents/{agent}/cancel": {{target: sessions + "hall/agents/alice/cancel", body: `{"type":"cancel","req_id":"c"}`}},
	"POST /api/v1/sessions/{session}/agents/{agent}/tokens": {{
		target: sessions + "hall/agents/alice/tokens", during: sessions + "hall/agents/alice/events",
		body: `{"type":"begin","req_id":"g"}` + "\n" + `{"type":"tokens","req_id":"g","text":"Yes."}` + "\n" + `{"type":"end","req_id":"g"}` + "\n" + `{"type":"end","req_id":"h"}` + "\n" + `{}`,
	}},
	"POST /api/v1/sessions/{session}/director/start":   {{target: sessions + "opening/director/start", body: start}},
	"POST /api/v1/sessions/{session}/director/guide":   {{target: sessions + "turn/director/guide", body: guide}},
	"POST /api/v1/sessions/{session}/director/respond": {{target: sessions + "reply/director/respond", body: respond}},
	"POST /api/v1/sessions/{session}/director/choose":  {{target: sessions + "choice/director/choose", body: `{"choice_point":"open","choice":"yes"}`}},

	// These are asked last.
	"DELETE /api/v1/sessions/{session}/agents/{agent}": {{target: sessions + "hall/agents/dora"}},
	"DELETE /api/v1/sessions/{session}/marks/{name}":   {{target: sessions + "night/marks/glow"}},
	"DELETE /api/v1/sessions/{session}/jobs/{job}":     {{target: sessions + "night/jobs/JOB"}},
}

// refused has requests that provoke an error of one route, by the pattern and the code.
var refused = map[string]map[problem.ErrorCode]asked{
	"GET /api/v1/schemas/{name}":                          {problem.NotFound: {target: "/api/v1/schemas/nothing"}},
	"GET /api/v1/sessions/{session}/entries":              {problem.Invalid: {target: sessions + "night/entries?where=1+%2B"}},
	"GET /api/v1/sessions/{session}/state":                {problem.NotFound: {target: sessions + "night/state?path=workspace/none.go"}},
	"GET /api/v1/sessions/{session}/board":                {problem.NotFound: {target: sessions + "night/board"}},
	"GET /api/v1/sessions/{session}/agents/{agent}/knows": {problem.NotFound: {target: sessions + "conversation/agents/A/knows?path=nobody"}},
	"GET /api/v1/sessions/{session}/agents/{agent}/leak":  {problem.NotFound: {target: sessions + "conversation/agents/A/leak?path=nobody"}},
	"GET /api/v1/sessions/{session}/blame":                {problem.NotFound: {target: sessions + "night/blame?path=world"}},
	"GET /api/v1/sessions/{session}/blame/file":           {problem.NotFound: {target: sessions + "night/blame/file?file=main.go&line=9"}},
	"GET /api/v1/sessions/{session}/why":                  {problem.NotFound: {target: sessions + "night/why?path=session.entries"}},
	"POST /api/v1/sessions/{session}/definitions": {
		problem.Invalid:  {target: sessions + "night/definitions", body: `{"on":3}`},
		problem.Conflict: {target: sessions + "night/definitions", body: `{"on":"other","steps":[]}`, header: []string{"If-Match", `"1:` + strings.Repeat("0", 64) + `"`}},
	},
	"PUT /api/v1/sessions/{session}/marks/{name}": {
		problem.Invalid:    {target: sessions + "night/marks/+x", body: `{}`},
		problem.NoMoment:   {target: sessions + "night/marks/x", body: `{"at":"9999"}`},
		problem.BadRequest: {target: sessions + "night/marks/x", body: `[]`},
	},
	"DELETE /api/v1/sessions/{session}/marks/{name}": {problem.NotFound: {target: sessions + "night/marks/none"}},
	"POST /api/v1/sessions/{session}/jobs": {
		problem.BadRequest: {target: sessions + "night/jobs", body: `{"kind":"run","command":"true"}`},
		problem.NoMoment:   {target: sessions + "night/jobs", body: `{"kind":"scan","where":"true","range":"9999.."}`},
		problem.Invalid:    {target: sessions + "night/jobs", body: `{"kind":"bisect","where":"1 +"}`},
	},
	"GET /api/v1/sessions/{session}/live": {
		problem.BadRequest:   {target: sessions + "night/live?feed=news"},
		problem.RangeInvalid: {target: sessions + "night/live?from=999"},
	},
	"GET /api/v1/sessions/{session}/live/ws": {
		problem.BadRequest:   {target: sessions + "night/live/ws"},
		problem.RangeInvalid: {target: sessions + "night/live/ws?from=999", header: upgrade("")},
	},
	"GET /api/v1/sessions/{session}/log": {
		problem.BadRequest:   {target: sessions + "night/log?from=0"},
		problem.RangeInvalid: {target: sessions + "night/log?from=999"},
	},
	"POST /v1/traces":             unexported("/v1/traces"),
	"POST /v1/logs":               unexported("/v1/logs"),
	"GET /api/v1/security/events": {problem.BadRequest: {target: "/api/v1/security/events?kind=NONE"}},
	"GET /api/signal":             {problem.MethodNotAllowed: {target: "/api/signal"}, problem.BadRequest: {target: "/api/signal?ack=maybe", header: upgrade("")}},
	"GET /{$}":                    {problem.NotFound: {target: "/"}, problem.BadRequest: {target: "/", header: []string{"Upgrade", "websocket"}}},
	"GET /ws":                     {problem.NotFound: {target: "/ws"}, problem.BadRequest: {target: "/ws", header: upgrade("")[:6]}},
	"POST /api/signal": {
		problem.BadRequest: {target: "/api/signal", body: `{`},
		problem.Deleted:    {target: "/api/signal?session=gone", body: `{}`},
	},
	"POST /api/state/push":     {problem.BadRequest: {target: "/api/state/push", body: `{`}},
	"GET /__signals__/stream":  of("/__signals__/stream"),
	"GET /__signals__/plain":   of("/__signals__/plain"),
	"GET /__commands__/stream": of("/__commands__/stream"),
	"GET /api/scene/state":     of("/api/scene/state"),
	"GET /api/choreographies":  of("/api/choreographies"),
	"POST /api/v1/sessions/{session}/signals": {
		problem.BadRequest:       {target: sessions + "run/signals", body: `{`},
		problem.Invalid:          {target: sessions + "run/signals", body: `{"type":5}`},
		problem.Conflict:         {target: sessions + "run/signals?expect=1:" + strings.Repeat("0", 64), body: note(1)},
		problem.MediaUnsupported: {target: sessions + "run/signals", body: note(1), header: []string{"Content-Type", "image/png"}},
	},
	"GET /api/v1/sessions/{session}/signals/ws": {
		problem.BadRequest: {target: sessions + "run/signals/ws"},
		problem.Deleted:    {target: sessions + "gone/signals/ws", header: upgrade("sajou.signals.v1")},
	},
	"POST /mcp": {
		problem.BadRequest:       {target: "/mcp", body: `[]`, header: mcpHeader},
		problem.NotAcceptable:    {target: "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header: []string{"Content-Type", "application/json", "Accept", "text/html"}},
		problem.MediaUnsupported: {target: "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header: []string{"Content-Type", "text/plain"}},
	},
	"GET /api/v1/sessions/{session}/agents/{agent}/ws":     {problem.BadRequest: {target: sessions + "hall/agents/alice/ws", header: upgrade("mqtt")}},
	"GET /api/v1/sessions/{session}/sim/ws":                {problem.BadRequest: {target: sessions + "hall/sim/ws", header: upgrade("")}},
	"GET /api/v1/sessions/{session}/agents/{agent}/events": {problem.BadRequest: {target: sessions + "hall/agents/alice/events", header: []string{"Last-Event-ID", "x"}}},
	"POST /api/v1/sessions/{session}/agents/{agent}/intents": {
		problem.BadRequest: {target: sessions + "hall/agents/alice/intents", body: `{"type":"cancel","req_id":"r"}`},
	},
	"POST /api/v1/sessions/{session}/agents/{agent}/cancel": {problem.BadRequest: {target: sessions + "hall/agents/alice/cancel", body: `{}`}},
	"POST /api/v1/sessions/{session}/agents/{agent}/tokens": {problem.InUse: {target: sessions + "hall/agents/alice/tokens", body: `{"type":"begin","req_id":"g"}`}},
	"PUT /api/v1/sessions/{session}/world": {
		problem.BadRequest: {target: sessions + "hall/world", body: `[]`},
		problem.Invalid:    {target: sessions + "hall/world", body: `{"weather":"fine"}`},
		problem.InUse:      {target: sessions + "hall/world", body: `{"time":"sim"}`},
	},
	"PUT /api/v1/sessions/{session}/agents/{agent}": {
		problem.BadRequest: {target: sessions + "hall/agents/alice", body: `[]`},
		problem.Invalid:    {target: sessions + "hall/agents/alice", body: `{"policy":{"distance_limit":"far"}}`},
		problem.NoAgent:    {target: sessions + "nothing/agents/alice", body: `{}`},
	},
	"POST /api/v1/sessions/{session}/director/start": {
		problem.BadRequest: {target: sessions + "turn/director/start", body: `7`},
		problem.Invalid:    {target: sessions + "turn/director/start", body: `{"episode":7}`},
		problem.InUse:      {target: sessions + "judged/director/start", body: start},
	},
	"POST /api/v1/sessions/{session}/director/guide": {
		problem.BadRequest: {target: sessions + "turn/director/guide", body: `7`},
		problem.Invalid:    {target: sessions + "turn/director/guide", body: `{"turn":0}`},
		problem.InUse:      {target: sessions + "choice/director/guide", body: `{"turn":2,"text":"typed"}`},
		problem.NoSession:  {target: sessions + "nothing/director/guide", body: `{"turn":1}`},
	},
	"POST /api/v1/sessions/{session}/director/respond": {
		problem.BadRequest: {target: sessions + "turn/director/respond", body: `7`},
		problem.Invalid:    {target: sessions + "turn/director/respond", body: `{"turn":0}`},
		problem.InUse:      {target: sessions + "turn/director/respond", body: `{"turn":1,"text":"x"}`},
		problem.NoSession:  {target: sessions + "nothing/director/respond", body: `{"turn":1,"text":"x"}`},
	},
	"POST /api/v1/sessions/{session}/director/choose": {
		problem.BadRequest: {target: sessions + "turn/director/choose", body: `7`},
		problem.Invalid:    {target: sessions + "turn/director/choose", body: `{"option":"x"}`},
		problem.NotFound:   {target: sessions + "choice/director/choose", body: `{"choice_point":"none","choice":"x"}`},
		problem.InUse:      {target: sessions + "chosen/director/choose", body: `{"choice_point":"open","choice":"no"}`},
		problem.NoSession:  {target: sessions + "nothing/director/choose", body: `{"choice_point":"none","choice":"x"}`},
	},
	"GET /api/v1/sessions/{session}/jobs/{job}":        {problem.NotFound: {target: sessions + "night/jobs/none"}},
	"GET /api/v1/sessions/{session}/jobs/{job}/result": {problem.NotFound: {target: sessions + "night/jobs/none/result"}},
	"DELETE /api/v1/sessions/{session}/jobs/{job}":     {problem.NotFound: {target: sessions + "night/jobs/none"}},
}
