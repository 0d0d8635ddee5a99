package choreography_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
)

type object = map[string]any

// entry is one signal of a history and how long after the one before it came.
type entry struct {
	Gap time.Duration
	Sig *signal.Signal
}

// history is what a session is made of.
type history struct {
	Definitions []object
	Entries     []entry
	Tail        time.Duration
}

func compile(t rapid.TB, definition any) *choreography.Definition {
	t.Helper()
	text, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	v, err := signal.ParseValue(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	d, err := choreography.Compile(v)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
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
		steps = append(steps, step)
	}
	return steps
}

func drawHistory(t *rapid.T) history {
	var h history
	types := []string{"x", "y", "stop"}
	for range rapid.IntRange(1, 4).Draw(t, "definitions") {
		d := object{"on": rapid.SampledFrom(types).Draw(t, "on"), "steps": drawSteps(t, 0, true)}
		if rapid.IntRange(0, 2).Draw(t, "interrupts") == 0 {
			d["interrupts"] = true
		}
		h.Definitions = append(h.Definitions, d)
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
		h.Entries = append(h.Entries, entry{time.Duration(rapid.SampledFrom(gaps).Draw(t, "gap")) * time.Millisecond, sig})
	}
	h.Tail = time.Duration(rapid.IntRange(0, 200).Draw(t, "tail")) * time.Millisecond
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
func play(t rapid.TB, h history, sink choreography.CommandSink, before func(s *choreography.Scheduler, to time.Duration) *choreography.Scheduler) (states [][]byte) {
	t.Helper()
	s := choreography.NewScheduler()
	for _, d := range h.Definitions {
		s.Define(compile(t, d))
	}
	s.SetSink(sink)
	at := time.Duration(0)
	for i, e := range h.Entries {
		at += e.Gap
		s = before(s, at)
		s.Advance(at)
		states = append(states, s.AppendState(nil))
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
// same, and the state is also the same when nobody listens.
func TestTickInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		var whole, cut choreography.RecordingSink
		wholeStates := play(t, h, &whole, untouched)
		cutStates := play(t, h, &cut, func(s *choreography.Scheduler, to time.Duration) *choreography.Scheduler {
			for range rapid.IntRange(0, 5).Draw(t, "cuts") {
				span := int64(to - s.Now())
				piece := rapid.Int64Range(0, span).Draw(t, "piece")
				if rapid.Bool().Draw(t, "round") {
					piece -= piece % int64(10*time.Millisecond)
				}
				s.Advance(s.Now() + time.Duration(piece))
			}
			return s
		})
		silentStates := play(t, h, nil, untouched)
		if diff := cmp.Diff(withoutUpdates(whole.Commands), withoutUpdates(cut.Commands)); diff != "" {
			t.Errorf("commands differ (-whole +cut):\n%s", diff)
		}
		if diff := cmp.Diff(wholeStates, cutStates); diff != "" {
			t.Errorf("states differ (-whole +cut):\n%s", diff)
		}
		if diff := cmp.Diff(wholeStates, silentStates); diff != "" {
			t.Errorf("states differ (-sink +no sink):\n%s", diff)
		}
	})
}

// TestRestoreGoesOn shows that a scheduler put away and taken up again at random
// instants tells the same story, updates included.
func TestRestoreGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		cuts := map[time.Duration]time.Duration{}
		cutting := func(restore bool, sink choreography.CommandSink) func(*choreography.Scheduler, time.Duration) *choreography.Scheduler {
			return func(s *choreography.Scheduler, to time.Duration) *choreography.Scheduler {
				if _, ok := cuts[to]; !ok {
					cuts[to] = s.Now() + time.Duration(rapid.Int64Range(0, int64(to-s.Now())).Draw(t, "cut"))
				}
				for range 2 { // once with what just came still waiting, once after
					if restore {
						s = restored(t, s)
						s.SetSink(sink)
					}
					s.Advance(cuts[to])
				}
				return s
			}
		}
		var straight, again choreography.RecordingSink
		want := play(t, h, &straight, cutting(false, &straight))
		got := play(t, h, &again, cutting(true, &again))
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
