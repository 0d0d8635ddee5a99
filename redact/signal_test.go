package redact_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/redact"
	"github.com/sajou-dev/sajou-go/signal"
)

func parse(t require.TestingT, line string) *signal.Signal {
	s, err := signal.ParseLenient([]byte(line))
	require.NoError(t, err)
	return s
}

func compiled(t require.TestingT, yaml string) *redact.Ruleset {
	rules, diagnostics := redact.Compile("rules.yaml", []byte(yaml))
	require.Empty(t, diagnostics)
	return rules
}

// Every part of a signal is redacted, and the signal stays one that the schema accepts.
func TestRedactSignal(t *testing.T) {
	for _, c := range []struct {
		name, rules, in, want string
		n                     int
	}{
		{
			"prompt", "", `{"id":"1","type":"task_dispatch","timestamp":1,"source":"s","payload":{"taskId":"t","from":"user","to":"a","description":"mail bob@example.com"}}`,
			`{"id":"1","type":"task_dispatch","timestamp":1,"source":"s","metadata":{"redactions":{"email":1}},"payload":{"taskId":"t","from":"user","to":"a","description":"mail [EMAIL]"}}`, 1,
		},
		{
			"ids and source", "", `{"id":"bob@example.com","type":"x","timestamp":1,"source":"adapter:bob@example.com","correlationId":"for bob@example.com","payload":{}}`,
			`{"id":"[EMAIL]","type":"x","timestamp":1,"source":"adapter:[EMAIL]","correlationId":"for [EMAIL]","metadata":{"redactions":{"email":3}},"payload":{}}`, 3,
		},
		{
			"keys, and keys that become equal", "", `{"id":"1","type":"x","timestamp":1,"source":"s","payload":{"a@b.io":1,"c@d.io":{"e@f.io":[]},"[EMAIL-2]":0}}`,
			`{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":{"email":3}},"payload":{"[EMAIL]":1,"[EMAIL-3]":{"[EMAIL]":[]},"[EMAIL-2]":0}}`, 3,
		},
		{
			"by name at depth", "", `{"id":"1","type":"tool_call","timestamp":1,"source":"s","payload":{"toolName":"w","agentId":"a","input":{"env":[{"name":"API_KEY","value":"abc"},{"name":"HOME","value":"/root"}],"auth":{"password":12345,"max_tokens":9}}}}`,
			`{"id":"1","type":"tool_call","timestamp":1,"source":"s","metadata":{"redactions":{"secret":2}},"payload":{"toolName":"w","agentId":"a","input":{"env":[{"name":"API_KEY","value":"[REDACTED]"},{"name":"HOME","value":"/root"}],"auth":{"password":"[REDACTED]","max_tokens":9}}}}`, 2,
		},
		{
			"JSON in a string, twice", "", `{"id":"1","type":"x","timestamp":1,"source":"s","payload":{"body":"{\"a\":\"{\\\"secret\\\":[\\\"x y\\\"],\\\"n\\\":1.50}\"}"}}`,
			`{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":{"secret":1}},"payload":{"body":"{\"a\":\"{\\\"secret\\\":\\\"[REDACTED]\\\",\\\"n\\\":1.5}\"}"}}`, 1,
		},
		{
			"JSON in a string with escapes", "", `{"id":"1","type":"x","timestamp":1,"source":"s","payload":{"body":"{\"pass\\u0077ord\":\"h\"}"}}`,
			`{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":{"secret":1}},"payload":{"body":"{\"password\":\"[REDACTED]\"}"}}`, 1,
		},
		{
			"what the schema fixes stays", "paths: ['/payload/**', /metadata]", `{"id":"1","type":"agent_state_change","timestamp":1,"source":"s","metadata":{"a":1},"payload":{"agentId":"a","from":"idle","to":"done","reason":"r"}}`,
			`{"id":"1","type":"agent_state_change","timestamp":1,"source":"s","metadata":{"redacted":"[REDACTED]","redactions":{"path":3}},"payload":{"agentId":"[REDACTED]","from":"idle","to":"done","reason":"[REDACTED]"}}`, 3,
		},
		{
			"a signal that breaks the schema", "", `{"id":"1","type":"error","timestamp":1,"source":"s","payload":{"message":"m","severity":"bad","bob@example.com":"password=x"}}`,
			`{"id":"1","type":"error","timestamp":1,"source":"s","metadata":{"redactions":{"email":1,"secret":1}},"payload":{"message":"m","severity":"bad","[EMAIL]":"password=[REDACTED]"}}`, 2,
		},
		{
			"an irregular envelope", "", `{"id":7,"password":"x","payload":["bob@example.com"]}`,
			`{"id":7,"password":"[REDACTED]","payload":["[EMAIL]"],"metadata":{"redactions":{"email":1,"secret":1}}}`, 2,
		},
		{
			"own patterns", "patterns: [{name: ticket, match: 'ACME-([0-9]+)', replacement: '[TICKET]'}]\nkinds: []", `{"id":"ACME-1","type":"error","timestamp":1,"source":"s","payload":{"message":"ACME-22, bob@example.com","severity":"error"}}`,
			`{"id":"ACME-[TICKET]","type":"error","timestamp":1,"source":"s","metadata":{"redactions":{"ticket":2}},"payload":{"message":"ACME-[TICKET], bob@example.com","severity":"error"}}`, 2,
		},
		{
			"paths", "paths: [/metadata/cwd, '/payload/input/**/path', /correlationId]\nreplacement: '[GONE]'", `{"id":"1","type":"tool_call","timestamp":1,"source":"s","correlationId":"c","metadata":{"cwd":"/home/x"},"payload":{"toolName":"w","agentId":"a","input":{"path":"/p","list":[{"path":{"deep":1}},{"other":"/o"}]}}}`,
			`{"id":"1","type":"tool_call","timestamp":1,"source":"s","correlationId":"[GONE]","metadata":{"cwd":"[GONE]","redactions":{"path":4}},"payload":{"toolName":"w","agentId":"a","input":{"path":"[GONE]","list":[{"path":"[GONE]"},{"other":"/o"}]}}}`, 4,
		},
		{
			"fewer kinds, more names", "except: [email]\nnames: [codeName]", `{"id":"1","type":"x","timestamp":1,"source":"s","payload":{"code_name":"zeus","m":"a@b.io","p":"tel 5551234"}}`,
			`{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":{"phone":1,"secret":1}},"payload":{"code_name":"[REDACTED]","m":"a@b.io","p":"tel [PHONE]"}}`, 2,
		},
		{
			"the sender's own note", "", `{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":"a@b.io"},"payload":{}}`,
			`{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":"[EMAIL]"},"payload":{}}`, 1,
		},
		{
			"a note that is there", "", `{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":{"email":3}},"payload":{"m":"a@b.io"}}`,
			`{"id":"1","type":"x","timestamp":1,"source":"s","metadata":{"redactions":{"email":4}},"payload":{"m":"[EMAIL]"}}`, 1,
		},
		{
			"nothing", "", `{"id":"1","type":"token_usage","timestamp":1,"source":"s","metadata":{"tokens":{"cache":5,"kind":"input"}},"payload":{"agentId":"a","promptTokens":4111111111111111,"completionTokens":2,"model":"gpt-5"}}`, "", 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := redact.Default()
			if c.rules != "" {
				rules = compiled(t, c.rules)
			}
			s := parse(t, c.in)
			problem := s.Problem
			d := rules.NewRedactor()
			n := d.Redact(s)
			want := c.want
			if want == "" {
				want = c.in
			}
			assert.Equal(t, want, string(s.AppendJSON(nil)))
			assert.Equal(t, c.n, n)
			sum := 0
			for _, k := range d.Counts() {
				sum += k
			}
			assert.Equal(t, n, sum)
			assert.Equal(t, problem == "", s.Problem == "", s.Problem)
			again := parse(t, string(s.AppendJSON(nil)))
			assert.Zero(t, rules.NewRedactor().Redact(again), "a second redaction")
			assert.Equal(t, s.Problem, again.Problem)
		})
	}
}

