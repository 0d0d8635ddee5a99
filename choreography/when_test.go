package choreography_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

func compiled(t testing.TB, text string) *definition.Definition {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoErrorf(t, err, "%s", text)
	d, err := definition.Compile(v)
	require.NoErrorf(t, err, "%s", text)
	return d
}

// A path on the stage names an entity and one of its properties; an entity may be taken
// from the signal, but is not the whole signal.
func TestStagePaths(t *testing.T) {
	for path, remark := range map[string]string{
		"ann.x": "", "a.b.x": "", "signal.from.x": "", "signal.x.": "names no property", "a.x": "", "ann.position.x": "", "signals.x": "", "x.signal.y": "",
		"ann": "names no property", "": "names no property", ".x": "names no property", "ann.": "names no property", ".": "names no property",
		"signal.x": "names no property", "signal.from": "names no property", "signal..x": "the reference names no field", "signal.taskid.x": "has no field",
	} {
		_, diagnostics := language.Parse("p.json", []byte(`{"on": "task_dispatch", "when": {"stage:`+path+`": {"exists": true}}, "steps": [{"action": "wait", "duration": 1}]}`))
		got := ""
		for _, d := range diagnostics {
			got += d.Message
		}
		if (remark == "") != (got == "") || !strings.Contains(got, remark) {
			t.Errorf("stage:%s: %q, want %q", path, got, remark)
		}
	}
}

