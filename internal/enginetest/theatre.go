package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// StoppedClock is a time that stands still until a test moves it, with its timers.
type StoppedClock struct {
	mu      sync.Mutex
	Now     time.Time
	waiting []*timer
	asked   []time.Duration // for how long each timer was to run
}

// timer is a timer of a [StoppedClock].
type timer struct {
	at   time.Time
	call func() // nil: it has run, or was taken back
}

// StoryBegin is where the session time of stories is zero.
var StoryBegin = time.UnixMilli(1_700_000_000_000)

// Read returns the time.
func (s *StoppedClock) Read() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Now
}

// AfterFunc starts a timer that Pass runs.
func (s *StoppedClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &timer{s.Now.Add(d), f}
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

// Pass moves time on, calls what is due, and waits until all is at rest again.
func (s *StoppedClock) Pass(d time.Duration) {
	s.mu.Lock()
	s.Now = s.Now.Add(d)
	var due []func()
	for _, t := range s.waiting {
		if t.call != nil && !t.at.After(s.Now) {
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

// Ahead sets the time on, and calls nothing.
func (s *StoppedClock) Ahead(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Now = s.Now.Add(d)
}

// Running returns how many timers run, and how many were ever begun.
func (s *StoppedClock) Running() (now, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.waiting {
		if t.call != nil {
			now++
		}
	}
	return now, len(s.asked)
}

// Theatre is an engine in memory whose time a test moves, and the session "a".
type Theatre struct {
	*testing.T
	*StoppedClock
	Eng *sajou.Engine
	Ses *sajou.Session
	Log *bytes.Buffer // what the engine logged
	N   int           // signals
}

// Play runs a test in a bubble in which everything can be waited for.
func Play(t *testing.T, authority session.TimeAuthority, act func(*Theatre), texts ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th := &Theatre{T: t, StoppedClock: &StoppedClock{Now: StoryBegin}, Log: new(bytes.Buffer)}
		var err error
		th.Eng, err = sajou.Open("store", sajou.Config{
			FS: vfs.NewMem(), Now: th.Read, AfterFunc: th.AfterFunc, FrameRate: 10,
			Logger: slog.New(slog.NewTextHandler(th.Log, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		require.NoError(t, err)
		defer func() { _ = th.Eng.Close() }() // also of a test that has failed; the bubble wants it
		if th.Ses, err = th.Eng.Begin(t.Context(), "a", authority); err != nil {
			t.Fatal(err)
		}
		if len(texts) > 0 {
			if _, err := th.Ses.Define(t.Context(), Definitions(t, texts...)...); err != nil {
				t.Fatal(err)
			}
		}
		act(th)
	})
}

// Signal records one now.
func (th *Theatre) Signal(typ string) {
	th.Helper()
	th.N++
	if _, err := th.Ses.Signal(th.Context(), Step{Typ: typ}.Signal(th.N, th.Read().Sub(StoryBegin).Milliseconds())); err != nil {
		th.Fatal(err)
	}
	synctest.Wait()
}

// Close closes the engine.
func (th *Theatre) Close() {
	th.Helper()
	if err := th.Eng.Close(); err != nil {
		th.Error(err)
	}
}

// WantLines compares lines.
func WantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// StrollDefinition is a walk of 350 ms, a rest of a second, and a flash without length.
const StrollDefinition = `{"on":"task_dispatch","steps":[
	{"action":"move","entity":"signal.to","to":"desk","duration":350},
	{"action":"wait","duration":1000},
	{"action":"flash","target":"signal.from"}]}`

// FaultySink is a sink of commands and of frames that runs Do in the call named In.
type FaultySink struct {
	In string
	Do func()
}

func (a *FaultySink) call(name string) {
	if name == a.In {
		a.Do()
	}
}

// OnActionStart implements [choreography.CommandSink].
func (a *FaultySink) OnActionStart(choreography.ActionStart) { a.call("OnActionStart") }

// OnActionUpdate implements [choreography.CommandSink].
func (a *FaultySink) OnActionUpdate(choreography.ActionUpdate) { a.call("OnActionUpdate") }

// OnActionComplete implements [choreography.CommandSink].
func (a *FaultySink) OnActionComplete(choreography.ActionComplete) { a.call("OnActionComplete") }

// OnActionExecute implements [choreography.CommandSink].
func (a *FaultySink) OnActionExecute(choreography.ActionExecute) { a.call("OnActionExecute") }

// OnInterrupt implements [choreography.CommandSink].
func (a *FaultySink) OnInterrupt(choreography.Interrupt) { a.call("OnInterrupt") }

// Frame implements [stagelive.FrameSink].
func (a *FaultySink) Frame(*stage.Frame) { a.call("Frame") }

// SinkCalls are the methods of sinks.
var SinkCalls = []string{"OnActionStart", "OnActionUpdate", "OnActionComplete", "OnActionExecute", "OnInterrupt", "Frame"}

// Attach attaches an actor in the way that its call needs.
func (th *Theatre) Attach(ctx context.Context, a *FaultySink) *stagelive.Attachment {
	if a.In == "Frame" {
		return th.Ses.Show(ctx, a, 0)
	}
	return th.Ses.Attach(ctx, a, 0)
}

// Scene has every command come up.
func (th *Theatre) Scene() {
	th.Signal("task_dispatch")
	th.Pass(100 * time.Millisecond)
	th.Signal("error") // interrupts
	th.Pass(2 * time.Second)
}

// Frames keeps what a viewer saw.
type Frames struct{ Seen []*stage.Frame }

// Frame implements a sink of frames.
func (f *Frames) Frame(frame *stage.Frame) { f.Seen = append(f.Seen, frame) }

// Times returns the session times of the frames.
func (f *Frames) Times() []string {
	var all []string
	for _, frame := range f.Seen {
		all = append(all, frame.At.String())
	}
	f.Seen = nil
	return all
}

// ChannelSink hands every command but updates to a channel, and counts updates.
type ChannelSink struct {
	Commands chan choreography.Command
	mu       sync.Mutex
	Updates  int // guarded by mu
}

// OnActionStart implements [choreography.CommandSink].
func (s *ChannelSink) OnActionStart(c choreography.ActionStart) { s.Commands <- c.Command() }

// OnActionComplete implements [choreography.CommandSink].
func (s *ChannelSink) OnActionComplete(c choreography.ActionComplete) { s.Commands <- c.Command() }

// OnActionExecute implements [choreography.CommandSink].
func (s *ChannelSink) OnActionExecute(c choreography.ActionExecute) { s.Commands <- c.Command() }

// OnInterrupt implements [choreography.CommandSink].
func (s *ChannelSink) OnInterrupt(c choreography.Interrupt) { s.Commands <- c.Command() }

// OnActionUpdate implements [choreography.CommandSink].
func (s *ChannelSink) OnActionUpdate(choreography.ActionUpdate) {
	s.mu.Lock()
	s.Updates++
	s.mu.Unlock()
}

// CommandLine shows a command as tests compare it.
func CommandLine(c choreography.Command) string {
	return fmt.Sprintf("%v %s %s %s %s", c.At, c.Kind, c.PerformanceID, c.Action, c.EntityRef)
}

// Glow is an action of an embedding program.
var Glow = stage.Action{
	Version: 1,
	Start: func(c stage.ActionCall) []stage.Track {
		return []stage.Track{{Channel: stage.ChannelScale, From: c.Figure.Scale, To: 3}}
	},
}
