package bisect_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// These sessions go wrong in different ways. Each is searched with an expensive test and
// with the same test at every moment.
func TestFind(t *testing.T) {
	stuck := new(tape).add(0, "set 1").add(ms, "").add(ms, "set 2").add(ms, "set 9").add(ms, "").add(ms, "set 8")
	fades := new(tape).add(0, "set 1").add(10*ms, "fade 9 80").add(100*ms, "").add(ms, "")
	vanishes := new(tape).add(0, "set 1").add(10*ms, "hide 200 400").add(time.Second, "").add(ms, "")
	flips := new(tape).add(0, "set 9").add(ms, "set 1").add(ms, "set 9").add(ms, "set 1").add(ms, "set 9")
	for _, tt := range []struct {
		name           string
		session        *tape
		judge          func(string) bisect.TestResult
		cfg            bisect.Config
		probing, exact string
	}{
		{
			"a value left wrong", stuck, above(5),
			bisect.Config{},
			"2|3 assumes one transition; good at 3+1ms, bad at 4 (3ms) by the entry",
			"0|1 conclusive; good at 3+1ms, bad at 4 (3ms) by the entry",
		},
		{
			"a value that moves", fades, above(5),
			bisect.Config{},
			"1|2 conclusive; good at 2+40ms, bad at 2+41ms (51ms)",
			"0|1 conclusive; good at 2+40ms, bad at 2+41ms (51ms)",
		},
		{
			"bad between two entries", vanishes, hidden,
			bisect.Config{Options: bisect.Options{Goal: bisect.AllPhases}},
			"1|2 islands 3-3 good conclusive; good at 2+199ms, bad at 2+200ms (210ms)",
			"0|1 islands 2-2 good conclusive; good at 2+199ms, bad at 2+200ms (210ms)",
		},
		{
			"wrong, right, wrong, right, wrong", flips, above(5),
			bisect.Config{Options: bisect.Options{Probes: 8}},
			"0|1 islands 2-2 good 4-4 good conclusive; good at 0, bad at 1 (0s) by the entry",
			"0|1 islands 2-2 good 4-4 good conclusive; good at 0, bad at 1 (0s) by the entry",
		},
		{
			"the last time", flips, above(5),
			bisect.Config{Options: bisect.Options{Goal: bisect.Last}, Jobs: 3},
			"4|5 islands 1-1 bad 3-3 bad conclusive; good at 4+1ms, bad at 5 (4ms) by the entry",
			"4|5 islands 1-1 bad 3-3 bad conclusive; good at 4+1ms, bad at 5 (4ms) by the entry",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.probing, find(t, tt.session, judging(tt.judge), tt.cfg))
			assert.Equal(t, tt.exact, find(t, tt.session, exact(tt.judge), tt.cfg))
		})
	}
}

// The same input is judged once, whatever entries it stands at, and Verdicts shares it
// with another search.
func TestVerdictsAreShared(t *testing.T) {
	s := new(tape)
	for i := range 64 {
		s.add(ms, fmt.Sprintf("set %d", i%4))
	}
	runs := map[string]int{}
	test := judging(func(shown string) bisect.TestResult {
		runs[shown]++
		return above(2.5)(shown)
	})
	known := &bisect.Verdicts{}
	all := bisect.Config{Options: bisect.Options{Goal: bisect.AllPhases}, Verdicts: known}
	out, err := bisect.Find(t.Context(), replay.Open(s, lamps, nil), replay.Moment{}, replay.Moment{Seq: 64}, test, all)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"0.000000": 1, "1.000000": 1, "2.000000": 1, "3.000000": 1}, runs)
	assert.Equal(t, 4, out.Tests)
	assert.Equal(t, 64, out.Candidates, "the beginning looks as entry 1")
	assert.Len(t, out.Phases, 32)
	assert.Equal(t, bisect.Bad, known.Get("shown", bisect.HashInput([]byte("3.000000"))))
	assert.Zero(t, known.Get("another", bisect.HashInput([]byte("3.000000"))))

	out, err = bisect.Find(t.Context(), replay.Open(s, lamps, nil), replay.Moment{}, replay.Moment{Seq: 64}, test, all)
	require.NoError(t, err)
	assert.Zero(t, out.Tests)
	assert.Len(t, out.Phases, 32)
}

