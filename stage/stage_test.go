package stage_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// members is the interface by which expressions read views.
type members interface {
	Len() int
	Names() []string
	Member(name string) (any, bool)
}

// whole reads members recursively into a view.
func wholeOf(v any) any {
	m, ok := v.(members)
	if !ok {
		return v
	}
	view := map[string]any{}
	for _, name := range m.Names() {
		member, _ := m.Member(name)
		view[name] = wholeOf(member)
	}
	return view
}

// TestMembersAreTheView checks that reading the stage member by member gives its view.
func TestMembersAreTheView(t *testing.T) {
	s := busy(t).stage
	if diff := cmp.Diff(s.View(), wholeOf(s)); diff != "" {
		t.Errorf("(-view +members):\n%s", diff)
	}
	entities, _ := s.Member("entities")
	if got := entities.(members).Len(); got != len(s.Frame().Figures) {
		t.Errorf("%d entities, %d figures", got, len(s.Frame().Figures))
	}
	if v, ok := entities.(members).Member("crowd"); ok {
		t.Errorf("an actor's name is an entity: %v", v)
	}
	for _, name := range []string{"", "nothing"} {
		if v, ok := s.Member(name); ok {
			t.Errorf("%q is %v", name, v)
		}
	}
}

// TestProperty checks that a condition reads the view at its instant, of the first entity
// that a name refers to, and that reading creates no entity.
func TestProperty(t *testing.T) {
	s := busy(t).stage
	before := s.Append(nil)
	for _, c := range []struct{ entity, property, want string }{
		{"peon", "x", "37.5"},
		{"peon", "position.y", "0.0"},
		{"crowd", "x", "105.0"}, // the first of two
		{"boss", "visible", "true"},
		{"peon", "text", `"he"`},
		{"peon", "moving", `["position","tint","scale","text"]`},
		{"peon", "layer", "0"},
		{"king", "home", `"left"`},
		{"peon", "home", "missing"},
		{"peon", "shoe", "missing"},
		{"w7", "visible", "missing"},
		{"", "visible", "missing"},
	} {
		got := "missing"
		if v, ok := s.Property(c.entity, c.property, s.Now()); ok {
			got = v.String()
			if _, rest, err := signal.CheckValue(v); err != nil || len(rest) > 0 {
				t.Errorf("%s.%s: bad value: %v", c.entity, c.property, err)
			}
		}
		if got != c.want {
			t.Errorf("%s.%s is %s, want %s", c.entity, c.property, got, c.want)
		}
	}
	if string(before) != string(s.Append(nil)) {
		t.Error("asking changed the stage")
	}
}

// TestFrameSharesNothing checks that a frame does not change with its stage.
func TestFrameSharesNothing(t *testing.T) {
	w := busy(t)
	f, again := w.stage.Frame(), w.stage.Frame()
	w.advance(time.Second)
	w.signal(time.Second, scriptSignal(t, "x {}"))
	w.advance(2 * time.Second)
	if len(f.Beams) == 0 || len(f.Sounds) == 0 {
		t.Fatal("nothing to share")
	}
	if diff := cmp.Diff(again.Figures, f.Figures) + cmp.Diff(again.Beams, f.Beams) + cmp.Diff(again.Sounds, f.Sounds); diff != "" {
		t.Error(diff)
	}
}

