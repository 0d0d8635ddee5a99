package chain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// ParseHead reads what String writes, in either case of the digits, and refuses everything
// else with the text and the part that is wrong.
func TestParseHead(t *testing.T) {
	digits := strings.Repeat("0a", chain.HashSize)
	for _, seq := range []chain.Seq{0, 1, 1<<64 - 1} {
		h := chain.Head{Seq: seq}
		for i := range h.Hash {
			h.Hash[i] = 0x0a
		}
		for _, text := range []string{h.String(), strings.ToUpper(h.String())} {
			got, err := chain.ParseHead(text)
			require.NoError(t, err)
			assert.Equal(t, h, got)
		}
	}
	for text, says := range map[string]string{
		"":                                    "want SEQ:HASH",
		"7":                                   "want SEQ:HASH",
		digits:                                "want SEQ:HASH",
		":" + digits:                          "is not a sequence number",
		"-1:" + digits:                        "is not a sequence number",
		"x:" + digits:                         "is not a sequence number",
		"18446744073709551616:" + digits:      "is not a sequence number",
		"7:":                                  "is not 64 hexadecimal digits",
		"7:" + digits[1:]:                     "is not 64 hexadecimal digits",
		"7:" + digits[2:]:                     "is not 64 hexadecimal digits",
		"7:" + digits + "0":                   "is not 64 hexadecimal digits",
		"7:" + digits + "0a":                  "is not 64 hexadecimal digits",
		"7:" + digits[1:] + "g":               "is not 64 hexadecimal digits",
		"7:" + strings.Repeat("zz", 32):       "is not 64 hexadecimal digits",
		"7:" + strings.Repeat("0a", 31) + ":": "is not 64 hexadecimal digits",
	} {
		got, err := chain.ParseHead(text)
		require.ErrorContains(t, err, says, "%q", text)
		assert.Zero(t, got)
	}
}

// Each number that the format knows has its name, and no other.
func TestKindNames(t *testing.T) {
	names := map[chain.Kind]string{1: "signal", 2: "effect", 3: "beat", 4: "define", 5: "session"}
	for k := range 256 {
		name, known := names[chain.Kind(k)]
		assert.Equal(t, known, chain.Kind(k).Valid(), k)
		if known {
			assert.Equal(t, name, chain.Kind(k).String())
		} else {
			assert.Contains(t, chain.Kind(k).String(), "kind(")
		}
	}
}