// names and texts from which signals are generated: sensitive, harmless, and marks.
var (
	someNames = []string{"password", "email", "tokens", "address", "user_data", "name", "value", "key", "id", "n", "a@b.io", "[EMAIL]", "redactions", "sk-abcdefghijklmnop1234", "phone", "x"}
	someTexts = []string{
		"", "ok", "bob@example.com", "[EMAIL]", "[REDACTED] x", "password=x y", "tel 5551234", "API_KEY", "4111 1111 1111 1111", "ACME-7 a@b.io", "true", "12",
		"sk-abcdefghijklmnop1234", "secret: |\n  a\n  b\nc", "12 Main Street", "{", "[1", "a\u0000b",
	}
)

// freely generates any value, with JSON in strings.
func freely(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		most := 5
		if depth == 0 {
			most = 2
		}
		switch rapid.IntRange(0, most).Draw(t, "form") {
		case 0:
			return rapid.SampledFrom(someTexts).Draw(t, "text")
		case 1:
			return rapid.SampledFrom([]any{nil, true, 0, 4111111111111111, 1.5}).Draw(t, "scalar")
		case 2:
			return rapid.StringOfN(rapid.SampledFrom([]rune(`a@.io 1+-=:"\[]{}E`)), 0, 20, -1).Draw(t, "junk")
		case 3:
			return rapid.SliceOfN(freely(depth-1), 0, 3).Draw(t, "list")
		case 4:
			text, _ := json.Marshal(rapid.MapOfN(rapid.SampledFrom(someNames), freely(depth-1), 0, 3).Draw(t, "inner"))
			return string(text)
		default:
			return rapid.MapOfN(rapid.SampledFrom(someNames), freely(depth-1), 0, 4).Draw(t, "object")
		}
	})
}

