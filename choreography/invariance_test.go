package choreography_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

type object = map[string]any

// entry is one signal of a history and how long after the one before it came.
type entry struct {
	Gap    time.Duration
	Sig    *signal.Signal
	Define object // comes into force before the signal, if there is one
}

// history is what a session is made of.
type history struct {
	Definitions []object
	Entries     []entry
	Tail        time.Duration
}

func compile(t rapid.TB, written any) *definition.Definition {
	t.Helper()
	text, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	v, err := signal.ParseValue(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	d, err := definition.Compile(v)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// define brings d into force.
func define(t rapid.TB, s *choreography.Scheduler, d language.Declaration) {
	t.Helper()
	if err := s.Define(d); err != nil {
		t.Fatal(err)
	}
}

// lengths are milliseconds that make many boundaries meet, and some that do not.
var lengths = []float64{0, 10, 10, 20, 30, 50, 0.001, 33.3, 1e300}

func drawSteps(t *rapid.T, depth int, top bool) []object {
	steps := []object{}
	for range rapid.IntRange(0, 4).Draw(t, "steps") {
		kinds := []string{"move", "spawn", "wait", "move"}
		if depth < 4 {
			kinds = append(kinds, "parallel", "onArrive", "parallel")
			if top {
				kinds = append(kinds, "onInterrupt")
			}
		}
		step := object{"action": rapid.SampledFrom(kinds).Draw(t, "action")}
		switch step["action"] {
		case "parallel", "onArrive", "onInterrupt":
			step["steps"] = drawSteps(t, depth+1, false)
		case "wait":
			step["duration"] = rapid.SampledFrom(lengths).Draw(t, "wait")
		default:
			step["entity"] = rapid.SampledFrom([]string{"a", "signal.who", "signal.none"}).Draw(t, "entity")
			if step["action"] == "move" {
				step["duration"] = rapid.SampledFrom(lengths).Draw(t, "duration")
				step["easing"] = rapid.SampledFrom([]string{"linear", "easeIn", "easeOut", "easeInOut", "arc"}).Draw(t, "easing")
			}
			if rapid.Bool().Draw(t, "delayed") {
				step["delay"] = rapid.SampledFrom(lengths[:8]).Draw(t, "delay")
			}
			step["to"] = "signal.who"
		}
		if rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
			step["when"] = drawCondition(t)
		}
		steps = append(steps, step)
	}
	return steps
}

// drawCondition asks the signal, or what the order of all that happened before
// has made of the stage.
func drawCondition(t *rapid.T) object {
	path := rapid.SampledFrom([]string{"signal.who", "stage:a.moves", "stage:a.moves", "stage:signal.who.visible", "stage:a.visible"}).Draw(t, "asked")
	operator := rapid.SampledFrom([]object{
		{"gt": 1}, {"lt": 3}, {"exists": true}, {"exists": false}, {"equals": true}, {"not": object{"equals": "ann"}},
	}).Draw(t, "operator")
	return object{path: operator}
}

func drawGuard(t *rapid.T) object {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "signal.who", "signal.none"}), 1, 3).Draw(t, "guarded")
	g := object{"entity": names}
	if policy := rapid.SampledFrom([]string{"", "queue", "queue", "skip", "preempt"}).Draw(t, "policy"); policy != "" {
		g["policy"] = policy
	}
	return g
}

func drawHistory(t *rapid.T) history {
	var h history
	types := []string{"x", "y", "stop"}
	drawDefinition := func() object {
		d := object{"on": rapid.SampledFrom(types).Draw(t, "on"), "steps": drawSteps(t, 0, true)}
		if rapid.IntRange(0, 2).Draw(t, "interrupts") == 0 {
			d["interrupts"] = true
		}
		if id := rapid.SampledFrom([]string{"", "", "i", "j"}).Draw(t, "id"); id != "" {
			d["id"] = id
		}
		if rapid.Bool().Draw(t, "guarded") {
			d["guard"] = drawGuard(t)
		}
		if rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
			d["when"] = drawCondition(t)
		}
		return d
	}
	for range rapid.IntRange(1, 4).Draw(t, "definitions") {
		h.Definitions = append(h.Definitions, drawDefinition())
	}
	gaps := []int64{0, 0, 10, 20, 25, 40, 7}
	for i := range rapid.IntRange(0, 8).Draw(t, "signals") {
		sig := &signal.Signal{
			ID: fmt.Sprint(i), Type: rapid.SampledFrom(types).Draw(t, "type"),
			Payload: value(t, object{"who": rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "who")}),
		}
		if id := rapid.SampledFrom([]string{"none", "", "c", "c"}).Draw(t, "correlation"); id != "none" {
			sig.CorrelationID = &id
		}
		e := entry{Gap: time.Duration(rapid.SampledFrom(gaps).Draw(t, "gap")) * time.Millisecond, Sig: sig}
		if rapid.IntRange(0, 5).Draw(t, "redefined") == 0 {
			e.Define = drawDefinition()
		}
		h.Entries = append(h.Entries, e)
	}
	h.Tail = time.Duration(rapid.IntRange(0, 200).Draw(t, "tail")) * time.Millisecond
	return h
}