// TestWhen judges conditions against one payload, for signals of type x.
func TestWhen(t *testing.T) {
	payload, err := signal.ParseValue([]byte(`{
		"n":5,"f":5.0,"big":9007199254740993,"bigger":9007199254740992.0,"huge":18446744073709551615,"zero":0,"s":"five","e":"","t":true,"z":null,"o":{"k":[1,{"d":"deep"}]},
		"type":"mine","type2":1,"spaced":"a\u00a0b","accent":"café","emoji":"😀","line":"a\nb","dash":"a-b"}`))
	require.NoError(t, err)
	sig := &signal.Signal{Type: "x", Payload: payload}
	tests := []struct {
		when string
		want bool
	}{
		{`{}`, true},
		{`[]`, true},
		{`[{}]`, true},
		{`"x"`, true},
		{`{"signal.n":{}}`, true},
		{`{"signal.n":5}`, true},
		{`{"signal.n":{"more":6}}`, true},

		{`{"signal.n":{"equals":5}}`, true},
		{`{"n":{"equals":5}}`, true},
		{`{"signal.n":{"equals":5.0}}`, true},
		{`{"signal.f":{"equals":5}}`, true},
		{`{"signal.n":{"equals":"5"}}`, false},
		{`{"signal.big":{"equals":9007199254740992}}`, false},
		{`{"signal.big":{"equals":9007199254740993}}`, true},
		// A number that is not an integer is compared as a double, whatever the other is.
		{`{"signal.big":{"equals":9007199254740992.0}}`, true},
		{`{"signal.big":{"gt":9007199254740992.0}}`, false},
		{`{"signal.big":{"gt":9007199254740992}}`, true},
		{`{"signal.bigger":{"equals":9007199254740993}}`, true},
		{`{"signal.bigger":{"lt":9007199254740993}}`, false},
		{`{"signal.huge":{"equals":18446744073709551614}}`, true},
		{`{"signal.huge":{"gt":1}}`, true},
		{`{"signal.n":{"lt":18446744073709551615}}`, true},
		{`{"signal.huge":{"equals":18446744073709551615}}`, true},
		{`{"signal.huge":{"gt":9223372036854775807}}`, true},
		{`{"signal.s":{"equals":"five"}}`, true},
		{`{"signal.t":{"equals":true}}`, true},
		{`{"signal.t":{"equals":1}}`, false},
		{`{"signal.z":{"equals":null}}`, true},
		{`{"signal.none":{"equals":null}}`, false},
		{`{"signal.o":{"equals":{"k":1}}}`, false},
		{`{"signal.o.k.0":{"equals":1}}`, true},
		{`{"signal.o.k.1.d":{"equals":"deep"}}`, true},
		{`{"signal.o.k.length":{"exists":true}}`, false},
		{`{"signal.type":{"equals":"x"}}`, true},
		{`{"type":{"equals":"x"}}`, true},
		{`{"signal.type2":{"equals":1}}`, true},

		{`{"signal.s":{"contains":"iv"}}`, true},
		{`{"signal.s":{"contains":"IV"}}`, false},
		{`{"signal.e":{"contains":""}}`, true},
		{`{"signal.n":{"contains":"5"}}`, false},

		{`{"signal.n":{"gt":4.5}}`, true},
		{`{"signal.n":{"gt":5}}`, false},
		{`{"signal.n":{"lt":5.5,"gt":4}}`, true},
		{`{"signal.n":{"lt":5.5,"gt":6}}`, false},
		{`{"signal.s":{"lt":5}}`, false},
		{`{"signal.none":{"lt":5}}`, false},

		{`{"signal.zero":{"exists":true}}`, true},
		{`{"signal.e":{"exists":true}}`, true},
		{`{"signal.z":{"exists":true}}`, false},
		{`{"signal.z":{"exists":false}}`, true},
		{`{"signal.none":{"exists":0}}`, true},
		{`{"signal.s":{"exists":"yes"}}`, true},

		{`{"signal.n":{"not":{"equals":5}}}`, false},
		{`{"signal.n":{"not":{"not":{"equals":5}}}}`, true},
		{`{"signal.n":{"not":{"equals":6},"gt":100}}`, true},
		{`{"signal.n":{"not":{}}}`, false},
		{`{"signal.n":{"equals":5},"signal.s":{"equals":"six"}}`, false},
		{`[{"signal.n":{"equals":6}},{"signal.s":{"equals":"five"}}]`, true},
		{`[{"signal.n":{"equals":6}},{"signal.s":{"equals":"six"}}]`, false},

		{`{"signal.s":{"matches":"^f.v"}}`, true},
		{`{"signal.n":{"matches":"5"}}`, false},
		{`{"signal.s":{"matches":"([unclosed"}}`, false},
		{`{"signal.s":{"not":{"matches":"([unclosed"}}}`, true},
		{`{"signal.s":{"matches":7}}`, false},
		{`{"signal.spaced":{"matches":"a\\sb"}}`, true},
		{`{"signal.spaced":{"matches":"a[\\s]b"}}`, true},
		{`{"signal.spaced":{"matches":"a\\Sb"}}`, false},
		{`{"signal.accent":{"matches":"\\u00e9$"}}`, true},
		{`{"signal.accent":{"matches":"[\\u00e0-\\u00ff]$"}}`, true},
		{`{"signal.accent":{"matches":"caf\\w"}}`, false},
		{`{"signal.emoji":{"matches":"^\\ud83d\\ude00$"}}`, true},
		{`{"signal.line":{"matches":"a.b"}}`, false},
		{`{"signal.line":{"matches":"a[^]b"}}`, true},
		{`{"signal.line":{"matches":"a$"}}`, false},
		{`{"signal.s":{"matches":"[]"}}`, false},
		{`{"signal.dash":{"matches":"^[a\\-z]+$"}}`, false},
		{`{"signal.dash":{"matches":"^[ab\\-]+$"}}`, true},
		{`{"signal.s":{"matches":"\\x66ive"}}`, true},
		{`{"signal.s":{"matches":"\\Five"}}`, false},
		{`{"signal.s":{"matches":"f\\ive"}}`, true},
		{`{"signal.s":{"matches":"(?<name>i)v"}}`, true},
		{`{"signal.s":{"matches":"(?:i)v"}}`, true},
		{`{"signal.s":{"matches":"(?<name>i)\\k<name>"}}`, false},
		{`{"signal.s":{"matches":"f(?!x)"}}`, false},
		{`{"signal.s":{"matches":"(i)\\1?"}}`, false},
		{`{"signal.s":{"matches":"i\\b"}}`, false},
		{`{"signal.s":{"matches":"i\\B"}}`, true},
		{`{"signal.s":{"matches":"[\\b\\B]"}}`, false},
		{`{"signal.s":{"matches":"[^\\0\\cA]"}}`, true},
		{`{"signal.s":{"matches":"\\0|\\cJ"}}`, false},
		{`{"signal.line":{"matches":"\\cJ"}}`, true},
		{`{"signal.s":{"matches":"\\c1?|\\0123"}}`, false},
		{`{"signal.s":{"matches":"\\xzz|\\uzzzz|five"}}`, true},
		{`{"signal.emoji":{"matches":"\\ud83d"}}`, false},
		{`{"signal.s":{"matches":"[^\\S]"}}`, false},
		{`{"signal.spaced":{"matches":"^a[^\\S]b$"}}`, true},
		{`{"signal.spaced":{"matches":"^a[\\S]b$"}}`, false},
		{`{"signal.line":{"matches":"^a[\\s\\S]b$"}}`, true},
		{`{"signal.emoji":{"matches":"^[-\\S]$"}}`, true},
		{`{"signal.s":{"matches":"five\\"}}`, false},
		{`{"signal.s":{"matches":"^*five"}}`, false},
		{`{"signal.s":{"matches":"^{1}five"}}`, false},
		{`{"signal.s":{"matches":"\\b+five"}}`, false},
		{`{"signal.s":{"matches":"^five|^{,1}"}}`, true},
		{`{"signal.s":{"matches":"^\\w{4}$"}}`, true},
		{`{"signal.s":{"matches":"(x{500}){2}{2}|five"}}`, false},
		{`{"signal.s":{"matches":"` + strings.Repeat("x{1000}", 30) + `|five"}}`, false},
		{`{"signal.s":{"matches":"` + strings.Repeat("x", 5000) + `|five"}}`, false},
		{`{"signal.s":{"matches":"(?i)FIVE"}}`, false},
		{`{"signal.s":{"matches":"[[:alpha:]]"}}`, false},
	}
	for _, tt := range tests {
		d := compiled(t, fmt.Sprintf(`{"on":"x","when":%s,"steps":[]}`, tt.when))
		if got := d.Matches(sig); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.when, got, tt.want)
		}
	}
	if !compiled(t, `{"on":"x","when":null}`).Matches(sig) {
		t.Error("when null restricts")
	}
	if compiled(t, `{"on":"X"}`).Matches(sig) {
		t.Error("another type matches")
	}
}

