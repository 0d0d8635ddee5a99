package content_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/redact/content"
	"github.com/sajou-dev/sajou-go/signal"
)

func parse(t require.TestingT, line string) *signal.Signal {
	s, err := signal.ParseLenient([]byte(line))
	require.NoError(t, err)
	return s
}

func remover(t require.TestingT, key string) *content.Remover {
	r, err := content.NewRemover([]byte(key))
	if key == "" {
		r, err = content.NewRemover(nil)
	}
	require.NoError(t, err)
	return r
}

func TestRemove(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{
			"a prompt", `{"id":"1","type":"task_dispatch","timestamp":1,"source":"import:claude-code","correlationId":"c","payload":{"taskId":"t","from":"user","to":"a","description":"grüße"}}`,
			`{"id":"1","type":"task_dispatch","timestamp":1,"source":"import:claude-code","correlationId":"c","metadata":{"removed":{"parts":1,"bytes":7}},"payload":{"taskId":"t","from":"user","to":"a","description":"[7 bytes]"}}`,
		},
		{
			"a call", `{"id":"1","type":"tool_call","timestamp":1,"source":"s","payload":{"toolName":"Bash","agentId":"a","callId":"c","input":{"command":"ls"}}}`,
			`{"id":"1","type":"tool_call","timestamp":1,"source":"s","metadata":{"removed":{"parts":1,"bytes":16}},"payload":{"toolName":"Bash","agentId":"a","callId":"c","input":{"length":16}}}`,
		},
		{
			"an error", `{"id":"1","type":"error","timestamp":1,"source":"s","payload":{"message":"no","severity":"error","agentId":"a","code":"overloaded_error"}}`,
			`{"id":"1","type":"error","timestamp":1,"source":"s","metadata":{"removed":{"parts":1,"bytes":2}},"payload":{"message":"[2 bytes]","severity":"error","agentId":"a","code":"overloaded_error"}}`,
		},
		{
			"a code that is a sentence", `{"id":"1","type":"error","timestamp":1,"source":"s","payload":{"message":"","severity":"error","code":"it broke"}}`,
			`{"id":"1","type":"error","timestamp":1,"source":"s","metadata":{"removed":{"parts":1,"bytes":8}},"payload":{"message":"","severity":"error","code":"[8 bytes]"}}`,
		},
		{"usage stays", `{"id":"1","type":"token_usage","timestamp":1,"source":"s","metadata":{"native":{"id":"u-1","line":3},"sessionId":"x","cacheReadTokens":5,"timeSource":"synthetic","skewMs":1.5},"payload":{"agentId":"a","promptTokens":1,"completionTokens":2,"model":"anthropic/claude","cost":0.25}}`, ""},
		{
			"metadata", `{"id":"1","type":"token_usage","timestamp":1,"source":"s","metadata":{"cwd":"/home/bob","record":{"secret":"x"},"version":"1.0","model":"two words","sessionId":["x"]},"payload":{"agentId":"a","promptTokens":1,"completionTokens":2}}`,
			`{"id":"1","type":"token_usage","timestamp":1,"source":"s","metadata":{"version":"1.0","removed":{"parts":4,"bytes":37}},"payload":{"agentId":"a","promptTokens":1,"completionTokens":2}}`,
		},
		{
			"the note of a redaction", `{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":{"email":2,"ticket":3,"zebra":4}},"payload":{}}`,
			`{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":{"email":2,"other":7}},"payload":{}}`,
		},
		{
			"an unknown type", `{"id":"1","type":"codex.compact","timestamp":1,"source":"s","payload":{"bob":"x"}}`,
			`{"id":"1","type":"codex.compact","timestamp":1,"source":"s","metadata":{"removed":{"parts":1,"bytes":11}},"payload":{"length":11}}`,
		},
		{
			"the origin", `{"id":"1","type":"import.recording","timestamp":1,"source":"s","payload":{"format":"codex","session":"0199-x","timeSource":"recorded","keepNative":true,"redact":"00112233445566ff","content":"removed","cwd":"/home/bob"}}`,
			`{"id":"1","type":"import.recording","timestamp":1,"source":"s","metadata":{"removed":{"parts":1,"bytes":9}},"payload":{"format":"codex","session":"0199-x","timeSource":"recorded","keepNative":true,"redact":"00112233445566ff","content":"removed"}}`,
		},
		{
			"a signal that breaks the schema", `{"id":"1","type":"error","timestamp":1,"source":"s","payload":{"message":"no","severity":"so bad","detail":"d"}}`,
			`{"id":"1","type":"error","timestamp":1,"source":"s","metadata":{"removed":{"parts":3,"bytes":9}},"payload":{"message":"[2 bytes]","severity":"[6 bytes]"}}`,
		},
		{"a position", `{"id":"1","type":"user.click","timestamp":1,"source":"s","payload":{"target":"door","position":{"x":1,"y":2.5}}}`, ""},
		{
			"an irregular envelope", `{"id":7,"type":"error","note":"hello","payload":{"message":"no","severity":"error"}}`,
			`{"type":"error","payload":{"message":"[2 bytes]","severity":"error"},"metadata":{"removed":{"parts":3,"bytes":8}}}`,
		},
		{
			"an envelope with one member too many", `{"id":"7","type":"x","timestamp":1,"source":"s","payload":{},"note":"hello"}`,
			`{"id":"7","type":"x","timestamp":1,"source":"s","metadata":{"removed":{"parts":1,"bytes":5}},"payload":{}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.in)
			want := c.want
			if want == "" {
				want = c.in
			}
			r := remover(t, "")
			n := r.Remove(s)
			assert.Equal(t, want, string(s.AppendJSON(nil)))
			assert.EqualValues(t, n, r.Total().Parts)
			again := parse(t, want)
			assert.Equal(t, s.Problem, again.Problem)
			assert.Zero(t, r.Remove(again), "a second removal")
			assert.Equal(t, want, string(again.AppendJSON(nil)))
		})
	}
}

// With a key, equal contents have equal digests: those of HMAC-SHA256.
func TestDigests(t *testing.T) {
	_, err := content.NewRemover([]byte("too short"))
	require.ErrorContains(t, err, "has 9 bytes; it needs 16 or more")
	key := "0123456789abcdef"
	digest := func(text string) string {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil))[:32]
	}
	s := parse(t, `{"id":"1","type":"tool_result","timestamp":1,"source":"s","payload":{"toolName":"t","agentId":"a","success":true,"output":{"n":1}}}`)
	remover(t, key).Remove(s)
	assert.Equal(t, digest(`{"n":1}`), s.Payload.Member("output").TextOf("digest"))
	s = parse(t, `{"id":"1","type":"thinking","timestamp":1,"source":"s","payload":{"agentId":"a","content":"hm"}}`)
	r := remover(t, key)
	r.Remove(s)
	assert.Equal(t, "[2 bytes, hmac "+digest("hm")+"]", s.Payload.TextOf("content"))
	assert.Zero(t, r.Remove(s), "a second removal")
	assert.NoError(t, s.Validate())
}

// Each text of a well-known payload is either one of Kept or content. A new field of the
// schema fails this test: decide which it is.
func TestEveryFieldIsDecided(t *testing.T) {
	isContent := []string{"task_dispatch.description", "agent_state_change.reason", "error.message", "completion.result", "text_delta.content", "thinking.content", "user.zone.intent"}
	var seen []string
	for _, typ := range signal.WellKnownTypes() {
		fields, _ := signal.PayloadFields(typ)
		for _, f := range fields {
			name := typ + "." + f.Name
			if f.Kind == signal.FieldString && f.Enum == nil && !slices.Contains(content.Kept(), f.Name) {
				assert.Contains(t, isContent, name)
				seen = append(seen, name)
			}
		}
	}
	assert.ElementsMatch(t, isContent, seen)
}

// words are the content of generated signals. None of them is a part of a name or of an
// id that stays.
var words = []string{"zebra", "Quokka", "söök", "wyvern42", "xylophone"}

func word() *rapid.Generator[string] { return rapid.SampledFrom(words) }

// spoken generates a text with words in it.
func spoken() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word(), 1, 4).Draw(t, "words"), rapid.SampledFrom([]string{" ", "", "\n", "/"}).Draw(t, "between"))
	})
}

// free generates a value with words in its texts and keys.
func free(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		most := 3
		if depth == 0 {
			most = 1
		}
		switch rapid.IntRange(0, most).Draw(t, "form") {
		case 0:
			return spoken().Draw(t, "text")
		case 1:
			return rapid.IntRange(-5, 5).Draw(t, "number")
		case 2:
			return rapid.SliceOfN(free(depth-1), 0, 3).Draw(t, "list")
		default:
			keys := rapid.OneOf(spoken(), rapid.SampledFrom([]string{"command", "native", "tokens", "record", "length", "digest", "text"}))
			return rapid.MapOfN(keys, free(depth-1), 0, 3).Draw(t, "object")
		}
	})
}

// No word of the content appears in what remains, and the signal is one that the schema
// accepts if it was one.
func TestNothingLeaks(t *testing.T) {
	ids := rapid.SampledFrom([]string{"a", "agent-1", "t"})
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(append(signal.WellKnownTypes(), "codex.compact", "import.recording", "import.remark", "x.unreadable")).Draw(t, "type")
		payload := map[string]any{}
		fields, wellKnown := signal.PayloadFields(typ)
		for _, f := range fields {
			if !f.Required && !rapid.Bool().Draw(t, f.Name) {
				continue
			}
			switch {
			case f.Enum != nil:
				payload[f.Name] = rapid.SampledFrom(f.Enum).Draw(t, f.Name)
			case f.Kind == signal.FieldString && slices.Contains(content.Kept(), f.Name):
				payload[f.Name] = ids.Draw(t, f.Name)
			case f.Kind == signal.FieldString:
				payload[f.Name] = spoken().Draw(t, f.Name)
			case f.Kind == signal.FieldBool:
				payload[f.Name] = true
			case f.Kind == signal.FieldObject && f.Fields == nil:
				payload[f.Name] = rapid.MapOfN(spoken(), free(2), 0, 3).Draw(t, f.Name)
			case f.Kind == signal.FieldObject:
				inner := map[string]any{}
				for _, f := range f.Fields {
					inner[f.Name] = 3
				}
				payload[f.Name] = inner
			default:
				payload[f.Name] = 7
			}
		}
		if !wellKnown {
			payload = rapid.MapOfN(rapid.OneOf(spoken(), rapid.SampledFrom([]string{"message", "text", "reason", "cwd", "title"})), free(2), 0, 4).Draw(t, "payload")
		}
		envelope := map[string]any{"id": "1", "type": typ, "timestamp": 1, "source": "s", "payload": payload}
		if rapid.Bool().Draw(t, "annotated") {
			metadata := rapid.MapOfN(rapid.OneOf(spoken(), rapid.SampledFrom([]string{"record", "cwd", "title", "gitBranch", "summary", "native", "content", "redact", "redactions"})), free(2), 0, 4).Draw(t, "metadata")
			metadata["sessionId"] = "s-1"
			envelope["metadata"] = metadata
		}
		if rapid.IntRange(0, 4).Draw(t, "broken") == 0 {
			envelope[rapid.SampledFrom([]string{"zebra", "metadata", "payload"}).Draw(t, "member")] = free(1).Draw(t, "extra")
		}
		line, err := json.Marshal(envelope)
		require.NoError(t, err)
		s := parse(t, string(line))
		valid := s.Problem == ""
		remover(t, rapid.SampledFrom([]string{"", "0123456789abcdef"}).Draw(t, "key")).Remove(s)
		for _, word := range words {
			left := s.Append(nil)
			require.False(t, bytes.Contains(bytes.ToLower(left), []byte(strings.ToLower(word))), "%s of %s", s.AppendJSON(nil), line)
		}
		if valid {
			require.NoError(t, s.Validate())
			require.Empty(t, s.Problem)
		}
		_, err = signal.Decode(s.Append(nil))
		require.NoError(t, err)
	})
}

func Example() {
	sig, err := signal.Parse([]byte(`{"id":"7","type":"task_dispatch","timestamp":0,"source":"s",
		"metadata":{"sessionId":"s-1","cwd":"/home/bob"},"payload":{"taskId":"t","from":"user","to":"claude","description":"fix the login"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	remover, err := content.NewRemover(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	remover.Remove(sig)
	fmt.Println(sig.Payload)
	fmt.Println(sig.Metadata)
	// Output:
	// {"taskId":"t","from":"user","to":"claude","description":"[13 bytes]"}
	// {"sessionId":"s-1","removed":{"parts":2,"bytes":22}}
}
