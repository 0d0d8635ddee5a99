package session_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// A signal is late if its timestamp is before the greatest one before it, from whichever
// entry on the session is read.
func TestLateness(t *testing.T) {
	engine, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, engine.Close()) })
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		ses, err := engine.Begin(t.Context(), fmt.Sprint("s", n), session.TimeWall)
		require.NoError(r, err)
		var signals []*signal.Signal
		want, reached := map[eventlog.Seq]bool{}, 0
		for i, at := range rapid.SliceOfN(rapid.IntRange(1, 9), 1, 8).Draw(r, "at") {
			s, err := signal.Parse(fmt.Appendf(nil, `{"id":"%d","type":"note","timestamp":%d,"source":"t","payload":{}}`, i, at))
			require.NoError(r, err)
			signals = append(signals, s)
			want[eventlog.Seq(i)+2] = at < reached
			reached = max(reached, at)
		}
		_, err = ses.Record(t.Context(), sajou.Addition{Signals: signals})
		require.NoError(r, err)
		past, err := engine.Replay(ses.Name())
		require.NoError(r, err)
		from := rapid.IntRange(1, len(signals)+1).Draw(r, "from")
		late := session.NewLateness(past.Entries)
		for e, err := range past.Entries(t.Context(), eventlog.Seq(from)) {
			require.NoError(r, err)
			is, err := late.Of(t.Context(), &e)
			require.NoError(r, err)
			assert.Equal(r, want[e.Seq], is, "entry %d", e.Seq)
			line, err := late.AppendEntryJSON(t.Context(), nil, &e)
			require.NoError(r, err)
			assert.Equal(r, is, string(line) != string(session.AppendEntryJSON(nil, &e)))
			_, err = session.ParseEntryJSON(line)
			require.NoError(r, err)
		}
	})
}

// What is not a signal needs no entry but itself, and an entry that cannot be read is an
// error and no mark.
func TestLatenessReadsNoMoreThanItNeeds(t *testing.T) {
	broken := func(context.Context, eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
		return func(yield func(eventlog.Entry, error) bool) { yield(eventlog.Entry{}, assert.AnError) }
	}
	late, err := session.NewLateness(broken).Of(t.Context(), &eventlog.Entry{Kind: eventlog.KindBeat, Seq: 9})
	require.NoError(t, err)
	assert.False(t, late)
	s, err := signal.Parse([]byte(`{"id":"a","type":"note","timestamp":1,"source":"t","payload":{}}`))
	require.NoError(t, err)
	_, err = session.NewLateness(broken).Of(t.Context(), &eventlog.Entry{Kind: eventlog.KindSignal, Seq: 9, At: time.Second, Data: s.Append(nil)})
	assert.ErrorIs(t, err, assert.AnError)
}
