package stage_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/stage"
)

const recordedScene = `{"sajou": "scene", "version": 1, "stranger": "body", "looks": {"body": {"figure": "person", "color": "navy", "size": 48}}, "size": {"width": 400, "height": 300},
 "layers": ["ground", "people"], "slots": {"left": {"x": 100, "y": 200}, "right": {"x": 300, "y": 200}}, "waypoints": {"well": {"x": 200, "y": 100}},
 "routes": {"fence": {"points": [{"x": 0, "y": 0}, {"x": 100, "y": 0, "name": "corner"}, {"x": 100, "y": 50}], "closed": %v}},
 "entities": [{"id": "ann", "at": {"x": 10, "y": 200}, "layer": "people"}, {"id": "a", "actor": "crowd", "at": {"x": 10, "y": 20}}, {"id": "b", "actor": "crowd", "at": {"x": 30, "y": 20}}, {"id": "door", "at": {"x": 5, "y": 5}, "scale": 2}],
 "agents": [{"match": "w*", "slot": "right", "look": "body"}, {"match": "boss", "entity": "ann"}]}`

// A stage on which drawn choreographies are performed shows what it showed: its view,
// its frame, its bytes and its instants.
func TestRecordedStages(t *testing.T) {
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		for n := range uint64(110) {
			d := golden.NewDice(n)
			w := newWorld(stage.Config{Actions: actions})
			if !d.Once(5) {
				w.stage.SetScene(sceneOf(t, fmt.Sprintf(recordedScene, d.Once(2))))
			}
			if d.Once(4) {
				w.stage.SetMark("marked")
			}
			for {
				declarations, _ := language.Parse("drawn.json", []byte(golden.Declarations(d)))
				if declarations == nil {
					continue
				}
				for _, one := range declarations {
					if w.scheduler.Define(one) == nil && one.Word() == "choreography" {
						w.stage.Choreographed()
					}
				}
				break
			}
			now, told := time.Duration(0), 0
			for i := range 16 {
				switch d.N(6) {
				case 0, 1:
					typ, _, payload := golden.DeclaredSignal(d)
					w.signal(now, scriptSignal(t, typ+" "+payload))
				case 2:
					name := golden.Pick(d, "w1", "w2", "boss", "ann", fmt.Sprint("new", i), fmt.Sprint("late", i))
					w.signal(now, scriptSignal(t, golden.Pick(d,
						fmt.Sprintf(`agent_state_change {"agentId": %q, "from": "idle", "to": %q}`, name, golden.Pick(d, "thinking", "done", "error")),
						fmt.Sprintf(`tool_call {"agentId": %q, "toolName": "search", "callId": "k", "input": {}}`, name),
						fmt.Sprintf(`tool_result {"agentId": %q, "toolName": "search", "success": %v, "output": {}}`, name, d.Once(2)),
						fmt.Sprintf(`task_dispatch {"taskId": "t", "from": %q, "to": "boss", "description": "go"}`, name),
						fmt.Sprintf(`text_delta {"agentId": %q, "content": "hello", "index": 0}`, name),
						fmt.Sprintf(`completion {"agentId": %q, "taskId": "t", "success": true, "result": "r"}`, name),
						fmt.Sprintf(`error {"agentId": %q, "code": "c", "message": "m", "severity": "error"}`, name))))
				case 3:
					if at, ok := w.stage.NextBoundary(); ok {
						now = max(now, at)
					}
					w.advance(now)
				default:
					now += time.Duration(d.N(240)) * time.Millisecond / 2
					w.advance(now)
				}
				if d.Once(6) {
					w.restore(t)
				}
				var out strings.Builder
				tell := func(what string, v any) {
					text, err := json.Marshal(v)
					require.NoError(t, err)
					fmt.Fprintf(&out, "%s %s\n", what, text)
				}
				tell("view", w.stage.View())
				if diff := cmp.Diff(w.stage.View(), wholeOf(w.stage)); diff != "" {
					t.Errorf("(-view +members):\n%s", diff)
				}
				f := w.stage.Frame()
				tell("frame", []any{f.At, f.Figures, f.Beams, f.Sounds, f.Mark, f.Scene.Name()})
				for s := range f.ShownSounds() {
					tell("sound", s)
				}
				at, ok := w.stage.NextBoundary()
				until, ends := w.stage.Until()
				tell("times", []any{w.stage.Now(), at, ok, until, ends, w.stage.Moving(), w.stage.Len(), w.stage.Impressed()})
				unresolved := w.stage.Unresolved(told)
				told += len(unresolved)
				for _, u := range unresolved {
					fmt.Fprintln(&out, u)
				}
				for _, name := range []string{"ann", "crowd", "w1", "new2", "nobody"} {
					tell(name, w.stage.EntitiesNamed(name))
					for _, p := range []string{"x", "position.y", "visible", "state", "height", "home", "moving", "tint"} {
						if v, ok := w.stage.Property(name, p, now+20*time.Millisecond); ok {
							tell(p, v.String())
						}
						if v, ok := w.stage.ValueAt(name, p, now+10*time.Millisecond); ok {
							fmt.Fprintln(&out, v)
						}
					}
				}
				for seq := range w.seq {
					tell("acted", w.stage.ActedOn(seq+1, 1))
				}
				state := w.stage.Append(nil)
				fmt.Fprintf(&out, "%x\n%x\n", state, w.stage.AppendWithoutRemarks(nil))
				for range 4 {
					broken := append([]byte(nil), state...)
					i := d.N(len(broken))
					broken[i] = golden.Pick(d, broken[i]+1, broken[i]-1, 0, 0xc0, broken[i]^0x80)
					r, err := stage.Restore(w.cfg, broken)
					if fmt.Fprintln(&out, i, err); err == nil {
						fmt.Fprintf(&out, "%x\n", r.Append(nil))
					}
				}
				step(fmt.Sprintf("%d %d", n, i), out.String())
			}
		}
		// Many strangers fill the scene again and again.
		w := newWorld(stage.Config{})
		for i := range 700 {
			w.signal(0, scriptSignal(t, fmt.Sprintf(`agent_state_change {"agentId": "s%d", "from": "idle", "to": "thinking"}`, i)))
		}
		var out strings.Builder
		for _, f := range w.stage.Frame().Figures {
			fmt.Fprintln(&out, f.ID, f.X, f.Y)
		}
		step("strangers", out.String())
	})
}
