package sajou_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// Restore appends recorded entries as they are, and nothing past the writer of an
// open session.
func TestRestore(t *testing.T) {
	ctx := t.Context()
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: vfs.NewMem()})
	defer func() { require.NoError(t, eng.Close()) }()
	_, err := ses.Signal(ctx, enginetest.TaskSignal(1, 0))
	require.NoError(t, err)
	var batch eventlog.Batch
	for e, err := range ses.Entries(ctx, 1) {
		require.NoError(t, err)
		batch.Drafts = append(batch.Drafts, eventlog.Draft{Kind: e.Kind, At: e.At, Data: e.Data})
	}
	_, err = eng.Restore(ctx, ses.Name(), batch)
	require.ErrorIs(t, err, eventlog.ErrClaimed)
	head, err := eng.Restore(ctx, "copy", batch)
	require.NoError(t, err)
	require.Equal(t, ses.Head().Seq, head.Seq)
	restored, err := eng.Session(ctx, "copy") // the right to append is free again
	require.NoError(t, err)
	require.Equal(t, head, restored.Head())
	_, err = eng.Restore(ctx, "copy", batch)
	require.ErrorIs(t, err, eventlog.ErrClaimed)
	_, err = eng.Restore(ctx, "empty", batch, eventlog.Batch{})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}

// A session that could not be opened is free again: it can be restored into and opened.
func TestFailedOpenReleasesTheSession(t *testing.T) {
	ctx := t.Context()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	var first session.Drafts
	first.Opened(0, session.TimeManual)
	batch := eventlog.Batch{Drafts: first.List()}
	_, err = eng.Restore(ctx, "a", batch)
	require.NoError(t, err)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = eng.Session(canceled, "a")
	require.ErrorIs(t, err, context.Canceled)
	_, err = eng.Restore(ctx, "a", batch)
	require.NoError(t, err)
	ses, err := eng.Session(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(2), ses.Head().Seq)
}

// What Log and Snapshots return reads: it has no method that changes or closes the
// store beneath the engine.
func TestHandlesOnlyRead(t *testing.T) {
	for _, handle := range []any{(*eventlog.LogReader)(nil), (*eventlog.SessionReader)(nil), (*snapshot.ImageReader)(nil)} {
		for _, name := range []string{"Close", "Append", "Claim", "Write", "StageIn", "RebuildKeys", "Session", "Put", "Drop", "DropAll", "Thin"} {
			m, ok := reflect.TypeOf(handle).MethodByName(name)
			if ok && (name != "Session" || m.Type.Out(0) != reflect.TypeFor[*eventlog.SessionReader]()) {
				t.Errorf("%T has the method %s", handle, name)
			}
		}
	}
}
