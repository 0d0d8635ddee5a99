package sajou_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Poll tells what is there and waits for nothing, also when the reader was too slow
// for its queue; LatestViewSeq goes by what has arrived.
func TestPoll(t *testing.T) {
	ctx := t.Context()
	world := beginWorld(t, sajou.TimeManual).Agents()
	g := register(t, world, "ann", value(t, `{"policy":"everything","max_queue_depth":2,"latency_model":{"model":"fixed","ms":50}}`))
	if err := world.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := g.Poll(ctx); !ok || err != nil {
		t.Fatalf("the first view: %v, %v", ok, err)
	}
	before, ok := world.LatestViewSeq("ann")
	if _, known := world.LatestViewSeq("nobody"); !ok || known {
		t.Errorf("ann is registered: %v, nobody: %v", ok, known)
	}
	for range 5 {
		if _, err := world.Broadcast(ctx, draft("EntityUpdated", "world", `{"entity_id":"ann","fields":{"a":1}}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := world.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if o, ok, err := g.Poll(ctx); ok || err != nil {
		t.Errorf("before its time: %v, %v", o, err)
	}
	if seq, _ := world.LatestViewSeq("ann"); seq != before {
		t.Errorf("before its time: view_seq %d, want %d", seq, before)
	}
	if err := world.Advance(ctx, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	var last sajou.Observation
	for n := 0; ; n++ {
		o, ok, err := g.Poll(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			if n != 3 || !last.Whole() {
				t.Errorf("%d observations, the last %v: want two and a whole view", n, last)
			}
			break
		}
		last = o
	}
	if seq, _ := world.LatestViewSeq("ann"); seq != before+5 || last.ViewSeq != seq {
		t.Errorf("view_seq %d and %d, want %d", seq, last.ViewSeq, before+5)
	}
	if err := g.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.Poll(ctx); !errors.Is(err, sajou.ErrLeft) {
		t.Errorf("after it has left: %v", err)
	}
}

// WaitUntil waits for session time, whatever lets it pass.
func TestWaitUntil(t *testing.T) {
	for _, authority := range []sajou.TimeAuthority{sajou.TimeManual, sajou.TimeSim} {
		ses := beginWorld(t, authority)
		if got := ses.TimeAuthority(); got != authority {
			t.Errorf("the session's time is %q, want %q", got, authority)
		}
		world := ses.Agents()
		done := make(chan error)
		go func() { done <- world.WaitUntil(t.Context(), 2*time.Second) }()
		for _, at := range []float64{1, 2} {
			if _, err := world.Tick(t.Context(), sajou.Tick{SimTime: at}); err != nil {
				t.Fatal(err)
			}
			if err := world.Advance(t.Context(), time.Duration(at)*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil || world.Now() < 2*time.Second {
			t.Errorf("%s: it is %v, %v", authority, world.Now(), err)
		}
		if got := ses.TimeAuthority(); got != authority {
			t.Errorf("the session's time is %q, want %q", got, authority)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- world.WaitUntil(ctx, time.Hour) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: after its end: %v", authority, err)
		}
	}
}

// With the wall's clock, WaitUntil waits by the engine's own, and ends with the engine.
func TestWaitUntilOnTheWall(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	waits := make(chan func(), 1)
	eng, err := sajou.Open("store", sajou.Config{
		FS: vfs.NewMem(), Now: func() time.Time { return now },
		AfterFunc: func(d time.Duration, f func()) func() bool {
			waits <- func() { now = now.Add(d); f() }
			return func() bool { return true }
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ses, err := eng.Session(t.Context(), "world")
	if err != nil {
		t.Fatal(err)
	}
	world := ses.Agents()
	if _, err := world.Broadcast(t.Context(), agents.Draft{Kind: "Noted", SourceID: "world"}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- world.WaitUntil(t.Context(), time.Second) }()
	(<-waits)()
	if err := <-done; err != nil || world.Now() != time.Second {
		t.Errorf("it is %v, %v", world.Now(), err)
	}
	go func() { done <- world.WaitUntil(t.Context(), time.Hour) }()
	<-waits
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("when the engine has closed: %v", err)
	}
}
