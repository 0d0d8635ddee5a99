package choreography_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/signal"
)

// life is what a model says of one performance: when its only step began and
// ended, and when it was interrupted. Never is -1.
type life struct{ Began, Ended, Stopped time.Duration }

// modelled is a performance of the model.
type modelled struct {
	id          string
	correlation string
	names       []string
	length      time.Duration
	life        life
}

func (m *modelled) holds() bool { return m.life.Began >= 0 && m.life.Ended < 0 && m.life.Stopped < 0 }
func (m *modelled) waits() bool { return m.life.Began < 0 && m.life.Stopped < 0 }

// model runs guarded performances of one step each by looking at all of them
// again and again.
type model struct {
	all []*modelled // in creation order
	now time.Duration
}

// taken reports whether someone holds one of names, or, among the first n
// performances, waits for one.
func (m *model) taken(names []string, n int) (held, awaited bool) {
	for i, o := range m.all {
		if slices.ContainsFunc(o.names, func(name string) bool { return slices.Contains(names, name) }) {
			held = held || o.holds()
			awaited = awaited || o.waits() && i < n
		}
	}
	return held, awaited
}

// settle has all begin that can.
func (m *model) settle() {
	for i, o := range m.all {
		if held, awaited := m.taken(o.names, i); o.waits() && !held && !awaited {
			o.life.Began = m.now
		}
	}
}

func (m *model) advance(to time.Duration) {
	for {
		next := to + 1
		for _, o := range m.all {
			if o.holds() {
				next = min(next, o.life.Began+o.length)
			}
		}
		if next > to {
			break
		}
		m.now = next
		for _, o := range m.all {
			if o.holds() && o.life.Began+o.length == next {
				o.life.Ended = next
			}
		}
		m.settle()
	}
	m.now = to
}

// ruled is a definition of the model.
type ruled struct {
	on, policy string
	names      []string
	length     int
	interrupts bool
}

func (r ruled) object() object {
	d := object{"on": r.on, "steps": []object{{"action": "move", "duration": r.length}}, "interrupts": r.interrupts}
	if len(r.names) > 0 {
		d["guard"] = object{"entity": r.names, "policy": r.policy}
	}
	return d
}

// TestGuardModel compares when guarded performances begin, end and are
// interrupted with a model that shares nothing with the scheduler, and checks at
// every cut that no name has two holders.
func TestGuardModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rules []ruled
		s := choreography.NewScheduler()
		for range rapid.IntRange(1, 5).Draw(t, "rules") {
			r := ruled{
				on:         rapid.SampledFrom([]string{"x", "y"}).Draw(t, "on"),
				policy:     rapid.SampledFrom([]string{"queue", "queue", "queue", "skip", "preempt"}).Draw(t, "policy"),
				names:      rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 3, rapid.ID).Draw(t, "names"),
				length:     rapid.SampledFrom([]int{0, 0, 10, 10, 20, 35}).Draw(t, "length"),
				interrupts: rapid.IntRange(0, 3).Draw(t, "interrupts") == 0,
			}
			rules = append(rules, r)
			define(t, s, compile(t, r.object()))
		}
		var sink choreography.RecordingSink
		if rapid.Bool().Draw(t, "listened to") {
			s.SetSink(&sink)
		}
		var seen stage
		seen.properties, seen.moves = map[string]signal.Value{}, map[string]int64{}
		s.Observe(&seen, nil)
		var m model
		for i := range rapid.IntRange(1, 15).Draw(t, "signals") {
			at := s.Now() + time.Duration(rapid.SampledFrom([]int{0, 0, 5, 10, 10, 25}).Draw(t, "gap"))*time.Millisecond
			for range rapid.IntRange(0, 2).Draw(t, "cuts") {
				s.Advance(s.Now() + (at-s.Now())/2)
				alone(t, s)
			}
			s.Advance(at)
			m.advance(at)
			typ := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "type")
			id := rapid.SampledFrom([]string{"c", "d", "e"}).Draw(t, "correlation")
			s.Signal(uint64(i+1), &signal.Signal{Type: typ, CorrelationID: &id})
			m.signal(i+1, typ, id, rules)
			alone(t, s)
		}
		s.Advance(s.Now() + time.Hour)
		m.advance(m.now + time.Hour)
		got, want := map[string]life{}, map[string]life{}
		for _, o := range m.all {
			want[o.id] = o.life
		}
		for _, line := range seen.told {
			f := strings.Fields(line)
			at, err := time.ParseDuration(f[0])
			require.NoError(t, err)
			l, ok := got[f[1]]
			if !ok {
				l = life{-1, -1, -1}
			}
			switch f[2] {
			case "start":
				l.Began = at
			case "complete":
				l.Ended = at
			case "interrupt":
				l.Stopped = at
				if l.Began < 0 {
					// What is interrupted before it was advanced has not told
					// that it began.
					l.Began = want[f[1]].Began
				}
			}
			got[f[1]] = l
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-model +scheduler):\n%s", diff)
		}
	})
}

