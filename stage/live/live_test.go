package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// lines returns what a sink got since the last call.
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

// While something moves, the sink gets updates at the frames of session time. While a
// boundary is ahead, one timer runs for it. While nothing is under way, no timer runs and
// nothing is sent.
func TestFramesOnlyWhileSomethingMoves(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		var sink script
		live := th.Ses.Attach(th.Context(), &sink, 0)
		th.Pass(time.Hour)
		if now, ever := th.Running(); now != 0 || ever != 0 || len(sink.Commands) != 0 {
			t.Fatalf("before anything: %d timers of %d, commands %v", now, ever, sink.lines())
		}
		th.Now = enginetest.StoryBegin
		th.Signal("task_dispatch")
		enginetest.WantLines(t, "at once", sink.lines(), "0s start move", "0s update move 0.000")
		th.Pass(40 * time.Millisecond)
		enginetest.WantLines(t, "before the first frame", sink.lines())
		th.Pass(60 * time.Millisecond)
		enginetest.WantLines(t, "at the first frame", sink.lines(), "100ms update move 0.286")
		th.Pass(130 * time.Millisecond)
		enginetest.WantLines(t, "a little late", sink.lines(), "200ms update move 0.571")
		th.Pass(150 * time.Millisecond)
		enginetest.WantLines(t, "after a frame was missed", sink.lines(), "350ms complete move")
		th.Pass(20 * time.Millisecond)
		_, frames := th.Running()
		th.Pass(900 * time.Millisecond)
		enginetest.WantLines(t, "while it rests", sink.lines())
		if now, ever := th.Running(); now != 1 || ever != frames {
			t.Errorf("while it rests %d timers run and %d were begun, want the one that waits for the end", now, ever-frames)
		}
		th.Pass(50 * time.Millisecond)
		enginetest.WantLines(t, "after the rest", sink.lines(), "1.35s execute flash")
		_, frames = th.Running()
		th.Pass(time.Hour)
		if now, ever := th.Running(); now != 0 || ever != frames || len(sink.Commands) != 0 {
			t.Errorf("when all is over %d timers run, %d were begun, commands %v", now, ever-frames, sink.lines())
		}
		assert.NoError(t, live.Close())
		th.Close()
	}, enginetest.StrollDefinition)
}

// A sink that is attached while an action runs is told of it: its start, with the time
// at which it began, and its progress. Then it follows to the end without a further
// entry.
func TestAttachUnderWay(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		th.Signal("task_dispatch")
		th.Pass(140 * time.Millisecond)
		sink := &script{}
		th.Ses.Attach(th.Context(), sink, 0)
		synctest.Wait()
		enginetest.WantLines(t, "at once", sink.lines(), "0s start move", "140ms update move 0.400")
		th.Pass(60 * time.Millisecond)
		enginetest.WantLines(t, "at the next frame", sink.lines(), "200ms update move 0.571")
		th.Pass(150 * time.Millisecond)
		enginetest.WantLines(t, "at the end", sink.lines(), "350ms complete move")
		th.Close()
	}, enginetest.StrollDefinition)
}

// Each sink has its own rate: it gets its own frames of the same motion.
func TestRates(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		sinks := map[int]*script{2: {}, 0: {}, 20: {}}
		for rate, sink := range sinks {
			th.Ses.Attach(th.Context(), sink, rate)
		}
		th.Signal("task_dispatch")
		for range 70 {
			th.Pass(5 * time.Millisecond)
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
		th.Close()
		for _, rate := range []int{-1, 1001} {
			if err := th.Ses.Attach(th.Context(), &script{}, rate).Err(); err == nil || errors.Is(err, eventlog.ErrClosed) {
				t.Errorf("a rate of %d: %v", rate, err)
			}
		}
		late := th.Ses.Attach(th.Context(), &script{}, 0)
		<-late.Done()
		if !errors.Is(late.Err(), eventlog.ErrClosed) || !errors.Is(late.Close(), eventlog.ErrClosed) {
			t.Errorf("attached to a closed engine: %v", late.Err())
		}
	}, enginetest.StrollDefinition)
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

// A sink that is too slow for the frames misses only updates: it gets all other commands
// of a replay, in their order.
func TestSlowSinkMissesFramesAlone(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		sink := &slow{turn: make(chan struct{})}
		live := th.Ses.Attach(th.Context(), sink, 1000)
		for i := range 20 {
			th.Signal([]string{"task_dispatch", "tool_call", "error"}[i%3])
			for range 9 {
				th.Pass(10 * time.Millisecond) // a frame is due each time
			}
			sink.turn <- struct{}{}
			synctest.Wait()
		}
		close(sink.turn)
		th.Pass(time.Minute)
		assert.NoError(t, live.Close())
		travel, err := th.Eng.Replay("a")
		require.NoError(t, err)
		var want choreography.RecordingSink
		last := replay.Moment{Seq: travel.Head().Seq, Offset: time.Minute}
		require.NoError(t, travel.Commands(t.Context(), replay.Moment{}, last, 0, &want))
		got, updates := important(sink.Commands)
		all, _ := important(want.Commands)
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("replay (-) and slow sink (+) differ:\n%s", diff)
		}
		if updates == 0 || updates > 200 {
			t.Errorf("%d updates came", updates)
		}
		th.Close()
	}, enginetest.StoryDefinitions...)
}

