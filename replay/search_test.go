package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

func hits(t interface{ Fatal(...any) }, r *replay.Replay, from, to eventlog.Seq, p replay.EntryPredicate, mode replay.Mode) []string {
	got := []string{}
	for hit, err := range r.Scan(context.Background(), from, to, p, mode) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %v", hit.Entry.Seq, hit.Value))
	}
	return got
}

// Each mode reports the same steps as a loop over all states.
func TestScanProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genTape(t)
		r := replay.Open(s, toys, takeImages(s, func(n eventlog.Seq) bool { return n%7 == 0 }))
		to := eventlog.Seq(rapid.IntRange(1, len(s.entries)).Draw(t, "to"))
		from := eventlog.Seq(rapid.IntRange(0, int(to)).Draw(t, "from"))
		limit := rapid.Int64Range(0, 3).Draw(t, "limit")
		running := func(view map[string]any) int64 { return view["band"].(map[string]any)["running"].(int64) }
		p := replay.EntryPredicate{Needs: replay.NeedsState | replay.NeedsPrev, Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
			if s.Prev()["seq"].(int64)+1 != int64(s.Entry.Seq) {
				return false, fmt.Errorf("prev is at %v", s.Prev()["seq"])
			}
			return running(s.View()) > limit || running(s.Prev()) > limit, nil
		}}
		all, changes := []string{}, []string{}
		was := false
		for n := max(from, 1); n <= to; n++ {
			is := running(slow(t, s, replay.Moment{Seq: n}).View()) > limit ||
				running(slow(t, s, replay.Moment{Seq: n - 1}).View()) > limit
			if is {
				all = append(all, fmt.Sprintf("%d true", n))
			}
			if is != was {
				changes = append(changes, fmt.Sprintf("%d %v", n, is))
			}
			was = is
		}
		for mode, want := range map[replay.Mode][]string{
			replay.All: all, replay.First: all[:min(1, len(all))],
			replay.Last: all[max(0, len(all)-1):], replay.Changes: changes,
		} {
			if diff := cmp.Diff(want, hits(t, r, from, to, p, mode)); diff != "" {
				t.Fatalf("mode %d (-want +got):\n%s", mode, diff)
			}
		}
	})
}

func TestScanEntriesOnly(t *testing.T) {
	s := song()
	r := replay.Open(s, nil, nil)
	p := replay.EntryPredicate{Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
		if s.Fold != nil || s.View() != nil || s.Prev() != nil {
			return false, errors.New("there is a state")
		}
		return s.Entry.Data[0] >= 50, nil
	}}
	if diff := cmp.Diff([]string{"1 true", "2 true"}, hits(t, r, 0, 4, p, replay.All)); diff != "" {
		t.Error(diff)
	}
}

func TestScanErrors(t *testing.T) {
	r := replay.Open(song(), toys, nil)
	fails := errors.New("fails")
	p := replay.EntryPredicate{Test: func(context.Context, *replay.ScanStep) (bool, error) { return false, fails }}
	for _, err := range r.Scan(context.Background(), 1, 4, p, replay.All) {
		assert.ErrorIs(t, err, fails)
	}
	for _, err := range r.Scan(context.Background(), 1, 5, p, replay.All) {
		assert.ErrorIs(t, err, replay.ErrNoAddress)
	}
}

// Bisect finds the same entry as a linear search, in a logarithmic number of tests.
// With skipped entries it finds that entry or a range that contains it.
func TestBisectProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &tape{}
		n := rapid.IntRange(1, 200).Draw(t, "entries")
		for range n {
			s.add(ms, 1)
		}
		bad := eventlog.Seq(rapid.IntRange(1, n).Draw(t, "bad"))
		good := eventlog.Seq(rapid.IntRange(0, int(bad)-1).Draw(t, "good"))
		first := eventlog.Seq(rapid.IntRange(int(good)+1, int(bad)).Draw(t, "first"))
		skips := make(map[eventlog.Seq]bool)
		for _, seq := range rapid.SliceOfN(rapid.IntRange(int(good)+1, int(bad)), 0, 40).Draw(t, "skips") {
			skips[eventlog.Seq(seq)] = eventlog.Seq(seq) != bad
		}
		tested := make(map[eventlog.Seq]int)
		got, err := replay.Open(s, toys, nil).Bisect(context.Background(), good, bad,
			func(_ context.Context, m replay.Moment, f *projection.Fold) (replay.TestResult, error) {
				if tested[m.Seq]++; tested[m.Seq] > 1 || f.Head().Seq != m.Seq {
					return 0, fmt.Errorf("test %d of %v with a fold of %v", tested[m.Seq], m, f.Head())
				}
				switch {
				case skips[m.Seq]:
					return replay.Skip, nil
				case m.Seq >= first:
					return replay.Bad, nil
				}
				return replay.Good, nil
			})
		require.NoError(t, err)
		if got.Good >= first || got.Bad < first || got.Tests != len(tested) {
			t.Fatalf("%+v, want first bad %d in %d tests", got, first, len(tested))
		}
		for seq := got.Good + 1; seq < got.Bad; seq++ {
			if !skips[seq] {
				t.Fatalf("%+v, though %d could be tested", got, seq)
			}
		}
		if limit := 2 + bits.Len64(uint64(bad-good-1)) + got.Skipped*9; got.Tests > limit {
			t.Fatalf("%d tests of %d..%d with %d skipped, want at most %d", got.Tests, good, bad, got.Skipped, limit)
		}
	})
}

func TestBisectErrors(t *testing.T) {
	ctx := context.Background()
	r := replay.Open(song(), toys, nil)
	always := func(v replay.TestResult) replay.Test {
		return func(context.Context, replay.Moment, *projection.Fold) (replay.TestResult, error) { return v, nil }
	}
	fails := errors.New("fails")
	for _, tt := range []struct {
		name      string
		good, bad eventlog.Seq
		test      replay.Test
		want      error
	}{
		{"reversed", 3, 1, always(replay.Good), replay.ErrSyntax},
		{"same", 3, 3, always(replay.Good), replay.ErrSyntax},
		{"beyond", 1, 5, always(replay.Good), replay.ErrNoAddress},
		{"bad is good", 1, 4, always(replay.Good), replay.ErrEndpoint},
		{"good is bad", 1, 4, always(replay.Bad), replay.ErrEndpoint},
		{"good is skipped", 1, 4, always(replay.Skip), replay.ErrEndpoint},
		{"test fails", 1, 4, func(context.Context, replay.Moment, *projection.Fold) (replay.TestResult, error) { return 0, fails }, fails},
	} {
		if _, err := r.Bisect(ctx, tt.good, tt.bad, tt.test); !errors.Is(err, tt.want) {
			t.Errorf("%s: err = %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := r.Bisect(ctx, 1, 4, always(0)); err == nil {
		t.Error("an invalid test result: no error")
	}
}
