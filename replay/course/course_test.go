package course_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/session"
)

// life is one performance: when it began and ended.
type life struct{ began, ended time.Duration }

// noted is a sink that notes everything.
type noted struct {
	choreography.RecordingSink

	lives   map[string]life
	entries []eventlog.Seq
	order   []string
	stop    error
}

func (n *noted) OnEntry(e *eventlog.Entry) error {
	n.entries = append(n.entries, e.Seq)
	n.order = append(n.order, fmt.Sprint("entry ", e.Seq))
	return n.stop
}

func (n *noted) OnPerformance(p choreography.Performance) {
	n.lives[p.ID()] = life{p.Began, -1}
	n.order = append(n.order, "begin "+p.ID())
}

func (n *noted) OnPerformanceEnd(at time.Duration, id string) {
	n.lives[id] = life{n.lives[id].began, at}
	n.order = append(n.order, "end "+id)
}

func (n *noted) OnInterrupt(c choreography.Interrupt) {
	n.RecordingSink.OnInterrupt(c)
	n.order = append(n.order, "interrupt "+c.PerformanceID)
}

func walk(t *testing.T, r *replay.Replay, over course.Passage) (*noted, time.Duration) {
	t.Helper()
	n := &noted{lives: map[string]life{}}
	end, err := course.Walk(t.Context(), r, over, n)
	require.NoError(t, err)
	return n, end
}

// TestLives compares the performances of a walk with those that the states of all
// moments hold, which are found without a sink.
func TestLives(t *testing.T) {
	for seed := range uint64(8) {
		_, r := enginetest.Recorded(t, enginetest.BustleSignals(seed, 60), enginetest.Bustle)
		n, end := walk(t, r, course.Passage{})
		want := map[string]life{}
		active := map[string]bool{}
		last := time.Duration(0)
		over := replay.MomentRange{To: replay.Moment{Seq: r.Head().Seq}, Rest: true}
		for s, err := range r.Moments(t.Context(), over, replay.NeedsState) {
			require.NoError(t, err)
			now := map[string]bool{}
			for p := range session.PerformancesOf(s.Fold).Scheduler().Performances() {
				now[p.ID()] = true
				if _, known := want[p.ID()]; !known {
					want[p.ID()] = life{p.Began, -1}
				}
			}
			for id := range active {
				if !now[id] {
					want[id] = life{want[id].began, s.Fold.At()}
				}
			}
			active, last = now, s.Fold.At()
		}
		for id, l := range n.lives {
			if _, seen := want[id]; !seen {
				assert.Equal(t, l.began, l.ended, "seed %d: %s is in no state, so it takes no time", seed, id)
				continue
			}
			assert.Equal(t, want[id], l, "seed %d: %s", seed, id)
			delete(want, id)
		}
		assert.Empty(t, want, "seed %d: performances that the walk has not told", seed)
		assert.Equal(t, last, end, "seed %d", seed)
		assert.Len(t, n.entries, int(r.Head().Seq))
	}
}

// TestCommands: the commands of a walk are those of the replay.
func TestCommands(t *testing.T) {
	_, r := enginetest.Recorded(t, enginetest.BustleSignals(3, 60), enginetest.Bustle)
	n, _ := walk(t, r, course.Passage{})
	var want choreography.RecordingSink
	require.NoError(t, r.Commands(t.Context(), replay.Moment{}, replay.Moment{Seq: r.Head().Seq, Offset: time.Minute}, 0, &want))
	kept := func(all []choreography.Command) []choreography.Command {
		return slices.DeleteFunc(slices.Clone(all), func(c choreography.Command) bool { return c.Kind == choreography.CommandUpdate })
	}
	assert.Equal(t, kept(want.Commands), kept(n.Commands))
}

// TestOrder: an entry comes before what it makes and ends, and an interruption before the
// end.
func TestOrder(t *testing.T) {
	_, r := enginetest.Recorded(t, []string{
		`{"id":"1","type":"tool_call","timestamp":1000,"source":"s","correlationId":"c","payload":{"toolName":"dig","agentId":"ann"}}`,
		`{"id":"2","type":"error","timestamp":1100,"source":"s","correlationId":"c","payload":{"agentId":"ann","severity":"error","message":"no"}}`,
	}, enginetest.Bustle)
	n, end := walk(t, r, course.Passage{From: 6})
	assert.Equal(t, []string{
		"entry 6", "begin p-6-1",
		"entry 7", "interrupt p-6-1", "end p-6-1", "begin p-7-1", "begin p-7-2", "end p-7-2", "end p-7-1",
	}, n.order)
	assert.Equal(t, 150*time.Millisecond, end)
	later, _ := walk(t, r, course.Passage{From: 7})
	assert.Equal(t, "begin p-6-1", later.order[0], "what was under way before the range")
	assert.Equal(t, choreography.CommandStart, later.Commands[0].Kind)
	part, end := walk(t, r, course.Passage{To: 6})
	assert.Equal(t, 100*time.Millisecond, max(end, part.Commands[len(part.Commands)-1].At), "the course of a range ends at the next entry")
	assert.Equal(t, life{0, -1}, part.lives["p-6-1"])
}

// TestErrors: a walk ends with the error of its sink, of its context or of its range.
func TestErrors(t *testing.T) {
	_, r := enginetest.Recorded(t, enginetest.BustleSignals(1, 3))
	stop := errors.New("stop")
	n := &noted{lives: map[string]life{}, stop: stop}
	_, err := course.Walk(t.Context(), r, course.Passage{}, n)
	require.ErrorIs(t, err, stop)
	assert.Len(t, n.entries, 1)
	_, err = course.Walk(t.Context(), r, course.Passage{To: 99}, &noted{lives: map[string]life{}})
	require.ErrorIs(t, err, replay.ErrNoAddress)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = course.Walk(ctx, r, course.Passage{}, &noted{lives: map[string]life{}})
	require.ErrorIs(t, err, context.Canceled)
}
