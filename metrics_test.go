package sajou_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// measurements counts what an engine reports.
type measurements struct {
	mu    sync.Mutex
	lines []string       // of rare measurements, in order; guarded by mu
	count map[string]int // of frequent ones; guarded by mu
}

func newMeasurements() *measurements { return &measurements{count: map[string]int{}} }

func (r *measurements) add(name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[name] += n
}

func (r *measurements) line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// taken returns the counts so far, and the lines.
func (r *measurements) taken() (map[string]int, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, strings.Join(r.lines, "\n")
}

func (r *measurements) Committed(c eventlog.CommittedRound)     { r.add("committed", c.Entries) }
func (r *measurements) FileSynced(string, time.Duration, error) {}
func (r *measurements) LogFailed(error)                         {}
func (r *measurements) FoldFailed(string, error)                {}
func (r *measurements) Folded(_ string, n, behind int, _ time.Duration) {
	r.add("folded", n)
	if behind < 0 {
		r.add("ahead", 1)
	}
}

func (r *measurements) FoldLoaded(_ string, at eventlog.Seq, _ time.Duration) {
	r.add("loaded", int(at))
}

func (r *measurements) ImageStored(name string, bytes int, _ time.Duration, err error) {
	if r.add("images", 1); name == "" || bytes == 0 || err != nil {
		r.line("image of %q: %d bytes, %v", name, bytes, err)
	}
}
func (r *measurements) ImageDropped(string) {}

func (r *measurements) SinkAttached(session, sink string) { r.line("attached %s %s", session, sink) }

func (r *measurements) SinkCalled(_, _, call string, took time.Duration) {
	r.line("%s took %v", call, took)
}

func (r *measurements) SinkDetached(session, sink string, err error) {
	r.line("detached %s %s: %v", session, sink, err)
}

func (r *measurements) DirectorCalled(_ context.Context, _, call string, _ time.Duration, err error) {
	if r.add(call, 1); err != nil {
		r.line("%s: %v", call, err)
	}
}

func (r *measurements) JudgeCalled(_ context.Context, c directorlive.JudgeCall) {
	r.line("%s turn %d try %d %s %v", c.Session, c.Turn, c.Try, c.Outcome, c.Took)
}

func (r *measurements) QuestionsGivenUp(session string, n int) { r.line("%s: %d given up", session, n) }

// Each entry is reported once as durable, and once as folded if the fold had not read it
// when it was made. Each image is reported.
func TestEngineMetrics(t *testing.T) {
	told, dir := newMeasurements(), filepath.Join(t.TempDir(), "store")
	cfg := sajou.Config{SnapshotEvery: 20, Metrics: sajou.Metrics{Log: told, Folds: told, Snapshots: told}}
	for range 2 {
		eng, ses := enginetest.Begin(t, dir, cfg)
		for i := range 30 {
			_, err := ses.Signal(t.Context(), enginetest.TaskSignal(i, int64(i)))
			require.NoError(t, err)
		}
		_, err := ses.State(t.Context())
		require.NoError(t, err)
		require.NoError(t, eng.Close())
	}
	count, lines := told.taken()
	assert.Empty(t, lines)
	assert.Equal(t, 61, count["committed"])
	assert.Equal(t, 31+61, count["loaded"]+count["folded"], "%v", count)
	assert.Positive(t, count["images"])
	assert.Zero(t, count["ahead"])
}

// Calls of sinks are reported with their durations, and the end with its error.
func TestSinkMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, clock := newMeasurements(), &enginetest.StoppedClock{Now: enginetest.StoryBegin}
		eng, err := sajou.Open("store", sajou.Config{
			FS: vfs.NewMem(), Now: clock.Read, AfterFunc: clock.AfterFunc, Metrics: sajou.Metrics{Sinks: told},
		})
		require.NoError(t, err)
		defer func() { _ = eng.Close() }()
		ses, err := eng.Begin(t.Context(), "a", session.TimeManual)
		require.NoError(t, err)
		_, err = ses.Define(t.Context(), enginetest.Definitions(t, enginetest.Dispatch)...)
		require.NoError(t, err)
		good := ses.Attach(t.Context(), &enginetest.FaultySink{In: "OnActionStart", Do: func() { clock.Ahead(3 * time.Millisecond) }}, 0)
		synctest.Wait()
		_, err = ses.Signal(t.Context(), enginetest.TaskSignal(1, 0))
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, good.Close())
		bad := ses.Show(t.Context(), &enginetest.FaultySink{In: "Frame", Do: func() { panic("boom") }}, 0)
		<-bad.Done()
		require.Error(t, ses.Attach(t.Context(), nil, 9999).Close(), "never attached")
		require.NoError(t, eng.Close())
		_, lines := told.taken()
		want := strings.Join([]string{
			"attached a *enginetest.FaultySink", "OnActionStart took 3ms", "OnActionUpdate took 0s", "detached a *enginetest.FaultySink: <nil>",
			"attached a *enginetest.FaultySink", `detached a *enginetest.FaultySink: sajou: sink *enginetest.FaultySink of session "a", in Frame at 472222h13m20s: the sink panicked: boom`,
		}, "\n")
		assert.Equal(t, want, lines)
	})
}

// Calls of a director and of its judge are reported, also those that fail, hang or come
// too late, and how many questions got no answer.
func TestDirectorMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, clock := newMeasurements(), &enginetest.StoppedClock{Now: enginetest.StoryBegin}
		eng, err := sajou.Open("store", sajou.Config{
			FS: vfs.NewMem(), Now: clock.Read, AfterFunc: clock.AfterFunc, JudgeTimeout: time.Second, Metrics: sajou.Metrics{Director: told},
		})
		require.NoError(t, err)
		defer func() { _ = eng.Close() }()
		ses := enginetest.BeginManual(t, eng, "dinner")
		release := make(chan struct{})
		calls := 0
		d := ses.Director().With(enginetest.JudgeFunc(func(context.Context, director.Question) (answer string, err error) {
			switch calls++; calls {
			case 1:
				clock.Ahead(7 * time.Millisecond)
				return "NO", nil
			case 2:
				panic("boom")
			default:
				<-release
				return "YES", nil
			}
		}))
		require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, asked), director.Opening{}))
		for turn := 1; turn <= 3; turn++ {
			_, err := d.Guide(t.Context(), director.TurnInput{Turn: turn, Text: "Hello."})
			require.NoError(t, err)
			var responded error
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, responded = d.Respond(t.Context(), director.Response{Turn: turn, Text: "Sit."})
			}()
			synctest.Wait()
			if turn == 3 {
				clock.Pass(time.Second) // nothing answers
			}
			<-done
			require.NoError(t, responded)
		}
		_, err = d.Choose(t.Context(), "drink", "yes")
		require.ErrorIs(t, err, director.ErrNotFound)
		close(release)
		synctest.Wait()
		require.NoError(t, eng.Close())
		count, lines := told.taken()
		assert.Equal(t, map[string]int{"start": 1, "guide": 3, "respond": 3, "choose": 1}, count)
		assert.Equal(t, strings.Join([]string{
			"dinner turn 1 try 1 answered 7ms",
			"dinner turn 2 try 1 failed 0s",
			"dinner: 1 given up",
			`choose: director: not found: choice point "drink"`,
			"dinner turn 3 try 1 late 1s",
		}, "\n"), lines)
	})
}

// asked is an episode whose only beat a judge decides on, each turn once.
const asked = `{"id":"asked","policy":{"judge_retries":0},
	"beats":[{"id":"toast","character_instruction":"Raise your glass.","target_turn":1,"detection_criteria":"she proposes a toast"}]}`
