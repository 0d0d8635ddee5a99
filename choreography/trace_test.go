package choreography_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/signal"
)

// Drawn choreographies have the diagnostics, the declarations, the commands and the
// states that they had, and damaged states the same errors.
func TestRecordedPerformances(t *testing.T) {
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		for n := range uint64(150) {
			d := golden.NewDice(n)
			s := choreography.NewScheduler()
			on := newStage()
			s.Observe(on, on)
			var out strings.Builder
			take := func(text string) {
				declarations, diagnostics := language.Parse("drawn.json", []byte(text))
				fmt.Fprintf(&out, "%s\n%v\n", text, diagnostics)
				fmt.Fprintln(&out, s.Retained(declarations...), s.Unchanged(declarations))
				for _, one := range declarations {
					fmt.Fprintln(&out, one.Word(), one.Value().String(), s.Define(one))
				}
				for _, one := range s.Definitions() {
					fmt.Fprintf(&out, "%s %s %v %d\n", one.Name(), one.On(), one.Cost(), one.Width())
				}
				step(fmt.Sprintf("%d defined", n), out.String())
				out.Reset()
			}
			text := golden.Declarations(d)
			take(text)
			for i := range 6 {
				damaged := golden.Damage(d, text)
				declarations, diagnostics := language.Parse("damaged.json", []byte(damaged))
				for _, one := range declarations {
					fmt.Fprintln(&out, one.Word(), one.Name(), one.Value().String())
				}
				fmt.Fprintln(&out, damaged, diagnostics)
				_, diagnostics = language.ParseWith(s.Catalog(), "damaged.json", []byte(damaged))
				step(fmt.Sprintf("%d damaged %d", n, i), fmt.Sprint(out.String(), diagnostics))
				out.Reset()
			}
			seq := uint64(0)
			for range 14 {
				sink := &choreography.RecordingSink{}
				s.SetSink(sink)
				switch d.N(7) {
				case 0, 1, 2:
					typ, correlation, payload := golden.DeclaredSignal(d)
					sig := scriptSignal(t, typ+" "+payload)
					if correlation != "" {
						sig.CorrelationID = &correlation
					}
					seq++
					s.Signal(seq, sig)
				case 3:
					v, err := signal.ParseValue([]byte(golden.Pick(d, "true", "false", "1", `"run"`)))
					require.NoError(t, err)
					on.properties[golden.Pick(d, "ann.visible", "ann.x", "bob.x", "door.state")] = v
				case 4:
					if at, ok := s.Next(); ok {
						s.Advance(at)
					}
				default:
					s.Advance(s.Now() + time.Duration(d.N(120))*time.Millisecond/2)
				}
				if d.Once(6) {
					s = restored(t, s)
					s.Observe(on, on)
					s.SetSink(sink)
				}
				if d.Once(20) {
					take(golden.Declarations(d))
				}
				s.UnderWay(sink)
				for _, c := range sink.Commands {
					fmt.Fprintln(&out, spell(t, c))
				}
				for _, l := range view(s) {
					fmt.Fprintln(&out, l)
				}
				at, ok := s.Next()
				state := s.AppendState(nil)
				fmt.Fprintf(&out, "%v %v %v %d %v %x\n", s.Now(), at, ok, s.Active(), s.Performing(), state)
				for range 3 {
					broken := append([]byte(nil), state...)
					i := d.N(len(broken))
					broken[i] = golden.Pick(d, broken[i]+1, broken[i]-1, 0, 0xc0, broken[i]^0x80)
					r, err := choreography.RestoreScheduler(broken)
					if fmt.Fprintln(&out, i, err); err == nil {
						fmt.Fprintf(&out, "%x\n", r.AppendState(nil))
					}
				}
				step(fmt.Sprintf("%d played", n), out.String())
				out.Reset()
			}
			if n%10 != 0 {
				continue
			}
			// Each element of the time, the signals and the performances is replaced by others.
			state := s.AppendState(nil)
			for _, part := range []int{1, 5, 6} {
				for _, at := range msgptest.Spans(state, msgptest.At(state, part).Start) {
					for range 2 {
						put := golden.Pick(d, []byte{0}, []byte{1}, []byte{2}, []byte{3}, []byte{4}, []byte{0xff}, []byte{0x90}, []byte{0x91, 0}, []byte{0xc2}, []byte{0xc3}, []byte{state[at.Start] + 1}, []byte{state[at.Start] - 1})
						r, err := choreography.RestoreScheduler(msgptest.Put(state, at, put))
						if fmt.Fprintln(&out, part, at.Start, put, err); err == nil {
							fmt.Fprintln(&out, view(r))
						}
					}
				}
			}
			step(fmt.Sprintf("%d replaced", n), out.String())
		}
		for _, name := range []string{
			"linear", "easeIn", "easeOut", "easeInOut", "arc", "steps(1)", "steps(4)", "steps(3, start)", "steps(5,both)", "cubic-bezier(.1,.7,1,.1)", "cubic-bezier(0,0,1,1)", "cubic-bezier(.4,-2,.6,3)", "cubic-bezier(1,0,0,1)",
			"spring(1,100,20)", "spring(1,100,10)", "spring(2,50,1)", "spring(1,1,100)", "elastic(1, 0.3)", "elastic(2,.5)", "bounce", "", "steps(0)", "steps(x)", "cubic-bezier(2,0,0,1)", "cubic-bezier(1)", "spring(0,1,1)", "spring(1,2)", "unheard", "steps(3", "steps(3)x", "linear()",
		} {
			var out strings.Builder
			c, err := curve.Parse(name)
			for i := -1; i <= 41; i++ {
				fmt.Fprintf(&out, "%x ", c.At(float64(i)/40))
			}
			step("curve "+name, fmt.Sprint(c, err, out.String()))
		}
	})
}
