package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// everyMillisecond returns all moments of s from one to another whose offsets are whole
// milliseconds, and the two ends.
func everyMillisecond(s *tape, from, to replay.Moment) []replay.Moment {
	var all []replay.Moment
	for n := from.Seq; n <= to.Seq; n++ {
		last := to.Offset
		if n < to.Seq {
			last = s.entries[n].At
			if n > 0 {
				last -= s.entries[n-1].At
			}
		}
		for d := time.Duration(0); d <= last; d += ms {
			if m := (replay.Moment{Seq: n, Offset: d}); m.Compare(from) >= 0 {
				all = append(all, m)
			}
		}
	}
	return all
}

// Between two moments of a walk the state stays as it is, each boundary changes it, and
// the walk visits what its documentation lists.
func TestMomentsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genTape(t)
		r := replay.Open(s, toys, takeImages(s, func(n eventlog.Seq) bool { return n%7 == 0 }))
		over := replay.MomentRange{
			From: genMoment(t, s), To: genMoment(t, s), Rest: rapid.Bool().Draw(t, "rest"),
			Every: time.Duration(rapid.IntRange(0, 3).Draw(t, "every")) * 7 * ms,
		}
		over.From.Offset, over.To.Offset = over.From.Offset.Truncate(ms), over.To.Offset.Truncate(ms)
		if over.From.Compare(over.To) > 0 {
			over.From, over.To = over.To, over.From
		}
		needs := replay.NeedsState
		if rapid.Bool().Draw(t, "prev") {
			needs |= replay.NeedsPrev
		}
		kinds := map[replay.Moment]replay.MomentKind{}
		views := map[replay.Moment]any{}
		var visited []replay.Moment
		var before any
		for step, err := range r.Moments(context.Background(), over, needs) {
			require.NoError(t, err)
			m := step.Moment
			if len(visited) > 0 && visited[len(visited)-1].Compare(m) >= 0 {
				t.Fatalf("%v after %v", m, visited)
			}
			if m.Seq > 0 && step.Entry.Seq != m.Seq {
				t.Fatalf("%v has entry %d", m, step.Entry.Seq)
			}
			want := slow(t, s, m).View()
			if diff := cmp.Diff(want, step.View()); diff != "" {
				t.Fatalf("state at %v (-want +got):\n%s", m, diff)
			}
			if needs&replay.NeedsPrev != 0 && before != nil {
				require.Equal(t, before, any(step.Prev()))
			}
			before = want
			visited = append(visited, m)
			kinds[m], views[m] = step.Kind, want["band"]
		}
		if over.From.IsZero() {
			over.From.Seq = 1
		}
		if over.From.Compare(over.To) > 0 {
			require.Empty(t, visited)
			return
		}
		end := over.To
		if last := visited[len(visited)-1]; over.Rest {
			require.GreaterOrEqual(t, last.Compare(end), 0)
			end = last
		}
		require.Equal(t, over.From, visited[0])
		require.Equal(t, end, visited[len(visited)-1])
		var now any
		for _, m := range everyMillisecond(s, over.From, end) {
			f := slow(t, s, m)
			view := f.View()["band"]
			kind, is := kinds[m]
			onGrid := over.Every > 0 && f.At()%over.Every == 0
			if onGrid && !is && m.Offset > 0 {
				t.Fatalf("%v on the grid is not visited", m)
			}
			if !is {
				if diff := cmp.Diff(now, view); diff != "" {
					t.Fatalf("the state changes at %v, which is not visited: %s", m, diff)
				}
				continue
			}
			now = view
			changes := m.Offset > 0 && !cmp.Equal(slow(t, s, replay.Moment{Seq: m.Seq, Offset: m.Offset - 1}).View()["band"], view)
			want := replay.EdgeMoment
			switch {
			case m.Offset == 0 && m.Seq > 0:
				want = replay.EntryMoment
			case changes:
				want = replay.BoundaryMoment
			case onGrid:
				want = replay.GridMoment
			}
			require.Equal(t, want, kind, "kind of %v", m)
		}
		if over.Rest && end.Seq == eventlog.Seq(len(s.entries)) {
			require.Zero(t, views[end].(map[string]any)["running"], "the walk ends before the last boundary")
		}
	})
}

func walk(t *testing.T, r *replay.Replay, over replay.MomentRange) []string {
	t.Helper()
	got := []string{}
	for step, err := range r.Moments(context.Background(), over, replay.NeedsState) {
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%v %v", step.Moment, step.Kind))
	}
	return got
}