// A test that is not a function of its input is noticed when the ends are judged again.
// Repeated, its majority is.
func TestFlakyTest(t *testing.T) {
	s := new(tape)
	for i := range 9 {
		s.add(ms, fmt.Sprintf("set %d", i))
	}
	r := replay.Open(s, lamps, nil)
	search := func(wrongEvery int, cfg bisect.Config) (*bisect.Findings, error) {
		n := 0
		return bisect.Find(t.Context(), r, replay.Moment{Seq: 1}, replay.Moment{Seq: 9}, judging(func(shown string) bisect.TestResult {
			result := above(4.5)(shown)
			if n++; n%wrongEvery == 0 {
				return bisect.Good + bisect.Bad - result
			}
			return result
		}), cfg)
	}
	out, err := search(7, bisect.Config{Options: bisect.Options{Recheck: true}})
	require.NoError(t, err)
	assert.Len(t, out.Conflicts, 1)
	assert.False(t, out.Conclusive())

	for _, repeat := range []bisect.Repeat{{Times: 3}, {Confidence: 0.95}} {
		out, err = search(7, bisect.Config{Options: bisect.Options{Recheck: true}, Repeat: repeat})
		require.NoError(t, err)
		assert.Empty(t, out.Conflicts)
		assert.Equal(t, "5|6", fmt.Sprintf("%d|%d", out.Good+1, out.Bad+1))
		assert.Positive(t, out.Mixed)
		assert.Greater(t, out.Tests, 2*out.Judgments-1)
	}
	_, err = search(7, bisect.Config{Repeat: bisect.Repeat{Confidence: 2}})
	assert.ErrorContains(t, err, "confidence 2")
}

// Judgments run at the same time, and no more of them than jobs.
func TestJobs(t *testing.T) {
	s := new(tape)
	for i := range 200 {
		s.add(ms, fmt.Sprintf("set %d", i))
	}
	var now, most atomic.Int32
	var both sync.WaitGroup
	both.Add(2)
	var once [2]sync.Once
	test := judging(nil)
	test.Judge = func(_ context.Context, m replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		// The two ends wait for each other.
		for i, seq := range []eventlog.Seq{1, 200} {
			if m.Seq == seq {
				once[i].Do(both.Done)
				both.Wait()
			}
		}
		return above(120.5)(lampOf(f).shown()), nil
	}
	out, err := bisect.Find(t.Context(), replay.Open(s, lamps, nil), replay.Moment{Seq: 1}, replay.Moment{Seq: 200}, test, bisect.Config{Jobs: 4})
	require.NoError(t, err)
	assert.Equal(t, "120|121 assumes one transition; good at 121+1ms, bad at 122 (122ms) by the entry", told(out))
	assert.LessOrEqual(t, most.Load(), int32(4))
	assert.GreaterOrEqual(t, most.Load(), int32(2))
}