// TestAppendWithoutRemarks: it leaves out sounds and diagnostics alone.
func TestAppendWithoutRemarks(t *testing.T) {
	after := func(typ string) *stage.Stage {
		w := newWorld(stage.Config{})
		w.stage.SetScene(sceneOf(t, yard))
		w.define(t, `[{"on": "ring", "steps": [{"action": "playSound", "sound": "gong"}]}, {"on": "stray", "steps": [{"action": "setAnimation", "entity": "signal.nobody", "state": "lost"}]},
			{"on": "walk", "steps": [{"action": "setAnimation", "entity": "peon", "state": "walking"}]}]`)
		w.signal(time.Second, scriptSignal(t, typ+" {}"))
		w.advance(2 * time.Second)
		return w.stage
	}
	quiet := after("quiet")
	for typ, same := range map[string]bool{"ring": true, "stray": true, "walk": false} {
		s := after(typ)
		require.NotEqual(t, quiet.Append(nil), s.Append(nil), typ)
		require.Equal(t, same, bytes.Equal(quiet.AppendWithoutRemarks(nil), s.AppendWithoutRemarks(nil)), typ)
		require.True(t, bytes.Contains(s.Append(nil), s.AppendWithoutRemarks(nil)), typ)
	}
}

// TestLimits checks that a stage stays within its limits and reports each excess.
func TestLimits(t *testing.T) {
	w := newWorld(stage.Config{})
	long := strings.Repeat("ü", 5000)
	w.define(t, `[{"on": "come", "steps": [{"action": "spawn", "entity": "signal.who"}, {"action": "playSound", "sound": "gong"}]},
	 {"on": "beam", "steps": [{"action": "drawBeam", "entity": "signal.who", "to": [0, 0]}]},
	 {"on": "text", "steps": [{"action": "typeText", "entity": "e1", "text": "`+long+`", "duration": 100}]},
	 {"on": "say", "steps": [{"action": "say", "entity": "e2", "text": "`+long+`"}]},
	 {"on": "what", "steps": [{"action": "`+long+`", "entity": "e1"}]}]`)
	send := func(typ, who string) {
		w.signal(w.stage.Now(), &signal.Signal{Type: typ, Payload: value(t, object{"who": who})})
		w.advance(w.stage.Now())
	}
	for i := range stage.MaxEntities + 5 {
		send("come", fmt.Sprint("e", i))
	}
	for i := range stage.MaxBeams + 5 {
		send("beam", fmt.Sprint("e", i))
	}
	send("come", strings.Repeat("n", stage.MaxName+1))
	send("text", "")
	send("say", "")
	send("what", "")
	w.advance(time.Hour)
	f := w.stage.Frame()
	if len(f.Figures) != stage.MaxEntities || len(f.Beams) != stage.MaxBeams || len(f.Sounds) != stage.MaxSounds {
		t.Errorf("%d figures, %d beams, %d sounds", len(f.Figures), len(f.Beams), len(f.Sounds))
	}
	for _, g := range f.Figures {
		if g.ID == "e1" && g.Text != long[:2*stage.MaxText] {
			t.Errorf("a text of %d bytes", len(g.Text))
		}
	}
	d := w.stage.View().(map[string]any)["diagnostics"].(map[string]any)
	if len(d["recent"].([]any)) != 14 || d["limits"] != int64(13) || d["actions"] != int64(1) {
		t.Errorf("diagnostics: %v", d)
	}
	for range stage.MaxRecent {
		send("what", "")
	}
	d = w.stage.View().(map[string]any)["diagnostics"].(map[string]any)
	if len(d["recent"].([]any)) != stage.MaxRecent || d["total"] != int64(14+stage.MaxRecent) {
		t.Errorf("diagnostics: %v", d)
	}
	w.restore(t)
}

// Names that are not shown any more are forgotten, however many there were.
func TestNamesAreForgotten(t *testing.T) {
	w := newWorld(stage.Config{})
	const names = 20_000
	long := strings.Repeat("n", stage.MaxName-10)
	inUse := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	for i := range names {
		w.signal(0, &signal.Signal{Type: "agent_state_change", Payload: new(signal.Object).Text("agentId", "ann").Text("to", fmt.Sprint(long, i)).Value()})
	}
	if after := inUse(); after > before+names*stage.MaxName/2 {
		t.Errorf("%d bytes in use after %d names, before %d", after, names, before)
	}
	if got, want := w.stage.Frame().Figures[0].State, fmt.Sprint(long, names-1); got != want {
		t.Errorf("the last is %q", got)
	}
}

