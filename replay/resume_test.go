package replay_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// A search over states goes on behind the first image that is not in front of where the
// session can be read again.
func TestResumeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &tape{}
		last := eventlog.Seq(rapid.IntRange(1, 60).Draw(t, "entries"))
		for range last {
			s.add(10*ms, 5)
		}
		every := eventlog.Seq(rapid.IntRange(1, 40).Draw(t, "every"))
		r := replay.Open(s, toys, takeImages(s, func(n eventlog.Seq) bool { return n%every == 0 }))
		from := eventlog.Seq(rapid.IntRange(1, 70).Draw(t, "from"))
		want := (from+every-1)/every*every + 1
		at, ok := r.Resume(context.Background(), from, replay.NeedsState)
		require.Equal(t, want <= last, ok)
		if ok {
			require.Equal(t, want, at)
		}
		at, ok = r.Resume(context.Background(), from, replay.NeedsEntry)
		require.Equal(t, from <= last, ok)
		require.Equal(t, from, at)
		_, ok = replay.Open(s, toys, nil).Resume(context.Background(), from, replay.NeedsState)
		require.False(t, ok, "no image")
	})
}
