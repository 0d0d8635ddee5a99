package sajou_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// promptly fails the test when f does not return.
func promptly(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute): // far beyond what anything here takes
		t.Fatalf("%s: still not back", what)
	}
}

// reported is a record and what its writer was told.
type reported struct {
	session, key string
	ids          []string
	expect       eventlog.Head
	out          sajou.Receipt
	err          error
}

// reports keeps what writers were told.
type reports struct {
	mu  sync.Mutex
	all []reported // guarded by mu
}

func (r *reports) add(one reported) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

const crowd = 3

// brief ends soon, so that thousands of its performances are few at a time.
const brief = `{"on":"task_dispatch","steps":[{"action":"move","entity":"signal.to","to":"desk","duration":20}]}`

func crowded(i int) string { return fmt.Sprintf("s%d", i) }

// crowdIn writes to all sessions until the engine is closed: single signals,
// imports that the fold follows beside the disk, and some that it falls far
// behind of.
func crowdIn(t *testing.T, eng *sajou.Engine, id int, seed uint64, told *reports, now *atomic.Int64, acked func()) {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(seed, uint64(id)))
	for i := 0; ; i++ {
		one := reported{session: crowded(rnd.IntN(crowd))}
		ses, err := eng.Session(ctx, one.session)
		if err != nil {
			assert.ErrorIs(t, err, eventlog.ErrClosed)
			return
		}
		n := 1 + rnd.IntN(3)
		if k := rnd.IntN(60); k == 0 {
			n = 9000
		} else if k < 6 {
			n = 200 + rnd.IntN(400)
		}
		signals := make([]*signal.Signal, n)
		for j := range signals {
			signals[j] = enginetest.TaskSignal(id, now.Add(1))
			signals[j].ID = fmt.Sprintf("%d/%d/%d", id, i, j)
			one.ids = append(one.ids, signals[j].ID)
		}
		if rnd.IntN(3) == 0 {
			one.key = fmt.Sprintf("key %d", rnd.IntN(60))
		}
		if rnd.IntN(4) == 0 {
			one.expect = ses.Head()
		}
		one.out, one.err = ses.Record(ctx, sajou.Addition{Signals: signals, Key: one.key, Expect: one.expect})
		told.add(one)
		if one.err != nil {
			continue
		}
		acked()
		if ses.Head().Seq < one.out.Head.Seq {
			t.Errorf("acknowledged %v, readers see %v", one.out.Head, ses.Head())
		}
		if rnd.IntN(8) == 0 {
			state, err := ses.State(ctx)
			switch {
			case errors.Is(err, eventlog.ErrClosed):
			case err != nil:
				t.Error(err)
			case state.Head().Seq < one.out.Head.Seq:
				t.Errorf("the state stands at %v, behind the acknowledged %v", state.Head(), one.out.Head)
			}
		}
	}
}

// Whatever is recorded, read and attached side by side, and whenever the engine
// is closed, everyone was told what the log holds, and the live state was that
// of a replay.
func TestCrowd(t *testing.T) {
	for seed := range uint64(4) {
		dir := t.TempDir()
		eng, err := sajou.Open(dir, sajou.Config{SnapshotEvery: 100})
		require.NoError(t, err)
		var told reports
		var wg sync.WaitGroup
		var acks, now atomic.Int64
		enough := make(chan struct{})
		closeAt := int64(1 + rand.New(rand.NewPCG(seed, 0)).IntN(300))
		live := make([]map[eventlog.Seq]string, crowd)
		for i := range live {
			ses, err := eng.Session(context.Background(), crowded(i))
			require.NoError(t, err)
			if _, err := ses.Define(context.Background(), enginetest.Definitions(t, brief)...); err != nil {
				t.Fatal(err)
			}
			live[i] = map[eventlog.Seq]string{}
			wg.Go(func() { look(t, ses, live[i]) })
			wg.Go(func() { subscribe(t, ses) })
			ses.Attach(t.Context(), &choreography.RecordingSink{}, 0)
		}
		for id := range 12 {
			wg.Go(func() {
				crowdIn(t, eng, id, seed, &told, &now, func() {
					if acks.Add(1) == closeAt {
						close(enough)
					}
				})
			})
		}
		promptly(t, "writing", func() { <-enough })
		promptly(t, "close", func() {
			assert.NoError(t, eng.Close())
		})
		promptly(t, "writers", wg.Wait)
		holdsWhatWasTold(t, dir, live, told.all)
	}
}

