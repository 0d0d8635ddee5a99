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
