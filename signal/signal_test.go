package signal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
)

const toolCall = `{"id":"sig-13","type":"tool_call","timestamp":1738900000000,"source":"adapter:test",` +
	`"correlationId":"ep-1","metadata":{"raw":{"k":[1]}},"payload":{"toolName":"web_search","agentId":"a-1",` +
	`"callId":"call-1","input":{"query":"capuchin","n":3,"nested":{"a":[1,null]}}}}`

// numbers compares Numbers, whose fields are their own business, like those
// that a Signal does not show.
var numbers = cmp.Options{
	cmp.Comparer(func(a, b signal.Number) bool { return a == b }),
	cmpopts.IgnoreUnexported(signal.Signal{}),
}

// Validate checks a parsed signal again after a change.
func TestValidateAfterAChange(t *testing.T) {
	sound := `{"id":"1","type":"thinking","timestamp":1,"source":"aé","correlationId":"c","metadata":{"a":1},"payload":{"agentId":"x","content":"y"}}`
	broken := signal.Value{0x81, 0xa1, 'k', 0xa2, 0xff}
	for name, change := range map[string]func(s *signal.Signal){
		"type":        func(s *signal.Signal) { s.Type = "completion" },
		"payload":     func(s *signal.Signal) { s.Payload = broken },
		"metadata":    func(s *signal.Signal) { s.Metadata = broken },
		"id":          func(s *signal.Signal) { s.ID = "\xff" },
		"source":      func(s *signal.Signal) { s.Source = "\xff" },
		"timestamp":   func(s *signal.Signal) { s.Timestamp = signal.Number{} },
		"correlation": func(s *signal.Signal) { *s.CorrelationID = "\xff" },
		"payload of the same size": func(s *signal.Signal) {
			s.Payload = slices.Clone(s.Payload)
			s.Payload[len(s.Payload)-1] = 0xff
		},
		"payload cut":           func(s *signal.Signal) { s.Payload = s.Payload[:len(s.Payload)-1] },
		"metadata cut":          func(s *signal.Signal) { s.Metadata = s.Metadata[:len(s.Metadata)-1] },
		"source cut":            func(s *signal.Signal) { s.Source = s.Source[:2] },
		"type of the same size": func(s *signal.Signal) { s.Type = "thinkin\xff" },
		"raw":                   func(s *signal.Signal) { s.Raw = broken },
	} {
		s, err := signal.Parse([]byte(sound))
		require.NoError(t, err)
		require.NoError(t, s.Validate(), "as parsed")
		if change(s); s.Validate() == nil {
			t.Errorf("%s changed: still valid", name)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := signal.Parse([]byte(toolCall))
	require.NoError(t, err)
	episode := "ep-1"
	want := &signal.Signal{
		ID: "sig-13", Type: "tool_call", Source: "adapter:test",
		Timestamp:     signal.Int(1738900000000),
		CorrelationID: &episode,
		Metadata:      parsed(t, `{"raw":{"k":[1]}}`),
		Payload: parsed(t, `{"toolName":"web_search","agentId":"a-1","callId":"call-1",`+
			`"input":{"query":"capuchin","n":3,"nested":{"a":[1,null]}}}`),
	}
	if diff := cmp.Diff(want, got, numbers); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := string(got.AppendJSON(nil)); got != toolCall {
		t.Errorf("written as\n%s\nwant\n%s", got, toolCall)
	}
}

// The envelope's edges: empty and absent are different things, and numbers
// stay as they were.
func TestParseEdges(t *testing.T) {
	s, err := signal.Parse([]byte(`{"payload":{},"correlationId":"","source":"","timestamp":-0.5,"type":"","id":""}`))
	require.NoError(t, err)
	if s.CorrelationID == nil || *s.CorrelationID != "" || s.Metadata != nil || s.Timestamp != signal.Float(-0.5) {
		t.Errorf("got %+v", s)
	}
	// The envelope is a level of its own.
	deep := func(n int) []byte {
		return []byte(envelope("x", strings.Repeat(`{"":`, n-1)+"{}"+strings.Repeat("}", n-1)))
	}
	s, err = signal.Parse(deep(signal.MaxDepth - 1))
	require.NoError(t, err)
	if _, err := signal.Decode(s.Append(nil)); err != nil {
		t.Errorf("the deepest payload: %v", err)
	}
	if _, err := signal.Parse(deep(signal.MaxDepth)); !errors.Is(err, signal.ErrSyntax) {
		t.Errorf("a payload one deeper: %v", err)
	}
}

// A lenient reading keeps every object: a sound envelope in the fields, any
// other whole.
func TestParseLenient(t *testing.T) {
	for _, c := range []struct {
		in, problem string
		raw         bool
	}{
		{toolCall, "", false},
		{envelope("completion", `{"success":true,"channel":"c"}`), "/payload/taskId: is required", false},
		{`{}`, "/id: is required", true},
		{`{"type":"x","timestamp":1,"source":"a","payload":{}}`, "/id: is required", true},
		{envelope("x", `{},"correlationId":null`), "/correlationId: must be a string, not null", true},
		{envelope("x", `{},"sessionKey":"k"`), "/sessionKey: is not a field of a signal", true},
		{envelope("x", `[1]`), "/payload: must be an object, not an array", true},
		{`{"id":7,"type":["x"],"timestamp":"now","source":null,"payload":"p","metadata":1}`, "/id: must be a string, not an integer", true},
	} {
		s, err := signal.ParseLenient([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if s.Problem != c.problem || (s.Raw != nil) != c.raw {
			t.Errorf("%s: problem %q, raw %t; want %q, %t", c.in, s.Problem, s.Raw != nil, c.problem, c.raw)
		}
		if got := s.AppendJSON(nil); !sameJSON(t, got, []byte(c.in)) {
			t.Errorf("%s: written as %s", c.in, got)
		}
		back, err := signal.Decode(s.Append(nil))
		assert.NoErrorf(t, err, "%s: Decode", c.in)
		if diff := cmp.Diff(*s, back, numbers); diff != "" {
			t.Errorf("%s: (-parsed +decoded)\n%s", c.in, diff)
		}
	}
	// The fields of an irregular envelope are set as far as possible.
	s, _ := signal.ParseLenient([]byte(`{"type":"x","timestamp":2.5,"source":"a","payload":{"k":1}}`))
	if s.Type != "x" || s.Source != "a" || s.Timestamp != signal.Float(2.5) || s.Payload.String() != `{"k":1}` {
		t.Errorf("the fields of an irregular envelope: %+v", s)
	}
	if _, err := signal.ParseLenient([]byte(`[]`)); !errors.Is(err, signal.ErrSchema) {
		t.Errorf("a list: %v, want ErrSchema", err)
	}
	for _, text := range []string{``, `{`, `{"id":"a","id":"b"}`, `{"n":1e999}`, `{} {}`} {
		if _, err := signal.ParseLenient([]byte(text)); !errors.Is(err, signal.ErrSyntax) {
			t.Errorf("%s: %v, want ErrSyntax", text, err)
		}
	}
}

// sameJSON compares two JSON texts as values, integers apart from floats.
func sameJSON(t testing.TB, a, b []byte) bool {
	t.Helper()
	x, err := reference(a)
	require.NoError(t, err)
	y, err := reference(b)
	require.NoError(t, err)
	return reflect.DeepEqual(x, y)
}

// The worked example of the package comment.
func TestEntryDataOfThePackageComment(t *testing.T) {
	s, err := signal.Parse([]byte(`{"id":"s","type":"x","timestamp":1.5,"source":"a","payload":{"n":1}}`))
	require.NoError(t, err)
	got := fmt.Sprintf("% x", s.Append(nil))
	if want := "97 a1 73 a1 78 cb 3f f8 00 00 00 00 00 00 a1 61 c0 c0 81 a1 6e 01"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// entryData returns one signal in each of the three forms.
func entryData(t testing.TB) map[string][]byte {
	t.Helper()
	forms := map[string][]byte{}
	for name, text := range map[string]string{
		"valid":   toolCall,
		"refused": envelope("completion", `{"success":true}`),
		"raw":     `{"id":1,"x":[1.5,"text",{"k":null}]}`,
	} {
		s, err := signal.ParseLenient([]byte(text))
		require.NoError(t, err)
		forms[name] = s.Append(nil)
	}
	return forms
}

func TestDecodeCutAtEveryLength(t *testing.T) {
	for name, whole := range entryData(t) {
		for n := range len(whole) {
			if _, err := signal.Decode(whole[:n]); !errors.Is(err, signal.ErrCorrupt) {
				t.Errorf("%s: %d of %d bytes: %v, want ErrCorrupt", name, n, len(whole), err)
			}
		}
		if _, err := signal.Decode(append(whole, 0xc0)); !errors.Is(err, signal.ErrCorrupt) {
			t.Errorf("%s: a byte too many: %v, want ErrCorrupt", name, err)
		}
	}
}

// Decode checks the kind of every element.
func TestDecodeElements(t *testing.T) {
	str := func(s string) []byte { return msgp.AppendString(nil, s) }
	null, object, number := []byte{0xc0}, []byte{0x80}, []byte{5}
	good := [][]byte{str("id"), str("t"), number, str("src"), null, null, object}
	join := func(head byte, parts [][]byte) []byte {
		data := []byte{head}
		for _, p := range parts {
			data = append(data, p...)
		}
		return data
	}
	if _, err := signal.Decode(join(0x97, good)); err != nil {
		t.Fatal(err)
	}
	for i, spoilt := range [][]byte{number, null, str("5"), object, number, str("m"), null} {
		parts := append([][]byte{}, good...)
		parts[i] = spoilt
		if _, err := signal.Decode(join(0x97, parts)); !errors.Is(err, signal.ErrCorrupt) {
			t.Errorf("element %d is %x: %v, want ErrCorrupt", i, spoilt, err)
		}
	}
	for _, data := range [][]byte{
		nil,
		{0xc0},
		{0x90},
		{0xdc, 0x00, 0x07},
		join(0x96, good[:6]),
		join(0x98, append(good[:7:7], str(""))),
		join(0x98, append(good[:7:7], null)),
		join(0x92, [][]byte{object, str("")}),
		join(0x92, [][]byte{{0x90}, str("p")}),
		join(0x97, append([][]byte{{0xa1, 0xff}}, good[1:]...)),
		join(0x97, [][]byte{good[0], good[1], {0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, good[3], null, null, object}),
		join(0x97, [][]byte{good[0], good[1], number, good[3], null, null, {0x82, 0xa1, 'a', 1, 0xa1, 'a'}}),
	} {
		if _, err := signal.Decode(data); !errors.Is(err, signal.ErrCorrupt) {
			t.Errorf("%x: %v, want ErrCorrupt", data, err)
		}
	}
}

func TestDecodeNamesTheByte(t *testing.T) {
	_, err := signal.Decode([]byte("\x97\xa1i\xa1t\x05\xa1s\xc0\xc0\x81\xa1k\xc1"))
	if err == nil || !strings.Contains(err.Error(), "byte 10:") {
		t.Errorf("got %v, want byte 10", err)
	}
}

// Any object at all survives: text to signal to entry data to signal to text.
func TestSignalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := []string{}
		for _, name := range []string{"id", "type", "source", "correlationId"} {
			if rapid.IntRange(0, 9).Draw(t, name) > 0 {
				text, _ := json.Marshal(rapid.String().Draw(t, name+" text"))
				members = append(members, fmt.Sprintf("%q:%s", name, text))
			}
		}
		for _, name := range []string{"timestamp", "metadata", "payload", "more"} {
			switch rapid.IntRange(0, 9).Draw(t, name) {
			case 0, 1:
			case 2:
				members = append(members, fmt.Sprintf("%q:%s", name, genJSON().Draw(t, name+" any")))
			default:
				usual := map[string]string{
					"timestamp": signal.Float(rapid.Float64().Draw(t, "time")).String(),
					"metadata":  `{"m":` + genJSON().Draw(t, "m") + `}`,
					"payload":   `{"p":` + genJSON().Draw(t, "p") + `}`,
				}[name]
				if usual != "" {
					members = append(members, fmt.Sprintf("%q:%s", name, usual))
				}
			}
		}
		text := []byte("{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), ",") + "}")
		s, err := signal.ParseLenient(text)
		require.NoErrorf(t, err, "%s", text)
		roundTrip(t, text, s)
	})
}

// roundTrip checks all that must hold of a signal read from text.
func roundTrip(t rapid.TB, text []byte, s *signal.Signal) {
	want, err := reference(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := s.AppendJSON(nil)
	if got, err := reference(out); err != nil || !reflect.DeepEqual(want, got) {
		t.Fatalf("%s: written as %s: %v", text, out, err)
	}
	data := s.Append(nil)
	back, err := signal.Decode(data)
	if err != nil {
		t.Fatalf("%s: Decode: %v", text, err)
	}
	if diff := cmp.Diff(*s, back, numbers); diff != "" {
		t.Fatalf("%s: (-parsed +decoded)\n%s", text, diff)
	}
	if again := back.Append(nil); string(again) != string(data) {
		t.Fatalf("%s: entry data %x, then %x", text, data, again)
	}
	reread, err := signal.ParseLenient(out)
	if err != nil {
		t.Fatalf("%s: written as %s: %v", text, out, err)
	}
	// Which of several problems is named may depend on the order of members.
	if (reread.Problem == "") != (s.Problem == "") || string(reread.AppendJSON(nil)) != string(out) {
		t.Fatalf("%s: read again as %s, problem %q and %q", text, reread.AppendJSON(nil), s.Problem, reread.Problem)
	}
}

// Decoding a signal allocates nothing, or its correlation id.
func TestDecodeAllocations(t *testing.T) {
	forms := entryData(t)
	plain, err := signal.Parse([]byte(envelope("x", `{"k":[1,{"l":2}]}`)))
	require.NoError(t, err)
	forms["plain"] = plain.Append(nil)
	dst := make([]byte, 0, 1024)
	for name, most := range map[string]float64{"plain": 0, "valid": 1, "raw": 0} {
		if n := testing.AllocsPerRun(100, func() {
			s, err := signal.Decode(forms[name])
			require.NoError(t, err)
			dst = s.Append(dst[:0])
		}); n > most {
			t.Errorf("%s: %v allocations, want at most %v", name, n, most)
		}
	}
}

// A signal that was changed has the problem of its present state.
func TestRecheck(t *testing.T) {
	text := `{"id":"1","type":"error","timestamp":1,"source":"s","payload":{"message":"m","severity":"bad"}}`
	s, err := signal.ParseLenient([]byte(text))
	require.NoError(t, err)
	before := s.Problem
	require.NotEmpty(t, before)
	s.Recheck()
	require.Equal(t, before, s.Problem, "unchanged")
	s.Payload = signal.NewObject(2).Text("message", "m").Text("severity", "error").Value()
	s.Recheck()
	require.Empty(t, s.Problem)
	s.Payload = signal.NewObject(1).Text("message", "m").Value()
	s.Recheck()
	require.Equal(t, "/payload/severity: is required", s.Problem)
}
