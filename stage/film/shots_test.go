package film_test

import (
	"context"
	"encoding/json"
	"iter"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// shown is the picture of a shot, in a form that can be compared.
type shown struct {
	Moment string
	At     time.Duration
	Frame  string
}

func pictures(t *testing.T, shots iter.Seq2[film.Shot, error]) (all []shown) {
	t.Helper()
	for s, err := range shots {
		require.NoError(t, err)
		frame, err := json.Marshal(s.Frame)
		require.NoError(t, err)
		all = append(all, shown{s.Moment.String(), s.At, string(frame)})
	}
	return all
}

// recordedStory records the story of the digests in a store, and returns what reads it.
func recordedStory(t *testing.T) (*eventlog.SessionReader, *replay.Replay) {
	t.Helper()
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: vfs.NewMem()})
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	ms := int64(0)
	for i, s := range enginetest.DigestStory {
		ms += s.Wait
		_, err := ses.Record(t.Context(), s.Record(t, i, ms))
		require.NoError(t, err)
	}
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	travel, err := eng.Replay("a")
	require.NoError(t, err)
	return log, travel
}

// Every way of showing an interval gives the pictures that its moments have each on its
// own, for intervals that begin and end at entries and between them.
func TestShotsAreThoseOfTheirMoments(t *testing.T) {
	ctx := t.Context()
	log, travel := recordedStory(t)
	reel := film.Open(log, travel)
	var entries []eventlog.Entry
	for e, err := range log.Entries(ctx, 1) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	head := eventlog.Seq(len(entries))

	// alone is the picture of one moment, as it is some time later.
	alone := func(m replay.Moment, later time.Duration) shown {
		t.Helper()
		fold, err := travel.At(ctx, m)
		require.NoError(t, err, m)
		at := fold.At()
		fold.Advance(at + later)
		f := session.StageOf(fold).Frame()
		f.At = at
		text, err := json.Marshal(f)
		require.NoError(t, err)
		return shown{m.String(), at, string(text)}
	}
	moments := []replay.Moment{{}, {Seq: 1}, {Seq: 3}, {Seq: head / 2}, {Seq: head - 1}, {Seq: head}, {Seq: head, Offset: 700 * time.Millisecond}}
	for seq := eventlog.Seq(1); seq < head; seq++ {
		if between := entries[seq].At - entries[seq-1].At; between > time.Millisecond && len(moments) < 12 {
			moments = append(moments, replay.Moment{Seq: seq, Offset: between / 2})
		}
	}
	for _, first := range moments {
		for _, last := range moments {
			if first.Compare(last) > 0 {
				continue
			}
			name := first.String() + " to " + last.String()
			over, err := reel.Interval(ctx, first, last)
			require.NoError(t, err, name)

			var each, effects []shown
			show := func(m replay.Moment) {
				each, effects = append(each, alone(m, 0)), append(effects, alone(m, 500*time.Millisecond))
			}
			show(first)
			for seq := first.Seq + 1; seq <= last.Seq; seq++ {
				show(replay.Moment{Seq: seq})
			}
			if last.Offset > 0 && last != first {
				show(last)
			}
			require.Equal(t, each, pictures(t, reel.Entries(ctx, over)), name)
			require.Equal(t, effects, pictures(t, reel.Effects(ctx, over)), name)

			for _, n := range []int{1, 2, 7} {
				instants := over.Spread(n)
				var want []shown
				for i, now := range instants {
					m := first
					switch {
					case i == n-1:
						m = last
					case i > 0:
						for m.Seq < last.Seq && entries[m.Seq].At <= now {
							m.Seq++
						}
						m.Offset = now
						if m.Seq > 0 {
							m.Offset -= entries[m.Seq-1].At
						}
					}
					want = append(want, alone(m, 0))
				}
				require.Equal(t, want, pictures(t, reel.At(ctx, over, instants)), "%s in %d pictures", name, n)
			}
		}
	}

	// A loop may end at any picture, and a context that has ended ends it.
	whole, err := reel.Interval(ctx, replay.Moment{}, replay.Moment{Seq: head, Offset: time.Second})
	require.NoError(t, err)
	ended, end := context.WithCancel(ctx)
	end()
	for name, shots := range map[string]func(context.Context) iter.Seq2[film.Shot, error]{
		"at":      func(ctx context.Context) iter.Seq2[film.Shot, error] { return reel.At(ctx, whole, whole.Spread(5)) },
		"entries": func(ctx context.Context) iter.Seq2[film.Shot, error] { return reel.Entries(ctx, whole) },
		"effects": func(ctx context.Context) iter.Seq2[film.Shot, error] { return reel.Effects(ctx, whole) },
	} {
		seen := 0
		for _, err := range shots(ctx) {
			require.NoError(t, err, name)
			if seen++; seen == 3 {
				break
			}
		}
		require.Equal(t, 3, seen, name)
		n := 0
		for shot, err := range shots(ended) {
			require.ErrorIs(t, err, context.Canceled, name)
			require.Nil(t, shot.Frame, name)
			n++
		}
		require.Equal(t, 1, n, name)
	}

	// An interval that the session does not have ends with an error, after the pictures before.
	begins := film.Interval{First: replay.Moment{Seq: head + 1}, Last: replay.Moment{Seq: head + 2}}
	ends := film.Interval{First: replay.Moment{Seq: head - 1}, Last: replay.Moment{Seq: head + 1}}
	for name, tt := range map[string]struct {
		shots iter.Seq2[film.Shot, error]
		want  int
	}{
		"at, begins beyond":      {reel.At(ctx, begins, []time.Duration{0, 1}), 0},
		"entries, begins beyond": {reel.Entries(ctx, begins), 0},
		"effects, begins beyond": {reel.Effects(ctx, begins), 0},
		"entries, ends beyond":   {reel.Entries(ctx, ends), 2},
		"effects, ends beyond":   {reel.Effects(ctx, ends), 2},
	} {
		seen, failed := 0, 0
		for shot, err := range tt.shots {
			if err != nil {
				require.Nil(t, shot.Frame, name)
				failed++
				continue
			}
			require.Zero(t, failed, name)
			seen++
		}
		require.Equal(t, tt.want, seen, name)
		require.Equal(t, 1, failed, name)
	}
}
