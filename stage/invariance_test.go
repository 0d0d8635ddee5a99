package stage_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

type object = map[string]any

// event is one entry of a history: a signal, a scene or a definition, with the time since
// the entry before.
type event struct {
	gap   time.Duration
	sig   *signal.Signal
	scene string
	def   string
}

const yard = `{"sajou": "scene", "version": 1, "stranger": "body", "looks": {"body": {"figure": "person", "color": "navy", "size": 48}}, "size": {"width": 400, "height": 300}, "layers": ["ground", "people"],
 "slots": {"left": {"x": 100, "y": 200}, "right": {"x": 300, "y": 200}}, "waypoints": {"well": {"x": 200, "y": 100}},
 "routes": {"fence": {"points": [{"x": 0, "y": 0}, {"x": 100, "y": 0}, {"x": 100, "y": 50}]}},
 "entities": [{"id": "peon", "at": {"x": 0, "y": 200}}, {"id": "a", "actor": "crowd", "at": {"x": 10, "y": 20}}, {"id": "b", "actor": "crowd", "at": {"x": 30, "y": 20}}],
 "agents": [{"match": "w*", "slot": "right"}, {"match": "boss", "entity": "peon"}]}`

const heath = `{"sajou": "scene", "version": 1, "stranger": "body", "looks": {"body": {"figure": "person", "color": "navy", "size": 48}}, "size": {"width": 200, "height": 200}, "slots": {"left": {"x": 5, "y": 5}},
 "entities": [{"id": "b", "at": {"x": 1, "y": 1}}, {"id": "w1", "at": {"x": 2, "y": 2}}]}`

var (
	entities = []string{"peon", "crowd", "w1", "stranger", "signal.who", "signal.none", "boss", "b"}
	places   = []any{"well", "left", "crowd", "peon", "w2", "nowhere", object{"x": 1e300, "y": -5}, []any{1, 2}, "signal.who", object{"x": "1"}, nil, 7}
	values   = []any{0, 1, 0.5, -3, 1e300, "red", "people", true, nil, "toggle", object{"color": "blue", "strength": 0.3}, []any{}, "signal.who", object{"revert": true}, ""}
	lengths  = []float64{0, 10, 20, 20, 50, 33.3, 1e300}
	curves   = []string{"linear", "easeIn", "easeOut", "easeInOut", "arc"}
)

func pick[T any](t *rapid.T, from []T, label string) T { return rapid.SampledFrom(from).Draw(t, label) }

// drawAction draws any action, with parameters of any kind.
func drawAction(t *rapid.T) object {
	action := pick(t, []string{
		"move", "move", "fly", "spawn", "destroy", "flash", "pulse", "drawBeam", "typeText", "say", "playSound",
		"setAnimation", "followRoute", "set", "set", "shake", "vanish", "unknown",
	}, "action")
	step := object{"action": action, "entity": pick(t, entities, "entity")}
	switch action {
	case "move", "fly", "drawBeam", "vanish":
		step["to"] = pick(t, places, "to")
		if rapid.IntRange(0, 3).Draw(t, "relative") == 0 {
			delete(step, "to")
			step["by"] = pick(t, places[6:8], "by")
		}
		if rapid.Bool().Draw(t, "arrives") {
			step["animationOnArrival"], step["animationDuring"] = "there", "walk"
		}
	case "spawn":
		step["at"] = pick(t, places, "at")
		step["scale"], step["layer"] = pick(t, values, "scale"), pick(t, values, "layer")
	case "pulse":
		step["amount"] = pick(t, values, "amount")
	case "flash":
		step["color"] = pick(t, values, "color")
	case "typeText", "say":
		step["text"] = pick(t, []any{"hello", "signal.who", 12, "", "grüezi miteinander"}, "text")
		step["append"] = rapid.Bool().Draw(t, "append")
	case "playSound":
		step["sound"] = "gong"
	case "setAnimation":
		step["state"] = pick(t, values, "state")
	case "followRoute":
		step["route"] = pick(t, []any{"fence", "nowhere", 7}, "route")
		step["from"], step["to"] = pick(t, places, "from"), pick(t, values, "to")
		step["reverse"] = rapid.Bool().Draw(t, "reverse")
	case "set":
		step["property"] = pick(t, []string{"x", "position.y", "opacity", "scale", "rotation", "tint", "text", "layer", "visible", "state", "label", "?"}, "property")
		step["value"] = pick(t, values, "value")
	}
	if rapid.IntRange(0, 3).Draw(t, "instant") > 0 {
		step["duration"], step["easing"] = pick(t, lengths, "duration"), pick(t, curves, "easing")
	}
	return step
}