func (m *model) signal(seq int, typ, id string, rules []ruled) {
	made := 0
	for _, r := range rules {
		if r.on != typ {
			continue
		}
		stop := func(which func(*modelled) bool) {
			for _, o := range m.all {
				if o.life.Ended < 0 && o.life.Stopped < 0 && which(o) {
					o.life.Stopped = m.now
				}
			}
		}
		if r.interrupts {
			stop(func(o *modelled) bool { return o.correlation == id })
		}
		held, awaited := m.taken(r.names, len(m.all))
		if r.policy == "skip" && (held || awaited) {
			continue
		}
		if r.policy == "preempt" {
			stop(func(o *modelled) bool {
				return o.holds() && slices.ContainsFunc(o.names, func(n string) bool { return slices.Contains(r.names, n) })
			})
		}
		made++
		o := &modelled{
			id: fmt.Sprintf("p-%d-%d", seq, made), correlation: id, names: r.names,
			length: time.Duration(r.length) * time.Millisecond, life: life{-1, -1, -1},
		}
		if r.policy != "queue" || !held && !awaited {
			o.life.Began = m.now
		}
		m.all = append(m.all, o)
	}
	m.settle()
}

// alone checks that no name has two holders.
func alone(t rapid.TB, s *choreography.Scheduler) {
	t.Helper()
	holders := map[string]string{}
	for p := range s.Performances() {
		if p.Queued {
			continue
		}
		for name := range p.Guard() {
			if other, taken := holders[name]; taken {
				t.Fatalf("%s and %s hold %q", other, p.ID(), name)
			}
			holders[name] = p.ID()
		}
	}
}

// TestGuardsApart shows that guards whose names never meet change nothing.
func TestGuardsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		guarded := drawHistory(t)
		for i := range guarded.Entries {
			payload := object{"who": "ann"}
			for n := range guarded.Definitions {
				payload[fmt.Sprint("own", n)] = fmt.Sprintf("%d of %d", n, i)
			}
			guarded.Entries[i].Sig.Payload = value(t, payload)
			guarded.Entries[i].Define = nil
		}
		bare := guarded
		bare.Definitions = nil
		for n, d := range guarded.Definitions {
			delete(d, "id")
			without := object{}
			for name, v := range d {
				if name != "guard" {
					without[name] = v
				}
			}
			bare.Definitions = append(bare.Definitions, without)
			d["guard"] = object{"entity": fmt.Sprint("signal.own", n), "policy": rapid.SampledFrom([]string{"queue", "skip", "preempt"}).Draw(t, "policy")}
		}
		var with, without choreography.RecordingSink
		play(t, guarded, &with, newStage(), untouched)
		play(t, bare, &without, newStage(), untouched)
		if diff := cmp.Diff(without.Commands, with.Commands); diff != "" {
			t.Errorf("(-without guards +with):\n%s", diff)
		}
	})
}

