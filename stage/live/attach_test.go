package live_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// A sink that is attached while a session runs gets the commands of a replay, frame by
// frame, at the same exact times.
func TestAttachedSinkSeesWhatReplaySees(t *testing.T) {
	synctest.Test(t, attachedSinkSeesWhatReplaySees)
}

func attachedSinkSeesWhatReplaySees(t *testing.T) {
	ctx := t.Context()
	now := &enginetest.StoppedClock{Now: time.UnixMilli(1_700_000_000_000)}
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: now.Read, AfterFunc: now.AfterFunc, FrameRate: 1000})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, eng.Close())
	}()
	ses, err := eng.Session(ctx, "a")
	require.NoError(t, err)
	if _, err := ses.Define(ctx, enginetest.Definitions(t, enginetest.Dispatch)...); err != nil {
		t.Fatal(err)
	}
	sink := &enginetest.ChannelSink{Commands: make(chan choreography.Command, 100)}
	attached := ses.Attach(ctx, sink, 0)

	var live []string
	receive := func(n int) {
		t.Helper()
		synctest.Wait()
		if len(sink.Commands) != n {
			t.Fatalf("%d commands came behind %q, want %d", len(sink.Commands), live, n)
		}
		for range n {
			live = append(live, enginetest.CommandLine(<-sink.Commands))
		}
	}
	if _, err := ses.Signal(ctx, enginetest.TaskSignal(1, 0)); err != nil {
		t.Fatal(err)
	}
	receive(1) // the start, drawn at the signal's own time
	now.Pass(500 * time.Millisecond)
	if _, err := ses.Signal(ctx, enginetest.TaskSignal(2, 500)); err != nil {
		t.Fatal(err)
	}
	receive(1)
	now.Pass(9500 * time.Millisecond)
	receive(2) // both ends, at their own times although drawn much later
	require.NoError(t, errors.Join(attached.Close(), attached.Close()))

	travel, err := eng.Replay("a")
	require.NoError(t, err)
	head := travel.Head().Seq
	var recorded choreography.RecordingSink
	require.NoError(t, travel.Commands(ctx, replay.Moment{}, replay.Moment{Seq: head, Offset: 9 * time.Second}, 0, &recorded))
	var replayed []string
	for _, c := range recorded.Commands {
		if c.Kind != choreography.CommandUpdate {
			replayed = append(replayed, enginetest.CommandLine(c))
		}
	}
	if diff := cmp.Diff(replayed, live); diff != "" {
		t.Errorf("replay (-) and live (+) differ:\n%s", diff)
	}
	if sink.Updates == 0 {
		t.Error("no frame brought an update")
	}
}

// A sink that never returns from a call delays no writer and no other sink.
func TestBlockedSinkBlocksNobody(t *testing.T) {
	ctx := context.Background()
	eng, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	require.NoError(t, err)
	if _, err := ses.Define(ctx, enginetest.Definitions(t, enginetest.Dispatch)...); err != nil {
		t.Fatal(err)
	}
	blocked := &enginetest.ChannelSink{Commands: make(chan choreography.Command)} // not received yet
	ses.Attach(ctx, blocked, 0)
	free := &enginetest.ChannelSink{Commands: make(chan choreography.Command, 1000)}
	attached := ses.Attach(ctx, free, 0)
	for i := range 300 {
		if _, err := ses.Signal(ctx, enginetest.TaskSignal(i, int64(i)*1000)); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		<-free.Commands
	}
	assert.NoError(t, attached.Close())
	go func() {
		for range blocked.Commands {
			// released, so that Close can wait for it
		}
	}()
	require.NoError(t, eng.Close())
	close(blocked.Commands)
}
