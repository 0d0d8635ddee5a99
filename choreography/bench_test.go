package choreography_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
)

// office returns a scheduler with a usual set of definitions, and the signals
// of one task from its dispatch to its end.
func office(tb testing.TB) (*choreography.Scheduler, []*signal.Signal) {
	tb.Helper()
	s := choreography.NewScheduler()
	for _, text := range []string{
		`{"on":"task_dispatch","steps":[{"action":"spawn","entity":"pigeon","at":"signal.from"},{"action":"fly","entity":"pigeon","to":"signal.to","duration":1200,"easing":"arc"},{"action":"onArrive","steps":[{"action":"destroy","entity":"pigeon"}]},{"action":"onInterrupt","steps":[{"action":"destroy","entity":"pigeon"}]}]}`,
		`{"on":"tool_call","steps":[{"action":"parallel","steps":[{"action":"move","entity":"signal.agentId","to":"forge","duration":300},{"action":"flash","target":"forge","duration":150}]},{"action":"playSound","sound":"anvil"}]}`,
		`{"on":"tool_result","when":{"signal.success":{"equals":false}},"steps":[{"action":"flash","target":"signal.agentId","color":"red","duration":200}]}`,
		`{"on":"agent_state_change","steps":[{"action":"setAnimation","entity":"signal.agentId","state":"signal.to"}]}`,
		`{"on":"error","interrupts":true,"steps":[{"action":"playSound","sound":"alarm"},{"action":"flash","target":"signal.agentId","duration":300}]}`,
	} {
		define(tb, s, compiled(tb, text))
	}
	var signals []*signal.Signal
	for _, line := range []string{
		`{"id":"1","type":"task_dispatch","timestamp":0,"source":"b","correlationId":"c","payload":{"taskId":"t","from":"king","to":"scout","description":"look around"}}`,
		`{"id":"2","type":"agent_state_change","timestamp":0,"source":"b","correlationId":"c","payload":{"agentId":"scout","from":"idle","to":"thinking"}}`,
		`{"id":"3","type":"tool_call","timestamp":0,"source":"b","correlationId":"c","payload":{"toolName":"search","agentId":"scout","input":{"query":"north","limit":5}}}`,
		`{"id":"4","type":"token_usage","timestamp":0,"source":"b","correlationId":"c","payload":{"agentId":"scout","promptTokens":812,"completionTokens":64}}`,
		`{"id":"5","type":"tool_result","timestamp":0,"source":"b","correlationId":"c","payload":{"toolName":"search","agentId":"scout","success":true,"output":{"hits":3}}}`,
		`{"id":"6","type":"text_delta","timestamp":0,"source":"b","correlationId":"c","payload":{"agentId":"scout","content":"found it"}}`,
		`{"id":"7","type":"error","timestamp":0,"source":"b","correlationId":"c","payload":{"message":"gone","severity":"error","agentId":"scout"}}`,
		`{"id":"8","type":"completion","timestamp":0,"source":"b","correlationId":"c","payload":{"taskId":"t","success":false}}`,
	} {
		sig, err := signal.Parse([]byte(line))
		require.NoError(tb, err)
		signals = append(signals, sig)
	}
	return s, signals
}

// BenchmarkFold is what a fold does for one signal: Advance, then Signal, with
// nobody listening.
func BenchmarkFold(b *testing.B) {
	s, signals := office(b)
	b.ReportAllocs()
	seq, at := uint64(0), time.Duration(0)
	for b.Loop() {
		seq++
		at += 100 * time.Millisecond
		s.Advance(at)
		s.Signal(seq, signals[seq%uint64(len(signals))])
	}
}

// BenchmarkFrames is a live second: 60 advances with a sink for each signal.
func BenchmarkFrames(b *testing.B) {
	s, signals := office(b)
	s.SetSink(nullSink{})
	b.ReportAllocs()
	frame, at := uint64(0), time.Duration(0)
	for b.Loop() {
		frame++
		at += time.Second / 60
		s.Advance(at)
		if frame%6 == 0 {
			s.Signal(frame, signals[frame/6%uint64(len(signals))])
		}
	}
}