// look reads states until the engine is closed.
func look(t *testing.T, ses *sajou.Session, live map[eventlog.Seq]string) {
	for {
		before := ses.Head()
		state, err := ses.State(context.Background())
		if err != nil {
			assert.ErrorIs(t, err, eventlog.ErrClosed)
			return
		}
		if state.Head().Seq < before.Seq {
			t.Errorf("the state stands at %v, behind %v", state.Head(), before)
		}
		live[state.Head().Seq] = enginetest.Digests(state)
		// After the close the state can still be read; the log cannot.
		for _, err := range ses.Entries(context.Background(), max(before.Seq, 1)) {
			if errors.Is(err, eventlog.ErrClosed) {
				return
			}
			break
		}
	}
}

// subscribe follows a session until the engine is closed.
func subscribe(t *testing.T, ses *sajou.Session) {
	next := eventlog.Seq(1)
	for e, err := range ses.Subscribe(context.Background(), 1) {
		if err != nil {
			assert.ErrorIs(t, err, eventlog.ErrClosed)
			return
		}
		if e.Seq != next {
			t.Errorf("a subscriber got %d for %d", e.Seq, next)
		}
		next++
	}
}

// holdsWhatWasTold compares a store with states that were seen live and with
// what writers were told.
func holdsWhatWasTold(t *testing.T, dir string, live []map[eventlog.Seq]string, told []reported) {
	t.Helper()
	ctx := context.Background()
	eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	require.NoError(t, err)
	for i := range live {
		name := crowded(i)
		ses, err := eng.Session(ctx, name)
		require.NoError(t, err)
		heads := []eventlog.Head{{Hash: eventlog.Genesis(name)}}
		places := map[string]eventlog.Seq{}
		for e, err := range ses.Entries(ctx, 1) {
			require.NoError(t, err)
			heads = append(heads, e.Head())
			if e.Kind != eventlog.KindSignal {
				continue
			}
			sig, err := signal.Decode(e.Data)
			if err != nil || places[sig.ID] != 0 {
				t.Fatalf("%s: entry %d, signal %q, also at %d: %v", name, e.Seq, sig.ID, places[sig.ID], err)
			}
			places[sig.ID] = e.Seq
		}
		fold := replayed(t, ses, live[i])
		snapshotsFit(t, eng, name, heads)
		recovered, err := ses.State(ctx)
		require.NoError(t, err)
		if got := enginetest.Digests(recovered); got != fold {
			t.Errorf("%s: opened again %s, replayed %s", name, got, fold)
		}
		toldRight(t, name, heads, places, told)
	}
	assert.NoError(t, eng.Close())
}

// replayed folds a session again, compares the states that were seen live on the
// way, and returns the last.
func replayed(t *testing.T, ses *sajou.Session, live map[eventlog.Seq]string) (last string) {
	t.Helper()
	fold := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis(ses.Name()))
	at := func() string {
		f, err := fold.Clone()
		require.NoError(t, err)
		f.Advance(f.At())
		return enginetest.Digests(f)
	}
	for e, err := range ses.Entries(context.Background(), 1) {
		if err == nil {
			err = fold.Apply(&e)
		}
		require.NoError(t, err)
		if seen, ok := live[e.Seq]; ok {
			if want := at(); seen != want {
				t.Errorf("%s: seen live %s, replayed %s", ses.Name(), seen, want)
			}
			delete(live, e.Seq)
		}
	}
	delete(live, 0)
	for seq := range live {
		t.Errorf("%s: seen live at %d, which is not in the log", ses.Name(), seq)
	}
	return at()
}

// snapshotsFit expects that each snapshot is of a place in the log.
func snapshotsFit(t *testing.T, eng *sajou.Engine, name string, heads []eventlog.Head) {
	t.Helper()
	list, err := eng.Snapshots().List(name)
	require.NoError(t, err)
	for _, info := range list {
		img, ok, err := eng.Snapshots().Nearest(name, info.Seq, session.Projections(session.ProjectionConfig{}), func(eventlog.Head) bool { return true })
		if err != nil || !ok || img.Head.Seq != info.Seq {
			t.Fatalf("%s: snapshot at %d: %v, %v, %v", name, info.Seq, img.Head, ok, err)
		}
		if int(info.Seq) >= len(heads) || img.Head != heads[info.Seq] {
			t.Errorf("%s: a snapshot of %v, which is not in the log", name, img.Head)
		}
	}
	if len(heads) > 1000 && len(list) == 0 {
		t.Errorf("%s: no snapshot of %d entries", name, len(heads)-1)
	}
}

