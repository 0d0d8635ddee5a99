package provenance_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

// memory is a session in memory.
type memory struct{ entries []eventlog.Entry }

func (m *memory) Name() string           { return "memory" }
func (m *memory) Genesis() eventlog.Hash { return eventlog.Hash{} }

func (m *memory) Head() eventlog.Head {
	if len(m.entries) == 0 {
		return eventlog.Head{}
	}
	return m.entries[len(m.entries)-1].Head()
}

func (m *memory) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for _, e := range m.entries[min(int(from)-1, len(m.entries)):] {
			if ctx.Err() != nil {
				yield(eventlog.Entry{}, ctx.Err())
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (m *memory) replay() *replay.Replay {
	return replay.Open(m, session.Projections(session.ProjectionConfig{}), nil)
}

// add appends the entries of drafts.
func (m *memory) add(drafts []eventlog.Draft) {
	for _, d := range drafts {
		e := eventlog.Entry{Seq: eventlog.Seq(len(m.entries) + 1), Kind: d.Kind, At: d.At, Data: append([]byte(nil), d.Data...)}
		binary.BigEndian.PutUint64(e.Hash[:], uint64(e.Seq))
		m.entries = append(m.entries, e)
	}
}

// begin returns a session with declarations, each a JSON text.
func begin(t tester, declarations ...string) *memory {
	t.Helper()
	m := &memory{}
	var d session.Drafts
	d.Opened(0, session.TimeManual)
	m.add(d.List())
	for _, text := range declarations {
		m.define(t, 0, text)
	}
	return m
}

func (m *memory) define(t tester, at time.Duration, text string) {
	t.Helper()
	var d session.Drafts
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	word := language.WordFor(v)
	if v.Member("slots") != nil || v.Member("entities") != nil {
		_, diagnostics := scene.Parse("scene", []byte(text))
		require.NoError(t, diagnostics.Only(authored.SeverityError).Err(definition.ErrInvalid))
		word = session.WordScene
	}
	declaration, err := session.CompileDeclaration(word, v)
	require.NoError(t, err, text)
	d.Declaration(at, declaration)
	m.add(d.List())
}

func (m *memory) signal(t tester, at time.Duration, typ, correlation string, payload object) {
	t.Helper()
	envelope := object{
		"id": fmt.Sprint(len(m.entries)), "type": typ, "timestamp": at.Milliseconds(), "source": "test", "payload": payload,
	}
	if correlation != "" {
		envelope["correlationId"] = correlation
	}
	text, err := json.Marshal(envelope)
	require.NoError(t, err)
	s, err := signal.ParseLenient(text)
	require.NoError(t, err)
	var d session.Drafts
	d.Signal(at, s)
	m.add(d.List())
}

// lengths make many boundaries meet.
var lengths = []int{0, 10, 20, 20, 50, 120, 900}

var names = []string{"ann", "bob", "desk", "cup"}

func drawSteps(t *rapid.T, depth int) []object {
	steps := []object{}
	for range rapid.IntRange(1, 3).Draw(t, "steps") {
		kind := rapid.SampledFrom([]string{
			"move", "move", "moveBy", "spawn", "spawn", "destroy", "flash", "pulse", "typeText", "say", "setAnimation",
			"set", "set", "revert", "toggle", "drawBeam", "wait", "wait", "parallel", "onInterrupt",
		}).Draw(t, "action")
		step := object{"action": kind, "entity": rapid.SampledFrom([]string{"ann", "signal.who", "signal.who", "cup"}).Draw(t, "entity")}
		place := rapid.SampledFrom([]any{object{"x": 10, "y": 20}, "signal.to", "ann", "bob"}).Draw(t, "place")
		animated := rapid.Bool().Draw(t, "animated")
		switch kind {
		case "move":
			step["to"] = place
			if rapid.Bool().Draw(t, "states") {
				step["animationDuring"], step["animationOnArrival"] = "walking", "there"
			}
		case "moveBy":
			step["action"], step["by"] = "move", object{"x": 3, "y": -4}
		case "spawn":
			if rapid.Bool().Draw(t, "placed") {
				step["at"] = place
			}
			animated = false
		case "flash":
			step["color"] = "signal.to"
		case "typeText", "say":
			step["text"] = "signal.to"
			step["append"] = rapid.Bool().Draw(t, "append")
			animated = animated && kind == "typeText"
		case "setAnimation":
			step["state"], animated = "signal.to", false
		case "set":
			step["property"] = rapid.SampledFrom([]string{"x", "opacity", "tint", "layer", "visible", "state", "label"}).Draw(t, "property")
			step["value"] = rapid.SampledFrom([]any{0.25, "red", true, object{"strength": 0.5}, nil}).Draw(t, "value")
		case "revert":
			step["action"], step["revert"] = "set", true
			step["property"] = rapid.SampledFrom([]string{"x", "opacity", "tint", "visible", "state"}).Draw(t, "property")
		case "toggle":
			step["action"], step["property"] = "set", "visible"
		case "drawBeam":
			step["to"] = place
		case "wait":
			step, animated = object{"action": "wait"}, true
		case "parallel", "onInterrupt":
			if depth > 1 || kind == "onInterrupt" && depth > 0 {
				continue
			}
			step, animated = object{"action": kind, "steps": drawSteps(t, depth+1)}, false
		case "destroy":
			animated = false
		}
		if animated {
			step["duration"] = rapid.SampledFrom(lengths).Draw(t, "duration")
		}
		if rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
			step["when"] = drawCondition(t)
		}
		steps = append(steps, step)
	}
	return steps
}

func drawCondition(t *rapid.T) object {
	asked := rapid.SampledFrom([]string{"signal.to", "stage:ann.state", "stage:signal.who.visible", "stage:cup.visible", "stage:ann.x"}).Draw(t, "asked")
	operator := rapid.SampledFrom([]object{{"gt": 10}, {"lt": 300}, {"exists": true}, {"equals": true}, {"not": object{"equals": "bob"}}}).Draw(t, "operator")
	return object{asked: operator}
}

// drawSession draws a session of signals with choreographies that compete.
func drawSession(t *rapid.T) *memory {
	types := []string{"x", "y", "stop", "tool_call", "thinking"}
	definitions := func(least int) (texts []string) {
		for range rapid.IntRange(least, 4).Draw(t, "definitions") {
			d := object{"on": rapid.SampledFrom(types).Draw(t, "on"), "steps": drawSteps(t, 0)}
			if rapid.IntRange(0, 2).Draw(t, "interrupts") == 0 {
				d["interrupts"] = true
			}
			if rapid.IntRange(0, 2).Draw(t, "guarded") == 0 {
				d["guard"] = object{
					"entity": rapid.SliceOfN(rapid.SampledFrom([]string{"ann", "cup", "signal.who"}), 1, 2).Draw(t, "guard"),
					"policy": rapid.SampledFrom([]string{"queue", "skip", "preempt"}).Draw(t, "policy"),
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
				d["when"] = drawCondition(t)
			}
			if rapid.Bool().Draw(t, "named") {
				d["id"] = rapid.SampledFrom([]string{"i", "j"}).Draw(t, "id")
			}
			text, err := json.Marshal(d)
			require.NoError(t, err)
			texts = append(texts, string(text))
		}
		return texts
	}
	var texts []string
	if rapid.Bool().Draw(t, "staged") {
		texts = append(texts, `{"sajou":"scene","version":1,"entities":[{"id":"desk","at":{"x":700,"y":100}},{"id":"ann","at":{"x":50,"y":60}}],"slots":[{"name":"bob","x":5,"y":6}]}`)
	}
	m := begin(t, append(texts, definitions(0)...)...)
	at := time.Duration(0)
	for i := range rapid.IntRange(1, 12).Draw(t, "signals") {
		at += time.Duration(rapid.SampledFrom([]int{0, 0, 10, 20, 25, 60, 300}).Draw(t, "gap")) * time.Millisecond
		if i > 2 && rapid.IntRange(0, 9).Draw(t, "more") == 0 {
			for _, text := range definitions(1)[:1] {
				m.define(t, at, text)
			}
		}
		m.signal(t, at, rapid.SampledFrom(types).Draw(t, "type"), rapid.SampledFrom([]string{"", "c", "c"}).Draw(t, "correlation"), object{
			"who": rapid.SampledFrom(names).Draw(t, "who"), "to": rapid.SampledFrom(names).Draw(t, "to"),
			"agentId": "ann", "toolName": "t", "callId": "c", "content": "words " + fmt.Sprint(i),
		})
	}
	return m
}

// drawMoment draws a moment of a session, also behind its end.
func drawMoment(t *rapid.T, m *memory) replay.Moment {
	seq := rapid.IntRange(1, len(m.entries)).Draw(t, "seq")
	at := replay.Moment{Seq: eventlog.Seq(seq)}
	room := 2 * time.Second
	if seq < len(m.entries) {
		room = m.entries[seq].At - m.entries[seq-1].At
	}
	if room > 0 && rapid.Bool().Draw(t, "between") {
		at.Offset = time.Duration(rapid.Int64Range(1, int64(room)).Draw(t, "offset"))
	}
	return at
}

// drawPath draws the path of a value of the stage.
func drawPath(t *rapid.T) string {
	entity := "stage.entities." + rapid.SampledFrom([]string{"ann", "bob", "cup", "desk"}).Draw(t, "entity")
	member := rapid.SampledFrom([]string{"", ".x", ".y", ".state", ".visible", ".text", ".opacity", ".strength", ".tint", ".scale", ".layer", ".label"}).Draw(t, "member")
	return entity + member
}

// tester is a test, a property or an example.
type tester interface {
	require.TestingT
	Helper()
}

// panicking is the tester of an example.
type panicking struct{}

func (panicking) Helper()                           {}
func (panicking) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicking) FailNow()                          { panic("failed") }