// Redaction is idempotent, deterministic and keeps valid signals valid, whatever the
// signal is; and what it counts is what the note says.
func TestRedactProperties(t *testing.T) {
	all := []*redact.Ruleset{
		redact.Default(),
		compiled(t, "replacement: '[GONE]'\npaths: ['/payload/*/id', '/**/x']"),
		compiled(t, "patterns: [{name: a, match: '[A-Z]+.*'}, {name: b, match: 'o(k|b)', replacement: '[B]'}]\nexcept: [secret]"),
	}
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SampledFrom(all).Draw(t, "rules")
		envelope := map[string]any{"id": rapid.SampledFrom(someTexts).Draw(t, "id"), "type": rapid.SampledFrom([]string{"x", "tool_call", "error", "a@b.io"}).Draw(t, "type"), "timestamp": 1, "source": "s"}
		switch envelope["type"] {
		case "tool_call":
			envelope["payload"] = map[string]any{"toolName": "t", "agentId": "bob@example.com", "input": rapid.MapOfN(rapid.SampledFrom(someNames), freely(2), 0, 3).Draw(t, "input")}
		case "error":
			envelope["payload"] = map[string]any{"message": rapid.SampledFrom(someTexts).Draw(t, "message"), "severity": "error", "code": "bob@example.com"}
		default:
			envelope["payload"] = rapid.MapOfN(rapid.SampledFrom(someNames), freely(2), 0, 4).Draw(t, "payload")
		}
		if rapid.Bool().Draw(t, "irregular") {
			envelope[rapid.SampledFrom(someNames).Draw(t, "more")] = freely(1).Draw(t, "extra")
		}
		if rapid.Bool().Draw(t, "annotated") {
			envelope["metadata"] = rapid.MapOfN(rapid.SampledFrom(someNames), freely(1), 0, 3).Draw(t, "metadata")
		}
		line, err := json.Marshal(envelope)
		require.NoError(t, err)
		s, other := parse(t, string(line)), parse(t, string(line))
		valid := s.Problem == ""
		d := rules.NewRedactor()
		n := d.Redact(s)
		require.Equal(t, n, rules.NewRedactor().Redact(other))
		once := string(s.AppendJSON(nil))
		require.Equal(t, once, string(other.AppendJSON(nil)), "equal signals")
		if valid {
			require.NoError(t, s.Validate())
		}
		if n == 0 {
			require.Equal(t, string(parse(t, string(line)).AppendJSON(nil)), once, "nothing was found")
		}
		again := parse(t, once)
		require.Zero(t, rules.NewRedactor().Redact(again), "a second redaction of %s", once)
		require.Equal(t, once, string(again.AppendJSON(nil)))
	})
}

// Whatever is in a signal, a secret behind a telling name and a token of a published form
// are found, however deep they are and whatever text they are in.
func TestRedactFindsPlanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{6,12}[0-9]{3}[A-Z]{3}`).Draw(t, "word")
		var v any = map[string]any{rapid.SampledFrom([]string{"password", "api-key", "Client_Secret", "authToken"}).Draw(t, "name"): word, "note": "key sk-proj-" + word + "0123456789"}
		for range rapid.IntRange(0, 5).Draw(t, "depth") {
			switch rapid.IntRange(0, 3).Draw(t, "around") {
			case 0:
				v = map[string]any{"a": 1, "b": v}
			case 1:
				v = []any{"x", v}
			default:
				text, _ := json.Marshal(v)
				v = string(text)
				if rapid.Bool().Draw(t, "prose") {
					v = "the result:\n" + string(text) + "\ndone"
				}
			}
		}
		line, err := json.Marshal(map[string]any{"id": "1", "type": "x", "timestamp": 1, "source": "s", "payload": map[string]any{"v": v}})
		require.NoError(t, err)
		s := parse(t, string(line))
		redact.Default().NewRedactor().Redact(s)
		require.NotContains(t, string(s.AppendJSON(nil)), word, "%s", line)
	})
}
