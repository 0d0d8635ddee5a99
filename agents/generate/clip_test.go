package generate

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A clipped text is valid, fits, and is the longest beginning of the text that does. A
// bound below zero leaves room for nothing.
func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"a", "é", "語", "🔑", "\xff", "\xe2\x82", "\uFFFD"})).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		most := rapid.IntRange(-3, 12).Draw(t, "most")
		got, cut := clip(text, most)
		want, valid := "", strings.ToValidUTF8(text, "\uFFFD")
		for _, r := range valid {
			if len(want)+utf8.RuneLen(r) > most {
				break
			}
			want += string(r)
		}
		require.Equal(t, want, got)
		require.Equal(t, len(valid) > most, cut)
	})
}