// TestMaxWaiting shows that at most so many wait for one name, and that all of
// them have their turn in one advance.
func TestMaxWaiting(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, compile(t, object{"on": "x", "guard": object{"entity": []string{"a", "signal.also"}}, "steps": []object{{"action": "move", "duration": 1}}}))
	also := value(t, object{"also": "b"})
	for i := range definition.MaxWaiting + 5 {
		sig := signal.Signal{Type: "x"}
		if i%3 == 0 {
			sig.Payload = also
		}
		s.Signal(uint64(i+1), &sig)
	}
	if want := definition.MaxWaiting + 1; s.Active() != want {
		t.Errorf("%d performances, want %d", s.Active(), want)
	}
	// A state with one more that waits is refused.
	whole := s.AppendState(nil)
	const performances = 6
	at := msgptest.At(whole, performances)
	last := msgptest.Get(whole, performances, definition.MaxWaiting)
	many := append(msgp.AppendArrayHeader(nil, definition.MaxWaiting+2), whole[at.Start+3:at.End]...)
	more := msgptest.Put(whole, at, append(many, msgptest.Set(last, []byte{2}, 1)...)) // the second of its signal
	_, err := choreography.RestoreScheduler(more)
	require.ErrorContains(t, err, "wait for one name")

	s = restored(t, s)
	var d deaf
	s.Observe(&d, nil)
	s.Advance(time.Hour)
	if s.Active() != 0 || d.boundaries != 2*(definition.MaxWaiting+1) {
		t.Errorf("%d performances left after %d boundaries", s.Active(), d.boundaries)
	}
}

// TestCompileGuard shows what Compile takes for a guard, and the little that it
// refuses.
func TestCompileGuard(t *testing.T) {
	for _, tt := range []struct {
		guard any
		want  string
	}{
		{"a", "[]"},
		{nil, "[]"},
		{object{}, "[]"},
		{object{"entity": 5}, "[]"},
		{object{"entity": "a", "policy": "fifo"}, "[a]"},
		{object{"entity": []any{"a", 5, "a", nil, "signal.who", "signal.none", "signal.n", "", "b"}}, "[a ann b]"},
		{object{"entity": "signal.type"}, "[x]"},
	} {
		s := choreography.NewScheduler()
		define(t, s, compile(t, object{"on": "x", "guard": tt.guard, "steps": []object{}}))
		s.Signal(1, &signal.Signal{Type: "x", Payload: value(t, object{"who": "ann", "n": 5})})
		for p := range restored(t, s).Performances() {
			if got := fmt.Sprint(slices.Collect(p.Guard())); got != tt.want {
				t.Errorf("%v guards %s, want %s", tt.guard, got, tt.want)
			}
			for range p.Guard() {
				break
			}
		}
	}
	many := value(t, object{"on": "x", "guard": object{"entity": make([]string, definition.MaxGuarded+1)}})
	if _, err := definition.Compile(many); !errors.Is(err, definition.ErrInvalid) {
		t.Errorf("too many names: %v, want definition.ErrInvalid", err)
	}
}