func TestMomentsRest(t *testing.T) {
	s := &tape{}
	s.add(10*ms, 20)
	s.add(100*ms, 5)
	r := replay.Open(s, toys, nil)
	for _, tt := range []struct {
		over replay.MomentRange
		want []string
	}{
		{replay.MomentRange{To: replay.Moment{Seq: 1}}, []string{"1 entry"}},
		{replay.MomentRange{To: replay.Moment{Seq: 1}, Rest: true}, []string{"1 entry", "1+20ms boundary"}},
		{replay.MomentRange{To: replay.Moment{Seq: 1, Offset: 20 * ms}}, []string{"1 entry", "1+20ms boundary"}},
		{replay.MomentRange{To: replay.Moment{Seq: 1, Offset: 15 * ms}}, []string{"1 entry", "1+15ms edge"}},
		{replay.MomentRange{To: replay.Moment{Seq: 1, Offset: 5 * ms}, Rest: true}, []string{"1 entry", "1+5ms edge", "1+20ms boundary"}},
		{replay.MomentRange{From: replay.Moment{Seq: 1, Offset: 30 * ms}, To: replay.Moment{Seq: 2}, Rest: true}, []string{"1+30ms edge", "2 entry", "2+5ms boundary"}},
		{
			replay.MomentRange{From: replay.Moment{Seq: 1, Offset: 20 * ms}, To: replay.Moment{Seq: 2}, Every: 30 * ms, Rest: true},
			[]string{"1+20ms boundary", "1+50ms grid", "1+80ms grid", "2 entry", "2+5ms boundary"},
		},
		{replay.MomentRange{From: replay.Moment{Seq: 0, Offset: ms}, To: replay.Moment{Seq: 1}}, []string{"0+1ms edge", "1 entry"}},
	} {
		assert.Equal(t, tt.want, walk(t, r, tt.over), "%+v", tt.over)
	}
}

// A performance without an end does not make the walk endless.
func TestMomentsOfEndlessPerformance(t *testing.T) {
	s := &tape{}
	for range 255 {
		s.add(0, 255)
	}
	r := replay.Open(s, clocks, nil)
	got := walk(t, r, replay.MomentRange{From: replay.Moment{Seq: 255}, To: replay.Moment{Seq: 255}, Rest: true})
	require.Len(t, got, 62)
	assert.Equal(t, []string{"255 entry", "255+400ms boundary", "255+1.4s boundary"}, got[:3])
	assert.Equal(t, []string{"255+59.4s boundary", "255+1m0s edge"}, got[60:])
}

// stuck is a state whose next boundary stays where it is.
type stuck struct {
	clock
	at time.Duration
}

func (s *stuck) NextBoundary() (time.Duration, bool) { return s.at, true }

// A boundary that stays when time has come to it is visited once, and the walk goes on.
func TestMomentsOfStuckBoundary(t *testing.T) {
	s := &tape{}
	for range 3 {
		s.add(10*ms, 1)
	}
	for at, want := range map[time.Duration][]string{
		20 * ms: {"1 entry", "1+10ms boundary", "2 entry", "3 entry"},
		25 * ms: {"1 entry", "2 entry", "2+5ms boundary", "3 entry"},
		30 * ms: {"1 entry", "2 entry", "2+10ms boundary", "3 entry"},
		31 * ms: {"1 entry", "2 entry", "3 entry", "3+1ms boundary"},
	} {
		set := projection.Set{{
			Name: "stuck", Version: 1, New: func() projection.State { return &stuck{at: at} },
			Restore: func([]byte) (projection.State, error) { return nil, errors.New("not needed") },
		}}
		r := replay.Open(s, set, nil)
		assert.Equal(t, want, walk(t, r, replay.MomentRange{To: replay.Moment{Seq: 3}, Rest: true}), at)
	}
}

func TestMomentsErrors(t *testing.T) {
	r := replay.Open(song(), toys, nil)
	for _, over := range []replay.MomentRange{
		{To: replay.Moment{Seq: 5}},
		{From: replay.Moment{Seq: 1, Offset: time.Hour}, To: replay.Moment{Seq: 2}},
		{To: replay.Moment{Seq: 1, Offset: time.Hour}},
		{To: replay.Moment{Seq: 1, Offset: -1}, From: replay.Moment{Seq: 0, Offset: -1}},
	} {
		n := 0
		for _, err := range r.Moments(context.Background(), over, 0) {
			n++
			assert.ErrorIs(t, err, replay.ErrNoAddress)
		}
		assert.Equal(t, 1, n, "%+v", over)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	for _, err := range r.Moments(ctx, replay.MomentRange{To: replay.Moment{Seq: 4}, Rest: true}, 0) {
		cancel()
		last = err
	}
	assert.ErrorIs(t, last, context.Canceled)
}

// A walk that is left at its first moment goes no further, wherever it begins.
func TestMomentsLeftAtOnce(t *testing.T) {
	s := &tape{}
	for range 4 {
		s.add(10*ms, 5)
	}
	r := replay.Open(s, toys, nil)
	for _, from := range []replay.Moment{{}, {Seq: 1}, {Seq: 2, Offset: 3 * ms}, {Seq: 3, Offset: 5 * ms}} {
		visited := 0
		for _, err := range r.Moments(t.Context(), replay.MomentRange{From: from, To: replay.Moment{Seq: 4}}, replay.NeedsState) {
			require.NoError(t, err)
			visited++
			break
		}
		assert.Equal(t, 1, visited, from)
	}
}

// A stretch that is searched backwards ends before the Seq from which the search starts, and
// has at most Reach entries.
func TestChunkStart(t *testing.T) {
	assert.Zero(t, replay.ChunkStart(0))
	for seq := eventlog.Seq(1); seq <= 3*replay.Reach+1; seq++ {
		start := replay.ChunkStart(seq)
		require.Less(t, start, seq)
		require.LessOrEqual(t, seq-start, replay.Reach)
		require.Zero(t, start%replay.Reach)
	}
}
