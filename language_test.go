package sajou_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

type object = map[string]any

// playScenes place figures that steps mean by id, by actor and by a rule, and not
// the same ones.
var playScenes = []string{
	enginetest.StoryScene,
	`{"sajou":"scene","version":1,"name":"heath","size":{"width":200,"height":200},"slots":{"left":{"x":5,"y":5},"nook":{"x":70,"y":9}},
		"waypoints":{"forge":{"x":190,"y":3}},"routes":{"fence":{"points":[{"x":0,"y":0},{"x":9,"y":0},{"x":9,"y":90}],"closed":true}},
		"entities":[{"id":"king","at":"nook","actor":"agent"},{"id":"lamp","at":{"x":1,"y":1}}],
		"agents":[{"match":"b*","slot":"left"},{"match":"x*","entity":"lamp"}]}`,
	`{"sajou":"scene","version":1,"name":"hush","impressions":false,"layers":["ground","sky"],"entities":[{"id":"agent","at":{"x":50,"y":60},"layer":"sky"}]}`,
}

func oneOf[T any](t *rapid.T, what string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, what)
}

// drawDeed draws an action.
func drawDeed(t *rapid.T) object {
	who := func() string {
		return oneOf(t, "who", "agent", "lamp", "king", "pigeon", "signal.agentId", "signal.to", "boss")
	}
	place := func() any {
		return oneOf[any](t, "place", "forge", "left", "lamp", "signal.agentId", object{"x": 12.5, "y": 7}, "nowhere")
	}
	step := object{
		"action": oneOf(t, "action",
			"move", "move", "fly", "spawn", "destroy", "flash", "pulse", "drawBeam", "typeText", "say", "playSound", "setAnimation", "followRoute", "set", "set", "glow"),
		"entity": who(),
	}
	switch step["action"] {
	case "move", "fly", "drawBeam":
		step["to"], step["animationOnArrival"] = place(), "there"
	case "spawn":
		step["at"] = place()
	case "typeText", "say":
		step["text"], step["append"] = oneOf(t, "text", "grüezi", "signal.content", "signal.agentId"), oneOf(t, "append", true, false)
	case "setAnimation":
		step["state"] = oneOf(t, "state", "dig", "idle", "signal.to")
	case "followRoute":
		step["route"], step["to"] = "fence", oneOf[any](t, "stop", 1, "lamp")
	case "set":
		step["property"] = oneOf(t, "property", "opacity", "scale", "rotation", "x", "tint", "visible", "text", "layer")
		step["value"] = oneOf[any](t, "value", 0.5, 2, "red", "toggle", true)
		if oneOf(t, "back", true, false, false) {
			step["revert"] = true
		}
	}
	if oneOf(t, "animated", true, true, false) {
		step["duration"] = oneOf(t, "duration", 0, 40, 100.5, 333, 1000)
		step["easing"] = oneOf(t, "easing", "linear", "easeOut", "arc", "custom", "custom", "steps(3, start)", "spring(1, 90, 6)")
	}
	if oneOf(t, "held", true, false, false, false) {
		step["delay"] = oneOf(t, "delay", 10, 40)
	}
	return step
}

// drawAsked draws a condition.
func drawAsked(t *rapid.T) object {
	return oneOf(t, "condition",
		object{"stage:agent.visible": object{"equals": true}},
		object{"stage:signal.agentId.x": object{"gt": 100}},
		object{"stage:lamp.opacity": object{"lt": 0.7}},
		object{"stage:signal.to.state": object{"not": object{"equals": "idle"}}},
		object{"stage:king.text": object{"exists": true}},
		object{"signal.agentId": object{"equals": "agent"}})
}

// drawPlan draws steps of every construct.
func drawPlan(t *rapid.T, depth int) []object {
	steps := []object{}
	for range oneOf(t, "steps", 1, 2, 2, 3) {
		var step object
		switch kind := oneOf(t, "construct", "", "", "", "wait", "parallel", "repeat", "stagger", "each", "include"); {
		case kind == "wait":
			step = object{"action": "wait", "duration": oneOf(t, "wait", 10, 40, 150)}
		case kind == "" || depth == 0:
			step = drawDeed(t)
		case kind == "repeat":
			step = object{"action": kind, "times": oneOf(t, "times", 0, 1, 3), "steps": drawPlan(t, depth-1)}
		case kind == "stagger":
			step = object{"action": kind, "every": oneOf(t, "every", 0, 40, 33.3), "steps": drawPlan(t, depth-1)}
		case kind == "each":
			step = object{
				"action": "stagger", "every": 40, "each": []string{"agent", "lamp", "signal.agentId"},
				"steps": append(drawPlan(t, depth-1), object{"action": "pulse", "entity": "each.item", "duration": 100}),
			}
		case kind == "include":
			step = object{"action": kind, "sequence": oneOf(t, "sequence", "s1", "s2"), "with": object{"who": oneOf(t, "with", "lamp", "signal.agentId")}}
		default:
			step = object{"action": kind, "steps": drawPlan(t, depth-1)}
		}
		if oneOf(t, "asks", true, false, false, false) {
			step["when"] = drawAsked(t)
		}
		steps = append(steps, step)
	}
	return steps
}

