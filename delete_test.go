package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// noon is the time of the deletions of these tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

// tell records n signals into a session, one a second from the given time on. Their texts
// do not compress.
func tell(t *testing.T, ses *sajou.Session, from time.Time, n int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(len(ses.Name())), uint64(from.UnixNano())))
	for i := range n {
		text := make([]byte, 1500)
		for j := range text {
			text[j] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[rng.IntN(64)]
		}
		payload, err := signal.ParseValue(fmt.Appendf(nil, `{"text":%q}`, text))
		require.NoError(t, err)
		_, err = ses.Record(t.Context(), sajou.Addition{Recording: true, Signals: []*signal.Signal{{
			ID: fmt.Sprint(i), Type: "note", Source: "agent:scout", Payload: payload,
			Timestamp: signal.Int(from.Add(time.Duration(i) * time.Second).UnixMilli()),
		}}})
		require.NoError(t, err)
	}
}

// lastText returns a part of the text of the newest signal of a session.
func lastText(t *testing.T, ses *sajou.Session) []byte {
	t.Helper()
	for e, err := range ses.Entries(t.Context(), ses.Head().Seq) {
		require.NoError(t, err)
		return bytes.Clone(e.Data[len(e.Data)-100 : len(e.Data)-50])
	}
	t.Fatal("no entry")
	return nil
}

// filesWith returns the files under a directory that hold a text.
func filesWith(t *testing.T, dir string, text []byte) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		if bytes.Contains(b, text) {
			names = append(names, e.Name())
		}
	}
	return names
}

// requireGone checks that an engine has the tombstone of a session and nothing else of it.
func requireGone(t *testing.T, eng *sajou.Engine, tomb eventlog.Tombstone) {
	t.Helper()
	ctx := t.Context()
	names, err := eng.Sessions()
	require.NoError(t, err)
	require.NotContains(t, names, tomb.Session)
	tombs, err := eng.Tombstones()
	require.NoError(t, err)
	require.Contains(t, tombs, tomb)
	for what, try := range map[string]func() error{
		"session": func() error { _, err := eng.Session(ctx, tomb.Session); return err },
		"replay":  func() error { _, err := eng.Replay(tomb.Session); return err },
		"restore": func() error { _, err := eng.Restore(ctx, tomb.Session, eventlog.Batch{}); return err },
		"verify":  func() error { _, err := eng.Log().Verify(ctx, tomb.Session, verify.Options{}); return err },
		"build":   func() error { _, err := eng.BuildSnapshots(ctx, tomb.Session, nil); return err },
	} {
		require.ErrorIs(t, try(), eventlog.ErrDeleted, what)
	}
	if snaps := eng.Snapshots(); snaps != nil {
		list, err := snaps.List(tomb.Session)
		require.NoError(t, err)
		require.Empty(t, list)
		sessions, err := snaps.Sessions()
		require.NoError(t, err)
		require.NotContains(t, sessions, tomb.Session, "a noted position counts too")
	}
	require.NoError(t, eng.Health().Err())
}

// A deleted session is gone from the log, from the snapshots and, once the engine is
// closed, from every file; its neighbours stay. The name is refused from then on.
func TestDelete(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "store")
	cfg := sajou.Config{SnapshotEvery: 10, Now: atNoon, AfterFunc: never}
	eng, a := enginetest.Begin(t, dir, cfg)
	b, err := eng.Session(ctx, "b")
	require.NoError(t, err)
	tell(t, a, noon, 45)
	tell(t, b, noon, 45)
	for _, name := range []string{"a", "b"} {
		_, err := eng.BuildSnapshots(ctx, name, nil)
		require.NoError(t, err)
	}
	require.NoError(t, eng.Close()) // notes the positions too
	eng, a = enginetest.Begin(t, dir, cfg)
	b, err = eng.Session(ctx, "b")
	require.NoError(t, err)
	tell(t, b, noon.Add(time.Hour), 5)
	secret, kept := lastText(t, b), lastText(t, a)
	want, err := a.State(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, filesWith(t, dir, secret), "the test can find it")

	tomb, err := eng.Delete(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, eventlog.Tombstone{Session: "b", Number: 2, Head: b.Head(), At: noon}, tomb)
	requireGone(t, eng, tomb)
	again, err := eng.Delete(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, tomb, again)
	_, err = eng.Delete(ctx, "nobody")
	require.ErrorIs(t, err, eventlog.ErrNoSession)
	none, err := eng.Session(ctx, "none")
	require.NoError(t, err)
	_, err = eng.Delete(ctx, "none")
	require.ErrorIs(t, err, eventlog.ErrNoSession)
	tell(t, none, noon, 1)

	_, err = b.Signal(ctx, enginetest.TaskSignal(1, 1))
	require.ErrorIs(t, err, eventlog.ErrDeleted)
	_, err = b.State(ctx)
	require.ErrorIs(t, err, eventlog.ErrDeleted)
	require.NoError(t, eng.Close())
	require.Empty(t, filesWith(t, dir, secret))
	require.NotEmpty(t, filesWith(t, dir, kept))

	eng, a = enginetest.Begin(t, dir, cfg)
	requireGone(t, eng, tomb)
	got, err := a.State(ctx)
	require.NoError(t, err)
	require.Equal(t, enginetest.Digests(want), enginetest.Digests(got))
	bad, checked, err := eng.VerifySnapshots(ctx, "a")
	require.NoError(t, err)
	require.Empty(t, bad)
	require.NotZero(t, checked)
	require.NoError(t, eng.Close())
}

