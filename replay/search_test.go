package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
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
