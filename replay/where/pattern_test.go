package where_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/replay/where"
)

// TestMatches holds matches against package regexp: patterns that are a literal, begin
// with one or have none, in texts short and long, with what they look for at the
// beginning, at the end, in the middle and nowhere.
func TestMatches(t *testing.T) {
	set := testSet(t)
	for _, size := range []int{0, 10, 1000, 60_000} {
		fill := strings.Repeat("né ", size/3)
		for _, text := range []string{fill, "key7" + fill, fill + "key7", fill + "key7\n" + fill, fill + "key" + fill} {
			line := fmt.Sprintf(`{"id":"s1","type":"other","timestamp":1,"source":"t","payload":{"s":%s}}`, quoted(t, text))
			in := where.Input{Entry: entryOf(t, 1, time.Second, line)}
			for _, pattern := range []string{"key7", "key[0-9]", "^key7", "key7$", "(?m)^key", "[k]ey7", "k.y7", "key7.*né", "zzz", "", "(?i)KEY7", "key7|zzz"} {
				p, err := where.Compile(fmt.Sprintf(`entry.payload.s.matches(%s)`, quoted(t, pattern)), set)
				require.NoError(t, err)
				got, err := p.Match(context.Background(), in)
				require.NoError(t, err)
				assert.Equal(t, regexp.MustCompile(pattern).MatchString(text), got, "%q in %d bytes, %.20q", pattern, len(text), text)
			}
		}
	}
}

// TestPatternBounds shows the longest pattern that is compiled, and the most instructions.
func TestPatternBounds(t *testing.T) {
	set := testSet(t)
	match := func(pattern string) error {
		line := fmt.Sprintf(`{"id":"s1","type":"other","timestamp":1,"source":"t","payload":{"p":%s}}`, quoted(t, pattern))
		p, err := where.Compile(`"x".matches(entry.payload.p)`, set)
		require.NoError(t, err)
		_, err = p.Match(context.Background(), where.Input{Entry: entryOf(t, 1, time.Second, line)})
		return err
	}
	require.NoError(t, match(strings.Repeat("a", where.MaxExpression)))
	require.ErrorContains(t, match(strings.Repeat("a", where.MaxExpression+1)), "longer than 4096 bytes")
	require.NoError(t, match("a{900}"))
	require.ErrorContains(t, match(strings.Repeat("a{900}b", 12)), "10000 instructions")
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	require.NoError(t, err)
	return string(b)
}
