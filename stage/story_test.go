package stage_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// world is a choreographer with its stage, joined as a fold joins them.
type world struct {
	scheduler *choreography.Scheduler
	stage     *stage.Stage
	cfg       stage.Config
	seq       uint64
}

func newWorld(cfg stage.Config) *world {
	w := &world{scheduler: choreography.NewScheduler(), stage: stage.New(cfg), cfg: cfg}
	w.scheduler.Observe(w.stage, w.stage)
	return w
}

func (w *world) define(t testing.TB, text string) {
	t.Helper()
	declarations, diagnostics := language.Parse("definitions.json", []byte(text))
	require.NoError(t, diagnostics.Err(definition.ErrInvalid))
	for _, d := range declarations {
		require.NoError(t, w.scheduler.Define(d))
		if d.Word() == "choreography" {
			w.stage.Choreographed()
		}
	}
}

func (w *world) advance(to time.Duration) {
	w.scheduler.Advance(to)
	w.stage.Advance(to)
}

// signal applies a signal as a fold does.
func (w *world) signal(at time.Duration, sig *signal.Signal) {
	w.seq++
	w.scheduler.Advance(at)
	w.scheduler.Signal(w.seq, sig)
	w.stage.Advance(at)
	w.stage.Signal(w.seq, sig)
}

// restore replaces the world by one that is restored from its bytes.
func (w *world) restore(t rapid.TB) {
	t.Helper()
	scheduler, err := choreography.RestoreScheduler(w.scheduler.AppendState(nil))
	if err != nil {
		t.Fatal(err)
	}
	state := w.stage.Append(nil)
	st, err := stage.Restore(w.cfg, state)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	if again := st.Append(nil); !bytes.Equal(state, again) {
		t.Fatalf("the state comes back as\n%x, was\n%x", again, state)
	}
	if diff := cmp.Diff(told(w.stage), told(st)); diff != "" {
		t.Fatalf("the stage comes back otherwise (-before +restored):\n%s", diff)
	}
	// A restored stage has no cache, so Until scans all entities.
	until, moving := w.stage.Until()
	if u, m := st.Until(); u != until || m != moving || w.stage.Moving() != moving {
		t.Fatalf("moves until %v: %v (%v), restored until %v: %v", until, moving, w.stage.Moving(), u, m)
	}
	w.scheduler, w.stage = scheduler, st
	scheduler.Observe(st, st)
}

// TestStories runs the stories in testdata. A story has a scene, definitions and a
// script, and expects the stage at the moments that the script names. The lines of a
// script are
//
//	signal TYPE [id=CORRELATION] [source=SOURCE] PAYLOAD
//	advance DURATION
//	stage [ENTITY…]  print the frame, or only some entities
//	moving           print what moves without an event, and until when
//	diagnostics      print the diagnostics
//	scene FILE       bring another scene into force
//	define FILE      bring more definitions into force
//	restore          continue from the state bytes
//
// Each story is told twice: once by the same stage all along, and once by one that is
// restored from its bytes wherever it is printed. Both tell the same and end in the same
// state.
func TestStories(t *testing.T) {
	golden.Tell(t, "testdata/*.txtar", tell)
}

func tell(t *testing.T, files map[string]string) string {
	t.Helper()
	got, end := perform(t, files, true)
	without, endWithout := perform(t, files, false)
	if diff := cmp.Diff(without, got); diff != "" {
		t.Errorf("it goes on otherwise when it is restored (-live +restored):\n%s", diff)
	}
	if !bytes.Equal(end, endWithout) {
		t.Errorf("it ends in the state\n%x\nwhen it is restored, live in\n%x", end, endWithout)
	}
	return got
}

