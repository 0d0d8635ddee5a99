package sajou_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/signal"
)

// Records that are staged one behind the other get their places at once, in
// order, and are durable when waited for; what is refused has no place.
func TestStageThenWait(t *testing.T) {
	ctx := context.Background()
	eng, ses := enginetest.Begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	var pending []*sajou.Pending
	for i := range 5 {
		p, err := ses.RecordAsync(ctx, sajou.Addition{Signals: []*signal.Signal{enginetest.TaskSignal(2*i, int64(i)), enginetest.TaskSignal(2*i+1, int64(i))}})
		require.NoError(t, err)
		pending = append(pending, p)
	}
	if _, err := ses.RecordAsync(ctx, sajou.Addition{Signals: []*signal.Signal{enginetest.TaskSignal(0, 0)}, Expect: eventlog.Head{Seq: 1}}); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("a wrong head: %v, want ErrConflict", err)
	}
	if _, err := ses.RecordAsync(ctx, sajou.Addition{}); !errors.Is(err, eventlog.ErrInvalid) {
		t.Errorf("an empty record: %v, want ErrInvalid", err)
	}
	next := eventlog.Seq(1)
	for i, p := range pending {
		out, err := p.Wait(t.Context())
		require.NoError(t, err)
		last := eventlog.Seq(2*i + 3) // behind the entry that opens the session
		if out.First != next || out.Head.Seq != last || ses.Head().Seq < last {
			t.Errorf("record %d: %+v, durable up to %d; want %d..%d", i, out, ses.Head().Seq, next, last)
		}
		next = last + 1
	}
	f, err := ses.State(ctx)
	require.NoError(t, err)
	again, err := enginetest.ReplayedAt(ctx, eng, "a", ses.Head().Seq)
	require.NoError(t, err)
	if enginetest.Digests(f) != enginetest.Digests(again) {
		t.Errorf("live %s, replayed %s", enginetest.Digests(f), enginetest.Digests(again))
	}
}