// drawDeclared draws a declaration, whatever it refers to.
func drawDeclared(t *rapid.T) (word string, d object) {
	types := []string{"tool_call", "task_dispatch", "user.wave", "error"}
	switch word := oneOf(t, "word", "choreography", "choreography", "choreography", "sequence", "easing", "binding", "scene"); word {
	case "sequence":
		steps := append(drawPlan(t, 1), object{"action": "flash", "entity": "param.who", "duration": 100, "easing": "custom"})
		return word, object{"sequence": oneOf(t, "name", "s1", "s2"), "params": object{"who": "king"}, "steps": steps}
	case "easing":
		return word, object{"easing": "custom", "curve": oneOf(t, "curve", "cubic-bezier(0.2, 0, 0, 1)", "steps(4)", "spring(1, 100, 8)")}
	case "binding":
		b := object{"id": oneOf(t, "id", "b1", "b2", "b3"), "targetEntityId": oneOf(t, "bound", "lamp", "agent")}
		if oneOf(t, "source", true, true, false) {
			b["sourceType"] = rapid.SampledFrom(append(types, "thinking")).Draw(t, "on")
		} else {
			b["sourceChoreographyId"] = "c1"
		}
		if oneOf(t, "condition", true, false) {
			b["when"] = drawAsked(t)
		}
		switch b["property"] = oneOf(t, "property", "opacity", "rotation", "scale", "position.x", "visible", "animation.state", "moveTo", "speech"); b["property"] {
		case "animation.state":
			b["action"] = object{"animationDuring": "hum"}
		case "moveTo":
			b["action"] = object{"waypoint": "forge", "duration": 150, "animationOnArrival": "there"}
		case "visible", "speech":
		default:
			if oneOf(t, "mapped", true, false) {
				b["sourceField"] = "n"
				b["mapping"] = object{"fn": oneOf(t, "fn", "lerp", "clamp", "step", "smoothstep"), "inputRange": []int{0, 10}, "outputRange": []float64{0.1, 3}}
			} else {
				b["transition"] = object{"targetValue": 0.25, "durationMs": 150, "easing": oneOf(t, "easing", "easeInOut", "arc", "custom"), "revert": true, "revertDelayMs": 40}
			}
		}
		return word, b
	case "scene":
		var sc object
		require.NoError(t, json.Unmarshal([]byte(oneOf(t, "scene", playScenes...)), &sc))
		return word, sc
	default:
		d := object{"on": oneOf(t, "on", types...), "steps": drawPlan(t, 2)}
		d["id"] = oneOf(t, "id", "c1", "c2", "c3")
		if oneOf(t, "handles", true, false) {
			d["steps"] = append(d["steps"].([]object), object{"action": "onInterrupt", "steps": drawPlan(t, 1)})
		}
		if oneOf(t, "extends", true, false, false) {
			d["extends"], d["before"] = "c1", []object{drawDeed(t)}
		}
		if oneOf(t, "condition", true, false, false) {
			d["when"] = drawAsked(t)
		}
		if d["on"] == "error" {
			d["interrupts"] = true
		}
		if oneOf(t, "guarded", true, false) {
			d["guard"] = object{"entity": oneOf[any](t, "guards", "lamp", "signal.agentId", []string{"lamp", "signal.agentId"}), "policy": oneOf(t, "policy", "queue", "skip", "preempt")}
		}
		return word, d
	}
}

// drawSaid draws a signal.
func drawSaid(t *rapid.T, n int, ms int64) *signal.Signal {
	agent := oneOf(t, "agent", "agent", "boss", "xenia", "lamp")
	typ := oneOf(t, "type", "tool_call", "task_dispatch", "task_dispatch", "user.wave", "error", "thinking")
	payload := map[string]object{
		"tool_call":     {"agentId": agent, "toolName": "Read"},
		"task_dispatch": {"taskId": "t", "from": "boss", "to": agent},
		"user.wave":     {"agentId": agent, "to": "lamp", "content": "so it is", "n": oneOf(t, "n", 0, 4, 11)},
		"error":         {"agentId": agent, "message": "no", "severity": "error"},
		"thinking":      {"agentId": agent, "content": "hm"},
	}[typ]
	line, err := json.Marshal(object{
		"id": fmt.Sprint(n), "type": typ, "timestamp": 1_700_000_000_000 + ms, "source": "test",
		"correlationId": oneOf(t, "correlation", "c", "d"), "payload": payload,
	})
	require.NoError(t, err)
	sig, err := signal.Parse(line)
	require.NoError(t, err)
	return sig
}