// perform returns what a story tells and the bytes of its last state.
func perform(t *testing.T, files map[string]string, restored bool) (story string, end []byte) {
	t.Helper()
	w := newWorld(stage.Config{Actions: actions})
	if text, ok := files["scene.json"]; ok {
		w.stage.SetScene(sceneOf(t, text))
	}
	if text, ok := files["definitions.json"]; ok {
		w.define(t, text)
	}
	var out strings.Builder
	for line := range strings.Lines(files["script"]) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		fmt.Fprintf(&out, "%s\n", line)
		verb, rest, _ := strings.Cut(line, " ")
		var lines []string
		switch verb {
		case "signal":
			w.signal(w.stage.Now(), scriptSignal(t, rest))
		case "advance":
			d, err := time.ParseDuration(rest)
			require.NoError(t, err)
			w.advance(w.stage.Now() + d)
		case "stage":
			if restored {
				w.restore(t)
			}
			lines = told(w.stage)
			if only := strings.Fields(rest); len(only) > 0 {
				lines = slices.DeleteFunc(lines, func(l string) bool {
					return !slices.Contains(only, strings.Fields(l)[0])
				})
			}
		case "moving":
			until, moving := w.stage.Until()
			lines = append(lines, fmt.Sprintf("until %v: %v", until, moving))
			if moving != w.stage.Moving() {
				t.Errorf("Moving = %v, Until says %v", w.stage.Moving(), moving)
			}
			entities := w.stage.View().(map[string]any)["entities"].(map[string]any)
			for _, f := range w.stage.Frame().Figures {
				e := entities[f.ID].(map[string]any)
				if l := e["moving"].([]any); len(l) > 0 {
					line := fmt.Sprintf("%s: %v", f.ID, l)
					if e["conflicted"] == true {
						line += " conflicted"
					}
					lines = append(lines, line)
				}
			}
		case "diagnostics":
			d := w.stage.View().(map[string]any)["diagnostics"].(map[string]any)
			for _, n := range d["recent"].([]any) {
				n := n.(map[string]any)
				lines = append(lines, fmt.Sprintf("%vms %s: %s", n["at"], n["kind"], n["message"]))
			}
			for _, u := range w.stage.Unresolved(0) {
				lines = append(lines, fmt.Sprintf("%v %s: %s", u.At, u.Performance, u))
			}
			lines = append(lines, fmt.Sprintf("%d in all, %d conflicts", d["total"], d["conflicts"]))
		case "scene":
			w.stage.SetScene(sceneOf(t, files[rest]))
		case "define":
			w.define(t, files[rest])
		case "restore":
			if restored {
				w.restore(t)
			}
		default:
			t.Fatalf("what is %q?", line)
		}
		for _, l := range lines {
			fmt.Fprintf(&out, "\t%s\n", l)
		}
	}
	return out.String(), w.stage.Append(nil)
}

func sceneOf(t rapid.TB, text string) *scene.Scene {
	t.Helper()
	s, err := sceneFrom(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sceneFrom(text string) (*scene.Scene, error) {
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		return nil, err
	}
	return scene.Compile(v)
}

func scriptSignal(t testing.TB, s string) *signal.Signal {
	t.Helper()
	typ, rest, _ := strings.Cut(s, " ")
	sig := &signal.Signal{Type: typ, Source: "adapter:test"}
	if id, ok := strings.CutPrefix(rest, "id="); ok {
		id, rest, _ = strings.Cut(id, " ")
		sig.CorrelationID = &id
	}
	if source, ok := strings.CutPrefix(rest, "source="); ok {
		sig.Source, rest, _ = strings.Cut(source, " ")
	}
	var err error
	if sig.Payload, err = signal.ParseValue([]byte(rest)); err != nil {
		t.Fatalf("payload %s: %v", rest, err)
	}
	return sig
}

// told prints a frame, one line for each element in the order in which they are drawn.
// Default values are left out.
func told(s *stage.Stage) []string {
	var lines []string
	f := s.Frame()
	num := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, g := range f.Figures {
		line := fmt.Sprintf("%-8s x=%s y=%s", g.ID, num(g.X), num(g.Y))
		if g.Height != 0 {
			line += " height=" + num(g.Height)
		}
		if g.Actor != g.ID {
			line += " actor=" + g.Actor
		}
		if g.Label != g.ID {
			line += fmt.Sprintf(" label=%q", g.Label)
		}
		if g.Look.Figure != "person" {
			line += " look=" + g.Look.Figure
		}
		if !g.Visible {
			line += " hidden"
		}
		for _, v := range []struct {
			name        string
			value, than float64
		}{{"opacity", g.Opacity, 1}, {"scale", g.Scale, 1}, {"rotation", g.Rotation, 0}, {"layer", float64(g.Layer), 0}} {
			if v.value != v.than {
				line += " " + v.name + "=" + num(v.value)
			}
		}
		if g.Strength > 0 {
			line += " tint=" + g.Tint + ":" + num(g.Strength)
		}
		if g.State != "idle" {
			line += " state=" + g.State
		}
		if g.Text != "" {
			line += fmt.Sprintf(" says %q", g.Text)
			if g.TextOpacity < 1 {
				line += ":" + num(g.TextOpacity)
			}
		}
		lines = append(lines, line)
	}
	for _, b := range f.Beams {
		line := fmt.Sprintf("beam     %s -> %s (%s,%s)-(%s,%s) %s %s", b.From, b.To,
			num(b.FromX), num(b.FromY), num(b.ToX), num(b.ToY), b.Color, num(b.Width))
		if b.Opacity < 1 {
			line += " opacity=" + num(b.Opacity)
		}
		lines = append(lines, line)
	}
	for _, sound := range f.Sounds {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("sound    %s at %v %s", sound.Sound, sound.At, sound.Entity)))
	}
	return lines
}