// important returns the commands other than updates, without their times, because a live
// sink can get a command later than its time.
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

// A sink that panics, or ends its goroutine, is detached with an error that names the
// call. The engine and the other sinks continue.
func TestPanickingSink(t *testing.T) {
	boom := errors.New("boom")
	for _, call := range enginetest.SinkCalls {
		for how, do := range map[string]func(){
			"text":    func() { panic("no such sprite") },
			"error":   func() { panic(boom) },
			"nil":     func() { panic(nil) },
			"runtime": func() { _ = enginetest.SinkCalls[len(enginetest.SinkCalls)] },
			"goexit":  runtime.Goexit,
		} {
			enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
				bad := th.Attach(th.Context(), &enginetest.FaultySink{In: call, Do: do})
				var good script
				th.Ses.Attach(th.Context(), &good, 0)
				th.Scene()
				select {
				case <-bad.Done():
				default:
					t.Fatalf("%s in %s: the sink is still attached", how, call)
				}
				var failure *stagelive.SinkError
				if err := bad.Err(); !errors.As(err, &failure) || !errors.Is(err, stagelive.ErrSinkPanic) || failure.Panic == nil {
					t.Fatalf("%s in %s: detached with %v", how, call, err)
				}
				if failure.Call != call || failure.Session != "a" || failure.Sink != "*enginetest.FaultySink" ||
					!bytes.Contains(failure.Stack, []byte("enginetest.(*FaultySink)")) {
					t.Errorf("%s in %s: the error is %+v", how, call, failure)
				}
				if got := errors.Is(bad.Close(), boom); got != (how == "error") {
					t.Errorf("%s in %s: the error is the sink's own: %v", how, call, got)
				}
				if text := th.Log.String(); strings.Count(text, "sink detached") != 1 || !strings.Contains(text, call) {
					t.Errorf("%s in %s: logged %q", how, call, text)
				}
				before := len(good.Commands)
				th.Scene()
				if len(good.Commands) <= before {
					t.Errorf("%s in %s: another sink got nothing any more", how, call)
				}
				th.Close()
			}, enginetest.StoryDefinitions...)
		}
	}
}

// A sink whose fold cannot begin does not affect the engine.
func TestNoSink(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		commands, frames := th.Ses.Attach(th.Context(), nil, 0), th.Ses.Show(th.Context(), nil, 0)
		th.Scene()
		for _, live := range []*stagelive.Attachment{commands, frames} {
			if !errors.Is(live.Err(), stagelive.ErrSinkPanic) {
				t.Errorf("no sink at all: %v", live.Err())
			}
		}
		th.Close()
	}, enginetest.StoryDefinitions...)
}

// A sink that never returns delays neither writers nor other sinks. It delays the
// engine's Close by CloseTimeout, and Close names it.
func TestSinkThatNeverReturns(t *testing.T) {
	for _, call := range enginetest.SinkCalls {
		enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
			release := make(chan struct{})
			calls := 0
			bad := th.Attach(th.Context(), &enginetest.FaultySink{In: call, Do: func() { calls++; <-release }})
			var good script
			th.Ses.Attach(th.Context(), &good, 0)
			th.Scene()
			before := len(good.Commands)
			th.Scene()
			if len(good.Commands) <= before {
				t.Errorf("%s: another sink got nothing any more", call)
			}
			closed := make(chan error, 1)
			go func() { closed <- th.Eng.Close() }()
			synctest.Wait()
			th.Pass(5*time.Second - 1)
			select {
			case err := <-closed:
				t.Fatalf("%s: closed within the grace: %v", call, err)
			default:
			}
			th.Pass(1)
			err := <-closed
			var failure *stagelive.SinkError
			if !errors.Is(err, stagelive.ErrSinkStuck) || !errors.As(err, &failure) || failure.Call != call || failure.Sink != "*enginetest.FaultySink" {
				t.Fatalf("%s: closed with %v", call, err)
			}
			<-bad.Done()
			if !errors.Is(bad.Err(), stagelive.ErrSinkStuck) || !errors.Is(bad.Close(), stagelive.ErrSinkStuck) {
				t.Errorf("%s: detached with %v", call, bad.Err())
			}
			if _, err := th.Ses.Signal(t.Context(), enginetest.Step{Typ: "error"}.Signal(99, 0)); !errors.Is(err, eventlog.ErrClosed) {
				t.Errorf("%s: the store is not closed: %v", call, err)
			}
			close(release) // its call returns and no other begins; synctest needs the goroutine to end
			synctest.Wait()
			if calls != 1 {
				t.Errorf("%s: %d calls, want the one", call, calls)
			}
		}, enginetest.StoryDefinitions...)
	}
}