// TestStateOfGuards refuses states in which guards are as no scheduler leaves
// them, though all else of them is right.
func TestStateOfGuards(t *testing.T) {
	refused := func(b []byte, why string) {
		t.Helper()
		if _, err := choreography.RestoreScheduler(b); !errors.Is(err, choreography.ErrState) || !strings.Contains(err.Error(), why) {
			t.Errorf("err = %v, want ErrState: %s", err, why)
		}
	}
	under := func(policies ...string) []byte {
		s := choreography.NewScheduler()
		for i, p := range policies {
			d := object{"on": "x", "steps": []object{{"action": "wait", "duration": 50}}}
			if p != "" {
				d["guard"] = object{"entity": fmt.Sprint("name ", i), "policy": p}
			}
			define(t, s, compile(t, d))
		}
		s.Signal(1, &signal.Signal{Type: "x"})
		s.Advance(0)
		return restored(t, s).AppendState(nil)
	}
	replaced := func(b []byte, old, with string) []byte {
		return bytes.ReplaceAll(b, msgp.AppendString(nil, old), msgp.AppendString(nil, with))
	}
	for _, policy := range []string{"queue", "skip", "preempt"} {
		refused(replaced(under(policy, policy), "name 1", "name 0"), "two performances hold one name")
	}

	// The last fields of a performance are waiting and its cursor.
	waiting := func(b []byte, cursor ...byte) []byte {
		return append(append(bytes.Clone(b[:bytes.LastIndexByte(b, 0xc2)]), 0xc3), cursor...)
	}
	refused(waiting(under("queue"), 0x91, 0x00), "waits for nothing")
	for _, policy := range []string{"", "skip", "preempt"} {
		refused(waiting(under(policy), 0x91, 0x00), "has nothing to wait for")
	}
	queued := choreography.NewScheduler()
	define(t, queued, compile(t, object{"on": "x", "guard": object{"entity": "a"}, "steps": []object{{"action": "wait", "duration": 50}}}))
	queued.Signal(1, &signal.Signal{Type: "x"})
	queued.Signal(2, &signal.Signal{Type: "x"})
	queued.Advance(0)
	b := restored(t, queued).AppendState(nil)
	at := bytes.LastIndexByte(b, 0xc3)
	refused(append(bytes.Clone(b[:at+1]), 0x93, 0x00, 0x03, 0x00), "began too early")
	refused(append(bytes.Clone(b[:at+1]), 0x91, 0x01), "should have begun")

	// What only preemption may do: an unknown policy counts as a queue.
	overtaken := choreography.NewScheduler()
	define(t, overtaken, compile(t, object{"on": "x", "guard": object{"entity": "a"}, "steps": []object{{"action": "wait", "duration": 50}}}))
	define(t, overtaken, compile(t, object{"on": "y", "guard": object{"entity": "a", "policy": "preempt"}, "steps": []object{{"action": "wait", "duration": 50}}}))
	for i, typ := range []string{"x", "x", "y"} {
		overtaken.Signal(uint64(i+1), &signal.Signal{Type: typ})
	}
	refused(replaced(restored(t, overtaken).AppendState(nil), "preempt", "pretend"), "overtook")
}

// TestGuardsAtTheEndOfTime shows that those who wait behind what never ends have
// their turn at the last instant, all of them and in order.
func TestGuardsAtTheEndOfTime(t *testing.T) {
	for _, listened := range []bool{false, true} {
		s := choreography.NewScheduler()
		define(t, s, compile(t, object{"on": "x", "guard": object{"entity": "a"}, "steps": []object{
			{"action": "move", "duration": 1e300}, {"action": "wait", "duration": 1e300}, {"action": "spawn"},
		}}))
		on := newStage()
		s.Observe(on, on)
		if listened {
			s.SetSink(nullSink{})
		}
		for seq := range uint64(3) {
			s.Signal(seq+1, &signal.Signal{Type: "x"})
		}
		s.Advance(time.Hour)
		s = restored(t, s)
		s.Observe(on, on)
		s.Advance(math.MaxInt64)
		want := []string{"p-1-1 start", "p-1-1 complete", "p-1-1 execute", "p-2-1 start", "p-2-1 complete", "p-2-1 execute", "p-3-1 start", "p-3-1 complete", "p-3-1 execute"}
		var got []string
		for _, line := range on.told {
			f := strings.Fields(line)
			got = append(got, f[1]+" "+f[2])
		}
		if diff := cmp.Diff(want, got); diff != "" || s.Active() != 0 {
			t.Errorf("%d active (-want +got):\n%s", s.Active(), diff)
		}
	}
}
