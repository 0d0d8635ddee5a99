package choreography_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
)

// stage is a small stage that lives from what it is told: spawn and destroy say
// what is visible, and it counts the moves of each entity.
type stage struct {
	properties map[string]signal.Value // by "entity.property"
	moves      map[string]int64
	told       []string
}

func newStage() *stage {
	return &stage{properties: map[string]signal.Value{}, moves: map[string]int64{}}
}

// told writes down what an observer and a sink both learn.
func told(at time.Duration, kind choreography.CommandKind, performance, action, entity string, params map[string]any) string {
	if kind == choreography.CommandInterrupt {
		return fmt.Sprintf("%v %s %s", at, performance, kind)
	}
	text, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%v %s %s %s %q %s", at, performance, kind, action, entity, text)
}

func (s *stage) note(kind choreography.CommandKind, a *choreography.Act) {
	params := map[string]any{}
	for name, v := range a.Params() {
		params[name] = v.Any()
	}
	s.told = append(s.told, told(a.At, kind, a.Performance(), a.Action, a.Entity(), params))
	switch a.Action {
	case "spawn", "destroy":
		s.properties[a.Entity()+".visible"] = msgp.AppendBool(nil, a.Action == "spawn")
	case "move":
		s.moves[a.Entity()]++
		s.properties[a.Entity()+".moves"] = msgp.AppendInt64(nil, s.moves[a.Entity()])
	}
}

func (s *stage) Started(a *choreography.Act)   { s.note(choreography.CommandStart, a) }
func (s *stage) Completed(a *choreography.Act) { s.note(choreography.CommandComplete, a) }
func (s *stage) Executed(a *choreography.Act)  { s.note(choreography.CommandExecute, a) }

func (s *stage) Interrupted(at time.Duration, seq uint64, index uint32) {
	s.told = append(s.told, told(at, choreography.CommandInterrupt, fmt.Sprintf("p-%d-%d", seq, index), "", "", nil))
}

func (s *stage) Property(entity, property string, _ time.Duration) (signal.Value, bool) {
	v, ok := s.properties[entity+"."+property]
	return v, ok
}

// ledger writes down everything an act says.
type ledger struct{ lines []string }

func (l *ledger) note(what string, a *choreography.Act) {
	params := map[string]any{}
	for name, v := range a.Params() {
		params[name] = v.Any()
	}
	one, has := a.Param("to")
	id, correlated := a.Correlation()
	l.lines = append(l.lines, fmt.Sprintf("%v %s %s node %d %s %v %s entity %q params %v to %v %v handler %v correlation %q %v",
		a.At, what, a.Performance(), a.Key.Node, a.Action, a.Duration, a.Curve, a.Entity(), params, one, has, a.Handler(), id, correlated))
	if want := fmt.Sprintf("p-%d-%d", a.Key.Seq, a.Key.Index); a.Performance() != want {
		l.lines = append(l.lines, "but its key is "+want)
	}
}

func (l *ledger) Started(a *choreography.Act)                       { l.note("start", a) }
func (l *ledger) Completed(a *choreography.Act)                     { l.note("complete", a) }
func (l *ledger) Executed(a *choreography.Act)                      { l.note("execute", a) }
func (l *ledger) Interrupted(at time.Duration, s uint64, ix uint32) {}

// TestAct shows what an observer can learn of an act, and that it is told
// nothing any more once it is taken away.
func TestAct(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, compiled(t, `{"on":"x","steps":[
		{"action":"parallel","steps":[
			{"action":"move","entity":"signal.who","to":"signal.where","by":"signal.none","duration":0,"easing":"easeIn"},
			{"action":"spawn","target":"b"}]},
		{"action":"wait","duration":10},
		{"action":"onInterrupt","steps":[{"action":"wave","duration":5}]}]}`))
	define(t, s, compiled(t, `{"on":"stop","interrupts":true,"steps":[]}`))
	var l ledger
	s.Observe(&l, nil)
	id := "c"
	s.Signal(7, &signal.Signal{Type: "x", CorrelationID: &id, Payload: value(t, object{"who": "ann", "where": "forge"})})
	s.Advance(0)
	s.Signal(8, &signal.Signal{Type: "stop", CorrelationID: &id})
	s.Advance(time.Millisecond)
	s.Observe(nil, nil)
	s.Advance(time.Second)
	want := []string{
		`0s start p-7-1 node 0 move 0s easeIn entity "ann" params map[to:forge] to "forge" true handler false correlation "c" true`,
		`0s complete p-7-1 node 0 move 0s easeIn entity "ann" params map[to:forge] to "forge" true handler false correlation "c" true`,
		`0s execute p-7-1 node 1 spawn 0s linear entity "b" params map[] to null false handler false correlation "c" true`,
		`0s start p-8-1 node 4 wave 5ms linear entity "" params map[] to null false handler true correlation "" false`,
	}
	if !slices.Equal(l.lines, want) {
		t.Errorf("got  %q\nwant %q", l.lines, want)
	}
}

// deaf is an observer that asks nothing.
type deaf struct{ boundaries int }

func (d *deaf) Started(*choreography.Act)                       { d.boundaries++ }
func (d *deaf) Completed(*choreography.Act)                     { d.boundaries++ }
func (d *deaf) Executed(*choreography.Act)                      { d.boundaries++ }
func (d *deaf) Interrupted(_ time.Duration, _ uint64, _ uint32) { d.boundaries++ }