// The Close of one Attachment does not wait longer either. A panic after the sink was
// abandoned is only logged.
func TestGivenUpSinkPanics(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		release := make(chan struct{})
		bad := th.Attach(th.Context(), &enginetest.FaultySink{In: "OnActionStart", Do: func() { <-release; panic("late") }})
		th.Scene()
		closed := make(chan error, 1)
		go func() { closed <- bad.Close() }()
		synctest.Wait()
		th.Pass(5 * time.Second)
		assert.ErrorIs(t, <-closed, stagelive.ErrSinkStuck, "closed with")
		close(release)
		synctest.Wait()
		if !errors.Is(bad.Err(), stagelive.ErrSinkStuck) {
			t.Errorf("then the error is %v", bad.Err())
		}
		th.Scene()
		th.Close()
	}, enginetest.StoryDefinitions...)
}

// The end of its context detaches a sink without an error, also if the sink itself
// cancels it.
func TestContextDetaches(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		ctx, cancel := context.WithCancel(th.Context())
		calls := 0
		byItself := th.Attach(ctx, &enginetest.FaultySink{In: "OnActionStart", Do: func() { calls++; cancel() }})
		idle := th.Attach(ctx, &enginetest.FaultySink{In: "Frame", Do: func() {}})
		th.Scene()
		th.Scene()
		for _, live := range []*stagelive.Attachment{byItself, idle} {
			<-live.Done()
			assert.NoError(t, errors.Join(live.Err(), live.Close()))
		}
		if now, _ := th.Running(); calls != 1 || now != 0 {
			t.Errorf("%d calls and %d timers after the context has ended", calls, now)
		}
		ended := th.Attach(ctx, &enginetest.FaultySink{In: "Frame", Do: func() { t.Error("a sink was attached to a context that has ended") }})
		<-ended.Done()
		th.Close()
		if th.Log.Len() > 0 {
			t.Errorf("logged %s", th.Log)
		}
	}, enginetest.StoryDefinitions...)
}

// In a session whose time is not the wall clock's, time stands still between entries,
// and only the timer of the rate runs.
func TestManualTimeStandsStill(t *testing.T) {
	enginetest.Play(t, session.TimeManual, func(th *enginetest.Theatre) {
		var sink script
		th.Ses.Attach(th.Context(), &sink, 0)
		record := func(ms int64) {
			th.Helper()
			th.N++
			if _, err := th.Ses.Signal(th.Context(), enginetest.Step{Typ: "task_dispatch"}.Signal(th.N, ms)); err != nil {
				th.Fatal(err)
			}
			synctest.Wait()
		}
		const zero = 1_700_000_000 * time.Second
		at := func(ms int, what string) string {
			return fmt.Sprint(zero+time.Duration(ms)*time.Millisecond, " ", what)
		}
		record(0)
		enginetest.WantLines(t, "at once", sink.lines(), at(0, "start move"), at(0, "update move 0.000"))
		th.Pass(time.Hour)
		enginetest.WantLines(t, "an hour later", sink.lines())
		record(300)
		enginetest.WantLines(t, "at an entry", sink.lines(), at(300, "start move"), at(300, "update move 0.857"), at(300, "update move 0.000"))
		record(400)
		enginetest.WantLines(t, "too soon for a frame", sink.lines(), at(350, "complete move"), at(400, "start move"))
		th.Pass(100 * time.Millisecond)
		enginetest.WantLines(t, "at the next frame", sink.lines(), at(400, "update move 0.286"), at(400, "update move 0.000"))
		if now, _ := th.Running(); now != 0 {
			t.Errorf("%d timers run", now)
		}
		th.Close()
	}, enginetest.StrollDefinition)
}

// A frame sink gets the present stage, the effect of each entry, and what begins and ends
// without an entry. After any number of entries between two frames it gets the last state.
func TestFramesShowWhatHappens(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		var sink enginetest.Frames
		live := th.Ses.Show(th.Context(), &sink, 0)
		synctest.Wait()
		enginetest.WantLines(t, "attached", sink.Times(), "0s")
		th.Pass(time.Hour)
		th.Now = enginetest.StoryBegin
		th.Signal("thinking")
		th.Pass(time.Hour)
		sink.Seen = nil
		th.Now = enginetest.StoryBegin.Add(time.Second)
		for range 20 {
			th.Signal("thinking")
		}
		th.Pass(time.Second)
		if seen := sink.Times(); len(seen) == 0 || len(seen) > 12 || seen[0] != "1s" {
			t.Errorf("of 20 entries at once frames %v", seen)
		}
		assert.NoError(t, live.Close())
		th.Close()
	}, enginetest.StrollDefinition)
}

