package choreography_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/signal"
)

// declared makes one declaration of a text.
func declared(t testing.TB, text string) language.Declaration {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	d, err := language.CompileDeclaration(language.WordFor(v), v)
	require.NoError(t, err)
	return d
}

// repeating is a choreography of so many steps, in few bytes.
func repeating(id string, times int) string {
	return fmt.Sprintf(`{"id":%q,"on":"x","steps":[{"action":"repeat","times":%d,"steps":[{"action":"wait","duration":1}]}]}`, id, times)
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// All definitions in force share one budget; one that replaces another gives back
// what that took first, and what is refused changes nothing.
func TestBudgetIsShared(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, declared(t, repeating("a", 60_000)))
	err := s.Define(declared(t, repeating("b", 60_000)))
	if !errors.Is(err, definition.ErrBudget) || !errors.Is(err, definition.ErrInvalid) {
		t.Fatalf("err = %v, want ErrBudget and definition.ErrInvalid", err)
	}
	if n := len(s.Definitions()); n != 1 || s.Catalog().Used().Steps != 60_000 {
		t.Fatalf("%d in force with %+v, want what was there before", n, s.Catalog().Used())
	}
	define(t, s, declared(t, repeating("b", 40_000)))
	define(t, s, declared(t, repeating("a", 10_000)))
	define(t, s, declared(t, repeating("b", 90_000)))
	if got := s.Catalog().Used().Steps; got != definition.MaxStepsInForce {
		t.Errorf("%d steps in force, want %d", got, definition.MaxStepsInForce)
	}
	assert.ErrorIs(t, s.Define(declared(t, `{"on":"x","steps":[{"action":"a"}]}`)), definition.ErrBudget, "one without an id")
}

// The budget of a restored scheduler is that of the one that was written down.
func TestBudgetIsRestored(t *testing.T) {
	s := choreography.NewScheduler()
	for _, text := range []string{
		repeating("a", 100), `{"on":"x","steps":[{"action":"a"}]}`, `{"on":"x","steps":[{"action":"a"}]}`,
		`{"sequence":"s","params":["p"],"steps":[{"action":"say","text":"param.p"}]}`, `{"easing":"soft","curve":"steps(3)"}`,
		`{"id":"b","on":"y","when":{"v":{"matches":"a{100}"}},"steps":[{"action":"include","sequence":"s","with":{"p":"hello"}}]}`,
		`{"id":"lamp","entity":"lamp","property":"opacity","sourceType":"y","transition":{"targetValue":1,"durationMs":10,"easing":"soft"}}`,
		`{"id":"lamp","entity":"lamp","property":"opacity","sourceType":"z"}`, repeating("a", 50),
	} {
		define(t, s, declared(t, text))
	}
	restored, err := choreography.RestoreScheduler(s.AppendState(nil))
	require.NoError(t, err)
	if got, want := restored.Catalog().Used(), s.Catalog().Used(); got != want {
		t.Errorf("restored %+v, want %+v", got, want)
	}
}

// What was replaced and is performed still counts until the last performance of it
// has ended, also for a scheduler that was restored meanwhile.
func TestBudgetCountsWhatIsPerformedStill(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, declared(t, repeating("a", 60_000)))
	s.Signal(1, &signal.Signal{Type: "x"})
	s.Advance(time.Millisecond)
	next := declared(t, repeating("a", 50_000))
	for range 2 {
		require.ErrorIs(t, s.Define(next), definition.ErrBudget, "while the first is performed")
		if kept := s.Retained(next); kept.Steps != 60_000 {
			t.Fatalf("retained %+v, want 60000 steps", kept)
		}
		define(t, s, declared(t, repeating("a", 40_000)))
		restored, err := choreography.RestoreScheduler(s.AppendState(nil))
		require.NoError(t, err)
		s = restored
		require.ErrorIs(t, s.Define(next), definition.ErrBudget, "after it was replaced")
		define(t, s, declared(t, repeating("a", 40_000)))
	}
	s.Advance(2 * time.Minute)
	if err := s.Define(next); err != nil || s.Active() != 0 || s.Retained() != (definition.Cost{}) {
		t.Errorf("at the end: %v, %d active, %+v retained", err, s.Active(), s.Retained())
	}
}