func TestFindErrors(t *testing.T) {
	s := new(tape).add(ms, "set 1").add(ms, "set 2").add(ms, "set 3").add(ms, "set 2")
	fails := errors.New("fails")
	always := func(r bisect.TestResult) bisect.Test {
		return judging(func(string) bisect.TestResult { return r })
	}
	failing := func(when eventlog.Seq) bisect.Test {
		test := judging(above(1.5))
		judge := test.Judge
		test.Judge = func(ctx context.Context, m replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
			if m.Seq == when {
				return 0, fails
			}
			return judge(ctx, m, f)
		}
		return test
	}
	blind := judging(above(1.5))
	blind.Input = func(context.Context, *replay.ScanStep) (bisect.InputHash, error) { return bisect.InputHash{}, fails }
	noResult := judging(above(1.5))
	noResult.Judge = nil
	for _, tt := range []struct {
		name      string
		good, bad replay.Moment
		test      bisect.Test
		want      error
	}{
		{"reversed", replay.Moment{Seq: 3}, replay.Moment{Seq: 1}, always(bisect.Good), replay.ErrSyntax},
		{"the same", replay.Moment{Seq: 3}, replay.Moment{Seq: 3}, always(bisect.Good), replay.ErrSyntax},
		{"beyond the end", replay.Moment{Seq: 1}, replay.Moment{Seq: 5}, always(bisect.Good), replay.ErrNoAddress},
		{"the bad end is good", replay.Moment{Seq: 1}, replay.Moment{Seq: 4}, always(bisect.Good), bisect.ErrEndpoint},
		{"the good end is bad", replay.Moment{Seq: 1}, replay.Moment{Seq: 4}, always(bisect.Bad), bisect.ErrEndpoint},
		{"an end is skipped", replay.Moment{Seq: 1}, replay.Moment{Seq: 4}, always(bisect.Skip), bisect.ErrEndpoint},
		{"at every moment: the bad end is good", replay.Moment{Seq: 1}, replay.Moment{Seq: 4}, exact(above(7)), bisect.ErrEndpoint},
		{"at every moment: the good end is bad", replay.Moment{Seq: 1}, replay.Moment{Seq: 4}, exact(above(0)), bisect.ErrEndpoint},
		{"the ends look alike", replay.Moment{Seq: 2}, replay.Moment{Seq: 4}, judging(above(2.5)), bisect.ErrAlike},
		{"one stretch", replay.Moment{Seq: 1}, replay.Moment{Seq: 1, Offset: ms}, judging(above(2.5)), bisect.ErrAlike},
		{"the test fails", replay.Moment{}, replay.Moment{Seq: 4}, failing(4), fails},
		{"the test fails between", replay.Moment{}, replay.Moment{Seq: 4}, failing(1), fails},
		{"the input fails", replay.Moment{Seq: 1}, replay.Moment{Seq: 4}, blind, fails},
	} {
		for _, jobs := range []int{1, 3} {
			_, err := bisect.Find(t.Context(), replay.Open(s, lamps, nil), tt.good, tt.bad, tt.test, bisect.Config{Jobs: jobs})
			assert.ErrorIs(t, err, tt.want, tt.name)
		}
	}
	_, err := bisect.Find(t.Context(), replay.Open(s, lamps, nil), replay.Moment{}, replay.Moment{Seq: 4}, always(9), bisect.Config{})
	assert.ErrorContains(t, err, "the test at 0 returned result(9)")
	_, err = bisect.Find(t.Context(), replay.Open(s, lamps, nil), replay.Moment{}, replay.Moment{Seq: 4}, noResult, bisect.Config{})
	assert.ErrorContains(t, err, "not a result")

	// One stretch over the whole range is both ends of it.
	for _, test := range []bisect.Test{always(bisect.Good), exact(above(7))} {
		end := &bisect.EndpointError{}
		_, err = bisect.Find(t.Context(), replay.Open(s, lamps, nil), replay.Moment{}, replay.Moment{Seq: 4}, test, bisect.Config{})
		require.ErrorAs(t, err, &end)
		assert.Equal(t, replay.Moment{Seq: 4}, end.Moment)
		assert.Equal(t, [2]bisect.TestResult{bisect.Bad, bisect.Good}, [2]bisect.TestResult{end.Want, end.Got})
	}
}