// never is an AfterFunc whose time does not come.
func never(time.Duration, func()) (stop func() bool) { return func() bool { return true } }

// A session in use is ended before it is deleted: sinks are detached, and every call that
// waits returns.
func TestDeleteEndsASessionInUse(t *testing.T) {
	ctx := t.Context()
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: vfs.NewMem(), Now: atNoon})
	defer func() { require.NoError(t, eng.Close()) }()
	tell(t, ses, noon, 3)
	world := ses.Agents()
	scout, err := world.Register(ctx, "scout", nil)
	require.NoError(t, err)
	commands := ses.Attach(ctx, &enginetest.FaultySink{}, 0)
	frames := ses.Show(ctx, &enginetest.FaultySink{}, 0)
	waits := make(chan error, 3)
	go func() {
		for {
			if _, err := scout.NextObservation(ctx); err != nil {
				waits <- err
				return
			}
		}
	}()
	go func() { waits <- world.WaitUntil(ctx, time.Hour) }()
	go func() {
		for _, err := range ses.Subscribe(ctx, 1) {
			if err != nil {
				waits <- err
			}
		}
	}()
	tomb, err := eng.Delete(ctx, "a")
	require.NoError(t, err)
	requireGone(t, eng, tomb)
	for range 3 {
		err := <-waits
		require.True(t, errors.Is(err, eventlog.ErrDeleted) || errors.Is(err, eventlog.ErrClosed), "%v", err)
	}
	for _, a := range []interface {
		Done() <-chan struct{}
		Err() error
	}{commands, frames, ses.Attach(ctx, &enginetest.FaultySink{}, 0)} {
		<-a.Done()
	}
	require.ErrorIs(t, commands.Err(), eventlog.ErrDeleted)
	require.ErrorIs(t, frames.Close(), eventlog.ErrDeleted)
	sink := &enginetest.FaultySink{}
	declared, _ := language.Parse("walk", []byte(`{"id":"walk","on":"note","steps":[{"action":"wait","duration":1}]}`))
	require.Len(t, declared, 1)
	for what, try := range map[string]func() error{
		"signal":    func() error { _, err := ses.Signal(ctx, enginetest.TaskSignal(1, 1)); return err },
		"state":     func() error { _, err := ses.State(ctx); return err },
		"define":    func() error { _, err := ses.Define(ctx, declared...); return err },
		"begin":     func() error { return world.Begin(ctx, signal.Value{0x80}) },
		"register":  func() error { _, err := world.Register(ctx, "late", nil); return err },
		"submit":    func() error { _, err := scout.Submit(ctx, agents.Intent{Kind: "Custom", ReqID: "1"}); return err },
		"tick":      func() error { _, err := world.Tick(ctx, agentslive.Tick{}); return err },
		"view":      func() error { _, err := world.View(ctx, "scout"); return err },
		"attach":    func() error { return ses.Attach(ctx, sink, 0).Err() },
		"attach at": func() error { return ses.AttachAt(ctx, sink, 0, replay.Moment{Seq: 1}).Err() },
		"show":      func() error { return ses.Show(ctx, sink, 0).Err() },
	} {
		err := try()
		require.ErrorIs(t, err, eventlog.ErrDeleted, what)
		gone, typed := errors.AsType[*eventlog.DeletedError](err)
		require.True(t, typed, "%s: %v", what, err)
		require.Equal(t, tomb, gone.Tombstone, what)
	}
	health := eng.Health()
	require.Empty(t, health.Sinks)
	require.Zero(t, health.SinksDetached)
	require.Empty(t, health.Folds)
}