// BenchmarkState is a digest's share: the bytes of a state of usual size.
func BenchmarkState(b *testing.B) {
	s, signals := office(b)
	for i, sig := range signals[:6] {
		s.Advance(time.Duration(i) * 50 * time.Millisecond)
		s.Signal(uint64(i), sig)
	}
	state := s.AppendState(nil)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(state)))
		for b.Loop() {
			state = s.AppendState(state[:0])
		}
	})
	b.Run("restore", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(state)))
		for b.Loop() {
			if _, err := choreography.RestoreScheduler(state); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// crowd returns a scheduler with n performances under way, each a row of long
// animations, that have their boundaries one after the other.
func crowd(tb testing.TB, n int) (*choreography.Scheduler, *signal.Signal) {
	tb.Helper()
	steps := make([]object, 1000)
	for i := range steps {
		steps[i] = object{"action": "move", "entity": "signal.who", "to": "signal.where", "duration": 1000, "easing": "easeIn"}
	}
	s := choreography.NewScheduler()
	define(tb, s, compile(tb, object{"on": "x", "steps": steps}))
	sig := &signal.Signal{Type: "x", Payload: value(tb, object{"who": "ann", "where": "forge"})}
	for i := range n {
		s.Advance(time.Duration(i) * time.Second / time.Duration(n))
		s.Signal(uint64(i+1), sig)
	}
	s.Advance(s.Now())
	return s, sig
}

// BenchmarkActive is one boundary, a complete and a start, among so many active
// performances: it must not depend much on how many there are.
func BenchmarkActive(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		for _, observed := range []struct {
			name string
			by   choreography.ActObserver
		}{{"alone", nil}, {"observed", &deaf{}}, {"asked", &curious{}}} {
			b.Run(fmt.Sprintf("%d/%s", n, observed.name), func(b *testing.B) {
				s, sig := crowd(b, n)
				s.Observe(observed.by, nil)
				seq, commands := uint64(n), 0
				b.ReportAllocs()
				for b.Loop() {
					at, _ := s.Next()
					s.Advance(at)
					commands += 2
					if s.Active() < n {
						seq++
						s.Signal(seq, sig)
					}
				}
				b.ReportMetric(float64(commands)/b.Elapsed().Seconds(), "commands/s")
			})
		}
	}
}

// curious asks for what a stage needs of most acts.
type curious struct{ deaf }

func (c *curious) Started(a *choreography.Act) {
	if to, ok := a.Param("to"); ok && a.Entity() != "" && len(to) > 0 {
		c.boundaries++
	}
}

// BenchmarkQueue is one performance that ends and lets the next begin, of
// thousands that wait for the same name.
func BenchmarkQueue(b *testing.B) {
	s := choreography.NewScheduler()
	define(b, s, compile(b, object{
		"on": "x", "guard": object{"entity": []string{"a", "signal.also"}}, "steps": []object{{"action": "move", "duration": 1}},
	}))
	sig := &signal.Signal{Type: "x", Payload: value(b, object{"also": "b"})}
	seq := uint64(0)
	for range definition.MaxWaiting {
		seq++
		s.Signal(seq, sig)
	}
	b.ReportAllocs()
	for b.Loop() {
		seq++
		s.Signal(seq, sig)
		s.Advance(s.Now() + time.Millisecond)
	}
	if s.Active() < definition.MaxWaiting-1 {
		b.Errorf("%d active", s.Active())
	}
}

// BenchmarkMemory tells what an active performance keeps, its copy of the
// signal included.
func BenchmarkMemory(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, _ := crowd(b, n)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/performance")
		runtime.KeepAlive(s)
	}
}

type nullSink struct{}

func (nullSink) OnActionStart(choreography.ActionStart)       {}
func (nullSink) OnActionUpdate(choreography.ActionUpdate)     {}
func (nullSink) OnActionComplete(choreography.ActionComplete) {}
func (nullSink) OnActionExecute(choreography.ActionExecute)   {}
func (nullSink) OnInterrupt(choreography.Interrupt)           {}

// TestFoldAllocations holds the fold to what a performance must keep: its copy
// of the signal. A signal that nothing answers to costs no memory at all.
func TestFoldAllocations(t *testing.T) {
	s, signals := office(t)
	seq := uint64(0)
	fold := func(sig *signal.Signal) func() {
		return func() {
			seq++
			s.Advance(time.Duration(seq) * time.Second)
			s.Signal(seq, sig)
		}
	}
	if n := testing.AllocsPerRun(100, fold(signals[3])); n != 0 {
		t.Errorf("%v allocations for a signal without a definition, want 0", n)
	}
	if n := testing.AllocsPerRun(100, fold(signals[4])); n != 0 {
		t.Errorf("%v allocations for a signal held back by its condition, want 0", n)
	}
	if n := testing.AllocsPerRun(100, fold(signals[1])); n > 5 {
		t.Errorf("%v allocations for a performance, want at most 5", n)
	}
}
