package query_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/signal"
)

// Escapes stand for what they stand for in JSON, digits of either case, and in pairs.
func TestUnquotedIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var escaped strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "parts") {
			switch rapid.IntRange(0, 3).Draw(t, "part") {
			case 0:
				escaped.WriteString(rapid.StringMatching(`[a-zé ]{0,4}`).Draw(t, "plain"))
			case 1:
				escaped.WriteString(`\` + rapid.SampledFrom([]string{`"`, `\`, "/", "b", "f", "n", "r", "t"}).Draw(t, "letter"))
			default:
				format := rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(t, "format")
				for _, unit := range utf16.AppendRune(nil, rapid.Rune().Draw(t, "rune")) {
					fmt.Fprintf(&escaped, format, unit)
				}
			}
		}
		var want string
		require.NoError(t, json.Unmarshal([]byte(`"`+escaped.String()+`"`), &want))
		got, changed := query.Unquoted(escaped.String())
		require.Equal(t, want, got)
		require.Equal(t, strings.Contains(escaped.String(), `\`), changed)
	})
}

// A text that is not an escape stays. Half of a surrogate pair is not a character.
func TestUnquotedMalformed(t *testing.T) {
	for text, want := range map[string]string{
		`\`: `\`, `a\`: `a\`, `\x`: `\x`, `\u`: `\u`, `\u12`: `\u12`, `\u123`: `\u123`, `\u12g4`: `\u12g4`, `\u123G`: `\u123G`, `\u/000`: `\u/000`, `\u:000`: `\u:000`, "\\u`000": "\\u`000", `\u@000`: `\u@000`, `\U0041`: `\U0041`,
		`\u0041`: `A`, `\u00aF`: "\u00af", `\u0041b`: `Ab`, `\ud83d`: string(utf8.RuneError), `\ud83dx`: string(utf8.RuneError) + "x", `\ud83d\u0041`: string(utf8.RuneError) + "A", `\ud83d\ude00!`: "😀!", `\\u0041`: `\u0041`, `plain`: `plain`, ``: ``,
	} {
		got, changed := query.Unquoted(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want != text, changed, text)
	}
}

// A name is found as a whole word: what stands beside it continues no word of ASCII letters,
// digits and underlines. A text is found anywhere.
func TestNeedles(t *testing.T) {
	for _, c := range []struct {
		s, text         string
		whole, anywhere bool
	}{
		{"bob", "bob", true, true},
		{"to bob.", "bob", true, true},
		{"bobby", "bob", false, true},
		{"a bob", "bob", true, true},
		{"abob", "bob", false, true},
		{"bob_", "bob", false, true},
		{"_bob", "bob", false, true},
		{"bob9", "bob", false, true},
		{"0bob", "bob", false, true},
		{"bobZ", "bob", false, true},
		{"Zbob", "bob", false, true},
		{"bob-", "bob", true, true},
		{"/bob/", "bob", true, true},
		{"@bob[", "bob", true, true},
		{"`bob{", "bob", true, true},
		{":bob/", "bob", true, true},
		{"^bob", "bob", true, true},
		{"bobby bob", "bob", true, true},
		{"bobbob", "bob", false, true},
		{"bobbob bob", "bob", true, true},
		{"bobob", "bob", false, true},
		{"ébob", "bob", true, true},
		{"bobé", "bob", true, true},
		{"群bob群", "bob", true, true},
		{"x群y", "群", true, true},
		{"c/d", "c/", true, true},
		{"xc/d", "c/", false, true},
		{"c/d", "/d", true, true},
		{"c/dx", "/d", false, true},
		{"c/dx /d", "/d", true, true},
		{"Bob", "bob", false, false},
		{"", "bob", false, false},
		{"bo", "bob", false, false},
		{"bob", "", false, false},
		{"", "", false, false},
		{"aa a", "a", true, true},
		{"aaa", "a", false, true},
	} {
		require.Equal(t, c.whole, query.Contains(c.s, c.text, true), "the name %q in %q", c.text, c.s)
		require.Equal(t, c.anywhere, query.Contains(c.s, c.text, false), "%q in %q", c.text, c.s)
	}
}

// A text is found below as many quotations as are unescaped, and not below one more.
func TestNeedlesBelowEscapes(t *testing.T) {
	s := `say "bob"`
	for levels := range query.MaxEscapes + 2 {
		require.Equal(t, levels <= query.MaxEscapes, query.Contains(s, `"bob"`, false), "%d quotations", levels)
		require.True(t, query.Contains(s, "bob", true), "a name needs no unescaping")
		quoted, err := json.Marshal(s)
		require.NoError(t, err)
		s = string(quoted)
	}
}

// A scalar is searched as it is written; a number is found by its value, a name only in a text.
func TestNeedlesInScalars(t *testing.T) {
	for _, c := range []struct {
		value, text     string
		whole, anywhere bool
	}{
		{`"bob and ann"`, "ann", true, true},
		{`"annie"`, "ann", false, true},
		{`"2"`, "2", true, true},
		{`2`, "2", false, true},
		{`2.0`, "2", false, true},
		{`2`, "2.0", false, true},
		{`2`, "2e0", false, true},
		{`3`, "2", false, false},
		{`2.5`, "2", false, true},
		{`12`, "2", false, true},
		{`true`, "true", false, true},
		{`false`, "als", false, true},
		{`true`, "false", false, false},
		{`null`, "null", false, true},
		{`null`, "", false, false},
		{`7`, "", false, false},
		{`9007199254740993`, "9007199254740992.0", false, false},
		{`1`, "1x", false, false},
	} {
		v, err := signal.ParseValue([]byte(c.value))
		require.NoError(t, err)
		require.Equal(t, c.whole, query.ScalarContains(v, c.text, true), "the name %q in %s", c.text, c.value)
		require.Equal(t, c.anywhere, query.ScalarContains(v, c.text, false), "%q in %s", c.text, c.value)
	}
}

// Values are the same as they are written, but for the order of members.
func TestSameValues(t *testing.T) {
	value := func(text string) signal.Value {
		if text == "" {
			return nil
		}
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		return v
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"", "null", false},
		{"null", "null", true},
		{"1", "1", true},
		{"1", "1.0", false},
		{"1", "2", false},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`[{"a":1,"b":2}]`, `[{"b":2,"a":1}]`, true},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
	} {
		require.Equal(t, c.want, query.SameValue(value(c.a), value(c.b)), "%s and %s", c.a, c.b)
		require.Equal(t, c.want, query.SameValue(value(c.b), value(c.a)), "%s and %s", c.b, c.a)
	}
}