// A record that is not durable yet keeps its session from deletion, and the session goes
// on.
func TestDeleteRefusesUndurableRecords(t *testing.T) {
	ctx := t.Context()
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: vfs.NewMem()})
	defer func() { require.NoError(t, eng.Close()) }()
	tell(t, ses, noon, 1)
	p, err := ses.RecordAsync(ctx, sajou.Addition{Signals: []*signal.Signal{enginetest.TaskSignal(1, 1)}, Recording: true})
	require.NoError(t, err)
	_, err = eng.Delete(ctx, "a")
	require.ErrorIs(t, err, eventlog.ErrInUse)
	_, err = p.Wait(ctx)
	require.NoError(t, err)
	tell(t, ses, noon, 1)
	_, err = ses.State(ctx)
	require.NoError(t, err)
	_, err = eng.Delete(ctx, "a")
	require.NoError(t, err)
}

// What a deletion that was interrupted in front of the log's write leaves is the session
// without its snapshots.
func TestInterruptedDeletionLeavesTheSession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	ctx, cancel := context.WithCancel(t.Context())
	cut := false
	cfg := sajou.Config{SnapshotEvery: 10, AfterFunc: never, Now: func() time.Time {
		if cut {
			cancel() // between the two stores
		}
		return noon
	}}
	eng, ses := enginetest.Begin(t, dir, cfg)
	tell(t, ses, noon, 30)
	want, err := ses.State(t.Context())
	require.NoError(t, err)
	_, err = eng.BuildSnapshots(t.Context(), "a", nil)
	require.NoError(t, err)
	require.NoError(t, eng.Close())
	eng, err = sajou.Open(dir, cfg)
	require.NoError(t, err)
	cut = true
	_, err = eng.Delete(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	cut = false
	list, err := eng.Snapshots().List("a")
	require.NoError(t, err)
	require.Empty(t, list)
	ses, err = eng.Session(t.Context(), "a")
	require.NoError(t, err)
	got, err := ses.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, enginetest.Digests(want), enginetest.Digests(got))
	_, err = eng.Delete(t.Context(), "a")
	require.NoError(t, err)
	require.NoError(t, eng.Close())
}

// An engine that works without snapshots deletes those of the session too, and an engine
// that cannot write deletes nothing.
func TestDeleteWithoutSnapshots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	eng, ses := enginetest.Begin(t, dir, sajou.Config{SnapshotEvery: 10, AfterFunc: never, Now: atNoon})
	tell(t, ses, noon, 30)
	_, err := eng.BuildSnapshots(t.Context(), "a", nil)
	require.NoError(t, err)
	require.NoError(t, eng.Close())
	eng, err = sajou.Open(dir, sajou.Config{ReadOnly: true})
	require.NoError(t, err)
	_, err = eng.Delete(t.Context(), "a")
	require.ErrorIs(t, err, eventlog.ErrReadOnly)
	require.NoError(t, eng.Close())
	eng, err = sajou.Open(dir, sajou.Config{NoSnapshots: true})
	require.NoError(t, err)
	_, err = eng.Delete(t.Context(), "a")
	require.NoError(t, err)
	require.NoError(t, eng.Close())
	_, err = eng.Delete(t.Context(), "a")
	require.ErrorIs(t, err, eventlog.ErrClosed)
	images, err := snapshot.Open(filepath.Join(dir, sajou.SnapshotFile), snapshot.Config{})
	require.NoError(t, err)
	names, err := images.Sessions()
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, images.Close())
}

// retained returns the names of sessions.
func retained(list []sajou.RetainedSession) (names []string) {
	for _, s := range list {
		names = append(names, s.Session)
	}
	return names
}

