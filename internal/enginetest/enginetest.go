// Package enginetest holds what the tests of several packages need of a whole engine:
// a clock that stands still, file systems that fail, recorded sessions, sinks and
// generators. Tests of the live sides and of the histories use it, from outside of the
// package that they test. No other code imports it.
package enginetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Begin opens an engine and its session "a", for tests and for rapid's.
func Begin(t interface {
	Helper()
	Fatal(args ...any)
}, dir string, cfg sajou.Config,
) (*sajou.Engine, *sajou.Session) {
	t.Helper()
	eng, err := sajou.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ses, err := eng.Session(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return eng, ses
}

// Dispatch is a choreography that moves an agent for each dispatched task.
const Dispatch = `{"on":"task_dispatch","steps":[
	{"action":"move","entity":"signal.to","to":"desk","duration":800,"easing":"easeInOut"},
	{"action":"onInterrupt","steps":[{"action":"destroy","entity":"signal.to"}]}]}`

// Replay returns the time travel of a session.
func Replay(t testing.TB, eng *sajou.Engine, name string) *replay.Replay {
	t.Helper()
	r, err := eng.Replay(name)
	require.NoError(t, err)
	return r
}

// ReplayedAt returns the state of a session right at an entry.
func ReplayedAt(ctx context.Context, eng *sajou.Engine, name string, seq eventlog.Seq) (*projection.Fold, error) {
	r, err := eng.Replay(name)
	if err != nil {
		return nil, err
	}
	return r.At(ctx, replay.Moment{Seq: seq})
}

// Definitions parses declarations.
func Definitions(t testing.TB, texts ...string) []language.Declaration {
	t.Helper()
	var all []language.Declaration
	for _, text := range texts {
		ds, diags := language.Parse("test.json", []byte(text))
		require.NoError(t, diags.Err(definition.ErrInvalid))
		all = append(all, ds...)
	}
	return all
}

// TaskSignal returns the n-th signal of a dispatched task, ms after the first.
func TaskSignal(n int, ms int64) *signal.Signal {
	payload, err := signal.ParseValue(fmt.Appendf(nil, `{"taskId":"t-%d","from":"boss","to":"agent-%d"}`, n, n%7))
	if err != nil {
		panic(err)
	}
	corr := fmt.Sprintf("task-%d", n)
	return &signal.Signal{
		ID: fmt.Sprintf("sig-%04d", n), Type: "task_dispatch", Source: "test", Timestamp: signal.Int(1_700_000_000_000 + ms),
		CorrelationID: &corr, Payload: payload,
	}
}

// Value parses a JSON value.
func Value(t testing.TB, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	return v
}

// Unjudged compiles declarations that a parser would remark on, each of which
// begins with its word.
func Unjudged(t testing.TB, texts ...string) []language.Declaration {
	t.Helper()
	var all []language.Declaration
	for _, text := range texts {
		word, text, _ := strings.Cut(text, " ")
		d, err := language.CompileDeclaration(word, Value(t, text))
		require.NoError(t, err)
		all = append(all, d)
	}
	return all
}

// StoryDefinitions have groups, continuations, handlers and interrupts.
var StoryDefinitions = []string{
	`{"on":"task_dispatch","steps":[
		{"action":"spawn","entity":"pigeon"},
		{"action":"parallel","steps":[
			{"action":"fly","entity":"pigeon","to":"signal.to","duration":700,"easing":"arc"},
			{"action":"onArrive","steps":[{"action":"wait","duration":150},{"action":"pulse","entity":"signal.from","duration":300,"delay":40}]}]},
		{"action":"onArrive","steps":[{"action":"destroy","entity":"pigeon"}]},
		{"action":"onInterrupt","steps":[{"action":"flash","target":"signal.from","duration":200},{"action":"destroy","entity":"pigeon"}]}]}`,
	`{"on":"tool_call","steps":[{"action":"move","entity":"signal.agentId","to":"forge","duration":333.25,"easing":"easeInOut"},{"action":"wait","duration":5000}]}`,
	`{"on":"error","interrupts":true,"steps":[{"action":"flash","target":"signal.agentId","duration":120}]}`,
	`{"on":"user.wave","steps":[
		{"action":"parallel","steps":[
			{"action":"drawBeam","entity":"signal.agentId","to":"forge","duration":250},
			{"action":"typeText","entity":"signal.agentId","text":"h\u00e9llo","duration":333},
			{"action":"set","entity":"signal.agentId","property":"opacity","value":0.3,"duration":170.5,"easing":"easeInOut"},
			{"action":"move","entity":"signal.agentId","by":{"x":30,"y":-7.7},"duration":210,"easing":"easeOut"}]},
		{"action":"set","entity":"signal.agentId","property":"opacity","revert":true,"duration":90},
		{"action":"playSound","entity":"signal.agentId","sound":"bell"}]}`,
}

// StoryScene is the scene that a history can bring into force.
const StoryScene = `{"sajou":"scene","version":1,"name":"yard","size":{"width":640,"height":360},
	"slots":{"left":{"x":160,"y":220},"right":{"x":480.5,"y":220}},"waypoints":{"forge":{"x":320,"y":90},"desk":{"x":33,"y":41}},
	"entities":[{"id":"agent","at":"left"},{"id":"pigeon","at":"desk","hidden":true}]}`

// Step is one thing that happens in a random history.
type Step struct {
	Typ  string
	Wait int64 // ms after the step before
	Task int
}

// Record is what step n of a history records.
func (s Step) Record(t testing.TB, n int, ms int64) sajou.Addition {
	switch s.Typ {
	case "choreographies":
		return sajou.Addition{Declarations: Definitions(t, StoryDefinitions...)}
	case "scene":
		sc, err := scene.Compile(Value(t, StoryScene))
		require.NoError(t, err)
		return sajou.Addition{Declarations: []language.Declaration{sc}}
	}
	return sajou.Addition{Signals: []*signal.Signal{s.Signal(n, ms)}}
}

// Signal returns the step's n-th signal, ms after the first.
func (s Step) Signal(n int, ms int64) *signal.Signal {
	payload := map[string]string{
		"task_dispatch": `{"taskId":"t","from":"boss","to":"agent"}`,
		"tool_call":     `{"toolName":"x","agentId":"agent"}`,
		"error":         `{"message":"m","severity":"error","agentId":"agent"}`,
		"thinking":      `{"agentId":"agent","content":"hm"}`,
		"user.wave":     `{"agentId":"agent"}`,
	}[s.Typ]
	line := fmt.Appendf(nil, `{"id":"s%d","type":%q,"timestamp":%d,"source":"test","correlationId":"task-%d","payload":%s}`,
		n, s.Typ, 1_700_000_000_000+ms, s.Task, payload)
	sig, err := signal.Parse(line)
	if err != nil {
		panic(err)
	}
	return sig
}

// Digests shows where a state stands and what it is.
func Digests(f *projection.Fold) string { return fmt.Sprint(f.Head(), f.Digests()) }

// DigestStory is a fixed session: what happens, and how long after what came
// before.
var DigestStory = []Step{
	{"thinking", 0, 0},
	{"tool_call", 200, 0},
	{"scene", 0, 0},
	{"choreographies", 0, 0},
	{"task_dispatch", 333, 0},
	{"tool_call", 40, 1},
	{"user.wave", 0, 0},
	{"thinking", 0, 0},
	{"task_dispatch", 333, 2},
	{"error", 150, 0},
	{"tool_call", 700, 1},
	{"error", 1, 1},
	{"user.wave", 5000, 1},
	{"task_dispatch", 40, 1},
	{"thinking", 40, 2},
}