// drawCrowd draws a history in which much meets at one instant: many short
// performances that want the same few names, or none.
func drawCrowd(t *rapid.T) history {
	h := history{Tail: 200 * time.Millisecond}
	for _, on := range []string{"x", "y", "z"} {
		for range rapid.IntRange(1, 2).Draw(t, "definitions") {
			d := object{"on": on}
			var steps []object
			for range rapid.IntRange(1, 3).Draw(t, "steps") {
				steps = append(steps, object{
					"action": "move", "entity": "a", "to": "signal.who", "duration": rapid.SampledFrom([]int{0, 10, 10, 20}).Draw(t, "duration"),
				})
			}
			if rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
				steps[0]["when"] = drawCondition(t)
			}
			d["steps"] = steps
			if rapid.IntRange(0, 3).Draw(t, "guarded") > 0 {
				d["guard"] = object{
					"entity": rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 2).Draw(t, "guard"),
					"policy": rapid.SampledFrom([]string{"queue", "queue", "queue", "preempt", "skip"}).Draw(t, "policy"),
				}
			}
			h.Definitions = append(h.Definitions, d)
		}
	}
	for i := range rapid.IntRange(3, 8).Draw(t, "signals") {
		h.Entries = append(h.Entries, entry{
			Gap: time.Duration(rapid.SampledFrom([]int{0, 10, 10}).Draw(t, "gap")) * time.Millisecond,
			Sig: &signal.Signal{
				ID: fmt.Sprint(i), Type: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "type"),
				Payload: value(t, object{"who": rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "who")}),
			},
		})
	}
	return h
}

func value(t rapid.TB, v any) signal.Value {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := signal.ParseValue(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// play runs a history. Before moves time on from one instant to the next in
// whatever pieces, and may exchange the scheduler; every entry is applied as a
// fold does: first Advance to its instant, then Signal.
func play(t rapid.TB, h history, sink choreography.CommandSink, on *stage, before func(s *choreography.Scheduler, to time.Duration) *choreography.Scheduler) (states [][]byte) {
	t.Helper()
	s := choreography.NewScheduler()
	for _, d := range h.Definitions {
		define(t, s, compile(t, d))
	}
	s.SetSink(sink)
	s.Observe(on, on)
	at := time.Duration(0)
	for i, e := range h.Entries {
		at += e.Gap
		s = before(s, at)
		s.Advance(at)
		states = append(states, s.AppendState(nil))
		if e.Define != nil {
			define(t, s, compile(t, e.Define))
			states = append(states, s.AppendState(nil))
		}
		s.Signal(uint64(i+1), e.Sig)
		states = append(states, s.AppendState(nil))
	}
	s = before(s, at+h.Tail)
	s.Advance(at + h.Tail)
	return append(states, s.AppendState(nil))
}

func untouched(s *choreography.Scheduler, _ time.Duration) *choreography.Scheduler { return s }

func withoutUpdates(commands []choreography.Command) []choreography.Command {
	var out []choreography.Command
	for _, c := range commands {
		if c.Kind != choreography.CommandUpdate {
			out = append(out, c)
		}
	}
	return out
}

// TestTickInvariance shows that cutting time otherwise changes nothing but
// updates: the other commands and the state bytes after every entry are the
// same. An observer is told the same in the same order as a sink, and also when
// there is no sink, or no sink and time is cut otherwise.
func TestTickInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SampledFrom([]func(*rapid.T) history{drawHistory, drawCrowd}).Draw(t, "kind")
		h := draw(t)
		var whole, cut choreography.RecordingSink
		stages := []*stage{newStage(), newStage(), newStage(), newStage()}
		cutting := func(s *choreography.Scheduler, to time.Duration) *choreography.Scheduler {
			for range rapid.IntRange(0, 5).Draw(t, "cuts") {
				span := int64(to - s.Now())
				piece := rapid.Int64Range(0, span).Draw(t, "piece")
				if rapid.Bool().Draw(t, "round") {
					piece -= piece % int64(10*time.Millisecond)
				}
				s.Advance(s.Now() + time.Duration(piece))
			}
			return s
		}
		wholeStates := play(t, h, &whole, stages[0], untouched)
		cutStates := play(t, h, &cut, stages[1], cutting)
		silentStates := play(t, h, nil, stages[2], untouched)
		silentCutStates := play(t, h, nil, stages[3], cutting)
		if diff := cmp.Diff(withoutUpdates(whole.Commands), withoutUpdates(cut.Commands)); diff != "" {
			t.Errorf("commands differ (-whole +cut):\n%s", diff)
		}
		if diff := cmp.Diff(wholeStates, cutStates); diff != "" {
			t.Errorf("states differ (-whole +cut):\n%s", diff)
		}
		if diff := cmp.Diff(wholeStates, silentStates); diff != "" {
			t.Errorf("states differ (-sink +no sink):\n%s", diff)
		}
		if diff := cmp.Diff(silentStates, silentCutStates); diff != "" {
			t.Errorf("states without a sink differ (-whole +cut):\n%s", diff)
		}
		var commanded []string
		for _, c := range withoutUpdates(whole.Commands) {
			commanded = append(commanded, told(c.At, c.Kind, c.PerformanceID, c.Action, c.EntityRef, c.Params))
		}
		for i, on := range stages {
			if diff := cmp.Diff(commanded, on.told); diff != "" {
				t.Errorf("the observer of run %d is told something else (-commands +observed):\n%s", i, diff)
			}
		}
	})
}