// A handler of a replaced definition counts as its performance did.
func TestBudgetCountsHandlers(t *testing.T) {
	s := choreography.NewScheduler()
	define(t, s, declared(t, `{"id":"a","on":"x","steps":[{"action":"repeat","times":70000,"steps":[{"action":"wait","duration":1}]},{"action":"onInterrupt","steps":[{"action":"wait","duration":50}]}]}`))
	define(t, s, declared(t, `{"on":"stop","interrupts":true,"steps":[]}`))
	id := "c"
	s.Signal(1, &signal.Signal{Type: "x", CorrelationID: &id})
	s.Advance(time.Millisecond)
	define(t, s, declared(t, repeating("a", 1)))
	s.Signal(2, &signal.Signal{Type: "stop", CorrelationID: &id})
	assert.ErrorIs(t, s.Define(declared(t, repeating("b", 40_000))), definition.ErrBudget, "while the handler runs")
	s.Advance(time.Second)
	assert.NoError(t, s.Define(declared(t, repeating("b", 40_000))), "after it has ended")
}

// A state that no scheduler could have written, since it exceeds the budget, is not
// restored.
func TestBudgetOfImages(t *testing.T) {
	var all [2]*choreography.Scheduler
	for i := range all {
		all[i] = choreography.NewScheduler()
		define(t, all[i], declared(t, fmt.Sprintf(`{"on":"x","steps":[{"action":"repeat","times":60000,"steps":[{"action":"a%d"}]}]}`, i)))
	}
	// [version, now, catalog, definitions, …]: the definitions of both in one.
	a, b := all[0].AppendState(nil), all[1].AppendState(nil)
	from := func(state []byte) []byte { return state[5 : len(state)-3] } // behind the heads, before three empty lists
	if a[4] != 0x91 {
		t.Fatalf("state begins with %x", a[:8])
	}
	both := append(append(append([]byte{}, a[:4]...), 0x92), from(a)...)
	both = append(append(both, from(b)...), 0x90, 0x90, 0x90)
	if _, err := choreography.RestoreScheduler(both); !errors.Is(err, definition.ErrBudget) {
		t.Errorf("err = %v, want ErrBudget", err)
	}
}

// The refusals that a log asked for are part of the state, and only then.
func TestRefusalsAreKept(t *testing.T) {
	s := choreography.NewScheduler()
	before := s.AppendState(nil)
	s.NoteRefused()
	restored, err := choreography.RestoreScheduler(s.AppendState(nil))
	require.NoError(t, err)
	if n, _ := restored.Refused(); n != 1 {
		t.Errorf("%d refused, want 1", n)
	}
	if len(before) >= len(s.AppendState(nil)) {
		t.Error("the state of one that refused nothing is as long")
	}
}

// A signal makes no performance when too much is under way, and the others go on.
func TestUnderWayIsBounded(t *testing.T) {
	s := choreography.NewScheduler()
	const width = 1 << 15 // of which so many make exactly the bound
	wide := `{"id":"wide","on":"x","steps":[{"action":"parallel","steps":[` + strings.TrimSuffix(strings.Repeat(`{"action":"move","duration":10},`, width-1), ",") + `]}]}`
	define(t, s, declared(t, wide))
	for i := range 40 {
		s.Signal(uint64(i+1), &signal.Signal{Type: "x"})
	}
	_, skipped := s.Refused()
	if want := choreography.MaxUnderWay / width; s.Active() != want || skipped != uint64(40-want) {
		t.Fatalf("%d active and %d skipped, want %d of 40", s.Active(), skipped, want)
	}
	s = restored(t, s)
	s.Advance(time.Second)
	s.Signal(99, &signal.Signal{Type: "x"})
	if s.Active() != 1 {
		t.Errorf("%d active, want 1 once the others have ended", s.Active())
	}
}

