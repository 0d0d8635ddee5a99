package rehearsal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
)

func spawn(id, entity string) choreography.Command {
	return choreography.Command{Kind: choreography.CommandExecute, PerformanceID: id, Action: "spawn", EntityRef: entity}
}

// TestCompare shows what counts as the same: numbers by value, progress and
// times within their tolerance, everything else exactly.
func TestCompare(t *testing.T) {
	base := choreography.Command{
		At: time.Second, Kind: choreography.CommandUpdate, PerformanceID: "p1", Action: "move",
		Params: map[string]any{"n": int64(5), "list": []any{int64(1), nil}}, Progress: 0.5, Elapsed: time.Second,
	}
	tests := []struct {
		name   string
		change func(*choreography.Command)
		same   bool
	}{
		{"nothing", func(*choreography.Command) {}, true},
		{"5 and 5.0", func(c *choreography.Command) { c.Params = map[string]any{"n": 5.0, "list": []any{1.0, nil}} }, true},
		{"progress by 1e-10", func(c *choreography.Command) { c.Progress += 1e-10 }, true},
		{"progress by 1e-8", func(c *choreography.Command) { c.Progress += 1e-8 }, false},
		{"a microsecond", func(c *choreography.Command) { c.At += time.Microsecond }, false},
		{"null for absent", func(c *choreography.Command) {
			c.Params = map[string]any{"n": 5.0, "list": []any{1.0, nil}, "x": nil}
		}, false},
		{"a number as text", func(c *choreography.Command) { c.Params = map[string]any{"n": "5", "list": []any{1.0, nil}} }, false},
		{"progress by less than 1e-9", func(c *choreography.Command) { c.Progress -= 0.9e-9 }, true},
		{"a nanosecond later", func(c *choreography.Command) { c.At++ }, true},
		{"a nanosecond earlier", func(c *choreography.Command) { c.At-- }, true},
		{"two nanoseconds later", func(c *choreography.Command) { c.At += 2 }, false},
		{"two nanoseconds earlier", func(c *choreography.Command) { c.At -= 2 }, false},
		{"a nanosecond more", func(c *choreography.Command) { c.Elapsed++ }, true},
		{"two nanoseconds more", func(c *choreography.Command) { c.Elapsed += 2 }, false},
		{"two nanoseconds less", func(c *choreography.Command) { c.Elapsed -= 2 }, false},
		{"5 without a sign", func(c *choreography.Command) {
			c.Params = map[string]any{"n": uint64(5), "list": []any{uint64(1), nil}}
		}, true},
		{"another name", func(c *choreography.Command) { c.Params = map[string]any{"m": 5.0, "list": []any{1.0, nil}} }, false},
		{"a longer list", func(c *choreography.Command) { c.Params = map[string]any{"n": 5.0, "list": []any{1.0, nil, nil}} }, false},
		{"a text for a list", func(c *choreography.Command) { c.Params = map[string]any{"n": 5.0, "list": "1"} }, false},
		{"an object for a list", func(c *choreography.Command) {
			c.Params = map[string]any{"n": 5.0, "list": map[string]any{"0": 1.0}}
		}, false},
		{"another action", func(c *choreography.Command) { c.Action = "fly" }, false},
		{"another performance", func(c *choreography.Command) { c.PerformanceID = "p2" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := base
			tt.change(&want)
			v := rehearsal.Compare([]choreography.Command{base}, []choreography.Command{want})
			if v.Same != tt.same {
				t.Errorf("Same = %v, want %v: %s", v.Same, tt.same, v.Difference)
			}
		})
	}
}