// A frame sink gets frames while many entries come, and not only when there is a pause.
func TestFramesOfACrowd(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		var sink enginetest.Frames
		release := make(chan struct{})
		live := th.Ses.Show(th.Context(), both{&sink, &enginetest.FaultySink{In: "Frame", Do: func() { <-release; th.Ahead(time.Second) }}}, 0)
		many := make([]*signal.Signal, 5000)
		for i := range many {
			many[i] = enginetest.Step{Typ: "thinking"}.Signal(i, 0)
		}
		if _, err := th.Ses.Record(th.Context(), sajou.Addition{Signals: many}); err != nil {
			t.Fatal(err)
		}
		close(release) // each frame takes a second, so that the next is due at once
		synctest.Wait()
		if n := len(sink.Seen); n < 5 || n > 7 {
			t.Errorf("%d frames of 5000 entries, want one for every 1024", n)
		}
		assert.NoError(t, live.Close())
		th.Close()
	}, enginetest.StrollDefinition)
}

// both passes frames to two sinks.
type both [2]stagelive.FrameSink

func (b both) Frame(f *stage.Frame) {
	b[0].Frame(f)
	b[1].Frame(f)
}

// A sink that is attached in the middle of an animation begins with the present, and
// sees the rest of it although no entry follows.
func TestAttachedInTheMiddle(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		th.Signal("task_dispatch")
		th.Pass(200 * time.Millisecond) // of the 350 ms of the walk
		frames, commands := new(enginetest.Frames), &enginetest.ChannelSink{Commands: make(chan choreography.Command, 10)}
		th.Ses.Show(th.Context(), frames, 0)
		th.Ses.Attach(th.Context(), commands, 0)
		synctest.Wait()
		enginetest.WantLines(t, "the first frame", frames.Times(), "200ms")
		for range 3 {
			th.Pass(100 * time.Millisecond)
		}
		enginetest.WantLines(t, "the rest", frames.Times(), "300ms", "400ms")
		if assert.Len(t, commands.Commands, 2) {
			assert.Equal(t, choreography.CommandStart, (<-commands.Commands).Kind)
			assert.Equal(t, choreography.CommandComplete, (<-commands.Commands).Kind)
		}
		assert.NotZero(t, commands.Updates)
		th.Close()
	}, enginetest.StrollDefinition)
}

// What ended before a sink was attached is not sent to it.
func TestAttachedAtTheEnd(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		th.Signal("task_dispatch")
		th.Ahead(time.Minute)
		frames, commands := new(enginetest.Frames), &enginetest.ChannelSink{Commands: make(chan choreography.Command, 10)}
		th.Ses.Show(th.Context(), frames, 0)
		th.Ses.Attach(th.Context(), commands, 0)
		th.Pass(time.Second)
		enginetest.WantLines(t, "the only frame", frames.Times(), "1m0s")
		assert.Empty(t, commands.Commands)
		th.Close()
	}, enginetest.StrollDefinition)
}

// A sink that is attached at a moment of the past gets the commands that another one got
// since, without waiting, and then goes on with it.
func TestAttachAt(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		withoutUpdates := func(s *script) []string {
			var kept []string
			for _, line := range s.lines() {
				if !strings.Contains(line, " update ") {
					kept = append(kept, line)
				}
			}
			return kept
		}
		all := &script{}
		th.Ses.Attach(th.Context(), all, 0)
		th.Signal("task_dispatch")
		th.Pass(500 * time.Millisecond)
		before := withoutUpdates(all)
		th.Signal("task_dispatch")
		th.Pass(900 * time.Millisecond)
		past, late := &script{}, &script{}
		th.Ses.AttachAt(th.Context(), past, 0, replay.Moment{})
		th.Ses.AttachAt(th.Context(), late, 0, replay.Moment{Seq: 3, Offset: 400 * time.Millisecond})
		synctest.Wait()
		want := withoutUpdates(all)
		require.NotEmpty(t, want)
		assert.Equal(t, append(before, want...), withoutUpdates(past), "from the beginning")
		assert.Equal(t, want, withoutUpdates(late), "from the rest between two actions")
		th.Pass(time.Hour)
		want = withoutUpdates(all)
		require.NotEmpty(t, want)
		assert.Equal(t, want, withoutUpdates(past), "the present")
		assert.Equal(t, want, withoutUpdates(late), "the present")
		nowhere := th.Ses.AttachAt(th.Context(), &script{}, 0, replay.Moment{Seq: 99})
		synctest.Wait()
		assert.Error(t, nowhere.Err())
		th.Close()
	}, enginetest.StrollDefinition)
}