// The text about unsearched entries has the right number, and names the first of them.
func TestUnsearchedTexts(t *testing.T) {
	kinds := []query.UnsearchedKind{query.UnsearchedDigest, query.UnsearchedAttempt, query.UnsearchedMismatch, query.UnsearchedRoom, query.UnsearchedSteps, query.UnsearchedGuidance}
	var texts []string
	for _, kind := range kinds {
		one, two := query.Unsearched{Kind: kind, Count: 1, Entry: 7}, query.Unsearched{Kind: kind, Count: 2, Entry: 9}
		texts = append(texts, one.String(), two.String())
	}
	require.Equal(t, []string{
		"1 prompt of which only the digest is recorded, first in entry 7", "2 prompts of which only the digest is recorded, first in entry 9",
		"1 generation whose prompt is not recorded, first in entry 7", "2 generations whose prompts are not recorded, first in entry 9",
		"1 prompt whose record contradicts itself or the agent's view, first in entry 7", "2 prompts whose records contradict themselves or the agent's view, first in entry 9",
		"1 effect of the program's own kinds that a chat room may have passed on, first in entry 7", "2 effects of the program's own kinds that a chat room may have passed on, first in entry 9",
		"1 step of an environment, with rewards and action masks, first in entry 7", "2 steps of an environment, with rewards and action masks, first in entry 9",
		"1 entry of a director whose character the agent may be, first in entry 7", "2 entries of a director whose character the agent may be, first in entry 9",
	}, texts)
}
