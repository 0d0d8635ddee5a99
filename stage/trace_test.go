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
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

const recordedScene = `{"sajou": "scene", "version": 1, "stranger": "body", "looks": {"body": {"figure": "person", "color": "navy", "size": 48}}, "size": {"width": 400, "height": 300},
 "layers": ["ground", "people"], "slots": {"left": {"x": 100, "y": 200}, "right": {"x": 300, "y": 200}}, "waypoints": {"well": {"x": 200, "y": 100}},
 "routes": {"fence": {"points": [{"x": 0, "y": 0}, {"x": 100, "y": 0, "name": "corner"}, {"x": 100, "y": 50}], "closed": %v}},
 "entities": [{"id": "ann", "at": {"x": 10, "y": 200}, "layer": "people"}, {"id": "a", "actor": "crowd", "at": {"x": 10, "y": 20}}, {"id": "b", "actor": "crowd", "at": {"x": 30, "y": 20}}, {"id": "door", "at": {"x": 5, "y": 5}, "scale": 2}],
 "agents": [{"match": "w*", "slot": "right", "look": "body"}, {"match": "boss", "entity": "ann"}]}`

// otherScene has some of the names of recordedScene, in other places, and some of its own.
const otherScene = `{"sajou": "scene", "version": 1, "looks": {"body": {"figure": "robot", "size": 30}, "other": {"color": "red", "size": 91}}, "stranger": "other", "size": {"width": 900, "height": 200}, "impressions": %v,
 "layers": ["people", "none", "ground"], "slots": {"right": {"x": 310, "y": 20}, "middle": {"x": 450, "y": 60}}, "waypoints": {"left": {"x": 90, "y": 9}}, "routes": {"fence": {"points": ["left", "middle", {"x": 900, "y": 1, "name": "corner"}]}},
 "entities": [{"id": "bob", "at": "middle", "look": "body", "label": "Bob", "layer": "ground", "opacity": 0.5, "rotation": 10, "state": "sleeping"}, {"id": "ann", "actor": "crowd", "at": "right", "hidden": true, "label": ""}],
 "agents": [{"match": "new*", "layer": "none", "look": "body"}, {"match": "late*", "slot": "middle"}, {"match": "boss", "entity": "bob"}]}`

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
				case 5:
					if n%2 == 0 || d.Once(2) {
						w.advance(now)
						break
					}
					if d.Once(4) {
						w.stage.SetScene(scene.Default())
					} else if text := golden.Pick(d, otherScene, otherScene, recordedScene); true {
						w.stage.SetScene(sceneOf(t, fmt.Sprintf(text, d.Once(2))))
					}
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
						fmt.Sprintf(`text_delta {"agentId": %q, "content": %q, "index": 0}`, name, golden.Pick(d, "hello", "", strings.Repeat("a long stream é ", 1+d.N(20)))),
						fmt.Sprintf(`thinking {"agentId": %q, "content": %q}`, name, golden.Pick(d, "hm", "", strings.Repeat("thought ", 30))),
						fmt.Sprintf(`token_usage {"agentId": %q, "promptTokens": 1, "completionTokens": 2}`, name),
						fmt.Sprintf(`user.click {"from": %q}`, name),
						fmt.Sprintf(`own.type {%q: %q, "to": %q, %q: "said"}`, golden.Pick(d, "from", "agentId", "source", "x"), name, golden.Pick(d, "boss", "w1", ""), golden.Pick(d, "text", "content", "message", "y")),
						fmt.Sprintf(`completion {"agentId": %q, "taskId": "t", "success": %v, "result": %q}`, name, d.Once(2), strings.Repeat("result ", d.N(50))),
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
				for _, name := range []string{"ann", "crowd", "w1", "new2", "bob", "door", "boss", "nobody"} {
					tell(name, w.stage.EntitiesNamed(name))
					for _, p := range []string{"x", "position.y", "visible", "state", "height", "home", "moving", "tint", "text", "opacity", "position.z", ""} {
						if v, ok := w.stage.Property(name, p, now+20*time.Millisecond); ok {
							tell(p, v.String())
						}
						for _, later := range []time.Duration{-5, 10, 700, 6000} {
							if v, ok := w.stage.ValueAt(name, p, now+later*time.Millisecond); ok {
								fmt.Fprintln(&out, v)
							}
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
			if n%8 != 0 {
				continue
			}
			// Each element of the state is replaced by others.
			var out strings.Builder
			state := w.stage.Append(nil)
			for _, at := range msgptest.Spans(state, 0) {
				for range 2 {
					put := golden.Pick(d, []byte{0}, []byte{1}, []byte{2}, []byte{7}, []byte{0xff}, []byte{0x90}, []byte{0x91, 0}, []byte{0xc0}, []byte{0xc2}, []byte{0xc3}, []byte{0xa0}, []byte{state[at.Start] + 1}, []byte{state[at.Start] - 1})
					r, err := stage.Restore(w.cfg, msgptest.Put(state, at, put))
					if fmt.Fprintln(&out, at.Start, put, err); err == nil {
						text, err := json.Marshal(r.View())
						require.NoError(t, err)
						fmt.Fprintf(&out, "%s %+v\n", text, r.Frame().Beams)
					}
				}
			}
			step(fmt.Sprintf("%d replaced", n), out.String())
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