// TestCompareInterleaving shows that streams which differ only between
// performances are reported as such, and not as a pass.
func TestCompareInterleaving(t *testing.T) {
	got := []choreography.Command{spawn("p1", "a"), spawn("p2", "b"), spawn("p1", "c")}
	want := []choreography.Command{spawn("p1", "a"), spawn("p1", "c"), spawn("p2", "b")}
	v := rehearsal.Compare(got, want)
	if v.Same || !v.Interleaving || v.Index != 1 || !strings.Contains(v.Difference, "same per performance, other interleaving") {
		t.Errorf("verdict %+v, want another interleaving from 1 on", v)
	}
	if v := rehearsal.Compare(got[:2], want[:2]); v.Same || v.Interleaving {
		t.Errorf("verdict %+v, want a plain difference", v)
	}
	if v := rehearsal.Compare(got[:2], got); v.Same || v.Interleaving || v.Index != 2 {
		t.Errorf("verdict %+v, want a missing command at 2", v)
	}
	if v := rehearsal.Compare(got, got[:2]); v.Same || v.Interleaving || v.Index != 2 || !strings.Contains(v.Difference, "too many") {
		t.Errorf("verdict %+v, want a command too many at 2", v)
	}
	// The order in one performance is part of what it does.
	if v := rehearsal.Compare([]choreography.Command{spawn("p1", "a"), spawn("p1", "b")}, []choreography.Command{spawn("p1", "b"), spawn("p1", "a")}); v.Same || v.Interleaving || v.Index != 0 {
		t.Errorf("verdict %+v, want a plain difference", v)
	}
	// Two that do the same are two.
	if v := rehearsal.Compare([]choreography.Command{spawn("p1", "a"), spawn("p2", "a"), spawn("p3", "b")}, []choreography.Command{spawn("p1", "a"), spawn("p2", "b"), spawn("p3", "b")}); v.Same || v.Interleaving || v.Index != 1 {
		t.Errorf("verdict %+v, want a plain difference", v)
	}
}

// TestParseRefuses shows that a file which is no scenario has diagnostics and is never
// an empty scenario that passes.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		``, `[`, `[]`, `{}`, `7`, `{"script":null}`, `{"script":7}`, `{"script":[],"definitions":{}}`, `{"script":[],"expected":[7]}`, `{"script":[{}]}`, `{"script":[{"advance":-1}]}`, `{"script":[{"signal":7}]}`,
		`{"script":[],"definitions":[7]}`, `{"script":[{"advance":1,"signal":{}}]}`,
	} {
		if s, diagnostics := rehearsal.Parse("f", []byte(text)); len(s) > 0 || len(diagnostics) == 0 {
			t.Errorf("Parse(%q) = %v, %v, want diagnostics alone", text, s, diagnostics)
		}
	}
}

// TestManyFindings shows that a file has 50 diagnostics at most.
func TestManyFindings(t *testing.T) {
	for n, want := range map[int]int{49: 49, 50: 50, 51: 50, 200: 50} {
		_, diagnostics := rehearsal.Parse("f", []byte(`{"script":[],"expected":[`+strings.Repeat("7,", n-1)+`7]}`))
		require.Len(t, diagnostics, want, n)
	}
}