func drawSteps(t *rapid.T, depth int) []object {
	steps := []object{}
	for range rapid.IntRange(1, 4).Draw(t, "steps") {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			steps = append(steps, object{"action": "wait", "duration": pick(t, lengths, "wait")})
		case 1:
			if depth < 2 {
				steps = append(steps, object{"action": "parallel", "steps": drawSteps(t, depth+1)})
			}
		default:
			steps = append(steps, drawAction(t))
		}
	}
	return steps
}

func drawHistory(t *rapid.T) []event {
	var events []event
	gaps := []time.Duration{0, 0, 5, 10, 20, 40, 7, 1000}
	gap := func() time.Duration { return pick(t, gaps, "gap") * time.Millisecond }
	define := func() {
		d := object{"on": pick(t, []string{"go", "stop"}, "on"), "steps": drawSteps(t, 0)}
		if rapid.IntRange(0, 2).Draw(t, "interrupts") == 0 {
			d["interrupts"] = true
		}
		events = append(events, event{gap: gap(), def: text(t, d)})
	}
	impressed := rapid.IntRange(0, 3).Draw(t, "impressed") == 0
	if !impressed {
		for range rapid.IntRange(1, 4).Draw(t, "definitions") {
			define()
		}
	}
	if rapid.Bool().Draw(t, "scene") {
		events = append(events, event{scene: yard})
	}
	for i := range rapid.IntRange(1, 10).Draw(t, "events") {
		switch rapid.IntRange(0, 9).Draw(t, "event") {
		case 0:
			events = append(events, event{gap: gap(), scene: pick(t, []string{yard, heath}, "scene")})
			continue
		case 1:
			define()
			continue
		}
		sig := &signal.Signal{ID: fmt.Sprint(i), Type: pick(t, []string{"go", "stop", "task_dispatch", "tool_call", "tool_result", "thinking", "error", "completion", "agent_state_change"}, "type"), Source: "s"}
		who := pick(t, []string{"ann", "peon", "crowd", "w1"}, "who")
		sig.Payload = value(t, object{"who": who, "agentId": who, "from": who, "to": "bob", "content": "hm, ", "toolName": "saw", "success": true, "message": "ouch"})
		if id := pick(t, []string{"none", "c"}, "correlation"); id != "none" {
			sig.CorrelationID = &id
		}
		events = append(events, event{gap: gap(), sig: sig})
	}
	return append(events, event{gap: gap()})
}

