package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// What is recorded is there after the engine was closed and opened again, in
// the same state, whether or not there are snapshots.
func TestStateSurvives(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	eng, err := sajou.Open(dir, sajou.Config{SnapshotEvery: 10})
	require.NoError(t, err)
	ses, err := eng.Session(ctx, "a")
	require.NoError(t, err)
	if _, err := ses.Define(ctx, enginetest.Definitions(t, enginetest.Dispatch)...); err != nil {
		t.Fatal(err)
	}
	for i := range 95 {
		if _, err := ses.Signal(ctx, enginetest.TaskSignal(i, int64(i)*100)); err != nil {
			t.Fatal(err)
		}
	}
	live, err := ses.State(ctx)
	require.NoError(t, err)
	require.NoError(t, eng.Close())
	want := fmt.Sprint(live.Head(), live.Digests())
	for _, drop := range []bool{false, true} {
		if drop {
			require.NoError(t, os.Remove(dir+"/"+sajou.SnapshotFile))
		}
		eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
		require.NoError(t, err)
		ses, err := eng.Session(ctx, "a")
		require.NoError(t, err)
		again, err := ses.State(ctx)
		require.NoError(t, err)
		if got := fmt.Sprint(again.Head(), again.Digests()); got != want {
			t.Errorf("snapshots dropped %v: state %s, want %s", drop, got, want)
		}
		travelled, err := enginetest.ReplayedAt(ctx, eng, "a", ses.Head().Seq)
		require.NoError(t, err)
		if got := fmt.Sprint(travelled.Head(), travelled.Digests()); got != want {
			t.Errorf("snapshots dropped %v: replayed state %s, want %s", drop, got, want)
		}
		require.NoError(t, eng.Close())
	}
}

// An invalid signal is refused with the field's name and leaves no trace;
// leniently it is recorded as it came and flagged.
func TestLenience(t *testing.T) {
	ctx := context.Background()
	eng, ses := enginetest.Begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	line := []byte(`{"id":"1","type":"completion","timestamp":5,"source":"x","payload":{"success":true}}`)
	sig, err := signal.ParseLenient(line)
	require.NoError(t, err)
	if _, err := ses.Signal(ctx, sig); !errors.Is(err, signal.ErrSchema) || !bytes.Contains([]byte(err.Error()), []byte("/payload/taskId")) {
		t.Errorf("err = %v, want one that names /payload/taskId", err)
	}
	if ses.Head().Seq != 0 {
		t.Errorf("a refused signal left entry %d", ses.Head().Seq)
	}
	out, err := ses.Record(ctx, sajou.Addition{Signals: []*signal.Signal{sig}, Lenient: true})
	require.NoError(t, err)
	for e, err := range ses.Entries(ctx, out.Head.Seq) {
		require.NoError(t, err)
		got, err := session.SignalOf(&e)
		require.NoError(t, err)
		if got.Problem != "/payload/taskId: is required" || string(got.AppendJSON(nil)) != string(line) {
			t.Errorf("recorded %s with problem %q", got.AppendJSON(nil), got.Problem)
		}
	}
	if sig.Problem == "" {
		t.Error("ParseLenient set no problem")
	}
}

// The same records under the same name give the same head hash everywhere.
func TestHeadHashIsAFunctionOfTheRecords(t *testing.T) {
	ctx := context.Background()
	var heads []eventlog.Head
	for range 2 {
		eng, err := sajou.Open(t.TempDir(), sajou.Config{})
		require.NoError(t, err)
		ses, err := eng.Session(ctx, "a")
		require.NoError(t, err)
		for i := range 5 {
			if _, err := ses.Signal(ctx, enginetest.TaskSignal(i, int64(i)*100)); err != nil {
				t.Fatal(err)
			}
		}
		heads = append(heads, ses.Head())
		require.NoError(t, eng.Close())
	}
	if heads[0] != heads[1] {
		t.Errorf("heads differ: %v and %v", heads[0], heads[1])
	}
}