// Retain deletes what is too old by its last entry, and then the oldest until the rest
// fits; it says so beforehand, and spares sessions in use.
func TestRetain(t *testing.T) {
	ctx := t.Context()
	const day = 24 * time.Hour
	last := map[string]time.Duration{"new": day, "old": 40 * day, "older": 50 * day, "oldest, in use": 60 * day}
	begin := func(t *testing.T) *sajou.Engine {
		eng, err := sajou.Open(filepath.Join(t.TempDir(), "store"), sajou.Config{Now: atNoon, AfterFunc: never})
		require.NoError(t, err)
		for _, name := range []string{"old", "new", "oldest, in use", "older"} {
			ses, err := eng.Session(ctx, name)
			require.NoError(t, err)
			tell(t, ses, noon.Add(-70*day), 50) // all began at the same time
			tell(t, ses, noon.Add(-last[name]), 50)
			if name == "oldest, in use" {
				ses.Agents()
			}
		}
		ses, err := eng.Begin(ctx, "no age", session.TimeManual)
		require.NoError(t, err)
		_, err = ses.Signal(ctx, enginetest.TaskSignal(1, -1_700_000_000_000))
		require.NoError(t, err)
		return eng
	}
	sizes := func(eng *sajou.Engine) (sum uint64) {
		names, err := eng.Sessions()
		require.NoError(t, err)
		for _, name := range names {
			n, err := eng.Log().DiskSize(ctx, name)
			require.NoError(t, err)
			sum += n
		}
		return sum
	}
	for _, tt := range []struct {
		name           string
		r              func(total uint64) sajou.Retention
		deleted, inUse []string
	}{
		{"nothing", func(uint64) sajou.Retention { return sajou.Retention{} }, nil, nil},
		{"all fits", func(total uint64) sajou.Retention {
			return sajou.Retention{MaxAge: 61 * day, MaxBytes: total + total/10}
		}, nil, nil},
		{"age", func(uint64) sajou.Retention { return sajou.Retention{MaxAge: 45 * day} }, []string{"older"}, []string{"oldest, in use"}},
		{"the last entry counts to the second", func(uint64) sajou.Retention {
			return sajou.Retention{MaxAge: 40*day - 49*time.Second}
		}, []string{"older"}, []string{"oldest, in use"}},
		{"and a nanosecond more is too old", func(uint64) sajou.Retention {
			return sajou.Retention{MaxAge: 40*day - 49*time.Second - 1}
		}, []string{"older", "old"}, []string{"oldest, in use"}},
		{"a part less", func(total uint64) sajou.Retention {
			return sajou.Retention{MaxBytes: total - total/10}
		}, []string{"older"}, []string{"oldest, in use"}},
		{"more than half", func(total uint64) sajou.Retention {
			return sajou.Retention{MaxBytes: total / 8 * 5}
		}, []string{"older", "old"}, []string{"oldest, in use"}},
		{"no byte", func(uint64) sajou.Retention { return sajou.Retention{MaxBytes: 1} }, []string{"older", "old", "new", "no age"}, []string{"oldest, in use"}},
		{"both", func(total uint64) sajou.Retention {
			return sajou.Retention{MaxAge: 45 * day, MaxBytes: total / 8 * 5}
		}, []string{"older", "old"}, []string{"oldest, in use"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eng := begin(t)
			defer func() { require.NoError(t, eng.Close()) }()
			_, err := eng.Retain(ctx, sajou.Retention{DryRun: true}) // all entries are in tables
			require.NoError(t, err)
			r := tt.r(sizes(eng))
			r.DryRun = true
			told, err := eng.Retain(ctx, r)
			require.NoError(t, err)
			require.Equal(t, tt.deleted, retained(told.Deleted))
			require.Equal(t, tt.inUse, retained(told.InUse))
			require.Equal(t, 5-len(tt.deleted)-len(tt.inUse), told.Kept)
			names, err := eng.Sessions()
			require.NoError(t, err)
			require.Len(t, names, 5, "a dry run deletes nothing")
			r.DryRun = false
			done, err := eng.Retain(ctx, r)
			require.NoError(t, err)
			require.Equal(t, retained(told.Deleted), retained(done.Deleted))
			require.Equal(t, retained(told.InUse), retained(done.InUse))
			require.InEpsilon(t, told.Bytes+1, done.Bytes+1, 0.2)
			tombs, err := eng.Tombstones()
			require.NoError(t, err)
			require.Len(t, tombs, len(tt.deleted))
			for _, d := range done.Deleted {
				if want := last[d.Session]; want > 0 {
					require.Equal(t, noon.Add(49*time.Second-want), d.Last)
				} else {
					require.True(t, d.Last.IsZero())
				}
			}
			require.InEpsilon(t, done.Bytes+1, sizes(eng)+1, 0.2)
			again, err := eng.Retain(ctx, r)
			require.NoError(t, err)
			require.Empty(t, again.Deleted)
		})
	}
	eng := begin(t)
	defer func() { require.NoError(t, eng.Close()) }()
	_, err := eng.Retain(ctx, sajou.Retention{MaxAge: -1})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}