// TestObserverAllocations shows that boundaries cost no memory for an observer
// that asks nothing, conditions on the stage included.
func TestObserverAllocations(t *testing.T) {
	s := choreography.NewScheduler()
	steps := []object{}
	for range 300 {
		steps = append(steps,
			object{"action": "move", "entity": "signal.who", "to": "signal.who", "duration": 10},
			object{"action": "spawn", "entity": "b", "when": object{"stage:b.visible": object{"exists": false}, "signal.who": object{"equals": "ann"}}})
	}
	define(t, s, compile(t, object{"on": "x", "steps": steps}))
	var d deaf
	s.Observe(&d, nobody{})
	s.Signal(1, &signal.Signal{Type: "x", Payload: value(t, object{"who": "ann"})})
	s.Advance(0)
	d.boundaries = 0
	n := testing.AllocsPerRun(200, func() { s.Advance(s.Now() + 10*time.Millisecond) })
	if n != 0 || d.boundaries < 3*200 {
		t.Errorf("%v allocations for %d boundaries, want none", n, d.boundaries)
	}
}

// nobody is a world without anything in it.
type nobody struct{}

func (nobody) Property(_, _ string, _ time.Duration) (signal.Value, bool) { return nil, false }

// TestWorldIsAsked shows how a path is taken apart, and what is never asked.
func TestWorldIsAsked(t *testing.T) {
	tests := map[string]string{
		"stage:peon.visible":        "peon|visible",
		"stage:a.b.c":               "a.b|c",
		"stage:signal.to.state":     "ann|state",
		"stage:signal.deep.er.x":    "bob|x",
		"stage:signal.type.x":       "go|x",
		"stage:signal.none.visible": "",
		"stage:signal.n.visible":    "",
		"stage:peon":                "",
		"stage:.visible":            "",
		"stage:peon.":               "",
		"stage:":                    "",
		"stage:signal.to":           "signal|to",
		"signal.stage:peon.visible": "",
	}
	for _, path := range slices.Sorted(maps.Keys(tests)) {
		s := choreography.NewScheduler()
		define(t, s, compile(t, object{"on": "go", "when": object{path: object{"exists": false}}, "steps": []object{}}))
		var w asked
		s.Observe(nil, &w)
		s.Advance(5 * time.Millisecond)
		s.Signal(1, &signal.Signal{Type: "go", Payload: value(t, object{"to": "ann", "n": 5, "deep": object{"er": "bob"}})})
		if w.what != tests[path] || s.Active() != 1 {
			t.Errorf("%s asks %q, %d performances, want %q and 1", path, w.what, s.Active(), tests[path])
		}
	}
}

type asked struct{ what string }

func (w *asked) Property(entity, property string, at time.Duration) (signal.Value, bool) {
	if w.what = entity + "|" + property; at != 5*time.Millisecond {
		w.what += " at another time"
	}
	return nil, false
}

// blockedStage is a stage that also learns what guards hold back.
type blockedStage struct {
	*stage
	blocked []string
}

func (s *blockedStage) Blocked(seq uint64, refused bool, holderSeq uint64, holderIndex uint32) {
	s.blocked = append(s.blocked, fmt.Sprintf("%d refused=%v by p-%d-%d", seq, refused, holderSeq, holderIndex))
}

// A performance that its guard holds back, or that is not made because of it, is reported
// with all that hold its names or wait for them, name by name.
func TestBlocked(t *testing.T) {
	s := choreography.NewScheduler()
	on := &blockedStage{stage: newStage()}
	s.Observe(on, on)
	guarded := func(on, policy string, names ...string) {
		define(t, s, compile(t, object{"on": on, "guard": object{"entity": names, "policy": policy}, "steps": []object{{"action": "wait", "duration": 50}}}))
	}
	guarded("both", "queue", "a", "b")
	guarded("skip", "skip", "c", "a")
	guarded("take", "preempt", "b")
	guarded("other", "queue", "d")
	guarded("mixed", "queue", "e", "d")
	seq := uint64(0)
	send := func(typ string, want ...string) {
		t.Helper()
		on.blocked = nil
		seq++
		s.Signal(seq, &signal.Signal{Type: typ})
		if !slices.Equal(on.blocked, want) {
			t.Errorf("%d %s: blocked %q, want %q", seq, typ, on.blocked, want)
		}
	}
	send("both")
	send("both", "2 refused=false by p-1-1", "2 refused=false by p-1-1")
	send("both", "3 refused=false by p-1-1", "3 refused=false by p-2-1", "3 refused=false by p-1-1", "3 refused=false by p-2-1")
	send("skip", "4 refused=true by p-1-1", "4 refused=true by p-2-1", "4 refused=true by p-3-1")
	send("other")
	send("mixed", "6 refused=false by p-5-1")
	// No performance holds e, and one waits for it.
	send("mixed", "7 refused=false by p-6-1", "7 refused=false by p-5-1", "7 refused=false by p-6-1")
	send("take")
	s.Observe(on.stage, on)
	send("both")
	s.Observe(on, on)
	s.Advance(time.Hour)
	send("both")
}