// A cancelled search says what it knows.
func TestFindCancelled(t *testing.T) {
	s := new(tape)
	for i := range 100 {
		s.add(ms, fmt.Sprintf("set %d", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	cfg := bisect.Config{Options: bisect.Options{Goal: bisect.AllPhases}, Judged: func(bisect.Judged) {
		if n++; n == 30 {
			cancel()
		}
	}}
	out, err := bisect.Find(ctx, replay.Open(s, lamps, nil), replay.Moment{Seq: 1}, replay.Moment{Seq: 100}, judging(above(9.5)), cfg)
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, out)
	assert.Equal(t, 30, out.Judgments)
	assert.Equal(t, "9|10 ", answer(out.Search))

	ctx, cancel = context.WithCancel(t.Context())
	cfg = bisect.Config{Visited: func(m replay.Moment) {
		if m.Seq == 50 {
			cancel()
		}
	}}
	_, err = bisect.Find(ctx, replay.Open(s, lamps, nil), replay.Moment{Seq: 1}, replay.Moment{Seq: 100}, judging(above(9.5)), cfg)
	require.ErrorIs(t, err, context.Canceled)
}

// The model evaluates the lamp at every millisecond and in every entry's two states, the
// one right before it and the one with it. What a search claims holds there: the moment
// that it calls good is good, the bad one bad, and they follow each other. A test that
// judges every moment has the phases of the model.
func TestFindAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := new(tape).add(0, "set 0")
		orders := []string{"", "set 0", "set 9", "set 3", "fade 9 20", "fade 0 35", "hide 5 10", "hide 0 3"}
		for range rapid.IntRange(1, 25).Draw(t, "entries") {
			s.add(time.Duration(rapid.IntRange(0, 30).Draw(t, "pause"))*ms, rapid.SampledFrom(orders).Draw(t, "order"))
		}
		judge := rapid.SampledFrom([]func(string) bisect.TestResult{above(5), above(1), hidden}).Draw(t, "judge")
		test := judging(judge)
		if rapid.Bool().Draw(t, "exact") {
			test = exact(judge)
		}
		cfg := bisect.Config{
			Options: bisect.Options{Goal: rapid.SampledFrom([]bisect.Goal{bisect.Any, bisect.First, bisect.Last}).Draw(t, "goal"), Probes: 2, Recheck: true},
			Jobs:    rapid.IntRange(1, 3).Draw(t, "jobs"),
		}
		r := replay.Open(s, lamps, nil)
		to := replay.Moment{Seq: s.Head().Seq}
		out, err := bisect.Find(t.Context(), r, replay.Moment{}, to, test, cfg)
		if errors.Is(err, bisect.ErrEndpoint) || errors.Is(err, bisect.ErrAlike) {
			require.Equal(t, bisect.Good, resultAt(t, r, to, judge), "%v", err)
			return
		}
		require.NoError(t, err)
		require.Empty(t, out.Conflicts)
		list := out.Search.Stretches()
		for _, p := range out.Phases {
			require.Equal(t, p.Result, resultAt(t, r, list[p.First].From, judge))
			require.Equal(t, p.Result, resultAt(t, r, list[p.Last].Last, judge))
		}
		if test.Judge == nil || cfg.Goal != bisect.Any {
			require.True(t, out.Conclusive())
			require.Equal(t, phasesOf(t, r, to, judge), len(out.Phases))
		}
		if out.Onset == nil {
			require.False(t, out.Found)
			return
		}
		in := *out.Onset
		require.Equal(t, bisect.Good, resultAt(t, r, in.Good, judge))
		require.Equal(t, bisect.Bad, resultAt(t, r, in.Bad, judge))
		if in.ByEntry {
			require.Equal(t, in.Good.Seq+1, in.Bad.Seq)
			require.Zero(t, in.Bad.Offset)
			if at := s.entries[in.Bad.Seq-1].At; in.Bad.Seq > 1 {
				require.Equal(t, at-s.entries[in.Bad.Seq-2].At, in.Good.Offset)
			}
		} else {
			require.Equal(t, in.Good.Seq, in.Bad.Seq)
			require.LessOrEqual(t, in.Bad.Offset-in.Good.Offset, bisect.Resolution)
		}
	})
}

func resultAt(t require.TestingT, r *replay.Replay, m replay.Moment, judge func(string) bisect.TestResult) bisect.TestResult {
	f, err := r.At(context.Background(), m)
	require.NoError(t, err)
	return judge(lampOf(f).shown())
}

// phasesOf counts the phases at the moments at which something changes at once.
func phasesOf(t require.TestingT, r *replay.Replay, to replay.Moment, judge func(string) bisect.TestResult) int {
	n, was := 1, bisect.Good
	for s, err := range r.Moments(context.Background(), replay.MomentRange{To: to}, replay.NeedsState) {
		require.NoError(t, err)
		if is := judge(lampOf(s.Fold).shown()); is != was {
			n, was = n+1, is
		}
	}
	return n
}

// A search that was judged by hand is continued, and its onset is that of Find.
func TestContinue(t *testing.T) {
	s := new(tape)
	for i := range 20 {
		s.add(10*ms, fmt.Sprintf("set %d", i))
	}
	r, test, to := replay.Open(s, lamps, nil), judging(above(10.5)), replay.Moment{Seq: 20}
	want, err := bisect.Find(t.Context(), r, replay.Moment{}, to, test, bisect.Config{})
	require.NoError(t, err)
	list, err := bisect.Stretches(t.Context(), r, replay.MomentRange{To: to}, test, nil)
	require.NoError(t, err)
	search := bisect.New(list, bisect.Options{})
	require.NoError(t, search.Judge(0, bisect.Good))
	require.NoError(t, search.Judge(len(list)-1, bisect.Bad))
	var judged, within int
	got, err := bisect.Continue(t.Context(), r, search, test, bisect.Config{Judged: func(j bisect.Judged) {
		if judged++; j.Onset {
			within++
		}
	}})
	require.NoError(t, err)
	assert.Equal(t, want.Onset, got.Onset)
	assert.Equal(t, want.Tests-2, judged, "the ends are judged already")
	assert.Equal(t, got.Tests-got.Judgments+2, within)
}
