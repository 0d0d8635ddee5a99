package sajou_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/replay"
)

// channelSink hands every command but updates to a channel, and counts updates.
type channelSink struct {
	commands chan choreography.Command
	mu       sync.Mutex
	updates  int // guarded by mu
}

func (s *channelSink) OnActionStart(c choreography.ActionStart)       { s.commands <- c.Command() }
func (s *channelSink) OnActionComplete(c choreography.ActionComplete) { s.commands <- c.Command() }
func (s *channelSink) OnActionExecute(c choreography.ActionExecute)   { s.commands <- c.Command() }
func (s *channelSink) OnInterrupt(c choreography.Interrupt)           { s.commands <- c.Command() }
func (s *channelSink) OnActionUpdate(choreography.ActionUpdate) {
	s.mu.Lock()
	s.updates++
	s.mu.Unlock()
}

// clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// line shows a command as tests compare it.
func line(c choreography.Command) string {
	return fmt.Sprintf("%v %s %s %s %s", c.At, c.Kind, c.PerformanceID, c.Action, c.EntityRef)
}

// A sink that is attached while a session runs gets, frame by frame, the
// commands that a replay gives, at the same exact times.
func TestAttachedSinkSeesWhatReplaySees(t *testing.T) {
	ctx := context.Background()
	begin := time.UnixMilli(1_700_000_000_000)
	now := &clock{now: begin}
	eng, err := sajou.Open(t.TempDir(), sajou.Config{Now: now.read, FrameRate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = eng.Close() }()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Define(ctx, definitions(t, dispatch)...); err != nil {
		t.Fatal(err)
	}
	sink := &channelSink{commands: make(chan choreography.Command, 100)}
	attached := ses.Attach(ctx, sink, 0)

	var live []string
	receive := func(n int) {
		t.Helper()
		for range n {
			select {
			case c := <-sink.commands:
				live = append(live, line(c))
			case <-time.After(30 * time.Second): // a guard, not a wait
				t.Fatalf("only %q came", live)
			}
		}
	}
	if _, err := ses.Signal(ctx, taskSignal(1, 0)); err != nil {
		t.Fatal(err)
	}
	receive(1) // the start, drawn at the signal's own time
	now.set(begin.Add(500 * time.Millisecond))
	if _, err := ses.Signal(ctx, taskSignal(2, 500)); err != nil {
		t.Fatal(err)
	}
	receive(1)
	now.set(begin.Add(10 * time.Second))
	receive(2) // both ends, at their own times although drawn much later
	if err := errors.Join(attached.Close(), attached.Close()); err != nil {
		t.Fatal(err)
	}

	travel, err := eng.Replay("a").Open()
	if err != nil {
		t.Fatal(err)
	}
	head := travel.Head().Seq
	var recorded choreography.RecordingSink
	if err := travel.Commands(ctx, replay.Moment{}, replay.Moment{Seq: head, Offset: 9 * time.Second}, 0, &recorded); err != nil {
		t.Fatal(err)
	}
	var replayed []string
	for _, c := range recorded.Commands {
		if c.Kind != choreography.CommandUpdate {
			replayed = append(replayed, line(c))
		}
	}
	if diff := cmp.Diff(replayed, live); diff != "" {
		t.Errorf("replay (-) and live (+) differ:\n%s", diff)
	}
	if sink.updates == 0 {
		t.Error("no frame brought an update")
	}
}

// A sink that never returns from a call delays no writer and no other sink.
func TestBlockedSinkBlocksNobody(t *testing.T) {
	ctx := context.Background()
	eng, err := sajou.Open(t.TempDir(), sajou.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ses, err := eng.Begin(ctx, "a", sajou.TimeManual)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Define(ctx, definitions(t, dispatch)...); err != nil {
		t.Fatal(err)
	}
	blocked := &channelSink{commands: make(chan choreography.Command)} // nobody receives yet
	ses.Attach(ctx, blocked, 0)
	free := &channelSink{commands: make(chan choreography.Command, 1000)}
	attached := ses.Attach(ctx, free, 0)
	for i := range 300 {
		if _, err := ses.Signal(ctx, taskSignal(i, int64(i)*1000)); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		<-free.commands
	}
	if err := attached.Close(); err != nil {
		t.Error(err)
	}
	go func() {
		for range blocked.commands {
			// let go, so that Close can wait for it
		}
	}()
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	close(blocked.commands)
}
