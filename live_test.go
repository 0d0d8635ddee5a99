package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// stopped is a time that stands still until a test moves it, with its timers.
type stopped struct {
	mu      sync.Mutex
	now     time.Time
	waiting []*timer
	asked   []time.Duration // for how long each timer was to run
}

type timer struct {
	at   time.Time
	call func() // nil: it has run, or was taken back
}

// storyBegin is where the session time of stories is zero.
var storyBegin = time.UnixMilli(1_700_000_000_000)

func (s *stopped) read() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *stopped) afterFunc(d time.Duration, f func()) (stop func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &timer{s.now.Add(d), f}
	s.waiting = append(s.waiting, t)
	s.asked = append(s.asked, d)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		was := t.call != nil
		t.call = nil
		return was
	}
}

// pass moves time on, calls what is due, and waits until all is at rest again.
func (s *stopped) pass(d time.Duration) {
	s.mu.Lock()
	s.now = s.now.Add(d)
	var due []func()
	for _, t := range s.waiting {
		if t.call != nil && !t.at.After(s.now) {
			due, t.call = append(due, t.call), nil
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(t *timer) bool { return t.call == nil })
	s.mu.Unlock()
	for _, call := range due {
		go call()
	}
	synctest.Wait()
}

// ahead sets the time on, and calls nothing.
func (s *stopped) ahead(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// running returns how many timers run, and how many were ever begun.
func (s *stopped) running() (now, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.waiting {
		if t.call != nil {
			now++
		}
	}
	return now, len(s.asked)
}

// theatre is an engine in memory whose time a test moves, and the session "a".
type theatre struct {
	*testing.T
	*stopped
	eng *sajou.Engine
	ses *sajou.Session
	log *bytes.Buffer // what the engine logged
	n   int           // signals
}

// play runs a test in a bubble in which everything can be waited for.
func play(t *testing.T, authority sajou.TimeAuthority, act func(*theatre), texts ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th := &theatre{T: t, stopped: &stopped{now: storyBegin}, log: new(bytes.Buffer)}
		var err error
		th.eng, err = sajou.Open("store", sajou.Config{
			FS: vfs.NewMem(), Now: th.read, AfterFunc: th.afterFunc, FrameRate: 10,
			Logger: slog.New(slog.NewTextHandler(th.log, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = th.eng.Close() }() // also of a test that has failed; the bubble wants it
		if th.ses, err = th.eng.Begin(t.Context(), "a", authority); err != nil {
			t.Fatal(err)
		}
		if len(texts) > 0 {
			if _, err := th.ses.Define(t.Context(), definitions(t, texts...)...); err != nil {
				t.Fatal(err)
			}
		}
		act(th)
	})
}

// signal records one now.
func (th *theatre) signal(typ string) {
	th.Helper()
	th.n++
	if _, err := th.ses.Signal(th.Context(), step{typ: typ}.signal(th.n, th.read().Sub(storyBegin).Milliseconds())); err != nil {
		th.Fatal(err)
	}
	synctest.Wait()
}

func (th *theatre) close() {
	th.Helper()
	if err := th.eng.Close(); err != nil {
		th.Error(err)
	}
}

// lines shows what a sink got since it was last asked.
type script struct {
	choreography.RecordingSink
}

func (s *script) lines() []string {
	var all []string
	for _, c := range s.Commands {
		text := fmt.Sprintf("%v %s %s", c.At, c.Kind, c.Action)
		if c.Kind == choreography.CommandUpdate {
			text += fmt.Sprintf(" %.3f", c.Progress)
		}
		all = append(all, text)
	}
	s.Commands = nil
	return all
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A walk of 350 ms, a rest of a second, and a flash without length.
const strollDefinition = `{"on":"task_dispatch","steps":[
	{"action":"move","entity":"signal.to","to":"desk","duration":350},
	{"action":"wait","duration":1000},
	{"action":"flash","target":"signal.from"}]}`

// While something moves the sink gets updates at the frames of session time,
// while something is awaited one timer runs for it, and while nothing is under
// way none does and nothing is sent.
func TestFramesOnlyWhileSomethingMoves(t *testing.T) {
	play(t, sajou.TimeWall, func(th *theatre) {
		var sink script
		live := th.ses.Attach(th.Context(), &sink, 0)
		th.pass(time.Hour)
		if now, ever := th.running(); now != 0 || ever != 0 || len(sink.Commands) != 0 {
			t.Fatalf("before anything: %d timers of %d, commands %v", now, ever, sink.lines())
		}
		th.now = storyBegin
		th.signal("task_dispatch")
		wantLines(t, "at once", sink.lines(), "0s start move", "0s update move 0.000")
		th.pass(40 * time.Millisecond)
		wantLines(t, "before the first frame", sink.lines())
		th.pass(60 * time.Millisecond)
		wantLines(t, "at the first frame", sink.lines(), "100ms update move 0.286")
		th.pass(130 * time.Millisecond)
		wantLines(t, "a little late", sink.lines(), "200ms update move 0.571")
		th.pass(150 * time.Millisecond)
		wantLines(t, "after a frame was missed", sink.lines(), "350ms complete move")
		th.pass(20 * time.Millisecond)
		_, frames := th.running()
		th.pass(900 * time.Millisecond)
		wantLines(t, "while it rests", sink.lines())
		if now, ever := th.running(); now != 1 || ever != frames {
			t.Errorf("while it rests %d timers run and %d were begun, want the one that waits for the end", now, ever-frames)
		}
		th.pass(50 * time.Millisecond)
		wantLines(t, "after the rest", sink.lines(), "1.35s execute flash")
		_, frames = th.running()
		th.pass(time.Hour)
		if now, ever := th.running(); now != 0 || ever != frames || len(sink.Commands) != 0 {
			t.Errorf("when all is over %d timers run, %d were begun, commands %v", now, ever-frames, sink.lines())
		}
		if err := live.Close(); err != nil {
			t.Error(err)
		}
		th.close()
	}, strollDefinition)
}

// Rates are chosen sink by sink: each gets its own frames of the same motion.
func TestRates(t *testing.T) {
	play(t, sajou.TimeWall, func(th *theatre) {
		sinks := map[int]*script{2: {}, 0: {}, 20: {}}
		for rate, sink := range sinks {
			th.ses.Attach(th.Context(), sink, rate)
		}
		th.signal("task_dispatch")
		for range 70 {
			th.pass(5 * time.Millisecond)
		}
		for rate, want := range map[int]int{2: 1, 0: 4, 20: 7} {
			updates := 0
			for _, c := range sinks[rate].Commands {
				if c.Kind == choreography.CommandUpdate {
					updates++
				}
			}
			if updates != want {
				t.Errorf("%d updates in 350 ms at a rate of %d, want %d", updates, rate, want)
			}
		}
		th.close()
		for _, rate := range []int{-1, 1001} {
			if err := th.ses.Attach(th.Context(), &script{}, rate).Err(); err == nil || errors.Is(err, eventlog.ErrClosed) {
				t.Errorf("a rate of %d: %v", rate, err)
			}
		}
		late := th.ses.Attach(th.Context(), &script{}, 0)
		<-late.Done()
		if !errors.Is(late.Err(), eventlog.ErrClosed) || !errors.Is(late.Close(), eventlog.ErrClosed) {
			t.Errorf("attached to a closed engine: %v", late.Err())
		}
	}, strollDefinition)
}

// slow is a sink that takes its time over every update.
type slow struct {
	script
	turn chan struct{}
}

func (s *slow) OnActionUpdate(c choreography.ActionUpdate) {
	s.script.OnActionUpdate(c)
	<-s.turn
}

// A sink that is too slow for the frames misses some, and nothing else: it gets
// all other commands that a replay has, in their order.
func TestSlowSinkMissesFramesAlone(t *testing.T) {
	play(t, sajou.TimeWall, func(th *theatre) {
		sink := &slow{turn: make(chan struct{})}
		live := th.ses.Attach(th.Context(), sink, 1000)
		for i := range 20 {
			th.signal([]string{"task_dispatch", "tool_call", "error"}[i%3])
			for range 9 {
				th.pass(10 * time.Millisecond) // a frame is due each time
			}
			sink.turn <- struct{}{}
			synctest.Wait()
		}
		close(sink.turn)
		th.pass(time.Minute)
		if err := live.Close(); err != nil {
			t.Error(err)
		}
		travel, err := th.eng.Replay("a").Open()
		if err != nil {
			t.Fatal(err)
		}
		var want choreography.RecordingSink
		last := replay.Moment{Seq: travel.Head().Seq, Offset: time.Minute}
		if err := travel.Commands(t.Context(), replay.Moment{}, last, 0, &want); err != nil {
			t.Fatal(err)
		}
		got, updates := important(sink.Commands)
		all, _ := important(want.Commands)
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("replay (-) and slow sink (+) differ:\n%s", diff)
		}
		if updates == 0 || updates > 200 {
			t.Errorf("%d updates came", updates)
		}
		th.close()
	}, storyDefinitions...)
}

// important shows the commands that are no updates, without the times that a
// live picture can draw later than they are.
func important(commands []choreography.Command) (lines []string, updates int) {
	for _, c := range commands {
		if c.Kind == choreography.CommandUpdate {
			updates++
			continue
		}
		lines = append(lines, fmt.Sprint(c.Kind, c.PerformanceID, c.Action, c.EntityRef))
	}
	return lines, updates
}

// actor is a sink of both kinds that does what it is told to in one call.
type actor struct {
	in string
	do func()
}

func (a *actor) call(name string) {
	if name == a.in {
		a.do()
	}
}

func (a *actor) OnActionStart(choreography.ActionStart)       { a.call("OnActionStart") }
func (a *actor) OnActionUpdate(choreography.ActionUpdate)     { a.call("OnActionUpdate") }
func (a *actor) OnActionComplete(choreography.ActionComplete) { a.call("OnActionComplete") }
func (a *actor) OnActionExecute(choreography.ActionExecute)   { a.call("OnActionExecute") }
func (a *actor) OnInterrupt(choreography.Interrupt)           { a.call("OnInterrupt") }
func (a *actor) Frame(*stage.Frame)                           { a.call("Frame") }

var sinkCalls = []string{"OnActionStart", "OnActionUpdate", "OnActionComplete", "OnActionExecute", "OnInterrupt", "Frame"}

// attach attaches an actor in the way that its call needs.
func (th *theatre) attach(ctx context.Context, a *actor) *sajou.Live {
	if a.in == "Frame" {
		return th.ses.Show(ctx, a, 0)
	}
	return th.ses.Attach(ctx, a, 0)
}

// scene has every command come up.
func (th *theatre) scene() {
	th.signal("task_dispatch")
	th.pass(100 * time.Millisecond)
	th.signal("error") // interrupts
	th.pass(2 * time.Second)
}

// A sink that panics, or ends its goroutine, is detached with an error that
// tells where. The engine and the other sinks go on.
func TestPanickingSink(t *testing.T) {
	boom := errors.New("boom")
	for _, call := range sinkCalls {
		for how, do := range map[string]func(){
			"text":    func() { panic("no such sprite") },
			"error":   func() { panic(boom) },
			"nil":     func() { panic(nil) },
			"runtime": func() { _ = sinkCalls[len(sinkCalls)] },
			"goexit":  runtime.Goexit,
		} {
			play(t, sajou.TimeWall, func(th *theatre) {
				bad := th.attach(th.Context(), &actor{call, do})
				var good script
				th.ses.Attach(th.Context(), &good, 0)
				th.scene()
				select {
				case <-bad.Done():
				default:
					t.Fatalf("%s in %s: the sink is still attached", how, call)
				}
				var failure *sajou.SinkError
				if err := bad.Err(); !errors.As(err, &failure) || !errors.Is(err, sajou.ErrSinkPanic) || failure.Panic == nil {
					t.Fatalf("%s in %s: detached with %v", how, call, err)
				}
				if failure.Call != call || failure.Session != "a" || failure.Sink != "*sajou_test.actor" ||
					!bytes.Contains(failure.Stack, []byte("live_test.go")) {
					t.Errorf("%s in %s: the error is %+v", how, call, failure)
				}
				if got := errors.Is(bad.Close(), boom); got != (how == "error") {
					t.Errorf("%s in %s: the error is the sink's own: %v", how, call, got)
				}
				if text := th.log.String(); strings.Count(text, "sink detached") != 1 || !strings.Contains(text, call) {
					t.Errorf("%s in %s: logged %q", how, call, text)
				}
				before := len(good.Commands)
				th.scene()
				if len(good.Commands) <= before {
					t.Errorf("%s in %s: another sink got nothing any more", how, call)
				}
				th.close()
			}, storyDefinitions...)
		}
	}
}

// Not even a sink whose fold cannot begin takes the engine along.
func TestNoSink(t *testing.T) {
	play(t, sajou.TimeWall, func(th *theatre) {
		commands, frames := th.ses.Attach(th.Context(), nil, 0), th.ses.Show(th.Context(), nil, 0)
		th.scene()
		for _, live := range []*sajou.Live{commands, frames} {
			if !errors.Is(live.Err(), sajou.ErrSinkPanic) {
				t.Errorf("no sink at all: %v", live.Err())
			}
		}
		th.close()
	}, storyDefinitions...)
}

// A sink that never returns delays neither writers, nor other sinks, nor, for
// longer than its grace, the engine's Close, which names it.
func TestSinkThatNeverReturns(t *testing.T) {
	for _, call := range sinkCalls {
		play(t, sajou.TimeWall, func(th *theatre) {
			release := make(chan struct{})
			calls := 0
			bad := th.attach(th.Context(), &actor{call, func() { calls++; <-release }})
			var good script
			th.ses.Attach(th.Context(), &good, 0)
			th.scene()
			before := len(good.Commands)
			th.scene()
			if len(good.Commands) <= before {
				t.Errorf("%s: another sink got nothing any more", call)
			}
			closed := make(chan error, 1)
			go func() { closed <- th.eng.Close() }()
			synctest.Wait()
			th.pass(5*time.Second - 1)
			select {
			case err := <-closed:
				t.Fatalf("%s: closed within the grace: %v", call, err)
			default:
			}
			th.pass(1)
			err := <-closed
			var failure *sajou.SinkError
			if !errors.Is(err, sajou.ErrSinkStuck) || !errors.As(err, &failure) || failure.Call != call || failure.Sink != "*sajou_test.actor" {
				t.Fatalf("%s: closed with %v", call, err)
			}
			<-bad.Done()
			if !errors.Is(bad.Err(), sajou.ErrSinkStuck) || !errors.Is(bad.Close(), sajou.ErrSinkStuck) {
				t.Errorf("%s: detached with %v", call, bad.Err())
			}
			if _, err := th.ses.Signal(t.Context(), step{typ: "error"}.signal(99, 0)); !errors.Is(err, eventlog.ErrClosed) {
				t.Errorf("%s: the store is not closed: %v", call, err)
			}
			close(release) // it returns at last: no other call begins, and the bubble wants its goroutine to end
			synctest.Wait()
			if calls != 1 {
				t.Errorf("%s: %d calls, want the one", call, calls)
			}
		}, storyDefinitions...)
	}
}

// One sink's Close waits no longer either, and what a sink does after it was
// given up reaches nobody but the log.
func TestGivenUpSinkPanics(t *testing.T) {
	play(t, sajou.TimeWall, func(th *theatre) {
		release := make(chan struct{})
		bad := th.attach(th.Context(), &actor{"OnActionStart", func() { <-release; panic("late") }})
		th.scene()
		closed := make(chan error, 1)
		go func() { closed <- bad.Close() }()
		synctest.Wait()
		th.pass(5 * time.Second)
		if err := <-closed; !errors.Is(err, sajou.ErrSinkStuck) {
			t.Errorf("closed with %v", err)
		}
		close(release)
		synctest.Wait()
		if !errors.Is(bad.Err(), sajou.ErrSinkStuck) {
			t.Errorf("then the error is %v", bad.Err())
		}
		th.scene()
		th.close()
	}, storyDefinitions...)
}

// The end of its context detaches a sink, without an error, and so does the
// sink itself by ending it.
func TestContextDetaches(t *testing.T) {
	play(t, sajou.TimeWall, func(th *theatre) {
		ctx, cancel := context.WithCancel(th.Context())
		calls := 0
		byItself := th.attach(ctx, &actor{"OnActionStart", func() { calls++; cancel() }})
		idle := th.attach(ctx, &actor{"Frame", func() {}})
		th.scene()
		th.scene()
		for _, live := range []*sajou.Live{byItself, idle} {
			<-live.Done()
			if err := errors.Join(live.Err(), live.Close()); err != nil {
				t.Error(err)
			}
		}
		if now, _ := th.running(); calls != 1 || now != 0 {
			t.Errorf("%d calls and %d timers after the context has ended", calls, now)
		}
		ended := th.attach(ctx, &actor{"Frame", func() { t.Error("a sink was attached to a context that has ended") }})
		<-ended.Done()
		th.close()
		if th.log.Len() > 0 {
			t.Errorf("logged %s", th.log)
		}
	}, storyDefinitions...)
}

// In a session without the wall's clock time stands still between entries, and
// no timer runs but the one that keeps to the rate.
func TestManualTimeStandsStill(t *testing.T) {
	play(t, sajou.TimeManual, func(th *theatre) {
		var sink script
		th.ses.Attach(th.Context(), &sink, 0)
		record := func(ms int64) {
			th.Helper()
			th.n++
			if _, err := th.ses.Signal(th.Context(), step{typ: "task_dispatch"}.signal(th.n, ms)); err != nil {
				th.Fatal(err)
			}
			synctest.Wait()
		}
		const zero = 1_700_000_000 * time.Second
		at := func(ms int, what string) string {
			return fmt.Sprint(zero+time.Duration(ms)*time.Millisecond, " ", what)
		}
		record(0)
		wantLines(t, "at once", sink.lines(), at(0, "start move"), at(0, "update move 0.000"))
		th.pass(time.Hour)
		wantLines(t, "an hour later", sink.lines())
		record(300)
		wantLines(t, "at an entry", sink.lines(), at(300, "start move"), at(300, "update move 0.857"), at(300, "update move 0.000"))
		record(400)
		wantLines(t, "too soon for a frame", sink.lines(), at(350, "complete move"), at(400, "start move"))
		th.pass(100 * time.Millisecond)
		wantLines(t, "at the next frame", sink.lines(), at(400, "update move 0.286"), at(400, "update move 0.000"))
		if now, _ := th.running(); now != 0 {
			t.Errorf("%d timers run", now)
		}
		th.close()
	}, strollDefinition)
}

// frames keeps what a viewer saw.
type frames struct{ seen []*stage.Frame }

func (f *frames) Frame(frame *stage.Frame) { f.seen = append(f.seen, frame) }

func (f *frames) times() []string {
	var all []string
	for _, frame := range f.seen {
		all = append(all, frame.At.String())
	}
	f.seen = nil
	return all
}

// A viewer sees what is there, what comes, and what begins and ends by itself;
// however many entries come between two frames, it sees the last.
func TestFramesShowWhatHappens(t *testing.T) {
	play(t, sajou.TimeWall, func(th *theatre) {
		var sink frames
		live := th.ses.Show(th.Context(), &sink, 0)
		synctest.Wait()
		wantLines(t, "attached", sink.times(), "0s")
		th.pass(time.Hour)
		th.now = storyBegin
		th.signal("thinking")
		th.pass(time.Hour)
		sink.seen = nil
		th.now = storyBegin.Add(time.Second)
		for range 20 {
			th.signal("thinking")
		}
		th.pass(time.Second)
		if seen := sink.times(); len(seen) == 0 || len(seen) > 12 || seen[0] != "1s" {
			t.Errorf("of 20 entries at once frames %v", seen)
		}
		if err := live.Close(); err != nil {
			t.Error(err)
		}
		th.close()
	}, strollDefinition)
}

// A viewer sees pictures of a crowd of entries while they come, and not only
// when there is a pause.
func TestFramesOfACrowd(t *testing.T) {
	play(t, sajou.TimeWall, func(th *theatre) {
		var sink frames
		release := make(chan struct{})
		live := th.ses.Show(th.Context(), both{&sink, &actor{"Frame", func() { <-release; th.ahead(time.Second) }}}, 0)
		many := make([]*signal.Signal, 5000)
		for i := range many {
			many[i] = step{typ: "thinking"}.signal(i, 0)
		}
		if _, err := th.ses.Record(th.Context(), sajou.Record{Signals: many}); err != nil {
			t.Fatal(err)
		}
		close(release) // each frame takes a second, so that the next is due at once
		synctest.Wait()
		if n := len(sink.seen); n < 5 || n > 7 {
			t.Errorf("%d frames of 5000 entries, want one for every 1024", n)
		}
		if err := live.Close(); err != nil {
			t.Error(err)
		}
		th.close()
	}, strollDefinition)
}

// both hands frames to two sinks.
type both [2]sajou.FrameSink

func (b both) Frame(f *stage.Frame) {
	b[0].Frame(f)
	b[1].Frame(f)
}
