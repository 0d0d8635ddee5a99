package sajou_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// wallHour is what the clock shows, in milliseconds after enginetest's first signal.
const wallHour = int64(time.Hour / time.Millisecond)

func skewed(t *testing.T, cfg sajou.Config) (*sajou.Engine, *sajou.Session) {
	t.Helper()
	cfg.Now = func() time.Time { return time.UnixMilli(1_700_000_000_000 + wallHour) }
	cfg.AfterFunc = func(time.Duration, func()) func() bool { return func() bool { return true } }
	eng, ses := enginetest.Begin(t, t.TempDir(), cfg)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return eng, ses
}

// A timestamp far ahead of the clock is refused before anything is recorded, and one
// within the bound moves session time.
func TestMaxSkew(t *testing.T) {
	const day = 24 * int64(time.Hour/time.Millisecond)
	_, ses := skewed(t, sajou.Config{})
	for name, sig := range map[string]*signal.Signal{
		"just over a day": enginetest.TaskSignal(1, wallHour+day+1),
		"a hundred years": enginetest.TaskSignal(1, wallHour+36500*day),
	} {
		_, err := ses.Signal(t.Context(), sig)
		var skew *session.SkewError
		require.ErrorAs(t, err, &skew, name)
		require.ErrorIs(t, err, session.ErrTime, name)
		require.Equal(t, 24*time.Hour, skew.Max, name)
		require.Greater(t, skew.Ahead, skew.Max, name)
		require.Equal(t, 1, strings.Count(err.Error(), "timestamp"), err)
		require.Contains(t, err.Error(), " ahead of the clock, more than the 24h allowed; ", name)
		require.Equal(t, sig.Timestamp, skew.Timestamp, name)
		require.Zero(t, ses.Head().Seq, name)
	}
	_, err := ses.Signal(t.Context(), enginetest.TaskSignal(1, wallHour))
	require.NoError(t, err)
	_, err = ses.Signal(t.Context(), enginetest.TaskSignal(2, wallHour+day))
	require.NoError(t, err, "exactly a day ahead")
	head := ses.Head()
	_, err = ses.Record(t.Context(), sajou.Addition{Signals: []*signal.Signal{
		enginetest.TaskSignal(3, wallHour), enginetest.TaskSignal(4, wallHour+2*day),
	}})
	require.ErrorContains(t, err, "signal 2 of the record")
	require.Equal(t, head, ses.Head(), "a record is refused as a whole")

	_, ses = skewed(t, sajou.Config{MaxSkew: time.Minute})
	_, err = ses.Signal(t.Context(), enginetest.TaskSignal(1, wallHour+60_001))
	require.ErrorIs(t, err, session.ErrTime)
	_, ses = skewed(t, sajou.Config{MaxSkew: -1})
	_, err = ses.Signal(t.Context(), enginetest.TaskSignal(1, wallHour+36500*day))
	require.NoError(t, err, "no bound")
}

// A lenient record keeps the signal, flagged, where session time stands, and later
// signals take effect at their own times, also if it is the first of the session.
func TestMaxSkewLenient(t *testing.T) {
	const far = wallHour + 1<<41
	for _, first := range []bool{false, true} {
		eng, ses := skewed(t, sajou.Config{})
		if !first {
			_, err := ses.Signal(t.Context(), enginetest.TaskSignal(1, wallHour-1000))
			require.NoError(t, err)
		}
		given := enginetest.TaskSignal(2, far)
		_, err := ses.Record(t.Context(), sajou.Addition{Lenient: true, Signals: []*signal.Signal{given}})
		require.NoError(t, err)
		require.Empty(t, given.Problem, "the caller's signal stays as it is")
		for e, err := range ses.Entries(t.Context(), ses.Head().Seq) {
			require.NoError(t, err)
			sig, err := signal.Decode(e.Data)
			require.NoError(t, err)
			require.Regexp(t, `^timestamp: \d+ is \d+ days ahead of the clock, `, sig.Problem)
			require.Zero(t, e.At)
			require.Equal(t, given.Timestamp, sig.Timestamp)
		}
		_, err = ses.Signal(t.Context(), enginetest.TaskSignal(3, wallHour+1500))
		require.NoError(t, err)
		want := 2500 * time.Millisecond
		if first {
			want = 1500 * time.Millisecond // the origin is the time of the clock
		}
		state, err := ses.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, state.At())
		replayed, err := enginetest.ReplayedAt(t.Context(), eng, ses.Name(), ses.Head().Seq)
		require.NoError(t, err)
		require.Equal(t, enginetest.Digests(state), enginetest.Digests(replayed))
	}
}

// The bound is for timestamps of the wall clock that are recorded live.
func TestMaxSkewElsewhere(t *testing.T) {
	const far = wallHour + 1<<41
	eng, ses := skewed(t, sajou.Config{})
	out, err := ses.Record(t.Context(), sajou.Addition{Recording: true, Key: "k", Signals: []*signal.Signal{
		enginetest.TaskSignal(1, wallHour), enginetest.TaskSignal(2, far), enginetest.TaskSignal(3, wallHour), enginetest.TaskSignal(4, far),
	}})
	require.NoError(t, err)
	require.Equal(t, 1, out.OutOfOrder)
	again, err := ses.Record(t.Context(), sajou.Addition{Recording: true, Key: "k", Signals: []*signal.Signal{
		enginetest.TaskSignal(1, wallHour), enginetest.TaskSignal(2, far), enginetest.TaskSignal(3, wallHour), enginetest.TaskSignal(4, far),
	}})
	require.NoError(t, err)
	require.True(t, again.Repeat)
	require.Zero(t, again.OutOfOrder)
	manual, err := eng.Begin(t.Context(), "manual", session.TimeManual)
	require.NoError(t, err)
	_, err = manual.Signal(t.Context(), enginetest.TaskSignal(1, far))
	require.NoError(t, err)
}
