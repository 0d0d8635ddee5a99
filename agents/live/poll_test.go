package live_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// Poll tells what is there and waits for nothing, also when the reader was too slow
// for its queue; LatestViewSeq goes by what has arrived.
func TestPoll(t *testing.T) {
	ctx := t.Context()
	world := enginetest.BeginWorld(t, session.TimeManual).Agents()
	g := enginetest.Register(t, world, "ann", enginetest.Value(t, `{"policy":"everything","max_queue_depth":2,"latency_model":{"model":"fixed","ms":50}}`))
	require.NoError(t, world.Settle(ctx))
	if _, ok, err := g.Poll(ctx); !ok || err != nil {
		t.Fatalf("the first view: %v, %v", ok, err)
	}
	before, ok := world.LatestViewSeq("ann")
	if _, known := world.LatestViewSeq("nobody"); !ok || known {
		t.Errorf("ann is registered: %v, nobody: %v", ok, known)
	}
	for range 5 {
		if _, err := world.Broadcast(ctx, enginetest.Draft("EntityUpdated", "world", `{"entity_id":"ann","fields":{"a":1}}`)); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, world.Settle(ctx))
	if o, ok, err := g.Poll(ctx); ok || err != nil {
		t.Errorf("before its time: %v, %v", o, err)
	}
	if seq, _ := world.LatestViewSeq("ann"); seq != before {
		t.Errorf("before its time: view_seq %d, want %d", seq, before)
	}
	require.NoError(t, world.Advance(ctx, 50*time.Millisecond))
	var last agentslive.Observation
	for n := 0; ; n++ {
		o, ok, err := g.Poll(ctx)
		require.NoError(t, err)
		if !ok {
			if n != 3 || !last.IsFullView() {
				t.Errorf("%d observations, the last %v: want two and a whole view", n, last)
			}
			break
		}
		last = o
	}
	if seq, _ := world.LatestViewSeq("ann"); seq != before+5 || last.ViewSeq != seq {
		t.Errorf("view_seq %d and %d, want %d", seq, last.ViewSeq, before+5)
	}
	require.NoError(t, g.Leave(ctx))
	if _, _, err := g.Poll(ctx); !errors.Is(err, agentslive.ErrLeft) {
		t.Errorf("after it has left: %v", err)
	}
}

// WaitUntil waits for session time, whatever lets it pass.
func TestWaitUntil(t *testing.T) {
	for _, authority := range []session.TimeAuthority{session.TimeManual, session.TimeSim} {
		ses := enginetest.BeginWorld(t, authority)
		if got := ses.TimeAuthority(); got != authority {
			t.Errorf("the session's time is %q, want %q", got, authority)
		}
		world := ses.Agents()
		done := make(chan error)
		go func() { done <- world.WaitUntil(t.Context(), 2*time.Second) }()
		for _, at := range []float64{1, 2} {
			if _, err := world.Tick(t.Context(), agentslive.Tick{SimTime: at}); err != nil {
				t.Fatal(err)
			}
			require.NoError(t, world.Advance(t.Context(), time.Duration(at)*time.Second))
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
	require.NoError(t, err)
	ses, err := eng.Session(t.Context(), "world")
	require.NoError(t, err)
	world := ses.Agents()
	if _, err := world.Broadcast(t.Context(), agents.EffectDraft{Kind: "Noted", SourceID: "world"}); err != nil {
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
	require.NoError(t, eng.Close())
	assert.ErrorIs(t, <-done, eventlog.ErrClosed, "when the engine has closed")
}
