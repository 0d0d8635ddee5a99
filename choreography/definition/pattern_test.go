package definition_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/definition"
)

// A pattern becomes the expression that means in Go's syntax what the pattern means
// in JavaScript's. Inside a class a dot, brackets and a group's beginning are plain
// characters.
func TestCompilePattern(t *testing.T) {
	const (
		space   = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
		newline = `\n\r\x{2028}\x{2029}`
	)
	for js, want := range map[string]string{
		`a.b`:            `a[^` + newline + `]b`,
		`a\.b`:           `a\.b`,
		`[.]`:            `[.]`,
		`[(?]`:           `[(?]`,
		`[(?=]+`:         `[(?=]+`,
		`[^.]`:           `[^.]`,
		`[[:alpha:]]`:    `[\[:alpha:]]`,
		`[a\]b]c.`:       `[a\]b]c[^` + newline + `]`,
		`[]`:             `[^\x{0}-\x{10ffff}]`,
		`[^]`:            `[\x{0}-\x{10ffff}]`,
		`[^]]`:           `[\x{0}-\x{10ffff}]]`,
		`\s`:             `[` + space + `]`,
		`[\s.]`:          `[` + space + `.]`,
		`\S`:             `[^` + space + `]`,
		`\bx\B`:          `\bx\B`,
		`[\b]`:           `[\x08]`,
		`[\B]`:           `[B]`,
		`\u00E9`:         `\x{e9}`,
		`\uD83D\uDE00`:   `\x{1f600}`,
		`\u00e`:          `u00e`,
		`\x4A\x4`:        `\x{4a}x4`,
		`\cJ\c1`:         `\x{a}\\c1`,
		`\0`:             `\x{0}`,
		`\/\-\é\e`:       `\/\-ée`,
		`(?:a)(?<n>b)`:   `(?:a)(?<n>b)`,
		`^a{2}$`:         `^a{2}$`,
		`a{,2}`:          `a{,2}`,
		`^{x}`:           `^{x}`,
		`^{2`:            `^{2`,
		`^{,2}`:          `^{,2}`,
		`[^*$+]`:         `[^*$+]`,
		`[\b]*`:          `[\x08]*`,
		`[a[b]`:          `[a\[b]`,
		`a[b^]c`:         `a[b^]c`,
		`\u0041b\u004`:   `\x{41}bu004`,
		`\x4Gz`:          `x4Gz`,
		`\x4`:            `x4`,
		`\0a`:            `\x{0}a`,
		`\0/`:            `\x{0}/`,
		`\0:`:            `\x{0}:`,
		`\cz\cA\c@\c{`:   `\x{1a}\x{1}\\c@\\c{`,
		`\c`:             `\\c`,
		`\Z\_\~`:         `Z\_\~`,
		`\d\w\f\n\r\t\v`: `\d\w\f\n\r\t\v`,
	} {
		re, err := definition.CompilePattern(js)
		require.NoError(t, err, js)
		assert.Equal(t, want, re.String(), js)
	}
	for js, want := range map[string]string{
		`\`:               `a lone \ at the end`,
		`^*`:              `JavaScript cannot repeat an assertion`,
		`a$+`:             `JavaScript cannot repeat an assertion`,
		`\b{2}`:           `JavaScript cannot repeat an assertion`,
		`\B{2,}`:          `JavaScript cannot repeat an assertion`,
		`(?=a)`:           `lookaround does not exist in Go's RE2 engine`,
		`(?!a)`:           `lookaround does not exist in Go's RE2 engine`,
		`(?<=a)b`:         `lookaround does not exist in Go's RE2 engine`,
		`(?<!a)b`:         `lookaround does not exist in Go's RE2 engine`,
		`(?i)a`:           `"(?i" is no group in JavaScript`,
		`(?P<n>a)`:        `"(?P" is no group in JavaScript`,
		`(a)\1`:           `back references do not exist in Go's RE2 engine`,
		`\k<n>`:           `back references do not exist in Go's RE2 engine`,
		`\01`:             `octal escapes do not exist in Go's RE2 engine`,
		`\ud83d`:          `half of a surrogate pair never occurs in a payload`,
		`\ud83dx`:         `half of a surrogate pair never occurs in a payload`,
		`(a{1000}){1000}`: "the RE2 engine of Go refuses it: error parsing regexp: invalid repeat count: `{1000}`",
		`\uDE00`:          `half of a surrogate pair never occurs in a payload`,
		`\ud83d\u0041`:    `half of a surrogate pair never occurs in a payload`,
		`[\s\d\w]{1000}`:  `the pattern expands to more than 20000 instructions`,
	} {
		_, err := definition.CompilePattern(js)
		assert.EqualError(t, err, want, js)
	}
}

// A pattern of 4096 bytes and one of 20000 instructions are compiled, longer and larger
// ones are not. A repetition of one letter counts 3 instructions each time, the literal at
// the end 1 and its letters, and the sequence of them 1.
func TestPatternBounds(t *testing.T) {
	_, err := definition.CompilePattern(strings.Repeat("a", 4096))
	require.NoError(t, err)
	_, err = definition.CompilePattern(strings.Repeat("a", 4097))
	require.EqualError(t, err, "the pattern is longer than 4096 bytes")

	repeated := strings.Repeat("a{1000}", 6) + "a{663}" // 19989
	_, err = definition.CompilePattern(repeated + "bcdefghij")
	require.NoError(t, err)
	_, err = definition.CompilePattern(repeated + "bcdefghijk")
	require.EqualError(t, err, "the pattern expands to more than 20000 instructions")
	_, err = definition.CompilePattern("(?:ab?){1000}(?:c|d){0,1000}(?:e){1000,}x{0}")
	require.NoError(t, err)
}