// For any session with all that the language has, declared in any order, again
// and in mid-performance, the states at every entry and between two entries are
// the same live, folded from the first entry, from whatever snapshots there are,
// however time is cut, and after the engine was opened again.
func TestWholeLanguageReplays(t *testing.T) {
	dir := t.TempDir()
	n, recorded, refused, under := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		n++
		store := fmt.Sprintf("%s/%d", dir, n)
		cfg := sajou.Config{SnapshotEvery: 2, Actions: map[string]stage.Action{"glow": enginetest.Glow}}
		eng, ses := enginetest.Begin(rt, store, cfg)
		live := map[eventlog.Seq]string{}
		ms := int64(0)
		for i := range rapid.IntRange(4, 24).Draw(rt, "entries") {
			ms += oneOf(rt, "wait", int64(0), 0, 1, 40, 100, 150, 700)
			var r sajou.Addition
			if oneOf(rt, "declares", true, true, false, false, false) {
				word, d := drawDeclared(rt)
				text, err := json.Marshal(d)
				require.NoError(rt, err)
				v, err := signal.ParseValue(text)
				require.NoError(rt, err)
				r.Declarations = []language.Declaration{declared{word, v}}
			} else {
				r.Signals = []*signal.Signal{drawSaid(rt, i, ms)}
			}
			switch _, err := ses.Record(ctx, r); {
			case errors.Is(err, definition.ErrInvalid):
				refused++ // it refers to what is not there
				continue
			case err != nil:
				rt.Fatal(err)
			}
			recorded++
			f, err := ses.State(ctx)
			require.NoError(rt, err)
			live[f.Head().Seq] = enginetest.Digests(f)
			if session.StageOf(f).Moving() {
				under++
			}
		}
		set := eng.Projections()
		require.NoError(rt, eng.Close())
		if len(live) == 0 {
			return // all was refused
		}
		eng, ses = enginetest.Begin(rt, store, cfg)
		defer func() { _ = eng.Close() }()
		last, err := ses.State(ctx)
		require.NoError(rt, err)
		if want := live[last.Head().Seq]; want != "" && enginetest.Digests(last) != want {
			rt.Fatalf("opened again %s, live %s", enginetest.Digests(last), want)
		}
		log, err := eng.Log().Session("a")
		require.NoError(rt, err)
		genesis := replay.Open(log, set, nil)
		snapshots, err := eng.Replay("a")
		require.NoError(rt, err)
		cut := projection.NewFold(set, eventlog.Genesis("a"))
		seq := eventlog.Seq(0)
		at := time.Duration(0)
		for e, err := range ses.Entries(ctx, 1) {
			require.NoError(rt, err)
			// Between the entry before and this one.
			if gap := e.At - at; gap > 0 {
				offset := time.Duration(rapid.Int64Range(0, int64(gap)-1).Draw(rt, "between"))
				cut.Advance(at + offset/2)
				cut.Advance(at + offset)
				same(ctx, rt, genesis, snapshots, cut, replay.Moment{Seq: seq, Offset: offset})
			}
			if oneOf(rt, "restored", true, false) {
				if cut, err = cut.Clone(); err != nil {
					rt.Fatal(err)
				}
			}
			require.NoError(rt, cut.Apply(&e))
			seq, at = e.Seq, e.At
			f, err := snapshots.At(ctx, replay.Moment{Seq: seq})
			require.NoError(rt, err)
			if want := live[seq]; want != "" && enginetest.Digests(f) != want {
				rt.Fatalf("entry %d: from a snapshot %s, live %s", seq, enginetest.Digests(f), want)
			}
		}
		for _, offset := range []time.Duration{0, 77_777_777, time.Second, time.Hour} {
			cut.Advance(at + offset)
			same(ctx, rt, genesis, snapshots, cut, replay.Moment{Seq: seq, Offset: offset})
		}
		if session.StageOf(cut).Moving() {
			rt.Fatal("something moves for an hour")
		}
	})
	if recorded < 2*refused || 20*under < recorded { // of few sessions in the short form
		t.Errorf("%d entries, %d refused, %d with something in motion: too little happens", recorded, refused, under)
	}
}

// same expects one state at a moment, from wherever it is reached.
func same(ctx context.Context, t *rapid.T, genesis, snapshots *replay.Replay, cut *projection.Fold, m replay.Moment) {
	a, err := genesis.At(ctx, m)
	require.NoError(t, err)
	b, err := snapshots.At(ctx, m)
	require.NoError(t, err)
	if x, y, z := enginetest.Digests(a), enginetest.Digests(b), enginetest.Digests(cut); x != y || x != z {
		t.Fatalf("at %v: from the first entry %s, from a snapshot %s, cut otherwise %s\nthe view from the first entry (-), from a snapshot (+):\n%s\ncut otherwise (+):\n%s",
			m, x, y, z, cmp.Diff(a.View(), b.View()), cmp.Diff(a.View(), cut.View()))
	}
	for _, other := range []*projection.Fold{b, cut} {
		if diff := cmp.Diff(session.StageOf(a).Frame(), session.StageOf(other).Frame(), cmpopts.IgnoreFields(stage.Frame{}, "Scene")); diff != "" {
			t.Fatalf("at %v: seen from the first entry (-) and otherwise (+):\n%s", m, diff)
		}
		if diff := cmp.Diff(a.View(), other.View()); diff != "" {
			t.Fatalf("at %v: the view from the first entry (-) and otherwise (+):\n%s", m, diff)
		}
	}
}