// Matching a text with a pattern is bounded: beyond that a test does not hold, nor
// does its negation.
func TestMatchingIsBounded(t *testing.T) {
	large := strings.Repeat("a{1000}", 5) + "b"
	payload := value(t, object{"v": strings.Repeat("a", 900_000)})
	for _, op := range []string{`{"matches":"` + large + `"}`, `{"not":{"matches":"` + large + `"}}`} {
		s := choreography.NewScheduler()
		for i := range 20 {
			define(t, s, declared(t, fmt.Sprintf(`{"id":"d%d","on":"x","when":{"v":%s},"steps":[{"action":"move","duration":1}]}`, i, op)))
		}
		s.Signal(1, &signal.Signal{Type: "x", Payload: payload})
		if s.Active() != 0 {
			t.Errorf("%s holds for a text that is too long for it", op)
		}
	}
	// What is small holds however often it is asked.
	s := choreography.NewScheduler()
	define(t, s, declared(t, `{"on":"x","when":{"v":{"matches":"^a+$"}},"steps":[{"action":"move","duration":1,"when":{"v":{"matches":"a"}}}]}`))
	s.Signal(1, &signal.Signal{Type: "x", Payload: payload})
	s.Advance(0)
	if s.Active() != 1 {
		t.Error("a small pattern does not hold")
	}
	// What matching has cost so far is part of the state.
	restored, err := choreography.RestoreScheduler(s.AppendState(nil))
	require.NoError(t, err)
	if string(restored.AppendState(nil)) != string(s.AppendState(nil)) {
		t.Error("the restored state is another")
	}
}

// One pattern in many steps is compiled once.
func TestPatternsAreShared(t *testing.T) {
	step := `{"action":"a","when":{"v":{"matches":"` + strings.Repeat("a{1000}", 4) + `"}}}`
	text := `{"on":"x","steps":[{"action":"repeat","times":5000,"steps":[` + step + `]}]}`
	s, d := choreography.NewScheduler(), declared(t, text)
	if n := allocated(func() { define(t, s, d) }); n > 64<<20 {
		t.Errorf("%d bytes allocated for one pattern in 5000 steps", n)
	}
}