// TestLongSpeech checks that appended speech keeps its end, and that a long sentence
// keeps its beginning.
func TestLongSpeech(t *testing.T) {
	w := newWorld(stage.Config{})
	send := func(typ, content string) {
		w.signal(w.stage.Now(), &signal.Signal{Type: typ, Payload: value(t, object{"agentId": "a", "content": content, "result": content})})
	}
	says := func() string { return w.stage.Frame().Figures[0].Text }
	all := ""
	for i := range 300 { // more than can be typed in that time
		send("thinking", fmt.Sprintf("<%d>", i))
		all += fmt.Sprintf("<%d>", i)
		w.advance(w.stage.Now() + 100*time.Millisecond)
		if now := says(); !strings.Contains(all, now) || i > 0 && now == "" {
			t.Fatalf("at %v: %q", w.stage.Now(), now)
		}
		if i%50 == 0 {
			w.restore(t)
		}
	}
	w.advance(w.stage.Now() + 9*time.Second)
	if got, want := says(), all[len(all)-200:]; got != want {
		t.Errorf("says %q, want %q", got, want)
	}
	send("completion", strings.Repeat("é", 201))
	w.advance(w.stage.Now() + 8*time.Second)
	if got, want := says(), strings.Repeat("é", 199)+"…"; got != want {
		t.Errorf("says %q, want %q", got, want)
	}
	send("thinking", strings.Repeat("x", 150)+strings.Repeat("y", 150))
	w.advance(w.stage.Now() + time.Second)
	if got, want := says(), strings.Repeat("x", 30); got != want {
		t.Errorf("says %q, want %q", got, want)
	}
	send("thinking", strings.Repeat("z", 250))
	w.advance(w.stage.Now() + 10*time.Second)
	if got, want := says(), strings.Repeat("z", 200); got != want {
		t.Errorf("says %q, want %q", got, want)
	}
}

// impressive are signals of the usual types, of agents that have entities.
func impressive(t testing.TB) []*signal.Signal {
	return []*signal.Signal{
		scriptSignal(t, `task_dispatch {"taskId":"t","from":"king","to":"scout","description":"look around"}`),
		scriptSignal(t, `agent_state_change {"agentId":"scout","from":"idle","to":"thinking"}`),
		scriptSignal(t, `thinking {"agentId":"scout","content":"where to begin, and with what"}`),
		scriptSignal(t, `tool_call {"toolName":"search","agentId":"scout","callId":"c1","input":{"query":"north","limit":5}}`),
		scriptSignal(t, `token_usage {"agentId":"scout","promptTokens":812,"completionTokens":64}`),
		scriptSignal(t, `tool_result {"toolName":"search","agentId":"scout","callId":"c1","success":true,"output":{"hits":3}}`),
		scriptSignal(t, `text_delta {"agentId":"scout","content":"found it"}`),
		scriptSignal(t, `completion {"taskId":"t","agentId":"scout","success":true,"result":"three of them"}`),
	}
}

// A session without choreographies makes impressions at every append, so they must be
// cheap.
func BenchmarkImpression(b *testing.B) {
	s, signals := stage.New(stage.Config{}), impressive(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Advance(time.Duration(i) * 100 * time.Millisecond)
		s.Signal(uint64(i), signals[i%len(signals)])
		i++
	}
}

func TestImpressionAllocations(t *testing.T) {
	s, signals := stage.New(stage.Config{}), impressive(t)
	for i, sig := range signals {
		s.Signal(uint64(i), sig)
	}
	for _, sig := range signals {
		if n := testing.AllocsPerRun(100, func() {
			s.Advance(s.Now() + 4*time.Second)
			s.Signal(1, sig)
		}); n > 1 {
			t.Errorf("%s: %v allocations", sig.Type, n)
		}
	}
}