func text(t rapid.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func value(t rapid.TB, v any) signal.Value {
	t.Helper()
	out, err := signal.ParseValue([]byte(text(t, v)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// seen is the visible state of a world after an event.
type seen struct {
	State []byte
	Told  []string
	Until time.Duration
}

// play runs a history as a fold does. before moves time on to an event, in any number of
// steps.
func play(t rapid.TB, events []event, before func(w *world, to time.Duration)) []seen {
	t.Helper()
	w := newWorld(stage.Config{Actions: actions})
	var out []seen
	at := time.Duration(0)
	note := func() {
		until, _ := w.stage.Until()
		out = append(out, seen{w.stage.Append(nil), told(w.stage), until})
		sound(t, w.stage)
	}
	for _, e := range events {
		at += e.gap
		before(w, at)
		w.advance(at)
		note()
		switch {
		case e.sig != nil:
			w.signal(at, e.sig)
		case e.scene != "":
			s, err := sceneFrom(e.scene)
			if err != nil {
				t.Fatal(err)
			}
			w.stage.SetScene(s)
		case e.def != "":
			d, err := definition.Compile(value(t, json.RawMessage(e.def)))
			if err != nil {
				t.Fatal(err)
			}
			if err := w.scheduler.Define(d); err != nil {
				t.Fatal(err)
			}
			w.stage.Choreographed()
		}
		note()
	}
	return out
}

// sound checks the invariants of every frame.
func sound(t rapid.TB, s *stage.Stage) {
	t.Helper()
	f := s.Frame()
	finite := func(what string, v, low, high float64) {
		if !(v >= low && v <= high) || math.IsInf(v, 0) {
			t.Errorf("%s is %v", what, v)
		}
	}
	for i, g := range f.Figures {
		finite("x", g.X, -1e9, 1e9)
		finite("y", g.Y, -1e9, 1e9)
		finite("opacity", g.Opacity, 0, 1)
		finite("strength", g.Strength, 0, 1)
		finite("scale", g.Scale, 0, 1000)
		finite("rotation", g.Rotation, -1e9, 1e9)
		finite("text opacity", g.TextOpacity, 0, 1)
		if i > 0 {
			if p := f.Figures[i-1]; p.Layer > g.Layer || p.Layer == g.Layer && (p.Y > g.Y || p.Y == g.Y && p.ID >= g.ID) {
				t.Errorf("%s is drawn before %s", p.ID, g.ID)
			}
		}
	}
	for _, b := range f.Beams {
		for _, v := range []float64{b.FromX, b.FromY, b.ToX, b.ToY} {
			finite("a beam's end", v, -4e9, 4e9)
		}
	}
}

func whole(*world, time.Duration) {}

// TestMomentInvariance checks that the stage at a moment does not depend on how time was
// divided before it, or on a restore from its bytes in between.
func TestMomentInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t)
		straight := play(t, events, whole)
		pieces := play(t, events, func(w *world, to time.Duration) {
			for range rapid.IntRange(0, 4).Draw(t, "cuts") {
				from := w.stage.Now()
				w.advance(from + time.Duration(rapid.Int64Range(0, int64(to-from)).Draw(t, "piece")))
			}
		})
		if diff := cmp.Diff(straight, pieces); diff != "" {
			t.Fatalf("cut otherwise (-whole +cut):\n%s", diff)
		}
		restored := play(t, events, func(w *world, to time.Duration) {
			w.restore(t)
			w.advance(w.stage.Now() + (to-w.stage.Now())/2)
			w.restore(t)
		})
		if diff := cmp.Diff(straight, restored); diff != "" {
			t.Fatalf("restored on the way (-straight +restored):\n%s", diff)
		}
	})
}

// TestInterruptedIsNeverFinished checks that a performance that is interrupted between
// two steps leaves the same world as a definition without the remaining steps.
func TestInterruptedIsNeverFinished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := drawSteps(t, 0)
		for _, step := range first {
			if d, ok := step["duration"]; ok && d.(float64) > 1e9 {
				step["duration"] = 10.0
			}
		}
		rest := append([]object{{"action": "wait", "duration": 1e15}}, drawSteps(t, 0)...)
		finalStage := func(steps []object) []string {
			w := newWorld(stage.Config{Actions: actions})
			w.stage.SetScene(sceneOf(t, yard))
			for _, d := range []object{{"on": "go", "steps": steps}, {"on": "stop", "interrupts": true, "steps": []object{}}} {
				def, err := definition.Compile(value(t, d))
				require.NoError(t, err)
				require.NoError(t, w.scheduler.Define(def))
			}
			w.stage.Choreographed()
			id := "c"
			w.signal(0, &signal.Signal{Type: "go", CorrelationID: &id, Payload: value(t, object{"who": "ann"})})
			w.advance(time.Hour)
			w.signal(time.Hour, &signal.Signal{Type: "stop", CorrelationID: &id})
			w.advance(2 * time.Hour)
			return append(told(w.stage), fmt.Sprintf("%x", w.stage.Append(nil)))
		}
		if diff := cmp.Diff(finalStage(first), finalStage(append(first[:len(first):len(first)], rest...))); diff != "" {
			t.Errorf("(-never had the rest +interrupted):\n%s", diff)
		}
	})
}