// TestResolver shows what references reach.
func TestResolver(t *testing.T) {
	payload, err := signal.ParseValue([]byte(`{"a":{"b":[10,null]},"type":"payload's","":{"":1}}`))
	require.NoError(t, err)
	r := definition.Resolver{Type: "x", Payload: payload}
	tests := []struct {
		written string
		want    string // JSON; "" is missing
	}{
		{`"plain"`, `"plain"`},
		{`"Signal.a"`, `"Signal.a"`},
		{`"signal"`, `"signal"`},
		{`["signal.a"]`, `["signal.a"]`},
		{`7`, `7`},
		{`"signal.type"`, `"x"`},
		{`"signal.a"`, `{"b":[10,null]}`},
		{`"signal.a.b.0"`, `10`},
		{`"signal.a.b.1"`, `null`},
		{`"signal.a.b.2"`, ``},
		{`"signal.a.b.1.c"`, ``},
		{`"signal.a.b.0.c"`, ``},
		{`"signal.."`, `1`},
		{`"signal.id"`, ``},
	}
	for _, tt := range tests {
		v, err := signal.ParseValue([]byte(tt.written))
		require.NoError(t, err)
		got := ""
		if v, ok := r.Resolve(v); ok {
			text, err := json.Marshal(v)
			require.NoError(t, err)
			got = string(text)
		}
		if got != tt.want {
			t.Errorf("%s resolves to %q, want %q", tt.written, got, tt.want)
		}
	}
	if _, ok := (definition.Resolver{}).Lookup("a"); ok {
		t.Error("something in an absent payload")
	}
}

// TestEase holds the curves to their values at a few points.
func TestEase(t *testing.T) {
	tests := map[string][5]float64{ // at 0, ¼, ½, ¾, 1
		"linear":    {0, 0.25, 0.5, 0.75, 1},
		"easeIn":    {0, 0.0625, 0.25, 0.5625, 1},
		"easeOut":   {0, 0.4375, 0.75, 0.9375, 1},
		"easeInOut": {0, 0.0625, 0.5, 0.9375, 1},
		"arc":       {0, 0.75, 1, 0.75, 0},
		"unheard":   {0, 0.25, 0.5, 0.75, 1},
	}
	for name, want := range tests {
		for i, w := range want {
			c, _ := curve.Parse(name) // linear if it is unknown
			if got := c.At(float64(i) / 4); got != w {
				t.Errorf("%s at %d/4 = %v, want %v", name, i, got, w)
			}
		}
	}
}