// toldRight compares a session's places, by signal id, with what the writers of
// all sessions were told.
func toldRight(t *testing.T, name string, heads []eventlog.Head, places map[string]eventlog.Seq, told []reported) {
	t.Helper()
	outcomes := map[string]eventlog.Head{}
	for _, one := range told {
		if one.session != name {
			continue
		}
		what, n := one.ids[0], eventlog.Seq(len(one.ids))
		last := places[one.ids[n-1]]
		for i, id := range one.ids {
			if at := places[id]; last != 0 && at+n-1-eventlog.Seq(i) != last || last == 0 && at != 0 {
				t.Errorf("%s: %s is at %d, and the end of its record at %d", name, id, at, last)
			}
			delete(places, id)
		}
		var conflict *eventlog.ConflictError
		switch {
		case one.err != nil:
			if last != 0 {
				t.Errorf("%s: %s was told %v and is at %d", name, what, one.err, last)
			}
			if !errors.Is(one.err, eventlog.ErrClosed) && (!errors.As(one.err, &conflict) || conflict.Head != heads[conflict.Head.Seq]) {
				t.Errorf("%s: %s: %v", name, what, one.err)
			}
			continue
		case int(one.out.Head.Seq) >= len(heads) || heads[one.out.Head.Seq] != one.out.Head:
			t.Errorf("%s: %s was acknowledged at %v, which is not in the log", name, what, one.out.Head)
			continue
		}
		if before, ok := outcomes[one.key]; ok && one.key != "" && before != one.out.Head {
			t.Errorf("%s: key %q has outcomes %v and %v", name, one.key, before, one.out.Head)
		}
		outcomes[one.key] = one.out.Head
		switch {
		case one.out.Repeat && (last != 0 || one.key == ""):
			t.Errorf("%s: %s is a repeat and at %d", name, what, last)
		case one.out.Repeat:
		case last != one.out.Head.Seq || one.out.First != last-n+1:
			t.Errorf("%s: %s is at %d, and was told %+v", name, what, last, one.out)
		case !one.expect.IsZero() && one.expect != heads[one.out.First-1]:
			t.Errorf("%s: %s expected %v and got the place behind %v", name, what, one.expect, heads[one.out.First-1])
		}
	}
	for id, at := range places {
		t.Errorf("%s: nobody was told of %s at %d", name, id, at)
	}
}

// A repeat gets its first outcome also when its time has gone by meanwhile, or
// it expects what no longer is.
func TestRepeatOfWhatIsOutOfTime(t *testing.T) {
	ctx := context.Background()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	require.NoError(t, err)
	early := sajou.Addition{Signals: []*signal.Signal{enginetest.TaskSignal(1, 0)}, Key: "k", Expect: ses.Head()}
	first, err := ses.Record(ctx, early)
	require.NoError(t, err)
	late, err := ses.Signal(ctx, enginetest.TaskSignal(2, 1000))
	require.NoError(t, err)
	again, err := ses.Record(ctx, early)
	if want := (sajou.Receipt{First: first.First, Head: first.Head, Repeat: true}); err != nil || again != want {
		t.Errorf("the repeat: %+v, %v; want %+v", again, err, want)
	}
	early.Key, early.Expect = "other", eventlog.Head{}
	if _, err := ses.Record(ctx, early); !errors.Is(err, session.ErrTime) || ses.Head() != late {
		t.Errorf("under another key: %v, the session stands at %v", err, ses.Head())
	}
	assert.NoError(t, eng.Close())
}

// A sink that is behind when the log stops still gets what became durable.
func TestSinkBehindAFailedLog(t *testing.T) {
	ctx := context.Background()
	var broken atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpLock {
			return errors.New("the disk says no")
		}
		return nil
	}))
	eng, err := sajou.Open("store", sajou.Config{FS: disk})
	require.NoError(t, err)
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	require.NoError(t, err)
	if _, err := ses.Define(ctx, enginetest.Definitions(t, brief)...); err != nil {
		t.Fatal(err)
	}
	const n = 50
	sink := &enginetest.ChannelSink{Commands: make(chan choreography.Command)}
	live := ses.Attach(ctx, sink, 0)
	for i := range n {
		if _, err := ses.Signal(ctx, enginetest.TaskSignal(i, int64(i)*1000)); err != nil {
			t.Fatal(err)
		}
	}
	first := <-sink.Commands // the sink now holds up what comes
	broken.Store(true)
	if _, err := ses.Signal(ctx, enginetest.TaskSignal(n, n*1000)); !errors.Is(err, eventlog.ErrReadOnly) {
		t.Fatalf("recording on a broken disk: %v", err)
	}
	for _, err := range ses.Subscribe(ctx, n) { // gives the sink's reader the time to meet the end, too
		if err != nil {
			break
		}
	}
	// Each signal starts one action and completes that of the signal before.
	promptly(t, "the sink", func() {
		for i := 1; i < 2*n-1; i++ {
			<-sink.Commands
		}
	})
	if <-live.Done(); !errors.Is(live.Err(), eventlog.ErrReadOnly) {
		t.Errorf("the sink was detached with %v, want ErrReadOnly", live.Err())
	}
	if first.At != time.Duration(1_700_000_000_000)*time.Millisecond {
		t.Errorf("the first command is %s", enginetest.CommandLine(first))
	}
	assert.NoError(t, eng.Close())
}
