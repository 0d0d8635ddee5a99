package stage_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/stage"
)

// A well-formed state that no history of a stage leads to is refused.
func TestImpossibleStates(t *testing.T) {
	w := busy(t)
	whole := w.stage.Append(nil)
	const now, acts, beams, sounds, totals, recent = 2, 7, 8, 9, 10, 11
	number := func(n int64) []byte { return msgp.AppendInt64(nil, n) }
	count := func(b []byte, path ...int) int {
		n, _, err := msgp.ReadArrayHeaderBytes(msgptest.Get(b, path...))
		require.NoError(t, err)
		return int(n)
	}
	last := count(whole, acts) - 1
	// The last act began after the first, and with a claim that exists.
	start := func(act int) int64 {
		n, _, err := msgp.ReadInt64Bytes(msgptest.Get(whole, acts, act, 3))
		require.NoError(t, err)
		return n
	}
	if last < 1 || start(0) >= start(last) {
		t.Fatalf("acts begin at %d … %d", start(0), start(last))
	}
	for name, data := range map[string][]byte{
		"acts in another order":          msgptest.Swap(whole, 0, last, acts),
		"an act that is to begin":        msgptest.Set(whole, number(51e6), acts, last, 3),
		"an act that began too early":    msgptest.Set(whole, number(start(0)-1), acts, last, 3),
		"an act twice":                   msgptest.Set(whole, msgptest.Get(whole, acts, 0), acts, 1),
		"an act that moves nothing":      msgptest.Set(whole, []byte{0x90}, acts, 0, 6),
		"an unknown curve":               msgptest.Set(whole, msgp.AppendString(nil, "easeOdd"), acts, 0, 5),
		"a session before all time":      msgptest.Set(whole, number(-1), now),
		"a session before its acts":      msgptest.Set(whole, number(0), now),
		"a claim of no entity":           msgptest.Set(whole, number(10_000), acts, 0, 6, 0, 0),
		"a claim of no kind":             msgptest.Set(whole, number(100), acts, 0, 6, 0, 1),
		"a claim of no channel":          msgptest.Set(whole, number(0), acts, 0, 6, 0, 2),
		"beams in another order of acts": msgptest.Set(whole, number(int64(last)+1), beams, 0, 8),
		"a beam that is to begin":        msgptest.Set(whole, number(51e6), beams, 0, 7),
		"a beam of a width without end":  msgptest.Set(whole, msgp.AppendFloat64(nil, 1e300), beams, 0, 6),
		"a sound that is to come":        msgptest.Set(whole, number(51e6), sounds, 0, 0),
		"totals that are negative":       msgptest.Set(whole, number(-1), totals, 0),
		"a diagnostic of no kind":        msgptest.Set(whole, number(100), recent, 0, 1),
		"an invalid scene":               msgptest.Set(whole, []byte{0x90}, 4),
	} {
		if _, err := stage.Restore(w.cfg, data); !errors.Is(err, stage.ErrState) {
			t.Errorf("%s: err = %v, want ErrState", name, err)
		}
	}
}