// boundaries is a choreographer and a stage with usual definitions.
func boundaries(t testing.TB) (*world, []*signal.Signal) {
	w := newWorld(stage.Config{})
	w.stage.SetScene(sceneOf(t, yard))
	w.define(t, `[{"on": "tool_call", "steps": [{"action": "parallel", "steps": [
	  {"action": "move", "entity": "signal.agentId", "to": "well", "duration": 300, "easing": "easeInOut"},
	  {"action": "flash", "target": "peon", "duration": 150}]}, {"action": "setAnimation", "entity": "signal.agentId", "state": "working"}]},
	 {"on": "tool_result", "steps": [{"action": "pulse", "entity": "signal.agentId", "duration": 200}, {"action": "move", "entity": "signal.agentId", "to": [0, 0], "duration": 200}]}]`)
	return w, []*signal.Signal{
		scriptSignal(t, `tool_call {"toolName":"search","agentId":"scout","input":{"query":"north"}}`),
		scriptSignal(t, `tool_result {"toolName":"search","agentId":"scout","success":true}`),
	}
}

// BenchmarkBoundaries measures the choreographer with its stage: a round of two signals
// has nine boundaries.
func BenchmarkBoundaries(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprint("watched=", watched), func(b *testing.B) {
			w, signals := boundaries(b)
			if !watched {
				w.scheduler.Observe(nil, nil)
			}
			b.ReportAllocs()
			at := time.Duration(0)
			for b.Loop() {
				for _, sig := range signals {
					w.scheduler.Signal(1, sig)
					at += 500 * time.Millisecond
					w.scheduler.Advance(at)
				}
			}
		})
	}
}

// TestBoundaryAllocations checks that acts and claims are reused.
func TestBoundaryAllocations(t *testing.T) {
	w, signals := boundaries(t)
	at := time.Duration(0)
	round := func() {
		for _, sig := range signals {
			w.scheduler.Signal(1, sig)
			at += 500 * time.Millisecond
			w.scheduler.Advance(at)
		}
	}
	round()
	with := testing.AllocsPerRun(100, round)
	w.scheduler.Observe(nil, nil)
	without := testing.AllocsPerRun(100, round)
	if with-without > 1 {
		t.Errorf("%v allocations of the stage in nine boundaries", with-without)
	}
}

func BenchmarkFrame(b *testing.B) {
	s := busy(b).stage
	b.ReportAllocs()
	for b.Loop() {
		s.Frame()
	}
}

// A viewer calls Moving for every frame, also on a full stage on which nothing moves or
// only one figure does.
func BenchmarkMoving(b *testing.B) {
	full := func(b *testing.B) *world {
		w := newWorld(stage.Config{})
		w.define(b, `[{"on": "come", "steps": [{"action": "say", "entity": "signal.who", "text": "here"}]},
			{"on": "walk", "steps": [{"action": "move", "entity": "0", "to": [1, 1], "duration": 1e12}]},
			{"on": "talk", "steps": [{"action": "say", "entity": "9999", "text": "hm"}]}]`)
		for i := range stage.MaxEntities {
			w.signal(0, &signal.Signal{Type: "come", Payload: value(b, object{"who": fmt.Sprint(i)})})
		}
		w.advance(time.Hour)
		return w
	}
	for _, c := range []struct {
		name, signal string
		want         bool
	}{{"Still", "", false}, {"Walk", "walk", true}, {"Talk", "talk", true}} {
		b.Run(c.name, func(b *testing.B) {
			w := full(b)
			if c.signal != "" {
				w.signal(w.stage.Now(), &signal.Signal{Type: c.signal})
			}
			b.ReportAllocs()
			for b.Loop() {
				w.advance(w.stage.Now() + 1)
				if w.stage.Moving() != c.want {
					b.Fatal("moving is", !c.want)
				}
			}
		})
	}
}