// TestParsePlaces shows that what is wrong has its line and column, in a
// definition too.
func TestParsePlaces(t *testing.T) {
	const text = `[
  { "id": "a", "script": [] },
  { "id": 7, "script": [ {"advance": "soon"}, {"advance": 1, "signal": {}},
      {"signal": "none"} ],
    "definitions": [ { "on": "x", "steps": [] }, { "on": "y",
        "steps": [ { "action": "include", "sequence": "z" } ] } ],
    "expected": [ {"kind": "start"},
      {"kind": 3} ],
    "values": [ {"path": "stage.now", "value": 0},
      {"path": "now", "value": 0} ] },
  { "scrpt": [] }
]`
	scenarios, diagnostics := rehearsal.Parse("f", []byte(text))
	var got []string
	for _, d := range diagnostics {
		got = append(got, fmt.Sprintf("%d:%d %s %s", d.Line, d.Column, d.Pointer, d.Message))
	}
	want := []string{
		"3:11 /1/id id is a text",
		"3:38 /1/script/0/advance advance is a number of milliseconds, at least 0",
		`3:47 /1/script/1 a step of the script is {"signal": envelope} or {"advance": ms}`,
		"4:18 /1/script/2/signal this is no signal: signal: must be an object, not a string",
		`6:55 /1/definitions/1/steps/0/sequence there is no sequence "z"`,
		"8:7 /1/expected/1 this is no command: ",
		`10:7 /1/values/1 a value is `,
		`11:3 /2 "script" is missing: the signals that come, and the time that passes`,
	}
	if scenarios != nil || len(got) != len(want) {
		t.Fatalf("%v, %q", scenarios, got)
	}
	for i := range got {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

// FuzzRead shows that no text does harm, and that it gives scenarios or says
// why not.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":"a","script":[{"signal":{"type":"x","payload":{}}},{"advance":1e300}],"definitions":[{"on":"x","steps":[]}],"expected":[]}`))
	f.Add([]byte(`[{"script":[],"definitions":[{"on":"y","steps":[{"action":"include","sequence":"z"}]}]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		scenarios, diagnostics := rehearsal.Parse("f", text)
		if (len(scenarios) == 0) == (len(diagnostics) == 0) {
			t.Errorf("%d scenarios and %d diagnostics", len(scenarios), len(diagnostics))
		}
		lines := strings.Count(string(text), "\n") + 1
		for _, d := range diagnostics {
			if d.Line < 1 || d.Line > lines || d.Column < 1 {
				t.Errorf("%v, in %d lines", d, lines)
			}
		}
	})
}

// TestRemarks shows that definitions that a session would refuse are errors among the
// remarks, also behind more warnings than are reported.
func TestRemarks(t *testing.T) {
	text := `{"script": [], "definitions": [` + strings.Repeat(`{"on": "x", "steps": []},`, 60) + `{"on": "y"}]}`
	remarks := rehearsal.Remarks("a.json", []byte("["+strings.Repeat(text+",", 3)+text+"]"))
	assert.True(t, remarks.Refused())
	assert.Equal(t, `"steps" is missing`, remarks.Only(authored.SeverityError)[0].Message)
	assert.Less(t, len(remarks), 110)
	scenarios, diagnostics := rehearsal.Parse("a.json", []byte(text))
	assert.Len(t, scenarios, 1)
	assert.Empty(t, diagnostics)
}

// A scenario that gives fewer commands than the limit returns them, and one that reaches it
// returns none. Performances have names in the order of their first commands.
func TestRunAtMost(t *testing.T) {
	scenarios, diagnostics := rehearsal.Parse("a.json", []byte(`{"definitions": [
		{"on": "x", "steps": [{"action": "wait", "duration": 5}, {"action": "spawn", "entity": "late"}]}, {"on": "x", "steps": [{"action": "spawn", "entity": "soon"}]}, {"on": "y", "steps": [{"action": "spawn", "entity": "last"}]}],
		"script": [{"signal": {"id": "1", "type": "x", "timestamp": 0, "source": "s", "payload": {}}}, {"advance": 2}, {"advance": 9}, {"signal": {"id": "2", "type": "y", "timestamp": 0, "source": "s", "payload": {}}}, {"advance": 1e300}, {"advance": 1}]}`))
	require.Empty(t, diagnostics)
	commands, complete := rehearsal.RunAtMost(scenarios[0], 4)
	require.True(t, complete)
	var got []string
	for _, c := range commands {
		got = append(got, fmt.Sprint(c.PerformanceID, " ", c.EntityRef, " ", c.At))
	}
	assert.Equal(t, []string{"p1 soon 0s", "p2 late 5ms", "p3 last 11ms"}, got)
	for limit := range 4 {
		commands, complete := rehearsal.RunAtMost(scenarios[0], limit)
		assert.False(t, complete, limit)
		assert.Empty(t, commands, limit)
	}
	assert.Len(t, rehearsal.Run(scenarios[0]), 3)
}

// A scenario that gives as many commands as the bound has none, wherever in its script it
// reaches the bound, and one that gives a command less has all of them.
func TestBoundOfCommands(t *testing.T) {
	scenarios, diagnostics := rehearsal.Parse("f", []byte(`{"definitions": [{"on": "go", "steps": [{"action": "a"}, {"action": "b"}, {"action": "c"}]}],
		"script": [{"signal": {"id": "1", "type": "go", "timestamp": 1, "source": "s", "payload": {}}}, {"advance": 1}, {"signal": {"id": "2", "type": "go", "timestamp": 1, "source": "s", "payload": {}}}, {"advance": 1}]}`))
	require.Empty(t, diagnostics)
	require.Len(t, rehearsal.Run(scenarios[0]), 6)
	for limit := range 9 {
		commands, complete := rehearsal.RunAtMost(scenarios[0], limit)
		require.Equal(t, limit > 6, complete, limit)
		require.Len(t, commands, map[bool]int{true: 6}[complete], limit)
	}
	require.Empty(t, rehearsal.Remarks("f", []byte(`{"script": [`)))
}