// TestInterruptionKeeps checks that the values of an interrupted act stay as they were at
// that instant.
func TestInterruptionKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(stage.Config{Actions: actions})
		w.stage.SetScene(sceneOf(t, yard))
		step := drawAction(t)
		for step["action"] == "say" || step["action"] == "spawn" { // they continue without an act
			step = drawAction(t)
		}
		for _, d := range []object{{"on": "go", "steps": []object{step}}, {"on": "stop", "interrupts": true, "steps": []object{}}} {
			def, err := definition.Compile(value(t, d))
			require.NoError(t, err)
			require.NoError(t, w.scheduler.Define(def))
		}
		w.stage.Choreographed()
		id := "c"
		at := time.Duration(rapid.IntRange(0, 50).Draw(t, "at")) * time.Millisecond
		w.signal(0, &signal.Signal{Type: "go", CorrelationID: &id, Payload: value(t, object{"who": "ann"})})
		w.advance(at)
		// Only a flying figure has a height: an interrupted one stands where it is seen.
		height := regexp.MustCompile(" height=[^ ]+")
		before := told(w.stage)
		for i := range before {
			before[i] = height.ReplaceAllString(before[i], "")
		}
		w.signal(at, &signal.Signal{Type: "stop", CorrelationID: &id})
		if until, moving := w.stage.Until(); moving {
			t.Errorf("something moves until %v", until)
		}
		w.advance(time.Hour)
		if diff := cmp.Diff(before, told(w.stage)); diff != "" {
			t.Errorf("(-interrupted +an hour later):\n%s", diff)
		}
	})
}

// busy returns a stage with acts, beams, speech and impressions under way.
func busy(t testing.TB) *world {
	t.Helper()
	w := newWorld(stage.Config{Actions: actions})
	w.stage.SetScene(sceneOf(t, yard))
	w.signal(0, scriptSignal(t, `task_dispatch {"from": "king", "to": "scout", "description": "go"}`))
	w.signal(0, scriptSignal(t, `tool_result {"agentId": "scout", "success": false}`))
	w.define(t, `[{"on": "x", "steps": [{"action": "parallel", "steps": [
	 {"action": "move", "entity": "crowd", "to": "well", "duration": 100, "animationOnArrival": "there"},
	 {"action": "followRoute", "entity": "peon", "route": "fence", "duration": 100, "easing": "easeIn"},
	 {"action": "pulse", "entity": "peon", "duration": 100}, {"action": "flash", "entity": "peon", "duration": 100},
	 {"action": "typeText", "entity": "peon", "text": "hello", "duration": 100},
	 {"action": "drawBeam", "entity": "peon", "to": "a", "duration": 100}, {"action": "drawBeam", "entity": "a", "to": "well"},
	 {"action": "shake", "entity": "w1", "duration": 100}, {"action": "fly", "entity": "w2", "to": [0, 0], "duration": 100},
	 {"action": "set", "entity": "b", "property": "y", "value": 7, "duration": 100},
	 {"action": "set", "entity": "b", "property": "tint", "value": "blue", "duration": 100},
	 {"action": "playSound", "sound": "gong", "entity": "b"}, {"action": "move", "entity": "b", "to": "nowhere"}]}]},
	 {"on": "y", "steps": [{"action": "set", "entity": "b", "property": "x", "value": 7, "duration": 100}]}]`)
	w.signal(0, scriptSignal(t, `x {}`))
	w.advance(20 * time.Millisecond)
	w.signal(20*time.Millisecond, scriptSignal(t, `y {}`))
	w.advance(50 * time.Millisecond)
	return w
}

