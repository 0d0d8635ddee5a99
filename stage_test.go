package sajou_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// Records that are staged one behind the other get their places at once, in
// order, and are durable when waited for; what is refused has no place.
func TestStageThenWait(t *testing.T) {
	ctx := context.Background()
	eng, ses := begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	var pending []*sajou.Pending
	for i := range 5 {
		p, err := ses.Stage(ctx, sajou.Record{Signals: []*signal.Signal{taskSignal(2*i, int64(i)), taskSignal(2*i+1, int64(i))}})
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, p)
	}
	if _, err := ses.Stage(ctx, sajou.Record{Signals: []*signal.Signal{taskSignal(0, 0)}, Expect: eventlog.Head{Seq: 1}}); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("a wrong head: %v, want ErrConflict", err)
	}
	if _, err := ses.Stage(ctx, sajou.Record{}); !errors.Is(err, eventlog.ErrInvalid) {
		t.Errorf("an empty record: %v, want ErrInvalid", err)
	}
	next := eventlog.Seq(1)
	for i, p := range pending {
		out, err := p.Wait()
		if err != nil {
			t.Fatal(err)
		}
		last := eventlog.Seq(2*i + 3) // behind the entry that opens the session
		if out.First != next || out.Head.Seq != last || ses.Head().Seq < last {
			t.Errorf("record %d: %+v, durable up to %d; want %d..%d", i, out, ses.Head().Seq, next, last)
		}
		next = last + 1
	}
	f, err := ses.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	again, err := eng.Replay("a").At(ctx, ses.Head().Seq)
	if err != nil {
		t.Fatal(err)
	}
	if digests(f) != digests(again) {
		t.Errorf("live %s, replayed %s", digests(f), digests(again))
	}
}