// An expression reads one number of one entity.
func BenchmarkMember(b *testing.B) {
	s := busy(b).stage
	b.ReportAllocs()
	for b.Loop() {
		entities, _ := s.Member("entities")
		peon, _ := entities.(members).Member("peon")
		if _, ok := peon.(members).Member("x"); !ok {
			b.Fatal("no x")
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s := busy(b).stage
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = s.Append(buf[:0])
	}
}

// Example shows a performance on a stage in the middle of a step.
func Example() {
	definitions, _ := language.Parse("walk.json", []byte(
		`{"on": "walk", "steps": [
		  {"action": "spawn", "entity": "peon", "at": {"x": 20, "y": 40}},
		  {"action": "move", "entity": "peon", "to": {"x": 100, "y": 40}, "duration": 1000, "easing": "easeIn"}]}`))
	st := stage.New(stage.Config{})
	scheduler := choreography.NewScheduler()
	scheduler.Observe(st, st)
	if err := scheduler.Define(definitions[0]); err != nil {
		panic(err)
	}
	st.Choreographed()
	scheduler.Signal(1, &signal.Signal{Type: "walk"})
	for _, at := range []time.Duration{500 * time.Millisecond, time.Second} {
		scheduler.Advance(at)
		st.Advance(at)
		peon := st.Frame().Figures[0]
		fmt.Printf("%v: %.0f, %.0f, moving: %v\n", at, peon.X, peon.Y, st.Moving())
	}
	// Output:
	// 500ms: 40, 40, moving: true
	// 1s: 100, 40, moving: false
}

// Each entity has as many members as it has names, and each name has a member.
func TestMembersOfEntities(t *testing.T) {
	s := busy(t).stage
	all, _ := s.Member("entities")
	entities := all.(members)
	require.Len(t, entities.Names(), entities.Len())
	for _, id := range entities.Names() {
		v, ok := entities.Member(id)
		require.True(t, ok, id)
		entity := v.(members)
		require.Len(t, entity.Names(), entity.Len(), id)
		for _, name := range entity.Names() {
			_, ok := entity.Member(name)
			require.True(t, ok, "%s.%s", id, name)
		}
	}
}

// A stage of an earlier program notes no reference that does not resolve.
func TestIgnoredReferences(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		w := newWorld(stage.Config{})
		if ignores {
			w.stage.IgnoreUnresolved()
		}
		w.define(t, `[{"on": "go", "steps": [{"action": "flash", "entity": "signal.nobody", "color": "signal.none"}]}]`)
		w.signal(0, scriptSignal(t, `go {}`))
		w.advance(time.Second)
		require.Equal(t, ignores, len(w.stage.Unresolved(0)) == 0)
	}
}

// A frame's sounds are those of less than 600 ms ago, up to 64, the oldest first; a loop over
// them may end at any.
func TestShownSounds(t *testing.T) {
	const ms = time.Millisecond
	f := &stage.Frame{At: 1000 * ms}
	for _, at := range []time.Duration{0, 400 * ms, 400*ms + 1, 700 * ms, 1000 * ms, 1000*ms + 1, 2000 * ms} {
		f.Sounds = append(f.Sounds, stage.Sound{At: at})
	}
	for end := 1; end <= 4; end++ {
		var got []time.Duration
		for s := range f.ShownSounds() {
			got = append(got, s.At)
			if len(got) == end {
				break
			}
		}
		require.Equal(t, []time.Duration{400*ms + 1, 700 * ms, 1000 * ms}[:min(end, 3)], got)
	}
	f.Sounds = nil
	for i := range 70 {
		f.Sounds = append(f.Sounds, stage.Sound{At: 900*ms + time.Duration(i)})
	}
	n := 0
	for s := range f.ShownSounds() {
		require.Equal(t, 900*ms+time.Duration(6+n), s.At)
		n++
	}
	require.Equal(t, 64, n)
}