// Whatever a text asks for, it allocates in proportion to its length and to the
// budget.
func TestAttackDefinitions(t *testing.T) {
	const most = 600 << 20 // in all, garbage included; what is in use at a time is far less
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
		}
		return strings.Join(all, ",")
	}
	fanOut := func(levels, wide int, last string) string {
		text := `{"sequence":"s0","steps":[` + last + `]}`
		for i := range levels {
			text += fmt.Sprintf(`,{"sequence":"s%d","steps":[%s]}`, i+1, many(wide, fmt.Sprintf(`{"action":"include","sequence":"s%d"}`, i)))
		}
		return text
	}
	n := attack.Rounds(200, 3000)
	for name, text := range map[string]string{
		"ten repeats":            many(10, `{"on":"x","steps":[{"action":"repeat","times":99990,"steps":[{"action":"a"}]}]}`),
		"repeats in repeats":     strings.Repeat(`{"on":"x","steps":[{"action":"repeat","times":9007199254740991,"steps":[`, 1) + strings.Repeat(`{"action":"repeat","times":9007199254740991,"steps":[`, 100) + `{"action":"a"}` + strings.Repeat(`]}`, 101) + `]}`,
		"empty includes":         `{"sequence":"e","steps":[]},` + many(n/10, `{"on":"x","steps":[`+many(100, `{"action":"include","sequence":"e"}`)+`]}`),
		"empty fan-out":          fanOut(20, 2, "") + "," + many(n, `{"on":"x","steps":[{"action":"include","sequence":"s20"}]}`),
		"wide empty fan-out":     fanOut(2, 300, "") + "," + many(n, `{"on":"x","steps":[{"action":"include","sequence":"s2"}]}`),
		"fan-out":                fanOut(20, 2, `{"action":"a"}`) + "," + many(n, `{"on":"x","steps":[{"action":"include","sequence":"s20"}]}`),
		"staggers":               `{"sequence":"e","steps":[]},` + many(n, `{"on":"x","steps":[{"action":"stagger","every":1,"each":[`+many(60, "#")+`],"steps":[{"action":"stagger","every":1,"each":[`+many(60, "#")+`],"steps":[{"action":"include","sequence":"e"}]}]}]}`),
		"a large base":           `{"id":"b","on":"x","steps":[` + many(20_000, `{"action":"a#"}`) + `]},` + many(n, `{"id":"d#","extends":"b"}`),
		"a large condition":      `{"id":"b","on":"x","when":{` + many(20_000, `"a#":{"exists":true}`) + `},"steps":[{"action":"a"}]},` + many(n, `{"id":"l#","targetEntityId":"e","property":"scale","sourceChoreographyId":"b"}`),
		"conditions":             `{"on":"x","steps":[{"action":"repeat","times":5000,"steps":[{"action":"a","when":{` + many(50, `"a#":{}`) + `}}]}]}`,
		"patterns":               many(n, `{"on":"x","when":{"v":{"matches":"#`+strings.Repeat("a{1000}", 5)+`"}},"steps":[{"action":"a"}]}`),
		"members":                `{"on":"x","steps":[{"action":"repeat","times":5000,"steps":[{"action":"a",` + many(100, `"m#":0`) + `}]}]}`,
		"deep":                   `{"on":"x","steps":` + strings.Repeat(`[{"action":"parallel","steps":`, 240) + `[` + many(20_000, `{"action":"a"}`) + `]` + strings.Repeat(`}]`, 240) + `}`,
		"deep across sequences":  deepSequences(40, 20),
		"many declarations":      many(80_000, `{"on":"x","steps":[]}`),
		"many sequences":         many(80_000, `{"sequence":"s#","steps":[]}`),
		"a chain of references":  `{"sequence":"s0","steps":[]},` + chained(20_000),
		"easings":                many(5000, `{"easing":"e#","curve":"steps(3)"}`) + `,{"on":"x","steps":[` + many(5000, `{"action":"a","duration":1,"easing":"e#"}`) + `]}`,
		"includes of one target": `{"sequence":"s","params":["p"],"steps":[{"action":"say","text":"param.p"}]},{"on":"x","steps":[{"action":"repeat","times":90000,"steps":[{"action":"include","sequence":"s","with":{"p":"` + strings.Repeat("x", 100_000) + `"}}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			text := []byte("[" + text + "]")
			var declarations []language.Declaration
			got := allocated(func() { declarations, _ = language.Parse("attack.json", text) })
			if limit := uint64(most + 600*len(text)); got > limit {
				t.Errorf("%d bytes allocated for %d, want %d at most", got, len(text), limit)
			}
			s := choreography.NewScheduler()
			for _, d := range declarations {
				define(t, s, d)
			}
			if used := s.Catalog().Used(); used.Steps > definition.MaxStepsInForce || used.Bytes > definition.MaxBytesInForce {
				t.Errorf("%+v in force", used)
			}
			if took := time.Since(begun); took > 2*time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// deepSequences is a chain of sequences, each of which includes the next inside so
// many groups.
func deepSequences(sequences, groups int) string {
	text := `{"sequence":"s0","steps":[{"action":"a"}]}`
	for i := range sequences {
		text += fmt.Sprintf(`,{"sequence":"s%d","steps":%s[{"action":"include","sequence":"s%d"}]%s}`, i+1,
			strings.Repeat(`[{"action":"parallel","steps":`, groups), i, strings.Repeat(`}]`, groups))
	}
	return text + fmt.Sprintf(`,{"on":"x","steps":[{"action":"include","sequence":"s%d"}]}`, sequences)
}

func chained(n int) string {
	var b strings.Builder
	for i := n; i > 0; i-- {
		if i < n {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sequence":"s%d","steps":[{"action":"include","sequence":"s%d"}]}`, i, i-1)
	}
	return b.String()
}