// TestStateTruncated checks that Restore refuses every proper prefix of a state.
func TestStateTruncated(t *testing.T) {
	w := busy(t)
	whole := w.stage.Append(nil)
	w.restore(t)
	for n := range whole {
		if _, err := stage.Restore(w.cfg, whole[:n]); !errors.Is(err, stage.ErrState) {
			t.Errorf("%d of %d bytes: err = %v, want ErrState", n, len(whole), err)
		}
	}
	if _, err := stage.Restore(w.cfg, append(bytes.Clone(whole), 0xc0)); !errors.Is(err, stage.ErrState) {
		t.Errorf("a byte too many: err = %v, want ErrState", err)
	}
}

// TestStateFlipped flips every bit of a state. A result that Restore accepts must be
// canonical and usable.
func TestStateFlipped(t *testing.T) {
	whole := busy(t).stage.Append(nil)
	for i := range whole {
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << bit
			soundIfTaken(t, flipped)
		}
	}
}

// soundIfTaken restores b and, if Restore accepts it, uses the stage in every way.
func soundIfTaken(t *testing.T, b []byte) {
	t.Helper()
	s, err := stage.Restore(stage.Config{Actions: actions}, b)
	if err != nil {
		if !errors.Is(err, stage.ErrState) && !errors.Is(err, stage.ErrStateVersion) {
			t.Errorf("err = %v, want ErrState or ErrStateVersion", err)
		}
		return
	}
	if again := s.Append(nil); !bytes.Equal(again, b) {
		t.Errorf("state %x comes back as %x", b, again)
	}
	sound(t, s)
	s.View()
	s.Until()
	s.Signal(9, &signal.Signal{Type: "thinking", Payload: value(t, object{"agentId": "peon", "content": "hm"})})
	s.Interrupted(s.Now(), 3, 1)
	s.Advance(math.MaxInt64)
	sound(t, s)
	s.SetScene(sceneOf(t, heath))
	sound(t, s)
	if _, err := stage.Restore(stage.Config{Actions: actions}, s.Append(nil)); err != nil {
		t.Errorf("what it goes on to is refused: %v", err)
	}
}

// TestStateOfOtherRules checks that states of another version or of other custom actions
// are refused with ErrStateVersion.
func TestStateOfOtherRules(t *testing.T) {
	state := busy(t).stage.Append(nil)
	other := shake
	other.Version++
	for name, cfg := range map[string]stage.Config{
		"none":    {},
		"fewer":   {Actions: map[string]stage.Action{"shake": shake}},
		"version": {Actions: map[string]stage.Action{"shake": other, "vanish": vanish}},
		"renamed": {Actions: map[string]stage.Action{"quake": shake, "vanish": vanish}},
	} {
		if _, err := stage.Restore(cfg, state); !errors.Is(err, stage.ErrStateVersion) || errors.Is(err, stage.ErrState) {
			t.Errorf("%s: err = %v, want ErrStateVersion alone", name, err)
		}
	}
	if _, err := stage.Restore(stage.Config{}, []byte{0x91, 3}); !errors.Is(err, stage.ErrStateVersion) || errors.Is(err, stage.ErrState) {
		t.Errorf("err = %v, want ErrStateVersion alone", err)
	}
}

func FuzzRestore(f *testing.F) {
	f.Add(busy(f).stage.Append(nil))
	f.Add(stage.New(stage.Config{Actions: actions}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) { soundIfTaken(t, b) })
}
