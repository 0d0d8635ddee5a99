package stage_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// used has a value of each parameter of each action that shows on the stage, and the
// other members that the step needs for it.
var used = map[string]map[string]string{
	"move": {
		"to": `"to":"far"`, "by": `"by":{"x":5,"y":5}`, "offset": `"to":"far","offset":{"x":3,"y":3}`, "height": `"to":"far","easing":"arc","height":7`,
		"animationDuring": `"to":"far","animationDuring":"walk"`, "animationOnArrival": `"to":"far","animationOnArrival":"rest"`,
	},
	"fly": {
		"to": `"to":"far"`, "by": `"by":{"x":5,"y":5}`, "offset": `"to":"far","offset":{"x":3,"y":3}`, "height": `"to":"far","height":7`,
		"animationDuring": `"to":"far","animationDuring":"walk"`, "animationOnArrival": `"to":"far","animationOnArrival":"rest"`,
	},
	"spawn": {
		"at": `"at":"far"`, "look": `"look":"bird"`, "label": `"label":"l"`, "state": `"state":"s"`, "text": `"text":"t"`,
		"scale": `"scale":2`, "opacity": `"opacity":0.5`, "rotation": `"rotation":9`, "layer": `"layer":1`,
	},
	"flash":        {"color": `"color":"red"`},
	"pulse":        {"amount": `"amount":3`, "scale": `"scale":3`},
	"drawBeam":     {"to": `"to":"far"`, "color": `"to":"far","color":"red"`, "width": `"to":"far","width":9`},
	"typeText":     {"text": `"text":"hello"`},
	"say":          {"text": `"text":"hello"`, "append": `"text":"hello","append":true`},
	"playSound":    {"sound": `"sound":"bell"`},
	"setAnimation": {"state": `"state":"s"`},
	"followRoute": {
		"route": `"route":"way"`, "from": `"route":"way","from":"b"`, "to": `"route":"way","to":"b"`, "reverse": `"route":"way","reverse":true`,
		"animationDuring": `"route":"way","animationDuring":"walk"`, "animationOnArrival": `"route":"way","animationOnArrival":"rest"`,
	},
	"set":     {"property": `"property":"opacity","value":0.5`, "value": `"property":"opacity","value":0.5`, "revert": `"property":"opacity","value":0.5,"revert":true`},
	"destroy": {},
}

// TestBuiltInActions checks that the stage performs each action of the table, and that
// each of its parameters changes the stage or its diagnostics.
func TestBuiltInActions(t *testing.T) {
	actions := stage.BuiltInActions()
	for action, params := range actions {
		for _, param := range params {
			with, ok := used[action][param]
			if !ok {
				t.Errorf("the test has no %s of %s", param, action)
				continue
			}
			var step map[string]any
			require.NoError(t, json.Unmarshal([]byte("{"+with+"}"), &step))
			delete(step, param)
			without, err := json.Marshal(step)
			require.NoError(t, err)
			if slices.Equal(performed(t, action, with), performed(t, action, string(without[1:len(without)-1]))) {
				t.Errorf("%s changes nothing in %s", param, action)
			}
		}
		if len(params) != len(used[action]) {
			t.Errorf("the test has %v of %s, the table %v", used[action], action, params)
		}
		for _, view := range performed(t, action, "") {
			if regexp.MustCompile(`there is no action`).MatchString(view) {
				t.Errorf("the stage does not know %s", action)
			}
		}
	}
	if len(actions) != len(used) {
		t.Errorf("the table has %d actions, the test %d", len(actions), len(used))
	}
}

// performed performs one step of an entity with a text, and returns the views of the
// stage before, in the middle and after it.
func performed(t *testing.T, action, members string) []string {
	t.Helper()
	const actor = `{"on":"go","steps":[{"action":"say","entity":"ann","text":"oh"},{"action":"wait","duration":10},
		{"action":%q,"entity":"ann","duration":100%s}]}`
	if members != "" {
		members = "," + members
	}
	declarations, diagnostics := language.Parse("", fmt.Appendf(nil, actor, action, members))
	require.False(t, diagnostics.Refused(), diagnostics.String())
	sc, diagnostics := scene.Parse("", []byte(`{"sajou":"scene","version":1,"layers":["back","front"],"waypoints":{"a":{"x":1,"y":1},"b":{"x":50,"y":9},"far":{"x":300,"y":90}},
		"routes":{"way":{"points":["a","b","far"]}},"entities":[{"id":"ann","at":"a"}]}`))
	require.False(t, diagnostics.Refused(), diagnostics.String())
	scheduler, s := choreography.NewScheduler(), stage.New(stage.Config{})
	scheduler.Observe(s, s)
	s.SetScene(sc)
	require.NoError(t, scheduler.Define(declarations[0]))
	s.Choreographed()
	scheduler.Signal(1, &signal.Signal{Type: "go"})
	var views []string
	for _, at := range []time.Duration{0, 60, 110} {
		scheduler.Advance(at * time.Millisecond)
		s.Advance(at * time.Millisecond)
		text, err := json.Marshal(s.View())
		require.NoError(t, err)
		views = append(views, string(text))
	}
	return views
}

// TestEveryParameterIsListed checks that the table has every name that the code of the
// package asks a step for.
func TestEveryParameterIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, params := range stage.BuiltInActions() {
		for _, param := range params {
			listed[param] = true
		}
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	asks := regexp.MustCompile(`(?:s\.current\.Param|nameParam|numberParam|textParam|flagParam|layerParam\(v,|resolvePlace|pointOnRoute)\(?\s*"(\w+)"`)
	found := 0
	for _, file := range files {
		if matched, _ := filepath.Match("*_test.go", file); matched {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range asks.FindAllStringSubmatch(string(text), -1) {
			found++
			if !listed[m[1]] {
				t.Errorf("%s asks for %s, which no action lists", file, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d questions were found: the test looks for the wrong thing", found)
	}
}

// The width of a beam is bounded, and a beam of every width is restored.
func TestWidthOfBeams(t *testing.T) {
	for width, want := range map[string]float64{"0": 0, "-2": 0, "0.5": 0.5, "1000": 1000, "1e9": 1000, `"x"`: 3} {
		w := newWorld(stage.Config{})
		w.define(t, `[{"on": "x", "steps": [{"action": "drawBeam", "entity": "ann", "to": {"x": 1, "y": 2}, "width": `+width+`}]}]`)
		w.signal(0, &signal.Signal{Type: "x"})
		w.advance(0)
		w.restore(t)
		require.Equal(t, want, w.stage.Frame().Beams[0].Width, width)
	}
}