// TestRestoreGoesOn shows that a scheduler put away and taken up again at random
// instants tells the same story, updates included.
func TestRestoreGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SampledFrom([]func(*rapid.T) history{drawHistory, drawCrowd}).Draw(t, "kind")
		h := draw(t)
		cuts := map[time.Duration]time.Duration{}
		cutting := func(restore bool, sink choreography.CommandSink, on *stage) func(*choreography.Scheduler, time.Duration) *choreography.Scheduler {
			return func(s *choreography.Scheduler, to time.Duration) *choreography.Scheduler {
				if _, ok := cuts[to]; !ok {
					cuts[to] = s.Now() + time.Duration(rapid.Int64Range(0, int64(to-s.Now())).Draw(t, "cut"))
				}
				for range 2 { // once with what just came still waiting, once after
					if restore {
						s = restored(t, s)
						s.SetSink(sink)
						s.Observe(on, on)
					}
					s.Advance(cuts[to])
				}
				return s
			}
		}
		var straight, again choreography.RecordingSink
		on, onAgain := newStage(), newStage()
		want := play(t, h, &straight, on, cutting(false, &straight, on))
		got := play(t, h, &again, onAgain, cutting(true, &again, onAgain))
		if diff := cmp.Diff(straight.Commands, again.Commands); diff != "" {
			t.Errorf("commands differ (-straight +restored):\n%s", diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states differ (-straight +restored):\n%s", diff)
		}
	})
}

// restored returns what the state bytes of s make, and checks that both show
// the same performances.
func restored(t rapid.TB, s *choreography.Scheduler) *choreography.Scheduler {
	t.Helper()
	r, err := choreography.RestoreScheduler(s.AppendState(nil))
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	if diff := cmp.Diff(view(s), view(r)); diff != "" {
		t.Fatalf("performances differ (-before +restored):\n%s", diff)
	}
	at, ok := s.Next()
	if restoredAt, restoredOK := r.Next(); at != restoredAt || ok != restoredOK {
		t.Fatalf("next = %v, %v, after restoring %v, %v", at, ok, restoredAt, restoredOK)
	}
	return r
}

// view writes down the active performances, a line for each thing that is seen.
func view(s *choreography.Scheduler) []string {
	var lines []string
	for p := range s.Performances() {
		line := fmt.Sprintf("%s on %s, signal %d, began %v", p.ID(), p.On, p.Signal, p.Began)
		if p.Correlated {
			line += fmt.Sprintf(", correlation %q", p.CorrelationID)
		}
		if p.Handler {
			line += ", handler"
		}
		if names := slices.Collect(p.Guard()); p.Queued {
			line += fmt.Sprintf(", waits for %q", names)
		} else if names != nil {
			line += fmt.Sprintf(", holds %q", names)
		}
		if p.Slot < 0 {
			line += ", replaced"
		}
		lines = append(lines, line)
		for a := range p.Animations() {
			raw, eased := a.Progress(s.Now())
			params, _ := json.Marshal(a.Params())
			lines = append(lines, fmt.Sprintf("  %s %s %s %v+%v %s %.4g %.4g", a.Action, a.Entity, params, a.Start, a.Duration, a.Easing, raw, eased))
		}
		for w := range p.Pauses() {
			what := "wait"
			if w.Delay {
				what = "delay of " + w.Action
			}
			lines = append(lines, fmt.Sprintf("  %s %v..%v", what, w.Since, w.Until))
		}
	}
	return lines
}