// FuzzBudget declares what random bytes choose: what is in force never exceeds the
// budget, is counted alike when it is restored, and a refusal changes nothing.
func FuzzBudget(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{200, 200, 13, 13, 27, 27, 255, 0, 254})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := choreography.NewScheduler()
		texts := func(b byte, i int) string {
			name, to := fmt.Sprintf("n%d", b%7), fmt.Sprintf("n%d", b/7%7)
			times := []int{0, 1, 40, 3000, 33_000, 99_999}[int(b)/3%6]
			switch b % 6 {
			case 0:
				return fmt.Sprintf(`{"sequence":%q,"steps":[{"action":"include","sequence":%q},{"action":"wait","duration":%d}]}`, name, to, i)
			case 1:
				return fmt.Sprintf(`{"sequence":%q,"steps":[{"action":"repeat","times":%d,"steps":[{"action":"a%d"}]}]}`, name, times, i)
			case 2:
				return fmt.Sprintf(`{"id":%q,"on":"x","steps":[{"action":"include","sequence":%q},{"action":"wait","duration":%d}]}`, name, to, i+1)
			case 3:
				return fmt.Sprintf(`{"id":%q,"extends":%q,"before":[{"action":"a"}]}`, name, to)
			case 4:
				return fmt.Sprintf(`{"id":%q,"entity":"e","property":"scale","sourceChoreographyId":%q}`, name, to)
			default:
				return fmt.Sprintf(`{"on":"x","steps":[{"action":"stagger","every":%d,"steps":[{"action":"include","sequence":%q},{"action":"a"}]}]}`, i, to)
			}
		}
		for i, b := range data[:min(len(data), 24)] {
			before := s.AppendState(nil)
			switch err := s.Define(declared(t, texts(b, i))); {
			case err == nil:
			case !errors.Is(err, definition.ErrInvalid):
				t.Fatal(err)
			case string(s.AppendState(nil)) != string(before):
				t.Fatal("a refusal has changed the state")
			}
			if b%5 == 0 {
				s.Signal(uint64(i+1), &signal.Signal{Type: "x"})
			}
			s.Advance(s.Now() + time.Duration(b)*time.Millisecond)
			used := s.Catalog().Used()
			if used.Steps < 0 || used.Steps > definition.MaxStepsInForce || used.Bytes > definition.MaxBytesInForce {
				t.Fatalf("%+v in force", used)
			}
		}
		restored, err := choreography.RestoreScheduler(s.AppendState(nil))
		if err != nil {
			t.Fatal(err)
		}
		if restored.Catalog().Used() != s.Catalog().Used() || restored.Retained() != s.Retained() {
			t.Fatalf("restored %+v and %+v, want %+v and %+v", restored.Catalog().Used(), restored.Retained(), s.Catalog().Used(), s.Retained())
		}
	})
}

// What a definition costs does not depend on whether it is written out by the
// scheduler or by hand.
func TestCostOfWhatIsWrittenOut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		n := r.IntN(40) + 1
		short := declared(t, fmt.Sprintf(`{"on":"x","steps":[{"action":"repeat","times":%d,"steps":[{"action":"a"}]}]}`, n))
		long := declared(t, `{"on":"x","steps":[`+strings.TrimSuffix(strings.Repeat(`{"action":"a"},`, n), ",")+`]}`)
		a, b := choreography.NewScheduler(), choreography.NewScheduler()
		define(t, a, short)
		define(t, b, long)
		if a.Catalog().Used() != b.Catalog().Used() {
			t.Errorf("%d times: %+v, by hand %+v", n, a.Catalog().Used(), b.Catalog().Used())
		}
	}
}

// The retained cost counts each performed definition that the declarations replace once,
// whatever else they declare.
func TestRetained(t *testing.T) {
	s := choreography.NewScheduler()
	old := declared(t, repeating("a", 40))
	define(t, s, old)
	define(t, s, declared(t, repeating("idle", 30)))
	define(t, s, declared(t, repeating("", 20)))
	s.Signal(1, &signal.Signal{Type: "x"})
	s.Signal(2, &signal.Signal{Type: "x"})
	s.Advance(0)
	cost := func(d language.Declaration) definition.Cost {
		bound, err := s.Catalog().Bind(d)
		require.NoError(t, err)
		return bound[0].Cost()
	}
	a, other, nameless := declared(t, repeating("a", 1)), declared(t, repeating("a", 2)), declared(t, repeating("", 3))
	idle, fresh, sequence := declared(t, repeating("idle", 1)), declared(t, repeating("fresh", 1)), declared(t, `{"sequence":"a","steps":[]}`)
	assert.Zero(t, s.Retained())
	assert.Zero(t, s.Retained(fresh, sequence, nameless))
	assert.Equal(t, cost(old), s.Retained(a))
	assert.Equal(t, cost(old), s.Retained(sequence, a, other, a, fresh))
	assert.Equal(t, cost(old).Plus(cost(declared(t, repeating("idle", 30)))), s.Retained(a, idle))
	define(t, s, a)
	assert.Equal(t, cost(old), s.Retained())
	s.Advance(39 * time.Millisecond)
	assert.Equal(t, cost(old), s.Retained())
	s.Advance(40 * time.Millisecond)
	assert.Zero(t, s.Retained())
}
